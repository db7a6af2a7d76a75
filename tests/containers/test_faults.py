"""What breaks containers: F1, F3, F4, F5, F20 to F22, F26, F27, F28 and F30 of the list of faults, each with its bound.

F29 and the engine's part of F22 are in `test_engine.py`, F23 is in `test_throttled.py`.
"""

from __future__ import annotations

import os
import secrets
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import deskhand
from containers.helpers import containers, guards
from deskhand import LeftClick, Type
from deskhand.launchers.docker.leftovers import LABEL_DIRECTORY, UNANSWERED, reap
from deskhand.launchers.docker.removal import is_removed
from deskhand.launchers.docker.spec import Limits, Mount
from faults.helpers import driver, until, within
from faults.scale import EVIDENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deskhand.launchers.docker.engine import Engine

RESTARTS = 20 if EVIDENCE else 3
KILLED = 50 if EVIDENCE else 3
# The promises are for a machine that has nothing else to do; these allow for one that has.
LOST_LIMIT, READY_LIMIT, REMOVED_LIMIT = 3.0, 20.0, 30.0
# F27 and F26.
STOP_LIMIT, ZOMBIE_LIMIT = 2.0, 5.0
# An engine that was just given an image was seen to take more than 30 s for one request.
ENGINE_LIMIT = 240.0


def in_container(engine: Engine, desktop: deskhand.Desktop, *argv: str) -> None:
    """Run something that is not a command of the desktop's own."""
    made = engine.api.exec_create(desktop.name, list(argv))
    engine.api.exec_start(made["Id"], detach=True)


def kill_parts(engine: Engine, desktop: deskhand.Desktop, *names: str) -> None:
    """Kill these at one moment, as soon as all of them run: one that is being started has its name a little later."""
    missing = " || ".join(f"! pgrep {name} >/dev/null" for name in names)
    in_container(engine, desktop, "sh", "-c", f"while {missing}; do sleep 0.01; done; pkill -KILL '{'|'.join(names)}'")


def test_the_death_of_x_is_told(contained: Callable[..., deskhand.Desktop], engine: Engine) -> None:
    desktop = contained()
    desktop.start("xterm")
    in_container(engine, desktop, "pkill", "-KILL", "Xvfb")
    until(lambda: not engine.api.inspect_container(desktop.name)["State"]["Running"], LOST_LIMIT, "the container's end")
    with within(LOST_LIMIT, "telling"), pytest.raises(deskhand.DesktopLost) as lost:
        desktop.perform(Type("x"))
    assert lost.value.cause == "x_server"
    assert "the X server ended with status 137" in engine.api.logs(desktop.name).decode()


def test_the_death_of_x_while_it_types_is_told(contained: Callable[..., deskhand.Desktop], engine: Engine) -> None:
    desktop = contained()
    desktop.start("xterm")
    with ThreadPoolExecutor(1) as pool:
        typing = pool.submit(_type_on, desktop)
        # Let it get into the middle of that: any moment is as good.
        with pytest.raises(TimeoutError):
            typing.result(0.5)
        in_container(engine, desktop, "pkill", "-KILL", "Xvfb")
        with within(LOST_LIMIT, "telling"):
            lost = typing.exception(60)
    assert isinstance(lost, deskhand.DesktopLost)
    assert lost.cause == "x_server"


# The kernel hangs up on the clients of a server that is killed before that counts as ended. Here this takes longer: until a
# window manager that finds no server has been started four times.
SLOW_SERVER = """#!/bin/bash
/usr/bin/Xvfb "$@" &
exec 3>&-
wait $!
status=$?
until [ "$(grep -c window-manager /tmp/.X11-unix/restarted 2>/dev/null)" = 4 ]; do :; done
sleep 0.3
exit "$status"
"""


