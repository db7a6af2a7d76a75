"""What a look at a desktop gives: the picture, and what is known about it.

This module owns the two value types that users hold. They are snapshots: nothing in them changes when the desktop does, and
`image()` and `array()` are made from `data`, so they cannot show other pixels. What must never appear here: a desktop.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from deskhand._core.arguments import expect_path
from deskhand._core.formats import MEDIA_TYPES, data_url, encode, format_of, write
from deskhand._core.marks import draw, marks

if TYPE_CHECKING:
    from typing import Self

    import numpy as np
    from numpy.typing import NDArray
    from PIL import Image

    from deskhand._core.elements import Elements
    from deskhand._core.formats import Format, StrPath
    from deskhand._core.geometry import Point, Rect, Size, Viewport
    from deskhand._core.settle import Reason

_SAVED_QUALITY = 90
# Rectangles that a notebook is shown.
_MOST_MARKED = 200


@dataclass(frozen=True, slots=True)
class Screenshot:
    """One picture of a screen.

    Attributes:
        data: The picture's bytes, in its format.
        format: `png` unless another was asked for; see `deskhand._core.formats.Format`.
        viewport: The transform between points of the picture and points of the screen.
        cursor: Where the pointer was, in screen pixels.
        generation: The screen's generation: two pictures of one desktop with the same one show the same pixels (cursor aside).
        pointer_shape: What the pointer looked like, as CSS calls it: `text` over a field, `pointer` over a link, `wait`,
            `default`. Where CSS has no word, the name that the application gave, untrusted, of at most 64 characters. Empty
            where none is known: over VNC, and where an application draws its own.
    """

    data: bytes = field(repr=False)
    format: Format
    viewport: Viewport
    cursor: Point
    generation: int
    pointer_shape: str = field(default="", kw_only=True)

    @property
    def size(self) -> Size:
        """Width and height of the picture in pixels."""
        return self.viewport.model

    @property
    def media_type(self) -> str:
        """What `data` is, such as `image/png`."""
        return MEDIA_TYPES[self.format]

    @property
    def png(self) -> bytes:
        """The picture as a PNG file, RGB without alpha: `data` itself, or made of it where that is in another format."""
        if self.media_type == "image/png":
            return self.data
        return encode(self.image().tobytes(), self.size, "png", 1)

    @property
    def data_url(self) -> str:
        """The picture as a `data:` URL; one of raw pixels is given as PNG."""
        if self.format == "raw":
            return data_url(self.png, "image/png")
        return data_url(self.data, self.media_type)

    def save(self, path: StrPath) -> None:
        """Write the picture as a file, in the format that its name says: `.png`, `.jpg` or `.webp`.

        In the picture's own format it is `data` itself; another lossy one has the quality 90.

        Raises:
            ActionError: The name ends with no such suffix, or is no path.
            FileError: It cannot be written.
        """
        name = expect_path("save: path", path)
        wanted = format_of(name)
        if self.media_type == MEDIA_TYPES[wanted]:
            data = self.data
        else:
            data = self.png if wanted == "png" else encode(self.image().tobytes(), self.size, wanted, _SAVED_QUALITY)
        write(name, data)

    def _repr_png_(self) -> bytes:
        """The picture, for a notebook."""
        return self.png

    def image(self) -> Image.Image:
        """The picture as a Pillow image of mode RGB."""
        from PIL import Image  # noqa: PLC0415 # it costs every program's start, and few need it

        if self.format == "raw":
            return Image.frombytes("RGB", self.size, self.data)
        image = Image.open(io.BytesIO(self.data))
        return image.convert("RGB")

    def array(self) -> NDArray[np.uint8]:
        """The picture as an array of shape (height, width, 3), RGB, 0...255; read-only, and without a copy of raw pixels."""
        import numpy as np  # noqa: PLC0415 # as above

        if self.format == "raw":
            return np.frombuffer(self.data, np.uint8).reshape(self.size.height, self.size.width, 3)
        return np.asarray(self.image())

    def with_marks(self, elements: Elements) -> Self:
        """The same as a PNG with a frame and a number on each element that something can be done with (a set of marks).

        The numbers are those of the references: 12 is `e12`, for `LeftClick(element="e12")`. Elements that are hidden, covered,
        disabled or only there to be read have none.

        Args:
            elements: Read when the picture was taken, or soon after (`Desktop.elements`).
        """
        image = self.image()
        draw(image, marks(elements, self.viewport))
        return replace(self, data=encode(image.tobytes(), self.size, "png", 1), format="png")


@dataclass(frozen=True, slots=True)
class Elapsed:
    """Where the time of one `perform` went, in seconds.

    Attributes:
        input: Looking at the screen and at what applications do before anything is sent, then sending the input, until the
            other side had processed it. Of several actions, also the waits between them.
        reaction: From there to the first change of the screen; 0 when nothing changed.
        settle: From there until the screen counted as settled.
        capture: Bringing the frame up to date, and reading the elements where they were asked for.
        encode: Making the picture.
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
        clipboard_lost: Kinds of what was on the clipboard before a text was pasted that are not back, as `image/png`: whoever
            had it did not hand them over in time, or all are more than 64 MiB. `TARGETS`, the list of kinds, where not even
            that is known. Those of the primary selection, which xterm pastes, begin with `PRIMARY `. Untrusted text. A VNC
            server reports text only. `PIXMAP`, a number that ends with its owner, is named where nothing else is kept.
        pointer_moved: Whether the pointer was found elsewhere than our last input had left it: a person has moved it, or a
            program has. Over VNC as far as the server reports (docs/servers.md); `cursor` is where it is now.
        unanswered: Whether a drag or hover went on though the application was still at work on the part before: it may have
            missed points of it, or the whole. Where an application answers no pings and runs where its threads cannot be seen,
            it is given 0.05 s, and nothing is known. Or an action of a list was sent though the screen had not settled within
            the timeout after the one before it: it may have gone to what was there before. Over VNC also whether a text, or a
            character of it that was on no key before, changed nothing on the screen: it may be lost, unless what is typed there
            is not shown.
        may_change: Whether the screen may change later, because something went on by itself after one of the actions: the
            command that a terminal runs still slept for a time (`sleep`, or a program's own) 0.3 s after the last change, the
            program has set a timer that ends within 0.59 s of the action's beginning, it still waits for the network or says
            so by the pointer, had an answer from the network that shows nothing, a program has not read a key that may be its
            hot key, or one that was started shows nothing yet. Only where the processes can be seen, and not where that was so
            before the actions. Not every timer can be seen (docs/desktops.md).
        elements: What applications say that they show, where that was asked for (`perform(..., elements=True)`): of the screen
            that the picture shows. What is missing is said in its `left_out`. Names and texts in it are untrusted.
        notes: What people did since the last observation who had control (`Desktop.control`), and what they say about it, a
            sentence each.
    """

    settled: bool
    reason: Reason
    rects: tuple[Rect, ...]
    busy: tuple[Rect, ...]
    elapsed: Elapsed
    pasted: bool = False
    clipboard_lost: tuple[str, ...] = ()
    pointer_moved: bool = False
    unanswered: bool = False
    may_change: bool = False
    elements: Elements | None = field(default=None, repr=False)
    notes: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether anything changed, busy regions aside."""
        return bool(self.rects)

    def _repr_html_(self) -> str:
        """The picture with what changed outlined, and the facts below it, for a notebook."""
        from html import escape  # noqa: PLC0415 # only notebooks need it, and it costs every program's start

        shown = self.viewport.shown
        marks = "".join(
            f'<div style="position:absolute;outline:2px solid #d33;'
            f"left:{100 * (rect.x - shown.x) / shown.width:.3f}%;top:{100 * (rect.y - shown.y) / shown.height:.3f}%;"
            f'width:{100 * rect.width / shown.width:.3f}%;height:{100 * rect.height / shown.height:.3f}%"></div>'
            for rect in self.rects[:_MOST_MARKED]
        )
        facts = [
            f"{'settled' if self.settled else 'not settled'} ({self.reason}) after {self.elapsed.total:.2f} s",
            f"{len(self.rects)} region{'s' * (len(self.rects) > 1)} changed" if self.rects else "nothing changed",
            *(f"{name}: {value}" for name, value in remarks(self).items()),
        ]
        picture = f'<img src="{self.data_url}" style="display:block;max-width:100%" alt="the screen">'
        # Names of clipboard formats come from other programs.
        return (
            '<figure style="margin:0"><div style="position:relative;display:inline-block;overflow:hidden">'
            f"{picture}{marks}</div><figcaption>{escape('; '.join(facts))}</figcaption></figure>"
        )


REMARKS = ("pasted", "clipboard_lost", "pointer_moved", "unanswered", "may_change", "notes")
"""The fields of an observation that are given only where they apply."""


def remarks(seen: Observation) -> dict[str, bool | list[str]]:
    """Those of an observation, ready for JSON; empty where there is nothing to tell."""
    found = {name: getattr(seen, name) for name in REMARKS}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items() if value}
