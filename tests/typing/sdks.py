"""As `program.py`, for pyright alone: mypy would read the whole of each SDK for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_type

from agents import FunctionTool
from google.adk.tools.computer_use.computer_use_toolset import ComputerUseToolset
from google.genai.types import Content
from inspect_ai.tool import Tool
from mcp.server.lowlevel import Server
from starlette.applications import Starlette

from deskhand.providers import agent_framework, anthropic, google, inspect_ai, langchain, mcp, openai
from deskhand.providers.cua.server import application
from deskhand.providers.google.adk import DeskComputer
from deskhand.providers.values import JSONObject

if TYPE_CHECKING:
    from deskhand import AsyncDesktop, Desktop
    from deskhand.providers.protocol import (
        HandsOver,
        HasElementsTool,
        HasHandOverTool,
        HasTool,
        Provider,
        ReadsElements,
        Responds,
    )


def objects_of_sdks(desktop: Desktop, content: Content) -> None:
    assert_type(openai.run(desktop, {"type": "computer_call"}), JSONObject)
    assert_type(anthropic.run(desktop, {"type": "tool_use"}), JSONObject)
    assert_type(google.respond(desktop, content), Content | None)
    assert_type(google.computer(desktop), DeskComputer)
    assert_type(google.tool(desktop), ComputerUseToolset)
    assert_type(inspect_ai.tool(desktop), Tool)
    assert_type(mcp.server(desktop), Server[object])
    assert_type(openai.elements_tool(desktop), FunctionTool)
    assert_type(openai.hand_over_tool(desktop), FunctionTool)
    google.respond("desktop", content)  # type: ignore[arg-type]
    mcp.server("desktop")  # type: ignore[arg-type]


def one_protocol() -> list[Provider]:
    responding: list[Responds] = [agent_framework, anthropic, google, langchain, openai]
    tools: list[HasTool] = [anthropic, google, inspect_ai, langchain, openai]
    readers: list[HasElementsTool] = [anthropic, langchain, openai]
    reading: list[ReadsElements] = [anthropic, openai]
    asking: list[HasHandOverTool] = [anthropic, langchain, openai]
    handing: list[HandsOver] = [anthropic, openai]
    print(responding, tools, readers, reading, asking, handing)
    return [agent_framework, anthropic, google, inspect_ai, langchain, mcp, openai]


def served(desktop: AsyncDesktop) -> None:
    assert_type(application(desktop, api_key="key"), Starlette)
