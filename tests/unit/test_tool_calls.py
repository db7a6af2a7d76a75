"""Tool calls as a runtime carries them; `Desktop.perform` takes them as they are."""

from __future__ import annotations

import json
import pickle
from typing import Any, get_args

import pytest

import deskhand
from deskhand import ActionError, Desktop, LeftClick, tool_calls
from deskhand.actions import ACTIONS, Action
from deskhand.backends.memory import MemoryBackend
from deskhand.events import ButtonDown
from deskhand.tool_calls import (
    AIToolCall,
    CUAction,
    CUDrag,
    CUKeypress,
    CUKeypressHold,
    CULeftMouseClick,
    CUScreenshot,
    CUScroll,
    CUWait,
    computer_use_action,
)
from providers.strategies import EXAMPLES

# Name, type and own fields with their defaults, as the document lists them; `...` is a field without a default.
DOCUMENT: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("CULeftMouseDown", "left_mouse_down", {"xy": None}),
    ("CULeftMouseUp", "left_mouse_up", {"xy": None}),
    ("CULeftMouseClick", "left_mouse_click", {"xy": None}),
    ("CULeftMouseDoubleClick", "left_mouse_double_click", {"xy": None}),
    ("CULeftMouseTripleClick", "left_mouse_triple_click", {"xy": None}),
    ("CUMiddleClick", "middle_click", {"xy": None}),
    ("CURightClick", "right_click", {"xy": None}),
    ("CUBackClick", "back_click", {"xy": None}),
    ("CUForwardClick", "forward_click", {"xy": None}),
    ("CUDrag", "drag", {"xy": ...}),
    ("CUKeypress", "keypress", {"keys": ...}),
    ("CUKeypressHold", "keypress_hold", {"keys": ..., "duration": ...}),
    ("CUMove", "move", {"xy": ...}),
    ("CUScreenshot", "screenshot", {}),
    ("CUScroll", "scroll", {"start_xy": None, "distance_xy": None, "magnitude": None, "direction": None}),
    ("CUType", "type", {"text": ...}),
    ("CUWait", "wait", {"duration": None}),
)
GIVEN = {"xy": (3, 4), "keys": ["ctrl", "a"], "duration": 2.0, "text": "é", "start_xy": (1, 2), "direction": "up"}


@pytest.mark.parametrize(("name", "type_", "own"), DOCUMENT)
def test_every_class_has_the_documented_fields_in_their_order(name: str, type_: str, own: dict[str, Any]) -> None:
    made: type[CUAction] = getattr(tool_calls, name)
    path = [(1, 1), (3, 4)]
    values = [path if type_ == "drag" else GIVEN.get(field, default) for field, default in own.items()]
    environment = object()
    call = made("browser", environment, "call_1", *values)
    assert (call.environment, call.environment_variable, call.call_id) == ("browser", environment, "call_1")
    assert call.safe_asdict() == {**dict(zip(own, values, strict=True)), "type": type_}
    assert list(call.safe_asdict()) == [*own, "type"]
    required = [value for value, default in zip(values, own.values(), strict=True) if default is ...]
    least = made(None, None, None, *required)
    assert least.safe_asdict() == {
        **{field: value if own[field] is ... else own[field] for field, value in zip(own, values, strict=True)},
        "type": type_,
    }
    if required:
        with pytest.raises(TypeError):
            made(None, None, None)
    with pytest.raises(TypeError):
        made(None, None)
    assert call.name == call.type == type_
    assert call.arguments_as_dict == call.safe_asdict()
    assert json.loads(call.arguments_as_str) == json.loads(json.dumps(call.safe_asdict()))
    assert call.returned_arguments == call.arguments_as_str
    assert call.action == Action.from_dict(call.safe_asdict())
    assert type(call.action) is ACTIONS[type_]


def test_all_seventeen_are_there() -> None:
    assert [made.__name__ for made in get_args(tool_calls.ComputerUseAction)] == [name for name, _, _ in DOCUMENT]
    assert {name for name, _, _ in DOCUMENT} <= set(tool_calls.__all__)


def test_local_execution_is_required_until_it_is_said_otherwise() -> None:
    call = CUScreenshot(None, None, None)
    assert call.requires_local_execution
    call.requires_local_execution = False
    assert not call.requires_local_execution
    assert call == CUScreenshot(None, None, None), "it is no field"


