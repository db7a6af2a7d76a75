"""The core of a desktop: its connection, its lock, what it holds pressed, and its end. It has no gate.

This module owns the lock, the clock and the order of things. It has no X or RFB request and no rule of settling. `Desktop` is
the core with a gate before it; deskhand's own parts look through a `Desktop` without interceptors.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import warnings
from typing import TYPE_CHECKING

from deskhand._core.attempts import InTurn
from deskhand._core.forks import Owner
from deskhand._core.health import Expected
from deskhand._native import Interrupted
from deskhand.desktop.cleanup import CleanupStack
from deskhand.desktop.clicks import Clicks
from deskhand.desktop.control_state import ControlState
from deskhand.desktop.losses import MAY_MEAN_A_LOSS, raise_loss
from deskhand.desktop.ocr import ScreenReader
from deskhand.desktop.program_guard import ProgramGuard
from deskhand.desktop.translate import PressedKeys
from deskhand.desktop.watcher import Watch
from deskhand.errors import (
    BackendError,
    Closed,
    DeskhandError,
    DesktopLost,
    PolicyDenied,
    Reconnected,
    UnsupportedAction,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from deskhand._core.attempts import Attempt
    from deskhand._core.geometry import Size
    from deskhand.backends.protocols import Backend
    from deskhand.desktop.operations import Interceptor
    from deskhand.machine.interface import DesktopMachine
    from deskhand.machine.processes import Programs
    from deskhand.machine.shell import Shell

NO_MACHINE = 'use deskhand.launch("docker"), or desktop.host (--host) for what may run on this machine, as you'
"""What to do if the desktop has no machine of its own."""

CLOSED = "this desktop is closed"
_CLIPBOARD_LIMIT = 5.0
_CLOSE_LOCK_LIMIT = 15.0
_CLOSE_SLICE = 0.1
_RELEASE_TRIES = 3


class Core:
    """What all views of one desktop share; see `Desktop.__init__` for the arguments.

    Attributes:
        owner: The process that the object belongs to.
        lock: The thread that has it acts on the desktop.
        pressed_keys: The keys and buttons held pressed.
        watch: Knows what has been seen.
        elements: Reads the elements of applications.
        control: Who has control of it, and whether it is paused.
        view_only: It was opened to look only.
        interceptors: Those of the desktop's owner. They stay when the desktop is handed over or made as new.
        in_turn: Knows whose call has its turn.
        attempts: Calls that are under way, with the thread of each.
        successor: The desktop that `pass_on` or `renew` has made of this one.
        programs: The process that keeps its programs.
        watch_over: Called before a press: see `ProgramGuard.watch_over`.
        shells: Open ones, each with its caller.
        commands: Those of one command each, which a stop of the call under way ends too.
        expected: What a desktop that has started has.
        closed: The object can no longer be used.
        closing: It is about to be closed, or was revoked.
        end_message: The message of errors after that.
        ending: The steps at its end.
        remake: Makes the display as new; None where there is no way.
        stopped: Why calls are refused, after `stop`; None otherwise.
        halting: A thread releases what is held, after `stop`.
        released: It has done so.
        acting: A call was stopped, and then stopped again while it released what it held.
        clipboard_lent: The clipboard may have a text to be pasted, and its former content has to be put back.
        left_pointer: Where the driver's input has left the pointer; None before the first.
    """

    def __init__(
        self,
        backend: Backend,
        *,
        display: str | None,
        xauthority: Path | None,
        name: str | None,
        guard: Callable[[], Programs] | None,
        environment: Mapping[str, str] | None,
        owns_processes: bool,
        inside: DesktopMachine | None,
        view_only: bool,
        on_close: Sequence[Callable[[], None]],
        renew: Callable[[], Core] | None,
        expected: Expected | None,
        registry: Sequence[str] | None,
        clock: Callable[[], float],
    ) -> None:
        """See `Desktop.__init__`."""
        self.owner: Owner = Owner()
        self.display = display
        self.xauthority = xauthority
        self.name = name
        self.inside = inside
        self.backend = backend
        self.environment: dict[str, str] = dict(environment or {})
        self.clock = clock
        self.lock: threading.RLock = threading.RLock()
        self.in_turn: InTurn = InTurn()
        self.pressed_keys: PressedKeys = PressedKeys()
        self.clicks: Clicks = Clicks()
        self.watch: Watch = Watch(backend, clock)
        self.elements: ScreenReader = ScreenReader(backend, self.watch, self.environment, inside)
        self.control: ControlState = ControlState()
        self.interceptors: tuple[Interceptor, ...] = ()
        self.attempts: dict[Attempt, int] = {}
        self.successor: Core | None = None
        self.closed: bool = False
        self.acting: bool = False
        self.clipboard_lent: bool = False
        self.left_pointer: tuple[int, int] | None = None
        self.view_only: bool = view_only
        self.ending: CleanupStack = CleanupStack()
        if owns_processes:
            # Nothing needs to be released on a display that ends, and releasing would wait for a stopped server.
            self.ending.add(backend.close)
        for step in reversed(on_close):
            self.ending.add(step)
        self.programs: ProgramGuard = ProgramGuard(
            guard,
            backend.name,
            display=display,
            xauthority=xauthority,
            environment=self.environment,
            registry=registry,
            owns_processes=owns_processes,
        )
        self.watch_over: Callable[[], None] = self.programs.watch_over
        self.ending.add(self.programs.close)
        self.ending.add(self.elements.close)
        if not owns_processes:
            self.ending.add(backend.close)
        self.remake: Callable[[], Core] | None = renew
        self.expected: Expected = expected or Expected()
        self.shells: dict[Shell, object] = {}
        self.commands: dict[Shell, object] = {}
        self.closing: bool = False
        self.end_message: str = CLOSED
        self.stopped: str | None = None
        self.halting: bool = False
        self.released: bool = False

    def __del__(self) -> None:
        # An object whose construction failed has no such attribute.
        if not getattr(self, "closed", True) and not self.owner.is_parent and not sys.is_finalizing():
            warnings.warn(f"{self!r} was not closed", ResourceWarning, stacklevel=1, source=self)
            with contextlib.suppress(DeskhandError):
                self.close()

    def __repr__(self) -> str:
        if self.owner.is_parent:
            state = "of another process"
        else:
            state = "closed" if self.closed else f"{self.size.width}x{self.size.height}"
        return f"<Desktop {self.name or self.display or self.backend.name} {state}>"

    @property
    def size(self) -> Size:
        """Width and height of the screen in pixels."""
        self.owner.refuse_if_parent("this desktop")
        return self.backend.size

    # --- taking turns ---

    @contextlib.contextmanager
    def turn(self, limit: float | None = None, *, shows: bool = True) -> Iterator[None]:
        """Take the desktop for one call. What an earlier call left pressed is released first.

        Args:
            limit: See `Backend.allow`.
            shows: Whether the call may tell what the screen shows, which a private hold forbids to others.
        """
        self.owner.refuse_if_parent("this desktop")
        with self.lock:
            self.refuse_if_closed()
            if shows:
                self.control.refuse_if_held(looking=True)
            self.in_turn.begin(self.forget_stop)
            self.backend.begin()
            self.backend.allow(limit)
            try:
                if self.acting:
                    self.release_strays()
                yield
            except Reconnected:
                self.forget_input()
                raise
            except MAY_MEAN_A_LOSS as error:
                raise_loss(self, error)
            except Interrupted:
                if self.closing:
                    raise Closed(self.end_message) from None
                self.refuse_the_rest()
                raise
            finally:
                self.backend.end()

    @property
    def orphaned(self) -> bool:
        """Whether the guard of its processes has ended, and so all of them."""
        return self.programs.ended_with_all

    def look(self) -> None:
        """Bring the screen up to date. Looking again after a reconnection is harmless."""
        try:
            self.backend.look()
        except Reconnected:
            self.forget_input()
            self.backend.look()

    # --- what may not be done ---

    def refuse_if_closed(self) -> None:
        """Raise if the object can no longer be used."""
        self.owner.refuse_if_parent("this desktop")
        if self.closed or self.closing:
            raise Closed(self.end_message)

    def refuse_if_stopped(self, what: str) -> None:
        """Raise after `stop`."""
        if self.stopped is not None:
            raise PolicyDenied(what, self.stopped)

    def refuse_the_rest(self) -> None:
        """Within a call that was interrupted: raise if that was done by `stop`, or because a hold begins or ends."""
        if self.stopped is not None:
            raise PolicyDenied("the rest of this call", self.stopped) from None
        if self.control.changing:
            self.control.refuse_if_held(under_way=True)

    def refuse_input(self, what: str) -> None:
        """Raise if the desktop may only be looked at, or a person has control."""
        self.refuse_commands(what)
        self.control.refuse_if_held()

    def refuse_commands(self, what: str) -> None:
        """Raise if the desktop may only be looked at."""
        self.refuse_if_stopped(what)
        if self.view_only:
            raise UnsupportedAction(f"a desktop opened with view_only=True ({self.backend.name})", what)

    def machine(self, what: str) -> DesktopMachine:
        """The desktop's own machine, which `what` is about.

        Raises:
            UnsupportedAction: It has none, or was opened to look only.
        """
        if self.inside is None:
            raise UnsupportedAction(self.backend.name, what, NO_MACHINE)
        self.refuse_if_closed()
        self.refuse_commands(what)
        return self.inside

    # --- programs and shells ---

    def exit_status(self, pid: int) -> int | None:
        """See `Program.poll`."""
        with self.turn(shows=False):
            self.backend.round_trip()
            guard = self.programs.current
            return None if guard is None else guard.exit_status(pid)

    def close_shells(self) -> None:
        """End every shell, and what it has started."""
        with contextlib.ExitStack() as all_of_them:
            for shell in (*self.shells, *self.commands):
                all_of_them.callback(shell.close)

    # --- releasing ---

    def forget_input(self) -> None:
        """After a reconnection, note that nothing is held and that the pointer may be anywhere."""
        self.pressed_keys.clear()
        self.left_pointer = None

    def release_after(self, error: BaseException) -> None:
        """Leave nothing pressed after a failure. The caller gets that failure."""
        if isinstance(error, DesktopLost | Reconnected):
            # Nothing is held there any more, but a server that is back may still have the clipboard.
            self.acting = self.clipboard_lent
            return
        for _ in range(_RELEASE_TRIES):
            # A second Ctrl-C does not stop what the first one began; between these lines, the next call releases instead.
            with contextlib.suppress(KeyboardInterrupt, DeskhandError):
                self.release_strays()
                return

    def release_strays(self) -> None:
        """Release what is held, and give back the clipboard that a text was pasted from."""
        if self.pressed_keys.pressed:
            self.forget_stop()
            self.release()
        if self.clipboard_lent:
            self.forget_stop()
            self.give_clipboard_back()
        self.acting = False

    def release(self) -> None:
        """Release every key and button that is held."""
        self.backend.release(self.pressed_keys.release_events())
        self.pressed_keys.clear()

    def give_clipboard_back(self) -> None:
        """Put the clipboard's content from before a paste back."""
        if self.clipboard_lent:
            self.backend.return_clipboard(_CLIPBOARD_LIMIT)
            self.clipboard_lent = False

    # --- stopping ---

    def interrupt(self, caller: object = None) -> None:
        """From another thread: stop the call under way, of `caller` only if given. It releases what it holds and raises."""
        self.owner.refuse_if_parent("this desktop")
        if self.closed:
            # Another object may have the connection now; see `pass_on`.
            return
        self.in_turn.stop(caller, self._ask_to_stop)
        self.control.end_waiting(caller)
        for shell, its_caller in tuple(self.commands.items()):
            if caller is None or its_caller is caller:
                shell.interrupt()

    def interrupt_turn(self) -> None:
        """From another thread: stop the call that acts or looks, and no command that runs beside the screen."""
        self.in_turn.stop(None, self._ask_to_stop)

    def _ask_to_stop(self) -> None:
        self.watch.stop = True
        self.backend.interrupt()
        self.elements.interrupt()

    def forget_stop(self) -> None:
        """Take a request to stop back: it was not for what comes next."""
        self.watch.stop = False
        self.backend.clear_interrupt()
        self.elements.clear_interrupt()

    def end_attempts(self) -> None:
        """End the calls under way, including those that wait for an answer."""
        for attempt in tuple(self.attempts):
            attempt.end()

    # --- the end ---

    def close(self) -> None:
        """See `Desktop.close`."""
        if self.owner.is_parent:
            self.closed = True
            return
        with self.last_turn("close"):
            self.closed = True
            self.pressed_keys.clear()
            try:
                self.close_shells()
            finally:
                self.ending.close()

    @contextlib.contextmanager
    def last_turn(self, what: str) -> Iterator[None]:
        """Take the turn at the desktop, ending the call under way; no other call gets it after that."""
        self.owner.refuse_if_parent("this desktop")
        before, self.closing = self.closing, True
        self.control.pause = None
        for _ in range(round(_CLOSE_LOCK_LIMIT / _CLOSE_SLICE)):
            # Repeated, because a call that was just beginning has taken the first request as meant for the one before.
            self.interrupt()
            if self.lock.acquire(timeout=_CLOSE_SLICE):
                break
        else:
            raise BackendError(f"{what}: another thread is still in a call on this desktop")
        try:
            yield
        except DesktopLost:
            # The next caller must get the same error.
            self.closing = before
            raise
        finally:
            self.lock.release()
