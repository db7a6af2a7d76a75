"""LangChain: a desktop as tools for any chat model, and the computer tools of OpenAI and Anthropic through its messages.

Our own actions, for any model that takes tools and pictures (`pip install 'deskhand[langchain]'`):

    from deskhand.providers import langchain as deskhand_langchain

    tools = deskhand_langchain.tools(desktop)               # an action each, and `elements`; beside them, hand_over_tool
    model = init_chat_model(...).bind_tools(tools)          # or an agent: create_agent(model, tools)

The computer tool that a model was trained on, with ChatOpenAI or ChatAnthropic:

    session = ModelSession(desktop, size="anthropic")
    model = ChatAnthropic(...).bind_tools(deskhand_langchain.declare(session, provider="anthropic"))
    message = model.invoke(messages)
    messages += [message, *deskhand_langchain.respond(session, message)]

This module owns the public names. It has no field of a message, and does not import the SDK.
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
from deskhand.providers.mcp.wire import TOOL
from deskhand.providers.session import AsyncModelSession, ModelSession, SessionOptions, with_usual

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from langchain_core.tools import BaseTool

    from deskhand.desktop.desktop import Desktop
    from deskhand.providers.session import AnyDesktop, NamedOptions
    from deskhand.providers.values import JSONObject

__all__ = [
    "TOOL",
    "declare",
    "decode",
    "decode_result",
    "elements_tool",
    "encode",
    "encode_call",
    "hand_over_tool",
    "respond",
    "respond_async",
    "run",
    "run_async",
    "tool",
    "tools",
]

PROVIDER = "langchain"
"""The name of our own tools' calls in policies and audit logs."""


def tool(desktop: AnyDesktop, **options: Unpack[SessionOptions]) -> BaseTool:
    """The desktop as one tool, `computer`, for all actions; otherwise like `tools`.

    Args:
        desktop: As for `tools`.
        options: As for `tools`.

    Raises:
        MissingExtra: The extra `langchain` is not installed.
    """
    return _tools(desktop, single=True, **options)[0]


def elements_tool(desktop: AnyDesktop, **options: Unpack[SessionOptions]) -> BaseTool:
    """The tool `elements` alone, for use beside `tool`: the model reads the elements that applications report.

    Args:
        desktop: The model session of the other tool, so that points are in pixels of its pictures, or the desktop.
        options: As for `tools`.

    Raises:
        MissingExtra: The extra `langchain` is not installed.
    """
    return _tools(desktop, single=True, **options)[-1]


def hand_over_tool(desktop: AnyDesktop, **options: Unpack[SessionOptions]) -> BaseTool:
    """The tool `hand_over`, for use beside the others: the model asks a person for help (`Desktop.hand_over`).

    Args:
        desktop: The model session of the other tools, or the desktop. A person must be able to answer: see `deskhand.watch`.
        options: As for `tools`.

    Raises:
        MissingExtra: The extra `langchain` is not installed.
    """
    return _tools(desktop, single=True, hand_over=True, **options)[-1]


def tools(desktop: AnyDesktop, **options: Unpack[SessionOptions]) -> list[BaseTool]:
    """The desktop's actions as LangChain's tools, one for each, and the tool `elements`; sync and async.

    A tool call is answered by a `ToolMessage` with the settled screenshot. If it fails or is not allowed, the message has
    `status="error"` and the reason as its text. Its `artifact` is a dictionary for JSON that says whether the screen changed
    and settled, or whether the call was denied; `artifact.result` is the whole `Result`.

    Args:
        desktop: The desktop, which the caller closes. Tools that are called at the same time take turns.
        options: As for `ModelSession`: size, settle, policy, ask.

    Raises:
        MissingExtra: The extra `langchain` is not installed.
    """
    return _tools(desktop, single=False, **options)


def _tools(
    desktop: AnyDesktop, *, single: bool, hand_over: bool = False, **options: Unpack[SessionOptions]
) -> list[BaseTool]:
    sdk = load("deskhand.providers.langchain.sdk", "langchain")
    model_session = AsyncModelSession.of(desktop, **with_usual(options, provider=PROVIDER))
    made: list[BaseTool] = sdk.make_tools(model_session, single=single, hand_over=hand_over)
    return made


