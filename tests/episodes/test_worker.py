"""A worker plays every episode once, whatever fails meanwhile, and gives back what it does not finish."""

from __future__ import annotations

import asyncio
import errno
import json
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from deskhand import DesktopLost, LaunchFailed
from deskhand.episodes.ledger import open_ledger
from deskhand.episodes.ledger.ledger import Key, State
from deskhand.episodes.outcome import RULES, Cause
from deskhand.episodes.play.supervision import Stop
from deskhand.episodes.run import worker as worker_module
from deskhand.episodes.run.plan import News, Plan
from deskhand.episodes.run.worker import Worker
from deskhand.episodes.run.worker_name import abandon_dead, worker_name
from deskhand.errors import EpisodeError, LedgerError
from episodes.plays import DesktopPools, Kept, Places

if TYPE_CHECKING:
    from pathlib import Path

    from deskhand.episodes.ledger.ledger import Ledger
    from deskhand.episodes.play.episode import Episode

LIMIT = 60.0
TASK = "episodes.plays:Press"


pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "_POLL", 0.01)
    monkeypatch.setattr(worker_module, "_BACKOFF", 0.01)


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return Plan(str(tmp_path), str(tmp_path / "episodes.sqlite"), (TASK,), "oracle", desktops=3)


def queued(plan: Plan, count: int) -> Ledger:
    ledger = open_ledger(plan.ledger)
    ledger.begin({"version": 1})
    ledger.add(Key("press", "", seed, 0) for seed in range(count))
    return ledger


def played(plan: Plan, *, stop: Stop | None = None, **options: Any) -> list[News]:
    news: list[News] = []
    with Worker(
        plan, stop=stop, tell=news.append, pools=options.pop("pools", None) or DesktopPools(), **options
    ) as worker:
        asyncio.run(asyncio.wait_for(worker.run(), LIMIT))
    return news


def test_every_episode_is_played_once_and_recorded(plan: Plan, tmp_path: Path) -> None:
    ledger = queued(plan, 7)
    news = played(plan)
    assert Counter(each.kind for each in news) == {"begun": 7, "done": 7}
    rows = ledger.rows()
    assert [row.state for row in rows] == [State.DONE] * 7
    for row in rows:
        assert row.result is not None
        assert row.result["success"] is True
        written = json.loads((tmp_path / "ep" / str(row.key) / "attempt-1" / "result.json").read_text())
        assert written == row.result
        assert written["agent"] == "oracle"
        assert written["worker"] == row.worker == worker_name()
        events = (tmp_path / "ep" / str(row.key) / "attempt-1" / "events.jsonl").read_text().splitlines()
        kinds = [json.loads(line)["kind"] for line in events]
        assert kinds == ["begin", "reset", "frame", "setup", "perform", "answer", "frame", "evaluate", "end"]


def test_so_many_at_once_and_no_more(plan: Plan) -> None:
    queued(plan, 12)
    together, most, lock = set[int](), 0, threading.Lock()
    full = threading.Barrier(3)

    def agent(_: Episode) -> None:
        nonlocal most
        with lock:
            together.add(threading.get_ident())
            most = max(most, len(together))
        full.wait(LIMIT)
        with lock:
            together.discard(threading.get_ident())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("deskhand.episodes.run.worker.find_agent", lambda _, **_more: agent)
        played(plan)
    assert most == 3


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (LaunchFailed("the X server", 1.0), Cause.DESKTOP_START),
        (DesktopLost("oom", "it was killed"), Cause.DESKTOP_LOST),
    ],
)
def test_what_is_to_be_repeated_is_so_often_and_not_more(plan: Plan, error: Exception, cause: Cause) -> None:
    ledger = queued(plan, 1)
    places = Places()
    places.failures += [error] * 100
    news = played(plan, pools=DesktopPools(places))
    most = RULES[cause].retries
    assert Counter(each.kind for each in news) == {"begun": most + 1, "retried": most, "done": 1}
    (row,) = ledger.rows()
    assert (row.attempt, row.failures) == (most + 1, {cause: most})
    assert row.result is not None
    assert (row.result["cause"], row.result["valid"], row.result["retries"]) == (cause, False, most)
    assert 100 - len(places.failures) == most + 1


def test_an_attempt_that_failed_is_kept_beside_the_one_that_counts(plan: Plan, tmp_path: Path) -> None:
    ledger = queued(plan, 1)
    places = Places()
    places.failures.append(DesktopLost("oom", "it was killed"))
    played(plan, pools=DesktopPools(places))
    (row,) = ledger.rows()
    assert row.result is not None
    assert (row.result["success"], row.result["attempt"], row.result["failures"]) == (True, 2, {"desktop_lost": 1})
    first = json.loads((tmp_path / "ep/press.s0.r0/attempt-1/result.json").read_text())
    assert (first["cause"], first["valid"]) == ("desktop_lost", False)


