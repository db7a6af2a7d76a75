"""OpenAI's payloads and what they mean: both ways, damaged, and with any coordinates. Their shapes are the SDK's own."""

from __future__ import annotations

import base64
import io
import subprocess
import sys
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai._models import construct_type
from openai.types.responses import ResponseComputerToolCall, ResponseFunctionShellToolCall, computer_action
from openai.types.responses.response_input_param import ComputerCallOutput, ShellCallOutput
from openai.types.responses.response_output_item import LocalShellCall
from PIL import Image
from pydantic import TypeAdapter

from deskhand import actions as a
from deskhand._core.geometry import Size, Viewport
from deskhand._core.redaction import Secret
from deskhand.desktop.operations import SafetyCheck
from deskhand.errors import ActionError, OutOfBounds, UnsupportedAction
from deskhand.machine.interface import CommandResult
from deskhand.providers import openai
from deskhand.providers.openai.loop import plain
from deskhand.providers.openai.wire import PREVIEW
from deskhand.providers.values import Browse, Finish, Picture, ProviderCall, Result, ShellAnswer, ShellCall
from faults.scale import MUTATED_PAYLOADS
from providers.strategies import HALVED, VIEWPORT, checks, damaged, ids, keys, modifiers, pictures, points, texts

CALL: dict[str, Any] = {
    "type": "computer_call",
    "id": "cu_1",
    "call_id": "call_1",
    "status": "completed",
    "pending_safety_checks": [{"id": "sc_1", "code": "malicious_instructions", "message": "Look at this"}],
    "actions": [
        {"type": "click", "button": "left", "x": 10, "y": 20, "keys": ["CTRL"]},
        {"type": "double_click", "x": 10, "y": 20, "keys": None},
        {"type": "drag", "path": [{"x": 1, "y": 2}, {"x": 30, "y": 40}], "keys": ["SHIFT"]},
        {"type": "keypress", "keys": ["CTRL", "S"]},
        {"type": "move", "x": 5, "y": 6, "keys": []},
        {"type": "screenshot"},
        {"type": "scroll", "x": 5, "y": 6, "scroll_x": 0, "scroll_y": 300, "keys": ["ALT"]},
        {"type": "type", "text": "naïve ☕"},
        {"type": "wait"},
    ],
}
STEPS = (
    a.LeftClick((10, 20), modifiers=["CTRL"]),
    a.DoubleClick((10, 20)),
    a.Drag([(1, 2), (30, 40)], modifiers=["SHIFT"]),
    a.KeyPress(["CTRL", "S"]),
    a.Move((5, 6)),
    a.TakeScreenshot(),
    a.Scroll((5, 6), distance_xy=(0, 300), modifiers=["ALT"]),
    a.Type("naïve ☕"),
    a.Wait(),
)
SHELL: dict[str, Any] = {
    "type": "shell_call",
    "id": "sh_1",
    "call_id": "call_2",
    "status": "completed",
    "environment": {"type": "local"},
    "action": {"commands": ["ls", "cat 'a b'"], "timeout_ms": 1500, "max_output_length": 100},
}
LOCAL: dict[str, Any] = {
    "type": "local_shell_call",
    "id": "lsh_1",
    "call_id": "call_3",
    "status": "completed",
    "action": {
        "type": "exec",
        "command": ["ls", "a b"],
        "env": {"A": "1 2"},
        "timeout_ms": 1500,
        "working_directory": "/tmp",
    },
}

