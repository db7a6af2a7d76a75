"""A shell for agents: a persistent session whose commands end in time, with bounded output, and leave nothing behind.

This module owns when a command counts as ended, and what happens to the session then. What must never appear here: how a
session is started or killed (see `deskhand.machine.interface.Session`), the framing of its output (see
`deskhand.machine.transcript`).
"""

from __future__ import annotations

import contextlib
import math
import re
import shlex
import threading
import time
from queue import Empty
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self, TypeVar

from deskhand._core.attempts import CALLER, InTurn
from deskhand._core.forks import Owner
from deskhand.errors import ActionError, BackendError, Closed, DeskhandError, ShellError, shown
from deskhand.machine.interface import CommandResult
from deskhand.machine.program_arguments import check_timeout, program_directory, program_variables
from deskhand.machine.running_session import RunningSession

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping
    from types import TracebackType

    from deskhand.machine.interface import Outcome, Session

_T = TypeVar("_T")

# How often, in seconds, a silent session is checked to be running.
_LOOK = 0.2
# Seconds within which its last output has come after its end.
_LAST_WORDS = 0.5
# When its streams have ended, its exit status is known soon after: an engine takes a while to report it.
_STATUS_LIMIT = 5.0
_WRITE_SLICE = 0.05
_CLOSE_LIMIT = 15.0
_CLOSE_SLICE = 0.1
# Seconds that a trap on EXIT may take when a session is closed.
_FAREWELL = 1.0
# Bytes of its output that are reported if a shell does not begin.
_SHOWN = 500
_STOPPED = ("timeout", "cancelled")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Operate(Protocol):
    """Runs a shell's operations when they are allowed; see `Commands.open_shell`."""

    def __call__(
        self,
        command: str | None,
        env: Mapping[str, str],
        cwd: str | None,
        work: Callable[[], _T],
        interrupt: Callable[[], None],
        /,
    ) -> _T:
        """Do `work`: run `command` with these variables in this place, or begin a new session if it is None."""
        ...


class _Tried(NamedTuple):
    """How a command ended, whether the shell had begun it, and whether the session is over."""

    outcome: Outcome
    code: int | None
    begun: bool
    ended: bool


