"""`View`: a desktop's core, and the interceptors that stand before it in one view of the desktop.

`Desktop` and its parts (clipboard, windows, machine, host) do their operations through it. This module owns the parts of an
operation and the report of a loss. It knows none of the operations.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from deskhand._core.attempts import ATTEMPT, Attempt
from deskhand.desktop.gate import operate
from deskhand.desktop.losses import losses_told
from deskhand.desktop.operations import Operation, current_call

if TYPE_CHECKING:
    from collections.abc import Callable

    from deskhand.actions import Action
    from deskhand.desktop.connection import Core
    from deskhand.desktop.operations import Interceptor

__all__ = ["View"]

_T = TypeVar("_T")


class View:
    """One view of a desktop.

    Attributes:
        core: What all views of the desktop share.
        interceptors: Called in this order.
        see: Makes the `Desktop` that shows a core through interceptors.
    """

    __slots__ = ("core", "interceptors", "see")

    def __init__(
        self, core: Core, interceptors: tuple[Interceptor, ...], see: Callable[[Core, tuple[Interceptor, ...]], Any]
    ) -> None:
        """See the attributes."""
        self.core: Core = core
        self.interceptors: tuple[Interceptor, ...] = interceptors
        self.see: Callable[[Core, tuple[Interceptor, ...]], Any] = see

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
            desktop=self.see(self.core, ()),
            attempt=ATTEMPT.get() or Attempt(),
        )

    def operate(self, operation: Callable[[], Operation], work: Callable[[], _T]) -> _T:
        """Do `work`, which takes its turn at the screen, if all interceptors let it pass."""
        # First of all: with no interceptors, it costs nothing.
        if not self.interceptors:
            return work()
        return operate(self.core, self.interceptors, operation(), work)

    def on_machine(self, operation: Callable[[], Operation], work: Callable[[], _T]) -> _T:
        """The same for work on the desktop's machine, beside the screen."""
        told = partial(self._told, work)
        if not self.interceptors:
            return told()
        return operate(self.core, self.interceptors, operation(), told, beside=True)

    def run_command(
        self, operation: Operation, work: Callable[[], _T], interrupt: Callable[[], None] = lambda: None
    ) -> _T:
        """The same for a command; `interrupt` ends it, from any thread, and is called until it has ended."""
        self.core.refuse_if_closed()
        # Also without interceptors: `stop` ends a command by its attempt.
        told = partial(self._told, work)
        return operate(self.core, self.interceptors, operation, told, beside=True, interrupt=interrupt)

    def _told(self, work: Callable[[], _T]) -> _T:
        with losses_told(self.core):
            return work()
