"""Function calls of agents, what came of them, and the events that tell of both. Pure.

The classes have the names, fields, order, types and defaults that agent runtimes know them by, so they are mutable: a runtime
sets `call.status`. A chunk or response of a provider's is carried, never looked into except by `StreamChunk`'s two
properties. What must never appear here: what is done with any of it, an SDK.

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

__all__ = [
    "AgentCapability",
    "AgentSwitchTrigger",
    "CompactionStrategy",
    "ExecutionResult",
    "ExecutionStatus",
    "FunctionCallInfo",
    "FunctionCallStrategy",
    "RequestFunctionCall",
    "SwitchContext",
    "new_id",
]

ProviderChunk: TypeAlias = Any
"""OpenAI's `ChatCompletionChunk` or Google's `GenerateContentResponse`, of which no package is needed here."""

ProviderResponse: TypeAlias = Any
"""A whole response in either format."""


def new_id() -> str:
    """An id that no other call has."""
    return str(uuid4())


# --- kinds ---


class FunctionCallStrategy(Enum):
    """How the calls of a batch are carried out; see `deskhand.execution.schedule` for the rules.

    Attributes:
        SEQUENTIAL: One after the other.
        PARALLEL: All at once.
        CONDITIONAL: Each as soon as what it depends on has succeeded.
        PIPELINE: One after the other, each with what the one before returned.
    """

    SEQUENTIAL = "sequential"
    PARALLEL = "parallel"
    CONDITIONAL = "conditional"
    PIPELINE = "pipeline"


class AgentSwitchTrigger(Enum):
    """Why another agent takes over.

    Attributes:
        EXPLICIT: Somebody said so.
        CAPABILITY_BASED: The other one can do what is needed.
        LOAD_BALANCING: The other one has less to do.
        CONTEXT_BASED: What was said so far.
        ERROR_RECOVERY: Something went wrong.
        CUSTOM: A rule of the caller's.
        CAPABILITY_REQUIRED: The same as CAPABILITY_BASED.
    """

    EXPLICIT = "explicit"
    CAPABILITY_BASED = "capability"
    LOAD_BALANCING = "load"
    CONTEXT_BASED = "context"
    ERROR_RECOVERY = "error"
    CUSTOM = "custom"
    CAPABILITY_REQUIRED = "capability"  # noqa: PIE796 # an alias, which is meant


class CompactionStrategy(Enum):
    """How a conversation that has become too long is made shorter; see `deskhand.execution.compaction`.

    Attributes:
        SUMMARIZE: What is old is replaced by a summary.
        SLIDING_WINDOW: The newest messages stay.
        PRIORITY_BASED: What matters least goes first.
        TRUNCATE: What is oldest goes first, and what is still too long is cut.
    """

    SUMMARIZE = "summarize"
    SLIDING_WINDOW = "sliding_window"
    PRIORITY_BASED = "priority_based"
    TRUNCATE = "truncate"


class ExecutionStatus(Enum):
    """How a call stands, or ended.

    Attributes:
        SUCCESS: It was done.
        FAILURE: It failed; what it had done before may stay.
        PARTIAL: Some of it was done.
        PENDING: It has not ended yet.
        CANCELLED: It was stopped, or never begun.
        FAILED: The same as FAILURE.
    """

    SUCCESS = "success"
    FAILURE = "failure"
    PARTIAL = "partial"
    PENDING = "pending"
    CANCELLED = "cancelled"
    FAILED = "failure"  # noqa: PIE796 # an alias, which is meant


# --- calls ---


@dataclass(slots=True)
class AgentCapability:
    """What an agent can do.

    Attributes:
        name: For people.
        description: What it is good for.
        function_names: The functions that belong to it.
        context_requirements: What must be so, by name, for it to be of use.
        performance_score: How well it does it, 0.0...1.0.
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
    """A function that is to be called.

    Attributes:
        name: The function's.
        arguments: What it is called with, by name.
        id: What tells this call from all others; made if it is not given.
        call_id: The same under the name that providers use. Given, it wins over `id`; whichever is set, both change. None
            leaves it as it is.
        agent_id: Who asked for it.
        dependencies: Ids of the calls that must have succeeded before.
        timeout: Seconds for each try; None for no end.
        retry_count: How often it was repeated.
        max_retries: How often it may be repeated, if its function may be at all.
        status: How it stands.
        result: What it returned.
        error: What went wrong.
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

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a field; of `id` and `call_id`, both."""
        if name not in ("id", "call_id"):
            object.__setattr__(self, name, value)
        elif value is not None:
            object.__setattr__(self, "id", value)
            object.__setattr__(self, "call_id", value)


@dataclass(slots=True)
class ExecutionResult:
    """What came of a call.

    Attributes:
        status: How it ended.
        result: What it returned.
        error: What went wrong.
    """

    status: ExecutionStatus
    result: Any | None = None
    error: str | None = None


@dataclass(slots=True)
class SwitchContext:
    """What a switch of agents is decided by.

    Attributes:
        function_results: What came of the last calls, in their order.
        execution_error: Whether one of them did not succeed.
        buffered_content: What the agent had said.
    """

    function_results: list[ExecutionResult]
    execution_error: bool
    buffered_content: str | None = None


@dataclass(slots=True)
class FunctionCallInfo:
    """Which call an event is about.

    Attributes:
        name: The function.
        id: The call's.
    """

    name: str
    id: str
