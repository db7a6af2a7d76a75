"""What the fault tests share: waiting for conditions, processes, and drivers and X clients in processes of their own."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import random
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

import deskhand
from deskhand.backends.x11.backend import X11Backend
from faults.control import Slowness, control
from faults.scale import KILLED_DRIVERS, PATIENCE
from pauses import Pauses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

NOTHING: dict[str, list[int]] = {"keys": [], "buttons": []}
T = TypeVar("T")

MARK = "DESKHAND_TEST_MARK"
ROOT = Path(__file__).parents[2]
_XCLIENT = Path(__file__).with_name("xclient.py")
_ANSWER = 30.0 * PATIENCE


def need(program: str, package: str) -> str:
    """The path of a program that a test drives; tests never skip for a missing one."""
    path = shutil.which(program)
    if path is None:
        pytest.fail(f"{program} is not installed: apt-get install {package}")
    return path


def until(condition: Callable[[], T | None], limit: float, what: str) -> T:
    """Ask again and again until the answer is true; the test fails after `limit` seconds, or more of them: see `PATIENCE`."""
    limit *= PATIENCE
    pauses = Pauses()
    while not (value := condition()):
        if pauses.waited >= limit:
            pytest.fail(f"waited {limit:g} s for {what}")
        pauses.sleep()
    return value


# Gives the keyboard to the first window of an xterm, as a window manager would.
_FOCUS = """
import time
from Xlib import X, display
connection = display.Display()
found = []
while not found:
    time.sleep(0.005)
    found = [
        window for window in connection.screen().root.query_tree().children
        if window.get_attributes().map_state == X.IsViewable and "xterm" in (window.get_wm_class() or ())
    ]
found[0].set_input_focus(X.RevertToNone, X.CurrentTime)
connection.sync()
"""


def listen(desktop: deskhand.Desktop) -> None:
    """Start a small program in a corner that gets what is typed, and does nothing with it."""
    need("xterm", "xterm")
    desktop.start(["xterm", "-geometry", "10x2+0-0", "-e", "sleep", "6000"])
    if not desktop._core.backend.has_window_manager():
        subprocess.run([sys.executable, "-c", _FOCUS], env=x_environment(desktop), timeout=60 * PATIENCE, check=True)


@contextlib.contextmanager
def window_expected(desktop: deskhand.Desktop) -> Iterator[None]:
    """An error of who waits for a window in vain gets a note of what windows and processes there are instead."""
    try:
        yield
    except deskhand.LaunchFailed as error:
        environment = {**os.environ, "DISPLAY": str(desktop.display), "XAUTHORITY": str(desktop.xauthority)}
        tree = [need("xwininfo", "x11-utils"), "-root", "-tree"]
        error.add_note(subprocess.run(tree, env=environment, capture_output=True, text=True, check=False).stdout)
        mark = f"DISPLAY={desktop.display}\0".encode()
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (process / "environ").read_bytes() + b"\0":
                    told = [(process / name).read_text() for name in ("cmdline", "stat", "wchan", "syscall")]
                    opened = [os.readlink(file) for file in (process / "fd").iterdir()]  # noqa: PTH115 # of no path
                    error.add_note(f"{process.name}: {told} {opened}")
        raise


@contextlib.contextmanager
def crowded(count: int = 1100) -> Iterator[None]:
    """So many descriptors are open that what is opened next has a number above 1023, which `select` cannot have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + 1000
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.fail(f"this needs {wanted} open files, and the limit is {hard}: raise it (ulimit -Hn)")
    if soft != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    opened: list[int] = []
    try:
        opened += (os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC) for _ in range(count))
        assert max(opened) > 1023
        yield
    finally:
        for number in opened:
            os.close(number)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextlib.contextmanager
def within(limit: float, what: str, *, of: Sequence[int] = ()) -> Iterator[None]:
    """The block must not take longer than `limit` seconds of a machine at rest; see `faults.control`.

    For how long the processes `of` which it is wanted a processor and got none is not counted. The control process, which
    sleeps most of the time, gets one sooner than an X server that has been at work on thousands of keys.
    """
    with beside_control() as seen:
        kept, begun = _kept_waiting(of), time.monotonic()
        yield
        took = time.monotonic() - begun
        kept = max(0.0, _kept_waiting(of) - kept)
    hold(limit, took - kept, seen[0], f"{what} (without {kept:.2f} s of waiting for a processor)" if of else what)