clicks = st.sampled_from([a.LeftClick, a.MiddleClick, a.RightClick, a.BackClick, a.ForwardClick, a.DoubleClick, a.Move])
distances = st.tuples(st.integers(-20_000, 20_000), st.integers(-20_000, 20_000))
steps = st.one_of(
    st.builds(lambda action, xy, held: action(xy, modifiers=held), clicks, points, modifiers),
    st.builds(lambda path, held: a.Drag(path, modifiers=held), st.lists(points, min_size=2, max_size=5), modifiers),
    st.builds(
        lambda xy, distance, held: a.Scroll(xy, distance_xy=distance, modifiers=held), points, distances, modifiers
    ),
    st.builds(a.KeyPress, keys),
    st.builds(a.Type, texts),
    st.sampled_from([a.TakeScreenshot(), a.Wait()]),
)
held = st.builds(
    lambda step, names: (a.PressKeys(names), step, a.ReleaseKeys(names)),
    st.builds(lambda action, xy, held: action(xy, modifiers=held), clicks, points, modifiers),
    st.lists(st.sampled_from(["space", "a", "F5", "é"]), min_size=1, max_size=2, unique=True),
)
groups = steps.map(lambda step: (step,)) | held
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=5,
)
unknown = st.dictionaries(st.sampled_from(["id", "created_by", "new", "x_ray", ""]), anything, max_size=3)
calls = st.builds(
    lambda done, **fields: ProviderCall(viewport=VIEWPORT, steps=sum(done, ()), name="computer", **fields),
    st.lists(groups, max_size=4),
    id=ids,
    safety=st.lists(checks, max_size=2).map(tuple),
    extra=unknown,
) | st.builds(
    lambda done, **fields: ProviderCall(viewport=VIEWPORT, steps=done, name=PREVIEW, **fields),
    groups,
    id=ids,
    extra=unknown,
)
outputs = st.builds(
    lambda stdout, stderr, code: CommandResult(
        stdout, stderr, code, "timeout" if code is None else "error" if code else "success"
    ),
    texts,
    texts,
    st.none() | st.integers(0, 255),
)
commands = texts.map(lambda text: text.replace("\0", "") or "ls")
seconds = st.none() | st.integers(1, 10**7).map(lambda ms: ms / 1000)
shell_calls = st.builds(
    lambda lines, **fields: ShellCall(commands=tuple(lines), **fields),
    st.lists(commands, min_size=1, max_size=3),
    id=ids,
    timeout=seconds,
    limit=st.none() | st.just(10_000),
    extra=unknown,
)


# --- both ways ---


def test_every_action_of_the_sdk_is_decoded() -> None:
    call = openai.decode(CALL, VIEWPORT)
    assert call.steps == STEPS
    assert call.id == "call_1"
    assert call.name == "computer"
    assert call.safety == (SafetyCheck("sc_1", "malicious_instructions", "Look at this"),)
    assert call.extra == {"id": "cu_1"}
    kinds = {
        get_args(kind.model_fields["type"].annotation)[0]
        for kind in get_args(get_args(computer_action.ComputerAction)[0])
    }
    assert {step["type"] for step in CALL["actions"]} == kinds


def test_what_is_encoded_is_what_the_sdk_accepts() -> None:
    again = openai.encode_call(openai.decode(CALL, VIEWPORT))
    assert ResponseComputerToolCall.model_validate(again) == ResponseComputerToolCall.model_validate(
        CALL
        | {
            "actions": [
                {key: value for key, value in step.items() if value not in (None, [])} for step in CALL["actions"]
            ]
        }
    )


@settings(max_examples=200)
@given(calls)
def test_a_call_survives_the_wire(call: ProviderCall) -> None:
    payload = openai.encode_call(call)
    assert openai.decode(payload, VIEWPORT) == call
    ResponseComputerToolCall.model_validate(payload | {"id": "cu_1"})


@given(st.builds(Result, call=calls, picture=pictures, acknowledged=st.lists(checks, max_size=2).map(tuple)))
def test_a_result_survives_the_wire(result: Result) -> None:
    payload = openai.encode(result)
    TypeAdapter(ComputerCallOutput).validate_python(payload)
    assert payload["output"]["detail"] == "original"
    assert openai.decode_result(payload, result.call) == result


@given(shell_calls)
def test_a_shell_call_survives_the_wire(call: ShellCall) -> None:
    payload = openai.encode_shell_call(call)
    ResponseFunctionShellToolCall.model_validate({**payload, "id": "sh_1", "created_by": None})
    assert openai.decode_shell(payload) == call


