"""Every public call on a desktop that has just died, was closed or given back: one error, in time; close() leaves nothing."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import deskhand
from conformance.servers import serving
from deskhand import Desktop, Pool, PressKeys, ReleaseKeys
from deskhand.desktop.access import pass_on
from deskhand.machine.processes import Guard
from faults.gone import ANSWERS, ANSWERS_LOST, cut, examine
from faults.helpers import display_files, guard_pid, listen, marked, server_pid, until
from faults.surface import Arguments

if TYPE_CHECKING:
    from collections.abc import Callable


def shared_memory() -> int:
    """Segments that this process has made."""
    lines = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    return sum(int(line.split()[4]) == os.getpid() for line in lines)


def kill(victim: int, server: int) -> None:
    """Kill a process, and wait until the server has ended, by that or because of it."""
    os.kill(victim, signal.SIGKILL)

    def has_ended() -> bool:
        try:
            return b") Z " in Path(f"/proc/{server}/stat").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            return True

    until(has_ended, 5, "the end of the X server")


ENDS: dict[str, Callable[[Desktop, str], object]] = {
    "its server is killed": lambda desktop, _: kill(*[server_pid(str(desktop.display))] * 2),
    "its guard is killed": lambda desktop, mark: kill(guard_pid(mark), server_pid(str(desktop.display))),
    "its connection breaks": lambda desktop, _: cut(desktop),
}


@pytest.mark.parametrize("end", ENDS)
def test_one_that_is_lost(launch: Callable[..., Desktop], mark: str, runtime: Path, end: str) -> None:
    desktop = launch(size=(320, 240))
    listen(desktop)
    arguments = Arguments(desktop, desktop.windows.list()[0])
    ENDS[end](desktop, mark)
    assert not (wrong := examine(desktop, arguments, ANSWERS_LOST)), "\n".join(wrong)
    assert display_files(str(desktop.display)) == []
    until(lambda: marked(mark) == {}, 5, "the end of its processes")
    assert shared_memory() == 0
    assert [path.name for path in runtime.iterdir() if path.name.startswith("d-")] == []


CLOSES: dict[str, Callable[[Desktop], Desktop | None]] = {
    "it is closed": lambda desktop: desktop.close(),
    "it is handed over": pass_on,
    "it is made as new": lambda desktop: desktop.reset(),
}


@pytest.mark.parametrize("end", CLOSES)
def test_one_that_is_closed(launch: Callable[..., Desktop], mark: str, end: str) -> None:
    desktop = launch(size=(320, 240), window_manager=None)
    arguments = Arguments(desktop)
    successor = CLOSES[end](desktop)
    assert not (wrong := examine(desktop, arguments, ANSWERS)), "\n".join(wrong)
    if successor is not None:
        assert successor.perform().size == (320, 240)
        successor.close()
    until(lambda: marked(mark) == {}, 5, "the end of its processes")


def test_one_that_was_given_back(mark: str) -> None:
    with Pool(size=1, screen=(320, 240), window_manager=None, reset="session") as pool:
        with pool.acquire() as desktop:
            arguments = Arguments(desktop)
        assert not (wrong := examine(desktop, arguments, ANSWERS)), "\n".join(wrong)
        with pool.acquire() as other:
            other.perform()
    until(lambda: marked(mark) == {}, 5, "the end of its processes")


@pytest.mark.parametrize("end", ["its server is killed", "it is closed"])
def test_one_over_vnc(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deskhand.backends.vnc.backend._RECONNECT_LIMIT", 1.0)
    with serving("xvnc") as place:
        desktop = place.connect()
        arguments = Arguments(desktop)
        if end == "it is closed":
            desktop.close()
        else:
            place.processes[0].kill()
            place.processes[0].wait()
        assert not (wrong := examine(desktop, arguments, ANSWERS if desktop.closed else ANSWERS_LOST, limit=2.0)), (
            "\n".join(wrong)
        )


def test_a_guard_that_dies_on_somebody_elses_desktop(runtime: Path) -> None:
    """What it had started is gone; the desktop is not, and gets another one."""
    del runtime
    with serving("xvnc") as place:
        assert place.environment is not None
        cookie = place.environment.get("XAUTHORITY")
        with deskhand.connect(f"x11:{place.environment['DISPLAY']}", xauthority=cookie) as desktop:
            for _ in range(2):
                desktop.start("xterm")
                desktop.perform(PressKeys(["shift"]), ReleaseKeys(["shift"]))
                guard = desktop._core.programs.current
                assert isinstance(guard, Guard)
                os.kill(guard.pid, signal.SIGKILL)
                until(lambda guard=guard: guard.gone and not desktop.windows.list(), 5, "the end of what it started")  # type: ignore[misc]
