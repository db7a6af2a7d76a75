"""LangChain: a desktop as tools for whatever chat model, and the computer tools of OpenAI and Anthropic through its messages.

Our own actions, for any model that takes tools and pictures (`pip install 'deskhand[langchain]'`):

    from deskhand.providers import langchain as deskhand_langchain

    tools = deskhand_langchain.tools(desktop)               # an action each, and `elements`
    model = init_chat_model(...).bind_tools(tools)          # or an agent: create_agent(model, tools)

The computer tool that a model was trained for, with ChatOpenAI or ChatAnthropic:

    session = ModelSession(desktop, size="anthropic")
    model = ChatAnthropic(...).bind_tools(deskhand_langchain.declare(session, provider="anthropic"))
    message = model.invoke(messages)
    messages += [message, *deskhand_langchain.respond(session, message)]

This module owns the names that users call. What must never appear here: a field of a message, an import of the SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from deskhand._core.extras import load
from deskhand.errors import ActionError, shown
from deskhand.providers import anthropic, openai
from deskhand.providers.langchain.loop import answered
from deskhand.providers.langchain.wire import (
    ANTHROPIC,
    OPENAI,
    TOOL,
    computer_calls,
    decode,
    decode_result,
    encode,
    encode_call,
    from_anthropic,
    from_openai,
    functions,
    status_of,
)
from deskhand.providers.session import AsyncModelSession, ModelSession, SessionOptions, with_usual

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from langchain_core.tools import BaseTool

    from deskhand.desktop.desktop import Desktop
    from deskhand.providers.session import AnyDesktop, NamedOptions

__all__ = [
    "TOOL",
    "declare",
    "decode",
    "decode_result",
    "elements_tool",
    "encode",
    "encode_call",
    "respond",
    "respond_async",
    "run",
    "run_async",
    "tool",
    "tools",
]

PROVIDER = "langchain"
"""What policies and their logs are told of whose calls our own tools' are."""


def tool(desktop: AnyDesktop, **options: Unpack[SessionOptions]) -> BaseTool:
    """The desktop as one tool, `computer`, for all actions; otherwise as `tools`.

    Args:
        desktop: As of `tools`.
        options: As of `tools`.

    Raises:
        MissingExtra: The extra `langchain` is not installed.
    """
    return _tools(desktop, single=True, **options)[0]


def elements_tool(desktop: AnyDesktop, **options: Unpack[SessionOptions]) -> BaseTool:
    """The tool `elements` alone, to have beside `tool`: the model reads what applications say that they show.

    Args:
        desktop: The model session that the other tool has, so that points are in pixels of its pictures; or the desktop.
        options: As of `tools`.

    Raises:
        MissingExtra: The extra `langchain` is not installed.
    """
    return _tools(desktop, single=True, **options)[-1]


def tools(desktop: AnyDesktop, **options: Unpack[SessionOptions]) -> list[BaseTool]:
    """The desktop's actions as LangChain's tools, one for each, and the tool `elements`; sync and async.

    A tool call is answered by a `ToolMessage` with the settled screenshot; what cannot be done, is not allowed or failed by one
    with `status="error"` and the reason as its text. Its `artifact` says besides whether the screen changed and has come to
    rest, or whether it was denied, in a dictionary that goes into JSON; the `artifact.result` is the whole `Result`.

    Args:
        desktop: The desktop; who made it closes it. Tools that are called at the same time take turns.
        options: As of `ModelSession`: size, settle, policy, ask.

    Raises:
        MissingExtra: The extra `langchain` is not installed.
    """
    return _tools(desktop, single=False, **options)


def _tools(desktop: AnyDesktop, *, single: bool, **options: Unpack[SessionOptions]) -> list[BaseTool]:
    sdk = load("deskhand.providers.langchain.sdk", "langchain")
    made: list[BaseTool] = sdk.make_tools(
        AsyncModelSession.of(desktop, **with_usual(options, provider=PROVIDER)), single=single
    )
    return made


