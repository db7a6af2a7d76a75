"""Calls that act on a desktop: what is never repeated, whose turn it is, and what an interruption leaves."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

import virtual_time
from calls import call, short, until
from deskhand import (
    ActionError,
    AsyncDesktop,
    BackendError,
    Decision,
    Desktop,
    Guard,
    KeyPress,
    LeftClick,
    Type,
)
from deskhand._core.events import ButtonDown, ButtonUp, KeyDown, KeyUp
from deskhand.backends.memory import MemoryBackend
from deskhand.execution import (
    ExecutionStatus,
    Executor,
    Function,
    FunctionCallStrategy,
    RequestFunctionCall,
    ToolCallStreamChunk,
    request_of,
)
from deskhand.execution.call_queue import Turns, turns_of
from deskhand.providers.session import AsyncModelSession, ModelSession
from deskhand.providers.values import Result

if TYPE_CHECKING:
    from collections.abc import Iterator

SEQUENTIAL, PARALLEL = FunctionCallStrategy.SEQUENTIAL, FunctionCallStrategy.PARALLEL
CONDITIONAL, PIPELINE = FunctionCallStrategy.CONDITIONAL, FunctionCallStrategy.PIPELINE
SUCCESS, FAILURE, CANCELLED = ExecutionStatus.SUCCESS, ExecutionStatus.FAILURE, ExecutionStatus.CANCELLED
PARTIAL = ExecutionStatus.PARTIAL


# --- desktops ---


@pytest.fixture
def backend() -> MemoryBackend:
    backend = MemoryBackend((320, 200))
    backend.on_wait = lambda _seconds: None
    return backend


@pytest.fixture
def desktop(backend: MemoryBackend) -> Iterator[Desktop]:
    clock = [0.0]

    def tick() -> float:
        clock[0] += 0.001
        return clock[0]

    with Desktop(backend, clock=tick) as desktop:
        yield desktop


def click(id: str, xy: tuple[int, int] = (10, 20), **options: Any) -> RequestFunctionCall:
    return call("left_mouse_click", id, arguments={"xy": list(xy)}, **options)


def test_a_desktops_actions_are_functions(desktop: Desktop, backend: MemoryBackend) -> None:
    executor = Executor(desktops=desktop)
    calls = [
        click("c1"),
        call("computer", "c2", arguments={"action": "keypress", "keys": ["a"]}),
        call("screenshot", "c3"),
    ]
    results = asyncio.run(executor.execute(calls))
    assert [result.status for result in results] == [SUCCESS] * 3
    assert [type(event) for event in backend.events if not hasattr(event, "x")] == [
        ButtonDown,
        ButtonUp,
        KeyDown,
        KeyUp,
    ]
    assert all(isinstance(result.result, Result) for result in results)
    assert results[0].result is not None
    assert results[0].result.picture.data.startswith(b"\x89PNG")
    assert results[0].result.observation is not None


def test_every_form_of_a_desktop_will_do(desktop: Desktop, backend: MemoryBackend) -> None:
    forms = [
        desktop,
        AsyncDesktop(desktop),
        ModelSession(desktop),
        AsyncModelSession(desktop),
        desktop.also(Guard(policy=Allowing())),
    ]
    for number, form in enumerate(forms):
        executor = Executor(desktops={"screen": form})
        assert executor.names == ("screen",), "by name, only as a whole"
        made = call("screen", f"c{number}", arguments={"action": "left_mouse_click", "xy": [1, 2]})
        assert asyncio.run(executor.execute([made]))[0].status is SUCCESS
    assert sum(isinstance(event, ButtonDown) for event in backend.events) == len(forms)


class Allowing:
    def __init__(self, verdict: str = "allow") -> None:
        self.verdict = verdict

    def before(self, action: Any, context: Any) -> Decision:
        del action, context
        return Decision(self.verdict, "not here")  # type: ignore[arg-type]


def test_what_is_wrong_denied_or_failed_is_told(desktop: Desktop, backend: MemoryBackend) -> None:
    governed = Executor(desktops={"screen": desktop.also(Guard(policy=Allowing("deny")))})
    denied = call("screen", "c0", arguments={"action": "left_mouse_click", "xy": [1, 2]})
    look = call("screen", "c1", arguments={"action": "screenshot"})
    asyncio.run(governed.execute([denied, look]))
    assert (denied.status, look.status, look.retry_count) == (FAILURE, FAILURE, 0)
    assert "not here" in (denied.error or "")
    executor = Executor(desktops=desktop)
    calls = [click("c1", (999, 0)), call("computer", "c2", arguments={"action": "jump"}), call("screenshot", "c3")]
    asyncio.run(executor.execute(calls))
    assert [made.status for made in calls] == [FAILURE, CANCELLED, SUCCESS]
    assert "outside of 320x200" in (calls[0].error or "")
    assert backend.events == []


def test_input_is_never_repeated_and_looking_is(desktop: Desktop, backend: MemoryBackend) -> None:
    def fail(event: Any) -> None:
        if isinstance(event, ButtonDown):
            raise OSError("the line broke")

    backend.on_event = fail
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    executor = Executor(desktops=desktop, sleep=sleep)
    made = click("c1", max_retries=3)
    asyncio.run(executor.execute([made]))
    assert (made.status, made.retry_count, slept) == (FAILURE, 0, [])
    assert sum(isinstance(event, ButtonDown) for event in backend.events) == 1

    looks = [0]

    def look(limit: float | None = None) -> None:
        del limit
        looks[0] += 1
        # The first try is told what is wrong, the second fails in telling it too.
        if looks[0] in (1, 3, 4):
            raise BackendError("not yet")

    backend.look = look  # type: ignore[method-assign]
    made = call("screenshot", "c2")
    asyncio.run(executor.execute([made]))
    assert (made.status, made.retry_count) == (SUCCESS, 2)


@pytest.mark.parametrize("strategy", [SEQUENTIAL, PARALLEL, CONDITIONAL])
def test_input_after_input_that_failed_is_left_out(strategy: FunctionCallStrategy, desktop: Desktop) -> None:
    executor = Executor({"other": lambda: "done"}, desktops=desktop)
    calls = [
        click("c1"),
        click("c2", (999, 0)),
        call("type", "c3", arguments={"text": "x"}),
        call("screenshot"),
        call("other"),
    ]
    asyncio.run(executor.execute(calls, strategy))
    assert [made.status for made in calls] == [SUCCESS, FAILURE, CANCELLED, SUCCESS, SUCCESS]
    assert calls[2].error == (
        "type was not called: c2 (left_mouse_click), which was to act on the desktop before it, did not succeed"
    )


@pytest.mark.parametrize("strategy", [SEQUENTIAL, PARALLEL, CONDITIONAL])
def test_input_after_input_that_could_not_be_read_is_left_out(
    strategy: FunctionCallStrategy, desktop: Desktop, backend: MemoryBackend
) -> None:
    unread = request_of(ToolCallStreamChunk("c1", function_name="left_mouse_click", arguments='{"xy": [10,'))
    calls = [unread, call("type", "c2", arguments={"text": "x"}), call("screenshot")]
    asyncio.run(Executor(desktops=desktop).execute(calls, strategy))
    assert [made.status for made in calls] == [FAILURE, CANCELLED, SUCCESS]
    assert backend.events == [], "the text was meant for where the click was to be"


def test_a_look_that_fails_takes_nothing_with_it(desktop: Desktop, backend: MemoryBackend) -> None:
    calls = [call("zoom", "c1", arguments={"region": [0, 0, 999, 999]}), click("c2")]
    asyncio.run(Executor(desktops=desktop).execute(calls))
    assert [made.status for made in calls] == [FAILURE, SUCCESS]
    assert any(isinstance(event, ButtonDown) for event in backend.events)


def test_calls_of_one_desktop_take_turns_in_the_order_given(desktop: Desktop, backend: MemoryBackend) -> None:
    executor = Executor(desktops=desktop)
    calls = [click(f"c{x}", (x, 1)) for x in range(5)]

    async def main() -> list[str]:
        return [text async for text in _texts(executor, calls)]

    events = asyncio.run(main())
    assert events == [text for x in range(5) for text in (f"{x + 1}/5 c{x}", f"c{x} success")]
    downs = [backend.events[number - 1] for number, event in enumerate(backend.events) if isinstance(event, ButtonDown)]
    assert [getattr(event, "x", None) for event in downs] == list(range(5))


async def _texts(executor: Executor, calls: list[RequestFunctionCall]) -> Any:
    async for event in executor.stream(calls, PARALLEL):
        yield short([event])[0]


def test_a_function_of_ones_own_on_a_desktop(desktop: Desktop, backend: MemoryBackend) -> None:
    threads: list[str] = []

    def fill_in(there: Desktop, text: str) -> str:
        threads.append(threading.current_thread().name)
        there.perform(LeftClick((1, 2)), Type(text))
        return text.upper()

    def half(there: Desktop) -> None:
        def fail(event: Any) -> None:
            if isinstance(event, KeyDown):
                raise ActionError("no such key")

        backend.on_event = fail
        there.perform(LeftClick((1, 2)), KeyPress(("a",)))

    executor = Executor([Function(fill_in, desktop=desktop), Function(half, desktop=desktop)])
    calls = [call("fill_in", arguments={"text": "ab"}), call("half"), call("fill_in", "c3", arguments={"text": "x"})]
    results = asyncio.run(executor.execute(calls))
    assert [result.status for result in results] == [SUCCESS, PARTIAL, CANCELLED]
    assert results[0].result == "AB"
    assert threads[0].startswith("deskhand")


def test_a_function_of_ones_own_gets_the_desktop_with_its_policy(desktop: Desktop, backend: MemoryBackend) -> None:
    def act(there: Desktop) -> None:
        there.perform(LeftClick((1, 2)))

    judged = desktop.also(Guard(policy=Allowing("deny")))
    made = call("act")
    asyncio.run(Executor([Function(act, desktop=judged)]).execute([made]))
    assert made.status is FAILURE
    assert "not here" in (made.error or "")
    assert backend.events == []


def stuck() -> tuple[threading.Event, Any]:
    """Lets waits wait until they are interrupted."""
    waiting = threading.Event()

    def wait(seconds: float) -> None:
        del seconds
        waiting.set()

    return waiting, wait


def test_a_desktops_call_that_takes_too_long_is_interrupted_and_releases_what_it_holds(
    desktop: Desktop, backend: MemoryBackend
) -> None:
    waiting, backend.on_wait = stuck()
    clock = [0.0]
    desktop._core.clock = desktop._core.watch.clock = lambda: clock[0]  # time stands still: it would wait for ever

    async def sleep(seconds: float) -> None:
        assert seconds == 2
        await until(waiting.is_set)

    executor = Executor(desktops=desktop, sleep=sleep)
    made = call("keypress_hold", "c1", arguments={"keys": ["shift"], "duration": 60}, timeout=2, max_retries=3)
    asyncio.run(executor.execute([made]))
    assert (made.status, made.retry_count) == (FAILURE, 0)
    assert "interrupted and holds no key or button" in (made.error or "")
    assert [type(event) for event in backend.events if isinstance(event, KeyDown | KeyUp)] == [KeyDown, KeyUp]
    assert desktop.pressed == ()


def test_two_executors_on_one_desktop_take_turns_and_do_not_stop_each_other(
    desktop: Desktop, backend: MemoryBackend
) -> None:
    waiting, backend.on_wait = stuck()
    later = [0.0]
    desktop._core.clock = desktop._core.watch.clock = lambda: time.monotonic() + later[0]
    first, second = Executor(desktops=desktop), Executor(desktops=AsyncDesktop(desktop))
    hold = call("keypress_hold", "hold", arguments={"keys": ["shift"], "duration": 60})

    async def main() -> None:
        async with first.run([hold]) as one:
            await until(waiting.is_set)
            async with second.run([click("c1")]) as other:
                await until(lambda: bool(turns_of(desktop)._waiting))
                assert other.events == [], "it waits for its turn"
                other.cancel("changed my mind")
                assert (await other.wait())[0].status is CANCELLED
            assert one.status is ExecutionStatus.PENDING, "the one whose turn it is goes on"
            later[0] = 1000.0
            assert (await one.wait())[0].status is SUCCESS
        assert (await second.execute([click("c1")]))[0].status is SUCCESS

    asyncio.run(main())
    kinds = [type(event) for event in backend.events if isinstance(event, KeyDown | KeyUp | ButtonDown)]
    assert kinds == [KeyDown, KeyUp, ButtonDown]


def test_somebody_elses_interruption_is_told(desktop: Desktop, backend: MemoryBackend) -> None:
    waiting, backend.on_wait = stuck()
    clock = [0.0]
    desktop._core.clock = desktop._core.watch.clock = lambda: clock[0]
    made = call("wait", "c1", arguments={"duration": 60})

    async def main() -> None:
        async with Executor(desktops=desktop).run([made]) as run:
            await until(waiting.is_set)
            desktop.interrupt()
            await run.wait()

    asyncio.run(main())
    assert made.status is CANCELLED
    assert "interrupted from outside the batch" in (made.error or "")


def test_turns_are_first_come_first_served_across_loops_and_threads() -> None:
    turns = Turns()
    inside: list[int] = []
    most = [0]

    async def use(number: int) -> None:
        async with turns.turn():
            inside.append(number)
            most[0] = max(most[0], len(inside))
            await asyncio.sleep(0)
            inside.remove(number)

    async def some(first: int) -> None:
        tasks = [asyncio.create_task(use(first + n)) for n in range(20)]
        await asyncio.sleep(0)
        # Whoever is cancelled while he waits holds nobody up.
        tasks[7].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    threads = [threading.Thread(target=lambda n=n: asyncio.run(some(n * 100))) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert most == [1]

    order: list[int] = []

    async def in_order() -> None:
        async def use(number: int) -> None:
            async with turns.turn():
                order.append(number)

        async with turns.turn():
            tasks = [asyncio.create_task(use(number)) for number in range(5)]
            await asyncio.sleep(0)
            tasks[2].cancel()
        # Given to the first, who is cancelled before he has heard of it: it goes to the next.
        tasks[0].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    virtual_time.run(in_order())
    assert order == [1, 3, 4]


def test_a_loop_that_was_closed_holds_nobody_up() -> None:
    turns = Turns()
    loop = asyncio.new_event_loop()
    holding = turns.turn()
    loop.run_until_complete(holding.__aenter__())
    waiting = loop.create_task(turns.turn().__aenter__())
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()

    async def later() -> None:
        await holding.__aexit__(None, None, None)
        async with turns.turn():
            pass

    virtual_time.run(later())
    waiting._log_destroy_pending = False  # type: ignore[attr-defined]


def test_turns_belong_to_the_desktop(desktop: Desktop) -> None:
    assert turns_of(desktop) is turns_of(desktop)
    with Desktop(MemoryBackend((10, 10))) as other:
        assert turns_of(desktop) is not turns_of(other)
