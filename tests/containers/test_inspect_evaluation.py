"""An evaluation of inspect with containers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from containers.helpers import containers
from deskhand.episodes.environments.inspect_ai import evaluation
from deskhand.episodes.tasks.task import Grade, Task
from episodes.inspect_evals import SCREENSHOT, run, samples, value

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping
    from pathlib import Path

    from deskhand.episodes.tasks.context import TaskContext
    from deskhand.launchers.docker.engine import Engine

pytestmark = pytest.mark.filterwarnings("ignore:The 'initial' parameter is deprecated:DeprecationWarning")


class Kept(Task):
    """Leave the file as it is."""

    name = "kept"

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        return {"text": str(random.random())}

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        return f"Leave the file with {parameters['text']} as it is."

    def setup(self, context: TaskContext) -> None:
        context.write("file", context.parameters["text"])

    def evaluate(self, context: TaskContext) -> Grade:
        return Grade(float(context.text("file") == context.parameters["text"]))

    def oracle(self, context: TaskContext) -> None:
        del context


def test_every_container_is_given_back(tmp_path: Path, image: str, engine: Engine) -> None:
    task = evaluation(Kept(), seeds=2, desktops=2, backend="docker", image=image)
    wrong = task.dataset[0].input

    async def turn(instruction: str, answers: int) -> dict[str, Any] | None:
        if answers and instruction == wrong:
            raise RuntimeError("the model is broken")
        return None if answers else SCREENSHOT

    log = run(task, turn, tmp_path, max_samples=2, fail_on_error=False)
    found = samples(log)
    assert found["kept.s0", 1].error is not None
    assert value(found["kept.s1", 1]) == 1
    assert containers(engine) == []