def _kept_waiting(processes: Sequence[int]) -> float:
    """For how many seconds the threads of some processes have waited for a processor."""
    waited = 0
    for process in processes:
        for file in Path(f"/proc/{process}/task").glob("*/schedstat"):
            # A thread may have ended.
            with contextlib.suppress(OSError):
                waited += int(file.read_text().split()[1])
    return waited / 1e9


def hold(limit: float, took: float, slowness: Slowness, what: str) -> None:
    """Assert that something took no longer than `limit` seconds of a machine at rest."""
    assert took <= slowness.allowed(limit), (
        f"{what} took {took:.2f} s, more than {limit:g} s (meanwhile a process got {slowness.share:.0%} of a processor, "
        f"and was kept waiting for one for {slowness.latest:.2f} s at most)"
    )


@contextlib.contextmanager
def beside_control() -> Iterator[list[Slowness]]:
    """Looks at the machine during the block; the list has what was seen once the block has ended."""
    beside, seen = control(), list[Slowness]()
    since = beside.begin()
    try:
        yield seen
    finally:
        seen.append(beside.end(since))


def memory(what: str) -> int:
    """Bytes: `VmRSS` is what this process holds, `VmHWM` the most since the peak was forgotten."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(what))


class Bounds:
    """What an attack may cost: some time of this process, whatever else the machine does, and some memory."""

    def __init__(self, room: int, seconds: float = 1.0) -> None:
        self._room, self._limit = room, seconds * PATIENCE

    def __enter__(self) -> None:
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5")
        self._before, self._begun = memory("VmRSS"), time.process_time()

    def __exit__(self, kind: object, *_: object) -> None:
        seconds, held = time.process_time() - self._begun, memory("VmHWM") - self._before
        if kind is None:
            assert held <= self._room, f"{held >> 20} MiB"
            assert seconds <= self._limit, f"{seconds:.2f} s"


def marked(mark: str) -> dict[int, str]:
    """Every process, by pid, that was started with `DESKHAND_TEST_MARK` set to this; its name."""
    wanted = f"{MARK}={mark}".encode()
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found[int(entry.name)] = (entry / "comm").read_text().strip()
    return found


def pid_of(mark: str, name: str) -> int:
    """The process of that name among the marked ones."""
    return next(pid for pid, comm in marked(mark).items() if comm == name)


def guard_pid(mark: str) -> int:
    """The guard among the marked processes."""
    for pid in marked(mark):
        with contextlib.suppress(OSError):
            if b"guard.py" in Path(f"/proc/{pid}/cmdline").read_bytes():
                return pid
    pytest.fail("there is no guard process")


def server_pid(display: str) -> int:
    """The X server of a display on this machine, by its lock."""
    return int(Path(f"/tmp/.X{display.removeprefix(':')}-lock").read_text())


def display_files(display: str) -> list[Path]:
    """The lock and the socket of a display that are there."""
    number = display.removeprefix(":")
    paths = [Path(f"/tmp/.X{number}-lock"), Path(f"/tmp/.X11-unix/X{number}")]
    return [path for path in paths if path.exists()]


def x_environment(desktop: deskhand.Desktop) -> dict[str, str]:
    """What lets any X client join a desktop."""
    assert desktop.display is not None
    return {**os.environ, "DISPLAY": desktop.display, "XAUTHORITY": str(desktop.xauthority)}


class Lines:
    """A process that speaks in JSON lines."""

    def __init__(self, argv: list[str], environment: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            argv, env=dict(environment), stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
        )
        self._rest = b""

    def read(self, limit: float = _ANSWER) -> Any:
        """The next line; the test fails when the process ends or says nothing for so long."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + limit
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            data = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            if not data:
                pytest.fail(f"{self.process.args!r} said nothing more (status {self.process.poll()})")
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    def write(self, *message: object) -> None:
        """Send one line."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, *message: object) -> Any:
        """Send one line and read the answer."""
        self.write(*message)
        return self.read()

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal, and wait for the end."""
        self.process.send_signal(number)
        self.process.wait(_ANSWER)

    def close(self) -> None:
        """End it, whatever it does."""
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@contextlib.contextmanager
def xclient(desktop: deskhand.Desktop | Mapping[str, str]) -> Iterator[Lines]:
    """The independent X client of `xclient.py` on that desktop, or on the display of an environment."""
    environment = x_environment(desktop) if isinstance(desktop, deskhand.Desktop) else desktop
    client = Lines([sys.executable, str(_XCLIENT)], environment)
    try:
        assert client.read() == "ready"
        yield client
    finally:
        client.close()


