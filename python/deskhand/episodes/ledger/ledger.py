"""Who does what, and what is done: the source of truth of a run, whatever engine it runs on.

This module owns the states of an episode, and what every ledger promises. An episode goes from `queued` to `leased` to
`done`, and back to `queued` when its lease runs out or an attempt is to be repeated. What must never appear here: a
database (see `deskhand.episodes.ledger`), a desktop, a wait.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["EVERYTHING", "Key", "Lease", "Ledger", "Row", "State"]

EVERYTHING = (0, 1)
"""The one shard of a run that is not divided."""


class State(StrEnum):
    """Where an episode is on its way."""

    QUEUED = "queued"
    LEASED = "leased"
    DONE = "done"


class Key(NamedTuple):
    """What makes an episode one that is done once: the same key twice is the same episode.

    Attributes:
        task: The task's name.
        variant: Of the task; empty for most.
        seed: 0, 1, 2...: which instance.
        repeat: 0, 1, 2...: the same instance again.
    """

    task: str
    variant: str
    seed: int
    repeat: int

    def __str__(self) -> str:
        parts = [self.task, *([self.variant] if self.variant else []), f"s{self.seed}", f"r{self.repeat}"]
        return ".".join(parts)

    @property
    def spread(self) -> int:
        """0...2**31 - 1, the same on every machine: of n shards, the episode is in shard `spread % n`."""
        return int.from_bytes(hashlib.sha256(repr(tuple(self)).encode()).digest()[:4], "big") >> 1


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to try an episode, until a time.

    Attributes:
        key: Which one.
        attempt: 1, 2, 3...: how many times it has been leased; an attempt's directory is named by it, and no two leases
            of an episode have the same.
        worker: Who has it.
        token: Proves that it is this lease, and not a later one of the same episode.
        failures: What the attempts before ended with, by cause.
    """

    key: Key
    attempt: int
    worker: str
    token: str
    failures: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Row:
    """What the ledger knows of one episode.

    Attributes:
        key: Which one.
        state: Where it is on its way.
        attempt: How many times it was leased.
        worker: Who has or had it.
        result: What came of it, where it is done.
        failures: What attempts that were repeated ended with, by cause.
    """

    key: Key
    state: State
    attempt: int
    worker: str
    result: Mapping[str, Any] | None
    failures: Mapping[str, int]


class Ledger(Protocol):
    """What every ledger can do. Calls come from any thread; each is one transaction, and safe to be killed in.

    Times are the ledger's own (one clock for all workers). Any of them raises LedgerError when the ledger is damaged, cannot be
    reached or written, or is closed; nothing has changed then, or all of the call has.
    """

    def begin(self, manifest: Mapping[str, Any]) -> Mapping[str, Any]:
        """Keep what the run is, or give what is kept: of two that begin, both get the first one's.

        Raises:
            LedgerError: It was made by another version.
        """
        ...

    def add(self, keys: Iterable[Key]) -> int:
        """Queue episodes; those that are there already stay as they are. Returns how many are new."""
        ...

    def lease(self, worker: str, seconds: float, *, most: int = 1, shard: tuple[int, int] = EVERYTHING) -> list[Lease]:
        """Take up to `most` episodes that nobody has, or whose lease has run out, of shard i of n (`Key.spread`).

        One whose lease ran out counts as lost (`desktop_lost`) in its failures.
        """
        ...

    def renew(self, lease: Lease, seconds: float) -> bool:
        """Keep it for so long from now; False when it is somebody else's by now, or done.

        One that ran out and that nobody has taken since is kept too, here and below.
        """
        ...

    def finish(self, lease: Lease, result: Mapping[str, Any]) -> bool:
        """Write down what came of it, once; False, and nothing changes, when the lease is no longer held."""
        ...

    def retry(self, lease: Lease, cause: str, *, delay: float = 0.0) -> bool:
        """Queue it again, in `delay` seconds; False as for `finish`."""
        ...

    def release(self, lease: Lease) -> bool:
        """Give it back, to be leased at once, with nothing in its failures (the run is stopped); False as for `finish`.

        The number of the attempt stays used, so that no two attempts write to one directory.
        """
        ...

    def abandon(self, worker: str) -> int:
        """Give back all that a worker of this name holds, who is known to be dead. Returns how many.

        Each counts as lost, as if its lease had run out.
        """
        ...

    def rows(self) -> Sequence[Row]:
        """All episodes, in the order of their keys."""
        ...

    def counts(self, *, shard: tuple[int, int] = EVERYTHING) -> Mapping[State, int]:
        """How many of shard i of n are in each state; all three are there."""
        ...

    def close(self) -> None:
        """End the connection. Again is harmless."""
        ...
