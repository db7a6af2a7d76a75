"""A process that was forked from a driver: it cannot use the driver's desktops, it harms none, and it can have its own."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

import deskhand
from conformance.servers import serving
from deskhand import KeyPress, Type
from deskhand.desktop.access import pass_on
from faults.helpers import driver, guard_pid, marked, until
from faults.scale import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

# From 3.12 on Python warns of what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")


def in_child(work: Callable[[], object], limit: float = 30) -> str:
    """What `work` returns, or the error that it raises, in a process that is forked from here."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = str(work())
        except BaseException as error:  # noqa: BLE001 # it is what is looked at
            said = f"{type(error).__name__}: {error}"
        os.write(writing, said.encode())
        # As `multiprocessing` ends its processes: nothing of the parent's is finished here.
        os._exit(0)
    os.close(writing)
    os.set_blocking(reading, False)
    try:
        until(lambda: os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT), limit, "the forked process")
        return os.read(reading, 1 << 16).decode()
    finally:
        os.close(reading)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def drive() -> str:
    """Launch a desktop, type into a terminal, look at it and end it."""
    with deskhand.launch(size=(480, 320)) as desktop:
        desktop.start("xterm")
        seen = desktop.perform(Type("echo own"))
        assert seen.png.startswith(b"\x89PNG")
        desktop.clipboard.write("own")
        # Beside others the terminal may be late: then the observation says so.
        return f"{seen.changed or not seen.settled or seen!r} {desktop.clipboard.read()}"


def test_a_child_launches_its_own(mark: str, desktop: deskhand.Desktop) -> None:
    """While the parent has one, after it has closed one, and in a child's child."""
    assert desktop.screenshot().png
    before = marked(mark)
    assert in_child(drive) == "True own"
    assert in_child(lambda: in_child(drive)) == "True own"
    assert marked(mark) == before
    assert desktop.screenshot().png
    desktop.close()
    assert in_child(drive) == "True own"
    assert marked(mark) == {}


@pytest.fixture(params=["x11", "xvnc"])
def any_desktop(request: pytest.FixtureRequest) -> Iterator[deskhand.Desktop]:
    """One over X11, and one over VNC."""
    with serving(request.param) as place, place.connect() as desktop:
        yield desktop


def test_what_a_child_inherits_is_refused(any_desktop: deskhand.Desktop) -> None:
    """Everything says so, closing is silent, and the parent goes on with all that it has."""
    desktop = any_desktop
    desktop.perform(KeyPress(["x"]))
    desktop.clipboard.write("before")

    def leave() -> None:
        with desktop:
            pass

    uses: dict[str, Callable[[], object]] = {
        "screenshot": desktop.screenshot,
        "perform": lambda: desktop.perform(Type("x")),
        "size": lambda: desktop.size,
        "clipboard": desktop.clipboard.read,
        "pressed": lambda: desktop.pressed,
        "health": desktop.health,
        "status": lambda: desktop.status,
        "pointer": lambda: desktop.pointer,
        "monitors": desktop.monitors,
        "interrupt": desktop.interrupt,
        "stop": desktop.stop,
        "pass_on": lambda: pass_on(desktop),
        "reset": desktop.reset,
        "start": lambda: desktop.start("xterm"),
        "open_shell": desktop.host.open_shell,
        "hand_over": lambda: desktop.hand_over("help"),
        "control.take": lambda: desktop.control.take("Ada"),
        "control.release": desktop.control.release,
        "control.pause": lambda: desktop.control.pause("Ada"),
        "control.step": desktop.control.step,
        "control.holder": lambda: desktop.control.holder,
    }
    said = {name: in_child(use) for name, use in uses.items()}
    refused = f"BackendError: this desktop belongs to process {os.getpid()}, from which this one was forked"
    assert {name: text for name, text in said.items() if not text.startswith(refused)} == {}
    assert in_child(desktop.close) == "None"
    assert in_child(leave) == "None"
    assert "of another process" in in_child(lambda: repr(desktop))
    with desktop.control.take("Ada") as hold:
        assert in_child(hold.release) == "None"
        assert in_child(hold.desktop.screenshot).startswith(refused)
        assert hold.active
        desktop.control.pause("Ada")
        assert in_child(desktop.screenshot).startswith(refused)
        desktop.control.resume()
    assert desktop.perform(KeyPress(["y"])).png
    assert desktop.clipboard.read() == "before"


def test_shells_and_pools_too(mark: str, desktop: deskhand.Desktop) -> None:
    with desktop.host.open_shell() as shell, deskhand.Pool(size=1, warm=1) as pool:
        shell.run("greeting=hello")
        with pool.acquire() as pooled:
            assert in_child(lambda: shell.run("true")).startswith("BackendError: this shell belongs to")
            assert in_child(lambda: pool.acquire().__enter__()).startswith("BackendError: this pool belongs to")
            assert in_child(shell.close) == "None"
            assert in_child(pool.close) == "None"
            assert pooled.screenshot().png
        assert shell.run("echo $greeting").stdout == "hello\n"
    desktop.close()
    assert marked(mark) == {}


