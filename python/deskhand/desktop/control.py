"""`desktop.control`: a person takes control of a desktop, hands it back, pauses the agent, and answers its requests for help.

This module owns how a hold begins and ends: the call under way is broken off, and what is pressed is released. The state is in
`deskhand.desktop.control_state`.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from deskhand._core.arguments import expect_flag, expect_integer, expect_seconds, expect_text
from deskhand._core.attempts import NoAnswer
from deskhand.desktop.control_state import ControlEvent, held_by, outside_of_holds
from deskhand.desktop.gate import operate, stopped_call
from deskhand.desktop.help_requests import name_of, text_of
from deskhand.errors import ActionError, Closed, DeskhandTimeout, Reconnected

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from deskhand.desktop.connection import Core
    from deskhand.desktop.control_state import ControlState, Holding, Pause
    from deskhand.desktop.help_requests import HelpRequest
    from deskhand.desktop.operations import Holder, Interceptor, Operation
    from deskhand.desktop.view import View

# A desktop's class, which stands above this module.
_D = TypeVar("_D")
_LIMIT = 5.0
_SLICE = 0.01
_LARGEST_ID = 2**53


class Hold(Generic[_D]):
    """A person's control of a desktop, from `Control.take` to its end. Leaving a `with` block ends it.

    Attributes:
        holder: Who has it, and since when.
        desktop: The same desktop for the holder. No policy judges its looks, input, clipboard and windows; recorders and audit
            logs hear of them. Commands and files are judged as those of everybody else.
    """

    def __init__(self, core: Core, holding: Holding, desktop: _D) -> None:
        """Describe a hold that has begun."""
        self.holder: Holder = holding.holder
        self.desktop: _D = desktop
        self._core = core
        self._holding = holding

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"<Hold by {self.holder.by}{'' if self.active else ', ended'}>"

    @property
    def active(self) -> bool:
        """Whether it lasts: until it is released, another person takes control by force, or the desktop is closed."""
        return not self._core.closed and self._core.control.holding is self._holding

    def release(self, note: str = "") -> None:
        """Hand the desktop back. Harmless when called again, or too late.

        What the holder pressed is released. The agent's next observation has the note (`Observation.notes`).

        Args:
            note: What the agent should know. It gets it on one line, without control characters, cut at 2,000.

        Raises:
            DesktopLost: The desktop is gone. The hold has ended all the same, as after any other error.
        """
        expect_text("release: note", note)
        if not self._core.owner.is_parent:
            _end(self._core, self._holding, note)


class Control(Generic[_D]):
    """Who acts on a desktop; get it as `desktop.control`.

    Its methods do not pass the gate, as `Desktop.stop` does not. They come from the program that owns the desktop.

    Example:
        >>> with desktop.control.take("Ada") as hold:
        ...     hold.desktop.perform(Type(Secret(password)))
        >>> desktop.control.pause("Ada")
        >>> desktop.control.step()
    """

    def __init__(self, view: View) -> None:
        """Work on the desktop of `view`."""
        self._view = view

    @property
    def holder(self) -> Holder | None:
        """Who has control; None if no one has taken it."""
        core = self._core()
        return None if core.closed else core.control.holder

    @property
    def paused(self) -> Pause | None:
        """Who has paused it, and since when; None if it is not paused."""
        core = self._core()
        return None if core.closed else core.control.pause

    @property
    def waiting(self) -> tuple[Operation, ...]:
        """The operations that wait because it is paused, in the order in which they came."""
        core = self._core()
        return () if core.closed else core.control.waiting

    @property
    def requests(self) -> tuple[HelpRequest, ...]:
        """The requests for help that are not answered yet (`Desktop.hand_over`), the oldest first."""
        core = self._core()
        return () if core.closed else core.control.help.pending

    def take(self, by: str, *, private: bool = False, force: bool = False, timeout: float = 5.0) -> Hold[_D]:
        """Take control: until it is handed back, only the holder acts, and everybody else gets `DesktopHeld`.

        The hold is a state, and this call does not wait for its end. The call under way is broken off at its next safe point,
        as by `Desktop.stop`, and what is pressed is released, before this returns. Commands on the machine go on. Operations
        that wait for an answer go on waiting; they are refused then.

        Args:
            by: Who takes it: a name that others read in errors and logs.
            private: Others may not look at the desktop either, nor run commands, which could look. Recorders and audit logs
                get no operation of such a hold, only that it began and ended.
            force: Take it from the person who has it. That hold ends first.
            timeout: Seconds for the call under way to end.

        Raises:
            DesktopHeld: Another person has control already.
            DeskhandTimeout: The call under way did not end in time, or the server did not answer. All is as before then.
            PolicyDenied: The desktop was stopped, or the audit log cannot be written.
            UnsupportedAction: The desktop was opened to look only.
            Closed: It is closed.
            DesktopLost: It is gone.
        """
        who = _named("control.take: by", by)
        expect_flag("control.take: private", private)
        expect_flag("control.take: force", force)
        expect_seconds("control.take: timeout", timeout)
        core = self._core()
        core.refuse_if_closed()
        core.refuse_commands("control.take")
        state = core.control
        with _changing(core, "control.take"):
            former = state.holding
            if former is not None and not force:
                with outside_of_holds():
                    state.refuse_if_held()
            holding = state.new_holding(who, private=private)
            holding.pointer = core.left_pointer if former is None else former.pointer
            # First of all, so that what cannot be written does not happen.
            state.report(ControlEvent("take", who, private=private))
            state.holding = holding
            try:
                _release_everything(core, holding, "control.take", timeout)
            except BaseException:
                state.holding = former
                state.report(ControlEvent("release", who, "control could not be taken", private))
                raise
            if former is not None:
                _note_end(state, former, f"{who} took control from me")
        return Hold(core, holding, self._view.see(core, self._interceptors_of_hold(), waits=False, holding=holding))

    def release(self, note: str = "") -> None:
        """Hand the desktop back on behalf of the person who has control, as `Hold.release` does. Harmless if no one has it.

        Raises:
            DesktopLost: The desktop is gone. The hold has ended all the same.
        """
        expect_text("control.release: note", note)
        core = self._core()
        core.refuse_if_closed()
        if (holding := core.control.holding) is not None:
            _end(core, holding, note)

    def decline(self, request: int | HelpRequest, by: str, note: str = "") -> None:
        """End a request for help without taking control. The agent's next observation says so, with the note.

        Raises:
            ActionError: No such request is pending.
        """
        number = expect_integer("control.decline: request", getattr(request, "id", request), 0, _LARGEST_ID)
        who = _named("control.decline: by", by)
        reason = text_of(expect_text("control.decline: note", note))
        state = self._open().control
        declined = state.help.end(number)
        said = f" and says: {reason}" if reason else ""
        state.add_note(f"{who} declined the request for help ({declined.reason}){said}")
        state.report(ControlEvent("decline", who, reason or declined.reason))

    def pause(self, by: str) -> None:
        """Let operations of agents wait until `resume`. Those under way go on; a person who has control does not wait.

        An operation that waits ends as any other does, by `stop`, `interrupt`, `close`, Ctrl-C or the cancellation of its task.

        Args:
            by: Who pauses it.
        """
        who = _named("control.pause: by", by)
        core = self._open()
        core.refuse_if_stopped("control.pause")
        core.control.begin_pause(who)
        core.control.report(ControlEvent("pause", who))

    def step(self) -> None:
        """While it is paused, let one operation through: the first that waits, or the next that comes.

        Raises:
            ActionError: It is not paused.
        """
        state = self._open().control
        pause = state.pause
        state.step()
        state.report(ControlEvent("step", "" if pause is None else pause.by))

    def resume(self) -> None:
        """Let all operations through again. Harmless if it is not paused."""
        state = self._open().control
        if (pause := state.pause) is not None:
            state.end_pause()
            state.report(ControlEvent("resume", pause.by))

    def _core(self) -> Core:
        core = self._view.core
        core.owner.refuse_if_parent("this desktop")
        return core

    def _open(self) -> Core:
        core = self._core()
        core.refuse_if_closed()
        return core

    def _interceptors_of_hold(self) -> tuple[Interceptor, ...]:
        """The interceptors of the holder's operations: the owner's, this view's, and all that listen to control."""
        core = self._view.core
        found = (*core.interceptors, *self._view.interceptors, *core.control.listeners)
        return tuple({id(each): each for each in found}.values())


