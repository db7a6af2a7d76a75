"""Pools of containers: reset in each way, replaced when they hang, and nothing stays behind after many users."""

from __future__ import annotations

import contextlib
import gc
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import deskhand
from containers.helpers import containers
from deskhand import Closed, Move, Pool, PressKeys
from deskhand.launchers.docker.leftovers import LABEL_DIRECTORY, links_to
from faults.conftest import mark, runtime  # noqa: F401 # fixtures
from faults.helpers import marked, until, within, zombies
from faults.scale import CONTAINER_CYCLES, EVIDENCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from deskhand.launchers.docker.engine import Engine
    from deskhand.pool.status import ResetBy

SMALL = (320, 240)
REPLACED = 5.0


def _own() -> tuple[int, int]:
    # What an earlier test left to the garbage collector must not count the first time only.
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir())), len(list(Path("/proc/self/task").iterdir()))


@pytest.mark.parametrize("displays", [1, 2])
def test_a_session_leaves_nothing_to_the_next_user(image: str, displays: int) -> None:
    with Pool("docker", image=image, screen=SMALL, size=1, reset="session", displays=displays) as pool:
        with pool.acquire(timeout=60) as first:
            first.machine.run("touch ~/secret")
            first.clipboard.write("secret")
        with pool.acquire(timeout=60) as second:
            assert (second.name, second.display) == (first.name, first.display) or displays > 1
            assert second.clipboard.read() is None
            assert second.machine.run("ls ~").stdout == ""
            with pytest.raises(deskhand.BackendError, match="given back to its pool"):
                first.perform(Move((1, 1)))
        assert pool.status.failed == 0


@pytest.mark.parametrize(("reset", "displays"), [("fresh", 1), ("session", 1), ("session", 2)])
def test_what_was_given_back_does_nothing_more(image: str, tmp_path: Path, reset: ResetBy, displays: int) -> None:
    """From the first moment, while its container is ended or made as new: also in open shells, and what the engine would do."""
    options: dict[str, Any] = {"image": image, "screen": SMALL, "size": 1, "warm": 0}
    with Pool("docker", reset=reset, displays=displays, **options) as pool:
        with pool.acquire(timeout=60) as desktop:
            machine, shells = desktop.machine, [desktop.machine.open_shell(), desktop.host.open_shell()]
        calls: list[Callable[[], object]] = [
            *(partial(shell.run, "true") for shell in shells),
            lambda: machine.run("true"),
            machine.open_shell,
            lambda: desktop.start("xterm"),
            lambda: desktop.perform(Move((1, 1))),
            # Also when the container is gone.
            lambda: machine.write_file("/tmp/mine", "x"),
            lambda: machine.read_file("/etc/hostname"),
            lambda: machine.copy_in(__file__, "/tmp/mine"),
            lambda: machine.copy_out("/etc/hostname", tmp_path / "copied"),
        ]

        def refused() -> None:
            for call in calls:
                with pytest.raises(Closed, match=r"given back to its pool|this shell is closed"):
                    call()

        refused()
        with pool.acquire(timeout=60) as second:
            refused()
            assert second.machine.run("ls /tmp/mine").exit_code != 0
            assert second.windows.list() == []
    assert not (tmp_path / "copied").exists()


def test_a_function_resets(image: str) -> None:
    """What it leaves, the next user finds."""

    def reset(desktop: deskhand.Desktop) -> None:
        desktop.machine.run("rm ~/secret; touch ~/prepared")

    with Pool("docker", image=image, screen=SMALL, size=1, reset=reset) as pool:
        with pool.acquire(timeout=60) as first:
            first.machine.run("touch ~/secret")
        with pool.acquire(timeout=60) as second:
            assert second.name == first.name
            assert second.machine.run("ls ~").stdout == "prepared\n"


@pytest.mark.parametrize("displays", [1, 2] if EVIDENCE else [2])
def test_one_that_hangs_is_replaced(image: str, engine: Engine, displays: int) -> None:
    """An idle desktop whose X server is stopped: within 5 s there is another."""
    with Pool("docker", image=image, screen=SMALL, size=2, warm=1, displays=displays) as pool:
        with pool.acquire(timeout=60) as desktop:
            until(lambda: pool.status.ready == 1, 60, "a spare one")
            (spare,) = [found for found in pool._worker._desktops.values() if found is not desktop]
            assert spare.health().ok
            name, _, number = str(spare.name).partition(":")
            made = engine.api.exec_create(name, ["pkill", "-STOP", "-f", f"Xvfb :{number or 0} "])
            engine.api.exec_start(made["Id"])
            with within(REPLACED, "the replacement"):
                until(lambda: pool.status.lost == 1 and pool.status.ready == 1, 60, "another one")
            assert desktop.health().ok
        assert spare.name not in containers(engine)


@pytest.mark.soak
@pytest.mark.usefixtures("runtime")
@pytest.mark.parametrize(("reset", "displays"), [("fresh", 1), ("session", 1), ("fresh", 2)])
def test_many_users_leave_nothing(image: str, engine: Engine, mark: str, reset: Any, displays: int) -> None:  # noqa: F811
    """Acquired and given back again and again, some with exceptions, some dead: no container, process, file or thread stays."""
    directory = Path(os.environ["XDG_RUNTIME_DIR"]) / "deskhand"

    def cycle(pool: Pool, number: int) -> None:
        with pool.acquire(timeout=120) as desktop:
            desktop.clipboard.write("text")
            desktop.perform(PressKeys(["shift"]), settle=False)
            if number % 7 == 3:
                # The desktop ends with its X server, perhaps before it has told how the command ended.
                with contextlib.suppress(deskhand.DesktopLost):
                    display = desktop._core.inside.slot.number  # type: ignore[union-attr] # it is in a container
                    desktop.machine.run(f"pkill -KILL -f 'Xvfb :{display} '")
            if number % 5 == 2:
                raise KeyError(number)

    def run(cycles: int) -> None:
        options = {"image": image, "env": {"DESKHAND_TEST_MARK": mark}, "timeout": 120}
        with (
            Pool("docker", screen=SMALL, size=2, reset=reset, displays=displays, **options) as pool,
            ThreadPoolExecutor(2) as threads,
        ):
            outcomes = [threads.submit(cycle, pool, number) for number in range(cycles)]
            errors = [job.exception(600) for job in outcomes]
            assert [type(error) for error in errors] == [KeyError if n % 5 == 2 else type(None) for n in range(cycles)]

    run(1)
    # Of tests before this one.
    others = zombies()
    files, tasks = _own()
    run(CONTAINER_CYCLES)
    until(lambda: _own()[1] <= tasks, 5, f"the end of {threading.enumerate()}")
    assert _own()[0] == files
    assert marked(mark) == {}
    assert list(directory.glob("d-*")) == []
    assert set(zombies()) <= set(others)
    # Others work here too: what is ours names our directory.
    wanted = {"label": LABEL_DIRECTORY}
    found = [*engine.api.containers(all=True, filters=wanted), *engine.api.networks(filters=wanted)]
    assert [entry for entry in found if Path(entry["Labels"][LABEL_DIRECTORY]).is_relative_to(directory)] == []
    assert links_to(directory) == []
