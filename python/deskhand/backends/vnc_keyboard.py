"""Which keys are sent to a VNC server so that the character that was meant arrives. Pure.

A server is told keysyms, and finds keycodes for them itself. This module owns what may be relied on there: a keyboard whose
letters and signs are shifted as on an American one, and a few spare keycodes. What must never appear here: a byte of RFB.

- x0vncserver and QEMU do not press Shift for a capital, so it is pressed here, and released as soon as the key is down.
- With Shift held, a keysym means what a viewer would send then: `a` is `A`, else the server would release Shift for it.
- TigerVNC before 1.15 and x11vnc find a spare keycode for a character that is on no key, never free it, and have about 19; what
  comes after that is dropped without a word. So no more than `BUDGET` different ones are sent in a connection.
- The first key of a connection to Xvnc makes the X server copy the map of that keyboard over the common one, and what was just
  added to it is lost. So a character that is on no key is never the first: Shift is tapped before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deskhand.events import ButtonDown, ButtonUp, Event, KeyDown, KeyUp

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["BUDGET", "Keyboard"]

BUDGET = 12
"""Different characters beyond the American keyboard's that a connection may type."""

_SHIFT_L, _SHIFT_R = 0xFFE1, 0xFFE2
_PLAIN_KEYS = "abcdefghijklmnopqrstuvwxyz`1234567890-=[]\\;',./"
_SHIFTED_KEYS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ~!@#$%^&*()_+{}|:"<>?'
_UPPER = dict(zip(map(ord, _PLAIN_KEYS), map(ord, _SHIFTED_KEYS), strict=True))
_SHIFTED = frozenset(_UPPER.values())
_TAB, _ISO_LEFT_TAB = 0xFF09, 0xFE20
_WITH_SHIFT = _UPPER | {_TAB: _ISO_LEFT_TAB}
_FIRST_FUNCTION, _FIRST_UNICODE, _AFTER_UNICODE = 0xFD00, 0x01000000, 0x01110000
_BACK, _FORWARD = 8, 9
_BROWSER_KEYS = {_BACK: 0x1008FF26, _FORWARD: 0x1008FF27}


class Keyboard:
    """What one connection has typed so far."""

    def __init__(self) -> None:
        """Nothing is held, and nothing spent."""
        self._held: dict[int, int] = {}
        self._awake = False
        self._spent: set[int] = set()

    def untypable(self, events: Iterable[Event], budget: int = BUDGET) -> set[int]:
        """The keysyms among these that the server may have no keycode for, when it finds so many at all."""
        rare = {event.keysym for event in events if isinstance(event, KeyDown) and _is_rare(event.keysym)}
        new = rare - self._spent
        return new if len(self._spent) + len(new) > budget else set()

    def plan(self, events: Iterable[Event], *, side_buttons: bool) -> list[Event]:
        """What is sent to carry these events out.

        Args:
            events: As `translate` made them.
            side_buttons: Whether the server knows buttons 8 and 9; else the keys Back and Forward stand in for them.
        """
        planned: list[Event] = []
        for event in events:
            match event:
                case KeyDown(keysym=keysym):
                    planned += self._press(keysym)
                case KeyUp(keysym=keysym):
                    planned.append(KeyUp(self._held.pop(keysym, keysym)))
                case ButtonDown(button=button) if button in _BROWSER_KEYS and not side_buttons:
                    planned.append(KeyDown(_BROWSER_KEYS[button]))
                case ButtonUp(button=button) if button in _BROWSER_KEYS and not side_buttons:
                    planned.append(KeyUp(_BROWSER_KEYS[button]))
                case _:
                    planned.append(event)
        return planned

    def _press(self, keysym: int) -> list[Event]:
        wake: list[Event] = []
        if _is_rare(keysym):
            self._spent.add(keysym)
            wake = [] if self._awake else [KeyDown(_SHIFT_L), KeyUp(_SHIFT_L)]
        self._awake = True
        shift = _SHIFT_L in self._held or _SHIFT_R in self._held
        sent = _WITH_SHIFT.get(keysym, keysym) if shift else keysym
        # What was pressed is what is to be released, also when Shift has come or gone meanwhile.
        self._held[keysym] = sent
        if sent in _SHIFTED and not shift:
            return [KeyDown(_SHIFT_L), KeyDown(sent), KeyUp(_SHIFT_L)]
        return [*wake, KeyDown(sent)]

    def forget(self) -> None:
        """A new connection: nothing is held there, but what has found a spare keycode has kept it."""
        self._held.clear()


def _is_rare(keysym: int) -> bool:
    """Whether it is a character that no American keyboard has."""
    return 0xA0 <= keysym < _FIRST_FUNCTION or _FIRST_UNICODE <= keysym < _AFTER_UNICODE
