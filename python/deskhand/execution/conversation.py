"""A conversation between agents and their functions: ask the model, make its calls, ask again, until there are none. No I/O.

    >>> async def ask(turn):
    ...     return await client.chat.completions.create(messages=turn.messages, tools=tools, stream=True)
    >>> talk = Conversation(ask, Executor([search]), agent_id="researcher", messages=[{"role": "user", "content": "..."}],
    ...                     compaction=Compaction(limit=100_000))
    >>> async for event in talk.stream():
    ...     print(event)

With `messages`, every turn has the whole conversation, as messages of chat completions; a `Compaction` keeps them below its
limit. Without, the caller keeps the history, and a turn has only what is new.

The events of a turn: a `StreamChunk` for each chunk and one for the end of the response; a `FunctionDetection` after the
first chunk with a call; then `FunctionCallsExtracted`, each call's `FunctionExecutionStart` and `FunctionExecutionComplete`,
an `AgentSwitch` if another agent takes over, and a `ReinvokeSignal`. One `Completion` ends the stream.

How a model is asked and how a call is carried out is decided elsewhere.
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


@dataclass(frozen=True, slots=True)
class Turn:
    """The input for asking a model.

    Attributes:
        agent_id: The agent to ask.
        number: 0 for the first turn.
        calls: The calls of the turn before, with their results.
        said: The text of the turn before, without thinking.
        switch: The switch of agents after them, if any.
        note: Further information for the agent, such as why a switch was not made.
        messages: The whole conversation, if it is kept here.
    """

    agent_id: str
    number: int = 0
    calls: tuple[RequestFunctionCall, ...] = ()
    said: str = ""
    switch: AgentSwitch | None = None
    note: str = ""
    messages: tuple[Message, ...] = ()


Ask: TypeAlias = Callable[[Turn], object]
"""Asks a model: returns its response, its chunks (a sync or async iterable), or an awaitable of one of these."""


@dataclass(slots=True)
class _Progress:
    """The state of a conversation so far."""

    response: Any = None
    said: str = ""
    thought: str = ""
    calls: list[RequestFunctionCall] = field(default_factory=list)
    history: list[Any] = field(default_factory=list)
    agent_id: str = ""
    reinvoked: bool = False
    messages: tuple[Message, ...] = ()


class Conversation:
    """Asks agents until a response has no calls.

    Attributes:
        messages: The conversation so far, if it is kept here.
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
        """Prepare a conversation.

        Args:
            ask: Asks a model.
            executor: Carries out the calls.
            agent_id: The agent that begins.
            strategy: How the calls of a response are carried out.
            switchboard: Decides which agent is asked after calls.
            max_turns: How often models are asked at most. After that the conversation ends: the calls of the last response are
                carried out, but no model is asked about their results.
            messages: The conversation before, as messages of chat completions. With it, every turn has the whole conversation.
            compaction: Shortens those messages before a model is asked, if they exceed its limit.

        Raises:
            ActionError: `max_turns` is less than 1, or there is a compaction but no `messages`.
        """
        if compaction is not None and messages is None:
            raise ActionError("a compaction needs the conversation: give messages=, such as []")
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
        """Yield all events as they happen. Closing the stream (`contextlib.aclosing`) cancels running calls.

        Raises:
            ActionError: A response has an unknown format.
            BadPlan: A response has two different calls with one id, or a call with an id that was used before.
        """
        async with contextlib.aclosing(self._events(_Progress())) as events:
            async for event in events:
                yield event

    async def respond(self) -> ResponseResult:
        """Wait for the whole answer.

        Raises:
            ActionError: As for `stream`.
            BadPlan: As for `stream`.
        """
        progress = _Progress()
        completion = Completion()
        async for event in self._events(progress):
            if isinstance(event, Completion):
                completion = event
        return ResponseResult(
            content=progress.said,
            response=progress.response,
            completion=completion,
            reasoning_content=progress.thought,
            function_calls=progress.calls,
            agent_id=progress.agent_id,
            execution_history=list(progress.history),
            reinvoked=progress.reinvoked,
        )

    async def _events(self, progress: _Progress) -> AsyncGenerator[StreamEvent, None]:
        progress.messages = tuple(self._messages or ())
        turn = Turn(self._agent_id, messages=await self._shorter(progress))
        while True:
            progress.agent_id = turn.agent_id
            progress.reinvoked = turn.number > 0
            response = Accumulator(turn.agent_id, reinvoked=progress.reinvoked)
            async with contextlib.aclosing(self._listen(turn, response, progress)) as listening:
                async for event in listening:
                    yield _noted(event, progress)
            progress.said = response.content
            progress.thought += response.reasoning_content
            calls = response.calls()
            if not calls:
                self._keep(progress, response, calls)
                break
            infos = [FunctionCallInfo(call.name, call.id) for call in calls]
            yield _noted(FunctionCallsExtracted(function_calls=infos, agent_id=turn.agent_id), progress)
            progress.calls += calls
            async with self._executor.run(calls, self._strategy, agent_id=turn.agent_id) as run:
                async for done in run:
                    yield _noted(done, progress)
            self._keep(progress, response, calls)
            if turn.number + 1 >= self._max_turns:
                break
            turn = replace(self._next(turn, calls, response), messages=await self._shorter(progress))
            if turn.switch is not None:
                yield _noted(turn.switch, progress)
            message = turn.note or f"{turn.agent_id or 'the agent'} is asked again, with {_count(calls)} carried out"
            yield _noted(ReinvokeSignal(message, turn.agent_id), progress)
        begun = sum(isinstance(event, FunctionExecutionStart) for event in progress.history)
        yield Completion(
            final_content=progress.said,
            reasoning_content=progress.thought,
            function_calls_executed=begun,
            agent_id=progress.agent_id,
            execution_history=list(progress.history),
        )

    def _keep(self, progress: _Progress, response: Accumulator, calls: list[RequestFunctionCall]) -> None:
        if self._messages is not None:
            progress.messages += tuple(messages_of(response.content, calls))
            self.messages = progress.messages

    async def _shorter(self, progress: _Progress) -> tuple[Message, ...]:
        if self._compaction is not None:
            progress.messages = tuple((await compacted(progress.messages, self._compaction)).messages)
        return progress.messages

    async def _listen(
        self, turn: Turn, response: Accumulator, progress: _Progress
    ) -> AsyncGenerator[StreamEvent, None]:
        """Yield the events of a response's chunks, and one at the first call."""
        detected = False
        known: bool | None = None
        async with contextlib.aclosing(_chunks(self._ask(turn))) as chunks:
            async for chunk in chunks:
                progress.response = chunk
                known = known or is_of_a_format(chunk)
                event = response.feed(chunk)
                yield event
                if event.function_calls_detected and not detected:
                    detected = True
                    message = f"{turn.agent_id or 'the agent'} calls functions"
                    yield FunctionDetection(message=message, agent_id=turn.agent_id)
        if known is False:
            raise ActionError(
                f"a response must be in the format of OpenAI's chat completions or Google's, not {shown(progress.response)}"
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
            # The name of the next agent often comes from a model, and may be wrong.
            note = f"no other agent takes over: {error}"
        speaker = turn.agent_id if switch is None else switch.to_agent
        return Turn(speaker, turn.number + 1, tuple(calls), response.content, switch, note)


async def _chunks(response: Any) -> AsyncGenerator[Any, None]:
    """A response's chunks, from any kind of iterable; a whole response is one chunk."""
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
    # A pydantic object is iterable too, but yields its fields.
    return hasattr(response, "choices") or hasattr(response, "candidates")


def _noted(event: StreamEvent, progress: _Progress) -> StreamEvent:
    if not isinstance(event, StreamChunk):
        progress.history.append(event)
    return event


def _count(calls: list[RequestFunctionCall]) -> str:
    return "1 call" if len(calls) == 1 else f"{len(calls)} calls"
