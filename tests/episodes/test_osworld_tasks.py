"""OSWorld's task files are read as the untrusted files that they are, and a plan says what each task needs."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from deskhand.cli.group import commands
from deskhand.episodes.tasks.catalogue import digest, find_tasks, ships
from deskhand.episodes.tasks.osworld.collection import find_entries
from deskhand.episodes.tasks.osworld.evaluators import load_table
from deskhand.episodes.tasks.osworld.imports import exported, uses_of
from deskhand.episodes.tasks.osworld.needs import needs_of
from deskhand.episodes.tasks.osworld.plan import KINDS, Facts, notes, reasons
from deskhand.episodes.tasks.osworld.taskfile import LARGEST, TaskFile, at_home, parse_task
from deskhand.errors import TaskError
from episodes.osworld_checkout import HUB, task_data, write_checkout

if TYPE_CHECKING:
    from pathlib import Path


def parsed(**parts: Any) -> TaskFile:
    return parse_task(json.dumps(task_data(**parts)).encode(), domain="os", id="t-1")


def evaluator(**parts: Any) -> dict[str, Any]:
    return {**task_data()["evaluator"], **parts}


def step(kind: str, **parameters: Any) -> dict[str, Any]:
    return {"type": kind, "parameters": parameters}


# --- one file ---


def test_a_task_is_read() -> None:
    task = parsed(config=[step("open", path="/home/user/a.docx")])
    assert (task.domain, task.functions, task.getters) == ("os", ("compare_text_file",), ("vm_file", "cloud_file"))
    assert [each.kind for each in task.setup] == ["open"]
    assert parsed(evaluator={"func": "infeasible"}).infeasible


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"id": "../t"}, "id: it is '../t'"),
        ({"instruction": " "}, "instruction: it is ' '"),
        ({"config": {}}, "config: it is {}"),
        ({"config": [step("rm -rf /")]}, "steps with a type and parameters"),
        ({"config": [step("download", files=[{"url": "u"}])]}, "a list of objects with url and path"),
        ({"config": [step("launch", command=[1])]}, "config.launch.command: it is [1]"),
        ({"config": [step("launch")]}, "an object with command"),
        ({"config": [step("execute", command="a", stdout="../x")]}, "the name of a file, without a folder"),
        ({"config": [step("sleep", seconds=1e9)]}, "0 to 3600 seconds"),
        ({"config": [step("sleep", seconds=1)] * 201}, "a list of at most 200 steps"),
        ({"evaluator": []}, "evaluator: it is []"),
        ({"evaluator": evaluator(func="__import__('os')")}, "the name of a metric"),
        ({"evaluator": evaluator(func=["a", "b"])}, "one getter for each metric"),
        ({"evaluator": evaluator(conj="xor")}, "evaluator.conj: it is 'xor'"),
        ({"evaluator": evaluator(options=[{}])}, "an object for each metric"),
        ({"evaluator": evaluator(result=None)}, "evaluator.result"),
        ({"evaluator": evaluator(result={"type": "vm_file", "path": "/a", "dest": "../../a"})}, "without .."),
        ({"evaluator": evaluator(result={"type": "vm_file", "path": "/a", "dest": "/etc/a"})}, "not absolute"),
        ({"evaluator": evaluator(result={"type": "cache_file", "path": "/etc/passwd"})}, "not absolute"),
        ({"evaluator": evaluator(result={"type": "x", "time_format": "/../%Y"})}, "a format without a /"),
        ({"related_apps": "os"}, "related_apps: it is 'os'"),
        ({"proxy": "yes"}, "proxy: it is 'yes'"),
    ],
)
def test_a_wrong_part_is_named(parts: dict[str, Any], said: str) -> None:
    with pytest.raises(TaskError) as raised:
        parsed(**parts)
    assert str(raised.value).startswith("task os/t-1: ")
    assert said in str(raised.value)


def test_what_is_no_task_at_all_is_refused() -> None:
    deep: Any = []
    for _ in range(40):
        deep = [deep]
    for data, said in (
        (b"{", "its file is not JSON"),
        (b"[" * 100_000, "its file is not JSON"),
        (b"[]", "an object"),
        (b" " * (LARGEST + 1), "at most"),
        (json.dumps(task_data(more=deep)).encode(), "deeper than 32 levels"),
        (json.dumps(task_data(more=[0] * 30_000)).encode(), "more than 20000 parts"),
    ):
        with pytest.raises(TaskError, match=said):
            parse_task(data, domain="os", id="t-1")


def test_another_home_directory_takes_the_place_of_upstreams() -> None:
    told = {"a": ["cp /home/user/x /home/users/y", "/home/user"], "b": 1}
    assert at_home(told, "/tmp/h") == {"a": ["cp /tmp/h/x /home/users/y", "/tmp/h"], "b": 1}
    assert at_home(told, "/home/user") is told


# --- many files ---


def test_tasks_are_found_by_checkout_list_domain_id_and_pattern(tmp_path: Path) -> None:
    name = write_checkout(tmp_path, {"os": [task_data("a1"), task_data("b2")], "vlc": [task_data("c3")]})
    (tmp_path / "evaluation_examples" / "some.json").write_text('{"vlc": ["c3"]}')

    def found(more: str = "") -> list[str]:
        return [entry.id for entry in find_entries(name + more)]

    assert found() == found("/evaluation_examples") == found("/evaluation_examples/test_all.json") == ["a1", "b2", "c3"]
    assert found("/os") == found("/evaluation_examples/os") == found("/evaluation_examples/examples/os") == ["a1", "b2"]
    assert found("/b2") == found("/os/b2") == found("/evaluation_examples/examples/os/b2.json") == ["b2"]
    assert found("/os/a*") == ["a1"]
    assert found("/evaluation_examples/some.json") == ["c3"]
    with pytest.raises(TaskError, match="its domains are os, vlc"):
        found("/gimp")
    with pytest.raises(TaskError, match="there is no folder examples"):
        find_entries(f"osworld:{tmp_path.parent}/elsewhere")
    (tmp_path / "evaluation_examples" / "test_all.json").unlink()
    assert found() == ["a1", "b2", "c3"]


@pytest.mark.parametrize("listed", ['{"os": ["../../../etc/passwd"]}', '{"..": ["a"]}', '{"os": "a"}', "[]", "{"])
def test_a_hostile_list_leads_nowhere(tmp_path: Path, listed: str) -> None:
    name = write_checkout(tmp_path, {"os": [task_data("a1")]})
    (tmp_path / "evaluation_examples" / "test_all.json").write_text(listed)
    with pytest.raises(TaskError):
        find_entries(name)


def test_a_broken_file_is_named_and_contained(tmp_path: Path) -> None:
    name = write_checkout(
        tmp_path, {"os": [task_data(each) for each in ("good", "text", "link", "pipe", "gone", "huge")]}
    )
    folder = tmp_path / "evaluation_examples" / "examples" / "os"
    for broken in ("link", "pipe", "gone"):
        (folder / f"{broken}.json").unlink()
    (folder / "text.json").write_text("{")
    (folder / "link.json").symlink_to("/etc/passwd")
    os.mkfifo(folder / "pipe.json")
    (folder / "huge.json").write_bytes(b" " * (LARGEST + 1))
    entries = {entry.id: entry for entry in find_entries(name)}
    assert [id_ for id_, entry in entries.items() if entry.task is not None] == ["good"]
    assert "not JSON" in entries["text"].broken
    assert "symbolic links" in entries["link"].broken
    assert "not a regular file" in entries["pipe"].broken
    assert "No such file" in entries["gone"].broken
    assert "larger than" in entries["huge"].broken
    # They are tasks all the same, so that a run counts them.
    assert len(find_tasks([name])) == 6


def test_they_are_tasks_of_the_catalogue(tmp_path: Path) -> None:
    name = write_checkout(tmp_path, {"vs_code": [task_data("A-1")]})
    [task] = find_tasks([name])
    assert (task.name, task.tags, task.screen) == ("osworld-vs-code-a-1", ("osworld", "vs_code"), (1920, 1080))
    assert task.instruction({}) == "Write the text."
    assert not ships(name)
    assert not ships("osworld:here")
    before = digest(task)
    write_checkout(tmp_path, {"vs_code": [task_data("A-1", instruction="Another.")]})
    assert digest(find_tasks([name])[0]) != before


# --- needs ---


def needed(**parts: Any) -> Any:
    return needs_of(parsed(**parts), load_table())


def test_what_a_task_needs_is_read_from_it() -> None:
    files = [{"url": f"{HUB}a.xlsx", "path": "/home/user/a.xlsx"}]
    assert needed(config=[step("download", files=files)]).urls == (f"{HUB}a.xlsx", f"{HUB}gold.txt")
    assert needed(config=[step("open", path="/home/user/a.xlsx")]).programs == ("libreoffice",)
    assert needed(config=[step("open", path="/home/user/a.png")]).programs == ("xdg-open",)
    assert needed(related_apps=["vscode", "calc", "os"]).programs == ("code", "libreoffice")
    assert needed(config=[step("chrome_open_tabs", urls_to_open=["https://a.org/x", "chrome://version"])]).hosts == (
        "a.org",
    )
    assert needed(config=[step("login", platform="x")]).logins
    assert needed(config=[step("tidy_desktop")]).unknown_steps == ("tidy_desktop",)
    assert needed(evaluator=evaluator(func="no_such")).unknown_evaluators == ("metric no_such",)
    assert needed(instruction="Save it at /home/user/a.txt.").home
    assert needed(proxy=True).hosts == ("the web, through upstream's proxy",)
    assert not needed(evaluator={"func": "infeasible"}).packages


@pytest.mark.parametrize(
    ("command", "programs"),
    [
        (["google-chrome", "--remote-debugging-port=1337"], ("google-chrome",)),
        (["socat", "tcp-listen:9222,fork", "tcp:localhost:1337"], ()),
        (["python", "-c", "import pyautogui; pyautogui.hotkey('ctrl', 's')"], ()),
        (["python3", "-c", "print(1)"], ("python3",)),
        ("cd /x && A=1 vlc --no-audio 'gimp; x' | grep a; ./setup.sh", ("vlc",)),
        (["/bin/bash", "-c", "killall gnome-terminal-server; jq . a"], ("jq",)),
        ("if [ -f a ]; then soffice a; fi", ("libreoffice",)),
        ('if [ "$(echo "$X > 1" | bc -l)" = 1 ]; then echo "$(timeout 10 jq . a)"; fi', ("bc", "jq")),
        ("echo {CLIENT_PASSWORD} | sudo -S apt install jq -y", ()),
    ],
)
def test_the_programs_of_a_command(command: object, programs: tuple[str, ...]) -> None:
    assert needed(config=[step("execute", command=command)]).programs == programs


def test_rights_and_package_servers_are_named() -> None:
    needs = needed(config=[step("execute", command="echo p | sudo -S apt install jq -y", shell=True)])
    assert "sudo" in needs.root
    assert needs.hosts == ("the package server of apt",)


def test_a_page_that_an_evaluator_looks_for_needs_the_network() -> None:
    rules = {"type": "rule", "rules": {"expected": ["^https://www\\.example\\.com/a"]}}
    found = needed(evaluator=evaluator(func="exact_match", result={"type": "active_tab_info"}, expected=rules))
    assert found.hosts == ("www.example.com",)
    # A getter that completes addresses with the beginning that all have names no host.
    prefixed = {"type": "active_tab_info", "goto_prefix": "https://www."}
    found = needed(evaluator=evaluator(func="exact_match", result=prefixed, expected=rules))
    assert found.hosts == ("www.example.com",)
    # A text that is compared with a command's output is no address.
    assert needed(evaluator=evaluator(expected=rules)).hosts == ()


# --- imports ---


def test_what_a_function_uses_is_followed_through_its_calls() -> None:
    sources = {
        "desktop_env.evaluators.metrics.a": (
            "import numpy as np, os\nfrom PIL import Image\nfrom .b import helper as h\nimport torch\n"
            "LIMIT = np.pi\n"
            "def one(x: torch.Tensor):\n    return h(x) < LIMIT\n"
            "def two(env):\n    import fitz\n    return env.controller.get_file(env.cache_dir)\n"
            "def three():\n    return three() + one()\n"
        ),
        "desktop_env.evaluators.metrics.b": "import lxml.etree\ndef helper(x):\n    return lxml.etree.parse(x)\n",
    }

    def used(name: str) -> tuple[list[str], list[str]]:
        found = uses_of(sources, "desktop_env.evaluators.metrics.a", name)
        return sorted(found.packages), sorted(found.environment)

    assert used("one") == (["lxml", "numpy"], [])
    assert used("two") == (["fitz"], ["cache_dir", "get_file"])
    assert used("three") == (["lxml", "numpy"], [])
    assert exported("from .a import one, two as deux\nimport os\n") == {"one": ("a", "one"), "deux": ("a", "two")}


# --- plan ---


def facts(**differing: Any) -> Facts:
    usual: dict[str, Any] = {
        "has_program": lambda _: True,
        "has_asset": lambda _: True,
        "packages": frozenset({"requests"}),
        "version": load_table().version,
        "local": False,
    }
    return Facts(**{**usual, **differing})


def test_every_reason_is_given_the_one_that_cannot_be_helped_first() -> None:
    assert reasons(parsed(), facts(), load_table()) == []
    task = parsed(
        related_apps=["gimp"],
        instruction="Write to /home/user/a.",
        config=[
            step("googledrive"),
            step("execute", command="sudo x"),
            step("chrome_open_tabs", urls_to_open=["https://a.org"]),
        ],
    )
    here = facts(has_program=lambda _: False, has_asset=lambda _: False, packages=None, local=True)
    found = reasons(task, here, load_table())
    assert [reason.kind for reason in found] == [
        "login", "network", "rights", "differs", "application", "file", "evaluator",
    ]  # fmt: skip
    assert [reason.kind for reason in found] == sorted((reason.kind for reason in found), key=KINDS.index)
    assert found[5].text == "files that it downloads are not in the cache: 1"


def test_what_only_a_container_has_is_a_reason_on_this_machine_alone() -> None:
    rule = {"type": "rule", "rules": {"type": "file_name", "file_name": "a.mp4"}}
    playing = {"type": "vlc_playing_info", "dest": "status.xml"}
    task = parsed(evaluator=evaluator(func="is_vlc_playing", result=playing, expected=rule))
    assert needs_of(task, load_table()).programs == ("curl",)
    assert reasons(task, facts(), load_table()) == []
    [reason] = reasons(task, facts(local=True), load_table())
    assert (reason.kind, "use --backend docker" in reason.text) == ("differs", True)
    streamed = {"type": "rule", "rules": {"type": "url", "url": "https://a.org/master.m3u8"}}
    task = parsed(evaluator=evaluator(func="is_vlc_playing", result=playing, expected=streamed))
    assert [reason.kind for reason in reasons(task, facts(), load_table())] == ["network"]


def test_a_wallpaper_is_noted_and_the_browsers_port_refused() -> None:
    task = parsed(evaluator=evaluator(result={"type": "vm_wallpaper", "dest": "a.png"}))
    assert needs_of(task, load_table()).programs == ("gsettings",)
    assert reasons(task, facts(), load_table()) == []
    assert "does not show" in notes(task, load_table())[0]
    assert notes(parsed(), load_table()) == []
    [reason] = reasons(
        parsed(evaluator=evaluator(result={"type": "active_tab_info"})),
        facts(packages=frozenset({"lxml", "playwright", "requests"})),
        load_table(),
    )
    assert (reason.kind, "the browser's protocol" in reason.text) == ("differs", True)


def test_a_missing_package_is_named_and_an_infeasible_task_needs_none() -> None:
    table = load_table()
    [reason] = reasons(parsed(), facts(packages=frozenset()), table)
    assert (reason.kind, "requests" in reason.text) == ("evaluator", True)
    [reason] = reasons(parsed(), facts(version="0.9"), table)
    assert "desktop-env 0.9" in reason.text
    assert reasons(parsed(evaluator={"func": "infeasible"}), facts(packages=None), table) == []


def test_plan_prints_a_list_and_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("DESKHAND_OSWORLD_PYTHON", raising=False)
    broken = task_data("bad", evaluator=7)
    infeasible = task_data("never", evaluator={"func": "infeasible"})
    name = write_checkout(tmp_path, {"os": [task_data("file"), infeasible, broken]})

    def said(*more: str) -> Any:
        return CliRunner().invoke(commands, ["run", *more, "--plan"])

    data = json.loads(said(name, "--json", "--assets", str(tmp_path / "assets")).stdout)
    assert [(row["id"], row["domain"], row["runs"], row["kind"]) for row in data] == [
        ("file", "os", False, "file"),
        ("never", "os", True, ""),
        ("bad", "os", False, "broken"),
    ]
    assert data[0]["reason"].startswith("files that it downloads are not in the cache: 1; ")
    assert data[1]["reason"] == ""
    shown = said(name)
    assert shown.stdout.splitlines()[-1].split() == ["all", "3", "1", "1", "1"]
    assert "1 lack a file" in shown.stderr
    assert said("text-*").exit_code == 2
    assert list(tmp_path.glob("assets*")) == []
