"""Measures the overhead of playing episodes: python tools/orchestration.py [DESKTOPS [STEPS [THINKING]]].

The desktops are in memory, 1280x800, in one process, each with an agent that thinks for THINKING seconds before each of STEPS
clicks, which change a part of the screen. Everything is recorded and written to a ledger. The output is the share of wall time
that the episodes' own results count as overhead, and this process's processor time for a step, with the parts of the desktop
and of recording its frames.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import statistics
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any

from deskhand import Desktop, LeftClick
from deskhand._core.events import ButtonDown
from deskhand.backends.memory import MemoryBackend
from deskhand.desktop.access import latest
from deskhand.episodes.ledger import open_ledger
from deskhand.episodes.ledger.ledger import Key
from deskhand.episodes.run import worker as worker_module
from deskhand.episodes.run.plan import Plan
from deskhand.episodes.tasks.task import Task, TaskLimits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deskhand.episodes.play.episode import Episode
    from deskhand.episodes.tasks.context import TaskContext

SIZE = (1280, 800)


class Click(Task):
    """Click at various places."""

    name = "click"
    limits = TaskLimits(steps=1000, seconds=3600.0)
    screen = SIZE

    def instruction(self, parameters: Any) -> str:
        return f"click as often as you like ({parameters})"

    def setup(self, context: TaskContext) -> None:
        context.desktop.perform()

    def evaluate(self, context: TaskContext) -> bool:
        return context.desktop.size == SIZE

    def oracle(self, context: TaskContext) -> None:
        context.desktop.perform(LeftClick((1, 1)))


class DesktopPools:
    """Desktops that paint a button at each click."""

    def places(self, task: Task) -> DesktopPools:
        del task
        return self

    @contextlib.contextmanager
    def acquire(self, timeout: float | None = None) -> Iterator[Desktop]:
        del timeout
        backend = MemoryBackend(SIZE)

        def on_event(event: object) -> None:
            if isinstance(event, ButtonDown):
                x, y = backend.screen.pointer
                backend.paint((min(x, SIZE[0] - 90), min(y, SIZE[1] - 30), 90, 30), (x % 256, y % 256, 90))

        backend.on_event = on_event
        desktop = Desktop(backend)
        try:
            yield desktop
        finally:
            latest(desktop).close()

    def close(self) -> None:
        """Nothing is kept."""


def main(desktops: int = 64, steps: int = 20, thinking: float = 1.0) -> dict[str, float]:
    """Measure once."""

    def agent(episode: Episode) -> None:
        for step in range(steps):
            time.sleep(thinking)
            episode.desktop.perform(LeftClick((step * 37 % SIZE[0], step * 91 % SIZE[1])))

    worker_module.find_agent = lambda _, **_more: agent  # type: ignore[assignment]
    worker_module.find_tasks = lambda _: [Click()]  # type: ignore[assignment]
    with tempfile.TemporaryDirectory(prefix="deskhand-") as folder:
        ledger = open_ledger(f"{folder}/episodes.sqlite")
        ledger.begin({"version": 1})
        ledger.add(Key("click", "", seed, 0) for seed in range(desktops))
        plan = Plan(folder, f"{folder}/episodes.sqlite", ("click",), "thinker", desktops=desktops)
        before, began = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
        with worker_module.Worker(plan, ledger=ledger, pools=DesktopPools()) as worker:
            asyncio.run(worker.run())
            wall = time.monotonic() - began
            after = resource.getrusage(resource.RUSAGE_SELF)
            results = [row.result for row in ledger.rows() if row.result is not None]
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert all(result["success"] and result["steps"] == steps for result in results)
    share = [result["times"]["overhead"] / result["times"]["total"] for result in results]
    return {
        "desktops": desktops,
        "steps": steps,
        "thinking": thinking,
        "episodes": len(results),
        "wall": wall,
        "overhead_of_wall_median": statistics.median(share),
        "overhead_of_wall_worst": max(share),
        "cpu_per_step": used / (desktops * steps),
        "memory_megabytes": after.ru_maxrss / 1024,
        "load_average": os.getloadavg()[0],
    }


if __name__ == "__main__":
    for name, value in main(*(float(word) if "." in word else int(word) for word in sys.argv[1:])).items():  # type: ignore[arg-type]
        print(f"{name:24} {value:.4g}")
