"""What only a ledger on a server can meet: a connection that breaks, a password, other rights."""

from __future__ import annotations

import re
import select
import shutil
import tempfile
import traceback
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from deskhand.episodes.ledger import ledger_name, open_ledger
from deskhand.episodes.ledger.ledger import Key, State
from deskhand.episodes.ledger.postgres import Address, PostgresLedger
from deskhand.errors import LedgerError
from episodes.postgres_server import PASSWORD, PostgresServer, postgres
from ports import refusing

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["postgres"]

KEYS = [Key("calc-sum", "", seed, 0) for seed in range(5)]


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.url(f"run_{uuid.uuid4().hex}")


@pytest.fixture
def ledger(url: str) -> Iterator[PostgresLedger]:
    ledger = PostgresLedger(url)
    ledger.add(KEYS)
    yield ledger
    ledger.close()


def messages(error: BaseException) -> str:
    """All that a user may see of an error, with what caused it."""
    return "".join(traceback.format_exception(error)) + repr(error)


def test_one_schema_is_one_run(postgres: PostgresServer, ledger: PostgresLedger) -> None:
    odd = postgres.url("Run%207%22%3B%20%25s")
    other = open_ledger(odd)
    assert other.rows() == []
    assert other.add(KEYS[:1]) == 1
    assert len(ledger.rows()) == len(KEYS)
    other.close()
    assert postgres.query("""SELECT count(*) FROM "Run 7""; %s".episodes""") == "1"


def test_a_name_has_no_password_and_all_else() -> None:
    name = ledger_name(
        f"postgres://ru%40n:{PASSWORD}@a.example:5433,b.example:5434/my%2Fdb?sslmode=require&sslpassword={PASSWORD}&schema=r7"
    )
    assert name == "postgresql://ru%40n@a.example,b.example:5433,5434/my%2Fdb?sslmode=require&schema=r7"
    assert PASSWORD not in repr(Address.of(f"postgresql://u:{PASSWORD}@h/d"))
    assert Address.of("postgresql://").schema == "deskhand"


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://u:{PASSWORD}@[::1/db",
        f"postgresql://u:{PASSWORD}%zz@h/db",
        f"postgresql://u@h/db?passwd={PASSWORD}",
        f"postgresql://u@h/db?{PASSWORD}",
    ],
)
def test_an_address_that_is_wrong_is_not_shown(url: str) -> None:
    with pytest.raises(LedgerError, match=r"cannot be understood: write postgresql://.* PGPASSWORD") as caught:
        open_ledger(url)
    assert PASSWORD not in messages(caught.value)


