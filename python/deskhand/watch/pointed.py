"""Which element is below a pointer: the innermost one of the window that is on top there.

This module is pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deskhand._core.redaction import one_line
from deskhand._core.roles import CLIPPING, GENERIC, UNCLIPPED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deskhand._core.elements import Element, Elements
    from deskhand._core.geometry import Point, Rect
    from deskhand._core.window import Window

_LONGEST = 80
# As much as an element and its window have in common, at least.
_SAME_WINDOW = 0.5
_BELOW_ALL = -1


def element_at(elements: Elements, windows: Sequence[Window], point: Point) -> Element | str:
    """The element that a person sees at a pixel of the screen, or why there is none, as a sentence.

    Args:
        elements: Those of the desktop.
        windows: Its windows, the lowest first.
        point: The pixel.
    """
    shown = [window for window in windows if not window.minimized]
    here = [at for at, window in enumerate(shown) if window.rect.contains(point)]
    top = here[-1] if here else _BELOW_ALL
    best: tuple[int, int, list[Element]] | None = None
    for place, root in enumerate(elements):
        if root.depth or "iconified" in root.states:
            continue
        found = _containing(elements, root, point)
        if found:
            rank = (_order(root, shown), place, found)
            best = rank if best is None or rank[:2] > best[:2] else best
    if best is None or best[0] < top:
        return _nothing(elements, shown[top] if here else None)
    # An element that only contains others says nothing, so it is used only if there is no other.
    candidates = [element for element in best[2] if element.role not in GENERIC or element.name] or best[2]
    in_front = [element for element in candidates if elements.behind(element) is None]
    # Of several of one size, the one that is listed last is drawn last.
    return min(reversed(in_front or candidates), key=lambda element: _area(element.box))


def _nothing(elements: Elements, window: Window | None) -> str:
    if window is None or any(element.pid == window.pid for element in elements if not element.depth):
        return "There is no element here."
    title = one_line(window.title, _LONGEST)
    return f"The window {title!r} has no elements: its program exposes no accessibility tree."


def _containing(elements: Elements, root: Element, point: Point) -> list[Element]:
    """The elements of a window that show at a pixel."""
    return [
        element
        for element in (root, *elements.within(root.ref))
        if element.visible
        and element.box is not None
        and element.box.contains(point)
        and _shows(elements, element, point)
    ]


def _shows(elements: Elements, element: Element, point: Point) -> bool:
    """Whether nothing that it is scrolled in cuts it off there."""
    while element.parent is not None and element.native_role not in UNCLIPPED:
        element = elements[element.parent]
        if element.native_role in CLIPPING and element.box is not None and not element.box.contains(point):
            return False
    return True


def _order(root: Element, shown: Sequence[Window]) -> int:
    """How high a window of elements is: the place of its window. Menus and the like are not listed, and above all others."""
    mine = [at for at, window in enumerate(shown) if window.pid == root.pid]
    if not mine:
        # What fills the screen behind all windows; on a display without a window manager no window is listed.
        return _BELOW_ALL
    at = max(mine, key=lambda at: (_alike(shown[at].rect, root.box), bool(root.name) and shown[at].title == root.name))
    is_listed = _alike(shown[at].rect, root.box) >= _SAME_WINDOW or shown[at].title == root.name != ""
    return at if is_listed else len(shown)


def _alike(one: Rect, other: Rect | None) -> float:
    if other is None:
        return 0.0
    both = _area(one.intersect(other))
    return both / max(1, _area(one) + _area(other) - both)


def _area(rect: Rect | None) -> int:
    return 0 if rect is None else max(0, rect.width) * max(0, rect.height)
