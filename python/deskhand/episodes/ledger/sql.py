"""A ledger in an SQL database: all statements, in the SQL that SQLite and PostgreSQL share.

This module owns the tables and the transitions of an episode. An episode is one row; a transition is one `UPDATE` that names
the state and the token that it starts from, so that only one of two can happen, and a result is written at most once. Where
the dialects differ, the statements contain words that each replaces: `seconds()` is the ledger's clock, `FOR UPDATE SKIP
LOCKED` locks a row until the end of the transaction, and `:name` is a value. There is no driver, no file and no clock here.
"""

from __future__ import annotations

import json
import secrets
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from deskhand._native import __version__  # only the package's version
from deskhand.episodes.ledger.ledger import EVERYTHING, Key, Lease, Row, State
from deskhand.episodes.outcome import Cause
from deskhand.errors import LedgerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

T = TypeVar("T")

_VERSION = 1

TABLES = (
    "CREATE TABLE ledger (name text PRIMARY KEY, value text NOT NULL)",
    """
    CREATE TABLE episodes (
        task text NOT NULL,
        variant text NOT NULL,
        seed bigint NOT NULL,
        repeat bigint NOT NULL,
        place bigint NOT NULL, -- they are leased in this order
        spread bigint NOT NULL, -- see Key
        state text NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'leased', 'done')),
        free double precision NOT NULL DEFAULT 0, -- from when on it may be leased: a retry's delay, or the end of the lease
        attempt bigint NOT NULL DEFAULT 0,
        worker text NOT NULL DEFAULT '',
        token text NOT NULL DEFAULT '',
        failures text NOT NULL DEFAULT '{}',
        result text,
        PRIMARY KEY (task, variant, seed, repeat),
        CHECK ((state = 'done') = (result IS NOT NULL))
    )
    """,
    "CREATE INDEX waiting ON episodes (place) WHERE state <> 'done'",
)
"""The statements for a new ledger; `_VERSION` changes with them."""

# No statement contains input: values are bound.
_KEY = " task = :task AND variant = :variant AND seed = :seed AND repeat = :repeat"
_HELD = _KEY + " AND token = :token AND state = 'leased'"

_KEEP = "INSERT INTO ledger (name, value) VALUES (:name, :value) ON CONFLICT DO NOTHING"
_KEPT = "SELECT value FROM ledger WHERE name = :name"
_CLOCK = "INSERT INTO ledger (name, value) VALUES ('clock', :value) ON CONFLICT (name) DO UPDATE SET value = :value"
_FREE_ALL = "UPDATE episodes SET free = 0 WHERE state <> 'done'"
_LAST = "SELECT COALESCE(MAX(place), -1) FROM episodes"
_ADD = """
    INSERT INTO episodes (task, variant, seed, repeat, place, spread)
    VALUES (:task, :variant, :seed, :repeat, :place, :spread) ON CONFLICT DO NOTHING
"""
_FREE = """
    SELECT task, variant, seed, repeat, attempt, failures, state FROM episodes
    WHERE state <> 'done' AND free <= seconds() AND spread % :shards = :shard
    ORDER BY place LIMIT :most FOR UPDATE SKIP LOCKED
"""
_LEASE = (
    "UPDATE episodes SET state = 'leased', attempt = :attempt, worker = :worker, token = :token, failures = :failures,"  # noqa: S608
    " free = seconds() + :seconds WHERE" + _KEY
)
_LEASED = (
    "SELECT task, variant, seed, repeat, attempt, failures FROM episodes WHERE token = :token AND state = 'leased'"
)
_RENEW = "UPDATE episodes SET free = seconds() + :seconds WHERE" + _HELD  # noqa: S608
_FINISH = "UPDATE episodes SET state = 'done', result = :result WHERE" + _HELD  # noqa: S608
_QUEUE = "UPDATE episodes SET state = 'queued', failures = :failures, free = seconds() + :delay WHERE" + _HELD  # noqa: S608
_STATE = "SELECT state FROM episodes WHERE token = :token AND" + _KEY  # noqa: S608
_OF_WORKER = """
    SELECT task, variant, seed, repeat, failures, token FROM episodes WHERE worker = :worker AND state = 'leased'
    ORDER BY place FOR UPDATE
"""
_ROWS = "SELECT task, variant, seed, repeat, state, attempt, worker, result, failures FROM episodes"
_COUNTS = "SELECT state, COUNT(*) FROM episodes WHERE spread % :shards = :shard GROUP BY state"


