"""The driver's end of the guard: starts programs that cannot outlive their desktop.

This module owns the guard process and its messages. What must never appear here: knowledge of X or of any program.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

from deskhand._core.forks import share
from deskhand._core.untrusted import read_regular
from deskhand.errors import BackendError, ShellError
from deskhand.machine import children, runtime_directory

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# It knows nothing of the package around it, and is imported, not run as a script, which would be compiled each time.
_GUARD = Path(__file__).parent / "guard" / "guard.py"
_RUN = "import sys; sys.path.append(sys.argv[1].rpartition('/guard/')[0]); from guard.guard import main; main()"
_NO_ROOM = "there is no room for more processes, files or memory: end something first"
_HINTS = {
    errno.EACCES: "it may not be executed: check its rights, and those of the directories that lead to it",
    errno.EPERM: "it may not be executed: check its rights, and those of the directories that lead to it",
    errno.ENOEXEC: "it is no program that this machine can run: check its first line, and for which processor it is",
    errno.E2BIG: "its arguments and its environment are too long together: shorten them, or use a file",
    errno.EAGAIN: _NO_ROOM,
    errno.EMFILE: _NO_ROOM,
    errno.ENFILE: _NO_ROOM,
    errno.ENOMEM: _NO_ROOM,
}
_ANSWER_LIMIT = 10.0
_END_LIMIT = 15.0
_LOG_TAIL = 4000
_LARGEST_LOG = 1 << 20
_ODD = re.compile(r"[^A-Za-z0-9._+-]")
_LONGEST_NAME = 48


class Programs(Protocol):
    """Keeps the programs of a desktop, on any machine; `Guard` does so on this one."""

    def spawn(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: str | os.PathLike[str] | None = None
    ) -> tuple[int, int]:
        """Start a program; returns its process id first."""
        ...

    def log_of(self, program: str, pid: int) -> Path:
        """The file with the beginning and the end of what that program, started as `program`, writes."""
        ...

    def tail(self, program: str, pid: int) -> str:
        """The last lines of it; empty where it cannot be read."""
        ...

    def exit_status(self, pid: int) -> int | None:
        """How a program ended, None while it runs."""
        ...

    def belongs(self, pid: int, program: int, startup_id: str) -> bool:
        """Whether a process is `program`, was started by it, is in its session, or was given its startup id."""
        ...

    @property
    def gone(self) -> bool:
        """Whether it has ended, and with it the programs that it kept."""
        ...

    def at_end(self, argv: Sequence[str], env: Mapping[str, str], *, limit: float = 10.0) -> None:
        """Run this, for `limit` seconds at most, if the driver vanishes without closing."""
        ...

    def detach(self, path: str) -> int:
        """Leave everything running when this process ends; returns the process id of the guard, which listens at `path`."""
        ...

    def abandon(self) -> None:
        """Close it without waiting: after `detach`, or to leave the rest to the guard."""
        ...

    def close(self) -> None:
        """Release what belongs to this driver."""
        ...


class Guard:
    """A guard process of this driver's own, or a socket to one that was left running.

    Attributes:
        directory: Private to the desktop; logs go there.
    """

    def __init__(
        self, process: subprocess.Popen[bytes] | None, to: IO[bytes], answers: IO[bytes], directory: Path
    ) -> None:
        """Use `Guard.start` or `Guard.join` instead."""
        self.directory = directory
        self._process = process
        # As long as it is open, no other directory is mistaken for this one: another desktop may have the name by the end.
        self._place = None if process is None else os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        self._to = to
        self._answers = answers
        self._ids = itertools.count(1)
        self._news: dict[tuple[int, str], Any] = {}
        self._exits: dict[int, int] = {}
        self._condition = threading.Condition()
        self._ended = False
        self._client: socket.socket | None = None
        share(self)
        self._reader = threading.Thread(target=self._read, name="deskhand-guard", daemon=True)
        self._reader.start()

    def descriptors(self) -> list[int]:
        """The descriptors by which the guard learns that this process has ended."""
        pipes = [pipe.fileno() for pipe in (self._to, self._answers) if not pipe.closed]
        return pipes if self._client is None or self._client.fileno() < 0 else [*pipes, self._client.fileno()]

    @classmethod
    def start(cls, directory: Path) -> Guard:
        """Start a guard. It ends everything, and removes `directory`, when this process closes it or ends."""
        try:
            # It may outlive this process: it must hold neither its standard error nor its working directory.
            with (directory / "guard.log").open("wb") as log:
                process = subprocess.Popen(
                    [sys.executable, *(["-B"] if sys.dont_write_bytecode else []), "-I", "-S", "-c", _RUN, str(_GUARD)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    cwd="/",
                    # A session of its own: the driver handles Ctrl-C at a terminal, and closes the guard in order.
                    start_new_session=True,
                )
        except OSError:
            # No other process would remove it.
            shutil.rmtree(directory, ignore_errors=True)
            raise
        assert process.stdin is not None  # noqa: S101 # both were asked for
        assert process.stdout is not None  # noqa: S101
        guard = cls(process, process.stdin, process.stdout, directory)
        guard._tell(op="directory", path=os.fspath(directory))
        return guard

    @classmethod
    def join(cls, path: str) -> Guard:
        """Connect to a guard that was left running.

        Raises:
            BackendError: No guard listens at `path`.
        """
        client = socket.socket(socket.AF_UNIX)
        try:
            client.connect(path)
        except OSError as error:
            client.close()
            raise BackendError(f"the guard process of this desktop does not listen at {path}: {error}") from error
        guard = cls(None, client.makefile("wb"), client.makefile("rb"), Path(path).parent)
        guard._client = client
        return guard

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError), self._answers:
            for line in self._answers:
                message = json.loads(line)
                with self._condition:
                    if "exit" in message:
                        self._exits[message["exit"]] = message["status"]
                    else:
                        request = message.pop("id")
                        self._news.update({(request, key): value for key, value in message.items()})
                    self._condition.notify_all()
        with self._condition:
            self._ended = True
            self._condition.notify_all()

    def _tell(self, **message: object) -> int:
        number = next(self._ids)
        try:
            self._to.write(json.dumps({"id": number, **message}).encode() + b"\n")
            self._to.flush()
        except (OSError, ValueError) as error:
            raise BackendError(f"the guard process of this desktop is gone: {error}") from error
        return number

    def _answer(self, request: int, keys: Sequence[str], timeout: float) -> tuple[str, Any] | None:
        deadline = time.monotonic() + timeout
        with self._condition:
            while True:
                for key in keys:
                    if (request, key) in self._news:
                        return key, self._news.pop((request, key))
                left = deadline - time.monotonic()
                if self._ended or left <= 0:
                    return None
                self._condition.wait(left)

    def _pid_or_error(self, request: int) -> tuple[str, Any]:
        answer = self._answer(request, ("pid", "error"), _ANSWER_LIMIT)
        if answer is None:
            raise BackendError("the guard process of this desktop does not answer")
        return answer

    def spawn(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str | os.PathLike[str] | None = None,
        x_server: int | None = None,
        streams: Sequence[str] | None = None,
    ) -> tuple[int, int]:
        """Start a program.

        Args:
            argv: The program and its arguments.
            env: Its whole environment.
            cwd: Where it starts; here when not given.
            x_server: It is the X server of this display; see `is_ready`.
            streams: FIFOs that become its standard streams; else it reads nothing, and writes to its log.

        Returns:
            Its process id, and the number for `is_ready`.

        Raises:
            ShellError: It could not be started.
            BackendError: The guard is gone.
        """
        request = self._tell(
            op="spawn",
            argv=list(argv),
            env=dict(env),
            log=os.fspath(self.directory / log_name(argv[0])),
            cwd=os.fspath(cwd) if cwd is not None else os.getcwd(),  # noqa: PTH109 # the guard takes text
            x_server=x_server,
            streams=streams,
        )
        kind, value = self._pid_or_error(request)
        if kind == "error":
            found = [self._answer(request, (key,), 0) for key in ("wrong_place", "errno")]
            wrong_place, reason = (None if each is None else each[1] for each in found)
            hint = "check the directory that it starts in" if wrong_place else _unstarted_hint(argv[0], env, reason)
            raise ShellError(argv[0], value, hint)
        return value, request

    def log_of(self, program: str, pid: int) -> Path:
        """The file with the beginning and the end of what that program, started as `program`, writes."""
        return self.directory / f"{log_name(program)}-{pid}.log"

    def renew(self, grace: float) -> int:
        """End every program but the X server (by SIGKILL after `grace` seconds), then reset the X server.

        Returns:
            The number for `is_ready`.
        """
        return self._tell(op="renew", grace=grace)

    def tail(self, program: str, pid: int) -> str:
        """The last lines of a program's output."""
        with contextlib.suppress(BackendError):
            # Its latest output may still be in its pipe.
            self._answer(self._tell(op="flush"), ("flushed",), _ANSWER_LIMIT)
        return tail(self.log_of(program, pid))

    def belongs(self, pid: int, program: int, startup_id: str) -> bool:
        """Whether a process is `program`, was started by it, is in its session, or was given its startup id."""
        if _descends(pid, program):
            return True
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            return False
        return f"DESKTOP_STARTUP_ID={startup_id}".encode() in environment

    def is_ready(self, request: int, pid: int, timeout: float) -> bool:
        """Wait until an X server says that it is ready; False when it ended or the time is up."""
        deadline = time.monotonic() + timeout
        while True:
            answer = self._answer(request, ("ready",), min(0.05, max(0.0, deadline - time.monotonic())))
            if answer is not None:
                return bool(answer[1])
            if self.exit_status(pid) is not None or self._ended or time.monotonic() >= deadline:
                return False

    def at_end(self, argv: Sequence[str], env: Mapping[str, str], *, limit: float = 10.0) -> None:
        """Run this, for `limit` seconds at most, if the driver vanishes without closing."""
        self._tell(op="at_end", argv=list(argv), env=dict(env), limit=limit)

    def exit_status(self, pid: int) -> int | None:
        """How a program ended (negative: the signal), None while it runs."""
        with self._condition:
            return self._exits.get(pid)

    @property
    def gone(self) -> bool:
        """Whether the guard has ended, so that nothing more is reported."""
        return self._ended

    @property
    def pid(self) -> int:
        """Its process id; 0 for one that was joined."""
        return 0 if self._process is None else self._process.pid

    def detach(self, path: str) -> int:
        """Leave the guard running when this process ends, to be reached at `path`; returns its process id."""
        kind, value = self._pid_or_error(self._tell(op="detach", socket=path))
        if kind == "error":
            raise BackendError(f"the guard process of this desktop cannot listen at {path}: {value}")
        return int(value)

    def close(self) -> None:
        """End everything that was started (unless detached or joined), and wait until it is gone."""
        with contextlib.suppress(BackendError):
            self._tell(op="bye")
        with contextlib.suppress(OSError, ValueError):
            self._to.close()
        if self._process is not None:
            children.end(self._process, _END_LIMIT)
            self._reader.join()
            self._leave_place()
        if self._client is not None:
            # The reader holds the lock of its file until it has read: closing that file first would wait for ever.
            with contextlib.suppress(OSError):
                self._client.shutdown(socket.SHUT_RDWR)
            self._reader.join()
            self._client.close()
        with contextlib.suppress(OSError, ValueError):
            self._answers.close()

    def _leave_place(self) -> None:
        """Remove the directory, which the guard has done unless it was killed."""
        if self._place is None:
            return
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(self._place), os.stat(self.directory)):  # noqa: PTH116 # as its pair
                runtime_directory.remove_left(self.directory)
        self._forget_place()

    def _forget_place(self) -> None:
        # First: an interruption must not let the same number be closed twice, which by then may belong to another file.
        place, self._place = self._place, None
        if place is not None:
            os.close(place)

    def abandon(self) -> None:
        """Close it without waiting: after `detach`, or to leave the rest to the guard."""
        with contextlib.suppress(OSError, ValueError):
            self._to.close()
        self._forget_place()
        if self._process is not None:
            # If it ends before this process does, it must not stay a zombie; the reader then ends too.
            threading.Thread(target=self._process.wait, name="deskhand-guard-end", daemon=True).start()
        self._process = None


