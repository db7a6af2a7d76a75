"""`desktop.windows`: the windows, and what a window manager does with them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from deskhand._core.arguments import expect_integer, expect_path, expect_seconds, expect_several, expect_text
from deskhand._core.events import PointerMove
from deskhand._core.fields import check_xy
from deskhand._core.geometry import check_point
from deskhand._core.redaction import one_line
from deskhand._core.window import Window
from deskhand.errors import ActionError, DeskhandTimeout, UnsupportedAction, shown

if TYPE_CHECKING:
    import builtins
    from collections.abc import Sequence

    from deskhand.desktop.view import View

_LONGEST_TITLE = 300
# Of windows that an error names.
_MOST = 10
_LARGEST_ID = 2**32 - 1


class Windows:
    """The windows of a desktop; get it as `desktop.windows`.

    Example:
        >>> for window in desktop.windows.list():
        ...     print(window.title)
    """

    def __init__(self, view: View) -> None:
        """Work on the desktop of `view`."""
        self._view = view

    def list(self) -> builtins.list[Window]:
        """The windows that the window manager lists, bottom to top.

        Without a window manager that follows EWMH, those that the server shows (without menus and tooltips).

        Raises:
            UnsupportedAction: This backend cannot see windows.
        """
        self._check_seen("windows.list")
        core = self._view.core

        def listed() -> builtins.list[Window]:
            with core.turn():
                return core.backend.windows()

        return self._view.operate(lambda: self._view.operation("windows"), listed)

    def wait_for(self, title: str | re.Pattern[str], *, timeout: float = 10.0) -> Window:
        """Wait until there is a window with this title, such as a dialog, and return it: the topmost of several.

        Args:
            title: A part of its title, in any case, or a pattern that is found in it.
            timeout: Seconds to wait.

        Raises:
            DeskhandTimeout: There was none within `timeout` seconds; names the windows that there were.
            ActionError: The title is empty, or is neither a text nor a pattern.
            UnsupportedAction: This backend cannot see windows.
        """
        if not isinstance(title, re.Pattern) and not expect_text("windows.wait_for: title", title):
            raise ActionError("windows.wait_for: title is empty: give a part of the window's title")
        expect_seconds("windows.wait_for: timeout", timeout)
        self._check_seen("windows.wait_for")
        core = self._view.core

        def wait() -> Window:
            seen: builtins.list[Window] = []

            def there() -> bool:
                seen[:] = core.backend.windows()
                return any(_is_titled(window, title) for window in seen)

            with core.turn():
                if not core.watch.until(there, timeout):
                    wanted = shown(title.pattern if isinstance(title, re.Pattern) else title)
                    raise DeskhandTimeout(f"waited {timeout:g} s for a window titled {wanted}: {_listed(seen)}")
            return next(window for window in reversed(seen) if _is_titled(window, title))

        return self._view.operate(lambda: self._view.operation("windows"), wait)

    def activate(self, window: Window | int, *, timeout: float = 5.0) -> None:
        """Raise a window and give it the keyboard, and wait until it has it.

        Raises:
            ActionError: There is no such window.
            UnsupportedAction: This desktop was opened to look only.
            DeskhandTimeout: The window manager did not do it in `timeout` seconds.
        """
        number = _window_id("windows.activate", window)
        expect_seconds("windows.activate: timeout", timeout)
        self._check_seen("windows.activate")
        core = self._view.core

        def activate() -> None:
            with core.turn():
                core.refuse_input("windows.activate")
                self._check_there(number)
                core.backend.activate(number)
                if not core.watch.until(
                    lambda: any(w.active for w in core.backend.windows() if w.id == number), timeout
                ):
                    raise DeskhandTimeout(f"waited {timeout:g} s for window {number:#x} to become active")

        self._view.operate(lambda: self._view.operation("activate", _window_name(window)), activate)

    def close(self, window: Window | int, *, timeout: float = 5.0) -> bool:
        """Ask a window to close, as its close button would.

        Returns:
            True when it closed; False when it is still there after `timeout` seconds (it may be asking to save).

        Raises:
            ActionError: There is no such window.
            UnsupportedAction: This desktop was opened to look only.
        """
        number = _window_id("windows.close", window)
        expect_seconds("windows.close: timeout", timeout)
        self._check_seen("windows.close")
        core = self._view.core

        def close() -> bool:
            with core.turn():
                core.refuse_input("windows.close")
                self._check_there(number)
                core.backend.close_window(number)
                return core.watch.until(lambda: all(w.id != number for w in core.backend.windows()), timeout)

        return self._view.operate(lambda: self._view.operation("close_window", _window_name(window)), close)

    def drop(self, paths: Sequence[str], xy: tuple[int, int], *, timeout: float = 5.0) -> None:
        """Drop files on what is at a point, as from a file manager, and wait until its application has taken them.

        The pointer is moved there. What the application does with the files shows afterwards: look, or `perform` nothing.

        Args:
            paths: Absolute paths, on the machine where the application runs.
            xy: Where, in pixels of the screen.
            timeout: Seconds for the application.

        Raises:
            ActionError: There is no path, or one is not absolute.
            OutOfBounds: The point is not on the screen.
            UnsupportedAction: This desktop was opened to look only, or is reached over VNC.
            BackendError: The application takes no drops, or no files there.
            DeskhandTimeout: It did not answer in `timeout` seconds.
        """
        given = [expect_path("windows.drop: a path", path) for path in expect_several("windows.drop: paths", paths)]
        if not given or not all(path.startswith("/") for path in given):
            raise ActionError(f"windows.drop: paths are absolute paths, at least one, not {shown(given)}")
        x, y = check_xy(xy)
        expect_seconds("windows.drop: timeout", timeout)
        self._check_seen("windows.drop")
        core = self._view.core
        uris = "".join(f"{_file_uri(path)}\r\n" for path in given).encode()

        def drop() -> None:
            with core.turn():
                core.refuse_input("windows.drop")
                check_point((x, y), core.size)
                core.backend.send([PointerMove(x, y)])
                core.left_pointer = x, y
                core.backend.drop_files(uris, (x, y), timeout)

        self._view.operate(lambda: self._view.operation("drop", "\n".join(given)), drop)

    def _check_seen(self, what: str) -> None:
        backend = self._view.core.backend
        if not backend.has_windows:
            raise UnsupportedAction(backend.name, what, "only X11 reports windows")

    def _check_there(self, number: int) -> None:
        windows = self._view.core.backend.windows()
        if all(window.id != number for window in windows):
            raise ActionError(f"there is no window {number:#x}; {_listed(windows)}")


def _file_uri(path: str) -> str:
    from urllib.parse import quote  # noqa: PLC0415 # it costs every program's start, and few drop files

    return f"file://{quote(path.encode('utf-8', 'surrogateescape'))}"


def _is_titled(window: Window, title: str | re.Pattern[str]) -> bool:
    if isinstance(title, re.Pattern):
        return title.search(window.title) is not None
    return title.casefold() in window.title.casefold()


def _listed(windows: builtins.list[Window]) -> str:
    titles = ", ".join(f"{window.id:#x} {one_line(window.title, _LONGEST_TITLE)!r}" for window in windows[-_MOST:])
    more = f" and {len(windows) - _MOST} others" if len(windows) > _MOST else ""
    return f"the windows are: {titles or 'none'}{more}"


def _window_id(what: str, window: Window | int) -> int:
    if isinstance(window, str):
        raise ActionError(
            f"{what}: window is a Window or its id, not the title {shown(window)}",
            "find it with desktop.windows.wait_for",
        )
    return expect_integer(f"{what}: window", window.id if isinstance(window, Window) else window, 0, _LARGEST_ID)


def _window_name(window: Window | int) -> str:
    return f"{window:#x}" if isinstance(window, int) else f"{window.id:#x} {one_line(window.title, _LONGEST_TITLE)}"
