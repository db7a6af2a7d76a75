"""What happened in one attempt, written down while it happens: `Recorder`.

This module owns the files of an attempt: `events.jsonl`, one JSON object a line in the order of things, and `result.json`,
which is there only when the attempt has ended. What must never appear here: a judgement, a secret.

Each event is in the file when the call that made it returns, and on the disk within a second: whoever is killed loses at most
the one that he was writing.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import shlex
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deskhand._core.observation import Observation, remarks
from deskhand._core.redaction import Secret
from deskhand.actions import Action, Type
from deskhand.desktop.desktop import bare, commands_of, core_of
from deskhand.episodes.record.bounds import COUNTED, Bounds, Totals
from deskhand.episodes.record.sanitize import harmless
from deskhand.errors import ActionError, DeskhandError, DesktopLost, EpisodeError, PolicyDenied, RecordFull
from deskhand.machine.interface import CommandResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from deskhand._core.observation import Screenshot
    from deskhand.desktop.desktop import Desktop
    from deskhand.desktop.operations import Interceptor, Operation
    from deskhand.episodes.record.frame_store import FrameStore

__all__ = ["EVENTS", "RESULT", "Recorder"]

EVENTS = "events.jsonl"
RESULT = "result.json"

# How events are called that are not called as their operation.
_KINDS = {"screenshot": "look", "host_shell": "shell"}
_FILES = frozenset({"read_file", "write_file"})
_SYNC_PERIOD = 0.5
_IDLE = 2.0
_DIGITS = 6
# Actions have been checked, and are wanted whole: they are what is done again.
_MOST_PARTS = 1 << 20
_LONGEST_STATE = 1 << 20
# What must be told also of an attempt that has told too much.
_LAST_WORDS = frozenset({"refused", "evaluate", "frame", "answer", "end"})
_ROOM_FOR_LAST_WORDS = 1 << 20


@dataclass(slots=True)
class _Call:
    operation: Operation
    frame: str | None
    started: float


class Recorder:
    """Writes one attempt down. An `Interceptor`; several threads may share it.

    After a `Secret` was typed, frames have their ids and no pixels, since the screen may show it: as an audit log has the
    hash of a picture and not the picture. Its text is replaced by `***` in all that is written.

    Example:
        >>> recorder = Recorder("run/ep/count.s0.r0/attempt-1", store)
        >>> recorded = recorder.attach(desktop)
        >>> first = recorder.frame(desktop, "first")

    Attributes:
        directory: Where the files are.
        totals: What was heard so far.
        error: Why no more could be written, an `OSError` of the disk or a `RecordFull`; None while all is well. Whoever lets an
            agent act looks here afterwards: an agent may swallow what its calls raise.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        frames: FrameStore,
        *,
        secrets: Iterable[Secret] = (),
        pixels_after_secrets: bool = False,
        bounds: Bounds | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Begin the files of an attempt. What is there of an attempt of this name is kept: its folder is renamed to `NAME~1`.

        Args:
            directory: Where to; it is made.
            frames: Where pixels go.
            secrets: Replaced by `***` wherever they appear, besides those that are typed.
            pixels_after_secrets: Keep the pixels of frames also after a secret was typed: the screen is known not to show it.
            bounds: How much is written down.
            clock: Monotonic seconds.
            wall: Seconds since 1970.

        Raises:
            OSError: They cannot be written.
        """
        self.directory: Path = Path(directory)
        self.totals: Totals = Totals()
        self.error: BaseException | None = None
        self._frames = frames
        self._roll = frames.roll()
        self._secrets = tuple(secrets)
        self._pixels_after_secrets = pixels_after_secrets
        self._withheld = False
        self._bounds = bounds or Bounds()
        self._clock = clock
        self._desktop: Desktop | None = None
        self._generation: int | None = None
        self._frame: str | None = None
        self._home: str | None = None
        # A look takes the desktop's lock: who writes an event must not wait for that of another thread.
        self._looking = threading.RLock()
        self._writing = threading.RLock()
        self._sequence = 0
        self._size = 0
        self._calls = itertools.count(1)
        _put_aside(self.directory)
        self.directory.mkdir(parents=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._file = os.open(self.directory / EVENTS, flags, 0o666)
        self._began, self._began_wall = clock(), wall()

    def __repr__(self) -> str:
        return f"<Recorder {self.directory}>"

    # --- a desktop ---

    def attach(self, desktop: Desktop, *others: Interceptor) -> Desktop:
        """Record what is done through the view that is returned. What `others` refuse is written down as refused."""
        self._desktop = bare(desktop)
        self._generation = None
        return desktop.also(self, *others)

    def detach(self) -> None:
        """Record nothing any more, until the next `attach`."""
        self._desktop = None

    def before(self, operation: Operation) -> _Call | None:
        """See `Interceptor.before`."""
        if self._desktop is None or operation.type not in COUNTED:
            return None
        begun = self._clock()
        self._refuse_if_failed()
        frame = None
        if operation.type == "perform":
            frame = self._look()
            self._note_secrets(operation.actions)
        now = self._clock()
        self.totals.overhead += now - begun
        return _Call(operation, frame, now)

    def after(self, operation: Operation, token: object, outcome: object) -> None:
        """See `Interceptor.after`."""
        del operation
        if not isinstance(token, _Call):
            return
        ended = self._clock()
        try:
            self._write_down(token, outcome, ended - token.started)
        except (OSError, EpisodeError):
            # What the call itself raises says more.
            if not isinstance(outcome, BaseException):
                raise
        finally:
            self.totals.overhead += self._clock() - ended

    def frame(self, desktop: Desktop, cause: str = "") -> str:
        """Store what the screen shows now.

        Args:
            desktop: Whose screen.
            cause: `first` or `final`: makes an event of it.

        Returns:
            The frame's id.

        Raises:
            DesktopLost: The other side is gone.
            OSError: It cannot be written.
        """
        begun = self._clock()
        self._home = commands_of(desktop).home
        try:
            with self._looking:
                name = self._picture(desktop, bounded=not cause)
            if cause:
                self.event("frame", id=name, cause=cause)
        finally:
            self.totals.overhead += self._clock() - begun
        return name

    # --- events ---

    def event(self, kind: str, **fields: Any) -> None:
        """Append an event: `seq`, `t` (seconds since the beginning), `wall` and `kind` are added.

        Args:
            kind: What it is.
            fields: What is in it. Texts are masked and cut, and what JSON cannot say is shown as text.

        Raises:
            OSError: It could not be written: the disk is full, or the recorder was closed.
            RecordFull: The attempt has written down too much.
        """
        if kind == "frame" and self._home is not None:
            # Whoever does it again does it in another one.
            fields = {**fields, "home": self._home}
        self._append(kind, self.harmless(fields))

    def harmless(self, value: Any) -> Any:
        """A value as this attempt's files have it: plain JSON data, bounded, without the secrets that are known by now."""
        return harmless(value, text=self._bounds.text, parts=self._bounds.parts, secrets=self._secrets)

    def finish(self, result: Mapping[str, Any]) -> Mapping[str, Any]:
        """Write the result down, whole or not at all, when everything else is on the disk.

        Returns:
            What was written: without secrets, for a ledger to keep the same.

        Raises:
            OSError: It cannot be written.
        """
        begun = self._clock()
        # What an evaluation found is bounded there, and told whole here.
        told: Mapping[str, Any] = harmless(result, text=_LONGEST_STATE, parts=_MOST_PARTS, secrets=self._secrets)
        self._frames.sync()
        self.sync()
        data = json.dumps(told, indent=1).encode() + b"\n"
        temporary = self.directory / f".{RESULT}"
        try:
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.rename(self.directory / RESULT)
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        for folder in (self.directory, self.directory.parent):
            _sync_folder(folder)
        self.totals.overhead += self._clock() - begun
        return told

    def sync(self) -> None:
        """Wait until the disk has all events.

        Raises:
            OSError: It cannot be written.
        """
        with self._writing:
            if self._file < 0:
                return
            # Who writes meanwhile need not wait for the disk.
            file = os.dup(self._file)
        try:
            os.fdatasync(file)
        except OSError as error:
            self.error = self.error or error
            raise
        finally:
            os.close(file)

    def close(self) -> None:
        """Listen no more, and close the files. Again is harmless."""
        self.detach()
        with contextlib.suppress(OSError):
            self.sync()
        with self._writing:
            if self._file >= 0:
                os.close(self._file)
                self._file = -1

    # --- inside ---

    def _append(self, kind: str, fields: Mapping[str, Any]) -> None:
        with self._writing:
            last_word = kind in _LAST_WORDS
            if not last_word:
                self._refuse_if_failed()
            if self._file < 0:
                raise OSError(f"the record in {self.directory} is closed")
            t = self._seconds()
            # Times that are shown follow one another, also when the wall clock is set meanwhile.
            head = {"seq": self._sequence, "t": t, "wall": round(self._began_wall + t, _DIGITS), "kind": kind}
            line = json.dumps({**head, **fields}, separators=(",", ":")).encode() + b"\n"
            room = self._bounds.bytes + (_ROOM_FOR_LAST_WORDS if last_word else 0)
            if self._size + len(line) > room or (self._sequence >= self._bounds.events and not last_word):
                what = "bytes" if self._size + len(line) > room else "events"
                raise self._failed(RecordFull(what, getattr(self._bounds, what)))
            try:
                left = memoryview(line)
                while left:
                    left = left[os.write(self._file, left) :]
            except OSError as error:
                # Take back what was written of it; where that fails too, readers pass over a torn line.
                with contextlib.suppress(OSError):
                    os.ftruncate(self._file, self._size)
                raise self._failed(_named(error, self.directory / EVENTS)) from None
            self._size += len(line)
            self._sequence += 1
        _SYNCING.note(self)

    def _seconds(self) -> float:
        return round(self._clock() - self._began, _DIGITS)

    def _failed(self, error: BaseException) -> BaseException:
        self.error = self.error or error
        return error

    def _refuse_if_failed(self) -> None:
        if self.error is not None:
            raise self.error

    def _note_secrets(self, actions: Iterable[Action]) -> None:
        for action in actions:
            if isinstance(action, Type) and isinstance(action.text, Secret):
                self._withheld = not self._pixels_after_secrets
                if action.text and action.text not in self._secrets:
                    self._secrets = (*self._secrets, action.text)

    def _look(self, generation: int | None = None) -> str | None:
        """The id of what the screen shows, where it can be told; `generation` is what it is known to be by now."""
        with self._looking:
            if self._desktop is None or (generation is not None and generation == self._generation):
                return self._frame
            try:
                return self._picture(self._desktop)
            except DeskhandError as error:
                # Of a desktop that is lost the call itself tells.
                if isinstance(error, EpisodeError):
                    raise
                return self._frame

    def _picture(self, desktop: Desktop, *, bounded: bool = True) -> str:
        desktop = bare(desktop)
        recorded = self._desktop is not None and core_of(desktop) is core_of(self._desktop)
        if recorded and self._frame is not None:
            # One pixel tells whether there is anything new.
            pixel = desktop.screenshot(region=(0, 0, 1, 1), format="raw", cursor=False)
            if pixel.generation == self._generation:
                return self._frame
        shot = desktop.screenshot(format="raw", cursor=False)
        try:
            name = self._roll.add(shot.array(), keep=not self._withheld)
        except (OSError, EpisodeError) as error:
            raise self._failed(error) from error.__cause__
        self._frame = name
        self._generation = shot.generation if recorded else None
        if bounded and self._roll.stored > self._bounds.pixels:
            raise self._failed(RecordFull("bytes of pixels", self._bounds.pixels))
        return name

    def _write_down(self, call: _Call, answer: object, seconds: float) -> None:
        fields: dict[str, Any]
        if call.operation.type == "perform":
            fields = self._performed(call, answer)
        elif call.operation.type == "screenshot":
            self.totals.looks += 1
            shot: Screenshot | None = None if isinstance(answer, BaseException) else answer  # type: ignore[assignment] # it is
            fields = {"frame": self._look(None if shot is None else shot.generation)}
        elif call.operation.type in _FILES:
            fields = {"path": call.operation.target}
            size = len(answer) if isinstance(answer, bytes) else call.operation.size
            if size is not None:
                fields["size"] = size
        else:
            self.totals.commands += 1
            fields = self._ran(call, answer)
        if isinstance(answer, BaseException):
            fields["error"] = {"type": type(answer).__name__, "message": str(answer)}
        if self._withheld:
            fields["withheld"] = True
        fields["seconds"] = round(seconds, _DIGITS)
        whole: dict[str, Any] = {}
        if call.operation.type == "perform":
            whole["actions"] = self._described(call.operation.actions)
        elif call.operation.data is not None:
            whole = self._written(call.operation.data)
        self._append(_KINDS.get(call.operation.type, call.operation.type), {**whole, **self.harmless(fields)})

    def _performed(self, call: _Call, answer: object) -> dict[str, Any]:
        fields: dict[str, Any] = {"id": f"a{next(self._calls)}", "before": call.frame}
        if not isinstance(answer, Observation):
            # Of some errors it is known that nothing was sent.
            known = isinstance(answer, ActionError | PolicyDenied | EpisodeError)
            # Who is stopped must not wait for one more look, and a desktop that is lost has none.
            blind = known or isinstance(answer, DesktopLost) or not isinstance(answer, Exception)
            return {**fields, "after": call.frame if blind else self._look(), "unknown": not known}
        totals, elapsed = self.totals, answer.elapsed
        totals.performs += 1
        totals.actions += len(call.operation.actions)
        totals.input += elapsed.input
        totals.settle += elapsed.reaction + elapsed.settle
        totals.observe += elapsed.capture + elapsed.encode
        after = self._look(answer.generation)
        return {
            **fields,
            "after": after,
            # The screen may have gone on since what the agent got was taken.
            **({} if self._generation == answer.generation else {"later": True}),
            "rects": [list(rect) for rect in answer.rects],
            "busy": [list(rect) for rect in answer.busy],
            "settled": answer.settled,
            "reason": str(answer.reason),
            **remarks(answer),
            "cursor": list(answer.cursor),
            "elapsed": {name: round(getattr(elapsed, name), _DIGITS) for name in elapsed.__slots__},
            "error": None,
            "unknown": False,
        }

    def _ran(self, call: _Call, answer: object) -> dict[str, Any]:
        operation = call.operation
        if operation.type == "start":
            return {"argv": shlex.split(operation.target)}
        fields: dict[str, Any] = {"command": operation.target}
        if operation.cwd is not None:
            fields["cwd"] = operation.cwd
        if operation.env:
            fields["env"] = dict(operation.env)
        if isinstance(answer, CommandResult):
            for name in ("exit_code", "outcome", "stdout", "stderr"):
                fields[name] = getattr(answer, name)
        return fields

    def _written(self, data: bytes) -> dict[str, Any]:
        """What was written to a file, whole as far as there is room: it is what is done again."""
        try:
            name, text = "text", data.decode()
        except UnicodeDecodeError:
            name, text = "base64", base64.b64encode(data).decode()
        return {name: harmless(text, text=_LONGEST_STATE, parts=_MOST_PARTS, secrets=self._secrets)}

    def _described(self, actions: Iterable[Action]) -> Any:
        plain = [action.to_dict() for action in actions]
        return harmless(plain, text=self._bounds.text, parts=_MOST_PARTS, secrets=self._secrets)


class _Syncing:
    """One thread of this process, while there is something to do: brings to the disk what recorders have written."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: set[Recorder] = set()
        self._running = False

    def note(self, recorder: Recorder) -> None:
        with self._changed:
            if recorder in self._waiting:
                return
            self._waiting.add(recorder)
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
            # More that comes meanwhile goes with it.
            time.sleep(_SYNC_PERIOD)
            with self._changed:
                recorders, self._waiting = self._waiting, set()
            for recorder in recorders:
                # The recorder keeps what went wrong, for who looks.
                with contextlib.suppress(OSError):
                    recorder.sync()


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
