"""Which clicks an application would count together, and how long to wait so that it does not count them.

Pure; the caller gives times and points.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deskhand._core.events import Button, ButtonDown, PointerMove
from deskhand.actions import (
    BackClick,
    DoubleClick,
    Drag,
    ForwardClick,
    LeftClick,
    LeftMouseDown,
    MiddleClick,
    MouseDown,
    RightClick,
    TripleClick,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from deskhand._core.events import Step
    from deskhand.actions import Action

# Seconds within which a click counts as the second of a double click: Chromium, Tk and Java take 0.5, GTK and Qt 0.4.
_INTERVAL = 0.5
# The longest wait, even on a desktop whose setting is longer.
_LONGEST_INTERVAL = 5.0
# A server stamps a press a little later than it was sent.
_MARGIN = 0.05
# After a double click GTK keeps counting for twice its interval.
_AFTER_DOUBLE = 0.8
# Pixels; toolkits take 4 or 5, Qt on high resolutions 10.
_NEAR = 10

_GESTURES = (BackClick, DoubleClick, Drag, ForwardClick, LeftClick, MiddleClick, RightClick, TripleClick)
# A caller who wants clicks of its own timing makes them of these.
_PRESSES = (LeftMouseDown, MouseDown)
_WHEEL = range(Button.WHEEL_UP, Button.WHEEL_RIGHT + 1)


class Clicks:
    """Remembers the last press of a button."""

    def __init__(self) -> None:
        self._last: ButtonDown | None = None
        self._at = float("-inf")
        self._point = 0, 0
        self._repeated = False
        # The last press was an action of its own, and the pointer has stayed there since.
        self._by_hand = False

    def note(self, action: Action, events: Iterable[Step], pointer: tuple[int, int], at: float) -> None:
        """Note an action's events, sent until `at`, with the pointer there before the first of them."""
        pressed = False
        for event in events:
            if isinstance(event, PointerMove):
                pointer = event.x, event.y
                self._by_hand = self._by_hand and self._is_near(pointer)
            elif isinstance(event, ButtonDown) and event.button not in _WHEEL:
                self._repeated = event == self._last and (pressed or self._by_hand)
                self._last, self._at, self._point, pressed = event, at, pointer, True
                self._by_hand = isinstance(action, _PRESSES)

    def rest(
        self,
        action: Action,
        events: Iterable[Step],
        pointer: tuple[int, int],
        at: float,
        interval: Callable[[], float | None],
    ) -> float:
        """Seconds to wait so that an action's first press counts as the first: 0, unless that button was just pressed there.

        `interval` returns the desktop's own double-click interval, in seconds. The caller times presses without a
        release that follow each other at one place.
        """
        timed = isinstance(action, _GESTURES) or (isinstance(action, _PRESSES) and not self._by_hand)
        if self._last is None or not timed:
            return 0.0
        for event in events:
            if isinstance(event, PointerMove):
                pointer = event.x, event.y
            elif isinstance(event, ButtonDown):
                break
        else:
            return 0.0
        if not self._is_near(pointer) or event != self._last or at - self._at > 2 * _LONGEST_INTERVAL:
            return 0.0
        given = min(interval() or 0.0, _LONGEST_INTERVAL)
        counts = max(_AFTER_DOUBLE, 2 * given) if self._repeated else max(_INTERVAL, given)
        return max(0.0, self._at + counts + _MARGIN - at)

    def _is_near(self, pointer: tuple[int, int]) -> bool:
        return max(abs(pointer[0] - self._point[0]), abs(pointer[1] - self._point[1])) <= _NEAR
