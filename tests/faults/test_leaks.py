"""Nothing stays behind: of a desktop that was closed, and of one whose driver or guard was killed."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import deskhand
from deskhand import KeyPress
from deskhand.machine.guard import guard
from faults.helpers import display_files, driver, guard_pid, marked, need, pid_of, until, zombies
from faults.scale import LAUNCHES
from soak import soaked

if TYPE_CHECKING:
    from collections.abc import Callable

GONE = 5.0
_LAUNCH_AND_SAY = """
desktop = deskhand.launch(size=(640, 480), name="killed")
desktop.start("xterm")
desktop.start("mousepad")
desktop.perform(PressKeys(["shift"]), LeftMouseDown((20, 20)), settle=False)
say(display=desktop.display, pressed=pressed(desktop))
wait_forever()
"""

_PAUSE_AND_WAIT = """
import asyncio
from deskhand import watch
def pause_and_tell(desktop):
    desktop.control.pause("Ada")
    while not desktop.control.waiting:
        time.sleep(0.005)
    say(display=desktop.display)
def script():
    with deskhand.launch(size=(640, 480), name="paused") as desktop, watch.serve(desktop):
        desktop.start("xterm")
        desktop.perform(PressKeys(["shift"]), LeftMouseDown((20, 20)), settle=False)
        threading.Thread(target=pause_and_tell, args=(desktop,), daemon=True).start()
        while True:
            desktop.perform(Move((30, 30)), settle=False)
async def coroutine():
    async with AsyncDesktop(deskhand.launch(size=(640, 480), name="paused")) as desktop:
        await desktop.perform(PressKeys(["shift"]), LeftMouseDown((20, 20)), settle=False)
        threading.Thread(target=pause_and_tell, args=(desktop.desktop,), daemon=True).start()
        while True:
            await desktop.perform(Move((30, 30)), settle=False)
try:
    {run}
except KeyboardInterrupt:
    say(ended="KeyboardInterrupt")
    raise
