"""A program of a user, as `tools/check-wheel` shows it to mypy and pyright beside the installed wheel. It is never run.

`assert_type` says what each must know; what is ignored is what each must refuse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_type

import deskhand
from deskhand import (
    ActionClass,
    AsyncDesktop,
    ClassPolicy,
    CommandResult,
    Desktop,
    Health,
    LeftClick,
    Observation,
    Operation,
    OutOfBounds,
    Point,
    Pool,
    Program,
    Reason,
    Rect,
    Screenshot,
    Scroll,
    Size,
    Type,
    Untypable,
    Viewport,
    Window,
)
from deskhand.episodes.tasks.task import Grade, Task, TaskLimits
from deskhand.providers import bedrock, cua, osworld
from deskhand.providers.values import Payload, ProviderCall

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deskhand.episodes.tasks.context import TaskContext
    from deskhand.providers.protocol import Declares, Provider, Responds


def on_a_desktop() -> None:
    with deskhand.launch(size=(1280, 800)) as desktop:
        assert_type(desktop, Desktop)
        assert_type(desktop.start("mousepad"), Program)
        seen = desktop.perform(LeftClick((400, 300)), Type("naïve ☕ text"))
        assert_type(seen, Observation)
        assert_type(seen.reason, Reason)
        assert_type(seen.settled, bool)
        assert_type(seen.cursor, Point)
        assert_type(seen.rects, tuple[Rect, ...])
        shot = desktop.screenshot()
        assert_type(shot, Screenshot)
        assert_type(shot.data, bytes)
        assert_type(shot.viewport, Viewport)
        assert_type(desktop.size, Size)
        assert_type(desktop.windows.list(), list[Window])
        assert_type(desktop.health(), Health)
        assert_type(desktop.machine.run("ls"), CommandResult)
        assert_type(desktop.status, tuple[str, ...])
        with desktop.control.take("Ada") as hold:
            assert_type(hold.desktop, Desktop)
        desktop.also(Counter())
        desktop.also("a counter")  # type: ignore[arg-type]
        desktop.perform("left_click")  # type: ignore[arg-type]
        desktop.screenshot(format=7)  # type: ignore[arg-type]
        desktop.click(1, 2)  # type: ignore[attr-defined]
    LeftClick("400,300")  # type: ignore[arg-type]
    Scroll((1, 2), direction=3)  # type: ignore[arg-type]


class Counter:
    """An interceptor."""

    def before(self, operation: Operation) -> object:
        if operation.desktop is not None:
            assert_type(operation.desktop.screenshot(), Screenshot)
            assert_type([window.title for window in operation.desktop.windows.list()], list[str])
            operation.desktop.perform(Type("by an interceptor"))  # type: ignore[attr-defined]
        return None

    def after(self, operation: Operation, token: object, outcome: object) -> None:
        pass


def errors() -> None:
    try:
        deskhand.connect("vnc://host::5900", policy=ClassPolicy(allow=[ActionClass.INPUT]))
    except OutOfBounds as error:
        assert_type(error.point, tuple[float, float])
    except Untypable as error:
        assert_type(error.characters, tuple[tuple[int, str], ...])


async def in_asyncio(pool: Pool) -> None:
    async with await AsyncDesktop.launch() as desktop:
        assert_type(desktop, AsyncDesktop)
        assert_type(await desktop.perform(LeftClick((1, 2))), Observation)
        assert_type((await desktop.screenshot()).data, bytes)
    with pool.acquire() as lent:
        assert_type(lent, Desktop)


def with_a_model(desktop: Desktop) -> None:
    assert_type(bedrock.decode({"toolUse": {}}, desktop.screenshot().viewport), ProviderCall)
    assert_type(bedrock.run(desktop, {"toolUse": {}}), Payload)
    message: dict[str, Any] = bedrock.respond(desktop, {"output": {}})
    print(message["content"][0])
    bedrock.run("desktop", {})  # type: ignore[arg-type]
    providers: list[Provider] = [bedrock, cua, osworld]
    declaring: list[Declares] = [bedrock, cua, osworld]
    responding: Responds = bedrock
    without: Responds = cua  # type: ignore[assignment]
    print(providers, declaring, responding, without)


class Note(Task):
    name = "text-note"
    limits = TaskLimits(steps=10)

    def instruction(self, parameters: Mapping[str, Any]) -> str:
        return str(parameters)

    def setup(self, context: TaskContext) -> None:
        context.desktop.start("mousepad")

    def evaluate(self, context: TaskContext) -> Grade:
        return Grade(1.0 if context.desktop.windows.list() else 0.0)

    def oracle(self, context: TaskContext) -> None:
        context.desktop.perform(Type("note"))
