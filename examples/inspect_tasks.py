"""An evaluation of a model by tasks: inspect eval examples/inspect_tasks.py --model openai/gpt-5.4 -T tasks=tag:text."""

from __future__ import annotations

from inspect_ai import Task, task

from deskhand.episodes.environments.inspect_ai import evaluation


@task
def desktop(tasks: str = "level:1", seeds: int = 1, desktops: int = 4, backend: str | None = None) -> Task:
    """Can the model do these tasks? Each sample is one of them, on a desktop of its own."""
    return evaluation(tasks, seeds=seeds, desktops=desktops, backend=backend)
