"""The first picture of an attempt, compared with that of another one.

This module owns what of it is compared, and how a difference is shown. It has no desktop and no files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deskhand._core import difference as change
from deskhand._core.geometry import Point, Size, Viewport
from deskhand._core.observation import Screenshot
from deskhand.episodes.record.frame_diff import difference, extent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from PIL import Image

    from deskhand._core.geometry import Rect
    from deskhand.episodes.record.frame_diff import Region


@dataclass(frozen=True, slots=True)
class FirstFrame:
    """The first picture of an attempt, without the pointer.

    Attributes:
        pixels: Rows of RGB.
        busy: The regions that change by themselves.
    """

    pixels: NDArray[np.uint8]
    busy: tuple[Rect, ...]

    def differs(self, other: FirstFrame, masks: Sequence[Region] = ()) -> tuple[int, Region | None]:
        """How many pixels differ from another one, and where, except for `masks` and the busy regions of both."""
        if self.pixels.shape != other.pixels.shape:
            height, width = max(self.pixels.shape[:2], other.pixels.shape[:2])
            return height * width, (0, 0, width, height)
        differing = self._differing(other, masks)
        return int(differing.sum()), extent(differing)

    def shown(self, other: FirstFrame, masks: Sequence[Region] = ()) -> tuple[list[Rect], Image.Image | None]:
        """Where another one differs, as few rectangles, and the picture of it: this one, the other, and what differs marked.

        There is no picture of two sizes.
        """
        if self.pixels.shape != other.pixels.shape:
            return [], None
        # What may differ is as it was, so that it is not marked.
        differing = self._differing(other, masks)[:, :, np.newaxis]
        before, after = _shot(self.pixels), _shot(np.where(differing, other.pixels, self.pixels))
        return change.changed_rects(before, after), change.difference(before, after)

    def _differing(self, other: FirstFrame, masks: Sequence[Region]) -> NDArray[np.bool_]:
        return difference(self.pixels, other.pixels, [*self.busy, *other.busy], masks)


def _shot(pixels: NDArray[np.uint8]) -> Screenshot:
    size = Size(pixels.shape[1], pixels.shape[0])
    return Screenshot(pixels.tobytes(), "raw", Viewport(size, size), Point(0, 0), 0)
