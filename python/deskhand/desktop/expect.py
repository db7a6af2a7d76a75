"""What a test expects of an element: `expect(locator).to_be_enabled()` waits for it, and says what there was instead.

This module owns what each expectation means. How is looked and waited is in `search`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

from deskhand._core.arguments import expect_flag, expect_integer, expect_text
from deskhand._core.elements import Element, one_spaced
from deskhand._core.fields import check_number
from deskhand.desktop.search import listed
from deskhand.errors import ActionError, ExpectationFailed, shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from deskhand._core.elements import Elements
    from deskhand.desktop.search import Search

_T_co = TypeVar("_T_co", covariant=True)
_T = TypeVar("_T")


class _Expectable(Protocol[_T_co]):
    def _expectations(self) -> _T_co: ...


def expect(locator: _Expectable[_T]) -> _T:
    """What is to be true of what a locator finds: `expect(desktop.find("button", "Save")).to_be_enabled()`.

    Each expectation waits, and raises `ExpectationFailed`, an `AssertionError`, when it has not come true within its `timeout`
    seconds. `not_` turns it round. Those of a coroutine's locator are coroutines.

    Raises:
        ActionError: `locator` is not a locator.
    """
    make = getattr(locator, "_expectations", None)
    if not callable(make):
        raise ActionError(f"expect: give a locator, such as desktop.find('button', 'Save'), not {shown(locator)}")
    made: _T = make()
    return made


class Expectations:
    """What can be expected of what a locator finds; made by `expect`."""

    def __init__(self, search: Search, *, wanted: bool = True) -> None:
        """Expect it of what is found; `wanted` False expects the opposite."""
        self._search = search
        self._wanted = wanted

    @property
    def not_(self) -> Self:
        """The opposite: `expect(locator).not_.to_be_checked()`."""
        return type(self)(self._search, wanted=not self._wanted)

    def to_be_visible(self, *, timeout: float = 5.0) -> None:
        """One matches, and a part of it is on the screen.

        Raises:
            ExpectationFailed: It was not so within `timeout` seconds; says what there was instead, and for how long.
        """
        self._shows("to be visible", timeout, shows=self._wanted)

    def to_be_hidden(self, *, timeout: float = 5.0) -> None:
        """None that matches is on the screen; raises as `to_be_visible` does."""
        self._shows("to be hidden", timeout, shows=not self._wanted)

    def to_be_enabled(self, *, timeout: float = 5.0) -> None:
        """It does something when it is used; raises as `to_be_visible` does."""
        self._one("to be enabled", timeout, lambda element: element.enabled)

    def to_be_disabled(self, *, timeout: float = 5.0) -> None:
        """It is greyed out; raises as `to_be_visible` does."""
        self._one("to be disabled", timeout, lambda element: not element.enabled)

    def to_be_checked(self, *, timeout: float = 5.0) -> None:
        """It is a check box, a radio button or the like that is on; raises as `to_be_visible` does."""
        self._one("to be checked", timeout, lambda element: "checked" in element.states)

    def to_be_focused(self, *, timeout: float = 5.0) -> None:
        """It gets what is typed; raises as `to_be_visible` does."""
        self._one("to be focused", timeout, lambda element: "focused" in element.states)

    def to_have_text(self, expected: str | re.Pattern[str], *, ignore_case: bool = False, timeout: float = 5.0) -> None:
        """What is written in it is this text, apart from how many spaces there are, or has the pattern.

        What has no text of its own, such as a button of some toolkits, has its name for a text. Raises as `to_be_visible` does.
        """
        self._text("to have the text", _text_of, expected, timeout, ignore_case=ignore_case)

    def to_contain_text(
        self, expected: str | re.Pattern[str], *, ignore_case: bool = False, timeout: float = 5.0
    ) -> None:
        """As `to_have_text`, of a part of it."""
        self._text("to contain the text", _text_of, expected, timeout, ignore_case=ignore_case, part=True)

    def to_have_name(self, expected: str | re.Pattern[str], *, ignore_case: bool = False, timeout: float = 5.0) -> None:
        """Its name is this one, apart from how many spaces there are, or has the pattern; raises as `to_be_visible` does."""
        self._text("to have the name", lambda element: element.name, expected, timeout, ignore_case=ignore_case)

    def to_have_value(self, expected: str | float | re.Pattern[str], *, timeout: float = 5.0) -> None:
        """A number: the value of a slider, a progress bar and the like. A text or a pattern: all that is written in it.

        Raises as `to_be_visible` does.
        """
        if isinstance(expected, str | re.Pattern):
            self._text("to have the value", lambda element: element.text, expected, timeout, exact=True)
        else:
            number = check_number(expected)
            self._one(f"to have the value {number:g}", timeout, lambda element: element.value == number)

    def to_have_count(self, expected: int, *, timeout: float = 5.0) -> None:
        """So many match; raises as `to_be_visible` does."""
        count = expect_integer("to_have_count: expected", expected, 0, 2**31)

        def look(elements: Elements) -> tuple[bool, str]:
            found = self._search.matching(elements)
            return (len(found) == count) is self._wanted, f"{len(found)} matched: {listed(found)}"

        self._wait(f"{self._not}to match {count} times", timeout, look)

    # --- looking ---

    @property
    def _not(self) -> str:
        return "" if self._wanted else "not "

    def _text(
        self,
        what: str,
        of: Callable[[Element], str | None],
        expected: str | re.Pattern[str],
        timeout: float,
        *,
        ignore_case: bool = False,
        part: bool = False,
        exact: bool = False,
    ) -> None:
        if not isinstance(expected, re.Pattern):
            expect_text(f"expected {what}", expected)
        folded = expect_flag("ignore_case", ignore_case)

        def plain(text: str) -> str:
            text = text if exact else one_spaced(text)
            return text.casefold() if folded else text

        def matches(element: Element) -> bool:
            there = of(element)
            if there is None:
                return False
            if isinstance(expected, re.Pattern):
                flags = expected.flags | (re.IGNORECASE if folded else 0)
                return re.compile(expected.pattern, flags).search(there) is not None
            return plain(expected) in plain(there) if part else plain(expected) == plain(there)

        said = expected.pattern if isinstance(expected, re.Pattern) else expected
        self._one(f"{what} {said!r}", timeout, matches)

    def _one(
        self, what: str, timeout: float, condition: Callable[[Element], bool], *, wanted: bool | None = None
    ) -> None:
        wanted = self._wanted if wanted is None else wanted

        def look(elements: Elements) -> tuple[bool, str]:
            found = self._search.meant(elements)
            if len(found) != 1:
                return False, self._search.amiss(found, elements)
            return condition(found[0]) is wanted, f"it was {found[0].line()}"

        self._wait(f"{self._not}{what}", timeout, look)

    def _shows(self, what: str, timeout: float, *, shows: bool) -> None:
        """One shows, or none does: that is also so where none is there."""

        def look(elements: Elements) -> tuple[bool, str]:
            seen = [element for element in self._search.matching(elements) if element.visible]
            return not seen, f"there was {listed(seen)}"

        if shows:
            self._one(what, timeout, lambda element: element.visible, wanted=True)
        else:
            self._wait(f"{self._not}{what}", timeout, look)

    def _wait(self, what: str, timeout: float, look: Callable[[Elements], tuple[bool, str]]) -> None:
        # What was there, and since when.
        last, since = "", self._search.clock()

        def done(elements: Elements) -> bool:
            nonlocal last, since
            good, said = look(elements)
            if said != last:
                last, since = said, self._search.clock()
            return good

        def failure(_: Elements) -> ExpectationFailed:
            # What was there when the waiting began is not older than that, for all that is known.
            lasted = f"for the last {self._search.clock() - since:.1f} s"
            return ExpectationFailed(f"expected {self._search} {what}: waited {timeout:g} s; {lasted} {last}")

        self._search.wait(done, timeout, failure)


def _text_of(element: Element) -> str | None:
    if element.text is None and not element.is_field:
        return element.name
    return element.text