def declare(
    desktop: AnyDesktop,
    *,
    provider: str | None = None,
    single: bool = False,
    preview: bool = False,
    version: str = anthropic.LATEST,
    **options: Unpack[SessionOptions],
) -> list[dict[str, Any]]:
    """What `bind_tools` is given: a provider's computer tool, or our own actions as functions.

    Args:
        desktop: The desktop, or a model session on it.
        provider: `openai`, `anthropic`, or None for our own actions, which any model can call.
        single: Of our own: one function for all actions.
        preview: Of OpenAI: `computer_use_preview`.
        version: Of Anthropic: which tool. ChatAnthropic adds the beta that it needs.
        options: As of `ModelSession`, where none is given: size (by default of the provider), settle, policy, ask.

    Raises:
        ActionError: There is no such provider, or version.
    """
    if provider is None:
        return functions(AsyncModelSession.of(desktop, **options).viewport.model, single=single)
    model_session = AsyncModelSession.of(desktop, **_in_session(provider, options))
    return [
        openai.declare(model_session, preview=preview)
        if provider == OPENAI
        else anthropic.declare(model_session, version=version)
    ]


def run(desktop: Desktop | ModelSession, payload: object, **options: Unpack[SessionOptions]) -> dict[str, Any]:
    """Carry out one call of our own tools, in a loop without them.

    Args:
        desktop: The desktop, or a model session on it, which remembers what the model has seen.
        payload: The call, as it is in `AIMessage.tool_calls`.
        options: As of `ModelSession`: size, settle, policy, ask.

    Returns:
        The fields of the `ToolMessage` that answers it; its status is `error` where the call was not done.

    Raises:
        DesktopLost: There is no desktop any more.
    """
    model_session = ModelSession.of(desktop, **with_usual(options, provider=PROVIDER))
    return encode(answered(model_session, payload))


async def run_async(desktop: AnyDesktop, payload: object, **options: Unpack[SessionOptions]) -> dict[str, Any]:
    """As `run`; cancelling it stops at the desktop's next safe point, with nothing held."""
    model_session = AsyncModelSession.of(desktop, **with_usual(options, provider=PROVIDER))
    return await model_session.run(lambda there: run(there, payload))


def respond(
    desktop: Desktop | ModelSession,
    response: object,
    *,
    provider: str | None = None,
    version: str | None = None,
    pictures: bool | None = None,
    **options: Unpack[SessionOptions],
) -> list[BaseMessage]:
    """Carry out all calls of OpenAI's or Anthropic's computer tool in an `AIMessage`; other tools are yours to answer.

    Args:
        desktop: The desktop, or a model session on it, which remembers what the model has seen.
        response: The `AIMessage`.
        provider: `openai` or `anthropic`; by default the response tells.
        version: Of Anthropic: which single tool was declared; see `deskhand.providers.anthropic.decode`.
        pictures: Of Anthropic: whether every answer has a picture; see `deskhand.providers.anthropic.run`.
        options: As of `ModelSession`, where none is given: size (by default of the provider), settle, policy, ask.

    Returns:
        A `ToolMessage` for each call, in order, with `status="error"` where it was not done. OpenAI's cannot say why: that is
        told by a `HumanMessage` after them all. None where there was nothing to do.

    Raises:
        ActionError: It is no message, or a call has no id, so that nothing can answer it.
        DesktopLost: There is no desktop any more.
        MissingExtra: The extra `langchain` is not installed.
    """
    sdk = load("deskhand.providers.langchain.sdk", "langchain")
    whose, calls = computer_calls(response, provider)
    model_session = ModelSession.of(desktop, **_in_session(whose, options))
    if whose == OPENAI:
        items = openai.respond(model_session, {"status": status_of(response), "output": calls})
        return _messages(sdk, from_openai(items))
    results = anthropic.respond(model_session, calls, version=version, pictures=pictures)
    return _messages(sdk, from_anthropic(results, calls))


async def respond_async(
    desktop: AnyDesktop,
    response: object,
    *,
    provider: str | None = None,
    version: str | None = None,
    pictures: bool | None = None,
    **options: Unpack[SessionOptions],
) -> list[BaseMessage]:
    """As `respond`; cancelling stops it at the desktop's next safe point, with nothing held."""
    whose, _ = computer_calls(response, provider)
    model_session = AsyncModelSession.of(desktop, **_in_session(whose, options))
    return await model_session.run(
        lambda there: respond(there, response, provider=whose, version=version, pictures=pictures)
    )


def _in_session(provider: str, options: SessionOptions) -> NamedOptions:
    """A session's options, with the sizes that a provider's models see whole."""
    if provider not in (OPENAI, ANTHROPIC):
        raise ActionError(f"computer tools are {OPENAI}'s or {ANTHROPIC}'s, not {shown(provider)}")
    return with_usual(options, provider=provider, size=provider)


def _messages(sdk: Any, fields: list[dict[str, Any]]) -> list[BaseMessage]:
    made: list[BaseMessage] = [sdk.message(each) for each in fields]
    return made
