"""A task is admitted when its oracle always does it, nobody never does, it is evaluated steadily, and it begins the same."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest
from click.testing import CliRunner, Result
from PIL import Image

from deskhand import Rect
from deskhand.cli.group import commands
from deskhand.episodes.outcome import RULES, Cause
from deskhand.episodes.play.admission import AGENTS, Instance, admit, judge
from deskhand.episodes.play.first_frame import FirstFrame
from deskhand.episodes.tasks.catalogue import instance
from deskhand.episodes.tasks.suite._acting import press, type_text, wait_until
from deskhand.episodes.tasks.task import Grade, Task
from deskhand.errors import EpisodeError

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from deskhand.episodes.tasks.context import TaskContext


class Copy(Task):
    """A word is typed into a terminal that keeps it."""

    name = "copy"
    programs = ("xterm",)
    colours: ClassVar[Sequence[str]] = ("white",)
    begun: ClassVar[list[str]] = []

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        return {"word": random.choice(["naïve", "plain", "straße"]) + str(random.randint(1, 99))}

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        return f"Write {parameters['word']}."

    def setup(self, context: TaskContext) -> None:
        colour = self.colours[len(self.begun) % len(self.colours)]
        self.begun.append(colour)
        command = "stty -echo; touch ~/ready; cat > ~/kept.txt"
        context.desktop.start(["xterm", "-bg", colour, "-T", "Terminal", "-e", "sh", "-c", command], cwd=context.home)
        wait_until(lambda: context.read("ready") is not None, "the terminal")

    def evaluate(self, context: TaskContext) -> Grade:
        found = context.text("kept.txt")
        return Grade(float(found == f"{context.parameters['word']}\n"), f"it has {found!r}", {"found": found})

    def oracle(self, context: TaskContext) -> None:
        type_text(context.desktop, f"{context.parameters['word']}\n")
        press(context.desktop, "ctrl+d")


class Colourful(Copy):
    """It begins in another colour each time."""

    name = "colourful"
    colours = ("white", "yellow")
    begun: ClassVar[list[str]] = []


class Clumsy(Copy):
    """Its oracle leaves out what is beyond ASCII."""

    name = "clumsy"

    def oracle(self, context: TaskContext) -> None:
        type_text(context.desktop, context.parameters["word"].encode("ascii", "ignore").decode() + "\n")


class Given(Copy):
    """It is done before anybody does anything."""

    name = "given"

    def evaluate(self, context: TaskContext) -> Grade:
        return Grade(float(context.read("ready") is not None))


class Moody(Copy):
    """It is evaluated another way each time."""

    name = "moody"
    looks: ClassVar[list[int]] = []

    def evaluate(self, context: TaskContext) -> Grade:
        self.looks.append(1)
        grade = super().evaluate(context)
        return Grade(grade.score, grade.reason, {"looks": len(self.looks)})


def test_a_task_that_can_be_done_is_admitted_and_each_instance_is_told() -> None:
    told: list[Instance] = []
    (found,) = admit([Copy()], runs=3, desktops=2, tell=told.append)
    assert found.admitted, found
    assert (found.runs, found.passed, found.unsteady, found.frames) == (3, {"oracle": 3, "nothing": 0}, 0, 0)
    assert sorted(each.seed for each in told) == [0, 1, 2]
    assert all(each.pixels == 0 for each in told)


def test_what_a_task_masks_may_differ() -> None:
    class Masked(Copy):
        name = "masked"
        colours = ("white", "yellow")
        begun: ClassVar[list[str]] = []
        masks = ((0, 0, 1280, 800),)

    (found,) = admit([Masked()], runs=1)
    assert found.admitted, found
    assert Masked.begun == ["white", "yellow"]


@pytest.mark.parametrize(
    ("task", "passed", "complaint"),
    [
        (Clumsy(), {"oracle": 1, "nothing": 0}, r"its oracle fails: it has 'nave"),
        (Given(), {"oracle": 2, "nothing": 2}, r"doing nothing does not fail"),
        (
            Moody(),
            {"oracle": 0, "nothing": 0},
            r"could not be tried: evaluator_failed: .*two evaluations of one state",
        ),
        (
            Colourful(),
            {"oracle": 2, "nothing": 0},
            r"begins with another picture the second time: \d{4,} pixels differ, all within \(\d",
        ),
    ],
    ids=lambda value: value.name if isinstance(value, Task) else "",
)
def test_what_speaks_against_a_task_is_named(task: Task, passed: Mapping[str, int], complaint: str) -> None:
    # Of these two seeds one has a word beyond ASCII, and one has not.
    (found,) = admit([task], runs=2, run_seed=_seed_with_both_words(task))
    assert not found.admitted
    assert found.passed == passed
    words = "; ".join(each for complaints in found.complaints.values() for each in complaints)
    assert re.search(complaint, words), words


def _seed_with_both_words(task: Task) -> int:
    for run_seed in range(100):
        words = [instance(task, seed, run_seed=run_seed)[1]["word"] for seed in range(2)]
        if "naïve" in words[0] and words[1].isascii():
            return run_seed
    raise AssertionError("no such seed")


def test_programs_that_are_missing_are_named_before_anything_is_tried() -> None:
    class Needy(Copy):
        name = "needy"
        programs = ("no-such-program-at-all",)

    with pytest.raises(EpisodeError, match="needy needs no-such-program-at-all"):
        admit([Needy()], runs=1)


def test_who_stops_the_check_does_not_wait_for_the_rest() -> None:
    told: list[Instance] = []

    def stop(instance: Instance) -> None:
        told.append(instance)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        admit([Copy()], runs=200, tell=stop)
    assert len(told) < 5


# --- pictures ---


def frame(*changed: tuple[int, int], busy: Sequence[Rect] = ()) -> FirstFrame:
    pixels = np.zeros((100, 200, 3), np.uint8)
    for x, y in changed:
        pixels[y, x] = 255
    return FirstFrame(pixels, tuple(busy))


def test_pictures_are_the_same_but_for_what_moves_by_itself() -> None:
    clock = Rect(10, 10, 5, 5)
    same = (0, None)
    assert frame((3, 3)).differs(frame((3, 3))) == same
    assert frame((3, 3)).differs(frame((4, 3), (5, 7))) == (3, (3, 3, 3, 5))
    assert frame((12, 12), busy=[clock]).differs(frame((13, 11))) == same
    assert frame((13, 11)).differs(frame((12, 12), busy=[clock])) == same
    assert frame((12, 12), (16, 12), busy=[clock]).differs(frame()) == (1, (16, 12, 1, 1))
    # A window that was still being drawn when it was first seen hides nothing.
    assert frame((3, 3), busy=[Rect(-4, -4, 200, 100)]).differs(frame()) == (1, (3, 3, 1, 1))
    assert FirstFrame(np.zeros((50, 50, 3), np.uint8), ()).differs(frame()) == (20_000, (0, 0, 200, 100))
    assert frame((12, 12), (40, 12)).differs(frame(), masks=[(10, 10, 5, 5)]) == (1, (40, 12, 1, 1))


def test_a_difference_is_shown_without_what_may_differ() -> None:
    clock = Rect(10, 10, 5, 5)
    one, other = frame((12, 12), busy=[clock]), frame((14, 11), (100, 60), (101, 60), (180, 5))
    places, picture = one.shown(other, masks=[(180, 5, 1, 1)])
    assert places == [Rect(100, 60, 2, 1)]
    assert picture is not None
    assert picture.size == (3 * 200 + 16, 100)
    before, after, marked = (picture.crop((x, 0, x + 200, 100)) for x in (0, 208, 416))
    assert (before.getpixel((100, 60)), after.getpixel((100, 60))) == ((0, 0, 0), (255, 255, 255))
    assert (before.getpixel((180, 5)), after.getpixel((180, 5))) == ((0, 0, 0), (0, 0, 0))
    assert marked.getpixel((99, 59)) == (230, 0, 60)
    assert FirstFrame(np.zeros((50, 50, 3), np.uint8), ()).shown(frame()) == ([], None)


# --- the verdict ---


def result(*, success: bool, cause: str | None = None, detail: str = "") -> dict[str, Any]:
    valid = cause is None or RULES[Cause(cause)].graded
    return {"valid": valid, "success": success, "cause": cause, "detail": detail, "reason": "", "times": {"total": 1.0}}


def tried(seed: int, oracle: dict[str, Any], nothing: dict[str, Any], pixels: int | None = 0) -> Instance:
    return Instance("some-task", seed, dict(zip(AGENTS, (oracle, nothing), strict=True)), pixels)


@pytest.mark.parametrize(
    ("oracle", "nothing", "complaints"),
    [
        (result(success=True), result(success=False), set()),
        (result(success=False), result(success=False), {1}),
        (result(success=True), result(success=True), {1}),
        # An oracle that needs more than is allowed has not done it, whatever it left; who does nothing may run out of time.
        (result(success=True, cause="agent_budget"), result(success=False), {1}),
        (result(success=True), result(success=False, cause="agent_budget"), set()),
        # What is invalid shows nothing.
        (result(success=False, cause="desktop_lost"), result(success=False), {1}),
        (result(success=True), result(success=False, cause="setup_failed"), {1}),
        (result(success=True), result(success=False, cause="evaluator_failed"), {1}),
    ],
)
def test_every_attempt_must_come_out_as_it_should(
    oracle: dict[str, Any], nothing: dict[str, Any], complaints: set[int]
) -> None:
    found = judge("some-task", [tried(0, result(success=True), result(success=False)), tried(1, oracle, nothing)])
    assert set(found.complaints) == complaints
    assert found.admitted is not bool(complaints)


def test_a_complaint_says_where_to_look_and_what_to_write() -> None:
    good = dict(zip(AGENTS, (result(success=True), result(success=False)), strict=True))
    clock = Rect(620, 152, 7, 9)
    (words,) = Instance("some-task", 0, good, 50, (620, 152, 7, 9), [clock], "seen/some-task-seed-0.png").complaints
    assert words.endswith(
        "50 pixels differ, all within (620, 152, 7, 9) (x, y, width, height); seen/some-task-seed-0.png shows both and what "
        "differs; if that may differ, as a clock may: masks = [[620, 152, 7, 9]]"
    )
    (words,) = Instance("some-task", 0, good, 50, (0, 0, 9, 9), [clock] * 9).complaints
    assert words.endswith("(x, y, width, height)")


def test_nothing_tried_is_nothing_shown() -> None:
    assert not judge("some-task", []).admitted


# --- the command ---


def test_the_command_tells_as_it_goes_and_ends_with_the_verdict(tmp_path: Path) -> None:
    def check(*words: str) -> Result:
        return CliRunner().invoke(commands, ["tasks", "check", *words], standalone_mode=False, catch_exceptions=False)

    answer = check(f"{__name__}:Copy", "--runs", "1", "--json")
    assert answer.return_value == 0, answer.output
    (verdict,) = json.loads(answer.stdout)
    assert verdict["admitted"] is True
    assert verdict["passed"] == {"oracle": 1, "nothing": 0}
    assert "[1/1] copy seed 0: as it should be" in answer.stderr

    answer = check(f"{__name__}:Given", "--runs", "1")
    assert answer.return_value == 1
    assert "no: doing nothing does not fail" in answer.stdout

    Colourful.begun.clear()
    answer = check(f"{__name__}:Colourful", "--runs", "1", "--pictures", str(tmp_path / "seen"))
    assert answer.return_value == 1
    (file,) = (tmp_path / "seen").iterdir()
    assert f"{file} shows both and what differs; if that may differ, as a clock may: masks = [[" in answer.stderr
    with Image.open(file) as picture:
        assert picture.size == (3 * 1280 + 16, 800)
