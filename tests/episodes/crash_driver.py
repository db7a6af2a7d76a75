"""A driver that is there to be killed: `python -m episodes.crash_driver DIR SLOTS` plays what DIR's ledger has."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from deskhand import Pool
from deskhand.episodes.ledger import open_ledger
from deskhand.episodes.play import attempt
from deskhand.episodes.run.plan import Plan
from deskhand.episodes.run.worker import Worker
from deskhand.episodes.run.worker_name import abandon_dead
from episodes.plays import QUICK, Places, Press
from episodes.plays_here import Number

if TYPE_CHECKING:
    from deskhand.episodes.tasks.task import Task

TASKS = ("episodes.plays:Press", "episodes.plays_here:Number")


class Mixed:
    """Desktops in memory for one task, and real ones for the other."""

    def __init__(self, slots: int) -> None:
        self.pool = Pool("local", size=slots, warm=1, screen=Number.screen)
        self.memory = Places()

    def places(self, task: Task) -> Pool | Places:
        return self.memory if isinstance(task, Press) else self.pool

    def close(self) -> None:
        self.pool.close()


def main(directory: str, slots: int) -> None:
    """Go on with the run, to its end."""
    attempt._STILL = attempt._LAST = QUICK
    path = str(Path(directory) / "episodes.sqlite")
    ledger = open_ledger(path)
    print(f"given back {abandon_dead(ledger)}", flush=True)
    plan = Plan(directory, path, TASKS, "oracle", desktops=slots)
    with Worker(plan, ledger=ledger, pools=Mixed(min(4, slots))) as worker:
        asyncio.run(worker.run())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
