"""`desktop.clipboard`: what is on the clipboard, as text or as data of any type."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from deskhand._core.arguments import expect_encodable, expect_mapping, expect_text
from deskhand.errors import ActionError, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deskhand.desktop.operations import Operation
    from deskhand.desktop.view import View

_LIMIT = 5.0
_MOST_TYPES = 64
_MOST_BYTES = 64 << 20
# As RFC 2045 writes it: a type, a slash, a subtype, and parameters.
_MIME = re.compile(r"[!-.0-~]+/[!-~]+")
_LONGEST_TYPE = 100
_NAME = re.compile(r"[!-~]{1,100}")
# Applications ask for text by these names; those of X are older than MIME types.
_PLAIN = "text/plain"
_PLAIN_TOO = ("text/plain;charset=utf-8", "UTF8_STRING")


class Clipboard:
    """The clipboard of a desktop; get it as `desktop.clipboard`.

    Example:
        >>> desktop.clipboard.write("text")
        >>> desktop.clipboard.read()
        'text'
        >>> desktop.clipboard.write_data({"image/png": Path("logo.png").read_bytes()})
        >>> desktop.clipboard.types()
        ('image/png',)
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

    def types(self) -> tuple[str, ...]:
        """The types that the clipboard's content can be read as, in its owner's order; none when it is empty.

        Most are MIME types, some are older names of X (`UTF8_STRING`). They are the owner's words: up to 64, each of up to 100
        characters of printable ASCII.

        Raises:
            UnsupportedAction: Only texts are exchanged, over VNC.
            DeskhandTimeout: Its owner did not answer in 5 s.
        """
        core = self._view.core

        def read() -> tuple[str, ...]:
            with core.turn(_LIMIT):
                core.backend.round_trip()
                return tuple(core.backend.clipboard_types(_LIMIT))

        return self._view.operate(lambda: self._view.operation("get_clipboard", "types"), read)

    def read_data(self, type: str) -> bytes | None:
        """The clipboard's content of one type, None when it is not offered.

        Args:
            type: One of `types`, such as `image/png`, `text/html` or `text/uri-list`.

        Raises:
            ActionError: It is no name of a type: up to 100 characters of printable ASCII.
            UnsupportedAction: Only texts are exchanged, over VNC.
            DeskhandTimeout: Its owner did not deliver in 5 s.
            BackendError: It is larger than 64 MiB, or is not data but the id of something of its owner.
        """
        if not _NAME.fullmatch(expect_text("clipboard.read_data: type", type)):
            raise ActionError(f"clipboard.read_data: a type is one of clipboard.types(), not {shown(type)}")
        core = self._view.core

        def read() -> bytes | None:
            with core.turn(_LIMIT):
                core.backend.round_trip()
                return core.backend.read_clipboard_data(type, _LIMIT)

        return self._view.operate(lambda: self._view.operation("get_clipboard", type), read)

    def write_data(self, contents: Mapping[str, bytes]) -> None:
        """Put content on the clipboard; the desktop serves it for as long as it is open.

        Args:
            contents: The same content as each of these MIME types, the best first. `text/plain` is UTF-8, and is offered by the
                names of X too.

        Raises:
            ActionError: There is no type, one is no MIME type, there are more than 64 or more than 64 MiB.
            UnsupportedAction: The desktop was opened to look only; or only texts are exchanged, over VNC.
        """
        given = _checked(contents)
        texts = dict.fromkeys(_PLAIN_TOO, given[_PLAIN]) if _PLAIN in given else {}
        offered = list({**given, **texts, **given}.items())
        core = self._view.core

        def write() -> None:
            with core.turn(_LIMIT):
                core.refuse_input("clipboard.write_data")
                core.backend.round_trip()
                core.backend.write_clipboard_data(offered, _LIMIT)

        def operation() -> Operation:
            whole = b"".join(given.values())
            return self._view.operation("set_clipboard", ", ".join(given), size=len(whole), data=whole)

        self._view.operate(operation, write)


def _checked(contents: Mapping[str, bytes]) -> dict[str, bytes]:
    """A copy of what is to be offered.

    Raises:
        ActionError: See `Clipboard.write_data`.
    """
    given: dict[str, bytes] = {}
    for name, content in expect_mapping("clipboard.write_data: contents", contents).items():
        if len(expect_text("clipboard.write_data: a type", name)) > _LONGEST_TYPE or not _MIME.fullmatch(name):
            raise ActionError(f"clipboard.write_data: a type is a MIME type such as image/png, not {shown(name)}")
        if not isinstance(content, bytes | bytearray | memoryview):
            raise ActionError(f"clipboard.write_data: the data of {name} is bytes, not {shown(content)}")
        given[name] = bytes(content)
    if not given:
        raise ActionError("clipboard.write_data: there is no type; to empty the clipboard write an empty text")
    if len(given) > _MOST_TYPES or sum(map(len, given.values())) > _MOST_BYTES:
        raise ActionError(f"clipboard.write_data: more than {_MOST_TYPES} types or {_MOST_BYTES >> 20} MiB")
    return given
