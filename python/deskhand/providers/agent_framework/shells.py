"""Microsoft Agent Framework's shell contents: `ShellCallContent` as a call, an answer as `ShellResultContent`, and back. Pure.

This module owns the meaning of the fields. It has no provider's payload (see `fields`), no package and no shell.

A result has one output for all commands of its call. If there were several, the additional property `outputs` has each of
them, and `outcome` and `exit_code` are those of the first that failed.
In a call, `timeout_ms`, `max_output_length` (characters, as in OpenAI's), `working_directory` and `env` are additional
properties.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from deskhand._core.arguments import expect
from deskhand.errors import ActionError, shown
from deskhand.machine.interface import CommandResult
from deskhand.machine.interface import outcome_of as command_outcome
from deskhand.providers.agent_framework.types import ShellAction, ShellCallContent, ShellOutcome, ShellResultContent
from deskhand.providers.outcomes import failure_of, how_it_ended, outcome
from deskhand.providers.payload import (
    expect_command,
    expect_int,
    expect_list,
    expect_object,
    expect_string,
    length_of,
    refuse_more_of_a_command,
    the_rest,
    timeout_of,
    variables_of,
)
from deskhand.providers.values import ShellAnswer, ShellCall

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deskhand.machine.interface import Outcome
    from deskhand.providers.agent_framework.base import TextContent

RESTARTED = "The shell was started anew."

_MILLISECONDS = 1000


# --- calls ---


def decode_shell(payload: object) -> ShellCall:
    """Decode a shell content.

    Args:
        payload: A `ShellCallContent` or its plain form.

    Raises:
        ActionError: It is malformed or empty.
    """
    content = ShellCallContent.of(payload)
    restart = _restarts(content.action)
    commands = tuple(
        expect_command(one) for one in expect_list("commands", [] if content.commands is None else content.commands)
    )
    if not commands and not restart:
        raise ActionError("a shell call needs commands or the action restart")
    more = expect_object("additional_properties", content.additional_properties)
    cwd = more.get("working_directory")
    rest = the_rest(more, "timeout_ms", "max_output_length", "working_directory", "env")
    refuse_more_of_a_command("a shell's content", rest)
    return ShellCall(
        commands=commands,
        id=expect_string("call_id", content.call_id),
        timeout=timeout_of(more.get("timeout_ms")),
        limit=length_of(more.get("max_output_length")),
        restart=restart,
        cwd=None if cwd is None else expect_command(cwd),
        env=variables_of(more.get("env")),
        extra=rest,
    )


def _restarts(action: object) -> bool:
    name = action.value if isinstance(action, Enum) else action
    if not isinstance(name, str) or name not in ("execute", "restart"):
        raise ActionError(f"the shell's action is execute or restart, not {shown(name)}")
    return name == "restart"


def encode_shell_call(call: ShellCall) -> ShellCallContent:
    """Encode a shell call as a content.

    Raises:
        ActionError: The call has no id.
    """
    expect("encode_shell_call: call", call, ShellCall)
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


def encode_shell(answer: ShellAnswer) -> ShellResultContent:
    """Encode the answer to a call; together, the outputs are cut to the length that the call allows.

    Raises:
        ActionError: The call has no id.
    """
    expect("encode_shell: answer", answer, ShellAnswer)
    call, shown_of = answer.call, failure_of(answer) or (answer.outputs[-1] if answer.outputs else None)
    if call.id is None:
        raise ActionError("a shell's result needs the call's id")
    outputs = _cut(answer.outputs, call.limit)
    stdout = "".join(output["stdout"] for output in outputs)
    stderr = "".join(output["stderr"] for output in outputs)
    more: dict[str, Any] = {}
    if len(outputs) > 1:
        more["outputs"] = outputs
    elif outputs:
        more |= {name: outputs[0][name] for name in _BESIDE if name in outputs[0]}
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
        exit_code=None if shown_of is None else shown_of.exit_code,
        outcome=ShellOutcome(outcome(answer)),
        additional_properties=more,
    )


# Further fields of an output, besides its texts and its exit code.
_BESIDE = ("truncated", "restarted", "background")


def _cut(outputs: tuple[CommandResult, ...], limit: int | None) -> list[dict[str, Any]]:
    left = limit
    plain = []
    for output in outputs:
        each: dict[str, Any] = {"stdout": output.stdout, "stderr": output.stderr, "exit_code": output.exit_code}
        how = how_it_ended(output)
        if how != command_outcome(output.exit_code):
            each["outcome"] = how
        if output.restarted:
            each["restarted"] = True
        if output.background:
            each["background"] = output.background
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
    """Decode a shell result.

    Args:
        payload: A `ShellResultContent` or its plain form.
        call: The call that it answers.

    Raises:
        ActionError: It is malformed, or answers another call.
    """
    content = ShellResultContent.of(payload)
    if content.call_id != call.id:
        raise ActionError(f"this is the result of {shown(content.call_id)}, not of {shown(call.id)}")
    outcome = _outcome(content.outcome)
    more = expect_object("additional_properties", content.additional_properties)
    error = None if more.get("error") is None else expect_string("error", more["error"])
    outputs: tuple[CommandResult, ...]
    if more.get("outputs") is not None:
        outputs = tuple(_output(expect_object("an output", item)) for item in expect_list("outputs", more["outputs"]))
    else:
        outputs = _single(content, outcome, error, more, is_restart=call.restart)
        if not outputs and error is None and outcome == "error":
            error = "the command failed"
    return ShellAnswer(call=call, outputs=outputs, error=error, denied=more.get("denied") is True)


def _single(
    content: ShellResultContent, outcome: Outcome, error: str | None, more: Mapping[str, Any], *, is_restart: bool
) -> tuple[CommandResult, ...]:
    """The output of a single command, or none if no command was run."""
    stdout, stderr = _text(content.stdout), _text(content.stderr)
    if error is not None:
        stderr = "" if stderr == error else stderr.removesuffix(f"\n{error}")
    code = None if content.exit_code is None else expect_int("exit_code", content.exit_code)
    silent = not (stdout or stderr) or (is_restart and stdout == RESTARTED)
    if code is None and outcome in ("success", "error") and silent:
        return ()
    # Other implementations may give an outcome without an exit code, or one that contradicts it: the worse of both counts.
    if outcome == "success":
        code = code or 0
        outcome = command_outcome(code)
    return (_result(stdout, stderr, code, outcome, more),)


def _text(content: TextContent | None) -> str:
    return "" if content is None else content.text


def _output(item: Mapping[str, Any]) -> CommandResult:
    code = None if item.get("exit_code") is None else expect_int("exit_code", item["exit_code"])
    texts = expect_string("stdout", item.get("stdout")), expect_string("stderr", item.get("stderr"))
    outcome = command_outcome(code) if item.get("outcome") is None else _outcome(item["outcome"])
    return _result(*texts, code, outcome, item)


def _result(stdout: str, stderr: str, code: int | None, how: Outcome, more: Mapping[str, Any]) -> CommandResult:
    return CommandResult(
        stdout,
        stderr,
        code,
        how,
        truncated=more.get("truncated") is True,
        restarted=more.get("restarted") is True,
        background=expect_string("background", more.get("background", "")),
    )


def _outcome(value: object) -> Outcome:
    found: Outcome
    try:
        found = ShellOutcome(value).value
    except ValueError:
        raise ActionError(f"an outcome is one of {', '.join(ShellOutcome)}, not {shown(value)}") from None
    return found
