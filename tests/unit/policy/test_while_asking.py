"""Coroutines and threads while a question waits for its answer, and stopping."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

from deskhand import (
    AsyncDesktop,
    CallContext,
    Context,
    Desktop,
    Guard,
    Move,
    PolicyDenied,
    PressKeys,
    SafetyCheck,
    Secret,
    Type,
    Wait,
)
from deskhand.desktop.access import review

if TYPE_CHECKING:
    from deskhand.backends.memory import MemoryBackend
    from deskhand.policy.rules import JudgedAction
    from unit.policy.judged import Clock, Inside

SOON = 0.02
LONG = 60.0
CHECKS = (SafetyCheck("a", "malicious_instructions", "The page says so"), SafetyCheck("b", None, None))

# --- coroutines ---


def test_coroutines_run_in_the_callers_loop(desktop: Desktop, inside: Inside) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()

        async def ask(_action: JudgedAction, _context: Context) -> bool:
            assert asyncio.get_running_loop() is loop
            # Who is asked may look, meanwhile and through the same object.
            return (await judged.screenshot()).size == (320, 200)

        judged = AsyncDesktop(desktop.also(Guard(ask=ask)))
        assert (await judged.machine.run("ls")).stdout == "out"
        results = await asyncio.gather(*(judged.machine.run(str(n)) for n in range(5)))
        assert len(results) == 5

    asyncio.run(run())
    assert sorted(inside.done) == ["0", "1", "2", "3", "4", "ls"]


def test_a_blocking_question_does_not_block_the_loop(desktop: Desktop, inside: Inside) -> None:
    answer = threading.Event()

    async def run() -> None:
        judged = AsyncDesktop(desktop.also(Guard(ask=lambda *_: answer.wait(LONG))))
        task = asyncio.create_task(judged.machine.run("ls"))
        assert (await judged.screenshot()).size == (320, 200)
        answer.set()
        await task

    asyncio.run(run())
    assert inside.done == ["ls"]


def test_a_cancelled_question_is_a_no(desktop: Desktop, backend: MemoryBackend) -> None:
    async def run() -> None:
        asked, cancelled = asyncio.Event(), asyncio.Event()

        async def ask(_action: JudgedAction, _context: Context) -> bool:
            asked.set()
            try:
                await asyncio.sleep(LONG)
            except asyncio.CancelledError:
                cancelled.set()
                raise
            return True

        judged = AsyncDesktop(desktop.also(Guard(ask=ask, ask_timeout=SOON)))
        task = asyncio.create_task(judged.perform(Type(Secret("x"))))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        # The question itself does not stay open either.
        await cancelled.wait()

    asyncio.run(run())
    assert backend.events == []


def test_a_cancelled_call_stops_only_itself(desktop: Desktop, backend: MemoryBackend, clock: Clock) -> None:
    go_on = threading.Event()
    begun = threading.Event()

    def on_wait(seconds: float) -> None:
        begun.set()
        go_on.wait(LONG)
        clock.now += seconds

    backend.on_wait = on_wait

    async def run() -> None:
        judged = AsyncDesktop(desktop.also(Guard()))
        first = asyncio.create_task(judged.perform(Move((1, 1)), Wait(0.1), settle=False))
        await asyncio.to_thread(begun.wait, LONG)
        second = asyncio.create_task(judged.perform(Move((2, 2)), settle=False))
        await asyncio.sleep(0)
        second.cancel()
        asyncio.get_running_loop().call_later(SOON, go_on.set)
        with pytest.raises(asyncio.CancelledError):
            await second
        await first

    asyncio.run(run())
    assert [event.x for event in backend.events if hasattr(event, "x")] == [1]


# --- stopping ---


def test_stopped_once_stopped_for_ever(desktop: Desktop, backend: MemoryBackend, inside: Inside) -> None:
    judged = desktop.also(Guard(ask=lambda *_: True))
    judged.perform(PressKeys(["a"]), settle=False)
    assert judged.stop("enough")
    assert (judged._core.stopped is not None, desktop.pressed) == (True, ())
    before = list(backend.events)
    for act in (
        lambda: judged.machine.run("ls"),
        judged.screenshot,
        lambda: review(judged, CallContext(safety_checks=CHECKS)),
    ):
        with pytest.raises(PolicyDenied, match="enough"):
            act()
    for raw in (lambda: desktop.machine.run("ls"), lambda: desktop.perform(Move((1, 1)))):
        with pytest.raises(PolicyDenied, match="enough"):
            raw()
    assert (backend.events, inside.done) == (before, [])
    assert desktop.screenshot().size == (320, 200)
