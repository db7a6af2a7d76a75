"""One try at one episode: a desktop, setup, the agent's part under its limits, evaluation, a result.

This module owns the order of these steps, and turns a failure in any of them into its cause. Whether an episode is tried again
is decided in `deskhand.episodes.run.worker`, desktops are made in `deskhand.launch`, and the form of the record is elsewhere.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import signal
import time
import traceback
from typing import TYPE_CHECKING, Any, Protocol

from deskhand._core.settle import Settle
from deskhand.desktop.access import bare, commands_of, core_of, latest, pass_on
from deskhand.episodes.outcome import RULES, Cause
from deskhand.episodes.play.agents import find_agent
from deskhand.episodes.play.budget import StepBudget, Unrecorded
from deskhand.episodes.play.episode import Episode
from deskhand.episodes.play.failures import blame, described, placed, unwritten
from deskhand.episodes.play.grading import canonical, graded
from deskhand.episodes.play.supervision import Stop, SupervisedThread
from deskhand.episodes.record.end_state import EndState, KeepingContext
from deskhand.episodes.tasks.context import TaskContext
from deskhand.episodes.tasks.task import Grade, instance_seed
from deskhand.errors import (
    BackendError,
    DeskhandError,
    DeskhandTimeout,
    DesktopLost,
    EpisodeError,
    LaunchFailed,
    TaskError,
    shown,
)
from deskhand.machine.program import Program

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from deskhand.desktop.desktop import Desktop
    from deskhand.desktop.operations import Operation
    from deskhand.episodes.ledger.ledger import Key
    from deskhand.episodes.play.budget import Record
    from deskhand.episodes.play.episode import Agent
    from deskhand.episodes.tasks.task import Task, TaskLimits

VERSION = 1
"""The version of the result's form."""

_START_LIMIT = 120.0
_SETUP_LIMIT = 180.0
_GRACE = 2.0
_STILL = Settle(timeout=10.0)
_LAST = Settle(timeout=5.0)
_PROBE = 2.0
_ANSWER = 1 << 16
_TRACE = 8192
# These signals mean a crash, not that the program was closed or killed on purpose.
_CRASHES = {
    signal.SIGABRT,
    signal.SIGBUS,
    signal.SIGFPE,
    signal.SIGILL,
    signal.SIGSEGV,
    signal.SIGSYS,
    signal.SIGTRAP,
}
_SIGNALLED = 128


class Places(Protocol):
    """A source of desktops: a `deskhand.Pool`, or any object that gives one for the length of a `with` block.

    The desktop may be handed over in the meantime: the one to be closed is the last `successor`.
    """

    def acquire(self, timeout: float | None = ...) -> AbstractContextManager[Desktop]:
        """A desktop, after at most `timeout` seconds; `cancel()` ends the wait if the object has it."""
        ...


class _Over(Exception):
    """The attempt ends here."""

    def __init__(self, cause: Cause, detail: str, error: BaseException | None = None) -> None:
        super().__init__(detail)
        self.cause = cause
        self.detail = detail
        self.trace = "" if error is None else _trace(error)


def attempt(
    task: Task,
    key: Key,
    places: Places,
    agent: Agent | str,
    record: Record | None = None,
    *,
    number: int = 1,
    agent_name: str | None = None,
    run_seed: int = 0,
    worker: str = "",
    failures: Mapping[str, int] | None = None,
    limits: TaskLimits | None = None,
    stop: Stop | None = None,
    clock: Callable[[], float] = time.monotonic,
    wall: Callable[[], float] = time.time,
) -> dict[str, Any]:
    """Try an episode once. It raises nothing: every failure is in the result, with its cause.

    Args:
        task: The task.
        key: The episode.
        places: The source of the desktop.
        agent: The agent, or its name.
        record: Where it is recorded; None: nowhere. It is finished and closed here.
        number: The number of this attempt, from 1.
        agent_name: The agent's name in the result; by default its own name.
        run_seed: The seed of the run.
        worker: The worker of this attempt.
        failures: How the attempts before ended.
        limits: Limits in place of the task's.
        stop: Ends it on request; then the cause is `cancelled`, and no result is recorded.
        clock: Monotonic seconds.
        wall: Seconds since 1970.

    Returns:
        The result, in the form of `result.json`.
    """
    trial = _Attempt(task, key, agent, record or Unrecorded(), limits or task.limits, stop or Stop(), clock)
    started, began = wall(), clock()
    trial.run(places, run_seed)
    # By the monotonic clock, so that an attempt cannot end before it has begun.
    ended = started + clock() - began
    name = agent if isinstance(agent, str) else agent_name or getattr(agent, "__qualname__", type(agent).__name__)
    known = {"worker": worker, "started": started, "ended": ended, "attempt": number, "agent": name}
    result = trial.result(known, failures or {})
    return trial.finish(result)


