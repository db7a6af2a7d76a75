"""What every backend accepts, and what `Desktop.perform` waits for between such events.

This module owns the event types and the numbering of buttons. Positions are screen pixels, keys are X keysyms,
pauses are seconds. What must never appear here: a click, a chord or any other composite (they are made in one place,
`deskhand.desktop.translate`), a key name, and validation (`translate` makes the events and has validated them).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Button(IntEnum):
    """The pointer buttons as X11 and RFB number them; a wheel notch is a press and release of 4...7."""

    LEFT = 1
    MIDDLE = 2
    RIGHT = 3
    WHEEL_UP = 4
    WHEEL_DOWN = 5
    WHEEL_LEFT = 6
    WHEEL_RIGHT = 7
    BACK = 8
    FORWARD = 9


@dataclass(frozen=True, slots=True)
class PointerMove:
    """Put the pointer on a screen pixel."""

    x: int
    y: int


@dataclass(frozen=True, slots=True)
class ButtonDown:
    """Press a button, 1...9."""

    button: int


@dataclass(frozen=True, slots=True)
class ButtonUp:
    """Release a button, 1...9."""

    button: int


@dataclass(frozen=True, slots=True)
class KeyDown:
    """Press the key that gives this keysym."""

    keysym: int


@dataclass(frozen=True, slots=True)
class KeyUp:
    """Release the key that gives this keysym."""

    keysym: int


@dataclass(frozen=True, slots=True)
class Pause:
    """Let this many seconds pass between the event before and the event after."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Answer:
    """Wait until the application under the pointer has taken what was sent before. Backends never get this event."""


Event = PointerMove | ButtonDown | ButtonUp | KeyDown | KeyUp | Pause
"""Any event that a backend accepts."""

Step = Event | Answer
"""What an action is made of."""

Press = ButtonDown | KeyDown
"""An event that leaves something pressed."""