class Shell:
    """A shell that keeps its directory, variables, functions and jobs from one command to the next.

    Made by `desktop.machine.open_shell` and `desktop.host.open_shell`. Calls from several threads take turns. Leaving a `with`
    block closes it.

    Example:
        >>> with desktop.host.open_shell() as shell:
        ...     shell.run("cd /tmp; greeting=hello")
        ...     shell.run('echo "$greeting from $PWD"').stdout
    """

    def __init__(
        self,
        session: Callable[[], Session],
        *,
        timeout: float = 120.0,
        limit: int = 1 << 20,
        once: bool = False,
        on_close: Callable[[Shell], object] = lambda _: None,
        operate: Operate | None = None,
        judged: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Use sessions that `session` starts. Users call `open_shell` of `desktop.machine` or `desktop.host`.

        Args:
            session: Starts one; called when the first is needed, and after the end of each.
            timeout: Seconds that a command may take unless it has its own timeout.
            limit: Bytes that are kept of a command's output, and of its errors.
            once: For one command only: its background jobs may go on, see `Session.leave`.
            on_close: Called after it has been closed.
            operate: Runs each of its operations when that is allowed; None runs them directly.
            judged: Whether a policy decides about them, so that they may wait for a person's answer.
            clock: Monotonic seconds.
        """
        self._owner = Owner()
        self._timeout = check_timeout("open_shell", timeout)
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 2:
            raise ActionError(f"limit must be a number of bytes, not {shown(limit)}")
        self._limit = limit
        self._make = session
        self._once = once
        self._operate = operate
        self.judged = judged
        self._on_close = on_close
        self._clock = clock
        self._lock = threading.Lock()
        self._running: RunningSession | None = None
        # After a failure in the middle of an operation the session is ended before anything else is done with it.
        self._broken = False
        self._in_turn = InTurn()
        self._stop = False
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Shell {'open' if self.alive else 'closed'}>"

    @property
    def alive(self) -> bool:
        """Whether it takes commands: until it or its desktop is closed."""
        return not self._closed

    def run(
        self,
        command: str,
        *,
        timeout: float | None = None,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str | os.PathLike[str]] | None = None,
    ) -> CommandResult:
        """Run a command and wait for its end.

        Its standard input is empty and it has no terminal. It has ended when the shell would prompt again, even if jobs in the
        background still write.

        Args:
            command: For bash, of any length and number of lines.
            timeout: Seconds after which it is killed with everything that was started in this session; by default the shell's.
            cwd: Where this command runs, in a subshell: the session's own directory stays as it is.
            env: Added to this command's environment, in a subshell: the session's own variables stay as they are.

        Returns:
            How it ended. After `timeout`, `cancelled` or the shell's own end (`exit`, `exec`) the session was restarted.

        Raises:
            ActionError: The command has a NUL character, or is not a text; or a variable's name is invalid.
            PolicyDenied: It is not allowed.
            ShellError: A fresh shell could not be started.
            Closed: It is closed.
            DesktopLost: Its machine is gone.
            BackendError: Its machine does not report anything any more.
        """
        self._owner.refuse_if_parent("this shell")
        variables, place = program_variables("run", env), program_directory("run", cwd)
        check_command(command)
        data = check_command(in_subshell(command, place, variables))
        limit = self._timeout if timeout is None else check_timeout("run", timeout)
        if self._operate is None:
            return self._run(data, limit)
        return self._operate(command, variables, place, lambda: self._run(data, limit), self._interruption())

    def _run(self, data: bytes, limit: float) -> CommandResult:
        with self._turn():
            began = self._clock()
            lost = self._refresh()
            tried = self._try(data, began + limit)
            if tried.ended and not tried.begun and tried.outcome not in _STOPPED:
                # The shell had ended before it read the command, without a sign of it: nothing of the command was done.
                self._end()
                lost = True
                tried = self._try(data, began + limit)
                if tried.ended and not tried.begun and tried.outcome not in _STOPPED:
                    said = "" if (running := self._running) is None else "".join(running.take()[:3]).strip()
                    self._end()
                    reason = f"it ended with status {tried.code} before the command"
                    raise ShellError("bash", f"{reason}: {said[-_SHOWN:]}" if said else reason)
            running = self._running
            if tried.ended or self._once:
                self._end(leave=self._once and tried.outcome not in _STOPPED)
            assert running is not None  # noqa: S101 # `_try` has it
            out, errors, background, truncated = running.take()
            return CommandResult(
                out,
                errors,
                tried.code,
                outcome=tried.outcome,
                duration=self._clock() - began,
                truncated=truncated,
                restarted=(tried.ended or lost) and not self._once,
                background=background,
            )

    def restart(self) -> None:
        """End the session with everything that was started in it, and begin a fresh one.

        Raises:
            ShellError: It could not be started.
            Closed: It is closed.
            PolicyDenied: It is not allowed.
        """
        if self._operate is None:
            self.begin()
        else:
            self._operate(None, {}, None, self.begin, self._interruption())

    def begin(self) -> None:
        """As `restart`, once that was allowed: for the code that opens a shell."""
        with self._turn():
            self._end()
            self._start()

    def interrupt(self) -> None:
        """From another thread: end the command under way, and its session; its `run` returns `cancelled`, within 2 s."""
        self._interrupt(None)

    def _interrupt(self, caller: object) -> None:
        self._owner.refuse_if_parent("this shell")
        self._in_turn.stop(caller, self._ask_to_stop)

    def _interruption(self) -> Callable[[], None]:
        caller = CALLER.get()
        return lambda: self._interrupt(caller)

    def _ask_to_stop(self) -> None:
        self._stop = True
        if (running := self._running) is not None:
            running.news.put("stop")

    def _forget_stop(self) -> None:
        self._stop = False

    def close(self) -> None:
        """End the session with everything that was started in it. Calling it again is harmless."""
        self._closed = True
        if self._owner.is_parent:
            return
        for _ in range(round(_CLOSE_LIMIT / _CLOSE_SLICE)):
            # Repeated, because a command that was just beginning has taken the first request as meant for the one before.
            self.interrupt()
            if self._lock.acquire(timeout=_CLOSE_SLICE):
                break
        else:
            raise BackendError("close: another thread is still in a call on this shell")
        try:
            self._farewell()
            self._end()
            self._on_close(self)
        finally:
            self._lock.release()

    # --- internal ---

    def _farewell(self) -> None:
        """Have the shell exit by itself, so that its trap on EXIT runs."""
        if self._running is None or self._broken or self._running.over or self._once:
            return
        self._forget_stop()
        with contextlib.suppress(DeskhandError):
            self._try(b"exit", self._clock() + _FAREWELL)

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        self._owner.refuse_if_parent("this shell")
        with self._lock:
            if self._closed:
                raise Closed("this shell is closed: open another with open_shell")
            self._in_turn.begin(self._forget_stop)
            yield

    def _start(self) -> RunningSession:
        if self._running is None:
            self._running = RunningSession(self._make(), self._limit)
        return self._running

    def _refresh(self) -> bool:
        """End a session that cannot be used; returns whether there was one."""
        if self._running is None or not (self._broken or self._running.over):
            return False
        self._end()
        return True

    def _end(self, *, leave: bool = False) -> None:
        self._broken = True
        if self._running is not None:
            self._running.end(leave=leave)
        self._running = None
        self._broken = False

    def _try(self, data: bytes, deadline: float) -> _Tried:
        running = self._start()
        try:
            self._broken = True
            tried = self._carry_out(running, data, deadline)
            self._broken = False
        except BaseException:
            self._end()
            raise
        else:
            return tried

    def _carry_out(self, running: RunningSession, data: bytes, deadline: float) -> _Tried:
        request = running.frame(data)
        ended: int | None = None
        last_words = math.inf
        while True:
            if (verdict := running.verdict()) is not None:
                code, over = verdict
                return _Tried("error" if code else "success", code, running.begun, ended=over)
            now = self._clock()
            if self._stop or now >= deadline:
                return _Tried("cancelled" if self._stop else "timeout", None, running.begun, ended=True)
            if now >= last_words:
                return _Tried("error", ended, running.begun, ended=True)
            if request:
                taken = running.session.write(request, min(_WRITE_SLICE, deadline - now))
                request = request[taken:]
                if taken:
                    continue
            else:
                with contextlib.suppress(Empty):
                    running.news.get(timeout=min(_LOOK, deadline - now, last_words - now))
                    continue
            if ended is None:
                # No shell is left to answer the second mark: it was killed, together with its parent.
                ended = running.session.exit_status()
                if ended is not None:
                    last_words = self._clock() + _LAST_WORDS
                elif running.over and last_words == math.inf:
                    last_words = self._clock() + _STATUS_LIMIT


def in_subshell(command: str, cwd: str | None, env: Mapping[str, str]) -> str:
    """The command with a directory and variables of its own, which the session does not keep.

    Raises:
        ActionError: A variable's name is invalid, or its value is not a text.
    """
    if cwd is None and not env:
        return command
    before = [] if cwd is None else [f"cd -- {shlex.quote(cwd)}"]
    for name, value in env.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name) or not isinstance(value, str):
            raise ActionError(f"{shown(name)} is no variable with a text: its name has letters, digits and underscores")
        before.append(f"export {name}={shlex.quote(value)}")
    # The command has lines of its own, so that a comment or a here-document in it cannot swallow what follows.
    return f"({' && '.join(before)} || exit\n{command}\n)"


def check_command(command: object) -> bytes:
    """The command as bytes for bash.

    Raises:
        ActionError: It is not a text, or has a character that no command can have.
    """
    if not isinstance(command, str):
        raise ActionError(f"a command is text, not {shown(command)}")
    try:
        data = command.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise ActionError(f"a command must be valid text: {error.reason} at character {error.start}") from None
    if b"\0" in data:
        raise ActionError(f"no shell can run a command with a NUL character in it, at byte {data.index(0)}")
    return data
