"""What elements are made of: what applications tell, cut to what shows, with the windows that cover it.

This module owns where an element is on the screen, and which window covers which element.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from deskhand._core.elements import Element, Elements, clean_text, role_names
from deskhand._core.geometry import Point, Rect
from deskhand._core.redaction import one_line
from deskhand._core.roles import CLIPPING, ROLES, UNCLIPPED, states_of

if TYPE_CHECKING:
    from typing import TypeAlias

    from deskhand._core.window import Window

    _Application: TypeAlias = tuple[str, str, str, int, str]
    _Given: TypeAlias = tuple[
        tuple[int, int, int, int, int],
        tuple[str, str, str | None, float | None],
        tuple[int, int, int, int] | None,
        tuple[str, ...],
        int,
    ]

TELLS_NOTHING = "its program exposes no accessibility tree"
# What `rust/elements` reports of an application that did not answer.
_SILENT = "it does not answer"
# What toolkits call themselves.
CHROMIUM, GTK3, QT = "Chromium", "gtk", "Qt"
# What shows only a part of what is in it in Qt as well, by AT-SPI's names.
_LISTS = {"list", "table", "tree", "tree-table"}
_CLIPPING_IN_QT = {"filler", *_LISTS}
_LONGEST_TITLE = 80
# As much as a window with its frame and the same without have in common, at least.
_SAME_WINDOW = 0.5
# The place that GTK 3 reports for an element that is scrolled out of sight.
_NOWHERE = -(2**31)
_ROOT_PANE = ROLES.index("root-pane")
_NONE = Point(0, 0)
# Pixels by which a part of GTK may be higher than what LibreOffice has put it in.
_ROUNDED = 2


class _Around(NamedTuple):
    """What an element is to those that are in it."""

    depth: int
    ref: str | None
    role: str
    box: Rect | None
    # What it shows of what is in it, and how far what its application says of places is off.
    clip: Rect
    off: Point
    closed: bool


class _Frame(NamedTuple):
    """What holds for all that is in one window: how far places are off, and the windows above it."""

    shift: Point
    over: tuple[Window, ...]


class _Made(NamedTuple):
    """An element, and what it was made of."""

    given: _Given
    around: _Around
    frame: _Frame
    element: Element
    within: _Around


class ElementTree:
    """Makes elements, and keeps those that are made of what they were made of before."""

    __slots__ = ("_applications", "_made", "_screen", "_windows")

    def __init__(self) -> None:
        """Begin without elements."""
        self._made: dict[str, _Made] = {}
        self._applications: list[_Application] = []
        self._windows: list[Window] = []
        self._screen = _Around(-1, None, "", None, Rect(0, 0, 0, 0), _NONE, closed=False)

    def clear(self) -> None:
        """Forget all elements."""
        self._made.clear()

    def has_no_size(self, ref: str) -> bool:
        """Whether an application reports an element without a size."""
        area = self._made[ref].given[2] if ref in self._made else None
        return area is not None and Rect(*area).empty

    def toolkit(self, ref: str) -> str:
        """What the toolkit of an element's application calls itself; empty where that is not known."""
        return self._applications[self._made[ref].given[0][2]][1] if ref in self._made else ""

    def is_silent(self, ref: str) -> bool:
        """Whether an element's application does not answer, so that what is known of it is out of date."""
        return ref in self._made and self._applications[self._made[ref].given[0][2]][4] == _SILENT

    def make(
        self,
        version: int,
        applications: list[_Application],
        found: list[_Given],
        windows: list[Window],
        screen: Rect,
    ) -> Elements:
        """The elements that applications have reported.

        Args:
            version: The version of these reports.
            applications: These applications.
            found: What they reported of their elements, each after the element that contains it.
            windows: The windows of the desktop, the lowest first.
            screen: The whole screen.
        """
        known = self._made
        if screen != self._screen.clip or [each[:4] for each in applications] != [
            each[:4] for each in self._applications
        ]:
            self._screen, known = self._screen._replace(clip=screen), {}
        self._windows, self._applications = windows, applications
        made: dict[str, _Made] = {}
        # What the next one may be in.
        above = [self._screen]
        frame = _Frame(_NONE, ())
        for given in found:
            number, depth, place, _, _ = given[0]
            ref = f"e{number}"
            while above[-1].depth >= depth:
                above.pop()
            around, kept = above[-1], known.get(ref)
            if depth == 0:
                _, toolkit, _, pid, _ = applications[place]
                frame = _Frame(*self._placed(pid, given[1][0], given[2], relative=toolkit == "GTK"))
                if kept is not None and kept.frame == frame:
                    frame = kept.frame
            # Most of a tree is as it was, and then what is around an element is the same object, not only an equal one.
            if kept is None or kept.around is not around or kept.frame is not frame or kept.given != given:
                before, kept = kept, self._make(ref, given, around, frame)
                if before is not None and before.within == kept.within:
                    kept = kept._replace(within=before.within)
            made[ref] = kept
            above.append(kept.within)
        self._made = made
        elements = tuple([each.element for each in made.values()])
        return Elements(elements, tuple(self._left_out(applications)), version)

    def _make(self, ref: str, given: _Given, around: _Around, frame: _Frame) -> _Made:
        (_, depth, place, role, states), (name, description, text, value), area, actions, hidden = given
        application, toolkit, _, pid, _ = self._applications[place]
        shift, off = frame.shift, around.off
        box = None if area is None else Rect(area[0] + shift.x, area[1] + shift.y, area[2], area[3])
        if box is not None and (box.empty or area == (-1, -1, -1, -1) or box.x - shift.x == _NOWHERE):
            box = None
        if box is not None and around.ref is not None and (off != _NONE or role == _ROOT_PANE):
            off = _off(role, box, around.box, off)
            box = Rect(box.x + off.x, box.y + off.y, box.width, box.height)
        if toolkit == QT and around.closed:
            box = None
        seen = around.clip if box is None else box.intersect(around.clip)
        aria, native = role_names(role, around.role)
        point = None if box is None or seen.empty else Point(seen.x + seen.width // 2, seen.y + seen.height // 2)
        shown = states_of(states)
        if toolkit == QT and native in _LISTS and around.role == "combobox" and point is not None:
            # It takes every click until it is closed, and Qt does not say so.
            shown |= {"modal"}
        element = Element(
            ref=ref,
            role=aria,
            name=clean_text(name),
            description=clean_text(description),
            text=None if text is None else clean_text(text),
            value=value,
            states=shown,
            box=box,
            point=point,
            actions=tuple(clean_text(action) for action in actions),
            depth=depth,
            parent=around.ref,
            application=clean_text(application),
            pid=pid,
            covered_by=None if point is None else _covering(frame.over, point),
            hidden=hidden,
            native_role=native,
        )
        clip = around.clip
        if native in CLIPPING or (toolkit == QT and native in _CLIPPING_IN_QT):
            clip = seen
        elif native in UNCLIPPED:
            clip = self._screen.clip
        # Qt 5 says of the items of a list that has not opened that they show, and a wrong place.
        within = _Around(depth, ref, aria, box, clip, off, closed=native in _LISTS and box is None)
        return _Made(given, around, frame, element, within)

    def _left_out(self, applications: list[_Application]) -> list[str]:
        said = [f"{one_line(name, _LONGEST_TITLE)!r}: {reason}" for name, _, _, _, reason in applications if reason]
        there = {pid for _, _, _, pid, _ in applications}
        silent = [window for window in self._windows if window.pid not in there and not window.minimized]
        return said + [f"the window {one_line(window.title, _LONGEST_TITLE)!r}: {TELLS_NOTHING}" for window in silent]

    def _placed(
        self, pid: int, title: str, area: tuple[int, int, int, int] | None, *, relative: bool
    ) -> tuple[Point, tuple[Window, ...]]:
        """How far an element's place is from that in its window, and the windows above that."""
        shown = [window for window in self._windows if not window.minimized]
        mine = [at for at, window in enumerate(shown) if window.pid == pid]
        if not mine or area is None:
            return Point(0, 0), ()
        if relative:
            at = next((at for at in mine if shown[at].title == title), mine[-1])
            rect = shown[at].rect
            # The shadow of a window that draws its own frame is a part of it for the server, and none for its elements.
            return Point(rect.x + (rect.width - area[2]) // 2, rect.y + (rect.height - area[3]) // 2), tuple(
                shown[at + 1 :]
            )
        box = Rect(*area)
        # A dialog that fills the screen is as like the window behind it as its own.
        at = max(mine, key=lambda at: (bool(title) and shown[at].title == title, _likeness(shown[at].rect, box)))
        # A menu is a window that no window manager lists, and above all that it does.
        listed = _likeness(shown[at].rect, box) >= _SAME_WINDOW
        return Point(0, 0), tuple(shown[at + 1 :]) if listed else ()


def _likeness(one: Rect, other: Rect) -> float:
    """What two rectangles share, as a part of what they cover together."""
    both = one.intersect(other)
    shared = both.width * both.height
    return shared / max(1, one.width * one.height + other.width * other.height - shared)


def _covering(over: tuple[Window, ...], point: Point) -> str | None:
    for window in reversed(over):
        if window.rect.contains(point):
            return one_line(window.title, _LONGEST_TITLE)
    return None


def _off(role: int, box: Rect, around: Rect | None, off: Point) -> Point:
    """How far LibreOffice is off with the place of an element, which is in one that it is off by `off` with.

    It forgets its menu bar until a pointer moves in the window. Its root pane fills what that is in, and so do GTK's own
    parts in it, whose places are right.
    """
    if around is None or box.width != around.width or abs(box.height - around.height) > _ROUNDED:
        return off
    if role == _ROOT_PANE:
        return Point(around.x - box.x, around.y - box.y)
    return _NONE if (box.x, box.y) == (around.x, around.y) else off