def test_a_second_try_waits_longer_where_the_rule_says_so(plan: Plan) -> None:
    ledger = queued(plan, 1)
    delays = []
    retry = ledger.retry
    ledger.retry = lambda lease, cause, *, delay=0.0: (delays.append(delay), retry(lease, cause))[1]  # type: ignore[method-assign]
    places = Places()
    places.failures += [LaunchFailed("x", 1.0)] * 3 + [DesktopLost("oom", "x")]
    played(plan, ledger=ledger, pools=DesktopPools(places))
    assert delays == [0.01, 0.02, 0.04, 0.0]


def test_an_episode_that_ends_its_workers_is_not_tried_for_ever(plan: Plan) -> None:
    ledger = queued(plan, 1)
    for number in range(10):
        ledger.lease(f"dead-{number}", 60.0)
        ledger.abandon(f"dead-{number}")
    news = played(plan)
    assert [each.kind for each in news] == ["begun", "done"]
    (row,) = ledger.rows()
    assert row.result is not None
    assert (row.result["cause"], row.result["valid"]) == ("desktop_lost", False)
    assert "lost 10 times" in row.result["detail"]


def test_a_stop_gives_back_what_is_under_way(plan: Plan, tmp_path: Path) -> None:
    ledger = queued(plan, 9)
    stop, here = Stop(), threading.Barrier(4)

    async def agent(_: Episode) -> None:
        await asyncio.to_thread(here.wait, LIMIT)
        await asyncio.sleep(LIMIT)

    def operator() -> None:
        here.wait(LIMIT)
        stop("the operator stopped the run")

    thread = threading.Thread(target=operator)
    thread.start()
    pools = DesktopPools()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("deskhand.episodes.run.worker.find_agent", lambda _, **_more: agent)
        news = played(plan, stop=stop, pools=pools)
    thread.join()
    assert Counter(each.kind for each in news) == {"begun": 3, "released": 3}
    assert ledger.counts() == {"queued": 9, "leased": 0, "done": 0}
    assert pools.closed
    assert all(desktop._core.successor is not None or desktop.closed for desktop in pools.all.given)
    assert not list(tmp_path.rglob("result.json"))
    assert Counter(each.kind for each in played(plan)) == {"begun": 9, "done": 9}


STRANGER = Key("another-runs", "", 0, 0)


def assert_only_given_back(ledger: Ledger, count: int) -> None:
    rows = ledger.rows()
    assert [(row.state, dict(row.failures)) for row in rows] == [(State.QUEUED, {})] * count
    # Nothing counts as lost later either.
    assert [dict(lease.failures) for lease in ledger.lease("later", 60.0, most=count)] == [{}] * count


def test_an_episode_of_another_runs_task_ends_the_run_and_is_given_back(plan: Plan) -> None:
    ledger = queued(plan, 2)
    ledger.add([STRANGER])
    with pytest.raises(
        EpisodeError, match=r"the ledger has another-runs\.s0\.r0, but this run has no task another-runs"
    ):
        played(plan)
    assert_only_given_back(ledger, 3)


def test_what_is_under_way_when_another_runs_task_is_met_is_given_back_too(plan: Plan) -> None:
    ledger = queued(plan, 1)

    async def agent(_: Episode) -> None:
        ledger.add([STRANGER])
        await asyncio.sleep(LIMIT)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("deskhand.episodes.run.worker.find_agent", lambda _, **_more: agent)
        with pytest.raises(EpisodeError, match="this run has no task another-runs"):
            played(plan)
    assert_only_given_back(ledger, 2)


def test_what_another_has_by_now_does_not_count(plan: Plan) -> None:
    """A worker that was held up for longer than its lease comes back, and finds that somebody else has done its work."""
    ledger = queued(plan, 1)
    begun, taken = threading.Event(), threading.Event()

    def agent(_: Episode) -> None:
        begun.set()
        taken.wait(LIMIT)

    def other() -> None:
        assert begun.wait(LIMIT)
        mine = next(iter(ledger.rows()))
        assert ledger.abandon(mine.worker) == 1
        (lease,) = ledger.lease("other", 60.0)
        assert ledger.finish(lease, {"who": "other"})
        taken.set()

    thread = threading.Thread(target=other)
    thread.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("deskhand.episodes.run.worker.find_agent", lambda _, **_more: agent)
        news = played(plan)
    thread.join()
    assert [each.kind for each in news] == ["begun", "lost"]
    assert [row.result for row in ledger.rows()] == [{"who": "other"}]


