"""A desktop in memory with a task that is one click, for what is built around tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deskhand import Desktop, LeftClick
from deskhand._core.events import ButtonDown
from deskhand.backends.memory import MemoryBackend
from deskhand.episodes.tasks.task import Grade, Task, TaskLimits

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

    from deskhand.episodes.tasks.context import TaskContext

SIZE = (80, 64)


class Painted(MemoryBackend):
    """Each press of a button paints where the pointer is."""

    def __init__(self) -> None:
        super().__init__(SIZE)
        self.on_wait = lambda _seconds: None
        self.on_event = self._paint

    def _paint(self, event: object) -> None:
        if isinstance(event, ButtonDown):
            self.paint((*self.screen.pointer, 1, 1), (255, 255, 255))


class Ticking:
    """A clock that goes on by itself, so that nothing has to wait."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.01
        return self.now


def painted(**_options: Any) -> Desktop:
    return Desktop(Painted(), clock=Ticking())


class Dots(Task):
    """Click once at a point that the seed chooses."""

    name = "dots"
    screen = SIZE
    limits = TaskLimits(steps=5, seconds=1000.0)

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        return {"x": random.randrange(SIZE[0]), "y": random.randrange(SIZE[1])}

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        return f"Click at {parameters['x']}, {parameters['y']}."

    def setup(self, context: TaskContext) -> None:
        backend = context.desktop._core.backend
        assert isinstance(backend, MemoryBackend)
        backend.paint((context.parameters["x"], 0, 1, 1), (1, 2, 3))

    def evaluate(self, context: TaskContext) -> Grade:
        pixel = context.desktop.screenshot(cursor=False).array()[context.parameters["y"], context.parameters["x"]]
        return Grade(float(pixel[0] == 255), f"the pixel is {pixel.tolist()}")

    def oracle(self, context: TaskContext) -> None:
        context.desktop.perform(LeftClick((context.parameters["x"], context.parameters["y"])))
