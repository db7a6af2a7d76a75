"""Turns calls of other formats into requests: tool calls of `deskhand.execution.tool_calls`, and calls of a stream. Pure.

The arguments are not checked against the function here.

    >>> request_of(AIToolCall("search", '{"query": "test"}', "call_1"))
    RequestFunctionCall(name='search', arguments={'query': 'test'}, id='call_1', call_id='call_1', ...)
    >>> request_of(CULeftMouseClick("browser", page, "call_2", (10, 20))).arguments
    {'xy': (10, 20)}

An action on a computer becomes a call of the function with the action's name, which an executor with a single desktop has,
or of another function, which gets the action as its argument `action`.
"""

from __future__ import annotations

import json
from typing import Any

from deskhand._core.arguments import expect
from deskhand.errors import BadPlan, shown
from deskhand.execution.stream_events import ToolCallStreamChunk
from deskhand.execution.tool_calls import AIToolCall, CUAction
from deskhand.execution.types import ExecutionStatus, RequestFunctionCall


def request_of(
    call: AIToolCall | CUAction | ToolCallStreamChunk, agent_id: str | None = None, *, computer: str | None = None
) -> RequestFunctionCall:
    """Make a request of a call. If its arguments cannot be read, the request has already failed, and the model gets the error.

    Args:
        call: The call.
        agent_id: The agent that makes the call.
        computer: The function that carries out actions on a computer; None for the functions with the actions' own names.

    Raises:
        BadPlan: The provider carries out the call itself.
    """
    if isinstance(call, CUAction):
        _check_local(call)
        fields = {name: value for name, value in call.safe_asdict().items() if name != "type" and value is not None}
        arguments = fields if computer is None else {"action": call.name, **fields}
        return _request(computer or call.name, arguments, call.call_id, agent_id)
    if isinstance(call, AIToolCall):
        _check_local(call)
        name, given, call_id = call.name, call.arguments_as_str, call.call_id
    else:
        expect("request_of: call", call, ToolCallStreamChunk)
        name, given, call_id = call.function_name or "", call.arguments or "{}", call.id
    found = whole_arguments(given)
    if isinstance(found, str):
        return failed_request(name, call_id, agent_id, found)
    return _request(name, found, call_id, agent_id)


def failed_request(name: str, call_id: str | None, agent_id: str | None, why: str) -> RequestFunctionCall:
    """A call that cannot be made: it has already failed, and an executor returns it unchanged."""
    request = _request(name, {}, call_id, agent_id)
    request.status = ExecutionStatus.FAILURE
    request.error = f"{name} was not called: {why}"
    return request


def whole_arguments(text: str) -> dict[str, Any] | str:
    """The arguments in a JSON text, or the reason why there are none."""
    try:
        arguments = json.loads(text)
    except (ValueError, RecursionError):
        return f"its arguments are not complete JSON: {shown(text)}"
    return arguments if isinstance(arguments, dict) else f"its arguments are not a JSON object: {shown(arguments)}"


def _request(name: str, arguments: dict[str, Any], call_id: str | None, agent_id: str | None) -> RequestFunctionCall:
    return RequestFunctionCall(name, arguments, call_id=call_id, agent_id=agent_id)


def _check_local(call: AIToolCall | CUAction) -> None:
    if not call.requires_local_execution:
        raise BadPlan(f"the provider carries out {call.name} itself", (call.call_id,) if call.call_id else ())
