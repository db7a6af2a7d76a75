"""A ledger on a server: for workers on any number of machines.

This module owns the connection to PostgreSQL, and how it recovers. It has no tables and no states of an episode, and puts no
password into a message.

A broken connection is made again for up to a minute (the server restarts, the network is down for a while). A transaction that
was running may have been committed, and is repeated with that in mind. The server ends a transaction whose client sends
nothing for 20 s, so that a machine that has dropped off the network does not lock rows.

Leases are timed by the server's wall clock, the only clock that all its clients share. If it is set ahead by more than a
lease, workers lose their leases: their results are refused and the episodes are tried again. If it is set back, dead workers
on other machines keep their leases for that much longer.
"""

from __future__ import annotations

import functools
import os
import re
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import quote, unquote, urlencode

from deskhand._core.extras import load
from deskhand._core.redaction import Secret, one_line
from deskhand.episodes.ledger.sql import SqlLedger, Transaction
from deskhand.errors import LedgerError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_SCHEMA = "deskhand"
_IN_FRONT = ("host", "port", "user", "dbname")
_SECRET = re.compile("password|secret", re.IGNORECASE)
_DEFAULTS = {
    "application_name": "deskhand",
    "connect_timeout": "10",
    # A server that has vanished is noticed within half a minute, on idle and on waiting connections.
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "25000",
}
_SETTINGS = {
    "idle_in_transaction_session_timeout": "20s",
    "lock_timeout": "20s",
    "search_path": "",
    "client_encoding": "UTF8",
}
_PAUSE = 0.5
_ROLLED_BACK = "40"
"""The class of SQLSTATEs after which a transaction may be repeated: a deadlock, a conflict."""
_LONGEST_REASON = 300

_VALUE = re.compile(r"(?<!:):(\w+)")

