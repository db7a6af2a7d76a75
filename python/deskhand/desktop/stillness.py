"""Whether an element rests where it is said to be, and what is said of that is not older than what the screen shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deskhand._core.geometry import Rect

if TYPE_CHECKING:
    from collections.abc import Callable

    from deskhand.backends.protocols import Backend

# Seconds without a change before something counts as still.
_STILL = 0.08
# The same for an element that was seen to move: a starved application pauses between two steps.
_STILL_AGAIN = 0.25
# After pixels changed under an element, for how long a late toolkit may tell the place of before: as `LATE` of rust/elements.
_LATE = 0.6
# Where pixels under an element change all the time, for how long its place is told to be the same.
_SAME = 1.2
# Steps of the screen that are looked through for those under an element.
_STEPS = 64


class Stillness:
    """Follows one element from reading to reading."""

    __slots__ = ("_before", "_clock", "_moved", "_screen", "_since")

    def __init__(self, backend: Backend, clock: Callable[[], float]) -> None:
        """Nothing was read yet."""
        self._screen, self._clock = backend.screen, clock
        self._before: Rect | None = None
        self._since, self._moved = clock(), False

    def amiss(self, box: Rect | None, asked: float, *, late: bool) -> str:
        """Why it may be elsewhere, as the end of a sentence about it; empty where it rests.

        Args:
            box: Where it is said to be now.
            asked: When that was asked.
            late: Whether its toolkit may say where it was some time ago.
        """
        if box != self._before:
            self._before, self._since, self._moved = box, self._clock(), self._before is not None
        rested = self._clock() - self._since
        if not (rested >= _STILL_AGAIN if self._moved else rested >= _STILL or self.is_quiet()):
            return "moves"
        if not late or box is None or rested >= _SAME or not self._changed_since(box, asked - _LATE):
            return ""
        return "may have moved with what changed there just now, which its application has not told yet"

    def is_quiet(self) -> bool:
        """Whether nothing has changed on the screen for as long as an animation takes for several steps."""
        changes = self._screen.history(self._screen.generation - 1)
        return not changes or self._clock() - changes[-1][1] >= _STILL

    def _changed_since(self, box: Rect, time: float) -> bool:
        steps = self._screen.history(max(0, self._screen.generation - _STEPS))
        return any(
            at > time and any(not box.intersect(Rect(*rect)).empty for rect in rects)
            for _, at, rects in reversed(steps)
        )
