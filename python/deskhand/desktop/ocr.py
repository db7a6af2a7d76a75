"""What a screen shows, for those who ask for elements: the accessibility tree, and texts read from pixels where there is none.

This module owns which pixels are read when, and how texts become elements. How a line is read is in `ocr_engine`, which is
imported with the first reading that asks for it.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

from deskhand._core.elements import Element, Elements, clean_text
from deskhand._core.geometry import Rect
from deskhand._core.text_lines import (
    Found,
    alike,
    bands,
    follow,
    grow,
    in_order,
    middle,
    replaced,
    silent_areas,
    subtract,
)
from deskhand.desktop.element_tree import TELLS_NOTHING
from deskhand.desktop.elements import ElementReader
from deskhand.errors import ActionError, UnsupportedAction

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from deskhand._core.geometry import Point
    from deskhand._core.text_lines import Line
    from deskhand._core.window import Window
    from deskhand.backends.protocols import Backend
    from deskhand.desktop.watcher import Watch
    from deskhand.machine.interface import DesktopMachine

_STATES = frozenset({"enabled", "sensitive", "showing", "visible"})
# Pixels of a picture that the library gets at once: its memory grows with them, and nothing stops it before it has found their
# lines.
_AT_ONCE = 1 << 18
# Texts that one reading recognises, whatever comes of them, and those that are kept.
_MOST_READ, _MOST_KEPT = 600, 3000


class ScreenReader:
    """Reads the elements of one desktop, and its texts where that is asked for. Its calls are made within a turn."""

    __slots__ = ("_known", "_no_tree", "_texts", "_tree", "_tree_read", "_version")

    def __init__(
        self, backend: Backend, watch: Watch, environment: Mapping[str, str], inside: DesktopMachine | None = None
    ) -> None:
        """As `ElementReader`; nothing is connected or loaded yet."""
        self._tree = ElementReader(backend, watch, environment, inside)
        self._texts = _TextReader(backend, watch.check_stop)
        self._no_tree = False
        self._known = Elements()
        self._tree_read: Elements | None = None
        # Versions of trees are not negative.
        self._version = 0

    @property
    def generation(self) -> int:
        """The screen's generation that the tree was last read at; -1 before the first time."""
        return self._tree.generation

    @property
    def tree(self) -> ElementReader:
        """Reads the accessibility tree."""
        return self._tree

    def open(self, timeout: float) -> None:
        """As `ElementReader.open`."""
        self._tree.open(timeout)

    def read(self, timeout: float, *, ocr: bool = False, deep: bool = False) -> Elements:
        """The elements as they are now.

        Args:
            timeout: Seconds to wait for applications.
            ocr: Also what is read from the pixels of applications that do not say what they show.
            deep: As for `ElementReader.read`.

        Raises:
            UnsupportedAction: This desktop has no accessibility bus, and `ocr` is not set.
            MissingExtra: The library that reads texts is not installed.
            BackendError: The bus has gone, or refuses; or the library failed.
        """
        if not ocr:
            return self._tree.read(timeout, deep=deep)
        tree = self._read_tree(timeout, deep=deep)
        changed = self._texts.read(tree)
        if changed or tree is not self._tree_read:
            self._version -= 1
            self._tree_read = tree
            left_out = [sentence for sentence in tree.left_out if not sentence.endswith(TELLS_NOTHING)]
            texts = self._texts.elements
            self._known = Elements((*tree.all, *texts), (*left_out, *self._texts.left_out), self._version)
        return self._known

    def _read_tree(self, timeout: float, *, deep: bool) -> Elements:
        if not self._no_tree:
            try:
                return self._tree.read(timeout, deep=deep)
            except UnsupportedAction:
                self._no_tree = True
        return _NO_TREE

    def check(self, ref: str) -> None:
        """Let a reference pass only if an element that was read has it.

        Raises:
            ActionError: None has, or it is not there any more.
        """
        if not _is_text(ref):
            self._tree.check(ref)
        elif ref not in self._known:
            raise ActionError(
                f"there is no text {ref} any more" if self._version else f"there is no text {ref}; read them first",
                hint="references of texts come from desktop.elements(ocr=True), and hold while the text stays where it is",
            )

    def place_of(self, ref: str) -> tuple[str, Point | None]:
        """The title of an element's window, empty for a text, and the middle of what shows of the element, as last read."""
        if not _is_text(ref):
            return self._tree.place_of(ref)
        return "", self._known[ref].point if ref in self._known else None

    def reach(self, ref: str, timeout: float, patience: float | None) -> Point:
        """As `ElementReader.reach`; a text is where it was, or has another reference.

        Raises:
            ActionError: It is not there any more.
            DeskhandTimeout: It was not so within `timeout` seconds; says what it was instead.
        """
        if not _is_text(ref):
            return self._tree.reach(ref, timeout, patience)
        found = self.read(timeout, ocr=True)
        self.check(ref)
        point = found[ref].point
        assert point is not None  # noqa: S101 # a text is kept only where it shows
        return point

    def can_reach(self, element: Element) -> bool:
        """As `ElementReader.can_reach`; a text that was read can be used."""
        return _is_text(element.ref) or self._tree.can_reach(element)

    def interrupt(self) -> None:
        """From another thread: end a reading of the tree that is under way, or the next one."""
        self._tree.interrupt()

    def clear_interrupt(self) -> None:
        """Forget an earlier `interrupt`."""
        self._tree.clear_interrupt()

    def close(self) -> None:
        """End the connection, and forget what was read."""
        self._tree.close()
        self._texts.forget()
        self._known, self._tree_read = Elements(), None


