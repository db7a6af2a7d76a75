"""A task for a real desktop that takes a second: a terminal is there, and the agent writes a number into a file with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deskhand import KeyPress, Type
from deskhand.episodes.tasks.task import Grade, Task, TaskLimits

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

    from deskhand.episodes.tasks.context import TaskContext

# No prompt that anybody could have set, and no history.
_TERMINAL = "xterm -geometry 60x10+20+20 -e sh"


class Number(Task):
    """Write a number into a file."""

    name = "number"
    tags = ("terminal",)
    limits = TaskLimits(steps=5, seconds=60.0)
    screen = (640, 480)
    programs = ("xterm",)

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        return {"number": random.randrange(10**6)}

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        return f"Write {parameters['number']} into number.txt."

    def setup(self, context: TaskContext) -> None:
        context.desktop.start(_TERMINAL, cwd=context.home)

    def evaluate(self, context: TaskContext) -> Grade:
        found = (context.text("number.txt") or "").strip()
        return Grade(float(found == str(context.parameters["number"])), f"found {found!r}", {"found": found})

    def oracle(self, context: TaskContext) -> str | None:
        context.desktop.perform(Type(f"echo {context.parameters['number']} >number.txt; exit"), KeyPress(("Return",)))
        return None
