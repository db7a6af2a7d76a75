"""How short a silence has proved to be enough: learnt for each window and kind of input.

A window that has answered the same kind of input many times with one change, after which nothing came, does so the next time.
What comes after a verdict all the same is seen when the next action begins, and unlearns it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

LEARNT = 0.031
"""Seconds less than `Settle.quiet` that the silence may last where this is learnt."""

# Answers that are seen to be lone before the next one is taken to be. One that came late is made good by so many times more.
_ENOUGH = 24
_RELAPSE = 5
# A change within this time after the verdict still belongs to the answer.
_AFTERWARDS = 0.25
# Of learnt waits, every such one lasts as long as before it was learnt.
_CHECKED = 8
_MOST = 128


class Habit(NamedTuple):
    """What is learnt together: the answers of a window to one kind of input."""

    window: int
    kind: str


class Habits:
    """What the windows of one desktop were seen to do."""

    def __init__(self) -> None:
        """Begin with nothing learnt."""
        self._alone: OrderedDict[Habit, int] = OrderedDict()
        self._latest: tuple[Habit, float] | None = None

    def is_learnt(self, habit: Habit) -> bool:
        """Whether a short silence is enough for the answer that is waited for now."""
        count = self._alone.get(habit, 0)
        return count >= _ENOUGH and count % _CHECKED != 0

    def ended(self, habit: Habit, at: float, *, alone: bool) -> None:
        """Report that a wait ended at `at`, and whether the answer was one change alone, or else went on after a gap."""
        self._latest = (habit, at) if alone else None
        self._count(habit, late=not alone)

    def may_unlearn(self, at: float) -> bool:
        """Whether a change at `at`, between two actions, may be a late part of the latest answer."""
        return self._latest is not None and self._latest[1] <= at <= self._latest[1] + _AFTERWARDS

    def unlearn(self) -> None:
        """Report that it is."""
        if self._latest is not None:
            self._count(self._latest[0], late=True)
            self._latest = None

    def _count(self, habit: Habit, *, late: bool) -> None:
        count = self._alone.pop(habit, 0)
        relapsed = -_RELAPSE * _ENOUGH if count >= _ENOUGH else min(count, 0)
        self._alone[habit] = relapsed if late else count + 1
        if len(self._alone) > _MOST:
            self._alone.popitem(last=False)
