"""Ink: where in a picture of a line there is text, and where a gap sets two texts apart. Pure arithmetic on pixels.

OCR libraries take the entries of a menu bar for one line; a click at the middle of that would hit another entry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deskhand._core.geometry import Rect

if TYPE_CHECKING:
    from numpy.typing import NDArray

# In ems. A space is narrower, also between two narrow letters of a terminal; what is between two entries of a menu bar is
# wider, in GTK, Qt and Chromium.
_GAP = 0.95
# How high small letters and capitals are, in ems, in the fonts of desktops.
_SMALL, _CAPITAL = 0.54, 0.73
# Rows of small letters, where there are any, have so much of the ink of full ones; their part of all rows is smaller then. An
# underline is fuller than that of letters.
_FULL, _OF_FULL, _ALL = 0.8, 0.45, 0.85
# No letters are higher, in ems.
_HIGHEST = 1.2
# Of the strongest contrast in a line; what is fainter than the second, of 255, is no ink.
_SHARE, _FAINTEST = 0.35, 24
# A row with so much ink belongs to no letter.
_RULE = 0.95
_GREY = np.array([0.299, 0.587, 0.114], np.float32)


def pieces(picture: NDArray[np.uint8], box: Rect) -> list[Rect]:
    """The texts of a line, each as small as its ink.

    Args:
        picture: Shape (height, width, 3), RGB.
        box: Where in it a line was found.
    """
    grey = picture[box.y : box.bottom, box.x : box.right] @ _GREY
    if not grey.size:
        return []
    # Letters cover less than half of what is around them, and an edge of the box may be that of a frame.
    contrast = np.abs(grey - np.median(grey))
    ink = contrast > max(_FAINTEST, _SHARE * float(contrast.max()))
    # Edges of frames.
    rows, columns = ink.mean(axis=1) > _RULE, ink.all(axis=0)
    ink[rows] = False
    ink[:, columns] = False
    if not ink.any():
        return []
    top, bottom = _rows(ink)
    columns = np.flatnonzero(ink[top:bottom].any(axis=0))
    gaps = np.flatnonzero(np.diff(columns) > _GAP * _em(ink[top:bottom]) + 1)
    begins = [columns[0], *columns[gaps + 1]]
    ends = [*columns[gaps], columns[-1]]
    return [
        Rect.of_edges(box.x + int(begin), box.y + top, box.x + int(end) + 1, box.y + bottom)
        for begin, end in zip(begins, ends, strict=True)
    ]


def _rows(ink: NDArray[np.bool_]) -> tuple[int, int]:
    """Where a line begins and ends: without what reaches in from the lines above and below."""
    amount = ink.sum(axis=1)
    runs = _runs(amount > 0)
    main = max(runs, key=lambda run: int(amount[slice(*run)].sum()))
    own = [run for run in runs if run == main or (run[0] > 0 and run[1] < len(amount))]
    return own[0][0], own[-1][1]


def _em(ink: NDArray[np.bool_]) -> float:
    """About how large the font of a line is, in pixels."""
    amount = ink.sum(axis=1)
    runs = _runs(amount >= _OF_FULL * np.quantile(amount[amount > 0], _FULL))
    begin, end = max(runs, key=lambda run: int(amount[slice(*run)].sum()))
    height = end - begin
    em = height / (_SMALL if height < _ALL * len(amount) else _CAPITAL)
    return max(em, len(amount) / _HIGHEST)


def _runs(rows: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Where rows that follow one another are set: the first, and the one behind the last."""
    edges = np.flatnonzero(np.diff(rows, prepend=False, append=False))
    return [(int(begin), int(end)) for begin, end in edges.reshape(-1, 2)]


def trim(picture: NDArray[np.uint8]) -> Rect:
    """The part of a picture that is not of the colour of its first pixel; empty where all is."""
    different = (picture != picture[0, 0]).any(axis=2)
    rows, columns = np.flatnonzero(different.any(axis=1)), np.flatnonzero(different.any(axis=0))
    if not rows.size:
        return Rect(0, 0, 0, 0)
    return Rect.of_edges(int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1)
