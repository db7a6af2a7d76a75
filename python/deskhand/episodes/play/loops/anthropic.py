"""Claude with the toolset for computers, through the SDK's own tool runner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deskhand._core.extras import load
from deskhand.episodes.play.loops import chosen, made, make_session, tell
from deskhand.providers import anthropic as deskhand_anthropic

if TYPE_CHECKING:
    from deskhand.episodes.play.episode import Agent, Episode

_MODEL = "claude-opus-5-5"
_LONGEST_ANSWER = 4096


def agent(model: str | None = None, client: Any = None, *, elements: bool = False) -> Agent:
    """An agent; `ANTHROPIC_API_KEY` is its key."""
    sdk = load("anthropic", "anthropic")
    api = client or made("anthropic", sdk.Anthropic)
    name = chosen(model, _MODEL)

    def act(episode: Episode) -> str:
        size = deskhand_anthropic.tier(name)
        model_session = make_session(episode, "anthropic", elements=elements, size=size)
        tools: list[Any] = [deskhand_anthropic.toolset(model_session, confirm=lambda _: True)]
        if elements:
            tools.append(deskhand_anthropic.elements_tool(model_session))
        messages = [{"role": "user", "content": episode.instruction}]
        runner = api.beta.messages.tool_runner(model=name, max_tokens=_LONGEST_ANSWER, tools=tools, messages=messages)
        said = ""
        for message in runner:
            said = "\n".join(block.text for block in message.content if block.type == "text")
            tell(episode, said, (message.usage.input_tokens, message.usage.output_tokens))
        return said

    return act