def test_the_death_of_x_is_not_taken_for_its_clients(
    contained: Callable[..., deskhand.Desktop], engine: Engine, tmp_path: Path
) -> None:
    server = tmp_path / "Xvfb"
    server.write_text(SLOW_SERVER)
    server.chmod(0o755)
    tmp_path.chmod(0o755)
    desktop = contained(mounts=[Mount(tmp_path, "/slow")], env={"PATH": "/slow:/usr/local/bin:/usr/bin:/bin"})
    in_container(engine, desktop, "pkill", "-KILL", "-f", "^/usr/bin/Xvfb")
    until(lambda: not engine.api.inspect_container(desktop.name)["State"]["Running"], LOST_LIMIT, "the container's end")
    with pytest.raises(deskhand.DesktopLost) as lost:
        desktop.perform(Type("x"))
    assert lost.value.cause == "x_server"
    log = engine.api.logs(desktop.name).decode()
    assert log.count("restarted window-manager") == 4
    assert "the X server ended with status 137" in log


def _type_on(desktop: deskhand.Desktop) -> None:
    for _ in range(1000):
        desktop.perform(Type("words and words and words\n" * 20), settle=False)


def test_a_container_that_was_killed_or_removed_is_told(
    contained: Callable[..., deskhand.Desktop], engine: Engine
) -> None:
    desktop = contained()
    engine.api.kill(desktop.name)
    with within(LOST_LIMIT, "telling"), pytest.raises(deskhand.DesktopLost, match="it was killed") as lost:
        desktop.perform()
    assert lost.value.cause == "container"
    desktop = contained()
    engine.api.remove_container(desktop.name, force=True)
    with pytest.raises(deskhand.DesktopLost, match="was removed"):
        desktop.perform()


def test_the_window_manager_is_started_again(contained: Callable[..., deskhand.Desktop], engine: Engine) -> None:
    desktop = contained()
    program = desktop.start(["xterm", "-xrm", "*allowTitleOps: false", "-T", "kept"])
    in_container(engine, desktop, "pkill", "-KILL", "openbox")
    until(lambda: "restarted window-manager" in desktop.machine.logs(), 1, "the window manager")
    until(desktop._core.backend.has_window_manager, READY_LIMIT, "its rule")
    assert any("window manager" in line for line in desktop.status), desktop.status
    until(lambda: [w.title for w in desktop.windows.list()] == ["kept"], READY_LIMIT, "the window")
    window = next(iter(desktop.windows.list()))
    assert program.window is not None
    assert window.id == program.window.id
    x, y = window.rect.x + window.rect.width // 2, window.rect.y + window.rect.height // 2
    seen = desktop.perform(LeftClick((x, y)), Type("echo still >/tmp/still\n"))
    assert seen.settled
    until(lambda: desktop.machine.run("cat /tmp/still").stdout == "still\n", 10, "what was typed")


def test_the_session_bus_is_started_again(contained: Callable[..., deskhand.Desktop], engine: Engine) -> None:
    """F4; what serves assistive technologies (at-spi) is in none of our images."""
    desktop = contained()
    assert desktop.status == ()
    for times in (1, 2):
        kill_parts(engine, desktop, "dbus-daemon")
        until(lambda: f"session bus ended and was started again ({times} times)" in str(desktop.status), 1, "the note")  # noqa: B023
    assert "restarted bus" in desktop.machine.logs()
    ask = "dbus-send --session --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.ListNames"
    until(lambda: desktop.machine.run(ask).exit_code == 0, READY_LIMIT, "the bus")
    desktop.start("xterm")
    assert desktop.perform(Type("true\n")).settled
    # Others see it too.
    with deskhand.connect(f"docker://{desktop.name}", view_only=True) as viewer:
        assert viewer.status == desktop.status


def test_parts_that_end_at_one_moment_are_all_started_again(
    contained: Callable[..., deskhand.Desktop], engine: Engine
) -> None:
    desktop = contained()
    for times in (1, 2):
        kill_parts(engine, desktop, "dbus-daemon", "openbox", "keep-logs")
        for part in ("bus", "window-manager"):
            until(lambda: desktop.machine.logs().count(f"restarted {part}") == times, READY_LIMIT, part)  # noqa: B023
    until(desktop._core.backend.has_window_manager, READY_LIMIT, "the window manager")


