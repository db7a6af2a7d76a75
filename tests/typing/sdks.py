"""As `program.py`, for pyright alone: mypy would read the whole of each SDK for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_type

from google.genai.types import Content
from inspect_ai.tool import Tool
from mcp.server.lowlevel import Server
from starlette.applications import Starlette

from deskhand.providers import anthropic, google, inspect_ai, mcp, openai
from deskhand.providers.cua.server import application
from deskhand.providers.google.adk import DeskComputer

if TYPE_CHECKING:
    from deskhand import AsyncDesktop, Desktop


def objects_of_sdks(desktop: Desktop, content: Content) -> None:
    assert_type(openai.run(desktop, {"type": "computer_call"}), dict[str, Any])
    assert_type(anthropic.run(desktop, {"type": "tool_use"}), dict[str, Any])
    assert_type(google.answer(desktop, content), Content | None)
    assert_type(google.adk_computer(desktop), DeskComputer)
    assert_type(inspect_ai.computer(desktop), Tool)
    assert_type(mcp.server(desktop), Server[Any])
    google.answer(desktop, "content")  # type: ignore[arg-type]
    mcp.server("desktop")  # type: ignore[arg-type]


def served(desktop: AsyncDesktop) -> None:
    assert_type(application(desktop, api_key="key"), Starlette)
