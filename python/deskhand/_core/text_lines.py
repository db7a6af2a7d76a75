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

__all__ = [
    "Found",
    "Line",
    "alike",
    "bands",
    "clean_line",
    "follow",
    "grow",
    "in_order",
    "middle",
    "silent_areas",
    "subtract",
]

_LONGEST = 500
# A detector needs to see around a line, and a line goes on where the next letter is less than its height away.
_AROUND = 12
# Pixels that the edges of a line may lie elsewhere in the next reading, because more or less around it was read.
_SAME_PLACE = 4
# Rows that neighbouring bands share: a line that is not higher is whole in one of them.
_SHARED = 96
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
    """What is read again where rectangles have changed: whole lines, and enough around them; no two of them overlap."""
    regions: list[Rect] = []
    # A line whose end is nearer than a space may go on in what has changed.
    near = {line.box: line.box.inflate(max(line.box.height, _AROUND)) for line in lines}
    waiting = [rect.inflate(_AROUND).intersect(screen) for rect in changed]
    while waiting:
        region = waiting.pop()
        if region.empty:
            continue
        grown = region
        for box, reach in near.items():
            if not reach.intersect(grown).empty:
                grown = grown.union(box.inflate(_AROUND).intersect(screen))
        touched = [other for other in regions if not other.intersect(grown).empty]
        for other in touched:
            regions.remove(other)
            grown = grown.union(other)
        if grown == region:
            regions.append(region)
        else:
            waiting.append(grown)
    return regions


def bands(region: Rect, most: int) -> list[tuple[Rect, Rect]]:
    """A region in parts of about `most` pixels: what is read, and where the middle of a line must be that counts.

    Neighbours overlap, so that a line on the border is whole in one of them.
    """
    rows = max(2 * _SHARED, most // max(1, region.width))
    if region.height <= rows:
        return [(region, region)]
    step = rows - _SHARED
    parts = []
    for top in range(region.y, region.bottom, step):
        counts = Rect.of_edges(region.x, top, region.right, min(top + step, region.bottom))
        read = Rect.of_edges(
            region.x,
            max(region.y, top - _SHARED // 2),
            region.right,
            min(region.bottom, counts.bottom + _SHARED // 2),
        )
        parts.append((read, counts))
    return parts


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
