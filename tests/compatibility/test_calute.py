"""calute: its types of function execution and streams, and what they describe, as its documentation has it."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import virtual_time
from compatibility.declared import calute
from compatibility.table import Row, declared_rows, each
from deskhand.execution import (
    Accumulator,
    Agent,
    AgentSwitch,
    AgentSwitchTrigger,
    Completion,
    Conversation,
    ExecutionStatus,
    Executor,
    FunctionCallInfo,
    FunctionCallsExtracted,
    FunctionDetection,
    FunctionExecutionComplete,
    FunctionExecutionStart,
    ReinvokeSignal,
    ResponseResult,
    StreamChunk,
    Switchboard,
    SwitchContext,
    ToolCallStreamChunk,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from deskhand.execution import Turn

SUCCESS, FAILURE, PARTIAL = ExecutionStatus.SUCCESS, ExecutionStatus.FAILURE, ExecutionStatus.PARTIAL
PENDING, CANCELLED = ExecutionStatus.PENDING, ExecutionStatus.CANCELLED


# --- one conversation, looked at from every side ---


def said(text: str | None, finish: str | None = None, **delta: Any) -> dict[str, Any]:
    """A chunk in OpenAI's format."""
    return {"choices": [{"index": 0, "delta": {"content": text, **delta}, "finish_reason": finish}]}


def called(index: int, arguments: str, **head: str) -> dict[str, Any]:
    """A part of a call in OpenAI's format; its id and name are in the first."""
    function = {"arguments": arguments, **{key: value for key, value in head.items() if key == "name"}}
    return said(None, tool_calls=[{"index": index, "id": head.get("id"), "function": function}])


