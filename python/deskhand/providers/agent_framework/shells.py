"""Microsoft Agent Framework's shell contents: `ShellCallContent` as a call, an answer as `ShellResultContent`, and back. Pure.

This module owns what the fields mean. What must never appear here: a provider's payload (see `fields`), the package, a shell.

A result has one output for all commands of its call; where there were several, the additional property `outputs` has each.
Of a call, `timeout_ms`, `max_output_length` (characters, as OpenAI has them), `working_directory` and `env` are additional
properties.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from deskhand.errors import ActionError, shown
from deskhand.inside import CommandResult
from deskhand.inside import outcome_of as command_outcome
from deskhand.providers.agent_framework.types import ShellAction, ShellCallContent, ShellOutcome, ShellResultContent
from deskhand.providers.common import (
    ShellAnswer,
    ShellCall,
    a_command,
    a_list,
    a_mapping,
    a_string,
    an_integer,
    length_of,
    the_rest,
    timeout_of,
    variables_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deskhand.providers.agent_framework.types import TextContent

__all__ = ["decode_shell", "decode_shell_result", "encode_shell", "encode_shell_call", "outcome_of"]

RESTARTED = "The shell was started anew."

_MILLISECONDS = 1000


# --- calls ---


def decode_shell(payload: object) -> ShellCall:
    """What a content asks of a shell.

    Args:
        payload: A `ShellCallContent` or its plain form.

    Raises:
        ActionError: It is malformed, or asks for nothing.
    """
    content = ShellCallContent.of(payload)
    restart = _restarts(content.action)
    commands = tuple(a_command(one) for one in a_list([] if content.commands is None else content.commands, "commands"))
    if not commands and not restart:
        raise ActionError("the shell is given commands, or the action restart")
    more = a_mapping(content.additional_properties, "additional_properties")
    cwd = more.get("working_directory")
    return ShellCall(
        commands=commands,
        id=a_string(content.call_id, "call_id"),
        timeout=timeout_of(more.get("timeout_ms")),
        limit=length_of(more.get("max_output_length")),
        restart=restart,
        cwd=None if cwd is None else a_command(cwd),
        env=variables_of(more.get("env")),
        extra=the_rest(more, "timeout_ms", "max_output_length", "working_directory", "env"),
    )


def _restarts(action: object) -> bool:
    name = action.value if isinstance(action, Enum) else action
    if not isinstance(name, str) or name not in ("execute", "restart"):
        raise ActionError(f"the shell's action is execute or restart, not {shown(name)}")
    return name == "restart"


def encode_shell_call(call: ShellCall) -> ShellCallContent:
    """The content that asks for the same.

    Raises:
        ActionError: There is no id.
    """
    if call.id is None:
        raise ActionError("a shell's content needs the call's id")
    more: dict[str, Any] = {
        "timeout_ms": None if call.timeout is None else round(call.timeout * _MILLISECONDS),
        "max_output_length": call.limit,
        "working_directory": call.cwd,
        "env": dict(call.env) or None,
    }
    return ShellCallContent(
        call_id=call.id,
        action=ShellAction.RESTART if call.restart else ShellAction.EXECUTE,
        commands=list(call.commands) or None,
        additional_properties={**call.extra, **{key: value for key, value in more.items() if value is not None}},
    )


# --- results ---


def outcome_of(answer: ShellAnswer) -> ShellOutcome:
    """How a call's commands ended, all in all."""
    last = answer.outputs[-1] if answer.outputs else None
    if last is not None and last.timed_out:
        return ShellOutcome.TIMEOUT
    if last is not None and last.exit_code is None:
        return ShellOutcome.CANCELLED
    failed = answer.error is not None or any(output.exit_code for output in answer.outputs)
    return ShellOutcome.ERROR if failed else ShellOutcome.SUCCESS


