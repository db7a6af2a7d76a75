"""What is seen stays true: other ways of capture, other sizes, things that pop up or never rest."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pytest

import deskhand
from conformance.servers import serving
from deskhand import Drag, KeyPress, LeftClick, Move, PressKeys, Settle, Type, Wait
from faults.helpers import NOTHING, beside_control, hold, need, pressed, server_pid, until, x_environment, xclient
from faults.scale import DESKTOPS, THREADS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def _scene(desktop: deskhand.Desktop, color: int) -> np.ndarray:
    with xclient(desktop) as client:
        client.ask("paint", color)
        client.ask("popup", 10, 20, 100, 50, 0x123456)
        client.ask("popup", 300, 200, 200, 200, 0xFEDCBA)
        return np.asarray(desktop.screenshot(cursor=False).array())


def test_methods_agree(launch: Callable[..., deskhand.Desktop]) -> None:
    """Every method of capture gives the same pixels, and only the slower ones say so."""
    frames = []
    for method in ("shared-fd", "shared-id", "socket"):
        desktop = launch(size=(401, 303), method=method, window_manager=None)
        frames.append(_scene(desktop, 0x00A0B0))
        assert desktop.status == ()
    assert (frames[0][25, 15][:3] == (0x12, 0x34, 0x56)).all()
    assert (frames[0][-1, -1][:3] == (0xFE, 0xDC, 0xBA)).all()
    for frame in frames[1:]:
        assert np.array_equal(frames[0], frame)


@pytest.fixture
def without_shm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An Xvfb that has no MIT-SHM."""
    directory = tmp_path / "bin"
    directory.mkdir()
    wrapper = directory / "Xvfb"
    wrapper.write_text(f'#!/bin/sh\nexec {need("Xvfb", "xvfb")} "$@" -extension MIT-SHM\n')
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")


@pytest.mark.usefixtures("without_shm")
def test_server_without_shared_memory(launch: Callable[..., deskhand.Desktop]) -> None:
    """No MIT-SHM: pixels come through the socket, and `status` says why."""
    desktop = launch(size=(401, 303), window_manager=None)
    assert any("MIT-SHM" in line for line in desktop.status), desktop.status
    frame = _scene(desktop, 0x00A0B0)
    assert (frame[25, 15][:3] == (0x12, 0x34, 0x56)).all()
    with pytest.raises(deskhand.BackendError, match="MIT-SHM"):
        launch(size=(401, 303), window_manager=None, method="shared-fd")


def test_resize(launch: Callable[..., deskhand.Desktop]) -> None:
    """F12: smaller and back: the frame is the screen's, and coordinates are checked against the new size."""
    desktop = launch(size=(800, 600))
    with xclient(desktop) as client:
        for number, size in enumerate([(640, 480), (800, 600), (320, 200), (800, 600), (333, 222)]):
            color = 0x102030 * (number + 1)
            desktop.resize(size)
            client.ask("paint", color)
            assert desktop.size == size
            shot = desktop.screenshot(cursor=False)
            assert shot.size == size
            frame = np.asarray(shot.array())
            assert frame.shape[:2] == (size[1], size[0])
            assert (frame[-1, -1][:3] == (color >> 16, color >> 8 & 255, color & 255)).all()
            width, height = size
            desktop.perform(Move((width - 1, height - 1)))
            assert desktop.pointer == (width - 1, height - 1)
            for point in ((width, 0), (0, height), (799, 599) if size != (800, 600) else (800, 600)):
                with pytest.raises(deskhand.OutOfBounds) as caught:
                    desktop.perform(PressKeys(["shift"]), LeftClick(point))
                assert caught.value.size == size
            assert desktop.pressed == ()
            assert pressed(desktop) == ([], [])
    with pytest.raises(deskhand.BackendError):
        desktop.resize((40_000, 40_000))
    assert desktop.size == (333, 222)


def test_resized_by_somebody_else(launch: Callable[..., deskhand.Desktop]) -> None:
    """F12: another client changes the size: the next picture has it."""
    desktop = launch(size=(800, 600))
    other = deskhand.connect(f"x11:{desktop.display}", xauthority=desktop.xauthority, view_only=True)
    try:
        desktop.resize((640, 480))
        until(lambda: other.screenshot().size == (640, 480), 2, "the new size")
        need("xrandr", "x11-xserver-utils")
        subprocess.run(["xrandr", "--size", "800x600"], env=x_environment(desktop), check=True)
        assert desktop.screenshot().size == (800, 600)
        assert other.screenshot().size == (800, 600)
    finally:
        other.close()


def in_a_pause(desktop: deskhand.Desktop, monkeypatch: pytest.MonkeyPatch, resize: Callable[[], object]) -> None:
    """The next pause within an action lasts until `resize` was called and the desktop has another size."""
    pause, before = desktop._core.watch.pause, desktop.size

    def resized(seconds: float) -> None:
        monkeypatch.setattr(desktop._core.watch, "pause", pause)
        resize()
        until(lambda: desktop._core.backend.wait(0.05) or desktop.size != before, 5, "the new size")
        pause(seconds)

    monkeypatch.setattr(desktop._core.watch, "pause", resized)


# The last of each is outside of 640x480; how many of those before it press a button.
STALE: list[tuple[tuple[deskhand.Action, ...], int]] = [
    ((LeftClick((700, 500)),), 0),
    ((Drag(((100, 100), (700, 100))),), 0),
    ((PressKeys(["shift"]), Move((640, 10))), 0),
    ((LeftClick((10, 10)), LeftClick((10, 480))), 1),
]


