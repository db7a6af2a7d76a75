"""VNC over a bad line: late, uneven, narrow, stopping. Everything is still right, only later."""

from __future__ import annotations

import gc
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import deskhand
from conformance.servers import Place, need, serving
from conformance.shaping import Line
from conformance.test_desktop import real_pixels
from deskhand import KeyPress, Move, Reason, Settle, Type
from faults.helpers import beside_control, hold, until, within
from faults.test_malformed import memory

if TYPE_CHECKING:
    from collections.abc import Iterator

CORNER = (600, 460)
TEXT = "the quick brown fox, 42 times over"


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    """Xvnc."""
    with serving("xvnc") as place:
        yield place


@pytest.fixture
def terminal(place: Place, tmp_path: Path) -> Iterator[Path]:
    """An xterm that has the keyboard; the file gets what is typed into it."""
    file = tmp_path / "typed"
    script = f"stty -icanon; cat >{file}"
    argv = [need("xterm", "xterm"), "-title", "line", "-geometry", "60x12+20+20", "-e", "sh", "-c", script]
    with subprocess.Popen(argv, env=place.environment) as process:
        try:
            until(lambda: file.exists() and focused(place), 20, "the terminal")
            yield file
        finally:
            process.kill()


def focused(place: Place) -> bool:
    argv = [need("xdotool", "xdotool"), "search", "--onlyvisible", "--name", "^line$", "windowfocus"]
    return not subprocess.run(argv, env=place.environment, capture_output=True, check=False).returncode


def parked(desktop: deskhand.Desktop) -> None:
    """Away from the windows. TigerVNC paints the pointer into the screen for clients that have not said where it is."""
    desktop.perform(Move(CORNER))


def same(desktop: deskhand.Desktop, place: Place) -> bool:
    return bool((np.asarray(desktop.screenshot(cursor=False).array())[..., :3] == real_pixels(place)).all())


def pixels(seen: deskhand.Observation) -> np.ndarray:
    return np.asarray(seen.image().convert("RGB"))


@pytest.mark.parametrize(
    ("delay", "jitter"),
    [
        (0.05, 0.04),
        *(
            pytest.param(*line, marks=pytest.mark.soak)
            for line in ((0.0, 0.0), (0.01, 0.0), (0.05, 0.0), (0.2, 0.0), (0.2, 0.1))
        ),
    ],
)
def test_late_is_right_all_the_same(place: Place, terminal: Path, delay: float, jitter: float) -> None:
    trip = 2 * (delay + jitter)
    with Line(place.url, delay=delay, jitter=jitter) as line, deskhand.connect(line.url) as desktop:
        parked(desktop)
        assert same(desktop, place)
        desktop.perform(KeyPress(["x"]))
        with beside_control() as machine:
            seen = desktop.perform(Type(TEXT), KeyPress(["Return"]))
        # What counts as settled is what X shows from then on.
        assert (seen.settled, seen.reason) == (True, Reason.QUIET)
        assert (pixels(seen) == real_pixels(place)).all()
        # One trip until what was done is seen, another for the proof that nothing more came of it; twice as much is a lot.
        hold(1.0 + 4 * trip, seen.elapsed.reaction + seen.elapsed.settle, machine[0], "settling")
        assert terminal.read_text() == f"x{TEXT}\n"
        still = desktop.perform(KeyPress(["Scroll_Lock"]))
        assert (still.settled, still.changed) == (True, False)


@pytest.mark.soak
def test_narrow_and_uneven(place: Place, terminal: Path) -> None:
    """F9: 200 ms each way, give or take 100, and 1 Mbit/s: nothing breaks, and what waits is not piled up here."""
    with Line(place.url, delay=0.2, jitter=0.1, rate=125_000) as line:
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5")
        before = memory("VmRSS")
        script = "import os, time\nfor _ in range(100): print(os.urandom(600).hex(), flush=True), time.sleep(0.02)"
        with deskhand.connect(line.url, timeout=60) as desktop:
            parked(desktop)
            assert same(desktop, place)
            seen = desktop.perform(Type(TEXT), KeyPress(["Return"]), settle=deskhand.Settle(timeout=30))
            assert seen.settled
            assert (pixels(seen) == real_pixels(place)).all()
            assert terminal.read_text() == f"{TEXT}\n"
            with subprocess.Popen(
                [need("xterm", "xterm"), "-geometry", "60x20+0+200", "-e", sys.executable, "-c", script],
                env=place.environment,
            ) as process:
                process.wait(60)
            until(lambda: same(desktop, place), 30, "the screen as it is")
        assert memory("VmHWM") - before <= 2 * 640 * 480 * 4 + (64 << 20)
        assert line.carried[1] > 20_000


