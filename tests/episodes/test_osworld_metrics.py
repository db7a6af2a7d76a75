"""End states for OSWorld's metrics: the cases are tasks that can be evaluated, and what judges them tells what did not hold.

Upstream's own metrics judge all of them in `make evidence` (`osworld_metrics`); here a package with upstream's structure does.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deskhand.episodes.tasks.osworld import evaluators as environment
from episodes import osworld_metrics
from episodes.osworld_checkout import task_data, write_checkout, write_upstream
from episodes.osworld_files import make
from episodes.osworld_metrics import Judged, count, differs, judge_all, read_tasks, table, task_of
from episodes.osworld_more_states import CASES
from episodes.osworld_states import HOME, State

if TYPE_CHECKING:
    from deskhand.episodes.tasks.osworld.evaluators import Evaluators

PAGE = Path(__file__).parents[2] / "evidence/osworld_metrics.md"
BY_NAME = {case.name: case for case in CASES}
TEXT, SAID, PLAYED = (
    BY_NAME[name]
    for name in ("compare_text_file-vs_code-0ed39f63", "exact_match-multi_apps-48d05431", "is_vlc_playing-vlc-59f21cfb")
)


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Evaluators:
    return environment._examined(write_upstream(tmp_path_factory.mktemp("upstream")))


def test_each_case_is_a_task_that_upstreams_package_can_evaluate() -> None:
    known = environment.load_table()
    assert len(BY_NAME) == len(CASES)
    for case in CASES:
        right, wrong = (task_of(case, state) for state in (case.right, case.wrong))
        assert set(right.functions) <= {*known.metrics, "infeasible"}, case.name
        assert {f"get_{name}" for name in right.getters} <= set(known.getters), case.name
        assert (case.right, right) != (case.wrong, wrong), case.name
        # A path elsewhere would be written on the machine of whoever runs this.
        for state in (case.right, case.wrong, case.overlooked or case.right):
            assert all(path.startswith(f"{HOME}/") for path in state.files), case.name


def test_the_applications_have_many_cases_each() -> None:
    areas = Counter(case.area for case in CASES)
    assert len({case.func for case in CASES}) == 40
    assert {
        name for name in ("Calc", "Writer", "Impress", "GIMP", "VLC", "Thunderbird", "PDF") if areas[name] < 4
    } == set()


def test_states_are_judged_by_a_package_with_upstreams_structure(upstream: Evaluators) -> None:
    swapped = replace(TEXT, right=TEXT.wrong, wrong=TEXT.right)
    blind = replace(SAID, overlooked=SAID.right)
    unseen = replace(SAID, overlooked=SAID.wrong)
    failing = replace(SAID, func="check_list")
    judged = judge_all([TEXT, SAID, PLAYED, swapped, blind, unseen, failing], upstream)
    assert [(each.right, each.wrong) for each in judged[:6]] == [(1.0, 0.0)] * 3 + [(0.0, 1.0)] + [(1.0, 0.0)] * 2
    assert [each.held for each in judged] == [True, True, True, False, True, False, False]
    assert "an evaluator that fails" in str(judged[6].right)
    assert not Path(HOME, "Desktop/end.txt").exists()


def test_a_file_that_cannot_be_made_is_told(upstream: Evaluators) -> None:
    case = replace(TEXT, right=State({f"{HOME}/a.zip": 1}))
    [judged] = judge_all([case], upstream)
    assert (judged.held, "cannot be made" in str(judged.right)) == (False, True)


def test_no_file_is_made_elsewhere(upstream: Evaluators) -> None:
    for path in ("/tmp/elsewhere.txt", f"{HOME}/../../elsewhere.txt"):
        with pytest.raises(ValueError, match="is not in the subpath"):
            judge_all([replace(TEXT, wrong=State({path: "text"}))], upstream)


def test_files_are_made_of_their_descriptions(tmp_path: Path) -> None:
    make(tmp_path / "a/b.txt", "text")
    make(tmp_path / "b.json", {"a": 1})
    make(tmp_path / "c.zip", {"d/e.txt": "text"})
    make(tmp_path / "d.wav", [440])
    make(tmp_path / "e.wav", [])
    make(tmp_path / "f.png", {"size": [20, 10], "margin": 2})
    assert (tmp_path / "a/b.txt").read_text() == "text"
    assert json.loads((tmp_path / "b.json").read_text()) == {"a": 1}
    assert (tmp_path / "c.zip").read_bytes()[:2] == b"PK"
    assert [(tmp_path / name).stat().st_size for name in ("d.wav", "e.wav")] == [44 + 22050, 0]
    assert (tmp_path / "f.png").read_bytes()[16:24] == (24).to_bytes(4, "big") + (14).to_bytes(4, "big")


def test_a_row_says_what_is_not_as_expected() -> None:
    right, likeness, failed = (
        Judged(TEXT, 1.0 - 1e-9, 0.0),
        Judged(replace(TEXT, most=0.5), 1.0, 0.4),
        Judged(TEXT, "no | such\npackage", 0.0),
    )
    rows = table([right, likeness, failed, Judged(TEXT, 1.0, 0.4)], Counter({TEXT.func: 5})).splitlines()[2:]
    start = "| VS Code | compare_text_file | 5 | vs_code/0ed39f63 |"
    assert rows == [
        f"{start} 1 | 0 |  |",
        f"{start} 1 | 0.4 |  |",
        f"{start} none: no \\| such package | 0 | **not as expected** |",
        f"{start} 1 | 0.4 | **not as expected** |",
    ]


def test_a_case_is_compared_with_its_task(tmp_path: Path) -> None:
    def task(id_: str, func: Any, **evaluator: Any) -> dict[str, Any]:
        return task_data(id_, evaluator={"func": func, "result": {"type": "a"}, "expected": {"type": "b"}, **evaluator})

    def rule(rules: Any) -> dict[str, Any]:
        return {"type": "rule", "rules": rules}

    step = {"type": "download", "parameters": {"files": []}}
    two = task("48d05431-1", ["check_list", "exact_match"], expected=[rule({}), rule({"expected": "1\n"})])
    tasks = {"multi_apps": [{**two, "config": [step]}], "vs_code": [task("0ed39f63-1", "compare_text_file")]}
    found = read_tasks(Path(write_checkout(tmp_path, tasks).removeprefix("osworld:")))
    assert count(found) == {"check_list": 1, "exact_match": 1, "compare_text_file": 1}
    assert [differs(each, found) for each in (TEXT, SAID)] == ["", ""]
    assert differs(PLAYED, found) == "0 tasks are called vlc/59f21cfb"
    other = replace(TEXT, evaluator={**TEXT.evaluator, "options": {"ignore_blanks": True}})
    assert "no metric of the task has" in differs(other, found)
    assert "no metric of the task has" in differs(replace(SAID, func="check_list"), found)


def test_the_command_prints_the_table_and_fails_with_what_did_not_hold(
    tmp_path: Path, upstream: Evaluators, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DESKHAND_OSWORLD_PYTHON", upstream.python)
    root = write_checkout(tmp_path, {"vs_code": [task_data("0ed39f63-1")], "os": [task_data("b")]}).removeprefix(
        "osworld:"
    )
    monkeypatch.setattr(sys, "argv", ["", "--checkout", root, TEXT.name])
    osworld_metrics.main()
    said = capsys.readouterr().out
    assert "| VS Code | compare_text_file | 2 | vs_code/0ed39f63 | 1 | 0 |  |" in said
    assert "2 tasks use 1 metrics; 1 of these are used by at least two tasks." in said
    monkeypatch.setattr(osworld_metrics, "CASES", (replace(TEXT, right=TEXT.wrong),))
    monkeypatch.setattr(sys, "argv", [""])
    with pytest.raises(SystemExit, match=TEXT.name):
        osworld_metrics.main()
    monkeypatch.setattr(osworld_metrics, "find_evaluators", lambda: None)
    with pytest.raises(SystemExit, match="assets evaluators"):
        osworld_metrics.main()


def test_the_page_has_each_case_as_it_is_expected() -> None:
    text = PAGE.read_text()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")][1:]
    assert sorted((row[1], row[3]) for row in rows) == sorted((case.func, case.task) for case in CASES)
    assert "not as expected" not in text
    assert {row[4] for row in rows} == {"1"}
    found = re.search(r"Of these (\d+), (\d+) are judged here", text)
    assert found is not None
    assert found[1] == found[2] == str(len({case.func for case in CASES}))