@given(shell_calls, st.lists(outputs, max_size=3))
def test_a_shell_answer_survives_the_wire(call: ShellCall, done: list[CommandResult]) -> None:
    answer = ShellAnswer(call=call, outputs=tuple(done))
    payload = openai.encode_shell(answer)
    TypeAdapter(ShellCallOutput).validate_python(payload)
    assert openai.decode_shell_result(payload, call) == answer


def test_a_local_shell_call_survives_the_wire() -> None:
    call = openai.decode_shell(LOCAL)
    assert call == ShellCall(
        commands=("ls 'a b'",),
        id="call_3",
        timeout=1.5,
        cwd="/tmp",
        env={"A": "1 2"},
        extra={"id": "lsh_1", "type": "local_shell_call"},
    )
    assert openai.encode_shell_call(call) == LOCAL
    LocalShellCall.model_validate(openai.encode_shell_call(call))
    answer = ShellAnswer(call=call, outputs=(CommandResult("é", "", 3, "error"),))
    payload = openai.encode_shell(answer)
    assert payload["id"] == payload["call_id"] == "call_3"
    assert openai.decode_shell_result(payload, call) == answer


def test_unknown_fields_survive_everywhere() -> None:
    payload = CALL | {
        "new": {"a": [1]},
        "actions": [CALL["actions"][3], CALL["actions"][0] | {"pressure": 0.5}],
        "pending_safety_checks": [{"id": "sc_1", "severity": 3}],
    }
    again = openai.encode_call(openai.decode(payload, VIEWPORT))
    assert again == payload
    action = {**LOCAL["action"], "nice": 3}
    assert openai.encode_shell_call(openai.decode_shell(LOCAL | {"action": action})) == LOCAL | {"action": action}
    action = {**SHELL["action"], "nice": 3}
    assert openai.encode_shell_call(openai.decode_shell(SHELL | {"action": action})) == SHELL | {"action": action}


# --- damaged ---


@pytest.mark.parametrize(
    "payload", [CALL, {**CALL, "actions": None, "action": CALL["actions"][0]}], ids=["batch", "preview"]
)
def test_damaged_calls_are_refused_or_understood(payload: dict[str, Any]) -> None:
    understood, longest = 0, 0
    for seed in range(MUTATED_PAYLOADS):
        broken = damaged(payload, seed)
        # As it is, and as the SDK's client makes objects of it, which checks nothing.
        for form in (broken, plain(construct_type(type_=ResponseComputerToolCall, value=broken))):
            try:
                understood += isinstance(openai.decode(form, HALVED), ProviderCall)
            except ActionError as error:
                longest = max(longest, len(str(error)))
    assert longest < 1000
    assert 0 < understood < 2 * MUTATED_PAYLOADS


@pytest.mark.parametrize("payload", [SHELL, LOCAL], ids=["shell_call", "local_shell_call"])
def test_damaged_shell_calls_are_refused_or_understood(payload: dict[str, Any]) -> None:
    understood = 0
    for seed in range(MUTATED_PAYLOADS):
        try:
            call = openai.decode_shell(damaged(payload, seed))
        except ActionError:
            continue
        understood += 1
        assert all(isinstance(command, str) and "\0" not in command for command in call.commands)
    assert 0 < understood < MUTATED_PAYLOADS


