"""`desktop.clipboard`: the text on the clipboard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deskhand._core.arguments import expect_encodable

if TYPE_CHECKING:
    from deskhand.desktop.view import View

_LIMIT = 5.0


class Clipboard:
    """The clipboard of a desktop; get it as `desktop.clipboard`.

    Example:
        >>> desktop.clipboard.write("text")
        >>> desktop.clipboard.read()
        'text'
    """

    def __init__(self, view: View) -> None:
        """Work on the desktop of `view`."""
        self._view = view

    def read(self) -> str | None:
        """The clipboard's text, None when it holds none.

        Raises:
            DeskhandTimeout: Its owner did not deliver in 5 s.
            BackendError: It is larger than 64 MiB.
        """
        core = self._view.core

        def read() -> str | None:
            with core.turn(_LIMIT):
                # It has a connection of its own, which may take longer to end.
                core.backend.round_trip()
                return core.backend.read_clipboard(_LIMIT)

        return self._view.operate(lambda: self._view.operation("get_clipboard"), read)

    def write(self, text: str) -> None:
        """Put text on the clipboard; the desktop serves it for as long as it is open.

        Raises:
            ActionError: It is not a text, or has a lone surrogate.
            UnsupportedAction: The desktop was opened to look only.
        """
        length = len(expect_encodable("clipboard.write: text", text))
        core = self._view.core

        def write() -> None:
            with core.turn(_LIMIT):
                core.refuse_input("clipboard.write")
                core.backend.round_trip()
                core.backend.write_clipboard(text, _LIMIT)

        self._view.operate(lambda: self._view.operation("set_clipboard", text, size=length), write)
