"""Reads what was recorded: the attempts of a run, their events, results and frames.

This module owns the layout of a run's folder for readers. It also reads runs that are still going on, attempts that were
killed, and files that end in the middle of a line. It has no desktop and writes no files.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from deskhand._core.arguments import expect_path
from deskhand.episodes.ledger import open_ledger
from deskhand.episodes.ledger.ledger import Key
from deskhand.episodes.record.attempt_files import EVENTS, RESULT
from deskhand.episodes.record.end_state import END_STATE, LARGEST, EndState
from deskhand.episodes.record.frame_store import FrameStore
from deskhand.errors import EpisodeError, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from types import TracebackType

    import numpy as np
    from numpy.typing import NDArray

    from deskhand.episodes.ledger.ledger import Row

MANIFEST = "manifest.json"
LEDGER = "episodes.sqlite"
FRAMES = "frames"
ATTEMPTS = "ep"

_VERSION = 1
_ATTEMPT = re.compile(r"attempt-([1-9]\d*)(?:~([1-9]\d*))?")
_FRAME_FIELDS = ("id", "before", "after", "frame")
# Twice the most that a recorder writes; a manifest and a result are far smaller.
_LONGEST_EVENTS, _MOST_EVENTS = 128 << 20, 100_000
LONGEST_PART = 32 << 20
"""The largest manifest or result that is read, in bytes."""
# The name of a task or a variant, which is a part of the name of its episode's folder and must not lead elsewhere.
_PART_OF_KEY = re.compile(r"[A-Za-z0-9_][\w.-]*")
_LONGEST_KEY = 200
_NOTHING = {"input": 0, "output": 0, "cost": 0.0}
_DONE = "done"
_CANCELLED = "cancelled"


@dataclass(frozen=True)
class Recording:
    """One attempt.

    Attributes:
        directory: The folder of its files.
        key: The key of its episode; from the folder's name if no event or result has it.
        attempt: The number of the attempt, from 1.
        superseded: Another attempt with the same number began later: its worker was stopped before the ledger knew of it.
    """

    directory: Path
    key: str
    attempt: int
    frames: FrameStore
    superseded: bool = False

    @classmethod
    def open(cls, directory: str | os.PathLike[str], frames: FrameStore | None = None) -> Self:
        """Open the recording in one attempt's folder.

        Args:
            directory: `attempt-1` or the like.
            frames: The store of its frames; by default the run's.

        Raises:
            EpisodeError: It is not an attempt's folder.
        """
        path = Path(directory)
        named = _ATTEMPT.fullmatch(path.absolute().name)
        if named is None or not (path / EVENTS).is_file():
            raise EpisodeError(
                f"{path} is not an attempt's folder: its name must be like attempt-1, and it must contain {EVENTS}"
            )
        store = frames or FrameStore(path.absolute().parents[2] / FRAMES)
        return cls(path, path.absolute().parent.name, int(named[1]), store, superseded=named[2] is not None)

    @cached_property
    def events(self) -> Sequence[Mapping[str, Any]]:
        """Its complete events, in order.

        Ids of frames without pixels (those after a secret was typed) are replaced by None; the ids are under `hidden`, by the
        name of the field.

        Raises:
            EpisodeError: They cannot be read.
        """
        return [self._shown(event) for event in self._lines]

    @cached_property
    def torn(self) -> bool:
        """Whether the events end in the middle of one, as when the recorder was killed."""
        return len(self._lines) < len(self._data.splitlines())

    @cached_property
    def result(self) -> Mapping[str, Any] | None:
        """The result; None if the attempt did not end.

        Raises:
            EpisodeError: It cannot be read.
        """
        return _mapping(self.directory / RESULT) if (self.directory / RESULT).exists() else None

    @property
    def end_state(self) -> EndState | None:
        """The answers that its evaluation got; None if they were not kept. Raises `EpisodeError` if they cannot be read."""
        path = self.directory / END_STATE
        return EndState.from_json(read_part(path, LARGEST)) if path.exists() else None

    @property
    def begin(self) -> Mapping[str, Any]:
        """The event that describes the episode; empty if the attempt ended before it."""
        return next((event for event in self.events if event["kind"] == "begin"), {})

    @property
    def spent(self) -> Mapping[str, float]:
        """`input`, `output` and `cost` as the agent reported them: from its result, or until it was killed.

        Raises:
            EpisodeError: They cannot be read.
        """
        if self.result is not None:
            return {**_NOTHING, **self.result.get("tokens", {}), "cost": self.result.get("cost", 0.0)}
        spends = [event for event in self._lines if event["kind"] == "spend"]
        return {name: sum((event.get(name, 0) for event in spends), start) for name, start in _NOTHING.items()}

    def frame(self, name: str) -> NDArray[np.uint8]:
        """A frame's pixels, (height, width, 3), RGB.

        Raises:
            EpisodeError: There is no such frame.
        """
        return self.frames.array(name)

    def png(self, name: str) -> bytes:
        """A frame as a PNG file.

        Raises:
            EpisodeError: There is no such frame.
        """
        return self.frames.png(name)

    @cached_property
    def _data(self) -> bytes:
        return read_part(self.directory / EVENTS, _LONGEST_EVENTS)

    @cached_property
    def _lines(self) -> Sequence[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for line in self._data.splitlines():
            try:
                event = json.loads(line)
            except RecursionError as error:
                raise EpisodeError(f"{self.directory / EVENTS}: line {len(found) + 1} is nested too deeply") from error
            except ValueError:
                # A torn line: the writer of any later line did not know it.
                break
            if not isinstance(event, dict) or not isinstance(event.get("kind"), str):
                raise EpisodeError(f"{self.directory / EVENTS}: line {len(found) + 1} is not an event")
            if len(found) >= _MOST_EVENTS:
                raise EpisodeError(f"{self.directory / EVENTS} has more than {_MOST_EVENTS} events")
            found.append(event)
        return found

    def _shown(self, event: dict[str, Any]) -> Mapping[str, Any]:
        hidden = {
            field: event[field]
            for field in _FRAME_FIELDS
            if isinstance(event.get(field), str)
            and (field != "id" or event["kind"] == "frame")
            and event[field] not in self.frames
        }
        return {**event, **dict.fromkeys(hidden), "hidden": hidden} if hidden else event


class Run:
    """A run's folder, for reading; see `open_run`.

    Attributes:
        directory: The path of the folder.
        manifest: The run's manifest.
        frames: Its frames.
    """

    def __init__(self, directory: Path, manifest: Mapping[str, Any]) -> None:
        """See `open_run`."""
        self.directory = directory
        self.manifest = manifest
        self.frames: FrameStore = FrameStore(directory / FRAMES)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Run {self.directory}>"

    @cached_property
    def rows(self) -> Sequence[Row] | None:
        """The rows of its ledger; None if the ledger is not in the folder.

        Raises:
            EpisodeError: It cannot be read.
        """
        path = self.directory / LEDGER
        if not os.access(path, os.W_OK):
            # There is no ledger, or the folder is read-only, where SQLite cannot open it.
            return None
        if not stat.S_ISREG(path.lstat().st_mode):
            raise EpisodeError(f"{path} is a link, or not a file: a run's ledger must be in its own folder")
        ledger = open_ledger(path)
        try:
            return ledger.rows()
        finally:
            ledger.close()

    @property
    def planned(self) -> int | None:
        """How many episodes are planned; None if unknown."""
        if self.rows is not None:
            return len(self.rows)
        manifest = self.manifest
        try:
            return len(manifest["tasks"]) * int(manifest["seeds"]) * int(manifest["repeats"])
        except (KeyError, TypeError, ValueError):
            return None

    def results(self) -> list[Mapping[str, Any]]:
        """The result of each episode that is done, in the order of their keys.

        From the ledger if it is in the folder; otherwise (for PostgreSQL) from the last attempt of each episode that has ended.

        Raises:
            EpisodeError: They cannot be read.
        """
        if self.rows is not None:
            return [row.result for row in self.rows if row.state == _DONE and row.result is not None]
        last: dict[str, Mapping[str, Any]] = {}
        for recording in self.recordings():
            result = recording.result
            if not recording.superseded and result is not None and result.get("cause") != _CANCELLED:
                last[recording.key] = result
        return sorted(last.values(), key=lambda each: tuple(key_of(each)))

    def spent_beside(self, results: Iterable[Mapping[str, Any]]) -> Mapping[str, float]:
        """The usage of the attempts that are not in `results`: the sums of `input`, `output` and `cost`.

        Raises:
            EpisodeError: They cannot be read.
        """
        counted = {(str(key_of(each)), each["attempt"]) for each in results}
        others = [
            each.spent for each in self.recordings() if each.superseded or (each.key, each.attempt) not in counted
        ]
        return {name: sum((each[name] for each in others), start) for name, start in _NOTHING.items()}

    def recordings(self, episode: str | None = None) -> Iterator[Recording]:
        """All attempts, by the names of the episodes and then in order.

        Args:
            episode: Only those of the episode of this name (`str` of its key).
        """
        attempts = self.directory / ATTEMPTS
        # Look for a single episode by name, so that reading each of a run's episodes does not list the folder each time.
        named_so = episode is not None and Path(episode).name == episode
        for folder in sorted(attempts.glob("*")) if episode is None else [attempts / episode] if named_so else []:
            found = [
                (int(named[1]), -int(named[2] or 0), path)
                for path in folder.glob("attempt-*")
                if (named := _ATTEMPT.fullmatch(path.name)) and (path / EVENTS).is_file()
            ]
            # Attempts that were renamed came before the one that has the name now: the first of them is the oldest.
            for number, aside, path in sorted(found, key=lambda each: (each[0], each[1] == 0, -each[1])):
                if not path.resolve().is_relative_to(self.directory.resolve()):
                    raise EpisodeError(f"{path} leads out of the run: a run's attempts must be in its own folder")
                yield Recording(path, folder.name, number, self.frames, superseded=aside != 0)

    def recording(self, of: Mapping[str, Any] | Key | str, attempt: int | None = None) -> Recording:
        """Find one attempt.

        Args:
            of: An episode: its result (which names the attempt), its key, or its name.
            attempt: The number; by default that of the result, or the last.

        Raises:
            EpisodeError: There is no such attempt.
        """
        if not isinstance(of, Key | str):
            attempt = attempt if attempt is not None else int(of["attempt"])
            of = key_of(of)
        found = [
            each
            for each in self.recordings(str(of))
            if not each.superseded and (attempt is None or each.attempt == attempt)
        ]
        if not found:
            which = "attempt" if attempt is None else f"attempt {attempt}"
            names = sorted(path.name for path in (self.directory / ATTEMPTS).glob("*"))
            shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
            raise EpisodeError(f"{self.directory} has no {which} of {of}; its episodes are: {shown or 'none'}")
        return found[-1]

    def close(self) -> None:
        """Close the files. Further calls do nothing."""
        self.frames.close()


def open_run(directory: str | os.PathLike[str]) -> Run:
    """Open a run for reading, even while it is going on.

    Args:
        directory: The directory that was given to `deskhand run --out`.

    Raises:
        EpisodeError: It is not a run's folder, or has an unknown version.
    """
    path = Path(expect_path("open_run: directory", directory))
    if not os.path.isfile(path / MANIFEST):  # noqa: PTH113 # False for a name that is too long, too
        raise EpisodeError(f"{path} is not a run: it has no {MANIFEST}; give the directory of `deskhand run --out`")
    manifest = _mapping(path / MANIFEST)
    if manifest.get("version") != _VERSION:
        raise EpisodeError(f"{path} is a run of version {manifest.get('version')}, and this package reads {_VERSION}")
    return Run(path, manifest)


def key_of(result: Mapping[str, Any]) -> Key:
    """The key of the episode of a result, or of an event that begins an episode."""
    try:
        key = Key(str(result["task"]), str(result["variant"]), int(result["seed"]), int(result["repeat"]))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise EpisodeError(f"a result does not name its episode: {error!r}") from error
    # The key is used in names of folders.
    if (
        not _PART_OF_KEY.fullmatch(key.task)
        or (key.variant and not _PART_OF_KEY.fullmatch(key.variant))
        or min(key.seed, key.repeat) < 0
        or len(str(key).encode(errors="replace")) > _LONGEST_KEY
    ):
        raise EpisodeError(f"a result has an invalid episode: {shown(tuple(key))}")
    return key


def read_part(path: Path, limit: int) -> bytes:
    """Read a file of a run, whose folder is untrusted.

    Args:
        path: Its path.
        limit: The largest size in bytes; a longer file is an error.

    Raises:
        EpisodeError: It cannot be read, is not a regular file, or is too long.
    """
    try:
        # Without O_NONBLOCK, opening a named pipe would wait for a writer.
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise EpisodeError(f"{path} is a symbolic link: a run's files must be in its own folder") from error
        raise EpisodeError(f"{path} cannot be read: {error.strerror}") from error
    with open(number, "rb") as file:  # noqa: PTH123 # a descriptor
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise EpisodeError(f"{path} is not a file")
        try:
            data = file.read(limit + 1)
        except OSError as error:
            raise EpisodeError(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > limit:
        raise EpisodeError(f"{path} has more than {limit} bytes, which is too large for a file of a run")
    return data


def _mapping(path: Path) -> Mapping[str, Any]:
    try:
        data = json.loads(read_part(path, LONGEST_PART))
    except (ValueError, RecursionError) as error:
        raise EpisodeError(f"{path} is not JSON: {error}") from error
    if not isinstance(data, dict):
        raise EpisodeError(f"{path} is not a JSON object")
    return data
