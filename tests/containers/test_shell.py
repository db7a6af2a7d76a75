"""The shell in a container: what `tests/integration/test_shell.py` shows on this machine, where a container could differ."""

from __future__ import annotations

import asyncio
import os
import threading
import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

import deskhand
from deskhand import AsyncDesktop
from faults.helpers import driver, until, within
from integration.test_shell import GONE, MESS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deskhand.launchers.docker.engine import Engine


@pytest.fixture
def shell(desktop: deskhand.Desktop) -> Iterator[deskhand.Shell]:
    """A shell in the container; nothing of it is left after the test."""
    before = processes(desktop)
    with desktop.machine.open_shell(timeout=60) as shell:
        yield shell
    until_gone(desktop, before)


def processes(desktop: deskhand.Desktop) -> list[str]:
    """All processes of the container but those of the one who asks, and the files of sessions."""
    said = desktop.machine.run("ls /run/deskhand/commands; ps -eo pid=,sid=,args=; echo $PPID").stdout.splitlines()
    rows = [line.split(None, 2) for line in said if len(line.split()) > 2]
    mine = next(session for pid, session, _ in rows if pid == said[-1])
    files = [line for line in said if len(line) == 16 and " " not in line]
    # Files may have been left by who asked before, and go later: fewer are no difference.
    return [*sorted(arguments for _, session, arguments in rows if session != mine), *["file"] * len(files)]


def until_gone(desktop: deskhand.Desktop, before: list[str]) -> None:
    """Wait until nothing is there that was not there `before`."""
    pause = 0.005

    def gone() -> bool:
        nonlocal pause
        if not Counter(processes(desktop)) - Counter(before):
            return True
        # What carries the one command that asks ends soon after its answer. Who asks again sooner sees it.
        time.sleep(pause)
        pause = min(2 * pause, 1.0)
        return False

    until(gone, GONE, "the end of all")


def test_a_trap_on_exit_runs(desktop: deskhand.Desktop, shell: deskhand.Shell) -> None:
    """When a command's own shell ends, when a session's does, and when a session is closed."""
    result = desktop.machine.run("trap 'echo bye; exit 7' EXIT; echo hi")
    assert (result.stdout, result.exit_code) == ("hi\nbye\n", 7)
    shell.run("trap 'echo bye' EXIT")
    result = shell.run("exit 3")
    assert (result.stdout, result.exit_code, result.restarted) == ("bye\n", 3, True)
    shell.run("trap 'echo gone >/tmp/exited' EXIT")
    shell.close()
    assert desktop.machine.read_file("/tmp/exited") == b"gone\n"
    desktop.machine.run("rm /tmp/exited")


@pytest.mark.parametrize(
    ("command", "said", "code", "ends"),
    [
        ("state=other; false", "", 1, False),
        ('echo "unbalanced', "unexpected EOF", 2, False),
        ("cat <<END\nno end", "no end", 0, False),
        ("cat; cat </dev/tty", "/dev/tty", 1, False),
        ("printf '\\377 no newline'; echo err >&2", "\ufffd no newlineerr\n", 0, False),
        ("sleep inf & sleep inf >&2 & echo job", "job\n", 0, False),
        ("exit 3", "", 3, True),
        ("exec sh -c 'exit 5'", "", 5, True),
        ("kill -9 $$", "", 137, True),
        ("kill -9 0", "", 137, True),
    ],
)
def test_a_session(shell: deskhand.Shell, command: str, said: str, code: int, *, ends: bool) -> None:
    shell.run("cd /tmp; state=kept")
    result = shell.run(command, timeout=30)
    assert said in result.stdout + result.stderr
    assert (result.exit_code, result.restarted) == (code, ends)
    now = shell.run('echo "$PWD $state"').stdout
    assert now == ("/home/user \n" if ends else f"/tmp {'other' if 'other' in command else 'kept'}\n")


def test_a_thousand_short_commands(shell: deskhand.Shell) -> None:
    for number in range(1000):
        assert shell.run(f"echo {number}").stdout == f"{number}\n"


def test_jobs_are_read_while_nobody_asks(shell: deskhand.Shell, desktop: deskhand.Desktop) -> None:
    assert shell.run("(sleep 0.1; yes | head -c 3000000; touch /tmp/written) & echo started").stdout == "started\n"
    until(lambda: desktop.machine.run("ls /tmp/written").exit_code == 0, 10, "the end of the job")
    result = shell.run("rm /tmp/written; echo next")
    assert result.stdout == "next\n"
    assert result.background.startswith("y\ny\n")


