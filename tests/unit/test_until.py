"""`perform(..., until=...)` on the backend in memory, and a clock that only waits move."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any, cast

import pytest

import deskhand
from deskhand import (
    ActionError,
    AsyncDesktop,
    DeskhandTimeout,
    Desktop,
    KeyPress,
    LeftClick,
    Observation,
    Operation,
    PressKeys,
    Rect,
    Settle,
    Zoom,
)
from deskhand._core.events import KeyDown, KeyUp
from deskhand.backends.memory import MemoryBackend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RED = (255, 0, 0)


class Time:
    """Moved by waits only; what is planned happens when its time has come."""

    def __init__(self) -> None:
        self.now = 100.0
        self.planned: list[tuple[float, Callable[[], None]]] = []

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        end = self.now + seconds
        if self.planned and self.planned[0][0] <= end:
            at, happens = self.planned.pop(0)
            self.now = max(at, self.now)
            happens()
        else:
            self.now = end


class Notes:
    """An interceptor that notes every operation."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    def before(self, operation: Operation) -> None:
        self.seen.append((operation.type, " ".join(action.type for action in operation.actions)))

    def after(self, operation: Operation, token: object, outcome: object) -> None:
        pass


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def backend(time: Time) -> MemoryBackend:
    backend = MemoryBackend((320, 200), clock=time)
    backend.on_wait = time.wait
    return backend


@pytest.fixture
def desktop(backend: MemoryBackend, time: Time) -> Iterator[Desktop]:
    with Desktop(backend, clock=time) as desktop:
        yield desktop


def red_at(x: int, y: int) -> Callable[[Observation], bool]:
    return lambda seen: seen.array()[y, x].tolist() == list(RED)


def test_the_condition_is_waited_for_after_the_actions(desktop: Desktop, backend: MemoryBackend, time: Time) -> None:
    time.planned = [
        (100.0, lambda: backend.paint((0, 0, 4, 4), RED)),
        (107.1, lambda: backend.paint((50, 50, 8, 8), RED)),
    ]
    seen = desktop.perform(LeftClick((5, 5)), until=red_at(52, 52))
    # Soon after the change: it is what is waited for.
    assert time.now == pytest.approx(107.2, abs=0.05)
    assert seen.settled
    assert seen.rects == (Rect(0, 0, 4, 4), Rect(50, 50, 8, 8))
    assert seen.elapsed.total == pytest.approx(7.1, abs=0.6)
    assert len(backend.events) == 3


def test_a_condition_that_holds_costs_no_look(desktop: Desktop) -> None:
    notes = Notes()
    asked: list[Observation] = []
    seen = desktop.also(notes).perform(KeyPress("a"), until=lambda each: asked.append(each) or True)
    assert asked == [seen]
    assert notes.seen == [("perform", "keypress")]


def test_a_change_between_two_looks_is_not_missed(desktop: Desktop, backend: MemoryBackend, time: Time) -> None:
    def slow(seen: Observation) -> bool:
        # The change comes while the condition is asked.
        backend.paint((50, 50, 8, 8), RED)
        return red_at(52, 52)(seen)

    desktop.perform(until=slow)
    assert time.now < 100.3


def test_each_look_is_an_operation(desktop: Desktop, backend: MemoryBackend, time: Time) -> None:
    notes = Notes()
    time.planned = [(100.9, lambda: backend.paint((50, 50, 8, 8), RED))]
    desktop.also(notes).perform(KeyPress("a"), until=red_at(52, 52))
    assert notes.seen[0] == ("perform", "keypress")
    assert set(notes.seen[1:]) == {("perform", "")}


def test_what_is_not_on_the_screen_is_asked_twice_a_second(desktop: Desktop, time: Time) -> None:
    desktop.perform(until=lambda _: time.now > 105)
    assert time.now == pytest.approx(105.3, abs=0.4)


def test_a_look_shows_what_the_actions_showed(desktop: Desktop, backend: MemoryBackend, time: Time) -> None:
    time.planned = [(101.0, lambda: backend.paint((40, 50, 10, 10), RED))]
    seen = desktop.perform(Zoom((40, 50, 20, 10)), until=red_at(0, 0))
    assert seen.size == (20, 10)


def test_the_end_says_what_was_there_instead(desktop: Desktop, time: Time) -> None:
    def has_saved(seen: Observation) -> int:
        del seen
        return 0

    with pytest.raises(DeskhandTimeout) as raised:
        desktop.perform(KeyPress("a"), until=has_saved, timeout=2)
    said = str(raised.value)
    assert re.search(r"waited 2 s after the actions, which were done, until <function .*has_saved", said)
    assert "it returned 0; the screen had settled (unchanged)" in said
    assert time.now == pytest.approx(102.2, abs=0.2)


