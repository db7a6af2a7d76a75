"""What a worker needs to know of a run, as any engine can send it to any machine: `Plan`.

This module owns that, and what workers tell while they work. What must never appear here: a password (a ledger's is taken from
the environment of each worker), anything that cannot be pickled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from deskhand.episodes.ledger.ledger import EVERYTHING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deskhand.episodes.ledger.ledger import Key

__all__ = ["News", "Plan", "Tell"]


@dataclass(frozen=True, slots=True)
class Plan:
    """A run, as its workers see it.

    Attributes:
        directory: Of the run, where records go; absolute.
        ledger: Where the ledger is; see `deskhand.episodes.ledger.open_ledger`.
        tasks: How its tasks are found; see `deskhand.episodes.tasks.catalogue.find_tasks`.
        agent: How its agent is found; see `deskhand.episodes.play.agents.find_agent`.
        run_seed: From which, with an episode's key, follow its parameters.
        desktops: How many episodes one worker plays at once.
        shard: Which part of the episodes it plays: i of n.
        backend: What makes its desktops: `local` or `docker`.
        image: The container image, instead of the tasks' own.
        host: Whether calls that were recorded may be made on this machine.
        lease: Seconds after which a worker that is not heard of has lost its episodes.
        heartbeat: Seconds between two signs of life.
    """

    directory: str
    ledger: str
    tasks: tuple[str, ...]
    agent: str
    run_seed: int = 0
    desktops: int = 1
    shard: tuple[int, int] = EVERYTHING
    backend: str = "local"
    image: str | None = None
    host: bool = False
    lease: float = 60.0
    heartbeat: float = 15.0


@dataclass(frozen=True, slots=True)
class News:
    """What a worker tells of an episode.

    Attributes:
        kind: `begun`, `done`, `retried` (another attempt will be made), `released` (the run was stopped), `lost` (another
            worker has it by now: what was done here does not count), `trouble` (the ledger does not answer; it goes on trying).
        key: Which one; None for trouble.
        attempt: Which attempt.
        result: What came of the attempt, where it has one.
        text: For people.
    """

    kind: Literal["begun", "done", "retried", "released", "lost", "trouble"]
    key: Key | None = None
    attempt: int = 0
    result: Mapping[str, Any] | None = None
    text: str = ""


Tell: TypeAlias = "Callable[[News], None]"
"""Hears of everything, in the worker's event loop: it must return at once."""
