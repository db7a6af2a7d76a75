"""Files that an earlier revision wrote are read today: runs, audit logs and recordings (`tests/data/before`)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from deskhand.episodes.play.agents import find_agent
from deskhand.episodes.play.replay import tasks_of
from deskhand.episodes.record.reader import open_run
from deskhand.episodes.record.transcript_turns import turns
from deskhand.episodes.run.run import begin
from deskhand.episodes.tasks.catalogue import digest, find_tasks
from deskhand.policy.audit import AuditLog, verify
from episodes.recorded import cli

BEFORE = Path(__file__).parent.parent / "data" / "before"
GREET = str(BEFORE / "greet")
DONE, FAILED = "greet.s0.r0", "greet.s1.r0"
# What the first writer of the log said its head was, before it closed it.
HEAD = "2f01fadbaf266ad4ad1a8e67645c6760c7f0f8b2f9d14775ca992f7fb532835b"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A copy: reading a ledger makes files beside it."""
    return Path(shutil.copytree(BEFORE / "run", tmp_path / "run"))


def test_a_runs_results_and_events_are_read(run: Path) -> None:
    with open_run(run) as opened:
        results = {name: opened.recording(name).result or {} for name in (DONE, FAILED)}
        assert results[DONE]["success"] is True
        assert (results[FAILED]["cause"], results[FAILED]["score"]) == ("agent_error", 0.0)
        recording = opened.recording(DONE)
        kinds = [turn.kind for turn in turns(recording.events)]
        assert kinds == ["perform", "perform", "perform", "look", "start", "shell", "answer"]
        command = next(event for event in recording.events if event["kind"] == "shell")
        assert (command["exit_code"], command["stdout"], command["stderr"]) == (3, "naïve ☕\n", "oops\n")
        pictures = [recording.png(str(event["after"])) for event in recording.events if event["kind"] == "perform"]
        assert all(png.startswith(b"\x89PNG") for png in pictures)
        secret = opened.recording(FAILED).events[8]["actions"][0]
        assert secret == {"type": "type", "text": "***", "secret": True}
        # The same source has the same digest, so that a replay does not say that the task has changed.
        (task,) = tasks_of(opened, named=[GREET])
        assert opened.manifest["tasks"]["greet"] == digest(task)


@pytest.mark.parametrize("options", [(), ("--playback",)])
def test_a_report_is_made_of_it(run: Path, options: tuple[str, ...]) -> None:
    assert cli("report", str(run), *options)[0] == 0
    page = (run / "report.html").read_text("utf-8")
    assert DONE in page
    assert "the agent gave up" in page


def test_a_table_is_made_of_it(run: Path) -> None:
    code, table = cli("report", str(run), "--table", "csv")
    assert code == 0
    assert "before_agent:act" in table


@pytest.mark.parametrize("form", ["osworld", "atif", "html"])
def test_it_is_exported(run: Path, tmp_path: Path, form: str) -> None:
    code, said = cli("export", str(run), "--format", form, "--to", str(tmp_path / "to"))
    assert (code, "2 episodes written" in said) == (0, True)
    assert [path for path in (tmp_path / "to").rglob("*") if path.is_file()]


def test_what_a_record_without_end_states_cannot_prove_is_told(run: Path) -> None:
    code, said = cli("verify", str(run), "--task", GREET, "--json")
    assert code == 1
    found = json.loads(said)
    (task,) = found["tasks"]
    assert task["verdict"] == "cannot be checked"
    assert "its record has no end state" in said
    assert "differs" not in {task["verdict"], found["verdict"]}


def test_it_is_replayed_to_the_same_state(run: Path, tmp_path: Path) -> None:
    here = ("--task", GREET, "--backend", "local", "--host")
    code, said = cli("replay", str(run), DONE, *here, "--out", str(tmp_path / "again"), "--json", "--state-only")
    assert code == 0
    (replayed,) = json.loads(said)
    assert replayed["same_state"] is True
    # Other versions of xterm and its fonts draw other pixels.
    assert {each["what"] for each in replayed["differences"]} <= {"frame"}
    assert replayed["note"] == ""


def test_it_is_an_agent_too(run: Path) -> None:
    assert callable(find_agent(f"replay:{run}"))


def test_a_run_from_before_desktops_and_engine_were_kept_goes_on(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "before_agent.py").write_text("def act(episode): ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    manifest = json.loads((run / "manifest.json").read_text())
    assert "desktops" not in manifest
    (run / "manifest.json").write_text(json.dumps(manifest | {"select": [GREET]}))
    begun = begin(run, [GREET], agent="before_agent:act", seeds=3)
    assert (begun.keys, begun.new) == (3, 1)
    assert (begun.manifest["desktops"], begun.manifest["engine"]) == (1, "local")
    assert begun.manifest["tasks"] == {task.name: digest(task) for task in find_tasks([GREET])}


def test_an_audit_log_is_whole_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_bytes((BEFORE / "audit.jsonl").read_bytes())
    path.chmod(0o600)
    code, said = cli("audit", "verify", str(path), "--head", HEAD)
    assert (code, "20 records" in said) == (0, True)
    with AuditLog(path) as log:
        assert log.head
    found = verify(path, head=HEAD)
    assert (found.broken, found.records) == (None, 22)


def test_one_that_was_changed_is_found_out(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_bytes((BEFORE / "audit.jsonl").read_bytes().replace(b"echo denied", b"echo dented"))
    assert verify(path).broken == 12


def test_a_servers_recording_is_played(tmp_path: Path) -> None:
    code, said = cli("replay", str(BEFORE / "screen.rfb"), "-o", str(tmp_path / "last.png"))
    assert code == 0
    assert "96x64" in said
    assert (tmp_path / "last.png").read_bytes().startswith(b"\x89PNG")


def test_one_in_an_encoding_that_was_removed_is_refused(tmp_path: Path) -> None:
    code, said = cli("replay", str(BEFORE / "rre.rfb"), "-o", str(tmp_path / "last.png"))
    assert code == 1
    assert "encoding" in said
    assert not (tmp_path / "last.png").exists()