def test_no_time_at_all_asks_once(desktop: Desktop) -> None:
    asked: list[Observation] = []
    with pytest.raises(DeskhandTimeout):
        desktop.perform(until=asked.append, timeout=0)
    assert len(asked) == 1


@pytest.mark.parametrize("error", [RuntimeError("no"), KeyboardInterrupt()])
def test_nothing_stays_pressed_when_the_condition_fails(
    desktop: Desktop, backend: MemoryBackend, error: BaseException
) -> None:
    def fails(_: Observation) -> bool:
        raise error

    with pytest.raises(type(error)):
        desktop.perform(PressKeys(("shift",)), until=fails)
    assert [type(event) for event in backend.events] == [KeyDown, KeyUp]
    assert desktop.pressed == ()


def test_a_condition_may_use_the_desktop(desktop: Desktop, backend: MemoryBackend, time: Time) -> None:
    time.planned = [(101.0, lambda: backend.paint((50, 50, 8, 8), RED))]
    desktop.perform(KeyPress("a"), until=lambda _: red_at(52, 52)(desktop.perform(settle=Settle(reaction=0))))
    assert time.now < 102


def test_a_desktop_that_is_stopped_while_it_waits_refuses(desktop: Desktop) -> None:
    notes = Notes()
    with pytest.raises(deskhand.PolicyDenied, match="enough"):
        desktop.also(notes).perform(KeyPress("a"), until=lambda _: not desktop.stop("enough"))


def test_a_desktop_that_is_closed_while_it_waits_says_so(desktop: Desktop) -> None:
    with pytest.raises(deskhand.Closed):
        desktop.perform(KeyPress("a"), until=lambda _: desktop.close())


@pytest.mark.parametrize(
    ("until", "said"),
    [
        # What `until=expect(locator).to_be_hidden()` gives: it has waited already.
        (None, "until is None, which is no condition"),
        (False, "until is a locator or a function of the observation, not False"),
        ("dialog", "until is a locator or a function of the observation, not 'dialog'"),
        (bool, "until is a locator or a function of the observation, not <class 'bool'>"),
    ],
)
def test_what_is_no_condition_is_refused_before_anything_is_sent(
    desktop: Desktop, backend: MemoryBackend, until: object, said: str
) -> None:
    with pytest.raises(ActionError, match=re.escape(said)):
        desktop.perform(KeyPress("a"), until=cast("Any", until))
    assert backend.events == []


def test_a_timeout_without_a_condition_is_refused(desktop: Desktop, backend: MemoryBackend) -> None:
    with pytest.raises(ActionError, match="write settle=Settle"):
        desktop.perform(KeyPress("a"), timeout=5)
    with pytest.raises(ActionError, match="timeout"):
        desktop.perform(KeyPress("a"), until=lambda _: True, timeout=-1)
    assert backend.events == []


def test_the_locator_of_another_desktop_is_refused(desktop: Desktop, time: Time) -> None:
    with Desktop(MemoryBackend(clock=time), clock=time) as other, pytest.raises(ActionError, match="another desktop"):
        desktop.perform(until=other.find("dialog"))
    # A view of the same desktop is the same desktop.
    with pytest.raises(deskhand.UnsupportedAction):
        desktop.perform(until=desktop.also(Notes()).find("dialog"))


def test_coroutines(backend: MemoryBackend, time: Time) -> None:
    async def wait() -> None:
        async with AsyncDesktop(Desktop(backend, clock=time)) as desktop:
            seen = await desktop.perform(KeyPress("a"), until=red_at(52, 52))
            assert seen.rects == (Rect(50, 50, 8, 8),)
            with pytest.raises(deskhand.UnsupportedAction):
                await desktop.perform(until=desktop.find("dialog"))

    time.planned = [(101.0, lambda: backend.paint((50, 50, 8, 8), RED))]
    asyncio.run(wait())


def test_a_cancelled_task_ends_the_wait() -> None:
    async def cancel() -> None:
        async with AsyncDesktop(Desktop(MemoryBackend((320, 200)))) as desktop:
            asked = asyncio.Event()
            loop = asyncio.get_running_loop()

            def never(_: Observation) -> None:
                loop.call_soon_threadsafe(asked.set)

            task = asyncio.create_task(desktop.perform(PressKeys(("shift",)), until=never, timeout=3600))
            await asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert desktop.pressed == ()

    asyncio.run(cancel())


def test_what_a_person_holds_is_not_released_when_the_condition_fails(desktop: Desktop) -> None:
    with desktop.control.take("Ada") as hold:
        hold.desktop.perform(PressKeys(("ctrl",)))
        with pytest.raises(DeskhandTimeout):
            desktop.perform(until=lambda _: False, timeout=1)
        assert len(desktop.pressed) == 1
