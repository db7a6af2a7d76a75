"""The classes of Microsoft Agent Framework's package for a desktop: `Content`, messages, the shell protocol, functions.

This module owns the code that needs the package (agent-framework-core). The fields of contents are in `content`.

`ShellExecutor` implements the protocol of agent-framework-tools, a pre-release that does not have to be installed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

from agent_framework import Content, FunctionTool, Message
from agent_framework import tool as function_tool

from deskhand._core.arguments import expect, expect_several
from deskhand.errors import ActionError
from deskhand.providers.agent_framework import content as contents
from deskhand.providers.agent_framework.loop import (
    PROVIDER,
    answered,
    async_model_session,
    model_session,
    plain_shell_result,
)
from deskhand.providers.anthropic.editing import SCHEMA, WITH_UNDO, edit_of
from deskhand.providers.editors import carry_out_edit, with_editor
from deskhand.providers.outcomes import how_it_ended, notes_on, status_of
from deskhand.providers.session import DESKTOPS, SessionOptions
from deskhand.providers.shell_calls import in_thread, run_command, with_shell
from deskhand.providers.values import ShellCall

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from deskhand._core.geometry import Viewport
    from deskhand.desktop.desktop import Desktop
    from deskhand.providers.editors import TextEditor
    from deskhand.providers.session import AnyDesktop, ModelSession
    from deskhand.providers.shell_calls import AnyShell
    from deskhand.providers.values import Result


def run_content(
    desktop: Desktop | ModelSession,
    payload: Content,
    *,
    detail: str | None = "original",
    **options: Unpack[SessionOptions],
) -> Content:
    """See `deskhand.providers.agent_framework.run_content`."""
    expect("run_content: payload", payload, Content)
    at = model_session(desktop, **options)
    return _content(_result(at, payload, at.viewport), detail)


async def run_content_async(
    desktop: AnyDesktop, payload: Content, *, detail: str | None = "original", **options: Unpack[SessionOptions]
) -> Content:
    """See `deskhand.providers.agent_framework.run_content_async`."""
    return await async_model_session(desktop, **options).run(lambda at: run_content(at, payload, detail=detail))


def _result(at: ModelSession, call: Content, viewport: Viewport) -> Result:
    return answered(at, lambda seen: contents.decode_content(call, seen), call.call_id, viewport)


def _content(result: Result, detail: str | None) -> Content:
    return Content.from_dict(contents.encode_content(result, detail=detail))


def respond(
    desktop: Desktop | ModelSession,
    response: Any,
    *,
    detail: str | None = "original",
    **options: Unpack[SessionOptions],
) -> list[Message]:
    """See `deskhand.providers.agent_framework.respond`."""
    at = model_session(desktop, **options)
    # All calls of a response point into the picture that the model saw before it.
    viewport = at.viewport
    results = [_result(at, call, viewport) for call in _calls(response)]
    if not results:
        return []
    messages = [Message("tool", [_content(result, detail) for result in results])]
    notes = [said for result in results if (said := contents.note(result)) is not None]
    return [*messages, Message("user", ["\n".join(notes)])] if notes else messages


async def respond_async(
    desktop: AnyDesktop, response: Any, *, detail: str | None = "original", **options: Unpack[SessionOptions]
) -> list[Message]:
    """See `deskhand.providers.agent_framework.respond_async`."""
    return await async_model_session(desktop, **options).run(lambda at: respond(at, response, detail=detail))


def _calls(response: Any) -> Iterator[Content]:
    for message in expect_several("the messages of a response", getattr(response, "messages", None)):
        for content in message.contents:
            # A call that the provider has carried out itself is in the response too, and must not be answered.
            if content.type == contents.CALL and content.user_input_request and not content.informational_only:
                yield content


def run_shell_content(shell: AnyShell | None, payload: Content) -> Content:
    """See `deskhand.providers.agent_framework.run_shell_content`."""
    return Content.from_dict(plain_shell_result(shell, payload))


# --- the protocol of agent-framework-tools ---


@dataclass(frozen=True)
class ShellResult:
    """The result of a command, with the names of agent-framework-tools.

    Attributes:
        stdout: Its standard output.
        stderr: Its standard error.
        exit_code: Its exit code; 124 if the timeout ended it, 137 if it was cancelled.
        duration_ms: Milliseconds.
        truncated: Whether output was dropped.
        timed_out: Whether the timeout ended it.
    """

    stdout: str
    stderr: str
    exit_code: int
    duration_ms: int
    truncated: bool = False
    timed_out: bool = False

    def format_for_model(self) -> str:
        """The result as one text."""
        lines = [text.rstrip("\n") for text in (self.stdout, self.stderr) if text]
        lines += ["(more was written than is kept)"] if self.truncated else []
        lines += ["(ended at the timeout)"] if self.timed_out else []
        return "\n".join([*lines, f"exit code: {self.exit_code}"])


class ShellExecutor:
    """A shell session, or a desktop's machine, that runs commands for the framework. Each conversation needs its own.

    It implements the protocol `ShellExecutor` of agent-framework-tools. `as_function` returns the function for a chat client's
    `get_shell_tool(func=...)`.
    """

    def __init__(self, shell: AnyShell | Callable[[], object], *, timeout: float = 120.0) -> None:
        """Take a shell.

        Args:
            shell: As for `run_shell`, or a function that opens a session, such as `desktop.machine.open_shell`: `start`, or the
                first command, opens that session, and `close` closes it. A session that was open before is not closed.
            timeout: Seconds for a command without a timeout of its own.
        """
        self._opens = (
            shell if callable(shell) and not isinstance(shell, DESKTOPS) and not hasattr(shell, "run") else None
        )
        self._shell: Any = None if self._opens else shell
        self._timeout = timeout

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Open the session if it is not open."""
        if self._opens is not None and self._shell is None:
            self._shell = await in_thread(self._opens, None)

    async def close(self) -> None:
        """Close the session that was opened here. Further calls do nothing."""
        if self._opens is not None and self._shell is not None:
            opened, self._shell = self._shell, None
            await in_thread(opened.close, None)

    async def run(self, command: str, *, timeout: float | None = None) -> ShellResult:
        """Run a command line until it ends or its timeout. Cancelling this ends the command if the shell has an `interrupt`.

        Args:
            command: The command line.
            timeout: Seconds; by default the executor's.

        Raises:
            DeskhandError: It could not be run, or was not allowed.
            DesktopLost: The desktop is gone.
        """
        await self.start()
        began = time.monotonic()
        call = ShellCall(commands=(command,), timeout=self._timeout if timeout is None else timeout)
        output = await with_shell(self._shell, lambda shell: run_command(shell, call, command, provider=PROVIDER))
        took = round(1000 * (time.monotonic() - began))
        # The protocol has no other place for these notes.
        notes = notes_on(replace(output, truncated=False), ending=how_it_ended(output) == "cancelled")
        stderr = "\n".join([*([output.stderr] if output.stderr else []), *notes])
        return ShellResult(output.stdout, stderr, status_of(output), took, output.truncated, output.timed_out)

    def as_function(
        self,
        *,
        name: str = "run_shell",
        description: str = "Run a command line in the desktop's shell.",
        approval_mode: Literal["always_require", "never_require"] = "always_require",
    ) -> FunctionTool:
        """The shell as a function for an agent.

        Args:
            name: The function's name for the model.
            description: The function's description for the model.
            approval_mode: Whether the framework asks before each command. The policy of a desktop asks in addition.
        """

        async def run_shell(command: str) -> list[Content]:
            return [_content_of(await self.run(command))]

        return function_tool(
            func=run_shell,
            name=name,
            description=description,
            approval_mode=approval_mode,
            kind="shell",
            result_parser=lambda made: made,
        )


