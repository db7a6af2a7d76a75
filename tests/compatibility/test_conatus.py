"""conatus: tool calls and computer actions, as its documentation has them."""

from __future__ import annotations

import asyncio
import copy
import inspect
import itertools
import json
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import pytest

from compatibility.declared import conatus
from compatibility.table import Raises, Row, World, declared_rows, each
from deskhand import ActionError, AsyncDesktop, BadPlan, Desktop, Guard
from deskhand.actions import ACTIONS
from deskhand.backends.memory import MemoryBackend
from deskhand.execution import Executor, request_of, tool_calls
from deskhand.execution.tool_calls import (
    AIToolCall,
    ComputerUseAction,
    CUAction,
    CUBackClick,
    CUDrag,
    CUForwardClick,
    CUKeypress,
    CUKeypressHold,
    CULeftMouseClick,
    CULeftMouseDoubleClick,
    CULeftMouseDown,
    CULeftMouseTripleClick,
    CULeftMouseUp,
    CUMiddleClick,
    CUMove,
    CURightClick,
    CUScreenshot,
    CUScroll,
    CUType,
    CUWait,
)

if TYPE_CHECKING:
    from collections.abc import Callable

WHOSE = ("linux", threading.Lock(), "call_1")
"""What every action has before its own fields; the second is nothing that JSON could say, or a copy be made of."""

DICT, TEXT = {"xy": [3, 4]}, '{"xy": [3, 4]}'

# --- what a tool call is ---

CALLS = [
    Row("AIToolCall.name", "it is given", lambda: AIToolCall("search", {}).name, "search"),
    Row(
        "AIToolCall.returned_arguments",
        "no pre-processing, text",
        lambda: AIToolCall("f", " {}").returned_arguments,
        " {}",
    ),
    Row(
        "AIToolCall.returned_arguments",
        "no pre-processing, dict",
        lambda: AIToolCall("f", DICT).returned_arguments is DICT,
    ),
    Row("AIToolCall.arguments_as_dict", "of a dict", lambda: AIToolCall("f", DICT).arguments_as_dict, DICT),
    Row("AIToolCall.arguments_as_dict", "of JSON", lambda: AIToolCall("f", TEXT).arguments_as_dict, DICT),
    *(
        Row(
            "AIToolCall.arguments_as_dict",
            f"no dictionary: {wrong!r}",
            lambda wrong=wrong: AIToolCall("f", wrong).arguments_as_dict,
            Raises(TypeError, "f are not"),
        )
        for wrong in ("[1]", '"x"', "null", "{", "", 5, None, ["xy"])
    ),
    Row("AIToolCall.arguments_as_str", "of a dict", lambda: json.loads(AIToolCall("f", DICT).arguments_as_str), DICT),
    Row("AIToolCall.arguments_as_str", "of JSON, as it is", lambda: AIToolCall("f", TEXT).arguments_as_str, TEXT),
    Row(
        "AIToolCall.__hash__",
        "of id, name and arguments as a string",
        lambda: hash(AIToolCall("f", DICT, "c")),
        hash(("c", "f", TEXT)),
    ),
    Row(
        "AIToolCall.__hash__",
        "the same of both forms",
        lambda: hash(AIToolCall("f", DICT)),
        hash(AIToolCall("f", TEXT)),
    ),
    Row("AIToolCall", "equal when all is equal", lambda: AIToolCall("f", DICT, "c") == AIToolCall("f", DICT, "c")),
    Row("AIToolCall", "a field can be set", lambda: _set(AIToolCall("f", {}), "call_id", "c").call_id, "c"),
]


def _set(value: Any, name: str, given: object) -> Any:
    setattr(value, name, given)
    return value


def _elsewhere(call: Any) -> Any:
    return _set(call, "requires_local_execution", False)  # noqa: FBT003 # the field's own type


@dataclass
class Unfinished(CUAction):
    """An action of somebody else's that says nothing of its fields."""