class _Attempt:
    def __init__(  # noqa: PLR0917 # called in one place
        self,
        task: Task,
        key: Key,
        agent: Agent | str,
        record: Record,
        limits: TaskLimits,
        stop: Stop,
        clock: Callable[[], float],
    ) -> None:
        self.task = task
        self.key = key
        self.agent = agent
        self.record = record
        self.limits = limits
        self.stop = stop
        self.clock = clock
        self.instance = 0
        self.parameters: Mapping[str, Any] = {}
        self.instruction = ""
        self.cause: Cause | None = None
        self.details: list[str] = []
        self.trace = ""
        self.grade: Grade | None = None
        self.answer: str | None = None
        self.frames = {"first": "", "final": ""}
        self.times = dict.fromkeys(("reset", "setup", "agent", "evaluate", "total"), 0.0)
        self.thread: SupervisedThread | None = None
        self.budget = StepBudget(limits, record, over=self._wake, clock=clock)
        self.programs: list[Program] = []

    # --- the steps ---

    def run(self, places: Places, run_seed: int) -> None:
        begun = self.clock()
        try:
            self._play(places, run_seed)
        except _Over as over:
            self._conclude(over.cause, over.detail)
            self.trace = self.trace or over.trace
        except (OSError, EpisodeError) as error:
            # A timeout of the desktop is no failure of the record.
            if isinstance(error, DeskhandTimeout):
                self._conclude(Cause.DRIVER_BUG, described(error))
            else:
                self._conclude(Cause.RECORD_FAILED, unwritten(error))
        except BaseException as error:  # noqa: BLE001 # limited to this episode
            self._conclude(Cause.DRIVER_BUG, described(error))
            self.trace = _trace(error)
        self.times["total"] = self.clock() - begun

    def _play(self, places: Places, run_seed: int) -> None:
        task, key = self.task, self.key
        self.instance = instance_seed(run_seed, task.name, key.variant, key.seed)
        self._bounded("what the task needs", task.ready, task.ready_limit, Cause.CANNOT_RUN)
        self._bounded("the task's parameters", self._prepare, _SETUP_LIMIT, Cause.SETUP_FAILED)
        self.record.event(
            "begin",
            **key._asdict(),
            instruction=self.instruction,
            parameters=self.parameters,
            screen=list(task.screen),
            limits={"steps": self.limits.steps, "seconds": self.limits.seconds},
        )
        with contextlib.ExitStack() as held:
            with self._timed("reset"):
                desktop = self._start(held, places)
            self.record.event("reset", seconds=self.times["reset"])
            with self._timed("setup"):
                self._bounded("setup", lambda: self._set_up(desktop), _SETUP_LIMIT, Cause.SETUP_FAILED, desktop)
            self.record.event("setup", seconds=self.times["setup"])
            with self._timed("agent"):
                desktop = self._let_act(latest(desktop))
            # Time for the record does not count for the agent.
            self.times["agent"] -= self.budget.seconds["record"]
            if self.answer is not None:
                self.record.event("answer", text=self.answer)
            with self._timed("evaluate"):
                if not desktop.closed:
                    limit = task.evaluation_limit
                    self._bounded("evaluation", lambda: self._evaluate(desktop), limit, Cause.EVALUATOR_FAILED, desktop)
                    self._look_for_crashes(desktop)
            self.record.event("evaluate", seconds=self.times["evaluate"])

    def _prepare(self) -> None:
        parameters = self.task.parameters(random.Random(self.instance))  # noqa: S311 # to be repeated
        self.parameters = json.loads(json.dumps(dict(parameters), allow_nan=False))
        instruction = self.task.instruction(self.parameters)
        if not isinstance(instruction, str) or not instruction.strip():
            raise TypeError(f"the instruction is {shown(instruction)}, not a text")
        self.instruction = instruction

    def _start(self, held: contextlib.ExitStack, places: Places) -> Desktop:
        try:
            waiting = places.acquire(_START_LIMIT)
            unsubscribe = self.stop.subscribe(getattr(waiting, "cancel", lambda: None))
            try:
                return held.enter_context(waiting)
            finally:
                unsubscribe()
        except Exception as error:
            if self.stop.reason is not None:
                raise _Over(Cause.CANCELLED, self.stop.reason) from error
            lost = isinstance(error, DesktopLost)
            raise _Over(Cause.DESKTOP_LOST if lost else Cause.DESKTOP_START, described(error), error) from error

    def _set_up(self, desktop: Desktop) -> None:
        desktop = bare(desktop)
        noticed = desktop.also(_Started(self.programs))
        self.task.setup(TaskContext(noticed, self.parameters, commands_of(desktop).home or ""))
        seen = desktop.perform(settle=_STILL, format="raw")
        if not seen.settled:
            raise BackendError(f"the screen does not come to rest: {seen.reason}")
        self._keep(desktop, "first")
        # Threads that setup has left behind can do nothing with their old object.
        pass_on(desktop)

    def _let_act(self, desktop: Desktop) -> Desktop:
        """Run the agent's part. Returns a new object for the desktop: the agent's own one no longer works."""
        budget = self.budget
        # The budget passes allowed operations on to the recorder.
        acting = desktop.also(budget)
        context = TaskContext(acting, self.parameters, commands_of(desktop).home or "")
        seed = hashlib.sha256(f"{self.instance}|agent|{self.key.repeat}".encode()).digest()
        episode = Episode(
            self.instruction,
            acting,
            seed=int.from_bytes(seed[:8], "big"),
            limits=self.limits,
            key=self.key,
            budget=budget,
            oracle=lambda: self.task.oracle(context),
            clock=self.clock,
        )
        self.record.attach(desktop)
        try:
            thread = self.thread = SupervisedThread(lambda: self._agent()(episode), "deskhand-agent", self.stop)
            abandoned = self._await_end(thread, desktop)
        finally:
            self.record.detach()
        latest = _handed_over(desktop)
        budget.seal()
        self._judge(thread, abandoned=abandoned, closed=latest.closed)
        return latest

    def _agent(self) -> Agent:
        return find_agent(self.agent) if isinstance(self.agent, str) else self.agent

    def _await_end(self, thread: SupervisedThread, desktop: Desktop) -> bool:
        """Wait for the agent, or end its part. Returns whether its thread had to be abandoned."""
        deadline = self.clock() + self.limits.seconds
        while not thread.wait(deadline - self.clock()):
            if self.stop.reason is not None:
                self.budget.close(Cause.CANCELLED, self.stop.reason)
            elif self.clock() >= deadline:
                self.budget.close(Cause.AGENT_BUDGET, f"all {self.limits.seconds:g} s were used up")
            if self.budget.ended is not None:
                return not thread.end(_GRACE, desktop.interrupt)
        return False

    def _judge(self, thread: SupervisedThread, *, abandoned: bool, closed: bool) -> None:
        """Determine the outcome of the agent's part. An invalid one is not evaluated."""
        error, ended = thread.error, self.budget.ended
        if ended is not None:
            self._conclude(*ended)
        elif error is not None:
            self._conclude(blame(error), placed(error))
            self.trace = _trace(error)
        elif thread.value is None or isinstance(thread.value, str):
            self.answer = None if thread.value is None else thread.value[:_ANSWER]
        else:
            self._conclude(Cause.AGENT_ERROR, f"it returned {shown(thread.value)}, not a text")
        if abandoned:
            self.details.append("the agent did not stop: its thread was abandoned, without its desktop")
        if closed:
            self._conclude(Cause.AGENT_ERROR, "the agent closed its desktop")
            self.grade = Grade(0.0, "the agent closed its desktop")
        if self.cause is not None and not RULES[self.cause].graded:
            raise _Over(self.cause, "")

    def _evaluate(self, desktop: Desktop) -> None:
        desktop = bare(desktop)
        desktop.perform(settle=_LAST, format="raw")
        self._keep(desktop, "final")
        home = commands_of(desktop).home or ""
        context = TaskContext(desktop, self.parameters, home, self.answer)
        if self.task.evaluates_once:
            # It acts on the desktop, so that its questions alone do not repeat it.
            first = second = graded(self.task.evaluate(context))
        else:
            keeping = KeepingContext(desktop, self.parameters, home, self.answer, EndState(home))
            first = graded(self.task.evaluate(keeping))
            second = graded(self.task.evaluate(context))
            with self._recorded():
                self.record.end_state(keeping.kept)
        if (first.score, canonical(first.state)) != (second.score, canonical(second.state)):
            raise ValueError(
                f"two evaluations of one state differ: {first.score:g} ({first.reason}) and then "
                f"{second.score:g} ({second.reason})"
            )
        self.grade = first

    def _look_for_crashes(self, desktop: Desktop) -> None:
        for program in (*self.programs, *self.budget.programs):
            with contextlib.suppress(DeskhandError):
                status = core_of(desktop).exit_status(program.pid) or 0
                number = -status if status < 0 else status - _SIGNALLED
                if number in _CRASHES:
                    self._conclude(
                        Cause.APP_CRASH,
                        f"{program.log.stem.removesuffix(f'-{program.pid}')} ended by {signal.Signals(number).name}",
                    )

    # --- internals ---

    def _keep(self, desktop: Desktop, which: str) -> None:
        with self._recorded():
            self.frames[which] = self.record.frame(desktop, which)

    @contextlib.contextmanager
    def _recorded(self) -> Any:
        try:
            yield
        except DeskhandTimeout:
            raise
        except (OSError, EpisodeError) as error:
            raise _Over(Cause.RECORD_FAILED, unwritten(error)) from error

    def _bounded(
        self, what: str, function: Callable[[], None], seconds: float, failed: Cause, desktop: Desktop | None = None
    ) -> None:
        """Run code of the task, with a time limit."""
        thread = SupervisedThread(function, f"deskhand-{what.rpartition(' ')[2]}", self.stop)
        deadline = self.clock() + seconds
        while not thread.wait(deadline - self.clock()):
            if self.stop.reason is not None or self.clock() >= deadline:
                ended = thread.end(_GRACE, desktop.interrupt if desktop is not None else lambda: None)
                if self.stop.reason is not None:
                    raise _Over(Cause.CANCELLED, self.stop.reason)
                left = "" if ended else "; its thread does not stop and was abandoned"
                raise _Over(failed, f"{what} took more than {seconds:g} s{left}")
        error = thread.error
        if error is None:
            return
        if isinstance(error, _Over):
            raise error
        if isinstance(error, DesktopLost):
            raise _Over(Cause.DESKTOP_LOST, described(error))
        if desktop is None and isinstance(error, LaunchFailed):
            # What a desktop is started from could not be made, for a reason that is not the task's.
            raise _Over(Cause.DESKTOP_START, described(error), error)
        if desktop is not None and (gone := _gone(desktop)):
            raise _Over(Cause.DESKTOP_LOST, f"{gone} (seen after {described(error)})")
        if isinstance(error, TaskError) and error.cannot_run:
            failed = Cause.CANNOT_RUN
        raise _Over(failed, described(error), error)

    @contextlib.contextmanager
    def _timed(self, phase: str) -> Any:
        begun = self.clock()
        try:
            yield
        finally:
            self.times[phase] += self.clock() - begun

    def _wake(self) -> None:
        if self.thread is not None:
            self.thread.wake()

    def _conclude(self, cause: Cause, detail: str) -> None:
        """Set the cause. The first one counts, unless a later one makes the episode invalid."""
        if self.cause is None or (RULES[self.cause].graded and not RULES[cause].graded):
            self.cause = cause
            self.details.insert(0, detail)
        elif detail:
            self.details.append(detail)

    # --- the end ---

    def result(self, known: Mapping[str, Any], failures: Mapping[str, int]) -> dict[str, Any]:
        valid = self.cause is None or RULES[self.cause].graded
        grade = self.grade if valid and self.grade is not None else None
        budget, times = self.budget, self.times
        parts = times["reset"] + times["setup"] + times["agent"] + times["evaluate"]
        spent = {name: budget.seconds[name] for name in ("input", "settle", "observe")}
        overhead = max(0.0, times["total"] - parts)
        return {
            "version": VERSION,
            **self.key._asdict(),
            "attempt": known["attempt"],
            "agent": known["agent"],
            "worker": known["worker"],
            "instance_seed": self.instance,
            "parameters": self.parameters,
            "instruction": self.instruction,
            "level": self.task.level,
            "tags": list(self.task.tags),
            "valid": valid,
            "success": grade is not None and grade.success,
            "score": None if grade is None else grade.score,
            "cause": None if self.cause is None else str(self.cause),
            "detail": "; ".join(part for part in self.details if part),
            "reason": "" if grade is None else grade.reason,
            "state": {} if grade is None else dict(grade.state),
            "answer": self.answer,
            "steps": budget.steps,
            "actions": budget.actions,
            "looks": budget.looks,
            "times": {name: round(value, 6) for name, value in {**times, **spent, "overhead": overhead}.items()},
            "tokens": dict(budget.tokens),
            "cost": budget.cost,
            "started": known["started"],
            "ended": known["ended"],
            "first_frame": self.frames["first"],
            "final_frame": self.frames["final"],
            "retries": sum(failures.values()),
            "failures": dict(failures),
        }

    def finish(self, result: dict[str, Any]) -> dict[str, Any]:
        """Write the result. If that fails, the episode is invalid, and nothing is left half-written.

        Returns:
            The result as it was written: without secrets.
        """
        try:
            trace = {"trace": self.trace} if self.trace else {}
            self.record.event("end", cause=result["cause"], detail=result["detail"], **trace)
            if self.cause is not Cause.CANCELLED:
                return dict(self.record.finish(result))
        except (OSError, EpisodeError) as error:
            self._conclude(Cause.RECORD_FAILED, unwritten(error))
            known = {name: result[name] for name in ("worker", "started", "ended", "attempt", "agent")}
            result = self.result(known, result["failures"])
        finally:
            with contextlib.suppress(OSError):
                self.record.close()
        # It still goes to a ledger or a screen.
        return dict(self.record.sanitize(result))


class _Started:
    """Records which programs are started. An `Interceptor`."""

    def __init__(self, programs: list[Program]) -> None:
        self._programs = programs

    def before(self, operation: Operation) -> object:
        del operation
        return None

    def after(self, operation: Operation, token: object, outcome: object) -> None:
        del operation, token
        if isinstance(outcome, Program):
            self._programs.append(outcome)


def _handed_over(desktop: Desktop) -> Desktop:
    """A new object for the desktop that no other code has, or the closed one if the agent has closed it."""
    desktop = latest(desktop)
    if desktop.closed:
        return desktop
    try:
        return pass_on(desktop)
    except BackendError as error:
        if desktop.closed:
            return desktop
        raise _Over(Cause.DESKTOP_LOST, described(error), error) from error


def _gone(desktop: Desktop) -> str:
    """Why a desktop cannot be used any more; empty if it can."""
    try:
        return bare(desktop).health(timeout=_PROBE).live
    except DeskhandError as error:
        return described(error)


def _trace(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(error))[-_TRACE:]
    except Exception:  # noqa: BLE001 # an agent's exception may have a broken `__str__`
        return type(error).__name__
