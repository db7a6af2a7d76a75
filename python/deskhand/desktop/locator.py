"""`Locator`: an element that is looked for by what it is, each time that it is needed, and waited for.

This module owns how long is waited for what, and what is said when it does not come.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from deskhand._core.arguments import expect_flag, expect_integer, expect_seconds, expect_text, expect_texts
from deskhand._core.elements import STATES, Element, Elements, ElementState, Query
from deskhand._core.redaction import Secret
from deskhand._core.roles import ROLES, aria_role
from deskhand.actions import DoubleClick, KeyPress, LeftClick, MiddleClick, Move, RightClick, TripleClick, Type
from deskhand.errors import ActionError, DeskhandTimeout, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deskhand._core.observation import Observation
    from deskhand.actions import Action
    from deskhand.desktop.view import View

__all__ = ["Locator", "make_query"]

_LOOK_AGAIN = 0.04
_ONE_READ = 1.0
_MOST_LISTED = 8
_OPTIONS = ("option", "listitem", "menuitem", "menuitemradio", "menuitemcheckbox", "cell")
_KNOWN_ROLES = {*ROLES, *map(aria_role, ROLES), "option"}


def make_query(
    what: str, role: object, name: object, *, exact: object, text: object, states: object, nth: object
) -> Query:
    """The query of `Desktop.find`'s arguments.

    Raises:
        ActionError: One of them is impossible.
    """
    if role is not None and expect_text(f"{what}: role", role) not in _KNOWN_ROLES:
        known = "button, textbox, menuitem, checkbox, combobox, link, dialog, window"
        raise ActionError(f"{what}: there is no role {shown(role)}", hint=f"roles are ARIA's words: {known}...")
    for kind, wanted in (("name", name), ("text", text)):
        if wanted is not None and not isinstance(wanted, re.Pattern):
            expect_text(f"{what}: {kind}", wanted)
    return Query(
        role=role,  # type: ignore[arg-type] # checked above
        name=name,  # type: ignore[arg-type]
        exact=expect_flag(f"{what}: exact", exact),
        text=text,  # type: ignore[arg-type]
        states=expect_texts(f"{what}: states", states),
        nth=None if nth is None else expect_integer(f"{what}: nth", nth, -(2**31), 2**31),
    )


class Locator:
    """An element of a desktop, found anew for each call; make one with `Desktop.find`.

    Calls wait until there is one, and only one, that matches, and until it can be used. Two that match are an error that names
    both.

    Example:
        >>> dialog = desktop.find(role="dialog", name="Save As")
        >>> dialog.find(role="textbox").fill("/tmp/notes.txt")
        >>> dialog.find(role="button", name="Save").click()
    """

    def __init__(self, view: View, perform: Callable[..., Observation], queries: tuple[Query, ...]) -> None:
        """In a view of a desktop; each query looks within what the one before it found."""
        self._view = view
        self._perform = perform
        self._queries = queries

    def __repr__(self) -> str:
        return f"<Locator {self}>"

    def __str__(self) -> str:
        return ".".join(map(str, self._queries))

    def find(
        self,
        role: str | None = None,
        name: str | re.Pattern[str] | None = None,
        *,
        exact: bool = False,
        text: str | re.Pattern[str] | None = None,
        states: Sequence[str] = (),
        nth: int | None = None,
    ) -> Self:
        """What is in this one; the arguments are those of `Desktop.find`."""
        query = make_query("find", role, name, exact=exact, text=text, states=states, nth=nth)
        return type(self)(self._view, self._perform, (*self._queries, query))

    def nth(self, number: int) -> Self:
        """One of those that match, from 0; from the end below 0."""
        *above, last = self._queries
        number = expect_integer("nth", number, -(2**31), 2**31)
        return type(self)(self._view, self._perform, (*above, replace(last, nth=number)))

    # --- looking ---

    def all(self, *, timeout: float = 2.0) -> list[Element]:
        """Those that match now, without waiting for one."""
        found: list[Element] = []

        def look(elements: Elements) -> bool:
            found[:] = self._matching(elements)
            return True

        self._wait(look, timeout, lambda _: "")
        return found

    def element(self, *, timeout: float = 5.0) -> Element:
        """The element, as it is when there is one.

        Raises:
            DeskhandTimeout: There was none within `timeout` seconds; says what there was instead.
            ActionError: Several match.
        """
        return self._one("element", timeout, lambda _: True)

    def wait_for(self, state: ElementState = "visible", *, timeout: float = 5.0) -> Element | None:
        """Wait until it is as `state` says; None when it is hidden, which is also when it is not there.

        Raises:
            DeskhandTimeout: It was not within `timeout` seconds; says what it was instead.
            ActionError: Several match.
        """
        if state not in STATES:
            raise ActionError(f"wait_for: the states are {', '.join(STATES)}, not {shown(state)}")
        if state != "hidden":
            return self._one(f"{state}", timeout, lambda element: _is(element, state))

        def hidden(elements: Elements) -> bool:
            return not any(element.visible for element in self._matching(elements))

        self._wait(hidden, timeout, lambda elements: f"{self} still shows: {_listed(self._matching(elements))}")
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
        ref = self._usable(timeout).ref
        count = expect_integer("click: count", count, 1, 3)
        action: Action
        if count > 1:
            action = (DoubleClick, TripleClick)[count - 2](element=ref, button=button, modifiers=modifiers)
        else:
            kinds = {"left": LeftClick, "middle": MiddleClick, "right": RightClick}
            kind = kinds.get(button) if isinstance(button, str) else None
            if kind is None:
                raise ActionError(f"click: the buttons are left, middle and right, not {shown(button)}")
            action = kind(element=ref, modifiers=modifiers)
        return self._perform(action)

    def hover(self, *, timeout: float = 5.0) -> Observation:
        """Put the pointer on it; waits and raises as `click` does."""
        return self._perform(Move(element=self._usable(timeout).ref))

    def fill(self, text: str | Secret, *, timeout: float = 5.0) -> Observation:
        """Replace what is written in it, as a person would: click, select all, type.

        Raises:
            DeskhandTimeout: It could not be reached within `timeout` seconds, or has another text afterwards.
            ActionError: Several match, it cannot be written in, or the text cannot be typed.
        """
        element = self._usable(timeout)
        if "editable" not in element.states and element.role not in {"textbox", "combobox", "spinbutton"}:
            raise ActionError(f"fill: {element.line()} is nothing to write in")
        wanted = text if isinstance(text, Secret) else expect_text("fill: text", text)
        clear = KeyPress(["ctrl", "a"])
        actions: list[Action] = [LeftClick(element=element.ref), clear]
        actions.append(Type(wanted) if wanted else KeyPress(["Delete"]))
        seen = self._perform(*actions)
        if element.text is None or isinstance(wanted, Secret):
            return seen

        def is_filled(elements: Elements) -> bool:
            return element.ref not in elements or elements[element.ref].text in {None, wanted}

        def told(elements: Elements) -> str:
            return f"fill: {elements[element.ref].line()} has another text than was typed"

        self._wait(is_filled, timeout, told)
        return seen

    def select(self, name: str, *, timeout: float = 5.0) -> Observation:
        """Open it, and click the option of that name.

        Raises:
            DeskhandTimeout: It, or the option, could not be reached in time.
            ActionError: Several match.
        """
        expect_text("select: name", name)
        before = {element.ref for element in self._read(timeout) if element.role in _OPTIONS and element.visible}
        self.click(timeout=timeout)
        found: list[Element] = []

        def offered(elements: Elements) -> bool:
            options = [e for e in elements if e.role in _OPTIONS and e.visible and e.name.strip() == name.strip()]
            found[:] = [option for option in options if option.ref not in before] or options
            return bool(found)

        def told(elements: Elements) -> str:
            options = [e for e in elements if e.role in _OPTIONS and e.visible and e.ref not in before]
            return f"select: {self} offers no {name!r}, but {_listed(options)}"

        self._wait(offered, timeout, told)
        return self._perform(LeftClick(element=found[0].ref))

    # --- waiting ---

    def _read(self, timeout: float) -> Elements:
        core = self._view.core

        def read() -> Elements:
            with core.turn():
                return core.elements.read(timeout)

        return self._view.operate(lambda: self._view.operation("elements", str(self)), read)

    def _usable(self, timeout: float) -> Element:
        return self._one("usable", timeout, lambda e: e.visible and e.enabled and e.covered_by is None)

    def _one(self, what: str, timeout: float, condition: Callable[[Element], bool]) -> Element:
        found: list[Element] = []

        def there(elements: Elements) -> bool:
            found[:] = self._matching(elements)
            if len(found) > 1:
                # One that can be used, where the others cannot be seen, is the one that is meant.
                seen = [element for element in found if element.visible]
                found[:] = seen if len(seen) == 1 else found
            return len(found) == 1 and condition(found[0])

        def told(elements: Elements) -> str:
            if not found:
                return f"{self} found nothing; there is {_nearest(elements, self._queries[-1])}"
            return f"{self} is not {what}: {_listed(found)}" + (
                f", covered by {found[0].covered_by!r}" if found[0].covered_by else ""
            )

        try:
            self._wait(there, timeout, told)
        except DeskhandTimeout:
            if len(found) > 1:
                raise ActionError(
                    f"{self} matches {len(found)} elements, and one is needed: {_listed(found)}",
                    hint="say more of it (role, name, exact=True, within another), or which with nth=",
                ) from None
            raise
        return found[0]

    def _wait(self, done: Callable[[Elements], bool], timeout: float, told: Callable[[Elements], str]) -> None:
        expect_seconds("timeout", timeout)
        core = self._view.core

        def wait() -> None:
            deadline = core.clock() + timeout
            while True:
                with core.turn():
                    left = deadline - core.clock()
                    elements = core.elements.read(max(0.1, min(left, _ONE_READ)))
                    if done(elements):
                        return
                    if left <= 0:
                        raise DeskhandTimeout(f"waited {timeout:g} s: {told(elements)}")
                    core.watch.check_stop()
                    core.backend.wait(min(left, _LOOK_AGAIN))

        self._view.operate(lambda: self._view.operation("elements", str(self)), wait)

    def _matching(self, elements: Elements) -> list[Element]:
        found: list[Element] | None = None
        for query in self._queries:
            if found is None:
                matching = elements.find_all(query)
            else:
                inside = {element.ref: element for each in found for element in elements.within(each.ref)}
                matching = elements.find_all(query, list(inside.values()))
            if query.nth is not None:
                matching = matching[query.nth :][:1] if -len(matching) <= query.nth < len(matching) else []
            found = matching
        return found or []


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


def _listed(elements: Sequence[Element]) -> str:
    said = ", ".join(element.line() for element in elements[:_MOST_LISTED]) or "nothing"
    return said + (f" and {len(elements) - _MOST_LISTED} more" if len(elements) > _MOST_LISTED else "")


def _nearest(elements: Elements, query: Query) -> str:
    """What there is that is like what was looked for."""
    shown_ones = [element for element in elements if element.visible and (element.name or element.text)]
    of_role = [element for element in shown_ones if query.role in {element.role, element.native_role}]
    of_name = [element for element in shown_ones if replace(query, role=None).matches(element)] if query.name else []
    said = _listed(of_name or of_role or shown_ones)
    return said + "".join(f"; {sentence}" for sentence in elements.left_out)
