"""The plan as tables for a page, what the image's recipe holds, and the page that was written so."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from deskhand.cli.group import commands
from deskhand.episodes.tasks.osworld.here import _IN_IMAGE
from deskhand.episodes.tasks.osworld.plan import KINDS, UPSTREAM
from deskhand.launchers.docker.images import context
from episodes.osworld_checkout import task_data, write_checkout, write_upstream

if TYPE_CHECKING:
    from click.testing import Result

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/osworld-parity.md"
FIRST, SECOND = "5ac2891a-0000-4000-8000-00000000000", "76543210-0000-4000-8000-000000000001"
# The packages of programs that have another name.
PACKAGES = {
    "dconf": "dconf-cli", "gio": "libglib2.0-bin", "gsettings": "libglib2.0-bin", "libreoffice": "libreoffice-writer",
    "pactl": "pulseaudio-utils", "update-desktop-database": "desktop-file-utils", "xdg-open": "xdg-utils",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _nothing_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("DESKHAND_ASSETS", raising=False)
    monkeypatch.delenv("DESKHAND_OSWORLD_PYTHON", raising=False)


def run(*words: str) -> Result:
    return CliRunner().invoke(commands, ["run", *words])


def rows(text: str, title: str) -> list[list[str]]:
    """The rows of a table below its title, without the line of dashes; the first has the names of its columns."""
    below = text.partition(f"**{title}**\n\n")[2].partition("\n\n")[0]
    found = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in below.splitlines()]
    return [row for row in found if not row[0].startswith("---")]


def test_a_page_has_a_row_for_each_task(tmp_path: Path) -> None:
    never = {"func": "infeasible"}
    tasks = [task_data(f"{FIRST}1"), task_data(f"{FIRST}2", evaluator=never), task_data(SECOND, evaluator=never)]
    odd = task_data("odd", evaluator=never, config=[{"type": "open", "parameters": {"path": "a|b\n*c*.unknown"}}])
    bad = task_data("bad", evaluator={"func": "x", "result": {"type": "a\n| b |"}})
    name = write_checkout(tmp_path, {"os": tasks, "vs_code": [odd, bad]})
    done = run(name, "--plan", "--backend", "docker", "--table", "markdown")
    assert (done.exit_code, done.stderr) == (0, "")
    head, *found = rows(done.stdout, "Tasks")
    assert head == ["domain", "task", "verdict", "reason"]
    # What begins alike is written out.
    assert [row[:3] for row in found] == [
        ["os", f"{FIRST}1", "file"],
        ["os", f"{FIRST}2", "runs"],
        ["os", "76543210", "runs"],
        ["vs\\_code", "odd", "runs"],
        ["vs\\_code", "bad", "broken"],
    ]
    assert found[0][3].startswith("files that it downloads are not in the cache: 1; ")
    head, *totals = rows(done.stdout, "By domain")
    assert totals[-1] == ["all", "5", *({"runs": "3", "file": "1", "broken": "1"}.get(kind, "") for kind in head[2:])]
    assert [row[:2] for row in rows(done.stdout, "By verdict")[1:]] == [["runs", "3"], ["broken", "1"], ["file", "1"]]
    assert "- Desktops: containers of deskhand/osworld." in done.stdout
    assert "- Desktops: local." in run(name, "--plan", "--table", "markdown").stdout


def test_what_differs_for_a_task_that_runs_is_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result, expected = {"type": "vm_wallpaper", "dest": "a.png"}, {"type": "rule", "rules": {}}
    wallpaper = task_data(evaluator={"func": "exact_match", "result": result, "expected": expected})
    name = write_checkout(tmp_path, {"os": [wallpaper, task_data("never", evaluator={"func": "infeasible"})]})
    found = rows(run(name, "--plan", "--backend", "docker", "--table", "markdown").stdout, "Tasks")[1:]
    assert [row[2] for row in found] == ["evaluator", "runs"]
    assert "upstream's evaluators" in found[0][3]
    assert found[1][3] == ""
    monkeypatch.setenv("DESKHAND_OSWORLD_PYTHON", write_upstream(tmp_path))
    found = rows(run(name, "--plan", "--backend", "docker", "--table", "markdown").stdout, "Tasks")[1:]
    assert [row[2] for row in found] == ["runs", "runs"]
    assert "does not show" in found[0][3]


def test_every_kind_says_what_upstream_does() -> None:
    assert set(UPSTREAM) == {"runs", *KINDS}


def test_an_image_whose_content_is_not_known_is_told(tmp_path: Path) -> None:
    name = write_checkout(tmp_path, {"os": [task_data("never", evaluator={"func": "infeasible"})]})
    for words in ([], ["--json"], ["--table", "markdown"]):
        done = run(name, "--plan", "--backend", "docker", "--image", "my/image", *words)
        assert (done.exit_code, "what my/image holds is not known here" in done.stderr) == (0, True)
    assert run(name, "--plan", "--backend", "docker", "--image", "deskhand/osworld").stderr == ""
    assert "add --backend docker" in run(name, "--plan", "--image", "deskhand/osworld").stderr


def test_a_place_that_a_run_refuses_is_refused(tmp_path: Path) -> None:
    name = write_checkout(tmp_path, {"os": [task_data()]})
    done = run(name, "--plan", "--backend", "nonsense")
    assert (done.exit_code, "there is no backend 'nonsense'" in done.stderr) == (2, True)
    done = run(f"harbor:{tmp_path}", "--plan", "--image", "my/image")
    assert (done.exit_code, "build images for their desktops: leave --image out" in done.stderr) == (2, True)


def test_a_table_is_a_form_of_the_plan_alone(tmp_path: Path) -> None:
    name = write_checkout(tmp_path, {"os": [task_data()]})
    assert "add --plan" in run(name, "--table", "markdown", "--out", str(tmp_path / "run")).stderr
    assert not (tmp_path / "run").exists()
    assert "give one of them" in run(name, "--plan", "--table", "markdown", "--json").stderr
    assert "'latex' is not" in run(name, "--plan", "--table", "latex").stderr


def test_the_programs_of_the_image_are_those_of_its_recipe() -> None:
    recipe = (context() / "Dockerfile").read_text()
    stages = recipe.partition(" AS packages\n")[2].replace("\\\n", " ")
    installed = {word for line in re.findall(r"--no-install-recommends ([^&]*)&&", stages) for word in line.split()}
    assert {"gimp", "chromium", "xterm"} <= installed
    assert sorted(name for name in _IN_IMAGE if PACKAGES.get(name, name) not in installed) == []


def test_the_pages_numbers_are_those_of_its_rows() -> None:
    text = PAGE.read_text()
    head, *totals = rows(text, "By domain")
    tasks = rows(text, "Tasks")[1:]
    counts = Counter((domain, verdict) for domain, _, verdict, _ in tasks)
    for name, whole, *each in totals[:-1]:
        assert [int(cell or 0) for cell in each] == [counts[name, kind] for kind in head[2:]]
        assert int(whole) == sum(counts[name, kind] for kind in head[2:])
    assert int(totals[-1][1]) == len(tasks) == len({task for _, task, _, _ in tasks})
    assert {kind: int(count) for kind, count, _ in rows(text, "By verdict")[1:]} == Counter(row[2] for row in tasks)
    explained = set(re.findall(r"^\| (\w+) \|", text.partition("<!-- parity -->")[0], re.MULTILINE))
    assert {row[2] for row in tasks} <= explained
    assert [row[2:] for row in tasks if row[2] not in {"runs", "evaluator"} and not row[3]] == []


def test_the_page_is_written_by_its_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "tools")
    import osworld_parity  # noqa: PLC0415 # it is no package

    page = tmp_path / "page.md"
    monkeypatch.setattr(osworld_parity, "PAGE", page)
    checkout = write_checkout(tmp_path, {"os": [task_data("never", evaluator={"func": "infeasible"})]})
    monkeypatch.setattr(sys, "argv", ["", checkout.removeprefix("osworld:"), "a set"])
    for _ in range(2):
        page.write_text(
            page.read_text() if page.exists() else "Before\n<!-- parity -->\nold\n<!-- /parity -->\nafter\n"
        )
        osworld_parity.main()
        text = page.read_text()
        assert text.startswith("Before\n<!-- parity -->\n")
        assert text.endswith("<!-- /parity -->\nafter\n")
        assert (text.count("a set:"), text.count("| os | never | runs |"), "old" in text) == (1, 1, False)
    page.write_text("without a place for it")
    with pytest.raises(SystemExit, match="has no"):
        osworld_parity.main()
    assert page.read_text() == "without a place for it"
