"""The oracles of OSWorld's tasks: they act on a real desktop, and their table says what was scored otherwise than expected."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from deskhand.episodes.ledger.ledger import Key
from episodes import osworld_oracles
from episodes.osworld_checkout import task_data, write_checkout, write_upstream
from episodes.osworld_oracles import INFEASIBLE, ORACLES, play, table

if TYPE_CHECKING:
    from deskhand import Desktop

PAGE = Path(__file__).parents[2] / "evidence/osworld_oracles.md"


def played(task: str, desktop: Desktop | None = None) -> str:
    name = f"osworld-{task.replace('/', '-').replace('_', '-')}-0000-4000"
    episode: Any = SimpleNamespace(_key=Key(name, "", 0, 0), desktop=desktop)
    return play(episode)


def test_a_task_that_cannot_be_done_is_said_to_be_one() -> None:
    assert {played(name).rpartition("\n")[2] for name in INFEASIBLE} == {"FAIL"}
    assert not set(INFEASIBLE) & set(ORACLES)
    with pytest.raises(LookupError, match="no oracle for osworld-os-00000000"):
        played("os/00000000")


def test_a_command_is_typed_in_a_terminal_and_has_run(desktop: Desktop, home: Path) -> None:
    assert played("multi_apps/48d05431", desktop) == "It is done."
    assert (home / ".bashrc").read_text() == "# >>> conda initialize >>>\n"


def test_the_table_names_what_was_scored_otherwise() -> None:
    def result(score: float = 0.0, **parts: Any) -> dict[str, Any]:
        return {"valid": True, "score": score, "cause": None, "detail": "", "times": {"total": 2.04}, **parts}

    lacking = result(valid=False, cause="cannot_run", detail="TaskError: a program is missing: vlc: choose another")
    failed = result(valid=False, cause="evaluator_failed")
    names = ["chrome/99146c54", "os/1", "os/2", "os/3", "os/b3d4a89c", "vlc/1"]
    right = dict(zip(names, [result(1.0), result(1.0), result(0.5), failed, result(1.0), lacking], strict=True))
    idle = {**{name: result() for name in names}, "chrome/99146c54": result(1.0), "os/1": result(1.0), "vlc/1": lacking}
    shown, wrong = table(names, right, idle, dict.fromkeys(names, 82.0))
    assert wrong == ["os/1", "os/2", "os/3"]
    assert shown.splitlines()[2:] == [
        "| chrome/99146c54 |  | 1 | 1 | 2.0 | 82 |",
        "| os/1 |  | 1 | 1 | 2.0 | 82 |",
        "| os/2 |  | 0.5 | 0 | 2.0 | 82 |",
        "| os/3 |  | evaluator_failed | None | | |",
        "| os/b3d4a89c | cannot be done | 1 | 0 | 2.0 | 82 |",
        "| vlc/1 |  | lacks vlc | lacks vlc | | |",
    ]


def test_the_page_has_each_oracle_with_the_score_that_is_expected() -> None:
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.read_text().splitlines()]
    rows = [row for row in cells if row and "/" in row[0]]
    assert sorted(row[0] for row in rows) == sorted((*INFEASIBLE, *ORACLES))
    assert {row[2] for row in rows if not row[2].startswith("lacks")} == {"1"}
    assert [row[0] for row in rows if row[3] == "1"] == ["chrome/99146c54"]
    found = re.search(r"(\d+) of (\d+) ran here", PAGE.read_text())
    assert found is not None
    assert (int(found[1]), int(found[2])) == (sum(not row[2].startswith("lacks") for row in rows), len(rows))


@pytest.mark.soak
def test_the_command_plays_the_oracle_and_an_agent_that_does_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DESKHAND_OSWORLD_PYTHON", write_upstream(tmp_path / "upstream"))
    get = "gsettings get org.gnome.desktop.screensaver lock-enabled"
    set_up = {"type": "execute", "parameters": {"command": get.replace("get", "set", 1) + " false", "shell": True}}
    evaluator = {
        "func": "exact_match",
        "result": {"type": "vm_command_line", "command": get, "shell": True},
        "expected": {"type": "rule", "rules": {"expected": "true\n"}},
    }
    sleep = {"type": "sleep", "parameters": {"seconds": 0.5}}
    tasks = [
        task_data("a4d98375-1", config=[set_up, sleep], evaluator=evaluator),
        task_data("b3d4a89c-1", evaluator={"func": "infeasible"}),
    ]
    root = write_checkout(tmp_path, {"os": tasks}).removeprefix("osworld:")
    monkeypatch.setattr(sys, "argv", ["", root, "os/a4d98375", "os/b3d4a89c"])
    osworld_oracles.main()
    said = capsys.readouterr().out
    assert re.search(r"^\| os/a4d98375 \|  \| 1 \| 0 \| [\d.]+ \| 80.5 \|$", said, re.MULTILINE)
    assert re.search(r"^\| os/b3d4a89c \| cannot be done \| 1 \| 0 \| [\d.]+ \| 80 \|$", said, re.MULTILINE)
    assert "2 of 2 ran here." in said
