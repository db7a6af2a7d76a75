"""Tasks in Harbor's format are read as the untrusted folders that they are, and a plan says what each needs."""

from __future__ import annotations

import io
import json
import os
import tarfile
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from deskhand.cli.group import commands
from deskhand.episodes.ledger.ledger import Key
from deskhand.episodes.outcome import Cause
from deskhand.episodes.play.attempt import attempt
from deskhand.episodes.play.pools import DesktopPools
from deskhand.episodes.run.run import begin
from deskhand.episodes.tasks.catalogue import digest, find_tasks, ships
from deskhand.episodes.tasks.harbor.consent import NETWORK, VARIABLES, Consent
from deskhand.episodes.tasks.harbor.folder import digest_tree, find_entries, list_tree, pack_tree, slug
from deskhand.episodes.tasks.harbor.plan import KINDS, network_of, notes, reasons, resolve_env
from deskhand.episodes.tasks.harbor.rewards import score_of
from deskhand.episodes.tasks.harbor.task import HarborTask
from deskhand.episodes.tasks.harbor.taskfile import LARGEST, TaskFile, parse_task
from deskhand.errors import EpisodeError, LaunchFailed, TaskError
from episodes.harbor_folders import TEST, write_task
from episodes.plays import Places

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

NOTHING = Consent((), {})
# As upstream's template writes it.
WHOLE = """
schema_version = "1.4"
artifacts = []
[task]
name = "org/upper"
authors = [{ name = "A" }]
[metadata]
category = "files"
anything = { at = "all" }
[verifier]
timeout_sec = 120.0
env = { JUDGE = "${JUDGE_KEY}", MODE = "strict" }
[agent]
timeout_sec = 90
[solution]
env = {}
[environment]
build_timeout_sec = 60
network_mode = "no-network"
cpus = 2
memory_mb = 4096
storage_mb = 10240
gpus = 0
mcp_servers = []
workdir = "/app/work"
[environment.env]
GREETING = "hello"
PLACE = "${PLACE:-world}"
"""


