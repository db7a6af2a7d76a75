"""Tasks of the browser, of drawing, of settings and of several applications: what each of them takes for done."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

import deskhand
from conftest import need
from deskhand.episodes.tasks.browser import Page
from deskhand.episodes.tasks.catalogue import find_tasks
from deskhand.episodes.tasks.context import TaskContext
from deskhand.episodes.tasks.suite._papers import pdf
from deskhand.episodes.tasks.suite.drawing import DrawingLine, DrawingShapes
from deskhand.episodes.tasks.task import Grade

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from deskhand.episodes.tasks.task import Task

_TASKS = find_tasks(["tag:browser", "tag:drawing", "tag:settings", "tag:multi"])


def _graded(answer: object) -> Grade:
    assert isinstance(answer, Grade)
    return answer


def test_there_are_as_many_as_are_told() -> None:
    assert len(_TASKS) == 19
    assert [sum(task.level == level for task in _TASKS) for level in (1, 2, 3)] == [6, 7, 6]


@pytest.fixture(scope="module")
def painted() -> Iterator[Callable[[Task, Mapping[str, Any], str], Grade]]:
    """The grade of a painting that JavaScript draws: what an oracle never does wrong. Each task has one desktop for all."""
    for program in ("chromium", "perl"):
        need(program, program)
    with contextlib.ExitStack() as stack:
        stages: dict[str, TaskContext] = {}

        def paint(task: Task, parameters: Mapping[str, Any], script: str) -> Grade:
            if task.name not in stages:
                desktop = stack.enter_context(deskhand.launch(home=True))
                assert desktop.host.home is not None
                stages[task.name] = TaskContext(desktop, parameters, desktop.host.home)
                task.setup(stages[task.name])
            with Page(stages[task.name]) as page:
                page.evaluate(f"(() => {{ clear_.onclick(); {script} }})()")
            return _graded(task.evaluate(stages[task.name]))

        yield paint


_LINE = {"marks": {"A": [100, 100], "B": [600, 400]}, "from": "A", "to": "B", "colour": "red"}
_SHAPES = {
    "frames": [[60, 60, 300, 150], [560, 60, 300, 150]],
    "shapes": [
        {"frame": 0, "colour": "red", "form": "rectangle", "filled": True},
        {"frame": 1, "colour": "blue", "form": "ellipse", "filled": False},
    ],
}
_RIGHT_RECTANGLE = "colour = 'red'; tool = 'rectangle'; filled.checked = true; shape([60, 60], [360, 210]);"
_RIGHT_ELLIPSE = "colour = 'blue'; tool = 'ellipse'; filled.checked = false; shape([560, 60], [860, 210]);"


@pytest.mark.parametrize(
    ("task", "parameters", "script", "reason"),
    [
        (DrawingLine(), _LINE, "colour = 'red'; shape([100, 100], [600, 400]);", ""),
        (DrawingLine(), _LINE, "colour = 'red'; shape([100, 100], [400, 280]);", "62% of the way has red ink"),
        (DrawingLine(), _LINE, "colour = 'blue'; shape([100, 100], [600, 400]);", "0% of the way has red ink"),
        (
            DrawingLine(),
            _LINE,
            "colour = 'red'; shape([100, 100], [600, 400]); shape([700, 50], [900, 50]);",
            "elsewhere",
        ),
        (DrawingShapes(), _SHAPES, _RIGHT_RECTANGLE + _RIGHT_ELLIPSE, ""),
        (DrawingShapes(), _SHAPES, _RIGHT_RECTANGLE, "frame 2: nothing blue"),
        (
            DrawingShapes(),
            _SHAPES,
            _RIGHT_RECTANGLE + _RIGHT_ELLIPSE.replace("'ellipse'", "'rectangle'"),
            "frame 2: that is no ellipse",
        ),
        (
            DrawingShapes(),
            _SHAPES,
            _RIGHT_RECTANGLE.replace("'rectangle'", "'ellipse'") + _RIGHT_ELLIPSE,
            "frame 1: that is no rectangle",
        ),
        (
            DrawingShapes(),
            _SHAPES,
            _RIGHT_RECTANGLE + _RIGHT_ELLIPSE.replace("false", "true"),
            "frame 2: 100% of its inside",
        ),
        (
            DrawingShapes(),
            _SHAPES,
            _RIGHT_RECTANGLE.replace("true", "false") + _RIGHT_ELLIPSE,
            "frame 1: 0% of its inside",
        ),
        (
            DrawingShapes(),
            _SHAPES,
            _RIGHT_RECTANGLE + _RIGHT_ELLIPSE.replace("[860, 210]", "[800, 210]"),
            "frame 2: a shape from",
        ),
    ],
)
def test_paintings_are_graded_by_their_pixels(
    painted: Callable[[Task, Mapping[str, Any], str], Grade],
    task: Task,
    parameters: Mapping[str, Any],
    script: str,
    reason: str,
) -> None:
    grade = painted(task, parameters, script)
    assert grade.success == (not reason), grade.reason
    assert reason in grade.reason


def test_a_document_has_as_many_pages_and_characters_as_were_written() -> None:
    document = pdf([["One (1)", "naïve \\ café"], ["Two"]])
    places = [int(line.split()[0]) for line in document.split(b"xref\n")[1].splitlines()[2:] if line.endswith(b"n ")]
    assert [document[place:].split(b"\n", 1)[0] for place in places] == [
        b"%d 0 obj" % n for n in range(1, len(places) + 1)
    ]
    assert document.count(b"/Type /Page ") == 2
    assert b"(One \\(1\\)) Tj" in document
    assert "(naïve \\\\ café) Tj".encode("latin-1") in document
