"""The process that owns a desktop's processes, so that none of them outlives it. Run as a script: `python -I -S guard.py`.

It reads one JSON object a line from standard input and writes the same to standard output:

- `{"op": "spawn", "id": 1, "argv": [...], "env": {...}, "cwd": ..., "log": path}` answers `{"id": 1, "pid": 42}` or
  `{"id": 1, "error": "...", "errno": 2}`. A pipe carries what the program writes; its beginning and end are kept in
  `path-42.log` (see `Log`). With `"x_server": 99` it is the X server of display :99: the guard reports that it is ready with
  `{"id": 1, "ready": true}`, ends it after all others, and removes its lock and socket if it does not do that itself. With
  `"streams": [path, path, path]` its standard streams are these FIFOs, open at the driver's end, not nothing and the log.
- `{"op": "renew", "id": 1, "grace": 0.25}`: end every program but the X server, then reset that, without clients and
  with what its cookie file says now; answers `{"id": 1, "ready": true}`, or `{"id": 1, "ready": false}` when there is none.
- `{"op": "flush", "id": 1}` answers `{"id": 1, "flushed": true}` when all that programs have written by now is in their logs.
- `{"op": "detach", "socket": path}`: from now on the end of standard input ends nothing, and requests come to that socket.
- `{"op": "at_end", "argv": [...], "env": {...}, "limit": 10}`: run this when the client that sends it vanishes without
  `{"op": "bye"}`, with `DESKHAND_DRIVER` set to its process id; the guard waits this many seconds for the driver's.
- `{"op": "directory", "path": ...}`: remove it at the end. A lock on `.guard` in it shows until then that the guard will.
- Every client gets `{"exit": 42, "status": 0}` when a program has ended.

When the driver closes standard input, or ends for any reason, or at SIGTERM, it ends every process below it, also those that
made themselves daemons: it is their subreaper. If it is killed itself, its own children get SIGTERM from the kernel.

It imports only what starts fast, and nothing of this package: it must run before, and after, everything else.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import resource
import selectors
import signal
import socket
import struct
import subprocess
import sys
import time

# Type checkers know this name. Importing it would take as long as half of the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    Request: TypeAlias = dict[str, Any]

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
GRACE = 1.0
LAST_GRACE = 2.0
# Bytes of a log: the beginning and the end that are kept when it has grown too long, and how long it may grow.
HEAD, TAIL, MOST = 32 << 10, 64 << 10, 256 << 10
# As much as a pipe holds.
PIECE = 64 << 10
# The number of logs kept of programs that have ended with all that they started.
ENDED_KEPT = 32

libc: ctypes.CDLL = ctypes.CDLL(None, use_errno=True)
_PID = os.getpid()
# Each program needs two descriptors here: a thousand of them are more than a process has by default.
_FILES = resource.getrlimit(resource.RLIMIT_NOFILE)


def _die_with_guard() -> None:
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    # A parent that died before that call sends no signal (prctl(2)).
    if os.getppid() != _PID:
        os._exit(1)
    resource.setrlimit(resource.RLIMIT_NOFILE, _FILES)
    # The guard ignores these signals, and a program must not: a shell cannot even trap one that was ignored when it began.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def _start_x_server() -> None:
    _die_with_guard()
    # An X server that finds this signal ignored sends it to its parent when it is ready (Xserver(1), "SIGUSR1").
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)


class Log:
    """The output of a program and of all that it has started: its beginning and its end, in a file of a bounded size.

    It comes through a pipe. Whatever happens to the file, the pipe is read, and the program goes on.
    """

    def __init__(self, pipe: int, path: str) -> None:
        self.pipe = pipe
        self.path = path
        self.file: int | None = None
        self.size: int = 0
        # The length of the line that says how much was left out, and that amount.
        self.gap: int = 0
        self.lost: int = 0
        with contextlib.suppress(OSError):
            # A file that is there was left by another program, or leads elsewhere.
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            self.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)

    def take(self) -> int | None:
        """Keep what has come; 0 at the end, None when nothing has come."""
        try:
            data = os.read(self.pipe, PIECE)
        except BlockingIOError:
            return None
        # Where the disk is full, what does not fit is lost.
        with contextlib.suppress(OSError):
            self._keep(data)
        return len(data)

    def _keep(self, data: bytes) -> None:
        if self.file is None:
            return
        if self.size + len(data) > MOST:
            # A process that reads the file meanwhile finds its end at every moment.
            end = os.pread(self.file, TAIL, self.size - TAIL)
            self.lost += self.size - HEAD - self.gap - len(end)
            line = f"\n[... {self.lost} bytes left out ...]\n".encode()
            os.pwrite(self.file, line + end, HEAD)
            self.gap, self.size = len(line), HEAD + len(line) + len(end)
            os.ftruncate(self.file, self.size)
        self.size += os.pwrite(self.file, data, self.size)

    def drain(self) -> bool:
        """Keep what had been written when this call began; False at the end."""
        for _ in range(1 + MOST // PIECE):
            if (taken := self.take()) is None:
                return True
            if taken == 0:
                return False
        return True

    def close(self) -> None:
        os.close(self.pipe)
        if self.file is not None:
            os.close(self.file)


def _open_streams(
    opened: contextlib.ExitStack, undo: contextlib.ExitStack, request: Request
) -> tuple[list[int], int | None]:
    """What a program gets as its standard streams, and the pipe from which its log comes, which stays open."""
    if (paths := request.get("streams")) is None:
        if "log" not in request:
            raise ValueError("neither streams nor a log")
        reading, writing = os.pipe2(os.O_CLOEXEC)
        undo.callback(os.close, reading)
        opened.callback(os.close, writing)
        os.set_blocking(reading, False)
        return [subprocess.DEVNULL, writing, writing], reading
    found = []
    for path, way in zip(paths, (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY), strict=True):
        # Opened without blocking: a driver that was killed meanwhile would never open its end.
        found.append(os.open(path, way | os.O_NONBLOCK | os.O_CLOEXEC))
        opened.callback(os.close, found[-1])
        os.set_blocking(found[-1], True)
    return found, None


def _descendants() -> list[int]:
    """All processes below this one, according to /proc."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as stat:
                # The command name may hold anything, spaces and parentheses included.
                fields = stat.read().rpartition(b")")[2].split()
                parents.setdefault(int(fields[1]), []).append(int(name))
    found: list[int] = []
    todo = [os.getpid()]
    while todo:
        children = parents.get(todo.pop(), [])
        found += children
        todo += children
    return found


