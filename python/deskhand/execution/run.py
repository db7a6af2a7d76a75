"""A batch of function calls that is being carried out."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from deskhand._core.arguments import expect, expect_mapping, expect_several
from deskhand._native import Interrupted
from deskhand.errors import ActionError, BadPlan, DeskhandError, shown
from deskhand.execution.batch_checks import fingerprint
from deskhand.execution.executor_state import ExecutorState, KeptCall, taken_id
from deskhand.execution.retries import is_hopeless
from deskhand.execution.schedule import Schedule, flow, overall_status
from deskhand.execution.stream_events import FunctionExecutionComplete, FunctionExecutionStart
from deskhand.execution.types import ExecutionResult, ExecutionStatus, FunctionCallStrategy, RequestFunctionCall

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from types import TracebackType

    from deskhand.execution.functions import Function

ExecutionEvent = FunctionExecutionStart | FunctionExecutionComplete
"""An event of a batch."""
When: TypeAlias = Callable[[Mapping[str, ExecutionResult]], bool]
"""Gets the results of the calls that a call depends on, by their ids, and returns whether the call is made."""


class Run:
    """A batch of calls that is being carried out. Made by `Executor.run`; used in an `async with` block.

    Attributes:
        events: The events so far.
    """

    def __init__(
        self,
        state: ExecutorState,
        calls: Sequence[RequestFunctionCall],
        strategy: FunctionCallStrategy,
        agent_id: str,
        when: Mapping[str, When],
    ) -> None:
        """Plan the batch.

        Raises:
            BadPlan: The batch cannot be carried out as it is.
        """
        self.events: list[ExecutionEvent] = []
        self._state = expect("Run: state", state, ExecutorState)
        self._given = [
            expect("each of calls", call, RequestFunctionCall) for call in expect_several("execute: calls", calls)
        ]
        self._agent_id = agent_id
        self._when = dict(expect_mapping("execute: when", when))
        for name, condition in self._when.items():
            if not callable(condition):
                raise BadPlan(
                    f"the condition of {shown(name)} must be a function, not {shown(condition)}", (str(name),)
                )
        # Calls with the same id are one call, and share its result.
        self._same: dict[str, list[RequestFunctionCall]] = {}
        for call in self._given:
            self._same.setdefault(call.id, []).append(call)
        self._schedule = Schedule(
            self._given,
            strategy,
            known=state.known(self._given),
            lane=state.lane,
            width=state.parallel,
            conditional=self._when.keys(),
        )
        # Calls that were left out by their condition do not count as failures of the batch.
        self._unwanted: set[str] = set()
        self._results: dict[str, ExecutionResult] = {}
        self._begun = 0
        self._tasks: dict[asyncio.Task[ExecutionResult], RequestFunctionCall] = {}
        self._driver: asyncio.Task[None] | None = None
        self._more = asyncio.Event()
        self._reason: str | None = None

    @property
    def calls(self) -> list[RequestFunctionCall]:
        """The calls, in the order given."""
        return self._given

    @property
    def status(self) -> ExecutionStatus:
        """The status of the batch: PARTIAL if some calls succeeded and some did not.

        Calls that were left out by their condition do not count, unless there are no others.
        """
        statuses = self._schedule.statuses()
        counted = [status for name, status in statuses.items() if name not in self._unwanted]
        return overall_status(counted or list(statuses.values()))

    def cancel(self, reason: str = "it was cancelled") -> None:
        """Let no further call begin, and stop the running ones; from the event loop's own thread. Further calls do nothing.

        Args:
            reason: The reason in the calls' errors.
        """
        if self._reason is None:
            self._reason = reason
            self._schedule.cancel(reason)
            for task in self._tasks:
                task.cancel()

    async def wait(self) -> list[ExecutionResult]:
        """Wait until all calls have ended.

        Returns:
            The result of each call, in the order given.
        """
        async for _ in self:
            pass
        return [self._results[call.id] for call in self._given]

    async def __aiter__(self) -> AsyncIterator[ExecutionEvent]:
        """Yield all events from the first on, as they happen, until all calls have ended."""
        yielded = 0
        while True:
            while yielded < len(self.events):
                yielded += 1
                yield self.events[yielded - 1]
            if self._driver is None:
                raise BadPlan("the run has not begun: use it in an `async with` block")
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
        """Cancel the remaining calls, and wait until they have ended."""
        assert self._driver is not None  # noqa: S101 # made on entering
        self.cancel("the batch's `async with` block was left")
        await _to_the_end(self._driver)
        self._driver.result()

    async def _drive(self) -> None:
        for call in self._schedule.calls:
            if call.status is not ExecutionStatus.PENDING:
                self._end(call, ExecutionResult(call.status, call.result, call.error))
        try:
            await self._drive_to_the_end()
        finally:
            # Empty, unless this class has a defect.
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
                # The event loop ends: nothing may be left running.
                cancelled = error
                self.cancel("the event loop ends")
            # In the order of their beginning, if several have ended.
            for task in [task for task in self._tasks if task.done()]:
                call = self._tasks.pop(task)
                # A task that was cancelled before its first step has not run at all.
                result = self._stopped(call, "") if task.cancelled() else task.result()
                self._schedule.finish(call, result)
                self._end(call, result)
        if cancelled is not None:
            raise cancelled

    def _end_cancelled(self) -> None:
        for call, reason in self._schedule.take_cancelled():
            self._end(call, ExecutionResult(ExecutionStatus.CANCELLED, error=f"{call.name} was not called: {reason}"))

    def _decide(self, call: RequestFunctionCall) -> None:
        """Evaluate the condition of a call. An exception, or a value that is not a bool, counts as no."""
        kept = self._state.kept
        results: dict[str, ExecutionResult] = {}
        for needed in call.dependencies:
            result = self._results[needed] if needed in self._results else kept[needed].result
            assert result is not None  # noqa: S101 # the call has ended, here or before
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
        """Make a call, unless it was made before. Errors of the call become its result."""
        kept = self._state.kept
        while (other := kept.get(call.id)) is not None:
            if other.fingerprint != fingerprint(call):
                return _failure(call, taken_id(call))
            if other.result is not None:
                return other.result
            assert other.under_way is not None  # noqa: S101 # it has no result
            try:
                await other.under_way.wait()
            except asyncio.CancelledError:
                return self._stopped(call, "")
        under_way = asyncio.Event()
        mine = kept[call.id] = KeptCall(fingerprint(call), under_way)
        try:
            result, begun = await self._make(call)
        except BaseException:
            del kept[call.id]
            raise
        else:
            if begun:
                self._state.keep(mine, result)
            else:
                del kept[call.id]
            return result
        finally:
            under_way.set()
            mine.under_way = None

    async def _make(self, call: RequestFunctionCall) -> tuple[ExecutionResult, bool]:
        """Make a call, and repeat it if allowed. Returns the result, and whether the call began."""
        begun, how = False, ""
        function = self._state.functions.get(call.name)
        if function is None:
            known = ", ".join(self._state.functions) or "none"
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
                how = f"it was waiting to be repeated: {result.error}"
                delay = self._state.backoff.delay(call.retry_count, self._state.random())
                await self._state.sleep(delay)
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
        """Make a call once. Returns the result, and whether another try would give the same."""
        task = asyncio.ensure_future(function.run(arguments))
        timer = None if call.timeout is None else asyncio.ensure_future(self._state.sleep(call.timeout))
        try:
            await asyncio.wait([task] if timer is None else [task, timer], return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                task.cancel()
                await _to_the_end(task)
                error = f"{call.name} timed out after {call.timeout:g} s: {function.stops}"
                return ExecutionResult(ExecutionStatus.FAILURE, error=error), False
        except asyncio.CancelledError:
            # Keep the result of a task that has ended in spite of the cancellation.
            if not task.done() or task.cancelled():
                raise
        finally:
            # Also reached when this task itself is cancelled.
            for left in (task, timer):
                if left is not None and not left.done():
                    left.cancel()
                    await _to_the_end(left)
        if task.cancelled():
            error = f"{call.name} was cancelled, by itself or by what it called"
            return ExecutionResult(ExecutionStatus.CANCELLED, error=error), True
        raised = task.exception()
        if isinstance(raised, Interrupted):
            error = f"{call.name} was interrupted from outside the batch: {function.stops}"
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


def _failure(call: RequestFunctionCall, error: BaseException) -> ExecutionResult:
    """The result of a call that raised: PARTIAL if the error says that some of its actions were carried out."""
    partly = isinstance(error, DeskhandError) and bool(error.done)
    status = ExecutionStatus.PARTIAL if partly else ExecutionStatus.FAILURE
    said = str(error) if isinstance(error, DeskhandError) else f"{type(error).__name__}: {error}"
    return ExecutionResult(status, error=f"{call.name} failed: {said}")


async def _to_the_end(task: asyncio.Future[Any]) -> None:
    """Wait until a task has ended, even if this task is cancelled meanwhile; the cancellation is raised at the end."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if not task.cancelled():
        # Without this, asyncio would log that the exception was never retrieved.
        task.exception()
    if cancelled is not None:
        raise cancelled
