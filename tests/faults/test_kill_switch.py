"""The kill switch: whatever is under way, and from wherever it is pulled, nothing stays pressed and nothing more is sent."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from typing import TYPE_CHECKING

import pytest

from deskhand import (
    AsyncDesktop,
    BackendError,
    Desktop,
    Drag,
    Guard,
    KeyHold,
    KeyPress,
    LeftMouseDown,
    Move,
    PolicyDenied,
    PressKeys,
    Secret,
    Type,
    Wait,
)
from faults.helpers import NOTHING, listen, server_pid, until, within, xclient

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from types import FrameType

    import deskhand
    from deskhand import Action
    from faults.helpers import Lines

# What is promised: from the call of stop() until the server has nothing pressed any more.
RELEASED = 0.1
SHIFT_AND_BUTTON = {"keys": [50], "buttons": [1]}
HOLD: tuple[Action, ...] = (PressKeys(["shift"]), LeftMouseDown((50, 50)))
# Each takes many times as long as it may take to stop it, and waits in its own way.
UNDER_WAY: dict[str, tuple[Action, ...]] = {
    "wait": (*HOLD, Wait(600)),
    "hold": (*HOLD, KeyHold(["a"], 600)),
    "short holds": (*HOLD, *[KeyHold(["a"], 0.25)] * 40),
    "drag": (PressKeys(["shift"]), Drag([(x % 300, x // 30) for x in range(0, 9000, 30)])),
    "typing": (*HOLD, *[Type("SHOUTING Ж漢字 " * 20)] * 400),
    "long texts": (*HOLD, *[Type("ab" * 5000)] * 40),
}


@pytest.fixture
def desktop(launch: Callable[..., deskhand.Desktop]) -> deskhand.Desktop:
    desktop = launch(size=(320, 320), window_manager=None)
    listen(desktop)
    return desktop


def _released(desktop: deskhand.Desktop) -> AbstractContextManager[None]:
    """What stops it returns within the time that is promised: when the server has nothing pressed any more."""
    assert desktop.display is not None
    return within(RELEASED, "the release", of=(os.getpid(), server_pid(desktop.display)))


def _denied(judged: Desktop, desktop: Desktop, witness: Lines) -> None:
    """Nothing arrives any more, by whichever way."""
    # Only now: a witness that is sent every key would be busy with them when it is asked what is pressed.
    assert witness.ask("grab", "keyboard")
    for attempt in (
        lambda: judged.perform(KeyPress(["a"])),
        lambda: judged.perform(*HOLD, settle=False),
        judged.screenshot,
        judged.clipboard.read,
        lambda: desktop.perform(KeyPress(["a"])),
        lambda: desktop.perform(Move((1, 1)), Type("a")),
        lambda: desktop.clipboard.write("a"),
        lambda: desktop.start("true"),
    ):
        with pytest.raises(PolicyDenied, match="pulled"):
            attempt()
    assert witness.ask("seen") == []
    assert witness.ask("pressed") == NOTHING
    # Whoever stopped it may look at what happened.
    assert desktop.screenshot().size == (320, 320)


def test_while_nothing_is_under_way(desktop: deskhand.Desktop) -> None:
    judged = desktop.also(Guard(limits=None))
    with xclient(desktop) as witness:
        judged.perform(*HOLD, settle=False)
        assert witness.ask("pressed") == SHIFT_AND_BUTTON
        with _released(desktop):
            assert judged.stop("pulled")
        assert witness.ask("pressed") == NOTHING
        assert judged._core.stopped is not None
        _denied(judged, desktop, witness)
        assert judged.stop("again")


@pytest.mark.parametrize("what", UNDER_WAY)
def test_while_a_call_is_under_way(desktop: deskhand.Desktop, what: str) -> None:
    judged = desktop.also(Guard(limits=None))
    outcome: list[BaseException] = []

    def work() -> None:
        try:
            judged.perform(*UNDER_WAY[what], settle=False)
        except BaseException as error:  # noqa: BLE001 # it is what this is about
            outcome.append(error)

    with xclient(desktop) as witness:
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        until(lambda: 50 in (now := witness.ask("pressed"))["keys"] and now["buttons"] == [1], 5, "the press")
        with _released(desktop):
            assert judged.stop("pulled")
        assert witness.ask("pressed") == NOTHING
        thread.join(10)
        assert not thread.is_alive()
        _denied(judged, desktop, witness)
    (error,) = outcome
    assert isinstance(error, PolicyDenied)
    assert "pulled" in str(error)
    assert error.index is None or error.done == error.index >= len(HOLD[:1])


@pytest.mark.parametrize("through", ["judged", "desktop"])
def test_from_a_signal_handler(desktop: deskhand.Desktop, through: str) -> None:
    """The handler runs in the very thread that is in the call, also in one that goes around the policy."""
    judged = desktop.also(Guard(limits=None))
    said: list[bool] = []

    def handler(_: int, _frame: FrameType | None) -> None:
        with _released(desktop):
            said.append(judged.stop("pulled"))

    before = signal.signal(signal.SIGALRM, handler)
    try:
        with xclient(desktop) as witness:
            acting = judged if through == "judged" else desktop
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            with pytest.raises(PolicyDenied, match="pulled"):
                acting.perform(*HOLD, Wait(600), settle=False)
            with _released(desktop):
                until(lambda: witness.ask("pressed") == NOTHING, RELEASED, "the release")
            _denied(judged, desktop, witness)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert said == [False]


def test_while_somebody_is_asked(desktop: deskhand.Desktop) -> None:
    """A question has no answer then, even if somebody says yes later."""
    asked, late = threading.Event(), threading.Event()

    def ask(_action: object, _context: object) -> bool:
        asked.set()
        return late.wait(60)

    judged = desktop.also(Guard(ask=ask, limits=None))
    outcome: list[BaseException] = []

    def work() -> None:
        try:
            judged.perform(*HOLD, Type(Secret("never typed")))
        except BaseException as error:  # noqa: BLE001 # it is what this is about
            outcome.append(error)

    with xclient(desktop) as witness:
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        assert asked.wait(10)
        with _released(desktop):
            assert judged.stop("pulled")
            thread.join(10)
        late.set()
        assert isinstance(outcome[0], PolicyDenied)
        _denied(judged, desktop, witness)


def test_through_the_async_surface(desktop: deskhand.Desktop) -> None:
    async def run(witness: Lines) -> None:
        judged = AsyncDesktop(desktop.also(Guard(limits=None)))
        task = asyncio.create_task(judged.perform(*HOLD, Wait(600), settle=False))
        await asyncio.to_thread(until, lambda: witness.ask("pressed") == SHIFT_AND_BUTTON, 5, "the press")
        with _released(desktop):
            assert judged.stop("pulled")
        assert witness.ask("pressed") == NOTHING
        with pytest.raises(PolicyDenied, match="pulled"):
            await task
        with pytest.raises(PolicyDenied, match="pulled"):
            await judged.perform(KeyPress(["a"]))

    with xclient(desktop) as witness:
        asyncio.run(run(witness))


def test_a_lost_desktop_holds_nothing(desktop: deskhand.Desktop) -> None:
    judged = desktop.also(Guard(limits=None))
    judged.perform(*HOLD, settle=False)
    desktop.close()
    assert judged.stop("pulled")
    with pytest.raises((PolicyDenied, BackendError)):
        desktop.perform(KeyPress(["a"]))


def test_the_desktop_made_as_new_may_be_used(desktop: deskhand.Desktop) -> None:
    """The switch belongs to who pulled it, not to the next one that gets the display."""
    judged = desktop.also(Guard(limits=None))
    assert judged.stop("pulled")
    with desktop.reset() as renewed:
        assert renewed.also(Guard()).perform(KeyPress(["a"])).settled
