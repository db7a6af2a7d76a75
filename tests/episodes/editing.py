"""Tasks that are found by their names: one on a real desktop, one in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deskhand import KeyPress, Type
from deskhand.episodes.tasks.task import Grade, Task
from episodes.plays import Press

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

    from deskhand.episodes.tasks.context import TaskContext

WORDS = ("alpha", "beta", "gamma", "naïve", "delta", "☕", "lambda", "omega")


class Edit(Task):
    """Two lines of words into notes.txt."""

    name = "edit-notes"
    tags = ("text",)
    screen = (800, 600)
    programs = ("mousepad",)
    # Its title has the path of the home directory.
    masks = ((0, 40, 800, 32),)

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        return {"lines": [" ".join(random.choices(WORDS, k=4)) for _ in range(2)]}

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        return f"Write these lines into notes.txt and save: {parameters['lines']}"

    def setup(self, context: TaskContext) -> None:
        path = context.write("notes.txt", "")
        context.desktop.start(["mousepad", path])

    def evaluate(self, context: TaskContext) -> Grade:
        wanted = "\n".join(context.parameters["lines"])
        found = context.text("notes.txt")
        state = {"text": found, "copy": context.text("copy.txt")}
        return Grade(float((found or "").strip() == wanted), f"found {found!r}", state)

    def oracle(self, context: TaskContext) -> str | None:
        first, second = context.parameters["lines"]
        context.desktop.perform(Type(first), KeyPress(["Return"]))
        context.desktop.perform(Type(second))
        context.desktop.perform(KeyPress(["ctrl", "s"]))
        # A path that is another one on every desktop.
        context.desktop.host.run(f"cp {context.path('notes.txt')} {context.path('copy.txt')}")
        return "saved"


class Again(Press):
    """On a screen that tasks may have."""

    screen = (64, 64)