def test_a_stall_is_waited_for(place: Place, terminal: Path) -> None:
    with Line(place.url, delay=0.01) as line, deskhand.connect(line.url) as desktop:
        parked(desktop)
        desktop.perform(KeyPress(["a"]))
        line.stall()
        with ThreadPoolExecutor() as pool:
            acting = pool.submit(desktop.perform, Type("b"), settle=Settle(timeout=30))
            until(lambda: any("has not answered" in note for note in desktop.status), 5, "the silence to be told")
            assert not acting.done()
            line.go()
            acting.result(20)
        after = desktop.perform(Type("c\n"))
        assert after.settled
        assert (pixels(after) == real_pixels(place)).all()
        assert terminal.read_text() == "abc\n"


def test_the_timeout_holds_through_a_stall(place: Place, terminal: Path) -> None:
    with Line(place.url, delay=0.01) as line, deskhand.connect(line.url) as desktop:
        parked(desktop)
        desktop.perform(KeyPress(["a"]))
        line.stall()
        with within(3.0, "a perform of 0.5 s"):
            seen = desktop.perform(Type("b"), settle=Settle(timeout=0.5))
        assert (seen.settled, seen.reason, seen.changed) == (False, Reason.SERVER_SILENT, False)
        line.go()
        # What was sent into the stall arrives, and is not taken for what the next action did.
        after = desktop.perform(Type("c\n"), settle=Settle(timeout=30))
        assert after.settled
        assert (pixels(after) == real_pixels(place)).all()
        assert terminal.read_text() == "abc\n"


def test_what_changed_before_is_not_the_action_s(place: Place) -> None:
    """The input leaves before the look that precedes it is answered; what was on the way then is still from before."""
    with Line(place.url, delay=0.2) as line, deskhand.connect(line.url) as desktop:
        parked(desktop)
        desktop.perform()
        subprocess.run(["xsetroot", "-solid", "#405060"], env=place.environment, check=True)
        with place.connect() as near:
            # It has left the server when another client has it.
            until(
                lambda: near.screenshot(format="raw", region=(500, 400, 1, 1)).data == bytes((0x40, 0x50, 0x60)),
                5,
                "the colour",
            )
        seen = desktop.perform(KeyPress(["Scroll_Lock"]))
        assert (seen.settled, seen.changed, seen.rects) == (True, False, ())
        assert (pixels(seen) == real_pixels(place)).all()


@pytest.mark.parametrize("reset", [False, True])
def test_a_cut_is_told_and_mended(place: Place, terminal: Path, *, reset: bool) -> None:
    with Line(place.url, delay=0.01) as line, deskhand.connect(line.url) as desktop:
        parked(desktop)
        desktop.perform(KeyPress(["a"]))
        line.cut(reset=reset)
        with pytest.raises(deskhand.Reconnected):
            desktop.perform()
        after = desktop.perform(Type("b\n"))
        assert (pixels(after) == real_pixels(place)).all()
        assert terminal.read_text() == "ab\n"


def test_a_line_that_swallows_is_given_up(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half open: nothing comes any more, and nobody says so. Keep-alive cannot help: the line's own end answers it."""
    with Line(place.url, delay=0.01) as line, deskhand.connect(line.url) as desktop:
        desktop.screenshot()
        line.swallow()
        monkeypatch.setattr("deskhand.backends.vnc.backend._RECONNECT_LIMIT", 0.5)
        with within(12, "giving up"), pytest.raises(deskhand.DesktopLost, match="has not answered for 10 s"):
            desktop.perform(settle=Settle(timeout=30))
