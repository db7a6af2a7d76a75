"""`Search`: the elements that queries ask for, looked for anew each time, and waited for.

This module owns how long a call waits, which of several elements is meant, and how messages describe what was there instead.
`locator` owns what is done with an element, `expect` what a test asks of it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from deskhand._core.arguments import expect_flag, expect_integer, expect_seconds, expect_text, expect_texts
from deskhand._core.elements import Element, Elements, Query
from deskhand._core.roles import ROLES, aria_role
from deskhand.errors import ActionError, DeskhandError, DeskhandTimeout, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deskhand.desktop.connection import Core
    from deskhand.desktop.view import View

_LOOK_AGAIN = 0.04
# Seconds until elements that are scrolled out of sight are read too, and between two such readings.
_SHOWS_SOON, _LOOK_DEEPER_AGAIN = 0.2, 0.5
_ONE_READ = 1.0
_MOST_LISTED = 8
_KNOWN_ROLES = {*ROLES, *map(aria_role, ROLES), "option"}


def make_query(
    role: object,
    name: object,
    *,
    label: object = None,
    exact: object = False,
    text: object = None,
    states: object = (),
    nth: object = None,
) -> Query:
    """The query of `Desktop.find`'s arguments.

    Raises:
        ActionError: One of them is impossible.
    """
    if role is not None and expect_text("find: role", role) not in _KNOWN_ROLES:
        known = "button, textbox, menuitem, checkbox, combobox, link, dialog, window"
        raise ActionError(f"find: there is no role {shown(role)}", hint=f"roles are ARIA's words: {known}...")
    return Query(
        role=None if role is None else expect_text("find: role", role),
        name=_pattern("find: name", name),
        label=_pattern("find: label", label),
        exact=expect_flag("find: exact", exact),
        text=_pattern("find: text", text),
        states=expect_texts("find: states", states),
        nth=None if nth is None else expect_integer("find: nth", nth, -(2**31), 2**31),
    )


def _pattern(what: str, wanted: object) -> str | re.Pattern[str] | None:
    return wanted if wanted is None or isinstance(wanted, re.Pattern) else expect_text(what, wanted)


class Search:
    """What is looked for in a view of a desktop; each query looks within what the one before it found."""

    __slots__ = ("_ocr", "_queries", "_view")

    def __init__(self, view: View, queries: tuple[Query, ...], *, ocr: bool = False) -> None:
        """Nothing is looked for yet. With `ocr`, texts that are read from pixels are among the elements."""
        self._view = view
        self._queries = queries
        self._ocr = ocr

    def __str__(self) -> str:
        return ".".join(map(str, self._queries))

    def within(self, query: Query) -> Search:
        """Look for what `query` asks for in what this one finds."""
        return Search(self._view, (*self._queries, query), ocr=self._ocr)

    def nth(self, number: int) -> Search:
        """One of those that match."""
        *above, last = self._queries
        number = expect_integer("nth", number, -(2**31), 2**31)
        return Search(self._view, (*above, replace(last, nth=number)), ocr=self._ocr)

    def matching(self, elements: Elements) -> list[Element]:
        """Those of these elements that match, in the order of the tree."""
        found: list[Element] | None = None
        for query in self._queries:
            inside: list[Element] | None = None
            if found is not None:
                inside = list(
                    {element.ref: element for each in found for element in elements.within(each.ref)}.values()
                )
            found = elements.find_all(query, inside)
            if query.nth is not None:
                found = found[query.nth :][:1] if -len(found) <= query.nth < len(found) else []
        return found or []

    def meant(self, elements: Elements) -> list[Element]:
        """Those that match; of several the only one that shows, because what cannot be seen is not what is meant."""
        found = self.matching(elements)
        # LibreOffice reports its menu bar twice: as its toolkit shows it, and again without a place of its own.
        nowhere = {element.ref for element in elements if element.role == "menubar" and not element.visible}
        seen = [element for element in found if element.visible and element.parent not in nowhere]
        return seen if len(seen) == 1 else found

    def one(self, what: str, timeout: float, condition: Callable[[Element, Elements], bool]) -> Element:
        """The only element that matches, when it is as `condition` says, which `what` puts into words.

        Raises:
            DeskhandTimeout: It was not within `timeout` seconds; says what there was instead.
            ActionError: Several match.
        """
        found: list[Element] = []

        def there(elements: Elements) -> bool:
            found[:] = self.meant(elements)
            return len(found) == 1 and condition(found[0], elements)

        def failure(elements: Elements) -> DeskhandError:
            if len(found) > 1:
                hint = "say more of it (role, name, label, exact=True, within another), or which with nth="
                return ActionError(self.amiss(found, elements), hint=hint)
            said = self.amiss(found, elements)
            if found:
                said = f"{self} is not {what}: {listed(found)}"
                said += f", covered by {found[0].covered_by!r}" if found[0].covered_by else ""
                in_the_way = elements.in_the_way(found[0])
                said += f", {in_the_way}" if in_the_way else ""
            return DeskhandTimeout(f"waited {timeout:g} s: {said}")

        self.wait(there, timeout, failure, deeper=lambda: not found and what != "visible")
        return found[0]

    def amiss(self, found: Sequence[Element], elements: Elements) -> str:
        """What is wrong with these, where one is needed."""
        if found:
            return f"{self} matches {len(found)} elements, and one is needed: {listed(found)}"
        return f"{self} found nothing; there is {_nearest(elements, self._queries[-1])}"

    def read(self, timeout: float) -> Elements:
        """The elements as they are now."""
        found: list[Elements] = []

        def look(elements: Elements) -> bool:
            found.append(elements)
            return True

        self.wait(look, timeout, lambda _: DeskhandTimeout(f"waited {timeout:g} s for the elements"))
        return found[0]

    def is_of(self, core: Core) -> bool:
        """Whether it looks at this desktop."""
        return self._view.core is core

    def can_reach(self, element: Element) -> bool:
        """Whether an element that was read can be used, or may be when it is scrolled to."""
        return self._view.core.elements.can_reach(element)

    def wait(
        self,
        done: Callable[[Elements], bool],
        timeout: float,
        failure: Callable[[Elements], DeskhandError],
        deeper: Callable[[], bool] = lambda: False,
    ) -> None:
        """Read until `done`, for at most `timeout` seconds; then `failure` of what was read last is raised.

        Where `deeper` returns true, elements that are scrolled out of sight are read as well, which takes longer.
        """
        expect_seconds("timeout", timeout)
        core = self._view.core

        def wait() -> None:
            begun = core.clock()
            deadline, look_deeper = begun + timeout, begun + min(_SHOWS_SOON, timeout / 2)
            while True:
                with core.turn():
                    left = deadline - core.clock()
                    elements = core.elements.read(max(0.1, min(left, _ONE_READ)), ocr=self._ocr)
                    if done(elements):
                        return
                    if core.clock() >= look_deeper and deeper():
                        elements = core.elements.read(max(0.1, left), ocr=self._ocr, deep=True)
                        if done(elements):
                            return
                        look_deeper = core.clock() + _LOOK_DEEPER_AGAIN
                    if left <= 0:
                        raise failure(elements)
                    core.watch.check_stop()
                    core.backend.wait(min(left, _LOOK_AGAIN))

        self._view.operate(lambda: self._view.operation("elements", str(self)), wait)

    def clock(self) -> float:
        """Seconds, by the desktop's clock."""
        return self._view.core.clock()


def listed(elements: Sequence[Element]) -> str:
    """Some elements, in words."""
    said = ", ".join(element.line() for element in elements[:_MOST_LISTED]) or "nothing"
    return said + (f" and {len(elements) - _MOST_LISTED} more" if len(elements) > _MOST_LISTED else "")


def _nearest(elements: Elements, query: Query) -> str:
    """What there is that is like what was looked for."""
    shown_ones = [element for element in elements if element.visible and (element.name or element.text)]
    of_role = [element for element in shown_ones if query.role in {element.role, element.native_role}]
    named = query.name is not None
    of_name = [element for element in shown_ones if replace(query, role=None).matches(element)] if named else []
    said = listed(of_name or of_role or shown_ones)
    return said + "".join(f"; {sentence}" for sentence in elements.left_out)
