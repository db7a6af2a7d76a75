"""Runs a model's shell commands, with any kind of shell, for all providers.

This module owns how a `ShellCall` is carried out: which commands run, where, for which provider, and when the rest is
skipped. It has no provider's payload and no SDK.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from deskhand.aio.desktop import AsyncShell
from deskhand.desktop.operations import CallContext, calling
from deskhand.errors import DeskhandError, DesktopLost, PolicyDenied, UnsupportedAction
from deskhand.machine.shell import Shell, in_subshell
from deskhand.providers.outcomes import how_it_ended
from deskhand.providers.session import DESKTOPS, AnyDesktop, AsyncModelSession
from deskhand.providers.values import ShellAnswer

if TYPE_CHECKING:
    from collections.abc import Callable

    from deskhand.machine.interface import CommandResult
    from deskhand.providers.session import ModelSession
    from deskhand.providers.values import ShellCall

_T = TypeVar("_T")
_STOP_PERIOD = 0.05


class ShellSession(Protocol):
    """A shell that keeps its directory and variables from one command to the next.

    If it has `restart` too, a model may begin a new session, and if it has `interrupt`, a command can be cancelled.
    """

    def run(self, command: str, *, timeout: float = ...) -> CommandResult:
        """Run a command line and return how it ended; the timeout is in seconds."""
        ...


AnyShell: TypeAlias = ShellSession | AsyncShell | AnyDesktop
"""A shell, or a desktop with a machine of its own, in which each command runs alone."""


def carry_out_shell(
    shell: AnyShell | None, call: ShellCall, *, provider: str, timeout: float | None = None
) -> ShellAnswer:
    """Run a call's commands in order. After one that was ended by its timeout or a cancellation, the rest is skipped.

    Args:
        shell: Runs the commands; with None they are refused.
        call: The call.
        provider: The provider of the call, for the policy and its log.
        timeout: Seconds for each command if the call has none; by default the shell's own timeout.

    Returns:
        The answer. If a command cannot be run or is not allowed, the reason is in `error`, after the outputs before it.

    Raises:
        DesktopLost: The desktop is gone.
    """
    outputs: list[CommandResult] = []
    try:
        if call.restart:
            with calling(CallContext(provider, call.id or "")):
                _restart(shell)
        for command in call.commands:
            outputs.append(run_command(shell, call, command, provider=provider, timeout=timeout))
            if how_it_ended(outputs[-1]) in ("timeout", "cancelled"):
                break
    except DesktopLost:
        raise
    except DeskhandError as error:
        return ShellAnswer(call=call, outputs=tuple(outputs), error=str(error), denied=isinstance(error, PolicyDenied))
    return ShellAnswer(call=call, outputs=tuple(outputs))


def run_command(
    shell: AnyShell | None, call: ShellCall, command: str, *, provider: str, timeout: float | None = None
) -> CommandResult:
    """Run one of a call's commands; see `carry_out_shell`.

    Raises:
        DeskhandError: It could not be run, or was not allowed.
        DesktopLost: The desktop is gone.
    """
    seconds = call.timeout or timeout
    options: dict[str, Any] = {} if seconds is None else {"timeout": seconds}
    if shell is None:
        raise UnsupportedAction("this desktop", "shell", "it has no shell")
    with calling(CallContext(provider, call.id or "")):
        if isinstance(shell, DESKTOPS):
            options |= {"cwd": call.cwd, "env": dict(call.env) or None}
            return AsyncModelSession.of(shell).session.desktop.machine.run(command, **options)
        session = _blocking(shell)
        if isinstance(session, Shell):
            return session.run(command, cwd=call.cwd, env=dict(call.env), **options)
        # A session of another package takes only a command.
        found: CommandResult = session.run(in_subshell(command, call.cwd, dict(call.env)), **options)
        return found


def _restart(shell: AnyShell | None) -> None:
    again = None if shell is None else getattr(_blocking(shell), "restart", None)
    if callable(again):
        again()
    # A desktop's machine keeps no state from one command to the next.
    elif not isinstance(shell, DESKTOPS):
        raise UnsupportedAction("this shell", "restart", "it cannot begin anew")


def _blocking(shell: Any) -> Any:
    return shell.shell if isinstance(shell, AsyncShell) else shell


async def with_shell(shell: AnyShell | None, function: Callable[[AnyShell | None], _T]) -> _T:
    """Call a function with a shell, or with a session on the desktop, in a thread.

    Cancelling ends the running command, on a desktop and if the shell has an `interrupt`.
    """
    if isinstance(shell, Shell):
        # A cancellation must end this call's command, and a question about it, but nothing after it.
        shell = AsyncShell(shell)
    if isinstance(shell, AsyncShell):
        return await shell.work(function)
    if isinstance(shell, DESKTOPS):
        return await AsyncModelSession.of(shell).run(function)
    return await in_thread(lambda: function(shell), getattr(_blocking(shell), "interrupt", None))


async def with_model_session(
    there: AsyncModelSession, shell: AnyShell | None, function: Callable[[ModelSession], _T]
) -> _T:
    """Like `there.run(function)`, for a function that also uses a shell: cancelling ends that shell's command too."""
    interrupt = None if isinstance(shell, DESKTOPS) else getattr(_blocking(shell), "interrupt", None)
    job = asyncio.ensure_future(there.run(function))
    try:
        return await asyncio.shield(job)
    except asyncio.CancelledError:
        job.cancel()
        await _ended(job, interrupt)
        raise


async def in_thread(function: Callable[[], _T], interrupt: Callable[[], object] | None) -> _T:
    """Call a function in a thread. On cancellation, `interrupt` is called until the function has returned."""
    job = asyncio.ensure_future(asyncio.to_thread(function))
    try:
        return await asyncio.shield(job)
    except asyncio.CancelledError:
        await _ended(job, interrupt)
        raise


async def _ended(job: asyncio.Future[Any], interrupt: Callable[[], object] | None) -> None:
    while callable(interrupt) and not job.done():
        # Repeatedly, because a command that is just about to begin ignores an earlier interruption.
        interrupt()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([job], timeout=_STOP_PERIOD)
