"""The vocabulary: type literals, dictionary form, and validation on construction."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand import actions as act
from deskhand.actions import ACTIONS, Action
from deskhand.errors import ActionError, Untypable

# action and its exact dictionary
FORMS: list[tuple[Action, dict[str, Any]]] = [
    (act.LeftMouseDown((1, 2)), {"type": "left_mouse_down", "xy": [1, 2]}),
    (act.LeftMouseUp(), {"type": "left_mouse_up", "xy": None}),
    (act.LeftClick((1, 2)), {"type": "left_mouse_click", "xy": [1, 2]}),
    (
        act.LeftClick((1, 2), modifiers=["ctrl", "Shift_L"]),
        {"type": "left_mouse_click", "xy": [1, 2], "modifiers": ["ctrl", "Shift_L"]},
    ),
    (act.DoubleClick((1, 2)), {"type": "left_mouse_double_click", "xy": [1, 2]}),
    (act.TripleClick((1, 2)), {"type": "left_mouse_triple_click", "xy": [1, 2]}),
    (
        act.DoubleClick((1, 2), button="right"),
        {"type": "left_mouse_double_click", "xy": [1, 2], "button": "right"},
    ),
    (act.TripleClick(button="middle"), {"type": "left_mouse_triple_click", "xy": None, "button": "middle"}),
    (act.MiddleClick((1, 2)), {"type": "middle_click", "xy": [1, 2]}),
    (act.RightClick((1, 2)), {"type": "right_click", "xy": [1, 2]}),
    (act.BackClick((1, 2)), {"type": "back_click", "xy": [1, 2]}),
    (act.ForwardClick((1, 2)), {"type": "forward_click", "xy": [1, 2]}),
    (act.Drag([(1, 2), (3, 4)]), {"type": "drag", "xy": [[1, 2], [3, 4]]}),
    (act.Drag(element="e12", to="e14"), {"type": "drag", "element": "e12", "to": "e14"}),
    (act.Drag([(1, 2)], to="e14"), {"type": "drag", "xy": [[1, 2]], "to": "e14"}),
    (
        act.Drag([(1, 2)], "middle", modifiers=["alt"]),
        {"type": "drag", "xy": [[1, 2]], "button": "middle", "modifiers": ["alt"]},
    ),
    (act.KeyPress(["ctrl", "s"]), {"type": "keypress", "keys": ["ctrl", "s"]}),
    (act.KeyPress("Tab", repeat=3), {"type": "keypress", "keys": ["Tab"], "repeat": 3}),
    (act.KeyHold(["w"], 1), {"type": "keypress_hold", "keys": ["w"], "duration": 1.0}),
    (act.Move((1, 2)), {"type": "move", "xy": [1, 2]}),
    (act.TakeScreenshot(), {"type": "screenshot"}),
    (
        act.Scroll((1, 2), (0, -300)),
        {"type": "scroll", "start_xy": [1, 2], "distance_xy": [0, -300], "magnitude": None, "direction": None},
    ),
    (
        act.Scroll(magnitude=2, direction="left", modifiers=["ctrl"]),
        {
            "type": "scroll",
            "start_xy": None,
            "distance_xy": None,
            "magnitude": 2.0,
            "direction": "left",
            "modifiers": ["ctrl"],
        },
    ),
    (act.Type("naïve ☕\n"), {"type": "type", "text": "naïve ☕\n"}),
    (act.Type("", paste=True), {"type": "type", "text": "", "paste": True}),
    (act.Wait(), {"type": "wait", "duration": None}),
    (act.Wait(2), {"type": "wait", "duration": 2.0}),
    (act.MouseDown("right", (1, 2)), {"type": "mouse_down", "button": "right", "xy": [1, 2]}),
    (act.MouseUp("back"), {"type": "mouse_up", "button": "back", "xy": None}),
    (act.PressKeys(["shift"]), {"type": "key_down", "keys": ["shift"]}),
    (act.ReleaseKeys(["shift"]), {"type": "key_up", "keys": ["shift"]}),
    (act.Zoom((1, 2, 30, 40)), {"type": "zoom", "region": [1, 2, 30, 40]}),
    (act.CursorPosition(), {"type": "cursor_position"}),
]
IDS = [action.type for action, _ in FORMS]

NORMALIZED_TYPES = """
left_mouse_down left_mouse_up left_mouse_click left_mouse_double_click left_mouse_triple_click
middle_click right_click back_click forward_click drag keypress keypress_hold move screenshot scroll type wait
"""


def test_the_seventeen_normalized_types_are_all_there() -> None:
    assert set(NORMALIZED_TYPES.split()) <= set(ACTIONS)
    assert set(ACTIONS) - set(NORMALIZED_TYPES.split()) == {
        "mouse_down",
        "mouse_up",
        "key_down",
        "key_up",
        "zoom",
        "cursor_position",
    }
    assert {action.type for action, _ in FORMS} == set(ACTIONS)


def test_every_action_is_public_documented_and_exemplified() -> None:
    for kind in ACTIONS.values():
        assert kind.__name__ in act.__all__
        assert kind.__doc__
        assert f"{kind.__name__}(" in (act.__doc__ or "")
    assert act.__all__ == sorted(act.__all__)


def test_the_examples_of_the_module_are_valid() -> None:
    examples = [
        example
        for line in (act.__doc__ or "").splitlines()
        if line.startswith("    ")
        for example in line.split("  ")
        if example.strip()
    ]
    assert len(examples) > len(ACTIONS)
    for example in examples:
        assert isinstance(eval(example.strip(), vars(act)), Action)


@pytest.mark.parametrize(("action", "plain"), FORMS, ids=IDS)
def test_dictionary_form(action: Action, plain: dict[str, Any]) -> None:
    assert action.to_dict() == plain
    assert Action.from_dict(plain) == action
    assert Action.from_dict(json.loads(json.dumps(plain))) == action
    assert Action.from_dict({**plain, "environment": "x", "call_id": None}) == action


@pytest.mark.parametrize(("action", "plain"), FORMS, ids=IDS)
def test_values(action: Action, plain: dict[str, Any]) -> None:
    again = Action.from_dict(plain)
    assert hash(again) == hash(action)
    assert pickle.loads(pickle.dumps(action)) == action
    assert copy.deepcopy(action) == action
    assert not hasattr(action, "__dict__")
    for spec in dataclasses.fields(action):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(action, spec.name, None)


@pytest.mark.parametrize(
    ("action", "points", "there"),
    [
        (act.LeftClick(element="e1"), [(5, 6)], act.LeftClick((5, 6))),
        (act.Scroll(element="e1", direction="up"), [(5, 6)], act.Scroll((5, 6), direction="up")),
        (act.Drag(element="e1", to="e2"), [(5, 6), (7, 8)], act.Drag([(5, 6), (7, 8)])),
        (act.Drag([(1, 2)], element="e1"), [(5, 6)], act.Drag([(5, 6), (1, 2)])),
        (act.Drag([(1, 2)], "right", to="e2"), [(7, 8)], act.Drag([(1, 2), (7, 8)], "right")),
        (act.Drag(to="e2"), [(7, 8)], act.Drag([(7, 8)])),
        (act.Drag([(1, 2)]), [], act.Drag([(1, 2)])),
        (act.Type("a"), [], act.Type("a")),
    ],
)
def test_elements_become_points(action: Action, points: list[tuple[int, int]], there: Action) -> None:
    assert len(act.elements_of(action)) == len(points)
    assert act.at_points(action, points) == there


def test_equality_is_by_kind() -> None:
    left: Action = act.LeftClick((1, 2))
    right: Action = act.RightClick((1, 2))
    assert left != right


def test_one_form_is_stored() -> None:
    assert act.LeftClick([1.0, 2]).xy == (1, 2)  # type: ignore[arg-type]
    assert type(act.LeftClick((1.0, 2)).xy[0]) is int  # type: ignore[arg-type,index]
    assert act.Drag([[1, 2]]).path == ((1, 2),)  # type: ignore[list-item]
    assert act.KeyPress("ctrl+s").keys == ("ctrl+s",)
    assert act.LeftClick(modifiers="ctrl+shift").modifiers == ("ctrl+shift",)
    assert act.LeftClick((-1, 99999)).xy == (-1, 99999)


WRONG: list[tuple[str, dict[str, Any], str]] = [
    *[("move", {"xy": xy}, "xy") for xy in ([1], [1, 2, 3], "12", 5, {"x": 1}, [1.5, 2], [math.nan, 2], [math.inf, 2])],
    *[("move", {"xy": xy}, "xy") for xy in ([True, 2], ["1", 2], [None, 1], [[1], 2], b"12")],
    *[("move", {"xy": [value, 2]}, "32 bits") for value in (2**31, -1e300, 10**5000)],
    ("wait", {"duration": 10**5000}, "very many digits"),
    ("left_mouse_click", {"xy": []}, "xy"),
    ("left_mouse_click", {"modifiers": ["a"]}, "not a modifier"),
    ("left_mouse_click", {"modifiers": ["ctrl+a"]}, "not a modifier"),
    ("left_mouse_click", {"modifiers": ["ctrl", "ctrl"]}, "twice"),
    ("left_mouse_click", {"modifiers": ["Caps_Lock"]}, "not a modifier"),
    ("left_mouse_click", {"modifiers": 3}, "modifiers"),
    ("left_mouse_click", {"modifiers": ["nokey"]}, "unknown key"),
    ("drag", {"xy": []}, "at least one"),
    ("drag", {"xy": [1, 2]}, "a list of points is needed, not the point"),
    ("drag", {"element": "e1"}, "xy missing"),
    ("drag", {"to": "14"}, "a reference such as 'e12'"),
    ("drag", {"xy": [[1, 2], [1, math.nan]]}, "integer"),
    ("drag", {"xy": [[1, 2]], "button": "wheel"}, "one of left, middle"),
    ("mouse_down", {"button": 1}, "one of left"),
    ("keypress", {"keys": []}, "no key"),
    ("keypress", {"keys": ["nokey"]}, "unknown key"),
    ("keypress", {"keys": [1]}, "a string"),
    ("keypress", {"keys": 1}, "list of key names"),
    ("keypress", {"keys": {"a": 1}}, "list of key names"),
    *[("keypress", {"keys": ["a"], "repeat": n}, "repeat") for n in (0, 101, -1, 1.5, True, "2", 10**400)],
    *[("keypress_hold", {"keys": ["a"], "duration": d}, "duration") for d in (-1, 3601, math.nan, math.inf, "1", True)],
    *[("wait", {"duration": d}, "duration") for d in (-0.001, 3600.1, math.nan, -math.inf, "1", False, 10**400)],
    *[("scroll", {"magnitude": m}, "magnitude") for m in (math.nan, math.inf, "3", True, 10**400)],
    ("scroll", {"direction": "sideways"}, "one of up, down, left, right"),
    ("scroll", {"direction": ["up"]}, "direction"),
    ("scroll", {"distance_xy": [0.5, 0]}, "distance_xy"),
    ("scroll", {"start_xy": [0]}, "start_xy"),
    ("type", {"text": 5}, "a string"),
    ("type", {"text": "a", "paste": 1}, "true or false"),
    ("zoom", {"region": [0, 0, 0, 5]}, "empty"),
    ("zoom", {"region": [0, 0, 5]}, "rectangle"),
]


@pytest.mark.parametrize(("kind", "values", "message"), WRONG)
def test_wrong_values(kind: str, values: dict[str, Any], message: str) -> None:
    with pytest.raises(ActionError) as caught:
        Action.from_dict({"type": kind, **values})
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{kind}: ")
    assert len(str(caught.value)) < 400


def test_lone_surrogates_are_named_with_their_positions() -> None:
    with pytest.raises(Untypable) as caught:
        act.Type("a\ud83db\udc00")
    assert caught.value.characters == ((1, "\ud83d"), (3, "\udc00"))


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        ({}, "unknown action type None: use one of back_click, "),
        ({"type": "click"}, "unknown action type 'click'"),
        ({"type": ["drag"]}, "unknown action type"),
        ({"type": ""}, "unknown action type ''"),
        ([], "a dictionary"),
        (None, "a dictionary"),
        ({"type": "keypress"}, "keypress: keys missing"),
        ({"type": "keypress_hold"}, "keypress_hold: keys, duration missing"),
        ({"type": "drag", "path": [[1, 2]]}, "drag: xy missing"),
        ({"type": "move", "xy": None}, "move: xy missing"),
    ],
)
def test_wrong_dictionaries(plain: Any, message: str) -> None:
    with pytest.raises(ActionError) as caught:
        Action.from_dict(plain)
    assert message in str(caught.value)


def test_none_is_taken_for_an_absent_optional_field() -> None:
    plain = {"type": "left_mouse_click", "xy": None, "modifiers": None}
    assert Action.from_dict(plain) == act.LeftClick()
    with pytest.raises(ActionError):
        act.LeftClick(modifiers=None)  # type: ignore[arg-type]
    with pytest.raises(ActionError):
        act.Move(None)  # type: ignore[arg-type]


FIELDS = (
    "xy start_xy distance_xy keys duration magnitude direction text modifiers repeat button paste region element to"
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["ctrl", "left"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=8,
)


@given(st.sampled_from(sorted(ACTIONS)), st.dictionaries(st.sampled_from(FIELDS.split()), JSON))
def test_any_json_is_an_action_or_refused(kind: str, values: dict[str, Any]) -> None:
    try:
        action = Action.from_dict({"type": kind, **values})
    except ActionError:
        return
    assert Action.from_dict(json.loads(json.dumps(action.to_dict()))) == action
    hash(action)


@pytest.mark.parametrize("place", [{"x": 1, "y": 2}, {"coordinate": [1, 2]}, {"position": {"x": 1, "y": 2}}])
@pytest.mark.parametrize("kind", ["left_mouse_click", "right_click", "scroll", "move"])
def test_a_place_by_another_name_is_not_ignored(kind: str, place: dict[str, object]) -> None:
    rest = {"scroll": {"dy": 1}}.get(kind, {})
    with pytest.raises(ActionError, match=r"xy"):
        Action.from_dict({"type": kind, **rest, **place})


@pytest.mark.parametrize(
    ("plain", "lost"),
    [
        ({"type": "left_mouse_click", "xy": [1, 2], "button": "right"}, "button"),
        ({"type": "keypress", "keys": ["a"], "modifiers": ["ctrl"]}, "modifiers"),
        ({"type": "left_mouse_click", "xy": [1, 2], "repeat": 3}, "repeat"),
        ({"type": "screenshot", "region": [0, 0, 5, 5]}, "region"),
        ({"type": "type", "text": "x", "xy": [1, 2], "duration": 3}, "duration, xy"),
    ],
)
def test_what_another_action_takes_is_refused(plain: dict[str, Any], lost: str) -> None:
    with pytest.raises(ActionError, match=f"takes no {lost}"):
        Action.from_dict(plain)
    assert Action.from_dict({**plain, **dict.fromkeys(lost.split(", ")), "cost": 5}).type == plain["type"]
