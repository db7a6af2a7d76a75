"""The SQLite files of a store: opened, and checked before anything in them is believed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import stat
from typing import TYPE_CHECKING

from deskhand.errors import EpisodeError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


__all__ = ["BUSY", "SCHEMA", "VERSION", "alone", "open_reader", "version_of"]

# SQLite then has nothing longer: the largest frame's list of tiles is shorter, even where packing makes it longer.
_LONGEST_VALUE = 1 << 20
VERSION = 1
BUSY = 30.0
SCHEMA = """
CREATE TABLE IF NOT EXISTS tiles (id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, data BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS frames (hash BLOB PRIMARY KEY, width INTEGER NOT NULL, height INTEGER NOT NULL, tiles BLOB NOT NULL)
    WITHOUT ROWID;
"""


def version_of(connection: sqlite3.Connection, path: Path) -> int:
    """The version of the store; 0 where nothing was written yet."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if version not in {0, VERSION}:
        raise EpisodeError(f"the frames in {path} are of version {version}, and this package has {VERSION}")
    return version


def _check_tables(connection: sqlite3.Connection, path: Path) -> None:
    """Whether these are the tables of a store, as it makes them: a view, or a column that is computed, would be a program."""
    found = {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
    if {_plain(sql) for sql in found} != {_plain(sql) for sql in SCHEMA.split(";") if sql.strip()}:
        raise EpisodeError(f"{path} has other tables than frames have: it was not written by deskhand")


def _plain(sql: str) -> str:
    return " ".join(sql.replace("IF NOT EXISTS ", "").split())


def open_reader(path: Path) -> sqlite3.Connection | None:
    """A connection that only reads; None of a file that is just being made."""
    if not stat.S_ISREG(path.lstat().st_mode):
        raise EpisodeError(f"{path} is a link, or no file: frames are read from files in the run's own folder")
    # Where nothing may be written, its shared memory cannot be made; then nobody writes to it either.
    for how in ("mode=ro", "immutable=1"):
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?{how}", uri=True, timeout=BUSY, check_same_thread=False
        )
        try:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
            if version_of(connection, path):
                _check_tables(connection, path)
                return connection
        except sqlite3.OperationalError:
            connection.close()
            if how != "mode=ro" or os.access(path.parent, os.W_OK):
                raise
        except BaseException:
            connection.close()
            raise
        else:
            connection.close()
            return None
    return None


@contextlib.contextmanager
def alone(directory: Path) -> Iterator[None]:
    """Of several processes that begin at once, one makes the database: two that change its journal's mode refuse each other."""
    number = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(number, fcntl.LOCK_EX)
        yield
    finally:
        os.close(number)