_NO_TREE = Elements()


def _is_text(ref: str) -> bool:
    return ref.startswith("t")


class _TextReader:
    """The texts of the parts of a screen whose applications do not say what they show.

    Attributes:
        elements: The texts, as one reads.
        left_out: What was not read, a sentence each.
    """

    __slots__ = (
        "_areas",
        "_backend",
        "_check",
        "_epoch",
        "_found",
        "_generation",
        "_last",
        "_tree",
        "_unread",
        "_windows",
        "elements",
        "left_out",
    )

    def __init__(self, backend: Backend, check: Callable[[], None]) -> None:
        """Of a backend's screen; `check` raises when a call is to end."""
        self._backend = backend
        self._check = check
        self._last = 0
        self.elements: tuple[Element, ...] = ()
        self.left_out: tuple[str, ...] = ()
        self.forget()

    def forget(self) -> None:
        """What was read; references are not given again."""
        self._generation = -1
        self._epoch = -1
        self._tree: Elements | None = None
        self._areas: list[Rect] = []
        self._windows: list[Window] = []
        self._found: list[Found] = []
        self._unread: list[Rect] = []
        self.elements = self.left_out = ()

    def read(self, tree: Elements) -> bool:
        """Read what has changed; whether anything is different now.

        Args:
            tree: What applications say, whose windows are not read.
        """
        self._backend.look()
        screen = self._backend.screen
        generation = screen.generation
        if generation == self._generation and tree is self._tree and not self._unread:
            return False
        if screen.epoch != self._epoch:
            self.forget()
            self._epoch = screen.epoch
        whole = Rect(0, 0, *screen.size)
        if generation != self._generation or tree is not self._tree:
            self._windows = self._backend.windows() if self._backend.has_windows else []
        areas = _areas_of(whole, self._windows, tree)
        dirty = [whole] if self._generation < 0 else [Rect(*rect) for rect in screen.changes(self._generation)]
        dirty += self._unread
        dirty += _without(areas, self._areas)
        dirty = [part for rect in dirty for area in areas if not (part := rect.intersect(area)).empty]
        before = self.elements, self.left_out
        # Whatever ends the reading, what was to be read is read by the next one.
        self._unread, self._areas, self._generation, self._tree = dirty, areas, generation, tree
        self._found = [found for found in self._found if _shows(found.line, areas)]
        self._read_again(grow(dirty, (found.line for found in self._found), whole), whole)
        self.elements = tuple(self._element(found) for found in in_order(self._found))
        self.left_out = self._left_out()
        return (self.elements, self.left_out) != before

    def _read_again(self, regions: Sequence[Rect], whole: Rect) -> None:
        """Read regions anew, until as many texts were recognised as one reading may."""
        left = itertools.count(_MOST_READ, -1)

        def goes_on() -> bool:
            self._check()
            return next(left) > 0

        parts = [
            (region, read, counts)
            for region in sorted(regions, key=lambda rect: (rect.y, rect.x))
            for read, counts in bands(region, _AT_ONCE, whole)
        ]
        self._unread = [region.intersect(counts) for region, _, counts in parts]
        for region, read, counts in parts:
            lines = self._lines(read, goes_on)
            if lines is None:
                break
            shown = [line for line in lines if _shows(line, self._areas)]
            stays, gone, here = replaced(self._found, shown, region, counts)
            followed, self._last = follow(gone, here, self._last)
            self._found = [*stays, *followed][:_MOST_KEPT]
            self._unread = self._unread[1:]

    def _lines(self, region: Rect, goes_on: Callable[[], bool]) -> list[Line] | None:
        import numpy as np  # noqa: PLC0415 # it costs every program's start, and few read texts

        from deskhand.desktop.ocr_engine import engine  # noqa: PLC0415 # as above

        width, height, rgb = self._backend.screen.rgb(None, region, cursor=False)
        picture = np.frombuffer(rgb, np.uint8).reshape(height, width, 3).copy()
        for hole in _without([region], self._areas):
            picture[hole.y - region.y : hole.bottom - region.y, hole.x - region.x : hole.right - region.x] = 0
        lines = engine().lines(picture, goes_on)
        return lines and [
            replace(line, box=Rect(line.box.x + region.x, line.box.y + region.y, line.box.width, line.box.height))
            for line in lines
        ]

    def _element(self, found: Found) -> Element:
        line = found.line
        point = middle(line.box)
        shown = (window for window in reversed(self._windows) if not window.minimized and window.rect.contains(point))
        window = next(shown, None)
        return Element(
            ref=f"t{found.number}",
            role="text",
            name=line.text,
            text=line.text,
            states=_STATES,
            box=line.box,
            point=point,
            application="" if window is None else clean_text(window.class_name),
            pid=0 if window is None else window.pid or 0,
            native_role="static",
            source="ocr",
            confidence=line.confidence,
        )

    def _left_out(self) -> tuple[str, ...]:
        reasons = []
        if self._unread:
            reasons.append(
                f"{len(self._unread)} parts of the screen have too many texts to be read at once: call again for the next"
            )
        if len(self._found) >= _MOST_KEPT:
            reasons.append(f"the screen has more texts than the {_MOST_KEPT} that are kept")
        return tuple(reasons)


def _areas_of(whole: Rect, windows: Sequence[Window], tree: Elements) -> list[Rect]:
    """The parts of the screen that are read from pixels."""
    if not tree.all:
        return [whole]
    telling = {element.pid for element in tree}
    tops = [(element.pid, element.box) for element in tree if element.depth == 0 and element.point is not None]
    popups = [
        box
        for pid, box in tops
        if box is not None and not any(window.pid == pid and alike(window.rect, box) for window in windows)
    ]
    return silent_areas(whole, windows, telling, popups)


def _without(areas: Sequence[Rect], others: Sequence[Rect]) -> list[Rect]:
    left = list(areas)
    for other in others:
        left = subtract(left, other)
    return left


def _shows(line: Line, areas: Sequence[Rect]) -> bool:
    point = middle(line.box)
    return any(area.contains(point) for area in areas)
