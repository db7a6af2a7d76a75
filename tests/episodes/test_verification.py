"""Runs that were really played, verified as they are and after somebody has changed something in them."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from deskhand import Secret, Type
from deskhand.episodes.ledger.ledger import Key
from deskhand.episodes.play.attempt import attempt
from deskhand.episodes.play.grading import regrade
from deskhand.episodes.record.frame_store import FrameStore
from deskhand.episodes.record.reader import Recording, open_run
from deskhand.episodes.record.recorder import Recorder
from deskhand.episodes.report.verification import RunVerdict, Verdict, verify_run
from deskhand.episodes.tasks.catalogue import built_in
from deskhand.errors import EpisodeError
from episodes.plays import KEY, Places, Press
from episodes.recorded import cli

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from deskhand.episodes.play.episode import Episode

NOTE, COUNT = "text-write-note", "terminal-count-lines"
FIRST = Key(NOTE, "", 0, 0)


def played(folder: Path, agent: str, *tasks: str) -> Path:
    """A run of tasks on desktops of this machine, as its user makes it."""
    options = ["--agent", agent, "--seeds", "2", "--desktops", "2"]
    command = [sys.executable, "-m", "deskhand", "run", *tasks, *options]
    done = subprocess.run([*command, "--out", str(folder)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the oracle did."""
    return played(tmp_path_factory.mktemp("verified") / "oracle", "oracle", NOTE, COUNT)


