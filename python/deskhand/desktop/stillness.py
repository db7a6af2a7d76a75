"""Decides whether an element has stopped moving, and whether its reported place is as new as what the screen shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deskhand._core.geometry import Rect

if TYPE_CHECKING:
    from collections.abc import Callable

    from deskhand.backends.protocols import Backend

PROMPT = 0.04
"""Seconds within which answers come where neither the application nor this process is starved, and nothing has changed."""

# Seconds without a change before something counts as still.
_STILL = 0.08
# The same for an element that was seen to move: a starved application pauses between two steps.
_STILL_AGAIN = 0.25
# Of the time from one answer to the next, what counts at most: a starved application may have done nothing in the rest.
_RAN = 0.1
# After pixels changed under an element, for how long a late toolkit may report the earlier place: as `LATE` of rust/elements.
_LATE = 0.6
# Where pixels under an element change all the time, for how long the same place must be reported.
_SAME = 1.2
# Steps of the screen that are looked through for those under an element.
_STEPS = 64


class Stillness:
    """Follows one element from reading to reading."""

    __slots__ = ("_before", "_clock", "_moved", "_reported", "_rested", "_same", "_screen", "_sent")

    def __init__(self, backend: Backend, clock: Callable[[], float], sent: float) -> None:
        """Nothing was read yet; `sent` is when the last input was sent, which may yet move it."""
        self._screen, self._clock, self._sent = backend.screen, clock, sent
        self._before: Rect | None = None
        self._moved = False
        # How many of the counted seconds this place has been reported for; since when, and when last.
        self._rested = 0.0
        self._same = self._reported = clock()

    def amiss(self, box: Rect | None, asked: float, *, late: bool) -> str:
        """Why the element may be elsewhere, as the end of a sentence about it; empty if it is still.

        Args:
            box: The place that its application reports now.
            asked: When that was asked.
            late: Whether its toolkit may report an earlier place.
        """
        now = self._clock()
        if box != self._before:
            self._before, self._moved = box, self._before is not None
            self._rested, self._same = 0.0, now
        else:
            self._rested += min(now - self._reported, _RAN)
        self._reported = now
        enough = _STILL_AGAIN if self._moved else _STILL
        at_once = not self._moved and now - asked <= PROMPT and asked - self._sent >= _STILL and self.is_quiet(asked)
        if self._rested < enough and not at_once:
            return "moves"
        if not late or box is None or now - self._same >= _SAME or not self._changed_since(box, asked - _LATE):
            return ""
        return "may have moved: the screen just changed there, and its application has not reported its place since"

    def is_quiet(self, at: float | None = None) -> bool:
        """Whether nothing changed on the screen for as long as an animation takes for several steps, until `at` or now."""
        changes = self._screen.history(self._screen.generation - 1)
        return not changes or (self._clock() if at is None else at) - changes[-1][1] >= _STILL

    def _changed_since(self, box: Rect, time: float) -> bool:
        steps = self._screen.history(max(0, self._screen.generation - _STEPS))
        return any(
            at > time and any(not box.intersect(Rect(*rect)).empty for rect in rects)
            for _, at, rects in reversed(steps)
        )
