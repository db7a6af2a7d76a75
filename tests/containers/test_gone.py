"""A container that dies while its desktop is used: whoever calls is told of that, `close()` never raises, nothing is left."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from containers.helpers import left
from deskhand import DesktopLost, ShellError
from deskhand.launchers.docker.container_life import DEATH_LIMIT, ContainerLife
from deskhand.launchers.docker.exec import Exec
from faults.gone import ANSWERS, ANSWERS_LOST, cut, examine
from faults.helpers import until, within
from faults.surface import Arguments
from soak import soaked

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from deskhand import Desktop
    from deskhand.launchers.docker.engine import Engine

# The engine is asked what became of it.
LIMIT = 3.0


def _runs(engine: Engine, name: str) -> bool:
    return any(name in entry["Names"][0] for entry in engine.api.containers())


def _kill(engine: Engine, name: str) -> None:
    engine.api.kill(name)


def _remove(engine: Engine, name: str) -> None:
    engine.api.remove_container(name, force=True)


def _kill_server(engine: Engine, name: str) -> None:
    made = engine.api.exec_create(name, ["pkill", "-KILL", "^X"])
    engine.api.exec_start(made["Id"], detach=True)


ENDS: dict[str, tuple[Callable[[Engine, str], None], str]] = {
    "killed": (_kill, "container"),
    "removed": (_remove, "container"),
    "without its server": (_kill_server, "x_server"),
}


@pytest.mark.parametrize("end", ENDS)
def test_whoever_calls_meanwhile_is_told(
    contained: Callable[..., Desktop], engine: Engine, runtime: Path, end: str
) -> None:
    desktop = contained()
    shell = desktop.machine.open_shell()
    kill, cause = ENDS[end]
    work: dict[str, Callable[[], object]] = {
        "a command": lambda: desktop.machine.run("sleep 100", timeout=60),
        "a session's command": lambda: shell.run("sleep 100"),
        "a program that shows no window": lambda: desktop.start(["sleep", "100"]),
        "a device that says nothing": lambda: desktop.machine.read_file("/dev/ptmx"),
    }
    with ThreadPoolExecutor(len(work)) as pool:
        futures = {name: pool.submit(call) for name, call in work.items()}
        until(lambda: all(future.running() for future in futures.values()), 10, "all to begin")
        with pytest.raises(TimeoutError):
            futures["a command"].result(0.5)
        with within(2 * LIMIT, "telling all of them"):
            kill(engine, str(desktop.name))
            errors = {name: future.exception(60) for name, future in futures.items()}
    told = {name: (type(error).__name__, getattr(error, "cause", error)) for name, error in errors.items()}
    assert told == dict.fromkeys(work, ("DesktopLost", cause))
    with within(2 * LIMIT, "closing"):
        shell.close()
        desktop.close()
    assert left(engine, runtime) == []


# The container lives on, and so does what is not asked of the X server.
ANSWERS_INSIDE = ANSWERS_LOST | {
    f"machine.{name}": "it is asked of the container"
    for name in ("copy_in", "copy_out", "logs", "open_shell", "read_file", "run", "usage", "view_file", "write_file")
}


@pytest.mark.soak
def test_a_connection_that_breaks(contained: Callable[..., Desktop], engine: Engine, runtime: Path) -> None:
    desktop = contained()
    desktop.start("xterm")
    arguments = Arguments(desktop, desktop.windows.list()[0])
    cut(desktop)
    wrong = examine(desktop, arguments, ANSWERS_INSIDE, limit=LIMIT)
    assert not wrong, "\n".join(wrong)
    assert left(engine, runtime) == []


def test_an_engine_that_learns_late_of_the_end(
    contained: Callable[..., Desktop], engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy one says for seconds that the container runs, while all that was in it has ended."""
    desktop, told, known = contained(), [], ContainerLife.state

    def state(container: ContainerLife) -> tuple[bool, int, bool]:
        found = known(container)
        told.extend([] if found[0] else [time.monotonic()])
        return (True, 0, False) if told and time.monotonic() - told[0] < 3 * DEATH_LIMIT else found

    monkeypatch.setattr(ContainerLife, "state", state)
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(desktop.machine.read_file, "/dev/ptmx")
        until(future.running, 10, "it to begin")
        with pytest.raises(TimeoutError):
            future.result(0.5)
        _kill(engine, str(desktop.name))
        with pytest.raises(DesktopLost, match="it was killed"):
            future.result(60)


def test_a_command_that_could_not_start_any_more(
    contained: Callable[..., Desktop], engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    desktop, known = contained(), Exec.await_exit
    with pytest.raises(ShellError, match="OCI runtime exec failed"):
        desktop._core.inside.run(["/no/such/program"], take=print)  # type: ignore[union-attr] # it is in a container

    def await_exit(command: Exec, timeout: float) -> int:
        known(command, timeout)
        _kill(engine, str(desktop.name))
        return 126

    monkeypatch.setattr(Exec, "await_exit", await_exit)
    with pytest.raises(DesktopLost, match="it was killed"):
        desktop.machine.read_file("/etc/hostname")


@pytest.mark.parametrize("where", soaked(["here", "remote"], but=["here"]))
@pytest.mark.parametrize("end", [*ENDS, "closed"])
def test_whatever_is_called_afterwards(
    contained: Callable[..., Desktop], engine: Engine, runtime: Path, end: str, where: str
) -> None:
    desktop = contained(remote=where == "remote")
    desktop.start("xterm")
    arguments = Arguments(desktop) if where == "remote" else Arguments(desktop, desktop.windows.list()[0])
    shell = desktop.machine.open_shell()
    if end == "closed":
        desktop.close()
    else:
        ENDS[end][0](engine, str(desktop.name))
        until(lambda: not _runs(engine, str(desktop.name)), 10, "the container's end")
    answers = {**(ANSWERS if end == "closed" else ANSWERS_LOST), "machine.logs": "the engine still has them"}
    wrong = examine(shell, arguments, answers, limit=LIMIT)
    wrong += examine(desktop, arguments, answers, limit=LIMIT)
    assert not wrong, "\n".join(wrong)
    assert left(engine, runtime) == []
