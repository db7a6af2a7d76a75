"""The tables of a paper: their numbers, their forms, and names that would be more than text."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from deskhand.episodes.ledger.ledger import Key
from deskhand.episodes.report.comparison import compare_runs
from deskhand.episodes.report.summary import summarize
from deskhand.episodes.report.table import RunNumbers, public_since, table_data, write_table
from episodes.recorded import cli, make_run
from episodes.test_report_summary import result

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SCORES = {"a": 1.0, "b": 0.0, "c": 0.5, "d": None}


def run(name: str, results: Sequence[dict[str, Any]], **manifest: Any) -> RunNumbers:
    known = {"run_seed": 3, "seeds": 1, "repeats": 1, "tasks": {each["task"]: "x" for each in results}}
    return RunNumbers(name, {**known, **manifest}, results, summarize(results, planned=len(results) + 1))


def new() -> RunNumbers:
    results = [result(task, 0, score, tags=["web" if task < "c" else "office"]) for task, score in SCORES.items()]
    return run("new", results, public_since={"a": "2024-04-11"})


def old() -> RunNumbers:
    return run("old", [result(task, 0, 0.0, tags=["web"]) for task in "abc"] + [result("z")])


def rows_of(text: str) -> list[list[str]]:
    return [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in text.splitlines() if line[:1] == "|"
    ]


def test_both_scores_always_stand_there() -> None:
    header, _, row, *_ = rows_of(write_table([new()], "markdown"))
    numbers = dict(zip(header, row, strict=True))
    assert numbers["episodes"] == "4 of 5"
    assert numbers["score, invalid counts 0"].startswith("37.5 (")
    assert numbers["score, valid only"].startswith("50.0 (")
    # Wilson's interval for 1 of 3, and for 1 of 4.
    assert numbers["success, valid only"] == "33.3 (6.1 to 79.2)"
    assert numbers["invalid"] == "25.0 (4.6 to 69.9)"
    assert (numbers["tokens in"], numbers["tokens out"], numbers["cost"]) == ("40", "8", "1.00")


def test_each_domain_has_both_scores() -> None:
    text = write_table([new(), old()], "markdown")
    assert [row for row in rows_of(text) if row[0] == "office"] == [
        ["office", "2", "25.0 (0.0 to 100.0)", "50.0 (0.0 to 100.0)", "0", "", ""]
    ]


def test_two_runs_are_compared_over_what_both_have() -> None:
    found = compare_runs(old().results, new().results)
    assert found.strict is not None
    assert found.valid_only is not None
    assert (found.only_first, found.only_second, found.other_instances) == (1, 1, 0)
    assert (found.strict.pairs, found.strict.tasks, found.strict.score.value) == (3, 3, 0.5)
    assert (found.strict.gained, found.strict.lost, found.strict.mcnemar) == (1, 0, 1.0)
    # The signs of 1 and 1/2: two of four cases are as far from 0 as theirs.
    assert (found.strict.chance.p, found.strict.chance.exact) == (0.5, True)
    text = write_table([new(), old()], "markdown")
    assert "1 episodes are only in the first, 1 only in the second, which are not compared" in text


def test_what_is_invalid_in_one_counts_0_or_is_left_out() -> None:
    first = [result("a", 0, 1.0), result("b", 0, None)]
    second = [result("a", 0, 1.0), result("b", 0, 1.0)]
    found = compare_runs(first, second)
    assert found.strict is not None
    assert found.valid_only is not None
    assert (found.strict.score.value, found.strict.gained) == (0.5, 1)
    assert (found.valid_only.pairs, found.valid_only.score.value) == (1, 0.0)
    assert compare_runs(first[1:], second[1:]).valid_only is None


def test_episodes_of_other_seeds_are_not_compared() -> None:
    found = compare_runs([result("a", instance_seed=1)], [result("a", instance_seed=2)])
    assert (found.strict, found.other_instances) == (None, 1)


def test_how_long_tasks_have_been_public_is_told_or_is_unknown() -> None:
    assert public_since(new()) == {"2024-04-11": 1, "unknown": 3}
    assert public_since(old()) == {"unknown": 4}
    assert public_since(run("x", [result()], public_since=[1])) == {"unknown": 1}
    text = write_table([new()], "markdown")
    assert "tasks by the day since which they are public: 2024-04-11: 1; unknown: 3" in text
    assert "run seed 3, seeds 1, repeats 1" in text


def test_csv_is_one_table_for_programs() -> None:
    rows = list(csv.DictReader(io.StringIO(write_table([new(), old()], "csv"))))
    assert [(row["run"], row["domain"]) for row in rows] == [
        ("new", ""), ("new", "office"), ("new", "web"), ("old", ""), ("old", "text"), ("old", "web"),
    ]  # fmt: skip
    assert (rows[0]["strict"], rows[0]["valid_only"], rows[0]["cost"]) == ("0.375", "0.5", "1.0")
    assert rows[0]["difference_strict_p"] == ""
    assert (rows[3]["difference_strict_score"], rows[3]["difference_strict_p_mcnemar"]) == ("0.5", "1.0")


def test_names_are_text_in_every_form() -> None:
    evil = run("=1+1|<b>x</b>\n| y\x1b[2J", [result(agent="50 % & _#{}\\ `x` [y](z)", tags=["@a"])], tasks={"a": "1"})
    other = run("o|o", [result()], tasks={"a": "2"})
    markdown = write_table([evil, other], "markdown")
    assert "\x1b" not in markdown
    assert "<b>" not in markdown.replace("\\<", "")
    assert {len(row) for row in rows_of(markdown)[:3]} == {13}
    latex = write_table([evil, other], "latex")
    assert r"50 \% \& \_\#\{\}\textbackslash{} `x` [y](z)" in latex
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == 3
    for line in csv.reader(io.StringIO(write_table([evil], "csv"))):
        assert not [cell for cell in line if cell.startswith(("=", "@"))]


def test_as_data_there_is_everything() -> None:
    found = json.loads(json.dumps(table_data([new(), old()])))
    assert found["strict"]["value"] == 0.375
    assert found["seeds"] == {"run_seed": 3, "seeds": 1, "repeats": 1, "limit": None}
    assert [each["name"] for each in found["domains"]] == ["office", "web"]
    (compared,) = found["compared"]
    assert compared["with"]["run"] == "old"
    assert compared["strict"]["chance"] == {"p": 0.5, "exact": True}


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    keys = [Key("count", "", seed, 0) for seed in range(2)]
    make_run(tmp_path / "first", *keys)
    make_run(tmp_path / "second", *keys, score=0.0, success=False)
    return tmp_path / "first", tmp_path / "second"


def test_the_command_makes_them(runs: tuple[Path, Path], tmp_path: Path) -> None:
    first, second = map(str, runs)
    code, said = cli("report", first, second, first, "--table", "markdown")
    assert code == 0
    assert len([row for row in rows_of(said) if row[0] == "second"]) == 3
    assert cli("report", first, "--table", "csv", "-o", str(tmp_path / "table.csv")) == (
        0,
        f"{tmp_path / 'table.csv'}\n",
    )
    assert (tmp_path / "table.csv").read_text().startswith("run,agent,domain,")
    code, said = cli("report", first, second, "--json")
    assert json.loads(said)["compared"][0]["strict"]["score"]["value"] == 1.0


@pytest.mark.parametrize("options", [["--table", "csv", "--json"], ["SECOND", "FIRST"]])
def test_what_does_not_go_together_is_refused(runs: tuple[Path, Path], options: list[str]) -> None:
    first, second = map(str, runs)
    named = {"FIRST": first, "SECOND": second}
    code, said = cli("report", first, *(named.get(each, each) for each in options))
    assert code == 2
    assert "give" in said
