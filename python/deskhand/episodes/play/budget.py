"""The agent's budget: counts its steps, records its calls, and ends its part at the limit.

This module owns the count, and what an `Episode` gathers beside the desktop: notes and tokens. It is an interceptor in the gate
of the agent's desktop, and passes allowed operations on to the recorder. It has no thread and no file;
`deskhand.episodes.play.attempt` decides what follows when the part has ended.
"""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from deskhand._core.observation import Observation
from deskhand.actions import LOOKING
from deskhand.desktop.access import bare
from deskhand.episodes.outcome import Cause
from deskhand.episodes.play.failures import unwritten
from deskhand.episodes.play.supervision import Ended
from deskhand.episodes.record.bounds import COUNTED
from deskhand.errors import ActionError, EpisodeError, RecordFull
from deskhand.machine.program import Program

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deskhand.desktop.control_state import ControlEvent
    from deskhand.desktop.desktop import Desktop
    from deskhand.desktop.operations import Operation
    from deskhand.episodes.record.end_state import EndState
    from deskhand.episodes.tasks.task import TaskLimits

# An agent that acts does not look more often, and every look is a line of the record.
_LOOKS_PER_STEP = 50
_LOOKS = 1000
_ACTIONS_PER_CALL = 1000
_NOTE = 1 << 16
_NOTES = 1 << 20
_SPENDS = 10_000
# No real run spends more, and a ledger has no number for it.
_MOST_SPENT = 10**15
_OVER = "the agent's part is over"


class Record(Protocol):
    """A record of what happened; `deskhand.episodes.record.recorder.Recorder` is one."""

    def attach(self, desktop: Desktop) -> object:
        """Record this desktop from now on."""
        ...

    def detach(self) -> None:
        """Record no desktop until the next one is attached."""
        ...

    def before(self, operation: Operation) -> object:
        """See `deskhand.Interceptor`."""
        ...

    def after(self, operation: Operation, token: object, outcome: object) -> None:
        """See `deskhand.Interceptor`."""
        ...

    def control(self, event: ControlEvent) -> None:
        """See `deskhand.Interceptor`."""
        ...

    def event(self, kind: str, **fields: object) -> None:
        """Write an event."""
        ...

    def frame(self, desktop: Desktop, cause: str = "") -> str:
        """Keep the screen's present pixels as the `first` or `final` ones; returns their name."""
        ...

    def end_state(self, state: EndState) -> None:
        """Keep the answers that the evaluation got about the end state."""
        ...

    def sanitize(self, fields: Mapping[str, object]) -> Mapping[str, object]:
        """Fields in a form that may be written elsewhere: bounded, and without secrets."""
        ...

    def finish(self, result: Mapping[str, object]) -> Mapping[str, object]:
        """Write the result, completely or not at all; returns what was written."""
        ...

    def close(self) -> None:
        """Close the files. Further calls do nothing."""
        ...


@dataclass(frozen=True, slots=True)
class _PersonToken:
    """The token of an operation of a person who has control, with that of the record."""

    token: object


class Unrecorded:
    """A `Record` that keeps nothing, for callers that only need the result."""

    def attach(self, desktop: Desktop) -> None:
        """Nothing."""

    def detach(self) -> None:
        """Nothing."""

    def before(self, operation: Operation) -> object:
        """Nothing."""

    def after(self, operation: Operation, token: object, outcome: object) -> None:
        """Nothing."""

    def control(self, event: ControlEvent) -> None:
        """Nothing."""

    def event(self, kind: str, **fields: object) -> None:
        """Nothing."""

    def frame(self, desktop: Desktop, cause: str = "") -> str:
        """Look at the screen, so that a lost desktop is noticed."""
        del cause
        bare(desktop).screenshot(format="raw")
        return ""

    def end_state(self, state: EndState) -> None:
        """Nothing."""

    def sanitize(self, fields: Mapping[str, object]) -> Mapping[str, object]:
        """As they are."""
        return fields

    def finish(self, result: Mapping[str, object]) -> Mapping[str, object]:
        """Nothing."""
        return result

    def close(self) -> None:
        """Nothing."""