def test_damaged_answers_are_refused_or_understood() -> None:
    call = openai.decode(CALL, VIEWPORT)
    answer = openai.encode(Result(call=call, picture=Picture(b"x"), acknowledged=call.safety))
    shell = openai.decode_shell(SHELL)
    told = openai.encode_shell(
        ShellAnswer(call=shell, outputs=(CommandResult("a", "b", 0), CommandResult("", "", None, "timeout")))
    )
    for seed in range(MUTATED_PAYLOADS // 2):
        for read, payload, asked in (
            (openai.decode_result, answer, call),
            (openai.decode_shell_result, told, shell),
        ):
            try:
                read(damaged(payload, seed), asked)  # type: ignore[operator]
            except ActionError:
                continue


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"type": "function_call"}, "computer_call"),
        ({"call_id": None}, "call_id"),
        ({"actions": None}, "an action is an object"),
        ({"actions": {}}, "actions is a list"),
        ({"actions": [{"type": "click", "button": "left", "x": 1280, "y": 0}]}, "outside of 1280x800"),
        ({"actions": [{"type": "click", "button": "left", "x": 1.5, "y": 0}]}, "an integer"),
        ({"actions": [{"type": "click", "button": "middle", "x": 1, "y": 0}]}, "left, wheel, right, back, forward"),
        ({"actions": [{"type": "move", "x": 1, "y": 0, "keys": ["A", "A"]}]}, "twice in the chord"),
        ({"actions": [{"type": "move", "x": 1, "y": 0, "keys": [["A"]]}]}, "a key name is a string"),
        ({"actions": [{"type": "keypress", "keys": []}]}, "no key was given"),
        ({"actions": [{"type": "keypress", "keys": ["HYPERDRIVE"]}]}, "unknown key"),
        ({"actions": [{"type": "drag", "path": [{"x": 1, "y": 1}]}]}, "at least 2 points"),
        ({"actions": [{"type": "scroll", "x": 1, "y": 1, "scroll_x": 0, "scroll_y": 2**40}]}, "pixels, not"),
        ({"actions": [{"type": "type"}]}, "text is a string"),
    ],
)
def test_what_is_wrong_is_said(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ActionError, match=words):
        openai.decode(CALL | change, VIEWPORT)


@pytest.mark.parametrize(
    ("payload", "change", "words"),
    [
        (SHELL, {"type": "computer_call"}, "shell_call"),
        (SHELL, {"status": "incomplete"}, "not complete"),
        (SHELL, {"environment": {"type": "container_reference", "container_id": "c"}}, "container of OpenAI's"),
        (SHELL, {"action": {"commands": []}}, "at least one command"),
        (SHELL, {"action": {"commands": ["a\0b"]}}, "NUL"),
        (SHELL, {"action": {"commands": ["a"], "timeout_ms": -1}}, "timeout_ms"),
        (SHELL, {"action": {"commands": ["a"], "max_output_length": -1}}, "at least 0"),
        (LOCAL, {"action": LOCAL["action"] | {"user": "root"}}, "no other"),
        (LOCAL, {"action": LOCAL["action"] | {"env": {"A=B": ""}}}, "variable"),
        (LOCAL, {"action": LOCAL["action"] | {"type": "spawn"}}, "exec"),
        (LOCAL, {"action": LOCAL["action"] | {"command": []}}, "its name"),
    ],
)
def test_what_is_wrong_with_a_shell_call_is_said(payload: dict[str, Any], change: dict[str, Any], words: str) -> None:
    with pytest.raises(ActionError, match=words):
        openai.decode_shell(payload | change)


@pytest.mark.parametrize(
    "step",
    [
        a.TripleClick((1, 1)),
        a.LeftMouseDown((1, 1)),
        a.MouseUp("right", (1, 1)),
        a.KeyHold(["a"], 1),
        a.PressKeys(["a"]),
        a.ReleaseKeys(["a"]),
        a.KeyPress(["a"], repeat=2),
        a.Type("x", paste=True),
        a.Type(Secret("x")),
        a.Wait(2),
        a.Zoom((0, 0, 5, 5)),
        a.CursorPosition(),
        a.LeftClick(),
        a.Scroll(direction="up"),
        a.Drag([(1, 1)]),
        a.Drag([(1, 1), (2, 2)], button="right"),
        Browse("back"),
        Finish(),
    ],
    ids=str,
)
def test_what_openai_cannot_say_is_refused_by_name(step: Any) -> None:
    with pytest.raises(UnsupportedAction) as caught:
        openai.encode_call(ProviderCall(steps=(step,), viewport=VIEWPORT, id="call_1"))
    assert caught.value.where == "OpenAI's computer tool"
    assert caught.value.action == getattr(step, "type", type(step).__name__)


# --- traps (one for each of those that are OpenAI's) ---


def test_trap_modifiers_are_held_during_the_action() -> None:
    steps = openai.decode(CALL, VIEWPORT).steps
    assert [getattr(step, "modifiers", None) for step in steps[:3]] == [("CTRL",), (), ("SHIFT",)]


