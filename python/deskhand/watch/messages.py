"""The messages between the server and its page: what a page may say, and the bytes of an update of the picture.

Whatever comes from a page is checked here, whole, before anything is done with it. This module is pure.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from deskhand._core.arguments import expect_flag, expect_integer, expect_text
from deskhand.errors import ActionError, shown
from deskhand.watch.transfers import LARGEST

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

LONGEST_MESSAGE = 1 << 18
"""Bytes of one message of a page; a text for the clipboard is the longest."""

_LONGEST_TEXT = 1 << 16
_SHORT = 2000
_KEY = 40
_LARGEST = 65_535
_NUMBER = 2**53
_NOTCHES = 100
_MODIFIERS = ("ctrl", "shift", "alt", "super")
_BUTTONS = ("left", "middle", "right", "back", "forward")

# Little-endian: the sequence number, the screen's size, how many pieces; then for each its rectangle, its length and its bytes.
_HEAD = struct.Struct("<IHHH")
_PIECE = struct.Struct("<HHHHI")


def update_bytes(
    sequence: int, size: tuple[int, int], pieces: Sequence[tuple[tuple[int, int, int, int], bytes]]
) -> bytes:
    """An update of the picture, as the page's `picture.js` reads it.

    Args:
        sequence: The number that the page acknowledges.
        size: Width and height of the screen in pixels.
        pieces: Each a rectangle (x, y, width, height) in screen pixels, and its PNG file.
    """
    parts = [_HEAD.pack(sequence % (1 << 32), *size, len(pieces))]
    for rect, data in pieces:
        parts += [_PIECE.pack(*rect, len(data)), data]
    return b"".join(parts)


def parse(text: str) -> dict[str, Any]:
    """A page's message: its `type`, and the fields that this type has, checked.

    Raises:
        ActionError: It is too long, no JSON object, of no known type, or a field is missing, superfluous or wrong.
    """
    if len(text) > LONGEST_MESSAGE:
        raise ActionError(f"a message has at most {LONGEST_MESSAGE:,} characters, not {len(text):,}")
    try:
        message = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise ActionError("a message is a JSON object") from None
    if not isinstance(message, dict):
        raise ActionError("a message is a JSON object")
    kind = message.pop("type", None)
    fields = _FIELDS.get(kind) if isinstance(kind, str) else None
    if fields is None:
        raise ActionError(f"there is no message of the type {shown(kind)}")
    if set(message) != set(fields):
        raise ActionError(f"a message of the type {kind} has the fields {', '.join(fields) or 'type only'}")
    return {"type": kind, **{name: check(f"{kind}.{name}", message[name]) for name, check in fields.items()}}


def field_of(text: str, name: str, longest: int) -> str:
    """A text in the JSON object of a request's body.

    Raises:
        ActionError: It is not there.
    """
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = None
    value = body.get(name) if isinstance(body, dict) else None
    if not isinstance(value, str) or not 0 < len(value) <= longest:
        raise ActionError(f"the body is a JSON object with the text {name!r}")
    return value


def _no_number(word: str) -> NoReturn:
    raise ValueError(word)


def _text(longest: int, *, empty: bool = False) -> Callable[[str, object], str]:
    def check(what: str, value: object) -> str:
        text = expect_text(what, value)
        if len(text) > longest or not (text or empty):
            raise ActionError(f"{what} has {0 if empty else 1} to {longest:,} characters, not {len(text):,}")
        return text

    return check


def _integer(most: int) -> Callable[[str, object], int]:
    return lambda what, value: expect_integer(what, value, 0, most)


def _notches(what: str, value: object) -> int:
    return expect_integer(what, value, -_NOTCHES, _NOTCHES)


def _one_of(*words: str) -> Callable[[str, object], str]:
    def check(what: str, value: object) -> str:
        if value not in words:
            raise ActionError(f"{what} is one of {', '.join(words)}, not {shown(value)}")
        return str(value)

    return check


def _modifiers(what: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > len(_MODIFIERS) or not all(each in _MODIFIERS for each in value):
        raise ActionError(f"{what} is a list of {', '.join(_MODIFIERS)}")
    return tuple(word for word in _MODIFIERS if word in value)


_FIELDS: Mapping[str, Mapping[str, Callable[[str, object], Any]]] = {
    # Of every viewer.
    "ack": {"sequence": _integer(_NUMBER)},
    "point": {"x": _integer(_LARGEST), "y": _integer(_LARGEST)},
    # Of those who may control.
    "take": {"private": expect_flag, "force": expect_flag},
    "release": {"note": _text(_SHORT, empty=True)},
    "pause": {},
    "step": {},
    "resume": {},
    "stop": {},
    "decline": {"id": _integer(_NUMBER), "note": _text(_SHORT, empty=True)},
    # Of the one who has control.
    "move": {"x": _integer(_LARGEST), "y": _integer(_LARGEST)},
    "button": {
        "x": _integer(_LARGEST),
        "y": _integer(_LARGEST),
        "button": _one_of(*_BUTTONS),
        "down": expect_flag,
        "modifiers": _modifiers,
    },
    "wheel": {
        "x": _integer(_LARGEST),
        "y": _integer(_LARGEST),
        "across": _notches,
        "down": _notches,
        "modifiers": _modifiers,
    },
    "text": {"text": _text(_LONGEST_TEXT)},
    "chord": {"key": _text(_KEY), "modifiers": _modifiers},
    "key": {"key": _text(_KEY), "down": expect_flag, "modifiers": _modifiers},
    "blur": {},
    "paste": {"text": _text(_LONGEST_TEXT), "keys": expect_flag},
    "copy": {},
    "upload": {
        "id": _integer(_NUMBER),
        "kind": _one_of("file", "picture"),
        "name": _text(_SHORT, empty=True),
        "size": _integer(LARGEST),
    },
    "cancel": {},
    # Of those who may approve.
    "answer": {"id": _integer(_NUMBER), "allow": expect_flag, "session": expect_flag},
}


@dataclass(slots=True)
class TokenBucket:
    """Limits how many messages come in a second.

    Attributes:
        rate: Messages a second that may come for long.
        burst: How many may come at once.
    """

    rate: float
    burst: float
    _level: float = 0.0
    _at: float | None = None

    def takes(self, now: float) -> bool:
        """Whether one more may come at `now`, in monotonic seconds."""
        if self._at is None:
            self._level, self._at = self.burst, now
        self._level = min(self.burst, self._level + (now - self._at) * self.rate)
        self._at = now
        if self._level < 1:
            return False
        self._level -= 1
        return True
