"""Calls with conditions: made after a failure, or when what was returned says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import virtual_time
from calls import Log, call, short
from deskhand import BadPlan, Desktop
from deskhand.backends.memory import MemoryBackend
from deskhand.execution import (
    ExecutionResult,
    ExecutionStatus,
    Executor,
    Function,
    FunctionCallStrategy,
    RequestFunctionCall,
    failed,
    succeeded,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

CONDITIONAL = FunctionCallStrategy.CONDITIONAL
SUCCESS, FAILURE, CANCELLED = ExecutionStatus.SUCCESS, ExecutionStatus.FAILURE, ExecutionStatus.CANCELLED
PARTIAL = ExecutionStatus.PARTIAL


def carried_out(executor: Executor, calls: list[RequestFunctionCall], **when: Any) -> ExecutionStatus:
    async def work() -> ExecutionStatus:
        async with executor.run(calls, CONDITIONAL, when=when) as run:
            await run.wait()
            return run.status

    return virtual_time.run(work())


def boom() -> None:
    raise ValueError("boom")


def one() -> int:
    return 1


@pytest.mark.parametrize("first", [boom, one])
def test_a_call_can_be_for_the_case_that_another_failed(first: Any) -> None:
    """One is for the failure, one for the success; that one of them is not made is no failure of the batch."""
    executor = Executor({"save": first, "restore": one, "send": one})
    calls = [
        call("save"),
        call("restore", dependencies=["save"]),
        call("send", dependencies=["save"]),
    ]
    status = carried_out(executor, calls, restore=failed, send=succeeded)
    went_wrong = first is boom
    ended = (FAILURE, SUCCESS, CANCELLED) if went_wrong else (SUCCESS, CANCELLED, SUCCESS)
    assert tuple(each.status for each in calls) == ended
    assert status is (PARTIAL if went_wrong else SUCCESS)
    left_out = calls[2 if went_wrong else 1]
    assert left_out.error == f"{left_out.name} was not called: its condition was not met"


def test_a_condition_is_told_what_came_of_the_calls_and_is_asked_once() -> None:
    told: list[Mapping[str, ExecutionResult]] = []

    def enough(results: Mapping[str, ExecutionResult]) -> bool:
        told.append(results)
        return results["count"].result > 2

    log = Log()
    executor = Executor({"count": lambda n: n, "slow": log.takes(3, "slow"), "show": log.takes(1, "show")})
    calls = [
        call("count", arguments={"n": 3}),
        call("slow"),
        call("show", dependencies=["count", "slow"]),
    ]
    carried_out(executor, calls, show=enough)
    assert [each.status for each in calls] == [SUCCESS] * 3
    assert [{name: result.status for name, result in each.items()} for each in told] == [
        {"count": SUCCESS, "slow": SUCCESS}
    ]
    assert log.lines[1] == (3, "slow ends"), "it waits for all of them"
    # In a later batch, of calls of an earlier one.
    again = call("show", "again", dependencies=["count"])
    carried_out(executor, [again], again=lambda results: results["count"].result > 3)
    assert again.status is CANCELLED


def test_what_is_left_out_ends_for_those_that_ask_about_it_too() -> None:
    executor = Executor({"a": boom, "one": one})
    calls = [
        call("a"),
        # Left out with what it depends on.
        call("one", "b", dependencies=["a"]),
        # Not wanted.
        call("one", "c", dependencies=["a"]),
        call("one", "d", dependencies=["b", "c"]),
        call("one", "e", dependencies=["c"]),
        call("one", "f", dependencies=["d"]),
    ]
    seen: dict[str, ExecutionStatus] = {}

    def note(results: Mapping[str, ExecutionResult]) -> bool:
        seen.update({name: result.status for name, result in results.items()})
        return True

    carried_out(executor, calls, c=succeeded, d=note)
    assert [each.status for each in calls] == [FAILURE, CANCELLED, CANCELLED, SUCCESS, CANCELLED, SUCCESS]
    assert seen == {"b": CANCELLED, "c": CANCELLED}
    assert calls[4].error == "one was not called: it depends on c (one), which did not succeed"


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        (lambda results: results["missing"], "its condition failed: KeyError: 'missing'"),
        (lambda _: None, "its condition is neither True nor False: None"),
        (lambda _: 1, "its condition is neither True nor False: 1"),
    ],
)
def test_a_condition_that_fails_is_a_no_and_says_so(condition: Any, why: str) -> None:
    calls = [call("one"), call("one", "two", dependencies=["one"])]
    status = carried_out(Executor([one]), calls, two=condition)
    assert (calls[1].status, calls[1].error) == (CANCELLED, f"one was not called: {why}")
    assert status is PARTIAL, "that it could not be asked is another thing than a no"


def test_a_call_with_nothing_before_it_is_asked_at_once() -> None:
    calls = [call("one"), call("one", "two")]
    status = carried_out(Executor([one]), calls, one=lambda results: not results, two=lambda _: False)
    assert [each.status for each in calls] == [SUCCESS, CANCELLED]
    assert status is SUCCESS
    alone = [call("one")]
    assert carried_out(Executor([one]), alone, one=lambda _: False) is CANCELLED


def test_conditions_that_make_no_sense_are_refused() -> None:
    executor = Executor([one])
    calls = [call("one")]
    with pytest.raises(BadPlan, match="conditions need the strategy CONDITIONAL, not SEQUENTIAL"):
        executor.run(calls, when={"one": failed})
    with pytest.raises(BadPlan, match="'two', which are not in this batch"):
        executor.run(calls, CONDITIONAL, when={"two": failed})
    with pytest.raises(BadPlan, match="the condition of 'one' must be a function, not True"):
        executor.run(calls, CONDITIONAL, when={"one": True})  # type: ignore[dict-item] # on purpose


def test_a_cancelled_batch_asks_nothing_more() -> None:
    asked: list[str] = []
    log = Log()

    def ask(_: Mapping[str, ExecutionResult]) -> bool:
        asked.append("asked")
        return True

    async def work() -> list[str]:
        executor = Executor({"slow": log.takes(5, "slow"), "one": one})
        calls = [call("slow"), call("one", dependencies=["slow"])]
        async with executor.run(calls, CONDITIONAL, when={"one": ask}) as run:
            async for event in run:
                if short([event])[0].endswith("slow"):
                    run.cancel()
        return short(run.events)

    assert sorted(virtual_time.run(work())) == ["1/2 slow", "one cancelled", "slow cancelled"]
    assert asked == []


def test_on_a_desktop_what_asks_about_a_failure_is_spared() -> None:
    """After input that failed, other input is left out, but not the one that is for that case."""

    def click_wrong(_: Desktop) -> None:
        raise ValueError("the button is not there")

    done: list[str] = []
    with Desktop(MemoryBackend()) as desktop:
        at = {"desktop": desktop}
        functions = [
            Function(click_wrong, **at),
            Function(lambda _: done.append("close"), "close_dialog", **at),
            Function(lambda _: done.append("type"), "type_name", **at),
        ]
        calls = [
            call("click_wrong"),
            call("type_name", "blind"),
            call("close_dialog", dependencies=["click_wrong"]),
            call("type_name", "after", dependencies=["close_dialog", "click_wrong"]),
        ]
        carried_out(Executor(functions), calls, close_dialog=failed, after=failed)
    assert [each.status for each in calls] == [FAILURE, CANCELLED, SUCCESS, SUCCESS]
    assert done == ["close", "type"]
    assert calls[1].error is not None
    assert "which was to act on" in calls[1].error


@given(data=st.data(), size=st.integers(1, 7), width=st.integers(1, 3))
def test_every_batch_ends_as_its_conditions_say(data: st.DataObject, size: int, width: int) -> None:
    """Against the rule written down the short way: what comes of a call by what came of those that it depends on."""
    order = data.draw(st.permutations(range(size)))
    needs = {number: data.draw(st.sets(st.sampled_from(order[:place])) if place else st.just(set()))
             for place, number in enumerate(order)}  # fmt: skip
    fails = data.draw(st.sets(st.integers(0, size - 1)))
    conditions = data.draw(
        st.dictionaries(st.integers(0, size - 1), st.sampled_from(["failed", "succeeded", "yes", "no"]))
    )
    tests = {"failed": failed, "succeeded": succeeded, "yes": lambda _: True, "no": lambda _: False}
    expected: dict[int, ExecutionStatus] = {}
    for number in order:
        before = {f"c{need}": ExecutionResult(expected[need]) for need in needs[number]}
        begins = tests[conditions.get(number, "succeeded")](before)
        expected[number] = CANCELLED if not begins else FAILURE if number in fails else SUCCESS
    executor = Executor({f"f{number}": boom if number in fails else one for number in range(size)}, parallel=width)
    calls = [
        call(f"f{number}", f"c{number}", dependencies=[f"c{need}" for need in needs[number]]) for number in range(size)
    ]
    carried_out(executor, calls, **{f"c{number}": tests[name] for number, name in conditions.items()})
    assert {number: each.status for number, each in enumerate(calls)} == expected
