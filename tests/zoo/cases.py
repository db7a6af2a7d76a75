"""The cases: when a stage changes for the last time, in how many steps, under which load, beside what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .measure import Case
from .stages import STAGES

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["LAST", "cases", "steps"]

# When the last change comes, in seconds after the input.
LAST = (0.0, 0.03, 0.08, 0.2, 0.6, 1.5)
BESIDE = (("caret",), ("clock",), ("spinner",), ("video",))
_PERIOD = 0.025


def steps(last: float) -> tuple[float, ...]:
    """Changes from the input to `last`, 25 ms apart, as an animation makes them."""
    count = round(last / _PERIOD)
    return tuple(last * n / count for n in range(count + 1)) if count else (last,)


def cases(kind: str) -> Iterator[Case]:
    """Every case of one kind of stage; those beside the same scenes follow one another."""
    loads = STAGES[kind][1]
    for load in loads:
        for last in LAST:
            yield Case(kind, (last,), load)
            if last > 0.03:
                yield Case(kind, steps(last), load)
            if last >= 0.2:
                # With time to fall asleep in between.
                yield Case(kind, (0.0, last / 2, last), load)
    for last in LAST[1:4]:
        yield Case(kind, (last,), "timer", trigger="click")
    for beside in BESIDE:
        for load in ("timer", "spin", "thread"):
            for last in (0.03, 0.2, 0.6):
                yield Case(kind, (last,), load, beside)