def test_trap_any_key_may_be_held() -> None:
    payload = {"type": "move", "x": 3, "y": 4, "keys": ["SPACE", "SHIFT"]}
    call = openai.decode(CALL | {"actions": [payload, {"type": "wait"}]}, VIEWPORT)
    assert call.steps == (
        a.PressKeys(["SPACE"]),
        a.Move((3, 4), modifiers=["SHIFT"]),
        a.ReleaseKeys(["SPACE"]),
        a.Wait(),
    )
    assert openai.encode_call(call)["actions"] == [payload, {"type": "wait"}]
    # What is pressed and released otherwise is still nothing that it can say.
    for steps in (
        call.steps[:2],
        (*call.steps[:2], a.ReleaseKeys(["a"])),
        (a.PressKeys(["a"]), a.Wait(), a.ReleaseKeys(["a"])),
    ):
        with pytest.raises(UnsupportedAction, match="key_down"):
            openai.encode_call(ProviderCall(steps=steps, viewport=VIEWPORT))


def test_trap_the_middle_button_is_the_wheel() -> None:
    payload = {"type": "click", "button": "wheel", "x": 3, "y": 4}
    call = openai.decode(CALL | {"actions": [payload]}, VIEWPORT)
    assert call.steps == (a.MiddleClick((3, 4)),)
    assert openai.encode_call(call)["actions"] == [payload]


def test_trap_scrolling_is_in_pixels_down() -> None:
    payload = openai.encode_call(
        ProviderCall(
            steps=(a.Scroll((1, 1), direction="up", magnitude=3), a.Scroll((1, 1), direction="right")),
            viewport=VIEWPORT,
        )
    )
    assert [(step["scroll_x"], step["scroll_y"]) for step in payload["actions"]] == [(0, -300), (300, 0)]


def test_trap_pixels_are_those_of_the_picture() -> None:
    step = {"type": "scroll", "x": 639, "y": 399, "scroll_x": -50, "scroll_y": 1}
    call = openai.decode(CALL | {"actions": [step]}, HALVED)
    assert call.steps == (a.Scroll((1279, 799), distance_xy=(-100, 2)),)
    assert openai.encode_call(call)["actions"] == [step]
    with pytest.raises(OutOfBounds):
        openai.decode(CALL | {"actions": [step | {"x": 640}]}, HALVED)


def test_trap_a_batch_has_one_answer() -> None:
    call = openai.decode(CALL, VIEWPORT)
    assert len(call.steps) == 9
    assert openai.encode(Result(call=call, picture=Picture(b"x")))["call_id"] == "call_1"


@pytest.mark.parametrize("action", [CALL["actions"][0], {"type": "screenshot"}], ids=["click", "screenshot"])
def test_trap_the_preview_asks_for_one_action(action: dict[str, Any]) -> None:
    call = openai.decode({**CALL, "actions": None, "action": action}, VIEWPORT)
    assert call.name == PREVIEW
    assert openai.encode_call(call)["action"] == action
    with pytest.raises(UnsupportedAction, match="0 actions at once"):
        openai.encode_call(ProviderCall(steps=(), viewport=VIEWPORT, id="x", name=PREVIEW))


@pytest.mark.parametrize("status", ["incomplete", "in_progress", "failed", 3])
def test_trap_a_call_that_is_not_complete_is_not_carried_out(status: object) -> None:
    with pytest.raises(ActionError, match="not complete"):
        openai.decode(CALL | {"status": status}, VIEWPORT)


def test_trap_a_shell_call_waits_for_its_output_in_progress() -> None:
    assert openai.decode_shell(SHELL | {"status": "in_progress"}).commands == ("ls", "cat 'a b'")


def test_trap_unknown_actions_come_as_objects_of_known_ones() -> None:
    payload = CALL | {"actions": [{"type": "triple_click", "x": 1, "y": 2}]}
    item = construct_type(type_=ResponseComputerToolCall, value=payload)
    assert isinstance(item.actions[0], computer_action.Click)  # type: ignore[attr-defined]
    with pytest.raises(UnsupportedAction, match="triple_click"):
        openai.decode(plain(item), VIEWPORT)


