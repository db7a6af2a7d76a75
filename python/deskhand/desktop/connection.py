"""The core of a desktop: its connection, its lock, what it holds pressed, and its end. It has no gate.

This module owns the lock, the clock and the order of things. It has no X or RFB request and no rule of settling. `Desktop` is
the core with a gate before it; deskhand's own parts look through a `Desktop` without interceptors.
"""

from __future__ import annotations

import contextlib
import copy
import os
import sys
import threading
import warnings
from typing import TYPE_CHECKING

from deskhand._core.attempts import CALLER, InTurn
from deskhand._core.forks import Owner
from deskhand._core.health import Expected, Health
from deskhand._native import Interrupted
from deskhand.desktop.cleanup import CleanupStack
from deskhand.desktop.clicks import Clicks
from deskhand.desktop.control_state import ControlState
from deskhand.desktop.health import examine
from deskhand.desktop.losses import MAY_TELL_OF_A_LOSS, loss_behind, losses_told, raise_told
from deskhand.desktop.ocr import ScreenReader
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
    from deskhand.machine.interface import Inside, Session, Where
    from deskhand.machine.processes import Programs
    from deskhand.machine.shell import Operate, Shell

NO_MACHINE = 'use deskhand.launch("docker"), or desktop.host (--host) for what may run on this machine, as you'
"""What to do if the desktop has no machine of its own."""