def test_little_shared_memory_is_told(contained: Callable[..., deskhand.Desktop]) -> None:
    """F16: browsers' pages crash with what Docker gives by default; we give more, and say so where somebody gives less."""
    for size, told in ((1 << 30, False), (64 << 20, True)):
        desktop = contained(limits=Limits() if size == 1 << 30 else Limits(shared_memory=size))
        assert int(desktop.machine.run("df -B1 --output=size /dev/shm | tail -n 1").stdout) == size
        assert any("64 MB" in line and "shm-size" in line for line in desktop.status) == told


def test_a_part_that_dies_again_and_again_is_the_end(
    contained: Callable[..., deskhand.Desktop], engine: Engine
) -> None:
    desktop = contained()
    in_container(engine, desktop, "sh", "-c", "while :; do pkill -KILL dbus-daemon; done")
    until(
        lambda: not engine.api.inspect_container(desktop.name)["State"]["Running"], READY_LIMIT, "the container's end"
    )
    with pytest.raises(deskhand.DesktopLost) as lost:
        desktop.perform()
    assert lost.value.cause == "supervisor"
    assert engine.api.logs(desktop.name).decode().count("restarted bus") == 4


def test_a_restarted_container_comes_back(contained: Callable[..., deskhand.Desktop], engine: Engine) -> None:
    """F5: after an end in order, and after one that leaves the socket of its X server behind."""
    desktop = contained()
    assert desktop.xauthority is not None
    sockets = desktop.xauthority.parent
    for number in range(RESTARTS):
        if number % 2:
            engine.api.restart(desktop.name, timeout=5)
        else:
            engine.api.kill(desktop.name)
            engine.api.wait(desktop.name)
            assert [path for path in sockets.glob("X*") if path.is_socket()]
            engine.api.start(desktop.name)
        with (
            within(READY_LIMIT, "being ready again"),
            deskhand.connect(f"docker://{desktop.name}", timeout=20) as again,
        ):
            assert again.perform().settled
            assert again.machine.run("cat /proc/1/comm").stdout == "tini\n"
    with pytest.raises(deskhand.DesktopLost):
        desktop.perform()


def test_asked_to_end_it_ends_at_once(contained: Callable[..., deskhand.Desktop], engine: Engine) -> None:
    desktop = contained()
    # Somebody who does not want to go, too.
    desktop.start(["xterm", "-e", "trap '' TERM HUP; while :; do sleep 1; done"])
    with within(STOP_LIMIT, "stopping"):
        engine.api.stop(desktop.name, timeout=60)
    assert engine.api.inspect_container(desktop.name)["State"]["ExitCode"] == 0


def test_a_program_without_memory_is_not_the_end(contained: Callable[..., deskhand.Desktop]) -> None:
    """F20: a program goes before the X server does, and that is told."""
    desktop = contained(limits=Limits(memory=256 << 20))
    assert desktop.status == ()
    result = desktop.machine.run("tail /dev/zero", timeout=60)
    assert result.exit_code == 137
    kills = desktop.machine.usage().oom_kills
    assert kills is not None
    assert kills >= 1
    assert desktop.perform().settled
    (told,) = desktop.status
    assert f"{kills} of its processes were killed" in told
    with deskhand.connect(f"docker://{desktop.name}", view_only=True) as viewer:
        assert viewer.status == (told,)
    with desktop.reset() as again:
        assert again.status == ()


