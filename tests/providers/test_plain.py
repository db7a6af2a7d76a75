"""Our own actions as tools: schemas that describe them, arguments in the model's pixels."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand import ActionError, OutOfBounds, Size, Viewport
from deskhand import actions as a
from deskhand.errors import UnsupportedAction
from deskhand.providers.action_tools import decode_plain, describe, encode_plain, is_read_only, schema, whole_schema
from faults.scale import MUTATED_PAYLOADS
from providers.strategies import EXAMPLES, HALVED, VIEWPORT, damaged, keys, modifiers, points, texts

buttons = st.sampled_from(a.BUTTONS)
seconds = st.floats(0, 3600)
ACTIONS: dict[type[a.Action], st.SearchStrategy[a.Action]] = {
    **{
        made: st.builds(made, st.none() | points, modifiers=modifiers)
        for made in (
            a.LeftMouseDown, a.LeftMouseUp, a.LeftClick, a.DoubleClick, a.TripleClick, a.MiddleClick, a.RightClick, a.BackClick,
            a.ForwardClick,
        )
    },
    a.MouseDown: st.builds(a.MouseDown, buttons, st.none() | points, modifiers=modifiers),
    a.MouseUp: st.builds(a.MouseUp, buttons, st.none() | points, modifiers=modifiers),
    a.Drag: st.builds(a.Drag, st.lists(points, min_size=1, max_size=4), buttons, modifiers=modifiers),
    a.KeyPress: st.builds(a.KeyPress, keys, repeat=st.integers(1, 100)),
    a.KeyHold: st.builds(a.KeyHold, keys, seconds),
    a.PressKeys: st.builds(a.PressKeys, keys),
    a.ReleaseKeys: st.builds(a.ReleaseKeys, keys),
    a.Move: st.builds(a.Move, points, modifiers=modifiers),
    a.Scroll: st.builds(
        a.Scroll,
        st.none() | points,
        st.none() | points,
        st.none() | st.floats(-50, 50),
        st.none() | st.sampled_from(a.DIRECTIONS),
        modifiers=modifiers,
    ),
    a.Type: st.builds(a.Type, texts, paste=st.booleans()),
    a.Wait: st.builds(a.Wait, st.none() | seconds),
    a.TakeScreenshot: st.builds(a.TakeScreenshot),
    a.Zoom: st.builds(lambda xy: a.Zoom((*xy, 1280 - xy[0], 800 - xy[1])), points),
    a.CursorPosition: st.builds(a.CursorPosition),
}  # fmt: skip
actions = st.one_of(*ACTIONS.values())


def test_every_action_is_generated() -> None:
    assert set(ACTIONS) == set(a.ACTIONS.values())


@given(actions)
def test_an_action_comes_back_as_it_was_and_fits_its_schema(action: a.Action) -> None:
    name, arguments = encode_plain(action, VIEWPORT)
    assert decode_plain(name, arguments, VIEWPORT) == action
    jsonschema.validate(arguments, schema(type(action)))
    jsonschema.validate({"action": name, **arguments}, whole_schema())


@pytest.mark.parametrize("action", EXAMPLES, ids=lambda action: action.type)
def test_a_smaller_picture_is_pointed_into(action: a.Action) -> None:
    name, arguments = encode_plain(action, HALVED)
    back = decode_plain(name, arguments, HALVED)
    assert type(back) is type(action)
    assert encode_plain(back, HALVED) == (name, arguments), "to the model's pixel"


def test_places_are_in_the_models_pixels() -> None:
    assert decode_plain("left_mouse_click", {"xy": [10, 20]}, HALVED) == a.LeftClick((21, 41))
    assert decode_plain("drag", {"xy": [[10, 20], [0, 0]]}, HALVED) == a.Drag([(21, 41), (1, 1)])
    assert decode_plain("scroll", {"start_xy": [10, 20], "distance_xy": [0, -50]}, HALVED) == a.Scroll(
        (21, 41), (0, -100)
    )
    assert decode_plain("zoom", {"region": [10, 20, 30, 40]}, HALVED) == a.Zoom((20, 40, 60, 80))
    for name, arguments in (
        ("left_mouse_click", {"xy": [640, 0]}),
        ("drag", {"xy": [[0, 0], [0, 400]]}),
        ("zoom", {"region": [600, 0, 60, 10]}),
        ("scroll", {"start_xy": [-1, 0]}),
    ):
        with pytest.raises(OutOfBounds):
            decode_plain(name, arguments, HALVED)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("fly", {}),
        (None, {}),
        ("move", {}),
        ("move", {"xy": [1]}),
        ("move", {"xy": [1, 2, 3]}),
        ("move", {"xy": "1,2"}),
        ("move", {"xy": [float("nan"), 1]}),
        ("drag", {"xy": [1, 2]}),
        ("scroll", {"distance_xy": [10**400, 0]}),
        ("zoom", {"region": [0, 0, 0, 5]}),
        ("keypress", {"keys": []}),
        ("wait", {"duration": -1}),
    ],
)
def test_wrong_arguments_are_refused(name: Any, arguments: dict[str, Any]) -> None:
    with pytest.raises(ActionError):
        decode_plain(name, arguments, VIEWPORT)


def test_damaged_arguments_are_read_or_refused() -> None:
    whole = [encode_plain(action, VIEWPORT) for action in EXAMPLES]
    for seed in range(MUTATED_PAYLOADS):
        name, arguments = whole[seed % len(whole)]
        broken = damaged(arguments, seed)
        if not isinstance(broken, dict) or not all(isinstance(key, str) for key in broken):
            continue
        try:
            assert isinstance(decode_plain(name, broken, HALVED), a.Action)
        except ActionError:
            continue


@given(st.integers(1, 3000), st.integers(1, 3000), st.floats(0.2, 1.0), st.data())
def test_a_point_lands_within_half_a_pixel_of_the_model(
    width: int, height: int, factor: float, data: st.DataObject
) -> None:
    viewport = Viewport(Size(width, height), Size(max(1, round(width * factor)), max(1, round(height * factor))))
    at = [data.draw(st.integers(0, side - 1)) for side in viewport.model]
    step = decode_plain("move", {"xy": at}, viewport)
    assert isinstance(step, a.Move)
    for place, wanted, screen, model in zip(step.xy, at, viewport.screen, viewport.model, strict=True):
        assert abs((place + 0.5) * model / screen - (wanted + 0.5)) <= 0.5


def test_a_secret_is_in_no_payload() -> None:
    with pytest.raises(UnsupportedAction):
        encode_plain(a.Type("hunter2", secret=True), VIEWPORT)
    assert "secret" not in schema(a.Type)["properties"]


def test_every_action_is_described() -> None:
    for action in a.ACTIONS.values():
        assert describe(action).endswith("."), action
        jsonschema.Draft202012Validator.check_schema(schema(action))
    jsonschema.Draft202012Validator.check_schema(whole_schema())
    assert {action.type for action in a.ACTIONS.values() if is_read_only(action)} == {
        "screenshot",
        "zoom",
        "cursor_position",
        "wait",
    }
