"""A desktop as the computer of Microsoft Agent Framework's agents, and its calls and results as every provider's.

With the package (`pip install 'deskhand[agent-framework]'` and a connector, such as agent-framework-openai), whose agents
return what a model asks of a computer, to be answered by the next messages:

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
does not have: `run` and `run_shell` carry them out, and `calls_from`, `calls_to` and the like turn them from and to the
payloads of OpenAI, Anthropic, Google and Amazon.

This module owns the names that users call. What must never appear here: a field of the wire, an import of the package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from deskhand._core.extras import load
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
    BaseContent,
    BaseTool,
    ComputerUseAction,
    ComputerUseCallContent,
    ComputerUseResultContent,
    ComputerUseTool,
    DataContent,
    ShellAction,
    ShellCallContent,
    ShellOutcome,
    ShellResultContent,
    ShellTool,
    TextContent,
)
from deskhand.providers.agent_framework.wire import (
    decode,
    decode_result,
    encode,
    encode_call,
    encode_calls,
)
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
    """Carry out a `computer_tool_call` of the package's.

    Args:
        desktop: The desktop, or a model session on it; see `run`.
        payload: The content, such as the `data` of a workflow's request.
        detail: How the model is shown the picture; see `deskhand.providers.openai.encode`.
        options: As of `run`.

    Returns:
        The `computer_tool_result`. Its safety checks are acknowledged, all of them, if somebody has confirmed them (`ask`), and
        else none: a workflow refuses such a result, and the request is to be cancelled there. What went wrong is in its
        additional properties, as `error`.

    Raises:
        ActionError: The call has no `call_id`.
        DesktopLost: There is no desktop any more.
        MissingExtra: The package is not installed.
    """
    made: Content = _sdk().run_content(desktop, payload, detail=detail, **options)
    return made


async def run_content_async(
    desktop: AnyDesktop, payload: Content, *, detail: str | None = "original", **options: Unpack[SessionOptions]
) -> Content:
    """As `run_content`; cancelling it stops at the desktop's next safe point, with nothing held."""
    made: Content = await _sdk().run_content_async(desktop, payload, detail=detail, **options)
    return made


def respond(
    desktop: Desktop | ModelSession,
    response: object,
    *,
    detail: str | None = "original",
    **options: Unpack[SessionOptions],
) -> list[Message]:
    """Carry out all that an agent's response asks of the computer.

    Args:
        desktop: As of `run_content`.
        response: The `AgentResponse`, or a chat client's `ChatResponse`.
        detail: As of `run_content`.
        options: As of `run`.

    Returns:
        The messages to go on with: the results, and where something could not be done, one that tells the model so. None when
        there was nothing to do.

    Raises:
        ActionError: As of `run_content`.
        DesktopLost: There is no desktop any more.
        MissingExtra: The package is not installed.
    """
    made: list[Message] = _sdk().respond(desktop, response, detail=detail, **options)
    return made


async def respond_async(
    desktop: AnyDesktop, response: object, *, detail: str | None = "original", **options: Unpack[SessionOptions]
) -> list[Message]:
    """As `respond`; cancelling it stops at the desktop's next safe point, with nothing held."""
    made: list[Message] = await _sdk().respond_async(desktop, response, detail=detail, **options)
    return made


def run_shell_content(shell: AnyShell | None, payload: Content) -> Content:
    """Carry out a `shell_tool_call` of the package's; otherwise as `run_shell`.

    Raises:
        ActionError: The call has no `call_id`.
        DesktopLost: There is no desktop any more.
        MissingExtra: The package is not installed.
    """
    made: Content = _sdk().run_shell_content(shell, payload)
    return made


def shell_executor(shell: AnyShell | Callable[[], Any], *, timeout: float = 120.0) -> ShellExecutor:
    """A shell as the protocol `ShellExecutor` of agent-framework-tools has it; with `as_function()` it is an agent's tool.

    Args:
        shell: A session, a desktop with a machine of its own, or a function that opens a session, such as
            `desktop.machine.open_shell`.
        timeout: Seconds for a command that does not say.

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
    """A text editor over the files of the desktop's machine, as a function of an agent's: `view`, `create`, `str_replace`...

    Args:
        desktop: The desktop, or an editor at it, the same for a whole conversation.
        name: What the model calls it; by default as Anthropic's models know it.
        description: What the model is told of it.
        approval_mode: Whether the framework asks before each call. A desktop with a policy asks besides.

    Raises:
        MissingExtra: The package is not installed.
    """
    sdk = _sdk()
    made: FunctionTool = sdk.editor_tool(
        editor_of(desktop), name=name, description=description, approval_mode=approval_mode
    )
    return made
