"""Reading the elements of a desktop: the connection to its accessibility bus, and what is made of the answers.

This module owns where the bus is found and which window covers which element. What is asked of applications, and what is kept
of their answers, is in Rust (`rust/elements`).
"""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING

from deskhand._core.elements import Element, Elements, clean_text, role_names
from deskhand._core.geometry import Point, Rect
from deskhand._core.redaction import one_line
from deskhand._core.roles import CLIPPING, ROLES, UNCLIPPED, states_of
from deskhand._native import Elements as Session
from deskhand._native import accessibility_address
from deskhand.desktop.scrolling import Scroll, scroller
from deskhand.errors import ActionError, BackendError, ConnectFailed, DeskhandTimeout, UnsupportedAction

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

    from deskhand._core.window import Window
    from deskhand.backends.protocols import Backend
    from deskhand.desktop.watcher import Watch
    from deskhand.machine.interface import Inside

    _Application: TypeAlias = tuple[str, str, str, int, str]
    _Given: TypeAlias = tuple[
        tuple[int, int, int, int, int],
        tuple[str, str, str | None, float | None],
        tuple[int, int, int, int] | None,
        tuple[str, ...],
        int,
    ]
    # What an element is made of: given as it was, it is made again.
    _Basis: TypeAlias = tuple[_Given, Rect | None, Rect, tuple[Window, ...], str | None]

_LONGEST_TITLE = 80
# Seconds: for one reading within a wait, between two of them, and without a change before something counts as still.
_ONE_READ = 1.0
_LOOK_AGAIN = 0.04
_STILL = 0.08
# The same for an element that was seen to move: a starved application pauses between two steps.
_STILL_AGAIN = 0.25
_POLL = 0.01
# As much as a window with its frame and the same without have in common, at least.
_SAME_WINDOW = 0.5
# Times that something is scrolled on the way to one element, at most.
_MOST_STEPS = 60
# Where GTK 3 says that something is which is scrolled out of sight.
_NOWHERE = -(2**31)
TELLS_NOTHING = "its program exposes no accessibility tree"
_ROOT_PANE = ROLES.index("root-pane")
_NONE = Point(0, 0)
# Pixels by which a part of GTK may be higher than what LibreOffice has put it in.
_ROUNDED = 2
_NO_BUS = (
    "its programs expose no accessibility tree. They do on a desktop that is launched here or in a container, where "
    "at-spi2-core is installed (apt-get install at-spi2-core), without elements=False. Texts can be read from pixels: "
    "desktop.elements(ocr=True), after pip install 'deskhand[ocr]'"
)


