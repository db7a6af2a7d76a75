"""Runs of somebody else's: what is in their folders is data, and becomes code only where the user says so."""

from __future__ import annotations

import json
import os
import sqlite3
import tracemalloc
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

import deskhand
from deskhand.backends.memory import MemoryBackend
from deskhand.episodes.ledger import open_ledger
from deskhand.episodes.ledger.ledger import Key
from deskhand.episodes.play.agents import find_agent
from deskhand.episodes.play.attempt import attempt
from deskhand.episodes.play.replay import replay, tasks_of
from deskhand.episodes.record.frame_store import FrameStore
from deskhand.episodes.record.reader import key_of, open_run
from deskhand.episodes.record.recorder import Recorder
from deskhand.episodes.run.run import begin
from deskhand.episodes.tasks.catalogue import built_in, digest, ships
from deskhand.errors import EpisodeError, LedgerError
from episodes.editing import Again
from episodes.plays import Places
from episodes.recorded import cli, manifest, result_of

if TYPE_CHECKING:
    from pathlib import Path

SHIPPED = "text-write-note"
KEY = Key(SHIPPED, "", 0, 0)
EVIL = """
import os
open(os.environ["MARKER"], "w").close()
from deskhand.episodes.tasks.task import Task
class Evil(Task):
    name = "evil"
def act(episode):
    return None
setup = evaluate = oracle = act
"""


@pytest.fixture
def marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What somebody's module writes when it is imported; it is on the path, and in the folder where the command runs."""
    place = tmp_path / "cwd"
    place.mkdir()
    (place / "evil.py").write_text(EVIL)
    folder = place / "evil-task"
    folder.mkdir()
    (folder / "task.toml").write_text('name = "evil"\nlevel = 1\ninstruction = "Do."\n')
    (folder / "task.py").write_text(EVIL)
    monkeypatch.chdir(place)
    monkeypatch.syspath_prepend(str(place))
    monkeypatch.setenv("MARKER", str(tmp_path / "marker"))
    return tmp_path / "marker"


def foreign(run: Path, marker: Path, key: Key = KEY, **more: Any) -> Path:
    """A run as its folder may come from anywhere: its record has commands that leave a mark."""
    run.mkdir()
    settings: dict[str, Any] = {
        "backend": "local", "image": None, "limit": None, "ledger": "episodes.sqlite", "agent": "oracle",
        "select": [key.task], "started": 0.0, "tasks": {key.task: "0" * 64}, "seeds": 1,
    }  # fmt: skip
    (run / "manifest.json").write_text(json.dumps(manifest(**(settings | more))))
    with FrameStore(run / "frames") as frames:
        recorder = Recorder(run / "ep" / str(key) / "attempt-1", frames)
        recorder.event("begin", **key._asdict(), parameters={})
        recorder.event("shell", command=f"touch {marker}", exit_code=0, stdout="", stderr="")
        recorder.event("start", argv=["touch", str(marker)])
        recorder.event("answer", text="done")
        recorder.finish(result_of(key))
        recorder.close()
    return run


@pytest.mark.parametrize("select", ["evil:Evil", "os:path", "evil-task", "./evil-task", "/abs/evil-task"])
def test_a_manifest_imports_nothing(tmp_path: Path, marker: Path, select: str) -> None:
    name = select.replace("/abs", str(tmp_path / "cwd"))
    run = foreign(tmp_path / "run", marker, Key("evil", "", 0, 0), select=[name])
    code, said = cli("replay", str(run), "--backend", "docker")
    assert code != 0
    assert "do not ship with deskhand" in said
    assert "with --task" in said
    # Nor does going on with it.
    with pytest.raises(EpisodeError, match="If you trust it, give it again"):
        begin(run)
    assert not marker.exists()
    # Who names it has it.
    if select == "evil-task":
        with open_run(run) as opened:
            assert [task.name for task in tasks_of(opened, named=["./evil-task"])] == ["evil"]
        assert marker.exists()


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"agent": "evil:act"}, "--agent 'evil:act'"),
        ({"agent": "replay:/somewhere", "backend": "docker"}, "--agent 'replay:/somewhere'"),
        ({"agent": "replay:/somewhere"}, "if you trust the record, --host"),
        ({"ledger": "postgresql://collector.example/x"}, "--ledger 'postgresql://collector.example/x'"),
        ({"ledger": "../elsewhere.sqlite"}, "--ledger '../elsewhere.sqlite'"),
        ({"select": ["text-*", "evil:Evil"]}, "the task 'evil:Evil'"),
        ({"select": [["evil:Evil"]]}, "the task ['evil:Evil']"),
    ],
)
def test_going_on_with_a_foreign_run_runs_nothing_of_it(
    tmp_path: Path, marker: Path, more: dict[str, Any], told: str
) -> None:
    run = foreign(tmp_path / "run", marker, **more)
    with pytest.raises(EpisodeError) as refused:
        begin(run)
    assert told in str(refused.value)
    assert not marker.exists()
    assert not (tmp_path / "elsewhere.sqlite").exists()


