"""What the nodes of a Ray cluster play in tests. They import it by its name."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from deskhand.episodes.ledger.ledger import State
from deskhand.episodes.play import attempt
from deskhand.episodes.run.worker import Worker
from deskhand.episodes.tasks.task import Task
from episodes.plays import QUICK, DesktopPools

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from deskhand.episodes.ledger.ledger import Row
    from deskhand.episodes.play.episode import Episode
    from deskhand.episodes.play.supervision import Stop
    from deskhand.episodes.run.plan import Plan, Tell
    from deskhand.episodes.tasks.context import TaskContext

SECONDS = "DESKHAND_TEST_EPISODE_SECONDS"
MEETING = "DESKHAND_TEST_MEETING"


class Wait(Task):
    """Do nothing, on any desktop."""

    name = "wait"
    screen = (200, 150)

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        del parameters
        return "wait"

    def setup(self, context: TaskContext) -> None:
        """The desktop is as it has to be."""

    def evaluate(self, context: TaskContext) -> bool:
        del context
        return True

    def oracle(self, context: TaskContext) -> None:
        """Nothing is to be done."""


def waits(episode: Episode) -> str:
    """An agent that takes as long as a model would, and computes nothing."""
    del episode
    time.sleep(float(os.environ[SECONDS]))
    return "done"


def waits_for_another(episode: Episode) -> str:
    """An agent that goes on when one of another worker has come to the meeting, a directory."""
    meeting = Path(os.environ[MEETING])
    (meeting / str(os.getpid())).touch()
    while len(list(meeting.iterdir())) < 2:
        time.sleep(0.02)
    return waits(episode)


def in_memory(plan: Plan, *, stop: Stop, tell: Tell) -> Worker:
    """A worker whose desktops are in memory."""
    attempt._STILL = attempt._LAST = QUICK
    return Worker(plan, stop=stop, tell=tell, pools=DesktopPools())


def without_tasks(plan: Plan, *, stop: Stop, tell: Tell) -> Worker:
    """One that cannot do its work."""
    return Worker(dataclasses.replace(plan, tasks=("no-such-task",)), stop=stop, tell=tell)


def with_environment(mark: str) -> Iterator[tuple[int, str]]:
    """The processes that have `NAME=value` in their environment, and their first words."""
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            found = mark.encode() in (directory / "environ").read_bytes().split(b"\0")
            words = (directory / "cmdline").read_bytes().split(b"\0")[:3]
        except OSError:
            continue
        if found and words != [b""]:
            yield int(directory.name), " ".join(os.fsdecode(word) for word in words)


def signal_all(processes: Iterable[int], number: int) -> None:
    """Those that still live."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)


def assert_each_once(rows: Sequence[Row], count: int, *, given_back: int = 0) -> None:
    """Each episode has one result that counts, and each attempt beside those is accounted for."""
    assert [row.state for row in rows] == [State.DONE] * count
    for row in rows:
        assert row.result is not None
        assert row.result["valid"], row.result
        assert (row.result["attempt"], row.result["worker"]) == (row.attempt, row.worker)
    attempts = sum(row.attempt for row in rows)
    assert attempts == count + given_back + sum(sum(row.failures.values()) for row in rows)
