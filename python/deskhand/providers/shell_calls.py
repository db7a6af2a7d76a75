"""Running the commands that a model asks for, by whatever runs commands, for all providers.

This module owns what a `ShellCall` comes to: what is run, where, on whose behalf, and after what no more is. What must never
appear here: a provider's payload, an SDK.
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

__all__ = [
    "AnyShell",
    "ShellSession",
    "carry_out_shell",
    "in_thread",
    "run_command",
    "with_model_session",
    "with_shell",
]

_T = TypeVar("_T")
_STOP_PERIOD = 0.05


class ShellSession(Protocol):
    """A shell that keeps its directory and variables from one command to the next.

    Where it has `restart` too, a model may begin anew, and where it has `interrupt`, a command can be cancelled.
    """

    def run(self, command: str, *, timeout: float = ...) -> CommandResult:
        """Run a command line and return how it ended; the timeout is in seconds."""
        ...


AnyShell: TypeAlias = ShellSession | AsyncShell | AnyDesktop
"""A shell, or a desktop with a machine of its own, in which each command runs alone."""


def carry_out_shell(
    shell: AnyShell | None, call: ShellCall, *, provider: str, timeout: float | None = None
) -> ShellAnswer:
    """Run a call's commands, one after the other; after one that was ended, at its timeout or by a cancellation, no more.

    Args:
        shell: What runs them; None refuses them.
        call: What was asked.
        provider: Whose call it is, for the policy and its log.
        timeout: Seconds for each command where the call does not say; by default the shell's own.

    Returns:
        What came of it. What could not be run, or was not allowed, is told in its `error`, after what was run before.

    Raises:
        DesktopLost: There is no desktop any more.
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
    """Run one of a call's commands; as `carry_out_shell`.

    Raises:
        DeskhandError: It could not be run, or nobody allowed it.
        DesktopLost: There is no desktop any more.
    """
    seconds = call.timeout or timeout
    options: dict[str, Any] = {} if seconds is None else {"timeout": seconds}
    if shell is None:
        raise UnsupportedAction("this desktop", "shell", "it was given no shell")
    with calling(CallContext(provider, call.id or "")):
        if isinstance(shell, DESKTOPS):
            options |= {"cwd": call.cwd, "env": dict(call.env) or None}
            return AsyncModelSession.of(shell).session.desktop.machine.run(command, **options)
        session = _blocking(shell)
        if isinstance(session, Shell):
            return session.run(command, cwd=call.cwd, env=dict(call.env), **options)
        # A session that is not deskhand's takes a command and nothing else.
        found: CommandResult = session.run(in_subshell(command, call.cwd, dict(call.env)), **options)
        return found


def _restart(shell: AnyShell | None) -> None:
    again = None if shell is None else getattr(_blocking(shell), "restart", None)
    if callable(again):
        again()
    # A desktop's machine keeps nothing from one command to the next.
    elif not isinstance(shell, DESKTOPS):
        raise UnsupportedAction("this shell", "restart", "it cannot begin anew")


def _blocking(shell: Any) -> Any:
    return shell.shell if isinstance(shell, AsyncShell) else shell


async def with_shell(shell: AnyShell | None, function: Callable[[AnyShell | None], _T]) -> _T:
    """Call a function with a shell, or a session at the desktop, in a thread.

    Cancelling ends the command under way, at a desktop and where the shell has an `interrupt`.
    """
    if isinstance(shell, Shell):
        # A cancellation has to end this call's command, and a question about it, and nothing that comes after it.
        shell = AsyncShell(shell)
    if isinstance(shell, AsyncShell):
        return await shell.work(function)
    if isinstance(shell, DESKTOPS):
        return await AsyncModelSession.of(shell).run(function)
    return await in_thread(lambda: function(shell), getattr(_blocking(shell), "interrupt", None))


async def with_model_session(
    there: AsyncModelSession, shell: AnyShell | None, function: Callable[[ModelSession], _T]
) -> _T:
    """As `there.run(function)`, of a function that uses a shell as well: cancelling ends the command of that too."""
    interrupt = None if isinstance(shell, DESKTOPS) else getattr(_blocking(shell), "interrupt", None)
    job = asyncio.ensure_future(there.run(function))
    try:
        return await asyncio.shield(job)
    except asyncio.CancelledError:
        job.cancel()
        await _ended(job, interrupt)
        raise


async def in_thread(function: Callable[[], _T], interrupt: Callable[[], object] | None) -> _T:
    """Call a function in a thread; when this is cancelled, `interrupt` is called until the function has returned."""
    job = asyncio.ensure_future(asyncio.to_thread(function))
    try:
        return await asyncio.shield(job)
    except asyncio.CancelledError:
        await _ended(job, interrupt)
        raise


async def _ended(job: asyncio.Future[Any], interrupt: Callable[[], object] | None) -> None:
    while callable(interrupt) and not job.done():
        # Again and again: a command that was about to begin forgets what came before it.
        interrupt()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([job], timeout=_STOP_PERIOD)