@pytest.mark.parametrize("options", [[], ["--backend", "local"], ["--host"]])
def test_nothing_is_done_here_unless_it_is_allowed(tmp_path: Path, marker: Path, options: list[str]) -> None:
    run = foreign(tmp_path / "run", marker)
    code, said = cli("replay", str(run), *options)
    assert code == 2
    assert "--backend docker" in said
    assert "--backend local --host" in said
    code, said = cli("run", SHIPPED, "--agent", f"replay:{run}", "--out", str(tmp_path / "out"))
    assert code == 1
    assert "with your rights" in said
    assert "--host" in said
    assert not marker.exists()
    assert not (tmp_path / "out").exists()


def test_recorded_commands_are_refused_on_a_desktop_of_this_machine(tmp_path: Path, marker: Path) -> None:
    """Also where the command line is not in between."""
    run = foreign(tmp_path / "run", marker)
    for agent, allowed in ((find_agent(f"replay:{run}"), False), (find_agent(f"replay:{run}", host=True), True)):
        marker.unlink(missing_ok=True)
        with FrameStore(tmp_path / "frames") as frames:
            recorder = Recorder(tmp_path / f"again-{allowed}" / str(KEY) / "attempt-1", frames)
            result = attempt(Again(), KEY, Places(lambda _: None), agent, recorder)
        assert marker.exists() is allowed, result
        if not allowed:
            assert "(--backend docker)" in result["detail"]
            assert "--host" in result["detail"]
    marker.unlink()
    with open_run(foreign(tmp_path / "other", marker, Key("press", "", 0, 0))) as opened:
        places = Places(lambda _: None)
        (found,) = replay(opened, tmp_path / "out", lambda _: places, [Again()])
        assert "with your rights" in found.note
    assert not marker.exists()


def test_what_ships_is_told_from_what_is_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("mine", "text-[x]"):
        (tmp_path / name).mkdir()
    for wanted in (SHIPPED, "text-*", "tag:text", "level:2", "*"):
        assert ships(wanted), wanted
    for wanted in (
        "mine",
        "text-[x]",
        ".",
        "..",
        "./mine",
        "/tmp",
        "os:path",
        "a.b:C",
        "",
        None,
        ["x"],
        "no-such-task",
    ):
        assert not ships(wanted), wanted


@pytest.mark.parametrize(
    "key",
    [
        {"task": "../../../etc/cron.d/x"},
        {"task": "..", "variant": "x"},
        {"task": "/abs"},
        {"variant": "../../x"},
        {"variant": "a/b"},
        {"task": "a\n"},
        {"task": "a" * 300},
        {"seed": -1},
        {"seed": 10**200},
        {"seed": float("inf")},
        {"repeat": None},
        {"task": ""},
    ],
)
def test_ids_that_are_paths_are_refused(tmp_path: Path, marker: Path, key: dict[str, Any]) -> None:
    run = foreign(tmp_path / "run", marker)
    whole = KEY._asdict() | key
    with pytest.raises(EpisodeError):
        key_of(whole)
    path = run / "ep" / str(KEY) / "attempt-1" / "result.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | whole))
    code, said = cli("replay", str(run), "--backend", "docker", "--out", str(tmp_path / "out"))
    assert code == 1
    assert "episode" in said
    assert not (tmp_path / "out").exists()


EVENTS = f"ep/{KEY}/attempt-1/events.jsonl"


def read_all(run: Path) -> None:
    with open_run(run) as opened:
        for result in opened.results():
            assert opened.recording(result).events


