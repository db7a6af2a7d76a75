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
import contextlib
import random as randomness
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from deskhand._core.arguments import expect, expect_callable, expect_integer, expect_mapping, expect_several
from deskhand._native import Interrupted
from deskhand.errors import ActionError, BadPlan, DeskhandError, shown
from deskhand.execution.functions import desktop_functions, functions_of
from deskhand.execution.retries import Backoff, is_hopeless
from deskhand.execution.schedule import Schedule, fingerprint, flow, overall_status
from deskhand.execution.types import (
    ExecutionResult,
    ExecutionStatus,
    FunctionCallStrategy,
    FunctionExecutionComplete,
    FunctionExecutionStart,
    RequestFunctionCall,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Sequence
    from types import TracebackType

    from deskhand.execution.functions import AnyDesktop, Function, Functions
    from deskhand.execution.schedule import Lane

__all__ = ["ExecutionEvent", "Executor", "Run", "When", "failed", "succeeded"]

ExecutionEvent = FunctionExecutionStart | FunctionExecutionComplete
"""What is told of a batch."""

When: TypeAlias = Callable[[Mapping[str, ExecutionResult]], bool]
"""Told what came of the calls that a call depends on, by their ids, it says whether the call is made."""


def failed(results: Mapping[str, ExecutionResult]) -> bool:
    """A condition: one of the calls that a call depends on did not succeed."""
    return not succeeded(results)


def succeeded(results: Mapping[str, ExecutionResult]) -> bool:
    """A condition: all calls that a call depends on have succeeded, as where there is no condition."""
    every = expect_mapping("succeeded: results", results).values()
    return all(expect("each of results", result, ExecutionResult).status is ExecutionStatus.SUCCESS for result in every)


@dataclass(slots=True)
class _Kept:
    """A call that was begun, here or in another run of the executor."""

    fingerprint: str
    # None when it has ended.
    under_way: asyncio.Event | None
    result: ExecutionResult | None = None


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
        self._functions: dict[str, Function] = {}
        for function in (*functions_of(functions), *(() if desktops is None else desktop_functions(desktops))):
            if self._functions.setdefault(function.name, function) is not function:
                raise ActionError(f"two functions have the name {function.name!r}: name one of them differently")
        self._backoff = backoff or Backoff()
        self._parallel = parallel
        self._sleep = sleep
        self._random = random
        self._kept: dict[str, _Kept] = {}
        self._remembered = remembered
        # Those of which it is kept what they returned, the oldest first.
        self._whole: deque[_Kept] = deque()

    @property
    def names(self) -> tuple[str, ...]:
        """The functions that calls may name, in order."""
        return tuple(self._functions)

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
        return Run(self, calls, strategy, agent_id, when or {})

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

    def _lane(self, call: RequestFunctionCall) -> Lane | None:
        function = self._functions.get(call.name)
        return None if function is None else function.lane(call.arguments)

    def _known(self, calls: Sequence[RequestFunctionCall]) -> dict[str, ExecutionStatus]:
        """How the calls of before ended that these depend on.

        Raises:
            BadPlan: One of the new ones has the id of another.
        """
        for call in calls:
            kept = self._kept.get(call.id)
            if kept is not None and kept.fingerprint != fingerprint(call):
                raise _taken_id(call)
        found = {needed: self._kept.get(needed) for call in calls for needed in call.dependencies}
        return {
            name: kept.result.status for name, kept in found.items() if kept is not None and kept.result is not None
        }

    def _keep(self, kept: _Kept, result: ExecutionResult) -> None:
        """Remember what came of a call, and forget what the oldest one returned."""
        kept.result = result
        if result.result is None:
            return
        self._whole.append(kept)
        if len(self._whole) > self._remembered:
            oldest = self._whole.popleft()
            assert oldest.result is not None  # noqa: S101 # set above
            error = oldest.result.error or "it was made before, and what it returned is not kept any more"
            oldest.result = ExecutionResult(oldest.result.status, error=error)


class Run:
    """A batch of calls being carried out. Made by `Executor.run`; used in an `async with` block.

    Attributes:
        events: What was told so far.
    """

    def __init__(
        self,
        executor: Executor,
        calls: Sequence[RequestFunctionCall],
        strategy: FunctionCallStrategy,
        agent_id: str,
        when: Mapping[str, When],
    ) -> None:
        """Plan it.

        Raises:
            BadPlan: It cannot be carried out as it is.
        """
        self.events: list[ExecutionEvent] = []
        self._executor = expect("Run: executor", executor, Executor)
        self._given = [
            expect("each of calls", call, RequestFunctionCall) for call in expect_several("execute: calls", calls)
        ]
        self._agent_id = agent_id
        self._when = dict(expect_mapping("execute: when", when))
        for name, condition in self._when.items():
            if not callable(condition):
                raise BadPlan(f"the condition of {shown(name)} is a function, not {shown(condition)}", (str(name),))
        # Calls of one id are one call, and share what comes of it.
        self._same: dict[str, list[RequestFunctionCall]] = {}
        for call in self._given:
            self._same.setdefault(call.id, []).append(call)
        self._schedule = Schedule(
            self._given,
            strategy,
            known=executor._known(self._given),  # noqa: SLF001 # the executor's other half
            lane=executor._lane,  # noqa: SLF001
            width=executor._parallel,  # noqa: SLF001
            conditional=self._when.keys(),
        )
        # Those that were not to be made: that is no failure of the batch.
        self._unwanted: set[str] = set()
        self._results: dict[str, ExecutionResult] = {}
        self._begun = 0
        self._tasks: dict[asyncio.Task[ExecutionResult], RequestFunctionCall] = {}
        self._driver: asyncio.Task[None] | None = None
        self._more = asyncio.Event()
        self._reason: str | None = None

    @property
    def calls(self) -> list[RequestFunctionCall]:
        """The calls, as they were given."""
        return self._given

    @property
    def status(self) -> ExecutionStatus:
        """How the batch stands: PARTIAL when some calls succeeded and some did not.

        Those whose condition was not met do not count, unless there are no others.
        """
        statuses = self._schedule.statuses()
        counted = [status for name, status in statuses.items() if name not in self._unwanted]
        return overall_status(counted or list(statuses.values()))

    def cancel(self, reason: str = "it was cancelled") -> None:
        """Begin no call any more, and stop those under way; from the event loop's own thread. Again is harmless.

        Args:
            reason: What the calls' errors say.
        """
        if self._reason is None:
            self._reason = reason
            self._schedule.cancel(reason)
            for task in self._tasks:
                task.cancel()

    async def wait(self) -> list[ExecutionResult]:
        """Wait for the end of all calls.

        Returns:
            What came of each, in the order given.
        """
        async for _ in self:
            pass
        return [self._results[call.id] for call in self._given]

    async def __aiter__(self) -> AsyncIterator[ExecutionEvent]:
        """All events from the first on, as they happen; ends when all calls have."""
        told = 0
        while True:
            while told < len(self.events):
                told += 1
                yield self.events[told - 1]
            if self._driver is None:
                raise BadPlan("a run is used in an `async with` block: it has not begun")
            if self._driver.done():
                self._driver.result()
                return
            self._more.clear()
            await self._more.wait()

    async def __aenter__(self) -> Self:
        """Begin."""
        self._driver = asyncio.create_task(self._drive())
        self._driver.add_done_callback(lambda _: self._more.set())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Cancel what is left, and wait for its end."""
        assert self._driver is not None  # noqa: S101 # made on entering
        self.cancel("whoever wanted it went away")
        await _to_the_end(self._driver)
        self._driver.result()

    async def _drive(self) -> None:
        for call in self._schedule.calls:
            if call.status is not ExecutionStatus.PENDING:
                self._end(call, ExecutionResult(call.status, call.result, call.error))
        try:
            await self._drive_to_the_end()
        finally:
            # None is left, unless something is wrong with us.
            for task in self._tasks:
                task.cancel()
                await _to_the_end(task)

    async def _drive_to_the_end(self) -> None:
        cancelled: asyncio.CancelledError | None = None
        while True:
            self._end_cancelled()
            while (undecided := self._schedule.take_undecided()) is not None:
                self._decide(undecided)
                self._end_cancelled()
            while (following := self._schedule.start_next()) is not None:
                self._tasks[asyncio.create_task(self._carry_out(following))] = following
            if not self._tasks:
                break
            try:
                await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError as error:
                # The loop ends: nothing may be left behind.
                cancelled = error
                self.cancel("the event loop ends")
            # In the order in which they began, where several have ended.
            for task in [task for task in self._tasks if task.done()]:
                call = self._tasks.pop(task)
                # One that was cancelled before its first step has not run at all.
                result = self._stopped(call, "") if task.cancelled() else task.result()
                self._schedule.finish(call, result)
                self._end(call, result)
        if cancelled is not None:
            raise cancelled

    def _end_cancelled(self) -> None:
        for call, reason in self._schedule.take_cancelled():
            self._end(call, ExecutionResult(ExecutionStatus.CANCELLED, error=f"{call.name} was not called: {reason}"))

    def _decide(self, call: RequestFunctionCall) -> None:
        """Ask the condition of a call; what it raises, or returns besides True and False, is a no."""
        kept = self._executor._kept  # noqa: SLF001 # the executor's other half
        results: dict[str, ExecutionResult] = {}
        for needed in call.dependencies:
            result = self._results[needed] if needed in self._results else kept[needed].result
            assert result is not None  # noqa: S101 # it has ended, here or before
            results[needed] = result
        refusal = None
        try:
            met = self._when[call.id](results)
            if not isinstance(met, bool):
                refusal = f"its condition is neither True nor False: {shown(met)}"
            elif not met:
                refusal = "its condition was not met"
                self._unwanted.add(call.id)
        except Exception as error:  # noqa: BLE001 # the caller's code
            refusal = f"its condition failed: {type(error).__name__}: {error}"
        self._schedule.decide(call, refusal)

    def _tell(self, event: ExecutionEvent) -> None:
        self.events.append(event)
        self._more.set()

    def _begin(self, call: RequestFunctionCall) -> None:
        self._begun += 1
        progress = f"{self._begun}/{len(self._schedule.calls)}"
        self._tell(
            FunctionExecutionStart(
                function_name=call.name,
                function_id=call.id,
                progress=progress,
                agent_id=call.agent_id or self._agent_id,
            )
        )

    def _end(self, call: RequestFunctionCall, result: ExecutionResult) -> None:
        self._results[call.id] = result
        for given in self._same[call.id]:
            given.status, given.result, given.error = result.status, result.result, result.error
            given.retry_count = call.retry_count
        self._tell(
            FunctionExecutionComplete(
                function_name=call.name,
                function_id=call.id,
                status=result.status.value,
                result=result.result,
                error=result.error,
                agent_id=call.agent_id or self._agent_id,
            )
        )

    async def _carry_out(self, call: RequestFunctionCall) -> ExecutionResult:
        """Make a call, unless it was made before. Raises nothing that the call is to blame for."""
        kept = self._executor._kept  # noqa: SLF001 # the executor's other half
        while (other := kept.get(call.id)) is not None:
            if other.fingerprint != fingerprint(call):
                return _failure(call, _taken_id(call))
            if other.result is not None:
                return other.result
            assert other.under_way is not None  # noqa: S101 # it has no result
            try:
                await other.under_way.wait()
            except asyncio.CancelledError:
                return self._stopped(call, "")
        under_way = asyncio.Event()
        mine = kept[call.id] = _Kept(fingerprint(call), under_way)
        try:
            result, begun = await self._make(call)
        except BaseException:
            del kept[call.id]
            raise
        else:
            if begun:
                self._executor._keep(mine, result)  # noqa: SLF001
            else:
                del kept[call.id]
            return result
        finally:
            under_way.set()
            mine.under_way = None

    async def _make(self, call: RequestFunctionCall) -> tuple[ExecutionResult, bool]:
        """Make a call, and make it again where it may be; what came of it, and whether it began."""
        begun, how = False, ""
        function = self._executor._functions.get(call.name)  # noqa: SLF001
        if function is None:
            known = ", ".join(self._executor.names) or "none"
            return _failure(call, ActionError(f"there is no function {shown(call.name)}; there are: {known}")), False
        try:
            arguments = self._arguments(call, function)
            function.check(arguments)
            while True:
                async with function.turns.turn() if function.turns is not None else contextlib.nullcontext():
                    if not begun:
                        begun = True
                        self._begin(call)
                    how = function.stops
                    result, hopeless = await self._try(call, function, arguments)
                over = hopeless or self._reason is not None or call.retry_count >= call.max_retries
                if result.status is not ExecutionStatus.FAILURE or over or not function.is_repeatable(arguments):
                    return result, True
                call.retry_count += 1
                how = f"it was to be made again: {result.error}"
                delay = self._executor._backoff.delay(call.retry_count, self._executor._random())  # noqa: SLF001
                await self._executor._sleep(delay)  # noqa: SLF001
        except asyncio.CancelledError:
            return self._stopped(call, how), begun
        except ActionError as error:
            return _failure(call, error), begun

    def _arguments(self, call: RequestFunctionCall, function: Function) -> dict[str, Any]:
        before = self._schedule.before(call)
        if before is None:
            return dict(call.arguments)
        parameters, required, takes_any = function.parameters(call.arguments)
        return flow(call.arguments, self._results[before.id].result, parameters, required, takes_any=takes_any)

    async def _try(
        self, call: RequestFunctionCall, function: Function, arguments: Mapping[str, Any]
    ) -> tuple[ExecutionResult, bool]:
        """Make a call once; what came of it, and whether it would be the same again."""
        task = asyncio.ensure_future(function.run(arguments))
        timer = None if call.timeout is None else asyncio.ensure_future(self._executor._sleep(call.timeout))  # noqa: SLF001
        try:
            await asyncio.wait([task] if timer is None else [task, timer], return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                task.cancel()
                await _to_the_end(task)
                error = f"{call.name} timed out after {call.timeout:g} s: {function.stops}"
                return ExecutionResult(ExecutionStatus.FAILURE, error=error), False
        except asyncio.CancelledError:
            # What was done by then is told as it is.
            if not task.done() or task.cancelled():
                raise
        finally:
            # Where it is this very task that is cancelled.
            for left in (task, timer):
                if left is not None and not left.done():
                    left.cancel()
                    await _to_the_end(left)
        if task.cancelled():
            error = f"{call.name} was cancelled, by itself or by what it called"
            return ExecutionResult(ExecutionStatus.CANCELLED, error=error), True
        raised = task.exception()
        if isinstance(raised, Interrupted):
            error = f"{call.name} was interrupted by somebody else: {function.stops}"
            return ExecutionResult(ExecutionStatus.CANCELLED, error=error), True
        if raised is not None:
            return _failure(call, raised), is_hopeless(raised)
        returned = task.result()
        if isinstance(returned, ExecutionResult):
            return returned, function.is_final(returned)
        return ExecutionResult(ExecutionStatus.SUCCESS, returned), False

    def _stopped(self, call: RequestFunctionCall, how: str) -> ExecutionResult:
        reason = self._reason or "its task was cancelled"
        said = f"{call.name} was stopped: {reason}; {how}" if how else f"{call.name} was not called: {reason}"
        return ExecutionResult(ExecutionStatus.CANCELLED, error=said)


def _taken_id(call: RequestFunctionCall) -> BadPlan:
    return BadPlan(f"another call had the id {call.id!r} before", (call.id,), "give each call its own")


def _failure(call: RequestFunctionCall, error: BaseException) -> ExecutionResult:
    """What came of a call that raised: some of its actions, where the error says that some were carried out."""
    partly = isinstance(error, DeskhandError) and bool(error.done)
    status = ExecutionStatus.PARTIAL if partly else ExecutionStatus.FAILURE
    said = str(error) if isinstance(error, DeskhandError) else f"{type(error).__name__}: {error}"
    return ExecutionResult(status, error=f"{call.name} failed: {said}")


async def _to_the_end(task: asyncio.Future[Any]) -> None:
    """Wait until a task has ended, also if whoever waits is cancelled meanwhile; that is let through at the end."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if not task.cancelled():
        # Looked at, or asyncio would log it as never retrieved.
        task.exception()
    if cancelled is not None:
        raise cancelled
