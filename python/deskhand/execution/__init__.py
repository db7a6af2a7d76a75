"""Function calls of agents: the types, how a batch of calls is carried out, and the events that report it.

- `types`: calls, results, events and chunks, under the names that agent runtimes use;
- `executor`: an `Executor` carries out batches: SEQUENTIAL, PARALLEL, CONDITIONAL or PIPELINE (`schedule` has the rules),
  with conditions, timeouts, repetitions (`retries`), cancellation and events, on functions and desktops (`functions`);
- `requests`: turns calls of other formats into requests;
- `streaming`: assembles responses that arrive in chunks, in OpenAI's format or Google's;
- `conversation`: asks models until a response has no calls, with switches of agents (`switching`);
- `compaction`: shortens histories, in every format that `histories` reads; `remembered` makes messages of a turn.

    >>> executor = Executor([search], desktops=desktop)
    >>> await executor.execute([RequestFunctionCall("computer", {"action": "left_mouse_click", "xy": [10, 20]})])

An SDK is never imported here.
"""

from __future__ import annotations

from deskhand.execution.compaction import compact, compact_async
from deskhand.execution.compaction_options import Compacted, Compaction, estimate_tokens
from deskhand.execution.conversation import Ask, Conversation, Turn
from deskhand.execution.executor import Executor, failed, succeeded
from deskhand.execution.functions import Function
from deskhand.execution.requests import request_of
from deskhand.execution.retries import Backoff
from deskhand.execution.run import ExecutionEvent, Run, When
from deskhand.execution.schedule import overall_status
from deskhand.execution.stream_events import (
    AgentSwitch,
    Completion,
    FunctionCallsExtracted,
    FunctionDetection,
    FunctionExecutionComplete,
    FunctionExecutionStart,
    ReinvokeSignal,
    ResponseResult,
    StreamChunk,
    StreamEvent,
    ToolCallStreamChunk,
)
from deskhand.execution.streaming import Accumulator
from deskhand.execution.switching import Agent, Switchboard, SwitchRule
from deskhand.execution.types import (
    AgentCapability,
    AgentSwitchTrigger,
    CompactionStrategy,
    ExecutionResult,
    ExecutionStatus,
    FunctionCallInfo,
    FunctionCallStrategy,
    RequestFunctionCall,
    SwitchContext,
)

__all__ = [
    "Accumulator",
    "Agent",
    "AgentCapability",
    "AgentSwitch",
    "AgentSwitchTrigger",
    "Ask",
    "Backoff",
    "Compacted",
    "Compaction",
    "CompactionStrategy",
    "Completion",
    "Conversation",
    "ExecutionEvent",
    "ExecutionResult",
    "ExecutionStatus",
    "Executor",
    "Function",
    "FunctionCallInfo",
    "FunctionCallStrategy",
    "FunctionCallsExtracted",
    "FunctionDetection",
    "FunctionExecutionComplete",
    "FunctionExecutionStart",
    "ReinvokeSignal",
    "RequestFunctionCall",
    "ResponseResult",
    "Run",
    "StreamChunk",
    "StreamEvent",
    "SwitchContext",
    "SwitchRule",
    "Switchboard",
    "ToolCallStreamChunk",
    "Turn",
    "When",
    "compact",
    "compact_async",
    "estimate_tokens",
    "failed",
    "overall_status",
    "request_of",
    "succeeded",
]