@pytest.mark.parametrize("how", ["timeout", "cancelled"])
def test_everything_goes(shell: deskhand.Shell, desktop: deskhand.Desktop, how: str) -> None:
    """C13: also who has left group, session, parent and environment."""
    before = processes(desktop)
    shell.run("state=lost; sleep 7004 &")
    # On a busy machine it takes more than a moment until it has said something.
    timer = threading.Timer(2.0, shell.interrupt)
    if how == "cancelled":
        timer.start()
    with within(2.0 + GONE, "the end of everything"):
        result = shell.run("echo said; " + MESS.format(n=7004), timeout=2.0 if how == "timeout" else 60)
    assert (result.stdout, result.outcome, result.exit_code, result.restarted) == ("said\n", how, None, True)
    assert desktop.machine.run("pgrep -f 'sleep 700[4]'").stdout == ""
    assert len(processes(desktop)) < len(before)
    assert shell.run('echo "[$state]"').stdout == "[]\n"


def test_a_cancelled_task_ends_its_command(desktop: deskhand.Desktop) -> None:
    async def run() -> None:
        asynchronous = AsyncDesktop(desktop)
        async with await asynchronous.machine.open_shell() as shell:
            for call in (shell.run, asynchronous.machine.run):
                task = asyncio.create_task(call(MESS.format(n=7005)))
                await asyncio.sleep(0.5)
                task.cancel()
                with within(GONE, "a cancellation"), pytest.raises(asyncio.CancelledError):
                    await task
                assert (await shell.run("pgrep -f 'sleep 700[5]'")).stdout == ""
        asynchronous.detach()

    before = processes(desktop)
    asyncio.run(run())
    until_gone(desktop, before)


def test_a_killed_driver_leaves_nothing(desktop: deskhand.Desktop, engine: Engine) -> None:
    """Also in a container that goes on, because another driver has launched it."""
    del engine
    before = processes(desktop)
    code = f"""
from deskhand.launchers.docker.display_slot import DisplaySlot
from deskhand.launchers.docker.container import Container
from deskhand.launchers.docker.engine import connect_engine
container = Container(connect_engine(), {desktop.name!r}, {desktop.name!r}, DisplaySlot(None))
shell = deskhand.Shell(lambda: container.session(cwd=None, env=None, once=False))
say(ready=True)
shell.run({MESS.format(n=7006)!r})
"""
    with driver(code, os.environ) as process:
        process.read()
        until(lambda: len(desktop.machine.run("pgrep -f 'sleep 700[6]'").stdout.split()) > 6, 10, "all that sleep")
        process.kill()
    with within(GONE, "the end of all"):
        until_gone(desktop, before)


def test_a_command_is_nowhere_to_be_seen(desktop: deskhand.Desktop, shell: deskhand.Shell) -> None:
    """C8: neither in the container's processes nor in what the engine tells of them."""
    canary = f"canary{uuid.uuid4().hex}"
    look = "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ | tr '\\0' '\\n' | grep "
    for run in (shell.run, desktop.machine.run):
        result = run(f"set -a; secret={canary}; unset secret; {look}{canary[:20]}[{canary[20]}]; {look}-c ^")
        assert canary[:20] not in result.stdout
        assert int(result.stdout) > 10


def test_what_the_supervisor_does_where_no_process_can_be_started(
    shell: deskhand.Shell, desktop: deskhand.Desktop, engine: Engine
) -> None:
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(shell.run, "sleep 7007 & sleep 7007")
        until(lambda: desktop.machine.run("pgrep -xfc 'sleep 7007'").stdout == "2\n", 10, "both that sleep")
        engine.api.kill(desktop.name, "SIGUSR2")
        result = running.result()
    assert (result.outcome, result.restarted) == ("error", True)
    assert desktop.machine.run("pgrep -f 'sleep 700[7]'").stdout == ""


def test_after_a_fork_bomb(shell: deskhand.Shell, desktop: deskhand.Desktop) -> None:
    result = shell.run("bomb() { bomb | bomb & }; bomb; sleep 7003", timeout=3)
    # Where the window manager finds no room for its threads, all commands are ended before their time.
    assert result.timed_out or result.exit_code == 137
    assert shell.run("echo on").stdout == "on\n"
    until(lambda: desktop.machine.usage().processes < 50, 10, "the end of all that it made")
