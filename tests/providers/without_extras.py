"""Where no SDK is installed, each provider says what to install. `tools/extras` gives this file to pytest by its name."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

import pytest

from deskhand import AsyncDesktop, Desktop, MissingExtra
from deskhand.backends.memory import MemoryBackend
from deskhand.providers import agent_framework, anthropic, bedrock, cua, google, inspect_ai, langchain, mcp, openai
from deskhand.providers.cua.server import application
from deskhand.providers.osworld.guest_server import application as guest_application

if TYPE_CHECKING:
    from collections.abc import Callable

SDKS = (
    "agent_framework",
    "agents",
    "anthropic",
    "botocore",
    "google.genai",
    "inspect_ai",
    "langchain_core",
    "mcp",
    "starlette",
)

ASKS: dict[str, list[Callable[[Desktop], Any]]] = {
    "openai": [
        openai.computer,
        openai.sync_computer,
        openai.tool,
        openai.shell_executor,
        lambda _: openai.safety_check(None),
    ],
    "anthropic": [
        lambda desktop: anthropic.toolset(desktop, confirm=lambda _: True),
        anthropic.tool,
        anthropic.shell_tool,
    ],
    "google": [lambda desktop: google.respond(desktop, None)],
    "google-adk": [google.computer, google.tool],
    "agent-framework": [
        agent_framework.shell_executor,
        lambda desktop: agent_framework.respond(desktop, None),
        lambda desktop: agent_framework.run_content(desktop, None),  # type: ignore[arg-type] # it is not looked at
    ],
    "cua": [lambda desktop: application(AsyncDesktop(desktop), api_key="key")],
    "osworld": [lambda desktop: guest_application(AsyncDesktop(desktop), api_key="key")],
    "mcp": [mcp.server],
    "inspect": [inspect_ai.tool],
    "langchain": [langchain.tool, langchain.tools, lambda desktop: langchain.respond(desktop, {"content": ""})],
}


def test_there_is_none() -> None:
    for name in SDKS:
        found = importlib.util.find_spec(name.partition(".")[0])
        assert found is None, f"{name} is here, and the rest shows nothing"


@pytest.mark.parametrize(("extra", "ask"), [(extra, ask) for extra, asks in ASKS.items() for ask in asks])
def test_what_is_missing_is_named(extra: str, ask: Callable[[Desktop], Any]) -> None:
    with Desktop(MemoryBackend()) as desktop, pytest.raises(MissingExtra) as caught:
        ask(desktop)
    assert f"pip install 'deskhand[{extra}]'" in str(caught.value)


def test_payloads_need_nobody() -> None:
    """What goes by plain data works without any SDK."""
    with Desktop(MemoryBackend()) as desktop:
        openai.run(desktop, {"type": "computer_call", "call_id": "c", "actions": [{"type": "move", "x": 3, "y": 4}]})
        assert desktop.pointer == (3, 4)
        moved = {
            "type": "tool_use",
            "id": "t",
            "name": "mouse_move",
            "toolset_name": "computer",
            "input": {"coordinate": [5, 6]},
        }
        anthropic.run(desktop, moved)
        assert desktop.pointer == (5, 6)
        bedrock.run(desktop, {"toolUse": {"toolUseId": "t", "name": "computer", "input": {"action": "screenshot"}}})
        google.run(desktop, {"name": "take_screenshot", "args": {}})
        cua.run(desktop, {"type": "computer_call", "call_id": "c", "action": {"type": "screenshot"}})