@pytest.fixture(autouse=True)
def _own_consent(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test allows ends with it."""
    for name in (NETWORK, VARIABLES):
        monkeypatch.setenv(name, "")


def parsed(text: str = "") -> TaskFile:
    return parse_task(text.encode(), "t")


def refused(text: str, script: str = "", consent: Consent = NOTHING) -> dict[str, str]:
    return {reason.kind: reason.text for reason in reasons(parsed(text), script, consent)}


def broken(folder: Path) -> str:
    [entry] = find_entries(f"harbor:{folder}")
    return entry.broken


# --- task.toml ---


def test_a_whole_file_is_read() -> None:
    file = parsed(WHOLE)
    assert (file.agent_seconds, file.test_seconds, file.build_seconds) == (90, 120.0, 60.0)
    assert (file.category, file.cpus, file.memory, file.directory) == ("files", 2, 4096, "/app/work")
    assert file.network.mode == "no-network"
    assert (file.beyond, file.unknown) == ((), ())
    assert file.env == {"GREETING": "hello", "PLACE": "${PLACE:-world}"}


def test_an_empty_file_is_a_task() -> None:
    file = parsed()
    assert (file.agent_seconds, file.test_seconds, file.network.mode, file.memory) == (None, 600.0, "", None)


def test_older_spellings_are_read() -> None:
    assert parsed('version = "1.0"\n[environment]\nmemory = "2G"\nstorage = "10G"').memory == 2048
    assert parsed("[environment]\nallow_internet = true").network.mode == "public"
    assert parsed("[environment]\nallow_internet = false").network.mode == "no-network"
    assert parsed('[environment]\nallow_internet = true\nnetwork_mode = "no-network"').network.mode == "no-network"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = ", "task.toml is not TOML"),
        ("a = " + "[" * 5000, "task.toml is not TOML"),
        ("a = " + "9" * 5000, "task.toml is not TOML"),
        ("# " + "x" * LARGEST, f"at most {LARGEST}"),
        ('schema_version = "2.0"', "versions 1.0 to 1.4 are read"),
        ("agent = 1", "agent: it is 1: it must be a table"),
        ("[agent]\ntimeout_sec = 'soon'", "agent.timeout_sec: it is 'soon'"),
        ("[agent]\ntimeout_sec = inf", "agent.timeout_sec: it is inf"),
        ("[agent]\ntimeout_sec = nan", "agent.timeout_sec: it is nan"),
        ("[agent]\ntimeout_sec = true", "agent.timeout_sec: it is True"),
        ("[verifier]\ntimeout_sec = 1e9", "seconds, above 0 and at most 2592000"),
        ("[verifier]\nenv = { A = 1 }", "verifier.env"),
        ("[environment.env]\nDISPLAY = ':1'", "the variables of the desktop itself"),
        ("[environment.env]\n'A B' = 'c'", "a table of texts"),
        ("[environment]\nmemory_mb = -1", "environment.memory_mb: it is -1"),
        ("[environment]\nmemory = 'much'", "a size such as '2G'"),
        ("[environment]\ncpus = 1e308", "at most 1024"),
        ("[environment]\nworkdir = '../up'", "an absolute path without .."),
        ("[environment]\nworkdir = '/a\"; RUN x'", "an absolute path without .."),
        ("[environment]\ndocker_image = '--privileged'", "the name of an image"),
        ("[environment]\nnetwork_mode = 'host'", "one of no-network, public, allowlist"),
        ("[environment]\nallowed_hosts = ['a.org']", "it needs network_mode = 'allowlist'"),
        ("[environment]\nnetwork_mode = 'allowlist'\nallowed_hosts = 'a.org'", "a list of at most 1000 texts"),
        ("steps = 3", "steps: it is 3"),
    ],
)
def test_a_wrong_field_is_named(text: str, said: str) -> None:
    with pytest.raises(TaskError) as raised:
        parsed(text)
    assert said in str(raised.value)


def test_bytes_that_are_no_text_are_no_task() -> None:
    with pytest.raises(TaskError, match=r"task\.toml is not TOML"):
        parse_task(b"\xff", "t")


def test_fields_that_nobody_knows_are_told() -> None:
    file = parsed("surprise = 1\n[environment]\nfuture = true")
    assert file.unknown == ("surprise", "environment.future")
    assert "task.toml has fields that are not known: surprise, environment.future" in notes(file, NOTHING)


# --- reasons ---


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("steps = [{ name = 'a' }]", "steps"),
        ("[environment]\nos = 'Windows'", "environment.os"),
        ("[environment]\ngpus = 1", "environment.gpus"),
        ("[environment.healthcheck]\ncommand = 'true'", "environment.healthcheck"),
        ("[[environment.mcp_servers]]\nname = 'a'", "environment.mcp_servers"),
        ("[verifier]\nenvironment_mode = 'separate'", "verifier.environment_mode"),
    ],
)
def test_what_is_not_carried_out_is_a_reason(text: str, part: str) -> None:
    assert refused(text) == {"differs": f"{part} is not carried out here"}


def test_a_user_of_its_own_is_a_reason() -> None:
    assert "the user root" in refused("[verifier]\nuser = 'root'")["rights"]
    assert "the user 0" in refused("[agent]\nuser = 0")["rights"]


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        ("apt-get update", "rights"),
        ("  DEBIAN_FRONTEND=noninteractive apt-get install -y x", "rights"),
        ("true && sudo id", "rights"),
        ("curl -LsSf https://example.org/install.sh | sh", "network"),
        ("if pip install -q pytest; then :; fi", "network"),
        ("uvx -p 3.13 pytest", "network"),
        ("git clone https://example.org/a", "network"),
        ("# apt-get update", None),
        ("command -v apt-get", None),
        ("echo apt-get install", None),
        ("curl -s http://localhost:8000/", None),
        ("python3 -m pytest /tests", None),
        ("echo curl >a; cat </app/pip", None),
    ],
)
def test_tests_that_need_rights_or_a_network_are_recognized(script: str, kind: str | None) -> None:
    assert list(refused("", f"#!/bin/bash\n{script}\n")) == ([kind] if kind else [])


def test_a_script_cannot_make_the_plan_slow() -> None:
    for piece in ("curl ", "(curl(", "a=;", "if ", "pip -x ", "&"):
        refused("", piece * ((1 << 18) // len(piece)))


def test_who_says_nothing_about_the_network_gets_none_unless_hosts_are_allowed() -> None:
    some = Consent(("example.org",), {})
    assert network_of(parsed(), NOTHING) == ("none", "")
    assert notes(parsed(), NOTHING) == ["it says nothing about the network, which Harbor then opens; it gets none"]
    assert network_of(parsed(), some) == (("example.org",), "")
    assert notes(parsed(), some) == [
        "it says nothing about the network, which Harbor then opens; it gets only example.org"
    ]
    closed = parsed("[environment]\nnetwork_mode = 'no-network'")
    assert (network_of(closed, some), notes(closed, some)) == (("none", ""), [])


def test_what_a_task_asks_of_the_network_needs_consent() -> None:
    public = "[environment]\nnetwork_mode = 'public'"
    assert "--network HOST" in refused(public)["network"]
    assert refused(public, consent=Consent(("a.org",), {})) == {}
    listed = "[environment]\nnetwork_mode = 'allowlist'\nallowed_hosts = ['a.org', 'x.b.org']"
    assert "--network a.org --network x.b.org" in refused(listed)["network"]
    assert refused(listed, consent=Consent(("a.org", "b.org"), {}))["network"].endswith("--network x.b.org")
    whole = Consent(("a.org", "*.b.org", "c.org"), {})
    # It gets what it asks for, and not all that is allowed.
    assert network_of(parsed(listed), whole) == (("a.org", "x.b.org"), "")
    assert "one network" in refused(f"{public}\n[agent]\nnetwork_mode = 'no-network'", consent=whole)["network"]
    wrong = "[environment]\nnetwork_mode = 'allowlist'\nallowed_hosts = ['http://a.org/x']"
    assert "its allowed_hosts: " in refused(wrong, consent=whole)["network"]
    # The tests of a task with hosts may fetch from them.
    assert refused("", "pip install x\n", whole) == {}


def test_variables_of_the_caller_are_read_only_by_consent() -> None:
    text = "[verifier]\nenv = { KEY = '${SECRET}', B = 'x${SECRET}', C = '${OTHER:-plain}' }"
    env = parsed(text).test_env
    assert refused(text)["variable"] == "it reads your variable SECRET: --env SECRET lets it"
    assert refused(text, consent=Consent((), {"SECRET": None}))["variable"].endswith("SECRET, which is not set")
    given = Consent((), {"SECRET": "s"})
    assert refused(text, consent=given) == {}
    # Only a whole value is a variable, as upstream reads it; a default needs no consent.
    assert resolve_env(env, given) == {"KEY": "s", "B": "x${SECRET}", "C": "plain"}
    assert resolve_env(env, Consent((), {"OTHER": "o"}))["C"] == "o"


# --- folders ---


def test_a_folder_of_tasks_is_found_in_order(tmp_path: Path) -> None:
    for name in ("b-task", "a_task", "c-task"):
        write_task(tmp_path, name)
    (tmp_path / "no-task").mkdir()
    assert [entry.folder.name for entry in find_entries(f"harbor:{tmp_path}")] == ["a_task", "b-task", "c-task"]
    assert [entry.folder.name for entry in find_entries(f"harbor:{tmp_path}/[bc]*")] == ["b-task", "c-task"]
    tasks = find_tasks([f"harbor:{tmp_path}/a_task"])
    assert [task.name for task in tasks] == ["harbor-a-task"]
    assert not ships(f"harbor:{tmp_path}")
    for name, said in (("nowhere/at-all", "there is no folder"), ("no-task", "no folder"), ("x*", "no folder")):
        with pytest.raises(TaskError, match=said):
            find_entries(f"harbor:{tmp_path}/{name}")


def test_names_stay_different() -> None:
    assert slug(["harbor", "Hello_World.2"]) == "harbor-hello-world-2"
    assert slug(["harbor", "größe"]) != slug(["harbor", "grüße"])


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"instruction": None}, "upper/instruction.md cannot be read"),
        ({"instruction": "  \n"}, "instruction.md is empty"),
        ({"instruction": b"\xff"}, "instruction.md is not UTF-8"),
        ({"instruction": "x" * (1 << 19)}, "it is larger than"),
        ({"test": None}, "tests/test.sh cannot be read"),
        ({"dockerfile": None}, "environment/Dockerfile cannot be read"),
    ],
)
def test_a_folder_that_lacks_a_part_is_broken(tmp_path: Path, files: Mapping[str, Any], said: str) -> None:
    assert said in broken(write_task(tmp_path, **files))


def test_an_image_needs_no_dockerfile(tmp_path: Path) -> None:
    assert broken(write_task(tmp_path, toml="[environment]\ndocker_image = 'a/b:1'", dockerfile=None)) == ""


def test_several_containers_are_a_reason(tmp_path: Path) -> None:
    folder = write_task(tmp_path, dockerfile=None)
    (folder / "environment" / "docker-compose.yaml").write_text("services: {}")
    [planned] = json.loads(told(f"harbor:{folder}", "--json"))
    assert (planned["kind"], planned["reason"]) == (
        "differs",
        "environment/docker-compose.yaml is not carried out here",
    )


def test_links_are_not_followed_out_of_a_folder(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "test.sh").write_text("private")
    root = tmp_path / "tasks"
    for number, (path, target) in enumerate(
        (
            ("environment/key", "/etc/hostname"),
            ("environment/up", "../../../secret/test.sh"),
            ("tests/more", secret),
            ("instruction.md", secret / "test.sh"),
            ("task.toml", secret / "test.sh"),
            ("tests/test.sh", secret / "test.sh"),
            ("environment", secret),
            ("tests", secret),
        )
    ):
        folder = write_task(root, f"t{number}")
        if (folder / path).is_dir():
            (folder / path).rename(folder / "moved")
        (folder / path).unlink(missing_ok=True)
        (folder / path).symlink_to(target)
    write_task(tmp_path, "real")
    (root / "linked").symlink_to(tmp_path / "real")
    entries = find_entries(f"harbor:{root}")
    assert len(entries) == 9
    for entry in entries:
        assert entry.broken, entry.folder
        assert "private" not in entry.instruction + entry.script


def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path) -> None:
    for number, path in enumerate(("environment/pipe", "tests/test.sh", "instruction.md", "task.toml")):
        folder = write_task(tmp_path, f"t{number}")
        (folder / path).unlink(missing_ok=True)
        os.mkfifo(folder / path)
    assert all(entry.broken for entry in find_entries(f"harbor:{tmp_path}"))


def test_a_folder_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_task(tmp_path)
    with (folder / "environment" / "huge").open("wb") as file:
        file.truncate(3 << 30)
    assert "environment has more than 20000 files, or than 1024 MiB in them" in broken(folder)
    (folder / "environment" / "huge").unlink()
    monkeypatch.setattr("deskhand.episodes.tasks.harbor.folder._MOST_FILES", 1)
    assert "environment has more than 1 files" in broken(folder)
    monkeypatch.undo()
    deep = folder / "tests"
    for _ in range(50):
        deep /= "d"
    deep.mkdir(parents=True)
    assert "tests is deeper than 40 folders" in broken(folder)


def test_the_same_files_are_the_same_image(tmp_path: Path) -> None:
    one, other = (write_task(tmp_path / name) / "environment" for name in ("one", "other"))
    os.utime(other / "start.txt", (0, 0))
    (other / "start.txt").chmod(0o600)
    packed = []
    for folder in (one, other):
        pack_tree(folder, "t", file := io.BytesIO())
        packed.append(file.getvalue())
    assert packed[0] == packed[1]
    assert digest_tree(one, "t") == digest_tree(other, "t")
    (other / "start.txt").chmod(0o755)
    assert digest_tree(one, "t") != digest_tree(other, "t")


def test_a_context_has_links_as_links_and_only_what_is_kept(tmp_path: Path) -> None:
    folder = write_task(tmp_path) / "environment"
    (folder / "link").symlink_to("start.txt")
    assert [item.path for item in list_tree(folder, "t")] == ["Dockerfile", "link", "start.txt"]
    pack_tree(folder, "t", file := io.BytesIO(), {"Dockerfile", "link"})
    file.seek(0)
    with tarfile.open(fileobj=file) as archive:
        assert {entry.name: entry.linkname for entry in archive} == {"Dockerfile": "", "link": "start.txt"}


def test_what_is_allowed_is_part_of_a_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"harbor:{write_task(tmp_path)}"
    [before] = find_tasks([name])
    monkeypatch.setenv(NETWORK, "example.org")
    [after] = find_tasks([name])
    assert (before.network, after.network) == ("none", ("example.org",))
    assert digest(before) != digest(after)
    assert before.image == after.image
    (tmp_path / "upper" / "environment" / "start.txt").write_text("other\n")
    [changed] = find_tasks([name])
    assert changed.image != after.image


# --- rewards ---


@pytest.mark.parametrize(
    ("file", "data", "score", "rewards"),
    [
        ("reward.txt", b"1\n", 1.0, {"reward": 1.0}),
        ("reward.txt", b" 0.25 ", 0.25, {"reward": 0.25}),
        ("reward.json", b'{"reward": 0.5, "speed": 30}', 0.5, {"reward": 0.5, "speed": 30.0}),
        ("reward.json", b'{"accuracy": true}', 1.0, {"accuracy": 1.0}),
    ],
)
def test_rewards_are_read(file: str, data: bytes, score: float, rewards: Mapping[str, float]) -> None:
    assert score_of("t", file, data) == (score, rewards)


@pytest.mark.parametrize(
    ("file", "data"),
    [
        ("reward.txt", b""),
        ("reward.txt", b"passed"),
        ("reward.txt", b"nan"),
        ("reward.txt", b"inf"),
        ("reward.txt", b"2"),
        ("reward.txt", b"-0.1"),
        ("reward.txt", b"\xff"),
        ("reward.json", b"1"),
        ("reward.json", b"{}"),
        ("reward.json", b"[1]"),
        ("reward.json", b'{"reward": "1"}'),
        ("reward.json", b'{"reward": NaN}'),
        ("reward.json", b'{"reward": 1, "speed": 1e400}'),
        ("reward.json", b'{"reward": 1' + b"0" * 400 + b"}"),
        ("reward.json", b'{"speed": 1, "accuracy": 1}'),
        ("reward.json", b"[" * 50_000),
        ("reward.json", b'{"' + b"x" * 300 + b'": 1}'),
        ("reward.json", json.dumps({f"r{n}": 0 for n in range(101)}).encode()),
    ],
)
def test_what_is_no_reward_is_no_score(file: str, data: bytes) -> None:
    with pytest.raises(TaskError, match=r"reward\.(txt|json)"):
        score_of("t", file, data)


# --- the plan ---


def told(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(commands, ["run", *words, "--plan"])
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 else result.output


def test_a_plan_says_of_each_task_whether_it_runs(tmp_path: Path) -> None:
    write_task(tmp_path, "fine", toml="[metadata]\ncategory = 'files'\n[environment]\nnetwork_mode = 'no-network'")
    write_task(tmp_path, "odd", test=TEST + "apt-get update\n", toml="surprise = 1")
    write_task(tmp_path, "torn", toml="agent = 1")
    found = {each["id"]: each for each in json.loads(told(f"harbor:{tmp_path}", "--json"))}
    assert {id_: (each["domain"], each["runs"], each["kind"]) for id_, each in found.items()} == {
        "fine": ("files", True, ""),
        "odd": ("", False, "rights"),
        "torn": ("", False, "broken"),
    }
    assert found["torn"]["reason"] == "agent: it is 1: it must be a table"
    assert found["odd"]["notes"][1] == "task.toml has fields that are not known: surprise"
    table = [line.split() for line in told(f"harbor:{tmp_path}").splitlines()]
    assert table[0] == ["domain", "tasks", "runs", *KINDS]
    assert ["all", "3", "1", "1", "1"] in table


def test_a_plan_says_who_gets_no_network(tmp_path: Path) -> None:
    write_task(tmp_path)
    result = CliRunner().invoke(commands, ["run", f"harbor:{tmp_path}", "--plan"])
    assert "1 task: it says nothing about the network, which Harbor then opens; it gets none" in result.stderr
    result = CliRunner().invoke(commands, ["run", f"harbor:{tmp_path}", "--plan", "--network", "a.org"])
    assert "it gets only a.org" in result.stderr


def test_options_of_consent_reach_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_task(tmp_path, toml="[environment]\nnetwork_mode = 'public'\nenv = { A = '${SOME_KEY}' }")
    monkeypatch.setenv("SOME_KEY", "k")
    words = (f"harbor:{folder}", "--json")
    assert json.loads(told(*words, "--network", "a.org"))[0]["kind"] == "variable"
    assert json.loads(told(*words, "--network", "a.org", "--env", "SOME_KEY"))[0]["runs"]
    assert "no URL" in str(CliRunner().invoke(commands, ["run", *words, "--network", "http://a.org/"]).exception)


def test_local_desktops_cannot_run_them(tmp_path: Path) -> None:
    folder = write_task(tmp_path)
    [planned] = json.loads(told(f"harbor:{folder}", "--json", "--backend", "local"))
    assert planned["reason"] == "it runs in an image of its own: use --backend docker"
    with pytest.raises(EpisodeError, match="builds an image for its desktop: add --backend docker"):
        begin(tmp_path / "run", [f"harbor:{folder}"])
    with pytest.raises(EpisodeError, match="builds an image for its desktop: leave --image out"):
        DesktopPools(find_tasks([f"harbor:{folder}"]), backend="docker", desktops=1, image="x")


# --- attempts ---


def tried(folder: Path, places: Places) -> Mapping[str, Any]:
    [task] = find_tasks([f"harbor:{folder}"])
    return attempt(task, Key(task.name, "", 0, 0), places, "nothing")


@pytest.mark.parametrize(
    ("error", "cause", "said"),
    [
        (
            LaunchFailed("the image x", 0.0, "line 1\nexit code 3", "no"),
            Cause.CANNOT_RUN,
            "built: line 1 | exit code 3",
        ),
        (OSError("connection refused"), Cause.DESKTOP_START, "did not come up: the engine is away"),
    ],
)
def test_an_image_that_cannot_be_built_ends_only_its_episode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, cause: Cause, said: str
) -> None:
    def build(*_: object, **__: object) -> None:
        if isinstance(error, LaunchFailed):
            raise error
        raise LaunchFailed("the image", 0.0, "it is away", "the engine is away") from error

    monkeypatch.setattr("deskhand.episodes.tasks.harbor.image.dress_image", build)
    result = tried(write_task(tmp_path), places := Places())
    assert (result["cause"], result["valid"], result["score"]) == (cause, False, None)
    assert said in result["detail"]
    assert not places.given


def test_what_cannot_run_takes_neither_an_image_nor_a_desktop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built: Sequence[object] = []
    monkeypatch.setattr("deskhand.episodes.tasks.harbor.image.dress_image", lambda *_, **__: built.append(1))
    for name, parts in {"odd": {"toml": "agent = 1"}, "apt": {"test": "apt-get update\n"}}.items():
        result = tried(write_task(tmp_path, name, **parts), places := Places())
        assert (result["cause"], places.given, built) == (Cause.CANNOT_RUN, [], [])


def test_an_environment_that_changes_after_it_was_read_is_not_built(tmp_path: Path) -> None:
    folder = write_task(tmp_path)
    [task] = find_tasks([f"harbor:{folder}"])
    (folder / "environment" / "start.txt").write_text("other")
    with pytest.raises(TaskError, match="has changed since the run began"):
        task.ready()


def test_its_limits_are_those_of_the_file(tmp_path: Path) -> None:
    [task] = find_tasks([f"harbor:{write_task(tmp_path, toml=WHOLE)}"])
    assert isinstance(task, HarborTask)
    assert (task.limits.seconds, task.resources.most_memory, task.resources.most_cpus) == (90, 4 << 30, 2)
    assert task.evaluation_limit > 120
    assert task.environment == {"GREETING": "hello", "PLACE": "world"}
