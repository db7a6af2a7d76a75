"""`perform(..., until=...)`: after the actions, look again each time that the screen changes, until a condition holds.

This module owns what a condition is and when it is asked. Each look is an operation of its own, so that a policy judges it, a
pause holds it, and other callers get their turns in between. The condition itself is asked outside of every turn.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from deskhand._core.arguments import expect_seconds
from deskhand.desktop.locator import Locator
from deskhand.desktop.performed_elements import open_elements
from deskhand.errors import ActionError, DeskhandError, DeskhandTimeout, shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from deskhand._core.observation import Observation
    from deskhand.desktop.connection import Core
    from deskhand.desktop.performing import Performance
    from deskhand.desktop.view import View

# Seconds of one turn of waiting, and after which a condition is asked again where nothing has changed: it may be about
# something that is not on the screen.
_TURN, _ASKED_AGAIN = 0.25, 0.5


class Condition:
    """What a `perform` waits for: that an element shows, or that a function of the observation returns something true."""

    __slots__ = ("_core", "_timeout", "_until")

    def __init__(self, core: Core, until: object, timeout: object) -> None:
        """Check the arguments of `Desktop.perform`.

        Raises:
            ActionError: `until` is neither a locator of this desktop nor a function, or `timeout` is no number of seconds.
        """
        self._core = core
        self._timeout = expect_seconds("perform: timeout", timeout)
        if isinstance(until, Locator):
            if not until._is_of(core):  # noqa: SLF001 # for here only
                raise ActionError(f"perform: until: {until} is looked for on another desktop: use this one's find")
        elif until is None:
            # What an expectation returns: it has waited already, before the actions.
            hint = "give the locator itself, as in until=desktop.find('dialog'), or a function of the observation"
            raise ActionError("perform: until is None, which is no condition", hint=hint)
        elif until is True:
            hint = "for how long the screen may take to settle, write settle=Settle(timeout=...)"
            raise ActionError("perform: timeout limits the wait for until, which is not given", hint=hint)
        elif not callable(until) or isinstance(until, type):
            raise ActionError(f"perform: until is a locator or a function of the observation, not {shown(until)}")
        self._until: Locator | Callable[[Observation], object] = until

    def wait(self, seen: Observation, performance: Performance, release: Callable[[], None], view: View) -> Observation:
        """Wait until it holds.

        Args:
            seen: What the screen answered to the actions.
            performance: Did them.
            release: Releases what is held.
            view: Where looks are operations.

        Returns:
            The last look, with what is known of the actions from `seen`.

        Raises:
            DeskhandTimeout: It did not hold in time. Whatever was pressed has been released.
        """

        def look() -> Observation:
            if performance.elements:
                view.operate_before(lambda: view.operation("elements"), partial(open_elements, self._core))
            again = performance.again()
            return view.operate(lambda: view.operation("perform", actions=tuple(again.actions)), again.carry_out)

        begun = self._core.clock()
        try:
            last = self._until_holds(seen, look)
        except BaseException:
            # As after any error of `perform`, nothing stays pressed; except for what a person holds who has control by now.
            with contextlib.suppress(DeskhandError):
                release()
            raise
        return last if last is seen else _of_both(seen, last, self._core.clock() - begun)

    def _until_holds(self, seen: Observation, look: Callable[[], Observation]) -> Observation:
        if not isinstance(self._until, Locator):
            return self._asked(self._until, seen, look)
        try:
            self._until.wait_for(timeout=self._timeout)
        except DeskhandError as error:
            error.add_note("the actions of this perform were done: this is what it waited for after them (until)")
            raise
        return look()

    def _asked(
        self, holds: Callable[[Observation], object], seen: Observation, look: Callable[[], Observation]
    ) -> Observation:
        clock = self._core.clock
        deadline, looks = clock() + self._timeout, 1
        while not (answer := holds(seen)):
            left = deadline - clock()
            if left <= 0:
                state = "had settled" if seen.settled else "had not settled"
                raise DeskhandTimeout(
                    f"perform: waited {self._timeout:g} s after the actions, which were done, until {shown(holds)}: of the "
                    f"last of {looks} looks it returned {shown(answer)}; the screen {state} ({seen.reason})",
                    hint="check the condition, or give a longer timeout",
                )
            self._let_change(seen.generation, min(left, _ASKED_AGAIN))
            seen, looks = look(), looks + 1
        return seen

    def _let_change(self, generation: int, limit: float) -> None:
        """Wait until the screen is another one than a look has shown, for `limit` seconds at most."""
        core = self._core
        deadline = core.clock() + limit
        while (left := deadline - core.clock()) > 0:
            with core.turn(shows=False):
                if core.watch.until(lambda: core.backend.screen.generation != generation, min(left, _TURN)):
                    return


def _of_both(first: Observation, last: Observation, waited: float) -> Observation:
    """One observation of the actions and the last look, which was taken without actions."""
    took, looked = first.elapsed, last.elapsed
    settle = took.settle + max(0.0, waited - looked.capture - looked.encode)
    return replace(
        last,
        elapsed=replace(looked, input=took.input, reaction=took.reaction, settle=settle),
        pasted=first.pasted,
        clipboard_lost=first.clipboard_lost,
        pointer_moved=first.pointer_moved or last.pointer_moved,
        unanswered=first.unanswered,
        notes=(*first.notes, *last.notes),
    )