class _Cursor(Protocol):
    """The part of the drivers' cursors that is used (PEP 249)."""

    @property
    def rowcount(self) -> int: ...
    def execute(self, statement: Any, values: Any, /) -> Any: ...
    def executemany(self, statement: Any, values: Any, /) -> Any: ...
    def fetchall(self) -> list[tuple[Any, ...]]: ...


class Transaction:
    """Statements that take effect together or not at all."""

    __slots__ = ("_cursor", "_dialect")

    def __init__(self, cursor: _Cursor, dialect: Callable[[str], str]) -> None:
        """Wrap a cursor; its owner begins and ends the transaction.

        Args:
            cursor: The driver's cursor.
            dialect: Translates a statement.
        """
        self._cursor = cursor
        self._dialect = dialect

    def rows(self, statement: str, **values: object) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        self._cursor.execute(self._dialect(statement), values)
        return self._cursor.fetchall()

    def change(self, statement: str, **values: object) -> int:
        """Run a statement that changes rows; returns how many."""
        self._cursor.execute(self._dialect(statement), values)
        return self._cursor.rowcount

    def each(self, statement: str, values: Sequence[Mapping[str, object]]) -> int:
        """Run a statement for each of `values`; returns how many rows it changed in total."""
        if not values:
            return 0
        self._cursor.executemany(self._dialect(statement), values)
        return self._cursor.rowcount


