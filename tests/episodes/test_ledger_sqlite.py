"""What only a ledger in a file can meet: a damaged file, a full disk, a lock, a clock that is injected."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from deskhand.episodes.ledger import ledger_name, open_ledger
from deskhand.episodes.ledger.ledger import Key
from deskhand.episodes.ledger.sqlite import SqliteLedger
from deskhand.errors import LedgerError

if TYPE_CHECKING:
    from pathlib import Path

KEYS = [Key("calc-sum", "", seed, 0) for seed in range(50)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "episodes.sqlite"


def test_time_is_the_clocks(path: Path) -> None:
    now = 1000.0
    ledger = open_ledger(path, clock=lambda: now)
    ledger.add(KEYS[:1])
    (lease,) = ledger.lease("w", 30)
    now = 1029.9
    assert ledger.lease("v", 30) == []
    assert ledger.renew(lease, 30)
    now = 1059.8
    assert ledger.lease("v", 30) == []
    now = 1059.9
    (lease,) = ledger.lease("v", 30)
    assert ledger.retry(lease, "setup_failed", delay=5)
    now = 1064.8
    assert ledger.lease("v", 30) == []
    now = 1064.9
    assert len(ledger.lease("v", 30)) == 1
    ledger.close()


def test_a_lease_ends_with_the_boot_of_its_machine(path: Path) -> None:
    before = SqliteLedger(path, clock=lambda: 1_000_000.0, boot="first")
    before.add(KEYS[:3])
    held, failed, finished = before.lease("w", 3600, most=3)
    assert before.retry(failed, "setup_failed", delay=3600)
    assert before.finish(finished, {})
    # Who opens it in the same boot changes nothing.
    assert SqliteLedger(path, clock=lambda: 1_000_001.0, boot="first").lease("v", 3600, most=3) == []
    before.close()
    after = SqliteLedger(path, clock=lambda: 10.0, boot="second")
    got = after.lease("v", 3600, most=3)
    assert [lease.key for lease in got] == [held.key, failed.key]
    assert got[0].failures == {"desktop_lost": 1}
    # What was leased since is held, whoever opens it later.
    assert SqliteLedger(path, clock=lambda: 11.0, boot="second").lease("w", 3600, most=3) == []
    assert not after.finish(held, {})
    after.close()


def test_a_file_whose_times_are_of_the_wall_clock_is_gone_on_with(path: Path) -> None:
    """As ledgers had them that name no clock."""
    before = SqliteLedger(path, clock=lambda: 1.8e9)
    before.add(KEYS[:1])
    before.lease("w", 3600)
    before.close()
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM ledger WHERE name = 'clock'")
    connection.close()
    ledger = open_ledger(path)
    assert len(ledger.lease("v", 3600)) == 1
    ledger.close()


def test_an_address_is_a_path(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    for where in (path, str(path), f"sqlite:///{path}", "sqlite:///episodes.sqlite", "episodes.sqlite"):
        ledger = open_ledger(where)
        ledger.add(KEYS[:1])
        assert len(ledger.rows()) == 1
        ledger.close()
    assert ledger_name(f"sqlite:///{path}") == str(path)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"nowhere/x\.sqlite: the file cannot be opened .*: make its directory"):
        open_ledger(tmp_path / "nowhere" / "x.sqlite")


def test_a_file_of_something_else_is_left_alone(path: Path) -> None:
    path.write_bytes(b"PNG, or a letter to somebody." * 100)
    with pytest.raises(LedgerError, match=r"the file is no ledger, or is damaged .*: put it aside"):
        open_ledger(path)
    assert path.read_bytes().startswith(b"PNG, or")
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE photos (name text)")
    connection.close()
    with pytest.raises(LedgerError, match="is an SQLite database of something else: give the path of a ledger"):
        open_ledger(path)


def test_a_damaged_file_is_told(path: Path) -> None:
    ledger = open_ledger(path)
    ledger.add(KEYS)
    ledger.close()
    data = bytearray(path.read_bytes())
    # The first page has the tables' names; what is in them is after it.
    data[4096:] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(LedgerError, match=r"the file is damaged .*: put it aside and run again"):
        open_ledger(path).rows()


def test_a_lock_that_is_not_given_back_is_told(path: Path) -> None:
    ledger = SqliteLedger(path, patience=0.05)
    ledger.add(KEYS[:2])
    (lease,) = ledger.lease("w", 30)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    for call in (lambda: ledger.finish(lease, {}), lambda: SqliteLedger(path, patience=0.05)):
        with pytest.raises(LedgerError, match=r"another process keeps it locked .*: end the process"):
            call()
    other.execute("ROLLBACK")
    other.close()
    assert ledger.finish(lease, {})
    ledger.close()


FULL = """
import resource, sys
from deskhand.episodes.ledger.ledger import Key
from deskhand.episodes.ledger import open_ledger
from deskhand.errors import LedgerError
ledger = open_ledger(sys.argv[1])
ledger.add(Key("calc-sum", "", seed, 0) for seed in range(50))
resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, resource.RLIM_INFINITY))
done = []
try:
    while leases := ledger.lease("w", 3600):
        assert ledger.finish(leases[0], {"text": "x" * 9000})
        done.append(str(leases[0].key))
except LedgerError as error:
    print(error)
try:
    ledger.retry(leases[0], "y" * 100_000)
except LedgerError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
ledger.abandon("w")
while leases := ledger.lease("w", 3600):
    assert ledger.finish(leases[0], {})
    done.append(str(leases[0].key))
print(*done)
"""


def test_a_full_disk_is_told_and_nothing_that_was_finished_is_lost(path: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    first, second, done = ran.stdout.splitlines()
    assert "full (" in first
    assert "make room and run again: what was finished is kept" in first
    assert "full (" in second
    assert sorted(done.split()) == sorted(str(key) for key in KEYS)
    ledger = open_ledger(path)
    long = [row for row in ledger.rows() if row.result and "text" in row.result]
    assert 0 < len(long) < 50
    assert {row.state for row in ledger.rows()} == {"done"}
    ledger.close()
