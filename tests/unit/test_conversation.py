"""Whole conversations: the order of the events, switches of agents, reinvocation, and the answer at the end."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from openai.types.chat import ChatCompletionMessageParam
from pydantic import TypeAdapter

import virtual_time
from deskhand import ActionError, BadPlan, Desktop
from deskhand.backends.memory import MemoryBackend
from deskhand.execution import (
    Agent,
    AgentCapability,
    AgentSwitch,
    AgentSwitchTrigger,
    Compaction,
    CompactionStrategy,
    Completion,
    Conversation,
    ExecutionResult,
    ExecutionStatus,
    Executor,
    FunctionCallInfo,
    FunctionCallsExtracted,
    FunctionCallStrategy,
    FunctionDetection,
    FunctionExecutionComplete,
    FunctionExecutionStart,
    ReinvokeSignal,
    RequestFunctionCall,
    ResponseResult,
    StreamChunk,
    Switchboard,
    SwitchContext,
    Turn,
    estimate_tokens,
)
from deskhand.providers.session import ModelSession

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

SUCCESS, FAILURE, CANCELLED = ExecutionStatus.SUCCESS, ExecutionStatus.FAILURE, ExecutionStatus.CANCELLED


def says(text: str, *calls: tuple[str, str, dict[str, Any]], finish: str = "stop") -> list[dict[str, Any]]:
    """The chunks of a response: a text, and calls as (id, function, arguments)."""
    chunks = [{"choices": [{"delta": {"content": part}}]} for part in (text[:3], text[3:])]
    for index, (call_id, name, arguments) in enumerate(calls):
        text = json.dumps(arguments)
        head = {"index": index, "id": call_id, "function": {"name": name, "arguments": text[:2]}}
        chunks.append({"choices": [{"delta": {"tool_calls": [head]}}]})
        rest = {"index": index, "function": {"arguments": text[2:]}}
        chunks.append({"choices": [{"delta": {"tool_calls": [rest]}}]})
    return [*chunks, {"choices": [{"delta": {}, "finish_reason": finish}]}]


class Script:
    """A model that says what was written for it, and notes what it was asked with."""

    def __init__(self, *turns: list[dict[str, Any]]) -> None:
        self.turns = list(turns)
        self.asked: list[Turn] = []

    async def __call__(self, turn: Turn) -> AsyncIterator[dict[str, Any]]:
        self.asked.append(turn)
        return self.chunks(self.turns.pop(0))

    async def chunks(self, turn: list[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
        for chunk in turn:
            await asyncio.sleep(0)
            yield chunk


async def all_of(talk: Conversation) -> list[Any]:
    return [event async for event in talk.stream()]


def short(events: list[Any]) -> list[str]:
    """The events' types; chunks in a row as one."""
    kinds = [event.type for event in events]
    return [kind for number, kind in enumerate(kinds) if kind != "stream_chunk" or kinds[number - 1 : number] != [kind]]


def double(x: int) -> int:
    if x < 0:
        raise OSError("no")
    return x * 2


def test_the_order_of_events() -> None:
    script = Script(
        says("<think>hm</think>Let me see", ("c1", "double", {"x": 2}), ("c2", "double", {"x": -1})),
        says("It is 4"),
    )
    talk = Conversation(script, Executor([double]), agent_id="a")
    events = virtual_time.run(all_of(talk))
    assert short(events) == [
        "stream_chunk",
        "function_detection",
        "stream_chunk",
        "function_calls_extracted",
        "function_execution_start",
        "function_execution_complete",
        "function_execution_start",
        "function_execution_complete",
        "reinvoke_signal",
        "stream_chunk",
        "completion",
    ]
    plain = [event for event in events if not isinstance(event, StreamChunk)]
    failed = "double failed: OSError: no"
    history = [
        FunctionDetection(message="a calls functions", agent_id="a"),
        FunctionCallsExtracted(
            function_calls=[FunctionCallInfo("double", "c1"), FunctionCallInfo("double", "c2")], agent_id="a"
        ),
        FunctionExecutionStart(function_name="double", function_id="c1", progress="1/2", agent_id="a"),
        FunctionExecutionComplete(function_name="double", function_id="c1", status="success", result=4, agent_id="a"),
        FunctionExecutionStart(function_name="double", function_id="c2", progress="2/2", agent_id="a"),
        FunctionExecutionComplete(
            function_name="double", function_id="c2", status="failure", error=failed, agent_id="a"
        ),
        ReinvokeSignal("a is asked again, with 2 calls carried out", "a"),
    ]
    assert plain == [
        *history,
        Completion(
            final_content="It is 4",
            reasoning_content="hm",
            function_calls_executed=2,
            agent_id="a",
            execution_history=history,
        ),
    ]
    chunks = [event for event in events if isinstance(event, StreamChunk)]
    assert [chunk.reinvoked for chunk in chunks] == [False] * 8 + [True] * 4
    assert {chunk.agent_id for chunk in chunks} == {"a"}
    assert [turn.number for turn in script.asked] == [0, 1]
    assert [(call.id, call.result, call.error) for call in script.asked[1].calls] == [
        ("c1", 4, None),
        ("c2", None, failed),
    ]
    assert script.asked[1].said == "Let me see"


