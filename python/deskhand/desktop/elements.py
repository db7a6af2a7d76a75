"""Reading the elements of a desktop, and waiting until one can be used.

This module owns what is read again and when, and what a person would wait for. What is asked of applications, and what is
kept of their answers, is in Rust (`rust/elements`).
"""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING

from deskhand._core.elements import Element, Elements
from deskhand._core.geometry import Point, Rect
from deskhand.desktop.element_bus import connect, connect_inside
from deskhand.desktop.element_tree import CHROMIUM, GTK3, ElementTree
from deskhand.desktop.scrolling import Scroll, scroller
from deskhand.desktop.stillness import PROMPT, Stillness
from deskhand.errors import ActionError, BackendError, DeskhandTimeout

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from deskhand._core.window import Window
    from deskhand._native import Elements as Session
    from deskhand._native import Screen
    from deskhand.backends.protocols import Backend
    from deskhand.desktop.watcher import Watch
    from deskhand.machine.interface import DesktopMachine

# Seconds: for one reading within a wait, and between two of them.
_ONE_READ = 1.0
# Roles of elements that may have others of the same role below them.
_ITEMS = frozenset({"treeitem", "listitem"})
_LOOK_AGAIN = 0.04
# Times that something is scrolled on the way to one element, at most.
_MOST_STEPS = 60
# Seconds after which GTK 3 has opened a list below a field that was written in: 0.1, and more for the files of a directory.
_LIST_OPENS = 0.4
_LIST = "may soon be behind a list that opens below the field that was just written in"


