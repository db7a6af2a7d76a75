"""Agent Framework's contents of calls that cannot be carried out, and the answers to them; what each provider is declared."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

import pydantic
import pytest
from anthropic.types.beta import BetaToolBash20250124Param, BetaToolResultBlockParam, BetaToolUnionParam
from google.genai import types as google_types
from openai.types.responses import ComputerToolParam, ComputerUsePreviewToolParam, FunctionShellToolParam
from openai.types.responses.response_input_param import ComputerCallOutput

from deskhand import Desktop
from deskhand._core.geometry import Size, Viewport
from deskhand.backends.memory import MemoryBackend
from deskhand.errors import ActionError, UnsupportedAction
from deskhand.providers import agent_framework as af
from deskhand.providers.agent_framework.wire import UNREADABLE
from faults.scale import MUTATED_PAYLOADS
from providers.bedrock_helpers import Service
from providers.sayable import SECOND, THIRD, TOOLSET
from providers.strategies import damaged

if TYPE_CHECKING:
    from collections.abc import Iterator

FAR = {"action": "mouse_move", "coordinate": [5000, 1]}
SIZE = Size(640, 400)
VIEWPORT = Viewport(SIZE, SIZE)


def _openai(action: dict[str, Any]) -> dict[str, Any]:
    return {"type": "computer_call", "call_id": "c1", "status": "completed", "actions": [action]}


def _agents(**given: str) -> dict[str, Any]:
    parameters = [{"name": name, "type": "string", "value": value} for name, value in given.items()]
    return {"functionInvocationInput": {"actionGroup": "mine", "function": "computer", "parameters": parameters}}


OUTSIDE: dict[str, dict[str, Any]] = {
    "openai": _openai({"type": "move", "x": 5000, "y": 1}),
    "anthropic": {
        "type": "tool_use",
        "id": "c1",
        "name": "computer",
        "input": {"action": "mouse_move", "coordinate": [5000, 1]},
    },
    "google": {"name": "move", "id": "c1", "args": {"x": 5000, "y": 1}},
    "bedrock": {"toolUse": {"toolUseId": "c1", "name": "computer", "input": FAR}},
    "bedrock_agents": _agents(action="mouse_move", coordinate="[5000, 1]"),
}
UNKNOWN: dict[str, dict[str, Any]] = {
    "openai": _openai({"type": "teleport", "x": 1, "y": 1}),
    "anthropic": {"type": "tool_use", "id": "c1", "name": "teleport", "toolset_name": "computer", "input": {}},
    "google": {"function_call": {"name": "open_app", "id": "c1", "args": {"app_name": "mail"}}},
    "bedrock": {"toolUse": {"toolUseId": "c1", "name": "computer", "input": {"action": "teleport"}}},
    "bedrock_agents": _agents(action="teleport"),
}


@pytest.fixture(scope="module")
def service() -> Service:
    return Service("bedrock-agent-runtime")


@pytest.fixture
def desktop() -> Iterator[Desktop]:
    with Desktop(MemoryBackend(size=SIZE)) as desktop:
        yield desktop


def _said(provider: str, payload: Any, service: Service) -> str:
    """All that a payload says, which the SDK's own types accept, and that answers the call."""
    match provider:
        case "openai":
            pydantic.TypeAdapter(ComputerCallOutput).validate_python(payload)
            assert payload["call_id"] == "c1"
        case "anthropic":
            pydantic.TypeAdapter(BetaToolResultBlockParam).validate_python(payload)
            assert payload["tool_use_id"] == "c1"
        case "google":
            inside = payload.get("function_response", payload)
            answered = google_types.FunctionResponse.model_validate(inside)
            assert answered.id == "c1"
            assert answered.name
        case "bedrock":
            assert payload["toolResult"]["toolUseId"] == "c1"
        case _:
            service.check("InvokeAgent", "sessionState.returnControlInvocationResults", [payload])
            assert payload["functionResult"]["actionGroup"]
    return str(payload)


@pytest.mark.parametrize("payloads", [OUTSIDE, UNKNOWN], ids=["outside", "unknown"])
@pytest.mark.parametrize("provider", af.PROVIDERS)
def test_a_call_that_run_refuses_is_answered(
    provider: str, payloads: dict[str, Any], desktop: Desktop, service: Service
) -> None:
    contents = af.calls_from(provider, payloads[provider], VIEWPORT)
    assert [each.raw_representation for each in contents] == [payloads[provider]]
    # What a runtime keeps is JSON.
    kept = json.loads(json.dumps([each.to_dict() for each in contents]))
    result = af.run(desktop, kept, settle=False)
    assert result.error is not None
    assert ("outside" if payloads is OUTSIDE else ("teleport", "open_app")[provider == "google"]) in result.error
    said = _said(provider, af.result_to(provider, result, kept, VIEWPORT), service)
    note = af.note_to(provider, result, kept, VIEWPORT)
    assert result.error in (said if note is None else note["content"][0]["text"])
    assert (
        af.result_from(provider, af.result_to(provider, result, kept, VIEWPORT), kept, VIEWPORT).call_id
        == result.call_id
    )
    with pytest.raises(ActionError):
        af.calls_to(provider, kept, VIEWPORT)


