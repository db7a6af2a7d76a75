"""Batches of calls: the strategies, what is handed on, and what came of it."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

import virtual_time
from calls import Log, call, events_of, until
from deskhand import (
    ActionError,
    BadPlan,
    Desktop,
)
from deskhand.execution import (
    ExecutionResult,
    ExecutionStatus,
    Executor,
    Function,
    FunctionCallStrategy,
    RequestFunctionCall,
    overall_status,
)
from deskhand.execution.schedule import Lane, Schedule

if TYPE_CHECKING:
    from collections.abc import Callable

SEQUENTIAL, PARALLEL = FunctionCallStrategy.SEQUENTIAL, FunctionCallStrategy.PARALLEL
CONDITIONAL, PIPELINE = FunctionCallStrategy.CONDITIONAL, FunctionCallStrategy.PIPELINE
SUCCESS, FAILURE, CANCELLED = ExecutionStatus.SUCCESS, ExecutionStatus.FAILURE, ExecutionStatus.CANCELLED
PARTIAL = ExecutionStatus.PARTIAL


# --- strategies ---


def test_sequential_runs_one_after_the_other_in_the_order_given() -> None:
    log = Log()
    executor = Executor({"a": log.takes(2, "a"), "b": log.takes(1, "b"), "c": log.takes(1, "c")})
    events = virtual_time.run(events_of(executor, [call("a"), call("c"), call("b")], SEQUENTIAL))
    assert events == ["1/3 a", "a success", "2/3 c", "c success", "3/3 b", "b success"]
    assert log.lines == [
        (0, "a begins"),
        (2, "a ends"),
        (2, "c begins"),
        (3, "c ends"),
        (3, "b begins"),
        (4, "b ends"),
    ]


def test_sequential_goes_on_after_a_failure() -> None:
    log = Log()
    executor = Executor({"a": log.takes(1, raises=OSError("disk full")), "b": log.takes(1)})
    calls = [call("a"), call("b")]
    results = virtual_time.run(executor.execute(calls))
    assert [result.status for result in results] == [FAILURE, SUCCESS]
    assert (calls[0].status, calls[0].error) == (FAILURE, "a failed: OSError: disk full")
    assert (calls[1].status, calls[1].result, calls[1].error) == (SUCCESS, {}, None)


def test_parallel_runs_all_at_once() -> None:
    log = Log()
    executor = Executor({"a": log.takes(3), "b": log.takes(1), "c": log.takes(2)})
    events = virtual_time.run(events_of(executor, [call("a"), call("b"), call("c")], PARALLEL))
    assert events == ["1/3 a", "2/3 b", "3/3 c", "b success", "c success", "a success"]


def test_parallel_has_room_for_so_many() -> None:
    log = Log()
    executor = Executor({"f": log.takes(1)}, parallel=2)
    calls = [call("f", f"c{number}") for number in range(4)]
    events = virtual_time.run(events_of(executor, calls, PARALLEL))
    assert events[:5] == ["1/4 c0", "2/4 c1", "c0 success", "c1 success", "3/4 c2"]
    with pytest.raises(ActionError, match="parallel"):
        Executor(parallel=0)


def test_conditional_begins_each_as_soon_as_what_it_needs_is_there() -> None:
    log = Log()
    executor = Executor({name: log.takes(seconds, name) for name, seconds in (("a", 1), ("b", 3), ("c", 1), ("d", 1))})
    calls = [
        call("d", dependencies=["b", "c"]),
        call("c", dependencies=["a"]),
        call("a"),
        call("b"),
    ]
    events = virtual_time.run(events_of(executor, calls, CONDITIONAL))
    assert events == ["1/4 a", "2/4 b", "a success", "3/4 c", "c success", "b success", "4/4 d", "d success"]
    assert [line for line in log.lines if "begins" in line[1]] == [
        (0, "a begins"),
        (0, "b begins"),
        (1, "c begins"),
        (3, "d begins"),
    ]


def test_what_depends_on_a_failure_is_cancelled_with_the_reason() -> None:
    log = Log()
    executor = Executor(
        {"a": log.takes(1, raises=OSError("no")), "b": log.takes(1), "c": log.takes(1), "d": log.takes(3)}
    )
    calls = [call("a"), call("b", dependencies=["a"]), call("c", dependencies=["b"]), call("d")]
    events = virtual_time.run(events_of(executor, calls, CONDITIONAL))
    assert events == ["1/4 a", "2/4 d", "a failure", "b cancelled", "c cancelled", "d success"]
    assert calls[1].error == "b was not called: it depends on a (a), which did not succeed"
    assert calls[2].error == "c was not called: it depends on b (b), which did not succeed"


@pytest.mark.parametrize(
    ("dependencies", "strategy", "message", "named"),
    [
        ({"a": ["b"], "b": ["c"], "c": ["a"]}, CONDITIONAL, "in a circle: a -> b -> c -> a", ("a", "b", "c")),
        ({"a": [], "b": ["b"]}, CONDITIONAL, "in a circle: b -> b", ("b",)),
        (
            {"a": ["x", "y"]},
            CONDITIONAL,
            r"a \(a\) depends on x, y, which is neither in this batch nor known",
            ("a", "x", "y"),
        ),
        ({"a": ["b"], "b": []}, SEQUENTIAL, "in the order given: use CONDITIONAL", ("a", "b")),
        ({"a": ["b"], "b": []}, PIPELINE, "in the order given: use CONDITIONAL", ("a", "b")),
        ({"a": [], "b": ["a"]}, PARALLEL, "all begin at once: use CONDITIONAL", ("b", "a")),
        ({"a": ["b"], "b": ["a"]}, SEQUENTIAL, "in a circle", ("a", "b")),
    ],
)
def test_a_batch_that_cannot_be_carried_out_is_refused_whole(
    dependencies: dict[str, list[str]], strategy: FunctionCallStrategy, message: str, named: tuple[str, ...]
) -> None:
    ran: list[str] = []
    executor = Executor({name: lambda name=name: ran.append(name) for name in "abc"})
    calls = [call(name, dependencies=needs) for name, needs in dependencies.items()]
    with pytest.raises(BadPlan, match=message) as refused:
        executor.run(calls, strategy)
    assert refused.value.calls == named
    assert ran == []
    assert {made.status for made in calls} == {ExecutionStatus.PENDING}


@pytest.mark.parametrize("options", [{"timeout": 0}, {"timeout": -1}, {"timeout": float("nan")}, {"max_retries": -1}])
def test_numbers_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(BadPlan, match=r"c1 \(f\) has"):
        Executor({"f": print}).run([call("f", "c1", **options)])


def test_order_given_may_point_back() -> None:
    log = Log()
    executor = Executor({"a": log.takes(1, raises=OSError("no")), "b": log.takes(1), "c": log.takes(1)})
    calls = [call("a"), call("b", dependencies=["a"]), call("c")]
    assert virtual_time.run(events_of(executor, calls, SEQUENTIAL)) == [
        "1/3 a",
        "a failure",
        "b cancelled",
        "2/3 c",
        "c success",
    ]


def test_calls_of_before_may_be_depended_on() -> None:
    log = Log()
    executor = Executor({"good": log.takes(1), "bad": log.takes(1, raises=OSError("no")), "next": log.takes(1)})

    async def main() -> list[ExecutionResult]:
        await executor.execute([call("good"), call("bad")])
        return await executor.execute(
            [call("next", "n1", dependencies=["good"]), call("next", "n2", dependencies=["bad"])], CONDITIONAL
        )

    results = virtual_time.run(main())
    assert [result.status for result in results] == [SUCCESS, CANCELLED]
    assert results[1].error == "next was not called: it depends on bad, which did not succeed before"


def test_a_long_chain_is_no_deeper_than_a_short_one() -> None:
    executor = Executor({"bad": Log().takes(0, raises=OSError("no")), "f": Log().takes(0)})
    calls = [call("bad", "c0"), *(call("f", f"c{n}", dependencies=[f"c{n - 1}"]) for n in range(1, 3000))]
    results = virtual_time.run(executor.execute(calls, CONDITIONAL))
    assert [result.status for result in results] == [FAILURE, *[CANCELLED] * 2999]


def _work(calls: list[RequestFunctionCall], strategy: FunctionCallStrategy, status: ExecutionStatus) -> int:
    """How many calls of functions planning and scheduling a batch takes, whatever the machine."""
    made = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal made
        made += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        schedule = Schedule(calls, strategy, lane=lambda made: Lane("screen") if made.name == "click" else None)
        while (following := schedule.start_next()) is not None:
            assert schedule.start_next() is None
            schedule.finish(following, ExecutionResult(status))
            schedule.take_cancelled()
    finally:
        sys.setprofile(None)
    assert schedule.done
    return made


def _chain(name: str, size: int, step: int) -> list[RequestFunctionCall]:
    there = range(size)
    return [call(name, f"c{n}", dependencies=[f"c{n + step}"] if n + step in there else []) for n in there]


@pytest.mark.parametrize(
    ("make", "strategy", "status"),
    [
        (lambda size: _chain("f", size, -1), CONDITIONAL, SUCCESS),
        (lambda size: _chain("f", size, 1), CONDITIONAL, SUCCESS),
        (lambda size: _chain("click", size, size), CONDITIONAL, SUCCESS),
        (lambda size: [call("f", f"c{n}") for n in range(size)], SEQUENTIAL, FAILURE),
        (lambda size: [call("f", f"c{n}", status=FAILURE) for n in range(size)], PIPELINE, SUCCESS),
    ],
)
def test_twice_as_many_calls_are_twice_the_work(
    make: Callable[[int], list[RequestFunctionCall]], strategy: FunctionCallStrategy, status: ExecutionStatus
) -> None:
    assert _work(make(800), strategy, status) < 3 * _work(make(400), strategy, status)


def test_arguments_that_json_has_no_words_for_are_told_apart() -> None:
    itself: dict[str, Any] = {}
    itself["x"] = itself
    executor = Executor({"f": lambda x: x})
    mixed = [call("f", f"c{n}", arguments={"x": x}) for n, x in enumerate(({1: "a", "b": 2}, {(1, 2): 3}, itself))]
    assert [result.status for result in virtual_time.run(executor.execute(mixed))] == [SUCCESS] * 3
    with pytest.raises(BadPlan, match="another call had the id 'c0' before"):
        executor.run([call("f", "c0", arguments={"x": {1: "b", "b": 2}})])


# --- pipelines ---


def test_a_pipeline_hands_on_what_was_returned() -> None:
    got: list[Any] = []

    async def read(path: str) -> dict[str, Any]:
        return {"text": f"of {path}", "size": 3, "path": "another"}

    async def count(text: str, path: str = "-", size: int = 0) -> int:
        got.append((text, path, size))
        return len(text)

    async def say(word: str, times: int, *, loud: bool = False) -> str:
        got.append((word, times, loud))
        return word * times

    async def nothing() -> None:
        got.append("nothing")

    def all_of(**given: Any) -> dict[str, Any]:
        got.append(given)
        return given

    calls = [
        call("read", arguments={"path": "a"}),
        call("count", arguments={"size": 7}),
        call("say", arguments={"word": "ab"}),
        call("nothing"),
        call("all_of", "all 1", arguments={"x": 1}),
        call("all_of", "all 2", arguments={"y": 2, "x": 3}),
        call("nothing", "end"),
    ]
    executor = Executor([read, count, say, nothing, all_of])
    results = virtual_time.run(executor.execute(calls, PIPELINE))
    assert got == [
        ("of a", "another", 7),  # by name, and what it has itself wins
        ("ab", 4, False),  # what is no mapping: the first that must be given and is not
        "nothing",  # there is no such: it is not passed on
        {"x": 1},  # None gives nothing
        {"x": 3, "y": 2},
        "nothing",
    ]
    assert [result.status for result in results] == [SUCCESS] * 7
    assert calls[1].arguments == {"size": 7}, "a call stays what it was"


def test_a_pipeline_ends_where_there_is_nothing_to_go_on_with() -> None:
    log = Log()
    executor = Executor(
        {"a": log.takes(1), "b": log.takes(1, raises=OSError("no")), "c": log.takes(1), "d": log.takes(1)}
    )
    calls = [call("a"), call("b"), call("c"), call("d")]
    events = virtual_time.run(events_of(executor, calls, PIPELINE))
    assert events == ["1/4 a", "a success", "2/4 b", "b failure", "c cancelled", "d cancelled"]
    assert calls[3].error == "d was not called: b (b), whose output it needs, did not succeed"


# --- what came of it ---


def test_a_function_may_say_itself_how_it_ended() -> None:
    async def some() -> ExecutionResult:
        return ExecutionResult(PARTIAL, [1, 2], "3 is missing")

    executor = Executor([Function(some, repeatable=True)])
    calls = [call("some"), call("some", "next", dependencies=["some"])]
    results = virtual_time.run(executor.execute(calls, CONDITIONAL))
    assert (results[0].status, results[0].result, results[0].error) == (PARTIAL, [1, 2], "3 is missing")
    assert results[1].status is CANCELLED, "some is not all"
    assert calls[0].retry_count == 0


def test_an_error_that_tells_what_was_done_is_partial() -> None:
    async def act() -> None:
        raise ActionError("no such key").note_progress(2, "keypress", 2)

    async def refused() -> None:
        raise ActionError("no such key").note_progress(2, "keypress", 0)

    results = virtual_time.run(Executor([act, refused]).execute([call("act"), call("refused")]))
    assert [result.status for result in results] == [PARTIAL, FAILURE]


def test_the_status_of_a_batch() -> None:
    log = Log()
    executor = Executor({"good": log.takes(1), "bad": log.takes(1, raises=OSError("no"))})

    async def main(*names: str) -> list[ExecutionStatus]:
        calls = [call(name, f"{name} {names} {number}") for number, name in enumerate(names)]
        async with executor.run(calls) as run:
            begun = run.status
            await run.wait()
            return [begun, run.status]

    pending = ExecutionStatus.PENDING
    assert virtual_time.run(main("good", "good")) == [pending, SUCCESS]
    assert virtual_time.run(main("good", "bad")) == [pending, PARTIAL]
    assert virtual_time.run(main("bad", "bad")) == [pending, FAILURE]
    assert virtual_time.run(main()) == [SUCCESS, SUCCESS]
    assert overall_status([CANCELLED, CANCELLED]) is CANCELLED
    assert overall_status([CANCELLED, FAILURE]) is FAILURE
    assert overall_status([CANCELLED, SUCCESS]) is PARTIAL


def test_what_is_not_there_or_does_not_fit_is_a_failure_that_never_began() -> None:
    async def search(query: str) -> str:
        return query

    calls = [
        call("find", "c1", arguments={"query": "x"}),
        call("search", "c2"),
        call("search", "c3", arguments={"query": "x", "what": 1}),
        call("search", "c4", arguments={"query": "x"}),
    ]
    executor = Executor([Function(search, repeatable=True)])
    events = virtual_time.run(events_of(executor, calls, SEQUENTIAL))
    assert events == ["c1 failure", "c2 failure", "c3 failure", "1/4 c4", "c4 success"]
    assert calls[0].error == "find failed: there is no function 'find'; there are: search"
    assert calls[1].error == "search failed: search: missing a required argument: 'query'"
    assert calls[2].error == "search failed: search: got an unexpected keyword argument 'what'"


def test_functions_of_every_kind() -> None:
    class Called:
        async def __call__(self, x: int) -> int:
            return x + 1

    class Plain:
        def method(self, x: int) -> int:
            return x + 2

    async def coroutine(x: int) -> int:
        return x

    executor = Executor(
        {
            "coroutine": coroutine,
            "plain": lambda x: x + 3,
            "object": Called(),
            "method": Plain().method,
            "gives a coroutine": lambda x: coroutine(x + 4),
            "in C": max,
        }
    )
    names = [name for name in executor.names if name != "in C"]
    calls = [call(name, arguments={"x": 1}) for name in names]
    results = virtual_time.run(executor.execute(calls, PARALLEL))
    assert {name: result.result for name, result in zip(names, results, strict=True)} == {
        "coroutine": 1,
        "plain": 4,
        "object": 2,
        "method": 3,
        "gives a coroutine": 5,
    }


def test_functions_that_cannot_be_named_or_called_are_refused(desktop: Desktop) -> None:
    async def coroutine(desktop: Desktop) -> None:
        del desktop

    with pytest.raises(ActionError, match="give name="):
        Executor([lambda: 1])
    with pytest.raises(ActionError, match="must be callable"):
        Function(3, "three")  # type: ignore[arg-type]
    with pytest.raises(ActionError, match="two functions have the name 'print'"):
        Executor([print, Function(max, "print")])
    with pytest.raises(ActionError, match="two functions have the name 'computer'"):
        Executor({"computer": print}, desktops=desktop)
    with pytest.raises(ActionError, match="must be a plain function"):
        Function(coroutine, desktop=desktop)


def test_a_function_that_ends_its_thread_only_fails() -> None:
    def leave() -> None:
        raise SystemExit(3)

    def stop() -> None:
        raise StopIteration

    results = virtual_time.run(Executor([leave, stop]).execute([call("leave"), call("stop")]))
    assert [result.status for result in results] == [FAILURE, FAILURE]
    assert "SystemExit(3)" in (results[0].error or "")


def test_a_plain_function_does_not_hold_up_the_others() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow() -> str:
        begun.set()
        assert go_on.wait(60)
        return "slow"

    async def release() -> str:
        await until(begun.is_set)
        go_on.set()
        return "released"

    results = virtual_time.run(Executor([slow, release]).execute([call("slow"), call("release")], PARALLEL))
    assert [result.result for result in results] == ["slow", "released"]
