"""A chat model of LangChain's with the desktop's actions as its tools: `claude-...` is ChatAnthropic, any other ChatOpenAI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deskhand._core.extras import load
from deskhand.episodes.play.loops import chosen, made, make_session, tell
from deskhand.providers import langchain as deskhand_langchain

if TYPE_CHECKING:
    from deskhand.episodes.play.episode import Agent, Episode

_MODEL = "gpt-5.4"


def agent(model: str | None = None, client: Any = None, *, elements: bool = False) -> Agent:
    """An agent; the key is `OPENAI_API_KEY` or `ANTHROPIC_API_KEY`."""
    messages = load("langchain_core.messages", "langchain")
    name = chosen(model, _MODEL)
    chat = client or made("langchain", lambda: _chat(name))

    def act(episode: Episode) -> str:
        model_session = make_session(episode, "langchain", elements=elements, size="openai")
        tools = {tool.name: tool for tool in deskhand_langchain.tools(model_session)}
        bound = chat.bind_tools(list(tools.values()))
        said: list[Any] = [messages.HumanMessage(episode.instruction)]
        while True:
            answer = bound.invoke(said)
            said.append(answer)
            used = answer.usage_metadata or {}
            tell(episode, str(answer.text), (used.get("input_tokens"), used.get("output_tokens")))
            if not answer.tool_calls:
                return str(answer.text)
            for call in answer.tool_calls:
                none = messages.ToolMessage("There is no such tool.", tool_call_id=call["id"], status="error")
                said.append(tools[call["name"]].invoke(call) if call["name"] in tools else none)

    return act


def _chat(name: str) -> Any:
    if name.startswith("claude"):
        return load("langchain_anthropic", "langchain").ChatAnthropic(model_name=name)
    return load("langchain_openai", "langchain").ChatOpenAI(model=name, use_responses_api=True)
