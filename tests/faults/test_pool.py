"""Pools of real desktops: nobody sees another's, those that die are replaced, and nothing stays behind."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import deskhand
from deskhand import AsyncPool, BackendError, LeftClick, Move, Pool, PressKeys, Type
from faults.helpers import (
    NOTHING,
    display_files,
    driver,
    marked,
    server_pid,
    until,
    within,
    x_environment,
    xclient,
    zombies,
)
from faults.scale import POOL_CYCLES, THREADS

if TYPE_CHECKING:
    from collections.abc import Callable

    from deskhand.pool.status import ResetBy

REPLACED = 5.0
SMALL = (320, 240)


def _kill(desktop: deskhand.Desktop) -> None:
    assert desktop.display is not None
    os.kill(server_pid(desktop.display), signal.SIGKILL)


def _colour(desktop: deskhand.Desktop) -> int:
    red, green, blue = (int(value) for value in desktop.perform(Move((5, 5)), settle=False).array()[-1, -1][:3])
    return red << 16 | green << 8 | blue


def _paint(desktop: deskhand.Desktop, colour: int) -> None:
    subprocess.run(["xsetroot", "-solid", f"#{colour:06x}"], env=x_environment(desktop), check=True)


@pytest.mark.parametrize("reset", ["fresh", "session"])
def test_no_frame_is_mixed_up(runtime: Path, mark: str, reset: str) -> None:
    """Eight threads, each paints its desktop in a colour of its own, again and again: what it sees is that colour."""
    del runtime
    together = threading.Barrier(THREADS)

    def use(number: int) -> list[tuple[int, int]]:
        chance = random.Random(number)
        wrong = []
        for _ in range(2):
            with pool.acquire(timeout=60) as desktop:
                together.wait(60)
                assert desktop.clipboard.read() is None
                desktop.clipboard.write(f"text {number}")
                for _ in range(5):
                    colour = chance.randrange(1 << 24)
                    _paint(desktop, colour)
                    if (seen := _colour(desktop)) != colour:
                        wrong.append((colour, seen))
                assert desktop.clipboard.read() == f"text {number}"
        return wrong

    with Pool(screen=SMALL, size=THREADS, warm=0, reset=reset) as pool, ThreadPoolExecutor(THREADS) as threads:
        assert [wrong for found in threads.map(use, range(THREADS)) for wrong in found] == []
        assert pool.status.failed == 0
        assert pool.status.lost == 0
    assert marked(mark) == {}


def test_a_server_killed_while_idle(runtime: Path, mark: str) -> None:
    """F1: the X server of a spare desktop is killed: within 5 s there is another, and nobody has noticed."""
    del runtime
    with Pool(screen=SMALL, size=2, warm=1) as pool:
        until(lambda: pool.status.ready == 1, 60, "a spare desktop")
        first = next(pid for pid, name in marked(mark).items() if name == "Xvfb")
        os.kill(first, signal.SIGKILL)
        with within(REPLACED, "the replacement"):
            until(lambda: pool.status.lost == 1 and pool.status.ready == 1, 30, "another one")
        assert first not in marked(mark)
    assert marked(mark) == {}


@pytest.mark.parametrize("reset", ["fresh", "session"])
def test_a_server_killed_while_used(runtime: Path, mark: str, reset: str) -> None:
    """F1: the X server of a desktop in use is killed: its user hears `DesktopLost`; 5 s after that there is another."""
    del runtime
    with Pool(screen=SMALL, size=1, warm=1, reset=reset) as pool:
        with pool.acquire(timeout=60) as desktop:
            _kill(desktop)
            with pytest.raises(deskhand.DesktopLost):
                desktop.perform(Type("x"))
        with within(REPLACED, "the replacement"), pool.acquire(timeout=60) as another:
            # The number of its display is free again, and may be the same.
            assert another._core is not desktop._core
            another.perform(Move((1, 1)))
    for each in (desktop, another):
        assert each.display is not None
        assert display_files(each.display) == []
    assert marked(mark) == {}


@pytest.mark.parametrize("reset", ["fresh", "session"])
def test_what_was_given_back_does_nothing_more(mark: str, reset: ResetBy) -> None:
    """From the first moment, while it is made ready, and when the next user has it."""
    with deskhand.Pool(size=1, warm=0, reset=reset, env={"TEST_MARK": mark}) as pool:
        with pool.acquire() as desktop:
            shell = desktop.host.open_shell()
        calls: list[Callable[[], object]] = [
            lambda: desktop.perform(LeftClick((5, 5))),
            desktop.screenshot,
            desktop.windows.list,
            lambda: desktop.start("xterm"),
            lambda: desktop.host.run("true"),
            lambda: desktop.windows.activate(1),
            lambda: desktop.resize((640, 480)),
        ]
        for call in calls:
            with pytest.raises(BackendError, match="given back to its pool"):
                call()
        with pytest.raises(BackendError, match=r"given back to its pool|this shell is closed"):
            shell.run("true")
        with pool.acquire() as second:
            assert second.windows.list() == []
            for call in calls:
                with pytest.raises(BackendError, match=r"given back to its pool|closed"):
                    call()


def test_a_session_leaves_nothing_to_the_next_user(runtime: Path, mark: str) -> None:
    """The same display, and nothing of the user before: no window, process, file, clipboard, pressed key."""
    del runtime
    with Pool(screen=SMALL, size=1, reset="session") as pool:
        with pool.acquire(timeout=60) as first:
            first.start("xterm")
            home = Path(first._core.environment["HOME"])
            assert home != Path.home()
            (home / "secret").touch()
            first.clipboard.write("secret")
            first.perform(PressKeys(["shift"]), settle=False)
            programs = {pid for pid, name in marked(mark).items() if name in {"xterm", "openbox", "dbus-daemon"}}
        with pool.acquire(timeout=60) as second:
            assert second.display == first.display
            assert second.windows.list() == []
            assert second.clipboard.read() is None
            assert Path(second._core.environment["HOME"]) == home
            assert not (home / "secret").exists()
            assert not programs & set(marked(mark))
            with xclient(second) as witness:
                assert witness.ask("pressed") == NOTHING
            with pytest.raises(deskhand.BackendError, match="given back to its pool"):
                first.perform(Type("x"))
    assert marked(mark) == {}
    assert not home.exists()


_HOLD = """
pool = deskhand.Pool(size=3, warm=1, screen=(320, 240), window_manager=None, reset="session")
with pool.acquire(timeout=60) as one, pool.acquire(timeout=60) as two:
    one.perform(PressKeys(["shift"]), settle=False)
    while pool.status.ready < 1:
        time.sleep(0.01)
    say(displays=[one.display, two.display])
    wait_forever()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_driver_that_is_ended(
    driver_environment: dict[str, str], runtime: Path, mark: str, number: signal.Signals
) -> None:
    """F28: whatever ends the driver, all desktops of its pool are gone within 5 s."""
    with driver(_HOLD, driver_environment) as process:
        said = process.read(60)
        assert list(marked(mark).values()).count("Xvfb") == 3
        process.kill(number)
        until(lambda: not marked(mark), 5, f"the end of {marked(mark)}")
    assert all(display_files(display) == [] for display in said["displays"])
    assert list(runtime.glob("d-*")) == []