class SqlLedger(ABC):
    """A `Ledger` on the transactions of a database.

    Attributes:
        name: The ledger's address, without any password.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def _do(self, work: Callable[[Transaction, bool], T]) -> T:
        """Run `work` in one transaction that excludes others where necessary.

        If the answer to a commit was lost, `work` is called again with True as its second argument: its changes may already
        have been made.
        """

    @abstractmethod
    def close(self) -> None:
        """See `Ledger`."""

    def _check(self, transaction: Transaction) -> None:
        found = dict(transaction.rows("SELECT name, value FROM ledger WHERE name IN ('version', 'deskhand')"))
        if found.get("version") != str(_VERSION):
            raise LedgerError(
                f"the ledger {self.name} is of version {found.get('version')} (deskhand {found.get('deskhand')}), and this is "
                f"deskhand {__version__}, which reads version {_VERSION}: go on with the one that made it, or begin a new run"
            )

    def _make(self, transaction: Transaction) -> None:
        for table in TABLES:
            transaction.change(table)
        for name, value in {"version": str(_VERSION), "deskhand": __version__}.items():
            transaction.change(_KEEP, name=name, value=value)

    def _use_clock(self, transaction: Transaction, name: str) -> None:
        """Record which clock the times belong to. If it was another one, all waiting and leased episodes become free."""
        if transaction.rows(_KEPT, name="clock") != [(name,)]:
            transaction.change(_FREE_ALL)
            transaction.change(_CLOCK, value=name)

    def begin(self, manifest: Mapping[str, Any]) -> Mapping[str, Any]:
        """See `Ledger`."""
        mine = _dump(manifest)

        def work(transaction: Transaction, _again: bool) -> str:  # noqa: FBT001 # see _do
            transaction.change(_KEEP, name="manifest", value=mine)
            value: str = transaction.rows(_KEPT, name="manifest")[0][0]
            return value

        kept: Mapping[str, Any] = json.loads(self._do(work))
        if kept.get("version") != manifest.get("version"):
            raise LedgerError(
                f"the run in the ledger {self.name} was begun with a manifest of version {kept.get('version')}, and deskhand "
                f"{__version__} writes version {manifest.get('version')}: go on with the deskhand that began it "
                f"({kept.get('deskhand')}), or begin a new run"
            )
        return kept

    def add(self, keys: Iterable[Key]) -> int:
        """See `Ledger`."""
        # Two clients that add the same keys lock the rows in the same order, so there is no deadlock.
        wanted = sorted((key, place) for place, key in enumerate(dict.fromkeys(keys), start=1))

        def work(transaction: Transaction, _again: bool) -> int:  # noqa: FBT001 # see _do
            last = transaction.rows(_LAST)[0][0]
            return transaction.each(
                _ADD, [{**key._asdict(), "place": last + place, "spread": key.spread} for key, place in wanted]
            )

        return self._do(work)

    def lease(self, worker: str, seconds: float, *, most: int = 1, shard: tuple[int, int] = EVERYTHING) -> list[Lease]:
        """See `Ledger`."""
        token = secrets.token_hex(8)

        def work(transaction: Transaction, again: bool) -> list[Lease]:  # noqa: FBT001 # see _do
            if again and (got := transaction.rows(_LEASED, token=token)):
                return [Lease(Key(*row[:4]), row[4], worker, token, json.loads(row[5])) for row in got]
            leases = []
            for *key, attempt, failures, state in transaction.rows(_FREE, shard=shard[0], shards=shard[1], most=most):
                failed = json.loads(failures)
                if state == State.LEASED:
                    failed = _counted(failed, Cause.DESKTOP_LOST)
                leases.append(Lease(Key(*key), attempt + 1, worker, token, failed))
            transaction.each(
                _LEASE, [_values(lease) | {"worker": worker, "seconds": float(seconds)} for lease in leases]
            )
            return leases

        return self._do(work)

    def renew(self, lease: Lease, seconds: float) -> bool:
        """See `Ledger`."""
        return self._change(lease, _RENEW, State.LEASED, seconds=float(seconds))

    def finish(self, lease: Lease, result: Mapping[str, Any]) -> bool:
        """See `Ledger`."""
        return self._change(lease, _FINISH, State.DONE, result=_dump(result))

    def retry(self, lease: Lease, cause: str, *, delay: float = 0.0) -> bool:
        """See `Ledger`."""
        failures = _dump(_counted(lease.failures, cause))
        return self._change(lease, _QUEUE, State.QUEUED, failures=failures, delay=float(delay))

    def release(self, lease: Lease) -> bool:
        """See `Ledger`."""
        return self._change(lease, _QUEUE, State.QUEUED, delay=0.0)

    def _change(self, lease: Lease, statement: str, becomes: State, **values: object) -> bool:
        named = _values(lease) | values

        def work(transaction: Transaction, again: bool) -> bool:  # noqa: FBT001 # see _do
            if transaction.change(statement, **named):
                return True
            return again and transaction.rows(_STATE, **named) == [(becomes,)]

        return self._do(work)

    def abandon(self, worker: str) -> int:
        """See `Ledger`."""

        def work(transaction: Transaction, _again: bool) -> int:  # noqa: FBT001 # see _do
            held = transaction.rows(_OF_WORKER, worker=worker)
            leases = [Lease(Key(*key), 0, worker, token, json.loads(failures)) for *key, failures, token in held]
            lost = [{"failures": _dump(_counted(lease.failures, Cause.DESKTOP_LOST)), "delay": 0.0} for lease in leases]
            return transaction.each(
                _QUEUE, [_values(lease) | values for lease, values in zip(leases, lost, strict=True)]
            )

        return self._do(work)

    def rows(self) -> Sequence[Row]:
        """See `Ledger`."""
        found = self._do(lambda transaction, _again: transaction.rows(_ROWS))
        return sorted(
            (
                Row(Key(*key), State(state), attempt, worker, result and json.loads(result), json.loads(failures))
                for *key, state, attempt, worker, result, failures in found
            ),
            key=lambda row: row.key,
        )

    def counts(self, *, shard: tuple[int, int] = EVERYTHING) -> Mapping[State, int]:
        """See `Ledger`."""
        found = self._do(lambda transaction, _again: transaction.rows(_COUNTS, shard=shard[0], shards=shard[1]))
        return dict.fromkeys(State, 0) | {State(state): count for state, count in found}


def _values(lease: Lease) -> dict[str, object]:
    return {**lease.key._asdict(), "attempt": lease.attempt, "token": lease.token, "failures": _dump(lease.failures)}


def _counted(failures: Mapping[str, int], cause: str) -> dict[str, int]:
    return {**failures, str(cause): failures.get(str(cause), 0) + 1}


def _dump(value: Mapping[str, Any]) -> str:
    """As ASCII, which every database stores unchanged, and without NaN, which other readers of JSON reject."""
    return json.dumps(value, allow_nan=False)