@dataclass(eq=False)
class Other(CUAction):
    """One that does."""

    def safe_asdict(self) -> dict[str, Any]:
        return {"type": "move", "xy": (5, 6)}


CLICK = CULeftMouseClick(*WHOSE, (3, 4))
FIELDS = {"xy": (3, 4), "type": "left_mouse_click"}

ACTION = [
    Row("CUAction", "is abstract", lambda: CUAction("linux", None, None), Raises(TypeError, "abstract")),  # type: ignore[abstract] # that is the row
    Row("CUAction", "is abstract below it too", lambda: Unfinished("linux", None, None), Raises(TypeError, "abstract")),  # type: ignore[abstract] # that is the row
    Row(
        "CUAction",
        "can be derived from",
        lambda: Other(*WHOSE).action,
        tool_calls.Action.from_dict({"type": "move", "xy": [5, 6]}),
    ),
    Row("CUAction.environment", "it is given", lambda: CLICK.environment, "linux"),
    Row("CUAction.environment_variable", "it is given, and not copied", lambda: CLICK.environment_variable is WHOSE[1]),
    Row("CUAction.call_id", "it is given", lambda: CLICK.call_id, "call_1"),
    Row("CUAction.call_id", "may be None", lambda: CULeftMouseClick("linux", None, None).call_id, None),
    Row("CUAction.call_id", "must be given", lambda: CULeftMouseClick("linux", None), Raises(TypeError, "call_id")),  # type: ignore[call-arg] # that is the row
    Row("CUAction.name", "the action's name", lambda: CLICK.name, "left_mouse_click"),
    Row("CUAction.arguments_as_dict", "of the action", lambda: CLICK.arguments_as_dict, FIELDS),
    Row(
        "CUAction.arguments_as_str",
        "of the action, as JSON",
        lambda: json.loads(CLICK.arguments_as_str),
        {**FIELDS, "xy": [3, 4]},
    ),
    Row(
        "CUAction.returned_arguments",
        "of the action",
        lambda: json.loads(str(CLICK.returned_arguments)),
        {**FIELDS, "xy": [3, 4]},
    ),
    Row("CUAction.safe_asdict", "is abstract", lambda: CUAction.__abstractmethods__, {"safe_asdict"}),
    Row("CUAction.requires_local_execution", "is True", lambda: CLICK.requires_local_execution),
    Row(
        "CUAction.requires_local_execution",
        "is writable",
        lambda: _elsewhere(CUMove(*WHOSE, (1, 2))).requires_local_execution,
        expected=False,
    ),
    Row("CUDrag.__hash__", "of its points", lambda: hash(CUDrag(*WHOSE, [(1, 2), (3, 4)])), hash(((1, 2), (3, 4)))),
    Row("CUKeypress.__hash__", "of its keys", lambda: hash(CUKeypress(*WHOSE, ["ctrl", "s"])), hash(("ctrl", "s"))),
    Row(
        "CUKeypressHold.__hash__",
        "of its keys and duration",
        lambda: hash(CUKeypressHold(*WHOSE, ["w"], 1.5)),
        hash((("w",), 1.5)),
    ),
    Row("ComputerUseAction", "get_args works, of all seventeen", lambda: len(get_args(ComputerUseAction)), 17),
    *(
        Row(
            made.__name__,
            "is a CUAction that can be made",
            lambda made=made: issubclass(made, CUAction) and not inspect.isabstract(made),
        )
        for made in get_args(ComputerUseAction)
    ),
    *(
        Row(
            f"{made.__name__}.type",
            "always the same",
            lambda made=made: made(*WHOSE, **_least(made), type="other"),
            Raises(ActionError, "type of a CU"),
        )
        for made in get_args(ComputerUseAction)
    ),
]


def _least(made: Any) -> dict[str, Any]:
    """The fields that an action cannot be made without."""
    values = {"keys": ["a"], "duration": 0.0, "text": "a", "xy": [(1, 2)] if made is CUDrag else (1, 2)}
    own = list(inspect.signature(made).parameters.values())[len(WHOSE) :]
    return {each.name: values[each.name] for each in own if each.default is inspect.Parameter.empty}


