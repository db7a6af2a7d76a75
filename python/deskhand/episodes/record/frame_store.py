"""Stores the pixels of a run, each distinct part of a screen once: `FrameStore`.

A frame is cut into tiles. A tile is stored under the hash of its pixels. A frame is the list of its tiles, under a hash of
their hashes: frames with the same id have the same pixels, in every run and on every machine.

They are in SQLite databases in one folder, one for each running machine that writes there (its file is named after the
kernel's boot id). Threads, processes and containers of a machine share it, and nothing depends on the locks of a network file
system. A killed transaction leaves nothing behind.

This module owns the format. It has no episode and no desktop.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import threading
import zlib
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from deskhand._native import Screen
from deskhand.episodes.record.frame_database import (
    BUSY,
    SCHEMA,
    VERSION,
    alone,
    check_size,
    damaged,
    inflated,
    open_reader,
    version_of,
)
from deskhand.episodes.record.tiles import CHANNELS, DIGEST, NUMBER, TILE, changed_tiles, hash_of, tiles_of
from deskhand.errors import EpisodeError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

    from numpy.typing import NDArray

_LEVEL = 1
# How many numbers of tiles and of frames are kept in memory: 64 Ki take 9 MB.
_KNOWN = 1 << 16
# How many decoded tiles are kept for reading, 12 kB each: those of two frames, since consecutive frames share most of them.
_DECODED = 1024
# Older SQLite allows only 999 variables in a statement.
_MOST_ASKED = 500
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class FrameStore:
    """A folder of frames, for writing and reading. Threads may share the object, and processes may share the folder.

    Example:
        >>> with FrameStore("run/frames") as store:
        ...     roll = store.roll()
        ...     name = roll.add(desktop.screenshot(format="raw", cursor=False).array())
        ...     png = store.png(name)
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        """Use a folder; it is created when the first frame is written.

        Args:
            directory: The folder.
        """
        self.directory: Path = Path(directory)
        self._lock = threading.RLock()
        self._writer: sqlite3.Connection | None = None
        self._readers: dict[Path, sqlite3.Connection] = {}
        self._tiles: OrderedDict[bytes, int] = OrderedDict()
        self._frames: OrderedDict[bytes, None] = OrderedDict()
        self._decoded: OrderedDict[tuple[Path, int], bytes] = OrderedDict()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<FrameStore {self.directory}>"

    # --- writing ---

    def roll(self) -> Roll:
        """Begin a sequence of frames of one screen: parts that stay the same cost nothing."""
        return Roll(self)

    def add(self, rgb: NDArray[np.uint8]) -> str:
        """Store a single frame; see `Roll.add`."""
        return self.roll().add(rgb)

    def sync(self) -> None:
        """Wait until all added frames are on disk.

        Raises:
            OSError: They cannot be written.
        """
        if self._writer is None:
            return
        # On a connection of its own, so that other threads can add frames meanwhile.
        with (
            self._named(self._own_path),
            contextlib.closing(sqlite3.connect(self._own_path, timeout=BUSY, isolation_level=None)) as connection,
        ):
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def close(self) -> None:
        """Close the files. Further calls do nothing; using the store again opens them again."""
        with self._lock:
            connections = [*self._readers.values(), *([self._writer] if self._writer is not None else [])]
            self._readers, self._writer = {}, None
            for connection in connections:
                connection.close()

    def write(self, frame: bytes, size: tuple[int, int], tiles: Sequence[tuple[bytes, bytes]], numbers: Numbers) -> int:
        """Store the parts of a frame that are not stored yet; for `Roll`.

        Args:
            frame: The frame's hash.
            size: Its width and height.
            tiles: Hash and pixels of the tiles whose numbers are 0, in order.
            numbers: The numbers of all tiles; those of `tiles` are filled in.

        Returns:
            How many bytes were added.

        Raises:
            OSError: The disk is full or cannot be written.
            EpisodeError: The database has another version, is damaged, or stays locked.
        """
        with self._named(self._own_path):
            with self._lock:
                self._look_up([hash_ for hash_, _ in tiles])
                new = {hash_: pixels for hash_, pixels in tiles if hash_ not in self._tiles}
            packed = [(hash_, zlib.compress(pixels, _LEVEL)) for hash_, pixels in new.items()]
            with self._lock:
                return self._insert(frame, size, [hash_ for hash_, _ in tiles], packed, numbers)

    def _insert(
        self,
        frame: bytes,
        size: tuple[int, int],
        tiles: Sequence[bytes],
        packed: Sequence[tuple[bytes, bytes]],
        numbers: Numbers,
    ) -> int:
        connection = self._open()
        if not packed and not self._unnumbered(tiles) and frame in self._frames:
            numbers[numbers == 0] = [self._tiles[hash_] for hash_ in tiles]
            return 0
        connection.execute("BEGIN IMMEDIATE")
        added = 0
        mine: dict[bytes, int] = {}
        try:
            for hash_, data in packed:
                new = connection.execute("INSERT OR IGNORE INTO tiles (hash, data) VALUES (?, ?)", (hash_, data))
                added += len(data) if new.rowcount == 1 else 0
                if new.rowcount == 1 and new.lastrowid is not None:
                    mine[hash_] = new.lastrowid
            for hash_ in self._unnumbered(tiles):
                if hash_ not in mine:
                    # Another writer has stored it meanwhile.
                    row = connection.execute("SELECT id FROM tiles WHERE hash = ?", (hash_,)).fetchone()
                    mine[hash_] = row[0]
            filled = numbers.copy()
            filled[numbers == 0] = [mine.get(hash_) or self._tiles[hash_] for hash_ in tiles]
            listed = zlib.compress(filled.tobytes(), _LEVEL)
            new = connection.execute("INSERT OR IGNORE INTO frames VALUES (?, ?, ?, ?)", (frame, *size, listed))
            added += len(listed) if new.rowcount == 1 else 0
            connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise
        numbers[:] = filled
        self._tiles.update(mine)
        self._frames[frame] = None
        for known in (self._tiles, self._frames):
            while len(known) > _KNOWN:
                known.popitem(last=False)
        return added

    def _unnumbered(self, tiles: Sequence[bytes]) -> list[bytes]:
        return [hash_ for hash_ in dict.fromkeys(tiles) if hash_ not in self._tiles]

    def _look_up(self, tiles: Sequence[bytes]) -> None:
        connection = self._open()
        unknown = self._unnumbered(tiles)
        for start in range(0, len(unknown), _MOST_ASKED):
            asked = unknown[start : start + _MOST_ASKED]
            marks = ",".join("?" * len(asked))
            rows = connection.execute(f"SELECT hash, id FROM tiles WHERE hash IN ({marks})", asked)  # noqa: S608 # marks only
            self._tiles.update(rows.fetchall())
        for hash_ in tiles:
            # Keep recently used entries.
            if hash_ in self._tiles:
                self._tiles.move_to_end(hash_)

    @property
    def _own_path(self) -> Path:
        return self.directory / f"{_BOOT_ID.read_text(encoding='ascii').strip()}.sqlite"

    def _open(self) -> sqlite3.Connection:
        if self._writer is None:
            self.directory.mkdir(parents=True, exist_ok=True)
            with alone(self.directory):
                self._writer = self._opened(self._own_path)
        return self._writer

    def _opened(self, path: Path) -> sqlite3.Connection:
        connection = sqlite3.connect(path, timeout=BUSY, isolation_level=None, check_same_thread=False)
        try:
            version = version_of(connection, path)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            if version == 0:
                connection.executescript(f"BEGIN IMMEDIATE;{SCHEMA}PRAGMA user_version = {VERSION};COMMIT;")
        except BaseException:
            connection.close()
            raise
        return connection

    # --- reading ---

    def __contains__(self, frame: str) -> bool:
        with self._lock:
            return self._found(frame) is not None

    def array(self, frame: str) -> NDArray[np.uint8]:
        """The pixels of a frame: (height, width, 3), RGB.

        Raises:
            EpisodeError: There is no such frame, or a part of it is damaged.
        """
        with self._lock:
            found = self._found(frame)
            if found is None:
                raise EpisodeError(f"there is no frame {frame} in {self.directory}")
            path, (width, height, listed) = found
            with self._named(path):
                check_size(width, height, path)
                places = tiles_of(width, height)
                numbers = np.frombuffer(inflated(listed, len(places) * NUMBER, path), np.uint32)
                if len(numbers) != len(places):
                    raise damaged(path, f"{frame} has {len(numbers)} tiles instead of {len(places)}")
                self._decode(path, numbers)
                pixels = np.empty((height, width, CHANNELS), np.uint8)
                for number, (rows, columns) in zip(numbers.tolist(), places, strict=True):
                    part, tile = pixels[rows, columns], self._decoded[path, number]
                    if len(tile) != part.size:
                        raise damaged(path, f"a tile of {frame} has {len(tile)} bytes instead of {part.size}")
                    part[:] = np.frombuffer(tile, np.uint8).reshape(part.shape)
        return pixels

    def png(self, frame: str) -> bytes:
        """A frame as a PNG file.

        Raises:
            EpisodeError: There is no such frame, or a part of it is damaged.
        """
        return png_of(self.array(frame))

    def _decode(self, path: Path, numbers: NDArray[np.uint32]) -> None:
        wanted = set(numbers.tolist())
        while len(self._decoded) > max(_DECODED, 2 * len(wanted)):
            self._decoded.popitem(last=False)
        missing = [number for number in wanted if (path, number) not in self._decoded]
        reader = self._readers[path]
        for start in range(0, len(missing), _MOST_ASKED):
            asked = missing[start : start + _MOST_ASKED]
            marks = ",".join("?" * len(asked))
            for number, hash_, data in reader.execute(
                f"SELECT id, hash, data FROM tiles WHERE id IN ({marks})",  # noqa: S608 # marks only
                asked,
            ):
                pixels = inflated(data, TILE, path)
                if hash_of(pixels) != hash_:
                    raise damaged(path, "a tile does not match its hash")
                self._decoded[path, number] = pixels
        for number in wanted:
            if (path, number) not in self._decoded:
                raise damaged(path, "a tile is missing")
            self._decoded.move_to_end((path, number))

    def _found(self, frame: str) -> tuple[Path, tuple[int, int, bytes]] | None:
        try:
            hash_ = bytes.fromhex(frame)
        except ValueError:
            return None
        for path in sorted(self.directory.glob("*.sqlite")):
            with self._named(path):
                if path not in self._readers:
                    if (reader := open_reader(path)) is None:
                        continue
                    self._readers[path] = reader
                row = self._readers[path].execute("SELECT width, height, tiles FROM frames WHERE hash = ?", (hash_,))
                if (found := row.fetchone()) is not None:
                    return path, found
        return None

    @contextlib.contextmanager
    def _named(self, path: Path) -> Iterator[None]:
        """Convert errors of SQLite into errors with a clear message."""
        try:
            yield
        except sqlite3.Error as error:
            kind = getattr(error, "sqlite_errorname", "")
            if kind == "SQLITE_FULL":
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from error
            if kind.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM")):
                number = errno.EIO if kind.startswith("SQLITE_IOERR") else errno.EACCES
                raise OSError(number, f"{os.strerror(number)} ({error})", str(path)) from error
            raise EpisodeError(f"the frames in {path} cannot be used: {error}") from error


