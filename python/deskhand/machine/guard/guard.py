"""The process that owns a desktop's processes, so that none of them outlives it. Run by `python -I -S`, which imports it.

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

It imports only what starts fast, and nothing of the package around it: it must run before, and after, everything else.
"""

from __future__ import annotations

import fcntl
import os
import resource
import select
import sys
import time

from .log import Log
from .plain import Suppress, read_json, write_json
from .removal import remove_tree
from .starting import FILES, Unstarted, descendants, die_with_guard, libc, open_streams, start, start_x_server

# Type checkers know this name. Importing it would take as long as half of the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    import socket
    from collections.abc import Callable
    from typing import Any, TypeAlias

    Request: TypeAlias = dict[str, Any]
else:
    # What is below `signal`, which imports `enum`.
    import _signal as signal

PR_SET_CHILD_SUBREAPER = 36
GRACE = 1.0
LAST_GRACE = 2.0
# The number of logs kept of programs that have ended with all that they started.
ENDED_KEPT = 32

# Seconds between two looks for a process whose end is not signalled: a child of a child that runs on.
LOOK = 0.02


class Guard:
    def __init__(self) -> None:
        self.poll: select.poll = select.poll()
        # What each descriptor is that may have something to read.
        self.watched: dict[int, Log | str] = {}
        self.wake: int = -1
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
        with Suppress(OSError):
            os.write(to, write_json(message))

    def watch(self, fd: int, what: Log | str) -> None:
        self.watched[fd] = what
        self.poll.register(fd, select.POLLIN)

    def unwatch(self, fd: int) -> None:
        del self.watched[fd]
        self.poll.unregister(fd)

    def spawn(self, request: Request, answer_to: int) -> None:
        opened: list[int] = []
        kept: int | None = None
        try:
            streams, pipe = open_streams(opened, request)
            tie = start_x_server if request.get("x_server") else die_with_guard
            pid = start(request["argv"], request["env"], request.get("cwd"), streams, tie)
            kept = pipe
        except Unstarted as error:
            self.say(answer_to, id=request["id"], errno=error.reason, wrong_place=error.wrong_place, error=str(error))
            return
        except OSError as error:
            self.say(answer_to, id=request["id"], errno=error.errno, wrong_place=False, error=str(error))
            return
        finally:
            for fd in opened:
                if fd != kept:
                    os.close(fd)
        # Reaped by pid below, together with the orphans.
        if pipe is not None:
            log = self.logs[pid] = Log(pipe, f"{request['log']}-{pid}.log")
            self.open_logs.add(log)
            self.watch(pipe, log)
        if (number := request.get("x_server")) is not None:
            self.last[pid] = number
            self.x_server = (request["id"], answer_to)
        self.say(answer_to, id=request["id"], pid=pid)

    def part_from(self, log: Log) -> None:
        """Close a log that no process can write to any more."""
        self.open_logs.remove(log)
        self.unwatch(log.pipe)
        log.close()
        self.ended_logs.append(log.path)
        while len(self.ended_logs) > ENDED_KEPT:
            with Suppress(OSError):
                os.unlink(self.ended_logs.pop(0))

    def drain_logs(self) -> None:
        for log in list(self.open_logs):
            if not log.drain():
                self.part_from(log)

    def renew(self, request: Request, answer_to: int) -> None:
        self.finish(request["grace"], lambda: [pid for pid in descendants() if pid not in self.last])
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
            with Suppress(OSError):
                name = f"{request['path']}/.guard"
                lock = os.open(f"{name}-new", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Under its final name it is never unlocked, which would say that its guard has ended.
                os.rename(f"{name}-new", name)
                self.locks.append(lock)
        elif op == "at_end":
            self.at_end.setdefault(0 if answer_to == 1 else answer_to, []).append(request)
        elif op == "detach":
            import socket  # noqa: PLC0415 # it takes long, and few are left running

            listener = socket.socket(socket.AF_UNIX)
            try:
                listener.bind(request["socket"])
                listener.listen()
            except OSError:
                listener.close()
                raise
            self.listener, self.detached = listener, True
            self.watch(listener.fileno(), "listener")
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
                request = read_json(line)
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
        with Suppress(OSError, ValueError), open(lock) as file:
            if int(file.read()) == pid:
                os.unlink(f"/tmp/.X11-unix/X{display}")
                os.unlink(lock)

    def run(self) -> None:
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
        resource.setrlimit(resource.RLIMIT_NOFILE, (FILES[1], FILES[1]))
        self.wake, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: setattr(self, "over", True))
        signal.signal(signal.SIGUSR1, lambda *_: setattr(self, "x_server_ready", True))
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self.watch(self.wake, "wake")
        self.watch(0, "driver")
        # A child that the driver forked may keep the other end of standard input open after the driver has ended.
        with Suppress(OSError):
            self.watch(os.pidfd_open(self.pids[0]), "end of driver")
        while not self.over:
            for fd, _ in self.poll.poll():
                # Another of the same round may have ended it.
                if (what := self.watched.get(fd)) is not None:
                    self.take(fd, what)
            if self.x_server_ready and self.x_server is not None:
                self.say(self.x_server[1], id=self.x_server[0], ready=True)
                self.x_server, self.x_server_ready = None, False
        self.end()

    def take(self, fd: int, what: Log | str) -> None:
        """See to one descriptor that has something to read, or has ended."""
        if isinstance(what, Log):
            if what.take() == 0:
                self.part_from(what)
        elif what == "wake":
            self.doze(0)
            self.reap()
        elif what == "driver":
            if not self.read(0, 1):
                self.unwatch(0)
                self.driver_left = True
                self.over = not self.detached
        elif what == "end of driver":
            self.unwatch(fd)
            # Its last requests are still to be read.
            os.set_blocking(0, False)
            while self.read(0, 1):
                pass
            self.driver_left = True
            self.over = not self.detached
        elif what == "listener":
            self.accept()
        elif what == "client" and not self.read(fd, fd):
            self.part(fd)

    def doze(self, seconds: float) -> None:
        """Wait until a child has ended or a program has written something, so many seconds at most."""
        ends = select.poll()
        for fd in (self.wake, *(log.pipe for log in self.open_logs)):
            ends.register(fd, select.POLLIN)
        ends.poll(seconds * 1000)
        with Suppress(BlockingIOError):
            os.read(self.wake, 4096)

    def accept(self) -> None:
        import socket  # noqa: PLC0415 # as above

        assert self.listener is not None
        client, _address = self.listener.accept()
        # A process id, a user and a group (unix(7)).
        credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        self.pids[client.fileno()] = int.from_bytes(credentials[:4], sys.byteorder)
        self.clients[client.fileno()] = client
        self.watch(client.fileno(), "client")

    def part(self, fd: int) -> None:
        """Handle a client that has left, in order or not."""
        client = self.clients.pop(fd)
        self.unwatch(fd)
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
        with Suppress(OSError, Unstarted):
            nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
            try:
                # Reaped with all others.
                return start(request["argv"], environment, None, [nothing, nothing], lambda: None)
            finally:
                os.close(nothing)
        return None

    def end(self) -> None:
        if self.driver_left:
            begun = time.monotonic()
            # All are started before the first is waited for: keys are released even while another takes long.
            last = [(self.run_at_end(0, request), begun + request["limit"]) for request in self.at_end.get(0, [])]
            for pid, deadline in last:
                while pid is not None and self.is_running(pid) and time.monotonic() < deadline:
                    time.sleep(0.005)
        self.finish(GRACE, lambda: [pid for pid in descendants() if pid not in self.last])
        self.finish(LAST_GRACE, descendants)
        for pid in list(self.last):
            self.clean_up_after(pid)
        for directory in self.directories:
            remove_tree(directory)

    def is_running(self, pid: int) -> bool:
        """Whether a child of the guard has not ended, or has ended and was not reaped yet."""
        self.drain_logs()
        self.reap()
        with Suppress(ProcessLookupError):
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
            self.doze(LOOK)
            # A process that writes a lot as it ends must not wait for the guard.
            self.drain_logs()
            self.reap()


def main() -> None:
    Guard().run()
    # Nothing is left to put in order; taking all of Python's own apart takes as long as a third of its start.
    os._exit(0)