_REAPED = """
import subprocess
made = []
def launch(label, **options):
    made.append(label)
    # Something that does not end with its driver, as a container would not.
    subprocess.Popen(["sleep", "1000"], start_new_session=True, env={**os.environ, "LABEL": label})
    return deskhand.launch(**options)
reap = "import os, pathlib; pathlib.Path(os.environ['REAPED']).write_text(os.environ['DESKHAND_POOL'])"
pool = deskhand.Pool(launch, size=1, reaper=[sys.executable, "-c", reap], screen=(320, 240), window_manager=None)
with pool.acquire(timeout=60):
    say(label=pool.label, made=made)
    if os.environ["END"] == "close":
        pool.close()
        say(closed=True)
    wait_forever()
"""


@pytest.mark.parametrize("end", ["kill", "close"])
def test_a_reaper(driver_environment: dict[str, str], mark: str, tmp_path: Path, end: str) -> None:
    """What does not end by itself: the pool's reaper is run, with its label, when the driver was killed, and only then."""
    reaped = tmp_path / "reaped"
    environment = {**driver_environment, "REAPED": str(reaped), "END": end}
    with driver("import sys\n" + _REAPED, environment) as process:
        said = process.read(60)
        assert said["made"] == [said["label"]]
        if end == "close":
            assert process.read(60) == {"closed": True}
        process.kill()
        until(lambda: set(marked(mark).values()) == {"sleep"}, 10, "the end of the desktop")
        for pid in marked(mark):
            os.kill(pid, signal.SIGKILL)
    assert (reaped.read_text() if reaped.exists() else None) == (said["label"] if end == "kill" else None)