@each([*declared_rows(conatus), *CALLS, *ACTION])
def test_tool_calls_are_as_documented(row: Row) -> None:
    row.check()


# --- what they do ---

# An action's own fields by place, and what happens; `@here` is where the pointer was.
DONE: list[tuple[Any, list[str]]] = [
    (CULeftMouseDown(*WHOSE, (10, 20)), ["+1@10,20"]),
    (CULeftMouseDown(*WHOSE), ["+1@here"]),
    (CULeftMouseUp(*WHOSE, (10, 20)), []),
    (CULeftMouseUp(*WHOSE), []),
    (CULeftMouseClick(*WHOSE, (400, 300)), ["+1@400,300", "-1@400,300"]),
    (CULeftMouseClick(*WHOSE), ["+1@here", "-1@here"]),
    (CULeftMouseDoubleClick(*WHOSE, (410, 300)), ["+1@410,300", "-1@410,300"] * 2),
    (CULeftMouseDoubleClick(*WHOSE), ["+1@here", "-1@here"] * 2),
    (CULeftMouseTripleClick(*WHOSE, (420, 300)), ["+1@420,300", "-1@420,300"] * 3),
    (CULeftMouseTripleClick(*WHOSE), ["+1@here", "-1@here"] * 3),
    (CUMiddleClick(*WHOSE, (5, 6)), ["+2@5,6", "-2@5,6"]),
    (CUMiddleClick(*WHOSE), ["+2@here", "-2@here"]),
    (CURightClick(*WHOSE, (5, 6)), ["+3@5,6", "-3@5,6"]),
    (CURightClick(*WHOSE), ["+3@here", "-3@here"]),
    (CUBackClick(*WHOSE, (5, 6)), ["+8@5,6", "-8@5,6"]),
    (CUBackClick(*WHOSE), ["+8@here", "-8@here"]),
    (CUForwardClick(*WHOSE, (5, 6)), ["+9@5,6", "-9@5,6"]),
    (CUForwardClick(*WHOSE), ["+9@here", "-9@here"]),
    (CUDrag(*WHOSE, [(10, 10), (90, 10)]), ["+1@10,10", "-1@90,10"]),
    (CUDrag(*WHOSE, [(90, 10)]), ["+1@here", "-1@90,10"]),
    (CUDrag(*WHOSE, [(10, 10), (50, 90), (90, 10)]), ["+1@10,10", "-1@90,10"]),
    (CUKeypress(*WHOSE, ["ctrl", "s"]), ["+Control_L", "+s", "-s", "-Control_L"]),
    (CUKeypressHold(*WHOSE, ["w"], 0.05), ["+w", "-w"]),
    (CUMove(*WHOSE, (640, 400)), []),
    (CUScreenshot(*WHOSE), []),
    (CUScroll(*WHOSE, (50, 60), direction="up", magnitude=2), ["+4@50,60", "-4@50,60"] * 2),
    (CUScroll(*WHOSE, distance_xy=(0, 200)), ["+5@here", "-5@here"] * 2),
    (CUScroll(*WHOSE, distance_xy=(-100, 0)), ["+6@here", "-6@here"]),
    (CUScroll(*WHOSE, direction="right", magnitude=1.0), ["+7@here", "-7@here"]),
    (CUScroll(*WHOSE, magnitude=1), ["+5@here", "-5@here"]),
    (CUScroll(*WHOSE), ["+5@here", "-5@here"] * 3),
    (CUType(*WHOSE, "hi"), ["+h", "-h", "+i", "-i"]),
    (CUWait(*WHOSE, 0.05), []),
    (CUWait(*WHOSE), []),
]


