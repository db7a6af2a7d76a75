"""A person pauses a desktop: which operations wait, and what lets them go on."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from typing import TYPE_CHECKING

import pytest

from deskhand import (
    ActionError,
    AsyncDesktop,
    Closed,
    Desktop,
    Guard,
    LeftClick,
    LeftMouseDown,
    Move,
    Operation,
    PolicyDenied,
    PressKeys,
)
from deskhand._native import Interrupted
from deskhand.backends.memory import MemoryBackend
from deskhand.desktop.access import bare
from unit.held import Call, Heard, until_waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def backend() -> MemoryBackend:
    return MemoryBackend((320, 200))


@pytest.fixture
def desktop(backend: MemoryBackend) -> Iterator[Desktop]:
    with Desktop(backend) as desktop:
        yield desktop


@pytest.mark.parametrize("intercepted", [False, True])
def test_operations_wait_and_pass_one_by_one(desktop: Desktop, backend: MemoryBackend, *, intercepted: bool) -> None:
    heard = Heard()
    agent = desktop.also(heard) if intercepted else desktop
    desktop.control.pause("Ada")
    assert desktop.control.paused is not None
    assert desktop.control.paused.by == "Ada"
    backend.events.clear()
    first = Call(lambda: agent.perform(Move((1, 1)), settle=False))
    until_waiting(desktop)
    second = Call(lambda: agent.perform(Move((2, 2)), settle=False))
    until_waiting(desktop, 2)
    assert [operation.actions for operation in desktop.control.waiting] == [(Move((1, 1)),), (Move((2, 2)),)]
    assert backend.events == []
    assert heard.operations == []
    # deskhand's own looks, and a person's hands, do not wait.
    bare(desktop).screenshot()
    with desktop.control.take("Ada") as hold:
        hold.desktop.perform(Move((9, 9)), settle=False)
    desktop.control.step()
    first.end()
    assert tuple(desktop.pointer) == (1, 1)
    assert len(desktop.control.waiting) == 1
    desktop.control.resume()
    second.end()
    assert tuple(desktop.pointer) == (2, 2)
    assert desktop.control.paused is None
    agent.screenshot()


def test_a_step_is_for_the_next_that_comes(desktop: Desktop) -> None:
    with pytest.raises(ActionError, match="not paused"):
        desktop.control.step()
    desktop.control.pause("Ada")
    desktop.control.step()
    desktop.perform(LeftClick((5, 5)), settle=False)
    waits = Call(desktop.screenshot)
    until_waiting(desktop)
    desktop.control.resume()
    waits.end()


def test_a_part_of_an_operation_does_not_wait_again(desktop: Desktop) -> None:
    desktop.control.pause("Ada")
    desktop.control.step()
    view = desktop.also(Heard())

    def work() -> None:
        view.perform(LeftClick((5, 5)), settle=False)
        view.screenshot()

    view.operate(Operation("navigate", "x"), work)
    assert desktop.control.waiting == ()
    desktop.control.resume()


def test_views_that_come_later_are_paused_too(desktop: Desktop) -> None:
    desktop.control.pause("Ada")
    call = Call(desktop.also(Heard()).also(Heard()).screenshot)
    until_waiting(desktop)
    desktop.control.resume()
    assert not isinstance(call.end(), BaseException)


@pytest.mark.parametrize(
    ("end", "raised"),
    [
        (lambda d: d.stop("enough"), PolicyDenied),
        (lambda d: d.close(), Closed),
        (lambda d: d.interrupt(), Interrupted),
    ],
)
def test_what_waits_ends_with_the_desktop(
    desktop: Desktop, end: Callable[[Desktop], object], raised: type[BaseException]
) -> None:
    desktop.control.pause("Ada")
    calls = [
        Call(desktop.screenshot),
        Call(desktop.also(Heard()).screenshot),
        Call(lambda: desktop.host.run("true")),
    ]
    until_waiting(desktop, 3)
    end(desktop)
    assert [type(call.end()) for call in calls] == [raised] * 3
    assert desktop.control.waiting == ()


@pytest.mark.parametrize("intercepted", [False, True])
@pytest.mark.parametrize(
    "call",
    [
        lambda d: d.perform(PressKeys(["shift"]), LeftMouseDown((5, 5)), settle=False),
        lambda d: d.screenshot(),
        lambda d: d.host.run("true"),
    ],
)
def test_ctrl_c_ends_what_waits_in_the_main_thread(
    desktop: Desktop, backend: MemoryBackend, call: Callable[[Desktop], object], *, intercepted: bool
) -> None:
    heard = Heard()
    agent = desktop.also(heard) if intercepted else desktop
    desktop.control.pause("Ada")

    def press() -> None:
        until_waiting(desktop)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    pressing = Call(press)
    with pytest.raises(KeyboardInterrupt):
        call(agent)
    assert pressing.end() is None
    # It was not begun, nothing of it is left, and the desktop goes on as it was.
    assert (desktop.control.waiting, desktop.pressed, heard.operations) == ((), (), [])
    assert backend.events == []
    assert desktop.control.paused is not None
    with desktop.control.take("Ada") as hold:
        hold.desktop.perform(Move((9, 9)), settle=False)
    desktop.control.resume()
    call(agent)


def test_after_a_stop_nothing_is_paused(desktop: Desktop) -> None:
    desktop.control.pause("Ada")
    desktop.stop("enough")
    assert desktop.control.paused is None
    desktop.screenshot()


def test_coroutines_wait_without_the_loop_and_can_be_cancelled() -> None:
    async def main() -> None:
        for policy in ((), (Guard(),)):
            async with AsyncDesktop(Desktop(MemoryBackend((320, 200)))) as owner:
                desktop = owner.also(*policy)
                desktop.control.pause("Ada")
                waits = asyncio.create_task(desktop.screenshot())
                await asyncio.to_thread(until_waiting, desktop)
                waits.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await waits
                assert desktop.control.waiting == ()
                goes_on = asyncio.create_task(desktop.screenshot())
                await asyncio.to_thread(until_waiting, desktop)
                # Control does not queue behind the call that waits.
                async with await desktop.control.take("Ada") as hold:
                    await hold.desktop.perform(LeftClick((5, 5)), settle=False)
                    assert hold.active
                assert not hold.active
                desktop.control.step()
                await goes_on
                desktop.control.resume()
                request = await desktop.hand_over("help")
                desktop.control.decline(request, "Ada")
                assert (await desktop.perform(settle=False)).notes[-1].startswith("Ada declined")

    asyncio.run(main())
