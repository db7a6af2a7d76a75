"""A run is begun, gone on with, added to, stopped and gone on with again; another one is refused with what differs."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from deskhand.cli.group import commands
from deskhand.episodes.ledger import open_ledger
from deskhand.episodes.ledger.ledger import Key, State
from deskhand.episodes.run.manifest import read_manifest
from deskhand.episodes.run.run import begin
from deskhand.errors import EpisodeError
from episodes.plays_here import Number
from episodes.recorded import result_of
from faults.helpers import MARK, in_namespace, marked, until

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deskhand.episodes.run.plan import Plan
    from deskhand.episodes.run.run import Begun

PRESS, NUMBER = "episodes.plays:Press", "episodes.plays_here:Number"
TESTS = Path(__file__).parents[1]
LIMIT = 60.0


def keys(begun: Begun) -> list[Key]:
    ledger = open_ledger(begun.plan.ledger)
    try:
        return [row.key for row in ledger.rows()]
    finally:
        ledger.close()


# --- beginning, and going on ---


def test_a_run_is_what_its_manifest_says(tmp_path: Path) -> None:
    begun = begin(tmp_path, [PRESS], agent="nothing", seeds=3, repeats=2, run_seed=7, wall=lambda: 1000.0)
    assert (begun.keys, begun.new, begun.given_back) == (6, 6, 0)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest == begun.manifest
    assert {name: manifest[name] for name in ("version", "agent", "seeds", "repeats", "run_seed", "started")} == {
        "version": 1, "agent": "nothing", "seeds": 3, "repeats": 2, "run_seed": 7, "started": 1000.0,
    }  # fmt: skip
    assert set(manifest["tasks"]) == {"press"}
    assert manifest["limits"] == {"press": {"steps": 5, "seconds": 20.0}}
    assert manifest["resources"]["press"]["most_memory"] == 1536 << 20
    assert (manifest["network"], manifest["images"]) == ({"press": "none"}, {})
    # This task does not say since when it is public.
    assert manifest["public_since"] == {}
    assert set(manifest["host"]) >= {"cpus", "memory", "kernel", "cpu"}
    assert keys(begun) == [Key("press", "", seed, repeat) for seed in range(3) for repeat in range(2)]
    assert begun.plan.directory == str(tmp_path)


def test_going_on_needs_no_option_but_what_is_code_and_changes_nothing(tmp_path: Path) -> None:
    first = begin(tmp_path, [PRESS], agent="nothing", seeds=3, run_seed=7, wall=lambda: 1000.0)
    again = begin(tmp_path, [PRESS], wall=lambda: 2000.0)
    assert (again.keys, again.new) == (3, 0)
    assert again.plan == first.plan
    assert again.manifest == first.manifest == read_manifest(tmp_path)


def test_seeds_repeats_and_tasks_can_be_added(tmp_path: Path) -> None:
    begin(tmp_path, [PRESS], agent="nothing")
    assert begin(tmp_path, [PRESS], seeds=2).new == 1
    assert begin(tmp_path, [PRESS], repeats=2).new == 2
    more = begin(tmp_path, [NUMBER, PRESS])
    assert (more.new, more.keys) == (4, 8)
    assert set(more.manifest["tasks"]) == {"press", "number"}
    assert more.plan.tasks == (PRESS, NUMBER)
    assert begin(tmp_path, [PRESS, NUMBER]).new == 0


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"agent": "oracle"}, "--agent was 'nothing' and is 'oracle'"),
        ({"run_seed": 1}, "--run-seed was 0 and is 1"),
        ({"seeds": 1}, "--seeds was 2 and is only 1"),
        ({"backend": "docker"}, "--backend was 'local' and is 'docker'"),
        ({"limit": 1}, "--limit was None and is 1"),
    ],
)
def test_another_run_is_refused_with_what_differs(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    begin(tmp_path, [PRESS], agent="nothing", seeds=2)
    before = (tmp_path / "manifest.json").read_text()
    with pytest.raises(EpisodeError, match="another run is in") as error:
        begin(tmp_path, **changed)
    assert said in str(error.value)
    assert f"to go on with it: deskhand run {PRESS} --out {tmp_path}, or" in str(error.value)
    assert (tmp_path / "manifest.json").read_text() == before


def test_an_agent_whose_code_has_changed_is_another_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    module, name = tmp_path / "changing_agent.py", "changing_agent:act"
    module.write_text("def act(episode):\n    return 'one'\n")
    out = tmp_path / "run"
    begin(out, [PRESS], agent=name)
    assert begin(out, [PRESS], agent=name, seeds=2).new == 1
    module.write_text("def act(episode):\n    return 'two'\n")
    with pytest.raises(EpisodeError, match="the code of the agent 'changing_agent:act' has changed since"):
        begin(out, [PRESS], agent=name, seeds=3)
    assert len(keys(begin(tmp_path / "other", [PRESS], agent=name))) == 1
    # The ledger has it too.
    manifest = json.loads((out / "manifest.json").read_text())
    (out / "manifest.json").write_text(json.dumps({k: v for k, v in manifest.items() if k != "agent_code"}))
    with pytest.raises(EpisodeError, match="has changed since"):
        begin(out, [PRESS], agent=name, seeds=3)


def test_what_is_not_given_is_as_it_was(tmp_path: Path) -> None:
    first = begin(tmp_path, [PRESS], agent="nothing", desktops=3, engine="ray")
    again = begin(tmp_path, [PRESS])
    assert (again.plan.desktops, again.manifest["engine"], again.plan.agent) == (3, "ray", "nothing") == (
        first.plan.desktops, first.manifest["engine"], first.plan.agent)  # fmt: skip
    assert begin(tmp_path, [PRESS], desktops=1, engine="local").plan.desktops == 1
    last = begin(tmp_path, [PRESS])
    assert (last.plan.desktops, last.manifest["engine"]) == (1, "local")


def test_a_task_that_has_changed_makes_it_another_run(tmp_path: Path) -> None:
    begin(tmp_path, [PRESS])
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    manifest["tasks"]["press"] = "0" * 64
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(EpisodeError, match="the task press has changed since"):
        begin(tmp_path, [PRESS])


@pytest.mark.parametrize("content", ["", "[]", '{"version": 2}', "no json"])
def test_a_manifest_that_cannot_be_read_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(EpisodeError, match=re.escape(str(tmp_path / "manifest.json"))):
        begin(tmp_path, [PRESS])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"agent": ...}, "lacks agent"),
        ({"select": ..., "tasks": ...}, "lacks select, tasks"),
        ({"seeds": "many"}, "seeds is 'many'"),
        ({"desktops": "all"}, "desktops is 'all'"),
        ({"engine": ...}, "lacks engine"),
        ({"tasks": ["press"]}, "tasks is ['press']"),
        ({"limit": 0.5}, "limit is 0.5"),
        # As a replay's folder has it, which is read and not gone on with.
        ({"ledger": None}, "ledger is None"),
    ],
)
def test_a_manifest_that_is_damaged_is_named(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    begin(tmp_path, [PRESS])
    path = tmp_path / "manifest.json"
    damaged = {name: value for name, value in {**json.loads(path.read_text()), **change}.items() if value is not ...}
    path.write_text(json.dumps(damaged))
    with pytest.raises(EpisodeError, match=f"{re.escape(str(path))}.*{re.escape(said)}.*another directory"):
        begin(tmp_path)
    assert json.loads(path.read_text()) == damaged


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"agent": "nobody"}, "there is no agent 'nobody'; there are: oracle,"),
        ({"agent": "no_such_module:act"}, "there is no module 'no_such_module'"),
        ({"agent": "json:no_such_function"}, "no_such_function"),
        ({"agent": "json:__name__"}, "is not a function, but a str"),
        ({"agent": "replay:/no/such/place", "host": True}, "no directory '/no/such/place'"),
        ({"agent": "replay:/no/such/place"}, "if you trust the record, --host"),
        ({"seeds": 0}, "--seeds must be at least 1"),
        ({"desktops": 0}, "--desktops must be at least 1"),
        ({"engine": "cloud"}, "there is no engine 'cloud'; there are: local, ray"),
        ({"shard": (3, 3)}, "of 3 shards the first is 0/3, the last 2/3"),
        ({"image": "debian"}, "have no image: add --backend docker"),
        ({"backend": "cloud"}, "there is no backend 'cloud'; there are: local, docker"),
    ],
)
def test_what_cannot_be_begun_is_refused_before_anything_is_made(
    tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(EpisodeError, match=re.escape(said)):
        begin(tmp_path / "run", [PRESS], **options)
    assert not (tmp_path / "run").exists()


def test_programs_that_are_missing_are_named_before_the_run_begins(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Number, "programs", ("xterm", "no-such-program"))
        with pytest.raises(EpisodeError, match="number needs no-such-program; install them, or use --backend docker"):
            begin(tmp_path / "run", [PRESS, NUMBER])
    assert not (tmp_path / "run").exists()


def test_a_limit_takes_all_tasks_first(tmp_path: Path) -> None:
    begun = begin(tmp_path, [PRESS, NUMBER], seeds=3, limit=3)
    assert keys(begun) == [Key("number", "", 0, 0), Key("press", "", 0, 0), Key("press", "", 1, 0)]


def test_shards_share_a_run(tmp_path: Path) -> None:
    parts = [begin(tmp_path, [PRESS], seeds=20, shard=(part, 4)) for part in range(4)]
    assert [part.new for part in parts] == [20, 0, 0, 0]
    assert sum(part.keys for part in parts) == 20
    assert all(part.keys for part in parts)


# --- the command ---


def run(*words: str, **options: Any) -> Any:
    return CliRunner().invoke(commands, ["run", *words], **options)


def test_a_run_on_real_desktops(tmp_path: Path) -> None:
    out = str(tmp_path / "run")
    done = run(NUMBER, "--seeds", "3", "--desktops", "2", "--out", out, "--json")
    assert done.exit_code == 0, done.output
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert (lines[0]["kind"], lines[0]["episodes"], lines[0]["done"]) == ("run", 3, 0)
    results = [line["result"] for line in lines if line["kind"] == "done"]
    assert [result["success"] for result in results] == [True] * 3
    assert lines[-1]["results"] == {"success": 3}
    assert (lines[-1]["kind"], lines[-1]["done"], lines[-1]["stopped"]) == ("end", 3, None)
    for result in results:
        folder = Path(out) / "ep" / f"number.s{result['seed']}.r0" / "attempt-1"
        assert json.loads((folder / "result.json").read_text()) == result
    again = run(NUMBER, "--out", out)
    assert again.exit_code == 0
    assert "3 episodes in" in again.stderr
    assert "3 of them done" in again.stderr
    more = run(NUMBER, "--out", out, "--seeds", "4")
    assert "[4/4] success  number.s3.r0" in more.stderr
    assert f"deskhand report {out}" in more.stderr


def test_the_command_goes_on_with_the_engine_and_the_desktops_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[tuple[str, int]] = []

    class Engine:
        def __init__(self, name: str) -> None:
            self.name = name

        async def run(self, plan: Plan, **_: object) -> None:
            called.append((self.name, plan.desktops))

    monkeypatch.setattr("deskhand.episodes.run.engines.find_engine", Engine)
    for words in (["--desktops", "3", "--engine", "ray"], [], ["--desktops", "2"], []):
        done = run(NUMBER, *words, "--out", str(tmp_path))
        assert done.exit_code == 0, done.output
    assert called == [("ray", 3), ("ray", 3), ("ray", 2), ("ray", 2)]


_LEDGER = "DESKHAND_TEST_LEDGER"


def beside_another(episode: Any) -> str:
    """An agent that does nothing, while somebody else does the other episode."""
    del episode
    ledger = open_ledger(os.environ[_LEDGER])
    for lease in ledger.lease("another", 60.0, most=1):
        assert ledger.finish(lease, result_of(lease.key))
    ledger.close()
    return "done"


def test_what_was_done_unheard_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(_LEDGER, str(tmp_path / "episodes.sqlite"))
    done = run(NUMBER, "--seeds=2", "--agent=episodes.test_run:beside_another", "--out", str(tmp_path))
    assert done.exit_code == 0, done.output
    assert "0 succeeded, 1 failed, 1 done elsewhere (`deskhand report` counts them)" in done.stderr


def test_what_was_recorded_can_be_replayed_as_an_agent(tmp_path: Path) -> None:
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    assert run(NUMBER, "--seeds", "2", "--out", first).exit_code == 0
    done = run(NUMBER, "--seeds", "2", "--agent", f"replay:{first}", "--host", "--out", second, "--json")
    assert json.loads(done.stdout.splitlines()[-1])["results"] == {"success": 2}
    # With other parameters the same input is wrong.
    third = str(tmp_path / "third")
    done = run(NUMBER, "--run-seed", "1", "--agent", f"replay:{first}", "--host", "--out", third, "--json")
    assert json.loads(done.stdout.splitlines()[-1])["results"] == {"failure": 1}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["no-such-task", "--out", "OUT"], "no such task"),
        ([PRESS, "--agent", "oracel", "--out", "OUT"], "there is no agent 'oracel'"),
        ([PRESS, "--engine", "cloud", "--out", "OUT"], "there is no engine 'cloud'; there are: local, ray"),
        ([PRESS, "--shard", "1", "--out", "OUT"], "is not of the form i/n"),
        ([PRESS], "Missing option '--out'"),
    ],
)
def test_a_command_that_is_wrong_says_what_is(tmp_path: Path, words: Sequence[str], said: str) -> None:
    argv = [sys.executable, "-m", "deskhand", "run", *(str(tmp_path) if word == "OUT" else word for word in words)]
    done = subprocess.run(argv, env=_environment(), capture_output=True, text=True, check=False, timeout=LIMIT)
    assert done.returncode in {1, 2}
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def _environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(TESTS), **more}


def _started(out: Path, mark: str, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "deskhand", "run", NUMBER, "--out", str(out), *words],
        env=_environment(**{MARK: mark}),
        stderr=subprocess.PIPE,
        text=True,
    )


def _leased(out: Path) -> int:
    if not (out / "manifest.json").exists():
        return 0
    ledger = open_ledger(out / "episodes.sqlite")
    try:
        return ledger.counts()[State.LEASED]
    finally:
        ledger.close()


def sleeps(episode: Any) -> None:
    """An agent that waits for somebody to stop the run."""
    time.sleep(episode.limits.seconds)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_gives_back_what_is_under_way(tmp_path: Path, number: signal.Signals, mark: str) -> None:
    out = tmp_path / "run"
    process = _started(out, mark, "--agent", "episodes.test_run:sleeps", "--seeds", "3", "--desktops", "2")
    until(lambda: _leased(out) == 2, LIMIT, "two episodes to be under way")
    process.send_signal(number)
    _, said = process.communicate(timeout=LIMIT)
    assert process.returncode == 130, said
    assert f"{number.name}: giving back the running episodes" in said
    again = f"deskhand run {NUMBER} --out {out} --agent episodes.test_run:sleeps"
    assert f"Stopped. To go on: {again}" in said
    assert _leased(out) == 0
    assert not marked(mark)
    ledger = open_ledger(out / "episodes.sqlite")
    assert {row.state for row in ledger.rows()} == {State.QUEUED}
    assert all(not row.failures for row in ledger.rows())


def test_a_second_signal_ends_at_once_and_the_next_run_knows(tmp_path: Path, mark: str) -> None:
    out = tmp_path / "run"
    process = _started(out, mark, "--agent", "episodes.test_run:sleeps", "--seeds", "2", "--desktops", "2")
    until(lambda: _leased(out) == 2, LIMIT, "two episodes to be under way")
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert any("a second signal ends at once" in line for line in process.stderr)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=LIMIT)
    assert process.returncode == 130
    assert f"Stopped. To go on: deskhand run {NUMBER} --out {out} --agent episodes.test_run:sleeps" in said
    until(lambda: not marked(mark), 10.0, "its desktops to end")
    # The first signal may have given one of them back, or both.
    assert begin(out, [NUMBER], agent="episodes.test_run:sleeps").given_back <= 2
    assert _leased(out) == 0


def test_a_run_of_which_nothing_is_valid_has_failed(tmp_path: Path) -> None:
    task = tmp_path / "broken"
    task.mkdir()
    (task / "task.toml").write_text('name = "broken"\nlevel = 1\ninstruction = "Nothing."\n')
    (task / "task.py").write_text(
        "def setup(context):\n    1 / 0\n\n\ndef evaluate(context):\n    return True\n\n\ndef oracle(context):\n    pass\n"
    )
    words = [sys.executable, "-m", "deskhand", "run", str(task), "--out", str(tmp_path / "run"), "--agent", "nothing"]
    done = subprocess.run(words, check=False, env=_environment(), capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 1, done.stderr
    assert "1 invalid (setup_failed 1)" in done.stderr
    assert "None of these episodes is valid" in done.stderr


def test_a_terminal_shows_how_it_goes(tmp_path: Path) -> None:
    out = str(tmp_path / "run")
    terminal, theirs = pty.openpty()
    words = [sys.executable, "-m", "deskhand", "run", NUMBER, "--seeds", "2", "--out", out]
    process = subprocess.Popen(
        words, env=_environment(COLUMNS="100", TERM="xterm"), stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    said = b""
    # Its end is an error when nobody has the other side open any more.
    with contextlib.suppress(OSError):
        while chunk := os.read(terminal, 65536):
            said += chunk
    os.close(terminal)
    assert process.wait(LIMIT) == 0
    shown = said.decode()
    assert "1/2 1 succeeded, 0 failed" in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    assert "number.s1.r0" in shown
    assert f"deskhand report {out}" in shown


# --- faults ---

# Waits are a twentieth of the real ones.
_FULL = """
import subprocess
out, full = os.environ["OUT"], os.environ["FULL"]
quick = (
    "import sys, deskhand.episodes.run.worker as w; w._LEDGER_PAUSE = 0.05; w._BACKOFF = 0.25; "
    "from deskhand.cli import main; sys.exit(main())"
)
def play(*more):
    argv = [sys.executable, "-c", quick, "run", "--out", out, "--json", *more]
    playing = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    ended = []
    for line in playing.stdout:
        news = json.loads(line)
        if news["kind"] in ("done", "retried"):
            ended.append(news)
        if news["kind"] == "retried" and os.path.exists(full + "/filler"):
            os.remove(full + "/filler")
    err = playing.stderr.read()
    return dict(
        code=playing.wait(),
        err=err[-2000:],
        kinds=[news["kind"] for news in ended],
        results=[news["result"] for news in ended],
        torn=[name for _, _, names in os.walk(out + "/ep") for name in names if name.startswith(".result")],
    )
