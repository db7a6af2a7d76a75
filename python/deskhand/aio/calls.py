"""How a coroutine waits for a call that blocks: in which thread the call runs, and how a cancellation ends it.

This module owns these threads. `deskhand.aio.desktop`, which is generated, has the calls.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from deskhand._core.attempts import ATTEMPT, CALLER, Attempt
from deskhand._core.forks import Owner
from deskhand.desktop.access import is_judged
from deskhand.machine.shell import Shell

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from deskhand.desktop.desktop import Desktop

_P_co = TypeVar("_P_co", covariant=True)
_T = TypeVar("_T")
_STOP_PERIOD = 0.05


class Calls:
    """Runs calls of an object in other threads, with the context variables of the caller.

    One thread runs them, one after the other, in the order in which they were begun. If a person may be asked about them,
    each has a thread of its own instead, because that person may look at the desktop meanwhile. Their order is not kept then.
    """

    def __init__(self, target: Desktop | Shell, executor: ThreadPoolExecutor | None = None) -> None:
        """Run calls of `target`; those without a policy in `executor`, which other objects may share."""
        self._target = target
        self._owner = Owner()
        self._executor = executor or ThreadPoolExecutor(max_workers=1, thread_name_prefix="deskhand")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """As `close` of the object itself. Calling it again is harmless."""
        try:
            await asyncio.shield(asyncio.to_thread(self._target.close))
        finally:
            self._executor.shutdown(wait=False)

    async def _call(self, function: Callable[[], _T]) -> _T:
        self._owner.refuse_if_parent("this desktop")
        attempt = Attempt(asyncio.get_running_loop()) if _is_judged(self._target) else None
        context, caller = contextvars.copy_context(), object()
        context.run(CALLER.set, caller)
        job = (
            self._executor.submit(context.run, function) if attempt is None else _in_thread(function, context, attempt)
        )
        future = asyncio.wrap_future(job)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            # The thread cannot be abandoned: it must release what it holds pressed before the caller goes on.
            # (The future would accept a cancellation while its thread runs on; the job knows.)
            if attempt is not None or not job.cancel():
                await self._ended(future, attempt, caller)
            raise

    async def _ended(self, future: asyncio.Future[_T], attempt: Attempt | None, caller: object) -> None:
        """Stop the caller's call, and wait for its end."""
        while not future.done():
            # Repeated, because a call that was about to begin forgets earlier requests.
            if attempt is not None:
                attempt.end()
            if attempt is None or attempt.acting:
                self._target._interrupt(caller)  # noqa: SLF001 # for here only
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([future], timeout=_STOP_PERIOD)
        # Fetched, or asyncio would log it as never retrieved; the caller gets the cancellation.
        if future.exception() is None and isinstance(result := future.result(), Shell):
            # No caller has this shell.
            await asyncio.shield(asyncio.to_thread(result.close))


class Part(Generic[_P_co]):
    """A part of a desktop, such as its clipboard. Its calls are calls of the desktop."""

    def __init__(self, calls: Calls, part: _P_co) -> None:
        """Run calls of `part` as those of the desktop are run."""
        self._calls = calls
        self._part = part

    async def _call(self, function: Callable[[], _T]) -> _T:
        return await self._calls._call(function)  # noqa: SLF001 # of the same module


def of_part(part: Part[_P_co]) -> _P_co:
    """The object on which a part's calls are made; anything else is returned, and refused where it is used."""
    return part._part if isinstance(part, Part) else part  # noqa: SLF001 # of the same module


def _is_judged(target: Desktop | Shell) -> bool:
    return target.judged if isinstance(target, Shell) else is_judged(target)


def _in_thread(function: Callable[[], _T], context: contextvars.Context, attempt: Attempt) -> Future[_T]:
    context.run(ATTEMPT.set, attempt)
    job: Future[_T] = Future()

    def run() -> None:
        try:
            result = context.run(function)
        except BaseException as error:  # noqa: BLE001 # whatever it is, it is the caller's
            job.set_exception(error)
        else:
            job.set_result(result)

    threading.Thread(target=run, name="deskhand-call", daemon=True).start()
    return job
