"""Random batches: graphs of dependencies, failures, timeouts, repetitions and cancellations, under every strategy."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import virtual_time
from deskhand import BadPlan
from deskhand.execution import (
    Backoff,
    ExecutionResult,
    ExecutionStatus,
    Executor,
    Function,
    FunctionCallStrategy,
    FunctionExecutionComplete,
    FunctionExecutionStart,
    RequestFunctionCall,
    Run,
)
from deskhand.execution.batch_checks import find_cycle
from deskhand.execution.schedule import Lane, Schedule

SUCCESS, FAILURE, CANCELLED = ExecutionStatus.SUCCESS, ExecutionStatus.FAILURE, ExecutionStatus.CANCELLED
ONE_AT_A_TIME = (FunctionCallStrategy.SEQUENTIAL, FunctionCallStrategy.PIPELINE)


@dataclass
class Fate:
    """What a call is like, and what becomes of it when it is made."""

    needs: list[int]
    seconds: int
    # How each try ends; the last one counts for all that follow.
    tries: list[str]
    repeatable: bool
    timeout: int | None
    lane: int | None
    looks: bool
    begun_at: list[float] = field(default_factory=list)
    ended_at: list[float] = field(default_factory=list)


FATES = st.builds(
    Fate,
    needs=st.lists(st.integers(0, 6), max_size=3, unique=True),
    seconds=st.integers(0, 4),
    tries=st.lists(st.sampled_from(["good", "good", "raises", "cancels itself", "partly"]), min_size=1, max_size=3),
    repeatable=st.booleans(),
    timeout=st.none() | st.integers(1, 4),
    lane=st.none() | st.integers(0, 1),
    looks=st.booleans(),
)
BATCHES = st.lists(FATES, min_size=1, max_size=7)


def plan(fates: list[Fate], strategy: FunctionCallStrategy) -> list[RequestFunctionCall]:
    """The calls, with what dependencies the strategy takes."""
    calls = []
    for number, fate in enumerate(fates):
        if strategy is FunctionCallStrategy.PARALLEL:
            fate.needs = []
        elif strategy in ONE_AT_A_TIME:
            fate.needs = [need for need in fate.needs if need < number]
        else:
            # Any order at all, but no circle: what is needed has the lower number in an order that is not that of the batch.
            fate.needs = [need for need in fate.needs if need < len(fates) and need * 3 % 7 < number * 3 % 7]
        calls.append(
            RequestFunctionCall(
                f"f{number}",
                {},
                call_id=f"c{number}",
                dependencies=[f"c{need}" for need in fate.needs],
                timeout=fate.timeout,
                max_retries=2,
            )
        )
    return calls


class InALane(Function):
    """A function that has a lane without a desktop."""

    def __init__(self, call: Any, name: str, fate: Fate) -> None:
        super().__init__(call, name, repeatable=fate.repeatable)
        self._fate = fate

    def lane(self, arguments: Any) -> Lane | None:
        del arguments
        return None if self._fate.lane is None else Lane(self._fate.lane, looks=self._fate.looks)


def function(number: int, fate: Fate) -> Function:
    async def work(**_: Any) -> ExecutionResult | dict[str, int]:
        how = fate.tries[min(len(fate.begun_at), len(fate.tries) - 1)]
        fate.begun_at.append(virtual_time.now())
        try:
            await asyncio.sleep(fate.seconds)
        finally:
            fate.ended_at.append(virtual_time.now())
        if how == "raises":
            raise OSError("no")
        if how == "cancels itself":
            raise asyncio.CancelledError
        if how == "partly":
            return ExecutionResult(ExecutionStatus.PARTIAL, error="only some")
        return {"number": number}

    return InALane(work, f"f{number}", fate)


async def carry_out(
    fates: list[Fate],
    calls: list[RequestFunctionCall],
    strategy: FunctionCallStrategy,
    cancel_at: float | None,
    width: int,
) -> tuple[Run, Executor]:
    executor = Executor(
        [function(number, fate) for number, fate in enumerate(fates)], backoff=Backoff(1, jitter=0), parallel=width
    )
    async with executor.run(calls, strategy) as run:
        if cancel_at is not None:
            asyncio.get_running_loop().call_later(cancel_at, run.cancel, "enough")
        results = await run.wait()
    assert [result.status for result in results] == [call.status for call in calls]
    return run, executor


@given(BATCHES, st.sampled_from(FunctionCallStrategy), st.none() | st.integers(0, 8), st.integers(1, 4))
def test_whatever_happens_the_rules_hold(
    fates: list[Fate], strategy: FunctionCallStrategy, cancel_at: int | None, width: int
) -> None:
    calls = plan(fates, strategy)
    run, _ = virtual_time.run(carry_out(fates, calls, strategy, None if cancel_at is None else cancel_at + 0.5, width))
    check_events(run, calls)
    check_times(fates, calls, strategy, width, run)
    check_reasons(fates, calls, strategy, cancelled=cancel_at is not None)
    for fate, call in zip(fates, calls, strict=True):
        assert len(fate.begun_at) == len(fate.ended_at), "nothing is left running"
        assert len(fate.begun_at) <= 1 + call.retry_count
        assert call.retry_count <= (call.max_retries if fate.repeatable else 0)
        if fate.timeout is not None:
            durations = [end - begin for begin, end in zip(fate.begun_at, fate.ended_at, strict=True)]
            assert all(duration <= fate.timeout for duration in durations)


def check_events(run: Run, calls: list[RequestFunctionCall]) -> None:
    """One start at most, before the one completion; the starts are counted."""
    starts = [event for event in run.events if isinstance(event, FunctionExecutionStart)]
    ends = [event for event in run.events if isinstance(event, FunctionExecutionComplete)]
    assert len(starts) + len(ends) == len(run.events)
    assert sorted(event.function_id for event in ends) == sorted(call.id for call in calls)
    assert len({event.function_id for event in starts}) == len(starts)
    assert [event.progress for event in starts] == [f"{n + 1}/{len(calls)}" for n in range(len(starts))]
    place = {(type(event), event.function_id): number for number, event in enumerate(run.events)}
    for event in starts:
        assert place[FunctionExecutionStart, event.function_id] < place[FunctionExecutionComplete, event.function_id]
    by_id = {call.id: call for call in calls}
    for end in ends:
        call = by_id[end.function_id]
        assert (end.status, end.result, end.error) == (call.status.value, call.result, call.error)


def check_times(
    fates: list[Fate], calls: list[RequestFunctionCall], strategy: FunctionCallStrategy, width: int, run: Run
) -> None:
    """Nothing runs beside what it must not run beside, or before what it needs."""
    position = {id(event): number for number, event in enumerate(run.events)}
    spans: dict[str, tuple[int, int]] = {}
    for event in run.events:
        if isinstance(event, FunctionExecutionStart):
            spans[event.function_id] = (position[id(event)], len(run.events))
        elif event.function_id in spans:
            spans[event.function_id] = (spans[event.function_id][0], position[id(event)])
    for number in range(len(run.events)):
        together = [name for name, (begin, end) in spans.items() if begin <= number < end]
        assert len(together) <= (1 if strategy in ONE_AT_A_TIME else width)
        lanes = [lane for name in together if (lane := fates[int(name[1:])].lane) is not None]
        assert len(lanes) == len(set(lanes))
    for fate, call in zip(fates, calls, strict=True):
        for need in fate.needs:
            if call.id in spans:
                assert calls[need].status is SUCCESS
                assert spans[f"c{need}"][1] < spans[call.id][0]
    if strategy in ONE_AT_A_TIME:
        begun = [int(name[1:]) for name in spans]
        assert begun == sorted(begun), "in the order given"


def check_reasons(
    fates: list[Fate], calls: list[RequestFunctionCall], strategy: FunctionCallStrategy, *, cancelled: bool
) -> None:
    """Who ran had nothing against it, and who did not run had a reason."""
    for number, (fate, call) in enumerate(zip(fates, calls, strict=True)):
        broken = any(calls[need].status is not SUCCESS for need in fate.needs)
        before = [
            calls[other].status is not SUCCESS
            for other in range(number)
            if strategy is FunctionCallStrategy.PIPELINE
            or (fate.lane is not None and fates[other].lane == fate.lane and not (fate.looks or fates[other].looks))
        ]
        if fate.begun_at:
            assert not broken
            if strategy in ONE_AT_A_TIME or strategy is FunctionCallStrategy.PARALLEL:
                assert not any(before)
        else:
            assert call.status is CANCELLED
            assert broken or any(before) or cancelled, call.error
            assert call.error is not None
            assert call.error.startswith(f"{call.name} was not called: ")


@given(BATCHES, st.sampled_from(FunctionCallStrategy))
def test_the_same_batch_goes_the_same_way_every_time(fates: list[Fate], strategy: FunctionCallStrategy) -> None:
    def once() -> list[Any]:
        for fate in fates:
            fate.begun_at, fate.ended_at = [], []
        run, _ = virtual_time.run(carry_out(fates, plan(fates, strategy), strategy, None, 3))
        return run.events

    assert once() == once()


@given(BATCHES, st.sampled_from(FunctionCallStrategy), st.integers(0, 6))
def test_asking_again_makes_nothing_again(fates: list[Fate], strategy: FunctionCallStrategy, cancel_at: int) -> None:
    async def twice() -> None:
        first = plan(fates, strategy)
        _, executor = await carry_out(fates, first, strategy, cancel_at + 0.5, 3)
        before = [len(fate.begun_at) for fate in fates]
        again = plan(fates, strategy)
        await executor.execute(again, strategy)
        for fate, old, new, count in zip(fates, first, again, before, strict=True):
            if count:
                assert len(fate.begun_at) == count
                assert (new.status, new.result, new.error) == (old.status, old.result, old.error)

    virtual_time.run(twice())


@given(st.dictionaries(st.integers(0, 5), st.lists(st.integers(0, 5), max_size=3), min_size=1, max_size=6))
def test_a_circle_is_found_and_named_if_there_is_one(graph: dict[int, list[int]]) -> None:
    edges = {str(name): [str(need) for need in needs if need in graph] for name, needs in graph.items()}
    # By a rule of its own: what can be put in an order, one after the other, is in no circle.
    left = dict(edges)
    while free := [name for name, needs in left.items() if not set(needs) & left.keys()]:
        left = {name: needs for name, needs in left.items() if name not in free}
    calls = [RequestFunctionCall("f", {}, call_id=name, dependencies=needs) for name, needs in edges.items()]
    if not left:
        assert find_cycle(edges) == []
        Schedule(calls, FunctionCallStrategy.CONDITIONAL)
        return
    circle = find_cycle(edges)
    assert circle[0] == circle[-1]
    assert len(set(circle[:-1])) == len(circle) - 1
    assert all(following in edges[name] for name, following in itertools.pairwise(circle))
    with pytest.raises(BadPlan, match="in a circle: " + " -> ".join(circle)) as refused:
        Schedule(calls, FunctionCallStrategy.CONDITIONAL)
    assert refused.value.calls == tuple(circle[:-1])


@given(BATCHES, st.sampled_from(FunctionCallStrategy), st.data())
def test_the_schedule_ends_in_any_order_of_ends(
    fates: list[Fate], strategy: FunctionCallStrategy, data: st.DataObject
) -> None:
    calls = plan(fates, strategy)
    schedule = Schedule(calls, strategy, width=data.draw(st.none() | st.integers(1, 3)))
    cancelled: list[str] = []
    while not schedule.done:
        while (call := schedule.start_next()) is not None:
            assert call in schedule.running
        assert schedule.running, "stuck"
        call = data.draw(st.sampled_from(schedule.running))
        schedule.finish(call, ExecutionResult(data.draw(st.sampled_from([SUCCESS, SUCCESS, FAILURE, CANCELLED]))))
        cancelled += [call.id for call, _ in schedule.take_cancelled()]
        if data.draw(st.booleans()) and data.draw(st.booleans()):
            schedule.cancel("enough")
            cancelled += [call.id for call, _ in schedule.take_cancelled()]
    assert len(cancelled) == len(set(cancelled))
    assert schedule.running == []
    assert set(cancelled) <= {name for name, status in schedule.statuses().items() if status is CANCELLED}
    with pytest.raises(BadPlan, match="not running"):
        schedule.finish(calls[0], ExecutionResult(SUCCESS))
