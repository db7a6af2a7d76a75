"""X11: the thin side of `_native.X11`.

This module owns finding a display's cookie and turning events into what the Rust side takes. What must never appear here: an
X request, a keycode, a wait of its own.
"""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from deskhand._core.forks import share
from deskhand._core.geometry import Rect, Size
from deskhand._core.monitor import Monitor, monitors_of
from deskhand._core.settle import Activity, Lag
from deskhand._core.untrusted import PinnedSocket
from deskhand._core.window import Window
from deskhand._native import X11, Screen
from deskhand._native import glance as native_glance
from deskhand.backends.events import encode
from deskhand.backends.protocols import Missed
from deskhand.errors import ConnectFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from deskhand._core.events import Event, Step

_FAMILY_LOCAL = 256
_FAMILY_WILD = 65535
_BY_PATH = "unix:/"
_COOKIE = b"MIT-MAGIC-COOKIE-1"


def cookie_for(display: str, xauthority: str | os.PathLike[str] | None) -> tuple[bytes, bytes, Path | None]:
    """Name and data of the cookie for a display, and the file it came from; empty when there is none.

    Args:
        display: As `DISPLAY` would name it.
        xauthority: The cookie file; by default `XAUTHORITY`, then `~/.Xauthority`, as every X client does.

    Raises:
        ConnectFailed: The file was named by the caller and cannot be read.
    """
    given = xauthority is not None
    path = Path(xauthority or os.environ.get("XAUTHORITY") or Path.home() / ".Xauthority")
    try:
        entries = _entries(path.read_bytes())
    except OSError as error:
        if given:
            raise ConnectFailed(display, f"cannot read the cookie file {path}: {error}") from error
        return b"", b"", None
    number = display.rpartition(":")[2].partition(".")[0].encode()
    if display.startswith(_BY_PATH):
        # A socket at any path, which is usually named after its display.
        number = Path(display).name.removeprefix("X").encode()
    hosts = {_FAMILY_LOCAL: socket.gethostname().encode(), _FAMILY_WILD: None}
    for family, address, entry_number, name, data in entries:
        host = hosts.get(family, b"\0")
        if host in {None, address} and entry_number in {b"", number} and name == _COOKIE:
            return name, data, path
    return b"", b"", path if given else None


def _entries(raw: bytes) -> Iterator[tuple[int, bytes, bytes, bytes, bytes]]:
    """Family, address, number, name and data of each entry of a cookie file, as far as the file is whole."""
    place = 0

    def counted() -> bytes:
        nonlocal place
        length = int.from_bytes(raw[place : place + 2])
        place += 2 + length
        return raw[place - length : place]

    while place < len(raw):
        family = int.from_bytes(raw[place : place + 2])
        place += 2
        entry = counted(), counted(), counted(), counted()
        if place > len(raw):
            return
        yield (family, *entry)


def glance(display: str, xauthority: str | os.PathLike[str] | None, timeout: float) -> tuple[Size, str | None]:
    """Size of a display, and the name of its driver (None if it has none); changes nothing there.

    Args:
        display: As `DISPLAY` would name it.
        xauthority: The cookie file; None as in `cookie_for`.
        timeout: Seconds after which a silent server is given up.

    Raises:
        ConnectFailed: There is no such display, or it refuses the connection.
        DesktopLost: It went away meanwhile, or said nothing.
    """
    name, data, _ = cookie_for(display, xauthority)
    with _pinned(display, None) as descriptor:
        width, height, driver = native_glance(display, (name, data), timeout, descriptor)
    return Size(width, height), driver


@contextlib.contextmanager
def _pinned(display: str, given: PinnedSocket | None) -> Iterator[int | None]:
    """The descriptor of the socket to connect to; None where the display is named by a number."""
    if given is not None:
        yield given.descriptor
    elif display.startswith(_BY_PATH):
        # A user who can write to its directory may have put a link to another display there.
        with PinnedSocket(display.removeprefix("unix:")) as found:
            yield found.descriptor
    else:
        yield None