@pytest.mark.parametrize("supervisor", ["runs", "is stopped"])
def test_a_server_without_memory_is_the_end(
    contained: Callable[..., deskhand.Desktop], engine: Engine, supervisor: str
) -> None:
    """A client has X itself hold pictures until the container's memory is used up; who is starved tells nothing of that."""
    desktop = contained(limits=Limits(memory=192 << 20), size=(4000, 4000))
    if supervisor == "is stopped":
        os.kill(engine.api.inspect_container(desktop.name)["State"]["Pid"], signal.SIGSTOP)
    # Started around us, so that it is not the first to be killed; each window keeps its picture in the server.
    in_container(
        engine, desktop, "sh", "-c", "while :; do xsetroot -bitmap /dev/null; xterm -geometry 600x200 -sl 1 & done"
    )
    with pytest.raises(deskhand.DesktopLost) as lost:
        until(lambda: desktop.perform(settle=False) is None, 60, "the loss")
    assert lost.value.cause == "oom"


def test_orphans_leave_no_zombies(desktop: deskhand.Desktop) -> None:
    """F26: a thousand that nobody waits for."""
    desktop.machine.run("for i in $(seq 1000); do (setsid true &); done")
    until(
        lambda: desktop.machine.run("ps -eo stat | grep -c '^Z'").stdout == "0\n",
        ZOMBIE_LIMIT,
        "the end of all zombies",
    )


FILL = "for i in $(seq 100); do sleep 7005 & done; wait"


def is_refused(desktop: deskhand.Desktop) -> bool:
    """Whether there is no room for a command and two processes of it, and that is told."""
    try:
        result = desktop.machine.run("sleep 0.1 & sleep 0.1 & wait", timeout=1)
    except deskhand.ShellError as error:
        return "room for processes" in str(error)
    assert result.timed_out == ("fork" in result.stderr)
    return result.timed_out


def test_at_the_limit_of_processes_commands_are_told(
    contained: Callable[..., deskhand.Desktop], engine: Engine
) -> None:
    """F21: the desktop comes before its commands, what cannot be started says so, and afterwards there is room again."""
    desktop = contained(limits=Limits(processes=64))
    desktop.start("xterm")
    with ThreadPoolExecutor(1) as pool:
        filling = pool.submit(desktop.machine.run, FILL, timeout=100)
        until(lambda: desktop.machine.usage().processes >= 60, 10, "the limit")
        # From outside, for inside nothing can be started. It comes back, though it needs processes.
        columns, *lines = (found := engine.api.top(desktop.name))["Titles"], *found["Processes"]
        (manager,) = (line for line in lines if "openbox" in line[columns.index("CMD")])
        os.kill(int(manager[columns.index("PID")]), signal.SIGKILL)
        until(lambda: "restarted window-manager" in desktop.machine.logs(), READY_LIMIT, "the window manager")
        assert "no room for processes to start window-manager again" in desktop.machine.logs()
        assert filling.result(60).exit_code == 137
        until(desktop._core.backend.has_window_manager, READY_LIMIT, "its rule")
        assert desktop.perform().settled

        if not EVIDENCE:
            return
        filling = pool.submit(desktop.machine.run, FILL, timeout=100)
        # The engine cannot start it, or bash no other process for longer than a second: then all commands are ended.
        until(lambda: is_refused(desktop) or filling.done(), 20, "a command that is refused")
        assert desktop.perform().settled
        engine.api.kill(desktop.name, "SIGUSR2")
        assert filling.result(60).exit_code == 137
    until(lambda: desktop.machine.usage().processes < 20, 10, "room")
    assert desktop.machine.run("pgrep -f 'sleep 700[5]'").stdout == ""
    assert desktop.perform().settled


def test_a_full_disk_is_told(desktop: deskhand.Desktop) -> None:
    with pytest.raises(deskhand.BackendError, match="No space left"):
        desktop.machine.write_file("/run/deskhand/large", bytes(80 << 20))
    assert desktop.perform().settled


LAUNCHING = """
import deskhand
desktop = deskhand.launch("docker")
# What watches over held keys must not take the place of what removes the container.
desktop.perform(PressKeys(["shift"]))
say(directory=str(desktop.xauthority.parent.parent), name=desktop.name)
wait_forever()
"""


