"""Microsoft Agent Framework's calls carried out at a desktop or in a shell, without the package.

This module owns the way from a content to its result. It has no fields of contents (see `wire`, `shells`, `content`) and does
not import the package.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

from deskhand.errors import ActionError
from deskhand.providers.agent_framework import content as contents
from deskhand.providers.agent_framework.results import encode
from deskhand.providers.agent_framework.shells import decode_shell, encode_shell
from deskhand.providers.agent_framework.types import ComputerUseTool, ShellTool
from deskhand.providers.agent_framework.wire import decode
from deskhand.providers.session import AsyncModelSession, ModelSession, SessionOptions, with_usual
from deskhand.providers.shell_calls import carry_out_shell, with_shell
from deskhand.providers.values import ProviderCall, ShellAnswer, ShellCall

if TYPE_CHECKING:
    from collections.abc import Callable

    from deskhand._core.geometry import Viewport
    from deskhand.desktop.desktop import Desktop
    from deskhand.providers.agent_framework.types import ComputerUseResultContent, ShellResultContent
    from deskhand.providers.agent_framework.wire import ScrollUnit
    from deskhand.providers.session import AnyDesktop
    from deskhand.providers.shell_calls import AnyShell
    from deskhand.providers.values import Result

PROVIDER = "agent_framework"
"""The name of these calls' provider in policies and audit logs."""

SIZE = "openai"
"""The default size of pictures: that of OpenAI, the framework's only connector with a computer."""


def model_session(desktop: Desktop | ModelSession, **options: Unpack[SessionOptions]) -> ModelSession:
    """Return the session itself, or make one on a desktop."""
    return ModelSession.of(desktop, **with_usual(options, size=SIZE, provider=PROVIDER))


def async_model_session(desktop: AnyDesktop, **options: Unpack[SessionOptions]) -> AsyncModelSession:
    """Like `model_session`, at any kind of desktop."""
    return AsyncModelSession.of(desktop, **with_usual(options, size=SIZE, provider=PROVIDER))


def declare(desktop: AnyDesktop, *, environment: str = "linux", **options: Unpack[SessionOptions]) -> ComputerUseTool:
    """The desktop as a tool, with the size of its pictures; `fields.tool_to` declares it to a provider.

    Args:
        desktop: The desktop, or the model session that will carry out the calls.
        environment: The kind of desktop: `linux` or `browser`.
        options: As for `run`.
    """
    width, height = async_model_session(desktop, **options).viewport.model
    return ComputerUseTool(display_width=width, display_height=height, environment=environment)


def declare_shell() -> ShellTool:
    """A shell as a tool."""
    return ShellTool()


# --- the computer ---


def run(
    desktop: Desktop | ModelSession,
    payload: object,
    *,
    scroll_unit: ScrollUnit = "pixels",
    **options: Unpack[SessionOptions],
) -> ComputerUseResultContent:
    """Carry out a `ComputerUseCallContent`.

    Args:
        desktop: The desktop, or a model session on it. A session remembers which picture the model has seen: use one
            session for a whole conversation if the screen may change its size.
        payload: The content, its plain form, or a list with all contents of one call.
        scroll_unit: The unit of a scroll's amount, if the content does not name one.
        options: For a `ModelSession`, if none is given: `size` (by default `SIZE`), `settle`, `policy`, `ask`.

    Returns:
        The result. If the call cannot be read, is not allowed or fails, the reason is in its `error`, with the screen as it is.

    Raises:
        ActionError: The payload has no `call_id`, so it cannot be answered.
        DesktopLost: The desktop is gone.
    """
    at = model_session(desktop, **options)
    first = payload[0] if isinstance(payload, list | tuple) and payload else payload
    call_id = first.get("call_id") if isinstance(first, Mapping) else getattr(first, "call_id", None)
    read = functools.partial(decode, payload, scroll_unit=scroll_unit)
    return encode(answered(at, read, call_id, at.viewport))


async def run_async(
    desktop: AnyDesktop, payload: object, *, scroll_unit: ScrollUnit = "pixels", **options: Unpack[SessionOptions]
) -> ComputerUseResultContent:
    """Like `run`; cancelling it stops at the desktop's next safe point, with nothing held."""
    return await async_model_session(desktop, **options).run(lambda at: run(at, payload, scroll_unit=scroll_unit))


def answered(at: ModelSession, read: Callable[[Viewport], ProviderCall], call_id: object, viewport: Viewport) -> Result:
    """The result of a call that `read` decodes for a viewport; if it cannot be read, the reason.

    Raises:
        ActionError: The call cannot be read, and has no id.
        DesktopLost: The desktop is gone.
    """
    try:
        call = read(viewport)
    except ActionError as error:
        if not isinstance(call_id, str):
            raise
        return at.unreadable(error, id=call_id)
    return at.carry_out(call)


# --- the shell ---


def run_shell(shell: AnyShell | None, payload: object) -> ShellResultContent:
    """Carry out a `ShellCallContent`.

    Args:
        shell: What runs the commands: a session with `run(command, timeout)` (and `restart()`, where it can), or a desktop
            with a machine of its own, in which each command runs alone. None refuses them.
        payload: The content, or its plain form.

    Returns:
        The result. If a command cannot be read or run, the reason is on its `stderr`.

    Raises:
        ActionError: The payload has no `call_id`, so it cannot be answered.
        DesktopLost: The desktop is gone.
    """
    return encode_shell(_shell_answer(shell, payload, decode_shell))


def _shell_answer(shell: AnyShell | None, payload: object, read: Callable[[object], ShellCall]) -> ShellAnswer:
    try:
        call = read(payload)
    except ActionError as error:
        given = payload if isinstance(payload, Mapping) else None
        call_id = getattr(payload, "call_id", None) if given is None else given.get("call_id")
        if not isinstance(call_id, str):
            raise
        return ShellAnswer(call=ShellCall(commands=(), id=call_id), error=str(error))
    return carry_out_shell(shell, call, provider=PROVIDER)


def plain_shell_result(shell: AnyShell | None, payload: object) -> dict[str, Any]:
    """Like `run_shell`, for a `shell_tool_call`; returns the plain form of its `shell_tool_result`."""
    return contents.encode_shell_content(_shell_answer(shell, payload, contents.decode_shell_content))


async def run_shell_async(shell: AnyShell | None, payload: object) -> ShellResultContent:
    """Like `run_shell`, in a thread; cancelling it ends the command under way; see `shell_calls.with_shell`."""
    return await with_shell(shell, lambda inner: run_shell(inner, payload))
