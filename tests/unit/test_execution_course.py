"""Batches of calls on their way: timeouts, repetitions, calls that are made once, cancellation, events."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from typing import Any

import pytest

import virtual_time
from calls import Log, call, events_of, short, until
from deskhand import (
    ActionError,
    BadPlan,
    DesktopLost,
    PolicyDenied,
)
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
from deskhand.execution.retries import is_hopeless
from virtual_time import now

SEQUENTIAL, PARALLEL = FunctionCallStrategy.SEQUENTIAL, FunctionCallStrategy.PARALLEL
CONDITIONAL, PIPELINE = FunctionCallStrategy.CONDITIONAL, FunctionCallStrategy.PIPELINE
SUCCESS, FAILURE, CANCELLED = ExecutionStatus.SUCCESS, ExecutionStatus.FAILURE, ExecutionStatus.CANCELLED
PARTIAL = ExecutionStatus.PARTIAL


# --- timeouts and repetitions ---


def test_a_call_that_takes_too_long_fails() -> None:
    log = Log()
    executor = Executor({"slow": log.takes(10, "slow"), "quick": log.takes(1, "quick")})
    calls = [call("slow", timeout=2.5), call("quick", timeout=2.5)]
    virtual_time.run(executor.execute(calls))
    assert (calls[0].status, calls[1].status) == (FAILURE, SUCCESS)
    assert calls[0].error == "slow timed out after 2.5 s: it was cancelled"
    assert log.lines[:3] == [(0, "slow begins"), (2.5, "slow is cancelled"), (2.5, "quick begins")]


def test_a_plain_function_that_takes_too_long_goes_on_and_is_not_heard() -> None:
    go_on, over = threading.Event(), threading.Event()

    def slow() -> str:
        go_on.wait(60)
        over.set()
        return "too late"

    async def main() -> RequestFunctionCall:
        made = call("slow", timeout=1)
        await Executor([slow]).execute([made])
        go_on.set()
        assert await asyncio.to_thread(over.wait, 60)
        await asyncio.sleep(1)
        return made

    made = virtual_time.run(main())
    assert (made.status, made.result) == (FAILURE, None)
    assert made.error is not None
    assert "continues in its thread, and its result is dropped" in made.error


def fails(times: int, error: Exception) -> Any:
    left = [times]

    async def flaky() -> str:
        if left[0]:
            left[0] -= 1
            raise error
        return "at last"

    return flaky


def test_what_is_repeatable_is_made_again_after_longer_and_longer_waits() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    backoff = Backoff(first=1, factor=3, cap=10, jitter=0)
    executor = Executor([Function(fails(4, OSError("no")), repeatable=True)], backoff=backoff, sleep=sleep)
    made = call("flaky", max_retries=5)
    events = virtual_time.run(events_of(executor, [made], SEQUENTIAL))
    assert (made.status, made.result, made.error, made.retry_count) == (SUCCESS, "at last", None, 4)
    assert slept == [1, 3, 9, 10]
    assert events == ["1/1 flaky", "flaky success"], "a call begins and ends once"


def test_no_more_often_than_may_be() -> None:
    executor = Executor([Function(fails(9, OSError("no")), repeatable=True)])
    made = call("flaky", max_retries=2)
    virtual_time.run(executor.execute([made]))
    assert (made.status, made.error, made.retry_count) == (FAILURE, "flaky failed: OSError: no", 2)


def test_a_failure_that_is_returned_is_as_good_as_one_that_is_raised() -> None:
    answers = [ExecutionResult(FAILURE, error="not yet"), ExecutionResult(SUCCESS, "at last")]

    async def flaky() -> ExecutionResult:
        return answers.pop(0)

    made = call("flaky")
    virtual_time.run(Executor([Function(flaky, repeatable=True)]).execute([made]))
    assert (made.status, made.result, made.retry_count) == (SUCCESS, "at last", 1)


def test_what_does_not_say_so_is_never_made_again() -> None:
    for function in (
        fails(1, OSError("no")),
        Function(fails(1, OSError("no"))),
        Function(fails(1, OSError("no")), looks=False),
    ):
        made = call("flaky", max_retries=3)
        virtual_time.run(Executor([function]).execute([made]))
        assert (made.status, made.retry_count) == (FAILURE, 0)


@pytest.mark.parametrize("error", [ActionError("wrong"), PolicyDenied("type", "no"), DesktopLost("oom", "killed")])
def test_what_would_fail_again_is_not_made_again(error: Exception) -> None:
    assert is_hopeless(error)
    made = call("flaky", max_retries=3)
    virtual_time.run(Executor([Function(fails(1, error), repeatable=True)]).execute([made]))
    assert (made.status, made.retry_count) == (FAILURE, 0)


def test_each_try_has_the_whole_time() -> None:
    log = Log()
    executor = Executor([Function(log.takes(10, "slow"), "slow", repeatable=True)], backoff=Backoff(1, 1, jitter=0))
    made = call("slow", timeout=2, max_retries=1)
    virtual_time.run(executor.execute([made]))
    assert log.lines == [(0, "slow begins"), (2, "slow is cancelled"), (3, "slow begins"), (5, "slow is cancelled")]


def test_back_off() -> None:
    backoff = Backoff(first=0.5, factor=2, cap=8, jitter=0.5)
    assert [backoff.delay(n, 0) for n in (1, 2, 3, 4, 5, 6, 10_000)] == [0.5, 1, 2, 4, 8, 8, 8]
    assert [backoff.delay(n, 1) for n in (1, 2, 6)] == [0.25, 0.5, 4]
    assert backoff.delay(3, 0.5) == 1.5
    for wrong in ({"first": -1}, {"factor": 0.5}, {"cap": -1}, {"jitter": 1.5}, {"jitter": float("nan")}):
        with pytest.raises(ActionError, match=f"Backoff: {next(iter(wrong))} is a number"):
            Backoff(**wrong)


def test_chance_is_injected() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    chances = iter([0.0, 1.0, 0.5])
    executor = Executor(
        [Function(fails(3, OSError("no")), repeatable=True)],
        backoff=Backoff(first=1, factor=1, jitter=0.5),
        sleep=sleep,
        random=lambda: next(chances),
    )
    virtual_time.run(executor.execute([call("flaky")]))
    assert slept == [1, 0.5, 0.75]


# --- once ---


def test_two_calls_of_one_id_are_one_call() -> None:
    ran: list[int] = []
    executor = Executor({"f": lambda x: ran.append(x) or x})
    calls = [call("f", "c", arguments={"x": 1}), call("f", "d", arguments={"x": 1}), call("f", "c", arguments={"x": 1})]

    async def main() -> None:
        async with executor.run(calls) as run:
            results = await run.wait()
        assert short(run.events) == ["1/2 c", "c success", "2/2 d", "d success"]
        assert len(results) == 3
        again = call("f", "c", arguments={"x": 1})
        async with executor.run([again]) as run:
            await run.wait()
        assert short(run.events) == ["c success"], "answered, and not made again"
        assert (again.status, again.result) == (SUCCESS, 1)

    virtual_time.run(main())
    assert ran == [1, 1]
    assert [made.status for made in calls] == [SUCCESS] * 3


def test_what_was_returned_is_forgotten_and_that_it_was_made_is_not() -> None:
    class Picture:
        """Something large."""

    ran: list[int] = []
    pictures: list[weakref.ref[Picture]] = []

    def look(n: int) -> Picture:
        ran.append(n)
        picture = Picture()
        pictures.append(weakref.ref(picture))
        return picture

    async def main() -> list[ExecutionResult]:
        executor = Executor([look], remembered=2)
        for n in range(5):
            await executor.execute([call("look", f"c{n}", arguments={"n": n})])
        gc.collect()
        assert [picture() is None for picture in pictures] == [True, True, True, False, False]
        again = [call("look", f"c{n}", arguments={"n": n}) for n in (0, 4)]
        results = await executor.execute(again)
        # What depends on a call of long ago is not held up.
        results += await executor.execute([call("look", "c5", arguments={"n": 5}, dependencies=["c0"])], CONDITIONAL)
        with pytest.raises(BadPlan, match="another call had the id 'c0' before"):
            executor.run([call("look", "c0", arguments={"n": 1})])
        return results

    first, last, dependent = virtual_time.run(main())
    assert ran == [0, 1, 2, 3, 4, 5]
    assert first == ExecutionResult(SUCCESS, None, "it was made before, and its result is no longer kept")
    assert isinstance(last.result, Picture)
    assert dependent.status is SUCCESS
    with pytest.raises(ActionError, match="remembered is an integer of at least 0, not -1"):
        Executor(remembered=-1)


def test_a_failure_is_not_made_again_by_asking_again() -> None:
    executor = Executor([fails(1, OSError("no"))])

    async def main() -> list[ExecutionResult]:
        return [*await executor.execute([call("flaky", "c")]), *await executor.execute([call("flaky", "c")])]

    assert [result.status for result in virtual_time.run(main())] == [FAILURE, FAILURE]


def test_one_id_for_different_calls_is_refused() -> None:
    executor = Executor({"f": lambda x: x})
    with pytest.raises(BadPlan, match="two calls have the id 'c'"):
        executor.run([call("f", "c", arguments={"x": 1}), call("f", "c", arguments={"x": 2})])

    async def main() -> None:
        await executor.execute([call("f", "c", arguments={"x": 1})])
        await executor.execute([call("f", "c", arguments={"x": 2})])

    with pytest.raises(BadPlan, match="another call had the id 'c' before"):
        virtual_time.run(main())


def test_a_call_that_another_run_is_making_is_waited_for() -> None:
    log = Log()
    executor = Executor({"f": log.takes(5, "f")})

    async def main() -> list[list[ExecutionResult]]:
        return await asyncio.gather(
            executor.execute([call("f", "c")]),
            executor.execute([call("f", "c"), call("f", "d")], PARALLEL),
            executor.execute([call("f", "c", timeout=1)]),
        )

    results = virtual_time.run(main())
    assert {result.status for batch in results for result in batch} == {SUCCESS}
    assert sum("begins" in line for _, line in log.lines) == 2


def test_a_call_that_was_cancelled_before_it_began_may_be_made() -> None:
    log = Log()
    executor = Executor({"f": log.takes(5, "f")})

    async def main() -> tuple[list[ExecutionResult], list[ExecutionResult]]:
        async with executor.run([call("f", "c1"), call("f", "c2")]) as run:
            await asyncio.sleep(1)
            run.cancel("wait")
            first = await run.wait()
        return first, await executor.execute([call("f", "c1"), call("f", "c2")])

    first, second = virtual_time.run(main())
    assert [result.status for result in first] == [CANCELLED, CANCELLED]
    assert [result.status for result in second] == [CANCELLED, SUCCESS], "nobody knows how much of the first was done"


def test_a_call_that_has_a_status_already_is_taken_as_it_is() -> None:
    got: list[Any] = []
    executor = Executor({"next": lambda text: got.append(text) or None})
    calls = [
        call("gone", "c1", status=FAILURE, error="no JSON"),
        call("gone", "c2", status=SUCCESS, result={"text": "kept"}),
        call("next", "c3", dependencies=["c1"], arguments={"text": "x"}),
    ]
    events = virtual_time.run(events_of(executor, calls, CONDITIONAL))
    assert events == ["c1 failure", "c2 success", "c3 cancelled"]
    assert virtual_time.run(events_of(executor, [calls[1], call("next", "c4")], PIPELINE)) == [
        "c2 success",
        "1/2 c4",
        "c4 success",
    ]
    assert got == ["kept"]


# --- cancellation and events ---


def test_a_cancelled_run_ends_all_its_calls_and_tells_so() -> None:
    log = Log()
    executor = Executor({name: log.takes(10, name) for name in "abc"}, parallel=2)
    calls = [call("a"), call("b"), call("c")]

    async def main() -> Run:
        async with executor.run(calls, PARALLEL) as run:
            async for event in run:
                if event.function_id == "b":
                    run.cancel("the user said stop")
                    run.cancel("again is harmless")
        assert now() == 0
        return run

    run = virtual_time.run(main())
    assert short(run.events) == ["1/3 a", "2/3 b", "a cancelled", "b cancelled", "c cancelled"]
    assert [made.error for made in calls] == [
        "a was stopped: the user said stop; it was cancelled",
        "b was stopped: the user said stop; it was cancelled",
        "c was not called: the user said stop",
    ]
    assert run.status is CANCELLED
    assert [line for _, line in log.lines] == ["a begins", "b begins", "a is cancelled", "b is cancelled"]


def test_a_call_that_has_ended_when_it_is_cancelled_has_ended() -> None:
    done = asyncio.Event()

    async def quick() -> str:
        done.set()
        return "done"

    async def main() -> list[ExecutionResult]:
        async with Executor([quick]).run([call("quick"), call("quick", "next")]) as run:
            await done.wait()
            run.cancel()
            return await run.wait()

    results = virtual_time.run(main())
    assert [result.status for result in results] == [SUCCESS, CANCELLED]


def test_a_call_that_has_failed_when_it_is_cancelled_is_not_made_again() -> None:
    failed = asyncio.Event()
    tries: list[int] = []

    async def quick() -> None:
        tries.append(1)
        failed.set()
        raise OSError("no")

    async def main() -> list[ExecutionResult]:
        async with Executor([Function(quick, repeatable=True)]).run([call("quick")]) as run:
            await failed.wait()
            run.cancel()
            return await run.wait()

    assert [result.status for result in virtual_time.run(main())] == [FAILURE]
    assert tries == [1]


def test_a_call_whose_task_has_not_taken_a_step_was_not_called() -> None:
    log = Log()
    made = call("f")

    async def main() -> Run:
        async with Executor({"f": log.takes(1)}).run([made]) as run:
            await until(lambda: bool(run._tasks))
            run.cancel("at once")
            await run.wait()
        return run

    assert short(virtual_time.run(main()).events) == ["f cancelled"]
    assert (made.error, log.lines) == ("f was not called: at once", [])


def test_cancelling_between_two_tries() -> None:
    executor = Executor([Function(fails(9, OSError("no")), repeatable=True)], backoff=Backoff(10, jitter=0))
    made = call("flaky")

    async def main() -> None:
        async with executor.run([made]) as run:
            await asyncio.sleep(5)
            run.cancel("enough")
            await run.wait()

    virtual_time.run(main())
    assert made.status is CANCELLED
    assert made.error == "flaky was stopped: enough; it was waiting to be repeated: flaky failed: OSError: no"


def test_cancelling_the_task_leaves_nothing_running() -> None:
    log = Log()
    calls = [call("a"), call("b")]

    async def main() -> float:
        task = asyncio.create_task(Executor({"a": log.takes(10, "a"), "b": log.takes(10, "b")}).execute(calls))
        await asyncio.sleep(3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return now()

    assert virtual_time.run(main()) == 3
    assert [line for _, line in log.lines] == ["a begins", "a is cancelled"]
    assert [made.status for made in calls] == [CANCELLED, CANCELLED]
    assert calls[1].error == "b was not called: the batch's `async with` block was left"


def test_leaving_a_stream_cancels_what_is_left() -> None:
    log = Log()
    calls = [call("a"), call("b")]

    async def main() -> None:
        stream = Executor({"a": log.takes(10, "a"), "b": log.takes(10, "b")}).stream(calls)
        async for _ in stream:
            break
        await stream.aclose()  # type: ignore[attr-defined]

    virtual_time.run(main())
    assert [made.status for made in calls] == [CANCELLED, CANCELLED]


def test_an_error_in_the_block_cancels_what_is_left() -> None:
    log = Log()
    made = call("a")

    async def main() -> None:
        async with Executor({"a": log.takes(10, "a")}).run([made]):
            await asyncio.sleep(1)
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        virtual_time.run(main())
    assert made.status is CANCELLED


def test_a_coroutine_that_takes_its_time_to_be_cancelled_is_waited_for() -> None:
    ended: list[float] = []

    async def thorough() -> None:
        try:
            await asyncio.sleep(10)
        finally:
            await asyncio.sleep(5)
            ended.append(now())

    async def main() -> None:
        task = asyncio.create_task(Executor([thorough]).execute([call("thorough")]))
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    virtual_time.run(main())
    assert ended == [6]


def test_a_coroutine_that_cancels_itself_is_no_end_of_the_run() -> None:
    async def gives_up() -> None:
        raise asyncio.CancelledError

    results = virtual_time.run(Executor([gives_up, print]).execute([call("gives_up"), call("print")]))
    assert [result.status for result in results] == [CANCELLED, SUCCESS]
    assert results[0].error == "gives_up was cancelled, by itself or by what it called"


def test_the_end_of_the_loop_ends_a_run() -> None:
    log = Log()
    calls = [call("a"), call("b")]

    async def main() -> Run:
        run = Executor({"a": log.takes(10, "a"), "b": log.takes(10, "b")}).run(calls)
        await run.__aenter__()
        await asyncio.sleep(1)
        return run

    with asyncio.Runner(loop_factory=virtual_time.VirtualLoop) as runner:
        run = runner.run(main())
    # Which of them hears of it first is up to the loop.
    assert sorted(short(run.events)) == ["1/2 a", "a cancelled", "b cancelled"]
    assert [line for _, line in log.lines] == ["a begins", "a is cancelled"]


def test_events_carry_what_came_of_a_call_and_for_whom() -> None:
    executor = Executor({"f": lambda x: x * 2})
    calls = [call("f", "c1", arguments={"x": 2}), call("f", "c2", arguments={"x": 3}, agent_id="b")]

    async def main() -> list[Any]:
        return [event async for event in executor.stream(calls, agent_id="a")]

    assert virtual_time.run(main()) == [
        FunctionExecutionStart(function_name="f", function_id="c1", progress="1/2", agent_id="a"),
        FunctionExecutionComplete(function_name="f", function_id="c1", status="success", result=4, agent_id="a"),
        FunctionExecutionStart(function_name="f", function_id="c2", progress="2/2", agent_id="b"),
        FunctionExecutionComplete(function_name="f", function_id="c2", status="success", result=6, agent_id="b"),
    ]


def test_several_may_listen_and_late_ones_hear_all() -> None:
    log = Log()

    async def listen(run: Run) -> list[str]:
        return short([event async for event in run])

    async def main() -> list[list[str]]:
        async with Executor({"f": log.takes(1)}).run([call("f", "a"), call("f", "b")]) as run:
            first = await asyncio.gather(listen(run), listen(run))
            return [*first, await listen(run)]

    heard = virtual_time.run(main())
    assert heard == [["1/2 a", "a success", "2/2 b", "b success"]] * 3


def test_a_run_is_used_in_a_block() -> None:
    with pytest.raises(BadPlan, match="async with"):
        virtual_time.run(Executor().run([]).wait())
