"""Ledgers in databases: SQLite for one machine, PostgreSQL for many.

    >>> ledger = open_ledger("out/episodes.sqlite")
    >>> ledger = open_ledger("postgresql://runner@db.example/episodes?schema=run7")  # the password from PGPASSWORD or ~/.pgpass

This package owns which database an address means. The statements are in `sql`, once for both; `sqlite` and `postgres` have what
differs: the clock, the lock, the errors. They are our own because there are a dozen of them: SQLAlchemy would have written the
placeholders, and taken 180 ms and 29 MB for it wherever SQLite is used. What must never appear here: a state of an episode.
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
    """Open a run's ledger; one that is not there is made.

    Args:
        where: A path, `sqlite:///path`, or a PostgreSQL URL (`pip install 'deskhand[postgres]'`) as libpq takes it, with its
            `schema=NAME` (`deskhand` if missing): one schema is one run.
        clock: Monotonic seconds, for SQLite, the same in all processes of the machine. PostgreSQL has its own.

    Raises:
        LedgerError: It is of another version, damaged, no ledger, or cannot be reached; the message has no password.
        MissingExtra: psycopg is not installed.
    """
    scheme = _scheme(expect_path("open_ledger: where", where))
    if scheme in _POSTGRES:
        # Its driver takes a fifth of a second to import.
        from deskhand.episodes.ledger.postgres import PostgresLedger  # noqa: PLC0415 # see above

        return PostgresLedger(str(where))
    from deskhand.episodes.ledger.sqlite import SqliteLedger  # noqa: PLC0415 # likewise, in Pythons without it

    return SqliteLedger(_path(where), clock=clock)


def ledger_name(where: str | Path) -> str:
    """The same address without any password, for messages and manifests. It opens the same ledger.

    Raises:
        LedgerError: It is no address of a ledger.
        MissingExtra: psycopg is not installed.
    """
    scheme = _scheme(expect_path("ledger_name: where", where))
    if scheme in _POSTGRES:
        from deskhand.episodes.ledger.postgres import Address  # noqa: PLC0415 # see above

        return Address.of(str(where)).name
    return str(_path(where))


def is_shared(where: str | Path) -> bool:
    """Whether workers on other machines can use it too."""
    return _scheme(where) in _POSTGRES


def _scheme(where: str | Path) -> str:
    return where.partition("://")[0] if isinstance(where, str) and "://" in where else ""


def _path(where: str | Path) -> Path:
    scheme = _scheme(where)
    if not scheme:
        return Path(where)
    if scheme != "sqlite" or not str(where).startswith("sqlite:///"):
        # No more of it is shown: it may have a password.
        raise LedgerError(
            f"{scheme}:// is no address of a ledger: give a path, sqlite:///PATH (four slashes for an absolute one) or postgresql://..."
        )
    return Path(str(where).removeprefix("sqlite:///"))
