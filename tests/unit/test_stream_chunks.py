"""Responses that come in chunks: both formats, thinking tags, and calls in pieces. The SDKs' own objects: tests/providers."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from deskhand.execution import Accumulator, ExecutionStatus, StreamChunk, ToolCallStreamChunk
from deskhand.execution.chunks import ThinkingTags, inside_thinking, split_thinking


def said(text: str | None = None, finish: str | None = None, **delta: Any) -> dict[str, Any]:
    """A chunk in OpenAI's format."""
    return {"choices": [{"index": 0, "delta": {"content": text, **delta}, "finish_reason": finish}]}


def called(
    index: int | None = 0, call_id: str | None = None, name: str | None = None, arguments: str | None = None
) -> dict[str, Any]:
    """A part of a call in OpenAI's format."""
    return said(
        tool_calls=[{"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}],
    )


def google(*parts: dict[str, Any], finish: Any = None) -> dict[str, Any]:
    """A chunk in Google's format."""
    return {"candidates": [{"content": {"parts": list(parts)}, "finish_reason": finish}]}


def as_object(value: Any) -> Any:
    """The same with attributes, as an SDK's objects have them; what an object has not, it has as None."""
    if isinstance(value, dict):
        return SimpleNamespace(**{key: item if key == "args" else as_object(item) for key, item in value.items()})
    return [as_object(item) for item in value] if isinstance(value, list) else value


def ids() -> Any:
    numbers = iter(range(1000))
    return lambda: f"made_{next(numbers)}"


def heard(*chunks: Any, end: bool = True) -> tuple[Accumulator, list[StreamChunk]]:
    response = Accumulator("a", new_id=ids())
    told = [response.feed(chunk) for chunk in chunks]
    return response, [*told, response.end()] if end else told


# --- text and thinking ---


@pytest.mark.parametrize("form", [lambda chunk: chunk, as_object], ids=["dictionaries", "objects"])
def test_text_comes_together_in_both_formats(form: Any) -> None:
    for chunks in (
        [said("He"), said("llo"), said(None, "stop"), {"choices": [], "usage": {"total_tokens": 3}}],
        [google({"text": "He"}), google({"text": "l"}, {"text": "lo"}, finish="STOP")],
    ):
        response, told = heard(*map(form, chunks))
        assert response.content == "Hello"
        assert told[-1].buffered_content == "Hello"
        assert "".join(chunk.content or "" for chunk in told) == "Hello"
        assert told[0].content == told[0].buffered_content == "He"
        assert told[0].agent_id == "a"
        assert told[0].function_calls_detected is None, "nobody knows yet"
        assert told[-1].function_calls_detected is False
        assert response.finish in ("stop", "STOP")
        assert response.calls() == []


def test_a_chunk_is_carried_as_it_came() -> None:
    chunk = said("x")
    assert Accumulator().feed(chunk).chunk is chunk


def test_gemini_content_is_the_text_of_googles_format_only() -> None:
    assert (
        StreamChunk(chunk=google({"text": "a"}, {"text": "hm", "thought": True}, {"text": "b"})).gemini_content == "ab"
    )
    assert StreamChunk(chunk=as_object(google({"text": "a"}))).gemini_content == "a"
    assert StreamChunk(chunk=google({"function_call": {"name": "f", "args": {}}})).gemini_content is None
    assert StreamChunk(chunk={"candidates": []}).gemini_content is None
    assert StreamChunk(chunk=said("a")).gemini_content is None
    assert StreamChunk().gemini_content is None


@pytest.mark.parametrize(
    ("text", "thinking"),
    [
        ("", False),
        ("Hello", False),
        ("<think>", True),
        ("<think>well", True),
        ("<think>well</think>", False),
        ("<think>well</think> so <reasoning>hm", True),
        ("<THINKING>well", True),
        ("<thinking>a</think>", True),
        ("<thought>a</thought>", False),
        ("<reason>a <think> b</reason>", False),
        ("a</think>", False),
        ("<thin", False),
        ("<thinker>", False),
        ("<think", False),
    ],
)
def test_is_thinking_between_tags(text: str, *, thinking: bool) -> None:
    assert StreamChunk(buffered_content=text).is_thinking is thinking
    assert inside_thinking(text) is thinking


def test_thinking_is_told_from_what_is_said() -> None:
    response, told = heard(said("<thin"), said("k>I am "), said("sure</think>It is"), said(" 4", "stop"))
    assert response.content == "It is 4"
    assert response.reasoning_content == "I am sure"
    assert [chunk.is_thinking for chunk in told] == [False, True, False, False, False]
    assert [chunk.reasoning_content for chunk in told] == [None, "I am ", "sure", None, None]
    assert told[-1].buffered_reasoning_content == "I am sure"
    assert told[-1].buffered_content == "<think>I am sure</think>It is 4", "as it came"


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_thinking_that_the_format_tells_apart(field: str) -> None:
    response, told = heard(said(None, **{field: "hm, "}), said(None, **{field: "yes"}), said("4", "stop"))
    assert (response.content, response.reasoning_content) == ("4", "hm, yes")
    assert [chunk.reasoning_content for chunk in told[:2]] == ["hm, ", "yes"]
    assert not any(chunk.is_thinking for chunk in told), "there are no tags"
    response, _ = heard(google({"text": "hm", "thought": True}, {"text": "4"}, finish="STOP"))
    assert (response.content, response.reasoning_content) == ("4", "hm")


def test_what_could_have_become_a_tag_is_not_lost() -> None:
    response, told = heard(said("a <th"), said("em>"), said("<think>b </thin"))
    assert response.content == "a <them>"
    assert response.reasoning_content == "b </thin"
    assert told[-1].reasoning_content == "</thin", "kept back until the end"


TEXTS = st.lists(
    st.sampled_from(
        ["<think>", "</think>", "<reasoning>", "</reasoning>", "<Think>", "<", "</", "think", ">", "é", "İ", "a b"]
    ),
    max_size=12,
).map("".join)


@given(TEXTS, st.data())
@example("<think>İ</THINK>x", None)
def test_where_a_text_is_cut_makes_no_difference(text: str, data: Any) -> None:
    cuts = range(len(text) + 1) if data is None else sorted(data.draw(st.sets(st.integers(0, len(text)))))
    parts = [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    tags = ThinkingTags()
    pieces = [*(tags.feed(part) for part in parts), tags.end()]
    assert ("".join(piece[0] for piece in pieces), "".join(piece[1] for piece in pieces)) == split_thinking(text)
    response, told = heard(*(said(part) for part in parts))
    assert (response.content, response.reasoning_content) == split_thinking(text)
    assert "".join(chunk.reasoning_content or "" for chunk in told) == response.reasoning_content
    assert told[-1].buffered_content == text


# --- calls ---


def test_a_call_comes_together_from_its_parts() -> None:
    response, told = heard(
        called(0, "call_1", "search", ""),
        called(0, None, None, '{"query": '),
        called(0, None, None, '"test"}'),
        said(None, "tool_calls"),
    )
    growing = [chunk.streaming_tool_calls for chunk in told]
    assert growing[0] == [ToolCallStreamChunk("call_1", "function", "search", "", 0, is_complete=False)]
    assert growing[1] == [ToolCallStreamChunk("call_1", "function", "search", '{"query": ', 0, is_complete=False)]
    assert growing[3] is None
    complete = ToolCallStreamChunk("call_1", "function", "search", '{"query": "test"}', 0, is_complete=True)
    assert [chunk.tool_calls for chunk in told] == [None, None, None, [complete], None]
    assert [chunk.function_calls_detected for chunk in told] == [True] * 5
    (call,) = response.calls()
    assert (call.id, call.call_id, call.name, call.arguments, call.agent_id) == (
        "call_1",
        "call_1",
        "search",
        {"query": "test"},
        "a",
    )
    assert call.status is ExecutionStatus.PENDING


def test_several_calls_may_come_interleaved() -> None:
    response, told = heard(
        called(0, "c0", "f", '{"a"'),
        called(1, "c1", "g", "{"),
        called(0, None, None, ": 1}"),
        called(1, None, None, "}"),
        said(None, "tool_calls"),
    )
    assert [(call.id, call.name, call.arguments) for call in response.calls()] == [
        ("c0", "f", {"a": 1}),
        ("c1", "g", {}),
    ]
    assert [call.id for call in told[4].tool_calls or []] == ["c0", "c1"]


def test_a_stream_that_just_ends_has_its_calls() -> None:
    response, told = heard(called(0, "c0", "f", '{"a": 1}'))
    assert [chunk.tool_calls for chunk in told] == [
        None,
        [ToolCallStreamChunk("c0", "function", "f", '{"a": 1}', 0, is_complete=True)],
    ]
    assert response.calls()[0].arguments == {"a": 1}


def test_no_arguments_are_none() -> None:
    response, _ = heard(called(0, "c0", "f", None), said(None, "tool_calls"))
    assert response.calls()[0].arguments == {}


@pytest.mark.parametrize(
    ("arguments", "finish", "why"),
    [
        ('{"a": ', "length", r"not complete JSON: .* \(the response ended with length\)"),
        ('{"a": 1', "tool_calls", "not complete JSON"),
        ('{"a": 1', None, "not complete JSON"),
        ("[1]", "tool_calls", "not a JSON object"),
        ("[" * 100_000, "tool_calls", "not complete JSON"),
        ('{"a": 1}', "content_filter", "stopped"),
    ],
)
def test_a_call_that_is_not_whole_has_failed(arguments: str, finish: str | None, why: str) -> None:
    chunks = [called(0, "c0", "f", arguments), *([said(None, finish)] if finish else [])]
    response, told = heard(*chunks)
    (call,) = response.calls()
    assert (call.id, call.status, call.arguments) == ("c0", ExecutionStatus.FAILED, {})
    assert call.error is not None
    assert call.error.startswith("f was not called: ")
    assert re.search(why, call.error)
    assert all(chunk.tool_calls is None for chunk in told)
    assert told[-1].streaming_tool_calls is not None
    assert told[-1].streaming_tool_calls[0].is_complete is False


def test_what_is_whole_in_a_response_that_was_too_long_is_meant() -> None:
    response, _ = heard(called(0, "c0", "f", "{}"), called(1, "c1", "g", '{"a'), said(None, "length"))
    assert [call.status for call in response.calls()] == [ExecutionStatus.PENDING, ExecutionStatus.FAILURE]


def test_servers_that_count_wrongly() -> None:
    # Every call has the index 0, and an id of its own.
    response, _ = heard(called(0, "c0", "f", "{}"), called(0, "c1", "g", "{}"), said(None, "stop"))
    assert [(call.id, call.name) for call in response.calls()] == [("c0", "f"), ("c1", "g")]
    # Calls without an index, whole.
    response, _ = heard(called(None, "c0", "f", "{}"), called(None, "c1", "g", "{}"), said(None, "stop"))
    assert [(call.id, call.name) for call in response.calls()] == [("c0", "f"), ("c1", "g")]
    # The id and the name come again with each part.
    response, _ = heard(called(0, "c0", "f", '{"a"'), called(0, "c0", "f", ": 1}"), said(None, "stop"))
    assert [(call.id, call.name, call.arguments) for call in response.calls()] == [("c0", "f", {"a": 1})]
    # No id at all.
    response, _ = heard(called(0, None, "f", "{}"), said(None, "stop"))
    assert response.calls()[0].id == "made_0"
    # Arguments as an object.
    response, _ = heard(called(0, "c0", "f", {"a": [1]}), said(None, "stop"))  # type: ignore[arg-type]
    assert response.calls()[0].arguments == {"a": [1]}


def test_the_older_way_to_call_a_function() -> None:
    response, _ = heard(
        said(function_call={"name": "f", "arguments": '{"a"'}),
        said(function_call={"name": None, "arguments": ": 1}"}),
        said(None, "function_call"),
    )
    assert [(call.name, call.arguments) for call in response.calls()] == [("f", {"a": 1})]


def test_a_whole_answer_is_one_chunk() -> None:
    message = {
        "content": "Let me see",
        "tool_calls": [{"id": "c0", "function": {"name": "f", "arguments": '{"a": 1}'}}],
    }
    response, told = heard({"choices": [{"message": message, "finish_reason": "tool_calls"}]})
    assert response.content == "Let me see"
    assert [(call.id, call.arguments) for call in response.calls()] == [("c0", {"a": 1})]
    assert told[0].tool_calls is not None


def test_a_refusal_is_said() -> None:
    response, _ = heard(said(None, refusal="I will not"), said(None, "stop"))
    assert response.content == "I will not"


@pytest.mark.parametrize("form", [lambda chunk: chunk, as_object], ids=["dictionaries", "objects"])
def test_googles_calls_are_whole_and_get_an_id(form: Any) -> None:
    chunks = [
        google({"text": "Let me see"}, {"function_call": {"name": "f", "args": {"a": [1, {"b": 2}]}}}),
        google({"function_call": {"name": "g", "args": None, "id": "theirs"}}, finish="STOP"),
    ]
    response, told = heard(*map(form, chunks))
    assert [(call.id, call.name, call.arguments) for call in response.calls()] == [
        ("made_0", "f", {"a": [1, {"b": 2}]}),
        ("theirs", "g", {}),
    ]
    assert [call.id for call in told[0].tool_calls or []] == ["made_0"], "at once"
    assert [call.index for call in [*(told[0].tool_calls or []), *(told[1].tool_calls or [])]] == [0, 1]


def test_two_calls_of_one_function_in_googles_format_are_two() -> None:
    response, _ = heard(*[google({"function_call": {"name": "f", "args": {"a": number}}}) for number in (1, 2)])
    assert [call.arguments for call in response.calls()] == [{"a": 1}, {"a": 2}]


def test_googles_arguments_may_come_in_parts() -> None:
    def part(path: str, *, more: bool = False, **value: Any) -> dict[str, Any]:
        partial = {"json_path": path, "will_continue": more, **value}
        return {"function_call": {"partial_args": [partial], "will_continue": True}}

    response, told = heard(
        google({"function_call": {"name": "f", "will_continue": True}}),
        google(part("$.text", string_value="na", more=True)),
        google(part("$.text", string_value="ïve", more=True), part("$.text", string_value="!")),
        google(
            part("$.at[1].x", number_value=3.0), part("$.at[0]", bool_value=False), part("$['a b']", string_value="q")
        ),
        google(
            part("$.none", null_value="NULL_VALUE"),
            part("$.at.y", number_value=1.0),
            part("nonsense[", number_value=1.0),
        ),
        google(part("$.at[99999999999]", number_value=1.0), part("$", number_value=1.0)),
        google({"function_call": {}}),
        google({"text": "so"}, finish="STOP"),
    )
    (call,) = response.calls()
    assert call.arguments == {"text": "naïve!", "at": [False, {"x": 3.0}], "a b": "q", "none": None}
    assert [bool(chunk.tool_calls) for chunk in told] == [False] * 6 + [True, False, False]
    assert told[1].streaming_tool_calls is not None
    assert told[1].streaming_tool_calls[0].arguments == '{"text": "na"}'


class TheirEnum:
    """As the older SDK of Google's gives reasons."""

    def __init__(self, name: str) -> None:
        self.name = name


def test_googles_reasons_to_end() -> None:
    def calls(finish: Any) -> list[ExecutionStatus]:
        response, _ = heard(google({"function_call": {"name": "f", "args": {}}}, finish=finish))
        return [call.status for call in response.calls()]

    assert calls(TheirEnum("STOP")) == calls("MAX_TOKENS") == [ExecutionStatus.PENDING]
    assert calls(TheirEnum("FINISH_REASON_UNSPECIFIED")) == calls(None) == [ExecutionStatus.PENDING]
    assert calls("SAFETY") == calls(TheirEnum("MALFORMED_FUNCTION_CALL")) == [ExecutionStatus.FAILURE]


@pytest.mark.parametrize(
    "chunk", [None, {}, "text", {"choices": None}, {"choices": [{}]}, google(), {"candidates": [{}]}]
)
def test_what_says_nothing_says_nothing(chunk: Any) -> None:
    response, told = heard(chunk)
    assert response.content == ""
    assert response.calls() == []
    assert told[0].content is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
CALLS = st.lists(st.dictionaries(st.text(max_size=4), JSON, max_size=3), min_size=1, max_size=4)


@given(CALLS, st.data())
def test_calls_do_not_depend_on_how_they_were_cut(calls: list[dict[str, Any]], data: st.DataObject) -> None:
    pieces: list[list[dict[str, Any]]] = []
    for index, arguments in enumerate(calls):
        text = json.dumps(arguments)
        cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(text) - 1)), max_size=4)))
        parts = [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        first = called(index, f"c{index}", f"f{index}", parts[0])
        pieces.append([first, *(called(index, None, None, part) for part in parts[1:])])
    # In any order in which each call's own parts stay in theirs, as long as the calls begin in order.
    order = [pieces[index].pop(0) for index in range(len(pieces))]
    while any(pieces):
        left = [index for index, parts in enumerate(pieces) if parts]
        order.append(pieces[data.draw(st.sampled_from(left))].pop(0))
    response, told = heard(*order, said(None, "tool_calls"))
    assert [call.arguments for call in response.calls()] == calls
    complete = [call for chunk in told for call in chunk.tool_calls or []]
    assert [call.id for call in complete] == [f"c{index}" for index in range(len(calls))], "each is told once"
    assert [json.loads(call.arguments or "") for call in complete] == calls
