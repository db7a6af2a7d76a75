"""Engines: what places workers on machines. The ledger is the truth, so an engine may die with all its workers.

This package owns which engine a name means. What must never appear here: what a worker does.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Protocol

from deskhand.errors import EpisodeError

if TYPE_CHECKING:
    from deskhand.episodes.play.supervision import Stop
    from deskhand.episodes.run.plan import Plan, Tell

__all__ = ["ENGINES", "Engine", "find_engine"]

ENGINES = ("local", "ray")


class Engine(Protocol):
    """Places workers, and waits for them."""

    async def run(self, plan: Plan, *, stop: Stop, tell: Tell) -> None:
        """Have the plan's episodes played; return when all of its shard are done, or when all workers have stopped.

        Args:
            plan: What is to be played; `desktops` are those of one worker.
            stop: When it is asked for, workers give back what is under way, and end their desktops.
            tell: Hears of every episode, as far as this engine knows.

        Raises:
            LedgerError: The ledger cannot be used.
            EpisodeError: A worker cannot do its work: a task, the agent or the engine itself is wrong.
        """
        ...


def find_engine(name: str) -> Engine:
    """An engine by its name.

    Raises:
        EpisodeError: There is none of that name.
        MissingExtra: It is not installed.
    """
    # Only the one that is wanted is imported.
    if name == "local":
        from deskhand.episodes.run.engines.local import LocalEngine  # noqa: PLC0415

        return LocalEngine()
    if name == "ray":
        engine: Engine = importlib.import_module("deskhand.episodes.run.engines.ray").RayEngine()
        return engine
    raise EpisodeError(f"there is no engine {name!r}; there are: {', '.join(ENGINES)}")
