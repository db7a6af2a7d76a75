"""Engines place workers on machines. The ledger is the truth, so an engine may die with all its workers.

This package owns the names of engines. What a worker does is elsewhere.
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
        """Have the plan's episodes played. Returns when all of its shard are done, or when all workers have stopped.

        Args:
            plan: The plan; `desktops` is the number for one worker.
            stop: On this request, workers give back what they hold, and close their desktops.
            tell: Called with the news of every episode, as far as this engine gets it.

        Raises:
            LedgerError: The ledger cannot be used.
            EpisodeError: A worker cannot work: a task, the agent or the engine itself is wrong.
        """
        ...


def find_engine(name: str) -> Engine:
    """Find an engine by its name.

    Raises:
        EpisodeError: There is no engine of that name.
        MissingExtra: It is not installed.
    """
    # Import only this one.
    if name == "local":
        from deskhand.episodes.run.engines.local import LocalEngine  # noqa: PLC0415

        return LocalEngine()
    if name == "ray":
        engine: Engine = importlib.import_module("deskhand.episodes.run.engines.ray").RayEngine()
        return engine
    raise EpisodeError(f"there is no engine {name!r}; there are: {', '.join(ENGINES)}")
