"""The order of things in `Desktop`, on the backend in memory and a clock that only waits move."""

from __future__ import annotations

import inspect
import io
import threading
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

import deskhand
from deskhand import (
    ActionError,
    AsyncDesktop,
    BackendError,
    CursorPosition,
    Desktop,
    DoubleClick,
    Drag,
    KeyHold,
    KeyPress,
    LeftClick,
    LeftMouseDown,
    LeftMouseUp,
    MouseDown,
    Move,
    OutOfBounds,
    Point,
    PressKeys,
    Rect,
    ReleaseKeys,
    RightClick,
    Scroll,
    Settle,
    TripleClick,
    Type,
    UnsupportedAction,
    Wait,
    Zoom,
)
from deskhand._core.events import ButtonDown, ButtonUp, Event, KeyDown, KeyUp, PointerMove
from deskhand._core.settle import Activity
from deskhand._native import Interrupted
from deskhand.aio.parts import (
    AsyncClipboard,
    AsyncExpectations,
    AsyncHost,
    AsyncLocator,
    AsyncMachine,
    AsyncWindows,
)
from deskhand.backends.memory import MemoryBackend
from deskhand.desktop.clipboard import Clipboard
from deskhand.desktop.expect import Expectations
from deskhand.desktop.locator import Locator
from deskhand.desktop.machine_view import Host, Machine
from deskhand.desktop.window_list import Windows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RED = (255, 0, 0)
A = 0x61


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def backend(clock: Clock) -> MemoryBackend:
    backend = MemoryBackend((320, 200), clock=clock)

    def pass_time(seconds: float) -> None:
        clock.now += seconds

    backend.on_wait = pass_time
    return backend


@pytest.fixture
def desktop(backend: MemoryBackend, clock: Clock) -> Iterator[Desktop]:
    with Desktop(backend, clock=clock) as desktop:
        yield desktop


def on(event_type: type, react: Callable[[], None]) -> Callable[[Event], None]:
    def handler(event: Event) -> None:
        if isinstance(event, event_type):
            react()

    return handler


def test_act_settle_frame(desktop: Desktop, backend: MemoryBackend) -> None:
    backend.on_event = on(ButtonUp, lambda: backend.paint((10, 20, 30, 40), RED))
    seen = desktop.perform(LeftClick((15, 25)))
    assert backend.events == [PointerMove(15, 25), ButtonDown(1), ButtonUp(1)]
    assert (seen.changed, seen.settled, seen.reason) == (True, True, "quiet")
    assert seen.rects == (Rect(10, 20, 30, 40),)
    assert seen.cursor == Point(15, 25)
    assert seen.size == (320, 200)
    assert seen.array()[20, 10].tolist() == list(RED)
    assert np.array_equal(seen.array(), np.asarray(Image.open(io.BytesIO(seen.png))))
    assert seen.data_url.startswith("data:image/png;base64,iVBOR")
    assert seen.elapsed.settle == pytest.approx(0.05, abs=1e-6)


def test_no_effect(desktop: Desktop) -> None:
    seen = desktop.perform(KeyPress(("a",)))
    assert (seen.changed, seen.settled, seen.reason) == (False, True, "unchanged")
    assert seen.elapsed.total == pytest.approx(0.1, abs=1e-6)


def test_not_waiting(desktop: Desktop, clock: Clock) -> None:
    before = clock.now
    seen = desktop.perform(Type("ab"), KeyPress(("Return",)), settle=False)
    assert (seen.settled, seen.reason, clock.now) == (False, "not_waited", before)


def test_the_answer_to_one_action_is_awaited_before_the_next(desktop: Desktop, backend: MemoryBackend) -> None:
    at: list[float] = []
    backend.on_event = on(KeyDown, lambda: at.append(backend._clock()))
    desktop.perform(Type("a"), Type("b"))
    desktop.perform(PressKeys(("shift",)), ReleaseKeys(("shift",)))
    assert at[1] - at[0] == pytest.approx(0.1)


