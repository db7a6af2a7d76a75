"""Which worker has which episode, and which are done: the source of truth of a run, with any engine.

This module owns the states of an episode, and the promises of every ledger. An episode goes from `queued` to `leased` to
`done`, and back to `queued` when its lease expires or an attempt is to be repeated. The databases are in
`deskhand.episodes.ledger`; there is no desktop and no wait here.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

EVERYTHING = (0, 1)
"""The one shard of a run that is not divided."""


class State(StrEnum):
    """The state of an episode."""

    QUEUED = "queued"
    LEASED = "leased"
    DONE = "done"


class Key(NamedTuple):
    """The identity of an episode, which is done once: two equal keys are the same episode.

    Attributes:
        task: The task's name.
        variant: The task's variant; empty for most tasks.
        seed: The number of the instance: 0, 1, 2...
        repeat: The number of the repetition of an instance: 0, 1, 2...
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
        """0...2**31 - 1, the same on every machine: with n shards, the episode is in shard `spread % n`."""
        return int.from_bytes(hashlib.sha256(repr(tuple(self)).encode()).digest()[:4], "big") >> 1


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to try an episode, until a time.

    Attributes:
        key: The episode.
        attempt: How many times the episode has been leased, from 1. It names the directory of an attempt, and no two leases of
            an episode have the same number.
        worker: The worker that has it.
        token: Proves that it is this lease, and not a later one of the same episode.
        failures: How the attempts before ended, by cause.
    """

    key: Key
    attempt: int
    worker: str
    token: str
    failures: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Row:
    """The ledger's row for one episode.

    Attributes:
        key: The episode.
        state: Its state.
        attempt: How many times it was leased.
        worker: The worker that has it or had it last.
        result: Its result, once it is done.
        failures: How attempts that were repeated ended, by cause.
    """

    key: Key
    state: State
    attempt: int
    worker: str
    result: Mapping[str, Any] | None
    failures: Mapping[str, int]


class Ledger(Protocol):
    """The interface of every ledger. Calls may come from any thread. Each is one transaction, and may be killed at any point.

    Times are the ledger's own (one clock for all workers). Every call raises LedgerError when the ledger is damaged, cannot be
    reached or written, or is closed; then either nothing has changed, or everything.
    """

    def begin(self, manifest: Mapping[str, Any]) -> Mapping[str, Any]:
        """Store the run's manifest, or return the stored one: if two begin, both get the first one's.

        Raises:
            LedgerError: The run was made by another version.
        """
        ...

    def add(self, keys: Iterable[Key]) -> int:
        """Queue episodes; existing ones are not changed. Returns how many are new."""
        ...

    def lease(self, worker: str, seconds: float, *, most: int = 1, shard: tuple[int, int] = EVERYTHING) -> list[Lease]:
        """Take up to `most` episodes of shard i of n (`Key.spread`) that are free or whose lease has expired.

        An expired lease counts as lost (`desktop_lost`) in the episode's failures.
        """
        ...

    def renew(self, lease: Lease, seconds: float) -> bool:
        """Extend a lease to `seconds` from now; False if another worker has the episode by now, or it is done.

        An expired lease that no other worker has taken since still counts as held, here and below.
        """
        ...

    def finish(self, lease: Lease, result: Mapping[str, Any]) -> bool:
        """Store the result, once. If the lease is no longer held, nothing changes, and False is returned."""
        ...

    def retry(self, lease: Lease, cause: str, *, delay: float = 0.0) -> bool:
        """Queue the episode again, in `delay` seconds; False as for `finish`."""
        ...

    def release(self, lease: Lease) -> bool:
        """Give the episode back, to be leased at once, without a failure (the run was stopped); False as for `finish`.

        The attempt's number stays used, so that no two attempts write to one directory.
        """
        ...

    def abandon(self, worker: str) -> int:
        """Give back everything that a worker of this name holds, after its death. Returns how many episodes that are.

        Each counts as lost, as if its lease had expired.
        """
        ...

    def rows(self) -> Sequence[Row]:
        """All episodes, in the order of their keys."""
        ...

    def counts(self, *, shard: tuple[int, int] = EVERYTHING) -> Mapping[State, int]:
        """The number of episodes of shard i of n in each of the three states."""
        ...

    def close(self) -> None:
        """Close the connection. Further calls do nothing."""
        ...
