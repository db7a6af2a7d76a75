"""The files of one attempt: `events.jsonl`, `result.json`, and the end state.

This module owns how they are written: one JSON object a line in order, and a result that exists only once the attempt has
ended.

Each event is in the file when the call that made it returns, and on disk within a second: a recorder that is killed loses at
most the event that it was writing.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import threading
import time
from typing import TYPE_CHECKING, Any

from deskhand.errors import RecordFull

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from deskhand.episodes.record.bounds import Bounds

EVENTS = "events.jsonl"
RESULT = "result.json"
DIGITS = 6
"""Of the fractions of seconds."""

_SYNC_PERIOD = 0.5
_IDLE = 2.0
# Events that are written even if the record is already full.
_LAST_WORDS = frozenset({"refused", "evaluate", "frame", "answer", "end"})
_ROOM_FOR_LAST_WORDS = 1 << 20


class AttemptFiles:
    """The files of one attempt; several threads may share it.

    Attributes:
        error: Why nothing more could be written; None if all is well.
    """

    def __init__(
        self, directory: Path, bounds: Bounds, *, clock: Callable[[], float], wall: Callable[[], float]
    ) -> None:
        """Make the folder. One of that name is kept under a new name, `NAME~1`.

        Raises:
            OSError: The files cannot be written.
        """
        self.error: BaseException | None = None
        self._directory = directory
        self._bounds = bounds
        self._clock = clock
        self._writing = threading.RLock()
        self._sequence = 0
        self._size = 0
        _put_aside(directory)
        directory.mkdir(parents=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._file = os.open(directory / EVENTS, flags, 0o666)
        self._began, self._began_wall = clock(), wall()

    def append(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Append an event, whose `fields` are plain data: `seq`, `t`, `wall` and `kind` are added.

        Raises:
            OSError: It could not be written: the disk is full, or the files are closed.
            RecordFull: The record has reached its limits.
        """
        with self._writing:
            last_word = kind in _LAST_WORDS
            if not last_word:
                self.refuse_if_failed()
            if self._file < 0:
                raise OSError(f"the record in {self._directory} is closed")
            t = round(self._clock() - self._began, DIGITS)
            # Times in the record are monotonic, even if the wall clock is set meanwhile.
            head = {"seq": self._sequence, "t": t, "wall": round(self._began_wall + t, DIGITS), "kind": kind}
            line = json.dumps({**head, **fields}, separators=(",", ":")).encode() + b"\n"
            room = self._bounds.bytes + (_ROOM_FOR_LAST_WORDS if last_word else 0)
            if self._size + len(line) > room or (self._sequence >= self._bounds.events and not last_word):
                what = "bytes" if self._size + len(line) > room else "events"
                raise self.failed(RecordFull(what, getattr(self._bounds, what)))
            try:
                left = memoryview(line)
                while left:
                    left = left[os.write(self._file, left) :]
            except OSError as error:
                # Truncate the partial line; if that fails too, readers skip a torn line.
                with contextlib.suppress(OSError):
                    os.ftruncate(self._file, self._size)
                raise self.failed(_named(error, self._directory / EVENTS)) from None
            self._size += len(line)
            self._sequence += 1
        _SYNCING.note(self)

    def failed(self, error: BaseException) -> BaseException:
        """Keep an error, after which nothing more is written; returns it."""
        self.error = self.error or error
        return error

    def refuse_if_failed(self) -> None:
        """Raise the error that was kept."""
        if self.error is not None:
            raise self.error

    def write_result(self, result: Mapping[str, Any]) -> None:
        """Write the result, completely or not at all.

        Raises:
            OSError: It cannot be written.
        """
        self.write_file(RESULT, json.dumps(result, indent=1).encode() + b"\n")
        for folder in (self._directory, self._directory.parent):
            _sync_folder(folder)

    def write_file(self, name: str, data: bytes) -> None:
        """Write a file beside the events, completely or not at all.

        Raises:
            OSError: It cannot be written.
        """
        temporary = self._directory / f".{name}"
        try:
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.rename(self._directory / name)
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise

    def sync(self) -> None:
        """Wait until all events are on disk.

        Raises:
            OSError: They cannot be written.
        """
        with self._writing:
            if self._file < 0:
                return
            # On a descriptor of its own, so that other threads can write meanwhile.
            file = os.dup(self._file)
        try:
            os.fdatasync(file)
        except OSError as error:
            self.error = self.error or error
            raise
        finally:
            os.close(file)

    def close(self) -> None:
        """Close the files. Further calls do nothing."""
        with contextlib.suppress(OSError):
            self.sync()
        with self._writing:
            if self._file >= 0:
                os.close(self._file)
                self._file = -1


class _Syncing:
    """A thread that brings events to disk, while there is something to do."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: set[AttemptFiles] = set()
        self._running = False

    def note(self, files: AttemptFiles) -> None:
        with self._changed:
            if files in self._waiting:
                return
            self._waiting.add(files)
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, name="deskhand-episodes-sync", daemon=True).start()
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._changed.wait_for(lambda: bool(self._waiting), _IDLE):
                    self._running = False
                    return
            # Writes in the meantime are included.
            time.sleep(_SYNC_PERIOD)
            with self._changed:
                written, self._waiting = self._waiting, set()
            for files in written:
                # The error is kept for the recorder's callers.
                with contextlib.suppress(OSError):
                    files.sync()


_SYNCING = _Syncing()


def _named(error: OSError, path: Path) -> OSError:
    return error if error.filename is not None else OSError(error.errno, error.strerror, str(path))


def _put_aside(directory: Path) -> None:
    if not directory.exists():
        return
    for number in itertools.count(1):
        other = directory.with_name(f"{directory.name}~{number}")
        if not other.exists():
            directory.rename(other)
            return


def _sync_folder(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)
