"""A ledger in a file: for any number of processes on one machine.

This module owns the connection to SQLite. It has no tables and no states of an episode.

The file is in WAL mode, where a commit appends to one file: a process that is killed at any point leaves exactly what it
committed. With `synchronous=NORMAL` a commit does not wait for the disk (0.02 ms instead of the 4 ms of `FULL`, measured on a
cloud disk). After a power failure the last half minute of commits may be missing, but never a part of one, and these episodes
run again. Several machines need PostgreSQL: WAL needs memory that its processes share, which network file systems do not have.

Times in the file are those of the machine's monotonic clock. All its processes share it, and it cannot be set: a step of the
wall clock neither ends nor extends a lease. It begins anew with each boot, so the file names the boot that its times belong
to. The workers of an earlier boot are dead: the first process to open the file after a boot makes all episodes free that
waited or were leased.
"""

from __future__ import annotations

import functools
import os
import re
import sqlite3
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from deskhand.episodes.ledger.sql import SqlLedger, Transaction
from deskhand.errors import LedgerError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_LOCKED = re.compile(r" FOR UPDATE( SKIP LOCKED)?\b")

_MEANINGS = (
    ("SQLITE_FULL", "its disk is full", "make room and run again: what was finished is kept"),
    (
        "SQLITE_IOERR",
        "its disk fails or is full",
        "look at the disk, make room and run again: what was finished is kept",
    ),
    ("SQLITE_CORRUPT", "the file is damaged", "put it aside and run again; the attempts' own results are still there"),
    ("SQLITE_NOTADB", "the file is no ledger, or is damaged", "put it aside and run again"),
    ("SQLITE_BUSY", "another process keeps it locked", "end the process that has it open (fuser FILE), and run again"),
    ("SQLITE_CANTOPEN", "the file cannot be opened", "make its directory, and see that it may be written to"),
    ("SQLITE_READONLY", "it may not be written to", "see to the rights of the file and of its directory"),
)
"""Beginnings of SQLite's error names, their meanings, and the next steps for the user."""


class SqliteLedger(SqlLedger):
    """A `Ledger` in an SQLite file. Its threads share one connection; other processes open their own."""

    def __init__(
        self,
        path: Path,
        *,
        clock: Callable[[], float] = time.monotonic,
        boot: str | None = None,
        patience: float = 60.0,
    ) -> None:
        """Open the file, or create it.

        Args:
            path: The path of the file; its directory must exist.
            clock: Monotonic seconds, the same in all processes that use the file.
            boot: Identifies the boot since which `clock` has run; by default the current boot of this machine.
            patience: Seconds to wait for other processes' transactions, which take milliseconds each.

        Raises:
            LedgerError: It has another version, is damaged, is not a ledger, or cannot be opened.
        """
        super().__init__(str(path))
        self._boot = boot or _BOOT.read_text().strip()
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._connection: sqlite3.Connection | None = None
        try:
            self._connection = sqlite3.connect(path, timeout=patience, isolation_level=None, check_same_thread=False)
            self._connection.create_function("seconds", 0, clock)
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._do(self._open)
            self._use_wal(time.monotonic() + patience)
        except sqlite3.Error as error:
            self.close()
            raise self._error(error) from error
        except BaseException:
            self.close()
            raise

    def _open(self, transaction: Transaction, _again: bool) -> None:  # noqa: FBT001 # see _do
        found = transaction.rows("SELECT name, type FROM sqlite_master WHERE type <> 'index'")
        tables = {name for name, _ in found}
        if any(kind != "table" for _, kind in found):
            # They would run as programs of the file's author.
            raise LedgerError(f"{self.name} has views or triggers, so it is not a ledger: do not use it")
        if "ledger" in tables:
            self._check(transaction)
        elif tables:
            raise LedgerError(
                f"{self.name} is an SQLite database of something else: give the path of a ledger, or of a new file"
            )
        else:
            self._make(transaction)
        self._use_clock(transaction, self._boot)

    def _use_wal(self, deadline: float) -> None:
        """Set WAL mode, once for the file. SQLite does not wait by itself if two processes do this at the same time."""
        while True:
            try:
                (mode,) = self._execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorname != "SQLITE_BUSY" or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
                continue
            if mode != "wal":
                raise LedgerError(f"the file system of {self.name} has no shared memory: give a path on a local disk")
            return

    def _execute(self, statement: str) -> tuple[str]:
        if self._connection is None:
            raise LedgerError(f"the ledger {self.name} is closed")
        found: tuple[str] = self._connection.execute(statement).fetchone()
        return found

    def _do(self, work: Callable[[Transaction, bool], T]) -> T:
        with self._lock:
            connection = self._connection
            if connection is None:
                raise LedgerError(f"the ledger {self.name} is closed: open it again")
            if os.getpid() != self._process:
                # SQLite's locks belong to the process: using or closing the connection in a fork would release its parent's
                # locks.
                raise LedgerError(
                    f"the ledger {self.name} was opened by process {self._process}: open it in each process"
                )
            try:
                # Takes the write lock, so that nothing changes between reading and writing.
                connection.execute("BEGIN IMMEDIATE")
                try:
                    done = work(Transaction(connection.cursor(), _dialect), False)  # noqa: FBT003 # no commit's answer is ever lost
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
            except sqlite3.Error as error:
                raise self._error(error) from error
            return done

    def _error(self, error: sqlite3.Error) -> LedgerError:
        name = getattr(error, "sqlite_errorname", "")
        for beginning, meaning, hint in _MEANINGS:
            if name.startswith(beginning):
                return LedgerError(f"the ledger {self.name}: {meaning} ({error}): {hint}")
        return LedgerError(f"the ledger {self.name}: {error}: put the file aside and run again, or give another")

    def close(self) -> None:
        """See `Ledger`."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None and os.getpid() == self._process:
                connection.close()


@functools.cache
def _dialect(statement: str) -> str:
    """One process writes at a time, so no row needs a lock."""
    return _LOCKED.sub("", statement)
