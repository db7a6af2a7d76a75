"""Evaluations of inspect with its model for tests, which says what a function tells it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import inspect_ai
from inspect_ai.model import ChatMessageTool, ChatMessageUser, ModelOutput, ModelUsage, get_model

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from inspect_ai.log import EvalLog, EvalSample

    Turn = Callable[[str, int], Awaitable[dict[str, Any] | None]]

SCREENSHOT = {"action": "screenshot"}


def model_of(turn: Turn, said: str = "done") -> Any:
    """Inspect's model for tests: it makes the call that `turn` gives for the instruction and the number of answers so far."""

    async def say(messages: list[Any], *_: Any) -> ModelOutput:
        instruction = next(message.text for message in messages if isinstance(message, ChatMessageUser))
        call = await turn(instruction, sum(isinstance(message, ChatMessageTool) for message in messages))
        if call is None:
            output = ModelOutput.from_content("mockllm/model", said)
        else:
            output = ModelOutput.for_tool_call("mockllm/model", "computer", call)
        # Else the model counts its tokens itself, and fetches a table for that.
        output.usage = ModelUsage()
        return output

    return get_model("mockllm/model", custom_outputs=say, memoize=False)


def run(task: inspect_ai.Task, turn: Turn, folder: Path, said: str = "done", **options: Any) -> EvalLog:
    (log,) = inspect_ai.eval(task, model=model_of(turn, said), log_dir=str(folder), display="none", **options)
    return log


def samples(log: EvalLog) -> Mapping[tuple[str, int], EvalSample]:
    assert log.samples is not None
    return {(str(sample.id), sample.epoch): sample for sample in log.samples}


def value(sample: EvalSample) -> Any:
    assert sample.error is None, sample.error
    assert sample.scores is not None
    return sample.scores["end_state"].value


async def write_number(instruction: str, answers: int) -> dict[str, Any] | None:
    """Solve `Number` by the tool, as its oracle does."""
    (number,) = re.findall(r"\d+", instruction)
    typed = {"action": "type", "text": f"echo {number} >number.txt; exit", "press_enter": True}
    return [typed, SCREENSHOT][answers] if answers < 2 else None
