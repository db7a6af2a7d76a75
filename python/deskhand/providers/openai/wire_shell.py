"""OpenAI's shell tools as they are on the wire: `shell_call` and the older `local_shell_call`, and their outputs. Pure.

Written for openai 3.54. A `shell_call` has command lines; a `local_shell_call` has the arguments of one command, and its output
is a string: the JSON of an output of `shell_call`.

This module owns the four payloads. It has no SDK and no shell.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from deskhand._core.arguments import expect
from deskhand.errors import ActionError, shown
from deskhand.machine.interface import CommandResult, outcome_of
from deskhand.providers.outcomes import CANCELLED, REFUSED, failure_of, how_it_ended, status_of
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

    from deskhand.providers.values import JSONObject

SHELL = "shell_call"
LOCAL = "local_shell_call"

_CANCELLED = "[the command was cancelled]\n"
_MILLISECONDS = 1000


def decode_shell(payload: object) -> ShellCall:
    """Decode a `shell_call` or a `local_shell_call`; the latter is marked in `extra`, as `type`.

    Args:
        payload: The item, as plain data.

    Raises:
        ActionError: It is malformed or incomplete, or is to run in a container of OpenAI's, or as another user. A call with the
            status `in_progress` waits for its output, as in OpenAI's guide.
    """
    item = expect_object("a shell_call", payload)
    kind = item.get("type")
    if not isinstance(kind, str) or kind not in {SHELL, LOCAL}:
        raise ActionError(f"a shell_call or local_shell_call is needed, not {shown(kind)}")
    call_id = expect_string("call_id", item.get("call_id"))
    status = item.get("status")
    if status not in (None, "completed", "in_progress"):
        raise ActionError(f"the call is not complete (status {shown(status)}); nothing of it was run: send it again")
    action = expect_object("action", item.get("action"))
    extra = the_rest(item, "type", "call_id", "status", "action")
    if kind == SHELL:
        return _decode_commands(action, call_id, extra)
    return _decode_exec(action, call_id, extra | {"type": LOCAL})


def _decode_commands(action: Mapping[str, Any], call_id: str, extra: dict[str, Any]) -> ShellCall:
    environment = extra.get("environment")
    if environment is not None and expect_object("environment", environment).get("type") != "local":
        raise ActionError("the call is for a container of OpenAI's, which runs it itself")
    commands = tuple(expect_command(command) for command in expect_list("commands", action.get("commands")))
    if not commands:
        raise ActionError("a shell_call has at least one command")
    if rest := the_rest(action, "commands", "timeout_ms", "max_output_length"):
        refuse_more_of_a_command(SHELL, rest)
        extra["action"] = rest
    timeout, length = timeout_of(action.get("timeout_ms")), length_of(action.get("max_output_length"))
    return ShellCall(commands=commands, id=call_id, timeout=timeout, limit=length, extra=extra)


def _decode_exec(action: Mapping[str, Any], call_id: str, extra: dict[str, Any]) -> ShellCall:
    if action.get("type") != "exec":
        raise ActionError(f"a local_shell_call's action is exec, not {shown(action.get('type'))}")
    if action.get("user") is not None:
        raise ActionError("commands run as the desktop's user, and as no other: leave user out")
    words = [expect_command(word) for word in expect_list("command", action.get("command"))]
    if not words:
        raise ActionError("a command has at least its name")
    cwd = action.get("working_directory")
    if rest := the_rest(action, "type", "command", "env", "timeout_ms", "working_directory", "user"):
        refuse_more_of_a_command(LOCAL, rest)
        extra["action"] = rest
    return ShellCall(
        commands=(shlex.join(words),),
        id=call_id,
        timeout=timeout_of(action.get("timeout_ms")),
        cwd=None if cwd is None else expect_command(cwd),
        env=variables_of(action.get("env")),
        extra=extra,
    )


def encode_shell(answer: ShellAnswer) -> JSONObject:
    """Encode the `shell_call_output`, or the `local_shell_call_output`, of a call.

    An error is one more output, on its standard error. Together, the outputs are cut to the length that the call allows.

    Args:
        answer: The answer to the call.

    Raises:
        ActionError: The call has no id.
    """
    call = expect("encode_shell: answer", answer, ShellAnswer).call
    if call.id is None:
        raise ActionError("a shell_call_output needs the call's id")
    if call.extra.get("type") == LOCAL:
        text = json.dumps(_entry(_whole(answer)), ensure_ascii=False)
        # The SDK's types name the call in `id`, OpenAI's guide and openai-agents in `call_id`.
        return {"type": "local_shell_call_output", "id": call.id, "call_id": call.id, "output": text}
    entries = [_entry(output) for output in answer.outputs]
    if answer.error is not None:
        entries.append(_entry(CommandResult("", answer.error, REFUSED)))
    payload: dict[str, Any] = {"type": "shell_call_output", "call_id": call.id, "output": entries}
    if call.limit is not None:
        left = call.limit
        for entry in entries:
            for stream in ("stdout", "stderr"):
                entry[stream] = entry[stream][:left]
                left -= len(entry[stream])
        payload["max_output_length"] = call.limit
    return payload


def _whole(answer: ShellAnswer) -> CommandResult:
    """The outputs of a call as one, for a `local_shell_call`: it ended like its first failure."""
    first = failure_of(answer) or CommandResult("", "", 0 if answer.error is None else REFUSED)
    error = "" if answer.error is None else answer.error
    stdout, stderr = ("".join(getattr(output, stream) for output in answer.outputs) for stream in ("stdout", "stderr"))
    return replace(first, stdout=stdout, stderr=f"{stderr}\n{error}" if stderr and error else stderr + error)


def _entry(output: CommandResult) -> dict[str, Any]:
    how = how_it_ended(output)
    outcome = {"type": "timeout"} if how == "timeout" else {"type": "exit", "exit_code": status_of(output)}
    said = [output.stderr]
    if how == "cancelled":
        said.append(_CANCELLED)
    if output.restarted:
        said.append("[the shell was restarted: its directory, variables and jobs are lost]\n")
    if output.background:
        said.append(f"[what earlier jobs wrote before this command:]\n{output.background}")
    return {"stdout": output.stdout, "stderr": "".join(said), "outcome": outcome}


def encode_shell_call(call: ShellCall) -> JSONObject:
    """Encode a call as a `shell_call`, or as a `local_shell_call` if its `extra` says so.

    Raises:
        ActionError: A `local_shell_call` cannot express it.
    """
    rest: dict[str, Any] = dict(expect("encode_shell_call: call", call, ShellCall).extra)
    action = dict(rest.pop("action", {}))
    kind = rest.pop("type", SHELL)
    if call.timeout is not None:
        action["timeout_ms"] = round(call.timeout * _MILLISECONDS)
    if kind == SHELL:
        if call.cwd is not None or call.env or call.restart:
            raise ActionError("a shell_call has no directory, no environment and no restart: write them as commands")
        action["commands"] = list(call.commands)
        if call.limit is not None:
            action["max_output_length"] = call.limit
    else:
        if len(call.commands) != 1 or call.limit is not None or call.restart:
            raise ActionError("a local_shell_call has one command, no limit of its output and no restart")
        try:
            words = shlex.split(call.commands[0])
        except ValueError as error:
            raise ActionError(f"the command cannot be split in its arguments: {error}") from None
        action |= {"type": "exec", "command": words, "env": dict(call.env)}
        if call.cwd is not None:
            action["working_directory"] = call.cwd
    payload: dict[str, Any] = {**rest, "type": kind, "status": "completed", "action": action}
    return payload if call.id is None else payload | {"call_id": call.id}


def decode_shell_result(payload: object, call: ShellCall) -> ShellAnswer:
    """Decode a `shell_call_output` or a `local_shell_call_output` of ours.

    Args:
        payload: The item, as plain data.
        call: The call that it answers.

    Raises:
        ActionError: It is malformed, or answers another call.
    """
    item = expect_object("a shell_call_output", payload)
    kind = f"{call.extra.get('type', SHELL)}_output"
    if item.get("type") != kind or item.get("call_id") != call.id:
        raise ActionError(f"the {kind} of {shown(call.id)} is needed, not {shown(item)}")
    output = item.get("output")
    if kind == f"{LOCAL}_output":
        try:
            output = [json.loads(expect_string("output", output))]
        except (ValueError, RecursionError):
            raise ActionError("output must be JSON") from None
    return ShellAnswer(call=call, outputs=tuple(map(_output, expect_list("output", output))))


def _output(payload: object) -> CommandResult:
    item = expect_object("an output", payload)
    outcome = expect_object("outcome", item.get("outcome"))
    timed_out = outcome.get("type") == "timeout"
    if not timed_out and outcome.get("type") != "exit":
        raise ActionError(f"an outcome is exit or timeout, not {shown(outcome.get('type'))}")
    stdout, stderr = expect_string("stdout", item.get("stdout")), expect_string("stderr", item.get("stderr"))
    code = None if timed_out else expect_int("exit_code", outcome.get("exit_code"))
    if not timed_out and stderr.endswith(_CANCELLED):
        status = None if code == CANCELLED else code
        return CommandResult(stdout, stderr.removesuffix(_CANCELLED), status, "cancelled")
    return CommandResult(stdout, stderr, code, outcome_of(code, timed_out=timed_out))