@pytest.mark.parametrize("provider", af.PROVIDERS)
@pytest.mark.parametrize("action", [{"action": "move", "coordinate": [5000, 1]}, {"action": "teleport"}], ids=str)
def test_a_content_that_others_made_is_answered_by_its_id(
    provider: str, action: dict[str, Any], desktop: Desktop, service: Service
) -> None:
    made = {"type": "computer_call", "call_id": "c1", **action}
    result = af.run(desktop, made, settle=False)
    assert result.error is not None
    options = {"name": "move"} if provider == "google" else {}
    assert "c1" in _said(provider, af.result_to(provider, result, made, VIEWPORT, **options), service) or (
        provider == "bedrock_agents"
    )
    with pytest.raises(ActionError, match="of 'c2', not of 'c1'"):
        af.result_to(provider, af.ComputerUseResultContent(call_id="c2"), made, VIEWPORT, **options)


def test_of_a_batch_what_can_be_read_is_delivered_and_the_rest_named(desktop: Desktop) -> None:
    wait, outside, fly = {"type": "wait"}, {"type": "move", "x": 5000, "y": 1}, {"type": "fly"}
    payload = {**_openai(wait), "actions": [wait, outside, {"type": "move", "x": 1, "y": 2}, fly]}
    contents = af.calls_from("openai", payload, VIEWPORT)
    assert [(each.call_id, each.action, UNREADABLE in each.additional_properties) for each in contents] == [
        ("c1", "wait", False),
        ("c1", "move", True),
        ("c1", "move", False),
        ("c1", "fly", True),
    ]
    told = [af.run(desktop, each, settle=False).error or "" for each in contents]
    assert ["outside" in error for error in told] == [False, True, False, False]
    assert "fly" in told[3]
    assert desktop.pointer == (1, 2)
    # All of it at once is refused as a whole, as everywhere.
    assert "outside" in str(af.run(desktop, contents, settle=False).error)


@pytest.mark.parametrize(
    ("provider", "payload"),
    [
        ("openai", {"type": "computer_call", "actions": [{"type": "wait"}]}),
        ("openai", {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}),
        ("anthropic", {"type": "tool_use", "name": "computer", "input": {"action": "wait"}}),
        ("anthropic", {"type": "tool_use", "id": "c1", "name": "search", "input": {}}),
        ("google", {"args": {}}),
        ("bedrock", {"toolUse": {"name": "computer", "input": {}}}),
        ("bedrock_agents", {"functionInvocationInput": {"function": "computer"}}),
        ("bedrock_agents", {"functionInvocationInput": {"actionGroup": "g", "function": "search"}}),
        ("openai", 5),
    ],
    ids=str,
)
def test_what_nothing_could_answer_is_no_content(provider: str, payload: Any) -> None:
    with pytest.raises(ActionError):
        af.calls_from(provider, payload, VIEWPORT)


def test_a_call_that_asks_for_nothing_says_so() -> None:
    confirm = _agents(action="screenshot")
    confirm["functionInvocationInput"]["actionInvocationType"] = "USER_CONFIRMATION"
    (made,) = af.calls_from("bedrock_agents", confirm, VIEWPORT)
    result = af.ComputerUseResultContent(call_id=made.call_id, error="nobody is there")
    answer = af.result_to("bedrock_agents", result, made, VIEWPORT)["functionResult"]
    assert answer["confirmationState"] == "DENY"
    (made,) = af.calls_from("openai", {**_openai({}), "actions": []}, VIEWPORT)
    assert UNREADABLE in made.additional_properties


# --- answers that others made ---


def test_googles_answer_has_the_name_of_what_was_asked() -> None:
    click = af.ComputerUseCallContent(call_id="c1", action="click", coordinate=(5, 6), button="right")
    result = af.ComputerUseResultContent(call_id="c1", text_output="done")
    assert af.result_to("google", result, click, VIEWPORT)["name"] == "right_click"
    assert af.calls_to("google", click, VIEWPORT)["name"] == "right_click"
    zoom = af.ComputerUseCallContent(call_id="c1", action="zoom", additional_properties={"region": [0, 0, 5, 5]})
    with pytest.raises(ActionError, match="give name="):
        af.result_to("google", result, zoom, VIEWPORT)
    assert af.result_to("google", result, zoom, VIEWPORT, name="look")["name"] == "look"