DRIVER = """
import json, os, signal, sys, threading, time
import deskhand
from deskhand import *
def say(**what):
    print(json.dumps(what), flush=True)
def pressed(desktop):
    return desktop._core.backend.pressed()
def wait_forever():
    # A signal that comes just before a wait is heard after it.
    while not threading.Event().wait(0.5):
        pass
"""


@contextlib.contextmanager
def driver(code: str, environment: Mapping[str, str]) -> Iterator[Lines]:
    """A Python process that drives a desktop with `code` after `DRIVER`."""
    process = Lines([sys.executable, "-c", DRIVER + code], environment)
    try:
        yield process
    finally:
        if process.process.poll() is None:
            process.process.kill()
        process.close()


def killed_drivers(code: str, environment: Mapping[str, str], mark: str, limit: float) -> Iterator[None]:
    """Drivers that are killed at a random moment, one after the other; each with its guard is gone within `limit` seconds."""
    chance = random.Random(10)
    ours = set(marked(mark))
    for _ in range(KILLED_DRIVERS):
        with driver(code, environment) as process:
            process.read()
            # What it does takes longer, or never ends.
            with pytest.raises(subprocess.TimeoutExpired):
                process.process.wait(chance.uniform(0.0, 1.2))
            process.kill()
            until(lambda: set(marked(mark)) == ours, limit, f"the end of {marked(mark)}")
        yield


def pressed(desktop: deskhand.Desktop) -> tuple[list[int], list[int]]:
    """Keycodes and buttons that the server reports as pressed, asked through the driver's own connection."""
    backend = desktop._core.backend
    assert isinstance(backend, X11Backend)
    # A stop that came when its call was over is forgotten by the next call of the desktop, which this is not.
    backend.clear_interrupt()
    keys, buttons = backend.pressed()
    return keys, buttons


def in_namespace(setup: str, code: str, environment: dict[str, str]) -> dict[str, object]:
    """Run a driver where `setup` has changed the mounts, for it alone."""
    unshare = [need("unshare", "util-linux"), "--mount", *([] if os.getuid() == 0 else ["--user", "--map-root-user"])]
    script = f'{setup}\nexec {sys.executable} -c "$CODE"'
    done = subprocess.run(
        [*unshare, "sh", "-ec", script],
        env={**environment, "CODE": DRIVER + code},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


_STARVE = """
import os, random, signal, sys, time
pid, run, stop = int(sys.argv[1]), float(sys.argv[2]) / 1000, float(sys.argv[3]) / 1000
chance = random.Random(17)
print("starving", flush=True)
while os.getppid() == int(sys.argv[4]):
    os.kill(pid, signal.SIGCONT)
    time.sleep(run * chance.uniform(0.5, 1.5))
    os.kill(pid, signal.SIGSTOP)
    time.sleep(stop * chance.uniform(0.5, 1.5))
"""


@contextlib.contextmanager
def starved(pid: int, run: float, stop: float) -> Iterator[None]:
    """A process gets the processor for about `run` milliseconds, then not for about `stop`, again and again."""
    command = [sys.executable, "-c", _STARVE, *map(str, (pid, run, stop, os.getpid()))]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as starver:
        assert starver.stdout is not None
        starver.stdout.readline()
        try:
            yield
        finally:
            starver.kill()
            starver.wait()
            os.kill(pid, signal.SIGCONT)


def zombies() -> list[int]:
    """Children of this process that nobody has waited for."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
                if fields[0] == b"Z" and int(fields[1]) == os.getpid():
                    found.append(int(entry.name))
    return found
