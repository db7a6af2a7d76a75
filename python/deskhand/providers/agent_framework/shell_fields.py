"""Converts Microsoft Agent Framework's shell contents into each provider's payloads, and back. Pure.

OpenAI has several commands, with an output for each. Anthropic, and so Amazon, has one command with one text of output:
several commands become the lines of one, which is also how they are run here. In a text that comes back, an error of the
tool is `stderr` and the rest is `stdout`, and its last line tells how the command ended. Google has no shell of its own:
the user declares a function that takes a `command`.

This module owns the mapping of fields. It has no SDK and no shell.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from deskhand.errors import UnsupportedAction, shown
from deskhand.providers.agent_framework.fields import codec_of
from deskhand.providers.agent_framework.shells import (
    decode_shell,
    decode_shell_result,
    encode_shell,
    encode_shell_call,
)
from deskhand.providers.agent_framework.types import ShellOutcome, ShellResultContent
from deskhand.providers.anthropic import wire as anthropic
from deskhand.providers.openai import wire_shell as openai
from deskhand.providers.outcomes import ending_in
from deskhand.providers.payload import expect_list, expect_object, expect_string, refuse_more_of_a_command, the_rest
from deskhand.providers.values import ShellCall

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deskhand.providers.agent_framework.types import ShellCallContent, ShellTool
    from deskhand.providers.values import Payload

GOOGLE_FUNCTION = "run_shell"
"""The name of the function that is declared to Google's models, unless a call used another name."""

_FROM = "provider"
_OPENAI = frozenset({"allowed_callers", "environment"})
_ANTHROPIC = frozenset({"allowed_callers", "cache_control", "defer_loading", "input_examples", "strict"})
_GOOGLE = frozenset({"behavior", "description", "name", "response", "response_json_schema"})
_BASH = {"type": "bash_20250124", "name": anthropic.SHELL}


def shell_tool_to(provider: str, tool: ShellTool) -> Payload:
    """Declare the shell for a provider.

    Args:
        provider: One of `fields.PROVIDERS`.
        tool: The shell; each provider is given those additional properties that its SDK's types know.

    Returns:
        The tool as a request lists it; for `bedrock` one of `additionalModelRequestFields.tools`, for `bedrock_agents` one of
        the `actionGroups`, for `google` a function's declaration.
    """
    codec_of(provider)
    more = dict(tool.additional_properties)
    match provider:
        case "openai":
            return {"environment": {"type": "local"}, **_of(more, _OPENAI), "type": "shell"}
        case "bedrock_agents":
            return {
                "actionGroupName": anthropic.SHELL,
                "parentActionGroupSignature": "ANTHROPIC.Bash",
                "parentActionGroupSignatureParams": {"type": _BASH["type"]},
            }
        case "google":
            command = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
            described = {"name": GOOGLE_FUNCTION, "description": "Run a command line in a shell."}
            return {**described, "parameters_json_schema": command, **_of(more, _GOOGLE)}
    return {**_of(more, _ANTHROPIC), **_BASH}


def _of(more: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any]:
    return {key: value for key, value in more.items() if key in known}


def shell_call_from(provider: str, payload: object, *, call_id: str | None = None) -> ShellCallContent:
    """Convert a provider's shell call into a content.

    Args:
        provider: One of `fields.PROVIDERS`.
        payload: Its call, as plain data.
        call_id: The content's id where the payload has none; by default the name of the function.

    Raises:
        ActionError: It is malformed or empty.
    """
    name = None
    if provider == "openai":
        call = openai.decode_shell(payload)
    elif provider == "google":
        name, call = _google_call(payload)
    else:
        call = codec_of(provider).decode_shell(payload)
    kept = {"of": provider, "name": name, "id": call.id, "extra": dict(call.extra)}
    number = call.id or call_id or name or anthropic.SHELL
    content = encode_shell_call(replace(call, id=number, extra={_FROM: kept}))
    content.raw_representation = payload
    return content


def _google_call(payload: object) -> tuple[str, ShellCall]:
    item = expect_object("a function call", payload)
    for key in ("function_call", "functionCall"):
        if key in item:
            item = expect_object(key, item[key])
            break
    args = expect_object("the args of a function call", item.get("args"))
    number = None if item.get("id") is None else expect_string("the id of a function call", item["id"])
    command = expect_string("a command", args.get("command"))
    rest = the_rest(args, "command")
    refuse_more_of_a_command("the shell", rest)
    return expect_string("the name of a function call", item.get("name")), ShellCall(
        commands=(command,), id=number, extra={"args": rest} if rest else {}
    )