def declare(
    desktop: AnyDesktop,
    *,
    provider: str | None = None,
    single: bool = False,
    hand_over: bool = False,
    preview: bool = False,
    version: str = anthropic.LATEST,
    **options: Unpack[SessionOptions],
) -> list[JSONObject]:
    """The arguments of `bind_tools`: a provider's computer tool, or our own actions as functions.

    Args:
        desktop: The desktop, or a model session on it.
        provider: `openai`, `anthropic`, or None for our own actions, which any model can call.
        single: For our own actions: one function for all.
        hand_over: For our own actions: also the function `hand_over`, by which the model asks a person for help.
        preview: For OpenAI: declare `computer_use_preview`.
        version: For Anthropic: the tool's version. ChatAnthropic adds the beta that it needs.
        options: As for `ModelSession`, if none is given: size (by default that of the provider), settle, policy, ask.

    Raises:
        ActionError: There is no such provider, or version.
    """
    if provider is None:
        size = AsyncModelSession.of(desktop, **options).viewport.model
        return functions(size, single=single, hand_over=hand_over)
    model_session = AsyncModelSession.of(desktop, **_in_session(provider, options))
    return [
        openai.declare(model_session, preview=preview)
        if provider == OPENAI
        else anthropic.declare(model_session, version=version)
    ]


def run(
    desktop: Desktop | ModelSession, payload: object, *, hand_over: bool = False, **options: Unpack[SessionOptions]
) -> JSONObject:
    """Carry out one call of our own tools, for a loop that does not use the tools.

    Args:
        desktop: The desktop, or a model session on it, which remembers what the model has seen.
        payload: The call, from `AIMessage.tool_calls`.
        hand_over: Whether it may ask a person for help.
        options: As for `ModelSession`: size, settle, policy, ask.

    Returns:
        The fields of the `ToolMessage` for it; its status is `error` if the call failed.

    Raises:
        DesktopLost: The desktop is gone.
    """
    model_session = ModelSession.of(desktop, **with_usual(options, provider=PROVIDER))
    return encode(answered(model_session, payload, hand_over=hand_over))


async def run_async(
    desktop: AnyDesktop, payload: object, *, hand_over: bool = False, **options: Unpack[SessionOptions]
) -> JSONObject:
    """Like `run`; cancelling it stops at the desktop's next safe point, with nothing held."""
    model_session = AsyncModelSession.of(desktop, **with_usual(options, provider=PROVIDER))
    return await model_session.run(lambda there: run(there, payload, hand_over=hand_over))


def respond(
    desktop: Desktop | ModelSession,
    response: object,
    *,
    provider: str | None = None,
    version: str | None = None,
    pictures: bool | None = None,
    **options: Unpack[SessionOptions],
) -> list[BaseMessage]:
    """Carry out all calls of OpenAI's or Anthropic's computer tool in an `AIMessage`; answer other tools yourself.

    Args:
        desktop: The desktop, or a model session on it, which remembers what the model has seen.
        response: The `AIMessage`.
        provider: `openai` or `anthropic`; by default it is recognized from the response.
        version: For Anthropic: the single tool that was declared; see `deskhand.providers.anthropic.decode`.
        pictures: For Anthropic: whether every answer has a picture; see `deskhand.providers.anthropic.run`.
        options: As for `ModelSession`, if none is given: size (by default that of the provider), settle, policy, ask.

    Returns:
        A `ToolMessage` for each call, in order, with `status="error"` if it failed. OpenAI's cannot carry the reason, so a
        `HumanMessage` after them all reports it. Empty if there are no calls.

    Raises:
        ActionError: It is not a message, or a call has no id, so it cannot be answered.
        DesktopLost: The desktop is gone.
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
    """Like `respond`; cancelling stops it at the desktop's next safe point, with nothing held."""
    whose, _ = computer_calls(response, provider)
    model_session = AsyncModelSession.of(desktop, **_in_session(whose, options))
    return await model_session.run(
        lambda there: respond(there, response, provider=whose, version=version, pictures=pictures)
    )


def _in_session(provider: str, options: SessionOptions) -> NamedOptions:
    """A session's options, with the picture size that a provider's models see without scaling."""
    if provider not in (OPENAI, ANTHROPIC):
        raise ActionError(f"computer tools are {OPENAI}'s or {ANTHROPIC}'s, not {shown(provider)}")
    return with_usual(options, provider=provider, size=provider)


def _messages(sdk: Any, fields: list[dict[str, Any]]) -> list[BaseMessage]:
    made: list[BaseMessage] = [sdk.message(each) for each in fields]
    return made
