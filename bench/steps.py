"""What a step of an agent costs altogether: processor time of the driver and of the X server, until all is quiet again.

A step is a change, the frame that has settled, and then the time in which a model thinks. What the driver does meanwhile, such
as making files smaller, is in it. What changes the screen is a program of the benchmark, and is not.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING

import deskhand
from bench.context import Context, quiet, timed
from bench.figures import Row, Samples
from bench.idle import below, cpu_seconds
from bench.looks import EVERYTHING, LINE, NOTHING
from bench.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.scenes import Scene

__all__ = ["step"]

_SIZE = (1920, 1080)
# Longer than all work after a look takes; and how often each of many desktops steps.
_PAUSE, _PERIOD = 1.5, 3.0
_MANY = 64
_SERVER = "Xvfb"


def step(context: Context) -> Iterator[Row]:
    """Steps of one desktop, and of many in one process, with a thread for each."""
    scene = context.scene("page", _SIZE)
    cases = {NOTHING: None, LINE: scene.line, EVERYTHING: (0, 0, *_SIZE)}
    with deskhand.launch(size=_SIZE) as desktop, Stage(desktop, context.scratch) as stage:
        change = _changes(stage, scene)
        for case, part in cases.items():
            samples = Samples("step", f"{case}, processor time", note="of the driver and the X server together")
            for number in range(-2, context.times(12, 3)):
                context.say(f"step: {case}")
                before = _used()
                if part is not None:
                    change(part)
                desktop.perform()
                time.sleep(_PAUSE)
                if number >= 0:
                    samples.add((_used() - before) * 1000)
            yield samples.row()
    if not context.quick:
        yield from _many(context, scene)


def _many(context: Context, scene: Scene) -> Iterator[Row]:
    """Many desktops, each of which changes everywhere every three seconds."""
    rounds = 4
    took = Samples(
        "step", f"{_MANY} desktops, each every {_PERIOD:g} s, {EVERYTHING}", note="from the change to the frame"
    )
    with ExitStack() as stack:
        desktops = []
        for number in range(_MANY):
            context.say(f"step: desktop {number + 1} of {_MANY}")
            desktop = stack.enter_context(deskhand.launch(size=_SIZE))
            stage = stack.enter_context(Stage(desktop, context.scratch))
            desktops.append((desktop, _changes(stage, scene)))
        quiet()
        context.say(f"step: {_MANY} desktops")
        begun, before = time.monotonic(), _used()

        def work(index: int) -> None:
            desktop, change = desktops[index]
            for number in range(rounds):
                time.sleep(max(0.0, begun + (number + index / _MANY) * _PERIOD - time.monotonic()))
                change((0, 0, *_SIZE))
                took.add(timed(desktop.perform))

        with ThreadPoolExecutor(_MANY) as pool:
            list(pool.map(work, range(_MANY)))
        time.sleep(_PAUSE)
        used = Samples(
            "step", f"{_MANY} desktops, processor time of a step", note="of the driver and the X servers together"
        )
        used.add((_used() - before) * 1000 / (_MANY * rounds))
    yield took.row()
    yield used.row()


def _changes(stage: Stage, scene: Scene) -> Callable[[tuple[int, int, int, int]], None]:
    """Loads the two pictures; what changes a part of the one that is shown into the other's."""
    stage.load(scene.pictures)
    stage.show("first")
    shown: dict[tuple[int, int, int, int], str] = {}

    def change(part: tuple[int, int, int, int]) -> None:
        shown[part] = "first" if shown.get(part) == "second" else "second"
        stage.show(shown[part], part)

    return change


def _used() -> float:
    """Seconds of processor time so far: this process's, and those of the X servers below it."""
    return time.process_time() + sum(cpu_seconds(pid) for pid, name in below(os.getpid()).items() if name == _SERVER)