def test_an_action_that_overtakes_the_answer_to_the_one_before_is_told(
    desktop: Desktop, backend: MemoryBackend, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = 0.0

    def work(seconds: float) -> None:
        nonlocal busy
        busy = clock.now + seconds

    monkeypatch.setattr(
        backend,
        "activity",
        lambda **_: Activity.COMPUTING if clock.now < busy else Activity.RESTING,
    )
    for seconds, overtaken in ((1.0, False), (4.0, True), (0.0, False)):
        backend.on_event = on(KeyDown, lambda seconds=seconds: work(seconds))
        seen = desktop.perform(KeyPress(("a",)), Move((5, 5)))
        assert (seen.settled, seen.unanswered) == (True, overtaken)
    assert not desktop.perform(KeyPress(("a",)), Move((6, 6)), settle=False).unanswered


def test_everything_is_checked_before_anything_is_sent(desktop: Desktop, backend: MemoryBackend) -> None:
    with pytest.raises(OutOfBounds) as caught:
        desktop.perform(LeftClick((1, 1)), Type("x"), LeftClick((320, 10)))
    assert backend.events == []
    assert (caught.value.index, caught.value.done) == (2, 0)
    with pytest.raises(ActionError, match="perform takes actions"):
        desktop.perform("click")  # type: ignore[arg-type]


def test_a_failing_action_leaves_nothing_pressed(desktop: Desktop, backend: MemoryBackend) -> None:
    class Broken(Exception):
        pass

    def fail() -> None:
        raise Broken

    backend.on_event = on(KeyDown, fail)
    with pytest.raises(Broken):
        desktop.perform(Move((5, 5)), KeyPress(("ctrl", "s")))
    ups = [event for event in backend.events if isinstance(event, KeyUp)]
    assert [up.keysym for up in ups] == [0x73, 0xFFE3]
    assert desktop.pressed == ()


def test_backend_errors_say_which_action(desktop: Desktop, backend: MemoryBackend) -> None:
    def fail() -> None:
        raise BackendError("no")

    backend.on_event = on(KeyDown, fail)
    with pytest.raises(BackendError) as caught:
        desktop.perform(Move((5, 5)), Type("a"))
    assert (caught.value.index, caught.value.doing, caught.value.done) == (1, "type", 1)


def test_an_explicit_hold_survives_calls(desktop: Desktop, backend: MemoryBackend) -> None:
    desktop.perform(PressKeys(("shift",)))
    desktop.perform(LeftClick((1, 1)))
    assert desktop.pressed == (KeyDown(0xFFE1),)
    desktop.release()
    assert (desktop.pressed, backend.events[-1]) == ((), KeyUp(0xFFE1))


def test_a_hold_takes_its_time_and_can_be_stopped(desktop: Desktop, backend: MemoryBackend, clock: Clock) -> None:
    desktop.perform(KeyHold(("a",), 2.0), settle=False)
    assert clock.now == pytest.approx(102.0)

    def stop_once(seconds: float) -> None:
        clock.now += seconds
        desktop.interrupt()

    backend.on_wait = stop_once
    with pytest.raises(Interrupted):
        desktop.perform(KeyHold(("a",), 60.0))
    assert backend.events[-2:] == [KeyDown(A), KeyUp(A)]
    assert clock.now < 110
    backend.on_wait = lambda seconds: setattr(clock, "now", clock.now + seconds)
    assert desktop.perform().settled


def test_a_wait_keeps_the_screen_current(desktop: Desktop, backend: MemoryBackend, clock: Clock) -> None:
    waits: list[float] = []
    backend.on_wait = lambda seconds: (waits.append(seconds), setattr(clock, "now", clock.now + seconds))[0]
    desktop.perform(Wait(1.0), settle=False)
    assert sum(waits) == pytest.approx(1.0)
    assert max(waits) <= 0.25


def test_zoom_shows_the_region_at_its_own_pixels(desktop: Desktop, backend: MemoryBackend) -> None:
    backend.paint((40, 50, 10, 10), RED)
    seen = desktop.perform(Zoom((40, 50, 20, 10)))
    assert seen.size == (20, 10)
    assert seen.array()[0, 0].tolist() == list(RED)
    assert seen.array()[0, 19].tolist() == [0, 0, 0]
    assert seen.viewport.to_screen((0, 0)) == (40, 50)


def test_a_scaled_picture_carries_its_transform(desktop: Desktop) -> None:
    seen = desktop.perform(CursorPosition(), size=(160, 100))
    assert seen.size == Image.open(io.BytesIO(seen.png)).size == (160, 100)
    assert seen.viewport.to_screen((159, 99)) == (319, 199)


def test_a_one_point_drag_starts_at_the_pointer(desktop: Desktop, backend: MemoryBackend) -> None:
    desktop.perform(Move((10, 10)), Drag(((50, 10),)))
    down = backend.events.index(ButtonDown(1))
    assert backend.events[0] == PointerMove(10, 10)
    assert PointerMove(50, 10) in backend.events[down:]


def test_what_blinks_on_its_own_is_busy(desktop: Desktop, backend: MemoryBackend, clock: Clock) -> None:
    caret = (100, 100, 2, 16)
    for n in range(8):
        clock.now += 0.5
        backend.paint(caret, RED if n % 2 else (0, 0, 0))
        backend.paint((0, 0, 1, 1), (n, n, n)) if n == 0 else None
    blinks = iter([RED, (0, 0, 9)])

    def wait(seconds: float) -> None:
        clock.now += seconds / 2
        if (colour := next(blinks, None)) is not None:
            backend.paint(caret, colour)
        clock.now += seconds / 2

    backend.on_wait = wait
    seen = desktop.perform(KeyPress(("F5",)))
    assert (seen.changed, seen.settled, seen.reason) == (False, True, "unchanged")
    assert seen.busy == (Rect(*caret),)


def test_what_was_drawn_while_this_thread_did_not_run_is_seen(
    desktop: Desktop, backend: MemoryBackend, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[tuple[int, int, int]] = []

    def draw() -> None:
        clock.now += 1.0
        drawn.append(RED)

    backend.on_event = on(KeyDown, draw)
    # As an X server's news: nothing is seen before it is read.
    monkeypatch.setattr(backend, "look", lambda *_: backend.paint((10, 10, 9, 9), drawn.pop()) if drawn else None)
    seen = desktop.perform(KeyPress(("a",)))
    assert (seen.settled, seen.reason, seen.rects) == (True, "quiet", (Rect(10, 10, 9, 9),))


def test_a_busy_region_is_no_larger_than_the_screen(desktop: Desktop, backend: MemoryBackend, clock: Clock) -> None:
    for n in range(8):
        clock.now += 0.1
        backend.paint((0, 0, 320, 200), RED if n % 2 else (0, 0, 0))
    assert desktop.perform().busy == (Rect(0, 0, 320, 200),)


def test_view_only_looks_and_does_not_act(backend: MemoryBackend, clock: Clock) -> None:
    with Desktop(backend, clock=clock, view_only=True) as desktop:
        assert desktop.perform().settled
        with pytest.raises(UnsupportedAction, match="view_only"):
            desktop.perform(LeftClick((1, 1)))
    assert backend.events == []


def test_one_that_is_forgotten_is_closed_and_says_so(backend: MemoryBackend) -> None:
    desktop = Desktop(backend)
    with pytest.warns(ResourceWarning, match="not closed"):
        del desktop
    assert backend.closed


def test_closing_is_idempotent_and_final(desktop: Desktop, backend: MemoryBackend) -> None:
    with desktop:
        pass
    desktop.close()
    assert backend.closed
    with pytest.raises(BackendError, match="closed"):
        desktop.screenshot()


def test_an_interrupted_close_ends_the_rest_all_the_same_and_can_be_repeated(backend: MemoryBackend) -> None:
    ended: list[str] = []

    def interrupted() -> None:
        ended.append("first")
        if len(ended) == 1:
            raise KeyboardInterrupt

    desktop = Desktop(backend, on_close=[interrupted, lambda: ended.append("second")])
    with pytest.raises(KeyboardInterrupt):
        desktop.close()
    assert backend.closed
    assert ended == ["first", "second"]
    desktop.close()
    assert ended == ["first", "second", "first"]
    desktop.close()
    assert len(ended) == 3


def test_memory_has_no_windows(desktop: Desktop) -> None:
    for call in (desktop.windows.list, lambda: desktop.windows.activate(1), lambda: desktop.start("xterm")):
        with pytest.raises(UnsupportedAction):
            call()
    with pytest.raises(ActionError, match="empty"):
        desktop.start("")


def test_the_clipboard_is_a_property(desktop: Desktop) -> None:
    desktop.clipboard.write("naïve ☕")
    assert desktop.clipboard.read() == "naïve ☕"


def test_bad_settle(desktop: Desktop) -> None:
    with pytest.raises(ActionError, match="settle"):
        desktop.perform(settle=0.5)  # type: ignore[arg-type]
    assert desktop.perform(settle=Settle(quiet=0.01, reaction=0.01)).settled


def test_calls_from_several_threads_take_turns(desktop: Desktop, backend: MemoryBackend) -> None:
    def type_one(char: str) -> None:
        for _ in range(20):
            desktop.perform(PressKeys((char,)), ReleaseKeys((char,)), settle=False)

    threads = [threading.Thread(target=type_one, args=(char,)) for char in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pairs = list(zip(backend.events[::2], backend.events[1::2], strict=True))
    assert len(pairs) == 80
    assert all(isinstance(down, KeyDown) and up == KeyUp(down.keysym) for down, up in pairs)


@pytest.mark.parametrize(
    ("original", "twin", "by_nature", "only_there"),
    [
        (
            Desktop,
            AsyncDesktop,
            {"interrupt", "reset"},
            {"launch", "connect", "detach", "run"},
        ),
        (deskhand.Shell, deskhand.AsyncShell, {"begin", "interrupt"}, {"work"}),
        (Clipboard, AsyncClipboard, set(), set()),
        (Host, AsyncHost, set(), set()),
        (Machine, AsyncMachine, set(), set()),
        (Windows, AsyncWindows, set(), set()),
        (Locator, AsyncLocator, set(), set()),
        (Expectations, AsyncExpectations, set(), set()),
    ],
)
def test_the_async_surface_is_the_same(original: type, twin: type, by_nature: set[str], only_there: set[str]) -> None:
    def public(cls: type) -> dict[str, object]:
        return {name: getattr(cls, name) for name in dir(cls) if not name.startswith("_")}

    sync, coroutines = public(original), public(twin)
    assert set(sync) - by_nature == set(coroutines) - only_there
    for name, function in sync.items():
        if inspect.isfunction(function) and name in coroutines and name not in {"also", "close", "find", "nth", "stop"}:
            theirs = coroutines[name]
            assert inspect.iscoroutinefunction(theirs)
            mine = inspect.signature(function)
            if mine.return_annotation == "Shell":
                mine = mine.replace(return_annotation="AsyncShell")
            of_twins = [
                each.replace(annotation=f"Async{each.annotation}")
                if str(each.annotation).startswith("Locator")
                else each
                for each in mine.parameters.values()
            ]
            mine = mine.replace(parameters=of_twins)
            assert mine == inspect.signature(theirs), name


def test_everything_public_is_importable_from_the_top() -> None:
    assert sorted(deskhand.__all__) == list(deskhand.__all__)
    for name in deskhand.__all__:
        assert getattr(deskhand, name) is not None


@pytest.mark.parametrize(
    ("first", "second", "least"),
    [
        (LeftClick((50, 50)), LeftClick((50, 50)), 0.5),
        (LeftClick((50, 50)), DoubleClick((50, 50)), 0.5),
        (LeftClick((50, 50)), TripleClick((58, 43)), 0.5),
        (LeftClick((50, 50)), Drag([(50, 50), (90, 50)]), 0.5),
        (RightClick((50, 50)), RightClick((50, 50)), 0.5),
        (DoubleClick((50, 50)), LeftClick(None), 0.75),
        (DoubleClick((50, 50)), DoubleClick(None), 0.75),
        (Drag([(50, 50), (90, 50)]), LeftClick((50, 50)), 0.5),
        (LeftClick((50, 50)), DoubleClick((90, 50)), 0.0),
        (LeftClick((50, 50)), RightClick((50, 50)), 0.0),
        (LeftClick((50, 50)), LeftMouseDown((50, 50)), 0.5),
        (LeftClick((50, 50)), MouseDown("left", (50, 50)), 0.5),
        (LeftClick((50, 50)), MouseDown("right", (50, 50)), 0.0),
        (Scroll((50, 50)), Scroll((50, 50)), 0.0),
        (Move((50, 50)), DoubleClick((50, 50)), 0.0),
    ],
)
def test_a_click_counts_alone(
    desktop: Desktop, clock: Clock, first: deskhand.Action, second: deskhand.Action, *, least: float
) -> None:
    desktop.perform(first, settle=False)
    begun = clock.now
    desktop.perform(second, settle=False)
    took = clock.now - begun
    assert took >= least
    desktop.perform(Wait(1.0), settle=False)
    begun = clock.now
    desktop.perform(second, settle=False)
    alone = clock.now - begun
    assert abs(took - alone - least) < 0.1, "it has been long enough"


def test_presses_of_a_callers_own_timing_do_not_wait(desktop: Desktop, clock: Clock) -> None:
    begun = clock.now
    desktop.perform(LeftMouseDown((50, 50)), LeftMouseUp(), LeftMouseDown(), LeftMouseUp((52, 50)), settle=False)
    desktop.perform(LeftMouseDown((50, 50)), settle=False)
    assert clock.now - begun < 0.5
    begun = clock.now
    desktop.perform(LeftMouseUp(), LeftClick((50, 50)), LeftMouseDown((90, 90)), settle=False)
    assert clock.now - begun >= 0.75, "they were a double click"
    desktop.perform(LeftMouseUp(), Wait(1.0), LeftMouseDown((50, 50)), settle=False)
    desktop.perform(Move((90, 50)), LeftMouseUp(), settle=False)
    begun = clock.now
    desktop.perform(LeftMouseDown((50, 50)), settle=False)
    assert clock.now - begun >= 0.25, "the pointer was elsewhere: that was a drag"


@pytest.mark.parametrize(("told", "least"), [(1.2, 1.2), (0.1, 0.5), (9999.0, 5.0)])
def test_a_desktop_that_counts_clicks_for_longer_is_waited_for(
    desktop: Desktop,
    backend: MemoryBackend,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    *,
    told: float,
    least: float,
) -> None:
    monkeypatch.setattr(backend, "double_click_time", lambda: told)
    desktop.perform(LeftClick((50, 50)), settle=False)
    begun = clock.now
    desktop.perform(LeftClick((50, 50)), settle=False)
    assert least <= clock.now - begun < least + 0.1


def test_what_follows_a_hover_waits_for_its_answer(desktop: Desktop, backend: MemoryBackend, clock: Clock) -> None:
    times: list[float] = []
    backend.on_event = lambda _: times.append(clock.now)
    desktop.perform(Move((10, 10)), Move((20, 20)), LeftClick(), settle=False)
    assert [later - earlier for earlier, later in pairwise(times)] == [pytest.approx(0.05, abs=0.01)] * 2 + [0.0]
    times.clear()
    begun = clock.now
    desktop.perform(Move((10, 10)), settle=False)
    assert clock.now == begun, "nothing follows"


def test_what_follows_a_drop_waits_for_the_screen(desktop: Desktop, backend: MemoryBackend, clock: Clock) -> None:
    sent: list[tuple[Event, float]] = []
    backend.on_event = lambda event: sent.append((event, clock.now))
    desktop.perform(
        LeftMouseDown((10, 10)), Move((20, 10)), LeftMouseUp(), KeyPress(["a"]), settle=Settle(reaction=0.3)
    )
    (up, dropped), (key, pressed) = sent[-3:-1]
    assert (up, key) == (ButtonUp(1), KeyDown(A))
    assert pressed - dropped >= 0.29
    sent.clear()
    begun = clock.now
    desktop.perform(LeftMouseDown(), LeftMouseUp(), LeftMouseDown(), LeftMouseUp(), settle=Settle(reaction=0.3))
    assert {at for _, at in sent} == {begun}, "a double click of the caller's own"


def test_a_move_drags_what_an_earlier_call_has_pressed(desktop: Desktop, backend: MemoryBackend) -> None:
    desktop.perform(LeftMouseDown((10, 10)), settle=False)
    desktop.perform(Move((110, 10)), settle=False)
    desktop.perform(LeftMouseUp(), settle=False)
    moves = [event.x for event in backend.events if isinstance(event, PointerMove)]
    assert moves[:2] == [10, 26], "past any threshold, and no further"
    assert moves[-3:] == [108, 109, 110], "the target is told three times"
    assert all(later - earlier <= 20 for earlier, later in pairwise(moves))
    backend.events.clear()
    desktop.perform(Move((10, 10)), settle=False)
    assert backend.events == [PointerMove(10, 10)]


def test_release_all_returns_when_the_other_side_has_released() -> None:
    """Over a server that passes input on later, what is pressed could else be seen as held right after."""
    backend = MemoryBackend((320, 200))
    order: list[str] = []
    backend.release = lambda events: order.append(f"release {len(events)}")  # type: ignore[method-assign]
    backend.round_trip = lambda: order.append("round trip")  # type: ignore[method-assign]
    with Desktop(backend) as desktop:
        desktop.perform(PressKeys(["shift"]), settle=False)
        order.clear()
        desktop.release()
        assert order == ["release 1", "round trip"]
