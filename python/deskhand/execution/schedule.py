"""Decides which call of a batch may run next, and which never will: the strategies, as a machine without time. Pure.

This module owns the rules. It has no functions, no clock and no events. Which batches are refused is in `batch_checks`.

**SEQUENTIAL.** One at a time, in the order given. A call that fails does not affect the others.

**PARALLEL.** All at once (as many as the executor has room for; they begin in the order given).

**CONDITIONAL.** Each call begins as soon as all calls that it depends on have succeeded; independent calls run together. A
call with a condition of its own waits until these have ended, with any status. The caller then decides whether it is made
(`take_undecided`, `decide`), and a failure of these does not cancel it.

**PIPELINE.** One at a time, in the order given, each with the output of the one before (see `flow`). If one fails, the rest
is cancelled, because there is no output to continue with.

**Dependencies** mean the same under every strategy, except for a call with a condition: a call begins when all of them have
succeeded, and is cancelled, with the reason, when one has not. They may name calls of the same batch and earlier calls. With
strategies that keep the order given they can only point back. PARALLEL takes none, because no call waits.

**Lanes.** Calls of one lane (a desktop) never run together, under any strategy; ready calls take turns in the order given. If
a call that acts (a click, a text) fails, the later acting calls of the same lane are cancelled, because they relied on its
effect. Calls that only look are carried out.

To fail means to end with any status but SUCCESS. A call whose status is not PENDING when it is planned has already ended that
way, and is not carried out. Two calls with one id are one call, if their names and arguments are the same.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deskhand._core.arguments import expect, expect_several
from deskhand.errors import BadPlan
from deskhand.execution.batch_checks import check_conditions, check_dependencies, distinct
from deskhand.execution.types import ExecutionResult, ExecutionStatus, FunctionCallStrategy, RequestFunctionCall

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Mapping, Sequence

_ONE_AT_A_TIME = (FunctionCallStrategy.SEQUENTIAL, FunctionCallStrategy.PIPELINE)


@dataclass(frozen=True, slots=True)
class Lane:
    """What a call needs exclusively while it runs.

    Attributes:
        of: The thing itself; equal values are one lane.
        name: Its name for people.
        looks: The call only looks: its failure does not affect other calls, and theirs does not affect it.
    """

    of: Hashable
    name: str = "the desktop"
    looks: bool = False


def overall_status(statuses: Collection[ExecutionStatus]) -> ExecutionStatus:
    """The status of a batch.

    Returns:
        PENDING until all calls have ended; then SUCCESS or CANCELLED if all have it, PARTIAL if some succeeded, else FAILURE.
    """
    several = expect_several("overall_status: statuses", statuses)
    kinds = {expect("each of statuses", status, ExecutionStatus) for status in several}
    if ExecutionStatus.PENDING in kinds:
        return ExecutionStatus.PENDING
    if kinds <= {ExecutionStatus.SUCCESS}:
        return ExecutionStatus.SUCCESS
    if kinds & {ExecutionStatus.SUCCESS, ExecutionStatus.PARTIAL}:
        return ExecutionStatus.PARTIAL
    return ExecutionStatus.CANCELLED if kinds == {ExecutionStatus.CANCELLED} else ExecutionStatus.FAILURE


def flow(
    arguments: Mapping[str, Any], output: object, parameters: Sequence[str], required: Sequence[str], *, takes_any: bool
) -> dict[str, Any]:
    """The arguments of a call in a pipeline: its own, and the output of the call before.

    Its own arguments always win. From a mapping, each parameter gets the value under its name; other values are left out,
    unless the function takes any name. None adds nothing. Any other value becomes the first required parameter without a
    value; if there is none, it is not passed on.

    Args:
        arguments: The call's own arguments.
        output: The output of the call before.
        parameters: The names of all parameters.
        required: The names of those without a default, in order.
        takes_any: Whether the function takes any other name too.
    """
    merged = dict(arguments)
    if isinstance(output, dict):
        passed = {name: value for name, value in output.items() if isinstance(name, str)}
        merged = {name: value for name, value in passed.items() if takes_any or name in parameters} | merged
    elif output is not None:
        missing = next((name for name in required if name not in merged), None)
        if missing is not None:
            merged[missing] = output
    return merged


class Schedule:
    """The progress of a batch: which calls may begin, which are running, which have ended.

    Attributes:
        calls: The calls, without duplicates, in the order given.
        strategy: How they are carried out.
    """

    def __init__(
        self,
        calls: Sequence[RequestFunctionCall],
        strategy: FunctionCallStrategy = FunctionCallStrategy.SEQUENTIAL,
        *,
        known: Mapping[str, ExecutionStatus] | None = None,
        lane: Callable[[RequestFunctionCall], Lane | None] = lambda _call: None,
        width: int | None = None,
        conditional: Collection[str] = (),
    ) -> None:
        """Plan a batch.

        Args:
            calls: The calls; those that have already ended keep their status.
            strategy: How they are carried out.
            known: The status of earlier calls, by id.
            lane: Returns the lane of a call.
            width: How many calls may run together; None for any number.
            conditional: Ids of the calls that have a condition of their own.

        Raises:
            BadPlan: The batch cannot be carried out as it is; the error names the reason and the calls.
        """
        self.strategy = strategy
        self._width = 1 if strategy in _ONE_AT_A_TIME else width
        self._known = dict(known or {})
        self._lane = lane
        by_id = distinct(calls)
        self.calls: list[RequestFunctionCall] = list(by_id.values())
        check_dependencies(self.calls, strategy, self._known)
        check_conditions(conditional, strategy, by_id)
        # Not by comparing calls: their results may be of any type, and some types cannot be compared.
        self._place = {call.id: number for number, call in enumerate(self.calls)}
        self._by_id = by_id
        # `_undecided`: calls that wait for no other call, and whose condition is to be decided.
        self._conditional = frozenset(conditional)
        self._undecided: deque[RequestFunctionCall] = deque()
        self._needed_by: dict[str, list[RequestFunctionCall]] = {}
        for call in self.calls:
            for needed in call.dependencies:
                self._needed_by.setdefault(needed, []).append(call)
        self._status = {call.id: call.status for call in self.calls}
        self._lanes = {call.id: lane(call) for call in self.calls}
        # In the order given.
        self._pending = {call.id: call for call in self.calls if call.status is ExecutionStatus.PENDING}
        self._running: dict[str, None] = {}
        self._busy: set[Hashable] = set()
        # How many calls of the batch each call waits for.
        self._unmet = {
            call.id: sum(self._status.get(needed) is ExecutionStatus.PENDING for needed in call.dependencies)
            for call in self.calls
        }
        # Calls that wait only for their turn, by lane, as heaps of places, so that no call is looked at repeatedly.
        self._ready: dict[Hashable, list[int]] = {}
        # The places of acting calls, by lane, and the place at which a pipeline ends.
        self._acting: dict[Hashable, list[int]] = {}
        self._until = len(self.calls)
        self._cancelled: deque[tuple[RequestFunctionCall, str]] = deque()
        self._sort_into_lanes()
        # Cancel the calls that can no longer begin because of those that have already ended.
        for call in self.calls:
            if call.status not in (ExecutionStatus.PENDING, ExecutionStatus.SUCCESS):
                self._take_along(call)
        for call in self.calls:
            if call.id in self._conditional:
                continue
            for needed in call.dependencies:
                status = self._known.get(needed)
                if needed not in by_id and status is not ExecutionStatus.SUCCESS:
                    self._drop(call, f"it depends on {needed}, which did not succeed before")

    @property
    def done(self) -> bool:
        """Whether all calls have ended."""
        return not self._pending and not self._running

    @property
    def running(self) -> list[RequestFunctionCall]:
        """The running calls, in the order in which they began."""
        return [self._by_id[name] for name in self._running]

    def statuses(self) -> dict[str, ExecutionStatus]:
        """The status of each call, by id."""
        return dict(self._status)

    def before(self, call: RequestFunctionCall) -> RequestFunctionCall | None:
        """The call whose output a call of a pipeline gets: the one before. None for the first, and under other strategies."""
        position = self._place[call.id]
        return self.calls[position - 1] if position and self.strategy is FunctionCallStrategy.PIPELINE else None

    def start_next(self) -> RequestFunctionCall | None:
        """Take the next call that may begin, and count it as running; None if none may begin."""
        if self._width is not None and len(self._running) >= self._width:
            return None
        first: int | None = None
        for of, places in self._ready.items():
            # Skip calls that were cancelled meanwhile.
            while places and self.calls[places[0]].id not in self._pending:
                heapq.heappop(places)
            if places and of not in self._busy and (first is None or places[0] < first):
                first = places[0]
        if first is None:
            return None
        call = self.calls[first]
        lane = self._lanes[call.id]
        heapq.heappop(self._ready[None if lane is None else lane.of])
        if lane is not None:
            self._busy.add(lane.of)
        del self._pending[call.id]
        self._running[call.id] = None
        return call

    def finish(self, call: RequestFunctionCall, result: ExecutionResult) -> None:
        """Record the result of a running call; `take_cancelled` then lists the calls that will never begin.

        Raises:
            BadPlan: The call is not running, or the result is PENDING.
        """
        if call.id not in self._running or result.status is ExecutionStatus.PENDING:
            raise BadPlan(f"the call {call.id} ({call.name}) is not running, or has not ended", (call.id,))
        del self._running[call.id]
        lane = self._lanes[call.id]
        if lane is not None:
            self._busy.discard(lane.of)
        self._status[call.id] = result.status
        succeeded = result.status is ExecutionStatus.SUCCESS
        self._ended(call, succeeded=succeeded)
        if not succeeded:
            self._take_along(call)

    def take_undecided(self) -> RequestFunctionCall | None:
        """Take a call whose condition is to be decided now, because all its dependencies have ended; None if there is none."""
        while self._undecided:
            call = self._undecided.popleft()
            if call.id in self._pending:
                return call
        return None

    def decide(self, call: RequestFunctionCall, refusal: str | None) -> None:
        """Let a call begin after its condition, or cancel it with a reason."""
        if refusal is None:
            self._make_ready(call)
        else:
            self._drop(call, refusal)

    def cancel(self, reason: str) -> None:
        """Let no call begin any more; the caller must end the running ones."""
        for call in self.calls:
            self._drop(call, reason)

    def take_cancelled(self) -> list[tuple[RequestFunctionCall, str]]:
        """The calls that were cancelled since the last call of this method, in the order given, with the reason."""
        taken = list(self._cancelled)
        self._cancelled.clear()
        return sorted(taken, key=lambda pair: self._place[pair[0].id])

    def _sort_into_lanes(self) -> None:
        for place, call in enumerate(self.calls):
            lane = self._lanes[call.id]
            if lane is not None and not lane.looks:
                self._acting.setdefault(lane.of, []).append(place)
            if call.id in self._pending and not self._unmet[call.id]:
                self._wait_no_more(call)

    def _ended(self, call: RequestFunctionCall, *, succeeded: bool) -> None:
        """Count down the calls that depend on a call that has ended or will never begin."""
        for dependent in self._needed_by.get(call.id, ()):
            if succeeded or dependent.id in self._conditional:
                self._unmet[dependent.id] -= 1
                if not self._unmet[dependent.id] and dependent.id in self._pending:
                    self._wait_no_more(dependent)

    def _wait_no_more(self, call: RequestFunctionCall) -> None:
        if call.id in self._conditional:
            self._undecided.append(call)
        else:
            self._make_ready(call)

    def _make_ready(self, call: RequestFunctionCall) -> None:
        lane = self._lanes[call.id]
        heapq.heappush(self._ready.setdefault(None if lane is None else lane.of, []), self._place[call.id])

    def _drop(self, call: RequestFunctionCall, reason: str) -> None:
        # A loop instead of recursion: a batch may be one long chain.
        todo = deque([(call, reason)])
        while todo:
            dropped, why = todo.popleft()
            if self._pending.pop(dropped.id, None) is not None:
                self._status[dropped.id] = ExecutionStatus.CANCELLED
                self._cancelled.append((dropped, why))
                self._ended(dropped, succeeded=False)
                todo += self._dependents(dropped)

    def _take_along(self, failed: RequestFunctionCall) -> None:
        """Cancel the calls that cannot begin, or must not, after a call that did not succeed."""
        for dependent, why in self._dependents(failed):
            self._drop(dependent, why)
        place = self._place[failed.id]
        if self.strategy is FunctionCallStrategy.PIPELINE:
            for call in self.calls[place + 1 : self._until]:
                self._drop(call, f"{failed.id} ({failed.name}), whose output it needs, did not succeed")
            self._until = min(self._until, place + 1)
            return
        lane = self._lanes.get(failed.id)
        if lane is None or lane.looks:
            return
        # None of them runs, since the failed call had the lane. They need not be looked at again.
        acting = self._acting[lane.of]
        behind = bisect_right(acting, place)
        # A call with a condition on the failed one does not rely on its success, so it stays.
        following = [self.calls[each] for each in acting[behind:]]
        acting[behind:] = [self._place[each.id] for each in following if self._asks_about(each, failed)]
        for each in following:
            if self._asks_about(each, failed):
                continue
            self._drop(
                each,
                f"{failed.id} ({failed.name}), which was to act on {lane.name} before it, did not succeed",
            )

    def _asks_about(self, call: RequestFunctionCall, failed: RequestFunctionCall) -> bool:
        return call.id in self._conditional and failed.id in call.dependencies

    def _dependents(self, failed: RequestFunctionCall) -> list[tuple[RequestFunctionCall, str]]:
        why = f"it depends on {failed.id} ({failed.name}), which did not succeed"
        return [(call, why) for call in self._needed_by.get(failed.id, ()) if call.id not in self._conditional]