def encode_shell(answer: ShellAnswer) -> ShellResultContent:
    """The content that tells what came of a call; outputs are cut to the length that was asked for, all together.

    Raises:
        ActionError: There is no id to answer to.
    """
    call = answer.call
    if call.id is None:
        raise ActionError("a shell's result needs the call's id")
    outputs = _cut(answer.outputs, call.limit)
    stdout = "".join(output["stdout"] for output in outputs)
    stderr = "".join(output["stderr"] for output in outputs)
    more: dict[str, Any] = {}
    if len(outputs) > 1:
        more["outputs"] = outputs
    elif outputs and outputs[0].get("truncated"):
        more["truncated"] = True
    if answer.error is not None:
        more["error"] = answer.error
        stderr = f"{stderr}\n{answer.error}" if stderr else answer.error
    if answer.denied:
        more["denied"] = True
    if call.restart and not outputs and answer.error is None:
        stdout = RESTARTED
    return ShellResultContent(
        call_id=call.id,
        stdout=stdout or None,
        stderr=stderr or None,
        exit_code=answer.outputs[-1].exit_code if answer.outputs else None,
        outcome=outcome_of(answer),
        additional_properties=more,
    )


def _cut(outputs: tuple[CommandResult, ...], limit: int | None) -> list[dict[str, Any]]:
    left = limit
    plain = []
    for output in outputs:
        each: dict[str, Any] = {"stdout": output.stdout, "stderr": output.stderr, "exit_code": output.exit_code}
        if output.timed_out:
            each["timed_out"] = True
        truncated = output.truncated
        if left is not None:
            for stream in ("stdout", "stderr"):
                truncated = truncated or len(each[stream]) > left
                each[stream] = each[stream][:left]
                left -= len(each[stream])
        if truncated:
            each["truncated"] = True
        plain.append(each)
    return plain


def decode_shell_result(payload: object, call: ShellCall) -> ShellAnswer:
    """What a result's content tells of a call.

    Args:
        payload: A `ShellResultContent` or its plain form.
        call: What was asked.

    Raises:
        ActionError: It is malformed, or of another call.
    """
    content = ShellResultContent.of(payload)
    if content.call_id != call.id:
        raise ActionError(f"this is the result of {shown(content.call_id)}, not of {shown(call.id)}")
    outcome = content.outcome
    if not isinstance(outcome, ShellOutcome):
        raise ActionError(f"an outcome is one of {', '.join(ShellOutcome)}, not {shown(outcome)}")
    more = a_mapping(content.additional_properties, "additional_properties")
    error = None if more.get("error") is None else a_string(more["error"], "error")
    outputs: tuple[CommandResult, ...]
    if more.get("outputs") is not None:
        outputs = tuple(_output(a_mapping(item, "an output")) for item in a_list(more["outputs"], "outputs"))
    else:
        outputs = _single(content, outcome, error, more)
        if not outputs and error is None and content.stderr is not None:
            error = content.stderr.text
    return ShellAnswer(call=call, outputs=outputs, error=error, denied=more.get("denied") is True)


def _single(
    content: ShellResultContent, outcome: ShellOutcome, error: str | None, more: Mapping[str, Any]
) -> tuple[CommandResult, ...]:
    """The output of one command, or none where none was run."""
    ended = outcome in (ShellOutcome.TIMEOUT, ShellOutcome.CANCELLED)
    if content.exit_code is None and not ended:
        return ()
    stderr = _text(content.stderr)
    if error is not None:
        stderr = "" if stderr == error else stderr.removesuffix(f"\n{error}")
    exit_code = None if content.exit_code is None else an_integer(content.exit_code, "exit_code")
    how = command_outcome(exit_code, timed_out=outcome is ShellOutcome.TIMEOUT)
    cut = more.get("truncated") is True
    return (CommandResult(_text(content.stdout), stderr, exit_code, how, truncated=cut),)


def _text(content: TextContent | None) -> str:
    return "" if content is None else content.text


def _output(item: Mapping[str, Any]) -> CommandResult:
    code = None if item.get("exit_code") is None else an_integer(item["exit_code"], "exit_code")
    return CommandResult(
        a_string(item.get("stdout"), "stdout"),
        a_string(item.get("stderr"), "stderr"),
        code,
        command_outcome(code, timed_out=item.get("timed_out") is True),
        truncated=item.get("truncated") is True,
    )
