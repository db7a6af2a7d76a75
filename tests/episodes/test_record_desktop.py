"""What a hundred steps on a real desktop take on the disk and of the processor."""

from __future__ import annotations

import os
import random
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest

from conftest import need
from deskhand import KeyPress, LeftClick, Scroll, Secret, Settle, Type
from deskhand.episodes.record.frame_store import FrameStore
from deskhand.episodes.record.reader import Recording
from deskhand.episodes.record.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import deskhand
    from deskhand.desktop.operations import Operation

EVIDENCE = os.environ.get("DESKHAND_EVIDENCE") == "1"
STEPS = 100
# What is promised: of 100 steps at 1280x800 on the disk, and of the processor for each.
MOST_BYTES = 10_000_000
MOST_SECONDS = 0.020
# Whether the screen has settled is not what this is about.
SOON = Settle(quiet=0.02, reaction=0.04, timeout=0.5)
WORDS = ("alpha", "beta", "gamma", "naïve", "delta", "☕")
COMMANDS = ("ls -la /usr/bin | head -40", "ps aux | tail -20", "echo hello", "head -60 /etc/services", "clear")


class Timed:
    """Hears for a recorder, and counts what that takes of the processor."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.seconds: list[float] = []

    def before(self, operation: Operation) -> object:
        begun = time.thread_time()
        token = self.recorder.before(operation)
        self.seconds.append(time.thread_time() - begun)
        return token

    def after(self, operation: Operation, token: object, outcome: object) -> None:
        begun = time.thread_time()
        self.recorder.after(operation, token, outcome)
        self.seconds[-1] += time.thread_time() - begun


def do(desktop: deskhand.Desktop, number: int, chance: random.Random) -> None:
    """A step of an agent that writes in an editor, reads in a terminal and goes from one to the other."""
    kind = number % 10
    if kind in {0, 5}:
        title = "Mousepad" if kind == 0 else "xterm"
        (window,) = [window for window in desktop.windows.list() if title in window.title]
        x, y, width, height = window.rect
        desktop.perform(LeftClick((x + width // 2, y + height - 30)), settle=SOON)
    elif kind < 4:
        desktop.perform(Type(" ".join(chance.choices(WORDS, k=8)) + "\n"), settle=SOON)
    elif kind == 4:
        desktop.perform(Scroll((960, 500), magnitude=3, direction="up"), settle=SOON)
    else:
        desktop.perform(Type(chance.choice(COMMANDS)), KeyPress(["Return"]), settle=SOON)


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@pytest.mark.soak
def test_a_hundred_steps_are_small_cheap_and_lossless(tmp_path: Path, launch: Callable[..., deskhand.Desktop]) -> None:
    need("xterm", "xterm")
    need("mousepad", "mousepad")
    desktop = launch(size=(1280, 800))
    desktop.start("xterm -T xterm -geometry 90x35+20+30")
    desktop.start("mousepad")
    seen: dict[str, bytes] = {}
    with FrameStore(tmp_path / "run" / "frames") as store:
        recorder = Recorder(tmp_path / "run" / "ep" / "long.s0.r0" / "attempt-1", store)
        recorder.attach(desktop)
        timed = Timed(recorder)
        acting = desktop.also(timed)
        chance = random.Random(1)
        for number in range(STEPS):
            do(acting, number, chance)
            if number % 10 == 9:
                # What is on the screen now, if nothing came in between, is what was kept.
                kept = recorder.frame(desktop)
                shown = desktop.screenshot(format="raw", cursor=False)
                if recorder.frame(desktop) == kept:
                    seen[kept] = shown.data
        recorder.finish({})
        recorder.close()
        recording = Recording.open(recorder.directory, store)
        assert len([event for event in recording.events if event["kind"] == "perform"]) == STEPS
        assert len({event["after"] for event in recording.events if event["kind"] == "perform"}) > STEPS // 2
        assert len(seen) > 5
        for name, data in seen.items():
            assert np.array_equal(store.array(name), np.frombuffer(data, np.uint8).reshape(800, 1280, 3))
    size, each = size_of(tmp_path / "run"), sum(timed.seconds) / STEPS
    print(
        f"{size / 1e6:.2f} MB, {each * 1000:.2f} ms of the processor a step, at most {max(timed.seconds) * 1000:.1f} ms"
    )
    assert size < MOST_BYTES
    assert each < MOST_SECONDS


def test_a_secret_typed_into_a_terminal_is_in_no_file(tmp_path: Path, launch: Callable[..., deskhand.Desktop]) -> None:
    need("xterm", "xterm")
    canaries = [f"Canary{number}Quxblorf" for number in range(100 if EVIDENCE else 3)]
    desktop = launch(size=(640, 480))
    desktop.start("xterm -geometry 80x24+0+0")
    with FrameStore(tmp_path / "run" / "frames") as store:
        recorder = Recorder(tmp_path / "run" / "ep" / "login.s0.r0" / "attempt-1", store)
        acting = recorder.attach(desktop)
        for canary in canaries:
            acting.perform(Type(Secret(canary)), KeyPress(["Return"]))
            recorder.event("note", text=f"I have typed {canary}.")
            acting.host.run(f"echo {canary}")
        shown = recorder.frame(desktop, "final")
        # It can be read on the screen, and so the screen is not kept.
        assert shown not in store
        recorder.finish({"state": {"typed": canaries}})
        recorder.close()
    for path in (tmp_path / "run").rglob("*"):
        if path.is_file():
            assert not [canary for canary in canaries if canary.encode() in path.read_bytes()], path