def test_a_password_comes_from_the_environment_and_is_in_no_message(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.url(f"run_{uuid.uuid4().hex}", user="runner")
    with pytest.raises(LedgerError, match=r"see that .* PGPASSWORD or PGPASSFILE has the password"):
        open_ledger(url)
    monkeypatch.setenv("PGPASSWORD", "not-" + PASSWORD)
    with pytest.raises(LedgerError, match="PGPASSWORD or PGPASSFILE") as caught:
        open_ledger(url)
    assert PASSWORD not in messages(caught.value)
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    ledger = open_ledger(url)
    assert ledger.add(KEYS) == len(KEYS)
    ledger.close()
    monkeypatch.delenv("PGPASSWORD")
    in_url = url.replace("postgresql:///", f"postgresql://:{PASSWORD}@/")
    ledger = open_ledger(in_url)
    assert len(ledger.rows()) == len(KEYS)
    assert PASSWORD not in str(vars(ledger))
    ledger.close()
    with pytest.raises(LedgerError, match="is closed") as caught:
        ledger.rows()
    assert PASSWORD not in messages(caught.value)


def test_who_may_not_make_a_schema_is_told_so(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    url = postgres.url(f"run_{uuid.uuid4().hex}", user="stranger")
    with pytest.raises(LedgerError, match=r"permission denied for database.*: ask its owner for the right"):
        open_ledger(url)


def test_a_schema_that_is_there_needs_no_right_to_make_one(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = f"run_{uuid.uuid4().hex}"
    postgres.query(f"CREATE SCHEMA {schema} AUTHORIZATION stranger")
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    ledger = open_ledger(postgres.url(schema, user="stranger"))
    assert ledger.add(KEYS) == len(KEYS)
    ledger.close()


def test_a_schema_with_other_tables_is_left_alone(postgres: PostgresServer, url: str) -> None:
    schema = url.rpartition("=")[2]
    postgres.query(f"CREATE SCHEMA {schema}")
    postgres.query(f"CREATE TABLE {schema}.episodes (name text)")
    with pytest.raises(
        LedgerError, match=r"already exists.* the schema has other tables: give another by \?schema=NAME"
    ):
        open_ledger(url)
    assert postgres.query(f"SELECT count(*) FROM pg_tables WHERE schemaname = '{schema}'") == "1"


def test_a_server_that_is_not_there_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"No such file or directory.*see that the server runs"):
        open_ledger(f"postgresql:///postgres?host={tmp_path}")
    with refusing() as port:
        told = rf"ledger postgresql://u@127\.0\.0\.1:{port}/db.*refused.*see that the server runs"
        with pytest.raises(LedgerError, match=told):
            open_ledger(f"postgresql://u:{PASSWORD}@127.0.0.1:{port}/db")


def test_a_database_that_is_not_there_is_told(url: str) -> None:
    with pytest.raises(LedgerError, match=r'database "nowhere" does not exist: see that .* the database is there'):
        open_ledger(url.replace("/postgres?", "/nowhere?"))


def test_a_connection_that_cannot_be_set_up_is_closed(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[psycopg.Connection[Any]] = []
    connect = psycopg.connect

    def kept(*arguments: Any, **options: Any) -> psycopg.Connection[Any]:
        made.append(connect(*arguments, **options))
        return made[-1]

    monkeypatch.setattr(psycopg, "connect", kept)
    monkeypatch.setattr("deskhand.episodes.ledger.postgres._SETTINGS", {"no_such_setting": "1"})
    with pytest.raises(LedgerError, match="no_such_setting"):
        open_ledger(url)
    assert [connection.closed for connection in made] == [True]


def test_a_connection_that_the_server_ends_is_made_anew(postgres: PostgresServer, ledger: PostgresLedger) -> None:
    (lease,) = ledger.lease("w", 3600)
    for _ in range(3):
        assert postgres.query(
            "SELECT bool_and(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'deskhand'"
        )
        assert ledger.counts()[State.LEASED] == 1
    assert ledger.finish(lease, {})


class Breaking:
    """A connection that breaks when a transaction has been committed, and before its client was told."""

    closed = False

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def cursor(self) -> Any:
        return self._connection.cursor()

    def transaction(self) -> Any:
        whole = self._connection.transaction()
        breaking = self

        class Committed:
            def __enter__(self) -> None:
                whole.__enter__()

            def __exit__(self, *error: object) -> None:
                whole.__exit__(*error)
                breaking.close()
                raise psycopg.OperationalError("server closed the connection unexpectedly")

        return Committed()

    def close(self) -> None:
        self.closed = True
        self._connection.close()


def breaking(ledger: PostgresLedger) -> None:
    ledger._connection = Breaking(ledger._connection)


def test_what_was_committed_when_the_connection_broke_is_not_done_again(ledger: PostgresLedger) -> None:
    breaking(ledger)
    leases = ledger.lease("w", 3600, most=3)
    assert ledger.lease("w", 0.0, most=9) != leases
    assert [(lease.key, lease.attempt) for lease in leases] == [(key, 1) for key in KEYS[:3]]
    done, again, back = leases
    breaking(ledger)
    assert ledger.finish(done, {"score": 1})
    breaking(ledger)
    assert ledger.retry(again, "setup_failed")
    breaking(ledger)
    assert ledger.release(back)
    breaking(ledger)
    assert ledger.add([*KEYS, Key("new", "", 0, 0)]) == 0
    rows = {row.key: row for row in ledger.rows()}
    assert len(rows) == len(KEYS) + 1
    assert (rows[done.key].result, rows[again.key].failures, rows[back.key].failures) == (
        {"score": 1},
        {"setup_failed": 1},
        {},
    )


def test_a_server_that_is_restarted_is_waited_for_and_one_that_stays_away_is_not() -> None:
    directory = Path(tempfile.mkdtemp(prefix="deskhand-postgres-"))
    now = 0.0
    waits: list[float] = []
    server = PostgresServer(directory)

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        waits.append(now)
        if len(waits) == 3:
            server.start()

    try:
        server.start()
        ledger = PostgresLedger(server.url("run"), patience=10.0, clock=lambda: now, sleep=sleep)
        ledger.add(KEYS)
        server.stop()
        assert ledger.counts()[State.QUEUED] == len(KEYS)
        assert len(waits) == 3
        server.stop()
        with pytest.raises(LedgerError, match="see that the server runs"):
            ledger.counts()
        assert now > 10
        ledger.close()
    finally:
        server.stop()
        shutil.rmtree(directory)


def test_a_client_that_stops_in_the_middle_keeps_nothing_from_others(url: str, ledger: PostgresLedger) -> None:
    """The server ends its transaction; here at once, where it would be after 20 s."""
    connection = ledger._connection
    assert connection.execute("SHOW idle_in_transaction_session_timeout").fetchone() == ("20s",)
    connection.execute("SET idle_in_transaction_session_timeout = '1ms'")
    tries = []

    def work(transaction: Any, again: bool) -> int:  # noqa: FBT001 # the ledger's own form
        tries.append(again)
        transaction.rows("SELECT 1 FROM episodes FOR UPDATE")
        if len(tries) == 1:
            # The server says that it ends it.
            assert select.select([connection.fileno()], [], [], 120)[0]
        transaction.rows("SELECT 1")
        return len(tries)

    other = PostgresLedger(url)
    assert ledger._do(work) == 2
    assert tries == [False, True]
    assert len(other.lease("w", 3600, most=9)) == len(KEYS)
    other.close()


def test_a_message_of_the_server_is_one_line(ledger: PostgresLedger) -> None:
    with pytest.raises(LedgerError) as caught:
        ledger._do(lambda transaction, _again: transaction.rows("SELECT\n\n1 /\n0"))
    assert re.search(r"ledger postgresql:.*: division by zero.*: the server's log", str(caught.value))
    assert "\n" not in str(caught.value)
