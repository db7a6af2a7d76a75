"""The information about a run that a worker needs, in a form that any engine can send to any machine: `Plan`.

This module owns the plan, and the news that workers report. It contains no password (each worker takes the ledger's from its
own environment), and nothing that cannot be pickled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from deskhand.episodes.ledger.ledger import EVERYTHING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deskhand.episodes.ledger.ledger import Key


@dataclass(frozen=True, slots=True)
class Plan:
    """A run, for its workers.

    Attributes:
        directory: The run's directory for records; absolute.
        ledger: The ledger's address; see `deskhand.episodes.ledger.open_ledger`.
        tasks: The names of its tasks; see `deskhand.episodes.tasks.catalogue.find_tasks`.
        agent: The name of its agent; see `deskhand.episodes.play.agents.find_agent`.
        run_seed: Together with an episode's key, this determines its parameters.
        desktops: How many episodes one worker plays at once.
        shard: The part of the episodes that it plays: i of n.
        backend: The kind of its desktops: `local` or `docker`.
        image: The container image, instead of the tasks' own.
        host: Whether recorded calls may be made on this machine.
        watched: Whether each worker serves a page that shows its desktops.
        lease: Seconds without a sign of life after which a worker loses its episodes.
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
    watched: bool = False
    lease: float = 60.0
    heartbeat: float = 15.0


@dataclass(frozen=True, slots=True)
class News:
    """News about an episode from a worker.

    Attributes:
        kind: `begun`, `done`, `retried` (another attempt will be made), `released` (the run was stopped), `lost` (another
            worker has the episode by now, so this result does not count), `trouble` (the ledger does not answer; the worker
            tries again), `page` (a worker serves the page of its desktops, at the link in `text`).
        key: The episode; None for trouble.
        attempt: The number of the attempt.
        result: The result of the attempt, if it has one.
        text: A text for people.
    """

    kind: Literal["begun", "done", "retried", "released", "lost", "trouble", "page"]
    key: Key | None = None
    attempt: int = 0
    result: Mapping[str, Any] | None = None
    text: str = ""


Tell: TypeAlias = "Callable[[News], None]"
"""Called with all news, in the worker's event loop: it must return at once."""
