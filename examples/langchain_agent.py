"""A chat model of LangChain's at a desktop of its own: any that takes tools and pictures.

pip install 'deskhand[langchain]'
OPENAI_API_KEY=... python examples/langchain_agent.py "Start xterm with the menu and print the date."
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI

import deskhand
from deskhand.providers import langchain as deskhand_langchain

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage


def main(task: str, model: Any = None) -> list[BaseMessage]:
    """Have a task done, and return the conversation."""
    model = model or ChatOpenAI(model="gpt-5.4", use_responses_api=True)
    messages: list[BaseMessage] = [HumanMessage(task)]
    with deskhand.launch() as desktop:
        tools = {tool.name: tool for tool in deskhand_langchain.tools(desktop, size="openai")}
        bound = model.bind_tools(list(tools.values()))
        for _ in range(50):
            messages.append(answer := bound.invoke(messages))
            if not answer.tool_calls:
                break
            for call in answer.tool_calls:
                none = ToolMessage("There is no such tool.", tool_call_id=call["id"], status="error")
                messages.append(tools[call["name"]].invoke(call) if call["name"] in tools else none)
    return messages


if __name__ == "__main__":
    print(main(" ".join(sys.argv[1:]))[-1].text)
