"""Bedrock's agents: decodes inputs of `returnControl`, encodes results for the session's state, and the inverses. Pure.

This module owns the envelopes of `InvokeAgent` and `InvokeInlineAgent`, which are the same; the inputs in them are Anthropic's
(`deskhand.providers.anthropic.inputs`). It has no boto3 and no desktop.

* Every value of a parameter is a string; a point is `"[512, 384]"`.
* A result has one kind of body, and at most one picture. botocore would accept more, but the service would not.
* Of the two states of a failure the model reads only REPROMPT. FAILURE ends the session's request with an exception.
* An action that the agent wants confirmed (`actionInvocationType`) is a safety check, answered CONFIRM or DENY; an input with
  USER_CONFIRMATION is never carried out.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from deskhand._core.arguments import expect
from deskhand.desktop.operations import SafetyCheck
from deskhand.errors import ActionError, UnsupportedAction, shown
from deskhand.providers.anthropic.editing import EDITORS, edit_of, name_of
from deskhand.providers.anthropic.inputs import write
from deskhand.providers.anthropic.wire import FAMILY, SHELL, commanded, lines_of, outcome_of, said
from deskhand.providers.bedrock.converse import flat_actions, image_of, picture_of, single
from deskhand.providers.payload import expect_list, expect_object, expect_string, refuse_more_of_a_command, the_rest
from deskhand.providers.values import (
    EditAnswer,
    EditCall,
    ProviderCall,
    Result,
    ShellAnswer,
    ShellCall,
    expect_call,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deskhand._core.geometry import Size, Viewport
    from deskhand.providers.values import JSONObject, Payload

MOST_INPUTS = 5
"""The largest number of inputs, and so of results, of one `returnControl`."""

_CONFIRM_ONLY = "USER_CONFIRMATION"
_CONFIRMED = (_CONFIRM_ONLY, "USER_CONFIRMATION_AND_RESULT")
_LISTS = frozenset({"coordinate", "start_coordinate", "region", "view_range"})
_OTHERS = frozenset({"duration", "scroll_amount", "repeat", "restart", "insert_line"})


def declaration(
    size: Size, version: str | None = None, *, shell: bool = False, editor: str | None = None
) -> list[JSONObject]:
    """The `actionGroups` of an agent, for pictures of this size.

    Raises:
        ActionError: There is no such version, of the computer or of the text editor.
    """
    sizes = {"display_width_px": str(size.width), "display_height_px": str(size.height), "display_number": "1"}
    computer: JSONObject = {
        "actionGroupName": FAMILY,
        "parentActionGroupSignature": "ANTHROPIC.Computer",
        "parentActionGroupSignatureParams": {"type": single(version).type, **sizes},
    }
    bash: JSONObject = {
        "actionGroupName": SHELL,
        "parentActionGroupSignature": "ANTHROPIC.Bash",
        "parentActionGroupSignatureParams": {"type": "bash_20250124"},
    }
    groups = [computer, bash] if shell else [computer]
    if editor is not None:
        groups.append(
            {
                "actionGroupName": name_of(editor),
                "parentActionGroupSignature": "ANTHROPIC.TextEditor",
                "parentActionGroupSignatureParams": {"type": editor},
            }
        )
    return groups


# --- calls ---


def inputs_of(payload: object) -> tuple[str, list[Mapping[str, object]]]:
    """The id and the inputs of a `returnControl`, with or without its name around it.

    Raises:
        ActionError: It is not one, or could not be answered.
    """
    event = expect_object("a returnControl", payload)
    control = expect_object("a returnControl", event["returnControl"]) if "returnControl" in event else event
    inputs = expect_list("a returnControl's invocationInputs", control.get("invocationInputs"))
    if not 1 <= len(inputs) <= MOST_INPUTS:
        raise ActionError(f"a returnControl has 1...{MOST_INPUTS} inputs, not {len(inputs)}")
    members = [expect_object("an input", member) for member in inputs]
    return expect_string("a returnControl's invocationId", control.get("invocationId")), members


def function_of(payload: object) -> Mapping[str, object]:
    """The content of an input that calls a function.

    Raises:
        ActionError: It is not one, or could not be answered.
    """
    member = expect_object("an input of a returnControl", payload)
    inside = expect_object("a functionInvocationInput", member.get("functionInvocationInput"))
    expect_string("an actionGroup", inside.get("actionGroup"))
    return inside


def is_computer(function: Mapping[str, object]) -> bool:
    """Whether the content of an input is a call of the computer."""
    return function.get("function") == FAMILY


def is_shell(function: Mapping[str, object]) -> bool:
    """Whether the content of an input is a call of the shell."""
    return function.get("function") == SHELL


def is_edit(function: Mapping[str, object]) -> bool:
    """Whether the content of an input is a call of the text editor."""
    return function.get("function") in EDITORS.values()


def decode(payload: object, viewport: Viewport, *, version: str | None = None) -> ProviderCall:
    """Decode one input of a `returnControl`.

    Args:
        payload: The input, with `functionInvocationInput` around it.
        viewport: The viewport of the last full screenshot that the model was given.
        version: The tool that the action group declares; that of Converse by default.

    Raises:
        ActionError: It is malformed, or that version does not accept it.
    """
    rules, function = single(version), function_of(payload)
    if not is_computer(function):
        raise ActionError(f"a call of the computer names the function {FAMILY}, not {shown(function.get('function'))}")
    given, parameters = _parameters(function)
    steps, unknown = flat_actions(given, viewport, rules)
    extra = the_rest(function, "function", "parameters")
    safety = _safety(function)
    kept = [parameter for parameter in parameters if parameter["name"] in unknown]
    if safety and safety[0].id == _CONFIRM_ONLY:
        steps, kept = (), parameters
    if kept:
        extra["parameters"] = kept
    return ProviderCall(steps=steps, viewport=viewport, name=rules.type, safety=safety, extra=extra)


def _safety(function: Mapping[str, Any]) -> tuple[SafetyCheck, ...]:
    kind = function.get("actionInvocationType", "RESULT")
    if kind in _CONFIRMED:
        return (SafetyCheck(kind, kind),)
    if kind != "RESULT":
        raise ActionError(f"an actionInvocationType is RESULT or one of {', '.join(_CONFIRMED)}, not {shown(kind)}")
    return ()


def _parameters(function: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    given: dict[str, Any] = {}
    parameters: list[dict[str, Any]] = []
    for each in expect_list("a function's parameters", function.get("parameters", [])):
        parameter = dict(expect_object("a parameter", each))
        name = expect_string("a parameter's name", parameter.get("name"))
        if name in given:
            raise ActionError(f"the parameter {shown(name)} is given twice")
        given[name] = _value(name, expect_string("a parameter's value", parameter.get("value")))
        parameters.append(parameter)
    return given, parameters


def _value(name: str, text: str) -> object:
    if name not in _LISTS | _OTHERS:
        return text
    try:
        # Python's "True" is accepted as well.
        return json.loads(text.lower() if name == "restart" else text)
    except (ValueError, RecursionError):
        raise ActionError(
            f"{name} is a list or a number in a string, such as '[512, 384]', not {shown(text)}"
        ) from None


def encode_call(call: ProviderCall) -> Payload:
    """Encode a call as an input of a `returnControl`, of the version that is its name.

    Raises:
        UnsupportedAction: That version cannot express it.
    """
    call = expect_call("encode_call", call).at_points("Bedrock Agents")
    extra: dict[str, Any] = dict(call.extra)
    parameters = list(extra.pop("parameters", []))
    if call.steps or not call.safety:
        action, fields = write(call.steps, call.viewport, single(call.name))
        parameters += [_parameter(name, value) for name, value in {"action": action, **fields}.items()]
    return {"functionInvocationInput": {"actionGroup": FAMILY, **extra, "function": FAMILY, "parameters": parameters}}


def _parameter(name: str, value: object) -> dict[str, str]:
    if isinstance(value, str):
        return {"name": name, "type": "string", "value": value}
    return {"name": name, "type": "array" if isinstance(value, list) else "number", "value": json.dumps(value)}


# --- results ---


def reply(invocation_id: str, results: Sequence[Payload]) -> Payload:
    """The state of a session that answers a `returnControl`: `sessionState` of `invoke_agent`, `inlineSessionState` of
    `invoke_inline_agent`.

    Raises:
        ActionError: There are no results, or more than a request may have.
    """  # noqa: D205 # the two names belong together
    if not 1 <= len(results) <= MOST_INPUTS:
        raise ActionError(f"a returnControl is answered with 1...{MOST_INPUTS} results, not {len(results)}")
    return {"invocationId": invocation_id, "returnControlInvocationResults": list(results)}


def encode(result: Result) -> Payload:
    """The result of a call: the error as a text; otherwise where the pointer is, or the picture, or that all was done.

    Raises:
        UnsupportedAction: It has a picture and a text.
    """
    expect("encode: result", result, Result)
    call = result.call
    answer = _named(call.extra, FAMILY)
    if call.safety:
        confirmed = result.error is None or not result.denied
        answer["confirmationState"] = "CONFIRM" if confirmed and result.acknowledged == call.safety else "DENY"
    if result.error is not None:
        if answer.get("confirmationState") != "DENY":
            answer["responseState"] = "REPROMPT"
        answer["responseBody"] = _text(result.error)
    elif result.picture is not None and result.cursor is None:
        if result.text is not None:
            raise UnsupportedAction(
                "Bedrock's agents", "a picture with a text", "a result has one of them: leave the other out"
            )
        answer["responseBody"] = {"IMAGES": {"images": [image_of(result.picture)]}}
    elif call.steps:
        answer["responseBody"] = _text("\n".join(said(result)))
    return {"functionResult": answer}


def _named(extra: Mapping[str, Any], function: str) -> dict[str, Any]:
    agent = {"agentId": extra["agentId"]} if isinstance(extra.get("agentId"), str) else {}
    return {"actionGroup": extra.get("actionGroup", function), **agent, "function": function}


def _text(text: str) -> dict[str, Any]:
    return {"TEXT": {"body": text}}


def decode_result(payload: object, call: ProviderCall) -> Result:
    """Decode the result of a call in a session's state.

    Raises:
        ActionError: It is malformed, or answers another call.
    """
    answer = expect_object("a functionResult", expect_object("a result", payload).get("functionResult"))
    for name, value in _named(call.extra, FAMILY).items():
        if answer.get(name) != value:
            raise ActionError(f"this is the result of {name} {shown(answer.get(name))}, not of {shown(value)}")
    body = expect_object("a responseBody", answer.get("responseBody", {}))
    if len(body) > 1:
        raise ActionError(f"a responseBody is of one kind, not of {', '.join(sorted(body))}")
    confirmed = answer.get("confirmationState")
    acknowledged = call.safety if confirmed == "CONFIRM" else ()
    if confirmed == "DENY" or answer.get("responseState") == "REPROMPT":
        error = expect_string("a text", expect_object("a TEXT", body.get("TEXT")).get("body"))
        return Result(call=call, error=error, denied=confirmed == "DENY", acknowledged=acknowledged)
    if "IMAGES" in body:
        images = expect_list("images", expect_object("IMAGES", body["IMAGES"]).get("images"))
        if len(images) != 1:
            raise ActionError(f"a result has one picture, not {len(images)}")
        return Result(call=call, picture=picture_of(images[0]), acknowledged=acknowledged)
    if "TEXT" not in body:
        return Result(call=call, acknowledged=acknowledged)
    text = expect_string("a text", expect_object("a TEXT", body["TEXT"]).get("body"))
    first, _, rest = text.partition("\n")
    outcome = outcome_of(call, [first, rest] if rest else [first], None)
    return Result(call=call, cursor=outcome.cursor, text=outcome.text, acknowledged=acknowledged)


def not_ours(payload: object, reason: str) -> Payload:
    """The result of an input that is not for any tool here, for the model to read.

    Raises:
        ActionError: It could not be answered.
    """
    member = expect_object("an input of a returnControl", payload)
    answer: dict[str, Any] = {"responseState": "REPROMPT", "responseBody": _text(reason)}
    if "apiInvocationInput" in member:
        asked = expect_object("an apiInvocationInput", member["apiInvocationInput"])
        group = {"actionGroup": expect_string("an actionGroup", asked.get("actionGroup"))}
        names = {name: asked[name] for name in ("agentId", "apiPath", "httpMethod") if isinstance(asked.get(name), str)}
        return {"apiResult": {**group, **names, **answer}}
    function: Mapping[str, Any] = function_of(member)
    named = {name: function[name] for name in ("agentId", "function") if isinstance(function.get(name), str)}
    denied = {"confirmationState": "DENY"} if function.get("actionInvocationType") in _CONFIRMED else {}
    return {"functionResult": {"actionGroup": function["actionGroup"], **named, **denied, **answer}}


# --- the shell ---


def decode_shell(payload: object) -> ShellCall:
    """Decode an input of the action group `ANTHROPIC.Bash`.

    Raises:
        ActionError: It is malformed or empty, or needs a confirmation.
    """
    function = function_of(payload)
    if not is_shell(function):
        raise ActionError(f"a call of the shell names the function {SHELL}, not {shown(function.get('function'))}")
    if _safety(function):
        raise ActionError(
            "a command that the agent wants confirmed cannot be run: the shell asks no one for confirmation"
        )
    given, parameters = _parameters(function)
    extra = the_rest(function, "function", "parameters")
    if kept := [parameter for parameter in parameters if parameter["name"] not in ("command", "restart")]:
        refuse_more_of_a_command(SHELL, {parameter["name"]: parameter["value"] for parameter in kept})
        extra["parameters"] = kept
    known = {name: given[name] for name in ("command", "restart") if name in given}
    return commanded(known, id=None, extra=extra)


def encode_shell(answer: ShellAnswer) -> Payload:
    """The result of a call of the shell."""
    text, failed = lines_of(answer)
    state = {"responseState": "REPROMPT"} if failed else {}
    return {"functionResult": {**_named(answer.call.extra, SHELL), **state, "responseBody": _text(text)}}


# --- the text editor ---


def decode_editor(payload: object) -> EditCall:
    """Decode an input of the action group `ANTHROPIC.TextEditor`.

    Raises:
        ActionError: It is malformed, or needs a confirmation.
        UnsupportedAction: The tool has no such command.
    """
    function = function_of(payload)
    if not is_edit(function):
        raise ActionError(f"a call of the text editor names its function, not {shown(function.get('function'))}")
    if _safety(function):
        raise ActionError(
            "an edit that the agent wants confirmed cannot be made: the text editor asks no one for confirmation"
        )
    given, parameters = _parameters(function)
    extra = the_rest(function, "function", "parameters")
    call = edit_of(given, id=None, name=expect_string("a function's name", function["function"]), extra=extra)
    unknown = expect_object("the unknown parameters", call.extra.get("input", {}))
    if kept := [parameter for parameter in parameters if parameter["name"] in unknown]:
        extra["parameters"] = kept
    return replace(call, extra=extra)


def encode_editor(answer: EditAnswer) -> Payload:
    """The result of a call of the text editor."""
    state = {"responseState": "REPROMPT"} if answer.failed else {}
    named = _named(answer.extra, answer.name or "")
    return {"functionResult": {**named, **state, "responseBody": _text(answer.text)}}