"""


def _own() -> tuple[int, int]:
    return len(list(Path("/proc/self/fd").iterdir())), len(list(Path("/proc/self/task").iterdir()))


def _segments() -> dict[str, int]:
    """The System V segments of this machine, by id, and the process that made each."""
    lines = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    return {line.split()[1]: int(line.split()[4]) for line in lines}


def _shared_files() -> set[str]:
    """Those that no other living process has: of a browser or a database beside us, they come and go."""
    used = set()
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            with contextlib.suppress(OSError):
                used |= set(re.findall(r"/dev/shm/(\S+)", (process / "maps").read_text()))
    return {path.name for path in Path("/dev/shm").iterdir()} - used


@pytest.mark.parametrize("method", soaked(["shared-fd", "shared-id", "socket"], but=["shared-fd"]))
def test_closed_desktops_leave_nothing(runtime: Path, mark: str, method: str) -> None:
    """Many launches and closes: no process, socket, lock, shared memory, file, descriptor or thread stays behind."""

    def once() -> tuple[str, set[int]]:
        desktop = deskhand.launch(size=(320, 240), method=method, name="leak")
        pids = {os.getpid(), *marked(mark)}
        assert len(pids) >= 3
        desktop.perform(KeyPress(["a"]), settle=False)
        desktop.clipboard.write("text")
        assert desktop.clipboard.read() == "text"
        assert desktop.display is not None
        desktop.close()
        return desktop.display, pids

    once()
    # Objects that another test has left close their descriptors when they are collected.
    gc.collect()
    shared = _shared_files()
    # Of processes that had the same number earlier, say.
    segments = _segments()
    others = zombies()
    own = _own()
    for _ in range(max(1, LAUNCHES // 3)):
        display, pids = once()
        # What close() ended, it has waited for: nothing of this is polled.
        assert marked(mark) == {}
        assert display_files(display) == []
        assert list(runtime.glob("d-*")) == []
        assert list(runtime.glob("*.json")) == []
        assert not [key for key, maker in _segments().items() if key not in segments and maker in pids]
        assert set(zombies()) <= set(others)
        assert _own() == own, sorted(thread.name for thread in threading.enumerate())
    # Somebody else may have made one just now that he uses next, or have it removed next; what we left would stay.
    until(lambda: _shared_files() <= shared, GONE, "nothing more in /dev/shm")


def test_failed_launches_leave_nothing(runtime: Path, mark: str) -> None:
    """A launch whose window manager ends at once: LaunchFailed, and nothing stays behind."""
    own = None
    for _ in range(3):
        with pytest.raises(deskhand.LaunchFailed, match="window manager"):
            deskhand.launch(window_manager="false")
        assert marked(mark) == {}
        assert list(runtime.glob("d-*")) == []
        own = own or _own()
        assert _own() == own


def test_killed_driver(driver_environment: dict[str, str], runtime: Path, mark: str) -> None:
    """F28: SIGKILL of a driver with programs and keys held: its desktop is gone within 5 s, with all that belongs to it."""
    with driver(_LAUNCH_AND_SAY, driver_environment) as process:
        said = process.read()
        assert said["pressed"] == [[50], [1]]
        assert {"Xvfb", "xterm", "mousepad"} <= set(marked(mark).values())
        process.kill()
        until(lambda: not marked(mark), GONE, f"the end of {marked(mark)}")
    assert display_files(said["display"]) == []
    assert list(runtime.glob("d-*")) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_driver_ended_by_signal(
    driver_environment: dict[str, str], runtime: Path, mark: str, number: signal.Signals
) -> None:
    """F27: SIGTERM, Ctrl-C or a closed terminal end a driver within 5 s, with all that belongs to it."""
    with driver(_LAUNCH_AND_SAY, driver_environment) as process:
        said = process.read()
        process.kill(number)
        until(lambda: not marked(mark), GONE, f"the end of {marked(mark)}")
    assert display_files(said["display"]) == []
    assert list(runtime.glob("d-*")) == []


@pytest.mark.parametrize("run", ["script()", "asyncio.run(coroutine())"])
def test_ctrl_c_while_a_person_has_paused_it(
    driver_environment: dict[str, str], runtime: Path, mark: str, run: str
) -> None:
    """A call that waits for a person to resume is ended by Ctrl-C, and the driver with all that belongs to it."""
    with driver(_PAUSE_AND_WAIT.replace("{run}", run), driver_environment) as process:
        display = process.read()["display"]
        process.kill(signal.SIGINT)
        assert process.read() == {"ended": "KeyboardInterrupt"}
        until(lambda: not marked(mark), GONE, f"the end of {marked(mark)}")
        # So it ends a program that handles nothing.
        assert process.process.returncode == -signal.SIGINT
    assert display_files(display) == []
    assert list(runtime.glob("d-*")) == []


def test_stopped_programs_end_too(driver_environment: dict[str, str], mark: str) -> None:
    """A stopped program takes no SIGTERM; SIGKILL of the driver ends it all the same."""
    with driver(_LAUNCH_AND_SAY, driver_environment) as process:
        process.read()
        for name in ("mousepad", "xterm"):
            os.kill(pid_of(mark, name), signal.SIGSTOP)
        process.kill()
        until(lambda: not marked(mark), GONE, f"the end of {marked(mark)}")


def test_daemons_end_too(launch: Callable[..., deskhand.Desktop], mark: str) -> None:
    """F26: a program that forks away from its session, a thousand times, is ended and leaves no zombie."""
    desktop = launch(size=(320, 240), window_manager=None)
    code = "import os\nfor _ in range(1000):\n if os.fork() == 0:\n  os.setsid()\n  os._exit(0) if os.fork() else os._exit(0)"
    stay = "import os, time\nif os.fork() == 0:\n os.setsid()\n if os.fork() == 0:\n  time.sleep(1000)"
    guard = desktop._core.programs.own()
    for script in (code, stay):
        pid, _ = guard.spawn(["python3", "-c", script], env={**os.environ})
        until(lambda pid=pid: guard.exit_status(pid) is not None, 30, "the forks")  # type: ignore[misc]
    until(lambda: len(_children_of(guard_pid(mark))) <= 3, 5, "the guard to reap the orphans")
    desktop.close()
    assert marked(mark) == {}


def _children_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_killed_guard(launch: Callable[..., deskhand.Desktop], runtime: Path, mark: str) -> None:
    """SIGKILL of the guard: the kernel ends its children, the driver hears DesktopLost, close() removes the rest."""
    need("xterm", "xterm")
    desktop = launch(size=(640, 480))
    desktop.start("xterm")
    assert desktop.display is not None
    os.kill(guard_pid(mark), signal.SIGKILL)
    until(lambda: not marked(mark), GONE, f"the end of {marked(mark)}")
    with pytest.raises(deskhand.DesktopLost) as caught:
        desktop.screenshot()
    assert caught.value.cause == "guard"
    with pytest.raises(deskhand.DesktopLost):
        desktop.start("xterm")
    desktop.close()
    assert display_files(desktop.display) == []
    assert list(runtime.glob("d-*")) == []


# A guard that is killed after it has forked a program and before that program is tied to it.
_KILLED_BETWEEN = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from guard import guard, starting
class Between:
    def prctl(self, option, value):
        if option == starting.PR_SET_PDEATHSIG:
            parent = os.getppid()
            os.kill(parent, signal.SIGKILL)
            while os.getppid() == parent:
                pass
        return real.prctl(option, value)
real, starting.libc = starting.libc, Between()
guard.Guard().run()
"""