def test_a_killed_driver_leaves_nothing(engine: Engine, driver_environment: Mapping[str, str]) -> None:
    for _ in range(KILLED):
        with driver(LAUNCHING, driver_environment) as lines:
            told = lines.read()
            assert containers(engine, told["directory"]) == [told["name"]]
            lines.process.kill()
            until(lambda: containers(engine, told["directory"]) == [], REMOVED_LIMIT, "the container's removal")  # noqa: B023
            until(lambda: not Path(told["directory"]).exists(), REMOVED_LIMIT, "the directory's removal")  # noqa: B023


@pytest.mark.soak
def test_who_is_killed_with_his_guard_is_cleared_up_after(
    engine: Engine, driver_environment: Mapping[str, str], contained: Callable[..., deskhand.Desktop]
) -> None:
    mine = contained()
    with driver(LAUNCHING, driver_environment) as lines:
        told = lines.read()
        found = guards(lines.process.pid)
        assert found
        for pid in (lines.process.pid, *found):
            os.kill(pid, signal.SIGKILL)
        until(lambda: told["name"] in reap(engine), REMOVED_LIMIT, "the reaper")
    assert containers(engine, told["directory"]) == []
    # One whose driver lives is left alone.
    assert mine.perform().settled


@pytest.mark.soak
def test_an_interrupted_launch_leaves_nothing(engine: Engine, driver_environment: Mapping[str, str]) -> None:
    code = "import deskhand\nsay(ready=1)\ndesktop = deskhand.launch('docker')\nsay(up=1)\nwait_forever()\n"
    before = set(containers(engine))
    for delay in (0.2, 0.6, 1.0):
        with driver(code, driver_environment) as lines:
            lines.read()
            # Ctrl-C may come at any moment of a launch; this is about time, and needs no exact one.
            time.sleep(delay)
            lines.process.send_signal(signal.SIGINT)
            lines.process.wait(ENGINE_LIMIT)
            until(lambda: set(containers(engine)) <= before, REMOVED_LIMIT, "nothing to be left")


def test_what_the_engine_makes_late_is_waited_for(engine: Engine, image: str, tmp_path: Path) -> None:
    """Who was interrupted in the middle of that cannot tell whether there will be a container."""
    waiting = tmp_path / UNANSWERED
    name = f"late-{secrets.token_hex(6)}"
    waiting.write_text(name)
    labels = {LABEL_DIRECTORY: str(tmp_path)}
    # Another part of the same desktop is not what was asked for last.
    engine.api.create_container(image, labels=labels)
    assert not is_removed(engine, tmp_path)
    assert containers(engine, str(tmp_path)) == []
    made = engine.api.create_container(image, name=name, labels=labels)
    assert is_removed(engine, tmp_path)
    assert containers(engine, str(tmp_path)) == []
    with pytest.raises(engine.errors.NotFound):
        engine.api.inspect_container(made["Id"])
    assert not waiting.exists()
    assert is_removed(engine, tmp_path), "there is none, and none will come"


def test_what_is_listed_before_it_can_be_removed_is_waited_for(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Docker lists a container that it is still making, and knows none of that name when it is to remove it."""
    (tmp_path / UNANSWERED).write_text("coming")
    listed = [{"Id": secrets.token_hex(32), "Names": ["/coming"], "Labels": {LABEL_DIRECTORY: str(tmp_path)}}]
    monkeypatch.setattr(type(engine.api), "containers", lambda *_, **__: listed)
    assert not is_removed(engine, tmp_path)
    assert (tmp_path / UNANSWERED).exists()


@pytest.mark.soak
def test_many_start_at_once(contained: Callable[..., deskhand.Desktop]) -> None:
    """F30: nothing of theirs is shared, so nothing can collide."""
    count = 12 if EVIDENCE else 4
    with ThreadPoolExecutor(count) as pool:
        desktops = list(pool.map(lambda _: contained(timeout=120), range(count)))
    assert len({desktop.display for desktop in desktops}) == count
    for desktop in desktops:
        assert desktop.perform().settled
