"""What a look at a desktop gives: the picture, and what is known about it.

This module owns the two value types that users hold. They are snapshots: nothing in them changes when the desktop does, and
`image()` and `array()` are made from `png`, so they cannot show other pixels. What must never appear here: a desktop.
"""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL import Image

    from deskhand.geometry import Point, Rect, Size, Viewport
    from deskhand.settle import Reason

__all__ = ["Elapsed", "Observation", "Screenshot"]


@dataclass(frozen=True, slots=True)
class Screenshot:
    """One picture of a screen.

    Attributes:
        png: The file: 24 bit RGB, no alpha.
        viewport: The transform between points of the picture and points of the screen.
        cursor: Where the pointer was, in screen pixels.
        generation: The screen's generation: two pictures of one desktop with the same one show the same pixels (cursor aside).
    """

    png: bytes = field(repr=False)
    viewport: Viewport
    cursor: Point
    generation: int

    @property
    def size(self) -> Size:
        """Width and height of the picture in pixels."""
        return self.viewport.model

    @property
    def data_url(self) -> str:
        """The picture as a `data:image/png;base64,` URL."""
        return "data:image/png;base64," + base64.b64encode(self.png).decode("ascii")

    def image(self) -> Image.Image:
        """The picture as a Pillow image of mode RGB."""
        from PIL import Image  # noqa: PLC0415 # it costs every program's start, and few need it

        image = Image.open(io.BytesIO(self.png))
        image.load()
        return image

    def array(self) -> NDArray[np.uint8]:
        """The picture as an array of shape (height, width, 3), RGB, 0...255."""
        import numpy as np  # noqa: PLC0415 # as above

        return np.asarray(self.image())


@dataclass(frozen=True, slots=True)
class Elapsed:
    """Where the time of one `perform` went, in seconds.

    Attributes:
        input: Sending the input, until the other side had processed it.
        reaction: From there to the first change of the screen; 0 when nothing changed.
        settle: From there until the screen counted as settled.
        capture: Bringing the frame up to date.
        encode: Making the PNG.
    """

    input: float
    reaction: float
    settle: float
    capture: float
    encode: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.input + self.reaction + self.settle + self.capture + self.encode


@dataclass(frozen=True, slots=True)
class Observation(Screenshot):
    """What the screen answered to the actions.

    Attributes:
        settled: Whether the screen had come to rest when the picture was taken.
        reason: Why the wait ended.
        rects: What really changed since before the actions, in screen pixels, without the busy regions.
        busy: Regions that were changing on their own before the actions (a caret, a clock, a video), in screen pixels.
        elapsed: Where the time went.
        pasted: Whether any text went through the clipboard (`Type(..., paste=True)`).
    """

    settled: bool
    reason: Reason
    rects: tuple[Rect, ...]
    busy: tuple[Rect, ...]
    elapsed: Elapsed
    pasted: bool = False

    @property
    def changed(self) -> bool:
        """Whether anything changed, busy regions aside."""
        return bool(self.rects)
