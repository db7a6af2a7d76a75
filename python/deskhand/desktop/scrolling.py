"""Bringing an element into view: by its application, or else by the wheel.

This module owns which way is turned, how far, and when it is given up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deskhand._core.events import Button, ButtonDown, ButtonUp, PointerMove

if TYPE_CHECKING:
    from collections.abc import Callable

    from deskhand._core.elements import Element, Elements
    from deskhand._core.events import Event
    from deskhand._core.geometry import Point, Rect
    from deskhand.backends.protocols import Backend

# Notches of the wheel: the first time, and at most at once.
_NOTCHES, _MOST_NOTCHES = 4, 40
# Seconds: for an application to say that it scrolls, and without a change until it is said that nothing scrolls.
_ANSWER = 1.0
_SCROLLS_NO_MORE = 1.0
# Pixels: what changes and is no wider or no higher is a scroll bar that comes and goes, or a caret.
_BAR = 16
_HIDDEN = "is scrolled out of sight"


def scroller(found: Elements, element: Element) -> Element | None:
    """The nearest element that shows and that an element is scrolled out of; None where it is hidden for another reason."""
    above = element.parent
    while above is not None and above in found:
        around = found[above]
        if around.native_role == "combo-box":
            # Its list is closed, and the wheel would choose something else.
            return None
        # What is scrolled as a whole is in what shows a part of it.
        area = around.box
        if around.point is not None and area is not None and (element.box is None or area.intersect(element.box).empty):
            return around
        above = around.parent
    return None


def _way(found: Elements, element: Element, over: Element) -> Button:
    """Where an element is from what shows of what it is scrolled out of."""
    box, around = element.box, over.box
    if box is not None and around is not None:
        if box.y >= around.bottom:
            return Button.WHEEL_DOWN
        if box.bottom <= around.y:
            return Button.WHEEL_UP
        return Button.WHEEL_RIGHT if box.x >= around.right else Button.WHEEL_LEFT
    # GTK 3 does not say where: what follows is further down.
    refs = [each.ref for each in found.within(over.ref) if each.visible or each.ref == element.ref]
    return Button.WHEEL_DOWN if refs and refs[-1] == element.ref else Button.WHEEL_UP


class Scroll:
    """Brings one element into view, step by step."""

    __slots__ = (
        "_ask",
        "_asked",
        "_backend",
        "_box",
        "_clock",
        "_count",
        "_generation",
        "_same",
        "_sent",
        "_turned",
        "_way",
    )

    def __init__(self, backend: Backend, clock: Callable[[], float], ask: Callable[[float], bool]) -> None:
        """`ask` asks the application, for so many seconds, and says whether it scrolls."""
        self._backend, self._clock, self._ask = backend, clock, ask
        self._asked = self._turned = False
        self._generation = self._same = 0
        self._way: Button | None = None
        self._box: Rect | None = None
        self._sent: float | None = None
        self._count = _NOTCHES

    def step(self, found: Elements, element: Element, over: Element, *, quiet: bool) -> tuple[bool, str]:
        """Scroll on, unless it is to be waited for.

        Args:
            found: The elements.
            element: The one that is to be seen.
            over: What it is scrolled out of.
            quiet: Whether the screen is still.

        Returns:
            Whether anything was done, and why the element cannot be seen yet, as the end of a sentence about it.
        """
        if not self._asked:
            self._asked = True
            if self._ask(_ANSWER):
                self._note()
                return True, _HIDDEN
        if over.covered_by is not None:
            return False, f"{_HIDDEN}, in what is covered by the window {over.covered_by!r}"
        unmoved = not any(min(rect[2:]) > _BAR for rect in self._backend.screen.changes(self._generation))
        if self._sent is not None and self._clock() - self._sent < _SCROLLS_NO_MORE:
            if unmoved or not quiet:
                return False, _HIDDEN
        elif self._way is not None and unmoved:
            return False, f"{_HIDDEN}, and the wheel over {over.line()} does not bring it"
        self._turn(_way(found, element, over), over.point, element.box)
        return True, _HIDDEN

    def _note(self) -> None:
        self._sent, self._generation = self._clock(), self._backend.screen.generation

    def _turn(self, way: Button, point: Point | None, box: Rect | None) -> None:
        assert point is not None  # noqa: S101 # what scrolls shows
        if self._way is not None:
            back = way != self._way
            self._same = 0 if back else self._same + 1
            self._turned |= back
            if box is not None and self._box is not None and box != self._box:
                self._count = _notches(self._box, box, point, self._count)
            elif back:
                # It went past: half as far back, and so on.
                self._count = max(1, self._count // 2)
            elif not self._turned or self._same > 1:
                self._count *= 2
        self._count = min(self._count, _MOST_NOTCHES)
        self._way, self._box = way, box
        self._note()
        events: list[Event] = [PointerMove(*point)]
        for _ in range(self._count):
            events += [ButtonDown(way), ButtonUp(way)]
        self._backend.send(events)


def _notches(before: Rect, box: Rect, middle: Point, count: int) -> int:
    """How many notches bring an element to the middle of what scrolls, when `count` have moved it so far."""
    if before.y != box.y:
        return max(1, round(abs(box.y + box.height // 2 - middle.y) * count / abs(box.y - before.y)))
    return max(1, round(abs(box.x + box.width // 2 - middle.x) * count / max(1, abs(box.x - before.x))))