_CLOSED = "this desktop is closed"
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
        attempts: Calls that are under way, with the thread of each.
        successor: The desktop that `pass_on` or `renew` has made of this one.
        closed: The object can no longer be used.
        end_told: The message of errors after that.
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
        inside: Inside | None,
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
        self.guard: Programs | None = None
        self.environment: dict[str, str] = dict(environment or {})
        self.clock = clock
        self.lock: threading.RLock = threading.RLock()
        self._in_turn = InTurn()
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
        self._make_guard = guard
        self._registry = registry
        self.view_only: bool = view_only
        self.ending: CleanupStack = CleanupStack()
        if owns_processes:
            # Nothing needs to be released on a display that ends, and releasing would wait for a stopped server.
            self.ending.add(backend.close)
        for step in reversed(on_close):
            self.ending.add(step)
        self._programs = CleanupStack()
        self.ending.add(self._programs.close)
        self.ending.add(self.elements.close)
        if not owns_processes:
            self.ending.add(backend.close)
        self.remake: Callable[[], Core] | None = renew
        self._expected = expected or Expected()
        # Open ones, and those of one command each, which a stop of the call under way ends too; each with its caller.
        self._shells: dict[Shell, object] = {}
        self._commands: dict[Shell, object] = {}
        self._closing = False
        self.end_told: str = _CLOSED
        self.stopped: str | None = None
        self.halting: bool = False
        self.released: bool = False
        self._owns_processes = self._watched_over = owns_processes

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
            self._in_turn.begin(self.forget_stop)
            self.backend.begin()
            self.backend.allow(limit)
            try:
                if self.acting:
                    self.release_strays()
                yield
            except Reconnected:
                self.forget_input()
                raise
            except MAY_TELL_OF_A_LOSS as error:
                raise_told(self, error)
            except Interrupted:
                if self._closing:
                    raise Closed(self.end_told) from None
                self.refuse_the_rest()
                raise
            finally:
                self.backend.end()

    @property
    def orphaned(self) -> bool:
        """Whether the guard of its processes has ended, and so all of them."""
        return self._owns_processes and self._make_guard is not None and self.own_guard().gone

    def look(self) -> None:
        """Bring the screen up to date. Looking again after a reconnection is harmless."""
        try:
            self.backend.look()
        except Reconnected:
            self.forget_input()
            self.backend.look()

    def examine(self, timeout: float) -> Health:
        """See `Desktop.health`; within a turn."""
        try:
            health = self._examine(timeout)
        except Reconnected:
            self.forget_input()
            health = self._examine(timeout)
        self.watch.check_stop()
        return health

    def _examine(self, timeout: float) -> Health:
        try:
            return examine(
                self.backend,
                self._expected,
                limit=timeout,
                refused="it was opened to look only" if self.view_only else "",
                # The pointer stays where a person has it.
                held=bool(self.pressed_keys.pressed) or self.control.holding is not None,
                placed=self.left_pointer is not None,
            )
        except DesktopLost as lost:
            return Health(started="it is lost", live=str(loss_behind(self, lost)), ready="it is lost")

    # --- what may not be done ---

    def refuse_if_closed(self) -> None:
        """Raise if the object can no longer be used."""
        self.owner.refuse_if_parent("this desktop")
        if self.closed or self._closing:
            raise Closed(self.end_told)

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
        """Raise if the desktop may only be looked at, or somebody else has control."""
        self.refuse_commands(what)
        self.control.refuse_if_held()

    def refuse_commands(self, what: str) -> None:
        """Raise if the desktop may only be looked at."""
        self.refuse_if_stopped(what)
        if self.view_only:
            raise UnsupportedAction(f"a desktop opened with view_only=True ({self.backend.name})", what)

    def machine(self, what: str) -> Inside:
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

    def own_guard(self) -> Programs:
        """The process that keeps this desktop's programs.

        Raises:
            UnsupportedAction: None can be started from here.
        """
        if self.guard is not None and self.guard.gone and not self._owns_processes:
            # Its programs ended with it. The desktop belongs to another user, and stays.
            self.guard.close()
            self.guard, self._watched_over = None, False
        if self.guard is None:
            if self._make_guard is None:
                raise UnsupportedAction(self.backend.name, "start", "programs are started on the desktop's own machine")
            self.guard = self._make_guard()
            self._programs.add(self.guard.close)
        return self.guard

    def guard_of_programs(self) -> Programs:
        """The same, to start a program: before the first, it starts the registry that programs announce themselves to."""
        guard = self.own_guard()
        if (registry := self._registry) is not None:
            self._registry = None
            guard.spawn(registry, env=self.environment)
        return guard

    def exit_status(self, pid: int) -> int | None:
        """See `Program.poll`."""
        with self.turn(shows=False):
            self.backend.round_trip()
            return None if self.guard is None else self.guard.exit_status(pid)

    def open_shell(
        self,
        where: Where,
        what: str,
        *,
        cwd: str | None,
        env: Mapping[str, str] | None,
        timeout: float,
        limit: int,
        once: bool = False,
        operate: Operate | None = None,
        judged: bool = False,
    ) -> Shell:
        """A shell, which the desktop's end ends. `once`: for one command; `operate`: runs its operations."""
        # Few programs open one, and each would wait for this at its start.
        from deskhand.machine.host_session import HostSession, host_environment  # noqa: PLC0415
        from deskhand.machine.shell import Shell  # noqa: PLC0415

        self.refuse_if_closed()
        self.refuse_commands(what)
        inside = self.machine(what) if where == "desktop" else None

        def session() -> Session:
            if inside is not None:
                with losses_told(self):
                    return inside.session(cwd=cwd, env=env, once=once)
            environment = host_environment(
                self.environment, display=self.display, xauthority=self.xauthority, extra=env
            )
            return HostSession(cwd=cwd, env=environment, once=once)

        mine = self._commands if once else self._shells
        shell = Shell(
            session,
            timeout=timeout,
            limit=limit,
            once=once,
            on_close=lambda shell: mine.pop(shell, None),
            operate=operate,
            judged=judged,
            clock=self.clock,
        )
        # Registered before there is anything to end.
        mine[shell] = CALLER.get()
        try:
            shell.begin()
            # Another thread ended the shells meanwhile, perhaps without this one.
            self.refuse_if_closed()
        except BaseException:
            shell.close()
            raise
        return shell

    def close_shells(self) -> None:
        """End every shell, and what it has started."""
        with contextlib.ExitStack() as all_of_them:
            for shell in (*self._shells, *self._commands):
                all_of_them.callback(shell.close)

    # --- releasing ---

    def watch_over(self) -> None:
        """Before a press: make sure that it is released even if this process is killed."""
        if self._make_guard is None or self.display is None:
            return
        if self._watched_over and (self.guard is None or not self.guard.gone):
            return
        guard = self.own_guard()
        self._watched_over = True
        environment = {**os.environ, "DISPLAY": self.display}
        if self.xauthority is not None:
            environment["XAUTHORITY"] = str(self.xauthority)
        guard.at_end([sys.executable, "-m", "deskhand.backends.x11.release_held"], environment)

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
        self._in_turn.stop(caller, self._ask_to_stop)
        self.control.end_waiting(caller)
        for shell, its_caller in tuple(self._commands.items()):
            if caller is None or its_caller is caller:
                shell.interrupt()

    def interrupt_turn(self) -> None:
        """From another thread: stop the call that acts or looks, and no command that runs beside the screen."""
        self._in_turn.stop(None, self._ask_to_stop)

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

    def revoke(self) -> None:
        """Refuse everything from now on, and end the call under way without waiting for it: the desktop is back in its pool."""
        if self.closed:
            return
        self.end_told = "this desktop was given back to its pool: acquire another"
        self._closing = True
        self.control.pause = None
        self.end_attempts()
        self.interrupt()

    def last_look(self, timeout: float) -> Health:
        """The health of a desktop that was revoked."""
        with self.last_turn("probe"):
            if self.closed:
                raise Closed(self.end_told)
            self.forget_stop()
            self.backend.begin()
            try:
                return self._examine(timeout)
            finally:
                self.backend.end()

    def twin(self) -> Core:
        """Another core of the same desktop, with pressed keys, a memory of what was seen and a lock of its own."""
        other = copy.copy(self)
        vars(other).update(
            lock=threading.RLock(),
            pressed_keys=PressedKeys(),
            watch=Watch(self.backend, self.clock),
            control=ControlState(),
            attempts={},
            end_told=_CLOSED,
            stopped=None,
            halting=False,
            released=False,
            _closing=False,
            _in_turn=InTurn(),
            _shells={},
            _commands={},
        )
        return other

    @contextlib.contextmanager
    def last_turn(self, what: str) -> Iterator[None]:
        """Take the turn at the desktop, ending the call under way; no other call gets it after that."""
        self.owner.refuse_if_parent("this desktop")
        before, self._closing = self._closing, True
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
            self._closing = before
            raise
        finally:
            self.lock.release()