class ElementReader:
    """Reads the elements of one desktop. Its calls are made within a turn."""

    __slots__ = (
        "_backend",
        "_deep",
        "_environment",
        "_generation",
        "_inside",
        "_known",
        "_opening",
        "_session",
        "_tree",
        "_watch",
        "_windows",
    )

    def __init__(
        self, backend: Backend, watch: Watch, environment: Mapping[str, str], inside: DesktopMachine | None = None
    ) -> None:
        """Connect to nothing yet. Programs of the desktop get `environment`; `inside` is its own machine, if it has one."""
        self._backend = backend
        self._inside = inside
        self._watch = watch
        self._environment = environment
        self._session: Session | None = None
        # Who looks on opens it beside the calls.
        self._opening = threading.Lock()
        self._generation = -1
        self._windows: list[Window] = []
        self._known = Elements()
        self._deep = Elements()
        self._tree = ElementTree()

    @property
    def generation(self) -> int:
        """The screen's generation that the elements were last read at; -1 before the first time."""
        return self._generation

    def open(self, timeout: float, rest: Callable[[float], object] | None = None) -> Session:
        """Connect to the accessibility bus, where that is not done yet.

        Args:
            timeout: Seconds.
            rest: Waits for a number of seconds; for callers that have no turn at the desktop.

        Raises:
            UnsupportedAction: This desktop has no accessibility bus.
            BackendError: The bus refuses.
        """
        with self._opening:
            if self._session is None:
                inside = self._inside
                self._session = (
                    connect(self._backend.name, self._environment, timeout)
                    if inside is None
                    else connect_inside(inside, rest or self._rest, self._watch.clock, timeout)
                )
            return self._session

    def _rest(self, seconds: float) -> None:
        self._watch.check_stop()
        self._backend.wait(seconds)

    def read(
        self, timeout: float, *, deep: bool = False, target: str | None = None, scrolling: bool = False
    ) -> Elements:
        """The elements as they are now.

        Args:
            timeout: Seconds to wait for applications; who has not answered by then is named, and has the elements of before.
            deep: Also those that are scrolled out of sight. Takes longer, the first time by far.
            target: One that is to be acted on: where it is is asked in any case.
            scrolling: Whether what shows the target is being scrolled: all that the target is in is asked again as well.

        Raises:
            UnsupportedAction: This desktop has no accessibility bus.
            BackendError: The bus has gone, or refuses.
        """
        session = self.open(timeout)
        self._backend.look()
        generation, seen = what_changed(self._backend.screen, self._generation, self._watch.clock)
        moved = False
        covers: Sequence[tuple[tuple[int, int, int, int], float]] = ()
        if generation != self._generation:
            windows = self._backend.windows() if self._backend.has_windows else []
            moved = windows != self._windows
            self._windows = windows
            covers = self._covers()
        try:
            version = None if moved or deep else self._known.version
            wanted = deep, None if target is None else int(target[1:]), scrolling
            found = session.read(seen, (places(self._windows), covers), timeout, version, wanted)
        except BackendError:
            # The next reading begins anew.
            self.close()
            raise
        self._generation = generation
        if found is not None:
            screen_area = Rect(0, 0, *self._backend.size)
            elements = self._tree.make(*found, self._windows, screen_area)
            if deep:
                self._deep = elements
                return elements
            self._known = elements
        return self._known

    def _covers(self) -> list[tuple[tuple[int, int, int, int], float]]:
        """What menus cover where nothing has changed between the last reading and that, and for how long."""
        if self._generation < 0:
            return []
        steps = self._backend.screen.history(self._generation)
        if not steps or steps[0][0] != self._generation + 1:
            return []
        now = self._watch.clock()
        return [
            (_native_rect(area), max(0.0, now - since))
            for area, since in self._backend.covers()
            if all(area.intersect(Rect(*rect)).empty for _, at, rects in steps if at < since for rect in rects)
        ]

    def check(self, ref: str) -> None:
        """Let a reference pass only if an element that was read has it.

        Raises:
            ActionError: None has, or it is not there any more.
        """
        if ref not in self._known and ref not in self._deep:
            known = self._session is not None
            raise ActionError(
                f"there is no element {ref}" + (" any more" if known else "; read them first"),
                hint="references come from desktop.elements(), and hold for as long as the element shows",
            )

    def place_of(self, ref: str) -> tuple[str, Point | None]:
        """The title of the window that an element was read in last, and its middle; empty and None where that is not known."""
        known = self._known if ref in self._known else self._deep
        if ref not in known:
            return "", None
        root = element = known[ref]
        while root.parent is not None:
            root = known[root.parent]
        return root.name, element.point

    def reach(self, ref: str, timeout: float, patience: float | None) -> Point:
        """The middle of an element when a person could click it: it is on the screen, still, enabled and not covered.

        Of an item with items of its own below it, it is the middle of its own line. `patience` is for `Backend.allow`: each
        look has the whole of it.

        Raises:
            ActionError: It is not there any more.
            DeskhandTimeout: It was not so within `timeout` seconds; says what it was instead.
        """
        clock = self._watch.clock
        heard = clock()
        deadline = heard + timeout
        stillness = Stillness(self._backend, clock, self._watch.sent)
        scroll, steps = None, 0
        hidden: str | None = None
        hurried = False
        while True:
            asked = clock()
            left = deadline - asked
            self._backend.allow(patience)
            found = self._find(ref, max(0.1, min(left, _ONE_READ)), scrolling=scroll is not None)
            element = found[ref]
            obstacle = _obstacle(found, element)
            if element.point is not None:
                hidden = None
            unrest = stillness.amiss(element.box, asked, late=self._tree.toolkit(ref) == CHROMIUM)
            silent = self._unanswered(ref)
            heard = heard if silent else asked
            # What was in the way just before says more than that the next answer is late.
            late = obstacle if silent and clock() - heard < _ONE_READ else None
            amiss = late or silent or obstacle or unrest or self._what_opens(element)
            if not amiss and element.point is not None:
                return own_point(found, element) or element.point
            if element.point is None and left > 0 and (over := self._scroller(found, element)) is not None:
                scroll = scroll or Scroll(self._backend, clock, lambda limit: self._ask_to_scroll(ref, limit))
                did, hidden = scroll.step(found, element, over, quiet=stillness.is_quiet())
                if did and (steps := steps + 1) <= _MOST_STEPS:
                    deadline = clock() + timeout
            if left <= 0:
                raise DeskhandTimeout(f"waited {timeout:g} s to reach {element.line()}: it {hidden or amiss}")
            self._watch.check_stop()
            # What an application has to answer after a change is answered by then, so that the next answer comes at once.
            slow, hurried = not hurried and clock() - asked > PROMPT, True
            self._backend.wait(0.0 if slow else min(left, _LOOK_AGAIN))

    def _unanswered(self, ref: str) -> str:
        """The end of a sentence that says that its application does not answer; empty if it answers."""
        return "belongs to an application that does not answer" if self._tree.is_silent(ref) else ""

    def _find(self, ref: str, timeout: float, *, scrolling: bool) -> Elements:
        """The elements, with those that are scrolled out of sight where the one that is looked for is."""
        found = self.read(timeout, target=ref, scrolling=scrolling)
        if ref not in found and ref in self._deep:
            found = self.read(timeout, deep=True, target=ref, scrolling=scrolling)
        if ref not in found:
            self._deep = Elements()
            self.check(ref)
        return found

    def _ask_to_scroll(self, ref: str, timeout: float) -> bool:
        return self._session is not None and self._session.scroll_to(int(ref[1:]), timeout)

    def can_reach(self, element: Element) -> bool:
        """Whether an element of the last reading can be used, or may be when it is scrolled to."""
        if not element.enabled or element.covered_by is not None:
            return False
        if element.visible:
            return True
        found = self._known if element.ref in self._known else self._deep
        return self._scroller(found, element) is not None

    def _scroller(self, found: Elements, element: Element) -> Element | None:
        """What an element is scrolled out of; None where it is hidden for another reason."""
        return None if self._tree.has_no_size(element.ref) else scroller(found, element)

    def _what_opens(self, element: Element) -> str:
        """What may open in front of an element before it is clicked, as the end of a sentence about it; empty for nothing."""
        if self._session is None or self._tree.toolkit(element.ref) != GTK3 or "focused" in element.states:
            return ""
        written = self._session.since_written(int(element.ref[1:]))
        keyed = self._watch.clock() - self._watch.keyed
        return _LIST if min(keyed, math.inf if written is None else written) < _LIST_OPENS else ""

    def interrupt(self) -> None:
        """From another thread: end the reading under way, which raises `Interrupted`."""
        if (session := self._session) is not None:
            session.interrupt()

    def clear_interrupt(self) -> None:
        """Forget an earlier `interrupt`."""
        if (session := self._session) is not None:
            session.clear_interrupt()

    def forget(self, session: Session) -> None:
        """End this connection, unless it was replaced already."""
        if self._session is session:
            self.close()

    def close(self) -> None:
        """End the connection."""
        if (session := self._session) is not None:
            self._session, self._known, self._deep, self._generation = None, Elements(), Elements(), -1
            self._tree.clear()
            session.close()