class StepBudget:
    """Counts what the agent does on its desktop, and raises `Ended` at the limit. An `Interceptor`.

    Only operations in `COUNTED` count; the others are allowed until the agent's part has ended.

    Attributes:
        steps: Calls that acted.
        actions: The actions in them.
        looks: Calls that only looked.
        programs: Programs that were started.
        seconds: The time of the calls: `input`, `settle`, `observe`, and `record` for recording them.
        tokens: As the agent reported, `input` and `output`.
        cost: As the agent reported.
        ended: Why there are no more calls: a cause and a text. None until then.
    """

    def __init__(
        self,
        limits: TaskLimits,
        record: Record,
        *,
        over: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Start with nothing used.

        Args:
            limits: The task's limits.
            record: Gets the operations that are allowed.
            over: Called once, if this closes by itself.
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
        """Allow nothing from now on; the first reason counts."""
        with self._lock:
            if self.ended is not None:
                return
            self.ended = cause, detail
        self._over()

    def seal(self) -> None:
        """Record nothing more: if the agent's thread continues after its part, nothing of that counts."""
        with self._lock:
            self._sealed = True

    # --- for the desktop ---

    def before(self, operation: Operation) -> object:
        """Count an operation, or deny it."""
        what, request = operation.type, operation.actions
        if what not in COUNTED:
            self._refuse_if_ended()
            return None
        if operation.holder is not None:
            # A person's part: recorded, and no step of the agent's.
            return _PersonToken(self._recorded(lambda: self._record.before(operation)))
        acts = what not in {"screenshot", "elements", "read_file"} and not (
            what == "perform" and all(isinstance(action, LOOKING) for action in request)
        )
        if what == "perform" and len(request) > _ACTIONS_PER_CALL:
            raise ActionError(
                f"a call may have at most {_ACTIONS_PER_CALL} actions, not {len(request)}: make several calls"
            )
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

    def after(self, operation: Operation, token: object, outcome: object) -> None:
        """Record an operation that has ended."""
        if token is None:
            return
        if isinstance(token, _PersonToken):
            self._recorded(lambda: self._record.after(operation, token.token, outcome))
            return
        what, begun, theirs = cast("tuple[str, float, object]", token)
        took = self._clock() - begun
        with self._lock:
            if isinstance(outcome, Observation):
                elapsed = outcome.elapsed
                self.seconds["input"] += elapsed.input
                self.seconds["settle"] += elapsed.reaction + elapsed.settle
                self.seconds["observe"] += elapsed.capture + elapsed.encode
            elif what in {"screenshot", "elements", "perform"}:
                self.seconds["input" if what == "perform" else "observe"] += took
            if isinstance(outcome, Program):
                self.programs.append(outcome)
        self._recorded(lambda: self._record.after(operation, theirs, outcome))
        if not isinstance(outcome, BaseException):
            # The operation is done and recorded, but the agent does not get its result any more.
            self._refuse_if_ended()

    def control(self, event: ControlEvent) -> None:
        """Record that control of the desktop changes; a person is not stopped where the agent's part ends for it."""
        with contextlib.suppress(Ended):
            self._recorded(lambda: self._record.control(event))

    # --- for the agent ---

    def note(self, text: object) -> None:
        """Record the agent's text, as far as there is room for it."""
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
        """Add up the agent's reported usage."""
        with self._lock:
            if self._sealed:
                return
            sums = self.tokens["input"] + tokens_in, self.tokens["output"] + tokens_out, self.cost + cost
            if max(sums) > _MOST_SPENT:
                raise ActionError(f"spend: the total is above {_MOST_SPENT:.0e}")
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
        """Record, and count the time. If that fails, the agent must not go on, because its effects would be unknown."""
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