def _enter(name: str, parent: int | None = None) -> int:
    """Open a directory, not a link to one, and take the right to change it: Go's cache is read-only, for example."""
    path = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        if os.fstat(path).st_mode & 0o700 != 0o700:
            os.chmod(f"/proc/self/fd/{path}", 0o700)
        return os.open(f"/proc/self/fd/{path}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    finally:
        os.close(path)


def _unlink(name: str, parent: int) -> bool:
    """Unlink a file; False for a directory."""
    try:
        os.unlink(name, dir_fd=parent)
    except IsADirectoryError:
        return False
    except OSError:
        pass
    return True


def _empty(top: int) -> None:
    """Move every directory below to the top before it is emptied: so no depth needs a long path or many descriptors."""
    moved = os.urandom(8).hex()
    todo = os.listdir(top)
    count = 0
    while todo:
        name = todo.pop()
        if _unlink(name, top):
            continue
        with contextlib.suppress(OSError):
            below = _enter(name, top)
            try:
                for child in [child for child in os.listdir(below) if not _unlink(child, below)]:
                    count += 1
                    with contextlib.suppress(OSError):
                        # A directory can only be moved if it is writable itself.
                        os.close(_enter(child, below))
                        os.rename(child, f"{moved}-{count}", src_dir_fd=below, dst_dir_fd=top)
                        todo.append(f"{moved}-{count}")
            finally:
                os.close(below)
            os.rmdir(name, dir_fd=top)


def remove_tree(path: str) -> None:
    """Remove a directory with all that is in it, and as much as possible if a part cannot be removed.

    A container may have written there: `shutil.rmtree` ends in a RecursionError where directories are a thousand deep.
    """
    with contextlib.suppress(OSError):
        top = _enter(path)
        try:
            for name in os.listdir(top):
                if not _unlink(name, top):
                    with contextlib.suppress(OSError):
                        below = _enter(name, top)
                        try:
                            # Each by itself: what a container sees is not moved to a place from which it could look out.
                            _empty(below)
                        finally:
                            os.close(below)
                        os.rmdir(name, dir_fd=top)
        finally:
            os.close(top)
        os.rmdir(path)


class Guard:
    def __init__(self) -> None:
        self.selector: selectors.DefaultSelector = selectors.DefaultSelector()
        self.last: dict[int, int] = {}
        self.directories: list[str] = []
        self.locks: list[int] = []
        # By the descriptor of the client: 0 is the driver, others are clients of the socket.
        self.at_end: dict[int, list[Request]] = {}
        self.pids: dict[int, int] = {0: os.getppid()}
        self.detached: bool = False
        self.driver_left: bool = False
        self.clients: dict[int, socket.socket] = {}
        self.over: bool = False
        self.buffers: dict[int, bytes] = {}
        self.x_server: tuple[int, int] | None = None
        self.x_server_ready: bool = False
        self.listener: socket.socket | None = None
        # By process id, which may be another program's by then, while what the earlier one started still writes.
        self.logs: dict[int, Log] = {}
        self.open_logs: set[Log] = set()
        self.ended_logs: list[str] = []

    def say(self, to: int, **message: object) -> None:
        with contextlib.suppress(OSError):
            os.write(to, json.dumps(message).encode() + b"\n")

    def spawn(self, request: Request, answer_to: int) -> None:
        try:
            with contextlib.ExitStack() as undo:
                with contextlib.ExitStack() as opened:
                    streams, pipe = _open_streams(opened, undo, request)
                    process = subprocess.Popen(
                        request["argv"],
                        env=request["env"],
                        cwd=request.get("cwd"),
                        stdin=streams[0],
                        stdout=streams[1],
                        stderr=streams[2],
                        preexec_fn=_start_x_server if request.get("x_server") else _die_with_guard,
                        start_new_session=True,
                    )
                undo.pop_all()
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            place = request.get("cwd")
            # Python names the directory if it cannot be entered.
            wrong_place = isinstance(error, OSError) and place is not None and error.filename == place
            reason = getattr(error, "errno", None)
            self.say(answer_to, id=request["id"], errno=reason, wrong_place=wrong_place, error=str(error))
            return
        # Reaped by pid below, together with the orphans.
        process.returncode = 0
        if pipe is not None:
            log = self.logs[process.pid] = Log(pipe, f"{request['log']}-{process.pid}.log")
            self.open_logs.add(log)
            self.selector.register(pipe, selectors.EVENT_READ, log)
        if (number := request.get("x_server")) is not None:
            self.last[process.pid] = number
            self.x_server = (request["id"], answer_to)
        self.say(answer_to, id=request["id"], pid=process.pid)

    def keep(self, log: Log | str) -> None:
        """Read what has come, if this is a log; another event of the same round may have ended it."""
        if isinstance(log, Log) and log in self.open_logs and log.take() == 0:
            self.part_from(log)

    def part_from(self, log: Log) -> None:
        """Close a log that no process can write to any more."""
        self.open_logs.remove(log)
        self.selector.unregister(log.pipe)
        log.close()
        self.ended_logs.append(log.path)
        while len(self.ended_logs) > ENDED_KEPT:
            with contextlib.suppress(OSError):
                os.unlink(self.ended_logs.pop(0))

    def drain_logs(self) -> None:
        for log in list(self.open_logs):
            if not log.drain():
                self.part_from(log)

    def renew(self, request: Request, answer_to: int) -> None:
        self.finish(request["grace"], lambda: [pid for pid in _descendants() if pid not in self.last])
        if not self.last:
            self.say(answer_to, id=request["id"], ready=False)
            return
        self.x_server, self.x_server_ready = (request["id"], answer_to), False
        for pid in self.last:
            # "... the server to close all existing connections, free all resources, and restore all defaults" (Xserver(1)).
            os.kill(pid, signal.SIGHUP)

    def handle(self, request: Request, answer_to: int) -> None:
        op = request["op"]
        if op == "spawn":
            self.spawn(request, answer_to)
        elif op == "renew":
            self.renew(request, answer_to)
        elif op == "directory":
            self.directories.append(request["path"])
            with contextlib.suppress(OSError):
                name = f"{request['path']}/.guard"
                lock = os.open(f"{name}-new", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Under its final name it is never unlocked, which would say that its guard has ended.
                os.rename(f"{name}-new", name)
                self.locks.append(lock)
        elif op == "at_end":
            self.at_end.setdefault(0 if answer_to == 1 else answer_to, []).append(request)
        elif op == "detach":
            listener = socket.socket(socket.AF_UNIX)
            try:
                listener.bind(request["socket"])
                listener.listen()
            except OSError:
                listener.close()
                raise
            self.listener, self.detached = listener, True
            self.selector.register(self.listener, selectors.EVENT_READ, "listener")
            self.say(answer_to, id=request["id"], pid=os.getpid())
        elif op == "flush":
            self.drain_logs()
            self.say(answer_to, id=request["id"], flushed=True)
        elif op == "bye":
            self.at_end.pop(0 if answer_to == 1 else answer_to, None)

    def read(self, fd: int, answer_to: int) -> bool:
        """False at the end of input."""
        try:
            data = os.read(fd, 65536)
        except OSError:
            data = b""
        if not data:
            return False
        lines = (self.buffers.get(fd, b"") + data).split(b"\n")
        self.buffers[fd] = lines.pop()
        for line in lines:
            request: Request = {}
            try:
                request = json.loads(line)
                self.handle(request, answer_to)
            except Exception as error:  # noqa: BLE001 # whatever it was asked, a desktop hangs on this process
                number = request.get("id") if isinstance(request, dict) else None
                self.say(answer_to, id=number, error=f"{type(error).__name__}: {error}")
        return True

    def reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.clean_up_after(pid)
            # A client that learns of the end finds the reason in the log.
            log = self.logs.pop(pid, None)
            if log in self.open_logs and not log.drain():
                self.part_from(log)
            for to in (1, *self.clients):
                self.say(to, exit=pid, status=os.waitstatus_to_exitcode(status))

    def clean_up_after(self, pid: int) -> None:
        """Remove what a killed X server left. One that ended in order removed it, and another may have its number now."""
        display = self.last.pop(pid, None)
        if display is None:
            return
        lock = f"/tmp/.X{display}-lock"
        with contextlib.suppress(OSError, ValueError), open(lock) as file:
            if int(file.read()) == pid:
                os.unlink(f"/tmp/.X11-unix/X{display}")
                os.unlink(lock)

    def run(self) -> None:
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
        resource.setrlimit(resource.RLIMIT_NOFILE, (_FILES[1], _FILES[1]))
        wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: setattr(self, "over", True))
        signal.signal(signal.SIGUSR1, lambda *_: setattr(self, "x_server_ready", True))
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self.selector.register(wake_read, selectors.EVENT_READ, "wake")
        self.selector.register(0, selectors.EVENT_READ, "driver")
        # A child that the driver forked may keep the other end of standard input open after the driver has ended.
        with contextlib.suppress(OSError):
            self.selector.register(os.pidfd_open(self.pids[0]), selectors.EVENT_READ, "end of driver")
        while not self.over:
            for key, _ in self.selector.select():
                fd = key.fd
                if key.data == "wake":
                    with contextlib.suppress(BlockingIOError):
                        os.read(wake_read, 4096)
                    self.reap()
                    if self.x_server_ready and self.x_server is not None:
                        self.say(self.x_server[1], id=self.x_server[0], ready=True)
                        self.x_server, self.x_server_ready = None, False
                elif key.data == "driver":
                    if not self.read(0, 1):
                        self.selector.unregister(0)
                        self.driver_left = True
                        self.over = not self.detached
                elif key.data == "end of driver":
                    self.selector.unregister(fd)
                    # Its last requests are still to be read.
                    os.set_blocking(0, False)
                    while self.read(0, 1):
                        pass
                    self.driver_left = True
                    self.over = not self.detached
                elif key.data == "listener":
                    self.accept()
                elif key.data == "client" and not self.read(fd, fd):
                    self.part(fd)
                self.keep(key.data)
        self.end()

    def accept(self) -> None:
        assert self.listener is not None
        client, _address = self.listener.accept()
        credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        self.pids[client.fileno()] = struct.unpack("3i", credentials)[0]
        self.clients[client.fileno()] = client
        self.selector.register(client, selectors.EVENT_READ, "client")

    def part(self, fd: int) -> None:
        """Handle a client that has left, in order or not."""
        client = self.clients.pop(fd)
        self.selector.unregister(client)
        self.buffers.pop(fd, None)
        # An answer that is still to come would otherwise go to the next client with this number.
        if self.x_server is not None and self.x_server[1] == fd:
            self.x_server = None
        for request in self.at_end.pop(fd, []):
            self.run_at_end(fd, request)
        self.pids.pop(fd)
        client.close()

    def run_at_end(self, fd: int, request: Request) -> int | None:
        """Start a process; None when that is not possible."""
        environment = {**request["env"], "DESKHAND_DRIVER": str(self.pids[fd])}
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            process = subprocess.Popen(
                request["argv"], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
            )
            # Reaped with all others.
            process.returncode = 0
            return process.pid
        return None

    def end(self) -> None:
        if self.driver_left:
            begun = time.monotonic()
            # All are started before the first is waited for: keys are released even while another takes long.
            last = [(self.run_at_end(0, request), begun + request["limit"]) for request in self.at_end.get(0, [])]
            for pid, deadline in last:
                while pid is not None and self.is_running(pid) and time.monotonic() < deadline:
                    time.sleep(0.005)
        self.finish(GRACE, lambda: [pid for pid in _descendants() if pid not in self.last])
        self.finish(LAST_GRACE, _descendants)
        for pid in list(self.last):
            self.clean_up_after(pid)
        for directory in self.directories:
            remove_tree(directory)

    def is_running(self, pid: int) -> bool:
        """Whether a child of the guard has not ended, or has ended and was not reaped yet."""
        self.drain_logs()
        self.reap()
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 0)
            return True
        return False

    def finish(self, grace: float, remaining: Callable[[], list[int]]) -> None:
        """Ask all processes to end, wait, kill them, and wait until the last one is gone."""
        signalled: set[int] = set()
        # Processes of another user, by sudo for example, cannot be ended from here, and the rest must not wait for them.
        beyond: set[int] = set()
        deadline = time.monotonic() + grace
        while pids := [pid for pid in remaining() if pid not in beyond]:
            late = time.monotonic() >= deadline
            for pid in pids:
                if late or pid not in signalled:
                    try:
                        # A stopped process handles no SIGTERM until it is continued.
                        os.kill(pid, signal.SIGKILL if late else signal.SIGTERM)
                        os.kill(pid, signal.SIGCONT)
                    except ProcessLookupError:
                        pass
                    except PermissionError:
                        beyond.add(pid)
                    signalled.add(pid)
            # A process that writes a lot as it ends must not wait for the guard.
            self.drain_logs()
            self.reap()
            if remaining():
                time.sleep(0.002)
            self.reap()


if __name__ == "__main__":
    try:
        Guard().run()
    except KeyboardInterrupt:
        sys.exit(1)