def test_a_guard_that_is_killed_while_it_starts_a_program(tmp_path: Path, mark: str) -> None:
    """The kernel knows nothing yet of what the two have to do with each other."""
    command = [sys.executable, "-c", _KILLED_BETWEEN, str(Path(guard.__file__).parents[1])]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        spawn = {
            "op": "spawn",
            "id": 1,
            "argv": ["sleep", "1000"],
            "env": dict(os.environ),
            "log": str(tmp_path / "log"),
        }
        process.stdin.write(json.dumps(spawn).encode() + b"\n")
        process.stdin.flush()
        assert process.wait(30) == -signal.SIGKILL
    until(lambda: not marked(mark), GONE, f"the end of {marked(mark)}")


def test_terminated_guard(launch: Callable[..., deskhand.Desktop], runtime: Path, mark: str) -> None:
    """SIGTERM of the guard: it ends the desktop in order."""
    desktop = launch(size=(640, 480))
    desktop.start("xterm")
    assert desktop.display is not None
    os.kill(guard_pid(mark), signal.SIGTERM)
    until(lambda: not set(marked(mark).values()) - {"python"}, GONE, "the end of the desktop")
    until(lambda: not list(runtime.glob("d-*")), GONE, "the end of its directory")
    assert display_files(desktop.display) == []
    with pytest.raises(deskhand.DesktopLost):
        desktop.screenshot()
    desktop.close()


def test_killed_driver_and_guard(driver_environment: dict[str, str], runtime: Path, mark: str) -> None:
    """Both killed at once: the kernel ends the display, and the next launch removes the directory."""
    with driver(_LAUNCH_AND_SAY, driver_environment) as process:
        said = process.read()
        os.kill(guard_pid(mark), signal.SIGKILL)
        process.kill()
        until(lambda: not marked(mark), GONE, f"the end of {marked(mark)}")
    assert display_files(said["display"]) == []
    assert len(list(runtime.glob("d-*"))) == 1
    with deskhand.launch(size=(320, 240), window_manager=None):
        assert len(list(runtime.glob("d-*"))) == 1
    assert list(runtime.glob("d-*")) == []
