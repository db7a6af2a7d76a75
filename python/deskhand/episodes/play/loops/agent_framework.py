"""An agent of Microsoft's framework with OpenAI's computer tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deskhand._core.extras import load
from deskhand.episodes.play.loops import chosen, made, make_session, tell
from deskhand.providers import agent_framework as deskhand_agent_framework

if TYPE_CHECKING:
    from deskhand.episodes.play.episode import Agent, Episode

_MODEL = "gpt-5.4"


def agent(model: str | None = None, client: Any = None, *, elements: bool = False) -> Agent:
    """An agent; `OPENAI_API_KEY` is its key."""
    sdk = load("agent_framework", "agent-framework")
    name = chosen(model, _MODEL)

    def chat() -> Any:
        return client or load("agent_framework.openai", "agent-framework").OpenAIChatClient(model=name)

    # Each episode has an event loop and a client of its own; this one only checks that a client can be made.
    made("agent-framework", chat)

    async def act(episode: Episode) -> str:
        model_session = make_session(episode, "agent_framework", elements=elements, size="openai")
        api = chat()
        worker = sdk.Agent(client=api, tools=[api.get_computer_tool()])
        session = worker.create_session()
        response = await worker.run(episode.instruction, session=session)
        while True:
            used = response.usage_details or {}
            tell(episode, response.text, (used.get("input_token_count"), used.get("output_token_count")))
            answers = await deskhand_agent_framework.respond_async(model_session, response)
            if not answers:
                return str(response.text)
            response = await worker.run(answers, session=session)

    return act
