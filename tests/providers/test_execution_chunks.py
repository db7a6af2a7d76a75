"""Chunks as the SDKs' own classes validate them, of OpenAI and of Google, put together."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from google.genai import types as google
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from deskhand import ActionError
from deskhand.execution import Accumulator, Conversation, ExecutionStatus, Executor, StreamChunk


def openai_chunk(delta: dict[str, Any] | None, finish: str | None = None) -> ChatCompletionChunk:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return ChatCompletionChunk.model_validate(
        {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices},
        strict=True,
    )


def openai_stream() -> list[ChatCompletionChunk]:
    def part(index: int, **fields: Any) -> dict[str, Any]:
        return {"tool_calls": [{"index": index, **fields}]}

    return [
        openai_chunk({"role": "assistant", "content": ""}),
        openai_chunk({"content": "Let me "}),
        openai_chunk({"content": "see"}),
        openai_chunk(part(0, id="call_a", type="function", function={"name": "search", "arguments": ""})),
        openai_chunk(part(0, function={"arguments": '{"query"'})),
        openai_chunk(part(0, function={"arguments": ': "test"}'})),
        openai_chunk(part(1, id="call_b", type="function", function={"name": "fetch", "arguments": ""})),
        openai_chunk(part(1, function={"arguments": "{}"})),
        openai_chunk({}, "tool_calls"),
        openai_chunk(None),
    ]


def google_chunk(parts: list[dict[str, Any]], finish: str | None = None) -> google.GenerateContentResponse:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    return google.GenerateContentResponse.model_validate({"candidates": [candidate]})


def google_stream() -> list[google.GenerateContentResponse]:
    return [
        google_chunk([{"text": "I should look", "thought": True}]),
        google_chunk([{"text": "Let me "}]),
        google_chunk([{"text": "see"}, {"functionCall": {"name": "search", "args": {"query": "test"}}}]),
        google_chunk([{"functionCall": {"id": "call_b", "name": "fetch", "args": {}}}], "STOP"),
        google.GenerateContentResponse.model_validate({"usageMetadata": {"totalTokenCount": 7}}),
    ]


def as_json(stream: list[Any]) -> list[dict[str, Any]]:
    """The chunks as the services send them, without an SDK: Google's names are in camel case."""
    return [chunk.model_dump(mode="json", by_alias=True, exclude_none=True) for chunk in stream]


@pytest.mark.parametrize(
    "stream",
    [openai_stream(), google_stream(), as_json(openai_stream()), as_json(google_stream())],
    ids=["OpenAI", "Google", "OpenAI's JSON", "Google's JSON"],
)
def test_a_stream_of_the_sdks_own_objects(stream: list[Any]) -> None:
    response = Accumulator("a")
    told = [*(response.feed(chunk) for chunk in stream), response.end()]
    assert response.content == told[-1].buffered_content == "Let me see"
    assert [(call.name, call.arguments, call.status) for call in response.calls()] == [
        ("search", {"query": "test"}, ExecutionStatus.PENDING),
        ("fetch", {}, ExecutionStatus.PENDING),
    ]
    assert response.calls()[1].call_id == "call_b"
    assert response.calls()[0].call_id
    assert [call.function_name for chunk in told for call in chunk.tool_calls or []] == ["search", "fetch"]
    assert all(chunk.chunk is given for chunk, given in zip(told, stream, strict=False))


def test_gemini_content_is_what_the_sdk_calls_text() -> None:
    stream = google_stream()
    assert [StreamChunk(chunk=chunk).gemini_content for chunk in stream] == [None, "Let me ", "see", None, None]
    assert stream[1].text == "Let me "
    assert all(StreamChunk(chunk=chunk).gemini_content is None for chunk in openai_stream())
    response = Accumulator()
    for chunk in stream:
        response.feed(chunk)
    assert response.reasoning_content == "I should look"