_HINTS = {
    "53100": "its disk is full: make room there, and run again: what was finished is kept",
    "53300": "it has no connection left: raise max_connections, or run fewer workers",
    "25006": "it is a standby or is read-only: give the address of the primary",
    "42501": "ask its owner for the right to use and to create in the schema",
    "42P07": "the schema has other tables: give another by ?schema=NAME",
}
"""The next step for the user, by SQLSTATE; a failure to connect has none."""
_OTHER = "the server's log may have more"
_UNREACHED = (
    "see that the server runs, that the network leads to it, that the database is there, and that PGPASSWORD or PGPASSFILE has "
    "the password"
)


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a ledger.

    Attributes:
        conninfo: The form for libpq, with possible secrets.
        schema: The schema with the tables.
        name: The URL without secrets.
    """

    conninfo: Secret
    schema: str
    name: str

    @classmethod
    def of(cls, url: str) -> Self:
        """Parse a URL.

        Raises:
            LedgerError: libpq cannot parse it.
            MissingExtra: psycopg is not installed.
        """
        conninfo = load("psycopg.conninfo", "postgres")
        address, _, query = url.partition("?")
        options = [option.partition("=") for option in query.split("&") if option]
        schema = next((unquote(value) for name, _, value in options if name == "schema"), _SCHEMA)
        rest = "&".join("".join(option) for option in options if option[0] != "schema")
        try:
            found = conninfo.conninfo_to_dict(f"{address}?{rest}")
        except load("psycopg", "postgres").Error:
            # libpq's own message contains parts of the URL, and so perhaps the password.
            raise LedgerError(
                "the PostgreSQL URL of the ledger cannot be understood: write postgresql://USER@HOST/DATABASE?schema=RUN, with "
                "special characters as %XX, and leave the password to PGPASSWORD or PGPASSFILE"
            ) from None
        shown = {key: str(value) for key, value in found.items() if not _SECRET.search(key)}
        others = {key: value for key, value in shown.items() if key not in _IN_FRONT} | {"schema": schema}
        user = quote(shown["user"], safe="") + "@" if "user" in shown else ""
        place = ",".join(quote(host, safe="[:]") for host in shown.get("host", "").split(","))
        port = f":{shown['port']}" if "port" in shown else ""
        database = quote(shown.get("dbname", ""), safe="")
        name = f"postgresql://{user}{place}{port}/{database}?{urlencode(others, quote_via=quote)}"
        made: str = conninfo.make_conninfo("", **{**_DEFAULTS, **found})
        return cls(Secret(made), schema, name)


class PostgresLedger(SqlLedger):
    """A `Ledger` in a schema of a PostgreSQL database (12 or newer). Its threads share one connection."""

    def __init__(
        self,
        url: str,
        *,
        patience: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Connect, and create the schema and its tables if they do not exist.

        Args:
            url: In libpq's form, with `schema=NAME`.
            patience: For how many seconds a broken connection is retried.
            clock: Monotonic seconds, for `patience`.
            sleep: Waits between two tries.

        Raises:
            LedgerError: It has another version, or cannot be reached; the message has no password.
            MissingExtra: psycopg is not installed.
        """
        self._psycopg = load("psycopg", "postgres")
        self._address = Address.of(url)
        super().__init__(self._address.name)
        self._patience = patience
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.RLock()
        self._closed = False
        self._process = os.getpid()
        self._connection: Any = None
        try:
            self._connection = self._connected()
            self._do(self._open)
        except self._psycopg.Error as error:
            raise self._error(error) from error
        except BaseException:
            self.close()
            raise

    def _connected(self) -> Any:
        connection = self._psycopg.connect(self._address.conninfo.reveal(), autocommit=True)
        try:
            connection.isolation_level = self._psycopg.IsolationLevel.READ_COMMITTED
            identifier = load("psycopg.sql", "postgres").Identifier(self._address.schema).as_string(connection)
            for name, value in {**_SETTINGS, "search_path": identifier}.items():
                connection.execute("SELECT set_config(%s, %s, false)", (name, value))
        except BaseException:
            connection.close()
            raise
        return connection

    def _open(self, transaction: Transaction, _again: bool) -> None:  # noqa: FBT001 # see _do
        # Two clients that find nothing create it one after the other.
        transaction.rows("SELECT pg_advisory_xact_lock(hashtext(:schema))", schema=self._address.schema)
        there = "SELECT 1 FROM pg_tables WHERE schemaname = :schema AND tablename = 'ledger'"
        if transaction.rows(there, schema=self._address.schema):
            self._check(transaction)
            return
        if not transaction.rows("SELECT 1 FROM pg_namespace WHERE nspname = :schema", schema=self._address.schema):
            transaction.change(
                "CREATE SCHEMA " + load("psycopg.sql", "postgres").Identifier(self._address.schema).as_string()
            )
        self._make(transaction)

    def _do(self, work: Callable[[Transaction, bool], T]) -> T:
        with self._lock:
            if self._closed:
                raise LedgerError(f"the ledger {self.name} is closed: open it again")
            if os.getpid() != self._process:
                raise LedgerError(
                    f"the ledger {self.name} was opened by process {self._process}: open it in each process"
                )
            deadline = self._clock() + self._patience
            again = False
            while True:
                try:
                    if self._connection.closed:
                        self._connection = self._connected()
                    with self._connection.transaction(), self._connection.cursor() as cursor:
                        done = work(Transaction(cursor, _dialect), again)
                except self._psycopg.Error as error:
                    conflict = (error.sqlstate or "").startswith(_ROLLED_BACK)
                    if not (conflict or self._connection.closed) or self._clock() >= deadline:
                        raise self._error(error) from error
                    if not conflict:
                        again = True
                        self._sleep(_PAUSE)
                else:
                    return done

    def _error(self, error: Any) -> LedgerError:
        reason = one_line(" ".join(str(error).split()), _LONGEST_REASON)
        hint = _HINTS.get(error.sqlstate, _OTHER) if error.sqlstate else _UNREACHED
        return LedgerError(f"the ledger {self.name}: {reason}: {hint}")

    def close(self) -> None:
        """See `Ledger`."""
        with self._lock:
            self._closed = True
            if self._connection is not None and os.getpid() == self._process:
                self._connection.close()


@functools.cache
def _dialect(statement: str) -> str:
    """The server's clock at the beginning of the transaction: one clock for workers on all machines."""
    clock = statement.replace("seconds()", "CAST(EXTRACT(EPOCH FROM now()) AS double precision)")
    return _VALUE.sub(r"%(\1)s", clock.replace("%", "%%"))
