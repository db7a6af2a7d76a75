"""A conversation between agents and their functions: ask, carry out, ask again, until an answer has no calls. No I/O.

    >>> async def ask(turn):
    ...     return await client.chat.completions.create(messages=turn.messages, tools=tools, stream=True)
    >>> talk = Conversation(ask, Executor([search]), agent_id="researcher", messages=[{"role": "user", "content": "..."}],
    ...                     compaction=Compaction(limit=100_000))
    >>> async for event in talk.stream():
    ...     print(event)

Where `messages` are given, every turn has the whole conversation, as messages of chat completions; a `Compaction` keeps them
below its limit. Otherwise the history is the caller's, and a turn has what is new.

The events of a turn: a `StreamChunk` for each chunk and one for the end of the response; among them a `FunctionDetection`
after the first that has a call; then `FunctionCallsExtracted`, each call's `FunctionExecutionStart` and
`FunctionExecutionComplete`, an `AgentSwitch` where there is one, and a `ReinvokeSignal`. At the very end there is one
`Completion`.

What must never appear here: how a model is asked, how a call is carried out.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from deskhand._core.arguments import expect, expect_callable, expect_integer, expect_several
from deskhand.errors import ActionError, shown
from deskhand.execution.chunks import is_of_a_format
from deskhand.execution.compaction import compacted
from deskhand.execution.executor import Executor
from deskhand.execution.remembered import messages_of
from deskhand.execution.stream_events import (
    AgentSwitch,
    Completion,
    FunctionCallsExtracted,
    FunctionDetection,
    FunctionExecutionStart,
    ReinvokeSignal,
    ResponseResult,
    StreamChunk,
    StreamEvent,
)
from deskhand.execution.streaming import Accumulator
from deskhand.execution.switching import Switchboard
from deskhand.execution.types import (
    ExecutionResult,
    ExecutionStatus,
    FunctionCallInfo,
    FunctionCallStrategy,
    RequestFunctionCall,
    SwitchContext,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Sequence

    from deskhand.execution.compaction_options import Compaction
    from deskhand.execution.histories import Message

__all__ = ["Ask", "Conversation", "Turn"]


@dataclass(frozen=True, slots=True)
class Turn:
    """What a model is asked with.

    Attributes:
        agent_id: Who is to speak.
        number: 0 for the first turn.
        calls: The calls of the turn before, with what came of them.
        said: What was said with them, without what was thought.
        switch: The switch that was made after them.
        note: What else the agent should know: why a switch was not made.
        messages: The whole conversation, where it is kept here.
    """

    agent_id: str
    number: int = 0
    calls: tuple[RequestFunctionCall, ...] = ()
    said: str = ""
    switch: AgentSwitch | None = None
    note: str = ""
    messages: tuple[Message, ...] = ()


Ask: TypeAlias = Callable[[Turn], Any]
"""Asks a model: gives its response, or its chunks (an iterable of either kind), or an awaitable of one of these."""


@dataclass(slots=True)
class _Heard:
    """What a conversation has come to."""

    response: Any = None
    said: str = ""
    thought: str = ""
    calls: list[RequestFunctionCall] = field(default_factory=list)
    history: list[Any] = field(default_factory=list)
    agent_id: str = ""
    reinvoked: bool = False
    messages: tuple[Message, ...] = ()


class Conversation:
    """Agents that are asked until they have nothing to call any more.

    Attributes:
        messages: The conversation as it has become, where it is kept here.
    """

    def __init__(
        self,
        ask: Ask,
        executor: Executor,
        *,
        agent_id: str = "",
        strategy: FunctionCallStrategy = FunctionCallStrategy.SEQUENTIAL,
        switchboard: Switchboard | None = None,
        max_turns: int = 50,
        messages: Sequence[Message] | None = None,
        compaction: Compaction | None = None,
    ) -> None:
        """Prepare it.

        Args:
            ask: Asks a model.
            executor: Carries out what it calls.
            agent_id: Who begins.
            strategy: How the calls of a response are carried out.
            switchboard: Decides who has the word after calls.
            max_turns: How often models are asked at most. After that the conversation ends where it is: the calls of the
                last response are carried out, and nobody is asked about what came of them.
            messages: What was said before, as messages of chat completions; given, every turn has the whole conversation.
            compaction: Makes those messages shorter before a model is asked, where they are longer than its limit.

        Raises:
            ActionError: `max_turns` is less than 1, or there is a compaction and nothing that it could make shorter.
        """
        if compaction is not None and messages is None:
            raise ActionError("a compaction needs the conversation: give messages=, if only []")
        expect_integer("Conversation: max_turns", max_turns, 1)
        expect("Conversation: executor", executor, Executor)
        expect_callable("Conversation: ask", ask)
        self._ask = ask
        self._executor = executor
        self._agent_id = agent_id
        self._strategy = strategy
        self._switchboard = switchboard or Switchboard()
        self._max_turns = max_turns
        self._messages = messages
        self.messages: tuple[Message, ...] = expect_several("Conversation: messages", messages or ())
        self._compaction = compaction

    async def stream(self) -> AsyncIterator[StreamEvent]:
        """All that happens, as it does; closing the stream (`contextlib.aclosing`) cancels what runs.

        Raises:
            ActionError: A response is of no format that is read.
            BadPlan: A response has two different calls of one id, or one of an id that was used before.
        """
        async with contextlib.aclosing(self._events(_Heard())) as events:
            async for event in events:
                yield event

    async def respond(self) -> ResponseResult:
        """The answer, when there is one.

        Raises:
            ActionError: As of `stream`.
            BadPlan: As of `stream`.
        """
        heard = _Heard()
        completion = Completion()
        async for event in self._events(heard):
            if isinstance(event, Completion):
                completion = event
        return ResponseResult(
            content=heard.said,
            response=heard.response,
            completion=completion,
            reasoning_content=heard.thought,
            function_calls=heard.calls,
            agent_id=heard.agent_id,
            execution_history=list(heard.history),
            reinvoked=heard.reinvoked,
        )

    async def _events(self, heard: _Heard) -> AsyncGenerator[StreamEvent, None]:
        heard.messages = tuple(self._messages or ())
        turn = Turn(self._agent_id, messages=await self._shorter(heard))
        while True:
            heard.agent_id = turn.agent_id
            heard.reinvoked = turn.number > 0
            response = Accumulator(turn.agent_id, reinvoked=heard.reinvoked)
            async with contextlib.aclosing(self._listen(turn, response, heard)) as listening:
                async for event in listening:
                    yield _noted(event, heard)
            heard.said = response.content
            heard.thought += response.reasoning_content
            calls = response.calls()
            if not calls:
                self._keep(heard, response, calls)
                break
            infos = [FunctionCallInfo(call.name, call.id) for call in calls]
            yield _noted(FunctionCallsExtracted(function_calls=infos, agent_id=turn.agent_id), heard)
            heard.calls += calls
            async with self._executor.run(calls, self._strategy, agent_id=turn.agent_id) as run:
                async for done in run:
                    yield _noted(done, heard)
            self._keep(heard, response, calls)
            if turn.number + 1 >= self._max_turns:
                break
            turn = replace(self._next(turn, calls, response), messages=await self._shorter(heard))
            if turn.switch is not None:
                yield _noted(turn.switch, heard)
            message = turn.note or f"{turn.agent_id or 'the agent'} is asked again, with {_count(calls)} carried out"
            yield _noted(ReinvokeSignal(message, turn.agent_id), heard)
        begun = sum(isinstance(event, FunctionExecutionStart) for event in heard.history)
        yield Completion(
            final_content=heard.said,
            reasoning_content=heard.thought,
            function_calls_executed=begun,
            agent_id=heard.agent_id,
            execution_history=list(heard.history),
        )

    def _keep(self, heard: _Heard, response: Accumulator, calls: list[RequestFunctionCall]) -> None:
        if self._messages is not None:
            heard.messages += tuple(messages_of(response.content, calls))
            self.messages = heard.messages

    async def _shorter(self, heard: _Heard) -> tuple[Message, ...]:
        if self._compaction is not None:
            heard.messages = tuple((await compacted(heard.messages, self._compaction)).messages)
        return heard.messages

    async def _listen(self, turn: Turn, response: Accumulator, heard: _Heard) -> AsyncGenerator[StreamEvent, None]:
        """A response's chunks, and where the first call was seen."""
        detected = False
        known: bool | None = None
        async with contextlib.aclosing(_chunks(self._ask(turn))) as chunks:
            async for chunk in chunks:
                heard.response = chunk
                known = known or is_of_a_format(chunk)
                told = response.feed(chunk)
                yield told
                if told.function_calls_detected and not detected:
                    detected = True
                    message = f"{turn.agent_id or 'the agent'} calls functions"
                    yield FunctionDetection(message=message, agent_id=turn.agent_id)
        if known is False:
            raise ActionError(
                f"a response is of OpenAI's chat completions or Google's, which {shown(heard.response)} is not"
            )
        yield response.end()

    def _next(self, turn: Turn, calls: list[RequestFunctionCall], response: Accumulator) -> Turn:
        results = [ExecutionResult(call.status, call.result, call.error) for call in calls]
        failed = any(result.status is not ExecutionStatus.SUCCESS for result in results)
        switch, note = None, ""
        try:
            decided = self._switchboard.decide(turn.agent_id, SwitchContext(results, failed, response.content), calls)
            switch = None if decided is None else decided[0]
        except ActionError as error:
            # Who is to take over is often a model's word for it, which may be wrong.
            note = f"no other agent takes over: {error}"
        speaker = turn.agent_id if switch is None else switch.to_agent
        return Turn(speaker, turn.number + 1, tuple(calls), response.content, switch, note)


async def _chunks(response: Any) -> AsyncGenerator[Any, None]:
    """A response's chunks, however they come; a response that is whole is one chunk."""
    if inspect.isawaitable(response):
        response = await _awaited(response)
    if isinstance(response, AsyncIterable):
        async for chunk in response:
            yield chunk
    elif isinstance(response, Iterable) and not isinstance(response, dict) and not _is_whole(response):
        for chunk in response:
            yield chunk
    else:
        yield response


async def _awaited(response: Awaitable[Any]) -> Any:
    return await response


def _is_whole(response: object) -> bool:
    # A pydantic object can be iterated over, and gives its fields.
    return hasattr(response, "choices") or hasattr(response, "candidates")


def _noted(event: StreamEvent, heard: _Heard) -> StreamEvent:
    if not isinstance(event, StreamChunk):
        heard.history.append(event)
    return event


def _count(calls: list[RequestFunctionCall]) -> str:
    return "1 call" if len(calls) == 1 else f"{len(calls)} calls"