def test_an_answer_without_calls() -> None:
    events = virtual_time.run(all_of(Conversation(Script(says("Hello")), Executor())))
    assert short(events) == ["stream_chunk", "completion"]
    assert events[-1] == Completion(final_content="Hello")
    assert events[-2].function_calls_detected is False


def test_the_whole_answer_for_who_does_not_want_a_stream() -> None:
    message = {
        "content": "Let me see",
        "tool_calls": [{"id": "c1", "function": {"name": "double", "arguments": '{"x": 2}'}}],
    }
    answers = [
        {"choices": [{"message": message, "finish_reason": "tool_calls"}]},
        {"choices": [{"message": {"content": "It is 4", "reasoning": "hm"}, "finish_reason": "stop"}]},
    ]
    last = answers[-1]
    talk = Conversation(lambda _: answers.pop(0), Executor([double]), agent_id="a")
    result = virtual_time.run(talk.respond())
    assert isinstance(result, ResponseResult)
    assert (result.content, result.reasoning_content, result.agent_id, result.reinvoked) == ("It is 4", "hm", "a", True)
    assert result.response is last
    assert [(call.name, call.result, call.status) for call in result.function_calls] == [("double", 4, SUCCESS)]
    assert result.completion.execution_history == result.execution_history
    assert [event.type for event in result.execution_history] == [
        "function_detection",
        "function_calls_extracted",
        "function_execution_start",
        "function_execution_complete",
        "reinvoke_signal",
    ]
    assert virtual_time.run(Conversation(lambda _: last, Executor()).respond()).reinvoked is False


class Whole:
    """As pydantic's objects are: it can be iterated over, and is one response all the same."""

    choices = ({"message": {"content": "Hello"}, "finish_reason": "stop"},)

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        yield "choices", self.choices


def in_chunks() -> Iterator[dict[str, Any]]:
    yield from says("Hello")


async def in_async_chunks(turn: Turn) -> AsyncIterator[dict[str, Any]]:
    del turn
    for chunk in says("Hello"):
        yield chunk


async def awaited(turn: Turn) -> list[dict[str, Any]]:
    del turn
    return says("Hello")


