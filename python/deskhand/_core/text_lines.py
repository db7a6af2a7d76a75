"""Lines of text that were read from pixels: which parts of a screen are read again, and which line is the one of before.

This module owns those rules, and what becomes of a library's texts. What must never appear here: a library, pixels, a desktop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from deskhand._core.geometry import Point, Rect
from deskhand._core.redaction import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from deskhand._core.window import Window

_LONGEST = 500
# Pixels around a region that a detector is given.
_AROUND = 12
# Pixels that the edges of a line may lie elsewhere in the next reading, because more or less around it was read.
_SAME_PLACE = 4
# Rows that neighbouring bands share: a line that is not higher is whole in one of them.
_SHARED = 64
# What a window manager draws around a window, as much as usual: left and right, above, below.
_FRAME_SIDE, _FRAME_TOP = 8, 40


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text, or a part of one that a wide gap sets apart.

    Attributes:
        text: What it says. Untrusted, cleaned.
        box: Where its ink is, in screen pixels.
        confidence: How sure the library is, 0...1.
    """

    text: str
    box: Rect
    confidence: float


@dataclass(frozen=True, slots=True)
class Found:
    """A line, and the number of its reference."""

    number: int
    line: Line


def clean_line(text: str) -> str:
    """What a library read, as one line of printable characters of a bounded length."""
    return " ".join(clean(text[: 2 * _LONGEST], keep="\t\n").split())[:_LONGEST]


