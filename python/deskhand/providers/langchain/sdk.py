"""The code that needs LangChain's own classes: its tools and messages.

The meaning of tools and of messages' fields is elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, ToolException
from pydantic import PrivateAttr

from deskhand.providers.hand_over_tool import HAND_OVER
from deskhand.providers.langchain.loop import answered
from deskhand.providers.langchain.wire import encode, facts, functions

if TYPE_CHECKING:
    from deskhand.providers.session import AsyncModelSession, ModelSession
    from deskhand.providers.values import Result


class Artifact(dict[str, Any]):
    """Facts about an answer for programs, with `wire.facts` as its items.

    Histories are often stored as JSON, which cannot hold a picture's bytes: only the items are stored.

    Attributes:
        result: The result of the call.
    """

    def __init__(self, result: Result) -> None:
        super().__init__(facts(result))
        self.result = result


class DesktopTool(BaseTool):
    """A tool for one of our actions, or for all of them."""

    response_format: Any = "content_and_artifact"
    # For calls without a tool call's id, which get no message that could have a status.
    handle_tool_error: Any = True
    _model_session: Any = PrivateAttr()

    def __init__(self, model_session: AsyncModelSession, **fields: Any) -> None:
        super().__init__(**fields)
        self._model_session = model_session

    def _to_args_and_kwargs(self, tool_input: Any, tool_call_id: str | None) -> tuple[tuple[Any, ...], dict[str, Any]]:
        # Passed unchanged: the model's argument names must not collide with Python's parameters, and policies and logs need the
        # call's id.
        return ({"name": self.name, "args": tool_input, "id": tool_call_id},), {}

    def _run(self, call: dict[str, Any]) -> tuple[Any, Any]:
        return self._answered(self._model_session.session, call)

    async def _arun(self, call: dict[str, Any]) -> tuple[Any, Any]:
        answered: tuple[Any, Any] = await self._model_session.run(
            lambda model_session: self._answered(model_session, call)
        )
        return answered

    def _answered(self, model_session: ModelSession, call: dict[str, Any]) -> tuple[Any, Any]:
        result = answered(model_session, call, hand_over=self.name == HAND_OVER)
        fields: dict[str, Any] = encode(result)
        if result.error is None:
            return fields["content"], Artifact(result)
        if call["id"] is None:
            raise ToolException(result.error)
        return ToolMessage(**fields, artifact=Artifact(result)), None


def make_tools(model_session: AsyncModelSession, *, single: bool, hand_over: bool = False) -> list[BaseTool]:
    """The tools that carry out calls in a session."""
    return [
        DesktopTool(
            model_session,
            name=function["function"]["name"],
            description=function["function"]["description"],
            args_schema=function["function"]["parameters"],
        )
        for function in functions(model_session.viewport.model, single=single, hand_over=hand_over)
    ]


def message(fields: dict[str, Any]) -> BaseMessage:
    """The message with these fields."""
    return HumanMessage(**fields) if fields["type"] == "human" else ToolMessage(**fields)
