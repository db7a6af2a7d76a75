"""calute's `function_execution_types`.

Where it has the response types of two SDKs, ours is `Any`, which needs neither: see the page in docs/.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

HERE = "deskhand.execution"

ChatCompletion = ChatCompletionChunk = GenerateContentResponse = Any


def _new_id() -> str:
    return "an id"


class AgentSwitchTrigger(Enum):
    EXPLICIT = "explicit"
    CAPABILITY_BASED = "capability"
    LOAD_BALANCING = "load"
    CONTEXT_BASED = "context"
    ERROR_RECOVERY = "error"
    CUSTOM = "custom"
    CAPABILITY_REQUIRED = "capability"  # noqa: PIE796 # an alias, as documented


class CompactionStrategy(Enum):
    SUMMARIZE = "summarize"
    SLIDING_WINDOW = "sliding_window"
    PRIORITY_BASED = "priority_based"
    TRUNCATE = "truncate"


class ExecutionStatus(Enum):
    SUCCESS = "success"
    FAILURE = "failure"
    PARTIAL = "partial"
    PENDING = "pending"
    CANCELLED = "cancelled"
    FAILED = "failure"  # noqa: PIE796 # an alias, as documented


class FunctionCallStrategy(Enum):
    SEQUENTIAL = "sequential"
    PARALLEL = "parallel"
    CONDITIONAL = "conditional"
    PIPELINE = "pipeline"


@dataclass
class AgentCapability:
    name: str
    description: str
    function_names: list[str] = field(default_factory=list)
    context_requirements: dict[str, Any] = field(default_factory=dict)
    performance_score: float = 1.0


@dataclass
class AgentSwitch:
    type: str = "agent_switch"
    from_agent: str = ""
    to_agent: str = ""
    reason: str = ""


@dataclass
class Completion:
    type: str = "completion"
    final_content: str = ""
    reasoning_content: str = ""
    function_calls_executed: int = 0
    agent_id: str = ""
    execution_history: list[Any] = field(default_factory=list)


@dataclass
class ExecutionResult:
    status: ExecutionStatus
    result: Any | None = None
    error: str | None = None


@dataclass
class FunctionCallInfo:
    name: str
    id: str


@dataclass
class FunctionCallsExtracted:
    type: str = "function_calls_extracted"
    function_calls: list[FunctionCallInfo] = field(default_factory=list)
    agent_id: str = ""


@dataclass
class FunctionDetection:
    type: str = "function_detection"
    message: str = ""
    agent_id: str = ""


@dataclass
class FunctionExecutionComplete:
    type: str = "function_execution_complete"
    function_name: str = ""
    function_id: str = ""
    status: str = ""
    result: Any | None = None
    error: str | None = None
    agent_id: str = ""


@dataclass
class FunctionExecutionStart:
    type: str = "function_execution_start"
    function_name: str = ""
    function_id: str = ""
    progress: str = ""
    agent_id: str = ""


@dataclass
class ReinvokeSignal:
    message: str
    agent_id: str
    type: str = "reinvoke_signal"


# `arguments` is documented as a dict, of whatever.
@dataclass
class RequestFunctionCall:
    name: str
    arguments: dict[str, Any]
    id: str = field(default_factory=_new_id)
    call_id: str | None = None
    agent_id: str | None = None
    dependencies: list[str] = field(default_factory=list)
    timeout: float | None = None
    retry_count: int = 0
    max_retries: int = 3
    status: ExecutionStatus = ExecutionStatus.PENDING
    result: Any = None
    error: str | None = None


@dataclass
class ResponseResult:
    content: str
    response: ChatCompletion
    completion: Completion
    reasoning_content: str = ""
    function_calls: list[RequestFunctionCall] = field(default_factory=list)
    agent_id: str = ""
    execution_history: list[Any] = field(default_factory=list)
    reinvoked: bool = False


@dataclass
class ToolCallStreamChunk:
    id: str
    type: str = "function"
    function_name: str | None = None
    arguments: str | None = None
    index: int | None = None
    is_complete: bool = False


@dataclass
class StreamChunk:
    type: str = "stream_chunk"
    chunk: ChatCompletionChunk | GenerateContentResponse | None = None
    agent_id: str = ""
    content: str | None = None
    buffered_content: str | None = None
    reasoning_content: str | None = None
    buffered_reasoning_content: str | None = None
    function_calls_detected: bool | None = None
    reinvoked: bool = False
    tool_calls: list[ToolCallStreamChunk] | None = None
    streaming_tool_calls: list[ToolCallStreamChunk] | None = None


@dataclass
class SwitchContext:
    function_results: list[ExecutionResult]
    execution_error: bool
    buffered_content: str | None = None
