"""Episodes on a Ray cluster of several nodes: each is played once, whatever dies meanwhile."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading
import time
import types
import uuid
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deskhand.episodes.ledger import open_ledger
from deskhand.episodes.ledger.ledger import Key, Ledger, State
from deskhand.episodes.play.supervision import Stop
from deskhand.episodes.run.engines import find_engine
from deskhand.episodes.run.engines import ray as engine_module
from deskhand.episodes.run.plan import News, Plan
from deskhand.errors import EpisodeError
from episodes.ray_plays import (
    MEETING,
    SECONDS,
    assert_each_once,
    in_memory,
    signal_all,
    with_environment,
    without_tasks,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from episodes.ray_cluster import Nodes

EVIDENCE = os.environ.get("DESKHAND_EVIDENCE") == "1"
LIMIT = 900.0 if EVIDENCE else 240.0
ORPHANS = 60.0
EPISODES = 400 if EVIDENCE else 30
TOKEN = "0123456789abcdef" * 2


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with pytest.MonkeyPatch.context() as patch:
        # Looked at when Ray is imported.
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", TOKEN)
        from episodes.ray_cluster import Nodes  # noqa: PLC0415 # see above

        with Nodes(**{SECONDS: "0.2", MEETING: str(tmp_path_factory.mktemp("meeting"))}) as nodes:
            nodes.add(2)
            nodes.connect()
            yield nodes


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    ledger = str(tmp_path / "episodes.sqlite")
    return Plan(
        str(tmp_path), ledger, ("episodes.plays:Press",), "episodes.ray_plays:waits", desktops=4, lease=20, heartbeat=5
    )


@pytest.fixture(scope="module", autouse=True)
def own_print() -> Iterator[None]:
    """Ray puts nothing in the place of `print` for the tests that come after these."""
    yield
    assert print.__module__ == "builtins"


def queued(plan: Plan, count: int, task: str = "press") -> Ledger:
    ledger = open_ledger(plan.ledger)
    ledger.begin({"version": 1})
    ledger.add(Key(task, "", seed, 0) for seed in range(count))
    return ledger


def play(
    plan: Plan, make: Any = in_memory, *, stop: Stop | None = None, tell: Callable[[News], None] = lambda _: None
) -> None:
    engine = engine_module.RayEngine(make)
    asyncio.run(asyncio.wait_for(engine.run(plan, stop=stop or Stop(), tell=tell), LIMIT))


def test_all_nodes_play_and_each_episode_is_played_once(nodes: Nodes, plan: Plan) -> None:
    """One of them joins while the others play."""
    plan = dataclasses.replace(plan, tasks=("episodes.ray_plays:Wait",), agent="episodes.ray_plays:waits_for_another")
    ledger = queued(plan, EPISODES, "wait")
    news: list[News] = []
    joined = []

    def tell(each: News) -> None:
        news.append(each)
        if not joined:
            joined.append(nodes.add(3))

    play(plan, tell=tell)
    joined[0].kill()
    rows = ledger.rows()
    assert_each_once(rows, EPISODES)
    assert {row.attempt for row in rows} == {1}
    workers = {each.result["worker"] for each in news if each.result is not None}
    assert {row.worker for row in rows} == workers
    assert len(workers) == 2
    assert Counter(each.kind for each in news) == {"begun": EPISODES, "done": EPISODES}


@pytest.mark.soak
@pytest.mark.parametrize("dies", ["killed", "frozen"] if EVIDENCE else ["killed"])
def test_a_node_that_dies_loses_nothing_and_leaves_nothing(
    nodes: Nodes, plan: Plan, dies: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """With desktops that are X servers. One that is frozen is as if the network to it were cut, and comes back later."""
    plan = dataclasses.replace(plan, tasks=("episodes.ray_plays:Wait",), desktops=2)
    ledger = queued(plan, EPISODES, "wait")
    victim = nodes.add(2)
    before: dict[int, str] = {}
    news: list[News] = []

    def tell(each: News) -> None:
        news.append(each)
        done = ledger.counts()[State.DONE]
        if done >= 8 and not before and any("Xvfb" in words for words in victim.processes().values()):
            before.update(victim.processes())
            if dies == "killed":
                victim.kill()
            else:
                signal_all(before, signal.SIGSTOP)

    capfd.readouterr()
    play(plan, engine_module.Worker, tell=tell)
    assert any("Xvfb" in words for words in before.values())
    rows = ledger.rows()
    if dies == "frozen":
        signal_all(before, signal.SIGCONT)
    over = time.monotonic()
    while left := victim.processes():
        assert time.monotonic() - over < ORPHANS, left
        time.sleep(0.1)
    assert ledger.rows() == rows
    assert_each_once(ledger.rows(), EPISODES)
    lost = [row for row in rows if row.failures]
    assert lost
    assert {cause for row in lost for cause in row.failures} == {"desktop_lost"}
    # What Ray says of it is news, and nothing beside the run's own lines.
    assert [each for each in news if each.kind == "trouble"]
    assert capfd.readouterr().out == ""


@pytest.mark.soak
@pytest.mark.usefixtures("nodes")
def test_a_worker_that_is_killed_is_started_again_on_its_node(plan: Plan) -> None:
    ledger = queued(plan, EPISODES)
    killed = set[int]()

    def tell(_: News) -> None:
        done = ledger.counts()[State.DONE]
        if done >= 4 * (len(killed) + 1) and len(killed) < 2:
            held = [row for row in ledger.rows() if row.state == State.LEASED]
            pid = int(held[0].worker.split("/")[3]) if held else 0
            if pid and pid not in killed:
                killed.add(pid)
                os.kill(pid, signal.SIGKILL)

    play(plan, tell=tell)
    assert len(killed) == 2
    assert_each_once(ledger.rows(), EPISODES)
    rows = ledger.rows()
    assert len({row.worker for row in rows}) >= 2
    assert {cause for row in rows for cause in row.failures} == {"desktop_lost"}


@pytest.mark.soak
@pytest.mark.usefixtures("nodes")
def test_a_run_that_is_stopped_gives_everything_back_and_can_be_gone_on_with(plan: Plan) -> None:
    ledger = queued(plan, EPISODES)
    stop = Stop()
    news: list[News] = []

    def tell(each: News) -> None:
        news.append(each)
        if each.kind == "done":
            stop("Ctrl-C")

    play(plan, stop=stop, tell=tell)
    counts = ledger.counts()
    assert counts[State.LEASED] == 0
    assert 0 < counts[State.DONE] < EPISODES
    given_back = sum(each.kind == "released" for each in news)
    play(plan)
    assert_each_once(ledger.rows(), EPISODES, given_back=given_back)


@pytest.mark.usefixtures("nodes")
def test_what_a_worker_raises_is_raised_here(plan: Plan) -> None:
    queued(plan, 1)
    with pytest.raises(EpisodeError, match="no-such-task") as caught:
        play(plan, without_tasks)
    assert "Ray" not in type(caught.value).__name__


@pytest.mark.usefixtures("nodes")
def test_a_node_that_does_not_see_the_directory_says_so(plan: Plan, tmp_path: Path) -> None:
    queued(plan, 1)
    elsewhere = dataclasses.replace(plan, directory=str(tmp_path / "elsewhere"))
    with pytest.raises(
        EpisodeError, match=r"cannot access .*elsewhere: give an --out on a file system that all nodes share"
    ):
        play(elsewhere)


@pytest.mark.usefixtures("nodes")
def test_a_cluster_without_desktops_says_how_to_have_some(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    queued(plan, 1)
    monkeypatch.setattr(engine_module, "_RESOURCE", "nothing")
    hint = r"start nodes with `RAY_worker_niceness=0 ray start --resources"
    with pytest.raises(EpisodeError, match=rf"no node of the cluster has desktops: {hint}"):
        play(plan)


def test_a_stop_is_heard_while_the_head_does_not_answer(plan: Plan) -> None:
    stop, over = Stop(), threading.Event()
    in_time: list[bool] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()

        def nodes(_: Plan) -> dict[str, int]:
            loop.call_soon_threadsafe(stop, "the operator stopped the run")
            in_time.append(over.wait(10.0))
            return {}

        engine: Any = types.SimpleNamespace(nodes=nodes)
        await engine_module._Cluster(engine, plan, lambda _: 0, lambda _: None).run(stop)
        over.set()

    asyncio.run(run())
    assert in_time == [True]


CONNECT = """
import asyncio, sys
from deskhand.episodes.run.engines.ray import RayEngine
from deskhand.episodes.run.plan import Plan
from deskhand.episodes.play.supervision import Stop
plan = Plan(sys.argv[1], sys.argv[1] + "/episodes.sqlite", ("episodes.plays:Press",), "nothing")
try:
    asyncio.run(RayEngine().run(plan, stop=Stop(), tell=print))
