"""The process that owns a desktop's processes, so that none of them outlives it. Run as a script: `python -I -S guard.py`.

It reads one JSON object a line from standard input and writes the same to standard output:

- `{"op": "spawn", "id": 1, "argv": [...], "env": {...}, "cwd": ..., "log": path, "report": false, "last": false}` answers
  `{"id": 1, "pid": 42}` or `{"id": 1, "error": "..."}`. With `report`, the argument `@fd@` becomes a descriptor on which the
  program writes one line, passed on as `{"id": 1, "report": "99"}`. With `last`, the program is ended after all others.
- `{"op": "detach", "socket": path}`: from now on the end of standard input ends nothing; requests come to that socket.
- `{"op": "at_end", "argv": [...], "env": {...}}`: run this when the driver vanishes without `{"op": "bye"}`.
- An ended program is told as `{"exit": 42, "status": 0}`.

When standard input ends (the driver closed it, or was killed) or at SIGTERM, it ends every process below it, also those that
made themselves daemons: it is their subreaper. It removes the directories that it was told to. Should it be killed itself, its
own children get SIGTERM from the kernel.

It imports only what starts fast, and nothing of this package: it must run before, and after, everything else.
"""

import contextlib
import ctypes
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
GRACE = 1.0
LAST_GRACE = 2.0

libc = ctypes.CDLL(None, use_errno=True)


def _die_with_guard():
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _descendants():
    """All processes below this one, by /proc."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as stat:
                # The command name may hold anything, spaces and parentheses included.
                fields = stat.read().rpartition(b")")[2].split()
                parents.setdefault(int(fields[1]), []).append(int(name))
    found, todo = [], [os.getpid()]
    while todo:
        children = parents.get(todo.pop(), [])
        found += children
        todo += children
    return found


class Guard:
    def __init__(self):
        self.selector = selectors.DefaultSelector()
        self.last = {}
        self.directories = []
        self.at_end = None
        self.detached = False
        self.over = False
        self.buffers = {}
        self.reports = {}
        self.listener = None

    def say(self, to, **message):
        with contextlib.suppress(OSError):
            os.write(to, json.dumps(message).encode() + b"\n")

    def spawn(self, request, answer_to):
        report = None
        argv = request["argv"]
        passed = ()
        try:
            if request.get("report"):
                report, write_end = os.pipe()
                argv = [str(write_end) if part == "@fd@" else part for part in argv]
                passed = (write_end,)
            log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                process = subprocess.Popen(
                    argv,
                    env=request["env"],
                    cwd=request.get("cwd"),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=passed,
                    preexec_fn=_die_with_guard,
                    start_new_session=True,
                )
            finally:
                os.close(log)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            if report is not None:
                os.close(report)
            self.say(answer_to, id=request["id"], error=str(error))
            return
        finally:
            for fd in passed:
                os.close(fd)
        # Reaped by pid below, together with the orphans that nobody else waits for.
        process.returncode = 0
        if request.get("last"):
            self.last[process.pid] = None
        if report is not None:
            self.reports[report] = (request["id"], answer_to)
            self.selector.register(report, selectors.EVENT_READ, "report")
        self.say(answer_to, id=request["id"], pid=process.pid)

    def handle(self, request, answer_to):
        op = request["op"]
        if op == "spawn":
            self.spawn(request, answer_to)
        elif op == "directory":
            self.directories.append(request["path"])
        elif op == "display":
            self.last[request["pid"]] = request["number"]
        elif op == "at_end":
            self.at_end = request
        elif op == "detach":
            self.detached = True
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(request["socket"])
            self.listener.listen()
            self.selector.register(self.listener, selectors.EVENT_READ, "listener")
            self.say(answer_to, id=request["id"], pid=os.getpid())
        elif op == "bye":
            self.at_end = None

    def read(self, fd, answer_to):
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
            self.handle(json.loads(line), answer_to)
        return True

    def read_report(self, fd):
        """A program may write its line in pieces, and fail if the reader leaves after the first."""
        data = os.read(fd, 256)
        line = self.buffers.get(fd, b"") + data
        if data and not line.endswith(b"\n"):
            self.buffers[fd] = line
            return
        self.buffers.pop(fd, None)
        request_id, answer_to = self.reports.pop(fd)
        self.selector.unregister(fd)
        os.close(fd)
        if line:
            self.say(answer_to, id=request_id, report=line.decode().strip())

    def reap(self):
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.clean_up_after(pid)
            self.say(1, exit=pid, status=os.waitstatus_to_exitcode(status))

    def clean_up_after(self, pid):
        """Remove what an X server that was killed left; one that ended in order has, and another may have its number now."""
        display = self.last.pop(pid, None)
        if display is None:
            return
        lock = f"/tmp/.X{display}-lock"
        with contextlib.suppress(OSError, ValueError), open(lock) as file:
            if int(file.read()) == pid:
                os.unlink(f"/tmp/.X11-unix/X{display}")
                os.unlink(lock)

    def run(self):
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
        wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: setattr(self, "over", True))
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self.selector.register(wake_read, selectors.EVENT_READ, "wake")
        self.selector.register(0, selectors.EVENT_READ, "driver")
        while not self.over:
            for key, _ in self.selector.select():
                fd = key.fd
                if key.data == "wake":
                    with contextlib.suppress(BlockingIOError):
                        os.read(wake_read, 4096)
                    self.reap()
                elif key.data == "driver":
                    if not self.read(0, 1):
                        self.selector.unregister(0)
                        self.over = not self.detached
                elif key.data == "listener":
                    client, _address = self.listener.accept()
                    self.selector.register(client, selectors.EVENT_READ, "client")
                elif key.data == "client":
                    if not self.read(fd, fd):
                        self.selector.unregister(key.fileobj)
                        self.buffers.pop(fd, None)
                        key.fileobj.close()
                elif key.data == "report":
                    self.read_report(fd)
        self.end()

    def end(self):
        if self.at_end is not None:
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                subprocess.run(
                    self.at_end["argv"], env=self.at_end["env"], stdin=subprocess.DEVNULL, timeout=10, check=False
                )
        self.finish(GRACE, lambda: [pid for pid in _descendants() if pid not in self.last])
        self.finish(LAST_GRACE, _descendants)
        for pid in list(self.last):
            self.clean_up_after(pid)
        for directory in self.directories:
            shutil.rmtree(directory, ignore_errors=True)

    def finish(self, grace, remaining):
        """Ask to end, wait, insist, and wait until the last one is gone."""
        signalled = set()
        deadline = time.monotonic() + grace
        while pids := remaining():
            late = time.monotonic() >= deadline
            for pid in pids:
                if late or pid not in signalled:
                    with contextlib.suppress(ProcessLookupError):
                        # A stopped process takes no SIGTERM until it is continued.
                        os.kill(pid, signal.SIGKILL if late else signal.SIGTERM)
                        os.kill(pid, signal.SIGCONT)
                    signalled.add(pid)
            self.reap()
            if remaining():
                time.sleep(0.002)
            self.reap()


if __name__ == "__main__":
    try:
        Guard().run()
    except KeyboardInterrupt:
        sys.exit(1)
