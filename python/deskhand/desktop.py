"""One desktop: lock, translate, send, settle, observe. The one orchestrator, and the one place that holds the clock.

This module owns the lock, the ledger of pressed keys, and the order of things. What must never appear here: an X or RFB
request, a rule of settling (see `deskhand.settle`), an event made by hand (see `deskhand.translate`).
"""

from __future__ import annotations

import contextlib
import copy
import os
import shlex
import sys
import threading
import time
import warnings
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from deskhand._native import Interrupted
from deskhand.actions import (
    CursorPosition,
    Drag,
    KeyHold,
    KeyPress,
    LeftMouseDown,
    LeftMouseUp,
    MouseDown,
    MouseUp,
    Move,
    PressKeys,
    ReleaseKeys,
    TakeScreenshot,
    Type,
    Wait,
    Zoom,
    action_of,
)
from deskhand.clicks import Clicks
from deskhand.ending import Ending
from deskhand.errors import (
    ActionError,
    BackendError,
    DeskhandError,
    DesktopLost,
    PolicyDenied,
    Reconnected,
    UnsupportedAction,
    Untypable,
    shown,
)
from deskhand.events import ButtonDown, Event, KeyDown, Pause, PointerMove
from deskhand.formats import check_format
from deskhand.geometry import Point, Size, check_point
from deskhand.keys import char_keysym
from deskhand.launch.session import HostSession, host_environment
from deskhand.observation import Elapsed, Observation
from deskhand.probes import Expected, Health, examine
from deskhand.programs import Program, start_program
from deskhand.redaction import Secret, conceal
from deskhand.settle import Settle
from deskhand.shell import Shell
from deskhand.sizes import picture_size
from deskhand.translate import Ledger, SecretEvents, translate
from deskhand.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from deskhand.actions import Action, CarriesAction
    from deskhand.backends.base import Backend, Window
    from deskhand.formats import Format
    from deskhand.inside import CommandResult, Inside, Session, Usage, Where
    from deskhand.launch.processes import Programs
    from deskhand.observation import Screenshot
    from deskhand.sizes import PictureSize

__all__ = ["Desktop", "Listener", "unheard"]

_T = TypeVar("_T")

# Actions after which the next one of the same call need not wait for the screen: they are parts of a gesture, or do nothing.
_NO_WAIT_AFTER = (
    CursorPosition,
    LeftMouseDown,
    LeftMouseUp,
    MouseDown,
    MouseUp,
    Move,
    PressKeys,
    ReleaseKeys,
    TakeScreenshot,
    Wait,
    Zoom,
)
# Actions whose input goes to the window with the focus; that of all others goes to the one under the pointer.
_TO_FOCUS = (KeyHold, KeyPress, PressKeys, ReleaseKeys, Type)
# Longer pauses are waited for here, where they can be interrupted; shorter ones are paced by the backend.
_LONGEST_BACKEND_PAUSE = 0.05
_PASTE_LIMIT = 5.0
_CLIPBOARD_LIMIT = 5.0
_CLOSE_LOCK_LIMIT = 15.0
_CLOSE_SLICE = 0.1
_HALT_SLICE = 0.01
_RELEASE_TRIES = 3
# Terminals have their own chord for it, because Ctrl+V is a character to them.
_PASTE_CHORDS = {"xterm": "shift+Insert", "uxterm": "shift+Insert"}
# What editors and terminals alike take, where it is not known which of them has the keyboard.
_COMMON_PASTE_CHORD = "shift+Insert"
_TERMINALS = ("terminal", "kitty", "alacritty", "konsole", "terminator")


class Listener(Protocol):
    """Hears of the calls of a desktop, in the thread that makes them, whoever makes them: a recorder, a counter.

    What it calls on the desktop itself it hears of as well, unless it does so within `unheard`.
    """

    def before(self, what: str, request: Any) -> object:
        """A call begins; what this raises, the call raises, and nothing is done.

        Args:
            what: `perform`, `screenshot`, `start` or `shell`, for each command that is run in any shell of the desktop.
            request: The actions, None, the words of the program, or the command.

        Returns:
            What `after` gets.
        """
        ...

    def after(self, token: object, answer: object) -> None:
        """It has ended: with what the call returns, or with the exception that it raises."""
        ...


_UNHEARD: ContextVar[bool] = ContextVar("deskhand_unheard", default=False)


@contextlib.contextmanager
def unheard() -> Iterator[None]:
    """What is called in here, in this thread, no listener of a desktop hears of: a listener's own looks."""
    token = _UNHEARD.set(True)
    try:
        yield
    finally:
        _UNHEARD.reset(token)


