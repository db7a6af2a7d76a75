"""Claude at a desktop of its own, asking before it types.

pip install 'deskhand[anthropic]'
ANTHROPIC_API_KEY=... python examples/anthropic_agent.py "Start xterm with the menu and print the date."
"""

from __future__ import annotations

import sys
from typing import Any

from anthropic import Anthropic

import deskhand
from deskhand.providers import anthropic as deskhand_anthropic

MODEL = "claude-opus-5-5"


def confirm(context: Any) -> bool:
    """Ask before anything goes to the keyboard."""
    if context.member not in {"type", "key", "hold_key"}:
        return True
    return input(f"{context.member} {context.input.text!r}? [y/n] ") == "y"


def main(task: str, client: Anthropic | None = None, ask: Any = confirm) -> str:
    """Have the task done, and return what Claude says of it."""
    with deskhand.launch() as desktop:
        runner = (client or Anthropic()).beta.messages.tool_runner(
            model=MODEL,
            max_tokens=4096,
            tools=[deskhand_anthropic.toolset(desktop, confirm=ask, size=deskhand_anthropic.tier(MODEL))],
            messages=[{"role": "user", "content": task}],
        )
        return "\n".join(block.text for block in runner.until_done().content if block.type == "text")


if __name__ == "__main__":
    print(main(" ".join(sys.argv[1:])))
