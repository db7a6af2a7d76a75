"""Numbered marks: which elements get a number, and how numbers are drawn into a picture (a set of marks). Pure.

The number of an element is that of its reference: 12 is `e12`; what OCR has read has its whole reference, such as t12. This
module owns the choice and the drawing. What must never appear here: a desktop, how a picture is encoded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deskhand._core.geometry import Rect
from deskhand._core.roles import CLIPPING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from PIL import Image

    from deskhand._core.elements import Element, Elements
    from deskhand._core.geometry import Viewport

_ACTIONABLE = frozenset(
    """
    button checkbox combobox columnheader dial link menuitem menuitemcheckbox menuitemradio option radio searchbox slider
    spinbutton switch tab terminal textbox treeitem
    """.split()  # noqa: SIM905 # a list of so many words
)
# Roles that get a number only if the element says that it can be used.
_SELECTABLE = frozenset({"cell", "gridcell", "img", "listitem", "row"})
# Dark enough for white digits, and far from each other.
_COLOURS = ("#c62828", "#1565c0", "#2e7d32", "#6a1b9a", "#bf360c", "#00695c", "#ad1457", "#4e342e")
_SMALLEST, _LARGEST = 11, 20
# Of the picture's height.
_DIGITS = 1 / 60
_PADDING = 2
# The cost of covering a pixel of another number, and of another element.
_OVER_NUMBER, _OVER_ELEMENT = 1000, 1


@dataclass(frozen=True, slots=True)
class Mark:
    """An element's number in a picture.

    Attributes:
        number: The number of its reference.
        ref: The reference.
        box: The part of it that the picture shows, in pixels of the picture.
    """

    number: int
    ref: str
    box: Rect

    @property
    def label(self) -> str:
        """What is drawn: its number, or its reference where OCR has read it."""
        return self.ref if self.ref.startswith("t") else str(self.number)


def marks(elements: Elements, viewport: Viewport) -> tuple[Mark, ...]:
    """The elements that a picture shows and that can be used, each with its number.

    They are visible, enabled, not covered, and of a role that is made to be used: a button, a field, a link, an item.

    Args:
        elements: The elements that were read.
        viewport: The picture's.
    """
    found = []
    # The visible parts of the elements that may contain the next one: depth and area.
    over: list[tuple[int, Rect]] = []
    for element in elements:
        while over and over[-1][0] >= element.depth:
            over.pop()
        area = over[-1][1] if over else viewport.shown
        if element.box is not None and element.native_role in CLIPPING:
            over.append((element.depth, area.intersect(element.box)))
        if not _is_marked(element) or element.box is None:
            continue
        box = viewport.rect_to_model(element.box.intersect(area))
        if not box.empty:
            found.append(Mark(int(element.ref[1:]), element.ref, box))
    return tuple(found)


def _is_marked(element: Element) -> bool:
    if not (element.visible and element.enabled) or element.covered_by is not None:
        return False
    if element.source == "ocr":
        # What can be done with it is not known.
        return True
    if element.role in _SELECTABLE:
        return "selectable" in element.states
    return element.role in _ACTIONABLE or "editable" in element.states


def draw(image: Image.Image, marked: tuple[Mark, ...]) -> None:
    """Draw marks into a picture of mode RGB: a frame around each element, and its number where it covers least.

    Args:
        image: The picture.
        marked: What `marks` returned.
    """
    from PIL import ImageDraw, ImageFont  # noqa: PLC0415 # it costs every program's start, and few need it

    pen = ImageDraw.Draw(image)
    font: Any = ImageFont.load_default(round(min(max(image.height * _DIGITS, _SMALLEST), _LARGEST)))
    digits = [pen.textbbox((0, 0), mark.label, font=font) for mark in marked]
    sizes = [
        (int(right - left) + 2 * _PADDING + 1, int(bottom - top) + 2 * _PADDING) for left, top, right, bottom in digits
    ]
    # Frames first, so that none goes through a number.
    for place, mark in enumerate(marked):
        pen.rectangle(_corners(mark.box), outline=_COLOURS[place % len(_COLOURS)])
    for place, label in enumerate(labels([mark.box for mark in marked], sizes, image.size)):
        left, top, _, _ = digits[place]
        pen.rectangle(_corners(label), fill=_COLOURS[place % len(_COLOURS)], outline="white")
        at = (label.x + _PADDING + 0.5 - left, label.y + _PADDING - top)
        pen.text(at, marked[place].label, fill="white", font=font)


def labels(boxes: Sequence[Rect], sizes: Sequence[tuple[int, int]], picture: tuple[int, int]) -> list[Rect]:
    """Where the numbers of boxes go: above, below, beside or in the box, where they cover the least of others.

    Args:
        boxes: The marked boxes.
        sizes: How large the number of each is.
        picture: The size of the picture, which contains all of them.
    """
    import numpy as np  # noqa: PLC0415 # as in `draw`

    cost = np.zeros((picture[1], picture[0]), np.int32)
    for box in boxes:
        cost[_slices(box)] += _OVER_ELEMENT
    found: dict[int, Rect] = {}
    # The smallest box, which has the least room, chooses first: small ones are in large ones.
    for place in sorted(range(len(boxes)), key=lambda place: boxes[place].width * boxes[place].height):
        at = min(_places(boxes[place], sizes[place], picture), key=lambda at: int(cost[_slices(at)].sum()))
        cost[_slices(at)] += _OVER_NUMBER
        found[place] = at
    return [found[place] for place in range(len(boxes))]


def _places(box: Rect, size: tuple[int, int], picture: tuple[int, int]) -> Iterator[Rect]:
    """The places where a number may be, best first."""
    width, height = size
    left, right = box.x, box.right - width
    top, bottom = box.y, box.bottom - height
    middle = (box.y + box.bottom - height) // 2
    wanted = (
        (left, box.y - height), (right, box.y - height), (left, box.bottom), (right, box.bottom),
        (box.x - width, middle), (box.right, middle), (box.x - width, box.y - height), (box.right, box.y - height),
        (box.x - width, box.bottom), (box.right, box.bottom),
        (right, top), (left, top), (right, bottom), (left, bottom), ((left + right) // 2, middle),
    )  # fmt: skip
    for x, y in wanted:
        # At the edge of the picture the number moves inwards.
        yield Rect(min(max(x, 0), max(picture[0] - width, 0)), min(max(y, 0), max(picture[1] - height, 0)), *size)


def _slices(area: Rect) -> tuple[slice, slice]:
    return slice(area.y, area.bottom), slice(area.x, area.right)


def _corners(area: Rect) -> tuple[int, int, int, int]:
    return area.x, area.y, area.right - 1, area.bottom - 1