def link(path: Path, target: Path) -> None:
    path.rename(target)
    path.symlink_to(target)


@pytest.mark.parametrize(
    "part", ["manifest.json", EVENTS, f"ep/{KEY}/attempt-1/result.json", f"ep/{KEY}/attempt-1", f"ep/{KEY}", "ep"]
)
def test_links_out_of_a_runs_folder_are_refused(tmp_path: Path, marker: Path, part: str) -> None:
    run = foreign(tmp_path / "run", marker)
    link(run / part, tmp_path / "elsewhere")
    with pytest.raises(EpisodeError, match=r"(link|leads out)"):
        read_all(run)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("part", ["manifest.json", EVENTS])
def test_a_pipe_in_place_of_a_file_is_not_waited_for(tmp_path: Path, marker: Path, part: str) -> None:
    run = foreign(tmp_path / "run", marker)
    (run / part).unlink()
    os.mkfifo(run / part)
    code, said = cli("replay", str(run), "--backend", "docker")
    assert code == 1
    assert "is no" in said or "has no" in said


@pytest.mark.parametrize("part", ["manifest.json", EVENTS, f"ep/{KEY}/attempt-1/result.json"])
def test_a_huge_file_is_not_read(tmp_path: Path, marker: Path, part: str) -> None:
    run = foreign(tmp_path / "run", marker)
    os.truncate(run / part, 1 << 40)
    tracemalloc.start()
    try:
        with pytest.raises(EpisodeError, match="more than"):
            read_all(run)
        assert tracemalloc.get_traced_memory()[1] < 300 << 20
    finally:
        tracemalloc.stop()


def test_events_without_end_and_depth_are_refused(tmp_path: Path, marker: Path) -> None:
    run = foreign(tmp_path / "run", marker)
    for text, told in (('{"kind":"x"}\n' * 200_000, "more than 100000 events"), ("[" * 200_000, "too deeply")):
        (run / EVENTS).write_text(text)
        with open_run(run) as opened, pytest.raises(EpisodeError, match=told):
            assert opened.recording(str(KEY)).events is None
    (run / "manifest.json").write_text("[" * 200_000)
    with pytest.raises(EpisodeError, match="not JSON"):
        open_run(run)
    with pytest.raises(EpisodeError, match="cannot be read"):
        begin(run)


@pytest.mark.parametrize(
    "event",
    [
        {"kind": "perform", "actions": "x", "t": 1, "seconds": 1},
        {"kind": "perform", "actions": [1], "t": 1, "seconds": 1},
        {"kind": "perform", "actions": [], "t": "x", "seconds": 1},
        {"kind": "start", "argv": "xterm"},
        {"kind": "start", "argv": []},
        {"kind": "shell", "command": ["ls"]},
        {"kind": "frame", "home": "/"},
        {"kind": "frame", "home": 7},
    ],
)
def test_damaged_calls_are_named(tmp_path: Path, marker: Path, event: dict[str, Any]) -> None:
    run = foreign(tmp_path / "run", marker)
    (run / EVENTS).write_text(json.dumps(event) + "\n")
    with FrameStore(tmp_path / "frames") as frames:
        recorder = Recorder(tmp_path / "again" / str(KEY) / "attempt-1", frames)
        result = attempt(Again(), KEY, Places(lambda _: None), find_agent(f"replay:{run}", host=True), recorder)
    assert "is damaged" in result["detail"]


def test_a_ledger_that_computes_or_leads_elsewhere_is_refused(tmp_path: Path, marker: Path) -> None:
    run = foreign(tmp_path / "run", marker)
    path = run / "episodes.sqlite"
    open_ledger(path).close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "CREATE VIEW more AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT i FROM n"
        )
    with pytest.raises(LedgerError, match="views or triggers"), open_run(run) as opened:
        opened.results()
    link(path, tmp_path / "elsewhere")
    with pytest.raises(EpisodeError, match="is a link"), open_run(run) as opened:
        opened.results()


def test_the_memory_desktop_of_these_tests_is_of_this_machine() -> None:
    with deskhand.Desktop(MemoryBackend((64, 48))) as desktop:
        assert not desktop.has_machine
    assert digest(built_in()[SHIPPED])
