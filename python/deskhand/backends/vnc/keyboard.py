"""Which keys are sent to a VNC server so that the intended character arrives. Pure.

A server gets keysyms, and finds keycodes for them itself. This module owns what a client may rely on: a keyboard whose
letters and signs are shifted as on an American one, and a few spare keycodes. What must never appear here: a byte of RFB.

- x0vncserver and QEMU do not press Shift for a capital, so it is pressed here, and released as soon as the key is down.
- With Shift held, a keysym means what a viewer would send then: `a` is `A`, else the server would release Shift for it.
- TigerVNC before 1.15 and x11vnc find a spare keycode for a character that is on no key, never free it, and have about 19; they
  silently drop what comes after that. So no more than `BUDGET` different ones are sent in a connection.
- The first key of a connection to Xvnc makes the X server copy the map of that keyboard over the common one, and loses what was
  just added to it. So a character that is on no key is never the first: Shift is tapped before it.
- While an Xlib client fetches the map because of one such character, it forgets the notification of the next one, and looks
  its key in vain (libX11 1.8, `_XkbCheckPendingRefresh`; Tk loses characters by it). So what follows a new one is sent
  when the application has taken that: see `split`.
- With CapsLock on, x0vncserver loses capitals. Of the keypad it has no digits with NumLock off, and only signs with
  NumLock on. For a client that does not say that it handles the locks, TigerVNC switches them to its guess of what was meant,
  and leaves them so. So a lock that is known to be in the way is switched before these keys and back after them.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from deskhand._core.events import ButtonDown, ButtonUp, Event, KeyDown, KeyUp, Pause, Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
CAPS_LOCK, NUM_LOCK = 0xFFE5, 0xFF7F
# Home to Begin, Insert and Delete; their digits and signs.
_KEYPAD_MOVES = {*range(0xFF95, 0xFFA0)}
_KEYPAD_DIGITS = {*range(0xFFB0, 0xFFBA), 0xFFAC, 0xFFAE}
_BACK, _FORWARD = 8, 9
# Seconds from the last change of the map to the first key, where nothing shows when the application has read it.
_READ = 0.1
_BROWSER_KEYS = {_BACK: 0x1008FF26, _FORWARD: 0x1008FF27}


def locks_needed(events: Iterable[Event]) -> dict[int, bool]:
    """The locks that must be on or off for these keys; without those whose own key is among them."""
    needed: dict[int, bool] = {}
    pressed = [event.keysym for event in events if isinstance(event, KeyDown)]
    for keysym in pressed:
        if _is_letter(keysym):
            needed[CAPS_LOCK] = False
        elif keysym in _KEYPAD_MOVES or keysym in _KEYPAD_DIGITS:
            needed[NUM_LOCK] = keysym in _KEYPAD_DIGITS
    return {lock: on for lock, on in needed.items() if lock not in pressed}


class Keyboard:
    """What one connection has typed so far."""

    def __init__(self) -> None:
        """Begin with nothing held and no keycode used."""
        self._held: dict[int, int] = {}
        self._awake = False
        self._spent: set[int] = set()
        self._sent: set[int] = set()
        self._known: set[int] = set()

    def untypable(self, events: Iterable[Step], budget: int = BUDGET) -> set[int]:
        """The new keysyms among these, if they are more than the server has keycodes left for (`budget` in one connection)."""
        rare = {event.keysym for event in events if isinstance(event, KeyDown) and _is_rare(event.keysym)}
        new = rare - self._spent
        return new if len(self._spent) + len(new) > budget else set()

    def split(self, events: Sequence[Event], *, ahead: bool) -> list[Sequence[Event]]:
        """The parts of a text, each of which must have been taken by the application before the next is sent.

        Args:
            events: As `translate` made them.
            ahead: The server finds a keycode for a release too (x11vnc), which types nothing. So releases of all new ones
                come first, then a key alone: when the application has taken it, it has read the map. Else each new character
                is a part.
        """
        # What was sent before and not taken counts as new.
        self._sent.clear()
        new = {event.keysym: None for event in events if isinstance(event, KeyDown) and _is_rare(event.keysym)}
        for keysym in self._known | self._held.keys():
            new.pop(keysym, None)
        if not new:
            return [events]
        if ahead:
            end = events.index(KeyUp(_first_key(events))) + 1
            first: list[Event] = [*map(KeyUp, new), Pause(_READ), *events[:end]]
            return [first, events[end:]] if events[end:] else [first]
        bounds = {0, len(events)}
        for keysym in new:
            bounds |= {events.index(KeyDown(keysym)), events.index(KeyUp(keysym)) + 1}
        return [events[begin:end] for begin, end in pairwise(sorted(bounds))]

    def taken(self) -> None:
        """Note that the application has taken what was sent of a text so far."""
        self._known |= self._sent
        self._sent.clear()

    def unlearn(self) -> None:
        """Note that the server may have freed the keycodes of all characters, or be another one."""
        self._known.clear()

    def plan(self, events: Iterable[Event], *, side_buttons: bool, switch: Iterable[int] = ()) -> list[Event]:
        """The events to send in order to carry these out.

        Args:
            events: As `translate` made them.
            side_buttons: Whether the server knows buttons 8 and 9; else the keys Back and Forward stand in for them.
            switch: Keys of locks that are switched before these, and back after them.
        """
        planned: list[Event] = []
        for event in events:
            match event:
                case KeyDown(keysym=keysym):
                    planned += self._press(keysym)
                case KeyUp(keysym=keysym):
                    self._spend(keysym)
                    planned.append(KeyUp(self._held.pop(keysym, keysym)))
                case ButtonDown(button=button) if button in _BROWSER_KEYS and not side_buttons:
                    planned.append(KeyDown(_BROWSER_KEYS[button]))
                case ButtonUp(button=button) if button in _BROWSER_KEYS and not side_buttons:
                    planned.append(KeyUp(_BROWSER_KEYS[button]))
                case _:
                    planned.append(event)
        taps = [make(lock) for lock in switch for make in (KeyDown, KeyUp)]
        return [*taps, *planned, *taps]

    def _press(self, keysym: int) -> list[Event]:
        wake: list[Event] = []
        if self._spend(keysym) and not self._awake:
            wake = [KeyDown(_SHIFT_L), KeyUp(_SHIFT_L)]
        self._awake = True
        shift = _SHIFT_L in self._held or _SHIFT_R in self._held
        sent = _WITH_SHIFT.get(keysym, keysym) if shift else keysym
        # A release names what was pressed, even when Shift has changed meanwhile.
        self._held[keysym] = sent
        if sent in _SHIFTED and not shift:
            return [KeyDown(_SHIFT_L), KeyDown(sent), KeyUp(_SHIFT_L)]
        return [*wake, KeyDown(sent)]

    def _spend(self, keysym: int) -> bool:
        if rare := _is_rare(keysym):
            self._spent.add(keysym)
            self._sent.add(keysym)
        return rare

    def forget(self) -> None:
        """Note a new connection: nothing is held there, but characters with a spare keycode have kept it."""
        self._held.clear()


def _is_rare(keysym: int) -> bool:
    """Whether it is a character that is not on an American keyboard."""
    return 0xA0 <= keysym < _FIRST_FUNCTION or _FIRST_UNICODE <= keysym < _AFTER_UNICODE


def _first_key(events: Iterable[Event]) -> int:
    return next(event.keysym for event in events if isinstance(event, KeyDown))


def _is_letter(keysym: int) -> bool:
    """Whether it is a character that has two cases, or may have: national keysyms are not looked up."""
    if _FIRST_UNICODE <= keysym < _AFTER_UNICODE:
        char = chr(keysym - _FIRST_UNICODE)
    elif keysym <= 0xFF:
        char = chr(keysym)
    else:
        return _is_rare(keysym)
    return char.lower() != char.upper()
