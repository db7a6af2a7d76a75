"""What an agent may still do: its steps are counted and its calls written down, and at the limit its part ends.

This module owns the count, and what an `Episode` gathers beside the desktop: notes and tokens. It stands in the gate of the
agent's desktop, and passes on to the recorder what it lets through. It has no thread and no file;
`deskhand.episodes.play.attempt` says what is done when the part has ended.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Protocol

from deskhand._core.observation import Observation
from deskhand.actions import CursorPosition, TakeScreenshot, Zoom
from deskhand.desktop.desktop import bare
from deskhand.episodes.outcome import Cause
from deskhand.episodes.play.failures import unwritten
from deskhand.episodes.play.supervision import Ended
from deskhand.episodes.record.bounds import COUNTED
from deskhand.errors import ActionError, EpisodeError, RecordFull
from deskhand.machine.program import Program

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deskhand.desktop.desktop import Desktop
    from deskhand.desktop.operations import Operation
    from deskhand.episodes.tasks.task import TaskLimits

__all__ = ["Record", "StepBudget", "Unrecorded"]

_ONLY_LOOKS = (CursorPosition, TakeScreenshot, Zoom)
# Nobody looks so often who means to act, and every look is a line of the record.
_LOOKS_PER_STEP = 50
_LOOKS = 1000
_ACTIONS_PER_CALL = 1000
_NOTE = 1 << 16
_NOTES = 1 << 20
_SPENDS = 10_000
# Beyond it nobody has spent, and a ledger has no number for it.
_MOST_SPENT = 10**15
_OVER = "the agent's part is over"


class Record(Protocol):
    """Where it is written down what happened; `deskhand.episodes.record.recorder.Recorder` is one."""

    def attach(self, desktop: Desktop) -> object:
        """From now on it is this desktop that is recorded."""
        ...

    def detach(self) -> None:
        """No desktop is, until the next one is attached."""
        ...

    def before(self, operation: Operation) -> object:
        """See `deskhand.Interceptor`."""
        ...

    def after(self, operation: Operation, token: object, outcome: object) -> None:
        """See `deskhand.Interceptor`."""
        ...

    def event(self, kind: str, **fields: Any) -> None:
        """Write an event."""
        ...

    def frame(self, desktop: Desktop, cause: str = "") -> str:
        """Keep the screen's pixels as they are now, as the `first` or `final` ones; returns their name."""
        ...

    def harmless(self, value: Any) -> Any:
        """A value as it may be written down elsewhere: bounded, and without secrets."""
        ...

    def finish(self, result: Mapping[str, Any]) -> Mapping[str, Any]:
        """Write the result, whole or not at all; returns what was written."""
        ...

    def close(self) -> None:
        """Let go of the files. Again is harmless."""
        ...


class Unrecorded:
    """A `Record` that keeps nothing, for who only wants the result."""

    def attach(self, desktop: Desktop) -> None:
        """Nothing."""

    def detach(self) -> None:
        """Nothing."""

    def before(self, operation: Operation) -> object:
        """Nothing."""

    def after(self, operation: Operation, token: object, outcome: object) -> None:
        """Nothing."""

    def event(self, kind: str, **fields: Any) -> None:
        """Nothing."""

    def frame(self, desktop: Desktop, cause: str = "") -> str:
        """A look, so that a desktop which is lost is noticed all the same."""
        del cause
        bare(desktop).screenshot(format="raw")
        return ""

    def harmless(self, value: Any) -> Any:
        """As it is."""
        return value

    def finish(self, result: Mapping[str, Any]) -> Mapping[str, Any]:
        """Nothing."""
        return result

    def close(self) -> None:
        """Nothing."""


