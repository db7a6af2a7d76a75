"""What is streamed while a model answers and its calls are carried out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from deskhand.execution.chunks import gemini_text, inside_thinking

# At run time too: `typing.get_type_hints` looks the types of fields up here.
from deskhand.execution.types import (  # noqa: TC001
    FunctionCallInfo,
    ProviderChunk,
    ProviderResponse,
    RequestFunctionCall,
)

__all__ = [
    "AgentSwitch",
    "Completion",
    "FunctionCallsExtracted",
    "FunctionDetection",
    "FunctionExecutionComplete",
    "FunctionExecutionStart",
    "ReinvokeSignal",
    "ResponseResult",
    "StreamChunk",
    "StreamEvent",
    "ToolCallStreamChunk",
]


@dataclass(slots=True)
class ToolCallStreamChunk:
    """A call in a response that is still coming.

    Attributes:
        id: The call's.
        type: What kind of tool it is.
        function_name: The function, as far as it is known.
        arguments: The arguments so far, as JSON.
        index: Which of the response's calls it is.
        is_complete: Whether nothing is missing any more.
    """

    id: str
    type: str = "function"
    function_name: str | None = None
    arguments: str | None = None
    index: int | None = None
    is_complete: bool = False


@dataclass(slots=True)
class StreamChunk:
    """A chunk of a response, and what came together so far.

    Attributes:
        type: Always `stream_chunk`.
        chunk: As the provider sent it.
        agent_id: Who is speaking.
        content: The text of this chunk, with its thinking tags.
        buffered_content: All text so far.
        reasoning_content: What of this chunk is thought.
        buffered_reasoning_content: All thought so far.
        function_calls_detected: True once there is a call, False at the end of a response without one, None before.
        reinvoked: Whether the agent speaks again after calls.
        tool_calls: The calls that became complete with this chunk.
        streaming_tool_calls: The calls of which something is missing yet.
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
        """The text of a chunk in Google's format, without thoughts; None where it has none, or another format."""
        return gemini_text(self.chunk)

    @property
    def is_thinking(self) -> bool:
        """Whether the text so far ends inside of a thinking tag (`<think>`, `<reasoning>`...)."""
        return inside_thinking(self.buffered_content or "")


@dataclass(slots=True)
class FunctionDetection:
    """A response has calls in it.

    Attributes:
        type: Always `function_detection`.
        message: The same for people.
        agent_id: Whose response it is.
    """

    type: str = "function_detection"
    message: str = ""
    agent_id: str = ""


@dataclass(slots=True)
class FunctionCallsExtracted:
    """The calls of a response are known, and none was begun.

    Attributes:
        type: Always `function_calls_extracted`.
        function_calls: Which they are, in their order.
        agent_id: Who asks for them.
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
        progress: The how-manieth call of the batch this is that begins, of how many: `1/3`.
        agent_id: For whom.
    """

    type: str = "function_execution_start"
    function_name: str = ""
    function_id: str = ""
    progress: str = ""
    agent_id: str = ""


@dataclass(slots=True)
class FunctionExecutionComplete:
    """A call has ended; without a start before it, it was never begun.

    Attributes:
        type: Always `function_execution_complete`.
        function_name: The function.
        function_id: The call's id.
        status: The value of its `ExecutionStatus`, such as `success`.
        result: What it returned.
        error: What went wrong.
        agent_id: For whom.
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
    """Another agent takes over. A function that returns one asks for it.

    Attributes:
        type: Always `agent_switch`.
        from_agent: Who had the word.
        to_agent: Who has it now.
        reason: Why.
    """

    type: str = "agent_switch"
    from_agent: str = ""
    to_agent: str = ""
    reason: str = ""


@dataclass(slots=True)
class ReinvokeSignal:
    """An agent is asked again, with what came of the calls.

    Attributes:
        message: The same for people.
        agent_id: Which one.
        type: Always `reinvoke_signal`.
    """

    message: str
    agent_id: str
    type: str = "reinvoke_signal"


@dataclass(slots=True)
class Completion:
    """The whole answer is there.

    Attributes:
        type: Always `completion`.
        final_content: What was said last, without what was thought.
        reasoning_content: All that was thought.
        function_calls_executed: How many calls were begun.
        agent_id: Who spoke last.
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
"""All that a stream may yield."""


@dataclass(slots=True)
class ResponseResult:
    """A whole answer, for who does not want a stream.

    Attributes:
        content: What was said last, without what was thought.
        response: The last response, as the provider sent it; of one that came in chunks, the last of them.
        completion: The stream's last event.
        reasoning_content: All that was thought.
        function_calls: All calls, with what came of them.
        agent_id: Who spoke last.
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
