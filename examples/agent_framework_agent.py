"""An agent of Microsoft's framework works at a desktop: python examples/agent_framework_agent.py "Write a haiku"."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from agent_framework import Agent

import deskhand
from deskhand.providers import agent_framework as deskhand_agent_framework
from deskhand.providers.session import ModelSession

TURNS = 50


async def main(task: str, client: Any = None) -> str:
    """Have a task done, and return what the model says at its end."""
    if client is None:
        from agent_framework.openai import OpenAIChatClient  # noqa: PLC0415 # needs its key on creation: OPENAI_API_KEY

        client = OpenAIChatClient(model="gpt-5.4")
    with deskhand.launch() as desktop:
        model_session = ModelSession(desktop, size="openai", ask=lambda action, _: input(f"{action} [y/n] ") == "y")
        agent = Agent(client=client, tools=[client.get_computer_tool()])
        session = agent.create_session()
        response = await agent.run(task, session=session)
        for _ in range(TURNS):
            answers = await deskhand_agent_framework.respond_async(model_session, response)
            if not answers:
                break
            response = await agent.run(answers, session=session)
    return str(response.text)


if __name__ == "__main__":
    print(asyncio.run(main(" ".join(sys.argv[1:]))))
