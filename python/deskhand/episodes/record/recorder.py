"""Records one attempt while it happens: `Recorder`.

This module owns what an attempt's files say of each operation. It judges nothing and writes no secrets.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
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
from deskhand.episodes.record.attempt_files import DIGITS, AttemptFiles
from deskhand.episodes.record.bounds import COUNTED, Bounds, Totals
from deskhand.episodes.record.end_state import END_STATE, EndState
from deskhand.episodes.record.entries import of_command, of_file
from deskhand.episodes.record.sanitize import sanitize
from deskhand.errors import ActionError, DeskhandError, DesktopHeld, DesktopLost, EpisodeError, PolicyDenied, RecordFull

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping

    from deskhand._core.observation import Screenshot
    from deskhand.desktop.control_state import ControlEvent
    from deskhand.desktop.desktop import Desktop
    from deskhand.desktop.operations import Interceptor, Operation
    from deskhand.episodes.record.frame_store import FrameStore

# The kinds of events whose operation has another name.
_KINDS = {"screenshot": "look", "host_shell": "shell"}
_FILES = frozenset({"read_file", "write_file"})
# Actions have been checked, and are needed completely for a replay.
_MOST_PARTS = 1 << 20
_LONGEST_STATE = 1 << 20


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
        self._calls = itertools.count(1)
        self._files = AttemptFiles(self.directory, self._bounds, clock=clock, wall=wall)

    def __repr__(self) -> str:
        return f"<Recorder {self.directory}>"

    @property
    def error(self) -> BaseException | None:
        """Why nothing more could be written, an `OSError` of the disk or a `RecordFull`; None if all is well.

        Check this after an agent's part: an agent may swallow the exceptions of its calls.
        """
        return self._files.error

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
        self._files.refuse_if_failed()
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

    def event(self, kind: str, **fields: object) -> None:
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
        self._files.append(kind, self.sanitize(fields))

    def sanitize(self, fields: Mapping[str, object]) -> Mapping[str, object]:
        """Fields in the form of this attempt's files: plain JSON data, bounded, without the secrets known so far."""
        written: Mapping[str, object] = sanitize(
            fields, text=self._bounds.text, parts=self._bounds.parts, secrets=self._secrets
        )
        return written

    def end_state(self, state: EndState) -> None:
        """Keep the answers that the evaluation got; none if a secret was typed, which may be in them. May raise `OSError`."""
        begun = self._clock()
        if self._secrets:
            state = EndState("", lacking="a secret was typed, and the answers may contain it")
        self._files.write_file(END_STATE, state.to_json())
        self.totals.overhead += self._clock() - begun

    def finish(self, result: Mapping[str, object]) -> Mapping[str, object]:
        """Write the result, completely or not at all, once everything else is on disk.

        Returns:
            The result as written: without secrets, so that a ledger can keep the same.

        Raises:
            OSError: The result cannot be written.
        """
        begun = self._clock()
        # The evaluation has limited its state already, so it is written completely here.
        written: Mapping[str, Any] = sanitize(result, text=_LONGEST_STATE, parts=_MOST_PARTS, secrets=self._secrets)
        self._frames.sync()
        self.sync()
        self._files.write_result(written)
        self.totals.overhead += self._clock() - begun
        return written

    def sync(self) -> None:
        """Wait until all events are on disk.

        Raises:
            OSError: They cannot be written.
        """
        self._files.sync()

    def close(self) -> None:
        """Stop recording, and close the files. Further calls do nothing."""
        self.detach()
        self._files.close()

    # --- internals ---

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
            raise self._files.failed(error) from error.__cause__
        self._frame = name
        self._generation = shot.generation if recorded else None
        if bounded and self._roll.stored > self._bounds.pixels:
            raise self._files.failed(RecordFull("bytes of pixels", self._bounds.pixels))
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
            fields = of_file(call.operation, answer)
        else:
            self.totals.commands += 1
            fields = of_command(call.operation, answer)
        if isinstance(answer, BaseException):
            fields["error"] = {"type": type(answer).__name__, "message": str(answer)}
        if self._withheld:
            fields["withheld"] = True
        if call.operation.holder is not None:
            fields["by"] = call.operation.holder.by
        fields["seconds"] = round(seconds, DIGITS)
        whole: dict[str, Any] = {}
        if call.operation.type == "perform":
            whole["actions"] = self._described(call.operation.actions)
        elif call.operation.data is not None:
            whole = self._written(call.operation.data)
        self._files.append(_KINDS.get(call.operation.type, call.operation.type), {**whole, **self.sanitize(fields)})

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
            "elapsed": {name: round(getattr(elapsed, name), DIGITS) for name in elapsed.__slots__},
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

    def _written(self, data: bytes) -> dict[str, Any]:
        """The content that was written to a file, complete if there is room, because a replay needs it."""
        try:
            name, text = "text", data.decode()
        except UnicodeDecodeError:
            name, text = "base64", base64.b64encode(data).decode()
        return {name: sanitize(text, text=_LONGEST_STATE, parts=_MOST_PARTS, secrets=self._secrets)}

    def _described(self, actions: Iterable[Action]) -> Any:
        plain = [action.to_dict() for action in actions]
        return sanitize(plain, text=self._bounds.text, parts=_MOST_PARTS, secrets=self._secrets)
