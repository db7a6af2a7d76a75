"""What needs LangChain's own classes: its tools and messages.

What must never appear here: what a tool does, what a field of a message means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, ToolException
from pydantic import PrivateAttr

from deskhand.providers.langchain.loop import answered
from deskhand.providers.langchain.wire import encode, facts, functions

if TYPE_CHECKING:
    from deskhand.providers.session import AsyncModelSession, ModelSession
    from deskhand.providers.values import Result

__all__ = ["Artifact", "DesktopTool", "make_tools", "message"]


class Artifact(dict[str, Any]):
    """What a program may want to know of an answer, with `wire.facts` as its items.

    A history is often stored as JSON, which a picture's bytes would not go into: of this, the items do.

    Attributes:
        result: What came of the call.
    """

    def __init__(self, result: Result) -> None:
        super().__init__(facts(result))
        self.result = result


class DesktopTool(BaseTool):
    """An action of ours, or all of them, at a desktop."""

    response_format: Any = "content_and_artifact"
    # What is raised where there is no tool call, and so no message that could have a status.
    handle_tool_error: Any = True
    _model_session: Any = PrivateAttr()

    def __init__(self, model_session: AsyncModelSession, **fields: Any) -> None:
        super().__init__(**fields)
        self._model_session = model_session

    def _to_args_and_kwargs(self, tool_input: Any, tool_call_id: str | None) -> tuple[tuple[Any, ...], dict[str, Any]]:
        # As they are: what a model calls its arguments must not meet the names of Python's parameters, and the call's id is
        # what a policy and its log know it by.
        return ({"name": self.name, "args": tool_input, "id": tool_call_id},), {}

    def _run(self, call: dict[str, Any]) -> tuple[Any, Any]:
        return self._answered(self._model_session.session, call)

    async def _arun(self, call: dict[str, Any]) -> tuple[Any, Any]:
        answered: tuple[Any, Any] = await self._model_session.run(
            lambda model_session: self._answered(model_session, call)
        )
        return answered

    def _answered(self, model_session: ModelSession, call: dict[str, Any]) -> tuple[Any, Any]:
        result = answered(model_session, call)
        fields = encode(result)
        if result.error is None:
            return fields["content"], Artifact(result)
        if call["id"] is None:
            raise ToolException(result.error)
        return ToolMessage(**fields, artifact=Artifact(result)), None


def make_tools(model_session: AsyncModelSession, *, single: bool) -> list[BaseTool]:
    """The tools whose calls are carried out at a session."""
    return [
        DesktopTool(
            model_session,
            name=function["function"]["name"],
            description=function["function"]["description"],
            args_schema=function["function"]["parameters"],
        )
        for function in functions(model_session.viewport.model, single=single)
    ]


def message(fields: dict[str, Any]) -> BaseMessage:
    """The message that has these fields."""
    return HumanMessage(**fields) if fields["type"] == "human" else ToolMessage(**fields)