class ElementReader:
    """Reads the elements of one desktop. Its calls are made within a turn."""

    __slots__ = (
        "_backend",
        "_deep",
        "_environment",
        "_generation",
        "_inside",
        "_known",
        "_raw",
        "_session",
        "_watch",
        "_windows",
    )

    def __init__(
        self, backend: Backend, watch: Watch, environment: Mapping[str, str], inside: Inside | None = None
    ) -> None:
        """Of a desktop whose programs get `environment`, here or on a machine of its own; nothing is connected yet."""
        self._backend = backend
        self._inside = inside
        self._watch = watch
        self._environment = environment
        self._session: Session | None = None
        self._generation = -1
        self._windows: list[Window] = []
        self._known = Elements()
        self._deep = Elements()
        self._raw: dict[str, tuple[_Basis, Element]] = {}

    @property
    def generation(self) -> int:
        """The screen's generation that the elements were last read at; -1 before the first time."""
        return self._generation

    def open(self, timeout: float) -> Session:
        """Connect to the accessibility bus, where that is not done yet.

        Raises:
            UnsupportedAction: This desktop has no accessibility bus.
            BackendError: The bus refuses.
        """
        if self._session is None:
            self._session = self._connect(timeout)
        return self._session

    def read(
        self, timeout: float, *, deep: bool = False, target: str | None = None, scrolling: bool = False
    ) -> Elements:
        """The elements as they are now.

        Args:
            timeout: Seconds to wait for applications; who has not answered by then is named, and has the elements of before.
            deep: Also those that are scrolled out of sight. Takes longer, the first time by far.
            target: One that is to be acted on: where it is is asked again of a toolkit that does not tell when it moves.
            scrolling: Whether what shows the target is being scrolled: it is asked again whatever its toolkit.

        Raises:
            UnsupportedAction: This desktop has no accessibility bus.
            BackendError: The bus has gone, or refuses.
        """
        session = self.open(timeout)
        self._backend.look()
        screen = self._backend.screen
        generation = screen.generation
        changed: list[tuple[int, int, int, int]] = []
        moved = False
        if generation != self._generation:
            if self._generation >= 0:
                changed = screen.changes(self._generation)
            windows = self._backend.windows() if self._backend.has_windows else []
            moved = windows != self._windows
            self._windows = windows
        places = [(window.pid or 0, _native_rect(window.rect)) for window in self._windows]
        try:
            version = None if moved or deep else self._known.version
            wanted = deep, None if target is None else int(target[1:]), scrolling
            found = session.read(changed, places, timeout, version, wanted)
        except BackendError:
            # Whoever asks next begins anew.
            self.close()
            raise
        self._generation = generation
        if found is not None:
            elements = self._elements(*found)
            if deep:
                self._deep = elements
                return elements
            self._known = elements
        return self._known

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

    def reach(self, ref: str, timeout: float) -> Point:
        """The middle of an element when a person could click it: it is on the screen, still, enabled and not covered.

        Raises:
            ActionError: It is not there any more.
            DeskhandTimeout: It was not so within `timeout` seconds; says what it was instead.
        """
        clock = self._watch.clock
        deadline = clock() + timeout
        before, since, moved = None, clock(), False
        scroll, steps = None, 0
        hidden: str | None = None
        while True:
            left = deadline - clock()
            found = self._find(ref, max(0.1, min(left, _ONE_READ)), scrolling=scroll is not None)
            element = found[ref]
            obstacle = _obstacle(found, element)
            if element.point is not None:
                hidden = None
            if element.box != before:
                before, since, moved = element.box, clock(), before is not None
            rested = clock() - since
            still = rested >= _STILL_AGAIN if moved else rested >= _STILL or self._is_quiet()
            if obstacle is None and element.point is not None and still:
                return element.point
            if element.point is None and left > 0 and (over := self._scroller(found, element)) is not None:
                scroll = scroll or Scroll(self._backend, clock, lambda limit: self._ask_to_scroll(ref, limit))
                did, hidden = scroll.step(found, element, over, quiet=self._is_quiet())
                if did and (steps := steps + 1) <= _MOST_STEPS:
                    deadline = clock() + timeout
            if left <= 0:
                said = hidden or obstacle or "moves"
                raise DeskhandTimeout(f"waited {timeout:g} s to reach {element.line()}: it {said}")
            self._watch.check_stop()
            self._backend.wait(min(left, _LOOK_AGAIN))

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
        area = self._raw[element.ref][0][0][2] if element.ref in self._raw else None
        if area is not None and Rect(*area).empty:
            return None
        return scroller(found, element)

    def _is_quiet(self) -> bool:
        """Whether nothing has changed on the screen for as long as an animation takes for several steps."""
        screen = self._backend.screen
        changes = screen.history(screen.generation - 1)
        return not changes or self._watch.clock() - changes[-1][1] >= _STILL

    def interrupt(self) -> None:
        """From another thread: end the reading under way, which raises `Interrupted`."""
        if (session := self._session) is not None:
            session.interrupt()

    def clear_interrupt(self) -> None:
        """Forget an earlier `interrupt`."""
        if (session := self._session) is not None:
            session.clear_interrupt()

    def close(self) -> None:
        """End the connection."""
        if (session := self._session) is not None:
            self._session, self._known, self._deep, self._generation = None, Elements(), Elements(), -1
            self._raw.clear()
            session.close()

    def _connect(self, timeout: float) -> Session:
        if self._inside is not None:
            return self._connect_inside(self._inside, timeout)
        address = _session_bus(self._environment)
        if address is None or self._environment.get("NO_AT_BRIDGE") == "1":
            raise UnsupportedAction(self._backend.name, "elements", _NO_BUS)
        try:
            found = accessibility_address(_open(address, timeout), timeout)
        except BackendError as error:
            hint = f"{_NO_BUS} ({one_line(str(error), 200)})"
            raise UnsupportedAction(self._backend.name, "elements", hint) from None
        return Session(_open(found, timeout), timeout)

    def _connect_inside(self, inside: Inside, timeout: float) -> Session:
        clock = self._watch.clock
        deadline = clock() + timeout
        while True:
            try:
                entered = inside.enter_accessibility()
            except ConnectFailed as error:
                # Nobody waited for it when the desktop was started.
                if clock() >= deadline:
                    raise BackendError(f"cannot reach the accessibility bus: {error.reason}") from error
                self._watch.check_stop()
                self._backend.wait(_POLL)
            else:
                return Session(entered, max(_POLL, deadline - clock()))

    def _elements(
        self,
        version: int,
        applications: list[_Application],
        found: list[_Given],
    ) -> Elements:
        screen = Rect(0, 0, *self._backend.size)
        raw: dict[str, tuple[_Basis, Element]] = {}
        known = self._raw
        elements: list[Element] = []
        # Of the elements that the next one may be in: depth, reference, role, what it shows of what is in it, and how far what
        # its application says of places is off.
        above: list[tuple[int, str, str, Rect, Point]] = []
        shift = _NONE
        over: tuple[Window, ...] = ()
        for given in found:
            (number, depth, place, role, states), (name, description, text, value), area, actions, hidden = given
            ref = f"e{number}"
            application, toolkit, _, pid, _ = applications[place]
            while above and above[-1][0] >= depth:
                above.pop()
            _, parent, parent_role, clip, off = above[-1] if above else (0, None, "", screen, _NONE)
            if depth == 0:
                shift, over = self._placed(pid, name, area, relative=toolkit == "GTK")
            box = None if area is None else Rect(area[0] + shift.x, area[1] + shift.y, area[2], area[3])
            if box is not None and (box.empty or area == (-1, -1, -1, -1) or box.x - shift.x == _NOWHERE):
                box = None
            if box is not None and parent is not None and (off != _NONE or role == _ROOT_PANE):
                off = _off(role, box, raw[parent][1].box, off)
                box = Rect(box.x + off.x, box.y + off.y, box.width, box.height)
            seen = clip if box is None else box.intersect(clip)
            basis = (given, box, seen, over, parent)
            before = known.get(ref)
            if before is not None and before[0] == basis:
                element = before[1]
            else:
                aria, native = role_names(role, parent_role)
                point = (
                    None if box is None or seen.empty else Point(seen.x + seen.width // 2, seen.y + seen.height // 2)
                )
                element = Element(
                    ref=ref,
                    role=aria,
                    name=clean_text(name),
                    description=clean_text(description),
                    text=None if text is None else clean_text(text),
                    value=value,
                    states=states_of(states),
                    box=box,
                    point=point,
                    actions=tuple(clean_text(action) for action in actions),
                    depth=depth,
                    parent=parent,
                    application=clean_text(application),
                    pid=pid,
                    covered_by=None if point is None else _covering(over, point),
                    hidden=hidden,
                    native_role=native,
                )
            raw[ref] = (basis, element)
            elements.append(element)
            if element.native_role in CLIPPING or (toolkit == "Qt" and element.native_role == "filler"):
                clip = seen
            elif element.native_role in UNCLIPPED:
                clip = screen
            above.append((depth, ref, element.role, clip, off))
        self._raw = raw
        return Elements(tuple(elements), tuple(self._left_out(applications)), version)

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


def _native_rect(rect: Rect) -> tuple[int, int, int, int]:
    return rect.x, rect.y, rect.width, rect.height


def _session_bus(environment: Mapping[str, str]) -> str | None:
    address = environment.get("DBUS_SESSION_BUS_ADDRESS", "")
    return address if address.startswith("unix:") else None


def _open(address: str, timeout: float) -> int:
    """A descriptor of a socket that is connected to a bus; the caller's.

    Args:
        address: As D-Bus writes it: `unix:path=/run/bus,guid=...`.
        timeout: Seconds.
    """
    first = address.split(";", maxsplit=1)[0]
    transport, _, rest = first.partition(":")
    fields = dict(pair.split("=", 1) for pair in rest.split(",") if "=" in pair)
    path, abstract = fields.get("path"), fields.get("abstract")
    if transport != "unix" or (path is None and abstract is None):
        raise BackendError(f"the accessibility bus is at {one_line(address, 200)!r}, which is no Unix socket")
    from urllib.parse import unquote  # noqa: PLC0415 # for the first reading alone

    name = unquote(path) if path is not None else "\0" + unquote(abstract or "")
    with contextlib.ExitStack() as kept:
        connection = kept.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        connection.settimeout(timeout)
        try:
            connection.connect(name)
        except (OSError, ValueError) as error:
            raise BackendError(f"cannot reach the accessibility bus at {one_line(address, 200)!r}: {error}") from None
        connection.settimeout(0)
        return connection.detach()
