"""Claude on Amazon Bedrock with Anthropic's computer tool, through Converse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deskhand._core.extras import load
from deskhand.episodes.play.loops import chosen, made, make_session, tell
from deskhand.providers import bedrock
from deskhand.providers.anthropic.loop import SIZE

if TYPE_CHECKING:
    from deskhand.episodes.play.episode import Agent, Episode

_MODEL = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"


def agent(model: str | None = None, client: Any = None, *, elements: bool = False) -> Agent:
    """An agent; the credentials and the region are boto3's own."""
    sdk = load("boto3", "bedrock")
    api = client or made("bedrock", lambda: sdk.client("bedrock-runtime"))
    name = chosen(model, _MODEL)

    def act(episode: Episode) -> str:
        messages: list[dict[str, Any]] = [{"role": "user", "content": [{"text": episode.instruction}]}]
        model_session = make_session(episode, "bedrock", elements=elements, size=SIZE)
        tools = bedrock.declare(model_session, elements=elements)
        while True:
            answer = api.converse(modelId=name, messages=messages, **tools)
            messages.append(answer["output"]["message"])
            said = "\n".join(block["text"] for block in messages[-1]["content"] if "text" in block)
            used = answer.get("usage", {})
            tell(episode, said, (used.get("inputTokens"), used.get("outputTokens")))
            if answer["stopReason"] != "tool_use":
                return said
            messages.append(bedrock.respond(model_session, answer, elements=elements))

    return act