def driver_name(pid: int) -> str:
    """How the lease of a display names its driver."""
    return f"process {pid} on {socket.gethostname()}"


class Throttled(Protocol):
    """Knows whether programs have used up the processor time that they are given."""

    def note(self) -> None:
        """Record the state before an action."""
        ...

    def is_out_of_time(self, generation: int) -> bool:
        """Whether programs may stand still only because they have no processor time left; with the screen's generation."""
        ...

    def close(self) -> None:
        """Release what it holds; it is not called again."""
        ...


class X11Backend:
    """One X display."""

    name = "x11"
    has_windows = True
    tells_focus = True
    tells_pointer = True
    lag: Lag = Lag()
    can_paste = True

    def __init__(
        self,
        display: str,
        *,
        xauthority: str | os.PathLike[str] | None = None,
        view_only: bool = False,
        own: bool = False,
        method: str | None = None,
        socket: PinnedSocket | None = None,
    ) -> None:
        """Open it, and take its lease unless only looking.

        Args:
            display: As `DISPLAY` would name it, such as `:99`.
            xauthority: The cookie file.
            view_only: Look only, take no lease, refuse input.
            own: The server is there for the driver's programs only: its multimedia keys are freed for characters that no key
                has, and the keymap is not given back at the end.
            method: Use this capture method (`shared-fd`, `shared-id`, `socket`) or fail; by default the fastest that works.
            socket: Its socket, if that is open already; the caller keeps it.

        Raises:
            ConnectFailed: No such display, or another driver holds it.
            AuthFailed: The server refused the cookie.
            BackendError: The server lacks an extension.
            ProtocolViolation: The server breaks the protocol, or sends more than is sensible.
        """
        name, data, path = cookie_for(display, xauthority)
        self.display = display
        self.xauthority = path
        driver = driver_name(os.getpid())
        with _pinned(display, socket) as descriptor:
            self._x11 = X11(
                display, (name, data), view_only=view_only, own=own, driver=driver, method=method, socket=descriptor
            )
        self.screen: Screen = self._x11.screen
        # A method that is the native one itself, as those below.
        self.descriptors: Callable[[], list[int]] = self._x11.sockets
        share(self)
        # Methods that are the native ones themselves.
        self.begin: Callable[[], None] = self._x11.begin
        self.end: Callable[[], None] = self._x11.end
        self.round_trip: Callable[[], None] = self._x11.look
        self.wait: Callable[[float], bool] = self._x11.wait
        self.answered: Callable[[int], bool] = self._x11.answered
        self.input_window: Callable[[], int | None] = self._x11.input_window
        self.activate: Callable[[int], None] = self._x11.activate
        self.close_window: Callable[[int], None] = self._x11.close_window
        self.focused_classes: Callable[[], list[str]] = self._x11.focused_classes
        self.has_window_manager: Callable[[], bool] = self._x11.has_window_manager
        self.read_clipboard: Callable[[float], str | None] = self._x11.read_clipboard
        self.write_clipboard: Callable[[str, float], None] = self._x11.write_clipboard
        self.clipboard_types: Callable[[float], list[str]] = self._x11.clipboard_kinds
        self.read_clipboard_data: Callable[[str, float], bytes | None] = self._x11.read_clipboard_kind
        self.write_clipboard_data: Callable[[Sequence[tuple[str, bytes]], float], None] = (
            self._x11.write_clipboard_kinds
        )
        self.return_clipboard: Callable[[float], None] = self._x11.return_clipboard
        self.wait_pasted: Callable[[float], None] = self._x11.wait_pasted
        self.clipboard_answered: Callable[[float], int] = self._x11.clipboard_answered
        self.allow: Callable[[float | None], None] = self._x11.allow
        self.interrupt: Callable[[], None] = self._x11.interrupt
        self.clear_interrupt: Callable[[], None] = self._x11.clear_interrupt
        self.pressed: Callable[[], tuple[list[int], list[int]]] = self._x11.pressed
        self._throttle: Throttled | None = None

    def drop_files(self, uris: bytes, xy: tuple[int, int], timeout: float) -> None:
        """See `Backend.drop_files`."""
        self._x11.drop_uris(uris, *xy, timeout)

    def lend_clipboard(self, text: str, *, with_primary: bool, timeout: float) -> Sequence[str]:
        """See `Backend.lend_clipboard`."""
        return self._x11.lend_clipboard(text, with_primary, timeout)

    def watch_throttle(self, throttle: Throttled) -> None:
        """Set what knows whether the display's programs stand still because they have no processor time left."""
        self._throttle = throttle

    def close(self) -> None:
        """End the connection; calling it again is harmless."""
        self._x11.close()
        if self._throttle is not None:
            self._throttle.close()
            self._throttle = None

    @property
    def size(self) -> Size:
        """Size of the screen in pixels."""
        return Size(*self.screen.size)

    @property
    def status(self) -> Sequence[str]:
        """Why the connection uses slower paths, and what its picture lacks."""
        return self._x11.status

    def untypable(self, events: Sequence[Step]) -> set[int]:
        """Always empty: which keycodes are free is known only when the text is sent."""
        del events
        return set()

    def split(self, events: Sequence[Event]) -> Sequence[Sequence[Event]]:
        """One part: the connection proves that what is bound to a key has been read."""
        return [events]

    def taken(self) -> None:
        """Do nothing: nothing depends on it."""

    def send(self, events: Sequence[Event]) -> Missed | None:
        """Send events; see `Backend.send`."""
        if (missed := self._x11.send(encode(events))) is None:
            return None
        obstacle, holder, windows = missed
        return Missed(obstacle, holder, tuple(Rect(*rect) for rect in windows))

    def release(self, events: Sequence[Event]) -> None:
        """Release; see `Backend.release`."""
        self._x11.release(encode(events))

    def look(self, limit: float | None = None) -> None:
        """Look: one round trip, for which a stopped server gets 10 s."""
        del limit
        self._x11.look()

    def mark(self, limit: float | None = None) -> int | None:
        """Look: what changed before is on the screen afterwards."""
        del limit
        self._x11.look()
        return None

    def marked(self, mark: int) -> int | None:
        """None: there are no marks."""
        del mark
        return None

    def probe(self, *, at_pointer: bool = False, window: int | None = None) -> int | None:
        """Ping; see `Backend.probe`."""
        return self._x11.ping(at_pointer, window)

    def take_stock(self) -> None:
        """See `Backend.take_stock`."""
        if self._throttle is not None:
            self._throttle.note()
        self._x11.take_stock()

    def activity(self, *, changed: bool) -> Activity:
        """As the processes on this machine show it; see `Backend.activity`."""
        if self._throttle is not None and self._throttle.is_out_of_time(self.screen.generation):
            return Activity.COMPUTING
        return Activity(self._x11.activity(changed))

    def double_click_time(self) -> float | None:
        """The time that a settings daemon publishes."""
        milliseconds = self._x11.double_click_time()
        return None if milliseconds is None else milliseconds / 1000

    def windows(self) -> list[Window]:
        """The managed windows, or those that are shown, bottom to top."""
        return [
            Window(number, title, class_name, pid, Rect(*rect), active, minimized, startup_id)
            for number, title, class_name, pid, rect, active, minimized, startup_id in self._x11.windows()
        ]

    def covers(self) -> list[tuple[Rect, float]]:
        """By the server's events; only what came since the connection began, and is opaque."""
        return [(Rect(*rect), since) for rect, since in self._x11.covers()]

    def monitors(self) -> list[Monitor]:
        """As RandR reports them."""
        return monitors_of(self._x11.monitors(), self.size)

    def resize(self, size: Size) -> None:
        """Change the size; see `Backend.resize`."""
        self._x11.resize(*size)
