"""`Locator`: an element that is looked for by what it is, each time that it is needed, and acted on.

This module owns what is asked of an element before something is done with it. How it is looked for and waited for is in
`search`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deskhand._core.arguments import expect_integer, expect_text
from deskhand._core.elements import STATES, Element, Elements, ElementState, one_spaced
from deskhand._core.redaction import Secret
from deskhand.actions import DoubleClick, Drag, KeyPress, LeftClick, MiddleClick, Move, RightClick, TripleClick, Type
from deskhand.desktop.expect import Expectations
from deskhand.desktop.search import Search, listed, make_query
from deskhand.errors import ActionError, DeskhandTimeout, shown

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Sequence

    from deskhand._core.observation import Observation
    from deskhand.actions import Action
    from deskhand.desktop.connection import Core

_OPTIONS = ("option", "listitem", "menuitem", "menuitemradio", "menuitemcheckbox", "cell")
_WRITTEN_IN = {"textbox", "combobox", "spinbutton"}


class Locator:
    """An element of a desktop, found anew for each call; make one with `Desktop.find`.

    Calls wait until there is one, and only one, that matches, and until it can be used. Two that match are an error that names
    both.

    Example:
        >>> dialog = desktop.find(role="dialog", name="Save As")
        >>> dialog.find(role="textbox").fill("/tmp/notes.txt")
        >>> dialog.find(role="button", name="Save").click()
    """

    def __init__(self, search: Search, perform: Callable[..., Observation]) -> None:
        """Of what a search finds."""
        self._search = search
        self._perform = perform

    def __repr__(self) -> str:
        return f"<Locator {self}>"

    def __str__(self) -> str:
        return str(self._search)

    def find(
        self,
        role: str | None = None,
        name: str | re.Pattern[str] | None = None,
        *,
        label: str | re.Pattern[str] | None = None,
        exact: bool = False,
        text: str | re.Pattern[str] | None = None,
        states: Sequence[str] = (),
        nth: int | None = None,
    ) -> Locator:
        """What is in this one; the arguments are those of `Desktop.find`."""
        query = make_query(role, name, label=label, exact=exact, text=text, states=states, nth=nth)
        return Locator(self._search.within(query), self._perform)

    def nth(self, number: int) -> Locator:
        """One of those that match, from 0; from the end below 0."""
        return Locator(self._search.nth(number), self._perform)

    # --- looking ---

    def all(self, *, timeout: float = 2.0) -> list[Element]:
        """Those that match now, without waiting for one."""
        return self._search.matching(self._search.read(timeout))

    def element(self, *, timeout: float = 5.0) -> Element:
        """The element, as it is when there is one.

        Raises:
            DeskhandTimeout: There was none within `timeout` seconds; says what there was instead.
            ActionError: Several match.
        """
        return self._search.one("element", timeout, lambda *_: True)

    def wait_for(self, state: ElementState = "visible", *, timeout: float = 5.0) -> Element | None:
        """Wait until it is as `state` says; None when it is hidden, which is also when it is not there.

        Raises:
            DeskhandTimeout: It was not within `timeout` seconds; says what it was instead.
            ActionError: Several match.
        """
        if state not in STATES:
            raise ActionError(f"wait_for: the states are {', '.join(STATES)}, not {shown(state)}")
        if state != "hidden":
            return self._search.one(f"{state}", timeout, lambda element, _: _is(element, state))

        def showing(elements: Elements) -> list[Element]:
            return [element for element in self._search.matching(elements) if element.visible]

        self._wait(lambda e: not showing(e), timeout, lambda e: f"{self} still shows: {listed(showing(e))}")
        return None

    # --- acting ---

    def click(
        self,
        *,
        button: str = "left",
        count: int = 1,
        modifiers: Sequence[str] = (),
        timeout: float = 5.0,
    ) -> Observation:
        """Click it as a person would: when it is on the screen, still, enabled and not covered.

        Args:
            button: "left", "middle" or "right".
            count: 2 for a double click, 3 for a triple one.
            modifiers: Key names that are held.
            timeout: Seconds to wait for it.

        Raises:
            DeskhandTimeout: It was not so within `timeout` seconds; says what it was instead.
            ActionError: Several match, or the click is impossible.
        """
        count = expect_integer("click: count", count, 1, 3)
        kind = (
            {"left": LeftClick, "middle": MiddleClick, "right": RightClick}.get(button)
            if isinstance(button, str)
            else None
        )
        if kind is None:
            raise ActionError(f"click: the buttons are left, middle and right, not {shown(button)}")

        def clicks(element: Element) -> list[Action]:
            if count == 1:
                return [kind(element=element.ref, modifiers=modifiers)]
            return [(DoubleClick, TripleClick)[count - 2](element=element.ref, button=button, modifiers=modifiers)]

        return self._act(clicks, timeout)[0]

    def hover(self, *, timeout: float = 5.0) -> Observation:
        """Put the pointer on it; waits and raises as `click` does."""
        return self._act(lambda element: [Move(element=element.ref)], timeout)[0]

    def drag_to(self, target: Locator, *, timeout: float = 5.0) -> Observation:
        """Drag it to the middle of another one with the left button; waits for both and raises as `click` does."""

        def drag(element: Element) -> list[Action]:
            return [Drag(element=element.ref, to=target._usable(timeout).ref)]

        if not isinstance(target, Locator):
            raise ActionError(f"drag_to: a locator is needed, not {shown(target)}")
        return self._act(drag, timeout)[0]

    def check(self, *, timeout: float = 5.0) -> Observation | None:
        """Click it unless it is checked; None when it was. Waits and raises as `click` does.

        Raises:
            DeskhandTimeout: It is not checked after the click, as well.
        """
        return self._turn("checked", timeout)

    def uncheck(self, *, timeout: float = 5.0) -> Observation | None:
        """Click it if it is checked; None when it was not. Waits and raises as `check` does."""
        return self._turn("unchecked", timeout)

    def fill(self, text: str | Secret, *, timeout: float = 5.0) -> Observation:
        """Replace what is written in it, as a person would: click, select all, type.

        In a spreadsheet's cell: click, type, Return. Numbers, dates and formulas are shown there in the spreadsheet's own way,
        so such a cell is only checked not to be empty afterwards, and one that is emptied is not checked.

        Raises:
            DeskhandTimeout: It could not be reached or written in within `timeout` seconds, or has another text afterwards.
            ActionError: Several match, it is nothing to write in, or the text cannot be typed.
        """
        wanted = text if isinstance(text, Secret) else expect_text("fill: text", text)

        def typing(element: Element) -> list[Action]:
            click = LeftClick(element=element.ref)
            if not wanted:
                return [click, *([] if _is_in_sheet(element) else [KeyPress(["ctrl", "a"])]), KeyPress(["Delete"])]
            if _is_in_sheet(element):
                # Delete removes what the spreadsheet has added to complete the text.
                return [click, Type(wanted), KeyPress(["Delete"]), KeyPress(["Return"])]
            return [click, KeyPress(["ctrl", "a"]), Type(wanted)]

        seen, element = self._act(typing, timeout, _fillable)
        in_sheet = _is_in_sheet(element)
        # LibreOffice gives the text of a cell that was emptied until something else is written in the sheet.
        if element.text is None or isinstance(wanted, Secret) or (in_sheet and not wanted):
            return seen
        shown_its_way = in_sheet and (wanted[0] in "=+-'" or any(map(str.isdigit, wanted)))

        def is_filled(elements: Elements) -> bool:
            text = elements[element.ref].text if element.ref in elements else None
            return text in {None, wanted} or bool(text and shown_its_way)

        def description(elements: Elements) -> str:
            return f"fill: {elements[element.ref].line()} has another text than was typed"

        self._wait(is_filled, timeout, description)
        return seen

    def select(self, name: str, *, timeout: float = 5.0) -> Observation:
        """Open it, and click the option of that name.

        Raises:
            DeskhandTimeout: It, or the option, could not be reached in time.
            ActionError: Several match.
        """
        expect_text("select: name", name)
        before = {element.ref for element in _options(self._search.read(timeout))}
        self._open_list(timeout, before)
        found: list[Element] = []

        def offered(elements: Elements) -> bool:
            options = [option for option in _options(elements) if one_spaced(option.name) == one_spaced(name)]
            found[:] = [option for option in options if option.ref not in before] or options
            return bool(found)

        def description(elements: Elements) -> str:
            options = [option for option in _options(elements) if option.ref not in before]
            return f"select: {self} offers no {name!r}, but {listed(options)}"

        self._wait(offered, timeout, description)
        return self._perform(LeftClick(element=found[0].ref))

    def _open_list(self, timeout: float, before: set[str]) -> None:
        self.click(timeout=timeout)
        elements = self._search.read(timeout)
        inside = [each for box in self._search.meant(elements) for each in elements.within(box.ref)]
        # In one that can be written in, a click sets the caret.
        if any(each.role == "textbox" for each in inside) and all(e.ref in before for e in _options(elements)):
            self._perform(KeyPress(["alt", "Down"]))

    # --- waiting ---

    def _is_of(self, core: Core) -> bool:
        return self._search.is_of(core)

    def _expectations(self) -> Expectations:
        return Expectations(self._search)

    def _usable(self, timeout: float, what: str = "usable", also: Callable[[Element], bool] | None = None) -> Element:
        def usable(element: Element, elements: Elements) -> bool:
            reached = self._search.can_reach(element) and not elements.in_the_way(element)
            return reached and (also is None or also(element))

        return self._search.one(what, timeout, usable)

    def _act(
        self,
        actions: Callable[[Element], list[Action]],
        timeout: float,
        condition: Callable[[Element], bool] | None = None,
    ) -> tuple[Observation, Element]:
        """Do something with it as soon as it can be used; what it was done with, too."""
        clock = self._search.clock
        deadline = clock() + timeout
        left = timeout
        while True:
            element = self._usable(left, "usable" if condition is None else "editable", condition)
            try:
                return self._perform(*actions(element)), element
            except (ActionError, DeskhandTimeout) as error:
                left = deadline - clock()
                if error.done != 0 or left <= 0:
                    raise
                # It could not be reached within the desktop's own limit; or it went between the look and its turn, and another
                # one may have come in its place.
                if isinstance(error, ActionError) and element.ref in self._search.read(left):
                    raise

    def _turn(self, state: ElementState, timeout: float) -> Observation | None:
        element = self._usable(timeout)
        if _is(element, state):
            return None
        seen = self._act(lambda there: [LeftClick(element=there.ref)], timeout)[0]
        self._search.one(state, timeout, lambda there, _: _is(there, state))
        return seen

    def _wait(self, done: Callable[[Elements], bool], timeout: float, description: Callable[[Elements], str]) -> None:
        self._search.wait(
            done, timeout, lambda elements: DeskhandTimeout(f"waited {timeout:g} s: {description(elements)}")
        )


def _is_in_sheet(element: Element) -> bool:
    """Whether it is a spreadsheet's cell, which AT-SPI calls transient: where select all would select the other cells too."""
    return element.role == "cell" and "transient" in element.states


def _fillable(element: Element) -> bool:
    """Whether it can be written in now.

    Raises:
        ActionError: It never can.
    """
    # Qt reports both for a field that is read-only, and neither for a number that can be changed.
    if element.states & {"editable", "read-only"} == {"editable"}:
        return True
    if element.role not in _WRITTEN_IN:
        raise ActionError(f"fill: {element.line()} is nothing to write in")
    return element.role == "spinbutton" and "read-only" not in element.states


def _options(elements: Elements) -> list[Element]:
    return [element for element in elements if element.role in _OPTIONS and element.visible]


def _is(element: Element, state: ElementState) -> bool:
    match state:
        case "enabled":
            return element.enabled
        case "disabled":
            return not element.enabled
        case "unchecked":
            return "checked" not in element.states
        case "visible" | "hidden":
            return element.visible
        case _:
            return state in element.states
