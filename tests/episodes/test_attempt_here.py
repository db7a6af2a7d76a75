"""Failures that only a real desktop has: its server dies, a program crashes, what an agent started goes on."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING, Any

import pytest

from deskhand import Pool
from deskhand.episodes.ledger.ledger import Key
from deskhand.episodes.play.attempt import attempt
from deskhand.episodes.tasks.task import TaskLimits
from episodes.plays import Kept
from episodes.plays_here import Number
from faults.helpers import marked, server_pid, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deskhand.episodes.play.episode import Episode

KEY = Key("number", "", 0, 0)


@pytest.fixture
def pool(mark: str) -> Iterator[Pool]:
    with Pool("local", size=2, warm=0, screen=Number.screen) as pool:
        yield pool
    assert not marked(mark), "nothing is left of any desktop"


def tried(pool: Pool, agent: Any, **options: Any) -> dict[str, Any]:
    return attempt(Number(), KEY, pool, agent, Kept(), **options)


def test_a_server_that_is_killed_is_a_desktop_that_is_lost(pool: Pool) -> None:
    def agent(episode: Episode) -> str:
        assert episode.desktop.display is not None
        os.kill(server_pid(episode.desktop.display), signal.SIGKILL)
        return "it does not mind"

    result = tried(pool, agent)
    assert (result["cause"], result["valid"], result["score"]) == ("desktop_lost", False, None)
    # The next one has another desktop.
    assert tried(pool, "oracle")["success"] is True


def test_a_server_that_is_killed_during_setup_is_one_too(pool: Pool) -> None:
    class Fragile(Number):
        def setup(self, context: Any) -> None:
            os.kill(server_pid(context.desktop.display), signal.SIGKILL)
            super().setup(context)

    result = attempt(Fragile(), KEY, pool, "oracle", Kept())
    assert (result["cause"], result["valid"]) == ("desktop_lost", False)


@pytest.mark.parametrize(("number", "cause"), [(signal.SIGSEGV, "app_crash"), (signal.SIGTERM, None)])
def test_a_program_that_crashed_is_told_and_graded(pool: Pool, number: signal.Signals, cause: str | None) -> None:
    def agent(episode: Episode) -> None:
        program = episode.desktop.start("xterm -e sleep 1000")
        os.kill(program.pid, number)
        until(lambda: program.poll() is not None, 10.0, "the terminal to end")

    result = tried(pool, agent)
    assert (result["cause"], result["valid"], result["score"]) == (cause, True, 0.0)
    if cause is not None:
        assert result["detail"] == "xterm ended by SIGSEGV"


def test_a_call_that_hangs_is_ended_with_the_agents_time(pool: Pool) -> None:
    """A command that never ends, and a program without a window: calls of minutes."""

    def commands(episode: Episode) -> None:
        with episode.desktop.host.open_shell() as shell:
            shell.run("sleep 1000")

    def programs(episode: Episode) -> None:
        episode.desktop.start("sleep 1000", timeout=1000)

    for agent in (commands, programs):
        result = tried(pool, agent, limits=TaskLimits(steps=5, seconds=1.0))
        assert (result["cause"], result["detail"]) == ("agent_budget", "all 1 s were used up")
        assert result["times"]["agent"] < 30


def test_an_agent_that_goes_on_in_a_thread_of_its_own_has_no_desktop(pool: Pool) -> None:
    over, said = threading.Event(), []

    def agent(episode: Episode) -> None:
        def go_on() -> None:
            over.wait(60)
            try:
                episode.desktop.screenshot()
            except BaseException as error:  # noqa: BLE001 # whatever it is
                said.append(str(error))

        threading.Thread(target=go_on, daemon=True).start()

    result = tried(pool, agent)
    assert (result["cause"], result["valid"]) == (None, True)
    over.set()
    until(lambda: said, 30.0, "what it was told")
    assert said == ["the agent's part is over"]
