"""F11: whatever stops a call, and whenever: nothing stays pressed, and the desktop goes on working."""

from __future__ import annotations

import asyncio
import ctypes
import queue
import random
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

import deskhand
from deskhand import (
    AsyncDesktop,
    Drag,
    KeyHold,
    KeyPress,
    LeftClick,
    LeftMouseDown,
    LeftMouseUp,
    Move,
    PressKeys,
    ReleaseKeys,
    Type,
    Wait,
)
from faults.helpers import NOTHING, listen, marked, pressed, within, xclient
from faults.scale import CANCELLATIONS, SIGNALS, THREAD_EXCEPTIONS

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, FunctionType

    from faults.helpers import Lines

# Long enough to be stopped within, each in its own way: server-side delays, our own pauses, borrowed keycodes, gestures.
WORK = (
    (KeyHold(["ctrl", "shift", "a"], 0.3),),
    (KeyHold(["ctrl"], 0.05), LeftClick((20, 20)), KeyPress(["ctrl", "shift", "s"])),
    (Drag([(x, x // 2) for x in range(10, 310, 10)]),),
    (Type("SHOUTING and whispering " * 8),),
    (Type("naïve ☕ Жук 漢字 " * 4),),
    (PressKeys(["shift"]), LeftMouseDown((30, 30)), Move((60, 60)), Wait(0.05), LeftMouseUp(), ReleaseKeys(["shift"])),
    (PressKeys(["alt", "super"]), Wait(0.1), Type("x"), ReleaseKeys(["alt", "super"])),
)
LONGEST = 0.4


class _Stopped(BaseException):
    """Injected."""


def _ctrl_c_within(call: FunctionType) -> Callable[[int, FrameType | None], None]:
    """A handler of signals that interrupts ``call`` alone: one that comes late must not stop the test's own clean-up."""

    def handler(_: int, frame: FrameType | None) -> None:
        while frame is not None:
            if frame.f_code is call.__code__:
                raise KeyboardInterrupt
            frame = frame.f_back

    return handler


def _check(desktop: deskhand.Desktop, witness: Lines, trial: int) -> None:
    assert desktop.pressed == (), trial
    assert pressed(desktop) == ([], []), trial
    if trial % 10 == 0:
        assert witness.ask("pressed") == NOTHING, trial
        color = random.Random(trial).randrange(1 << 24)
        witness.ask("paint", color)
        seen = desktop.perform(Move((5, 5)), settle=False)
        red, green, blue = (int(value) for value in seen.array()[-1, -1][:3])
        assert (red << 16 | green << 8 | blue) == color, f"trial {trial}: the frame is not what the screen shows"


def test_signals(launch: Callable[..., deskhand.Desktop], monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C at a random moment, sometimes twice."""
    # One that Python raises in a callback of the garbage collector ends there: nobody can be stopped by it.
    monkeypatch.setattr(sys, "unraisablehook", lambda _args: None)
    desktop = launch(size=(400, 300), window_manager=None)
    listen(desktop)
    chance = random.Random(11)
    stopped = 0

    before = signal.signal(signal.SIGALRM, _ctrl_c_within(deskhand.Desktop.perform))
    try:
        with xclient(desktop) as witness:
            for trial in range(SIGNALS):
                again = chance.random() < 0.25
                try:
                    try:
                        interval = chance.choice([0.0002, 0.001, 0.005]) if again else 0.0
                        signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-4, LONGEST), interval)
                        desktop.perform(*chance.choice(WORK), settle=False)
                    finally:
                        signal.setitimer(signal.ITIMER_REAL, 0)
                except KeyboardInterrupt:
                    stopped += 1
                if again:
                    # A Ctrl-C may stop even the release that another one caused: then the next call is the one that makes it.
                    desktop.screenshot()
                _check(desktop, witness, trial)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert stopped >= SIGNALS // 4


@pytest.mark.soak
def test_exceptions_raised_in_a_thread(
    launch: Callable[..., deskhand.Desktop], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exception that another thread injects (PyThreadState_SetAsyncExc) between any two bytecodes."""
    desktop = launch(size=(400, 300), window_manager=None)
    listen(desktop)
    chance = random.Random(12)
    inject = ctypes.pythonapi.PyThreadState_SetAsyncExc
    inject.argtypes = [ctypes.c_ulong, ctypes.py_object]
    stopped = 0
    lost: queue.SimpleQueue[object] = queue.SimpleQueue()
    # One that Python raises in a callback of the garbage collector ends there: nobody can be stopped by it.
    monkeypatch.setattr(sys, "unraisablehook", lambda args: lost.put(args.exc_value))
    with xclient(desktop) as witness:
        for trial in range(THREAD_EXCEPTIONS):
            actions = chance.choice(WORK)
            outcome: list[BaseException] = []
            working = threading.Event()
            safe = threading.Event()

            def work(
                actions: tuple[deskhand.Action, ...] = actions,
                outcome: list[BaseException] = outcome,
                working: threading.Event = working,
            ) -> None:
                try:
                    working.set()
                    desktop.perform(*actions, settle=False)
                    # Where an exception that comes late is caught.
                    while True:
                        time.sleep(0.001)
                except BaseException as error:  # noqa: BLE001 # it is what this is about
                    outcome.append(error)

            # A daemon: one that nothing stops must not keep the run of the tests from ending.
            thread = threading.Thread(target=work, daemon=True)
            thread.start()
            assert working.wait(60)
            assert not safe.wait(chance.uniform(0, LONGEST))
            assert thread.ident is not None
            assert inject(thread.ident, ctypes.py_object(_Stopped)) == 1
            deadline = time.monotonic() + 10
            while thread.is_alive() and time.monotonic() < deadline:
                thread.join(0.05)
                if not lost.empty():
                    assert isinstance(lost.get(), _Stopped), trial
                    inject(thread.ident, ctypes.py_object(_Stopped))
            assert not thread.is_alive(), trial
            assert isinstance(outcome[0], _Stopped), (trial, outcome)
            stopped += 1
            _check(desktop, witness, trial)
    assert stopped == THREAD_EXCEPTIONS


def test_cancelled_tasks(launch: Callable[..., deskhand.Desktop]) -> None:
    """Asyncio cancels the task, also before it has begun and while it queues."""
    desktop = launch(size=(400, 300), window_manager=None)
    listen(desktop)
    chance = random.Random(13)

    async def run(witness: Lines) -> int:
        driver = AsyncDesktop(desktop)
        cancelled = 0
        for trial in range(CANCELLATIONS):
            tasks = [
                asyncio.create_task(driver.perform(*chance.choice(WORK), settle=False))
                for _ in range(chance.choice([1, 1, 2]))
            ]
            # One at a time and never sooner than a step of the loop: at a random moment.
            await asyncio.sleep(chance.choice([0.0, chance.uniform(0, LONGEST)]))
            for task in tasks:
                task.cancel()
            results = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 10)
            cancelled += sum(isinstance(result, asyncio.CancelledError) for result in results)
            assert all(isinstance(result, asyncio.CancelledError | deskhand.Observation) for result in results)
            _check(desktop, witness, trial)
        return cancelled

    with xclient(desktop) as witness:
        assert asyncio.run(run(witness)) >= CANCELLATIONS // 4


def test_cancelled_task_ends_soon(launch: Callable[..., deskhand.Desktop]) -> None:
    """A cancelled wait of a minute ends at once, whenever it is cancelled."""
    desktop = launch(size=(200, 100), window_manager=None)

    async def run() -> None:
        driver = AsyncDesktop(desktop)
        for delay in (0.0, 0.0, 0.0005, 0.001, 0.002, 0.05, 0.3):
            task = asyncio.create_task(driver.perform(PressKeys(["shift"]), Wait(60)))
            await asyncio.sleep(delay)
            task.cancel()
            with within(1.0, f"a cancellation after {delay} s"), pytest.raises(asyncio.CancelledError):
                await task
            assert pressed(desktop) == ([], [])

    asyncio.run(run())


def test_interrupted_close_can_be_repeated(launch: Callable[..., deskhand.Desktop], mark: str) -> None:
    """Ctrl-C while closing: what remains is closed by the next close()."""
    chance = random.Random(14)

    before = signal.signal(signal.SIGALRM, _ctrl_c_within(deskhand.Desktop.close))
    try:
        for _ in range(10):
            desktop = launch(size=(200, 100), window_manager=None)
            desktop.perform(PressKeys(["shift"]), settle=False)
            try:
                try:
                    signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-4, 0.03))
                    desktop.close()
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                desktop.close()
            assert marked(mark) == {}
    finally:
        signal.signal(signal.SIGALRM, before)