class Desktop:
    """A desktop that acts and answers. Make one with `deskhand.launch` or `deskhand.connect`.

    Calls from several threads take turns. Leaving a `with` block closes it.

    Example:
        >>> with deskhand.launch() as desktop:
        ...     desktop.start("mousepad")
        ...     seen = desktop.perform(LeftClick((400, 300)), Type("naïve ☕ text"))
    """

    def __init__(
        self,
        backend: Backend,
        *,
        display: str | None = None,
        xauthority: Path | None = None,
        name: str | None = None,
        guard: Callable[[], Programs] | None = None,
        environment: Mapping[str, str] | None = None,
        owns_processes: bool = False,
        inside: Inside | None = None,
        view_only: bool = False,
        on_close: Sequence[Callable[[], None]] = (),
        renew: Callable[[], Desktop] | None = None,
        expected: Expected | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Drive `backend`; users call `launch` or `connect` instead.

        Args:
            backend: The connection.
            display: As `DISPLAY` would name it.
            xauthority: The cookie file that lets any X client join.
            name: The name it is registered under.
            guard: Gives the process that keeps this desktop's programs; called when first needed.
            environment: What programs started here get.
            owns_processes: Whether the display itself ends with this object.
            inside: The machine that belongs to this desktop, where one does: a container.
            view_only: Refuse input.
            on_close: Called in order, after the backend was closed where the display stays, else before that.
            renew: Makes the display as new and returns its next Desktop; see the method of that name.
            expected: What is there when it has started, as far as that is known.
            clock: Monotonic seconds; tests give their own.
        """
        self.display = display
        self.xauthority = xauthority
        self.name = name
        self._inside = inside
        self._backend = backend
        self._make_guard = guard
        self._guard: Programs | None = None
        self._environment = dict(environment or {})
        self._view_only = view_only
        self._ending = Ending()
        if owns_processes:
            # Nothing needs to be released on a display that ends, and one that is stopped would be waited for.
            self._ending.add(backend.close)
        for step in reversed(on_close):
            self._ending.add(step)
        self._programs = Ending()
        self._ending.add(self._programs.close)
        if not owns_processes:
            self._ending.add(backend.close)
        self._renew = renew
        self._expected = expected or Expected()
        self._clock = clock
        self._lock = threading.RLock()
        self._ledger = Ledger()
        self._clicks = Clicks()
        self._watch = Watch(backend, clock)
        # Open ones, and those of one command each, which a stop of the call under way ends too.
        self._shells: set[Shell] = set()
        self._commands: set[Shell] = set()
        self._closed = False
        self._closing = False
        # Why there is no input any more; see `halt`.
        self._halted: str | None = None
        self.listener: Listener | None = None
        # The object that `hand_over` or `renew` has made of this one.
        self.successor: Desktop | None = None
        # What the clipboard held before a secret was put there; None when none is.
        self._clipboard_before: str | None = None
        # True after a call that was stopped, and then stopped again while it released what it held.
        self._acting = False
        self._watched_over = owns_processes
        self._index: int | None = None
        # Where our input has left the pointer; None until there was some.
        self._left_pointer: tuple[int, int] | None = None
        # The size of the screen that the points of the call under way were checked against.
        self._planned_size: Size | None = None
        self._pointer_moved = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        # An object that was never fully made has no such attribute.
        if not getattr(self, "_closed", True) and not sys.is_finalizing():
            warnings.warn(f"{self!r} was not closed", ResourceWarning, stacklevel=1, source=self)
            with contextlib.suppress(DeskhandError):
                self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"{self.size.width}x{self.size.height}"
        return f"<Desktop {self.name or self.display or self._backend.name} {state}>"

    @property
    def size(self) -> Size:
        """Width and height of the screen in pixels."""
        return self._backend.size

    @property
    def status(self) -> tuple[str, ...]:
        """What is not as it should be, a sentence each: slower paths in use, parts that had to be started again..."""
        return (*self._backend.status, *(self._inside.status if self._inside is not None else ()))

    @property
    def pointer(self) -> Point:
        """Where the pointer is, in screen pixels."""
        with self._turn():
            self._look()
            return Point(*self._backend.screen.pointer)

    @property
    def home(self) -> str | None:
        """The home directory of its programs, absolute on their machine; None where nothing can be started."""
        return self._environment.get("HOME") if self._inside is None else self._inside.home

    @property
    def closed(self) -> bool:
        """Whether nobody can do anything with this object any more."""
        return self._closed

    @property
    def has_machine(self) -> bool:
        """Whether it has a machine of its own, a container, which `shell` and the methods for files are about."""
        return self._inside is not None

    @property
    def clipboard(self) -> str | None:
        """The clipboard's text, None when it holds none; assign to write it. See `get_clipboard`."""
        return self.get_clipboard()

    @clipboard.setter
    def clipboard(self, text: str) -> None:
        self.set_clipboard(text)

    # --- acting and looking ---

    def perform(
        self,
        *actions: Action | CarriesAction,
        settle: Settle | bool = True,
        size: PictureSize | None = None,
        format: Format = "png",
        quality: int = 80,
    ) -> Observation:
        """Carry out actions in order and return what the screen answered.

        All actions are checked before anything is sent. Between two of them the screen is given the time to answer, so that a
        text goes to the dialog that the click before it opened; parts of a gesture (button and key presses and releases,
        moves) follow one another at once.

        Args:
            actions: What to do, or tool calls that carry it (`deskhand.tool_calls`); none at all only waits for the screen and
                looks.
            settle: How to wait; False does not wait.
            size: How large the picture is: (width, height) in pixels, a factor, a `Fit`, or the name of a model with
                published limits; by default as large as the screen (or the zoomed region).
            format: What its bytes are: `png`, `indexed`, `jpeg`, `webp` or `raw`; see `deskhand.formats.Format`.
            quality: 1...100, of `jpeg` and `webp`.

        Returns:
            One observation, taken when the screen had settled, or at the timeout (`settled=False`).

        Raises:
            ActionError: An action is wrong (`OutOfBounds`, `Untypable`, `UnsupportedAction`...). Nothing was sent.
            OutOfBounds: Also when the screen became smaller during the call, so that a point is not on it any more: that
                action was not sent, and those before it (`error.done`) were.
            DesktopLost: The other side is gone. A VNC server that does not answer is given up after 10 s, which may be
                several calls: each returns at its timeout until then, `settled=False`.
            Reconnected: The connection broke and was made anew: the action under way may have been done or not.
            BackendError: The other side refused something. Whatever was pressed has been released.
        """
        settings = _settings(settle)
        check_format(format, quality)
        picture_size(size, self.size)
        plain = _plain_actions(actions)
        secret = any(isinstance(action, Type) and isinstance(action.text, Secret) for action in plain)
        carry_out = self._perform_secretly if secret else self._perform
        return self._heard("perform", plain, lambda: carry_out(plain, settings, size, format, quality))

    def screenshot(
        self,
        size: PictureSize | None = None,
        region: tuple[int, int, int, int] | None = None,
        *,
        cursor: bool = True,
        format: Format = "png",
        quality: int = 80,
    ) -> Screenshot:
        """Look, without waiting for anything.

        Args:
            size: How large the picture is: (width, height) in pixels, a factor, a `Fit`, or the name of a model with
                published limits; by default as large as what it shows.
            region: The part of the screen to show: x, y, width, height.
            cursor: Whether the pointer's image is in the picture.
            format: What its bytes are: `png`, `indexed`, `jpeg`, `webp` or `raw`; see `deskhand.formats.Format`.
            quality: 1...100, of `jpeg` and `webp`.

        Raises:
            OutOfBounds: The region is not on the screen.
            ActionError: There is no such size, format or quality.
            ImagingError: The size is not possible.
            DesktopLost: The other side is gone.
        """
        check_format(format, quality)
        return self._heard("screenshot", None, lambda: self._picture(size, region, cursor, format, quality))

    def release_all(self) -> None:
        """Release every key and button that is held, and return when the other side has done so."""
        with self._turn():
            self._backend.release(self._ledger.release_events())
            self._ledger.clear()
            self._backend.round_trip()

    @property
    def held(self) -> tuple[ButtonDown | KeyDown, ...]:
        """What this driver holds pressed, oldest first."""
        return self._ledger.pressed

    # --- windows, programs, clipboard ---

    def windows(self) -> list[Window]:
        """The windows that the window manager lists, bottom to top.

        Raises:
            UnsupportedAction: This backend cannot see windows.
        """
        self._needs_windows("windows")
        with self._turn():
            return self._backend.windows()

    def activate(self, window: Window | int, *, timeout: float = 5.0) -> None:
        """Raise a window and give it the keyboard, and wait until it has it.

        Raises:
            ActionError: There is no such window.
            TimeoutError: The window manager did not do it in `timeout` seconds.
        """
        self._needs_windows("activate")
        number = window if isinstance(window, int) else window.id
        with self._turn():
            self._known(number)
            self._backend.activate(number)
            self._watch.until(
                lambda: any(w.active for w in self._backend.windows() if w.id == number),
                timeout,
                f"window {number:#x} to become active",
            )

    def close_window(self, window: Window | int, *, timeout: float = 5.0) -> bool:
        """Ask a window to close, as its close button would.

        Returns:
            True when it closed; False when it is still there after `timeout` seconds (it may be asking to save).

        Raises:
            ActionError: There is no such window.
        """
        self._needs_windows("close_window")
        number = window if isinstance(window, int) else window.id
        with self._turn():
            self._known(number)
            self._backend.close_window(number)
            try:
                self._watch.until(
                    lambda: all(w.id != number for w in self._backend.windows()), timeout, "the window to close"
                )
            except TimeoutError:
                return False
            return True

    def start(
        self,
        command: str | Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        timeout: float = 30.0,
    ) -> Program:
        """Start a program and return when its window is up and drawn.

        Args:
            command: A command line (split as a shell would, but no shell runs), or its words.
            env: Added to the desktop's environment.
            cwd: Where it starts.
            timeout: Seconds to wait for its window.

        Raises:
            ShellError: It could not be started.
            LaunchFailed: It ended, or showed no window in time; carries the tail of its output.
            UnsupportedAction: This desktop is on another machine, or opened to look only.
        """
        argv = shlex.split(command) if isinstance(command, str) else list(command)
        if not argv:
            raise ActionError("start: the command is empty")
        return self._heard("start", tuple(argv), lambda: self._start(argv, env, cwd, timeout))

    def exit_status(self, program: Program) -> int | None:
        """How a program that `start` has started ended: its exit code, or minus the number of the signal that killed it.

        Returns:
            None while it runs, and where nobody knows.
        """
        with self._turn():
            return None if self._guard is None else self._guard.exit_status(program.pid)

    def shell(
        self,
        command: str,
        *,
        where: Where = "desktop",
        timeout: float = 60.0,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        limit: int = 1 << 20,
    ) -> CommandResult:
        """Run one command with bash, beside whatever else happens on the desktop. `open_shell` is for several.

        Args:
            command: What to run, of any number of lines. Its standard input is empty.
            where: See `open_shell`.
            timeout: Seconds after which it is killed, with all that it started.
            cwd: Where it runs; the home directory when not given.
            env: Added to its environment.
            limit: Bytes that are kept of its output, and of its errors: the beginning and the end.

        Returns:
            How it ended. What it leaves running in the background goes on in a container, unless the time was up, and is ended
            on this machine.

        Raises:
            ShellError: It could not be started.
            UnsupportedAction: This desktop has no machine of its own, and `where` does not say "host".
        """
        with self.shell_once(where=where, timeout=timeout, cwd=cwd, env=env, limit=limit) as shell:
            return shell.run(command)

    def shell_once(
        self, *, where: Where, timeout: float, cwd: str | None, env: Mapping[str, str] | None, limit: int
    ) -> Shell:
        """What `shell` runs its command with, for whoever wants to end that command and no other. To be closed."""
        return self._shell(where, "shell", cwd=cwd, env=env, timeout=timeout, limit=limit, once=True)

    def open_shell(
        self,
        *,
        where: Where = "desktop",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float = 120.0,
        limit: int = 1 << 20,
    ) -> Shell:
        """A shell that keeps its state from one command to the next. Closing it, or the desktop, ends all that it started.

        Args:
            where: "desktop" is the desktop's own machine, a container. "host" is this machine, with the rights of this process:
                nothing confines what a command does here.
            cwd: Where it begins; the home directory when not given.
            env: Added to its environment. On this machine that holds, besides, only what names the desktop, the locale, `PATH`,
                `HOME` and the like.
            timeout: Seconds that a command may take when it does not say otherwise.
            limit: Bytes that are kept of a command's output, and of its errors: the beginning and the end.

        Raises:
            ShellError: It could not be started.
            UnsupportedAction: This desktop has no machine of its own, and `where` does not say "host".
        """
        return self._shell(where, "open_shell", cwd=cwd, env=env, timeout=timeout, limit=limit, once=False)

    def read_file(self, path: str, *, limit: int = 64 << 20) -> bytes:
        """A file of the desktop's container.

        Args:
            path: An absolute path.
            limit: Bytes; a larger file is refused.

        Raises:
            BackendError: It cannot be read, or is too large.
            ActionError: The path is not absolute.
            UnsupportedAction: This desktop has no container.
        """
        return self._machine("read_file").read_file(path, limit=limit)

    def write_file(self, path: str, data: bytes | str) -> None:
        """Write a file in the desktop's container, whole or not at all; directories are made.

        Args:
            path: An absolute path.
            data: Its content; text becomes UTF-8.

        Raises:
            BackendError: It cannot be written.
            ActionError: The path is not absolute.
            UnsupportedAction: This desktop has no container.
        """
        self._machine("write_file").write_file(path, data.encode() if isinstance(data, str) else data)

    def copy_in(self, source: str | os.PathLike[str], target: str) -> None:
        """Copy a file or a directory of this machine to the absolute path `target` in the container.

        Raises:
            BackendError: It cannot be written.
            ActionError: There is no `source`, or `target` is not absolute.
            UnsupportedAction: This desktop has no container.
        """
        self._machine("copy_in").copy_in(source, target)

    def copy_out(self, source: str, target: str | os.PathLike[str]) -> None:
        """Copy a file or a directory, by its absolute path in the container, to `target` on this machine.

        Raises:
            BackendError: It cannot be read.
            ActionError: `source` is not absolute.
            UnsupportedAction: This desktop has no container.
        """
        self._machine("copy_out").copy_out(source, target)

    def logs(self, program: str | None = None) -> str:
        """What the container said of itself (which parts ended and were started again), or a program's last output.

        Args:
            program: As it was started; also `x-server`, `window-manager`, `panel` and `bus`.

        Raises:
            UnsupportedAction: This desktop has no container.
        """
        return self._machine("logs").logs(program)

    def usage(self) -> Usage:
        """What the container uses just now.

        Raises:
            BackendError: The engine does not tell.
            UnsupportedAction: This desktop has no container.
        """
        return self._machine("usage").usage()

    def get_clipboard(self) -> str | None:
        """The clipboard's text, None when it holds none.

        Raises:
            TimeoutError: Its owner did not deliver in 5 s.
            BackendError: It is larger than 64 MiB.
        """
        with self._turn():
            return self._backend.read_clipboard(_CLIPBOARD_LIMIT)

    def set_clipboard(self, text: str) -> None:
        """Put text on the clipboard; this desktop serves it for as long as it is open."""
        with self._turn():
            self._refuse_if_view_only("set_clipboard")
            self._backend.write_clipboard(text, _CLIPBOARD_LIMIT)

    def resize(self, size: tuple[int, int]) -> None:
        """Change the size of the screen, where the server can.

        Raises:
            BackendError: It cannot, or not to this size.
            ActionError: The size is not a pair of positive numbers.
        """
        width, height = size
        if min(width, height) < 1:
            raise ActionError(f"a screen cannot be {width}x{height}")
        with self._turn():
            self._refuse_if_view_only("resize")
            self._backend.resize(Size(width, height))

    def probe(self, *, timeout: float = 1.0) -> Health:
        """Ask whether the desktop is started, live and ready; `health.ok`, or what is wrong.

        Over X11 that takes 0.4 ms, over VNC a round trip or two. To see that input arrives, the pointer is moved by a pixel and
        back (not while something is held). Over VNC no server tells where the pointer is: that it took a message and answered
        after it has to do, and nothing is sent before we have moved the pointer for the first time.

        Args:
            timeout: Seconds within which all must be answered. (A VNC server that hangs up is connected to again, which may
                take longer.)

        Raises:
            BackendError: This object is closed.
        """
        with self._turn():
            try:
                health = self._examine(timeout)
            except Reconnected:
                self._forget_input()
                health = self._examine(timeout)
            self._watch.check_stop()
            return health

    # --- the end ---

    def interrupt(self) -> None:
        """From another thread: stop the call under way. It releases what it holds and raises."""
        if self._closed:
            # Somebody else may have the connection by now; see `hand_over`.
            return
        self._watch.stop = True
        self._backend.interrupt()
        for shell in tuple(self._commands):
            shell.interrupt()

    def halt(self, reason: str) -> None:
        """From another thread: stop the call under way, release everything held, and refuse input from now on.

        Returns when nothing is held any more. The screen may still be looked at, and the desktop closed; commands of open
        shells go on. For a signal handler, and for a policy, see `Governor.stop`.

        Args:
            reason: What the `PolicyDenied` says that every input raises from now on.

        Raises:
            DesktopLost: The other side is gone.
            BackendError: It refused something.
        """
        self._halted = reason
        # Again and again: a call that was just beginning has taken the first request as meant for the one before.
        self.interrupt()
        while not self._lock.acquire(timeout=_HALT_SLICE):
            self.interrupt()
        try:
            if not self._closed:
                self._watch.stop = False
                self._backend.clear_interrupt()
                self._backend.release(self._ledger.release_events())
                self._ledger.clear()
                self._release_strays()
        finally:
            self._lock.release()

    @property
    def in_call(self) -> bool:
        """Whether this very thread is in a call of this desktop, as a signal handler may find: it must not wait for it then."""
        return bool(self._lock._is_owned())  # type: ignore[attr-defined] # noqa: SLF001 # what `threading.Condition` asks

    def close(self) -> None:
        """Release everything, end the connection and what was launched. Again is harmless."""
        with self._last_turn("close"):
            self._closed = True
            self._ledger.clear()
            try:
                self._close_shells()
            finally:
                self._ending.close()

    def renew(self) -> Desktop:
        """Make the desktop as it was when it was launched, and return a new object for it; this one is closed.

        What was started on it is ended, its home directory (where it has one of its own) is restored, the clipboard is empty,
        nothing is pressed, the pointer is in the middle, the window manager is a new one, and whoever was connected is not.

        Raises:
            UnsupportedAction: Its launcher knows no way.
            BackendError: It is closed.
            DeskhandError: Any other: a part did not come up again; everything has been ended, as by `close`.
        """
        if self._renew is None:
            raise UnsupportedAction(self._backend.name, "renew", "close it and launch another")
        with self._last_turn("renew"):
            if self._closed:
                raise BackendError("this desktop is closed")
            self._closed = True
            self._ledger.clear()
            try:
                self._close_shells()
                self._backend.close()
                renewed = self._renew()
            except BaseException:
                self._ending.close()
                raise
            self._ending.forget()
            self.successor = renewed
            return renewed

    def hand_over(self) -> Desktop:
        """Another object for this desktop as it is; with this one nobody can do anything any more.

        Raises:
            BackendError: It is closed.
        """
        with self._last_turn("hand_over"):
            if self._closed:
                raise BackendError("this desktop is closed")
            self._release_strays()
            self._close_shells()
            other = copy.copy(self)
            # A list of pressed keys, a memory of what was seen and a lock of its own; the rest is the desktop's.
            vars(other).update(
                _lock=threading.RLock(),
                _ledger=Ledger(),
                _watch=Watch(self._backend, self._clock),
                _closing=False,
                _halted=None,
                listener=None,
                _shells=set(),
                _commands=set(),
            )
            self._closed = True
            self._ending = Ending()
            self.successor = other
            return other

    @contextlib.contextmanager
    def _last_turn(self, what: str) -> Iterator[None]:
        self._closing = True
        for _ in range(round(_CLOSE_LOCK_LIMIT / _CLOSE_SLICE)):
            # Asked again and again: a call that was just beginning has taken the first request as meant for the one before.
            self.interrupt()
            if self._lock.acquire(timeout=_CLOSE_SLICE):
                break
        else:
            raise BackendError(f"{what}: another thread is still in a call on this desktop")
        try:
            yield
        finally:
            self._lock.release()

    def leave(self, socket: str) -> int:
        """End the connection and leave what was launched running; see `deskhand.launch.local.leave_running`.

        Returns:
            The process id of the guard, which listens at `socket` from now on.
        """
        with self._lock:
            self._close_shells()
            guard = self._own_guard()
            pid = guard.detach(socket)
            self._closed = True
            self._ending.forget()
            self._backend.close()
            guard.abandon()
        return pid

    # --- inside ---

    def _heard(self, what: str, request: object, call: Callable[[], _T]) -> _T:
        listener = self.listener
        if listener is None or _UNHEARD.get():
            return call()
        token = listener.before(what, request)
        try:
            answer = call()
        except BaseException as error:
            listener.after(token, error)
            raise
        listener.after(token, answer)
        return answer

    def _picture(
        self,
        size: PictureSize | None,
        region: tuple[int, int, int, int] | None,
        cursor: bool,  # noqa: FBT001 # private
        format: Format,
        quality: int,
    ) -> Screenshot:
        with self._turn():
            self._look()
            return self._watch.picture(size, region, cursor=cursor, format=format, quality=quality)

    def _start(
        self, argv: list[str], env: Mapping[str, str] | None, cwd: str | os.PathLike[str] | None, timeout: float
    ) -> Program:
        with self._turn():
            self._refuse_if_view_only("start")
            guard = self._own_guard()
            environment = {**self._environment, **(env or {})}
            return start_program(self._backend, self._watch, guard, argv, env=environment, cwd=cwd, timeout=timeout)

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        with self._lock:
            self._refuse_if_closed()
            self._watch.stop = False
            self._backend.clear_interrupt()
            self._backend.begin()
            try:
                if self._acting:
                    self._release_strays()
                yield
            except Reconnected:
                self._forget_input()
                raise
            except DesktopLost as lost:
                if self._inside is None:
                    raise
                raise self._inside.cause(lost) from lost
            except Interrupted:
                if self._halted is None:
                    raise
                raise PolicyDenied("the rest of this call", self._halted) from None
            finally:
                self._backend.end()

    def _look(self) -> None:
        """Looking again after a reconnection harms nobody."""
        try:
            self._backend.look()
        except Reconnected:
            self._forget_input()
            self._backend.look()

    def _forget_input(self) -> None:
        """After a reconnection nothing is held, and the pointer is anywhere."""
        self._ledger.clear()
        self._left_pointer = None

    def _examine(self, timeout: float) -> Health:
        try:
            return examine(
                self._backend,
                self._expected,
                limit=timeout,
                refused="it was opened to look only" if self._view_only else "",
                held=bool(self._ledger.pressed),
                placed=self._left_pointer is not None,
            )
        except DesktopLost as lost:
            told = lost if self._inside is None else self._inside.cause(lost)
            return Health(started="it is lost", live=str(told), ready="it is lost")

    def _refuse_if_closed(self) -> None:
        if self._closed or self._closing:
            raise BackendError("this desktop is closed")

    def _refuse_if_view_only(self, what: str) -> None:
        if self._halted is not None:
            raise PolicyDenied(what, self._halted)
        if self._view_only:
            raise UnsupportedAction(f"a desktop opened with view_only=True ({self._backend.name})", what)

    def _machine(self, what: str) -> Inside:
        if self._inside is None:
            raise UnsupportedAction(self._backend.name, what, 'use deskhand.launch("docker")')
        self._refuse_if_view_only(what)
        return self._inside

    def _shell(
        self,
        where: Where,
        what: str,
        *,
        cwd: str | None,
        env: Mapping[str, str] | None,
        timeout: float,
        limit: int,
        once: bool,
    ) -> Shell:
        if where not in ("desktop", "host"):
            raise ActionError(f"{what}: where is 'desktop' or 'host', not {shown(where)}")
        self._refuse_if_closed()
        self._refuse_if_view_only(what)
        inside = self._inside

        def session() -> Session:
            if where == "desktop" and inside is not None:
                return inside.session(cwd=cwd, env=env, once=once)
            environment = host_environment(
                self._environment, display=self.display, xauthority=self.xauthority, extra=env
            )
            return HostSession(cwd=cwd, env=environment)

        if where == "desktop" and inside is None:
            hint = 'use deskhand.launch("docker"), or say where="host" (--host) if it may run on this machine, as you'
            raise UnsupportedAction(self._backend.name, what, hint)
        mine = self._commands if once else self._shells
        shell = Shell(
            session,
            timeout=timeout,
            limit=limit,
            once=once,
            on_close=mine.discard,
            heard=self._heard,
            clock=self._clock,
        )
        # Known before there is anything to end.
        mine.add(shell)
        try:
            shell.restart()
            # In another thread, meanwhile: it may not have seen this one.
            self._refuse_if_closed()
        except BaseException:
            shell.close()
            raise
        return shell

    def _close_shells(self) -> None:
        with contextlib.ExitStack() as all_of_them:
            for shell in tuple(self._shells | self._commands):
                all_of_them.callback(shell.close)

    def _needs_windows(self, what: str) -> None:
        if not self._backend.has_windows:
            raise UnsupportedAction(self._backend.name, what, "only X11 tells about windows")

    def _known(self, number: int) -> None:
        windows = self._backend.windows()
        if all(window.id != number for window in windows):
            titles = ", ".join(f"{w.id:#x} {w.title!r}" for w in windows) or "none"
            raise ActionError(f"there is no window {number:#x}; the windows are: {titles}")

    def _own_guard(self) -> Programs:
        if self._guard is None:
            if self._make_guard is None:
                raise UnsupportedAction(
                    self._backend.name, "start", "programs are started on the desktop's own machine"
                )
            self._guard = self._make_guard()
            self._programs.add(self._guard.close)
        return self._guard

    def _perform(
        self,
        actions: Sequence[Action],
        settings: Settle | None,
        size: PictureSize | None,
        format: Format,
        quality: int,
    ) -> Observation:
        with self._turn():
            planned = self._plan(actions, None if settings is None else settings.timeout)
            self._index = None
            self._acting = True
            try:
                seen = self._act_and_observe(planned, settings, size, format, quality)
            except BaseException as error:
                self._release_after(error)
                told = error
                if isinstance(error, Interrupted) and self._halted is not None:
                    told = PolicyDenied("the rest of this call", self._halted)
                if isinstance(told, DeskhandError) and self._index is not None:
                    told.note_progress(self._index, actions[self._index].type, self._index)
                if told is not error:
                    raise told from None
                raise
            else:
                self._acting = False
                return seen

    def _perform_secretly(
        self,
        actions: Sequence[Action],
        settings: Settle | None,
        size: PictureSize | None,
        format: Format,
        quality: int,
    ) -> Observation:
        try:
            return self._perform(actions, settings, size, format, quality)
        except BaseException as error:  # noqa: BLE001 # raised again below
            told = conceal(error)
        # Outside of the handler: nothing of what was raised inside, nor a frame of it, stays attached to what the caller gets.
        raise told

    def _act_and_observe(
        self,
        planned: Sequence[tuple[Action, list[Event]]],
        settings: Settle | None,
        size: PictureSize | None,
        format: Format,
        quality: int,
    ) -> Observation:
        started = self._clock()
        limit = None if settings is None else settings.timeout
        self._pointer_moved = False
        self._watch.catch_up(limit)
        self._notice_pointer()
        pasted = False
        for index, (action, events) in enumerate(planned):
            self._index = index
            if isinstance(action, Type) and action.paste and action.text:
                if isinstance(action.text, Secret):
                    self._paste_secret(action.text)
                else:
                    self._paste(action.text)
                pasted = True
            else:
                pointer = self._backend.screen.pointer
                if rest := self._clicks.rest(action, events, pointer, self._clock()):
                    self._watch.pause(rest)
                self._send(events)
                self._clicks.note(events, pointer, self._clock())
            if index < len(planned) - 1 and not isinstance(action, _NO_WAIT_AFTER):
                self._watch.settle(settings, at_pointer=not isinstance(action, _TO_FOCUS))
                if not self._backend.lag.frame:
                    self._backend.look()
                # Where to look would take a round trip, the other side tells of the pointer by itself.
                self._notice_pointer()
        sent = self._clock()
        verdict = self._watch.settle(settings, at_pointer=bool(planned) and not isinstance(planned[-1][0], _TO_FOCUS))
        settled = self._clock()
        self._backend.look(None if limit is None else max(0.0, sent + limit - settled))
        self._notice_pointer()
        changes = self._watch.changes()
        captured = self._clock()
        zooms = [action.region for action, _ in planned if isinstance(action, Zoom)]
        zoom = zooms[-1] if zooms else None
        shot = self._watch.picture(size, zoom, cursor=True, format=format, quality=quality)
        encoded = self._clock()
        reaction = max(0.0, verdict.first_change - sent) if verdict.first_change is not None else 0.0
        return Observation(
            data=shot.data,
            format=shot.format,
            viewport=shot.viewport,
            cursor=shot.cursor,
            generation=shot.generation,
            settled=verdict.settled,
            reason=verdict.reason,
            rects=tuple(rect for rect in changes if not any(rect.within(busy) for busy in verdict.busy)),
            busy=verdict.busy,
            elapsed=Elapsed(
                input=sent - started,
                reaction=reaction,
                settle=settled - sent - reaction,
                capture=captured - settled,
                encode=encoded - captured,
            ),
            pasted=pasted,
            pointer_moved=self._pointer_moved,
        )

    def _plan(self, actions: Sequence[Action], limit: float | None) -> list[tuple[Action, list[Event]]]:
        """Translate everything before anything is sent; where the pointer is is asked for `limit` seconds at most."""
        planned: list[tuple[Action, list[Event]]] = []
        pointer: Point | None = None
        size = self._planned_size = self.size
        for index, given in enumerate(actions):
            self._watch.check_stop()
            action = given
            try:
                if isinstance(action, Drag) and pointer is None:
                    self._backend.look(limit)
                    pointer = Point(*self._backend.screen.pointer)
                events = translate(action, size=size, pointer=pointer or Point(0, 0))
                if isinstance(action, Type) and not action.paste and (missing := self._backend.untypable(events)):
                    action = self._pasted_instead(action, missing)
                if events:
                    self._refuse_if_view_only(action.type)
            except DeskhandError as error:
                raise error.note_progress(index, given.type, 0) from None
            for event in events:
                if isinstance(event, PointerMove):
                    pointer = Point(event.x, event.y)
            planned.append((action, events))
        return planned

    def _pasted_instead(self, action: Type, missing: set[int]) -> Type:
        if isinstance(action.text, Secret):
            # The clipboard is for every program to read: only who asks for it puts a secret there.
            raise Untypable.hidden(len(missing), f"{self._backend.name} has no key left for them; use paste=True")
        if self._backend.can_paste:
            return replace(action, paste=True)
        characters = [(at, char) for at, char in enumerate(action.text) if char_keysym(char) in missing]
        raise Untypable(
            characters, f"{self._backend.name} has no key left for them, and its clipboard cannot bring them"
        )

    def _send(self, events: Sequence[Event]) -> None:
        """Send events; pauses that are long enough to be interrupted are spent here, keeping the screen current."""
        if isinstance(events, SecretEvents):
            # It has no pauses, and stays one thing that shows nothing.
            self._send_batch(events)
            return
        batch: list[Event] = []
        for event in events:
            if isinstance(event, Pause) and event.seconds > _LONGEST_BACKEND_PAUSE:
                self._send_batch(batch)
                batch = []
                self._watch.pause(event.seconds)
            else:
                batch.append(event)
        self._send_batch(batch)

    def _send_batch(self, batch: Sequence[Event]) -> None:
        if not batch:
            return
        self._watch.check_stop()
        if (size := self.size) != self._planned_size:
            # The screen was resized since the points were checked; servers move what is outside to the nearest edge.
            for event in batch:
                if isinstance(event, PointerMove):
                    check_point((event.x, event.y), size)
        self._ledger.expect(batch)
        if self._ledger.pressed:
            self._watch_over()
        self._backend.send(batch)
        for event in batch:
            self._ledger.note(event)
            if isinstance(event, PointerMove):
                self._left_pointer = event.x, event.y

    def _notice_pointer(self) -> None:
        """Note whether somebody else has moved the pointer since our last input, as far as the backend has been told."""
        pointer = self._backend.screen.pointer
        if self._left_pointer not in {None, pointer}:
            self._pointer_moved = True
            self._left_pointer = pointer

    def _watch_over(self) -> None:
        """Something is to be pressed: see to it that it is released even if this process is killed."""
        if self._watched_over or self._make_guard is None or self.display is None:
            return
        self._watched_over = True
        environment = {**os.environ, "DISPLAY": self.display}
        if self.xauthority is not None:
            environment["XAUTHORITY"] = str(self.xauthority)
        self._own_guard().at_end([sys.executable, "-m", "deskhand.launch.release"], environment)

    def _release_after(self, error: BaseException) -> None:
        """Leave nothing pressed after a failure. The failure is what the caller hears of."""
        if isinstance(error, DesktopLost | Reconnected):
            # Nothing is held there any more, but a server that is back may still have the clipboard.
            self._acting = self._clipboard_before is not None
            return
        for _ in range(_RELEASE_TRIES):
            # A second Ctrl-C does not stop what the first one began; between these lines, it leaves that to the next call.
            with contextlib.suppress(KeyboardInterrupt, DeskhandError):
                self._release_strays()
                return

    def _release_strays(self) -> None:
        if self._ledger.pressed:
            self._watch.stop = False
            self._backend.clear_interrupt()
            self._backend.release(self._ledger.release_events())
            self._ledger.clear()
        if self._clipboard_before is not None:
            self._watch.stop = False
            self._backend.clear_interrupt()
            self._give_clipboard_back()
        self._acting = False

    def _paste(self, text: str) -> None:
        chord = self._paste_chord()
        before = self._backend.read_clipboard(_CLIPBOARD_LIMIT)
        self._backend.write_clipboard(text, _CLIPBOARD_LIMIT)
        self._send(translate(KeyPress((chord,)), size=self.size, pointer=Point(0, 0)))
        # Only its being fetched proves the paste; the old content must not come back before.
        self._backend.wait_pasted(_PASTE_LIMIT)
        if before is not None:
            self._backend.write_clipboard(before, _CLIPBOARD_LIMIT)

    def _paste_secret(self, secret: Secret) -> None:
        before = self._backend.read_clipboard(_CLIPBOARD_LIMIT)
        # Noted first: whether it was taken or not, and whoever stops this call, a secret does not stay there.
        self._clipboard_before = before or ""
        self._backend.write_clipboard(secret.reveal(), _CLIPBOARD_LIMIT)
        self._send(translate(KeyPress((self._paste_chord(),)), size=self.size, pointer=Point(0, 0)))
        self._backend.wait_pasted(_PASTE_LIMIT)
        self._give_clipboard_back()

    def _give_clipboard_back(self) -> None:
        if self._clipboard_before is not None:
            self._backend.write_clipboard(self._clipboard_before, _CLIPBOARD_LIMIT)
            self._clipboard_before = None

    def _paste_chord(self) -> str:
        if not self._backend.has_windows:
            return _COMMON_PASTE_CHORD
        window = next((w for w in self._backend.windows() if w.active), None)
        class_name = window.class_name.lower() if window else ""
        if class_name in _PASTE_CHORDS:
            return _PASTE_CHORDS[class_name]
        return "ctrl+shift+v" if any(word in class_name for word in _TERMINALS) else "ctrl+v"


def _plain_actions(given: Sequence[Action | CarriesAction]) -> tuple[Action, ...]:
    """The actions themselves, of tool calls too."""
    plain = []
    for index, value in enumerate(given):
        try:
            plain.append(action_of(value))
        except DeskhandError as error:
            raise error.note_progress(index, getattr(value, "type", "?"), 0) from None
    return tuple(plain)


def _settings(settle: Settle | bool) -> Settle | None:  # noqa: FBT001 # the public parameter has these types
    if settle is True:
        return Settle()
    if settle is False:
        return None
    if isinstance(settle, Settle):
        return settle
    raise ActionError(f"settle must be a Settle, True or False, not {settle!r}")