class StepBudget:
    """Counts what the agent does on its desktop, and raises `Ended` where there is to be no more. An `Interceptor`.

    Of the operations those count that are named in `COUNTED`; the others pass, as long as the agent's part has not ended.

    Attributes:
        steps: Calls that acted.
        actions: Actions in them.
        looks: Calls that only looked.
        programs: Those that were started.
        seconds: Where the time of the calls went: `input`, `settle`, `observe`, and `record` for what writing them down took.
        tokens: As the agent told, `input` and `output`.
        cost: As the agent told.
        ended: Why there are no more calls: a cause, and words. None while there are.
    """

    def __init__(
        self,
        limits: TaskLimits,
        record: Record,
        *,
        over: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Open.

        Args:
            limits: Of the task.
            record: Hears of what was let through.
            over: Called once when this closes by itself.
            clock: Monotonic seconds.
        """
        self.steps: int = 0
        self.actions: int = 0
        self.looks: int = 0
        self.programs: list[Program] = []
        self.seconds: dict[str, float] = dict.fromkeys(("input", "settle", "observe", "record"), 0.0)
        self.tokens: dict[str, int] = {"input": 0, "output": 0}
        self.cost: float = 0.0
        self.ended: tuple[Cause, str] | None = None
        self._limits = limits
        self._record = record
        self._over = over
        self._clock = clock
        self._lock = threading.Lock()
        self._sealed = False
        self._notes = self._spends = 0

    def close(self, cause: Cause, detail: str) -> None:
        """Let nothing through from now on; the first reason counts."""
        with self._lock:
            if self.ended is not None:
                return
            self.ended = cause, detail
        self._over()

    def seal(self) -> None:
        """Write nothing down any more: of an agent whose thread goes on after its part, nothing counts."""
        with self._lock:
            self._sealed = True

    # --- of the desktop ---

    def before(self, operation: Operation) -> object:
        """Count an operation, or refuse it."""
        what, request = operation.type, operation.actions
        if what not in COUNTED:
            self._refuse_if_ended()
            return None
        acts = what not in {"screenshot", "read_file"} and not (
            what == "perform" and all(isinstance(action, _ONLY_LOOKS) for action in request)
        )
        if what == "perform" and len(request) > _ACTIONS_PER_CALL:
            raise ActionError(f"a call may have {_ACTIONS_PER_CALL} actions, not {len(request)}: make several")
        with self._lock:
            if self._sealed:
                raise Ended(_OVER)
            spent = self._spent(acts=acts)
            if not spent and self.ended is None:
                self.steps += acts
                self.looks += not acts
                self.actions += len(request) if what == "perform" and acts else acts
        if spent and self.ended is None:
            self._recorded(lambda: self._record.event("refused", reason=spent))
            self.close(Cause.AGENT_BUDGET, spent)
        self._refuse_if_ended()
        return what, self._clock(), self._recorded(lambda: self._record.before(operation))

    def after(self, operation: Operation, token: Any, outcome: object) -> None:
        """Write an operation down that has ended."""
        if token is None:
            return
        what, begun, theirs = token
        took = self._clock() - begun
        with self._lock:
            if isinstance(outcome, Observation):
                elapsed = outcome.elapsed
                self.seconds["input"] += elapsed.input
                self.seconds["settle"] += elapsed.reaction + elapsed.settle
                self.seconds["observe"] += elapsed.capture + elapsed.encode
            elif what in {"screenshot", "perform"}:
                self.seconds["observe" if what == "screenshot" else "input"] += took
            if isinstance(outcome, Program):
                self.programs.append(outcome)
        self._recorded(lambda: self._record.after(operation, theirs, outcome))
        if not isinstance(outcome, BaseException):
            # What was done is done and written down; the agent need not hear of it any more.
            self._refuse_if_ended()

    # --- of the agent ---

    def note(self, text: object) -> None:
        """Write the agent's words down, as far as there is room for them."""
        words = str(text)[:_NOTE]
        self._refuse_if_ended()
        with self._lock:
            full = self._notes >= _NOTES
            self._notes += len(words) + 1
        if full:
            return
        if self._notes >= _NOTES:
            words += "\n[no further notes are kept]"
        self._recorded(lambda: self._record.event("note", text=words))

    def spend(self, tokens_in: int, tokens_out: int, cost: float) -> None:
        """Add up what the agent says that it has used."""
        with self._lock:
            if self._sealed:
                return
            sums = self.tokens["input"] + tokens_in, self.tokens["output"] + tokens_out, self.cost + cost
            if max(sums) > _MOST_SPENT:
                raise ActionError(f"spend: nobody spends more than {_MOST_SPENT:.0e} in all")
            self.tokens["input"], self.tokens["output"], self.cost = sums
            self._spends += 1
            full = self._spends > _SPENDS
        if not full:
            self._recorded(lambda: self._record.event("spend", input=tokens_in, output=tokens_out, cost=cost))

    def _spent(self, *, acts: bool) -> str:
        if acts and self.steps >= self._limits.steps:
            return f"all {self._limits.steps} steps were used up"
        most = _LOOKS + _LOOKS_PER_STEP * self._limits.steps
        return f"it looked {most} times" if not acts and self.looks >= most else ""

    def _refuse_if_ended(self) -> None:
        if self.ended is not None:
            raise Ended(self.ended[1])

    def _recorded(self, write: Callable[[], Any]) -> object:
        """Write, and count the time. Whoever cannot be recorded is not to go on: nobody could tell what he did."""
        if self._sealed:
            raise Ended(_OVER)
        begun = self._clock()
        try:
            return write()
        except RecordFull as error:
            self.close(Cause.AGENT_BUDGET, str(error))
            raise Ended(str(error)) from error
        except (OSError, EpisodeError) as error:
            self.close(Cause.RECORD_FAILED, unwritten(error))
            raise Ended(str(error)) from error
        finally:
            took = self._clock() - begun
            with self._lock:
                self.seconds["record"] += took
