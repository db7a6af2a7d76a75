"""`View`: a desktop's core, and the interceptors that stand before it in one view of the desktop.

`Desktop` and its parts (clipboard, windows, machine, host) do their operations through it. This module owns the parts of an
operation and the report of a loss. It knows none of the operations.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from deskhand._core.attempts import ATTEMPT, Attempt
from deskhand.desktop.control_state import held_by
from deskhand.desktop.gate import operate
from deskhand.desktop.losses import losses_raised
from deskhand.desktop.operations import Operation, current_call

if TYPE_CHECKING:
    from collections.abc import Callable

    from deskhand.actions import Action
    from deskhand.desktop.connection import Core
    from deskhand.desktop.control_state import Holding
    from deskhand.desktop.operations import Interceptor

_T = TypeVar("_T")


class View:
    """One view of a desktop.

    Attributes:
        holding: The hold that its operations belong to, of a person who has control; None for all other views.
        core: What all views of the desktop share.
        interceptors: Called in this order.
        see: Makes the `Desktop` that shows a core through interceptors; further arguments are those of a view.
        gated: Whether its operations go through the gate: there are interceptors, or the desktop is paused.
        waits: Whether its operations wait while the desktop is paused: those of an agent do.
    """

    __slots__ = ("__weakref__", "core", "gated", "holding", "interceptors", "see", "waits")

    def __init__(
        self,
        core: Core,
        interceptors: tuple[Interceptor, ...],
        see: Callable[..., Any],
        *,
        waits: bool = True,
        holding: Holding | None = None,
    ) -> None:
        """See the attributes."""
        self.core: Core = core
        self.interceptors: tuple[Interceptor, ...] = interceptors
        self.see: Callable[..., Any] = see
        self.waits: bool = waits
        self.holding: Holding | None = holding
        self.gated: bool = bool(interceptors)
        if waits or interceptors:
            core.control.share(self)

    @property
    def judged(self) -> bool:
        """Whether a `Guard` stands in the gate: a policy decides, and a call may wait for a person's answer."""
        return any(getattr(interceptor, "judges", False) for interceptor in self.interceptors)

    def operation(
        self,
        type: str,
        target: str = "",
        *,
        size: int | None = None,
        cwd: str | None = None,
        env: tuple[tuple[str, str], ...] = (),
        actions: tuple[Action, ...] = (),
        data: bytes | None = None,
    ) -> Operation:
        """An operation of the call under way; see `Operation`."""
        return Operation(
            type,
            target,
            size,
            cwd,
            env,
            actions,
            data,
            call=current_call(),
            # Without interceptors: they look at it themselves.
            desktop=self.see(self.core, (), waits=False),
            attempt=ATTEMPT.get() or Attempt(),
            holder=None if self.holding is None else self.holding.holder,
        )

    def operate(self, operation: Callable[[], Operation], work: Callable[[], _T]) -> _T:
        """Do `work`, which takes its turn at the screen, if all interceptors let it pass."""
        # First of all, so that it costs nothing without interceptors.
        if not self.gated or not self._is_stopping:
            return work()
        return operate(self.core, self.interceptors, operation(), work, waits=self.waits)

    def operate_before(self, operation: Callable[[], Operation], work: Callable[[], _T]) -> _T:
        """As `operate`, for a step before the operation itself. Only the operation waits while the desktop is paused."""
        if not self.interceptors:
            return work()
        return operate(self.core, self.interceptors, operation(), work, waits=False)

    @property
    def _is_stopping(self) -> bool:
        """Whether something in the gate may stop an operation: the kill switch ends a pause and leaves `gated` as it is."""
        return bool(self.interceptors) or self.core.control.pause is not None

    def beside(self, operation: Callable[[], Operation], work: Callable[[], _T]) -> _T:
        """As `operate`, for work that takes no turn at the screen and does not wait while the desktop is paused."""
        if not self.interceptors:
            return work()
        return operate(self.core, self.interceptors, operation(), work, beside=True, waits=False)

    def ungated(self, work: Callable[[], _T]) -> _T:
        """Do `work` that is no operation: it passes no interceptor, and is never paused."""
        return work()

    def on_machine(self, operation: Callable[[], Operation], work: Callable[[], _T]) -> _T:
        """As `operate`, for work on the desktop's machine, which takes no turn at the screen."""
        checked = partial(self._checked, work)
        if not self.gated or not self._is_stopping:
            return checked()
        return operate(self.core, self.interceptors, operation(), checked, beside=True, waits=self.waits)

    def run_command(
        self, operation: Operation, work: Callable[[], _T], interrupt: Callable[[], None] = lambda: None
    ) -> _T:
        """As `operate`, for a command. `interrupt` ends it, from any thread, and is called until it has ended."""
        self.core.refuse_if_closed()
        # Also without interceptors: `stop` ends a command by its attempt.
        checked = partial(self._checked, work)
        return operate(
            self.core, self.interceptors, operation, checked, beside=True, interrupt=interrupt, waits=self.waits
        )

    def _checked(self, work: Callable[[], _T]) -> _T:
        # What runs on the machine can see the screen, and a private hold forbids that to others.
        self.core.control.refuse_if_held(looking=True)
        with losses_raised(self.core):
            return work()


class HeldView(View):
    """The view of a person who has control: what is done through it belongs to the hold, and does not wait while paused."""

    __slots__ = ()

    def operate(self, operation: Callable[[], Operation], work: Callable[[], _T]) -> _T:
        """As `View`, on behalf of the hold."""
        with held_by(self.holding):
            return super().operate(operation, work)

    def operate_before(self, operation: Callable[[], Operation], work: Callable[[], _T]) -> _T:
        """As `View`, on behalf of the hold."""
        with held_by(self.holding):
            return super().operate_before(operation, work)

    def ungated(self, work: Callable[[], _T]) -> _T:
        """As `View`, on behalf of the hold."""
        with held_by(self.holding):
            return work()

    def on_machine(self, operation: Callable[[], Operation], work: Callable[[], _T]) -> _T:
        """As `View`, on behalf of the hold."""
        with held_by(self.holding):
            return super().on_machine(operation, work)

    def run_command(
        self, operation: Operation, work: Callable[[], _T], interrupt: Callable[[], None] = lambda: None
    ) -> _T:
        """As `View`, on behalf of the hold."""
        with held_by(self.holding):
            return super().run_command(operation, work, interrupt)