def shell_call_to(provider: str, content: ShellCallContent | Mapping[str, object]) -> Payload:
    """Convert a content into the provider's shell call, the inverse of `shell_call_from`.

    Raises:
        UnsupportedAction: The provider cannot express the call.
        ActionError: The content is malformed.
    """
    codec_of(provider)
    call, name = _theirs(provider, decode_shell(content))
    if provider == "openai":
        made: dict[str, Any] = openai.encode_shell_call(call)
        return made
    if call.cwd is not None or call.env or call.timeout is not None or call.limit is not None:
        raise UnsupportedAction(provider, "a command's directory, variables or limits", "write them as commands")
    if provider == "google" and call.restart:
        raise UnsupportedAction("Google", "a restart of the shell")
    extra: dict[str, Any] = dict(call.extra)
    given = {
        **dict(expect_object("its arguments", extra.pop("args" if provider == "google" else "input", {}))),
        **({"command": "\n".join(call.commands)} if call.commands else {}),
        **({"restart": True} if call.restart else {}),
    }
    number = call.id
    match provider:
        case "anthropic":
            return {**extra, "type": "tool_use", "id": number, "name": anthropic.SHELL, "input": given}
        case "bedrock":
            return {"toolUse": {**extra, "toolUseId": number, "name": anthropic.SHELL, "input": given}}
        case "google":
            return {**({} if number is None else {"id": number}), "name": name or GOOGLE_FUNCTION, "args": given}
    parameters = [
        *expect_list("parameters", extra.pop("parameters", [])),
        *({"name": key, "type": "string", "value": "true" if value is True else value} for key, value in given.items()),
    ]
    inside = {"actionGroup": anthropic.SHELL, **extra, "function": anthropic.SHELL, "parameters": parameters}
    return {"functionInvocationInput": inside}


def _theirs(provider: str, call: ShellCall) -> tuple[ShellCall, str | None]:
    kept = call.extra.get(_FROM)
    if isinstance(kept, dict) and kept.get("of") == provider:
        name = kept.get("name")
        extra = expect_object("what only the provider knows", kept.get("extra"))
        number = None if kept.get("id") is None else call.id
        return replace(call, id=number, extra=extra), None if name is None else expect_string("a function's name", name)
    return replace(call, id=None if provider == "bedrock_agents" else call.id, extra={}), None


def shell_result_to(
    provider: str,
    result: ShellResultContent | Mapping[str, object],
    content: ShellCallContent | Mapping[str, object],
) -> Payload:
    """Convert a shell's result into the provider's answer.

    Args:
        provider: One of `fields.PROVIDERS`.
        result: The result of the call.
        content: The call.

    Raises:
        ActionError: A content is malformed, or the result is of another call.
    """
    codec = codec_of(provider)
    call = decode_shell(content)
    theirs, name = _theirs(provider, call)
    answer = replace(decode_shell_result(result, call), call=theirs)
    if provider == "google":
        text, failed = anthropic.lines_of(answer)
        number = {} if theirs.id is None else {"id": theirs.id}
        return {**number, "name": name or GOOGLE_FUNCTION, "response": {"error" if failed else "output": text}}
    payload: dict[str, Any] = openai.encode_shell(answer) if provider == "openai" else codec.encode_shell(answer)
    return payload


def shell_result_from(
    provider: str, payload: object, content: ShellCallContent | Mapping[str, object]
) -> ShellResultContent:
    """Convert a provider's answer into a result; except for OpenAI, as far as one text allows.

    Raises:
        ActionError: As for `shell_result_to`.
    """
    codec_of(provider)
    call = decode_shell(content)
    theirs, _ = _theirs(provider, call)
    if provider == "openai":
        return encode_shell(replace(openai.decode_shell_result(payload, theirs), call=call))
    item = expect_object("an answer", payload)
    number, text, failed = _READERS[provider](item)
    if number is not None and number != call.id:
        raise UnsupportedAction(provider, f"the answer of {shown(number)}", f"that of {shown(call.id)} is needed")
    said, outcome, status = ending_in(text)
    texts: dict[str, Any] = {"stderr" if failed else "stdout": said}
    # A failure without an exit code means that the command could not be run.
    how = ShellOutcome("error" if failed and outcome == "success" else outcome)
    return ShellResultContent(call_id=call.id or "", outcome=how, exit_code=status, **texts)


def _anthropic_text(item: Mapping[str, Any]) -> tuple[object, str, bool]:
    content = item.get("content")
    if isinstance(content, str):
        return item.get("tool_use_id"), content, item.get("is_error") is True
    texts = [
        expect_string("a text", expect_object("a block", part).get("text")) for part in expect_list("content", content)
    ]
    return item.get("tool_use_id"), "\n".join(texts), item.get("is_error") is True


def _bedrock_text(item: Mapping[str, Any]) -> tuple[object, str, bool]:
    inside = expect_object("a toolResult", item.get("toolResult"))
    parts = expect_list("content", inside.get("content"))
    texts = [expect_string("a text", expect_object("a block", part).get("text")) for part in parts]
    return inside.get("toolUseId"), "\n".join(texts), inside.get("status") == "error"


def _agents_text(item: Mapping[str, Any]) -> tuple[object, str, bool]:
    inside = expect_object("a functionResult", item.get("functionResult"))
    body = expect_object("a TEXT", expect_object("a responseBody", inside.get("responseBody")).get("TEXT"))
    return None, expect_string("a text", body.get("body")), "responseState" in inside


def _google_text(item: Mapping[str, Any]) -> tuple[object, str, bool]:
    response = expect_object("a response", item.get("response"))
    failed = response.get("error") is not None
    return item.get("id"), expect_string("a text", response.get("error" if failed else "output")), failed


_READERS = {
    "anthropic": _anthropic_text,
    "bedrock": _bedrock_text,
    "bedrock_agents": _agents_text,
    "google": _google_text,
}