def test_equality_and_hashes() -> None:
    click = CULeftMouseClick("a", "b", "c", (1, 2))
    assert click == CULeftMouseClick("a", "b", "c", (1, 2))
    assert hash(click) == hash(CULeftMouseClick("a", "b", "c", (1, 2)))
    for other in (
        CULeftMouseClick("a", "b", "d", (1, 2)),
        CULeftMouseClick("a", "b", "c", (1, 3)),
        CUWait("a", "b", "c"),
    ):
        assert click != other
    assert hash(CUDrag("e", [], None, [(1, 2), (3, 4)])) == hash(((1, 2), (3, 4)))
    assert hash(CUKeypress("e", {}, None, ["ctrl", "s"])) == hash(("ctrl", "s"))
    assert hash(CUKeypressHold("e", {}, None, ["w"], 1.5)) == hash((("w",), 1.5))
    assert pickle.loads(pickle.dumps(click)) == click


@pytest.mark.parametrize("action", EXAMPLES, ids=lambda action: action.type)
def test_every_action_can_be_carried_and_comes_back(action: Action) -> None:
    carried = computer_use_action(action, "desktop", object(), "call_2")
    assert carried.type == action.type
    assert carried.action == action
    hash(carried)


@pytest.mark.parametrize(
    "action", [LeftClick((1, 1), modifiers=["ctrl"]), deskhand.Zoom((0, 0, 5, 5)), deskhand.KeyPress(["a"], repeat=2)]
)
def test_what_the_family_cannot_say_is_refused(action: Action) -> None:
    with pytest.raises(ActionError, match="cannot say"):
        computer_use_action(action)


@pytest.mark.parametrize("arguments", [{"xy": [3, 4]}, '{"xy": [3, 4]}'])
def test_both_forms_of_arguments(arguments: dict[str, Any] | str) -> None:
    call = AIToolCall("left_mouse_click", arguments, "call_3")
    assert call.arguments_as_dict == {"xy": [3, 4]}
    assert call.arguments_as_str == '{"xy": [3, 4]}'
    assert (call.type, call.requires_local_execution, call.could_be_structured_output) == ("function", True, False)
    assert hash(call) == hash(("call_3", "left_mouse_click", '{"xy": [3, 4]}'))
    assert call.action == LeftClick((3, 4))


@pytest.mark.parametrize("arguments", ["[1]", '"x"', "null", "{", "", "[" * 100_000, ["xy"]])
def test_arguments_that_are_no_dictionary(arguments: Any) -> None:
    with pytest.raises(TypeError, match="left_mouse_click"):
        _ = AIToolCall("left_mouse_click", arguments).arguments_as_dict
    with pytest.raises(ActionError):
        _ = AIToolCall("left_mouse_click", arguments).action


def test_perform_takes_them_as_they_are() -> None:
    backend = MemoryBackend()
    with Desktop(backend) as desktop:
        desktop.perform(
            CULeftMouseClick("desktop", None, "call_4", (30, 40)),
            AIToolCall("right_click", {"xy": [5, 6]}),
            settle=False,
        )
        assert [event.button for event in backend.events if isinstance(event, ButtonDown)] == [1, 3]
        for wrong in (CULeftMouseClick(None, None, None, (5, 99_999)), AIToolCall("no_such_tool", "{}"), object()):
            with pytest.raises(ActionError) as caught:
                desktop.perform(CUWait(None, None, None, 0), wrong)  # type: ignore[arg-type] # as a caller may
            assert (caught.value.index, caught.value.done) == (1, 0)


@pytest.mark.parametrize(
    ("fields", "clicks"),
    [
        ({"distance_xy": (0, 200)}, [5, 5]),
        ({"distance_xy": (0, -200)}, [4, 4]),
        ({"magnitude": 2, "direction": "up"}, [4, 4]),
        ({"magnitude": -2}, [4, 4]),
        ({}, [5, 5, 5]),
        ({"distance_xy": (0, 100), "magnitude": 9, "direction": "left"}, [5]),
    ],
)
def test_a_scroll_has_one_meaning_for_each_way_to_say_it(fields: dict[str, Any], clicks: list[int]) -> None:
    backend = MemoryBackend()
    with Desktop(backend) as desktop:
        desktop.perform(CUScroll(None, None, None, **fields), settle=False)
    assert [event.button for event in backend.events if isinstance(event, ButtonDown)] == clicks
