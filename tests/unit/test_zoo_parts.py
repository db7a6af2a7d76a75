"""The zoo's results are kept in parts, and a report is made of parts of one revision only."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from zoo.measure import Result
from zoo.parts import KINDS, Folder, MixedRevisionsError, Part, plan, write_report

if TYPE_CHECKING:
    from pathlib import Path

PARTS = plan((0, 2), 1, ("stage-x", "xterm"))
ELAPSED = dict.fromkeys(("input", "reaction", "settle", "capture", "encode"), 0.01)


def a_result(name: str, *, final: bool = True, error: str = "") -> Result:
    return Result(
        name=name,
        group="x spin",
        sign=True,
        final=final,
        settled=True,
        reason="quiet",
        wall=0.06,
        elapsed=ELAPSED,
        overshoot=0.052,
        error=error,
    )


def run_all(folder: Folder) -> None:
    for part in folder.missing(PARTS):
        folder.run(part, lambda part=part: [a_result(f"a case of {part.name}")])


def test_the_whole_is_every_kind_alone_and_beside_others() -> None:
    whole = plan((0, 2), 3)
    assert len({part.name for part in whole}) == len(whole) == 6 * len(KINDS)


def test_what_is_there_is_not_run_again(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "aaa")
    folder.run(PARTS[0], lambda: [a_result("one")])
    assert folder.missing(PARTS) == PARTS[1:]
    assert Folder(tmp_path, "aaa").missing(PARTS) == PARTS[1:]


def test_parts_of_another_revision_are_refused(tmp_path: Path) -> None:
    Folder(tmp_path, "aaa").run(PARTS[0], lambda: [a_result("one")])
    with pytest.raises(MixedRevisionsError, match="aaa"):
        Folder(tmp_path, "bbb")


def test_the_report_names_the_circumstances_and_what_was_not_final(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "parts", "aaa")
    folder.run(
        PARTS[0], lambda: [a_result("a good one"), a_result("a bad one", final=False), a_result("odd", error="lost")]
    )
    run_all(folder)
    write_report(folder, PARTS, tmp_path / "out")
    text = (tmp_path / "out.md").read_text()
    assert "Revision: aaa." in text
    assert "## Without busy loops" in text
    assert "## Beside 2 busy loops" in text
    assert "a bad one: quiet" in text
    assert "a good one" not in text
    assert "odd: lost" in text
    sections = json.loads((tmp_path / "out.json").read_text())["sections"]
    assert [len(section["results"]) for section in sections] == [4, 2]


def test_a_part_that_failed_is_run_again_and_told(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "parts", "aaa")

    def fail() -> list[Result]:
        raise TimeoutError("no window came")

    with pytest.raises(TimeoutError):
        folder.run(PARTS[0], fail)
    assert folder.missing(PARTS) == PARTS
    run_all(folder)
    write_report(folder, PARTS, tmp_path / "out")
    assert "stage-x-load0-round1: TimeoutError: no window came" in (tmp_path / "out.md").read_text()


def test_no_report_of_half_a_run(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "parts", "aaa")
    folder.run(PARTS[0], lambda: [a_result("one")])
    with pytest.raises(FileNotFoundError, match=PARTS[1].name):
        write_report(folder, PARTS, tmp_path / "out")
    assert not (tmp_path / "out.md").exists()


def test_a_part_is_named_by_what_it_is() -> None:
    assert Part("xterm", 2, 1).name == "xterm-load2-round1"
