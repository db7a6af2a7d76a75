"""Whether two frames show the same, apart from what moves by itself.

This module owns what is no difference. What must never appear here: a file, a desktop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

__all__ = ["Region", "difference", "extent", "is_caret"]

Region = tuple[int, int, int, int]
"""x, y, width, height."""

# What moves by itself is a caret, a clock, a spinner. What is larger is a window that was being drawn, and is looked at.
_LARGEST_BUSY = 0.02
_CARET_WIDTH, _CARET_HEIGHT = 2, 40


def difference(
    one: NDArray[np.uint8],
    other: NDArray[np.uint8],
    busy: Iterable[Sequence[int]] = (),
    masks: Iterable[Sequence[int]] = (),
) -> NDArray[np.bool_]:
    """Which pixels differ, of two frames of one size.

    Args:
        one: A frame's pixels, (height, width, 3).
        other: Another one's.
        busy: Regions that were moving by themselves; those of more than a fiftieth of the screen are looked at all the same.
        masks: Regions that are left out, however large.
    """
    differs: NDArray[np.bool_] = (one != other).any(axis=2)
    small = [region for region in busy if region[2] * region[3] <= _LARGEST_BUSY * differs.size]
    for x, y, width, height in (*small, *masks):
        differs[max(0, y) : max(0, y + height), max(0, x) : max(0, x + width)] = False
    return differs


def extent(differs: NDArray[np.bool_]) -> Region | None:
    """The smallest rectangle with all pixels that differ; None when none does."""
    if not differs.any():
        return None
    rows, columns = np.flatnonzero(differs.any(axis=1)), np.flatnonzero(differs.any(axis=0))
    top, left = int(rows[0]), int(columns[0])
    return left, top, int(columns[-1]) + 1 - left, int(rows[-1]) + 1 - top


def is_caret(region: Region) -> bool:
    """Whether it is not larger than a text's caret, which is shown or not at the moment."""
    return region[2] <= _CARET_WIDTH and region[3] <= _CARET_HEIGHT
