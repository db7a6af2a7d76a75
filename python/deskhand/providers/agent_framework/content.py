"""Converts the contents of Microsoft Agent Framework's package (agent-framework-core 1.23) into calls, and results back. Pure.

Its one class `Content` holds a computer's actions as the provider sent them. Only the connector of OpenAI sends any, so they
are OpenAI's, and `deskhand.providers.openai` reads them. All contents are in the plain form that `Content.to_dict` gives and
`Content.from_dict` takes.

This module owns those plain forms. It imports neither the package nor a desktop, and knows no provider's actions.

* A `computer_tool_result` has no text and no error. They are in its additional properties (`error`, `denied`, `text`), which
  the framework keeps but does not send. The model gets them in a separate message (`note`).
* The framework's workflows expect exactly the pending safety checks to be acknowledged, so it is all of them or none.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from deskhand._core.arguments import expect
from deskhand.errors import ActionError, shown
from deskhand.machine.interface import CommandResult, outcome_of
from deskhand.providers.openai import wire as openai
from deskhand.providers.openai import wire_shell
from deskhand.providers.payload import expect_int, expect_list, expect_object, expect_string, the_rest
from deskhand.providers.values import BLANK, ProviderCall, Result, ShellAnswer, ShellCall, expect_call

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deskhand._core.geometry import Viewport
    from deskhand.providers.values import Payload

CALL = "computer_tool_call"
RESULT = "computer_tool_result"
SHELL_CALL = "shell_tool_call"
_SHELL_RESULT = "shell_tool_result"
_SHELL_OUTPUT = "shell_command_output"

_FORMAT = "computer_action_format"
_PROPERTIES = "additional_properties"
_OURS = "deskhand"


def plain(content: object) -> object:
    """The plain form of a `Content`; anything else is returned unchanged."""
    dump = getattr(content, "to_dict", None)
    return dump() if callable(dump) else content


# --- the computer ---


def decode_content(content: object, viewport: Viewport) -> ProviderCall:
    """Decode a `computer_tool_call`.

    Args:
        content: The `Content`, or its plain form.
        viewport: The viewport of the picture that the model was sent last.

    Raises:
        ActionError: It is malformed, incomplete, or asks for something that cannot be done.
    """
    item = _item(content, CALL)
    properties = _properties(item)
    actions = expect_list("actions", item.get("actions"))
    call = {"type": "computer_call", **{key: item[key] for key in _KEPT if item.get(key) is not None}}
    rest = the_rest(item, "type", "actions", "user_input_request", "informational_only", *_KEPT)
    if rest:
        call[_OURS] = rest
    if _single(properties):
        if len(actions) != 1:
            raise ActionError(f"a call of the preview's has one action, not {len(actions)}")
        return openai.decode({**call, "action": actions[0]}, viewport)
    if not actions:
        raise ActionError("a call has at least one action")
    return openai.decode({**call, "actions": actions}, viewport)


_KEPT = ("id", "call_id", "status", "pending_safety_checks")


def _item(content: object, kind: str) -> Mapping[str, Any]:
    item = expect_object("a Content", plain(content))
    if item.get("type") != kind:
        raise ActionError(f"a {kind} is needed, not {shown(item.get('type'))}")
    return item


def _properties(item: Mapping[str, Any]) -> Mapping[str, Any]:
    given = item.get(_PROPERTIES)
    return expect_object(_PROPERTIES, {} if given is None else given)


def _single(properties: Mapping[str, Any]) -> bool:
    """Whether it is a call of `computer_use_preview`; the connector marks it by either of two names."""
    space = properties.get("openai")
    named = space.get(_FORMAT) if isinstance(space, dict) else None
    return "single" in (named, properties.get(_FORMAT))


def encode_call_content(call: ProviderCall) -> Payload:
    """The plain form of a `computer_tool_call` for a call; its `id` is the call's if there is no other.

    Raises:
        UnsupportedAction: OpenAI's tool cannot express the call.
        ActionError: The call has no id or no action.
    """
    expect_call("encode_call_content", call)
    if call.id is None or not call.steps:
        raise ActionError("a computer_tool_call needs the call's id and an action")
    payload: dict[str, Any] = openai.encode_call(call)
    rest = payload.pop(_OURS, {})
    single = payload.get("action")
    properties = dict(_properties(rest))
    if single is not None and not _single(properties):
        properties |= {"openai": {_FORMAT: "single"}, _FORMAT: "single"}
    return {
        **rest,
        "type": CALL,
        "id": payload.get("id", call.id),
        "call_id": call.id,
        "actions": payload["actions"] if single is None else [single],
        "status": payload["status"],
        "pending_safety_checks": payload["pending_safety_checks"],
        "user_input_request": True,
        **({_PROPERTIES: properties} if properties else {}),
    }


def encode_content(result: Result, *, detail: str | None = "original") -> Payload:
    """The plain form of the `computer_tool_result` that answers a call; see `note` for what it cannot carry.

    Args:
        result: The result of the call. Without a picture, a black one is sent, because the connector needs one.
        detail: How the model is shown the picture, as in `deskhand.providers.openai.encode`.

    Raises:
        ActionError: The call has no id.
    """
    expect("encode_content: result", result, Result)
    payload: dict[str, Any] = openai.encode(result, detail=detail)
    picture = result.picture or BLANK
    said = {"error": result.error, "text": result.text, "denied": result.denied or None}
    shot = {"type": "data", "uri": payload["output"]["image_url"], "media_type": picture.media_type}
    if detail is not None:
        # In the connector's own namespace, and under its older name.
        shot[_PROPERTIES] = {"openai": {"image_detail": detail}, "detail": detail}
    content: dict[str, Any] = {"type": RESULT, "call_id": payload["call_id"], "screenshot": shot}
    if result.acknowledged and {check.id for check in result.acknowledged} == {
        check.id for check in result.call.safety
    }:
        content["acknowledged_safety_checks"] = payload["acknowledged_safety_checks"]
    if more := {key: value for key, value in said.items() if value is not None}:
        content[_PROPERTIES] = more
    return content


def decode_content_result(content: object, call: ProviderCall) -> Result:
    """Decode a `computer_tool_result`, the inverse of `encode_content`.

    Args:
        content: The `Content`, or its plain form.
        call: The call that it answers.

    Raises:
        ActionError: It is malformed, answers another call, or its picture is a file that only the provider has.
    """
    item = _item(content, RESULT)
    more = _properties(item)
    shot = expect_object("a screenshot", item.get("screenshot"))
    result = openai.decode_result(
        {
            "type": "computer_call_output",
            "call_id": item.get("call_id"),
            "output": {"image_url": shot.get("uri")},
            "acknowledged_safety_checks": item.get("acknowledged_safety_checks"),
        },
        call,
    )
    error, text = (None if more.get(key) is None else expect_string(key, more[key]) for key in ("error", "text"))
    return replace(result, error=error, text=text, denied=more.get("denied") is True)


def note(result: Result) -> str | None:
    """The text for the model besides the picture, if any."""
    expect("note: result", result, Result)
    said: dict[str, Any] | None = openai.note(result)
    return None if said is None else str(said["content"][0]["text"])


# --- the shell ---


def decode_shell_content(content: object) -> ShellCall:
    """Decode a `shell_tool_call`.

    Args:
        content: The `Content`, or its plain form.

    Raises:
        ActionError: It is malformed or incomplete.
    """
    item = _item(content, SHELL_CALL)
    known = ("commands", "timeout_ms", "max_output_length")
    action = {key: item[key] for key in known if item.get(key) is not None}
    rest = the_rest(item, "type", "call_id", "status", *known)
    call = {"type": wire_shell.SHELL, "call_id": item.get("call_id"), "status": item.get("status"), "action": action}
    return wire_shell.decode_shell({**call, _OURS: rest} if rest else call)


def encode_shell_content(answer: ShellAnswer) -> Payload:
    """The plain form of the `shell_tool_result` that answers a call.

    Raises:
        ActionError: The call has no id.
    """
    payload: dict[str, Any] = wire_shell.encode_shell(answer)
    outputs = [_shell_output(entry) for entry in payload["output"]]
    content: dict[str, Any] = {"type": _SHELL_RESULT, "call_id": payload["call_id"], "outputs": outputs}
    return content if answer.call.limit is None else {**content, "max_output_length": answer.call.limit}


def _shell_output(entry: Mapping[str, Any]) -> dict[str, Any]:
    ended = entry["outcome"]
    output = {"type": _SHELL_OUTPUT, "stdout": entry["stdout"], "stderr": entry["stderr"]}
    return {**output, "timed_out": True} if ended["type"] == "timeout" else {**output, "exit_code": ended["exit_code"]}


def decode_shell_content_result(content: object, call: ShellCall) -> ShellAnswer:
    """Decode a `shell_tool_result`.

    Raises:
        ActionError: It is malformed, or answers another call.
    """
    item = _item(content, _SHELL_RESULT)
    if item.get("call_id") != call.id:
        raise ActionError(f"this is the result of {shown(item.get('call_id'))}, not of {shown(call.id)}")
    outputs = []
    for given in expect_list("outputs", item.get("outputs")):
        output = _item(given, _SHELL_OUTPUT)
        late, code = output.get("timed_out") is True, output.get("exit_code")
        stdout, stderr = (expect_string(stream, output.get(stream) or "") for stream in ("stdout", "stderr"))
        status = None if late else expect_int("exit_code", code)
        outputs.append(CommandResult(stdout, stderr, status, outcome_of(status, timed_out=late)))
    return ShellAnswer(call=call, outputs=tuple(outputs))
