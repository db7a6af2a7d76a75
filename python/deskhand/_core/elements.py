"""Elements: what applications say that they show. Values, how they are found, and which are worth a line for a model.

Names, texts and descriptions come from applications: they are untrusted, and cleaned of control characters here. This module
does no I/O.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args, overload

from deskhand._core.labels import nearest_label
from deskhand._core.outline import Entry, cut, differences
from deskhand._core.redaction import clean
from deskhand._core.roles import ARIA_ROLES, GENERIC, ROLES, aria_role

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deskhand._core.geometry import Point, Rect, Viewport

ElementState: TypeAlias = Literal["visible", "hidden", "enabled", "disabled", "checked", "unchecked", "focused"]
"""What an element can be waited to be."""

STATES: tuple[str, ...] = get_args(ElementState)
_LONGEST_SHOWN = 80
# What is worth saying of an element's state, in this order.
_SAID = ("disabled", "checked", "selected", "pressed", "expanded", "collapsed", "focused", "required", "busy")
_UNCHANGED = "(unchanged)"
_FIELDS = {"checkbox", "combobox", "listbox", "radio", "slider", "spinbutton", "switch", "textbox"}
# How many elements around a field are looked through for its label, each in the next, and how much is in one.
_LEVELS_OF_A_LABEL = 3
_MOST_AROUND = 500
# AT-SPI's roles of windows that wait while a modal dialog of their application shows.
_BLOCKED = {"alert", "color-chooser", "dialog", "file-chooser", "font-chooser", "frame"}
_LISTS = {"list-box", "menu", "popup-menu", "table", "tree-table"}
# What tells the cell that keys go to.
_CHOSEN = {"focused", "selected"}
_WITH_VALUE = {"slider", "spinbutton", "progressbar", "scrollbar", "meter", "dial"}


@dataclass(frozen=True, slots=True)
class Element:
    """One element of an application: a window, a button, a text...

    Attributes:
        ref: Names it, such as `e12`, or `t12` where OCR has read it: the same element for as long as it lives, and never
            another one afterwards.
        role: ARIA's word for what it is (`button`, `textbox`, `menuitem`), or AT-SPI's where ARIA has none (`terminal`).
        name: What it is called. Untrusted.
        description: What is said of it beyond that. Untrusted.
        text: What is written in it, at most 16,000 bytes; None where it has no text, or hides it as a password's. Untrusted.
        value: Of a slider, a progress bar and the like.
        states: AT-SPI's names of the states that it is in (`focused`, `checked`, `editable`), and `disabled`.
        box: Where it is, in screen pixels; may reach beyond the screen. None where that is not known.
        point: The middle of what is on the screen of it, in screen pixels; None where nothing is.
        actions: What its toolkit offers to do with it. Untrusted.
        depth: In how many elements it is; 0 for a window.
        parent: The reference of the element that it is in; None for a window.
        application: What its application calls itself. Untrusted.
        pid: The process of its application; 0 where that is not known.
        covered_by: The title of the window that covers its middle; None where none does.
        hidden: How many elements it says are in it that are not in the tree, because they do not show or are too many.
        native_role: AT-SPI's name of its role (`push-button`).
        source: Who says so: its application, or OCR, which has read it from pixels.
        confidence: How sure OCR is of its text, 0...1; None of what an application says.
    """

    ref: str
    role: str
    name: str
    description: str = ""
    text: str | None = None
    value: float | None = None
    states: frozenset[str] = frozenset()
    box: Rect | None = None
    point: Point | None = None
    actions: tuple[str, ...] = ()
    depth: int = 0
    parent: str | None = None
    application: str = ""
    pid: int = 0
    covered_by: str | None = None
    hidden: int = 0
    native_role: str = ""
    source: Literal["accessibility", "ocr"] = "accessibility"
    confidence: float | None = None

    @property
    def enabled(self) -> bool:
        """Whether it does anything when it is used."""
        return "disabled" not in self.states

    @property
    def visible(self) -> bool:
        """Whether a part of it is on the screen."""
        return self.point is not None

    @property
    def is_field(self) -> bool:
        """Whether something is written, chosen or set in it."""
        return self.role in _FIELDS or "editable" in self.states

    def line(self, viewport: Viewport | None = None) -> str:
        """One line that says what it is: `button "Save" [e12] (640,400)`.

        Args:
            viewport: The picture that a model was given, whose pixels the point is in; None for the screen's. What it does
                not show has no point.
        """
        words = [self.role]
        if self.name:
            words.append(_quoted(self.name))
        words.append(f"[{self.ref}]")
        if (point := self.point) is not None and (viewport is None or _shows(viewport, point)):
            at = point if viewport is None else viewport.to_model(point)
            words.append(f"({at[0]},{at[1]})")
        words += [state for state in _SAID if state in self.states]
        if self.covered_by is not None:
            words.append("covered")
        if self.role in _WITH_VALUE and self.value is not None:
            words.append(f"= {self.value:g}")
        if self.text and self.text != self.name:
            words.append(f": {_quoted(self.text)}")
        return " ".join(words)


@dataclass(frozen=True, slots=True)
class Query:
    """What elements are looked for by; see `Desktop.find`.

    Attributes:
        role: ARIA's word, or AT-SPI's name.
        name: The name: a text that it contains, whatever its case, or a pattern that is found in it.
        label: The same of what labels it: its name, or where no field has such a name, the text left of it or above it.
        exact: `name`, `label` and `text` are the whole, with its case; how many spaces there are makes no difference.
        text: The same of what is written in it.
        states: All of these are set.
        nth: Which of those that match, from 0, or from the end below 0; None: there must be one only.
    """

    role: str | None = None
    name: str | re.Pattern[str] | None = None
    label: str | re.Pattern[str] | None = None
    exact: bool = False
    text: str | re.Pattern[str] | None = None
    states: tuple[str, ...] = ()
    nth: int | None = None

    def __str__(self) -> str:
        said = []
        if self.role is not None:
            said.append(f"role={self.role!r}")
        for what, wanted in (("name", self.name), ("label", self.label), ("text", self.text)):
            if wanted is not None:
                said.append(f"{what}={wanted.pattern if isinstance(wanted, re.Pattern) else wanted!r}")
        if self.exact:
            said.append("exact=True")
        if self.states:
            said.append(f"states={self.states!r}")
        if self.nth is not None:
            said.append(f"nth={self.nth}")
        return f"find({', '.join(said)})"

    def matches(self, element: Element) -> bool:
        """Whether an element is one of these, apart from where it is and what labels it."""
        # Some words are roles of both, of different things: a text, a menu. ARIA's is meant then.
        if self.role not in {None, element.role} and (self.role != element.native_role or self.role in ARIA_ROLES):
            return False
        if self.name is not None and not self.found(self.name, element.name):
            return False
        if self.text is not None and not self.found(self.text, element.text or ""):
            return False
        return all(state in element.states for state in self.states)

    def found(self, wanted: str | re.Pattern[str], there: str) -> bool:
        """Whether a text that was asked for is the one that is there, or in it."""
        if isinstance(wanted, re.Pattern):
            return wanted.search(there) is not None
        wanted, there = one_spaced(wanted), one_spaced(there)
        return wanted == there if self.exact else wanted.casefold() in there.casefold()


@dataclass(frozen=True, slots=True)
class Elements:
    """The elements that show on a desktop, each after the one that it is in.

    Attributes:
        all: The elements.
        left_out: What is not among them, or not as it is now, a sentence each: an application that does not answer...
        version: Changes whenever something else does.
    """

    all: tuple[Element, ...] = ()
    left_out: tuple[str, ...] = ()
    version: int = 0
    _places: dict[str, int] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._places.update({element.ref: place for place, element in enumerate(self.all)})

    def __len__(self) -> int:
        return len(self.all)

    def __iter__(self) -> Iterator[Element]:
        return iter(self.all)

    def __contains__(self, ref: object) -> bool:
        return (ref.ref if isinstance(ref, Element) else ref) in self._places

    @overload
    def __getitem__(self, ref: str) -> Element: ...

    @overload
    def __getitem__(self, ref: int) -> Element: ...

    def __getitem__(self, ref: str | int) -> Element:
        """The element of a reference, or of a place.

        Raises:
            KeyError: No such element shows.
            IndexError: There are not so many.
        """
        return self.all[ref] if isinstance(ref, int) else self.all[self._places[ref]]

    def within(self, ref: str) -> Sequence[Element]:
        """The elements that are in one, at whatever depth."""
        begin = self._places.get(ref)
        if begin is None:
            return ()
        end = begin + 1
        while end < len(self.all) and self.all[end].depth > self.all[begin].depth:
            end += 1
        return self.all[begin + 1 : end]

    def find_all(self, query: Query, within: Sequence[Element] | None = None) -> list[Element]:
        """The elements that `query` asks for, in the order of the tree; `nth` is left to the caller."""
        found = [element for element in (self.all if within is None else within) if query.matches(element)]
        wanted = query.label
        if wanted is None:
            return found
        fields = [element for element in found if element.is_field]
        named = [element for element in fields if query.found(wanted, element.name)]
        labelled = named or [element for element in fields if query.found(wanted, self.label(element))]
        # A list to choose from, and not the field to write in that it has.
        refs = {element.ref for element in labelled}
        return [element for element in labelled if element.parent not in refs]

    def label(self, field: Element) -> str:
        """The text that labels a field by where it is, in the nearest elements around the field that have such a text."""
        around = field.parent
        for _ in range(_LEVELS_OF_A_LABEL):
            if field.box is None or around is None:
                break
            # The first ones: layouts have no more of them around one field.
            inside = [element for element in self.within(around)[:_MOST_AROUND] if element.visible]
            texts = [
                (e.box, e.name or e.text or "") for e in inside if e.box and e.role == "text" and (e.name or e.text)
            ]
            others = [element.box for element in inside if element.box and element.is_field]
            if (found := nearest_label(field.box, texts, others)) is not None:
                return found
            around = self[around].parent
        return ""

    def behind(self, element: Element) -> Element | None:
        """The modal dialog, popover or open list that a click at an element would only close; None where there is none."""
        mine = [each for each in self.all if each.visible and each.pid == element.pid]
        # A list is in the way of the dialog too that opened it, but not of the field that is written in.
        written = element.is_field and "focused" in element.states
        lists = [] if written else [each for each in mine if self._is_open_list(each)]
        for modal in (lists, [each for each in mine if "modal" in each.states]):
            # One that opened another one is in the way of nothing that it has itself.
            if any(element == each or element in self.within(each.ref) for each in modal):
                return None
            if found := next((each for each in reversed(modal) if self._blocks(each, element)), None):
                return found
        return None

    def in_the_way(self, element: Element) -> str:
        """What else must change before a click reaches an element, as the end of a sentence about it; empty for nothing."""
        # GTK 3 leaves what is in a minimised window where it was.
        if "iconified" in self.window(element).states:
            return "in a minimised window"
        in_front = self.behind(element)
        if in_front is None:
            return ""
        how = " (Escape closes it)" if self._is_open_list(in_front) else ""
        return f"behind {in_front.line()}, which must be closed first{how}"

    def _is_open_list(self, element: Element) -> bool:
        """Whether it is what GTK 3 opens below a field with what could be written there, or chosen."""
        is_popup = element.parent is None and element.native_role == "window" and not element.name
        return is_popup and any(each.native_role in _LISTS for each in self.within(element.ref)[:_MOST_AROUND])

    def _blocks(self, modal: Element, element: Element) -> bool:
        scope = self.window(modal, or_role="document")
        if modal is not scope:
            # A part of a window, or of a page: in the way of the rest of that.
            return element == scope or element in self.within(scope.ref)
        # Menus, and lists that have opened, are windows of their own.
        return self.window(element).native_role in _BLOCKED

    def window(self, element: Element, *, or_role: str = "") -> Element:
        """The window that an element is in, or an element of this role if it is in one."""
        while element.parent is not None and element.role != or_role:
            element = self[element.parent]
        return element

    def text(self, viewport: Viewport | None = None, *, budget: int | None = None) -> str:
        """An outline for a model: a line an element, indented by what it is in.

        What only holds others is left out, and so are the empty cells of a spreadsheet.

        Args:
            viewport: The picture that the model was given; points are in its pixels.
            budget: About how many tokens it may have; what is cut is said in its last line.
        """
        return cut(self._lines(viewport), budget)

    def changes(self, before: Elements, viewport: Viewport | None = None, *, budget: int | None = None) -> str:
        """What is different from `before`: lines that begin with `+`, `-` or `~`. The whole outline where that is shorter."""
        if before.version == self.version:
            return _UNCHANGED
        lines = differences(before._outline(viewport), self._outline(viewport))
        whole = self._lines(viewport)
        if sum(map(len, lines)) >= sum(map(len, whole)):
            lines = whole
        return cut(lines, budget) if lines else _UNCHANGED

    def _is_empty_cell(self, element: Element) -> bool:
        """Whether it is a cell without a text, of a table that has more of them than are in view, and not the chosen one."""
        if element.role != "cell" or element.text or element.parent is None or _CHOSEN & element.states:
            return False
        return self[element.parent].hidden > 0

    def _lines(self, viewport: Viewport | None) -> list[str]:
        lines = [f"{'  ' * entry.depth}- {entry.line}" for entry in self._outline(viewport)]
        return [*lines, *(f"({sentence})" for sentence in self.left_out)]

    def _outline(self, viewport: Viewport | None) -> list[Entry]:
        """What is worth a line."""
        entries = []
        # The lines that the next one may be under: the depth of each in the tree, and its reference.
        over: list[tuple[int, str]] = []
        named: dict[str, str] = {}
        for element in self.all:
            while over and over[-1][0] >= element.depth:
                over.pop()
            above = named.get(element.parent or "", "")
            named[element.ref] = element.name or above
            if not element.visible or _says_nothing(element, above) or self._is_empty_cell(element):
                continue
            entries.append(Entry(len(over), element.ref, over[-1][1] if over else None, element.line(viewport)))
            over.append((element.depth, element.ref))
        return entries


def _says_nothing(element: Element, above: str) -> bool:
    if element.role in GENERIC:
        return not element.name and not element.text
    # A text that repeats the name of what it is in, as in a link or a button.
    return element.role in {"text", "paragraph"} and (element.name or element.text or "").strip() in {"", above.strip()}


def _shows(viewport: Viewport, point: Point) -> bool:
    shown = viewport.shown
    return shown.x <= point.x < shown.right and shown.y <= point.y < shown.bottom


def one_spaced(text: str) -> str:
    """A text with one space where there are several, or line ends, and none around it."""
    return " ".join(text.split())


def _quoted(text: str) -> str:
    line = one_spaced(text).replace('"', "'")
    return f'"{line[: _LONGEST_SHOWN - 1]}…"' if len(line) > _LONGEST_SHOWN else f'"{line}"'


def clean_text(text: str) -> str:
    """A text of an application without control characters but line ends and tabs, and without what stands for objects in it."""
    return text if text.isprintable() and "\ufffc" not in text else clean(text, keep="\n\t").replace("\ufffc", "")


def role_names(number: int, parent: str | None) -> tuple[str, str]:
    """ARIA's word and AT-SPI's name for a role, by its number and the role of the element that it is in."""
    native = ROLES[number] if number < len(ROLES) else f"role-{number}"
    if native == "list-item" and parent in {"listbox", "combobox"}:
        return "option", native
    if native in {"color-chooser", "file-chooser", "font-chooser"} and parent:
        # A part of a dialog.
        return "group", native
    role = aria_role(native)
    # Qt calls a window that is no main window a filler.
    return ("window" if role == "generic" and not parent else role), native
