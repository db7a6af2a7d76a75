"""The events of a stream: a model's answer and the calls that it makes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from deskhand.execution.chunks import gemini_text, inside_thinking

# Imported at run time too, because `typing.get_type_hints` looks up the types of fields here.
from deskhand.execution.types import (  # noqa: TC001
    FunctionCallInfo,
    ProviderChunk,
    ProviderResponse,
    RequestFunctionCall,
)


@dataclass(slots=True)
class ToolCallStreamChunk:
    """A call in a response that is still arriving.

    Attributes:
        id: The call's.
        type: The kind of tool.
        function_name: The function's name so far.
        arguments: The arguments so far, as JSON.
        index: The call's number in the response.
        is_complete: Whether the call is complete.
    """

    id: str
    type: str = "function"
    function_name: str | None = None
    arguments: str | None = None
    index: int | None = None
    is_complete: bool = False


@dataclass(slots=True)
class StreamChunk:
    """A chunk of a response, and everything that has arrived before.

    Attributes:
        type: Always `stream_chunk`.
        chunk: As the provider sent it.
        agent_id: The agent that answers.
        content: The text of this chunk, with its thinking tags.
        buffered_content: All text so far.
        reasoning_content: The thinking in this chunk.
        buffered_reasoning_content: All thinking so far.
        function_calls_detected: True once there is a call, False at the end of a response without one, None before.
        reinvoked: Whether the agent answers again after calls.
        tool_calls: The calls that became complete with this chunk.
        streaming_tool_calls: The calls that are not complete yet.
    """

    type: str = "stream_chunk"
    chunk: ProviderChunk | None = None
    agent_id: str = ""
    content: str | None = None
    buffered_content: str | None = None
    reasoning_content: str | None = None
    buffered_reasoning_content: str | None = None
    function_calls_detected: bool | None = None
    reinvoked: bool = False
    tool_calls: list[ToolCallStreamChunk] | None = None
    streaming_tool_calls: list[ToolCallStreamChunk] | None = None

    @property
    def gemini_content(self) -> str | None:
        """The text of a chunk in Google's format, without thoughts; None if it has none or is in another format."""
        return gemini_text(self.chunk)

    @property
    def is_thinking(self) -> bool:
        """Whether the text so far ends inside a thinking tag (`<think>`, `<reasoning>`...)."""
        return inside_thinking(self.buffered_content or "")


@dataclass(slots=True)
class FunctionDetection:
    """A response contains calls.

    Attributes:
        type: Always `function_detection`.
        message: The event as a text for people.
        agent_id: The agent whose response it is.
    """

    type: str = "function_detection"
    message: str = ""
    agent_id: str = ""


@dataclass(slots=True)
class FunctionCallsExtracted:
    """The calls of a response are known, and none has begun.

    Attributes:
        type: Always `function_calls_extracted`.
        function_calls: The calls, in order.
        agent_id: The agent that makes them.
    """

    type: str = "function_calls_extracted"
    function_calls: list[FunctionCallInfo] = field(default_factory=list)
    agent_id: str = ""


@dataclass(slots=True)
class FunctionExecutionStart:
    """A function begins to run.

    Attributes:
        type: Always `function_execution_start`.
        function_name: The function.
        function_id: The call's id.
        progress: The number of this call among those that have begun, and the size of the batch: `1/3`.
        agent_id: The agent that made the call.
    """

    type: str = "function_execution_start"
    function_name: str = ""
    function_id: str = ""
    progress: str = ""
    agent_id: str = ""


@dataclass(slots=True)
class FunctionExecutionComplete:
    """A call has ended. If it has no start event, it never began.

    Attributes:
        type: Always `function_execution_complete`.
        function_name: The function.
        function_id: The call's id.
        status: The value of its `ExecutionStatus`, such as `success`.
        result: What it returned.
        error: The error, if it failed.
        agent_id: The agent that made the call.
    """

    type: str = "function_execution_complete"
    function_name: str = ""
    function_id: str = ""
    status: str = ""
    result: Any | None = None
    error: str | None = None
    agent_id: str = ""


@dataclass(slots=True)
class AgentSwitch:
    """Another agent takes over. A function requests that by returning one.

    Attributes:
        type: Always `agent_switch`.
        from_agent: The agent that was asked before.
        to_agent: The agent that is asked from now on.
        reason: The reason for the switch.
    """

    type: str = "agent_switch"
    from_agent: str = ""
    to_agent: str = ""
    reason: str = ""


@dataclass(slots=True)
class ReinvokeSignal:
    """An agent is asked again, with the results of the calls.

    Attributes:
        message: The event as a text for people.
        agent_id: The agent.
        type: Always `reinvoke_signal`.
    """

    message: str
    agent_id: str
    type: str = "reinvoke_signal"


@dataclass(slots=True)
class Completion:
    """The answer is complete.

    Attributes:
        type: Always `completion`.
        final_content: The text of the last response, without thinking.
        reasoning_content: All thinking.
        function_calls_executed: How many calls began.
        agent_id: The agent that answered last.
        execution_history: The events before this one, except chunks.
    """

    type: str = "completion"
    final_content: str = ""
    reasoning_content: str = ""
    function_calls_executed: int = 0
    agent_id: str = ""
    execution_history: list[Any] = field(default_factory=list)


StreamEvent: TypeAlias = (
    StreamChunk
    | FunctionDetection
    | FunctionCallsExtracted
    | FunctionExecutionStart
    | FunctionExecutionComplete
    | AgentSwitch
    | ReinvokeSignal
    | Completion
)
"""Any event that a stream may yield."""


@dataclass(slots=True)
class ResponseResult:
    """A whole answer, for callers that do not use a stream.

    Attributes:
        content: The text of the last response, without thinking.
        response: The last response, as the provider sent it; if it came in chunks, the last chunk.
        completion: The stream's last event.
        reasoning_content: All thinking.
        function_calls: All calls, with their results.
        agent_id: The agent that answered last.
        execution_history: The events, except chunks.
        reinvoked: Whether an agent was asked again after calls.
    """

    content: str
    response: ProviderResponse
    completion: Completion
    reasoning_content: str = ""
    function_calls: list[RequestFunctionCall] = field(default_factory=list)
    agent_id: str = ""
    execution_history: list[Any] = field(default_factory=list)
    reinvoked: bool = False
