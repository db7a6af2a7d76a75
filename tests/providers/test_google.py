"""Google's function calls and responses as plain data: what they mean, that nothing is lost, and that nothing breaks."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand import actions as a
from deskhand._core.chords import parse_keys
from deskhand._core.geometry import Rect, Size, Viewport
from deskhand.desktop.operations import SafetyCheck
from deskhand.errors import ActionError, OutOfBounds, UnsupportedAction
from deskhand.providers.google import wire
from deskhand.providers.google.functions import FUNCTIONS, on_grid
from deskhand.providers.google.wire import decode, decode_result, encode, encode_call
from deskhand.providers.values import Browse, Finish, ProviderCall, Result
from faults.scale import MUTATED_PAYLOADS

from . import strategies
from .google_helpers import (
    CURRENT,
    GRID,
    LEGACY,
    PAYLOADS,
    SAFETY,
    SHAPES,
    calls,
    fine_grid,
    grid,
    in_shape,
    payloads,
    results,
    viewports,
)

HD = Viewport(Size(1920, 1080), Size(1440, 810))


def steps(name: str, viewport: Viewport = HD, **args: Any) -> tuple[Any, ...]:
    return decode({"name": name, "args": args}, viewport).steps


# --- what calls mean ---


def test_every_function_that_is_known_is_among_the_samples() -> None:
    assert {*CURRENT, *LEGACY} == FUNCTIONS


@pytest.mark.parametrize(
    ("name", "args", "meant"),
    [
        ("click", {"x": 0, "y": 0}, [a.LeftClick((0, 0))]),
        ("click", {"x": 500, "y": 999}, [a.LeftClick((960, 1079))]),
        ("double_click", {"x": 100, "y": 100}, [a.DoubleClick((192, 108))]),
        ("triple_click", {"x": 100, "y": 100}, [a.TripleClick((192, 108))]),
        ("middle_click", {"x": 100, "y": 100}, [a.MiddleClick((192, 108))]),
        ("right_click", {"x": 100, "y": 100}, [a.RightClick((192, 108))]),
        ("mouse_down", {"x": 100, "y": 100}, [a.LeftMouseDown((192, 108))]),
        ("mouse_up", {"x": 100, "y": 100}, [a.LeftMouseUp((192, 108))]),
        ("move", {"x": 100, "y": 100}, [a.Move((192, 108))]),
        ("type", {"text": "a\n"}, [a.Type("a\n")]),
        ("type", {"text": "a", "press_enter": True}, [a.Type("a"), a.KeyPress(["Return"])]),
        (
            "type",
            {"text": "a", "clear_before_typing": True},
            [a.KeyPress(["ctrl", "a"]), a.KeyPress(["BackSpace"]), a.Type("a")],
        ),
        ("type", {"text": "a", "x": 100, "y": 100}, [a.LeftClick((192, 108)), a.Type("a")]),
        (
            "type_text_at",
            {"x": 100, "y": 100, "text": "a"},
            [
                a.LeftClick((192, 108)),
                a.KeyPress(["ctrl", "a"]),
                a.KeyPress(["BackSpace"]),
                a.Type("a"),
                a.KeyPress(["Return"]),
            ],
        ),
        (
            "type_text_at",
            {"x": 100, "y": 100, "text": "a", "press_enter": False, "clear_before_typing": False},
            [a.LeftClick((192, 108)), a.Type("a")],
        ),
        ("drag_and_drop", {"start_x": 0, "start_y": 0, "end_x": 100, "end_y": 100}, [a.Drag([(0, 0), (192, 108)])]),
        ("drag_and_drop", {"x": 0, "y": 0, "destination_x": 100, "destination_y": 100}, [a.Drag([(0, 0), (192, 108)])]),
        ("wait", {}, [a.Wait(1)]),
        ("wait", {"seconds": 7}, [a.Wait(7)]),
        ("wait_5_seconds", {}, [a.Wait(5)]),
        ("press_key", {"key": "enter"}, [a.KeyPress(["enter"])]),
        ("press_key", {"key": "control+s"}, [a.KeyPress(["control+s"])]),
        ("key_down", {"key": "shift"}, [a.PressKeys(["shift"])]),
        ("key_up", {"key": "shift"}, [a.ReleaseKeys(["shift"])]),
        ("hotkey", {"keys": ["control", "a"]}, [a.KeyPress(["control", "a"])]),
        ("hotkey", {"keys": "control+a"}, [a.KeyPress(["control+a"])]),
        ("key_combination", {"keys": "Control+A"}, [a.KeyPress(["Control+A"])]),
        ("key_combination", {"keys": ["Control", "A"]}, [a.KeyPress(["Control+A"])]),
        ("take_screenshot", {}, [a.TakeScreenshot()]),
        ("go_back", {}, [Browse("back")]),
        ("go_forward", {}, [Browse("forward")]),
        ("open_web_browser", {}, [Browse("open")]),
        ("search", {}, [Browse("search")]),
        ("navigate", {"url": "https://example.org"}, [Browse("navigate", "https://example.org")]),
        (
            "long_press",
            {"x": 100, "y": 100},
            [a.LeftMouseDown((192, 108)), a.Wait(2), a.LeftMouseUp((192, 108))],
        ),
        ("scroll_document", {"direction": "down"}, [a.Scroll((960, 540), distance_xy=(0, 864))]),
        ("scroll_document", {"direction": "left"}, [a.Scroll((960, 540), distance_xy=(-1536, 0))]),
    ],
)
def test_what_a_function_means(name: str, args: dict[str, Any], meant: list[Any]) -> None:
    assert steps(name, **args) == tuple(meant)


def test_keys_are_googles_and_a_chord_is_one_string() -> None:
    for keys in ("Control+A", "control+a", ["control", "a"], ["Control+A"]):
        chord = steps("key_combination", keys=keys)[0]
        assert chord_of(chord) == chord_of(a.KeyPress(["ctrl", "a"]))
    # Plus is a key, too.
    assert chord_of(steps("key_combination", keys="Control++")[0]) == chord_of(a.KeyPress(["ctrl", "+"]))
    for key in ("enter", "pageup", "left", "backspace", "F5", "control", "meta", "space", "tab", "escape", "delete"):
        assert steps("press_key", key=key)


def chord_of(press: a.KeyPress) -> tuple[int, ...]:
    return parse_keys(press.keys)


@pytest.mark.parametrize(
    ("args", "meant"),
    [
        ({"direction": "down"}, {"distance_xy": (0, 324)}),
        ({"direction": "DOWN"}, {"distance_xy": (0, 324)}),
        ({"direction": "up", "magnitude_in_pixels": 500}, {"distance_xy": (0, -540)}),
        ({"direction": "right", "magnitude_in_pixels": 500}, {"distance_xy": (960, 0)}),
        ({"direction": "left", "magnitude": 1}, {"distance_xy": (-2, 0)}),
        ({"direction": "up", "magnitude_in_wheel_clicks": 3}, {"magnitude": 3, "direction": "up"}),
        (
            {"direction": "up", "magnitude_in_wheel_clicks": 3, "magnitude_in_pixels": 9},
            {"magnitude": 3, "direction": "up"},
        ),
    ],
)
def test_a_scroll_is_on_the_grid_or_in_wheel_clicks(args: dict[str, Any], meant: dict[str, Any]) -> None:
    assert steps("scroll", x=500, y=500, **args) == (a.Scroll((960, 540), **meant),)


def test_an_old_scroll_goes_further_when_it_does_not_say() -> None:
    assert steps("scroll_at", x=500, y=500, direction="down") == (a.Scroll((960, 540), distance_xy=(0, 864)),)


@pytest.mark.parametrize(
    ("name", "args", "reason"),
    [
        ("open_app", {"app_name": "Mail"}, "phone"),
        ("list_apps", {}, "phone"),
        ("fly", {}, "there is no function 'fly'"),
        ("click", {"x": 1}, "y is missing"),
        ("click", {"x": "1", "y": 2}, "x is a finite number"),
        ("click", {"x": True, "y": 2}, "x is a finite number"),
        ("type", {}, "text is missing"),
        ("type", {"text": "a", "x": 1}, "y is missing"),
        ("type", {"text": "a", "press_enter": "yes"}, "press_enter is true or false"),
        ("type", {"text": "a\ud800"}, "U\\+D800"),
        ("scroll", {"x": 1, "y": 1, "direction": "sideways"}, "the direction is"),
        ("scroll", {"x": 1, "y": 1, "direction": "down", "magnitude_in_pixels": -1}, "is 0 or more"),
        ("scroll", {"x": 1, "y": 1, "direction": "down", "magnitude_in_pixels": 1e308}, "at most"),
        ("wait", {"seconds": -1}, "is 0 or more"),
        ("wait", {"seconds": 1e6}, "0...3600"),
        ("press_key", {"key": "no such key"}, "unknown key"),
        ("press_key", {"key": ["a"]}, "key is a string"),
        ("hotkey", {"keys": []}, "no key"),
        ("hotkey", {"keys": [1]}, "a key is a string"),
        ("key_combination", {"keys": ""}, "key"),
        ("navigate", {"url": None}, "url is missing"),
    ],
)
def test_what_makes_no_sense_is_told(name: str, args: dict[str, Any], reason: str) -> None:
    with pytest.raises(ActionError, match=reason):
        steps(name, **args)


@pytest.mark.parametrize(
    "payload", [None, 1, "x", [], {}, {"name": 1}, {"name": "wait", "args": 1}, {"name": "wait", "id": 1}]
)
def test_what_is_no_call_is_told(payload: Any) -> None:
    with pytest.raises(ActionError):
        decode(payload, HD)


# --- coordinates (the grid) ---


@given(viewports, fine_grid, fine_grid)
def test_a_point_lands_within_half_a_cell(viewport: Viewport, x: float, y: float) -> None:
    (move,) = steps("move", viewport, x=x, y=y)
    for landed, meant, size in ((move.xy[0], x, viewport.screen.width), (move.xy[1], y, viewport.screen.height)):
        assert 0 <= landed < size
        off = abs((landed + 0.5) * 1000 / size - (meant + 0.5))
        # Where pixels are larger than cells, the pixel that the cell's centre is in: half of a pixel off at most.
        assert off <= max(0.5, 500 / size) + 1e-6


@given(viewports, grid, grid)
def test_a_point_comes_back_as_the_cell_that_it_was(viewport: Viewport, x: int, y: int) -> None:
    call = decode({"name": "move", "args": {"x": x, "y": y}}, viewport)
    back = encode_call(call)["args"]
    assert decode(encode_call(call), viewport) == call
    for key, value, size in (("x", x, viewport.screen.width), ("y", y, viewport.screen.height)):
        assert back[key] == value or size < 1000


def test_the_corner_of_a_cell_would_not_come_back() -> None:
    """Why the published `int(v / 1000 * size)` is not taken."""
    viewport = on_grid(Viewport(Size(1366, 768), Size(1366, 768)))
    lost = [v for v in range(1000) if viewport.to_model((int(v / 1000 * 1366), 0)).x != v]
    assert len(lost) == 498
    assert all(viewport.to_model(viewport.to_screen((v, 0))).x == v for v in range(1000))
    # And the two are never further apart than half a cell, rounded up.
    assert {viewport.to_screen((v, 0)).x - int(v / 1000 * 1366) for v in range(1000)} == {0, 1}


@pytest.mark.parametrize(("x", "y"), [(1000, 0), (0, 1000), (-1, 0), (0, -0.5), (999.5, 0), (10**400, 0)])
def test_what_is_off_the_grid_is_told_and_never_moved(x: float, y: float) -> None:
    with pytest.raises((OutOfBounds, ActionError)):
        steps("click", x=x, y=y)


def test_the_grid_is_that_of_the_part_that_was_shown() -> None:
    part = Viewport(Size(1920, 1080), Size(960, 540), Rect(960, 540, 960, 540))
    assert steps("move", part, x=0, y=999) == (a.Move((960, 1079)),)
    assert decode({"name": "wait"}, part).viewport.model == Size(1000, 1000)


# --- what must be confirmed ---


@pytest.mark.parametrize("shape", SHAPES)
def test_a_safety_decision_is_forwarded_and_not_acknowledged_on_its_own(shape: str) -> None:
    call = decode(in_shape(shape, "click", {"x": 1, "y": 1, "safety_decision": SAFETY}), HD)
    assert call.safety == (SafetyCheck("safety_decision", "require_confirmation", "I see a CAPTCHA"),)
    assert "safety_acknowledgement" not in json.dumps(encode(Result(call=call)))
    assert "safety_acknowledgement" not in json.dumps(encode(Result(call=call, error="denied", denied=True)))
    confirmed = encode(Result(call=call, acknowledged=call.safety))
    said = json.loads(confirmed["result"][0]["text"]) if shape == "step" else find(confirmed, "response")
    assert said["safety_acknowledgement"] == "true"


def find(payload: dict[str, Any], key: str) -> Any:
    return payload.get(key) if key in payload else payload["function_response"][key]


def test_another_check_acknowledges_nothing() -> None:
    call = decode({"name": "click", "args": {"x": 1, "y": 1, "safety_decision": SAFETY}}, HD)
    other = (SafetyCheck("safety_decision", "require_confirmation", "something else"),)
    assert "safety_acknowledgement" not in encode(Result(call=call, acknowledged=other))["response"]
    harmless = decode({"name": "wait"}, HD)
    assert "safety_acknowledgement" not in encode(Result(call=harmless, acknowledged=other))["response"]


@pytest.mark.parametrize("decision", ["require_confirmation", "REQUIRE_CONFIRMATION", "something_new", ""])
def test_every_decision_that_is_not_known_to_allow_must_be_confirmed(decision: str) -> None:
    (check,) = decode({"name": "wait", "args": {"safety_decision": {"decision": decision}}}, HD).safety
    assert check.code == decision


@pytest.mark.parametrize("decision", ["regular", "allowed"])
def test_a_decision_that_allows_asks_for_nothing_and_is_kept(decision: str) -> None:
    payload = {"name": "wait", "args": {"seconds": 1, "safety_decision": {"decision": decision, "more": 1}}}
    call = decode(payload, HD)
    assert call.safety == ()
    assert encode_call(call) == payload


def test_what_google_blocked_nobody_can_confirm() -> None:
    with pytest.raises(ActionError, match=r"blocked.*a CAPTCHA"):
        decode({"name": "wait", "args": {"safety_decision": {**SAFETY, "decision": "blocked"}}}, HD)


@pytest.mark.parametrize(
    "found", [{}, "yes", [], {"decision": None}, {"decision": 1}, {"decision": "x", "explanation": 1}, 0, False]
)
def test_a_decision_that_cannot_be_read_stops_the_call(found: Any) -> None:
    with pytest.raises(ActionError):
        decode({"name": "wait", "args": {"safety_decision": found}}, HD)


# --- nothing is lost ---


@given(payloads, viewports)
def test_a_call_of_every_function_comes_back(payload: dict[str, Any], viewport: Viewport) -> None:
    call = decode(payload, viewport)
    again = encode_call(call)
    assert decode(again, viewport) == call
    assert encode_call(decode(again, viewport)) == again


@given(calls())
def test_whatever_google_has_words_for_comes_back(call: ProviderCall) -> None:
    assert decode(encode_call(call), call.viewport) == call


@given(payloads, st.sampled_from(["outer", "inner", "args"]), strategies.ids, st.integers() | strategies.texts)
def test_unknown_fields_come_back(payload: dict[str, Any], where: str, name: str, value: Any) -> None:
    key = f"unknown-{name}"
    inner = payload.get("function_call", payload.get("functionCall", payload))
    place = {"outer": payload, "inner": inner, "args": inner.get("args", inner.get("arguments"))}[where]
    place[key] = value
    again = encode_call(decode(payload, HD))
    inner = again.get("function_call", again)
    place = {"outer": again, "inner": inner, "args": inner.get("args", inner.get("arguments"))}[where]
    assert place[key] == value


def test_thought_signatures_are_kept() -> None:
    for shape, key in (("part", "thought_signature"), ("rest", "thoughtSignature")):
        payload = in_shape(shape, "wait", {"seconds": 1})
        assert encode_call(decode(payload, HD))[key] == "c2lnbmVk"


@given(results())
def test_a_result_comes_back(result: Result) -> None:
    assert decode_result(encode(result, url="https://example.org"), result.call) == result


def test_the_answer_of_another_call_is_not_taken() -> None:
    for shape in ("call", "step"):
        mine, other = (decode(in_shape(shape, "wait", {}, name), HD) for name in ("1", "2"))
        with pytest.raises(ActionError, match="answers call '2'"):
            decode_result(encode(Result(call=other)), mine)


@pytest.mark.parametrize(
    "payload",
    [
        None,
        {"response": 1},
        {"response": {"error": 1}},
        {"parts": 1},
        {"parts": [1]},
        {"parts": [{}]},
        {"parts": [{"inline_data": {"mime_type": "image/png", "data": "!"}}]},
        {"type": "function_result", "result": 1},
        {"type": "function_result", "result": [{"type": "text", "text": "{"}]},
        {"type": "function_result", "result": [{"type": "text", "text": "[" * 100_000}]},
        {"type": "function_result", "result": [{"type": "text", "text": "1"}]},
        {"type": "function_result", "result": [{"type": "image", "data": "!", "mime_type": "image/png"}]},
    ],
)
def test_what_is_no_answer_is_told(payload: Any) -> None:
    with pytest.raises(ActionError):
        decode_result(payload, decode({"name": "wait"}, HD))


def test_an_answer_says_what_went_wrong_and_names_no_page_that_it_does_not_know() -> None:
    call = decode(in_shape("call", "click", {"x": 1, "y": 1}), HD)
    answer = encode(Result(call=call, error="it is gone", denied=True))
    assert answer == {
        "id": "call-1",
        "name": "click",
        "response": {"url": "", "error": "it is gone", "denied": "true"},
    }
    assert encode(Result(call=call), url="https://example.org")["response"] == {"url": "https://example.org"}


# --- what Google has no words for ---

SAYABLE = {
    "left_mouse_down": "mouse_down",
    "left_mouse_up": "mouse_up",
    "left_mouse_click": "click",
    "left_mouse_double_click": "double_click",
    "left_mouse_triple_click": "triple_click",
    "middle_click": "middle_click",
    "right_click": "right_click",
    "drag": "drag_and_drop",
    "keypress": "hotkey",
    "move": "move",
    "screenshot": "take_screenshot",
    "scroll": "scroll",
    "type": "type",
    "wait": "wait",
}


@pytest.mark.parametrize("action", strategies.EXAMPLES, ids=lambda action: action.type)
def test_of_the_seventeen_actions_what_has_a_function_is_called_by_it(action: a.Action) -> None:
    call = ProviderCall(steps=(action,), viewport=strategies.VIEWPORT)
    if action.type in SAYABLE:
        assert encode_call(call)["name"] == SAYABLE[action.type]
    else:
        with pytest.raises(UnsupportedAction, match=rf"Google.*{action.type}"):
            encode_call(call)


@pytest.mark.parametrize(
    "unsaid",
    [
        (),
        (a.LeftClick(),),
        (a.LeftClick((1, 1), modifiers=["ctrl"]),),
        (a.Drag([(1, 1)]),),
        (a.Drag([(1, 1), (2, 2), (3, 3)]),),
        (a.Drag([(1, 1), (2, 2)], button="right"),),
        (a.KeyPress(["Tab"], repeat=3),),
        (a.PressKeys(["ctrl", "shift"]),),
        (a.MouseDown("right", (1, 1)),),
        (a.Scroll(),),
        (a.Scroll((1, 1), distance_xy=(5, 5)),),
        (a.Scroll((1, 1), magnitude=1, modifiers=["ctrl"]),),
        (a.Type("x", paste=True),),
        (a.Type("x"), a.Type("y")),
        (a.Type("x"), a.KeyPress(["Tab"])),
        (a.Move((1, 1)), a.LeftClick((1, 1))),
        (a.LeftMouseDown((1, 1)), a.Wait(1), a.LeftMouseUp((2, 2))),
        (a.Zoom((0, 0, 5, 5)),),
        (a.CursorPosition(),),
        (Finish(),),
        (Browse("back"), Browse("back")),
    ],
)
def test_what_has_no_function_is_refused_by_name(unsaid: tuple[Any, ...]) -> None:
    with pytest.raises(UnsupportedAction, match="Google"):
        encode_call(ProviderCall(steps=unsaid, viewport=GRID))


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_no_function_is_made_to_say_something_else(name: str) -> None:
    """A call that is named like a function says what the function says, or nothing."""
    for other in FUNCTIONS:
        meant = decode({"name": other, "args": {**CURRENT, **LEGACY}[other]}, GRID).steps
        try:
            said = encode_call(ProviderCall(steps=meant, viewport=GRID, name=name))
        except UnsupportedAction:
            continue
        assert said["name"] == name
        again = decode(said, GRID).steps
        assert again == meant or [chord_of(step) for step in again] == [chord_of(step) for step in meant]


def test_two_safety_checks_are_more_than_a_call_has() -> None:
    checks = (SafetyCheck("1"), SafetyCheck("2"))
    with pytest.raises(UnsupportedAction, match="2 safety checks"):
        encode_call(ProviderCall(steps=(a.Wait(1),), viewport=GRID, safety=checks))


def test_a_check_of_another_provider_never_becomes_one_that_allows() -> None:
    for code in (None, "", "regular", "Allowed", "blocked", "malicious_instructions"):
        call = ProviderCall(steps=(a.Wait(1),), viewport=GRID, safety=(SafetyCheck("sc_1", code, "why"),))
        assert decode(encode_call(call), GRID).safety


# --- what is declared ---


def test_declarations() -> None:
    assert wire.declaration() == {"computer_use": {"environment": "ENVIRONMENT_DESKTOP"}}
    options = {"excluded": ["navigate"], "detect_injection": True, "disabled_policies": ["ACCOUNT_CREATION"]}
    assert wire.declaration("browser", **options) == {  # type: ignore[arg-type]
        "computer_use": {
            "environment": "ENVIRONMENT_BROWSER",
            "excluded_predefined_functions": ["navigate"],
            "enable_prompt_injection_detection": True,
            "disabled_safety_policies": ["ACCOUNT_CREATION"],
        }
    }
    assert wire.declaration("browser", interactions=True, **options) == {  # type: ignore[arg-type]
        "type": "computer_use",
        "environment": "browser",
        "excluded_predefined_functions": ["navigate"],
        "enable_prompt_injection_detection": True,
        "disabled_safety_policies": ["account_creation"],
    }
    for wrong in ("mobile", "", "DESKTOP"):
        with pytest.raises(ActionError, match="desktop or browser"):
            wire.declaration(wrong)
    with pytest.raises(ActionError, match="lists of names"):
        wire.declaration(excluded="navigate")


# --- nothing breaks ---


def test_damaged_calls_are_told_or_understood() -> None:
    understood = 0
    for seed in range(MUTATED_PAYLOADS):
        payload = strategies.damaged(PAYLOADS[seed % len(PAYLOADS)], seed)
        try:
            call = decode(payload, HD)
        except ActionError as error:
            encode(Result(call=wire.unread(payload, HD), error=str(error)))
            continue
        understood += 1
        encode_call(call)
    assert 0.1 * MUTATED_PAYLOADS < understood < 0.9 * MUTATED_PAYLOADS


def test_damaged_answers_are_told_or_understood() -> None:
    result = Result(
        call=decode(in_shape("call", "click", {"x": 1, "y": 1, "safety_decision": SAFETY}), HD),
        picture=strategies.Picture(b"png"),
        error="x",
    )
    step = Result(call=decode(in_shape("step", "wait", {}), HD), picture=result.picture, text="y")
    for seed in range(MUTATED_PAYLOADS):
        whole = (result, step)[seed % 2]
        payload = strategies.damaged(encode(whole), seed)
        try:
            decode_result(payload, whole.call)
        except ActionError:
            continue
