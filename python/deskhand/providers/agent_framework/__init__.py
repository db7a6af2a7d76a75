"""A desktop as the computer of Microsoft Agent Framework's agents, and its calls and results converted for every provider.

With the package (`pip install 'deskhand[agent-framework]'` and a connector, such as agent-framework-openai): its agents
return a model's computer calls, and expect the results in the next messages:

    from deskhand.providers import agent_framework as deskhand_agent_framework

    computer = ModelSession(desktop, size="openai")
    agent = Agent(client=OpenAIChatClient(), tools=[OpenAIChatClient.get_computer_tool()])
    session = agent.create_session()
    response = await agent.run(task, session=session)
    while messages := await deskhand_agent_framework.respond_async(computer, response):
        response = await agent.run(messages, session=session)

In a workflow, a request's `data` is answered by `run_content`. `shell_executor` is for `get_shell_tool(func=...)`, and
`editor_tool` a tool for the files of the desktop's machine.

`ComputerUseCallContent` and the other classes here are those of the framework's design for all providers, which its package
does not contain. `run` and `run_shell` carry them out; `calls_from`, `calls_to` and the like convert them from and to the
payloads of OpenAI, Anthropic, Google and Amazon.

This module owns the public names. It has no field of the wire format, and does not import the package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from deskhand._core.extras import load
from deskhand.providers.agent_framework.base import BaseContent, BaseTool, DataContent, TextContent
from deskhand.providers.agent_framework.content import (
    decode_content,
    decode_content_result,
    decode_shell_content,
    decode_shell_content_result,
    encode_call_content,
    encode_content,
    encode_shell_content,
)
from deskhand.providers.agent_framework.fields import (
    PROVIDERS,
    calls_from,
    calls_to,
    note_to,
    result_from,
    result_to,
    tool_from,
    tool_to,
)
from deskhand.providers.agent_framework.loop import (
    declare,
    declare_shell,
    run,
    run_async,
    run_shell,
    run_shell_async,
)
from deskhand.providers.agent_framework.results import decode_result, encode
from deskhand.providers.agent_framework.shell_fields import (
    shell_call_from,
    shell_call_to,
    shell_result_from,
    shell_result_to,
    shell_tool_to,
)
from deskhand.providers.agent_framework.shells import (
    decode_shell,
    decode_shell_result,
    encode_shell,
    encode_shell_call,
)
from deskhand.providers.agent_framework.types import (
    ComputerUseAction,
    ComputerUseCallContent,
    ComputerUseResultContent,
    ComputerUseTool,
    ShellAction,
    ShellCallContent,
    ShellOutcome,
    ShellResultContent,
    ShellTool,
)
from deskhand.providers.agent_framework.wire import decode, encode_call, encode_calls
from deskhand.providers.anthropic.editing import WITHOUT_UNDO
from deskhand.providers.editors import TextEditor, editor_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    from agent_framework import Content, FunctionTool, Message

    from deskhand.desktop.desktop import Desktop
    from deskhand.providers.agent_framework.sdk import ShellExecutor
    from deskhand.providers.session import AnyDesktop, ModelSession, SessionOptions
    from deskhand.providers.shell_calls import AnyShell

__all__ = [
    "PROVIDERS",
    "BaseContent",
    "BaseTool",
    "ComputerUseAction",
    "ComputerUseCallContent",
    "ComputerUseResultContent",
    "ComputerUseTool",
    "DataContent",
    "ShellAction",
    "ShellCallContent",
    "ShellOutcome",
    "ShellResultContent",
    "ShellTool",
    "TextContent",
    "TextEditor",
    "calls_from",
    "calls_to",
    "declare",
    "declare_shell",
    "decode",
    "decode_content",
    "decode_content_result",
    "decode_result",
    "decode_shell",
    "decode_shell_content",
    "decode_shell_content_result",
    "decode_shell_result",
    "editor_tool",
    "encode",
    "encode_call",
    "encode_call_content",
    "encode_calls",
    "encode_content",
    "encode_shell",
    "encode_shell_call",
    "encode_shell_content",
    "note_to",
    "respond",
    "respond_async",
    "result_from",
    "result_to",
    "run",
    "run_async",
    "run_content",
    "run_content_async",
    "run_shell",
    "run_shell_async",
    "run_shell_content",
    "shell_call_from",
    "shell_call_to",
    "shell_executor",
    "shell_result_from",
    "shell_result_to",
    "shell_tool_to",
    "tool_from",
    "tool_to",
]


def _sdk() -> Any:
    return load("deskhand.providers.agent_framework.sdk", "agent-framework")


def run_content(
    desktop: Desktop | ModelSession,
    payload: Content,
    *,
    detail: str | None = "original",
    **options: Unpack[SessionOptions],
) -> Content:
    """Carry out a `computer_tool_call` of the package.

    Args:
        desktop: The desktop, or a model session on it; see `run`.
        payload: The content, such as the `data` of a workflow's request.
        detail: How the model is shown the picture; see `deskhand.providers.openai.encode`.
        options: As for `run`.

    Returns:
        The `computer_tool_result`. All of its safety checks are acknowledged if `ask` confirmed them, and otherwise none:
        a workflow refuses such a result, so cancel the request there. An error is in its additional properties, as
        `error`.

    Raises:
        ActionError: The call has no `call_id`.
        DesktopLost: The desktop is gone.
        MissingExtra: The package is not installed.
    """
    made: Content = _sdk().run_content(desktop, payload, detail=detail, **options)
    return made


async def run_content_async(
    desktop: AnyDesktop, payload: Content, *, detail: str | None = "original", **options: Unpack[SessionOptions]
) -> Content:
    """Like `run_content`; cancelling it stops at the desktop's next safe point, with nothing held."""
    made: Content = await _sdk().run_content_async(desktop, payload, detail=detail, **options)
    return made


