"""A desktop as the computer of Cua's agent: `python examples/cua_agent.py "Write a haiku into the editor"`.

Needs Python 3.12 for the package itself: pip install 'deskhand' 'cua-agent'. Set the key of the model's provider.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import deskhand
from deskhand.providers import cua


async def main(task: str, model: str = "anthropic/claude-sonnet-4-5") -> list[dict[str, Any]]:
    """Let an agent work on a task; returns what it said and did."""
    from cua_agent import ComputerAgent  # noqa: PLC0415 # imported here, so that this file can be imported without it

    said = []
    async with await deskhand.AsyncDesktop.launch() as desktop:
        await desktop.start("mousepad")
        # The frame is settled when an action returns, so no sleep is needed.
        agent = ComputerAgent(
            model=model,
            tools=[cua.tool(desktop, scroll_unit="notches" if "claude" in model else "pixels")],
            screenshot_delay=0,
        )
        async for part in agent.run(task):
            said += part["output"]
    return said


if __name__ == "__main__":
    for message in asyncio.run(main(sys.argv[1])):
        print(str(message)[:200])