def test_trap_errors_have_no_place_in_the_answer() -> None:
    result = Result(call=openai.decode(CALL, VIEWPORT), picture=Picture(b"x"), error="it is broken")
    assert "broken" not in str(openai.encode(result))
    said = openai.note(result)
    assert said is not None
    assert said["role"] == "user"
    assert "it is broken" in said["content"][0]["text"]
    assert openai.note(Result(call=result.call, picture=Picture(b"x"))) is None


def test_trap_nothing_is_acknowledged_on_its_own() -> None:
    call = openai.decode(CALL, VIEWPORT)
    assert "acknowledged_safety_checks" not in openai.encode(Result(call=call, picture=Picture(b"x")))
    payload = openai.encode(Result(call=call, picture=Picture(b"x"), acknowledged=call.safety))
    assert payload["acknowledged_safety_checks"] == CALL["pending_safety_checks"]


def test_an_answer_needs_an_id() -> None:
    with pytest.raises(ActionError, match="the call's id"):
        openai.encode(Result(call=ProviderCall(steps=(), viewport=VIEWPORT), picture=Picture(b"x")))


def test_an_answer_without_a_picture_is_black() -> None:
    result = Result(call=openai.decode(CALL, VIEWPORT))
    payload = openai.encode(result)
    data = base64.b64decode(payload["output"]["image_url"].partition(",")[2])
    assert Image.open(io.BytesIO(data)).convert("RGB").getcolors() == [(1, (0, 0, 0))]
    assert openai.decode_result(payload, result.call) == result


def test_outputs_are_cut_to_the_length_that_was_asked_for_together() -> None:
    call = ShellCall(commands=("a", "b"), id="call_2", limit=5)
    answer = ShellAnswer(call=call, outputs=(CommandResult("abc", "de", 0), CommandResult("f", "g", 0)))
    payload = openai.encode_shell(answer)
    assert [(entry["stdout"], entry["stderr"]) for entry in payload["output"]] == [("abc", "de"), ("", "")]
    assert payload["max_output_length"] == 5


# --- coordinates ---


@given(
    st.tuples(st.integers(1, 8000), st.integers(1, 8000)), st.tuples(st.floats(0.05, 1), st.floats(0.05, 1)), st.data()
)
def test_points_land_within_half_a_pixel_of_the_model(
    screen: tuple[int, int], factors: tuple[float, float], data: st.DataObject
) -> None:
    model = Size(*(max(1, round(side * factor)) for side, factor in zip(screen, factors, strict=True)))
    viewport = Viewport(Size(*screen), model)
    x, y = data.draw(st.tuples(st.integers(0, model.width - 1), st.integers(0, model.height - 1)))
    path = [{"x": x, "y": y}, {"x": 0, "y": 0}]
    click, drag = openai.decode(
        CALL | {"actions": [{"type": "click", "button": "left", "x": x, "y": y}, {"type": "drag", "path": path}]},
        viewport,
    ).steps
    assert isinstance(click, a.LeftClick)
    assert isinstance(drag, a.Drag)
    assert click.xy is not None
    assert click.xy == drag.path[0]
    for at, asked, side, shown in zip(click.xy, (x, y), screen, model, strict=True):
        assert 0 <= at < side
        assert abs((at + 0.5) * shown / side - (asked + 0.5)) <= 0.5
    again = openai.encode_call(ProviderCall(steps=(click,), viewport=viewport))
    assert (again["actions"][0]["x"], again["actions"][0]["y"]) == (x, y)


# --- without the SDKs ---


def test_the_package_needs_no_sdk() -> None:
    code = (
        "import sys\n"
        "for name in ('openai', 'agents', 'pydantic'): sys.modules[name] = None\n"
        "from deskhand.providers import openai\n"
        "from deskhand import MissingExtra\n"
        "try: openai.safety_check(None)\n"
        "except MissingExtra as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "agents is not installed: pip install 'deskhand[openai]'"
