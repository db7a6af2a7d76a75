"""Who has control of a desktop: a person who holds it, and whether it is paused.

This module owns that state and its limits; the requests for help are in `deskhand.desktop.help_requests`. All views of a
desktop share it. It touches no desktop: `deskhand.desktop.control` ends calls and releases keys. The kill switch and
`interrupt` may call it from a signal handler, so they take no lock here.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
import weakref
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, Protocol, TypeGuard

from deskhand._core.attempts import CALLER, NoAnswer
from deskhand.desktop.help_requests import HelpRequests, name_of
from deskhand.desktop.operations import Holder, Interceptor
from deskhand.errors import ActionError, Closed, DesktopHeld

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from deskhand.desktop.operations import Operation

_MOST_NOTES = 16
_MOST_STEPS = 1000

_HOLD_ENDED = "this hold of the desktop has ended: take control again (desktop.control.take)"
_GO, _END = object(), object()


@dataclass(frozen=True, slots=True)
class Pause:
    """Who has paused a desktop; its operations wait meanwhile.

    Attributes:
        by: The name that was given to `pause`.
        since: When the pause began, in seconds since 1970.
    """

    by: str
    since: float


ControlKind = Literal["take", "release", "ask", "decline", "pause", "step", "resume"]


@dataclass(frozen=True, slots=True)
class ControlEvent:
    """One change of control, as interceptors hear of it.

    Attributes:
        kind: `take`, `release`, `ask` (for help), `decline`, `pause`, `step` or `resume`.
        by: Who did it; empty for an agent that asks for help, and where no name was given.
        text: The note of a person, or the reason of a request.
        private: Whether the hold is private.
    """

    kind: ControlKind
    by: str = ""
    text: str = ""
    private: bool = False


class HearsControl(Interceptor, Protocol):
    """An interceptor that also hears when control changes, through whichever view: one with this method."""

    def control(self, event: ControlEvent) -> None:
        """Called in the thread that makes the change. If this raises for `take`, the desktop is not taken."""
        ...


class SharesControl(Protocol):
    """A view of the desktop, as far as control is concerned.

    Attributes:
        interceptors: Those that stand before the desktop in it.
        gated: Whether its operations go through the gate: there are interceptors, or the desktop is paused.
    """

    interceptors: tuple[Interceptor, ...]
    gated: bool


def hears_control(interceptor: Interceptor) -> TypeGuard[HearsControl]:
    """Whether an interceptor has that method."""
    return callable(getattr(interceptor, "control", None))


class Holding:
    """One hold, from `take` to its end: what the calls of its holder are recognized by.

    Attributes:
        state: Of which desktop.
        holder: Who it is.
        pointer: Where the input of others had left the pointer before.
    """

    __slots__ = ("holder", "pointer", "state")

    def __init__(self, state: ControlState, holder: Holder) -> None:
        """Describe the hold of `holder`."""
        self.state: ControlState = state
        self.holder: Holder = holder
        self.pointer: tuple[int, int] | None = None


_HOLDING: ContextVar[Holding | None] = ContextVar("deskhand_holding", default=None)
"""The hold that the operation under way belongs to; None for an operation of an agent."""


@contextlib.contextmanager
def held_by(holding: Holding | None) -> Iterator[None]:
    """What is done in this block belongs to a hold."""
    token = _HOLDING.set(holding)
    try:
        yield
    finally:
        _HOLDING.reset(token)


def outside_of_holds() -> contextlib.AbstractContextManager[None]:
    """What is done in this block belongs to no hold."""
    return held_by(None)


@dataclass(eq=False, slots=True)
class _Waiting:
    operation: Operation
    caller: object
    answers: queue.SimpleQueue[object] = field(default_factory=queue.SimpleQueue)


class ControlState:
    """What all views of one desktop share of it.

    Attributes:
        holding: The hold that lasts; None while no one has control.
        pause: The pause that lasts; None while operations do not wait.
        changing: A hold is beginning or ending: calls that are interrupted meanwhile are interrupted for this.
        help: The requests for help that have not ended.
    """

    def __init__(self, *, wall: Callable[[], float] = time.time) -> None:
        """Begin with no one in control. `wall` gives seconds since 1970."""
        self.holding: Holding | None = None
        self.pause: Pause | None = None
        self.changing: bool = False
        self.turn: threading.RLock = threading.RLock()
        """The thread that has this lock begins or ends a hold."""
        self.notes: tuple[str, ...] = ()
        self.help: HelpRequests = HelpRequests(wall)
        self._wall = wall
        self._lock = threading.RLock()
        self._waiting: dict[_Waiting, None] = {}
        self._steps = 0
        self._views: weakref.WeakSet[SharesControl] = weakref.WeakSet()

    # --- who hears of changes ---

    def share(self, view: SharesControl) -> None:
        """Let a view take part, for as long as it exists."""
        with self._lock:
            self._views.add(view)
            view.gated = view.gated or self.pause is not None

    @property
    def listeners(self) -> tuple[HearsControl, ...]:
        """The interceptors of all views that hear of changes."""
        with self._lock:
            views = tuple(self._views)
        found = (each for view in views for each in view.interceptors if hears_control(each))
        return tuple({id(each): each for each in found}.values())

    def report(self, event: ControlEvent) -> None:
        """Report a change to all of them, even when one raises; the first exception is raised at the end."""
        with contextlib.ExitStack() as each:
            for listener in self.listeners:
                each.callback(listener.control, event)

    # --- the hold ---

    @property
    def holder(self) -> Holder | None:
        """Who has control; None if no one has."""
        holding = self.holding
        return None if holding is None else holding.holder

    def new_holding(self, by: str, *, private: bool) -> Holding:
        """A hold that begins now, and is not in force yet."""
        return Holding(self, Holder(name_of(by), self._wall(), private))

    def refuse_if_held(self, *, looking: bool = False, under_way: bool = False) -> None:
        """Raise if another person than the caller has control.

        Args:
            looking: The caller only looks, which only a private hold forbids.
            under_way: The caller was interrupted because a hold begins or ends.

        Raises:
            DesktopHeld: Another person has control.
            Closed: The caller had it, and its hold has ended.
        """
        mine, holding = _HOLDING.get(), self.holding
        if mine is holding and not under_way:
            return
        if mine is not None and mine.state is self and holding in {None, mine}:
            raise Closed(_HOLD_ENDED)
        if holding is None or (looking and not holding.holder.private):
            return
        holder = holding.holder
        since = datetime.fromtimestamp(holder.since, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        raise DesktopHeld(holder.by, since, private=holder.private, under_way=under_way)

    def end_of(self, holding: Holding, note: str) -> str:
        """What the agent reads about a hold that has ended."""
        seconds = max(0.0, self._wall() - holding.holder.since)
        ended = f"{holding.holder.by} had control of this desktop for {seconds:.0f} s"
        return f"{ended} and says: {note}" if note else f"{ended}, and left no note"

    # --- notes for the agent ---

    def add_note(self, text: str) -> None:
        """Keep a note for the agent's next observation; of too many, the oldest goes."""
        with self._lock:
            self.notes = (*self.notes, text)[-_MOST_NOTES:]

    def take_notes(self) -> tuple[str, ...]:
        """The notes since the last time; none for the holder, for whom they are not."""
        if not self.notes or _HOLDING.get() is not None:
            return ()
        with self._lock:
            notes, self.notes = self.notes, ()
            return notes

    # --- the pause ---

    @property
    def waiting(self) -> tuple[Operation, ...]:
        """The operations that wait, in the order in which they came."""
        with self._lock:
            return tuple(each.operation for each in self._waiting)

    def begin_pause(self, by: str) -> None:
        """Let every operation wait from now on; a pause that lasts goes on."""
        with self._lock:
            self._steps = 0
            self.pause = self.pause or Pause(name_of(by), self._wall())
            for view in tuple(self._views):
                view.gated = True

    def step(self) -> None:
        """Let one operation through: the first that waits, or the next that comes.

        Raises:
            ActionError: It is not paused.
        """
        with self._lock:
            if self.pause is None:
                raise ActionError("control.step: the desktop is not paused: call control.pause before")
            waiting = next(iter(self._waiting), None)
            if waiting is None:
                self._steps = min(self._steps + 1, _MOST_STEPS)
            else:
                del self._waiting[waiting]
                waiting.answers.put(_GO)

    def end_pause(self) -> None:
        """Let all operations through."""
        with self._lock:
            self.pause, self._steps = None, 0
            waiting, self._waiting = tuple(self._waiting), {}
            for view in tuple(self._views):
                view.gated = bool(view.interceptors)
        for each in waiting:
            each.answers.put(_GO)

    @contextlib.contextmanager
    def passage(self, operation: Operation) -> Iterator[None]:
        """Wait while the desktop is paused; what the operation does in the block is a part of it and does not wait.

        Raises:
            NoAnswer: The operation is to end.
        """
        if self.pause is None or _LET_THROUGH.get() is self:
            yield
            return
        self._wait(operation)
        token = _LET_THROUGH.set(self)
        try:
            yield
        finally:
            _LET_THROUGH.reset(token)

    def _wait(self, operation: Operation) -> None:
        waiting = _Waiting(operation, CALLER.get())
        with self._lock:
            if self.pause is None:
                return
            if self._steps and not self._waiting:
                self._steps -= 1
                return
            self._waiting[waiting] = None
        try:
            if operation.attempt.wait(waiting.answers, None) is not _GO:
                raise NoAnswer("the call was ended")
        finally:
            with self._lock:
                self._waiting.pop(waiting, None)

    def end_waiting(self, caller: object = None) -> None:
        """End the calls that wait, those of `caller` only if it is given; without a lock."""
        self.help.end_waiting(caller)
        for waiting in tuple(self._waiting):
            if caller is None or waiting.caller is caller:
                waiting.answers.put(_END)


_LET_THROUGH: ContextVar[ControlState | None] = ContextVar("deskhand_let_through", default=None)