def test_heartbeats_keep_a_lease_and_tell_when_it_is_gone(tmp_path: Path) -> None:
    plan = Plan(str(tmp_path), str(tmp_path / "l.sqlite"), (TASK,), "oracle", lease=0.5, heartbeat=0.05)
    ledger = queued(plan, 1)

    async def agent(_: Episode) -> None:
        # Three leases long; the worker keeps its own.
        await asyncio.sleep(1.5)
        assert ledger.abandon(worker_name()) == 1
        await asyncio.sleep(LIMIT)

    def stolen(_: str, **_more: object) -> Any:
        return agent

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("deskhand.episodes.run.worker.find_agent", stolen)
        stop = Stop()
        news: list[News] = []

        def tell(each: News) -> None:
            news.append(each)
            if each.kind == "lost":
                stop("seen")

        with Worker(plan, stop=stop, tell=tell, pools=DesktopPools()) as worker:
            asyncio.run(asyncio.wait_for(worker.run(), LIMIT))
    assert [each.kind for each in news][:2] == ["begun", "lost"]
    # The heartbeat has ended it, and not the limit of its task.
    lost = news[1].result
    assert lost is not None
    assert (lost["cause"], lost["detail"]) == (Cause.CANCELLED, "another worker has it by now")


def test_a_ledger_that_cannot_be_written_now_is_asked_again(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = queued(plan, 2)
    monkeypatch.setattr(worker_module, "_LEDGER_PAUSE", 0.001)
    finish, failing = ledger.finish, [LedgerError("its disk is full")] * 3

    def unsteady(*arguments: Any) -> bool:
        if failing:
            raise failing.pop()
        return finish(*arguments)

    monkeypatch.setattr(ledger, "finish", unsteady)
    rows = ledger.rows
    monkeypatch.setattr(ledger, "close", lambda: None)
    news = played(plan, ledger=ledger)
    assert Counter(each.kind for each in news) == {"begun": 2, "trouble": 3, "done": 2}
    assert all(row.state is State.DONE for row in rows())


def test_a_ledger_that_stays_broken_ends_the_run_and_says_why(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = queued(plan, 5)
    monkeypatch.setattr(worker_module, "_LEDGER_PAUSE", 0.001)

    def broken(*_: Any) -> bool:
        raise LedgerError("its disk is full")

    monkeypatch.setattr(ledger, "finish", broken)
    pools = DesktopPools()
    with pytest.raises(LedgerError, match="its disk is full"):
        played(plan, ledger=ledger, pools=pools)
    assert pools.closed


def test_a_record_that_cannot_be_begun_is_contained(plan: Plan) -> None:
    ledger = queued(plan, 4)
    full = threading.Event()
    full.set()

    def record(path: Path) -> Kept:
        if "s1" in str(path) and full.is_set():
            if "attempt-2" in str(path):
                full.clear()
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return Kept()

    news = played(plan, record=record)
    assert Counter(each.kind for each in news) == {"begun": 6, "retried": 2, "done": 4}
    by_seed = {row.key.seed: row for row in ledger.rows()}
    assert by_seed[1].failures == {"record_failed": 2}
    assert all(row.result is not None and row.result["success"] for row in by_seed.values())


def test_a_task_or_an_agent_that_is_not_there_is_named_before_anything_begins(plan: Plan) -> None:
    for wrong in ({"tasks": ("no-such-task",)}, {"agent": "nobody"}, {"agent": "episodes.plays:nobody"}):
        other = Plan(**{**{name: getattr(plan, name) for name in plan.__slots__}, **wrong})
        with pytest.raises(EpisodeError, match=r"no such task|there is no agent|nobody"):
            Worker(other)


def test_shards_play_their_own_part(plan: Plan) -> None:
    ledger = queued(plan, 12)
    for part in range(3):
        shard = Plan(**{**{name: getattr(plan, name) for name in plan.__slots__}, "shard": (part, 3)})
        played(shard)
        assert ledger.counts(shard=(part, 3))["queued"] == 0
    assert ledger.counts() == {"queued": 0, "leased": 0, "done": 12}


def test_only_what_the_dead_held_is_given_back(plan: Plan) -> None:
    ledger = queued(plan, 5)
    mine = worker_name()
    host, boot, space, pid, started = mine.split("/")
    dead = f"{host}/{boot}/{space}/{pid}/{int(started) - 1}"
    before_boot = f"{host}/00000000/{space}/{pid}/{started}"
    elsewhere, in_container = f"other-{mine}", f"{host}/{boot}/1/1/1"
    for name in (mine, dead, before_boot, elsewhere, in_container):
        assert ledger.lease(name, 600.0)
    assert abandon_dead(ledger) == 2
    assert {row.worker for row in ledger.rows() if row.state is State.LEASED} == {mine, elsewhere, in_container}