def respond(
    desktop: Desktop | ModelSession,
    response: object,
    *,
    detail: str | None = "original",
    **options: Unpack[SessionOptions],
) -> list[Message]:
    """Carry out all computer calls of an agent's response.

    Args:
        desktop: As for `run_content`.
        response: The `AgentResponse`, or a chat client's `ChatResponse`.
        detail: As for `run_content`.
        options: As for `run`.

    Returns:
        The messages to continue with: the results, and a message for the model about each error. Empty if the response has
        no calls.

    Raises:
        ActionError: As for `run_content`.
        DesktopLost: The desktop is gone.
        MissingExtra: The package is not installed.
    """
    made: list[Message] = _sdk().respond(desktop, response, detail=detail, **options)
    return made


async def respond_async(
    desktop: AnyDesktop, response: object, *, detail: str | None = "original", **options: Unpack[SessionOptions]
) -> list[Message]:
    """Like `respond`; cancelling it stops at the desktop's next safe point, with nothing held."""
    made: list[Message] = await _sdk().respond_async(desktop, response, detail=detail, **options)
    return made


def run_shell_content(shell: AnyShell | None, payload: Content) -> Content:
    """Carry out a `shell_tool_call` of the package; otherwise like `run_shell`.

    Raises:
        ActionError: The call has no `call_id`.
        DesktopLost: The desktop is gone.
        MissingExtra: The package is not installed.
    """
    made: Content = _sdk().run_shell_content(shell, payload)
    return made


def shell_executor(shell: AnyShell | Callable[[], object], *, timeout: float = 120.0) -> ShellExecutor:
    """A shell as the protocol `ShellExecutor` of agent-framework-tools has it; with `as_function()` it is an agent's tool.

    Args:
        shell: A session, a desktop with a machine of its own, or a function that opens a session, such as
            `desktop.machine.open_shell`.
        timeout: Seconds for a command without a timeout of its own.

    Raises:
        MissingExtra: The package is not installed.
    """
    made: ShellExecutor = _sdk().ShellExecutor(shell, timeout=timeout)
    return made


def editor_tool(
    desktop: TextEditor | AnyDesktop,
    *,
    name: str = WITHOUT_UNDO,
    description: str = "View, create and edit text files on the desktop's machine.",
    approval_mode: Literal["always_require", "never_require"] = "always_require",
) -> FunctionTool:
    """A text editor for the files of the desktop's machine, as a function for an agent: `view`, `create`, `str_replace`...

    Args:
        desktop: The desktop, or an editor at it, the same for a whole conversation.
        name: The function's name for the model; by default the name that Anthropic's models know.
        description: The function's description for the model.
        approval_mode: Whether the framework asks before each call. The policy of a desktop asks in addition.

    Raises:
        MissingExtra: The package is not installed.
    """
    sdk = _sdk()
    made: FunctionTool = sdk.editor_tool(
        editor_of(desktop), name=name, description=description, approval_mode=approval_mode
    )
    return made
