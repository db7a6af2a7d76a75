"""Function calls of agents, their results, and the events that report both. Pure.

The classes have the names, fields, order, types and defaults that agent runtimes expect, so they are mutable: a runtime sets
`call.status`. A provider's chunk or response is passed through, and read only by two properties of `StreamChunk`. Nothing is
carried out here, and no SDK is imported.

    >>> call = RequestFunctionCall("search", {"query": "test"}, call_id="call_1")
    >>> call.id
    'call_1'
    >>> call.status = ExecutionStatus.SUCCESS
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, TypeAlias
from uuid import uuid4

ProviderChunk: TypeAlias = Any
"""OpenAI's `ChatCompletionChunk` or Google's `GenerateContentResponse`; neither package is needed here."""

ProviderResponse: TypeAlias = Any
"""A whole response in either format."""


def new_id() -> str:
    """A new unique id."""
    return str(uuid4())


# --- kinds ---


class FunctionCallStrategy(Enum):
    """How the calls of a batch are carried out; see `deskhand.execution.schedule` for the rules.

    Attributes:
        SEQUENTIAL: One after the other.
        PARALLEL: All at once.
        CONDITIONAL: Each as soon as the calls that it depends on have succeeded.
        PIPELINE: One after the other, each with the output of the one before.
    """

    SEQUENTIAL = "sequential"
    PARALLEL = "parallel"
    CONDITIONAL = "conditional"
    PIPELINE = "pipeline"


class AgentSwitchTrigger(Enum):
    """Why another agent takes over.

    Attributes:
        EXPLICIT: A call or the program requested it.
        CAPABILITY_BASED: The other agent has the capability that is needed.
        LOAD_BALANCING: The other agent has less to do.
        CONTEXT_BASED: A rule about the conversation so far.
        ERROR_RECOVERY: A call failed.
        CUSTOM: A rule of the caller.
        CAPABILITY_REQUIRED: The same as CAPABILITY_BASED.
    """

    EXPLICIT = "explicit"
    CAPABILITY_BASED = "capability"
    LOAD_BALANCING = "load"
    CONTEXT_BASED = "context"
    ERROR_RECOVERY = "error"
    CUSTOM = "custom"
    CAPABILITY_REQUIRED = "capability"  # noqa: PIE796 # an intended alias


class CompactionStrategy(Enum):
    """How to shorten a conversation that has become too long; see `deskhand.execution.compaction`.

    Attributes:
        SUMMARIZE: A summary replaces the oldest messages.
        SLIDING_WINDOW: The newest messages stay.
        PRIORITY_BASED: The least important messages go first.
        TRUNCATE: The oldest messages go first, and texts that are still too long are cut.
    """

    SUMMARIZE = "summarize"
    SLIDING_WINDOW = "sliding_window"
    PRIORITY_BASED = "priority_based"
    TRUNCATE = "truncate"


class ExecutionStatus(Enum):
    """The status of a call.

    Attributes:
        SUCCESS: It was done.
        FAILURE: It failed; effects from before the failure may remain.
        PARTIAL: Some of it was done.
        PENDING: It has not ended yet.
        CANCELLED: It was stopped, or never began.
        FAILED: The same as FAILURE.
    """

    SUCCESS = "success"
    FAILURE = "failure"
    PARTIAL = "partial"
    PENDING = "pending"
    CANCELLED = "cancelled"
    FAILED = "failure"  # noqa: PIE796 # an intended alias


# --- calls ---


@dataclass(slots=True)
class AgentCapability:
    """A capability of an agent.

    Attributes:
        name: Its name for people.
        description: What it is good for.
        function_names: The functions that belong to it.
        context_requirements: The values that the context must have, by name, for the capability to apply.
        performance_score: How well the agent does it, 0.0...1.0.
    """

    FUNCTION_CALLING: ClassVar[AgentCapability]

    name: str
    description: str
    function_names: list[str] = field(default_factory=list)
    context_requirements: dict[str, Any] = field(default_factory=dict)
    performance_score: float = 1.0


AgentCapability.FUNCTION_CALLING = AgentCapability("function_calling", "Can use tools and function calls")


@dataclass(slots=True)
class RequestFunctionCall:
    """A request to call a function.

    Attributes:
        name: The function's name.
        arguments: The arguments, by name.
        id: The unique id of this call; made if it is not given.
        call_id: The same under the name that providers use. It wins over `id` if both are given. Setting either changes both;
            setting None changes neither.
        agent_id: The agent that made the call.
        dependencies: Ids of the calls that must have succeeded before.
        timeout: Seconds for each try; None for no end.
        retry_count: How often it was repeated.
        max_retries: How often it may be repeated, if its function is repeatable.
        status: Its status.
        result: What it returned.
        error: The error, if it failed.
    """

    name: str
    arguments: dict[str, Any]
    id: str = field(default_factory=new_id)
    call_id: str | None = None
    agent_id: str | None = None
    dependencies: list[str] = field(default_factory=list)
    timeout: float | None = None
    retry_count: int = 0
    max_retries: int = 3
    status: ExecutionStatus = ExecutionStatus.PENDING
    result: Any = None
    error: str | None = None

    def __setattr__(self, name: str, value: object) -> None:
        """Set a field; `id` and `call_id` are set together."""
        if name not in ("id", "call_id"):
            object.__setattr__(self, name, value)
        elif value is not None:
            object.__setattr__(self, "id", value)
            object.__setattr__(self, "call_id", value)


@dataclass(slots=True)
class ExecutionResult:
    """The result of a call.

    Attributes:
        status: How it ended.
        result: What it returned.
        error: The error, if it failed.
    """

    status: ExecutionStatus
    result: Any | None = None
    error: str | None = None


@dataclass(slots=True)
class SwitchContext:
    """The input for deciding whether another agent takes over.

    Attributes:
        function_results: The results of the last calls, in order.
        execution_error: Whether one of them did not succeed.
        buffered_content: The text of the agent's last response.
    """

    function_results: list[ExecutionResult]
    execution_error: bool
    buffered_content: str | None = None


@dataclass(slots=True)
class FunctionCallInfo:
    """The call that an event is about.

    Attributes:
        name: The function.
        id: The call's.
    """

    name: str
    id: str