def test_amazons_agents_get_a_picture_or_a_text_and_never_an_empty_one() -> None:
    look = af.ComputerUseCallContent(call_id="c1", action="screenshot")
    shot = af.DataContent(data=b"png", media_type="image/png")
    told = af.result_to("bedrock_agents", af.ComputerUseResultContent(call_id="c1"), look, VIEWPORT)
    assert told["functionResult"]["responseBody"] == {"TEXT": {"body": "There is no picture."}}
    told = af.result_to("bedrock_agents", af.ComputerUseResultContent(call_id="c1", text_output="hi"), look, VIEWPORT)
    assert told["functionResult"]["responseBody"] == {"TEXT": {"body": "hi"}}
    both = af.ComputerUseResultContent(call_id="c1", screenshot=shot, text_output="hi")
    with pytest.raises(UnsupportedAction, match="a picture with a text"):
        af.result_to("bedrock_agents", both, look, VIEWPORT)
    for provider in ("anthropic", "bedrock"):
        assert "There is no picture." in str(
            af.result_to(provider, af.ComputerUseResultContent(call_id="c1"), look, VIEWPORT)
        )


@pytest.mark.parametrize("provider", af.PROVIDERS)
def test_where_the_pointer_is_goes_to_each_provider(provider: str, desktop: Desktop) -> None:
    asked = af.ComputerUseCallContent(call_id="c1", action="cursor_position")
    result = af.run(desktop, asked, settle=False)
    options = {"name": "where"} if provider == "google" else {}
    note = af.note_to(provider, result, asked, VIEWPORT)
    payload = af.result_to(provider, result, asked, VIEWPORT, **options) if note is None else note
    x, y = desktop.pointer
    words = {"google": f"[{(x * 1000 + 500) // 640}, {(y * 1000 + 500) // 400}]", "openai": f"({x}, {y})"}
    assert words.get(provider, f"X={x},Y={y}") in str(payload)


# --- what is declared ---


def test_each_provider_is_declared_what_its_types_know() -> None:
    more = {
        "display_number": 1, "cache_control": {"type": "ephemeral"}, "enable_zoom": False, "configs": {},
        "excluded_predefined_functions": ["drag_and_drop"], "mine": 5,
    }  # fmt: skip
    tool = af.ComputerUseTool(display_width=640, display_height=400, environment="linux", additional_properties=more)
    assert af.tool_to("openai", tool).keys() <= ComputerToolParam.__annotations__.keys()  # type: ignore[union-attr] # one tool
    assert set(af.tool_to("openai", tool, preview=True)) == set(ComputerUsePreviewToolParam.__annotations__)
    made = google_types.Tool.model_validate(af.tool_to("google", tool))
    assert made.computer_use is not None
    assert made.computer_use.excluded_predefined_functions == ["drag_and_drop"]
    adapter = pydantic.TypeAdapter(BetaToolUnionParam, config=pydantic.ConfigDict(extra="forbid"))
    for version, known in (
        (SECOND, {"display_number", "cache_control"}),
        (THIRD, {"display_number", "cache_control", "enable_zoom"}),
        (TOOLSET, {"cache_control", "configs"}),
    ):
        said: Any = af.tool_to("anthropic", tool, version=version)
        adapter.validate_python(said)
        assert said.keys() & more.keys() == known
    fields: Any = af.tool_to("bedrock", tool)
    assert fields["additionalModelRequestFields"]["tools"][0].keys() & more.keys() == {
        "display_number",
        "cache_control",
    }
    groups: Any = af.tool_to("bedrock_agents", tool)
    parameters = groups[0]["parentActionGroupSignatureParams"]
    assert parameters.keys() & more.keys() == {"display_number"}
    assert all(isinstance(value, str) for value in parameters.values())


def test_each_provider_is_declared_of_a_shell_what_its_types_know() -> None:
    more = {"allowed_callers": ["direct"], "strict": True, "behavior": "BLOCKING", "mine": 5}
    tool = af.ShellTool(additional_properties=more)
    assert af.shell_tool_to("openai", tool).keys() <= FunctionShellToolParam.__annotations__.keys()
    assert af.shell_tool_to("anthropic", tool).keys() <= BetaToolBash20250124Param.__annotations__.keys()
    google_types.FunctionDeclaration.model_validate(af.shell_tool_to("google", tool))
    assert "mine" not in str([af.shell_tool_to(provider, tool) for provider in af.PROVIDERS])


# --- damage ---


@pytest.mark.parametrize("provider", af.PROVIDERS)
def test_a_damaged_call_is_read_named_or_refused(provider: str) -> None:
    result = af.ComputerUseResultContent(call_id="c1", error="no")
    for seed in range(MUTATED_PAYLOADS // 5):
        payload = damaged((OUTSIDE, UNKNOWN)[seed % 2][provider], seed)
        with contextlib.suppress(ActionError):
            contents = af.calls_from(provider, payload, VIEWPORT)
            # Whatever could be read of it can be answered.
            assert contents
            told = af.ComputerUseResultContent(call_id=contents[0].call_id, error="no")
            assert af.result_to(provider, told, contents, VIEWPORT)
        kept = damaged(
            json.loads(json.dumps([each.to_dict() for each in af.calls_from(provider, OUTSIDE[provider], VIEWPORT)])),
            seed,
        )
        with contextlib.suppress(ActionError):
            af.result_to(provider, result, kept, VIEWPORT)
