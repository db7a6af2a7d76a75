"""Claude on Amazon Bedrock at a desktop of its own.

pip install 'deskhand[bedrock]'
AWS_PROFILE=... python examples/bedrock_agent.py "Which fonts are installed?"
"""

from __future__ import annotations

import sys
from typing import Any

import boto3

import deskhand
from deskhand.providers import bedrock

MODEL = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"


def main(task: str, client: Any = None) -> str:
    """Have the task done, and return what Claude says of it."""
    client = client or boto3.client("bedrock-runtime")
    messages: list[dict[str, Any]] = [{"role": "user", "content": [{"text": task}]}]
    with deskhand.launch() as desktop:
        tools = bedrock.declare(desktop)
        while True:
            answer = client.converse(modelId=MODEL, messages=messages, **tools)
            messages.append(answer["output"]["message"])
            if answer["stopReason"] != "tool_use":
                return "\n".join(block["text"] for block in messages[-1]["content"] if "text" in block)
            messages.append(bedrock.respond(desktop, answer))


if __name__ == "__main__":
    print(main(" ".join(sys.argv[1:])))
