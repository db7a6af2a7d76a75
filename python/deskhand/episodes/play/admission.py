"""Admission of tasks: it can always be done, doing nothing never does it, and it always begins with the same picture.

This module owns the criteria, and the attempts that test them. How one attempt goes is in `deskhand.episodes.play.attempt`, and
how progress is shown in `deskhand.cli.tasks`.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deskhand._core.arguments import expect_path
from deskhand._core.settle import Settle
from deskhand.episodes.ledger.ledger import Key
from deskhand.episodes.outcome import Cause
from deskhand.episodes.play.attempt import attempt
from deskhand.episodes.play.budget import Unrecorded
from deskhand.episodes.play.first_frame import FirstFrame
from deskhand.episodes.play.pools import DesktopPools
from deskhand.episodes.play.supervision import Stop
from deskhand.errors import EpisodeError, files_named

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

    from deskhand._core.geometry import Rect
    from deskhand.desktop.desktop import Desktop
    from deskhand.episodes.play.attempt import Places
    from deskhand.episodes.record.frame_diff import Region
    from deskhand.episodes.tasks.task import Task

AGENTS = ("oracle", "nothing")
"""The agents that try each instance: one that does the task, and one that does nothing."""

_NAMES = {"oracle": "its oracle", "nothing": "doing nothing"}

_MOST_MASKS = 8
_STILL = Settle(timeout=5.0)


@dataclass(frozen=True, slots=True)
class Instance:
    """One instance, tried by each of `AGENTS` on a desktop of its own.

    Attributes:
        task: The task's name.
        seed: The instance's number.
        results: The results by agent; see `deskhand.episodes.play.attempt.attempt`.
        pixels: How many pixels differ between the first pictures of both; None if one of them has none.
        region: The smallest rectangle (x, y, width, height) with all of them.
        places: Where they are, as few rectangles.
        picture: The file that shows both pictures and what differs, if one was wanted.
    """

    task: str
    seed: int
    results: Mapping[str, Mapping[str, Any]]
    pixels: int | None
    region: Region | None = None
    places: Sequence[Rect] = ()
    picture: str | None = None

    @property
    def complaints(self) -> Sequence[str]:
        """The reasons against the task, as texts."""
        found = []
        for agent, success in zip(AGENTS, (True, False), strict=True):
            result = self.results[agent]
            if not result["valid"]:
                found.append(f"{_NAMES[agent]} could not be tried: {_why(result)}")
            elif bool(result["success"]) is not success or (success and result["cause"] is not None):
                # An oracle that a limit stopped has not done the task, whatever state it left.
                found.append(f"{_NAMES[agent]} {'fails' if success else 'does not fail'}: {_why(result)}")
        if self.pixels:
            found.append(
                f"it begins with another picture the second time: {self.pixels} pixels differ, all within {self.region} "
                f"(x, y, width, height){self._shown}"
            )
        return found

    @property
    def _shown(self) -> str:
        """Where the difference can be seen, and what lets it be."""
        seen = f"; {self.picture} shows both and what differs" if self.picture else ""
        # Many places mean a window that was still being drawn, not a clock.
        if not 0 < len(self.places) <= _MOST_MASKS:
            return seen
        masks = ", ".join(str(list(place)) for place in self.places)
        return f"{seen}; if that may differ, as a clock may: masks = [{masks}]"


@dataclass(frozen=True, slots=True)
class Admission:
    """The results of the attempts at one task.

    Attributes:
        task: The task's name.
        runs: How many instances were tried.
        passed: By agent: how many instances it did. The oracle must do all, the other none.
        unsteady: How many evaluations differed from a second one right after them.
        frames: How many instances began with different pictures.
        complaints: The reasons against the task, by seed.
    """

    task: str
    runs: int
    passed: Mapping[str, int]
    unsteady: int
    frames: int
    complaints: Mapping[int, Sequence[str]]

    @property
    def admitted(self) -> bool:
        """Whether there are no reasons against it."""
        return self.runs > 0 and not self.complaints


def admit(
    tasks: Sequence[Task],
    *,
    runs: int = 20,
    desktops: int = 1,
    backend: str = "local",
    image: str | None = None,
    run_seed: int = 0,
    pictures: str | os.PathLike[str] | None = None,
    tell: Callable[[Instance], None] = lambda _instance: None,
) -> list[Admission]:
    """Try each task's first `runs` instances, once with its oracle and once without doing anything, each on a fresh desktop.

    Args:
        tasks: The tasks.
        runs: How many instances of each.
        desktops: How many desktops at once.
        backend: `local` or `docker`.
        image: The container image, instead of the tasks' own.
        run_seed: The seed that determines all instances.
        pictures: The directory for a picture of each instance that begins with another picture the second time; it is created
            when the first is written.
        tell: Called with each instance as soon as it was tried, once at a time, in the thread that tried it.

    Returns:
        The results, in the order of the tasks.

    Raises:
        EpisodeError: The desktops' machines lack programs.
        FileError: A picture cannot be written.
    """
    tried: list[Instance] = []
    stop, lock = Stop(), threading.Lock()
    folder = None if pictures is None else Path(expect_path("admit: pictures", pictures))
    with DesktopPools(tasks, backend=backend, desktops=desktops, image=image) as pools:
        _need_programs(pools)

        def one(task: Task, seed: int) -> None:
            found = _try(task, seed, pools.places(task), run_seed, stop, pictures=folder)
            if stop.reason is not None:
                return
            with lock:
                tried.append(found)
                tell(found)

        with ThreadPoolExecutor(desktops, thread_name_prefix="deskhand-admission") as pool:
            # Seed by seed, so that a check that is stopped has results of every task.
            jobs = [pool.submit(one, task, seed) for seed in range(runs) for task in tasks]
            try:
                for job in jobs:
                    job.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                stop("the check was stopped")
                raise
    return [judge(task.name, [each for each in tried if each.task == task.name]) for task in tasks]


def judge(task: str, tried: Sequence[Instance]) -> Admission:
    """Combine the instances of one task."""
    results = [result for each in tried for result in each.results.values()]
    return Admission(
        task=task,
        runs=len(tried),
        passed={agent: sum(bool(each.results[agent]["success"]) for each in tried) for agent in AGENTS},
        unsteady=sum(result["cause"] == Cause.EVALUATOR_FAILED for result in results),
        frames=sum(bool(each.pixels) for each in tried),
        complaints={each.seed: each.complaints for each in sorted(tried, key=lambda e: e.seed) if each.complaints},
    )


def _why(result: Mapping[str, Any]) -> str:
    parts = (result["cause"], result["detail"], result["reason"])
    return ": ".join(str(part) for part in parts if part) or "no reason is given"


def _need_programs(pools: DesktopPools) -> None:
    missing = pools.missing()
    if missing:
        by_task = "; ".join(f"{task} needs {', '.join(programs)}" for task, programs in missing.items())
        raise EpisodeError(f"programs are missing: {by_task}; install them, or check these tasks with --backend docker")


def _try(task: Task, seed: int, places: Places, run_seed: int, stop: Stop, *, pictures: Path | None) -> Instance:
    key = Key(task.name, "", seed, 0)
    records = {agent: _FirstFrameOnly() for agent in AGENTS}
    results = {
        agent: attempt(task, key, places, agent, record, run_seed=run_seed, stop=stop)
        for agent, record in records.items()
    }
    one, other = (record.first for record in records.values())
    if one is None or other is None:
        return Instance(task.name, seed, results, None)
    # Keep only the difference: a picture has three megabytes.
    pixels, region = one.differs(other, task.masks)
    if not pixels:
        return Instance(task.name, seed, results, pixels)
    differing, shown = one.shown(other, task.masks)
    file = None
    if pictures is not None and shown is not None:
        file = pictures / f"{task.name}-seed-{seed}.png"
        with files_named("cannot write", file):
            pictures.mkdir(parents=True, exist_ok=True)
            shown.save(file)
    return Instance(task.name, seed, results, pixels, region, differing, None if file is None else str(file))


class _FirstFrameOnly(Unrecorded):
    """A record that keeps only the first frame."""

    def __init__(self) -> None:
        self.first: FirstFrame | None = None

    def frame(self, desktop: Desktop, cause: str = "") -> str:
        """Keep the first frame."""
        if cause != "first":
            return ""
        busy = desktop.perform(settle=_STILL, format="raw").busy
        self.first = FirstFrame(desktop.screenshot(cursor=False, format="raw").array(), busy)
        return ""
