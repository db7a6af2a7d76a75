"""An evaluation of a model at a desktop of its own: inspect eval examples/inspect_task.py --model openai/gpt-5.4."""

from __future__ import annotations

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes
from inspect_ai.solver import Generate, Solver, TaskState, solver

import deskhand
from deskhand.providers import inspect_ai as deskhand_inspect_ai


@solver
def at_a_desktop() -> Solver:
    """Let the model work until it makes no more calls; every sample has a desktop."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        async with await deskhand.AsyncDesktop.launch(size=deskhand_inspect_ai.SIZE) as desktop:
            state.tools.append(deskhand_inspect_ai.tool(desktop))
            return await generate(state, tool_calls="loop")

    return solve


@task
def reading() -> Task:
    """Can the model read a screen?"""
    question = "Take a screenshot. Is there a window on the screen? Answer yes or no."
    return Task(dataset=[Sample(input=question, target="no")], solver=at_a_desktop(), scorer=includes())