@pytest.mark.parametrize("kind", ["x11", "vnc"])
def test_resized_within_one_action(
    kind: str, launch: Callable[..., deskhand.Desktop], monkeypatch: pytest.MonkeyPatch
) -> None:
    """F12: the screen shrinks while an action is under way: points outside are refused before they are sent."""
    with contextlib.ExitStack() as stack:
        if kind == "x11":
            desktop = launch(size=(800, 600))
            desktop.resize((640, 480))
            environment = x_environment(desktop)

            def resize(size: str) -> None:
                subprocess.run([need("xrandr", "x11-xserver-utils"), "--size", size], env=environment, check=True)
        else:
            place = stack.enter_context(serving("xvnc"))
            desktop = stack.enter_context(place.connect())
            other = stack.enter_context(place.connect())
            environment = place.environment or {}

            def resize(size: str) -> None:
                other.resize(tuple(map(int, size.split("x"))))  # type: ignore[arg-type] # two of them

        client = stack.enter_context(xclient(environment))
        client.ask("popup", 0, 0, 800, 600, 0x336699)
        for actions, clicks in STALE:
            resize("800x600")
            until(lambda: desktop.screenshot().size == (800, 600), 5, "the first size")
            before = client.ask("seen").count("ButtonPress")
            in_a_pause(desktop, monkeypatch, lambda: resize("640x480"))
            with pytest.raises(deskhand.OutOfBounds) as caught:
                desktop.perform(Move((5, 5)), Wait(0.1), *actions)
            # What came before was done, and nothing of the action that was refused.
            assert caught.value.size == (640, 480)
            assert (caught.value.index, caught.value.done) == (len(actions) + 1, len(actions) + 1)
            assert desktop.pressed == ()
            until(lambda: client.ask("pressed") == NOTHING, 5, "the release")
            assert client.ask("seen").count("ButtonPress") == before + clicks
        # A larger screen, or one that still has the point: the picture says which, and the point is the screen's.
        in_a_pause(desktop, monkeypatch, lambda: resize("800x600"))
        seen = desktop.perform(Wait(0.1), LeftClick((600, 400)))
        assert (seen.viewport.screen, seen.cursor, seen.pointer_moved) == ((800, 600), (600, 400), False)
        assert client.ask("pointer") == [600, 400]
        assert seen.settled


def test_something_pops_up(launch: Callable[..., deskhand.Desktop]) -> None:
    """F31: a window over the target: it is among what the action's observation reports as changed."""
    desktop = launch(size=(600, 400))
    with xclient(desktop) as client:
        client.ask("popup_at_click", 100, 100, 300, 200, 0xFFEE00)
        desktop.perform(Move((150, 150)))
        seen = desktop.perform(LeftClick((150, 150)))
    assert seen.changed
    assert seen.settled
    assert any(rect.x <= 110 and rect.right >= 390 for rect in seen.rects), seen.rects
    assert (np.asarray(seen.array())[200, 200][:3] == (0xFF, 0xEE, 0)).all()


def test_never_at_rest(launch: Callable[..., deskhand.Desktop]) -> None:
    """F33: a region that blinks for ever: waited for until the deadline, then known and reported as busy."""
    desktop = launch(size=(600, 400))
    with xclient(desktop) as client:
        client.ask("blink", 400, 300, 50, 50)
        with beside_control() as machine:
            first = desktop.perform(KeyPress(["a"]), settle=Settle(timeout=1.5))
        hold(2.5, first.elapsed.settle + first.elapsed.reaction, machine[0], "a timeout of 1.5 s")

        def known() -> deskhand.Observation | None:
            seen = desktop.perform(KeyPress(["a"]), settle=Settle(timeout=1.5))
            # Where the machine is busy, what blinks stands still now and then, and so does the screen.
            blinks = any(rect.x <= 400 and rect.right >= 450 for rect in seen.busy)
            return seen if seen.settled and blinks else None

        seen = until(known, 20, "the blinking to be known")
        assert seen.rects == ()
        # What is not the blinking is still seen.
        client.ask("popup_at_click", 50, 50, 200, 200, 0x00FF88)
        desktop.perform(Move((100, 100)))
        seen = desktop.perform(LeftClick((100, 100)), settle=Settle(timeout=1.5))
        assert any(rect.x <= 55 and rect.right >= 245 for rect in seen.rects), seen.rects


def test_many_desktops(launch: Callable[..., deskhand.Desktop]) -> None:
    """Many desktops in one process, driven from several threads: each shows its own colour, whatever the others do."""
    with ThreadPoolExecutor(THREADS) as pool:
        desktops = list(pool.map(lambda n: launch(size=(200 + n, 150), window_manager=None), range(DESKTOPS)))

        def drive(number: int) -> None:
            desktop = desktops[number % DESKTOPS]
            color = (number * 2_654_435_761) & 0xFFFFFF
            # One at a time on each: two of these calls on one desktop would overwrite one another's colour.
            with desktop._core.lock, xclient(desktop) as client:
                for step in range(5):
                    client.ask("paint", color ^ step)
                    seen = desktop.perform(Move((step, step)), KeyPress(["a"]), settle=False)
                    frame = np.asarray(seen.array())
                    assert frame.shape[1] == 200 + number % DESKTOPS
                    wanted = color ^ step
                    assert (frame[100:, 100:, :3] == (wanted >> 16, wanted >> 8 & 255, wanted & 255)).all()

        list(pool.map(drive, range(DESKTOPS * 2)))
        # One that dies takes no other with it.
        assert desktops[0].display is not None
        os.kill(server_pid(desktops[0].display), signal.SIGKILL)
        with pytest.raises(deskhand.DesktopLost):
            desktops[0].perform(Type("x"))
        list(pool.map(lambda desktop: desktop.perform(KeyPress(["a"]), settle=False), desktops[1:]))
        list(pool.map(lambda desktop: desktop.close(), desktops))
