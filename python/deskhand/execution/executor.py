"""Function calls carried out: the schedule of a batch on the event loop, with timeouts, repetitions, cancellation and events.

This module owns the tasks. What must never appear here: a rule of which call may run (see `schedule`), or of how often one is
made again (see `retries`).

    >>> executor = Executor([search, Function(fetch, repeatable=True)], desktops=desktop)
    >>> async with executor.run(calls, FunctionCallStrategy.CONDITIONAL) as run:
    ...     async for event in run:
    ...         print(event)

**Once.** An executor belongs to one conversation and one event loop, and remembers what came of each call. A call whose id is
known is not made again: it is answered with what came of it, also after a failure. A call that was cancelled before it began
is not known. An id is never forgotten, because that could click twice; what a call returned is, when `remembered` later ones
have ended: pictures would fill the memory. Such a call is answered with how it ended, and an error that says so.

**Timeouts** count from when a call has begun, for each try anew; not while it waits for its turn on a desktop. What becomes
of a call that takes too long is said in `functions`. Its status is FAILURE.

**Conditions.** With CONDITIONAL, `when` has predicates by the ids of calls. Each is asked once, when all that its call depends
on has ended, and is told what came of that; only True lets the call begin. It is asked on the event loop, and must not wait. So
a call can be made after a failure:

    >>> calls = [save, RequestFunctionCall("restore", {}, call_id="undo", dependencies=[save.id])]
    >>> await executor.execute(calls, FunctionCallStrategy.CONDITIONAL, when={"undo": failed})

**Events.** Each call of a batch has one `FunctionExecutionComplete`. Before it there is one `FunctionExecutionStart` if the
call began: not if it was cancelled before, was answered already, or names a function that there is not. All events are in
`Run.events`, also those that nobody was there to receive.

**Cancellation.** `Run.cancel` keeps what has not begun from beginning and stops what has; all of them end as CANCELLED, and
the stream goes on until their events are told. Cancelling the task that is in the `async with` block does the same, and lets
`CancelledError` through when nothing runs any more. A coroutine that swallows its cancellation is waited for.
"""

from __future__ import annotations

import asyncio
import random as randomness
from typing import TYPE_CHECKING

from deskhand._core.arguments import expect, expect_callable, expect_integer, expect_mapping
from deskhand.errors import ActionError
from deskhand.execution.functions import desktop_functions, functions_of
from deskhand.execution.retries import Backoff
from deskhand.execution.run import ExecutionEvent, ExecutorState, Run, When
from deskhand.execution.types import ExecutionResult, ExecutionStatus, FunctionCallStrategy, RequestFunctionCall

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from deskhand.execution.functions import AnyDesktop, Function, Functions

__all__ = ["Executor", "failed", "succeeded"]


def failed(results: Mapping[str, ExecutionResult]) -> bool:
    """A condition: one of the calls that a call depends on did not succeed."""
    return not succeeded(results)


def succeeded(results: Mapping[str, ExecutionResult]) -> bool:
    """A condition: all calls that a call depends on have succeeded, as where there is no condition."""
    every = expect_mapping("succeeded: results", results).values()
    return all(expect("each of results", result, ExecutionResult).status is ExecutionStatus.SUCCESS for result in every)


class Executor:
    """Carries out function calls.

    Attributes:
        names: The functions that calls may name, in order.
    """

    def __init__(
        self,
        functions: Functions = (),
        *,
        desktops: AnyDesktop | Mapping[str, AnyDesktop] | None = None,
        backoff: Backoff | None = None,
        parallel: int = 16,
        remembered: int = 64,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        random: Callable[[], float] = randomness.random,
    ) -> None:
        """Make one for a conversation.

        Args:
            functions: What calls may name; plain callables are not repeated after a failure, see `Function`.
            desktops: A desktop, or several by name, whose actions calls may name; see `desktop_functions`. Nobody else should
                use them while calls run, except through another executor.
            backoff: How long it is waited for before a call is made again.
            parallel: How many calls run together at most.
            remembered: Of how many calls, the last that have ended, it is kept what they returned.
            sleep: Waits for some seconds; tests give their own.
            random: A random number, 0.0...1.0, for the back-off.

        Raises:
            ActionError: Two functions have one name, `parallel` is less than 1, or `remembered` less than 0.
        """
        expect_integer("Executor: parallel", parallel, 1)
        expect_integer("Executor: remembered", remembered, 0)
        expect_callable("Executor: sleep", sleep)
        expect_callable("Executor: random", random)
        named: dict[str, Function] = {}
        for function in (*functions_of(functions), *(() if desktops is None else desktop_functions(desktops))):
            if named.setdefault(function.name, function) is not function:
                raise ActionError(f"two functions have the name {function.name!r}: name one of them differently")
        self._state = ExecutorState(named, backoff or Backoff(), parallel, remembered, sleep, random)

    @property
    def names(self) -> tuple[str, ...]:
        """The functions that calls may name, in order."""
        return tuple(self._state.functions)

    def run(
        self,
        calls: Sequence[RequestFunctionCall],
        strategy: FunctionCallStrategy = FunctionCallStrategy.SEQUENTIAL,
        *,
        agent_id: str = "",
        when: Mapping[str, When] | None = None,
    ) -> Run:
        """A batch of calls, which begins with its `async with` block and has ended after it.

        Args:
            calls: The calls; each gets its `status`, `result`, `error` and `retry_count`.
            strategy: How they are carried out.
            agent_id: For whom, where a call does not say.
            when: With CONDITIONAL, predicates by the ids of calls, which say whether these are made; see above.

        Raises:
            BadPlan: The batch cannot be carried out as it is; none of it was.
        """
        return Run(self._state, calls, strategy, agent_id, when or {})

    async def execute(
        self,
        calls: Sequence[RequestFunctionCall],
        strategy: FunctionCallStrategy = FunctionCallStrategy.SEQUENTIAL,
        *,
        agent_id: str = "",
        when: Mapping[str, When] | None = None,
    ) -> list[ExecutionResult]:
        """Carry out a batch of calls.

        Returns:
            What came of each, in the order given.

        Raises:
            BadPlan: As of `run`.
        """
        async with self.run(calls, strategy, agent_id=agent_id, when=when) as run:
            return await run.wait()

    async def stream(
        self,
        calls: Sequence[RequestFunctionCall],
        strategy: FunctionCallStrategy = FunctionCallStrategy.SEQUENTIAL,
        *,
        agent_id: str = "",
        when: Mapping[str, When] | None = None,
    ) -> AsyncIterator[ExecutionEvent]:
        """Carry out a batch of calls and tell of it; closing the stream (`contextlib.aclosing`) cancels what is left.

        Raises:
            BadPlan: As of `run`.
        """
        async with self.run(calls, strategy, agent_id=agent_id, when=when) as run:
            async for event in run:
                yield event
