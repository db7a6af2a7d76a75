"""Which clicks count together: a double click soon after a click would be taken for the end of a triple click.

Pure; times and points are the caller's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deskhand.actions import DoubleClick, TripleClick
from deskhand.events import ButtonDown, PointerMove

if TYPE_CHECKING:
    from collections.abc import Iterable

    from deskhand.actions import Action
    from deskhand.events import Event

__all__ = ["APART", "Clicks"]

# Seconds after which no toolkit counts on: GDK does for twice its double-click time of 0.4 s, Chromium and Java for 0.5 s.
APART = 0.8

# Pixels; toolkits take 4 or 5, Qt on high resolutions 10.
_NEAR = 10


class Clicks:
    """Remembers the last press of a button."""

    def __init__(self) -> None:
        self._at = float("-inf")
        self._point: tuple[int, int] | None = None

    def note(self, events: Iterable[Event], pointer: tuple[int, int], at: float) -> None:
        """These were sent, with the pointer there before the first of them."""
        for event in events:
            if isinstance(event, PointerMove):
                pointer = event.x, event.y
            elif isinstance(event, ButtonDown):
                self._at, self._point = at, pointer

    def rest(self, action: Action, events: Iterable[Event], pointer: tuple[int, int], at: float) -> float:
        """Seconds to wait until an action counts alone: 0 but for a double or triple click soon after a press there."""
        if self._point is None or not isinstance(action, DoubleClick | TripleClick):
            return 0.0
        x, y = next(((event.x, event.y) for event in events if isinstance(event, PointerMove)), pointer)
        near = max(abs(x - self._point[0]), abs(y - self._point[1])) <= _NEAR
        return max(0.0, self._at + APART - at) if near else 0.0