except Exception as error:
    print(type(error).__name__, error)
"""


def test_who_has_not_the_token_is_refused(nodes: Nodes, plan: Plan) -> None:
    environment = {**os.environ, "RAY_ADDRESS": nodes.address, "RAY_AUTH_TOKEN": "f" * 32}
    # Ray tries twenty times, a second apart, also where it is refused.
    environment["RAY_NUM_REDIS_GET_RETRIES"] = "2"
    ran = subprocess.run(
        [sys.executable, "-c", CONNECT, plan.directory], env=environment, capture_output=True, text=True, check=True
    )
    assert ran.stdout.startswith("EpisodeError Ray cannot be reached at"), ran.stdout + ran.stderr
    assert "RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH has its token" in ran.stdout
    assert TOKEN not in ran.stdout


@pytest.mark.soak
def test_the_command_starts_ray_here_and_gives_everything_back_when_it_is_ended(tmp_path: Path) -> None:
    """With X servers; nothing but its own lines is printed, nothing is left, and no token is in a file."""
    options = ["--agent=episodes.ray_plays:waits", "--engine=ray", "--desktops=2", "--seeds=200", "--out=run", "--json"]
    mark = f"DESKHAND_TEST_RUN={uuid.uuid4().hex}"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    environment |= {"HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).parent.parent), SECONDS: "0.2"}
    environment |= dict([mark.split("=")])
    command = [sys.executable, "-m", "deskhand", "run", "episodes.ray_plays:Wait", *options]
    with subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(json.loads(line))
            if [each["kind"] for each in lines].count("done") == 1 and lines[-1]["kind"] == "done":
                process.send_signal(signal.SIGTERM)
    assert lines[-1]["kind"] == "end"
    assert lines[-1]["stopped"]
    ledger = open_ledger(tmp_path / "run" / "episodes.sqlite")
    counts = ledger.counts()
    ledger.close()
    assert counts[State.LEASED] == 0
    assert 0 < counts[State.DONE] < 200
    assert not (tmp_path / ".ray").exists()
    over = time.monotonic()
    while left := dict(with_environment(mark)):
        assert time.monotonic() - over < ORPHANS, left
        time.sleep(0.1)


def test_authentication_that_is_switched_off_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with pytest.raises(EpisodeError, match=r"RAY_AUTH_MODE is 'disabled': any client .*Set it to token, on all nodes"):
        find_engine("ray")


def test_a_ledger_in_a_file_is_for_one_machine(monkeypatch: pytest.MonkeyPatch, plan: Plan) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    engine = engine_module.RayEngine()
    found = [
        {"NodeID": str(i), "Alive": True, "Resources": {"desktop": 8.0}, "NodeManagerAddress": f"192.0.2.{i}"}
        for i in range(2)
    ]
    engine._ray = types.SimpleNamespace(nodes=lambda: found)
    with pytest.raises(EpisodeError, match=r"is for one machine, but there are several: add --ledger postgresql://"):
        engine.nodes(plan)
    shared = dataclasses.replace(plan, ledger="postgresql://h/d", desktops=5)
    assert engine.nodes(shared) == {"0": 5, "1": 5}