def middle(box: Rect) -> Point:
    """The middle pixel of a rectangle."""
    return Point(box.x + box.width // 2, box.y + box.height // 2)


def silent_areas(screen: Rect, windows: Sequence[Window], telling: set[int], popups: Iterable[Rect]) -> list[Rect]:
    """The parts of a screen whose applications do not say what they show; no two of them overlap.

    The frame of a window belongs to the window: its title would be read twice.

    Args:
        screen: All of it.
        windows: Bottom to top.
        telling: The processes that say what they show.
        popups: What they show above all windows: menus, tooltips.
    """
    areas = [screen]
    for window in windows:
        if window.minimized:
            continue
        rect = window.rect
        if window.pid in telling:
            frame = Rect.of_edges(
                rect.x - _FRAME_SIDE, rect.y - _FRAME_TOP, rect.right + _FRAME_SIDE, rect.bottom + _FRAME_SIDE
            )
            areas = subtract(areas, frame)
        else:
            shown = rect.intersect(screen)
            areas = [*subtract(areas, rect), *([] if shown.empty else [shown])]
    for popup in popups:
        areas = subtract(areas, popup)
    return areas


def alike(window: Rect, box: Rect) -> bool:
    """Whether a window and the box of an element are the same one: each covers most of the other."""
    both = window.intersect(box)
    return 2 * both.width * both.height > max(window.width * window.height, box.width * box.height)


def subtract(areas: Iterable[Rect], hole: Rect) -> list[Rect]:
    """What is left of areas without a rectangle."""
    left = []
    for area in areas:
        inner = area.intersect(hole)
        if inner.empty:
            left.append(area)
            continue
        parts = (
            Rect.of_edges(area.x, area.y, area.right, inner.y),
            Rect.of_edges(area.x, inner.y, inner.x, inner.bottom),
            Rect.of_edges(inner.right, inner.y, area.right, inner.bottom),
            Rect.of_edges(area.x, inner.bottom, area.right, area.bottom),
        )
        left += [part for part in parts if not part.empty]
    return left


def grow(changed: Iterable[Rect], lines: Iterable[Line], screen: Rect) -> list[Rect]:
    """What is read again where rectangles have changed: with the whole of the lines that they meet; no two of them overlap."""
    regions: list[Rect] = []
    # A line goes on in what has changed where that is nearer than a space.
    near = {line.box: _widened(line.box, line.box.height) for line in lines}
    waiting = [rect.intersect(screen) for rect in changed]
    while waiting:
        region = waiting.pop()
        if region.empty:
            continue
        grown = region
        for box, reach in near.items():
            if not reach.intersect(grown).empty:
                grown = grown.union(box)
        touched = [other for other in regions if not other.intersect(grown).empty]
        for other in touched:
            regions.remove(other)
            grown = grown.union(other)
        if grown == region:
            regions.append(region)
        else:
            waiting.append(grown)
    return regions


def _widened(box: Rect, by: int) -> Rect:
    return Rect(box.x - by, box.y, box.width + 2 * by, box.height)


def bands(region: Rect, most: int, screen: Rect) -> list[tuple[Rect, Rect]]:
    """A region in parts of about `most` pixels: what is read, and where the middle of a line must be that counts.

    What is read is more than the region, for a detector needs to see around a line. Neighbours overlap, so that a line on the
    border is whole in one of them.
    """
    area = region.inflate(_AROUND).intersect(screen)
    rows = max(2 * _SHARED, most // max(1, area.width))
    if area.height <= rows:
        return [(area, area)]
    step = rows - _SHARED
    parts = []
    for top in range(area.y, area.bottom, step):
        counts = Rect.of_edges(area.x, top, area.right, min(top + step, area.bottom))
        above, below = max(area.y, top - _SHARED // 2), min(area.bottom, counts.bottom + _SHARED // 2)
        parts.append((Rect.of_edges(area.x, above, area.right, below), counts))
    return parts


def replaced(
    before: Sequence[Found], lines: Iterable[Line], region: Rect, counts: Rect
) -> tuple[list[Found], list[Found], list[Line]]:
    """What a reading of a part of a region means for what was found before.

    Args:
        before: All that was found.
        lines: What the part has now.
        region: What has changed, with the whole of the lines of before that it meets.
        counts: Where the middle of a line must be that counts.

    Returns:
        What stays as it is; what was found where the part is; what is there now.
    """

    def belongs(line: Line) -> bool:
        return counts.contains(middle(line.box)) and not line.box.intersect(region).empty

    stays = [found for found in before if not belongs(found.line)]
    gone = [found for found in before if belongs(found.line)]

    def is_known(line: Line) -> bool:
        point = middle(line.box)
        return any(found.line.box.contains(point) or line.box.contains(middle(found.line.box)) for found in stays)

    return stays, gone, [line for line in lines if belongs(line) and not is_known(line)]


def follow(before: Sequence[Found], lines: Iterable[Line], last: int) -> tuple[list[Found], int]:
    """Lines with the numbers of their references, and the last number that was given.

    The same text at the same place keeps its number, and is as it was; any other has a new one.

    Args:
        before: What was found before where `lines` are now.
        lines: What is there now.
        last: The last number that was given so far.
    """
    known: dict[str, list[Found]] = {}
    for found in before:
        known.setdefault(found.line.text, []).append(found)
    followed = []
    for line in lines:
        same = next((found for found in known.get(line.text, ()) if _at_the_same_place(found.line.box, line.box)), None)
        if same is None:
            last += 1
            same = Found(last, line)
        else:
            known[line.text].remove(same)
        followed.append(same)
    return followed, last


def _at_the_same_place(one: Rect, other: Rect) -> bool:
    return all(
        abs(a - b) <= _SAME_PLACE
        for a, b in ((one.x, other.x), (one.y, other.y), (one.right, other.right), (one.bottom, other.bottom))
    )


def in_order(found: Iterable[Found]) -> list[Found]:
    """As one reads: rows from top to bottom, each from left to right. What shares half of its height is in one row."""
    rows: list[list[Found]] = []
    for each in sorted(found, key=lambda found: (found.line.box.y, found.line.box.x)):
        if rows and middle(each.line.box).y < rows[-1][0].line.box.bottom:
            rows[-1].append(each)
        else:
            rows.append([each])
    return [each for row in rows for each in sorted(row, key=lambda found: found.line.box.x)]
