"""Which call of a batch may run next, and which never will: the strategies, as a machine without time. Pure.

This module owns the rules. What must never appear here: a function, a clock, an event.

**SEQUENTIAL.** One at a time, in the order given. One that fails does not hold up the others.

**PARALLEL.** All at once (as many as the executor has room for; they begin in the order given).

**CONDITIONAL.** Each as soon as all that it depends on has succeeded; what can run together does. A call with a condition of
its own waits until all that it depends on has ended, however: then whoever asked for it says whether it is made
(`take_undecided`, `decide`), and what it depends on does not take it along.

**PIPELINE.** One at a time, in the order given, each with what the one before returned (see `flow`). One that fails leaves
nothing to go on with: the rest is cancelled.

**Dependencies** mean the same everywhere, but for a call with a condition: a call begins when all of them have succeeded, and
is cancelled, with the reason, when one has not. They may name calls of the same batch, and calls that were carried out before.
Where calls run in the order given they can only point back; PARALLEL, where nothing waits, takes none.

**Lanes.** Calls of one lane (a desktop) never run together, under any strategy; those that are ready take turns in the order
given. A call that puts something in (a click, a text) and fails takes those after it with it that put something into the same
lane: they were meant for what it should have brought about. Those that only look are carried out.

To fail means to end with anything but SUCCESS. A call whose status is not PENDING when it is planned has ended that way, and
is not carried out. Two calls of one id are one call, if they are the same in name and arguments.
"""

from __future__ import annotations

import hashlib
import heapq
import json
from bisect import bisect_right
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deskhand._core.arguments import expect, expect_several
from deskhand.errors import BadPlan, shown
from deskhand.execution.types import ExecutionResult, ExecutionStatus, FunctionCallStrategy, RequestFunctionCall

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Mapping, Sequence

__all__ = ["Lane", "Schedule", "find_cycle", "fingerprint", "flow", "overall_status"]

_ONE_AT_A_TIME = (FunctionCallStrategy.SEQUENTIAL, FunctionCallStrategy.PIPELINE)


@dataclass(frozen=True, slots=True)
class Lane:
    """What a call needs for itself while it runs.

    Attributes:
        of: What it is a lane of; compared by being equal.
        name: The same for people.
        looks: The call only looks: neither does its failure matter to others, nor that of others to it.
    """

    of: Hashable
    name: str = "the desktop"
    looks: bool = False


def fingerprint(call: RequestFunctionCall) -> str:
    """What two calls of one id must have in common to be the same call; short, however long the arguments are."""
    try:
        said = json.dumps([call.name, call.arguments], sort_keys=True, default=repr)
    except (TypeError, ValueError, RecursionError):
        # Not from a model: keys that are no text or cannot be sorted, or a dictionary that has itself in it.
        said = repr([call.name, call.arguments])
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()


def find_cycle(dependencies: Mapping[str, Collection[str]]) -> list[str]:
    """Ids of calls that depend on one another in a circle, the first one again at the end; empty where there is none."""
    clear: set[str] = set()
    for start in dependencies:
        path: list[str] = []
        on_path: set[str] = set()
        # Depth first, without recursion: a batch may be one long chain.
        todo: list[tuple[str, bool]] = [(start, False)]
        while todo:
            name, leave = todo.pop()
            if leave:
                on_path.remove(name)
                clear.add(path.pop())
            elif name in on_path:
                return [*path[path.index(name) :], name]
            elif name not in clear:
                path.append(name)
                on_path.add(name)
                todo.append((name, True))
                todo += [(needed, False) for needed in reversed(list(dependencies.get(name, ())))]
    return []


