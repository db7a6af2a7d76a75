"""Records every desktop that a program opens: `trace_openings`, for the variable `DESKHAND_TRACE`.

A trace has the layout of a run's folder, so that whatever reads a run reads it too. Each desktop is an episode without a
result. This module owns the names in it and its limits. It never stops the program: a warning reports what can no longer be
recorded.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
import re
import sys
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deskhand._core.forks import Owner
from deskhand.desktop.access import bare, core_of, desktop_of, keep
from deskhand.episodes.ledger.ledger import Key
from deskhand.episodes.record.bounds import COUNTED, Bounds
from deskhand.episodes.record.frame_store import FrameStore
from deskhand.episodes.record.reader import ATTEMPTS, FRAMES, LONGEST_PART, MANIFEST, read_part
from deskhand.episodes.record.recorder import Recorder
from deskhand.errors import DeskhandError, EpisodeError
from deskhand.launchers import targets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deskhand.desktop.connection import Core
    from deskhand.desktop.control_state import ControlEvent
    from deskhand.desktop.desktop import Desktop
    from deskhand.desktop.operations import Operation

_BOUNDS = Bounds(pixels=256 << 20)
_LARGEST = 4 << 30
_MANIFEST = {"version": 1, "trace": True}
_LONGEST_NAME = 60
_HINT = "name another directory in DESKHAND_TRACE, or unset it"


def trace_openings(directory: str | os.PathLike[str]) -> None:
    """Record each desktop that `launch`, `connect` or a pool opens in this process from now on.

    The directory is looked at when a desktop is opened. If it cannot be written, or is that of a run, opening raises.

    Args:
        directory: The trace's. What is missing of it is made, for this user only; several programs may write there.
    """
    targets.on_opening(_Trace(Path(directory).absolute()).add)


class _Trace:
    """A trace's folder."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self._owner = Owner()
        self._frames = [FrameStore(directory / FRAMES)]

    def add(self, desktop: Desktop) -> None:
        try:
            self._make()
            size = sum(path.stat().st_size for path in self._files())
        except OSError as error:
            reason = "it is a file" if isinstance(error, FileExistsError) else error.strerror or str(error)
            raise EpisodeError(f"no desktop can be recorded in {self._directory}: {reason}", _HINT) from error
        if size > _LARGEST:
            _warn(f"{self._directory} has {size >> 20} MiB, and {_LARGEST >> 20} are the most: this desktop is not")
            return
        keep(desktop, _Tracer(self, bare(desktop)))

    def begin(self, desktop: Desktop) -> Recorder:
        """The record of a desktop, in a folder of its own."""
        program = _program()
        key = self._claim(_safe(Path(program).stem) or "python", _safe(desktop.name or ""))
        recorder = Recorder(self._directory / ATTEMPTS / str(key) / "attempt-1", self._store(), bounds=_BOUNDS)
        recorder.event("begin", **key._asdict(), program=program, screen=list(desktop.size))
        try:
            recorder.frame(desktop, "first")
        except EpisodeError:
            raise
        except DeskhandError:
            # The operation itself reports that the desktop is gone, held or late.
            pass
        return recorder

    def _make(self) -> None:
        directory, manifest = self._directory, self._directory / MANIFEST
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        for part in (directory, directory / ATTEMPTS, directory / FRAMES):
            part.mkdir(exist_ok=True)
            if not os.access(part, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if not manifest.exists():
            # Complete or not at all: another program may begin at the same time.
            whole = directory / f".{MANIFEST}.{os.getpid()}"
            whole.write_text(json.dumps(_MANIFEST) + "\n", "utf-8")
            whole.rename(manifest)
        elif not _is_trace(manifest):
            raise EpisodeError(f"{manifest} is not the manifest of a trace: the directory is that of a run", _HINT)

    def _files(self) -> Iterator[Path]:
        yield from (self._directory / FRAMES).glob("*")
        yield from (self._directory / ATTEMPTS).glob("*/*/*")

    def _claim(self, task: str, variant: str) -> Key:
        """The first key whose folder is not there yet, and is now: programs that begin at once get different ones."""
        for number in itertools.count():
            key = Key(task, variant, number, 0)
            with contextlib.suppress(FileExistsError):
                (self._directory / ATTEMPTS / str(key)).mkdir()
                return key
        raise AssertionError

    def _store(self) -> FrameStore:
        with self._lock:
            if self._owner.is_parent:
                # SQLite's connection is the parent's, and must not be closed here either.
                self._owner = Owner()
                self._frames.append(FrameStore(self._directory / FRAMES))
            return self._frames[-1]


class _Tracer:
    """Stands in one desktop's gate, and begins its record with the first operation that is recorded."""

    def __init__(self, trace: _Trace, desktop: Desktop) -> None:
        self._trace = trace
        self._recorder: Recorder | None = None
        self._core: Core | None = None
        # A handler of a signal may look in the middle of a call.
        self._lock = threading.RLock()
        self._over = False
        self._first = desktop

    def before(self, operation: Operation) -> object:
        if self._over or operation.type not in COUNTED:
            return None
        if operation.holder is not None and operation.holder.private:
            return None
        try:
            return self._recording(desktop_of(operation) or self._first).before(operation)
        except (OSError, EpisodeError) as error:
            self._end(error)
            return None

    def after(self, operation: Operation, token: object, outcome: object) -> None:
        if self._recorder is None or self._over:
            return
        try:
            self._recorder.after(operation, token, outcome)
        except (OSError, EpisodeError) as error:
            self._end(error)

    def control(self, event: ControlEvent) -> None:
        if self._recorder is not None:
            self._recorder.control(event)

    def _recording(self, desktop: Desktop) -> Recorder:
        with self._lock:
            if self._recorder is None:
                self._recorder = self._trace.begin(desktop)
            core = core_of(desktop)
            if core is not self._core:
                # The first core, or that of the same desktop after a reset or a handover.
                self._core = core
                self._recorder.attach(desktop)
                core.ending.add(self._recorder.close)
            return self._recorder

    def _end(self, error: BaseException) -> None:
        with self._lock:
            was_over, self._over = self._over, True
        if was_over:
            return
        reason = f"the trace ends here: {error}"
        if self._recorder is not None:
            with contextlib.suppress(OSError, EpisodeError):
                self._recorder.event("refused", reason=reason)
            self._recorder.close()
        _warn(f"{error}: from here on this desktop is not")


def _warn(what: str) -> None:
    warnings.warn(f"{what} recorded in DESKHAND_TRACE; {_HINT}", RuntimeWarning, stacklevel=2)


def _is_trace(manifest: Path) -> bool:
    try:
        found: Any = json.loads(read_part(manifest, LONGEST_PART))
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.get("trace") is True


def _program() -> str:
    name = Path(sys.argv[0]).name if sys.argv else ""
    # It is `-c` for code that is given to Python itself.
    return "python" if not name or name.startswith("-") else name


def _safe(name: str) -> str:
    """A name for a part of a folder's name."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_-")[:_LONGEST_NAME]
