"""A picture of a change, for people: before, after, and what differs.

This module owns how a change is shown. What must never appear here: a search for changes of its own; `_native.Screen` has one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deskhand._core.arguments import expect
from deskhand._core.geometry import Rect
from deskhand._core.observation import Screenshot
from deskhand._native import Screen
from deskhand.errors import ActionError

if TYPE_CHECKING:
    from PIL import Image

_MARK = (230, 0, 60)
_PALE = 0.7
_GAP = 8


def changed_rects(before: Screenshot, after: Screenshot) -> list[Rect]:
    """Where two pictures differ, as few rectangles, in pixels of the pictures.

    Raises:
        ActionError: They differ in size.
    """
    for name, shot in (("before", before), ("after", after)):
        expect(f"difference: {name}", shot, Screenshot)
    if before.size != after.size:
        raise ActionError(f"pictures of different sizes: {tuple(before.size)} and {tuple(after.size)}")
    screen = Screen(*before.size)
    whole = (0, 0, *before.size)
    screen.update(whole, _bgrx(before), 0.0)
    seen = screen.generation
    screen.update(whole, _bgrx(after), 0.0)
    return [Rect(*rect) for rect in screen.changes(seen)]


def difference(before: Screenshot, after: Screenshot) -> Image.Image:
    """Three pictures beside each other: before, after, and after made pale with what changed as it is, framed.

    Returns:
        A Pillow image of mode RGB, three pictures and two gaps of 8 pixels wide.

    Raises:
        ActionError: They differ in size.
    """
    from PIL import Image, ImageDraw  # noqa: PLC0415 # it costs every program's start, and few need it

    rects = changed_rects(before, after)
    old, new = before.image(), after.image()
    marked = Image.blend(new.convert("L").convert("RGB"), Image.new("RGB", new.size, "white"), _PALE)
    draw = ImageDraw.Draw(marked)
    for rect in rects:
        marked.paste(new.crop((rect.x, rect.y, rect.right, rect.bottom)), (rect.x, rect.y))
        draw.rectangle((rect.x - 1, rect.y - 1, rect.right, rect.bottom), outline=_MARK)
    sheet = Image.new("RGB", (3 * new.width + 2 * _GAP, new.height), "white")
    for n, panel in enumerate((old, new, marked)):
        sheet.paste(panel, (n * (new.width + _GAP), 0))
    return sheet


def _bgrx(shot: Screenshot) -> bytes:
    return shot.image().tobytes("raw", "BGRX")