def overall_status(statuses: Collection[ExecutionStatus]) -> ExecutionStatus:
    """How a batch stands.

    Returns:
        PENDING until all have ended; then SUCCESS or CANCELLED if all have, PARTIAL if some succeeded, and else FAILURE.
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
    """The arguments of a call in a pipeline: its own, and what the one before it returned.

    Its own always win. A mapping gives each parameter of its name a value; what the function has no parameter for is left
    out, unless the function takes any. None gives nothing. Everything else becomes the first parameter that must be given and
    is not; where there is none, it is not passed on.

    Args:
        arguments: The call's own.
        output: What the one before it returned.
        parameters: All that the function takes by name.
        required: Those of them that have no default, in their order.
        takes_any: Whether it takes any other name too.
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
    """A batch of calls on its way: what may begin, what is under way, what has ended.

    Attributes:
        calls: The calls, each once, in the order given.
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
            calls: The calls; those that have ended already are taken as they are.
            strategy: How they are carried out.
            known: How calls of before ended, by their id.
            lane: What a call needs for itself.
            width: How many may run together; None for any number.
            conditional: Ids of the calls that have a condition of their own.

        Raises:
            BadPlan: The batch cannot be carried out as it is; the error says why, and names the calls.
        """
        self.strategy = strategy
        self._width = 1 if strategy in _ONE_AT_A_TIME else width
        self._known = dict(known or {})
        self._lane = lane
        by_id: dict[str, RequestFunctionCall] = {}
        for call in calls:
            _check(call)
            if fingerprint(by_id.setdefault(call.id, call)) != fingerprint(call):
                raise BadPlan(
                    f"two calls have the id {call.id!r} and are not the same", (call.id,), "give each its own"
                )
        self.calls: list[RequestFunctionCall] = list(by_id.values())
        # Not by comparing calls: what they returned may be anything, and some of it cannot be compared.
        self._place = {call.id: number for number, call in enumerate(self.calls)}
        self._check_dependencies()
        self._check_conditions(conditional)
        self._by_id = by_id
        # Of those that wait for nothing any more, whose condition is to be decided.
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
        # Of each call, how many of the batch it waits for.
        self._unmet = {
            call.id: sum(self._status.get(needed) is ExecutionStatus.PENDING for needed in call.dependencies)
            for call in self.calls
        }
        # What waits for nothing but its turn, by lane, as heaps of places: no call is looked at again and again.
        self._ready: dict[Hashable, list[int]] = {}
        # The places of those that act, by lane, and where a pipeline ends.
        self._acting: dict[Hashable, list[int]] = {}
        self._until = len(self.calls)
        self._cancelled: deque[tuple[RequestFunctionCall, str]] = deque()
        self._sort_into_lanes()
        # Those that have not begun, and whose end may mean that they never will.
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
        """The calls under way, in the order in which they began."""
        return [self._by_id[name] for name in self._running]

    def statuses(self) -> dict[str, ExecutionStatus]:
        """How each call stands, by its id."""
        return dict(self._status)

    def before(self, call: RequestFunctionCall) -> RequestFunctionCall | None:
        """Whose output a call of a pipeline gets: the one before it; None for the first, and under other strategies."""
        position = self._place[call.id]
        return self.calls[position - 1] if position and self.strategy is FunctionCallStrategy.PIPELINE else None

    def start_next(self) -> RequestFunctionCall | None:
        """The next call that may begin now, which counts as under way from then on; None where none may."""
        if self._width is not None and len(self._running) >= self._width:
            return None
        first: int | None = None
        for of, places in self._ready.items():
            # Those that were cancelled meanwhile.
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
        """A call under way has ended; `take_cancelled` tells which others never will begin.

        Raises:
            BadPlan: It is not under way, or has not ended.
        """
        if call.id not in self._running or result.status is ExecutionStatus.PENDING:
            raise BadPlan(f"the call {call.id} ({call.name}) is not under way, or has not ended", (call.id,))
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
        """A call whose condition is to be decided now, since all that it depends on has ended; None where there is none."""
        while self._undecided:
            call = self._undecided.popleft()
            if call.id in self._pending:
                return call
        return None

    def decide(self, call: RequestFunctionCall, refusal: str | None) -> None:
        """Let a call begin whose condition was asked, or cancel it for a reason."""
        if refusal is None:
            self._make_ready(call)
        else:
            self._drop(call, refusal)

    def cancel(self, reason: str) -> None:
        """No call begins any more; those under way are the caller's to end."""
        for call in self.calls:
            self._drop(call, reason)

    def take_cancelled(self) -> list[tuple[RequestFunctionCall, str]]:
        """The calls that were cancelled since this was last asked, in the order given, with the reason."""
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
        """Those that depend on a call that has ended, or never will begin, wait for one less."""
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
        # One after the other, without recursion: a batch may be one long chain.
        todo = deque([(call, reason)])
        while todo:
            dropped, why = todo.popleft()
            if self._pending.pop(dropped.id, None) is not None:
                self._status[dropped.id] = ExecutionStatus.CANCELLED
                self._cancelled.append((dropped, why))
                self._ended(dropped, succeeded=False)
                todo += self._dependents(dropped)

    def _take_along(self, failed: RequestFunctionCall) -> None:
        """Cancel what cannot begin, or should not, after a call that did not succeed."""
        for dependent, why in self._dependents(failed):
            self._drop(dependent, why)
        place = self._place[failed.id]
        if self.strategy is FunctionCallStrategy.PIPELINE:
            for call in self.calls[place + 1 : self._until]:
                self._drop(call, f"{failed.id} ({failed.name}), whose output it was to get, did not succeed")
            self._until = min(self._until, place + 1)
            return
        lane = self._lanes.get(failed.id)
        if lane is None or lane.looks:
            return
        # None of them runs: the lane was the failed one's. They need not be looked at again.
        acting = self._acting[lane.of]
        behind = bisect_right(acting, place)
        # What was to be done after a failure is not what it should have brought about.
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

    def _check_conditions(self, conditional: Collection[str]) -> None:
        if conditional and self.strategy is not FunctionCallStrategy.CONDITIONAL:
            raise BadPlan(
                f"calls have conditions with CONDITIONAL, and not with {self.strategy.name}", tuple(conditional)
            )
        unknown = [name for name in conditional if name not in self._place]
        if unknown:
            raise BadPlan(
                f"there are conditions for {', '.join(map(shown, unknown))}, which are not in this batch",
                tuple(map(str, unknown)),
                "name calls by their id",
            )

    def _check_dependencies(self) -> None:
        dependencies = {call.id: call.dependencies for call in self.calls}
        for call in self.calls:
            unknown = [
                needed for needed in call.dependencies if needed not in dependencies and needed not in self._known
            ]
            if unknown:
                raise BadPlan(
                    f"{call.id} ({call.name}) depends on {', '.join(unknown)}, which is neither in this batch nor known",
                    (call.id, *unknown),
                    "name calls by their id",
                )
        cycle = find_cycle(dependencies)
        if cycle:
            raise BadPlan(f"calls depend on one another in a circle: {' -> '.join(cycle)}", tuple(cycle[:-1]))
        if self.strategy is FunctionCallStrategy.CONDITIONAL:
            return
        place = self._place
        for call in self.calls:
            for needed in call.dependencies:
                if needed not in place:
                    continue
                parallel = self.strategy is FunctionCallStrategy.PARALLEL
                if parallel or place[needed] > place[call.id]:
                    why = "all begin at once" if parallel else "calls run in the order given"
                    raise BadPlan(
                        f"{call.id} ({call.name}) depends on {needed}, and with {self.strategy.name} {why}",
                        (call.id, needed),
                        "use CONDITIONAL",
                    )


def _check(call: RequestFunctionCall) -> None:
    if call.timeout is not None and not call.timeout > 0:
        raise BadPlan(
            f"{call.id} ({call.name}) has the timeout {shown(call.timeout)}", (call.id,), "give seconds, or None"
        )
    if call.max_retries < 0:
        raise BadPlan(f"{call.id} ({call.name}) has max_retries={call.max_retries}", (call.id,), "give 0 or more")
