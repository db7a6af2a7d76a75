"""Finds what moves by itself on a screen, such as a caret or a clock."""

from __future__ import annotations

from collections import Counter, deque
from itertools import pairwise
from typing import TYPE_CHECKING

from deskhand._core.geometry import Rect
from deskhand._core.settle import inside_any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Ambient:
    """Finds what changes on its own, from the changes seen while no action is under way.

    A pixel is ambient when it changed at least three times, over at least 0.4 s, no more than 1.6 s apart, and recently enough
    that its next change is still due. This holds for a caret (every 0.5-0.6 s), a clock (1 s), a spinner and a video. It does
    not hold for the burst with which a window draws itself, nor for a program that stopped printing a second ago.
    """

    _SEEN = 192
    _TIMES = 3
    _SPAN = 0.4
    _LONGEST_GAP = 1.6
    # The watcher looks ten times a second, and a busy machine delays it.
    _LATENESS = 0.15

    def __init__(self) -> None:
        """Begin without any changes."""
        self._seen: deque[tuple[float, Rect]] = deque(maxlen=self._SEEN)

    def feed(self, at: float, rects: Iterable[Rect]) -> None:
        """Record changes at `at` that no action caused."""
        self._seen.extend((at, rect) for rect in rects)

    def forget(self) -> None:
        """Forget all changes, as after a resize."""
        self._seen.clear()

    def regions(self, now: float) -> tuple[Rect, ...]:
        """The bounding boxes of what changes on its own at `now`, slightly inflated as a clock's digits differ in width."""
        recent = [(at, rect) for at, rect in self._seen if now - at <= self._LONGEST_GAP * (self._TIMES + 1)]
        if len(recent) < self._TIMES:
            return ()
        cells = [cell for cell in _cells([rect for _, rect in recent]) if self._is_live(cell, recent, now)]
        return tuple(_inflated(box) for box in _united(cells))

    def _is_live(self, cell: Rect, recent: Sequence[tuple[float, Rect]], now: float) -> bool:
        times = sorted({at for at, rect in recent if cell.within(rect)})
        if len(times) < self._TIMES or times[-1] - times[0] < self._SPAN:
            return False
        gap = max(later - earlier for earlier, later in pairwise(times))
        return gap <= self._LONGEST_GAP and now - times[-1] <= 1.5 * gap + self._LATENESS


def _cells(rects: Sequence[Rect]) -> list[Rect]:
    """The grid that the rectangles' edges make, without the cells that no rectangle covers."""
    cells = []
    for group in _overlapping(rects):
        xs = sorted({x for rect in group for x in (rect.x, rect.right)})
        ys = sorted({y for rect in group for y in (rect.y, rect.bottom)})
        for top, bottom in pairwise(ys):
            for left, right in pairwise(xs):
                cell = Rect(left, top, right - left, bottom - top)
                if inside_any(cell, group):
                    cells.append(cell)
    return cells


_MOST_SHAPES = 12
_NARROW = 8


def _overlapping(rects: Sequence[Rect]) -> list[list[Rect]]:
    """Groups of distinct rectangles that overlap, directly or through others.

    Of a very large group (a video, a game, a window that drew itself in pieces) only the most frequent are kept: the grid of
    all would be finer than needed.
    """
    frequency = Counter(rects)
    groups: list[list[Rect]] = []
    for rect in frequency:
        touching = [group for group in groups if any(not rect.intersect(other).empty for other in group)]
        merged = [rect, *(other for group in touching for other in group)]
        groups = [group for group in groups if group not in touching]
        groups.append(merged)
    return [sorted(group, key=lambda rect: -frequency[rect])[:_MOST_SHAPES] for group in groups]


def _bounding(rects: Sequence[Rect]) -> Rect:
    box = rects[0]
    for rect in rects[1:]:
        box = box.union(rect)
    return box


def _united(cells: Sequence[Rect]) -> list[Rect]:
    """Bounding boxes of cells that touch."""
    boxes: list[Rect] = []
    for cell in cells:
        box = cell
        while touching := [other for other in boxes if not box.inflate(1).intersect(other).empty]:
            boxes = [other for other in boxes if other not in touching]
            box = _bounding([box, *touching])
        boxes.append(box)
    return boxes


def _inflated(box: Rect) -> Rect:
    # A caret is not inflated, because text typed beside it is not part of it.
    if min(box.width, box.height) < _NARROW:
        return box
    dx, dy = min(8, box.width // 4), min(8, box.height // 4)
    return Rect(max(0, box.x - dx), max(0, box.y - dy), box.width + 2 * dx, box.height + 2 * dy)
