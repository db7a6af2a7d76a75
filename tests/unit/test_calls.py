"""A call that is stopped: its request to stop meets no call that comes after it."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from deskhand import AsyncDesktop, Closed, Desktop, Interrupted, KeyHold, Wait
from deskhand.aio.calls import Calls
from deskhand.backends.memory import MemoryBackend
from deskhand.desktop.access import core_of
from deskhand.desktop.lifecycle import revoke
from unit.held import Call, Heard

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from deskhand import Action

LONG = 30.0


class LateRequests:
    """Two calls of which the first is cancelled: its request to stop comes through when the second has its turn."""

    def __init__(self, turn: Callable[[], AbstractContextManager[Any]], stops: Callable[[], bool]) -> None:
        self._turn, self._stops = turn, stops
        self.begun, self.over, self.second, self.asked = (threading.Event() for _ in range(4))

    def first_call(self) -> None:
        with self._turn():
            self.begun.set()
            assert self.over.wait(LONG)

    def second_call(self) -> bool:
        with self._turn():
            self.second.set()
            assert self.asked.wait(LONG)
            return self._stops()

    def delayed(self, request: Callable[..., None]) -> Callable[..., None]:
        def interrupt(*caller: object) -> None:
            self.over.set()
            assert self.second.wait(LONG)
            request(*caller)
            self.asked.set()

        return interrupt

    async def run(self, calls: Calls) -> bool:
        """Whether the second call was told to stop."""
        first = asyncio.ensure_future(calls._call(self.first_call))
        await asyncio.to_thread(self.begun.wait, LONG)
        second = asyncio.ensure_future(calls._call(self.second_call))
        # It is behind the first one by then.
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        return await second


def test_of_a_desktop(monkeypatch: pytest.MonkeyPatch) -> None:
    with Desktop(MemoryBackend((320, 200))) as desktop:
        core = core_of(desktop)

        def stops() -> bool:
            try:
                core.backend.wait(0.0)
            except Interrupted:
                return True
            return core.watch.stop

        late = LateRequests(core.turn, stops)
        monkeypatch.setattr(core, "interrupt", late.delayed(core.interrupt))
        assert not asyncio.run(late.run(Calls(desktop)))


def test_of_a_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    with Desktop(MemoryBackend((320, 200))) as desktop, desktop.host.open_shell() as shell:
        late = LateRequests(shell._turn, lambda: shell._stop)
        for name in ("interrupt", "_interrupt"):
            if hasattr(shell, name):
                monkeypatch.setattr(shell, name, late.delayed(getattr(shell, name)))
        assert not asyncio.run(late.run(Calls(shell)))


def _waiting() -> tuple[MemoryBackend, threading.Event]:
    """A backend, and what is set once a call waits on it."""
    backend, waits = MemoryBackend((320, 200)), threading.Event()

    def wait(_: float) -> None:
        waits.set()
        time.sleep(0.001)

    backend.on_wait = wait
    return backend, waits


@pytest.mark.parametrize("intercepted", [False, True])
@pytest.mark.parametrize("action", [Wait(60.0), KeyHold(["a"], 60.0)], ids=lambda action: action.type)
def test_an_interrupted_call_raises_what_users_can_name(action: Action, *, intercepted: bool) -> None:
    backend, waits = _waiting()
    with Desktop(backend) as desktop:
        view = desktop.also(Heard()) if intercepted else desktop
        call = Call(lambda: view.perform(action, settle=False))
        assert waits.wait(LONG)
        desktop.interrupt()
        assert type(call.end()) is Interrupted
        assert desktop.pressed == ()
        assert view.screenshot().data


def test_a_coroutine_of_an_interrupted_call_raises_it_too() -> None:
    backend, waits = _waiting()

    async def run(desktop: Desktop) -> None:
        call = asyncio.ensure_future(AsyncDesktop(desktop).perform(Wait(60.0)))
        assert await asyncio.to_thread(waits.wait, LONG)
        desktop.interrupt()
        with pytest.raises(Interrupted):
            await call

    with Desktop(backend) as desktop:
        asyncio.run(run(desktop))


def test_it_is_no_exception_that_a_handler_catches() -> None:
    assert not issubclass(Interrupted, Exception)


def test_a_call_that_waits_for_its_turn_when_the_desktop_is_revoked_says_that() -> None:
    with Desktop(MemoryBackend((320, 200))) as desktop:
        core = core_of(desktop)
        with core.lock:
            call = Call(desktop.also(Heard()).screenshot)
            while not core.attempts:
                time.sleep(0.001)
            revoke(core)
        assert isinstance(call.end(), Closed)
