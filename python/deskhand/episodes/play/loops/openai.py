"""A model of OpenAI's with its `computer` tool, through the Responses API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deskhand._core.extras import load
from deskhand.episodes.play.loops import chosen, made, make_session, tell
from deskhand.providers import openai as deskhand_openai

if TYPE_CHECKING:
    from deskhand.episodes.play.episode import Agent, Episode

_MODEL = "gpt-5.4"


def agent(model: str | None = None, client: Any = None, *, elements: bool = False) -> Agent:
    """An agent; `OPENAI_API_KEY` is its key."""
    sdk = load("openai", "openai")
    api = client or made("openai", sdk.OpenAI)
    name = chosen(model, _MODEL)

    def act(episode: Episode) -> str:
        model_session = make_session(episode, "openai", elements=elements, size="openai")
        functions = [deskhand_openai.declare_elements()] if elements else []
        request: dict[str, Any] = {
            "model": name,
            "tools": [deskhand_openai.declare(model_session), *functions],
            "truncation": "auto",
        }
        response = api.responses.create(**request, input=episode.instruction)
        while True:
            usage = response.usage
            tell(episode, response.output_text, (0, 0) if usage is None else (usage.input_tokens, usage.output_tokens))
            answers = deskhand_openai.respond(model_session, response, elements=elements)
            if not answers:
                return str(response.output_text)
            response = api.responses.create(**request, input=answers, previous_response_id=response.id)

    return act
