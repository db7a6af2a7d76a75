"""Calls as others carry them, made requests of and carried out."""

from __future__ import annotations

import asyncio

import pytest

from deskhand import BadPlan, Desktop
from deskhand._core.events import ButtonDown, KeyDown
from deskhand.backends.memory import MemoryBackend
from deskhand.execution import ExecutionStatus, Executor, RequestFunctionCall, ToolCallStreamChunk, request_of
from deskhand.execution.tool_calls import AIToolCall, CUDrag, CUKeypress, CULeftMouseClick, CUScreenshot


def test_a_tool_call_keeps_its_name_arguments_and_id() -> None:
    for arguments in ({"query": "test"}, '{"query": "test"}'):
        request = request_of(AIToolCall("search", arguments, "call_1"), "agent")
        assert request == RequestFunctionCall("search", {"query": "test"}, call_id="call_1", agent_id="agent")
    assert request_of(AIToolCall("search", {})).id, "one is made where the provider gives none"
    chunk = ToolCallStreamChunk("call_1", function_name="search", arguments='{"query": "test"}', is_complete=True)
    assert request_of(chunk) == RequestFunctionCall("search", {"query": "test"}, call_id="call_1")
    assert request_of(ToolCallStreamChunk("call_1", function_name="search")).arguments == {}


@pytest.mark.parametrize(("arguments", "why"), [("{", "not complete JSON: '{'"), ("[1]", "not a JSON object: [1]")])
def test_what_cannot_be_read_has_failed(arguments: str, why: str) -> None:
    request = request_of(AIToolCall("search", arguments, "call_1"))
    assert (request.status, request.error) == (
        ExecutionStatus.FAILURE,
        f"search was not called: its arguments are {why}",
    )
    (result,) = asyncio.run(Executor({"search": print}).execute([request]))
    assert result.error == request.error


def test_what_the_provider_does_is_not_done_here() -> None:
    with pytest.raises(BadPlan, match="the provider carries out search itself") as refused:
        request_of(AIToolCall("search", {}, "call_1", requires_local_execution=False))
    assert refused.value.calls == ("call_1",)
    click = CULeftMouseClick(None, None, None)
    click.requires_local_execution = False
    with pytest.raises(BadPlan):
        request_of(click)


def test_an_action_is_a_call_of_its_name_or_of_a_desktops() -> None:
    click = CULeftMouseClick("browser", object(), "call_1", (10, 20))
    assert request_of(click) == RequestFunctionCall("left_mouse_click", {"xy": (10, 20)}, call_id="call_1")
    assert request_of(click, computer="screen").arguments == {"action": "left_mouse_click", "xy": (10, 20)}
    assert request_of(click, computer="screen").name == "screen"
    assert request_of(CUScreenshot(None, None, "call_1")).arguments == {}


def test_actions_are_carried_out_where_they_belong() -> None:
    backend = MemoryBackend((320, 200))
    backend.on_wait = lambda _seconds: None
    ticks = iter(range(10**9))
    calls = [
        CULeftMouseClick("browser", None, "c1", (10, 20)),
        CUDrag("browser", None, "c2", [(1, 2), (30, 40)]),
        CUKeypress("browser", None, "c3", ["ctrl", "a"]),
        AIToolCall("right_click", '{"xy": [5, 6]}', "c4"),
    ]
    with Desktop(backend, clock=lambda: next(ticks) / 1000) as desktop:
        results = asyncio.run(Executor(desktops=desktop).execute([request_of(call) for call in calls]))
    assert [result.status for result in results] == [ExecutionStatus.SUCCESS] * 4, results
    assert sum(isinstance(event, ButtonDown) for event in backend.events) == 3
    assert sum(isinstance(event, KeyDown) for event in backend.events) == 2
