"""Gemini with its computer use, through google-genai."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deskhand._core.extras import load
from deskhand.episodes.play.loops import chosen, made, make_session, tell
from deskhand.providers import google as deskhand_google

if TYPE_CHECKING:
    from deskhand.episodes.play.episode import Agent, Episode

_MODEL = "gemini-3.5-flash"


def agent(model: str | None = None, client: Any = None, *, elements: bool = False) -> Agent:
    """An agent; `GEMINI_API_KEY` is its key."""
    sdk = load("google.genai", "google")
    types = load("google.genai.types", "google")
    api = client or made("google", sdk.Client)
    name = chosen(model, _MODEL)

    def act(episode: Episode) -> str | None:
        model_session = make_session(episode, "google", elements=elements)
        picture = types.Part.from_bytes(data=model_session.look().data, mime_type="image/png")
        contents = [types.Content(role="user", parts=[types.Part(text=episode.instruction), picture])]
        functions = [deskhand_google.declare_elements()] if elements else []
        config = types.GenerateContentConfig(tools=[deskhand_google.declare(model_session), *functions])
        while True:
            turn = api.models.generate_content(model=name, contents=contents, config=config)
            used = turn.usage_metadata
            # The SDK's own `text` warns about every call beside it.
            parts = (turn.candidates[0].content.parts or []) if turn.candidates and turn.candidates[0].content else []
            said = "".join(part.text for part in parts if part.text and not part.thought)
            tell(episode, said, (0, 0) if used is None else _used(used))
            answer = deskhand_google.respond(model_session, turn, elements=elements)
            if answer is None:
                return said or None
            contents += [turn.candidates[0].content, answer]
            deskhand_google.thin(contents)

    return act


def _used(usage: Any) -> tuple[int, int]:
    """The tokens that were read and written. Thoughts are counted beside the candidates, and cost the same."""
    read, written = ("prompt", "tool_use_prompt"), ("candidates", "thoughts")
    return (
        sum(getattr(usage, f"{part}_token_count", None) or 0 for part in read),
        sum(getattr(usage, f"{part}_token_count", None) or 0 for part in written),
    )