@pytest.mark.parametrize(("action", "seen"), DONE, ids=lambda value: getattr(value, "arguments_as_str", ""))
def test_every_action_is_done_and_has_its_fields(world: World, action: Any, seen: list[str]) -> None:
    world.rest()
    observation = world.desktop.perform(action, settle=False)
    assert world.told() == seen
    assert observation.size == world.desktop.size
    assert type(action.action) is ACTIONS[action.type]
    own = list(inspect.signature(type(action)).parameters)[len(WHOSE) :]
    assert action.safe_asdict() == {name: getattr(action, name) for name in own}
    assert copy.deepcopy(action.safe_asdict()) == action.safe_asdict()
    where = next((place for place in (action.safe_asdict().get(name) for name in ("xy", "start_xy")) if place), None)
    if where:
        assert world.desktop.pointer == (where[-1] if isinstance(where, list) else where)


def test_every_action_is_in_the_table_above() -> None:
    assert {type(action) for action, _ in DONE} == set(get_args(ComputerUseAction))


def test_a_drag_visits_every_point(world: World) -> None:
    world.rest()
    world.desktop.perform(CUDrag(*WHOSE, [(10, 10), (50, 90), (90, 10)]), settle=False)
    places = [tuple(event["at"]) for event in world.observer.events() if event["kind"] == "motion"]
    assert {(10, 10), (50, 90), (90, 10)} <= set(places)


@pytest.mark.parametrize("action", [CUKeypressHold(*WHOSE, ["w"], 0.2), CUWait(*WHOSE, 0.2)])
def test_a_duration_is_in_seconds(world: World, action: Any) -> None:
    assert world.desktop.perform(action, settle=False).elapsed.total >= 0.2


# --- on every kind of desktop, and what is not done on any ---


def _governed(desktop: Desktop) -> Desktop:
    return desktop.also(Guard(limits=None))


def _executed(desktop: Desktop, call: Any) -> object:
    """By its request, as a call that a model makes."""
    (result,) = asyncio.run(Executor(desktops=desktop).execute([request_of(call)]))
    assert result.error is None
    return result


WAYS: dict[str, Callable[[Desktop, Any], object]] = {
    "bare": lambda desktop, call: desktop.perform(call, settle=False),
    "governed": lambda desktop, call: _governed(desktop).perform(call, settle=False),
    "coroutines": lambda desktop, call: asyncio.run(AsyncDesktop(desktop).perform(call, settle=False)),
    "governed coroutines": lambda desktop, call: asyncio.run(
        AsyncDesktop(_governed(desktop)).perform(call, settle=False)
    ),
    "executor": _executed,
    "governed executor": lambda desktop, call: _executed(_governed(desktop), call),
}


def _sent(way: str, call: Any) -> list[Any]:
    """What a desktop that is not real was sent."""
    ticks = itertools.count()
    backend = MemoryBackend((1280, 800))
    backend.on_wait = lambda _: None
    with Desktop(backend, clock=lambda: next(ticks) / 1000) as desktop:
        WAYS[way](desktop, call)
    return backend.events


TOOL_CALLS = [AIToolCall("right_click", given, "call_1") for given in (DICT, TEXT)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("call", [*(action for action, _ in DONE), *TOOL_CALLS], ids=lambda call: call.arguments_as_str)
def test_every_kind_of_desktop_takes_them(call: Any, way: str) -> None:
    assert _sent(way, call) == _sent("bare", call.action)


ELSEWHERE = [
    AIToolCall("left_mouse_click", DICT, "call_1", requires_local_execution=False),
    *(_elsewhere(made(*WHOSE, **_least(made))) for made in get_args(ComputerUseAction)),
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("call", ELSEWHERE, ids=lambda call: call.name)
def test_what_the_provider_carries_out_is_never_done_here(call: Any, way: str) -> None:
    backend = MemoryBackend()
    with Desktop(backend) as desktop:
        with pytest.raises((ActionError, BadPlan), match=f"the provider carries out {call.name} itself"):
            WAYS[way](desktop, call)
        with pytest.raises(ActionError, match="not done here") as refused:
            desktop.perform(CUMove(*WHOSE, (5, 5)), call)
        assert (refused.value.index, refused.value.done, backend.events) == (1, 0, [])
    with pytest.raises(ActionError, match="not done here"):
        _ = call.action