@pytest.mark.parametrize(
    "ask",
    [
        lambda _: {"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]},
        lambda _: Whole(),
        lambda _: in_chunks(),
        in_async_chunks,
        awaited,
    ],
    ids=["a dictionary", "an object", "a generator", "an async generator", "a coroutine"],
)
def test_a_model_may_answer_in_any_way(ask: Callable[[Turn], Any]) -> None:
    assert virtual_time.run(Conversation(ask, Executor()).respond()).content == "Hello"


def test_calls_that_are_not_whole_are_told_and_not_made() -> None:
    script = Script(says("", ("c1", "double", {"x": 2}), finish="content_filter"), says("Sorry"))
    result = virtual_time.run(Conversation(script, Executor([double])).respond())
    assert [(call.status, call.result) for call in result.function_calls] == [(FAILURE, None)]
    assert "stopped (content_filter)" in (result.function_calls[0].error or "")
    assert result.completion.function_calls_executed == 0
    assert result.content == "Sorry"


def test_no_more_turns_than_may_be() -> None:
    script = Script(*(says("", (f"c{n}", "double", {"x": n})) for n in range(9)))
    result = virtual_time.run(Conversation(script, Executor([double]), max_turns=3).respond())
    assert [call.result for call in result.function_calls] == [0, 2, 4]
    assert len(script.turns) == 6
    with pytest.raises(ActionError, match="max_turns"):
        Conversation(script, Executor(), max_turns=0)


def test_the_strategy_is_the_conversations() -> None:
    calls = (("c1", "double", {"x": 2}), ("c2", "double", {}))
    script = Script(says("", *calls), says("done"))
    talk = Conversation(script, Executor([double]), strategy=FunctionCallStrategy.PIPELINE)
    assert [call.result for call in virtual_time.run(talk.respond()).function_calls] == [4, 8]


def test_a_model_that_gives_two_calls_one_id_is_refused() -> None:
    script = Script(says("", ("c1", "double", {"x": 2})), says("", ("c1", "double", {"x": 3})))
    with pytest.raises(BadPlan, match="c1"):
        virtual_time.run(Conversation(script, Executor([double])).respond())


def test_leaving_a_conversation_leaves_nothing_running() -> None:
    ended: list[str] = []

    async def slow() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            ended.append("slow")

    async def main() -> None:
        stream = Conversation(Script(says("", ("c1", "slow", {}))), Executor([slow])).stream()
        async for event in stream:
            if isinstance(event, FunctionExecutionStart):
                break
        await stream.aclose()  # type: ignore[attr-defined]
        assert ended == ["slow"]

    virtual_time.run(main())


# --- who has the word ---

BROWSING = AgentCapability("browsing", "", ["open"], performance_score=0.5)
BROWSING_WELL = AgentCapability("browsing", "", ["open"], {"online": True}, 0.9)
COUNTING = AgentCapability("counting", "", ["double"])


def decided(
    board: Switchboard, current: str, *calls: RequestFunctionCall, said: str = ""
) -> tuple[str, str, str] | None:
    results = [ExecutionResult(call.status, call.result, call.error) for call in calls]
    failed = any(call.status is not SUCCESS for call in calls)
    found = board.decide(current, SwitchContext(results, failed, said), calls)
    if found is None:
        return None
    switch, trigger = found
    assert switch.from_agent == current
    return trigger.name, switch.to_agent, switch.reason


def done(
    name: str, result: Any = None, status: ExecutionStatus = SUCCESS, error: str | None = None
) -> RequestFunctionCall:
    return RequestFunctionCall(name, {}, status=status, result=result, error=error)


def test_a_call_or_the_caller_may_ask_for_a_switch() -> None:
    board = Switchboard([Agent("a"), Agent("b"), Agent("c")])
    assert decided(board, "a", done("f")) is None
    assert decided(board, "a", done("f", AgentSwitch(to_agent="b"))) == ("EXPLICIT", "b", "a call asked for it")
    assert decided(board, "a", done("f", AgentSwitch(to_agent="b", reason="it is late"))) == (
        "EXPLICIT",
        "b",
        "it is late",
    )
    assert decided(board, "b", done("f", AgentSwitch(to_agent="b"))) is None, "it has the word"
    board.request("c", "the user wants it")
    assert decided(board, "a") == ("EXPLICIT", "c", "the user wants it")
    assert decided(board, "a") is None, "once"
    with pytest.raises(ActionError, match="there is no agent 'd'; there are: a, b, c"):
        board.request("d")
    with pytest.raises(ActionError, match="there is no agent 'd'"):
        decided(board, "a", done("f", AgentSwitch(to_agent="d")))


def test_another_one_takes_over_when_something_went_wrong() -> None:
    board = Switchboard([Agent("a"), Agent("b")], recovery="b")
    assert decided(board, "a", done("f")) is None
    assert decided(board, "a", done("f"), done("g", status=CANCELLED, error="g was stopped")) == (
        "ERROR_RECOVERY",
        "b",
        "g was stopped",
    )
    assert decided(board, "b", done("g", status=FAILURE)) is None


def test_who_can_do_what_is_needed_takes_over() -> None:
    agents = [Agent("a", (COUNTING,)), Agent("b", (BROWSING,)), Agent("c", (BROWSING_WELL,)), Agent("d", (BROWSING,))]
    board = Switchboard(agents)
    assert decided(board, "a", done("double")) is None, "it can do that itself"
    assert decided(board, "a", done("open")) == ("CAPABILITY_BASED", "b", "open is what it can do")
    board.context["online"] = False
    assert decided(board, "a", done("open")) == ("CAPABILITY_BASED", "b", "open is what it can do"), "not as required"
    board.context["online"] = True
    assert decided(board, "a", done("open")) == ("CAPABILITY_BASED", "c", "open is what it can do")
    assert decided(board, "d", done("open")) is None
    assert decided(board, "a", done("unknown")) is None


def test_who_can_call_functions_can_call_any() -> None:
    """`FUNCTION_CALLING` names no functions: it is for those that nobody has by name."""
    general = AgentCapability.FUNCTION_CALLING
    weaker = AgentCapability("function_calling", "Calls them too", performance_score=0.5)
    offline = AgentCapability("function_calling", "Calls them", [], {"online": False}, 1.0)
    board = Switchboard([Agent("talker"), Agent("b", (weaker,)), Agent("c", (general,)), Agent("d", (BROWSING,))])
    assert decided(board, "talker", done("search")) == (
        "CAPABILITY_BASED",
        "c",
        "it can call functions, as search is",
    )
    assert decided(board, "talker", done("open")) == ("CAPABILITY_BASED", "d", "open is what it can do"), "by its name"
    assert decided(board, "c", done("search")) is None, "it can do that itself"
    assert decided(board, "b", done("search")) is None, "well enough"
    assert decided(board, "c", done("open")) == ("CAPABILITY_BASED", "d", "open is what it can do")
    assert decided(board, "d", done("open"), done("search")) == (
        "CAPABILITY_BASED",
        "c",
        "it can call functions, as search is",
    )
    assert decided(Switchboard([Agent("a"), Agent("b", (offline,))]), "a", done("search")) is None, "not as required"
    named = AgentCapability("function_calling", "Only this one", ["add"])
    assert decided(Switchboard([Agent("a"), Agent("b", (named,))]), "a", done("search")) is None
    other = AgentCapability("vision", "Sees")
    assert decided(Switchboard([Agent("a"), Agent("b", (other,))]), "a", done("search")) is None


def test_rules_of_the_callers_and_load() -> None:
    loads = {"a": 3.0, "b": 1.0, "c": 2.0}
    board = Switchboard(
        [Agent(name) for name in loads],
        load=loads.__getitem__,
        rules={
            AgentSwitchTrigger.CONTEXT_BASED: lambda _, context: (
                "c" if "milk" in (context.buffered_content or "") else None
            ),
            AgentSwitchTrigger.CUSTOM: lambda current, context: "a" if context.execution_error else current,
        },
    )
    assert decided(board, "b", said="buy milk") == ("CONTEXT_BASED", "c", "by the context rule")
    assert decided(board, "b", done("f", status=FAILURE)) == ("CUSTOM", "a", "by the custom rule")
    assert decided(board, "a") == ("LOAD_BALANCING", "b", "its load is 1")
    assert decided(board, "b") is None
    loads["a"] = 1.0
    assert decided(board, "a") is None, "no more than the least"


def test_the_triggers_have_an_order() -> None:
    agents = [
        Agent("a"),
        Agent("asked"),
        Agent("recovery"),
        Agent("able", (BROWSING,)),
        Agent("context"),
        Agent("custom"),
    ]
    rules = {
        AgentSwitchTrigger.CUSTOM: lambda *_: "custom",
        AgentSwitchTrigger.CONTEXT_BASED: lambda *_: "context",
    }
    board = Switchboard(agents, recovery="recovery", rules=rules, load=lambda name: float(name != "able"))
    failed = done("open", status=FAILURE)
    assert (decided(board, "a", failed, done("f", AgentSwitch(to_agent="asked"))) or "")[1] == "asked"
    assert (decided(board, "a", failed) or "")[1] == "recovery"
    assert (decided(board, "a", done("open")) or "")[1] == "able"
    assert (decided(board, "a") or "")[1] == "context"
    assert (decided(board, "context") or "")[1] == "custom"


def test_a_switchboard_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(ActionError, match="two agents"):
        Switchboard([Agent("a"), Agent("a", (BROWSING,))])
    with pytest.raises(ActionError, match="no agent 'b'"):
        Switchboard([Agent("a")], recovery="b")
    with pytest.raises(ActionError, match="rules are for CONTEXT_BASED, CUSTOM"):
        Switchboard(rules={AgentSwitchTrigger.EXPLICIT: lambda *_: None})


def test_a_switch_in_a_conversation() -> None:
    def hand_over(to: str) -> AgentSwitch:
        return AgentSwitch(to_agent=to, reason="it knows")

    script = Script(says("", ("c1", "hand_over", {"to": "b"})), says("Hello from b"))
    board = Switchboard([Agent("a"), Agent("b")])
    events = virtual_time.run(all_of(Conversation(script, Executor([hand_over]), agent_id="a", switchboard=board)))
    assert short(events)[-4:] == ["agent_switch", "reinvoke_signal", "stream_chunk", "completion"]
    (switch,) = [event for event in events if isinstance(event, AgentSwitch)]
    assert switch == AgentSwitch(from_agent="a", to_agent="b", reason="it knows")
    assert [(turn.agent_id, turn.switch) for turn in script.asked] == [("a", None), ("b", switch)]
    assert [event.agent_id for event in events if isinstance(event, ReinvokeSignal | Completion)] == ["b", "b"]
    assert events[-2].agent_id == "b"


def test_a_switch_to_nobody_is_told_and_not_made() -> None:
    def hand_over(to: str) -> AgentSwitch:
        return AgentSwitch(to_agent=to)

    script = Script(says("", ("c1", "hand_over", {"to": "x"})), says("Then I do it"))
    board = Switchboard([Agent("a"), Agent("b")])
    events = virtual_time.run(all_of(Conversation(script, Executor([hand_over]), agent_id="a", switchboard=board)))
    (signal,) = [event for event in events if isinstance(event, ReinvokeSignal)]
    assert (signal.message, signal.agent_id) == (
        "no other agent takes over: there is no agent 'x'; there are: a, b",
        "a",
    )
    assert script.asked[1].note == signal.message
    assert not any(isinstance(event, AgentSwitch) for event in events)


# --- the conversation itself ---

TASK = {"role": "user", "content": "Count to ten"}
CHAT: TypeAdapter[Any] = TypeAdapter(list[ChatCompletionMessageParam])


def test_every_turn_has_the_whole_conversation() -> None:
    script = Script(says("Let me see", ("c1", "double", {"x": 2}), ("c2", "double", {"x": -1})), says("It is 4"))
    talk = Conversation(script, Executor([double]), messages=[TASK])
    virtual_time.run(talk.respond())
    first, second = [turn.messages for turn in script.asked]
    assert first == (TASK,)
    calls = [
        {"id": call_id, "type": "function", "function": {"name": "double", "arguments": json.dumps({"x": x})}}
        for call_id, x in (("c1", 2), ("c2", -1))
    ]
    assert second == (
        TASK,
        {"role": "assistant", "content": "Let me see", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c1", "content": "4"},
        {"role": "tool", "tool_call_id": "c2", "content": "double failed: OSError: no"},
    )
    assert talk.messages == (*second, {"role": "assistant", "content": "It is 4"})
    CHAT.validate_python(list(talk.messages))


def test_a_conversation_is_kept_below_its_limit() -> None:
    limit = 1200

    def read(page: int) -> str:
        return f"page {page}: " + "words " * 300

    turns = [says(f"Page {page}", (f"c{page}", "read", {"page": page})) for page in range(12)]
    script = Script(*turns, says("Done"))
    talk = Conversation(script, Executor([read]), messages=[TASK], compaction=Compaction(limit=limit))
    assert virtual_time.run(talk.respond()).content == "Done"
    assert len(script.asked) == 13
    for turn in script.asked:
        history: list[Any] = list(turn.messages)
        CHAT.validate_python(history)
        assert sum(map(estimate_tokens, history)) <= limit
        assert history[0] == TASK
        calls = [call["id"] for message in history for call in message.get("tool_calls", ())]
        assert calls == [message["tool_call_id"] for message in history if message["role"] == "tool"]
    # The newest is there, and the oldest is not.
    last = script.asked[-1].messages
    assert "page 11" in str(last[-1])
    assert "page 0:" not in str(last)


def test_a_summary_may_take_its_time() -> None:
    async def summarize(messages: list[Any]) -> str:
        await asyncio.sleep(0)
        return f"{len(messages)} messages"

    turns = [says(f"Say {number}", (f"c{number}", "double", {"x": number})) for number in range(8)]
    script = Script(*turns, says("Done"))
    plan = Compaction(strategy=CompactionStrategy.SUMMARIZE, limit=8, count=lambda _: 1, summarize=summarize)
    virtual_time.run(Conversation(script, Executor([double]), messages=[TASK], compaction=plan).respond())
    last: list[Any] = list(script.asked[-1].messages)
    summaries = [message for message in last if "in short" in str(message["content"])]
    assert [set(message) for message in summaries] == [{"role", "content"}]
    CHAT.validate_python(last)


def test_a_desktops_picture_is_in_the_conversation() -> None:
    with Desktop(MemoryBackend()) as desktop:
        script = Script(says("I look", ("c1", "screenshot", {})), says("Done"))
        talk = Conversation(script, Executor([], desktops=ModelSession(desktop, settle=False)), messages=[TASK])
        asyncio.run(talk.respond())
    history: list[Any] = list(script.asked[1].messages)
    assert history[2] == {"role": "tool", "tool_call_id": "c1", "content": "done"}
    assert history[3]["content"][1]["image_url"]["url"].startswith("data:image/png;base64,")
    CHAT.validate_python(history)


def test_a_compaction_needs_something_to_make_shorter() -> None:
    with pytest.raises(ActionError, match="messages="):
        Conversation(Script(), Executor(), compaction=Compaction(limit=5))
