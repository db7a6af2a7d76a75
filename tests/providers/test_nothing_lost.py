"""What a model sends is done or told, by every provider: buttons, keys that are held, places, repetitions; several pictures."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from deskhand import Desktop
from deskhand import actions as a
from deskhand._core.events import Button, ButtonDown
from deskhand.backends.memory import MemoryBackend
from deskhand.errors import ActionError, DeskhandError, UnsupportedAction
from deskhand.providers import (
    agent_framework,
    anthropic,
    bedrock,
    cua,
    google,
    inspect_ai,
    langchain,
    mcp,
    openai,
    osworld,
)
from deskhand.providers.bedrock import agentcore, agents
from deskhand.providers.cua.commands import Commands
from deskhand.providers.values import Picture, ProviderCall, Result
from providers.strategies import VIEWPORT

if TYPE_CHECKING:
    from collections.abc import Callable


def _openai(action: dict[str, Any]) -> dict[str, Any]:
    return {"type": "computer_call", "call_id": "c", "actions": [action]}


def _cua(action: dict[str, Any]) -> dict[str, Any]:
    return {"type": "computer_call", "call_id": "c", "status": "completed", "action": action}


def _member(given: dict[str, Any]) -> dict[str, Any]:
    rest = dict(given)
    return {"type": "tool_use", "id": "c", "name": rest.pop("action"), "toolset_name": "computer", "input": rest}


def _flat(given: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "id": "c", "name": "computer", "input": given}


def _converse(given: dict[str, Any]) -> dict[str, Any]:
    return {"toolUse": {"toolUseId": "c", "name": "computer", "input": given}}


def _agents(given: dict[str, Any]) -> dict[str, Any]:
    parameters = [{"name": name, "type": "string", "value": str(value)} for name, value in given.items()]
    return {"functionInvocationInput": {"actionGroup": "g", "function": "computer", "parameters": parameters}}


def _google(given: dict[str, Any]) -> dict[str, Any]:
    rest = dict(given)
    return {"name": rest.pop("name"), "args": rest}


def _content(given: dict[str, Any]) -> dict[str, Any]:
    return {"type": "computer_call", "call_id": "c", **given}


def _mcp(given: dict[str, Any]) -> dict[str, Any]:
    rest = dict(given)
    return {"name": rest.pop("name"), "arguments": rest}


def _langchain(given: dict[str, Any]) -> dict[str, Any]:
    rest = dict(given)
    return {"type": "tool_call", "id": "c", "name": rest.pop("name"), "args": rest}


def _same(given: Any) -> Any:
    return given


Read = tuple["Callable[..., ProviderCall]", "Callable[[Any], Any]"]
OPENAI: Read = (openai.decode, _openai)
CUA: Read = (cua.decode, _cua)
TOOLSET: Read = (anthropic.decode, _member)
FLAT: Read = (anthropic.decode, _flat)
CONVERSE: Read = (bedrock.decode, _converse)
AGENTS: Read = (agents.decode, _agents)
CORE: Read = (agentcore.decode, _same)
GOOGLE: Read = (google.decode, _google)
CONTENT: Read = (agent_framework.decode, _content)
INSPECT: Read = (inspect_ai.decode, _same)
MCP: Read = (mcp.decode, _mcp)
LANGCHAIN: Read = (langchain.decode, _langchain)
COMPUTER_13: Read = (osworld.decode, _same)


def _id(value: object) -> str:
    """The same in each process: the name of whoever reads, or the value."""
    return value[0].__module__.split(".")[2] if isinstance(value, tuple) and callable(value[0]) else str(value)


DOUBLE = a.DoubleClick((10, 20), button="right")
TRIPLE = a.TripleClick((10, 20), button="middle")


@pytest.mark.parametrize(
    ("read", "given", "meant"),
    [
        (OPENAI, {"type": "double_click", "x": 10, "y": 20, "button": "right"}, DOUBLE),
        (CUA, {"type": "double_click", "x": 10, "y": 20, "button": "right"}, DOUBLE),
        (CORE, {"mouseClick": {"x": 10, "y": 20, "button": "RIGHT", "clickCount": 2}}, DOUBLE),
        (CORE, {"mouseClick": {"x": 10, "y": 20, "button": "MIDDLE", "clickCount": 3}}, TRIPLE),
        (CONTENT, {"action": "double_click", "coordinate": [10, 20], "button": "right"}, DOUBLE),
        (CONTENT, {"action": "triple_click", "coordinate": [10, 20], "button": "middle"}, TRIPLE),
        (MCP, {"name": "left_mouse_double_click", "xy": [10, 20], "button": "right"}, DOUBLE),
        (LANGCHAIN, {"name": "left_mouse_triple_click", "xy": [10, 20], "button": "middle"}, TRIPLE),
        (COMPUTER_13, {"action_type": "DOUBLE_CLICK", "x": 10, "y": 20, "button": "right"}, DOUBLE),
        (COMPUTER_13, {"action_type": "CLICK", "x": 10, "y": 20, "button": "middle", "num_clicks": 3}, TRIPLE),
        (COMPUTER_13, "import pyautogui\npyautogui.doubleClick(10, 20, button='right')", DOUBLE),
        (CUA, {"type": "scroll", "x": 1, "y": 2, "scroll_x": 0, "scroll_y": 100, "keys": ["CTRL"]},
         a.Scroll((1, 2), distance_xy=(0, 100), modifiers=["CTRL"])),
    ],
    ids=_id,
)  # fmt: skip
def test_a_button_and_keys_that_are_held_count(read: Read, given: Any, meant: a.Action) -> None:
    decode, around = read
    assert decode(around(given), VIEWPORT).steps == (meant,)


ENCODERS: dict[str, tuple[Callable[[ProviderCall], Any], Callable[..., ProviderCall], str | None]] = {
    "openai": (openai.encode_call, openai.decode, None),
    "anthropic": (anthropic.encode_call, anthropic.decode, None),
    "converse": (bedrock.encode_call, bedrock.decode, None),
    "agents": (agents.encode_call, agents.decode, None),
    "agentcore": (agentcore.encode_call, agentcore.decode, None),
    "google": (google.encode_call, google.decode, None),
    "contents": (agent_framework.encode_call, agent_framework.decode, None),
    "cua": (cua.encode_call, cua.decode, None),
    "inspect": (inspect_ai.encode_call, inspect_ai.decode, None),
    "mcp": (mcp.encode_call, mcp.decode, None),
    "langchain": (langchain.encode_call, langchain.decode, None),
    "computer_13": (osworld.encode_call, osworld.decode, "computer_13"),
    "pyautogui": (osworld.encode_call, osworld.decode, "pyautogui"),
}
SAYS_IT = {"agentcore", "contents", "cua", "mcp", "langchain", "computer_13", "pyautogui"}


@pytest.mark.parametrize("name", ENCODERS)
def test_a_double_click_of_another_button_is_said_or_refused(name: str) -> None:
    encode, decode, kind = ENCODERS[name]
    call = ProviderCall(steps=(DOUBLE,), viewport=VIEWPORT, id="call_1", name=kind)
    if name in SAYS_IT:
        assert decode(encode(call), VIEWPORT).steps == call.steps
    else:
        with pytest.raises(UnsupportedAction, match="double_click"):
            encode(call)


@pytest.mark.parametrize(
    ("read", "given", "lost"),
    [
        (OPENAI, {"type": "wait", "ms": 5000}, "ms"),
        (OPENAI, {"type": "type", "text": "x", "press_enter": True}, "press_enter"),
        (OPENAI, {"type": "keypress", "keys": ["a"], "x": 0, "y": 0}, "x, y"),
        (OPENAI, {"type": "click", "button": "left", "x": 1, "y": 2, "clicks": 2}, "clicks"),
        (CUA, {"type": "click", "x": 1, "y": 2, "modifiers": ["ctrl"]}, "modifiers"),
        (CUA, {"type": "keypress", "keys": ["a"], "repeat": 3}, "repeat"),
        (TOOLSET, {"action": "left_click", "coordinate": [1, 2], "button": "right"}, "button"),
        (FLAT, {"action": "double_click", "coordinate": [1, 2], "modifiers": "ctrl"}, "modifiers"),
        (CONVERSE, {"action": "type", "text": "x", "press_enter": True}, "press_enter"),
        (AGENTS, {"action": "left_click", "coordinate": "[1, 2]", "button": "right"}, "button"),
        (CORE, {"mouseMove": {"x": 1, "y": 2, "button": "LEFT"}}, "button"),
        (CORE, {"keyType": {"text": "x", "presses": 3}}, "presses"),
        (GOOGLE, {"name": "open_web_browser", "url": "https://example.org"}, "url"),
        (GOOGLE, {"name": "click", "x": 1, "y": 2, "button": "right"}, "button"),
        (GOOGLE, {"name": "scroll_document", "direction": "down", "magnitude": 10}, "magnitude"),
        (CONTENT, {"action": "click", "coordinate": [1, 2], "repeat": 2}, "repeat"),
        (INSPECT, {"action": "left_click", "coordinate": [1, 2], "press_enter": True}, "press_enter"),
        (INSPECT, {"action": "open_web_browser", "url": "https://example.org"}, "url"),
        (MCP, {"name": "type", "text": "x", "press_enter": True}, "press_enter"),
        (LANGCHAIN, {"name": "type", "text": "x", "press_enter": True}, "press_enter"),
        (COMPUTER_13, {"action_type": "MOUSE_DOWN", "button": "left", "x": 1, "y": 2}, "x, y"),
        (COMPUTER_13, {"action_type": "SCROLL", "dx": 0, "dy": 1, "x": 1, "y": 2}, "x, y"),
    ],
    ids=_id,
)
def test_what_an_action_does_not_take_and_would_change_it_is_refused(read: Read, given: Any, lost: str) -> None:
    decode, around = read
    with pytest.raises(ActionError, match=lost):
        decode(around(given), VIEWPORT)


@pytest.mark.parametrize(
    ("read", "given"),
    [
        (OPENAI, {"type": "wait", "ms": None, "keys": [], "created_by": 5}),
        (CUA, {"type": "wait", "x": None, "cost": 5}),
        (TOOLSET, {"action": "screenshot", "button": None, "reason": "to look"}),
        (CORE, {"screenshot": {"format": "PNG", "intent": "to look"}}),
        (GOOGLE, {"name": "take_screenshot", "intent": "to look", "press_enter": False}),
        (CONTENT, {"action": "screenshot", "mine": 1}),
        (COMPUTER_13, {"action_type": "WAIT", "why": 1}),
    ],
    ids=_id,
)
def test_what_says_nothing_of_the_action_passes(read: Read, given: Any) -> None:
    decode, around = read
    assert len(decode(around(given), VIEWPORT).steps) == 1


def test_of_a_call_with_actions_and_an_action_neither_is_dropped() -> None:
    wait, look = {"type": "wait"}, {"type": "screenshot"}
    assert openai.decode({**_openai(wait), "actions": [], "action": look}, VIEWPORT).steps == (a.TakeScreenshot(),)
    assert openai.decode({**_openai(wait), "action": wait}, VIEWPORT).steps == (a.Wait(),)
    with pytest.raises(ActionError, match="both"):
        openai.decode({**_openai(wait), "action": look}, VIEWPORT)


def test_cuas_handler_does_what_it_is_told_or_says_so() -> None:
    backend = MemoryBackend()
    with Desktop(backend) as desktop:
        handler = cua.tool(desktop, settle=False)
        asyncio.run(handler.double_click(10, 20, button="right"))
        assert [event for event in backend.events if isinstance(event, ButtonDown)] == [ButtonDown(Button.RIGHT)] * 2
        backend.events.clear()
        for told in (handler.click(1, 2, modifiers=["ctrl"]), handler.wait(1, seconds=5)):
            with pytest.raises(DeskhandError, match="does not support"):
                asyncio.run(told)
        assert not backend.events


def test_googles_turn_may_be_json() -> None:
    call = {"functionCall": {"name": "move", "id": "f1", "args": {"x": 500, "y": 500}}}
    content = {"role": "model", "parts": [{"text": "I go there"}, call]}
    with Desktop(MemoryBackend()) as desktop:
        for turn in (content, {"candidates": [{"content": content}]}):
            answer = google.respond(desktop, turn, settle=False)
            assert [part.function_response.id for part in answer.parts] == ["f1"]
        for wrong in ("go there", {"candidates": 5}, [call]):
            with pytest.raises(ActionError, match="a response or a content"):
                google.respond(desktop, wrong)


def test_what_is_no_response_of_openais_is_not_taken_for_one_without_calls() -> None:
    with Desktop(MemoryBackend()) as desktop:
        for wrong in (_openai({"type": "wait"}), "wait", None, {"output": "wait"}):
            with pytest.raises(ActionError, match="a response or its output"):
                openai.respond(desktop, wrong)
        assert openai.respond(desktop, {"status": "completed", "output": []}) == []


ELSEWHERE = {"command": "rm *", "cwd": "/x"}


@pytest.mark.parametrize(
    ("decode", "payload"),
    [
        (anthropic.decode_shell, {"type": "tool_use", "id": "c", "name": "bash", "input": ELSEWHERE}),
        (bedrock.decode_shell, {"toolUse": {"toolUseId": "c", "name": "bash", "input": ELSEWHERE}}),
        (agents.decode_shell, {"functionInvocationInput": {"actionGroup": "g", "function": "bash", "parameters": [
            {"name": "command", "type": "string", "value": "rm *"}, {"name": "cwd", "type": "string", "value": "/x"}]}}),
        (openai.decode_shell, {"type": "shell_call", "call_id": "c", "action": {"commands": ["rm *"], "cwd": "/x"}}),
        (openai.decode_shell, {"type": "local_shell_call", "call_id": "c", "action": {
            "type": "exec", "command": ["rm"], "env": {}, "cwd": "/x"}}),
        (agent_framework.decode_shell, {"type": "shell_call", "call_id": "c", "commands": ["rm *"], "cwd": "/x"}),
        (lambda payload: agent_framework.shell_call_from("google", payload), {"name": "sh", "args": ELSEWHERE}),
    ],
    ids=["Anthropic", "Converse", "agents", "OpenAI", "OpenAI's local", "contents", "Google"],
)  # fmt: skip
def test_a_command_is_not_run_elsewhere_than_it_was_said(decode: Any, payload: Any) -> None:
    with pytest.raises(ActionError, match="with cwd"):
        decode(payload)


def test_a_part_of_a_call_without_its_beginning_is_not_dropped() -> None:
    part = {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"toolUse": {"input": "{}"}}}}
    with pytest.raises(ActionError, match="without its beginning"):
        bedrock.message_of([{"messageStart": {"role": "assistant"}}, part])


def test_agentcore_is_told_that_the_screen_has_another_size() -> None:
    call = agentcore.decode({"mouseMove": {"x": 1, "y": 2}}, VIEWPORT)
    result = Result(call=call, text="it has changed")
    assert agentcore.decode_result(agentcore.encode(result), call) == result


@pytest.mark.parametrize(
    "payload", [{"type": "computer_call", "action": {"type": "wait"}}, [_cua({"type": "wait"})], None], ids=str
)
def test_what_nothing_could_answer_gets_no_answer(payload: Any) -> None:
    with Desktop(MemoryBackend()) as desktop, pytest.raises(ActionError):
        cua.run(desktop, payload, settle=False)


def test_parameters_of_cuas_server_are_not_dropped() -> None:
    with Desktop(MemoryBackend()) as desktop, pytest.raises(ActionError, match="params is an object"):
        Commands(desktop).answer("move_cursor", [5, 6])


RESULT = Result(call=ProviderCall(steps=(a.TakeScreenshot(),), viewport=VIEWPORT, id="c"), picture=Picture(b"png"))


def _twice(payload: Any, *path: Any) -> Any:
    """The payload, with what is last in the list at a path twice in it."""
    place = payload
    for key in path:
        place = place[key]
    place.append(place[-1])
    return payload


@pytest.mark.parametrize(
    ("module", "path"),
    [
        (anthropic, ("content",)),
        (bedrock, ("toolResult", "content")),
        (google, ("parts",)),
        (mcp, ("content",)),
        (langchain, ("content",)),
        (inspect_ai, ()),
        (agents, ("functionResult", "responseBody", "IMAGES", "images")),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_of_two_pictures_none_is_dropped(module: Any, path: tuple[Any, ...]) -> None:
    assert module.decode_result(module.encode(RESULT), RESULT.call).picture == RESULT.picture
    with pytest.raises(ActionError, match="one picture, not 2"):
        module.decode_result(_twice(module.encode(RESULT), *path), RESULT.call)
