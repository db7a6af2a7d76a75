"""A server that dies, or stops: whoever waits hears of it in time, and close() works afterwards."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest

import deskhand
from deskhand import Drag, KeyPress, Move, PressKeys, Reason, Settle, Type, Wait
from deskhand.backends.x11.backend import X11Backend
from faults.helpers import NOTHING, display_files, listen, marked, pressed, server_pid, until, within, xclient
from faults.scale import STOPPED_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from deskhand._core.events import Event

# What stream.rs waits for a silent server.
SILENCE_LIMIT = 10.0


def _kill(desktop: deskhand.Desktop) -> None:
    assert desktop.display is not None
    os.kill(server_pid(desktop.display), signal.SIGKILL)


def _wait(desktop: deskhand.Desktop) -> None:
    desktop.perform(Wait(10))


def _start(desktop: deskhand.Desktop) -> None:
    desktop.start(["sleep", "100"])


def _type(desktop: deskhand.Desktop) -> None:
    while True:
        desktop.perform(Type("text " * 200), settle=False)


def _look(desktop: deskhand.Desktop) -> None:
    while True:
        desktop.screenshot()


def _until_window(desktop: deskhand.Desktop) -> None:
    desktop.perform(PressKeys(["shift"]), Wait(10))


@pytest.mark.parametrize("work", [_wait, _start, _type, _look, _until_window])
def test_killed_server_while_busy(
    launch: Callable[..., deskhand.Desktop], mark: str, work: Callable[[deskhand.Desktop], None]
) -> None:
    """F1: SIGKILL of the X server: `DesktopLost(cause="x_server")` within a second to the caller that waits, then to all."""
    desktop = launch(size=(320, 240))
    listen(desktop)
    assert desktop.display is not None
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work, desktop)
        until(future.running, 5, "the call to begin")
        # Let the call get into its wait: any moment of it is as good.
        with pytest.raises(TimeoutError):
            future.result(0.2)
        _kill(desktop)
        with within(1.0, "to hear of it"):
            error = future.exception(5)
    assert isinstance(error, deskhand.DesktopLost)
    assert error.cause == "x_server"
    calls: list[Callable[[], object]] = [
        desktop.screenshot,
        desktop.windows.list,
        desktop.clipboard.read,
        lambda: desktop.perform(Move((1, 1))),
        lambda: desktop.clipboard.write("x"),
        lambda: desktop.resize((300, 200)),
        desktop.release,
        lambda: desktop.start("xterm"),
    ]
    for call in calls:
        with within(1.0, "a later call"), pytest.raises(deskhand.DesktopLost) as caught:
            call()
        assert caught.value.cause == "x_server"
    with within(5.0, "close"):
        desktop.close()
    desktop.close()
    assert display_files(desktop.display) == []
    assert marked(mark) == {}


def test_killed_server_while_idle(launch: Callable[..., deskhand.Desktop], mark: str) -> None:
    """F1: SIGKILL of the X server while nobody calls: the next call hears of it at once; close() works."""
    desktop = launch(size=(320, 240))
    desktop.perform(PressKeys(["shift"]), settle=False)
    _kill(desktop)
    with within(1.0, "the call"), pytest.raises(deskhand.DesktopLost) as caught:
        desktop.perform(KeyPress(["a"]))
    assert caught.value.cause == "x_server"
    desktop.close()
    assert marked(mark) == {}


def test_close_stops_a_waiting_thread(launch: Callable[..., deskhand.Desktop]) -> None:
    """close() from another thread ends the call under way, also one that has just begun, and those that queue behind it."""
    for _ in range(5):
        desktop = launch(size=(320, 240), window_manager=None)
        begun = threading.Barrier(4)

        def work(desktop: deskhand.Desktop = desktop, begun: threading.Barrier = begun) -> None:
            begun.wait(60)
            desktop.perform(Wait(60))

        with ThreadPoolExecutor(3) as pool:
            futures = [pool.submit(work) for _ in range(3)]
            begun.wait(60)
            with within(3.0, "close"):
                desktop.close()
            for future in futures:
                assert future.exception(5) is not None


@contextmanager
def _stopped(desktop: deskhand.Desktop) -> Iterator[int]:
    assert desktop.display is not None
    pid = server_pid(desktop.display)
    os.kill(pid, signal.SIGSTOP)
    try:
        yield pid
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def test_server_stopped_for_a_while(desktop: deskhand.Desktop) -> None:
    """F24: a server that is stopped for a few seconds is waited for, and the call goes on where it was."""
    desktop.start("xterm")
    with _stopped(desktop) as pid, ThreadPoolExecutor(1) as pool:
        future = pool.submit(lambda: desktop.perform(Type("echo on"), settle=Settle(timeout=30)))
        with pytest.raises(TimeoutError):
            future.result(STOPPED_SECONDS)
        os.kill(pid, signal.SIGCONT)
        seen = future.result(60)
    assert seen.changed
    assert desktop.pressed == ()
    assert pressed(desktop) == ([], [])


def test_server_stopped_for_good(desktop: deskhand.Desktop) -> None:
    """F24: a server that says nothing for 10 s is given up: DesktopLost, and close() ends what is stopped."""
    with _stopped(desktop) as pid:
        begun = time.monotonic()
        with within(SILENCE_LIMIT + 2, "giving up"), pytest.raises(deskhand.DesktopLost, match="no answer for 10 s"):
            desktop.perform(Type("text"), settle=Settle(timeout=30))
        assert time.monotonic() - begun >= SILENCE_LIMIT
        with within(1.0, "a later call"), pytest.raises(deskhand.DesktopLost):
            desktop.screenshot()
        with within(5.0, "close"):
            desktop.close()
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_silence_is_counted_from_its_beginning(desktop: deskhand.Desktop) -> None:
    """Not anew with each call that gives up."""

    def go_on() -> None:
        while True:
            with suppress(deskhand.ServerSilent):
                desktop.perform(settle=Settle(timeout=0.5))

    with _stopped(desktop), within(SILENCE_LIMIT + 2, "giving up"), pytest.raises(deskhand.DesktopLost):
        go_on()


def test_a_grabbed_server_holds_no_call_up_before_its_input(desktop: deskhand.Desktop) -> None:
    """Nothing of it is done, and that is told; nothing is lost."""
    desktop.perform(Move((9, 9)))
    actions = {
        "keypress": KeyPress(["a"]),
        "drag": Drag([(20, 20), (90, 90)]),
        "type": Type("\N{SNOWMAN}"),
        "paste": Type("text", paste=True),
    }
    with xclient(desktop) as other:
        for action in actions.values():
            other.ask("grab_server")
            with within(1.0, "giving up"), pytest.raises(deskhand.ServerSilent, match=r"for 0\.3 s") as caught:
                desktop.perform(action, Move((50, 50)), settle=Settle(timeout=0.3))
            assert (caught.value.index, caught.value.done) == (0, 0)
            other.ask("ungrab_server")
        assert desktop.perform().cursor == (9, 9)
        assert pressed(desktop) == ([], [])


def test_a_server_that_is_grabbed_after_the_input_is_named_silent(
    launch: Callable[..., deskhand.Desktop], monkeypatch: pytest.MonkeyPatch
) -> None:
    desktop = launch(size=(320, 240), window_manager=None)
    send, sent = X11Backend.send, threading.Event()

    def told(backend: X11Backend, events: Sequence[Event]) -> object:
        try:
            return send(backend, events)
        finally:
            sent.set()

    with xclient(desktop) as other, ThreadPoolExecutor(1) as pool:
        other.ask("popup", 0, 0, 200, 200, 0x808080)
        desktop.perform(Move((50, 50)))
        monkeypatch.setattr(X11Backend, "send", told)
        with within(2.5, "a call of a second and a half"):
            future = pool.submit(desktop.perform, KeyPress(["a"]), settle=Settle(reaction=1.0, timeout=1.5))
            # The server has answered by then: a grab before that ends the action itself.
            assert sent.wait(60)
            other.ask("grab_server")
            seen = future.result(30)
        assert (seen.settled, seen.reason) == (False, Reason.SERVER_SILENT)
        other.ask("ungrab_server")
        assert desktop.perform().settled


def test_what_is_held_while_a_server_is_grabbed_is_released_afterwards(desktop: deskhand.Desktop) -> None:
    listen(desktop)
    with xclient(desktop) as other:
        desktop.perform(PressKeys(["shift"]))
        other.ask("grab_server")
        with within(2.0, "giving up"), pytest.raises(deskhand.ServerSilent):
            desktop.perform(KeyPress(["a"]), settle=Settle(timeout=0.3))
        assert other.ask("pressed")["keys"]
        other.ask("ungrab_server")
        desktop.perform()
        assert other.ask("pressed") == NOTHING


def test_stopped_server_can_be_interrupted(desktop: deskhand.Desktop) -> None:
    """A call that waits for a stopped server ends when it is asked to stop."""
    with _stopped(desktop), ThreadPoolExecutor(1) as pool:
        future = pool.submit(desktop.screenshot)
        with pytest.raises(TimeoutError):
            future.result(0.2)
        desktop.interrupt()
        assert type(future.exception(2)).__name__ == "Interrupted"
    desktop.screenshot()
