"""Records one attempt while it happens: `Recorder`.

This module owns the files of an attempt: `events.jsonl`, one JSON object a line in order, and `result.json`, which exists only
once the attempt has ended. It judges nothing and writes no secrets.

Each event is in the file when the call that made it returns, and on disk within a second: a recorder that is killed loses at
most the event that it was writing.
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

from deskhand._core.elements import Elements
from deskhand._core.observation import Observation, remarks
from deskhand._core.redaction import Secret
from deskhand.actions import Action, Type
from deskhand.desktop.access import bare, commands_of, core_of
from deskhand.episodes.record.bounds import COUNTED, Bounds, Totals
from deskhand.episodes.record.sanitize import harmless
from deskhand.errors import ActionError, DeskhandError, DesktopHeld, DesktopLost, EpisodeError, PolicyDenied, RecordFull
from deskhand.machine.interface import CommandResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from deskhand._core.observation import Screenshot
    from deskhand.desktop.control_state import ControlEvent
    from deskhand.desktop.desktop import Desktop
    from deskhand.desktop.operations import Interceptor, Operation
    from deskhand.episodes.record.frame_store import FrameStore

EVENTS = "events.jsonl"
RESULT = "result.json"

# The kinds of events whose operation has another name.
_KINDS = {"screenshot": "look", "host_shell": "shell"}
_FILES = frozenset({"read_file", "write_file"})
_SYNC_PERIOD = 0.5
_IDLE = 2.0
_DIGITS = 6
# Actions have been checked, and are needed completely for a replay.
_MOST_PARTS = 1 << 20
_LONGEST_STATE = 1 << 20
# Events that are written even if the record is already full.
_LAST_WORDS = frozenset({"refused", "evaluate", "frame", "answer", "end"})
_ROOM_FOR_LAST_WORDS = 1 << 20


@dataclass(slots=True)
class _Call:
    operation: Operation
    frame: str | None
    started: float


class Recorder:
    """Records one attempt. An `Interceptor`; several threads may share it.

    After a `Secret` was typed, frames have ids but no pixels, since the screen may show the secret: an audit log too has only
    the hash of a picture. The secret's text is replaced by `***` in everything that is written.

    Example:
        >>> recorder = Recorder("run/ep/count.s0.r0/attempt-1", store)
        >>> recorded = recorder.attach(desktop)
        >>> first = recorder.frame(desktop, "first")

    Attributes:
        directory: The folder of the files.
        totals: The totals so far.
        error: Why nothing more could be written, an `OSError` of the disk or a `RecordFull`; None if all is well. Check this
            after an agent's part: an agent may swallow the exceptions of its calls.
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
        """Begin the files of an attempt. If the folder exists, it is kept under a new name, `NAME~1`.

        Args:
            directory: The folder; it is created.
            frames: The store for pixels.
            secrets: Replaced by `***` wherever they appear, in addition to those that are typed.
            pixels_after_secrets: Keep the pixels of frames even after a secret was typed: the screen is known not to show it.
            bounds: The limits of the record.
            clock: Monotonic seconds.
            wall: Seconds since 1970.

        Raises:
            OSError: The files cannot be written.
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
        self._elements: Elements | None = None
        self._home: str | None = None
        # A look takes the desktop's lock, and another thread must be able to write events meanwhile.
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
        """Record the operations of the returned view. Operations that `others` deny are recorded as refused."""
        self._desktop = bare(desktop)
        self._generation = None
        self._elements = None
        return desktop.also(self, *others)

    def detach(self) -> None:
        """Record nothing until the next `attach`."""
        self._desktop = None

    def before(self, operation: Operation) -> _Call | None:
        """See `Interceptor.before`."""
        if self._desktop is None or operation.type not in COUNTED:
            return None
        if operation.holder is not None and operation.holder.private:
            # A person may be typing a password.
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
            # The call's own exception says more.
            if not isinstance(outcome, BaseException):
                raise
        finally:
            self.totals.overhead += self._clock() - ended

    def control(self, event: ControlEvent) -> None:
        """Write down that control of the desktop changes, if it is attached. What cannot be written does not stop a person."""
        if self._desktop is None:
            return
        fields = {name: value for name in ("by", "text", "private") if (value := getattr(event, name))}
        # The recorder keeps the error for its callers.
        with contextlib.suppress(OSError, EpisodeError):
            self.event("control", change=event.kind, **fields)

    def frame(self, desktop: Desktop, cause: str = "") -> str:
        """Store the screen's present pixels.

        Args:
            desktop: The desktop of the screen.
            cause: `first` or `final`; writes an event.

        Returns:
            The frame's id.

        Raises:
            DesktopLost: The desktop is gone.
            OSError: The frame cannot be written.
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
            kind: The kind of event.
            fields: Its content. Texts are masked and cut, and values that JSON cannot express are written as text.

        Raises:
            OSError: It could not be written: the disk is full, or the recorder is closed.
            RecordFull: The record has reached its limits.
        """
        if kind == "frame" and self._home is not None:
            # A replay has another home directory.
            fields = {**fields, "home": self._home}
        self._append(kind, self.harmless(fields))

    def harmless(self, value: Any) -> Any:
        """A value in the form of this attempt's files: plain JSON data, bounded, without the secrets known so far."""
        return harmless(value, text=self._bounds.text, parts=self._bounds.parts, secrets=self._secrets)

    def finish(self, result: Mapping[str, Any]) -> Mapping[str, Any]:
        """Write the result, completely or not at all, once everything else is on disk.

        Returns:
            The result as written: without secrets, so that a ledger can keep the same.

        Raises:
            OSError: The result cannot be written.
        """
        begun = self._clock()
        # The evaluation has limited its state already, so it is written completely here.
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
        """Stop recording, and close the files. Further calls do nothing."""
        self.detach()
        with contextlib.suppress(OSError):
            self.sync()
        with self._writing:
            if self._file >= 0:
                os.close(self._file)
                self._file = -1

    # --- internals ---

    def _append(self, kind: str, fields: Mapping[str, Any]) -> None:
        with self._writing:
            last_word = kind in _LAST_WORDS
            if not last_word:
                self._refuse_if_failed()
            if self._file < 0:
                raise OSError(f"the record in {self.directory} is closed")
            t = self._seconds()
            # Times in the record are monotonic, even if the wall clock is set meanwhile.
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
                # Truncate the partial line; if that fails too, readers skip a torn line.
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
        """The id of the screen's present frame, if it can be read; `generation` is the generation known so far."""
        with self._looking:
            if self._desktop is None or (generation is not None and generation == self._generation):
                return self._frame
            try:
                return self._picture(self._desktop)
            except DeskhandError as error:
                # If the desktop is lost, the call itself reports it.
                if isinstance(error, EpisodeError):
                    raise
                return self._frame

    def _picture(self, desktop: Desktop, *, bounded: bool = True) -> str:
        desktop = bare(desktop)
        recorded = self._desktop is not None and core_of(desktop) is core_of(self._desktop)
        if recorded and self._frame is not None:
            # The generation of a single pixel shows whether anything is new.
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
            shot: Screenshot | None = None if isinstance(answer, BaseException) else answer  # type: ignore[assignment] # it is one here
            fields = {"frame": self._look(None if shot is None else shot.generation)}
        elif call.operation.type == "elements":
            self.totals.looks += 1
            fields = {"query": call.operation.target} if call.operation.target else {}
            if isinstance(answer, Elements):
                fields |= self._outlined(answer)
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
        if call.operation.holder is not None:
            fields["by"] = call.operation.holder.by
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
            # Some errors prove that nothing was sent.
            refused = isinstance(answer, DesktopHeld) and not answer.under_way
            known = refused or isinstance(answer, ActionError | PolicyDenied | EpisodeError)
            # A stopped call must not wait for another look, and a lost desktop has no screen.
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
            # The screen may have changed since the agent's picture was taken.
            **({} if self._generation == answer.generation else {"later": True}),
            "rects": [list(rect) for rect in answer.rects],
            "busy": [list(rect) for rect in answer.busy],
            "settled": answer.settled,
            "reason": str(answer.reason),
            **remarks(answer),
            **({} if answer.elements is None else self._outlined(answer.elements)),
            "cursor": list(answer.cursor),
            "elapsed": {name: round(getattr(elapsed, name), _DIGITS) for name in elapsed.__slots__},
            "error": None,
            "unknown": False,
        }

    def _outlined(self, elements: Elements) -> dict[str, str]:
        """What was read, in pixels of the screen: what has changed since it was written down last.

        As the pixels, it is left out once a secret was typed: the text of an element is cut, and with it what would be masked.
        """
        before, self._elements = self._elements, elements
        if self._withheld:
            return {}
        return {"elements": elements.text() if before is None else elements.changes(before)}

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
        """The content that was written to a file, complete if there is room, because a replay needs it."""
        try:
            name, text = "text", data.decode()
        except UnicodeDecodeError:
            name, text = "base64", base64.b64encode(data).decode()
        return {name: harmless(text, text=_LONGEST_STATE, parts=_MOST_PARTS, secrets=self._secrets)}

    def _described(self, actions: Iterable[Action]) -> Any:
        plain = [action.to_dict() for action in actions]
        return harmless(plain, text=self._bounds.text, parts=_MOST_PARTS, secrets=self._secrets)


class _Syncing:
    """A thread that brings the recorders' files to disk, while there is something to do."""

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
            # Writes in the meantime are included.
            time.sleep(_SYNC_PERIOD)
            with self._changed:
                recorders, self._waiting = self._waiting, set()
            for recorder in recorders:
                # The recorder keeps the error for its callers.
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