def gemini(*parts: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    """A chunk in Google's format."""
    return {"candidates": [{"content": {"parts": list(parts)}, "finish_reason": finish}]}


FIRST = [
    said("<think>hm"),
    said("</think>Let me"),
    said(" see"),
    called(0, '{"x"', id="c1", name="double"),
    called(0, ": 2}"),
    called(1, '{"x": -1}', id="c2", name="double"),
    called(2, '{"to": "b"}', id="c3", name="hand_over"),
    said(None, "tool_calls"),
]
SECOND = [said("It is 4"), said(None, "stop")]


@dataclass
class Heard:
    """What a conversation has told and given."""

    events: list[Any]
    result: ResponseResult
    asked: list[Turn]
    contexts: list[SwitchContext]

    def only(self, kind: type, number: int = 0) -> Any:
        return [event for event in self.events if isinstance(event, kind)][number]


def double(x: int) -> int:
    if x < 0:
        raise OSError("no")
    return x * 2


def hand_over(to: str) -> AgentSwitch:
    return AgentSwitch(to_agent=to, reason="it is late")


@functools.cache
def talk() -> Heard:
    """An agent that calls three functions, of which one fails and one hands over; then the other speaks."""
    asked: list[Turn] = []
    contexts: list[SwitchContext] = []

    def model(turns: list[list[dict[str, Any]]]) -> Callable[[Turn], AsyncIterator[dict[str, Any]]]:
        async def ask(turn: Turn) -> AsyncIterator[dict[str, Any]]:
            asked.append(turn)
            for chunk in turns.pop(0):
                yield chunk

        return ask

    def rule(_: str, context: SwitchContext) -> None:
        contexts.append(context)

    def conversation(*turns: list[dict[str, Any]]) -> Conversation:
        board = Switchboard([Agent("a"), Agent("b")], rules={AgentSwitchTrigger.CONTEXT_BASED: rule})
        return Conversation(model(list(turns)), Executor([double, hand_over]), agent_id="a", switchboard=board)

    async def both() -> Heard:
        events = [event async for event in conversation(FIRST, SECOND).stream()]
        told = len(asked)
        result = await conversation(FIRST, SECOND).respond()
        # Of a turn in which nobody asks for a switch, a rule is asked.
        await conversation([*FIRST[:6], FIRST[-1]], SECOND).respond()
        return Heard(events, result, asked[:told], contexts)

    return virtual_time.run(both())


def order() -> list[str]:
    """The types of all events of the conversation; chunks in a row as one."""
    kinds = [event.type for event in talk().events]
    return [kind for at, kind in enumerate(kinds) if kind != "stream_chunk" or kinds[at - 1 : at] != [kind]]


def chunks() -> list[StreamChunk]:
    return [event for event in talk().events if isinstance(event, StreamChunk)]


def before(first: type, second: type) -> bool:
    kinds = [type(event) for event in talk().events]
    return kinds.index(first) < kinds.index(second)


EVENTS = [
    Row("FunctionDetection", "the response has calls: told once", lambda: order().count("function_detection"), 1),
    Row("FunctionDetection.message", "for people", lambda: talk().only(FunctionDetection).message, "a calls functions"),
    Row("FunctionDetection.agent_id", "whose response it is", lambda: talk().only(FunctionDetection).agent_id, "a"),
    Row(
        "FunctionCallsExtracted",
        "before execution begins",
        lambda: before(FunctionCallsExtracted, FunctionExecutionStart),
    ),
    Row("FunctionCallsExtracted", "after detection", lambda: before(FunctionDetection, FunctionCallsExtracted)),
    Row(
        "FunctionCallsExtracted.function_calls",
        "which, in order",
        lambda: talk().only(FunctionCallsExtracted).function_calls,
        [FunctionCallInfo("double", "c1"), FunctionCallInfo("double", "c2"), FunctionCallInfo("hand_over", "c3")],
    ),
    Row("FunctionCallsExtracted.agent_id", "who asks", lambda: talk().only(FunctionCallsExtracted).agent_id, "a"),
    *(
        Row(
            "FunctionExecutionStart",
            f"of call {number + 1}",
            lambda number=number: talk().only(FunctionExecutionStart, number),
            FunctionExecutionStart(
                function_name=name, function_id=f"c{number + 1}", progress=f"{number + 1}/3", agent_id="a"
            ),
        )
        for number, name in enumerate(("double", "double", "hand_over"))
    ),
    Row(
        "FunctionExecutionComplete",
        "with the result",
        lambda: talk().only(FunctionExecutionComplete),
        FunctionExecutionComplete(function_name="double", function_id="c1", status="success", result=4, agent_id="a"),
    ),
    Row(
        "FunctionExecutionComplete",
        "with the error",
        lambda: talk().only(FunctionExecutionComplete, 1),
        FunctionExecutionComplete(
            function_name="double",
            function_id="c2",
            status="failure",
            error="double failed: OSError: no",
            agent_id="a",
        ),
    ),
    Row(
        "AgentSwitch",
        "from whom, to whom and why",
        lambda: talk().only(AgentSwitch),
        AgentSwitch(from_agent="a", to_agent="b", reason="it is late"),
    ),
    Row("ReinvokeSignal", "after the calls", lambda: before(FunctionExecutionComplete, ReinvokeSignal)),
    Row("ReinvokeSignal.agent_id", "who is asked again", lambda: talk().only(ReinvokeSignal).agent_id, "b"),
    Row(
        "ReinvokeSignal.message",
        "for people",
        lambda: talk().only(ReinvokeSignal).message,
        "b is asked again, with 3 calls carried out",
    ),
    Row("Completion", "is last, and once", lambda: (order()[-1], order().count("completion")), ("completion", 1)),
    Row("Completion.final_content", "what was said last", lambda: talk().only(Completion).final_content, "It is 4"),
    Row("Completion.reasoning_content", "all thoughts", lambda: talk().only(Completion).reasoning_content, "hm"),
    Row("Completion.function_calls_executed", "how many", lambda: talk().only(Completion).function_calls_executed, 3),
    Row("Completion.agent_id", "who spoke last", lambda: talk().only(Completion).agent_id, "b"),
    Row(
        "Completion.execution_history",
        "all events that are no chunks",
        lambda: (
            talk().only(Completion).execution_history
            == [event for event in talk().events[:-1] if not isinstance(event, StreamChunk)]
        ),
    ),
    Row("ResponseResult.content", "the text", lambda: talk().result.content, "It is 4"),
    Row("ResponseResult.response", "the raw response, its last chunk", lambda: talk().result.response, SECOND[-1]),
    Row(
        "ResponseResult.completion",
        "the last event",
        lambda: talk().result.completion == talk().only(Completion),
    ),
    Row("ResponseResult.reasoning_content", "all thoughts", lambda: talk().result.reasoning_content, "hm"),
    Row(
        "ResponseResult.function_calls",
        "what was executed, with what came of it",
        lambda: [(made.id, made.status, made.result, made.error) for made in talk().result.function_calls[:2]],
        [("c1", SUCCESS, 4, None), ("c2", FAILURE, None, "double failed: OSError: no")],
    ),
    Row("ResponseResult.agent_id", "who spoke last", lambda: talk().result.agent_id, "b"),
    Row(
        "ResponseResult.execution_history",
        "all events",
        lambda: talk().result.execution_history == talk().only(Completion).execution_history,
    ),
    Row("ResponseResult.reinvoked", "an agent was asked again", lambda: talk().result.reinvoked),
    Row(
        "SwitchContext.function_results",
        "recent results",
        lambda: [result.status for result in talk().contexts[0].function_results],
        [SUCCESS, FAILURE],
    ),
    Row("SwitchContext.execution_error", "whether one failed", lambda: talk().contexts[0].execution_error),
    Row("SwitchContext.buffered_content", "what was said", lambda: talk().contexts[0].buffered_content, "Let me see"),
]

# --- chunks of a stream ---


def fed(*parts: Any) -> list[StreamChunk]:
    response = Accumulator("a")
    return [*(response.feed(part) for part in parts), response.end()]


CHUNKS = [
    Row("StreamChunk.chunk", "the raw chunk", lambda: chunks()[1].chunk is FIRST[1]),
    Row("StreamChunk.agent_id", "who speaks", lambda: [chunks()[0].agent_id, chunks()[-1].agent_id], ["a", "b"]),
    Row("StreamChunk.content", "the chunk's text", lambda: chunks()[2].content, " see"),
    Row("StreamChunk.content", "None without a text", lambda: chunks()[3].content, None),
    Row(
        "StreamChunk.buffered_content",
        "all so far",
        lambda: chunks()[2].buffered_content,
        "<think>hm</think>Let me see",
    ),
    Row("StreamChunk.reasoning_content", "the chunk's thoughts", lambda: chunks()[0].reasoning_content, "hm"),
    Row("StreamChunk.reasoning_content", "None without", lambda: chunks()[2].reasoning_content, None),
    Row("StreamChunk.buffered_reasoning_content", "all so far", lambda: chunks()[2].buffered_reasoning_content, "hm"),
    Row(
        "StreamChunk.function_calls_detected",
        "None, then True",
        lambda: [chunks()[2].function_calls_detected, chunks()[3].function_calls_detected],
        [None, True],
    ),
    Row(
        "StreamChunk.function_calls_detected",
        "False at the end",
        lambda: chunks()[-1].function_calls_detected,
        expected=False,
    ),
    Row("StreamChunk.reinvoked", "after calls", lambda: [chunks()[0].reinvoked, chunks()[-1].reinvoked], [False, True]),
    Row(
        "StreamChunk.streaming_tool_calls",
        "calls that are still streamed",
        lambda: chunks()[3].streaming_tool_calls,
        [ToolCallStreamChunk("c1", function_name="double", arguments='{"x"', index=0)],
    ),
    Row(
        "StreamChunk.tool_calls",
        "complete calls",
        lambda: [made.id for chunk in chunks() for made in chunk.tool_calls or ()],
        ["c1", "c2", "c3"],
    ),
    Row(
        "ToolCallStreamChunk",
        "complete",
        lambda: next(made for chunk in chunks() for made in chunk.tool_calls or ()),
        ToolCallStreamChunk("c1", function_name="double", arguments='{"x": 2}', index=0, is_complete=True),
    ),
    Row(
        "StreamChunk.gemini_content", "the text", lambda: StreamChunk(chunk=gemini({"text": "hi"})).gemini_content, "hi"
    ),
    Row("StreamChunk.gemini_content", "None without", lambda: StreamChunk(chunk=gemini()).gemini_content, None),
    Row("StreamChunk.gemini_content", "None of OpenAI's", lambda: StreamChunk(chunk=said("hi")).gemini_content, None),
    Row("StreamChunk.gemini_content", "None of none", lambda: StreamChunk().gemini_content, None),
    *(
        Row(
            "StreamChunk.is_thinking",
            repr(text),
            lambda text=text: StreamChunk(buffered_content=text).is_thinking,
            inside,
        )
        for text, inside in (
            (None, False),
            ("", False),
            ("a", False),
            ("<think>a", True),
            ("<think>a</think>b", False),
            ("<reasoning>a", True),
            ("<reasoning>a</reasoning>b", False),
            ("<think>a</think><think>b", True),
        )
    ),
    Row(
        "StreamChunk",
        "Google's text comes together",
        lambda: fed(gemini({"text": "a"}), gemini({"text": "b"}))[-1].buffered_content,
        "ab",
    ),
    Row(
        "StreamChunk",
        "Google's thoughts do",
        lambda: fed(gemini({"text": "hm", "thought": True}))[0].buffered_reasoning_content,
        "hm",
    ),
    *(
        Row(
            "StreamChunk.tool_calls",
            f"Google's calls, {how}",
            lambda part=part: [
                (made.function_name, json.loads(made.arguments or ""), made.is_complete)
                for chunk in fed(gemini(part, finish="STOP"))
                for made in chunk.tool_calls or ()
            ],
            [("search", {"query": "test"}, True)],
        )
        for how, part in (
            ("as its SDK has them", {"function_call": {"name": "search", "args": {"query": "test"}}}),
            ("as its REST API has them", {"functionCall": {"name": "search", "args": {"query": "test"}}}),
        )
    ),
]


@each([*declared_rows(calute), *EVENTS, *CHUNKS])
def test_types_events_and_chunks_are_as_documented(row: Row) -> None:
    row.check()
