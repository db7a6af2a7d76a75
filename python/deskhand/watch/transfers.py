"""What goes between a page and its desktop in pieces: files and pictures to it, a picture from it.

A page says first what it sends and how large it is, and sends the pieces when that was accepted. A piece has its whole length,
so their number is bounded by the size. Either side may give up; what was on its way then is dropped. This module has no socket
and no desktop.
"""

from __future__ import annotations

import base64
import threading
from typing import TYPE_CHECKING, Any

from deskhand.errors import ActionError

if TYPE_CHECKING:
    from collections.abc import Callable

LARGEST = 32 << 20
"""Bytes of one file or picture, in either direction."""

MOST_FILES = 100
"""Files and pictures that a person sends in one hold."""

PIECE = 1 << 17
"""Bytes of each piece of a page but the last one."""

# Of a turn: a page draws the picture no later for it.
_PIECE_OUT = 1 << 19


class Upload:
    """One file or picture that a page sends.

    One thread gives it pieces; any may end it.

    Attributes:
        id: The page's number of it.
        kind: `file` or `picture`.
        name: What the page calls it.
        size: Its bytes.
        over: Whether it has ended: well, or with an error.
    """

    def __init__(self, message: dict[str, Any], changed: Callable[[], None]) -> None:
        """Begin.

        Args:
            message: The page's, of the type `upload`.
            changed: Called in any thread when `state` is another one.
        """
        self.id: int = message["id"]
        self.kind: str = message["kind"]
        self.name: str = message["name"]
        self.size: int = message["size"]
        self.over: bool = False
        self._changed = changed
        self._where = self._error = ""
        self._data: bytearray | None = None
        self._received = 0
        self._left = 0
        # Its data is either dropped with it or passed on, never both.
        self._lock = threading.Lock()
        self._handed_on = False

    def accept(self) -> None:
        """Take pieces from now on."""
        self._data, self._left = bytearray(), self.size
        self._changed()

    def take(self, piece: bytes) -> bool:
        """Take the next piece; whether it was the last one of all that is still wanted.

        Raises:
            ActionError: None was to come, or not of this length.
        """
        if not self._left or len(piece) != min(PIECE, self._left):
            raise ActionError("these bytes were not announced")
        self._left -= len(piece)
        data = self._data
        if data is None:
            return False
        data += piece
        self._received = len(data)
        self._changed()
        return not self._left

    def whole(self) -> bytes:
        """All of it, for the one who ends it then; it is kept here no longer.

        Raises:
            ActionError: It has ended meanwhile.
        """
        with self._lock:
            data, self._data = self._data, None
            if data is None:
                raise ActionError("it has ended, and nothing of it is left")
            self._handed_on = True
        return bytes(data)

    def end(self, *, where: str = "", error: str = "") -> None:
        """End it, if it has not ended.

        Args:
            where: The place that it got.
            error: Why it was not taken.
        """
        self._data = None
        if not self.over:
            self._where, self._error, self.over = where, error, True
            self._changed()

    def drop(self, error: str) -> None:
        """End it, unless it is being put on the desktop already. Pieces on their way are dropped."""
        with self._lock:
            if self._handed_on:
                return
            self.end(error=error)

    def cancel(self) -> None:
        """The page gives up: no piece comes any more."""
        self._left = 0
        self.drop("cancelled")

    def state(self) -> dict[str, Any]:
        """Its state, as the page gets it."""
        state = {"id": self.id, "received": self._received, "over": self.over}
        return {**state, "where": self._where, "error": self._error}


class Download:
    """A picture that a page gets, with one piece in each turn."""

    def __init__(self, data: bytes) -> None:
        """Begin."""
        self._data = data
        self._sent = 0

    def piece(self) -> dict[str, Any] | None:
        """The next piece for a turn; None after the last one."""
        at = self._sent
        if at >= len(self._data):
            return None
        piece = self._data[at : at + _PIECE_OUT]
        self._sent += len(piece)
        return {"size": len(self._data), "at": at, "data": base64.b64encode(piece).decode()}
