"""A model of Agent Framework's as a script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_framework import BaseChatClient, ChatResponse, Content, FunctionInvocationLayer, Message

if TYPE_CHECKING:
    from collections.abc import Sequence


class Scripted(FunctionInvocationLayer, BaseChatClient):  # type: ignore[type-arg]
    """A model that says what it was told to; `seen` are the messages it was sent."""

    def __init__(self, *says: Sequence[Content]) -> None:
        super().__init__()
        self.says = list(says)
        self.seen: list[list[Message]] = []

    @staticmethod
    def get_computer_tool() -> dict[str, Any]:
        return {"type": "computer"}

    def _inner_get_response(self, *, messages: Sequence[Message], stream: bool, **_: Any) -> Any:  # type: ignore[override]
        assert not stream

        async def said() -> ChatResponse:  # type: ignore[type-arg]
            self.seen.append(list(messages))
            return ChatResponse(messages=[Message("assistant", list(self.says.pop(0)))])

        return said()