named = os.environ["TASK"], "--agent", "episodes.test_run:fills"
first = play(*named, "--seeds", "3")
if first["code"]:
    os.remove(full + "/filler")
say(first=first, second=play(*named))
"""


def fills(episode: Any) -> None:
    """An agent in whose first episode the disk fills up."""
    filler, been = Path(os.environ["FULL"]) / "filler", Path(os.environ["BEEN"])
    if been.exists():
        return
    been.touch()
    with filler.open("wb", buffering=0) as file:
        for size in (4096, 1):
            with contextlib.suppress(OSError):
                while file.write(b"x" * size) == size:
                    pass
    episode.note("there is none " * 500)


def _play_on_a_full_disk(tmp_path: Path, full: Path) -> Any:
    full.mkdir(parents=True)
    environment = _environment(OUT=str(tmp_path / "run"), FULL=str(full), BEEN=str(tmp_path / "been"), TASK=NUMBER)
    return in_namespace(f"mount -t tmpfs -o mode=0700,size=1m tmpfs {full}", _FULL, environment)


def test_f22_a_full_disk_is_contained_to_its_episode(tmp_path: Path) -> None:
    """The records' disk is full, the ledger's is not."""
    first = _play_on_a_full_disk(tmp_path, tmp_path / "run" / "ep")["first"]
    assert (first["code"], first["torn"]) == (0, []), first
    by_kind = list(zip(first["kinds"], first["results"], strict=True))
    failed = [result for kind, result in by_kind if kind == "retried"]
    # The one that met it, and perhaps the next one, which began before there was room again.
    assert failed
    for result in failed:
        assert (result["cause"], result["valid"], result["score"]) == ("record_failed", False, None)
        assert "No space left on device" in result["detail"]
        assert "make room there" in result["detail"]
    done = [result for kind, result in by_kind if kind == "done"]
    assert [result["cause"] for result in done] == [None] * 3


@pytest.mark.soak
def test_f22_a_run_whose_ledger_has_no_room_ends_and_goes_on_when_there_is(tmp_path: Path) -> None:
    said = _play_on_a_full_disk(tmp_path, tmp_path / "run")
    first, second = said["first"], said["second"]
    assert (first["code"], first["torn"]) == (1, []), first
    assert "its disk is full" in first["err"]
    assert "make room and run again" in first["err"]
    assert second["code"] == 0, second
    assert second["kinds"] == ["done"] * 3