def ask_for_help(view: View, reason: str) -> HelpRequest:
    """See `Desktop.hand_over`."""
    if not text_of(expect_text("hand_over: reason", reason)):
        raise ActionError("hand_over: the reason is empty: say what help is needed for")
    core = view.core

    def ask() -> HelpRequest:
        core.refuse_if_closed()
        request, is_new = core.control.help.ask(reason)
        if is_new:
            core.control.report(ControlEvent("ask", text=request.reason))
        return request

    core.refuse_if_closed()
    return view.beside(lambda: view.operation("hand_over", text_of(reason)), ask)


def wait_for_help(view: View, request: HelpRequest, timeout: float) -> bool:
    """Wait until a request has ended, or for so many seconds. Returns whether it has ended.

    It takes no turn at the desktop, and is no operation of its own. It ends as an operation that waits in a pause does.
    """
    core = view.core
    operation = view.operation("hand_over", request.reason)

    def wait() -> bool:
        core.refuse_if_closed()
        try:
            return core.control.help.wait(request, operation.attempt, timeout)
        except NoAnswer:
            raise stopped_call(core, operation) from None

    return operate(core, (), operation, wait, beside=True, waits=False)


def _named(what: str, by: str) -> str:
    who = name_of(expect_text(what, by))
    if not who:
        raise ActionError(f"{what}: the name is empty: others read it in errors and logs")
    return who


