"""Tasks, desktops and records in memory, for tests of the order of things; nothing here pretends to be a desktop's programs."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

from deskhand import Desktop, KeyPress, LeftClick
from deskhand._core.events import ButtonDown
from deskhand._core.settle import Settle
from deskhand.backends.memory import MemoryBackend
from deskhand.desktop.access import latest
from deskhand.episodes.ledger.ledger import Key
from deskhand.episodes.tasks.task import Grade, Task, TaskLimits

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator, Mapping

    from deskhand.desktop.control_state import ControlEvent
    from deskhand.desktop.operations import Operation
    from deskhand.episodes.record.end_state import EndState
    from deskhand.episodes.tasks.context import TaskContext

KEY = Key("press", "", 0, 0)
# A desktop in memory answers at once.
QUICK = Settle(quiet=0.001, reaction=0.002)


class Press(Task):
    """Click at the place that the instruction names."""

    name = "press"
    tags = ("text",)
    limits = TaskLimits(steps=5, seconds=20.0)
    screen = (64, 64)

    def parameters(self, random: random.Random) -> Mapping[str, Any]:
        return {"x": random.randrange(64), "y": random.randrange(64)}

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        return f"click at {parameters['x']}, {parameters['y']}"

    def setup(self, context: TaskContext) -> None:
        backend_of(context.desktop).paint((0, 0, 8, 8), (0, 255, 0))

    def evaluate(self, context: TaskContext) -> Grade | bool | float:
        wanted = context.parameters["x"], context.parameters["y"]
        clicks = clicks_on(context.desktop)
        return Grade(float(wanted in clicks), f"clicked at {clicks}, wanted {wanted}", {"clicks": len(clicks)})

    def oracle(self, context: TaskContext) -> str | None:
        context.desktop.perform(LeftClick((context.parameters["x"], context.parameters["y"])), settle=QUICK)
        return "done"


def backend_of(desktop: Desktop) -> MemoryBackend:
    backend = desktop._core.backend
    assert isinstance(backend, MemoryBackend)
    return backend


def clicks_on(desktop: Desktop) -> list[tuple[int, int]]:
    """Where the left button was pressed."""
    backend = backend_of(desktop)
    return [tuple(place) for place in getattr(backend, "places", [])]


class Places:
    """Desktops in memory, each for one user.

    Attributes:
        given: All that were.
        failures: What the next acquisitions raise.
    """

    def __init__(self, wrap: Callable[[MemoryBackend], None] = lambda _: None) -> None:
        self.given: list[Desktop] = []
        self.failures: list[BaseException] = []
        self._wrap = wrap
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def acquire(self, timeout: float | None = None) -> Iterator[Desktop]:
        del timeout
        with self._lock:
            if self.failures:
                raise self.failures.pop(0)
        desktop = memory_desktop(self._wrap)
        self.given.append(desktop)
        try:
            yield desktop
        finally:
            latest(desktop).close()


def memory_desktop(wrap: Callable[[MemoryBackend], None] = lambda _: None) -> Desktop:
    """One of 64x64 pixels that keeps where it was clicked."""
    backend = MemoryBackend((64, 64))
    places: list[tuple[int, int]] = []
    backend.places = places  # type: ignore[attr-defined]

    def on_event(event: object) -> None:
        if isinstance(event, ButtonDown):
            places.append(tuple(backend.screen.pointer))

    backend.on_event = on_event
    wrap(backend)
    return Desktop(backend)


class Kept:
    """A record in memory."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.result: Mapping[str, Any] | None = None
        self.state: EndState | None = None
        self.closed = False
        self.attached: Desktop | None = None
        self.failing: Callable[[str], None] = lambda _: None

    def attach(self, desktop: Desktop) -> None:
        self.attached = desktop

    def detach(self) -> None:
        self.attached = None

    def before(self, operation: Operation) -> object:
        return operation

    def after(self, operation: Operation, token: object, outcome: object) -> None:
        assert token is operation
        self.failing(operation.type)
        self.events.append((operation.type, {"request": operation.actions, "answer": outcome}))

    def control(self, event: ControlEvent) -> None:
        self.event("control", change=event.kind)

    def event(self, kind: str, **fields: Any) -> None:
        self.failing(kind)
        self.events.append((kind, fields))

    def frame(self, desktop: Desktop, cause: str = "") -> str:
        self.event("frame", cause=cause)
        return str(hash(desktop.screenshot(format="raw").data))

    def end_state(self, state: EndState) -> None:
        self.failing("end_state")
        self.state = state

    def sanitize(self, value: Any) -> Any:
        return value

    def finish(self, result: Mapping[str, Any]) -> Mapping[str, Any]:
        self.failing("result")
        self.result = result
        return result

    def close(self) -> None:
        self.closed = True

    @property
    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.events]


ANY_KEY = KeyPress(("Return",))


class DesktopPools:
    """Desktops in memory for every task."""

    def __init__(self, places: Places | None = None) -> None:
        self.all = places or Places()
        self.closed = False

    def places(self, task: Task) -> Places:
        del task
        return self.all

    def close(self) -> None:
        self.closed = True
