"""Tasks as an evaluation of inspect: its own `eval`, its model for tests, and real desktops."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import threading
from typing import TYPE_CHECKING, Any

import anyio
import inspect_ai
import pytest
from inspect_ai.model import ChatMessageTool
from inspect_ai.solver import generate

from deskhand.episodes.environments.inspect_ai import evaluation
from deskhand.episodes.tasks.task import TaskLimits
from deskhand.errors import ActionError, EpisodeError, TaskError
from episodes.harbor_folders import write_task
from episodes.inspect_evals import SCREENSHOT, model_of, run, samples, value, write_number
from episodes.osworld_checkout import task_data, write_checkout
from episodes.plays_here import Number
from faults.helpers import marked, pid_of, until
from providers.helpers import load_example

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from deskhand.episodes.tasks.context import TaskContext
    from deskhand.episodes.tasks.task import Grade

# What inspect asks of a newer tenacity than it was made with.
pytestmark = pytest.mark.filterwarnings("ignore:The 'initial' parameter is deprecated:DeprecationWarning")

SHIPPED = "terminal-count-lines"


@pytest.fixture(autouse=True)
def _nothing_is_left(mark: str) -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    # These are gone when inspect returns; what only watches over them may take a moment.
    assert "Xvfb" not in marked(mark).values()
    assert "deskhand-pool" not in {thread.name for thread in set(threading.enumerate()) - before}
    until(lambda: not marked(mark), 30, "the end of all processes of the desktops")


async def do_nothing(*_: object) -> dict[str, Any] | None:
    return None


async def think_forever(*_: object) -> dict[str, Any] | None:
    await anyio.sleep_forever()
    return None


def test_a_task_that_ships_is_solved_by_calls_and_not_by_doing_nothing(tmp_path: Path) -> None:
    task = evaluation(SHIPPED, seeds=2)
    idle = task.dataset[1].input

    async def turn(instruction: str, answers: int) -> dict[str, Any] | None:
        if instruction == idle or answers:
            return None
        log, word = re.findall(r"(logs/\S+) that begin with (\w+)", instruction)[0]
        return {"action": "type", "text": f"grep -c '^{word}' {log} > answer.txt; exit", "press_enter": True}

    log = run(task, turn, tmp_path)
    assert log.status == "success", log.error
    solved, unsolved = (samples(log)[f"{SHIPPED}.s{seed}", 1] for seed in (0, 1))
    assert (value(solved), value(unsolved)) == (1, 0)
    assert log.results is not None
    assert log.results.scores[0].metrics["mean"].value == 0.5
    assert solved.scores is not None
    score = solved.scores["end_state"]
    assert score.answer == "done"
    assert score.metadata is not None
    assert score.metadata["cause"] is None
    assert score.metadata["steps"] == 1
    assert score.metadata["reason"] == score.explanation
    assert score.metadata["seconds"]["total"] > score.metadata["seconds"]["setup"] > 0
    assert solved.metadata == {"task": SHIPPED, "seed": 0, "level": 1, "tags": ["terminal"]}


def test_samples_at_once_each_have_their_own_desktop(tmp_path: Path) -> None:
    both: dict[str, anyio.Event] = {}

    async def turn(instruction: str, answers: int) -> dict[str, Any] | None:
        # The first two go on when both have a desktop.
        both.setdefault(instruction, anyio.Event())
        if len(both) == 2:
            for event in both.values():
                event.set()
        await both[instruction].wait()
        return await write_number(instruction, answers)

    log = run(evaluation(Number(), seeds=2, desktops=2), turn, tmp_path, epochs=2, max_samples=2)
    assert log.status == "success", log.error
    found = samples(log)
    assert len(found) == 4
    assert [value(sample) for sample in found.values()] == [1] * 4
    for sample in found.values():
        assert sample.scores is not None
        assert sample.scores["end_state"].metadata is not None
        number = sample.scores["end_state"].metadata["state"]["found"]
        assert str(sample.input) == f"Write {number} into number.txt."


class Wide(Number):
    name = "wide"
    screen = (800, 600)


def test_more_samples_than_desktops_wait(tmp_path: Path) -> None:
    """Also where their desktops are of two kinds."""
    turns = []

    async def turn(instruction: str, answers: int) -> dict[str, Any] | None:
        turns.append(instruction)
        return await write_number(instruction, answers)

    log = run(evaluation([Number(), Wide()], desktops=1), turn, tmp_path, max_samples=2)
    assert [value(sample) for sample in samples(log).values()] == [1] * 2
    assert len(set(turns[:3])) == len(set(turns[3:])) == 1


def test_an_error_in_a_sample_gives_its_desktop_back(tmp_path: Path) -> None:
    task = evaluation(Number(), seeds=2)
    wrong = task.dataset[0].input

    async def turn(instruction: str, answers: int) -> dict[str, Any] | None:
        if instruction == wrong and answers:
            raise RuntimeError("the model is broken")
        return await write_number(instruction, answers)

    log = run(task, turn, tmp_path, fail_on_error=False)
    failed, other = (samples(log)[f"number.s{seed}", 1] for seed in (0, 1))
    assert failed.error is not None
    assert "the model is broken" in failed.error.message
    assert not failed.scores
    assert value(other) == 1


def test_an_error_that_ends_the_evaluation_gives_all_desktops_back(tmp_path: Path) -> None:
    task = evaluation(Number(), seeds=2)
    wrong = task.dataset[0].input
    waiting = anyio.Event()

    async def turn(instruction: str, answers: int) -> dict[str, Any] | None:
        del answers
        if instruction == wrong:
            await waiting.wait()
            raise RuntimeError("the model is broken")
        waiting.set()
        return await think_forever()

    log = run(task, turn, tmp_path, max_samples=2)
    assert log.status == "error"


class FirstTry(Number):
    """It can be set up at the second attempt."""

    name = "first-try"
    tried = False

    def setup(self, context: TaskContext) -> None:
        if not FirstTry.tried:
            FirstTry.tried = True
            raise ValueError("not yet")
        super().setup(context)


def test_an_invalid_attempt_can_be_tried_again(tmp_path: Path) -> None:
    log = run(evaluation(FirstTry()), write_number, tmp_path, retry_on_error=1)
    (sample,) = samples(log).values()
    assert value(sample) == 1
    assert sample.error_retries
    assert "setup_failed" in sample.error_retries[0].message


class NoSetup(Number):
    name = "no-setup"

    def setup(self, context: TaskContext) -> None:
        del context
        raise ValueError("it cannot be set up")


class NoGrade(Number):
    name = "no-grade"

    def evaluate(self, context: TaskContext) -> Grade:
        del context
        raise ValueError("it cannot be evaluated")


class Lost(Number):
    name = "lost"

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        del parameters
        return "Lose it."


def test_an_invalid_attempt_is_an_error_and_no_score(tmp_path: Path, mark: str) -> None:
    async def turn(instruction: str, answers: int) -> dict[str, Any] | None:
        if instruction != "Lose it.":
            return None
        if answers == 0:
            os.kill(pid_of(mark, "Xvfb"), signal.SIGKILL)
        return SCREENSHOT

    log = run(evaluation([NoSetup(), NoGrade(), Lost()]), turn, tmp_path, max_samples=1, fail_on_error=False)
    found = samples(log)
    for name, reason in (
        ("no-setup.s0", "setup_failed"),
        ("no-grade.s0", "evaluator_failed"),
        ("lost.s0", "desktop"),
    ):
        sample = found[name, 1]
        assert sample.error is not None
        assert reason in sample.error.message
        assert not sample.scores


def test_at_a_limit_of_the_task_its_state_counts(tmp_path: Path) -> None:
    async def never_done(instruction: str, answers: int) -> dict[str, Any] | None:
        del answers
        return await write_number(instruction, 0)

    log = run(evaluation(Number(), limits=TaskLimits(steps=1, seconds=600)), never_done, tmp_path)
    (sample,) = samples(log).values()
    assert value(sample) == 1
    assert sample.limit is not None
    assert (sample.limit.type, sample.limit.limit) == ("custom", 1)
    assert sample.scores is not None
    assert sample.scores["end_state"].metadata is not None
    assert sample.scores["end_state"].metadata["cause"] == "agent_budget"
    assert sample.scores["end_state"].metadata["detail"] == "all 1 steps were used up"

    log = run(evaluation(Number(), limits=TaskLimits(steps=5, seconds=0.5)), think_forever, tmp_path)
    (sample,) = samples(log).values()
    assert value(sample) == 0
    assert sample.limit is not None
    assert sample.limit.type == "custom"


def test_another_solver_has_the_tool_and_is_told_of_the_limit(tmp_path: Path) -> None:
    async def until_told(instruction: str, answers: int) -> dict[str, Any] | None:
        return await write_number(instruction, 0) if answers < 2 else None

    task = evaluation(Number(), limits=TaskLimits(steps=1, seconds=600))
    log = run(task, until_told, tmp_path, solver=generate())
    (sample,) = samples(log).values()
    assert value(sample) == 1
    first, second = (message for message in sample.messages if isinstance(message, ChatMessageTool))
    assert first.error is None
    assert second.error is not None
    assert second.error.message == "all 1 steps were used up"


def test_at_a_limit_of_inspect_its_state_counts(tmp_path: Path) -> None:
    async def never_done(instruction: str, answers: int) -> dict[str, Any] | None:
        return await write_number(instruction, min(answers, 1))

    log = run(evaluation(Number()), never_done, tmp_path, message_limit=6)
    (sample,) = samples(log).values()
    assert value(sample) == 1
    assert sample.limit is not None
    assert sample.limit.type == "message"


class NeverReady(Number):
    name = "never-ready"

    def setup(self, context: TaskContext) -> None:
        context.desktop.windows.wait_for("no window", timeout=600)


def test_a_limit_in_the_setup_is_an_error(tmp_path: Path) -> None:
    log = run(evaluation(NeverReady()), do_nothing, tmp_path, time_limit=2)
    (sample,) = samples(log).values()
    assert sample.error is not None
    assert "before its task was set up" in sample.error.message
    assert not sample.scores


def test_a_cancelled_evaluation_gives_all_back(tmp_path: Path) -> None:
    async def cancelled() -> None:
        acting = asyncio.Event()

        async def turn(*_: object) -> dict[str, Any] | None:
            acting.set()
            return await think_forever()

        running = asyncio.create_task(
            inspect_ai.eval_async(evaluation(Number()), model=model_of(turn), log_dir=str(tmp_path))
        )
        await acting.wait()
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running

    asyncio.run(cancelled())


def test_tasks_of_other_benchmarks_are_samples_too(tmp_path: Path) -> None:
    never = task_data("never", instruction="Do what cannot be done.", evaluator={"func": "infeasible"})
    osworld = write_checkout(tmp_path / "osworld", {"os": [never, task_data("broken", evaluator=1)]})

    log = run(evaluation(osworld), do_nothing, tmp_path, said="It cannot be done.\nFAIL", fail_on_error=False)
    infeasible, broken = sorted(samples(log).values(), key=lambda sample: sample.error is not None)
    assert value(infeasible) == 1
    assert infeasible.input == "Do what cannot be done."
    assert broken.error is not None
    assert "cannot_run" in broken.error.message

    write_task(tmp_path / "harbor")
    (sample,) = evaluation(f"harbor:{tmp_path / 'harbor'}").dataset
    assert "upper case" in str(sample.input)
    with pytest.raises(EpisodeError, match="builds an image"):
        evaluation(f"harbor:{tmp_path / 'harbor'}", backend="local")


def test_the_example_is_an_evaluation(tmp_path: Path) -> None:
    task = load_example("inspect_tasks").desktop(SHIPPED)
    log = run(task, do_nothing, tmp_path)
    assert [value(sample) for sample in samples(log).values()] == [0]


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(TaskError, match="no such task"):
        evaluation("no-task")
    with pytest.raises(TaskError, match="2 tasks have this name"):
        evaluation([Number(), Number()])
    with pytest.raises(ActionError, match="desktops"):
        evaluation(SHIPPED, desktops=0)
    with pytest.raises(ActionError, match="seeds"):
        evaluation(SHIPPED, seeds=0)
    with pytest.raises(EpisodeError, match="no backend"):
        evaluation(SHIPPED, backend="cloud")