def _content_of(result: ShellResult) -> Content:
    """The text for the model, with the parts from which a connector makes its own form."""
    names = ("stdout", "stderr", "exit_code", "truncated", "timed_out")
    return Content.from_text(
        result.format_for_model(), additional_properties={name: getattr(result, name) for name in names}
    )


# --- the text editor ---


def editor_tool(
    editor: TextEditor, *, name: str, description: str, approval_mode: Literal["always_require", "never_require"]
) -> FunctionTool:
    """See `deskhand.providers.agent_framework.editor_tool`."""

    async def edit(
        command: str,
        path: str,
        *,
        view_range: list[int] | None = None,
        file_text: str | None = None,
        old_str: str | None = None,
        new_str: str | None = None,
        insert_line: int | None = None,
        insert_text: str | None = None,
    ) -> str:
        given = {
            "command": command,
            "path": path,
            "view_range": view_range,
            "file_text": file_text,
            "old_str": old_str,
            "new_str": new_str,
            "insert_line": insert_line,
            "insert_text": insert_text,
        }
        try:
            call = edit_of(given, id=None, name=WITH_UNDO, extra={})
        except ActionError as error:
            return f"Error: {error}"
        answer = await with_editor(editor, lambda _: carry_out_edit(editor, call, provider=PROVIDER))
        return f"Error: {answer.text}" if answer.failed else answer.text

    return FunctionTool(name=name, description=description, approval_mode=approval_mode, func=edit, input_model=SCHEMA)
