"""The functions for openai-agents (0.24) beside its computer: `elements` and `hand_over`, as `agents.FunctionTool`.

This module owns these objects. What they answer is in `loop` and `hand_over`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from agents import FunctionTool, ToolOutputImage, ToolOutputText

from deskhand.providers.openai.hand_over import declare_hand_over, hand_over
from deskhand.providers.openai.loop import async_model_session, declare_elements, read_elements

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agents.tool_context import ToolContext

    from deskhand.providers.session import AnyDesktop, SessionOptions


def elements_tool(desktop: AnyDesktop, **options: Unpack[SessionOptions]) -> FunctionTool:
    """See `deskhand.providers.openai.elements_tool`."""
    there = async_model_session(desktop, **options)

    async def read(context: ToolContext[Any], arguments: str) -> str:
        return await there.run(lambda at: read_elements(at, arguments, context.tool_call_id))

    return _tool(declare_elements(), read)


def hand_over_tool(desktop: AnyDesktop, **options: Unpack[SessionOptions]) -> FunctionTool:
    """See `deskhand.providers.openai.hand_over_tool`."""
    there = async_model_session(desktop, **options)

    async def ask(context: ToolContext[Any], arguments: str) -> list[ToolOutputText | ToolOutputImage]:
        result = await there.run(lambda at: hand_over(at, arguments, context.tool_call_id))
        parts: list[ToolOutputText | ToolOutputImage] = [ToolOutputText(text=result.error or result.text or "")]
        if result.error is None and result.picture is not None:
            # That SDK knows no `original`.
            parts.append(ToolOutputImage(image_url=result.picture.url, detail="high"))
        return parts

    return _tool(declare_hand_over(), ask)


def _tool(declared: dict[str, Any], call: Callable[[ToolContext[Any], str], Awaitable[Any]]) -> FunctionTool:
    return FunctionTool(
        name=declared["name"],
        description=declared["description"],
        params_json_schema=declared["parameters"],
        on_invoke_tool=call,
        # A strict schema requires all arguments.
        strict_json_schema=False,
    )