def test_coroutines_too(mark: str) -> None:
    async def parent() -> None:
        async with deskhand.AsyncDesktop(deskhand.launch(size=(320, 240))) as desktop:
            await desktop.screenshot()
            said = await asyncio.to_thread(in_child, lambda: asyncio.run(desktop.screenshot()))
            assert said.startswith("BackendError: this desktop belongs to")
            assert (await desktop.screenshot()).png

    asyncio.run(parent())
    assert marked(mark) == {}


def test_a_fork_while_other_threads_are_in_calls(desktop: deskhand.Desktop) -> None:
    """The locks that they hold at that moment are nobody's in the child."""
    with ThreadsInCalls(desktop):
        for _ in range(20):
            assert in_child(desktop.screenshot).startswith("BackendError: this desktop belongs to")
            assert in_child(desktop.close) == "None"
    assert in_child(drive) == "True own"


class ThreadsInCalls:
    """Two threads that look at a desktop all the time."""

    def __init__(self, desktop: deskhand.Desktop) -> None:
        self._over = False
        self._threads = [threading.Thread(target=self._look, args=(desktop,)) for _ in range(2)]

    def _look(self, desktop: deskhand.Desktop) -> None:
        number = 0
        while not self._over:
            number += 1
            desktop.perform(KeyPress(["x"]), settle=False)
            assert desktop.screenshot(size=(300 + number % 7, 200)).png

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_: object) -> None:
        self._over = True
        for thread in self._threads:
            thread.join()


def test_multiprocessing(mark: str, desktop: deskhand.Desktop) -> None:
    """A process, a pool of them, and an executor, by fork."""
    context = multiprocessing.get_context("fork")
    assert desktop.screenshot().png
    with context.Pool(2) as processes:
        assert processes.map(_drive_one, range(4)) == ["True own"] * 4
    with ProcessPoolExecutor(2, mp_context=context) as executor:
        assert list(executor.map(_drive_one, range(4))) == ["True own"] * 4
    process = context.Process(target=drive)
    process.start()
    process.join(60 * PATIENCE)
    assert process.exitcode == 0
    assert desktop.screenshot().png
    desktop.close()
    assert marked(mark) == {}


def _drive_one(_: int) -> str:
    return drive()


_FORKS_AND_IS_KILLED = """
desktop = deskhand.launch(size=(320, 240))
desktop.clipboard.write("x")
child = os.fork()
if child == 0:
    wait_forever()
print(child, flush=True)
wait_forever()
"""


def test_a_killed_driver_leaves_nothing_though_its_child_lives(mark: str, driver_environment: dict[str, str]) -> None:
    """The child has neither the pipe of its guard nor its connections."""
    with driver(_FORKS_AND_IS_KILLED, driver_environment) as parent:
        child = int(parent.read())
        guard = guard_pid(mark)
        parent.kill()
        until(lambda: guard not in marked(mark), 10, "the guard's end")
        assert list(marked(mark)) == [child]
        os.kill(child, signal.SIGKILL)
    until(lambda: marked(mark) == {}, 10, "the child's end")


_APPLICATION = """
import deskhand
from deskhand import Type

shared = deskhand.launch(size=(320, 240))
shared.screenshot().png

def application(environ, start_response):
    try:
        shared.screenshot()
        said = "shared"
    except deskhand.BackendError:
        with deskhand.launch(size=(320, 240)) as desktop:
            desktop.start("xterm")
            said = f"own {desktop.perform(Type('x')).changed}"
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [said.encode()]
"""


@contextmanager
def _gunicorn(folder: Path) -> Iterator[str]:
    """A server whose workers are forked after it has loaded the application."""
    (folder / "site_of_test.py").write_text(_APPLICATION)
    socket = folder / "socket"
    argv = [sys.executable, "-m", "gunicorn", "--preload", "--workers", "2", "--timeout", "600"]
    argv += ["--chdir", str(folder), "--bind", f"unix:{socket}", "site_of_test:application"]
    with subprocess.Popen(argv) as server:
        try:
            until(socket.exists, 60, "gunicorn's socket")
            yield str(socket)
        finally:
            server.terminate()


def test_a_pre_forking_server(mark: str, short: Path) -> None:
    """Gunicorn loads the application, with a desktop, before it forks its workers."""
    with _gunicorn(short) as socket:
        ask = ["curl", "--silent", "--fail", "--unix-socket", socket, "http://localhost/"]
        for _ in range(4):
            assert subprocess.run(ask, capture_output=True, text=True, check=True).stdout == "own True"
    until(lambda: marked(mark) == {}, 10, "the end of everything")
