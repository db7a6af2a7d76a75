"""A shell under a policy: each command is judged, and a stop ends the one under way."""

from __future__ import annotations

import asyncio
import os
import threading
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from deskhand import AsyncDesktop, Decision, Guard, Operation, PolicyDenied
from deskhand.providers.session import AsyncModelSession
from faults.helpers import MARK, marked, until, within

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    import deskhand

GONE = 2.0


@pytest.fixture
def mark() -> str:
    """What marks the processes of one test."""
    return uuid.uuid4().hex


class NoRm:
    """Nothing that removes; writes down what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def before(self, action: Any, context: Any) -> Decision:
        self.asked.append((action, context.action_class))
        return Decision("deny", "no rm") if "rm " in action.target else Decision("allow")


def test_every_command_is_judged_where_it_runs(desktop: deskhand.Desktop, tmp_path: Path) -> None:
    policy = NoRm()
    kept = tmp_path / "kept"
    kept.touch()
    judged = desktop.also(Guard(policy=policy))
    with judged.host.open_shell(cwd=str(tmp_path), env={"A": "1"}) as shell:
        assert shell.run("cd /; echo $A").stdout == "1\n"
        assert shell.run("pwd").stdout == "/\n"
        with pytest.raises(PolicyDenied, match="no rm"):
            shell.run(f"rm {kept}")
        shell.restart()
        assert shell.run("pwd").stdout == f"{tmp_path}\n"
        assert shell.alive
    assert not shell.alive
    assert kept.exists()
    expected = Operation("host_shell", "pwd", cwd=str(tmp_path), env=(("A", "1"),))
    assert (expected, "shell") in policy.asked
    with pytest.raises(PolicyDenied, match="no rm"):
        judged.host.run(f"rm {kept}")
    assert judged.host.run("echo $0").exit_code == 0
    assert kept.exists()


def test_without_somebody_to_ask_nothing_runs(desktop: deskhand.Desktop) -> None:
    with desktop.also(Guard()).host.open_shell() as shell, pytest.raises(PolicyDenied):
        shell.run("true")


def test_a_stop_ends_the_command_under_way(desktop: deskhand.Desktop, tmp_path: Path) -> None:
    judged = desktop.also(Guard(policy=NoRm()))
    with judged.host.open_shell() as shell:
        begun = tmp_path / "begun"
        stopper = threading.Thread(target=lambda: (_until(begun), judged.stop("enough")))
        stopper.start()
        try:
            outcome = shell.run(f"touch {begun}; sleep 1000").outcome
        except PolicyDenied:
            outcome = "cancelled"
        stopper.join()
        assert outcome == "cancelled"
        with pytest.raises(PolicyDenied, match="enough"):
            shell.run("true")
    with pytest.raises(PolicyDenied, match="enough"):
        judged.host.open_shell()


def test_a_stop_ends_the_command_of_a_call_of_its_own(desktop: deskhand.Desktop, tmp_path: Path, mark: str) -> None:
    judged = desktop.also(Guard(policy=NoRm()))
    begun = tmp_path / "begun"
    ended: list[object] = []

    def work() -> None:
        ended.append(judged.host.run(f"touch {begun}; sleep 1000", env={MARK: mark}).outcome)

    worker = threading.Thread(target=work)
    worker.start()
    until(begun.exists, 30, "the command")
    with within(GONE, "a stop"):
        judged.stop("enough")
        worker.join()
    assert ended == ["cancelled"]
    assert marked(mark) == {}


def _of_a_desktop(judged: AsyncDesktop, command: str, env: dict[str, str]) -> Awaitable[object]:
    return judged.host.run(command, env=env)


def _within_code_of_ones_own(judged: AsyncDesktop, command: str, env: dict[str, str]) -> Awaitable[object]:
    return judged.run(lambda inner: inner.host.run(command, env=env))


def _of_a_session(judged: AsyncDesktop, command: str, env: dict[str, str]) -> Awaitable[object]:
    return AsyncModelSession(judged).run(lambda model_session: model_session.desktop.host.run(command, env=env))


@pytest.mark.parametrize("call", [_of_a_desktop, _within_code_of_ones_own, _of_a_session])
def test_a_cancelled_call_ends_its_command_and_no_other(
    call: Callable[[AsyncDesktop, str, dict[str, str]], Awaitable[object]],
    desktop: deskhand.Desktop,
    tmp_path: Path,
    mark: str,
) -> None:
    os.mkfifo(tmp_path / "go")

    async def main() -> str:
        judged = AsyncDesktop(desktop.also(Guard(policy=NoRm())))
        async with await judged.host.open_shell(cwd=str(tmp_path)) as shell:
            other = asyncio.create_task(shell.run("touch other; read line < go; echo $line"))
            # It answers to no signal that can be answered, and so does what it has started.
            command = "trap '' TERM INT HUP; setsid sleep 1000 & touch begun; sleep 1000"
            task = asyncio.ensure_future(call(judged, f"cd {tmp_path}; {command}", {MARK: mark}))
            await asyncio.to_thread(
                until, lambda: {"begun", "other"} <= {path.name for path in tmp_path.iterdir()}, 30, "both"
            )
            task.cancel()
            with within(GONE, "a cancellation"), pytest.raises(asyncio.CancelledError):
                await task
            assert marked(mark) == {}
            assert not other.done()
            await asyncio.to_thread((tmp_path / "go").write_text, "the other went on\n")
            return (await other).stdout

    assert asyncio.run(main()) == "the other went on\n"


def test_a_cancelled_task_ends_its_command(desktop: deskhand.Desktop, tmp_path: Path) -> None:
    begun = tmp_path / "begun"

    async def main() -> str:
        judged = AsyncDesktop(desktop.also(Guard(policy=NoRm())))
        async with await judged.host.open_shell() as shell:
            task = asyncio.create_task(shell.run(f"touch {begun}; sleep 1000"))
            await asyncio.to_thread(_until, begun)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return (await shell.run("echo again")).stdout

    assert asyncio.run(main()) == "again\n"


def _until(path: Path) -> None:
    while not path.exists():
        pass
