"""The guard's children: how a program is started that ends with the guard, and which processes there are by now.

This module owns a program's standard streams, and what is done between fork and exec. What must never appear here: what a
program is for.
"""

from __future__ import annotations

import ctypes
import os
import resource

from .plain import Suppress

# Type checkers know this name. Importing it would take as long as half of the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from typing import Any
else:
    # What is below `signal`, which imports `enum`.
    import _signal as signal

PR_SET_PDEATHSIG = 1

libc: ctypes.CDLL = ctypes.CDLL(None, use_errno=True)
_PID = os.getpid()
# Each program needs two descriptors here: a thousand of them are more than a process has by default.
FILES = resource.getrlimit(resource.RLIMIT_NOFILE)


def die_with_guard() -> None:
    """Be a session of its own that ends with the guard; in the new process."""
    os.setsid()
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    # A parent that died before that call sends no signal (prctl(2)).
    if os.getppid() != _PID:
        os._exit(1)
    resource.setrlimit(resource.RLIMIT_NOFILE, FILES)
    # The guard ignores these signals, and a program must not: a shell cannot even trap one that was ignored when it began.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def start_x_server() -> None:
    """The same for an X server."""
    die_with_guard()
    # An X server that finds this signal ignored sends it to its parent when it is ready (Xserver(1), "SIGUSR1").
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)


class Unstarted(Exception):
    """A program was not started: the number of the system's error, if it was one, and whether its directory was why."""

    def __init__(self, reason: int | None, text: str, *, wrong_place: bool) -> None:
        super().__init__(text)
        self.reason: int | None = reason
        self.wrong_place: bool = wrong_place


def open_streams(opened: list[int], request: dict[str, Any]) -> tuple[list[int], int | None]:
    """What a program gets as its standard streams, and the pipe from which its log comes; all are in `opened`."""
    if (paths := request.get("streams")) is None:
        if "log" not in request:
            raise ValueError("neither streams nor a log")
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        opened.append(nothing)
        reading, writing = os.pipe2(os.O_CLOEXEC)
        opened += (reading, writing)
        os.set_blocking(reading, False)
        return [nothing, writing, writing], reading
    found = []
    for path, way in zip(paths, (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY), strict=True):
        # Opened without blocking: a driver that was killed meanwhile would never open its end.
        found.append(os.open(path, way | os.O_NONBLOCK | os.O_CLOEXEC))
        opened.append(found[-1])
        os.set_blocking(found[-1], True)
    return found, None


def start(argv: list[str], env: dict[str, str], cwd: str | None, streams: list[int], tie: Callable[[], None]) -> int:
    """Start a program, in a process whose last call before it is `tie`; `subprocess` takes long to import.

    Raises:
        Unstarted: It cannot be started.
        OSError: There is no room for another process.
    """
    reading, writing = os.pipe2(os.O_CLOEXEC)
    with open(reading, "rb") as pipe:
        try:
            pid = os.fork()
            if pid == 0:
                _become(argv, env, cwd, streams, tie, writing)
        finally:
            os.close(writing)
        # Its other end is closed when the program begins.
        said = pipe.read().decode("utf-8", "replace")
    if said:
        os.waitpid(pid, 0)
        reason, where, text = said.split("\0", 2)
        raise Unstarted(int(reason) or None, text, wrong_place=where == "chdir")
    return pid


def _become(  # noqa: PLR0917 # what is done, in its order
    argv: list[str], env: dict[str, str], cwd: str | None, streams: list[int], tie: Callable[[], None], errors: int
) -> None:
    """In the new process: the program itself; never returns."""
    where = "prepare"
    try:
        # What Python ignores and handles here is not to reach the program; until it begins, nothing is handled.
        for number in (signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        for target, stream in enumerate(streams):
            os.dup2(stream, target)
        if cwd is not None:
            where = "chdir"
            os.chdir(cwd)
        where = "prepare"
        tie()
        where = "exec"
        _execute(argv, env)
    except BaseException as error:  # noqa: BLE001 # whatever it is, this process must not go on as a second guard
        reason = (error.errno or 0) if isinstance(error, OSError) else 0
        text = str(error) if where != "exec" or not reason else f"[Errno {reason}] {os.strerror(reason)}: {argv[0]!r}"
        os.write(errors, f"{reason}\0{where}\0{text}".encode("utf-8", "replace"))
    finally:
        os._exit(255)


def _execute(argv: list[str], env: dict[str, str]) -> None:
    """As `os.execvpe`, which opens a file: there may be no room for one under the limit that the program gets."""
    name = argv[0]
    places = [""] if "/" in name else env.get("PATH", os.defpath).split(os.pathsep)
    problem: OSError | None = None
    for place in places:
        try:
            os.execve(os.path.join(place, name), argv, env)  # noqa: S606 # what it is for
        except OSError as error:
            # What is there and cannot be executed says more than where it is not.
            if problem is None or isinstance(problem, (FileNotFoundError, NotADirectoryError)):
                problem = error
    if problem is not None:
        raise problem


def _children(pid: int) -> list[int]:
    """The processes that each thread of a process has started; one that is reaped meanwhile may hide its next brothers."""
    found: list[int] = []
    with Suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with Suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb", 0) as file:
                found += map(int, file.read().split())
    return found


def _children_by_parents() -> Callable[[int], list[int]]:
    """The same where the kernel keeps no such lists (`CONFIG_PROC_CHILDREN`)."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with Suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb", 0) as stat:
                # The command name may hold anything, spaces and parentheses included.
                fields = stat.read().rpartition(b")")[2].split()
                parents.setdefault(int(fields[1]), []).append(int(name))
    return lambda pid: parents.get(pid, [])


def descendants() -> list[int]:
    """All processes below this one, by /proc.

    None of the guard's own children is missing, because only the guard reaps them; so none is left when this is empty.
    """
    children = _children if os.path.exists(f"/proc/self/task/{_PID}/children") else _children_by_parents()
    found: list[int] = []
    todo = [_PID]
    while todo:
        below = children(todo.pop())
        found += below
        todo += below
    return found