def log_name(program: str) -> str:
    """The first part of a log's name for a program: program names may be long, and have any characters."""
    return _ODD.sub("_", program.rstrip("/").rpartition("/")[2])[:_LONGEST_NAME] or "program"


def _unstarted_hint(program: str, env: Mapping[str, str], reason: int | None) -> str:
    """What to do about a program that could not be started, by the number of the system's error."""
    there = shutil.which(program, path=env.get("PATH"))
    if reason == errno.ENOENT and there is not None:
        return f"{there} is there: what its first line names, or the loader that it needs, is not"
    return _HINTS.get(reason or 0, "check that it is installed and on PATH")


def tail(path: str | os.PathLike[str]) -> str:
    """The last lines of a log; empty when there is none."""
    # The program that writes it may replace the file.
    return read_regular(path, _LARGEST_LOG)[-_LOG_TAIL:].decode("utf-8", "replace")


def _descends(pid: int, ancestor: int) -> bool:
    """Whether a process is `ancestor`, was started by it, directly or through others, or is in the session that it began."""
    while pid > 1:
        if pid == ancestor:
            return True
        try:
            # The program's name is in parentheses, and may hold any character itself.
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
            pid, session = int(fields[1]), int(fields[3])
        except (OSError, IndexError, ValueError):
            return False
        if session == ancestor:
            return True
    return False
