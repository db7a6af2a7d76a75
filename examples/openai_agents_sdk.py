"""An agent of openai-agents works at a desktop of its own: python examples/openai_agents_sdk.py "Write a haiku"."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from agents import Agent, RunConfig, Runner

import deskhand
from deskhand.providers import openai as deskhand_openai

MODEL = "gpt-5.4"
TURNS = 50


async def main(task: str, model: Any = MODEL) -> str:
    """Have a task done, and return what the model says at its end."""
    async with await deskhand.AsyncDesktop.launch() as desktop:
        await desktop.start("mousepad")
        tool = deskhand_openai.tool(desktop, size="openai")
        agent = Agent(name="desk", model=model, tools=[tool])
        # A computer's answer is a picture. The filter adds the reason why an action failed as a message.
        config = RunConfig(call_model_input_filter=deskhand_openai.input_filter(tool))
        result = await Runner.run(agent, task, max_turns=TURNS, run_config=config)
    return str(result.final_output)


if __name__ == "__main__":
    print(asyncio.run(main(" ".join(sys.argv[1:]))))
