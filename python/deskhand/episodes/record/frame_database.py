"""The SQLite files of a store: opens them, and checks them before their content is trusted."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import stat
import zlib
from typing import TYPE_CHECKING, Any

from deskhand.errors import EpisodeError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# A limit for SQLite: no value is longer, not even the list of tiles of the largest frame after packing.
_LONGEST_VALUE = 1 << 20
# The largest frame that is read from an untrusted file: as large as any supported screen.
_LARGEST_SIDE, _LARGEST_FRAME = 16384, 64 << 20
VERSION = 1
BUSY = 30.0
SCHEMA = """
CREATE TABLE IF NOT EXISTS tiles (id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, data BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS frames (hash BLOB PRIMARY KEY, width INTEGER NOT NULL, height INTEGER NOT NULL, tiles BLOB NOT NULL)
    WITHOUT ROWID;
"""


def version_of(connection: sqlite3.Connection, path: Path) -> int:
    """The version of the store; 0 if nothing has been written yet."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if version not in {0, VERSION}:
        raise EpisodeError(f"the frames in {path} are of version {version}, and this package has {VERSION}")
    return version


def _check_tables(connection: sqlite3.Connection, path: Path) -> None:
    """Check that the file has exactly a store's tables: a view or a computed column would be a program."""
    found = {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
    if {_plain(sql) for sql in found} != {_plain(sql) for sql in SCHEMA.split(";") if sql.strip()}:
        raise EpisodeError(f"{path} does not have the tables of frames: it was not written by deskhand")


def _plain(sql: str) -> str:
    return " ".join(sql.replace("IF NOT EXISTS ", "").split())


def open_reader(path: Path) -> sqlite3.Connection | None:
    """Open a connection that only reads; None if the file is only just being made."""
    if not stat.S_ISREG(path.lstat().st_mode):
        raise EpisodeError(f"{path} is a link, or not a file: frames are read from files in the run's own folder")
    # In a read-only folder SQLite cannot create its shared memory; but then no other process writes there either.
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


def inflated(data: object, limit: int, path: Path) -> bytes:
    """Unpack data of at most `limit` bytes, because a few packed bytes may contain a thousand times as many."""
    if not isinstance(data, bytes):
        raise damaged(path, f"there is {type(data).__name__} in place of bytes")
    unpacking = zlib.decompressobj()
    try:
        found = unpacking.decompress(data, limit + 1)
    except zlib.error as error:
        raise damaged(path, str(error)) from error
    if len(found) > limit:
        raise damaged(path, f"a packed value has more than {limit} bytes")
    if not unpacking.eof:
        raise damaged(path, "a packed value is incomplete")
    return found


def check_size(width: Any, height: Any, path: Path) -> None:
    """Check the size of a frame before memory is taken for it."""
    sides = (width, height)
    fits = all(isinstance(side, int) and 0 < side <= _LARGEST_SIDE for side in sides)
    if not fits or width * height > _LARGEST_FRAME:
        raise damaged(path, f"a frame is of {width}x{height} pixels, and at most {_LARGEST_FRAME} are read")


def damaged(path: Path, what: str) -> EpisodeError:
    """The error about a file whose content is not as it was written."""
    return EpisodeError(f"the frames in {path} are damaged: {what}")


@contextlib.contextmanager
def alone(directory: Path) -> Iterator[None]:
    """Lock the folder: if several processes changed the mode of a new database's journal at once, they would fail."""
    number = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(number, fcntl.LOCK_EX)
        yield
    finally:
        os.close(number)
