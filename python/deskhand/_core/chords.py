"""Chords: several keys in one string, such as ctrl+shift+t, read and written."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from deskhand._core.keys import SHIFTS, find, is_modifier, keysym, keysym_name
from deskhand.errors import ActionError, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

_LONGEST_KEPT = 200
_PLUS = re.compile(r"(\+)")
# Other programs' spellings of a modifier before a key: GTK's `<ctrl>s`, Emacs' `C-s`, a terminal's `^s`.
_ELSEWHERE = re.compile(r"<(\w+)>[-+]?(?=.)|([CMAS])-|(\^)|(\w+)[ ,]+(?=\S)")
_LETTERS = {"C": "ctrl", "M": "alt", "A": "alt", "S": "shift", "^": "ctrl"}
_HEX_TAIL = re.compile(r"[0-9a-fA-F]{4,6}")


def parse_keys(keys: Sequence[str]) -> tuple[int, ...]:
    """The keysyms of a chord, in the order in which its keys go down.

    Every item is a key name or a chord joined by plus signs: ``["ctrl", "s"]``, ``["ctrl+s"]`` and
    ``["ctrl", "shift+t"]`` are all chords. ``"+"`` alone is the plus key, ``"ctrl++"`` is Control and plus.
    ``"ctrl-s"`` is understood too, where all but the last are modifiers.

    In a chord with a modifier other than Shift an ASCII letter is lower-cased: providers who write ``CTRL``,
    ``A`` mean Control+a and not Control+Shift+a. Alone, ``A`` is a capital A.

    Args:
        keys: At least one item; a bare string is taken as one.

    Raises:
        ActionError: The list is empty, an item is not a string or unknown, or a key is there twice.
    """
    items = (keys,) if isinstance(keys, str) else tuple(keys)
    if not items:
        raise ActionError("no key was given: name at least one, for example ['ctrl', 's']")
    length = 0
    for item in items:
        if not isinstance(item, str):
            raise ActionError(f"a key name is a string, not {shown(item)}")
        length += len(item)
    return _parse(items) if length <= _LONGEST_KEPT else _parse.__wrapped__(items)


@functools.lru_cache(maxsize=1024)
def _parse(items: tuple[str, ...]) -> tuple[int, ...]:
    """Cached, because every action of a call needs it, some twice, and agents press the same few chords."""
    chord = [key for item in items for key in _parse_chord(item)]
    if any(is_modifier(key) and key not in SHIFTS for key in chord):
        chord = [key + 0x20 if ord("A") <= key <= ord("Z") else key for key in chord]
    for position, key in enumerate(chord):
        if key in chord[:position]:
            raise ActionError(
                f"{keysym_name(key)} is twice in the chord {shown(list(items))}: to press a key several times, "
                "use repeat or several actions"
            )
    return tuple(chord)


def chord_names(chord: str) -> tuple[str, ...]:
    """The key names of a chord that is joined by plus signs, as they are spelled: the inverse of joining them.

    ``"ctrl+s"`` is ``("ctrl", "s")``, ``"ctrl++"`` is ``("ctrl", "+")``. `parse_keys` checks that such keys exist.
    """
    return _names(chord) if len(chord) <= _LONGEST_KEPT else _names.__wrapped__(chord)


@functools.lru_cache(maxsize=1024)
def _names(chord: str) -> tuple[str, ...]:
    if find(chord) is not None:
        return (chord,)
    return tuple(name.strip() or name for name in _split(chord))


def _parse_chord(item: str) -> list[int]:
    whole = find(item)
    if whole is not None:
        return [whole]
    names = _split(item)
    if len(names) == 1:
        parts = [*item[:-2].split("-"), "-"] if item.endswith("--") else item.split("-")
        by_dash = [find(part) for part in parts]
        found = [key for key in by_dash if key is not None]
        if len(found) == len(by_dash) and all(is_modifier(key) for key in found[:-1]):
            return found
    try:
        return [_part(name, item) for name in names]
    except ActionError:
        if (meant := _from_elsewhere(item)) is not None:
            raise ActionError(f"unknown key {shown(item)}: did you mean {meant!r}?") from None
        raise


def _from_elsewhere(item: str) -> str | None:
    """How a chord is spelled here that is written as another program writes it; None if it is none of those."""
    modifiers, rest = [], item[:_LONGEST_KEPT]
    while (found := _ELSEWHERE.match(rest)) and len(rest) > 1:
        modifiers.append(next(_LETTERS.get(name, name) for name in found.groups() if name))
        rest = rest[found.end() :]
    keys = [find(name) for name in modifiers]
    if not modifiers or find(rest) is None or not all(key is not None and is_modifier(key) for key in keys):
        return None
    return "+".join((*modifiers, rest)).lower() if len(rest) == 1 else "+".join((*modifiers, rest))


def _part(name: str, item: str) -> int:
    # A blank around a plus sign is decoration; a blank alone is the space key.
    name = name.strip() or name
    if not item:
        raise ActionError("'' names no key: write a name such as 'Return', a chord such as 'ctrl+s', or a character")
    if not name:
        raise ActionError(f"{shown(item)} has no key beside a plus sign: for the plus key itself write 'ctrl++'")
    return keysym(name)


def _split(item: str) -> list[str]:
    # A plus sign where a key is due is the plus key; where one has just been, it separates.
    parts = [""]
    for piece in filter(None, _PLUS.split(item)):
        if piece != "+" and parts[-1] == "+":
            parts[-1:] = ["", piece]  # "+a": that one separated after all, from nothing
        elif piece != "+" or not parts[-1]:
            parts[-1] += piece
        else:
            parts.append("")
    joined: list[str] = []
    for part in parts:
        # "ctrl+U+20AC": the plus sign inside of a code point's name does not separate keys.
        if joined and joined[-1] in {"u", "U"} and _HEX_TAIL.fullmatch(part):
            joined[-1] += "+" + part
        else:
            joined.append(part)
    return joined
