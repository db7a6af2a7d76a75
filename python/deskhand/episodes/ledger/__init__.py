"""Ledgers in databases: SQLite for one machine, PostgreSQL for many.

    >>> ledger = open_ledger("out/episodes.sqlite")
    >>> ledger = open_ledger("postgresql://runner@db.example/episodes?schema=run7")  # the password from PGPASSWORD or ~/.pgpass

This package owns the mapping of addresses to databases. The statements are in `sql`, shared by both; `sqlite` and `postgres`
have the differences: the clock, the lock, the errors. There are only a dozen statements, so they are written by hand:
SQLAlchemy would only have written the placeholders, for 180 ms and 29 MB even with SQLite. The states of an episode are in
`ledger`.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from deskhand._core.arguments import expect_path
from deskhand.errors import LedgerError

if TYPE_CHECKING:
    from collections.abc import Callable

    from deskhand.episodes.ledger.ledger import Ledger

__all__ = ["is_shared", "ledger_name", "open_ledger"]

_POSTGRES = ("postgresql", "postgres")


def open_ledger(where: str | Path, *, clock: Callable[[], float] = time.monotonic) -> Ledger:
    """Open a run's ledger; it is created if it does not exist.

    Args:
        where: A path, `sqlite:///path`, or a PostgreSQL URL (`pip install 'deskhand[postgres]'`) in libpq's form, with
            `schema=NAME` (`deskhand` if missing): one schema is one run.
        clock: Monotonic seconds, for SQLite, the same in all processes of the machine. PostgreSQL uses its own clock.

    Raises:
        LedgerError: It has another version, is damaged, is not a ledger, or cannot be reached; the message has no password.
        MissingExtra: psycopg is not installed.
    """
    scheme = _scheme(expect_path("open_ledger: where", where))
    if scheme in _POSTGRES:
        # Its driver takes 0.2 s to import.
        from deskhand.episodes.ledger.postgres import PostgresLedger  # noqa: PLC0415 # see above

        return PostgresLedger(str(where))
    from deskhand.episodes.ledger.sqlite import SqliteLedger  # noqa: PLC0415 # some Pythons are built without sqlite3

    return SqliteLedger(_path(where), clock=clock)


def ledger_name(where: str | Path) -> str:
    """The address without any password, for messages and manifests. It opens the same ledger.

    Raises:
        LedgerError: It is not an address of a ledger.
        MissingExtra: psycopg is not installed.
    """
    scheme = _scheme(expect_path("ledger_name: where", where))
    if scheme in _POSTGRES:
        from deskhand.episodes.ledger.postgres import Address  # noqa: PLC0415 # see above

        return Address.of(str(where)).name
    return str(_path(where))


def is_shared(where: str | Path) -> bool:
    """Whether workers on other machines can use it."""
    return _scheme(where) in _POSTGRES


def _scheme(where: str | Path) -> str:
    return where.partition("://")[0] if isinstance(where, str) and "://" in where else ""


def _path(where: str | Path) -> Path:
    scheme = _scheme(where)
    if not scheme:
        return Path(where)
    if scheme != "sqlite" or not str(where).startswith("sqlite:///"):
        # The rest of the address may contain a password.
        raise LedgerError(
            f"{scheme}:// is not the address of a ledger: give a path, sqlite:///PATH (four slashes for an absolute one) or postgresql://..."
        )
    return Path(str(where).removeprefix("sqlite:///"))