@pytest.fixture(scope="module")
def unsolved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the agent that does nothing did."""
    return played(tmp_path_factory.mktemp("verified") / "nothing", "nothing", NOTE, COUNT)


def verified(run: Path) -> RunVerdict:
    with open_run(run) as opened:
        return verify_run(opened, built_in(), now=time.time())


def of_task(found: RunVerdict, task: str) -> tuple[Verdict, str]:
    (each,) = [each for each in found.tasks if each.task == task]
    return each.verdict, "; ".join(each.reasons)


def place(run: Path, key: Key = FIRST, attempt: str = "attempt-1") -> Path:
    return run / "ep" / str(key) / attempt


def edit(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def in_ledger(run: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(run / "episodes.sqlite")) as connection, connection:
        assert connection.execute(statement, values).rowcount == 1


def claim(run: Path, key: Key = FIRST, **changes: Any) -> None:
    """Change a result as a careful person would: in the record and in the ledger."""
    path = place(run, key) / "result.json"
    edit(path, **changes)
    whole = json.dumps(json.loads(path.read_text()))
    where = "WHERE task = ? AND variant = ? AND seed = ? AND repeat = ?"
    in_ledger(run, f"UPDATE episodes SET result = ? {where}", whole, *key)


def result_in(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((place(run) / "result.json").read_text())
    return found


@pytest.mark.parametrize("name", ["solved", "unsolved"])
def test_a_run_is_confirmed_as_it_is(name: str, request: pytest.FixtureRequest) -> None:
    run = request.getfixturevalue(name)
    found = verified(run)
    assert (found.verdict, found.problems) == (Verdict.CONFIRMED, ())
    assert sorted((each.task, each.episodes, each.confirmed) for each in found.tasks) == [(COUNT, 2, 2), (NOTE, 2, 2)]
    code, said = cli("verify", str(run))
    assert code == 0
    assert "2 confirmed, 0 differs, 0 cannot be checked" in said
    code, said = cli("verify", str(run), "--json")
    told = json.loads(said)
    assert (code, told["verdict"], len(told["episodes"])) == (0, "confirmed", 4)


@pytest.fixture
def run(unsolved: Path, tmp_path: Path) -> Path:
    return shutil.copytree(unsolved, tmp_path / "submission")


def better(run: Path) -> None:
    claim(run, score=1.0, success=True, reason="all there")


def in_the_ledger_only(run: Path) -> None:
    whole = json.dumps(result_in(run) | {"score": 1.0, "success": True})
    in_ledger(run, "UPDATE episodes SET result = ? WHERE task = ? AND seed = 0", whole, NOTE)


def another_state(run: Path) -> None:
    claim(run, state=dict.fromkeys(result_in(run)["state"], "as wanted"))


def no_row(run: Path) -> None:
    in_ledger(run, "DELETE FROM episodes WHERE task = ? AND seed = 0", NOTE)


def no_record(run: Path) -> None:
    shutil.rmtree(place(run))


def not_done(run: Path) -> None:
    in_ledger(run, "UPDATE episodes SET state = 'queued', result = NULL WHERE task = ? AND seed = 0", NOTE)


def twice(run: Path) -> None:
    shutil.copytree(place(run), place(run, attempt="attempt-2"))


def twice_under_one_number(run: Path) -> None:
    shutil.copytree(place(run), place(run, attempt="attempt-1~1"))


def another_seed(run: Path) -> None:
    other = Key(NOTE, "", 1, 0)
    shutil.rmtree(place(run))
    shutil.copytree(place(run, other), place(run))
    claim(run, seed=0)


def another_seed_with_all_its_names(run: Path) -> None:
    another_seed(run)
    events = place(run) / "events.jsonl"
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    events.write_text("".join(json.dumps(e | ({"seed": 0} if e["kind"] == "begin" else {})) + "\n" for e in lines))


def easier(run: Path) -> None:
    claim(run, parameters=result_in(run)["parameters"] | {"lines": []})


def too_quick(run: Path) -> None:
    claim(run, times=result_in(run)["times"] | {"total": 0.01})


def tomorrow(run: Path) -> None:
    result = result_in(run)
    claim(run, started=result["started"] + 2e5, ended=result["ended"] + 2e5)


def before_the_run(run: Path) -> None:
    result = result_in(run)
    claim(run, started=result["started"] - 2e5, ended=result["ended"] - 2e5)


def cheap(run: Path) -> None:
    events = place(run) / "events.jsonl"
    *lines, end = events.read_text().splitlines()
    spent = json.dumps(json.loads(end) | {"kind": "spend", "input": 10, "output": 1, "cost": 0.5})
    events.write_text("\n".join([*lines, spent, end, ""]))


def long(run: Path) -> None:
    claim(run, steps=1000)


def cut(run: Path) -> None:
    events = place(run) / "events.jsonl"
    events.write_text("".join(events.read_text().splitlines(keepends=True)[:-1]))


def another_answer(run: Path) -> None:
    claim(run, answer="42")


def invalid_without_a_cause(run: Path) -> None:
    claim(run, valid=False, score=None)


def no_result_at_all(run: Path) -> None:
    claim(run, times=None)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (better, "its score was 1.0, and is 0.0 from its end state"),
        (in_the_ledger_only, "the ledger and the record of attempt-1 differ in score, success"),
        (another_state, "its state was {"),
        (no_row, "it was planned, and has no result"),
        (not_done, "it was planned, and has no result"),
        (no_record, "the record of attempt 1, which counts, is missing"),
        (twice, "attempt-2 ended with a result too (score 0.0), which does not count"),
        (twice_under_one_number, "attempt-1~1 ended with a result too (score 0.0)"),
        (another_seed, "its result or its record is of another episode"),
        (another_seed_with_all_its_names, "its seed is "),
        (easier, "its parameters differ between its record"),
        (too_quick, "and all of it 0.0 s"),
        (tomorrow, "it ends in the future"),
        (before_the_run, "it began before its run"),
        (cheap, "its input is 0, and 10 in its record"),
        (long, "it has 1000 steps"),
        (cut, "its record has no end"),
        (another_answer, "its answer differs"),
        (invalid_without_a_cause, "it is said to be invalid, and its cause is None"),
        (no_result_at_all, "its record is damaged"),
    ],
)
def test_a_change_is_found_and_named(run: Path, change: Callable[[Path], None], told: str) -> None:
    change(run)
    found = verified(run)
    verdict, why = of_task(found, NOTE)
    assert (verdict, found.verdict) == (Verdict.DIFFERS, Verdict.DIFFERS)
    assert f"{FIRST}: " in why
    assert told in why
    # The other one is as it was.
    assert of_task(found, COUNT) == (Verdict.CONFIRMED, "")
    code, said = cli("verify", str(run))
    assert code == 1
    assert "1 confirmed, 1 differs, 0 cannot be checked" in said


def test_a_good_attempt_in_place_of_a_bad_one_is_found(run: Path, solved: Path) -> None:
    """The best of two: the first attempt is still there, and the ledger has the second."""
    shutil.copytree(place(solved), place(run, attempt="attempt-2"))
    whole = json.loads((place(run, attempt="attempt-2") / "result.json").read_text()) | {"attempt": 2}
    (place(run, attempt="attempt-2") / "result.json").write_text(json.dumps(whole))
    in_ledger(run, "UPDATE episodes SET attempt = 2, result = ? WHERE task = ? AND seed = 0", json.dumps(whole), NOTE)
    verdict, why = of_task(verified(run), NOTE)
    assert verdict is Verdict.DIFFERS
    assert "attempt-1 ended with a result too (score 0.0), which does not count" in why


def test_an_attempt_that_had_to_be_repeated_is_no_difference(run: Path) -> None:
    shutil.copytree(place(run), place(run, attempt="attempt-2"))
    lost = {"valid": False, "score": None, "success": False, "cause": "desktop_lost"}
    edit(place(run) / "result.json", **lost)
    whole = result_in(run) | {"attempt": 2, "failures": {"desktop_lost": 1}, "retries": 1}
    whole |= {"valid": True, "score": 0.0, "cause": None}
    (place(run, attempt="attempt-2") / "result.json").write_text(json.dumps(whole))
    in_ledger(
        run, "UPDATE episodes SET attempt = 2, failures = ?, result = ? WHERE task = ? AND seed = 0",
        json.dumps(whole["failures"]), json.dumps(whole), NOTE,
    )  # fmt: skip
    assert verified(run).verdict is Verdict.CONFIRMED


def test_another_seed_of_the_run_is_another_run(run: Path) -> None:
    edit(run / "manifest.json", run_seed=7)
    found = verified(run)
    assert {each.verdict for each in found.tasks} == {Verdict.DIFFERS}
    assert "and the plan's is" in of_task(found, NOTE)[1]


def test_a_task_that_is_another_one_than_here_differs(run: Path) -> None:
    tasks = json.loads((run / "manifest.json").read_text())["tasks"]
    edit(run / "manifest.json", tasks=tasks | {NOTE: "0" * 64})
    found = verified(run)
    verdict, why = of_task(found, NOTE)
    assert verdict is Verdict.DIFFERS
    assert "its task differs from the one here: digest '000000000000'" in why
    assert of_task(found, COUNT)[0] is Verdict.CONFIRMED


def test_more_than_was_planned_is_named(run: Path) -> None:
    edit(run / "manifest.json", seeds=1)
    found = verified(run)
    assert found.verdict is Verdict.DIFFERS
    assert f"{NOTE}.s1.r0 is in the ledger, and was not planned" in found.problems
    assert f"the folder '{NOTE}.s1.r0' has attempts, and is of no planned episode" in found.problems


def test_what_was_planned_and_never_played_is_named(run: Path) -> None:
    edit(run / "manifest.json", repeats=2)
    verdict, why = of_task(verified(run), NOTE)
    assert verdict is Verdict.DIFFERS
    assert f"{NOTE}.s0.r1: it was planned, and has no result" in why


def test_what_was_queued_before_a_limit_is_verified_too(run: Path) -> None:
    edit(run / "manifest.json", limit=1)
    found = verified(run)
    assert (found.verdict, len(found.episodes)) == (Verdict.CONFIRMED, 4)
    in_ledger(run, "DELETE FROM episodes WHERE task = ? AND seed = 1", NOTE)
    assert verified(run).problems == ()


def test_a_run_without_its_ledger_is_verified_by_its_records(run: Path) -> None:
    (run / "episodes.sqlite").unlink()
    assert verified(run).verdict is Verdict.CONFIRMED
    better_one = {"score": 1.0, "success": True}
    edit(place(run) / "result.json", **better_one)
    assert "its score was 1.0, and is 0.0" in of_task(verified(run), NOTE)[1]


# --- what cannot be checked ---


def without_end_state(run: Path) -> None:
    (place(run) / "end_state.json").unlink()


def without_an_answer(run: Path) -> None:
    edit(place(run) / "end_state.json", answers=[])


def lacking(run: Path) -> None:
    edit(place(run) / "end_state.json", answers=[], lacking="it is too large to be kept")


def hidden_failure(run: Path) -> None:
    claim(run, valid=False, score=None, success=False, cause="model_provider")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (without_end_state, "its record has no end state"),
        (without_an_answer, "its evaluation asks for what was not kept: read "),
        (lacking, "its record has no end state: it is too large to be kept"),
        (hidden_failure, "it is invalid (model_provider), so that there is no end state"),
    ],
)
def test_what_cannot_be_checked_is_not_confirmed(run: Path, change: Callable[[Path], None], told: str) -> None:
    change(run)
    verdict, why = of_task(verified(run), NOTE)
    assert verdict is Verdict.UNCHECKED
    assert told in why
    code, said = cli("verify", str(run))
    assert code == 1
    assert "1 confirmed, 0 differs, 1 cannot be checked" in said


def test_a_task_that_is_not_here_cannot_be_checked(run: Path) -> None:
    with open_run(run) as opened:
        found = verify_run(opened, {COUNT: built_in()[COUNT]}, now=time.time())
    assert found.verdict is Verdict.UNCHECKED
    assert "name it with --task if you trust its code" in of_task(found, NOTE)[1]


def test_a_task_that_is_evaluated_by_acting_cannot_be_checked(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(built_in()[NOTE]), "evaluates_once", True)
    verdict, why = of_task(verified(run), NOTE)
    assert verdict is Verdict.UNCHECKED
    assert "evaluated by acting on the desktop" in why


TASK = """
def setup(context):
    context.write("before.txt", "x")
