"""LangChain's messages as plain data: there and back, damaged, and where a provider's computer calls are in them."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.messages.tool import tool_call

import deskhand
from deskhand import ActionError, OutOfBounds, UnsupportedAction
from deskhand import actions as a
from deskhand._core.geometry import Size, Viewport
from deskhand.providers import anthropic, langchain, openai
from deskhand.providers.langchain import wire
from deskhand.providers.values import Finish, Picture, ProviderCall, Result
from faults.scale import MUTATED_PAYLOADS
from providers.strategies import EXAMPLES, HALVED, VIEWPORT, damaged, ids, pictures, points, texts
from providers.test_plain import actions

if TYPE_CHECKING:
    from collections.abc import Mapping

LOOK = ProviderCall(steps=(a.TakeScreenshot(),), viewport=VIEWPORT, id="call_1", name="screenshot")
OPENAI_CALL = {"type": "computer_call", "id": "cu_1", "call_id": "call_1", "actions": [], "status": "completed"}
MEMBER = {
    "type": "tool_use",
    "id": "t2",
    "name": "left_click",
    "toolset_name": "computer",
    "input": {"coordinate": [1, 2]},
}
FLAT = {"type": "tool_use", "id": "t1", "name": "computer", "input": {"action": "screenshot"}}
OTHER = {"type": "tool_use", "id": "t3", "name": "weather", "input": {}}


@given(
    actions,
    st.sampled_from([None, "computer"]),
    st.none() | ids,
    st.dictionaries(st.just("extras"), st.dictionaries(texts, texts)),
)
def test_a_call_comes_back_as_it_was(action: a.Action, tool: str | None, id: str | None, extra: dict[str, Any]) -> None:
    call = ProviderCall(steps=(action,), viewport=VIEWPORT, name=tool or action.type, id=id, extra=extra)
    payload = langchain.encode_call(call)
    assert AIMessage("", tool_calls=[payload]).tool_calls[0]["args"] == payload["args"]  # type: ignore[list-item]
    assert langchain.decode(payload, VIEWPORT) == call
    assert tool_call(name=payload["name"], args=payload["args"], id=payload["id"]) == {
        key: value for key, value in payload.items() if key != "extras"
    }


@given(pictures, st.none() | texts, st.none() | points, st.none() | texts, st.none() | ids)
def test_a_result_comes_back_as_it_was(
    picture: Picture, error: str | None, cursor: tuple[int, int] | None, text: str | None, id: str | None
) -> None:
    asked: a.Action = a.TakeScreenshot() if cursor is None else a.CursorPosition()
    call = ProviderCall(steps=(asked,), viewport=VIEWPORT, id=id, name=asked.type)
    if error is not None:
        result = Result(call=call, error=error)
    elif cursor is not None:
        result = Result(call=call, cursor=deskhand.Point(*cursor), text=text)
    else:
        result = Result(call=call, picture=picture, text=text)
    message = ToolMessage(**langchain.encode(result))
    assert message.content_blocks == message.content, "they are LangChain's standard blocks"
    assert langchain.decode_result(message.model_dump(), call) == result


def test_damaged_calls_are_read_or_refused() -> None:
    whole = [
        langchain.encode_call(ProviderCall(steps=(action,), viewport=HALVED, id="call_1", name=name))
        for action in EXAMPLES
        for name in (None, "computer")
    ]
    for seed in range(MUTATED_PAYLOADS):
        with contextlib.suppress(ActionError):
            assert isinstance(langchain.decode(damaged(whole[seed % len(whole)], seed), HALVED), ProviderCall)


def test_damaged_results_are_read_or_refused() -> None:
    where = ProviderCall(steps=(a.CursorPosition(),), viewport=VIEWPORT, id="call_1")
    whole = [
        (where, langchain.encode(Result(call=where, cursor=deskhand.Point(1, 2), text="x"))),
        (LOOK, langchain.encode(Result(call=LOOK, picture=Picture(b"png")))),
        (LOOK, langchain.encode(Result(call=LOOK, error="no"))),
    ]
    for seed in range(MUTATED_PAYLOADS):
        call, payload = whole[seed % len(whole)]
        with contextlib.suppress(ActionError):
            assert isinstance(langchain.decode_result(damaged(payload, seed), call), Result)


def test_damaged_messages_hold_calls_or_none() -> None:
    """What is found in them is then read by OpenAI's and Anthropic's own packages, as the rest of it shows."""
    whole: list[Mapping[str, Any]] = [
        {"content": [OPENAI_CALL], "response_metadata": {"model_provider": "openai"}},
        {"content": "", "additional_kwargs": {"tool_outputs": [OPENAI_CALL]}},
        {"content": [{"type": "non_standard", "value": OPENAI_CALL}]},
        {"content": [FLAT, MEMBER], "tool_calls": [{"name": "computer", "args": FLAT["input"], "id": "t1"}]},
        {
            "content": [{**MEMBER, "type": "tool_call", "extras": {"toolset_name": "computer"}}],
            "invalid_tool_calls": [FLAT],
        },
    ]
    for seed in range(MUTATED_PAYLOADS):
        with contextlib.suppress(ActionError):
            provider, calls = wire.computer_calls(damaged(whole[seed % len(whole)], seed))
            for call in calls:
                with contextlib.suppress(ActionError):
                    (openai if provider == "openai" else anthropic).decode(call, HALVED)


@pytest.mark.parametrize(
    ("name", "arguments", "reason"),
    [
        ("fly", {}, "LangChain does not support.*fly.*use one of"),
        ("computer", {}, "None"),
        ("computer", {"action": "move", "xy": [1, 1], "keys": ["a"]}, "move has no 'keys'"),
        ("move", {"xy": [1]}, "xy"),
        ("move", {"xy": [1, 1], "action": "type"}, "move has no 'action'"),
        ("type", {"text": "x", "secret": True}, "secret"),
        ("move", None, "args"),
        ("move", "{}", "args"),
    ],
)
def test_what_is_wrong_is_said(name: str, arguments: Any, reason: str) -> None:
    with pytest.raises(ActionError, match=reason):
        langchain.decode({"name": name, "args": arguments, "id": "call_1"}, VIEWPORT)


def test_an_answer_is_of_its_call() -> None:
    payload = langchain.encode(Result(call=LOOK, error="no"))
    with pytest.raises(ActionError, match="call_1"):
        langchain.decode_result({**payload, "tool_call_id": "call_2"}, LOOK)


@pytest.mark.parametrize("steps", [(), (a.Wait(), a.Wait()), (Finish(),)])
def test_what_one_tool_cannot_do_is_refused(steps: tuple[Any, ...]) -> None:
    with pytest.raises(UnsupportedAction, match="LangChain"):
        langchain.encode_call(ProviderCall(steps=steps, viewport=VIEWPORT))


sides = st.integers(1, 4000)


@given(st.builds(Size, sides, sides), st.builds(Size, sides, sides), st.floats(0, 1, exclude_max=True))
def test_points_are_those_that_the_model_meant(screen: Size, model: Size, part: float) -> None:
    viewport = Viewport(screen, model)
    seen = [int(model.width * part), int(model.height * part)]
    (action,) = langchain.decode({"name": "move", "args": {"xy": seen}, "id": "c"}, viewport).steps
    assert isinstance(action, a.Move)
    for at, point, whole, shown in zip(action.xy, seen, screen, model, strict=True):
        # The centre of a screen's pixel is off that of the model's by half of the larger of the two.
        assert abs((at + 0.5) / whole - (point + 0.5) / shown) <= 0.5 / min(whole, shown) + 1e-9
    with pytest.raises(OutOfBounds):
        langchain.decode({"name": "move", "args": {"xy": [model.width, 0]}, "id": "c"}, viewport)


# --- where the providers' own calls are ---


@pytest.mark.parametrize(
    "message",
    [
        AIMessage([{"type": "text", "text": "I look"}, OPENAI_CALL, {"type": "reasoning", "summary": []}]),
        AIMessage([{"type": "non_standard", "value": OPENAI_CALL}]),
        AIMessage([{**OPENAI_CALL, "index": 2}]),
        AIMessage("", additional_kwargs={"tool_outputs": [OPENAI_CALL, {"type": "web_search_call"}]}),
        AIMessage([OPENAI_CALL]).model_dump(),
    ],
    ids=["responses/v1", "v1", "streamed", "v0", "fields"],
)
def test_calls_of_openai_are_found(message: Any) -> None:
    assert wire.computer_calls(message) == ("openai", [OPENAI_CALL])


def test_calls_of_anthropic_are_found() -> None:
    asked = [{"name": each["name"], "args": each["input"], "id": each["id"]} for each in (FLAT, MEMBER, OTHER)]
    expected = ("anthropic", [FLAT, MEMBER])
    assert wire.computer_calls(AIMessage([FLAT, MEMBER, OTHER], tool_calls=asked)) == expected
    # Streaming leaves the input of the blocks in pieces, and the tool calls have it whole.
    bare = [{key: value for key, value in each.items() if key != "input"} for each in (FLAT, MEMBER, OTHER)]
    assert wire.computer_calls(AIMessage(bare, tool_calls=asked)) == expected
    standard = [
        {"type": "tool_call", "name": each["name"], "args": each["input"], "id": each["id"]}
        for each in (FLAT, MEMBER, OTHER)
    ]
    standard[1]["extras"] = {"toolset_name": "computer"}
    assert wire.computer_calls(AIMessage(standard, tool_calls=asked)) == expected
    assert wire.computer_calls(AIMessage("", tool_calls=[asked[0], asked[2]])) == ("anthropic", [FLAT])


def test_our_own_tool_is_not_taken_for_anthropics() -> None:
    """`tools(single=True)` has its name; with OpenAI's models the message tells."""
    asked = [{"name": "computer", "args": {"action": "screenshot"}, "id": "call_1"}]
    message = AIMessage("", tool_calls=asked, response_metadata={"model_provider": "openai"})
    assert wire.computer_calls(message) == ("openai", [])
    assert wire.computer_calls(message, "anthropic")[1] != []


def test_arguments_that_are_no_json_are_answered_too() -> None:
    broken = {"name": "computer", "args": '{"action": "scr', "id": "t1", "error": None}
    message = AIMessage("", invalid_tool_calls=[broken])
    provider, (call,) = wire.computer_calls(message)
    with pytest.raises(ActionError, match="input"):
        anthropic.decode(call, VIEWPORT)
    assert (provider, call["id"]) == ("anthropic", "t1")


@pytest.mark.parametrize(("message", "provider"), [(None, None), ("text", None), (AIMessage(""), "google")])
def test_what_is_no_message_is_refused(message: Any, provider: str | None) -> None:
    with pytest.raises(ActionError):
        wire.computer_calls(message, provider)
