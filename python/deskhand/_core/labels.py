"""Which text a person takes for the label of a field, by where both are. Pure.

For fields that have no name of their own: not all toolkits tell which label belongs to which field.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from deskhand._core.geometry import Rect

_T = TypeVar("_T")
# Pixels: as far as a column of labels is from one of fields, and as a label is above its field.
_LEFT = 300
_ABOVE = 40
# Boxes of two that touch may share a few pixels.
_OVERLAP = 4


def nearest_label(field: Rect, texts: Iterable[tuple[Rect, _T]], others: Iterable[Rect]) -> _T | None:
    """The text that labels a field: the nearest one left of it in its line, or else the nearest one above it.

    Args:
        field: Where the field is.
        texts: Where texts are.
        others: Where other fields are: a text on the far side of one of them is that one's.
    """
    # A list to choose from may have a field to write in.
    fields = [other for other in others if not other.within(field) and not field.within(other)]
    best: tuple[bool, int] | None = None
    found = None
    for place, text in texts:
        gap = _gap_left(field, place)
        above = gap is None
        if gap is None and (gap := _gap_above(field, place)) is None:
            continue
        nearer = best is None or (above, gap) < best
        if nearer and not any(_is_between(field, place, other, above=above) for other in fields):
            best, found = (above, gap), text
    return found


def _gap_left(field: Rect, text: Rect) -> int | None:
    """Pixels between a field and a text left of it; None where it is not in the field's line."""
    gap = field.x - text.right
    shared = min(field.bottom, text.bottom) - max(field.y, text.y)
    in_line = 2 * shared >= min(field.height, text.height)
    return max(0, gap) if in_line and -_OVERLAP <= gap <= _LEFT else None


def _gap_above(field: Rect, text: Rect) -> int | None:
    gap = field.y - text.bottom
    over = text.x < field.right and text.right > field.x
    return max(0, gap) if over and -_OVERLAP <= gap <= _ABOVE else None


def _is_between(field: Rect, text: Rect, other: Rect, *, above: bool) -> bool:
    if above:
        return (
            _gap_above(other, text) is not None
            and other.y < field.y
            and other.x < field.right
            and other.right > field.x
        )
    return _gap_left(other, text) is not None and other.x < field.x
