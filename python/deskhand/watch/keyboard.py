"""Turns a person's keys, pointer and texts into actions.

A page names keys as browsers do, and a browser has applied the person's own layout already. So a character is typed as a text,
whatever layout the desktop has, and only named keys (Return, arrows, Ctrl...) are pressed and released. This module is pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deskhand._core.redaction import Secret
from deskhand.actions import KeyPress, MouseDown, MouseUp, Move, PressKeys, ReleaseKeys, Scroll, Type

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from deskhand.actions import Action

# As browsers name them (KeyboardEvent.key).
_MODIFIERS = {"Control": "ctrl", "Shift": "shift", "Alt": "alt", "Meta": "super"}


class Keyboard:
    """Makes actions of a page's messages, and knows what is pressed meanwhile."""

    def __init__(self) -> None:
        """Begin with nothing pressed."""
        self._modifiers: list[str] = []
        self._keys: list[str] = []

    def actions(self, message: dict[str, Any]) -> list[Action]:
        """The actions of a message of the types `move`, `button`, `wheel`, `text`, `chord`, `key` and `blur`.

        What is typed is a `Secret`: what a person types, perhaps a password, is in no log and no recording.
        """
        match message["type"]:
            case "move":
                return [Move((message["x"], message["y"]))]
            case "button":
                kind = MouseDown if message["down"] else MouseUp
                return [*self._hold(message["modifiers"]), kind(message["button"], (message["x"], message["y"]))]
            case "wheel":
                return [*self._hold(message["modifiers"]), *_scrolls(message)]
            case "text":
                return [*self._hold(()), Type(Secret(message["text"]))]
            case "blur":
                return self.release()
            case _:
                return self._pressed(message)

    def release(self) -> list[Action]:
        """Release everything that was pressed here."""
        keys, self._keys = self._keys, []
        released: list[Action] = [ReleaseKeys(keys)] if keys else []
        return [*released, *self._hold(())]

    def _hold(self, wanted: Collection[str]) -> list[Action]:
        """Have exactly these modifiers pressed."""
        surplus = [name for name in self._modifiers if name not in wanted]
        missing = [name for name in wanted if name not in self._modifiers]
        self._modifiers = [name for name in self._modifiers if name in wanted] + missing
        released: list[Action] = [ReleaseKeys(surplus)] if surplus else []
        return [*released, PressKeys(missing)] if missing else released

    def _pressed(self, message: dict[str, Any]) -> list[Action]:
        if message["type"] == "chord":
            return self._chord(message["key"], message["modifiers"])
        return self._key(message["key"], message["modifiers"], down=message["down"])

    def _chord(self, key: str, modifiers: Iterable[str]) -> list[Action]:
        # A letter with Shift arrives as a capital. The desktop's layout decides whether Shift is part of another character.
        is_letter = key.lower() != key.upper()
        held = [name for name in modifiers if name != "shift" or is_letter]
        return [*self._hold(held), KeyPress([key.lower() if is_letter else key])]

    def _key(self, key: str, modifiers: Collection[str], *, down: bool) -> list[Action]:
        if own := _MODIFIERS.get(key):
            # Shift is only pressed together with another key: characters arrive with it applied.
            wanted = {*modifiers, own} if down else {*modifiers} - {own}
            before = self._modifiers
            return self._hold(
                [name for name in _MODIFIERS.values() if name in wanted and (name != "shift" or name in before)]
            )
        if down:
            if key in self._keys:
                return []
            actions = [*self._hold(modifiers), PressKeys([key])]
            self._keys.append(key)
            return actions
        if key not in self._keys:
            return []
        self._keys.remove(key)
        return [ReleaseKeys([key]), *self._hold([name for name in self._modifiers if name in modifiers])]


def _scrolls(message: dict[str, Any]) -> list[Action]:
    place = (message["x"], message["y"])
    ways = ((message["down"], "down", "up"), (message["across"], "right", "left"))
    return [
        Scroll(place, direction=forth if notches > 0 else back, magnitude=abs(notches))
        for notches, forth, back in ways
        if notches
    ]


def merged(messages: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same messages in order, without moves that another one follows, and with texts that follow one another as one."""
    kept: list[dict[str, Any]] = []
    for message in messages:
        last = kept[-1] if kept else {"type": ""}
        if message["type"] == last["type"] == "move":
            kept[-1] = message
        elif message["type"] == last["type"] == "text":
            kept[-1] = {"type": "text", "text": last["text"] + message["text"]}
        else:
            kept.append(message)
    return kept
