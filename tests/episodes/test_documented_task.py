"""The task that docs/episodes.md describes is a task as it stands there."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deskhand.episodes.play.admission import admit
from deskhand.episodes.tasks.catalogue import find_tasks, instance
from deskhand.episodes.tasks.folders import _KEYS, CODE_FILE, TASK_FILE
from deskhand.episodes.tasks.task import Resources, TaskLimits

if TYPE_CHECKING:
    from deskhand.episodes.tasks.task import Task

PAGE = Path(__file__).resolve().parents[2] / "docs/episodes.md"


def block(language: str) -> str:
    section = PAGE.read_text().partition("### A task of your own\n")[2].partition("\n## ")[0]
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    return str(found)


@pytest.fixture
def task(tmp_path: Path) -> Task:
    folder = tmp_path / "write-word"
    folder.mkdir()
    (folder / TASK_FILE).write_text(block("toml"))
    (folder / CODE_FILE).write_text(block("py"))
    (found,) = find_tasks([str(folder)])
    return found


def test_it_is_admitted(task: Task) -> None:
    (found,) = admit([task], runs=1)
    assert found.admitted, found.complaints


def test_its_parameters_follow_from_the_seed(task: Task) -> None:
    drawn = [instance(task, seed)[1] for seed in range(40)]
    assert {each["word"] for each in drawn} == {"apple", "pear", "plum"}
    assert {each["times"] for each in drawn} == {1, 2, 3}
    assert task.instruction({"word": "plum", "times": 2}).startswith("Write plum into the editor, 2 times")


def test_every_part_of_the_file_is_named() -> None:
    section = PAGE.read_text().partition("### A task of your own")[2].partition("\n## ")[0]
    names = {*_KEYS, *(each.name for kind in (TaskLimits, Resources) for each in fields(kind))}
    assert {name for name in names if name not in section} == set()