@pytest.mark.parametrize("is_json", [False, True], ids=["SDK", "JSON"])
def test_googles_arguments_in_parts(is_json: bool) -> None:  # noqa: FBT001 # of the table
    def part(call: dict[str, Any]) -> Any:
        chunk = google_chunk([{"functionCall": call}])
        return as_json([chunk])[0] if is_json else chunk

    def piece(path: str, **value: Any) -> Any:
        return part({"partialArgs": [{"jsonPath": path, **value}], "willContinue": True})

    response = Accumulator()
    told = [
        response.feed(chunk)
        for chunk in (
            part({"name": "say", "willContinue": True}),
            piece("$.text", stringValue="Hell", willContinue=True),
            piece("$.text", stringValue="o"),
            piece("$.at[0]", numberValue=1.5),
            piece("$.loud", boolValue=False),
            piece("$.who", nullValue="NULL_VALUE"),
            part({}),
        )
    ]
    assert told[2].streaming_tool_calls is not None
    assert told[2].streaming_tool_calls[0].arguments == '{"text": "Hello"}'
    assert told[-1].tool_calls is not None
    assert response.calls()[0].arguments == {"text": "Hello", "at": [1.5], "loud": False, "who": None}


@pytest.mark.parametrize("finish", ["SAFETY", "MALFORMED_FUNCTION_CALL", "PROHIBITED_CONTENT"])
def test_what_google_stopped_is_not_called(finish: str) -> None:
    response = Accumulator()
    response.feed(google_chunk([{"functionCall": {"name": "search", "args": {}}}], finish))
    assert [call.status for call in response.calls()] == [ExecutionStatus.FAILURE]


def test_a_whole_completion_of_openais() -> None:
    def completion(message: dict[str, Any], finish: str) -> ChatCompletion:
        choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish, "logprobs": None}
        return ChatCompletion.model_validate(
            {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
        )

    call = {"id": "call_a", "type": "function", "function": {"name": "double", "arguments": '{"x": 2}'}}
    answers = [
        completion({"content": None, "tool_calls": [call]}, "tool_calls"),
        completion({"content": "It is 4"}, "stop"),
    ]
    last = answers[-1]
    executor = Executor({"double": lambda x: x * 2})
    result = asyncio.run(Conversation(lambda _: answers.pop(0), executor).respond())
    assert (result.content, result.response) == ("It is 4", last)
    assert result.function_calls[0].result == 4


@pytest.mark.parametrize("is_json", [False, True], ids=["SDK", "JSON"])
def test_googles_answers_in_a_conversation(is_json: bool) -> None:  # noqa: FBT001 # of the table
    turns: list[list[Any]] = [google_stream(), [google_chunk([{"text": "Done"}], "STOP")]]
    turns = [as_json(turn) for turn in turns] if is_json else turns

    async def ask(_: object) -> Any:
        async def chunks() -> Any:
            for chunk in turns.pop(0):
                yield chunk

        return chunks()

    executor = Executor({"search": lambda query: query.upper(), "fetch": lambda: 1})
    result = asyncio.run(Conversation(ask, executor).respond())
    assert [call.result for call in result.function_calls] == ["TEST", 1]
    assert (result.content, result.reasoning_content) == ("Done", "I should look")


@pytest.mark.parametrize(
    "answer",
    [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "double", "input": {"x": 2}}]},
        {"output": [{"type": "function_call", "call_id": "c", "name": "double", "arguments": "{}"}]},
        ["a chunk", "another"],
    ],
    ids=["Anthropic", "Responses", "texts"],
)
def test_an_answer_of_another_format_is_not_taken_for_an_empty_one(answer: Any) -> None:
    with pytest.raises(ActionError, match="chat completions or Google's"):
        asyncio.run(Conversation(lambda _: answer, Executor()).respond())


def test_chunks_of_nothing_but_usage_are_of_the_format() -> None:
    usage = {"usageMetadata": {"totalTokenCount": 7}}
    assert asyncio.run(Conversation(lambda _: [usage], Executor()).respond()).content == ""