def evaluate(context):
    return context.text("after.txt") == context.text("before.txt") and "xterm" not in " ".join(context.processes())
def oracle(context):
    context.write("after.txt", "x")
"""


def test_a_task_of_ones_own_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "copy-x"
    folder.mkdir()
    (folder / "task.toml").write_text('instruction = "Copy it."\ntags = ["text"]\n')
    (folder / "task.py").write_text(TASK)
    run = played(tmp_path / "run", "oracle", str(folder))
    code, said = cli("verify", str(run))
    assert code == 1
    assert "its task is not here: name it with --task" in said
    code, said = cli("verify", str(run), "--task", str(folder))
    assert (code, "1 confirmed, 0 differs, 0 cannot be checked" in said) == (0, True)
    (folder / "task.py").write_text(TASK + "# easier\n")
    assert "its task differs from the one here" in cli("verify", str(run), "--task", str(folder))[1]


@pytest.mark.usefixtures("quick")
def test_a_task_that_looks_at_the_desktop_itself_cannot_be_checked(tmp_path: Path) -> None:
    with FrameStore(tmp_path / "frames") as frames:
        folder = tmp_path / "ep" / str(KEY) / "attempt-1"
        result = attempt(Press(), KEY, Places(), "oracle", Recorder(folder, frames))
        state = Recording.open(folder, frames).end_state
    assert result["success"]
    assert state is not None
    grade, why = regrade(Press(), state, result["parameters"], result["answer"])
    assert grade is None
    assert why == "its evaluation asks for what was not kept: what the desktop itself showed"


@pytest.mark.usefixtures("quick")
def test_a_secret_leaves_no_end_state(tmp_path: Path) -> None:
    class Reads(Press):
        def evaluate(self, context: Any) -> float:
            path = tmp_path / "typed.txt"
            path.write_text("Canary7Quxblorf")
            return float(context.text(str(path)) is None)

    def agent(episode: Episode) -> None:
        if secret:
            episode.desktop.perform(Type(Secret("Canary7Quxblorf")), settle=False)

    for secret in (False, True):
        with FrameStore(tmp_path / f"frames-{secret}") as frames:
            folder = tmp_path / str(secret) / "ep" / str(KEY) / "attempt-1"
            attempt(Reads(), KEY, Places(), agent, Recorder(folder, frames))
        kept = (folder / "end_state.json").read_text()
        assert ("Canary7Quxblorf" in kept) is not secret
        assert ("a secret was typed" in kept) is secret


# --- what a hostile run does ---


def test_nothing_of_a_run_is_imported(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marker = tmp_path / "marker"
    (tmp_path / "evil.py").write_text(f"open({str(marker)!r}, 'w').close()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    tasks = json.loads((run / "manifest.json").read_text())["tasks"]
    edit(run / "manifest.json", tasks=tasks | {"evil": "0"}, select=["evil:Evil", "./evil"], agent="evil:act")
    found = verified(run)
    assert of_task(found, "evil")[0] is Verdict.DIFFERS
    assert not marker.exists()


@pytest.mark.timeout(120)
def test_a_link_a_pipe_and_a_huge_file_in_place_of_the_end_state_are_refused(run: Path, tmp_path: Path) -> None:
    path = place(run) / "end_state.json"
    whole = path.read_bytes()
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert "is a symbolic link" in of_task(verified(run), NOTE)[1]
    path.unlink()
    os.mkfifo(path)
    assert "is not a file" in of_task(verified(run), NOTE)[1]
    path.unlink()
    path.write_bytes(whole)
    os.truncate(path, 1 << 40)
    assert "which is too large" in of_task(verified(run), NOTE)[1]
    for text in ("[" * 100_000, "7", '{"version": 1}', '{"version": 1, "home": "", "lacking": "", "answers": [7]}'):
        path.write_text(text)
        verdict, why = of_task(verified(run), NOTE)
        assert verdict is Verdict.DIFFERS
        assert "end_state.json" in why


def test_texts_of_a_run_do_not_reach_the_terminal_as_they_are(run: Path) -> None:
    claim(run, cause="\x1b[31mred\u202e", answer="\x1b]0;title\x07" + "x" * 10_000)
    (run / "ep" / "\x1b[2J").mkdir()
    shutil.copytree(place(run), run / "ep" / "\x1b[2J" / "attempt-1")
    _, said = cli("verify", str(run))
    assert "\x1b" not in said
    assert "\u202e" not in said
    assert len(said) < 10_000
    assert "has attempts, and is of no planned episode" in said


@pytest.mark.parametrize(
    "change",
    [
        {"tasks": None},
        {"seeds": "2"},
        {"seeds": 10**9},
        {"repeats": 0},
        {"run_seed": None},
        {"limit": "1"},
        {"tasks": {"../../x": ""}},
    ],
)
def test_a_plan_that_is_none_is_refused(run: Path, change: dict[str, Any]) -> None:
    edit(run / "manifest.json", **change)
    with pytest.raises(EpisodeError):
        verified(run)


def test_a_ledger_of_another_form_is_refused(run: Path) -> None:
    in_ledger(run, "UPDATE episodes SET result = '[' WHERE task = ? AND seed = 0", NOTE)
    with pytest.raises(EpisodeError, match="is damaged"):
        verified(run)