def what_changed(
    screen: Screen, since: int, clock: Callable[[], float]
) -> tuple[int, tuple[list[tuple[int, int, int, int]], float]]:
    """The screen's generation, and where it has changed since an earlier one, with the seconds since it did last.

    Args:
        screen: The screen.
        since: The earlier generation; -1 for none.
        clock: Seconds, as in the screen's history.
    """
    generation = screen.generation
    if generation == since or since < 0:
        return generation, ([], 0.0)
    changed = screen.changes(since)
    steps = screen.history(generation - 1)
    return generation, (changed, clock() - steps[-1][1] if steps else 0.0)


def places(windows: Sequence[Window]) -> list[tuple[int, tuple[int, int, int, int]]]:
    """Windows as a session wants them: their processes, and where they are."""
    return [(window.pid or 0, _native_rect(window.rect)) for window in windows]


def _obstacle(found: Elements, element: Element) -> str | None:
    """Why a person could not click an element, as the end of a sentence about it."""
    if not element.enabled:
        return "is disabled"
    if element.point is None:
        return "is not on the screen"
    if element.covered_by is not None:
        return f"is covered by the window {element.covered_by!r}"
    in_the_way = found.in_the_way(element)
    return f"is {in_the_way}" if in_the_way else None


def own_point(found: Elements, element: Element) -> Point | None:
    """A point of an item's own line, where its middle is in an item below it; None where the middle is its own.

    The box of an item of a tree may have the items below it, as in browsers.
    """
    box, point = element.box, element.point
    if element.role not in _ITEMS or box is None or point is None:
        return None
    top = box.bottom
    inside = False
    for each in found:
        if each.ref == element.ref:
            inside = True
        elif inside:
            if each.depth <= element.depth:
                break
            if each.role == element.role and each.box is not None:
                top = min(top, each.box.y)
    if not box.y < top <= point.y:
        return None
    # The point is the middle of what shows. Where it is below the box's, twice that is cut off at the top.
    shown = box.y + max(0, 2 * (point.y - box.y - box.height // 2))
    return Point(point.x, (shown + top) // 2) if shown < top else None


def _native_rect(rect: Rect) -> tuple[int, int, int, int]:
    return rect.x, rect.y, rect.width, rect.height
