"""Compares two frames, except for regions that change by themselves.

This module owns which differences are ignored. It has no files and no desktop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

Region = tuple[int, int, int, int]
"""x, y, width, height."""

# Carets, clocks and spinners change by themselves. A larger region is a window that was being drawn, and is compared.
_LARGEST_BUSY = 0.02
_CARET_WIDTH, _CARET_HEIGHT = 2, 40


def difference(
    one: NDArray[np.uint8],
    other: NDArray[np.uint8],
    busy: Iterable[Sequence[int]] = (),
    masks: Iterable[Sequence[int]] = (),
) -> NDArray[np.bool_]:
    """Which pixels of two frames of the same size differ.

    Args:
        one: A frame's pixels, (height, width, 3).
        other: The pixels of another frame.
        busy: Regions that changed by themselves; those of more than a fiftieth of the screen are compared all the same.
        masks: Regions that are always ignored.
    """
    differs: NDArray[np.bool_] = (one != other).any(axis=2)
    small = [region for region in busy if region[2] * region[3] <= _LARGEST_BUSY * differs.size]
    for x, y, width, height in (*small, *masks):
        differs[max(0, y) : max(0, y + height), max(0, x) : max(0, x + width)] = False
    return differs


def extent(differs: NDArray[np.bool_]) -> Region | None:
    """The smallest rectangle with all pixels that differ; None if there are none."""
    if not differs.any():
        return None
    rows, columns = np.flatnonzero(differs.any(axis=1)), np.flatnonzero(differs.any(axis=0))
    top, left = int(rows[0]), int(columns[0])
    return left, top, int(columns[-1]) + 1 - left, int(rows[-1]) + 1 - top


def is_caret(region: Region) -> bool:
    """Whether it is no larger than a text's caret, which blinks."""
    return region[2] <= _CARET_WIDTH and region[3] <= _CARET_HEIGHT