def _own() -> tuple[int, int]:
    return len(list(Path("/proc/self/fd").iterdir())), len(list(Path("/proc/self/task").iterdir()))


@pytest.mark.parametrize("reset", ["fresh", "session"])
def test_many_users_leave_nothing(runtime: Path, mark: str, reset: str) -> None:
    """Acquired and given back again and again, some users with exceptions: no process, file, descriptor or thread stays."""

    def cycle(pool: Pool, number: int) -> None:
        with pool.acquire(timeout=60) as desktop:
            desktop.clipboard.write("text")
            desktop.perform(PressKeys(["shift"]), settle=False)
            if number % 7 == 3:
                _kill(desktop)
            if number % 5 == 2:
                raise KeyError(number)

    def run(cycles: int) -> None:
        with Pool(screen=SMALL, size=2, reset=reset) as pool, ThreadPoolExecutor(2) as threads:
            outcomes = [threads.submit(cycle, pool, number) for number in range(cycles)]
            errors = [job.exception(120) for job in outcomes]
            assert [type(error) for error in errors] == [KeyError if n % 5 == 2 else type(None) for n in range(cycles)]
            assert len(list(runtime.glob("d-*"))) <= 2

    run(1)
    # Of tests before this one.
    others = zombies()
    files, tasks = _own()
    run(POOL_CYCLES // 2)
    assert marked(mark) == {}
    assert list(runtime.glob("d-*")) == []
    assert set(zombies()) <= set(others)
    # Joined, a thread is still the kernel's for a moment, also those of the first run.
    until(lambda: _own()[1] <= tasks, 5, f"the end of {threading.enumerate()}")
    assert _own()[0] == files


def test_coroutines(runtime: Path, mark: str) -> None:
    """Eight tasks on three desktops, half of them cancelled: the rest is done, and nothing stays behind."""
    del runtime

    async def use(pool: AsyncPool, number: int) -> int:
        async with pool.acquire(timeout=60) as desktop:
            await desktop.perform(Move((number, number)), settle=False)
            return (await desktop.pointer()).x

    async def main() -> list[int | BaseException]:
        async with AsyncPool(screen=SMALL, size=3, reset="session") as pool:
            tasks = [asyncio.create_task(use(pool, number)) for number in range(8)]
            await asyncio.to_thread(until, lambda: pool.status.used, 60, "the first of them")
            for task in tasks[1::2]:
                task.cancel()
            return await asyncio.gather(*tasks, return_exceptions=True)

    results = asyncio.run(main())
    assert results[::2] == [0, 2, 4, 6]
    assert all(isinstance(result, asyncio.CancelledError) for result in results[3::2])
    assert marked(mark) == {}