Numbers = np.ndarray[Any, np.dtype[np.uint32]]


class Roll:
    """A sequence of frames of one screen. Not thread-safe.

    Attributes:
        stored: How many bytes its frames have added to the store.
    """

    def __init__(self, store: FrameStore) -> None:
        """Begin a sequence; see `FrameStore.roll`."""
        self._store = store
        self._last: NDArray[np.uint8] | None = None
        self._hashes = np.empty((0, DIGEST), np.uint8)
        self._numbers: Numbers = np.empty(0, np.uint32)
        self._name = ""
        self.stored: int = 0

    def add(self, rgb: NDArray[np.uint8], *, keep: bool = True) -> str:
        """Store a frame unless it is stored already, and return its id.

        Args:
            rgb: Its pixels, (height, width, 3), which must not change afterwards.
            keep: False only computes the id, and stores nothing.

        Raises:
            OSError: The disk is full or cannot be written.
            EpisodeError: The database has another version, is damaged, or stays locked.
        """
        rgb = np.ascontiguousarray(rgb)
        if rgb.dtype != np.uint8 or rgb.ndim != CHANNELS or rgb.shape[2] != CHANNELS or rgb.size == 0:
            raise EpisodeError(f"a frame is an array (height, width, 3) of bytes, not {rgb.shape} of {rgb.dtype}")
        height, width, _ = rgb.shape
        places = tiles_of(width, height)
        if self._last is not None and self._last.shape == rgb.shape:
            changed = changed_tiles(self._last, rgb)
        else:
            changed = list(range(len(places)))
            self._hashes = np.zeros((len(places), DIGEST), np.uint8)
            self._numbers = np.zeros(len(places), np.uint32)
        for index in changed:
            hash_ = hash_of(rgb[places[index]].tobytes())
            self._hashes[index] = np.frombuffer(hash_, np.uint8)
        self._numbers[changed] = 0
        self._last = rgb
        if changed:
            head = width.to_bytes(4, "big") + height.to_bytes(4, "big")
            self._name = hash_of(head + self._hashes.tobytes()).hex()
        if keep and (changed or not self._numbers.all()):
            missing = np.flatnonzero(self._numbers == 0).tolist()
            tiles = [(self._hashes[index].tobytes(), rgb[places[index]].tobytes()) for index in missing]
            self.stored += self._store.write(bytes.fromhex(self._name), (width, height), tiles, self._numbers)
        return self._name


def png_of(rgb: NDArray[np.uint8]) -> bytes:
    """Pixels as a PNG file."""
    height, width, _ = rgb.shape
    bgrx = np.zeros((height, width, 4), np.uint8)
    bgrx[..., :3] = rgb[..., ::-1]
    screen = Screen(width, height)
    screen.update((0, 0, width, height), bgrx.tobytes(), 0.0)
    return screen.png(cursor=False)
