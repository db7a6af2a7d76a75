"""Bedrock's three interfaces without a desktop: both ways, damaged, and what botocore's own models admit of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ParamValidationError
from hypothesis import given
from hypothesis import strategies as st

from deskhand import actions as a
from deskhand._core.geometry import Point, Size, Viewport
from deskhand.desktop.operations import SafetyCheck
from deskhand.errors import ActionError, UnsupportedAction
from deskhand.machine.interface import CommandResult
from deskhand.providers import bedrock
from deskhand.providers.bedrock import agentcore, agents
from deskhand.providers.values import Picture, ProviderCall, Result, ShellAnswer
from faults.scale import MUTATED_PAYLOADS
from providers.bedrock_helpers import Service, control, events, function, tool_use
from providers.sayable import FIRST, LATEST, SAYABLE, SECOND
from providers.strategies import HALVED, VIEWPORT, damaged, ids, keys, pictures, points, texts

if TYPE_CHECKING:
    from collections.abc import Callable

VERSIONS = (FIRST, SECOND, LATEST)


@pytest.fixture(scope="module")
def runtime() -> Service:
    return Service("bedrock-runtime")


@pytest.fixture(scope="module")
def agent() -> Service:
    return Service("bedrock-agent-runtime")


@pytest.fixture(scope="module")
def core() -> Service:
    return Service("bedrock-agentcore")


# --- Converse ---

_unknown = st.dictionaries(st.sampled_from(["reason", "zz"]), st.none() | st.integers() | texts, max_size=2)


@st.composite
def converse_calls(draw: st.DrawFn) -> ProviderCall:
    version = draw(st.sampled_from(VERSIONS))
    inner = draw(_unknown)
    extra = {**({"input": inner} if inner else {}), **draw(st.sampled_from([{}, {"type": "x"}]))}
    return ProviderCall(steps=(draw(SAYABLE[version]),), viewport=VIEWPORT, id=draw(ids), name=version, extra=extra)


@given(converse_calls())
def test_calls_of_converse_come_back(call: ProviderCall) -> None:
    payload = bedrock.encode_call(call)
    assert bedrock.decode(payload, VIEWPORT, version=call.name) == call
    assert bedrock.decode(payload["toolUse"], VIEWPORT, version=call.name) == call


@given(converse_calls(), st.data())
def test_results_of_converse_come_back(runtime: Service, call: ProviderCall, data: st.DataObject) -> None:
    if data.draw(st.booleans()):
        result = Result(call=call, error=data.draw(texts))
    else:
        asked = isinstance(call.steps[-1], a.CursorPosition)
        cursor = Point(*data.draw(points)) if asked else None
        result = Result(
            call=call, cursor=cursor, picture=data.draw(pictures), text=data.draw(st.none() | texts.filter(bool))
        )
    payload = bedrock.encode(result)
    runtime.check("Converse", "messages.content.toolResult", payload["toolResult"])
    assert bedrock.decode_result(payload, call) == result


def test_a_picture_is_bytes_which_botocore_would_not_notice(runtime: Service) -> None:
    call = ProviderCall(steps=(a.TakeScreenshot(),), viewport=VIEWPORT, id="1", name=SECOND)
    payload = bedrock.encode(Result(call=call, picture=Picture(b"\x89PNG")))
    (block,) = payload["toolResult"]["content"]
    assert block == {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}}
    block["image"]["source"]["bytes"] = "iVBORw=="
    runtime.check("Converse", "messages.content.toolResult", payload["toolResult"])
    with pytest.raises(ActionError, match="bytes are bytes"):
        bedrock.decode_result(payload, call)


def test_a_format_botocore_would_let_pass_is_refused(runtime: Service) -> None:
    runtime.check("Converse", "messages.content.toolResult.content.image", {"format": "jpg", "source": {"bytes": b"x"}})
    call = ProviderCall(steps=(a.TakeScreenshot(),), viewport=VIEWPORT, id="1", name=SECOND)
    with pytest.raises(ActionError, match="image/jpg"):
        bedrock.encode(Result(call=call, picture=Picture(b"x", "image/jpg")))


def test_declaration_of_converse(runtime: Service) -> None:
    for version in (None, *VERSIONS):
        declared = bedrock.converse.declaration(Size(1024, 768), version, shell=True)
        for part, payload in declared.items():
            runtime.check("Converse", part, payload)
        tool, shell = declared["additionalModelRequestFields"]["tools"]
        assert tool["type"] == (version or SECOND)
        assert (tool["display_width_px"], tool["display_height_px"]) == (1024, 768)
        assert shell == {"type": "bash_20250124", "name": "bash"}
    assert declared["additionalModelRequestFields"]["anthropic_beta"] == ["computer-use-2025-11-24"]
    with pytest.raises(ActionError, match="Bedrock has no computer_toolset_20260801"):
        bedrock.converse.declaration(Size(1, 1), "computer_toolset_20260801")


def test_a_stream_becomes_a_message() -> None:
    stream = events(
        ("messageStart", {"role": "assistant"}),
        ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "I "}}),
        ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "will."}}),
        ("contentBlockStop", {"contentBlockIndex": 0}),
        ("contentBlockStart", {"contentBlockIndex": 1, "start": {"toolUse": {"toolUseId": "t", "name": "computer"}}}),
        ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"toolUse": {"input": '{"action": "wa'}}}),
        ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"toolUse": {"input": 'it", "duration": 1}'}}}),
        ("contentBlockStop", {"contentBlockIndex": 1}),
        ("messageStop", {"stopReason": "tool_use"}),
    )
    service = Service("bedrock-runtime", stream)
    answer = service.client.converse_stream(modelId="m", messages=[{"role": "user", "content": [{"text": "x"}]}])
    message = bedrock.message_of(answer["stream"])
    assert message == {
        "role": "assistant",
        "content": [{"text": "I will."}, tool_use("t", action="wait", duration=1)],
    }
    assert bedrock.decode(message["content"][1], VIEWPORT).steps == (a.Wait(1),)
    cut = [
        {"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolUse": {"toolUseId": "t", "name": "computer"}}}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"toolUse": {"input": '{"act'}}}},
    ]
    with pytest.raises(ActionError, match="not JSON"):
        bedrock.message_of(cut)


# --- agents ---


@st.composite
def agent_calls(draw: st.DrawFn) -> ProviderCall:
    version = draw(st.sampled_from(VERSIONS))
    extra: dict[str, Any] = {"actionGroup": draw(ids)}
    extra |= draw(st.sampled_from([{}, {"agentId": "AGENT12345", "collaboratorName": "c"}]))
    if unknown := draw(st.dictionaries(st.sampled_from(["reason", "zz"]), texts, max_size=2)):
        extra["parameters"] = [{"name": name, "type": "string", "value": value} for name, value in unknown.items()]
    kind = draw(st.sampled_from([None, "RESULT", "USER_CONFIRMATION_AND_RESULT"]))
    safety: tuple[SafetyCheck, ...] = ()
    if kind is not None:
        extra["actionInvocationType"] = kind
        safety = (SafetyCheck(kind, kind),) if kind != "RESULT" else ()
    return ProviderCall(steps=(draw(SAYABLE[version]),), viewport=VIEWPORT, name=version, safety=safety, extra=extra)


@given(agent_calls())
def test_calls_of_agents_come_back(call: ProviderCall) -> None:
    payload = json.loads(json.dumps(agents.encode_call(call)))
    for parameter in payload["functionInvocationInput"]["parameters"]:
        assert {type(value) for value in parameter.values()} == {str}
    assert agents.decode(payload, VIEWPORT, version=call.name) == call


@given(agent_calls(), st.data())
def test_results_of_agents_come_back(agent: Service, call: ProviderCall, data: st.DataObject) -> None:
    said = call.safety if data.draw(st.booleans()) else ()
    if call.safety and not said:
        result = Result(call=call, error=data.draw(texts), denied=True)
    elif data.draw(st.booleans()):
        result = Result(call=call, error=data.draw(texts), acknowledged=said)
    elif isinstance(call.steps[-1], a.CursorPosition):
        result = Result(call=call, cursor=Point(*data.draw(points)), acknowledged=said)
    else:
        result = Result(call=call, picture=data.draw(pictures), acknowledged=said)
    payload = agents.encode(result)
    answer = payload["functionResult"]
    for operation, state in (("InvokeAgent", "sessionState"), ("InvokeInlineAgent", "inlineSessionState")):
        agent.check(operation, state, agents.reply("inv-1", [payload]))
    assert len(answer.get("responseBody", {"": 0})) == 1
    assert answer.get("responseState") in {None, "REPROMPT"}
    assert agents.decode_result(payload, call) == result


def test_values_of_agents_are_strings(agent: Service) -> None:
    """Declared as numbers they are refused by botocore; called with strings they are numbers and points again."""
    (group,) = agents.declaration(Size(1024, 768))
    agent.check("InvokeInlineAgent", "actionGroups", [group])
    assert group["parentActionGroupSignatureParams"]["display_width_px"] == "1024"
    group["parentActionGroupSignatureParams"]["display_width_px"] = 1024
    with pytest.raises(ParamValidationError):
        agent.check("InvokeInlineAgent", "actionGroups", [group])
    call = agents.decode(function(action="left_click", coordinate="[512, 384]"), VIEWPORT)
    assert call.steps == (a.LeftClick((512, 384)),)
    typed = agents.decode(function(action="type", text="[1, 2]"), VIEWPORT)
    assert typed.steps == (a.Type("[1, 2]"),)
    turned = agents.decode(function(action="scroll", scroll_direction="up", scroll_amount="3"), VIEWPORT)
    assert turned.steps == (a.Scroll(magnitude=3, direction="up"),)


def test_what_wants_to_be_confirmed_is_a_check_and_done_by_nobody_else() -> None:
    asked = function(action="left_click", coordinate="[1, 2]", confirm="USER_CONFIRMATION_AND_RESULT")
    call = agents.decode(asked, VIEWPORT)
    assert [check.id for check in call.safety] == ["USER_CONFIRMATION_AND_RESULT"]
    picture = Picture(b"x")
    unasked = agents.encode(Result(call=call, picture=picture))["functionResult"]
    assert unasked["confirmationState"] == "DENY"
    agreed = agents.encode(Result(call=call, picture=picture, acknowledged=call.safety))["functionResult"]
    assert agreed["confirmationState"] == "CONFIRM"
    alone = agents.decode(function(action="left_click", coordinate="[1, 2]", confirm="USER_CONFIRMATION"), VIEWPORT)
    assert alone.steps == ()
    assert agents.decode(agents.encode_call(alone), VIEWPORT) == alone
    answer = Result(call=alone, acknowledged=alone.safety)
    assert "responseBody" not in agents.encode(answer)["functionResult"]
    assert agents.decode_result(agents.encode(answer), alone) == answer


def test_two_bodies_botocore_would_let_pass(agent: Service) -> None:
    call = agents.decode(function(action="screenshot"), VIEWPORT)
    payload = agents.encode(Result(call=call, picture=Picture(b"x")))
    image = payload["functionResult"]["responseBody"]["IMAGES"]["images"][0]
    payload["functionResult"]["responseBody"]["TEXT"] = {"body": "and words"}
    agent.check("InvokeAgent", "sessionState", agents.reply("1", [payload]))
    with pytest.raises(ActionError, match="of one kind"):
        agents.decode_result(payload, call)
    payload["functionResult"]["responseBody"] = {"IMAGES": {"images": [image, image]}}
    agent.check("InvokeAgent", "sessionState", agents.reply("1", [payload]))
    with pytest.raises(ActionError, match="one picture"):
        agents.decode_result(payload, call)


def test_up_to_five() -> None:
    result = {"functionResult": {"actionGroup": "desk"}}
    assert len(agents.reply("1", [result] * 5)["returnControlInvocationResults"]) == 5
    for count in (0, 6):
        with pytest.raises(ActionError, match=r"1\.\.\.5"):
            agents.reply("1", [result] * count)
        with pytest.raises(ActionError, match=r"1\.\.\.5"):
            agents.inputs_of(control(*[function(action="screenshot")] * count))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"action": "left_click", "coordinate": "(1, 2)"}, r"'\[512, 384\]'"),
        ({"action": "left_click", "coordinate": "[[1], 2]"}, "an integer|a finite number"),
        ({"action": "left_click", "coordinate": "[1, 800]"}, "outside of 1280x800"),
        ({"action": "wait", "duration": "NaN"}, "finite number"),
        ({"action": "wait", "duration": "true"}, "finite number"),
        ({"action": "wait", "duration": "9" * 5000}, "a list or a number"),
        ({"action": "zoom", "region": "[" * 100_000}, "a list or a number"),
        ({"action": "zoom", "region": "[0, 0, 1, 1]"}, "has no action 'zoom'"),
        ({}, "an action is a string"),
        ({"action": "wait", "duration": "1", "confirm": "MAYBE"}, "RESULT or one of"),
    ],
)
def test_refused_of_agents(given: dict[str, str], message: str) -> None:
    with pytest.raises(ActionError, match=message):
        agents.decode(function(**given), VIEWPORT)


def test_a_parameter_twice_is_refused() -> None:
    payload = function(action="key", text="a")
    payload["functionInvocationInput"]["parameters"].append({"name": "text", "value": "b"})
    with pytest.raises(ActionError, match="given twice"):
        agents.decode(payload, VIEWPORT)


def test_commands_of_agents() -> None:
    call = agents.decode_shell(function("bash", command="ls"))
    assert call.commands == ("ls",)
    assert agents.decode_shell(function("bash", restart="true")).restart
    answer = agents.encode_shell(ShellAnswer(call=call, outputs=(CommandResult("a\n", "", 0),)))
    assert answer == {
        "functionResult": {"actionGroup": "desk", "function": "bash", "responseBody": {"TEXT": {"body": "a"}}}
    }
    with pytest.raises(ActionError, match="asks no one"):
        agents.decode_shell(function("bash", command="ls", confirm="USER_CONFIRMATION_AND_RESULT"))


# --- AgentCore ---

_buttons = st.sampled_from(["left", "right", "middle"])
_browser_steps: st.SearchStrategy[tuple[a.Action, ...]] = st.one_of(
    st.builds(agentcore._clicks, st.sampled_from(["LEFT", "RIGHT", "MIDDLE"]), st.integers(1, 10), points),
    st.builds(a.Move, points).map(lambda action: (action,)),
    st.builds(a.Drag, st.lists(points, min_size=2, max_size=2), button=_buttons).map(lambda action: (action,)),
    st.builds(a.Scroll, points, distance_xy=st.tuples(st.integers(-1000, 1000), st.integers(-1000, 1000))).map(
        lambda action: (action,)
    ),
    st.builds(a.Type, texts).map(lambda action: (action,)),
    keys.map(lambda names: (a.KeyPress(names),)),
    st.builds(a.KeyPress, keys.map(lambda names: names[:1]), repeat=st.integers(1, 100)).map(lambda action: (action,)),
    st.just((a.TakeScreenshot(),)),
)


@st.composite
def browser_calls(draw: st.DrawFn) -> ProviderCall:
    steps = draw(_browser_steps)
    number = draw(st.none() | st.text("abc123", min_size=1, max_size=40))
    extra: dict[str, Any] = {} if number is None else {"browserIdentifier": "aws.browser.v1"}
    if unknown := draw(st.dictionaries(st.sampled_from(["reason", "zz"]), texts, max_size=1)):
        extra["arguments"] = unknown
    call = ProviderCall(steps=steps, viewport=VIEWPORT, id=number, extra=extra)
    kind = agentcore.kind_of(agentcore.encode_call(call))
    return ProviderCall(steps=steps, viewport=VIEWPORT, id=number, name=kind, extra=extra)


@given(browser_calls())
def test_calls_of_agentcore_come_back(core: Service, call: ProviderCall) -> None:
    payload = agentcore.encode_call(call)
    assert agentcore.decode(json.loads(json.dumps(payload)), VIEWPORT) == call
    if call.id is not None and "arguments" not in call.extra:
        for part, value in payload.items():
            core.check("InvokeBrowser", part, value)


@given(browser_calls(), st.data())
def test_results_of_agentcore_come_back(core: Service, call: ProviderCall, data: st.DataObject) -> None:
    if data.draw(st.booleans()):
        result = Result(call=call, error=data.draw(texts))
    else:
        result = Result(call=call, picture=data.draw(pictures) if call.name == "screenshot" else None)
    answer = agentcore.encode(result)
    core.check_answer("invoke_browser", {"sessionId": "s", **answer})
    assert agentcore.decode_result(answer, call) == result


def test_down_is_negative() -> None:
    """13b.4: and a scroll's pixels are those of the model's picture."""
    call = agentcore.decode({"mouseScroll": {"x": 5, "y": 6, "deltaY": -300, "deltaX": 50}}, VIEWPORT)
    assert call.steps == (a.Scroll((5, 6), distance_xy=(50, 300)),)
    scaled = agentcore.decode({"mouseScroll": {"x": 5, "y": 6, "deltaY": -300}}, HALVED)
    assert scaled.steps == (a.Scroll((11, 13), distance_xy=(0, 600)),)
    assert agentcore.encode_call(scaled) == {"mouseScroll": {"x": 5, "y": 6, "deltaX": 0, "deltaY": -300}}


@pytest.mark.parametrize(
    ("scroll", "deltas"),
    [
        (a.Scroll((1, 1)), (0, -300)),
        (a.Scroll((1, 1), direction="up", magnitude=2), (0, 200)),
        (a.Scroll((1, 1), direction="left", magnitude=1), (-100, 0)),
    ],
)
def test_notches_become_pixels(scroll: a.Scroll, deltas: tuple[int, int]) -> None:
    payload = agentcore.encode_call(ProviderCall(steps=(scroll,), viewport=VIEWPORT))
    assert (payload["mouseScroll"]["deltaX"], payload["mouseScroll"]["deltaY"]) == deltas


def test_clicks_are_counted_and_the_middle_is_middle() -> None:
    five = agentcore.decode({"mouseClick": {"x": 1, "y": 2, "button": "MIDDLE", "clickCount": 5}}, VIEWPORT)
    assert five.steps == (
        a.MouseDown("middle", (1, 2)),
        a.MouseUp("middle"),
        *(a.MouseDown("middle"), a.MouseUp("middle")) * 4,
    )
    assert agentcore.decode({"mouseClick": {"x": 1, "y": 2, "clickCount": 3}}, VIEWPORT).steps == (
        a.TripleClick((1, 2)),
    )
    assert agentcore.decode({"mouseClick": {"x": 1, "y": 2, "button": "RIGHT"}}, VIEWPORT).steps == (
        a.RightClick((1, 2)),
    )


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ({}, "exactly one of"),
        ({"mouseMove": {"x": 1, "y": 1}, "screenshot": {}}, "exactly one of"),
        ({"mouseHover": {"x": 1, "y": 1}}, "exactly one of"),
        ({"mouseMove": {"x": 1}}, "y missing"),
        ({"mouseMove": {"x": 1280, "y": 1}}, "outside of 1280x800"),
        ({"mouseClick": {"x": 1, "y": 1, "clickCount": 11}}, "clickCount is 1...10"),
        ({"mouseClick": {"x": 1, "y": 1, "button": "left"}}, "LEFT, RIGHT, MIDDLE"),
        ({"mouseScroll": {"x": 1, "y": 1, "deltaY": 1001}}, "-1000...1000"),
        ({"keyPress": {"key": "a", "presses": 101}}, "1...100"),
        ({"keyShortcut": {"keys": ["a"] * 6}}, "1...5"),
        ({"keyType": {"text": "x" * 10_001}}, "0...10000"),
        ({"screenshot": {"format": "JPEG"}}, "PNG"),
    ],
)
def test_refused_of_agentcore(action: dict[str, Any], message: str) -> None:
    with pytest.raises(ActionError, match=message):
        agentcore.decode(action, VIEWPORT)


@pytest.mark.parametrize(
    "steps",
    [
        (),
        (a.LeftClick(),),
        (a.LeftClick((1, 1), modifiers=["ctrl"]),),
        (a.Wait(1),),
        (a.Scroll((1, 1), magnitude=11, direction="up"),),
        (a.KeyPress(["a", "b"], repeat=2),),
        (a.Type("x" * 10_001),),
        (a.BackClick((1, 1)),),
        (a.Move((1, 1)), a.Move((1, 1))),
    ],
)
def test_what_agentcore_cannot_say(steps: tuple[a.Action, ...]) -> None:
    with pytest.raises(UnsupportedAction, match="InvokeBrowser"):
        agentcore.encode_call(ProviderCall(steps=steps, viewport=VIEWPORT))


# --- what cannot be read ---

_SAMPLES: list[tuple[dict[str, Any], Callable[[Any], Any]]] = [
    (tool_use("t", action="left_click", coordinate=[1, 2], text="ctrl"), lambda p: bedrock.decode(p, VIEWPORT)),
    (
        tool_use("t", action="scroll", coordinate=[1, 2], scroll_direction="up", scroll_amount=1),
        lambda p: bedrock.decode(p, VIEWPORT),
    ),
    (tool_use("t", "bash", command="ls"), bedrock.decode_shell),
    (
        function(action="left_click_drag", start_coordinate="[1, 2]", coordinate="[3, 4]"),
        lambda p: agents.decode(p, VIEWPORT),
    ),
    (
        function(action="wait", duration="1", confirm="USER_CONFIRMATION_AND_RESULT"),
        lambda p: agents.decode(p, VIEWPORT),
    ),
    (function("bash", command="ls", restart="false"), agents.decode_shell),
    (control(function(action="screenshot")), agents.inputs_of),
    ({"mouseClick": {"x": 1, "y": 2, "button": "LEFT", "clickCount": 2}}, lambda p: agentcore.decode(p, VIEWPORT)),
    (
        {
            "browserIdentifier": "b",
            "sessionId": "s",
            "action": {"mouseScroll": {"x": 1, "y": 2, "deltaX": 3, "deltaY": 4}},
        },
        lambda p: agentcore.decode(p, VIEWPORT),
    ),
    ({"keyShortcut": {"keys": ["ctrl", "s"]}}, lambda p: agentcore.decode(p, VIEWPORT)),
]


def test_damaged_payloads_are_calls_or_errors() -> None:
    read = refused = 0
    for seed in range(MUTATED_PAYLOADS):
        payload, reader = _SAMPLES[seed % len(_SAMPLES)]
        hurt = damaged(payload, seed)
        agentcore.kind_of(hurt)
        try:
            reader(hurt)
            read += 1
        except ActionError as error:
            assert len(str(error)) < 600  # noqa: PT017 # which of the two it is, is not the point
            refused += 1
    assert min(read, refused) > 100


def test_damaged_results_are_results_or_errors() -> None:
    spoken = bedrock.decode(tool_use("t", action="screenshot"), VIEWPORT)
    agreed = agents.decode(function(action="screenshot"), VIEWPORT)
    seen = agentcore.decode({"screenshot": {}}, VIEWPORT)
    pairs: list[tuple[dict[str, Any], Callable[[Any], Any]]] = [
        (
            bedrock.encode(Result(call=spoken, picture=Picture(b"x"), text="y")),
            lambda p: bedrock.decode_result(p, spoken),
        ),
        (agents.encode(Result(call=agreed, picture=Picture(b"x"))), lambda p: agents.decode_result(p, agreed)),
        (agentcore.encode(Result(call=seen, picture=Picture(b"x"))), lambda p: agentcore.decode_result(p, seen)),
    ]
    read = 0
    for seed in range(MUTATED_PAYLOADS):
        payload, reader = pairs[seed % 3]
        try:
            reader(damaged(payload, seed))
            read += 1
        except ActionError:
            pass
    assert 0 < read < MUTATED_PAYLOADS


# --- coordinates ---


@given(
    st.tuples(st.integers(200, 4000), st.integers(200, 3000)),
    st.floats(0.2, 1),
    st.floats(0, 1, exclude_max=True),
    st.floats(0, 1, exclude_max=True),
)
def test_points_land_within_half_a_model_pixel(
    size: tuple[int, int], factor: float, across: float, down: float
) -> None:
    screen = Size(*size)
    viewport = Viewport(screen, Size(round(screen.width * factor), round(screen.height * factor)))
    x, y = int(across * viewport.model.width), int(down * viewport.model.height)
    for call in (
        bedrock.decode(tool_use("t", action="mouse_move", coordinate=[x, y]), viewport),
        agents.decode(function(action="mouse_move", coordinate=f"[{x}, {y}]"), viewport),
        agentcore.decode({"mouseMove": {"x": x, "y": y}}, viewport),
    ):
        (step,) = call.steps
        assert isinstance(step, a.Move)
        for at, where, here, there in zip(step.xy, (x, y), viewport.screen, viewport.model, strict=True):
            assert abs((at + 0.5) * there / here - (where + 0.5)) <= 0.5
            assert 0 <= at < here
