"""What every ledger promises, of SQLite and of a real PostgreSQL server alike."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import pickle
import random
import threading
import time
import uuid
from collections import Counter
from multiprocessing import forkserver
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from deskhand.episodes.ledger import ledger_name, open_ledger
from deskhand.episodes.ledger.ledger import Key, Lease, Ledger, Row, State
from deskhand.errors import LedgerError
from episodes.ledger_workers import lease_all, work
from episodes.postgres_server import PostgresServer, postgres

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from multiprocessing.context import ForkServerProcess

__all__ = ["postgres"]

KEYS = [
    Key(task, variant, seed, 0) for task in ("calc-sum", "text-replace") for variant in ("", "dark") for seed in (0, 1)
]
LONG = 3600.0
KINDS = ("sqlite", "postgres")
EVIDENCE = os.environ.get("DESKHAND_EVIDENCE") == "1"
EXAMPLES = dict.fromkeys(KINDS, 500) if EVIDENCE else {"sqlite": 40, "postgres": 10}
KILLED, EPISODES = (200, 2000) if EVIDENCE else (12, 120)

_processes = multiprocessing.get_context("forkserver")


def new_place(kind: str, postgres: PostgresServer, directory: Path) -> str:
    """An address where there is no ledger yet."""
    unique = uuid.uuid4().hex
    return postgres.url(f"run_{unique}") if kind == "postgres" else str(directory / f"{unique}.sqlite")


@pytest.fixture(params=KINDS)
def where(request: pytest.FixtureRequest, postgres: PostgresServer, tmp_path: Path) -> str:
    return new_place(request.param, postgres, tmp_path)


@pytest.fixture
def opened(where: str) -> Iterator[Callable[[], Ledger]]:
    ledgers: list[Ledger] = []

    def open_one() -> Ledger:
        ledgers.append(open_ledger(where))
        return ledgers[-1]

    yield open_one
    for ledger in ledgers:
        ledger.close()


@pytest.fixture
def ledger(opened: Callable[[], Ledger]) -> Ledger:
    ledger = opened()
    assert ledger.add(KEYS) == len(KEYS)
    return ledger


@pytest.fixture(scope="module")
def _quick_processes() -> None:
    """Processes that need not import everything anew. Their server does not know where tests are, other than by this."""
    _processes.set_forkserver_preload(["__main__", "episodes.ledger_workers"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent.parent))
        forkserver.ensure_running()


def row(ledger: Ledger, key: Key) -> Row:
    (found,) = (row for row in ledger.rows() if row.key == key)
    return found


def one(ledger: Ledger, seconds: float = LONG, worker: str = "w") -> Lease:
    (lease,) = ledger.lease(worker, seconds)
    return lease


# ---- what a run is


def test_the_first_to_begin_says_what_the_run_is(opened: Callable[[], Ledger]) -> None:
    first, second = {"version": 1, "agent": "oracle"}, {"version": 1, "agent": "nothing"}
    one_of_them, other = opened(), opened()
    assert one_of_them.begin(first) == first
    assert other.begin(second) == first
    assert one_of_them.begin(first) == first
    assert opened().begin(second) == first


def test_a_run_begun_with_another_version_of_the_manifest_is_refused(opened: Callable[[], Ledger]) -> None:
    opened().begin({"version": 7, "deskhand": "3.2.1"})
    with pytest.raises(LedgerError, match=r"manifest of version 7.* writes version 1: go on with .*3\.2\.1.*new run"):
        opened().begin({"version": 1, "deskhand": "0.1.0"})


def test_a_ledger_of_another_version_is_refused(where: str, postgres: PostgresServer) -> None:
    open_ledger(where).close()
    change = "UPDATE ledger SET value = '2' WHERE name = 'version'"
    if where.startswith("postgresql"):
        schema = where.rpartition("=")[2]
        postgres.query(change.replace("ledger", f"{schema}.ledger"))
    else:
        import sqlite3  # noqa: PLC0415 # only here: the ledger itself is not asked

        with sqlite3.connect(where) as connection:
            connection.execute(change)
        connection.close()
    with pytest.raises(LedgerError, match=r"is of version 2 \(deskhand .*reads version 1: go on with .*new run"):
        open_ledger(where)


def test_episodes_are_queued_once_and_leased_in_the_order_in_which_they_were_added(
    opened: Callable[[], Ledger],
) -> None:
    ledger = opened()
    order = random.Random(4).sample(KEYS, len(KEYS))
    assert ledger.add(order[:3]) == 3
    assert ledger.add(order[1:5] + order[1:5]) == 2
    assert ledger.add(iter(order)) == len(order) - 5
    assert ledger.add([]) == 0
    assert [lease.key for lease in ledger.lease("w", LONG, most=100)] == order
    assert ledger.add(order) == 0
    assert ledger.counts() == {State.QUEUED: 0, State.LEASED: len(order), State.DONE: 0}
    assert [row.key for row in ledger.rows()] == sorted(order)


def test_everything_is_there_when_it_is_opened_again(opened: Callable[[], Ledger], ledger: Ledger) -> None:
    awkward = {
        "text": "\u00e9t\u00e9 \u4f60\U0001f600",
        "nul": "\0",
        "half": "\ud800",
        "deep": {"list": [1, 2.5, None, True]},
    }
    lease = one(ledger, worker="w\u00e9 %s :x ;--")
    assert ledger.finish(lease, awkward)
    other = opened()
    assert other.rows() == ledger.rows()
    found = row(other, lease.key)
    assert found == Row(lease.key, State.DONE, 1, "w\u00e9 %s :x ;--", awkward, {})
    ledger.close()
    ledger.close()
    assert row(other, lease.key) == found


# ---- leases


def test_what_is_leased_is_nobody_elses(opened: Callable[[], Ledger], ledger: Ledger) -> None:
    mine = ledger.lease("a", LONG, most=3)
    theirs = opened().lease("b", LONG, most=100)
    assert [lease.key for lease in [*mine, *theirs]] == KEYS
    assert {lease.attempt for lease in [*mine, *theirs]} == {1}
    assert ledger.lease("a", LONG, most=100) == []
    assert row(ledger, mine[0].key).worker == "a"


def test_a_lease_that_ran_out_is_anothers_and_counts_as_lost(ledger: Ledger) -> None:
    late = one(ledger, 0.0, "a")
    taken = one(ledger, LONG, "b")
    assert (taken.key, taken.attempt, taken.failures) == (late.key, 2, {"desktop_lost": 1})
    assert taken.token != late.token
    before = row(ledger, late.key)
    assert not ledger.renew(late, LONG)
    assert not ledger.finish(late, {"score": 1})
    assert not ledger.retry(late, "setup_failed")
    assert not ledger.release(late)
    assert row(ledger, late.key) == before == Row(late.key, State.LEASED, 2, "b", None, {"desktop_lost": 1})
    assert ledger.finish(taken, {"score": 0})
    assert row(ledger, late.key).result == {"score": 0}


def test_a_lease_that_ran_out_and_that_nobody_took_is_still_held(ledger: Ledger) -> None:
    late = one(ledger, 0.0)
    assert ledger.renew(late, LONG)
    assert one(ledger).key != late.key
    late = one(ledger, 0.0)
    assert ledger.finish(late, {"score": 1})
    assert row(ledger, late.key).failures == {}


def test_a_result_is_written_once(opened: Callable[[], Ledger], ledger: Ledger) -> None:
    lease = pickle.loads(pickle.dumps(one(ledger)))
    assert ledger.finish(lease, {"score": 1})
    other = opened()
    for again in (ledger, other):
        assert not again.finish(lease, {"score": 0})
        assert not again.retry(lease, "setup_failed")
        assert not again.release(lease)
        assert not again.renew(lease, 0.0)
    assert other.abandon("w") == 0
    assert row(ledger, lease.key) == Row(lease.key, State.DONE, 1, "w", {"score": 1}, {})


def test_a_result_that_is_no_json_changes_nothing(ledger: Ledger) -> None:
    lease = one(ledger)
    before = ledger.rows()
    with pytest.raises(ValueError, match="JSON compliant"):
        ledger.finish(lease, {"score": float("nan")})
    with pytest.raises(TypeError, match="not JSON serializable"):
        ledger.finish(lease, {"score": object()})
    assert ledger.rows() == before
    assert ledger.finish(lease, {})


def test_a_retry_counts_its_cause_and_waits(ledger: Ledger) -> None:
    first = one(ledger)
    assert ledger.retry(first, "setup_failed")
    second = one(ledger)
    assert (second.key, second.attempt, second.failures) == (first.key, 2, {"setup_failed": 1})
    assert ledger.retry(second, "setup_failed", delay=LONG)
    assert row(ledger, first.key) == Row(first.key, State.QUEUED, 2, "w", None, {"setup_failed": 2})
    assert first.key not in [lease.key for lease in ledger.lease("w", LONG, most=100)]
    assert not ledger.retry(second, "setup_failed")


def test_what_is_given_back_has_not_failed_and_keeps_its_number(ledger: Ledger) -> None:
    late = one(ledger, 0.0)
    lease = one(ledger)
    assert ledger.release(lease)
    assert row(ledger, lease.key) == Row(late.key, State.QUEUED, 2, "w", None, {"desktop_lost": 1})
    again = one(ledger)
    assert (again.key, again.attempt, again.failures) == (lease.key, 3, {"desktop_lost": 1})


def test_what_a_dead_worker_held_is_given_back_at_once(ledger: Ledger) -> None:
    held = ledger.lease("dead", LONG, most=3)
    kept = one(ledger, worker="alive")
    assert ledger.finish(held[0], {})
    assert ledger.abandon("dead") == 2
    assert ledger.abandon("dead") == 0
    assert ledger.abandon("nobody") == 0
    assert not ledger.finish(held[1], {})
    assert ledger.renew(kept, LONG)
    taken = ledger.lease("w", LONG, most=2)
    assert [lease.key for lease in taken] == [lease.key for lease in held[1:]]
    assert [lease.failures for lease in taken] == [{"desktop_lost": 1}] * 2


@pytest.mark.parametrize("shards", [1, 2, 3, 7])
def test_shards_divide_the_episodes(ledger: Ledger, shards: int) -> None:
    of_shard = [[lease.key for lease in ledger.lease("w", LONG, most=100, shard=(i, shards))] for i in range(shards)]
    assert sorted(itertools.chain(*of_shard)) == sorted(KEYS)
    for i, keys in enumerate(of_shard):
        assert {key.spread % shards for key in keys} <= {i}
        assert ledger.counts(shard=(i, shards))[State.LEASED] == len(keys)
        assert sum(ledger.counts(shard=(i, shards)).values()) == len(keys)


def test_the_shard_of_an_episode_is_the_same_everywhere() -> None:
    assert [key.spread for key in KEYS[:3]] == [198047410, 731360754, 16450235]
    many = Counter(Key("calc-sum", "", seed, 0).spread % 4 for seed in range(4000))
    assert all(900 < count < 1100 for count in many.values()), many


# ---- against a model, with every order of calls


class Model(RuleBasedStateMachine):
    """Two connections to one ledger, and a dictionary that says what must be in it."""

    kind: str
    server: PostgresServer
    directory: Path

    leases = Bundle("leases")

    def __init__(self) -> None:
        super().__init__()
        where = new_place(self.kind, self.server, self.directory)
        self.ledgers = (open_ledger(where), open_ledger(where))
        self.rows: dict[Key, Row] = {}
        self.tokens: dict[Key, str] = {}
        # From when on it may be leased: now, or not in this test.
        self.free: dict[Key, bool] = {}
        self.manifest: Mapping[str, Any] | None = None
        self.looks = 0

    def teardown(self) -> None:
        for ledger in self.ledgers:
            ledger.close()

    def _held(self, lease: Lease) -> bool:
        return self.rows[lease.key].state == State.LEASED and self.tokens[lease.key] == lease.token

    def _put(self, key: Key, **changes: object) -> None:
        fields = {name: getattr(self.rows[key], name) for name in Row.__slots__}
        self.rows[key] = Row(**{**fields, **changes})

    def _lost(self, key: Key) -> dict[str, int]:
        failures = self.rows[key].failures
        return {**failures, "desktop_lost": failures.get("desktop_lost", 0) + 1}

    which = st.integers(0, 1)
    keys = st.lists(
        st.builds(Key, st.sampled_from("abc"), st.sampled_from(["", "v"]), st.integers(0, 2), st.integers(0, 1))
    )

    @rule(which=which, keys=keys)
    def add(self, which: int, keys: list[Key]) -> None:
        new = [key for key in dict.fromkeys(keys) if key not in self.rows]
        for key in new:
            self.rows[key] = Row(key, State.QUEUED, 0, "", None, {})
            self.free[key] = True
        assert self.ledgers[which].add(keys) == len(new)

    @rule(which=which, agent=st.text())
    def begin(self, which: int, agent: str) -> None:
        manifest = {"version": 1, "agent": agent}
        self.manifest = self.manifest or manifest
        assert self.ledgers[which].begin(manifest) == self.manifest

    @rule(
        target=leases, which=which, worker=st.sampled_from("xy"), long=st.booleans(), most=st.integers(1, 4),
        shard=st.sampled_from([(0, 1), (0, 2), (1, 2), (2, 3)]),
    )  # fmt: skip
    def lease(self, *, which: int, worker: str, long: bool, most: int, shard: tuple[int, int]) -> Any:
        i, n = shard
        may = [key for key in self.rows if self.rows[key].state != "done" and self.free[key] and key.spread % n == i][
            :most
        ]
        got = self.ledgers[which].lease(worker, LONG if long else 0.0, most=most, shard=shard)
        assert [lease.key for lease in got] == may
        for lease in got:
            before = self.rows[lease.key]
            failures = self._lost(lease.key) if before.state == State.LEASED else before.failures
            self._put(lease.key, state=State.LEASED, attempt=before.attempt + 1, worker=worker, failures=failures)
            self.tokens[lease.key] = lease.token
            self.free[lease.key] = not long
            assert lease == Lease(lease.key, before.attempt + 1, worker, lease.token, failures)
        return multiple(*got)

    @rule(which=which, lease=leases, long=st.booleans())
    def renew(self, *, which: int, lease: Lease, long: bool) -> None:
        held = self._held(lease)
        assert self.ledgers[which].renew(lease, LONG if long else 0.0) is held
        if held:
            self.free[lease.key] = not long

    @rule(which=which, lease=leases, score=st.floats(0, 1))
    def finish(self, which: int, lease: Lease, score: float) -> None:
        held = self._held(lease)
        assert self.ledgers[which].finish(lease, {"score": score}) is held
        if held:
            self._put(lease.key, state=State.DONE, result={"score": score})

    @rule(which=which, lease=leases, cause=st.sampled_from(["setup_failed", "desktop_lost"]), wait=st.booleans())
    def retry(self, *, which: int, lease: Lease, cause: str, wait: bool) -> None:
        held = self._held(lease)
        assert self.ledgers[which].retry(lease, cause, delay=LONG if wait else 0.0) is held
        if held:
            failures = self.rows[lease.key].failures
            self._put(lease.key, state=State.QUEUED, failures={**failures, cause: failures.get(cause, 0) + 1})
            self.free[lease.key] = not wait

    @rule(which=which, lease=consumes(leases))
    def release(self, which: int, lease: Lease) -> None:
        held = self._held(lease)
        assert self.ledgers[which].release(lease) is held
        if held:
            self._put(lease.key, state=State.QUEUED)
            self.free[lease.key] = True

    @rule(which=which, worker=st.sampled_from("xyz"))
    def abandon(self, which: int, worker: str) -> None:
        held = [key for key, row in self.rows.items() if (row.state, row.worker) == (State.LEASED, worker)]
        assert self.ledgers[which].abandon(worker) == len(held)
        for key in held:
            self._put(key, state=State.QUEUED, failures=self._lost(key))
            self.free[key] = True

    @invariant()
    def same(self) -> None:
        self.looks += 1
        ledger = self.ledgers[self.looks % 2]
        assert ledger.rows() == [self.rows[key] for key in sorted(self.rows)]
        counts = Counter(row.state for row in self.rows.values())
        assert ledger.counts() == {state: counts[state] for state in State}


@pytest.mark.parametrize("kind", KINDS)
def test_a_ledger_does_what_a_dictionary_would(kind: str, postgres: PostgresServer, tmp_path: Path) -> None:
    machine = type("Model", (Model,), {"kind": kind, "server": postgres, "directory": tmp_path})
    machine.TestCase.settings = settings(max_examples=EXAMPLES[kind], stateful_step_count=40)
    machine.TestCase().runTest()


# ---- many at a time


def test_its_threads_share_it(ledger: Ledger) -> None:
    keys = [Key("many", "", seed, 0) for seed in range(200)]
    ledger.add(keys)
    done: list[Key] = []

    def lease_them() -> None:
        while leases := ledger.lease(threading.current_thread().name, LONG):
            assert ledger.finish(leases[0], {})
            done.append(leases[0].key)

    threads = [threading.Thread(target=lease_them) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == sorted(keys + KEYS)


@pytest.mark.usefixtures("_quick_processes")
def test_eight_processes_lease_400_episodes_each_exactly_once(
    opened: Callable[[], Ledger], where: str, tmp_path: Path
) -> None:
    """They also open it at the same time, and find nothing there: one of them makes it."""
    keys = [Key("many", "", seed, 0) for seed in range(400)]
    told = tmp_path / "told"
    barrier = _processes.Barrier(9)
    workers = [_processes.Process(target=lease_all, args=(where, f"w{i}", str(told), keys, barrier)) for i in range(8)]
    for worker in workers:
        worker.start()
    barrier.wait(300)
    for worker in workers:
        worker.join(300)
        assert worker.exitcode == 0
    lines = [line.split() for line in told.read_text().splitlines()]
    assert sorted(key for key, _, _ in lines) == sorted(str(key) for key in keys)
    assert {attempt for _, _, attempt in lines} == {"1"}
    rows = opened().rows()
    assert [row.key for row in rows] == keys
    assert {str(row.key): row.result for row in rows} == {key: {"worker": name} for key, name, _ in lines}


@pytest.mark.usefixtures("_quick_processes")
def test_processes_that_are_killed_lose_nothing_and_count_nothing_twice(
    opened: Callable[[], Ledger], where: str, tmp_path: Path
) -> None:
    """Killed at random while they lease, renew, finish and give back; each is followed by another."""
    ledger = opened()
    ledger.add(Key("many", "", seed, 0) for seed in range(EPISODES))
    told = tmp_path / "told"
    chance = random.Random(1)
    names = (f"w{i}" for i in itertools.count())

    def start() -> tuple[str, ForkServerProcess]:
        name = next(names)
        worker = _processes.Process(target=work, args=(where, name, str(told), chance.random()))
        worker.start()
        return name, worker

    workers = [start() for _ in range(4)]
    for number in range(KILLED):
        # Killed when it has got so far, wherever that is.
        goal = min(ledger.counts()[State.DONE] + chance.randrange(EPISODES // KILLED), EPISODES - 10)
        deadline = time.monotonic() + 120
        while ledger.counts()[State.DONE] < goal:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        name, victim = workers.pop(0)
        victim.kill()
        victim.join()
        # Of every second one nobody knows that it is dead, until its leases run out.
        if number % 2:
            ledger.abandon(name)
            assert not [row for row in ledger.rows() if row.worker == name and row.state == State.LEASED]
        workers.append(start())
    for _, worker in workers:
        worker.join(300)
        assert worker.exitcode == 0

    rows = ledger.rows()
    assert {row.state for row in rows} == {State.DONE}
    lines = [line.split() for line in told.read_text().splitlines()]
    # A worker may be killed before it could tell; nobody tells of a result that is not there, or of a second one.
    assert len({key for key, _, _ in lines}) == len(lines)
    results = {str(row.key): row.result for row in rows}
    assert {key: {"worker": name, "attempt": int(attempt)} for key, name, attempt in lines}.items() <= results.items()
    for row in rows:
        assert row.result == {"worker": row.worker, "attempt": row.attempt}
    # Some were lost, and each of those is accounted for.
    assert sum(row.failures.get("desktop_lost", 0) for row in rows) >= 1


# ---- addresses, and what is no ledger


def test_a_ledger_that_is_closed_says_so(ledger: Ledger) -> None:
    ledger.close()
    with pytest.raises(LedgerError, match="is closed: open it again"):
        ledger.counts()


def test_a_ledger_that_came_through_a_fork_says_so(ledger: Ledger) -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            ledger.counts()
        except LedgerError as error:
            os.write(writing, str(error).encode())
        finally:
            ledger.close()
            os._exit(0)
    os.waitpid(child, 0)
    assert f"was opened by process {os.getpid()}: open it in each process" in os.read(reading, 9999).decode()
    os.close(reading)
    os.close(writing)
    assert sum(ledger.counts().values()) == len(KEYS)


def test_the_name_of_a_ledger_opens_the_same_one(where: str, ledger: Ledger) -> None:
    assert ledger_name(where) == ledger.name  # type: ignore[attr-defined]
    again = open_ledger(ledger_name(where))
    assert len(again.rows()) == len(KEYS)
    again.close()


@pytest.mark.parametrize("where", ["mysql://u:hunter2@host/db", "sqlite://u:hunter2@relative.sqlite"])
def test_other_addresses_are_refused_without_being_shown(where: str) -> None:
    with pytest.raises(LedgerError, match="is not the address of a ledger: give a path") as caught:
        open_ledger(where)
    assert "hunter2" not in str(caught.value)
