"""Points, sizes, rectangles, and the only arithmetic between what a model saw and the screen.

This module owns coordinates. Convention: integer coordinates name pixels, a mapping goes from pixel centre to
the pixel that holds it, and 0...dim-1 is valid in either space. Nothing outside of that is ever clamped: it
raises `OutOfBounds` with the point and the size. What must never appear here: an action, a backend, a pixel's
colour, and, elsewhere, a scale factor.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from numbers import Real
from typing import NamedTuple

from deskhand.errors import ActionError, OutOfBounds, shown

_PAIR = 2
_LONGEST = 2**31 - 1


class Point(NamedTuple):
    """A pixel, counted from 0 at the top left."""

    x: int
    y: int


class Size(NamedTuple):
    """Width and height in pixels."""

    width: int
    height: int


class Rect(NamedTuple):
    """A rectangle of pixels: its top left one, and how many there are to the right and down.

    A rectangle without width or height is empty; every operation gives all empty results as (0, 0, 0, 0).
    """

    x: int
    y: int
    width: int
    height: int

    @property
    def right(self) -> int:
        """The first column behind the rectangle."""
        return self.x + self.width

    @property
    def bottom(self) -> int:
        """The first row below the rectangle."""
        return self.y + self.height

    @property
    def empty(self) -> bool:
        """Whether no pixel is in it."""
        return self.width <= 0 or self.height <= 0

    @property
    def size(self) -> Size:
        """Width and height."""
        return Size(self.width, self.height)

    @classmethod
    def of_edges(cls, left: int, top: int, right: int, bottom: int) -> Rect:
        """Make a rectangle of its edges; ``right`` and ``bottom`` are exclusive."""
        if right <= left or bottom <= top:
            return cls(0, 0, 0, 0)
        return cls(left, top, right - left, bottom - top)

    def contains(self, point: tuple[float, float]) -> bool:
        """Whether the pixel is in the rectangle."""
        x, y = point
        return self.x <= x < self.right and self.y <= y < self.bottom

    def within(self, outer: Rect) -> bool:
        """Whether every pixel of this rectangle is in ``outer``; an empty one is within anything."""
        return self.empty or self.intersect(outer) == self

    def intersect(self, other: Rect) -> Rect:
        """The pixels that are in both."""
        return Rect.of_edges(
            max(self.x, other.x), max(self.y, other.y), min(self.right, other.right), min(self.bottom, other.bottom)
        )

    def union(self, other: Rect) -> Rect:
        """The smallest rectangle that holds both."""
        if self.empty or other.empty:
            return Rect.of_edges(*(self._edges() if other.empty else other._edges()))
        return Rect.of_edges(
            min(self.x, other.x), min(self.y, other.y), max(self.right, other.right), max(self.bottom, other.bottom)
        )

    def inflate(self, by: int) -> Rect:
        """Grow by this many pixels on each side, or shrink when negative; an empty one stays empty."""
        if self.empty:
            return Rect(0, 0, 0, 0)
        return Rect.of_edges(self.x - by, self.y - by, self.right + by, self.bottom + by)

    def _edges(self) -> tuple[int, int, int, int]:
        return self.x, self.y, self.right, self.bottom


def _whole(what: str, given: object, count: int) -> tuple[int, ...]:
    """Check that these are `count` integers."""
    try:
        numbers = tuple(map(operator.index, given))  # type: ignore[call-overload] # whatever it is
    except TypeError:
        numbers = ()
    if len(numbers) != count or isinstance(given, bytes):
        raise ActionError(f"Viewport: {what} is {count} integers, not {shown(given)}")
    return numbers


def check_point(point: tuple[float, float], size: tuple[int, int]) -> tuple[float, float]:
    """Check that a point is in a space.

    Args:
        point: (x, y), integers or not.
        size: (width, height) of the space; valid are 0...width-1 and 0...height-1.

    Returns:
        The point as it was given.

    Raises:
        ActionError: It is not a pair of numbers.
        OutOfBounds: It is outside, NaN or infinite.
    """
    x, y = _pair(point)
    # Written so that NaN, which compares false with everything, is refused.
    if not (0 <= x <= size[0] - 1 and 0 <= y <= size[1] - 1):
        raise OutOfBounds((x, y), (size[0], size[1]))
    return x, y


def check_region(region: Rect, size: tuple[int, int]) -> Rect:
    """Check that a region is not empty and lies within a space.

    Args:
        region: The rectangle.
        size: (width, height) of the space.

    Returns:
        The region as it was given.

    Raises:
        ActionError: It is empty.
        OutOfBounds: A corner is outside; the error carries that corner.
    """
    if region.empty:
        raise ActionError(f"region {tuple(region)} is empty: width and height must be at least 1")
    check_point((region.x, region.y), size)
    check_point((region.right - 1, region.bottom - 1), size)
    return region


def _pair(point: tuple[float, float]) -> tuple[float, float]:
    if isinstance(point, (tuple, list)) and len(point) == _PAIR:
        x, y = point
        # The types of nearly every point come first, because asking an abstract class takes long.
        if type(x) is int is type(y) or (_is_number(x) and _is_number(y)):
            return x, y
    raise ActionError(f"a point is a pair of numbers (x, y), not {point!r}")


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _map(value: float, source: int, target: int) -> int:
    """Map a coordinate in 0...source-1 by pixel centres; the result is always in 0...target-1."""
    if value == int(value):
        return (2 * int(value) + 1) * target // (2 * source)
    return min(math.floor((value + 0.5) * target / source), target - 1)


def _cover(start: int, length: int, source: int, target: int) -> tuple[int, int]:
    """The target pixels that these source pixels touch, as (first, one behind the last)."""
    return start * target // source, -(-(start + length) * target // source)


def _stretch(distance: float, source: int, target: int) -> int:
    # An integer may be too large for a float, and a float's multiple for floats.
    if not abs(distance) <= _LONGEST:
        raise ActionError(f"a distance is at most {_LONGEST} pixels, not {shown(distance)}")
    scaled = round(distance * target / source)
    # A small scroll must not become none.
    return scaled if scaled or not distance else int(math.copysign(1, distance))


@dataclass(frozen=True, slots=True)
class Viewport:
    """The transform between what a model saw and the screen it came from.

    ``to_model(to_screen(p))`` is ``p`` where the model saw the screen at its size or smaller, and within one
    screen pixel where it saw a region enlarged. Neither ever leaves its space.

    Attributes:
        screen: Size of the screen.
        model: Size of the picture the model saw, or of the grid it speaks in (1000x1000 for Gemini).
        region: The part of the screen that the picture shows; None for all of it.

    Raises:
        ActionError: A size or the region is empty.
        OutOfBounds: The region is not on the screen.
    """

    screen: Size
    model: Size
    region: Rect | None = None

    def __post_init__(self) -> None:
        """Validate."""
        for name, count, kind in (("screen", 2, Size), ("model", 2, Size), ("region", 4, Rect)):
            given = getattr(self, name)
            # Given by this package, for each picture.
            if type(given) is not kind and (given is not None or name != "region"):
                object.__setattr__(self, name, kind(*_whole(name, given, count)))
        for size in (self.screen, self.model):
            if min(size) < 1:
                raise ActionError(f"a size must be at least 1x1, not {size.width}x{size.height}")
        if self.region is not None:
            check_region(self.region, self.screen)

    @property
    def shown(self) -> Rect:
        """The part of the screen that the picture shows, in screen pixels."""
        return self.region or Rect(0, 0, *self.screen)

    def to_screen(self, point: tuple[float, float]) -> Point:
        """The screen pixel under a point of the picture.

        Args:
            point: (x, y) in the picture, 0...dim-1.

        Raises:
            ActionError: It is not a pair of numbers.
            OutOfBounds: It is outside of the picture.
        """
        x, y = check_point(point, self.model)
        width, height = self.model
        left, top, wide, high = self.region or (0, 0, *self.screen)
        return Point(left + _map(x, width, wide), top + _map(y, height, high))

    def to_model(self, point: tuple[float, float]) -> Point:
        """The pixel of the picture that shows a point of the screen.

        Args:
            point: (x, y) on the screen, 0...dim-1.

        Raises:
            ActionError: It is not a pair of numbers.
            OutOfBounds: It is not on the screen, or not in the part of it that the picture shows.
        """
        x, y = check_point(point, self.screen)
        shown = self.shown
        if not (shown.x <= x <= shown.right - 1 and shown.y <= y <= shown.bottom - 1):
            raise OutOfBounds((x - shown.x, y - shown.y), shown.size)
        return Point(
            _map(x - shown.x, shown.width, self.model.width), _map(y - shown.y, shown.height, self.model.height)
        )

    def distance_to_screen(self, distance: tuple[float, float]) -> Point:
        """A distance in the picture as one in screen pixels; a distance above zero stays at least one pixel.

        Args:
            distance: (dx, dy), positive right and down, of at most 2**31 - 1 pixels.

        Raises:
            ActionError: It is not a pair of numbers, or one is too large.
        """
        dx, dy = _pair(distance)
        shown = self.shown
        return Point(_stretch(dx, self.model.width, shown.width), _stretch(dy, self.model.height, shown.height))

    def rect_to_screen(self, rect: Rect) -> Rect:
        """Every screen pixel that a region of the picture shows, wholly or in part.

        Args:
            rect: A region of the picture.

        Raises:
            ActionError: It is empty.
            OutOfBounds: It leaves the picture.
        """
        check_region(rect, self.model)
        shown = self.shown
        left, right = _cover(rect.x, rect.width, self.model.width, shown.width)
        top, bottom = _cover(rect.y, rect.height, self.model.height, shown.height)
        return Rect.of_edges(shown.x + left, shown.y + top, shown.x + right, shown.y + bottom)

    def rect_to_model(self, rect: Rect) -> Rect:
        """Every pixel of the picture that a region of the screen touches.

        Args:
            rect: A region of the screen; what the picture does not show of it is left out, so that the
                result may be empty.
        """
        shown = self.shown
        seen = rect.intersect(shown)
        if seen.empty:
            return Rect(0, 0, 0, 0)
        left, right = _cover(seen.x - shown.x, seen.width, shown.width, self.model.width)
        top, bottom = _cover(seen.y - shown.y, seen.height, shown.height, self.model.height)
        return Rect.of_edges(left, top, right, bottom)
