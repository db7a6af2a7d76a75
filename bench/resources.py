"""The cost of desktops: to launch, to keep, to watch, and many of them at once."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING

import deskhand
from bench import scenes
from bench.context import Context, quiet, timed
from bench.figures import OURS, Row, Samples
from bench.peers import PEERS, Crew
from bench.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["idle", "launch", "rate", "video"]

_SIZE = (1920, 1080)
_FILM_RATE = 30
_FILM_FRAMES = 24
_FILM_PEERS = {"modal", "mss_1"}


def launch(context: Context) -> Iterator[Row]:
    """Launch a desktop of ours until it is ready, and close it."""
    up, down = Samples("launch", "desktop ready"), Samples("launch", "desktop closed")
    for _ in range(context.times(10, 3)):
        context.say("launch")
        begun = time.perf_counter()
        desktop = deskhand.launch(size=_SIZE)
        up.add((time.perf_counter() - begun) * 1000)
        down.add(timed(desktop.close))
    yield up.row()
    yield down.row()


def idle(context: Context) -> Iterator[Row]:
    """Memory and processor time of idle desktops, without their X servers."""
    for count in (1,) if context.quick else (1, 16):
        context.say(f"idle: {count}")
        seconds = "3" if context.quick else "20"
        argv = [sys.executable, "-m", "bench.idle", str(count), *map(str, _SIZE), seconds]
        found = json.loads(subprocess.run(argv, check=True, capture_output=True).stdout)
        name = "an idle desktop" if count == 1 else f"{count} idle desktops"
        cpu = Samples("idle", f"CPU of {name}", unit="%", note=f"of one core, over {seconds} s, without Xvfb")
        cpu.add(found["cpu_percent"])
        yield cpu.row(driver=found["cpu_percent_driver"], servers=found["cpu_percent_servers"])
        name = "a desktop" if count == 1 else f"each of {count} desktops"
        note = "PSS: driver, guard, window manager and session bus, without Xvfb"
        size = Samples("idle", f"memory of {name}", unit="MB", note=note)
        size.add(found["pss_mb"])
        yield size.row(rss_mb=found["rss_mb"], driver_mb=found["pss_mb_driver"], server_mb=found["pss_mb_server"])


def video(context: Context) -> Iterator[Row]:
    """Play a film in a quarter of the screen, 30 pictures a second; each contender looks at all of them, if it can."""
    width, height = _SIZE
    seconds, rounds = (1.5, 1) if context.quick else (3.0, 3)
    context.say("making the film")
    frames = scenes.film((width // 2, height // 2), _FILM_FRAMES)
    scene = context.scene("page", _SIZE)
    note = f"of one core; a panning photograph of {width // 2}x{height // 2}, played by a program of the benchmark"
    with (
        deskhand.launch(size=_SIZE) as desktop,
        Stage(desktop, context.scratch) as stage,
        Crew(desktop, context.scratch, [peer for peer in PEERS if peer.look in _FILM_PEERS]) as crew,
    ):
        stage.load({**frames, **scene.pictures})
        stage.show("first")
        stage.play(list(frames), (width // 2, height // 2), _FILM_RATE)
        names = list(crew.names)
        cpu = {name: Samples("video", "CPU of the driver", name, "%", note) for name in (OURS, *names)}
        rates = {name: Samples("video", "looks a second", name, "1/s", "of 30 asked for") for name in cpu}
        for number in range(rounds):
            context.say(f"video: round {number + 1} of {rounds}")
            for name in list(cpu):
                if name != OURS and name not in crew.names:
                    continue
                seen = _watch(desktop, seconds) if name == OURS else crew.watch(name, seconds, _FILM_RATE)
                if seen is not None:
                    cpu[name].add(seen[0])
                    rates[name].add(seen[1])
        stage.stop()
        for samples in (*cpu.values(), *rates.values()):
            yield samples.row()
        for name, reason in crew.missing.items():
            if name not in cpu:
                absent = Samples("video", "CPU of the driver", name, "%", note)
                absent.missing = reason
                yield absent.row()


def _watch(desktop: deskhand.Desktop, seconds: float) -> tuple[float, float]:
    """Like `worker` for the peers."""
    quiet()
    used, begun, looks = time.process_time(), time.perf_counter(), 0
    while time.perf_counter() - begun < seconds:
        desktop.screenshot()
        looks += 1
        time.sleep(max(0.0, begun + looks / _FILM_RATE - time.perf_counter()))
    took = time.perf_counter() - begun
    return (time.process_time() - used) / took * 100, looks / took


def rate(context: Context) -> Iterator[Row]:
    """Frames a second of 1, 4 and 16 desktops in one process, with a thread for each; each frame follows a change."""
    seconds = 1.0 if context.quick else 3.0
    scene = context.scene("page", _SIZE)
    with ExitStack() as stack:
        desktops: list[tuple[deskhand.Desktop, Stage]] = []
        for count in (1, 4) if context.quick else (1, 4, 16):
            while len(desktops) < count:
                context.say(f"rate: desktop {len(desktops) + 1}")
                desktop = stack.enter_context(deskhand.launch(size=_SIZE))
                stage = stack.enter_context(Stage(desktop, context.scratch))
                stage.load(scene.pictures)
                stage.show("first")
                desktops.append((desktop, stage))
            for case, rect in (("one line changed", scene.line), ("everything changed", None)):
                context.say(f"rate: {count} desktops, {case}")
                frames = _frames(desktops, rect, seconds)
                name = "1 desktop" if count == 1 else f"{count} desktops"
                samples = Samples("rate", f"{name}, {case}", unit="1/s", note="frames, of all together")
                samples.add(sum(frames) / seconds)
                yield samples.row(slowest_desktop=min(frames) / seconds)


def _frames(
    desktops: list[tuple[deskhand.Desktop, Stage]], rect: tuple[int, int, int, int] | None, seconds: float
) -> list[int]:
    """The number of looks at each desktop, after as many changes."""
    frames = [0] * len(desktops)
    start = threading.Barrier(len(desktops))

    def work(index: int) -> None:
        desktop, stage = desktops[index]
        start.wait()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            stage.show("second" if frames[index] % 2 == 0 else "first", rect)
            desktop.screenshot()
            frames[index] += 1

    with ThreadPoolExecutor(len(desktops)) as pool:
        list(pool.map(work, range(len(desktops))))
    return frames
