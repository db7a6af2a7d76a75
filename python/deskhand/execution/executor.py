"""Carries out function calls: a batch's schedule on the event loop, with timeouts, repetitions, cancellation and events.

This module owns the tasks. The rules of which call may run are in `schedule`, and those of repetition in `retries`.

    >>> executor = Executor([search, Function(fetch, repeatable=True)], desktops=desktop)
    >>> async with executor.run(calls, FunctionCallStrategy.CONDITIONAL) as run:
    ...     async for event in run:
    ...         print(event)

**Once.** An executor belongs to one conversation and one event loop, and remembers the result of each call. A call with a
known id is not made again: it gets the known result, even if that is a failure. A call that was cancelled before it began
is not known. Ids are never forgotten, because repeating a call could click twice. Results are forgotten once `remembered`
later calls have ended, because pictures would fill the memory; such a call gets its status and an error that explains it.

**Timeouts** count from the beginning of each try, not while a call waits for its turn on a desktop. `functions` describes what
happens to a call that takes too long. Its status is FAILURE.

**Conditions.** With CONDITIONAL, `when` has predicates by the ids of calls. Each is called once, with the results of the
calls that its call depends on, when all of these have ended. The call begins only if it returns True. It runs on the event
loop and must not block. So a call can be made after a failure:

    >>> calls = [save, RequestFunctionCall("restore", {}, call_id="undo", dependencies=[save.id])]
    >>> await executor.execute(calls, FunctionCallStrategy.CONDITIONAL, when={"undo": failed})

**Events.** Each call of a batch has one `FunctionExecutionComplete`. One `FunctionExecutionStart` comes before it if the call
began: not if it was cancelled before, has a known result, or names an unknown function. All events are in `Run.events`, even
those that no iterator received.

**Cancellation.** `Run.cancel` stops running calls and lets no other begin. All of them end as CANCELLED, and the stream
continues until it has yielded their events. Cancelling the task that is in the `async with` block does the same, and raises
`CancelledError` once nothing runs any more. A coroutine that swallows its cancellation is waited for.
"""

from __future__ import annotations

import asyncio
import random as randomness
from typing import TYPE_CHECKING

from deskhand._core.arguments import expect, expect_callable, expect_integer, expect_mapping
from deskhand.errors import ActionError
from deskhand.execution.executor_state import ExecutorState
from deskhand.execution.functions import desktop_functions, functions_of
from deskhand.execution.retries import Backoff
from deskhand.execution.run import ExecutionEvent, Run, When
from deskhand.execution.types import ExecutionResult, ExecutionStatus, FunctionCallStrategy, RequestFunctionCall

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from deskhand.execution.functions import AnyDesktop, Function, Functions


def failed(results: Mapping[str, ExecutionResult]) -> bool:
    """A condition: a call that this one depends on did not succeed."""
    return not succeeded(results)


def succeeded(results: Mapping[str, ExecutionResult]) -> bool:
    """A condition: all calls that this one depends on have succeeded, as without a condition."""
    every = expect_mapping("succeeded: results", results).values()
    return all(expect("each of results", result, ExecutionResult).status is ExecutionStatus.SUCCESS for result in every)


class Executor:
    """Carries out function calls.

    Attributes:
        names: The functions that calls may name, in the order given.
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
        """Make an executor for a conversation.

        Args:
            functions: The functions that calls may name; a plain callable is not repeated, see `Function`.
            desktops: A desktop, or several by name, whose actions calls may name; see `desktop_functions`. While calls run,
                use them only through executors.
            backoff: How long to wait before a call is made again.
            parallel: How many calls run together at most.
            remembered: How many results are kept, of the calls that ended last.
            sleep: Waits for some seconds; tests replace it.
            random: A random number, 0.0...1.0, for the back-off.

        Raises:
            ActionError: Two functions have the same name, `parallel` is less than 1, or `remembered` less than 0.
        """
        expect_integer("Executor: parallel", parallel, 1)
        expect_integer("Executor: remembered", remembered, 0)
        expect_callable("Executor: sleep", sleep)
        expect_callable("Executor: random", random)
        named: dict[str, Function] = {}
        for function in (*functions_of(functions), *(() if desktops is None else desktop_functions(desktops))):
            if named.setdefault(function.name, function) is not function:
                raise ActionError(f"two functions have the name {function.name!r}: rename one of them")
        self._state = ExecutorState(named, backoff or Backoff(), parallel, remembered, sleep, random)

    @property
    def names(self) -> tuple[str, ...]:
        """The functions that calls may name, in the order given."""
        return tuple(self._state.functions)

    def run(
        self,
        calls: Sequence[RequestFunctionCall],
        strategy: FunctionCallStrategy = FunctionCallStrategy.SEQUENTIAL,
        *,
        agent_id: str = "",
        when: Mapping[str, When] | None = None,
    ) -> Run:
        """A batch of calls. It begins on entering its `async with` block and has ended on leaving it.

        Args:
            calls: The calls; each gets its `status`, `result`, `error` and `retry_count`.
            strategy: How they are carried out.
            agent_id: The agent of calls that do not name one.
            when: With CONDITIONAL, predicates by the ids of calls that decide whether these are made; see above.

        Raises:
            BadPlan: The batch cannot be carried out as it is. No call of it was made.
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
            The result of each call, in the order given.

        Raises:
            BadPlan: As for `run`.
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
        """Carry out a batch and yield its events. Closing the stream (`contextlib.aclosing`) cancels the remaining calls.

        Raises:
            BadPlan: As for `run`.
        """
        async with self.run(calls, strategy, agent_id=agent_id, when=when) as run:
            async for event in run:
                yield event
