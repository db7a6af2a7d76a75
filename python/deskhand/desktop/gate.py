"""The gate that every operation of a desktop goes through: its interceptors, in order, and the calls under way.

This module owns that order: stopped, paused, interceptors, the desktop's lock, the work, interceptors again. It knows no policy
and records nothing. The interceptors stand outside the lock: they may look at the desktop while they wait for an answer.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, TypeVar

from deskhand._core.attempts import ATTEMPT, Attempt, NoAnswer
from deskhand._native import Interrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from deskhand.desktop.connection import Core
    from deskhand.desktop.operations import Interceptor, Operation

_T = TypeVar("_T")


def operate(
    core: Core,
    interceptors: Sequence[Interceptor],
    operation: Operation,
    work: Callable[[], _T],
    *,
    beside: bool = False,
    interrupt: Callable[[], None] | None = None,
    waits: bool = True,
) -> _T:
    """Do `work` if every interceptor lets it pass.

    Args:
        core: The desktop.
        interceptors: Called before the work in this order, and after it in the reverse order.
        operation: What the work is.
        work: Does it.
        beside: The work runs beside the screen, as a command does, and takes no turn at the desktop.
        interrupt: Ends such work, from any thread or a signal handler; called repeatedly until it has ended.
        waits: Whether it waits while the desktop is paused.
    """
    with _registered(core, operation.attempt):
        core.refuse_if_stopped(operation.type)
        if waits and core.control.pause is not None:
            with _passage(core, operation):
                return _pass(core, interceptors, operation, work, beside=beside, interrupt=interrupt)
        return _pass(core, interceptors, operation, work, beside=beside, interrupt=interrupt)


@contextlib.contextmanager
def _passage(core: Core, operation: Operation) -> Iterator[None]:
    """Wait while the desktop is paused. The interceptors come after that, so that they judge and measure what is done then."""
    core.refuse_if_closed()
    with contextlib.ExitStack() as passage:
        try:
            passage.enter_context(core.control.passage(operation))
        except NoAnswer:
            raise stopped_call(core, operation) from None
        yield


def stopped_call(core: Core, operation: Operation) -> Interrupted:
    """What a call raises that waited and was ended: this, or that the desktop was stopped or closed."""
    core.refuse_if_stopped(operation.type)
    core.refuse_if_closed()
    return Interrupted("this call was stopped")


def _pass(
    core: Core,
    interceptors: Sequence[Interceptor],
    operation: Operation,
    work: Callable[[], _T],
    *,
    beside: bool,
    interrupt: Callable[[], None] | None,
) -> _T:
    passed: list[tuple[Interceptor, object]] = []
    try:
        for interceptor in interceptors:
            token = interceptor.before(operation)
            passed.append((interceptor, token))
        answer = _carry_out(core, operation, work, operation.attempt, beside=beside, interrupt=interrupt)
    except BaseException as error:
        _report(passed, operation, error)
        raise
    _report(passed, operation, answer)
    return answer


def _carry_out(
    core: Core,
    operation: Operation,
    work: Callable[[], _T],
    attempt: Attempt,
    *,
    beside: bool,
    interrupt: Callable[[], None] | None,
) -> _T:
    with contextlib.nullcontext() if beside else core.lock:
        core.refuse_if_stopped(operation.type)
        if attempt.ended:
            raise stopped_call(core, operation)
        attempt.acting, attempt.command = not beside, interrupt
        try:
            return work()
        finally:
            attempt.acting, attempt.command = False, None


@contextlib.contextmanager
def _registered(core: Core, attempt: Attempt) -> Iterator[None]:
    # A call by an interceptor, or by the work, is an attempt of its own.
    token = ATTEMPT.set(None)
    core.attempts[attempt] = threading.get_ident()
    try:
        yield
    finally:
        core.attempts.pop(attempt, None)
        ATTEMPT.reset(token)


def _report(passed: Sequence[tuple[Interceptor, object]], operation: Operation, outcome: object) -> None:
    """Report the outcome to all of them, the last one first, even when one raises."""
    with contextlib.ExitStack() as each:
        for interceptor, token in passed:
            each.callback(interceptor.after, operation, token, outcome)
