"""How much the line of a viewer carries, and which parts of its picture are not sharp yet.

What a line would need long for is sent as JPEG first. It is sent again as PNG once nothing newer waits, in parts that the line
carries soon, so that the picture is the desktop's own in the end. A line that carries everything soon gets PNG only.

What must never appear here: a desktop, a socket, a clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, TypeAlias

from deskhand._core.geometry import Rect

if TYPE_CHECKING:
    from collections.abc import Iterable

_Sides: TypeAlias = tuple[int, int, int, int]

# Turns below this many bytes tell how long the way takes, and those above it how much the line carries.
_TELLING = 16_384
# Seconds that a line may need for an update before it gets JPEG, and for each part that is made sharp.
_SOON = 0.15
_MOST_PARTS = 64
_LOWEST_BAND = 8


@dataclass(frozen=True, slots=True)
class _Blurred:
    """A part of the picture that was sent as JPEG; `cost` is the size of its PNG file in bytes."""

    rect: Rect
    cost: float


class Line:
    """The line to one viewer."""

    def __init__(self) -> None:
        """Know nothing of it yet."""
        self._way = float("inf")
        self._rate: float | None = None
        self._blurred: list[_Blurred] = []

    @property
    def has_blurred(self) -> bool:
        """Whether a part is not sharp yet."""
        return bool(self._blurred)

    def learn(self, size: int, seconds: float) -> None:
        """Take note that so many bytes were acknowledged after so many seconds."""
        if size < _TELLING:
            self._way = min(self._way, seconds)
            return
        way = self._way if self._way < seconds else 0.0
        rate = size / max(seconds - way, 0.001)
        self._rate = rate if self._rate is None else (self._rate + rate) / 2

    def is_slow_for(self, size: int) -> bool:
        """Whether so many bytes would take long."""
        return self._rate is not None and size / self._rate > _SOON

    def blur(self, rect: _Sides, cost: int) -> None:
        """Take note that a part was sent as JPEG, whose PNG file has `cost` bytes."""
        self.sharpen(rect)
        self._blurred.append(_Blurred(Rect(*rect), cost))
        if len(self._blurred) > _MOST_PARTS:
            around = reduce(Rect.union, (each.rect for each in self._blurred))
            self._blurred = [_Blurred(around, sum(each.cost for each in self._blurred))]

    def sharpen(self, rect: _Sides) -> None:
        """Take note that a part was sent as PNG."""
        self._blurred = [each for each in self._blurred if not each.rect.within(Rect(*rect))]

    def forget(self) -> None:
        """Forget what is not sharp: the whole picture was sent as PNG, or there is none any more."""
        self._blurred.clear()

    def next_part(self, changed: Iterable[_Sides] = ()) -> _Sides | None:
        """Take a part to make sharp, which the line carries soon; None where there is none apart from what has just changed."""
        fresh = [Rect(*rect) for rect in changed]
        apart = (at for at, each in enumerate(self._blurred) if all(each.rect.intersect(rect).empty for rect in fresh))
        if (place := next(apart, None)) is None:
            return None
        each = self._blurred[place]
        x, y, width, height = each.rect
        soon = self._rate * _SOON if self._rate is not None else each.cost
        rows = min(height, max(_LOWEST_BAND, int(height * soon / max(each.cost, 1))))
        rest = _Blurred(Rect(x, y + rows, width, height - rows), each.cost * (height - rows) / height)
        self._blurred[place : place + 1] = [rest] if rows < height else []
        return x, y, width, rows