@contextlib.contextmanager
def _changing(core: Core, what: str) -> Iterator[None]:
    """Begin or end a hold; one thread at a time does."""
    if core.lock._is_owned():  # type: ignore[attr-defined] # noqa: SLF001 # what `threading.Condition` asks
        raise ActionError(f"{what}: this thread is in a call of this desktop: use another thread")
    with core.control.turn:
        core.control.changing = True
        try:
            yield
        finally:
            core.control.changing = False


def _release_everything(core: Core, holding: Holding, what: str, timeout: float) -> None:
    """Break the call under way off, and release what is held; `holding` has control from then on.

    Raises:
        DeskhandTimeout: The call did not end in time.
    """
    deadline = core.clock() + timeout
    # Repeated, because a call that was just beginning has taken the first request as meant for the one before.
    core.interrupt_turn()
    while not core.lock.acquire(timeout=_SLICE):
        if core.clock() > deadline:
            raise DeskhandTimeout(f"{what}: the call under way did not end in {timeout:g} s")
        core.interrupt_turn()
    try:
        # What a failure leaves pressed is released by the next call.
        core.acting = True
        with held_by(holding), contextlib.suppress(Reconnected), core.turn(max(_SLICE, deadline - core.clock())):
            core.release()
            core.backend.round_trip()
    finally:
        core.lock.release()


def _end(core: Core, holding: Holding, note: str) -> None:
    """End a hold, if it still lasts."""
    state = core.control
    if core.closed or state.holding is not holding:
        return
    with _changing(core, "control.release"):
        if core.closed or state.holding is not holding:
            return
        try:
            _release_everything(core, holding, "control.release", _LIMIT)
        except Closed:
            return
        finally:
            core.left_pointer = holding.pointer
            # What the person did is no change that the desktop makes by itself.
            core.watch.begin_anew()
            state.help.end_all()
            state.holding = None
            _note_end(state, holding, text_of(note))


def _note_end(state: ControlState, holding: Holding, note: str) -> None:
    state.add_note(state.end_of(holding, note))
    state.report(ControlEvent("release", holding.holder.by, note, holding.holder.private))
