"""Google's computer use on the wire: function calls, answered by function responses. Pure.

This module owns the forms: a `FunctionCall`, a `Part` that holds one beside its thought signature, and a step of the
Interactions API. Each is answered in its own form. The functions themselves are in `functions`. There is no SDK and no
desktop.

The model points into a grid of 1000x1000, whatever the picture's size. A point means the centre of its cell of the grid, as
everywhere in deskhand. Google's documentation uses the upper left corner (`int(v / 1000 * size)`). That is up to half a cell
off, and cannot be reversed: on a screen 1366 wide, every second cell comes back as the one before. On a screen of 1920 the
two differ by at most one pixel.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deskhand._core.arguments import expect
from deskhand.desktop.operations import SafetyCheck
from deskhand.errors import ActionError, UnsupportedAction, shown
from deskhand.providers.google.encoding import args_of
from deskhand.providers.google.functions import WHO, on_grid, steps_of
from deskhand.providers.payload import (
    expect_list,
    expect_object,
    expect_point,
    expect_string,
    picture_of_base64,
    the_rest,
)
from deskhand.providers.values import Picture, ProviderCall, Result, expect_call, one_picture

if TYPE_CHECKING:
    from collections.abc import Iterable

    from deskhand._core.geometry import Point, Viewport
    from deskhand.providers.values import Payload

UNKNOWN_URL = ""
"""The `url` of an answer if the page is not known. The API requires the field, but only the browser knows the page."""

ALLOWED = frozenset({"regular", "allow", "allowed"})
"""Safety decisions that need no confirmation. Of all others, known or not, those in `BLOCKED` are refused and the rest must be
confirmed."""

ENVIRONMENTS = ("desktop", "browser")

BLOCKED = frozenset({"block", "blocked"})
"""Safety decisions that cannot be confirmed."""

_FOR_URLS = str.maketrans("-_", "+/")

_SAFETY = "safety_decision"
"""The field with a call's safety check. There is at most one, and Google gives it no name."""


def decode(payload: object, viewport: Viewport) -> ProviderCall:
    """Decode a function call.

    Args:
        payload: A `FunctionCall` (`name`, `args`), a `Part` with one in it, or a `function_call` step of the Interactions API.
        viewport: The viewport of the picture that the model saw; its size does not matter.

    Raises:
        ActionError: It cannot be done here, or makes no sense; `UnsupportedAction` for functions of phones.
    """
    call_id, name, args, extra = _opened(payload)
    viewport = on_grid(viewport)
    args, safety = _safety(args, extra)
    steps, rest = steps_of(name, args, viewport)
    if rest:
        extra["args"] = rest
    return ProviderCall(steps=steps, viewport=viewport, id=call_id, name=name, safety=safety, extra=extra)


def unread(payload: object, viewport: Viewport) -> ProviderCall:
    """Read the form, id and name of a payload that `decode` refuses, for its answer. Never fails."""
    found: Mapping[str, Any] = {}
    extra: dict[str, Any] = {}
    if isinstance(payload, Mapping):
        inner = payload.get("function_call", payload.get("functionCall"))
        if isinstance(inner, Mapping):
            extra["part"], found = {}, inner
        else:
            found = payload
        if found.get("type") == "function_call":
            extra["call"] = {"type": "function_call"}
    call_id, name = found.get("id"), found.get("name")
    return ProviderCall(
        steps=(),
        viewport=on_grid(viewport),
        id=call_id if isinstance(call_id, str) else None,
        name=name if isinstance(name, str) else None,
        extra=extra,
    )


def arguments_of(payload: object) -> object:
    """The arguments of a function call, as they are; None where it cannot be read."""
    try:
        return _opened(payload)[2]
    except ActionError:
        return None


def _opened(payload: object) -> tuple[str | None, str, Mapping[str, Any], dict[str, Any]]:
    """The id, name and arguments of a payload, and the rest of it, including its form."""
    extra: dict[str, Any] = {}
    found = expect_object("a function call", payload)
    for key in ("function_call", "functionCall"):
        if key in found:
            extra["part"] = the_rest(found, key)
            found = expect_object(key, found[key])
            break
    key = "arguments" if found.get("type") == "function_call" else "args"
    if rest := the_rest(found, "id", "name", key):
        extra["call"] = rest
    call_id, args = found.get("id"), found.get(key)
    return (
        None if call_id is None else expect_string("the id of a function call", call_id),
        expect_string("the name of a function call", found.get("name")),
        {} if args is None else expect_object(f"the {key} of a function call", args),
        extra,
    )


def _safety(args: Mapping[str, Any], extra: dict[str, Any]) -> tuple[Mapping[str, Any], tuple[SafetyCheck, ...]]:
    """Separate the safety check from the arguments."""
    if args.get(_SAFETY) is None:
        return args, ()
    found = expect_object(_SAFETY, args[_SAFETY])
    decision = expect_string(f"the decision of a {_SAFETY}", found.get("decision"))
    if decision.lower() in ALLOWED:
        return args, ()
    why = found.get("explanation")
    if why is not None:
        expect_string(f"the explanation of a {_SAFETY}", why)
    if decision.lower() in BLOCKED:
        raise ActionError(f"the provider blocked this call{f': {shown(why)}' if why else ''}")
    if rest := the_rest(found, "decision", "explanation"):
        extra[_SAFETY] = rest
    return the_rest(args, _SAFETY), (SafetyCheck(_SAFETY, decision, why),)


# --- declaration ---


def declaration(
    environment: str = "desktop",
    *,
    excluded: Iterable[str] = (),
    detect_injection: bool = False,
    disabled_policies: Iterable[str] = (),
    interactions: bool = False,
) -> dict[str, Any]:
    """The tool, as a request lists it.

    Args:
        environment: `desktop`, or `browser`, which also has functions to navigate; models before Gemini 3.5 only know
            `browser`.
        excluded: Functions that the model must not call.
        detect_injection: Whether Google looks for injected prompts in the pictures.
        disabled_policies: Google's safety policies that must not ask, such as `financial_transactions`.
        interactions: Whether the request is for the Interactions API.

    Raises:
        ActionError: There is no such environment, or it is that of a phone.
    """
    if environment not in ENVIRONMENTS:
        raise ActionError(f"the environment is {' or '.join(ENVIRONMENTS)}, not {shown(environment)}")
    if isinstance(excluded, str) or isinstance(disabled_policies, str):
        raise ActionError("excluded functions and disabled policies are lists of names")
    tool: dict[str, Any] = {"environment": environment if interactions else f"ENVIRONMENT_{environment.upper()}"}
    if names := list(excluded):
        tool["excluded_predefined_functions"] = names
    if detect_injection:
        tool["enable_prompt_injection_detection"] = True
    if policies := [name.lower() if interactions else name.upper() for name in disabled_policies]:
        tool["disabled_safety_policies"] = policies
    return {"type": "computer_use", **tool} if interactions else {"computer_use": tool}


# --- calls, encoded ---


def encode_call(call: ProviderCall) -> Payload:
    """Encode a call as a function call, the inverse of `decode`.

    Args:
        call: If its name is one of `FUNCTIONS`, that function is used; otherwise a suitable one of Gemini 3.5.

    Raises:
        UnsupportedAction: No function does exactly this.
        OutOfBounds: A point is not on the screen.
    """
    call = expect_call("encode_call", call).at_points("Gemini's computer use")
    name, said = args_of(call.name, call.steps, on_grid(call.viewport))
    extra: Mapping[str, Any] = call.extra
    args = {**extra.get("args", {}), **said}
    if call.safety:
        if len(call.safety) > 1:
            raise UnsupportedAction(WHO, f"{len(call.safety)} safety checks", "a call has one at most")
        args[_SAFETY] = {**extra.get(_SAFETY, {}), **_decision(call.safety[0])}
    others = extra.get("call", {})
    key = "arguments" if others.get("type") == "function_call" else "args"
    payload = {**others, **({} if call.id is None else {"id": call.id}), "name": name, key: args}
    return {"function_call": payload, **extra["part"]} if "part" in extra else payload


def _decision(check: SafetyCheck) -> dict[str, str]:
    """A safety check of any provider as a decision that needs confirmation."""
    code = check.code or ""
    asks = code if code and code.lower() not in ALLOWED | BLOCKED else "require_confirmation"
    return {"decision": asks, **({} if check.message is None else {"explanation": check.message})}


# --- answers ---


def encode(result: Result, *, url: str = UNKNOWN_URL) -> Payload:
    """Encode the answer to a call, in the form of the call.

    A `FunctionResponse` holds the picture as bytes, like google-genai's types; to write JSON without that package, replace them
    with base64. The Interactions API gets base64.

    Args:
        result: The result of the call.
        url: The URL of the page that the browser shows, if known.
    """
    expect("encode: result", result, Result)
    call = result.call
    extra: Mapping[str, Any] = call.extra
    optional = {"error": result.error, "text": result.text, "denied": "true" if result.denied else None}
    response: dict[str, Any] = {"url": url, **{key: value for key, value in optional.items() if value is not None}}
    if result.cursor is not None:
        at = on_grid(call.viewport).to_model(call.viewport.to_screen(result.cursor))
        response["cursor"] = [at.x, at.y]
    if call.safety and all(check in result.acknowledged for check in call.safety):
        response["safety_acknowledgement"] = "true"
    if extra.get("call", {}).get("type") == "function_call":
        return _interaction(result, response)
    payload: dict[str, Any] = {} if call.id is None else {"id": call.id}
    payload |= {"name": call.name or "", "response": response}
    if result.picture is not None:
        blob = {"mime_type": result.picture.media_type, "data": result.picture.data}
        payload["parts"] = [{"inline_data": blob}]
    return {"function_response": payload} if "part" in call.extra else payload


def _interaction(result: Result, response: dict[str, Any]) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": json.dumps(response, ensure_ascii=False)}]
    if result.picture is not None:
        content.append({"type": "image", "data": result.picture.base64, "mime_type": result.picture.media_type})
    payload: dict[str, Any] = {"type": "function_result", "call_id": result.call.id or "", "result": content}
    if result.call.name is not None:
        payload["name"] = result.call.name
    if result.error is not None:
        payload["is_error"] = True
    return payload


def decode_result(payload: object, call: ProviderCall) -> Result:
    """Decode the answer to a call, the inverse of `encode`; its `url` is left out.

    Raises:
        ActionError: It is not an answer, or answers another call.
    """
    found = expect_object("an answer", payload)
    for key in ("function_response", "functionResponse"):
        if key in found:
            found = expect_object(key, found[key])
            break
    interaction = found.get("type") == "function_result"
    named = found.get("call_id" if interaction else "id")
    if named is not None and named != (call.id or ("" if interaction else None)):
        raise ActionError(f"this answers call {shown(named)} and not {shown(call.id)}")
    response, picture = _interaction_read(found) if interaction else _response_read(found)

    def text_of(key: str) -> str | None:
        return None if response.get(key) is None else expect_string(key, response[key])

    at = response.get("cursor")
    return Result(
        call=call,
        picture=picture,
        cursor=None if at is None else _from_grid(expect_point("cursor", at), call.viewport),
        error=text_of("error"),
        text=text_of("text"),
        denied=response.get("denied") == "true",
        acknowledged=call.safety if response.get("safety_acknowledgement") == "true" else (),
    )


def _from_grid(point: Point, viewport: Viewport) -> Point:
    return viewport.to_model(on_grid(viewport).to_screen(point))


def _response_read(found: Mapping[str, Any]) -> tuple[Mapping[str, Any], Picture | None]:
    pictures: list[Picture] = []
    parts = found.get("parts")
    for item in () if parts is None else expect_list("the parts of an answer", parts):
        part = expect_object("a part of an answer", item)
        blob = expect_object("the data of an answer", part.get("inline_data", part.get("inlineData")))
        media_type = expect_string("a media type", blob.get("mime_type", blob.get("mimeType")))
        data = blob.get("data")
        pictures.append(
            Picture(data, media_type) if isinstance(data, bytes) else picture_of_base64(_usual(data), media_type)
        )
    response = found.get("response")
    fields = {} if response is None else expect_object("the response of an answer", response)
    return fields, one_picture(pictures)


def _usual(base64: object) -> object:
    """Base64 in the standard alphabet; google-genai sends the one for URLs."""
    return base64.translate(_FOR_URLS) if isinstance(base64, str) else base64


def _interaction_read(found: Mapping[str, Any]) -> tuple[Mapping[str, Any], Picture | None]:
    pictures: list[Picture] = []
    response: Mapping[str, Any] = {}
    for item in expect_list("the result of an answer", found.get("result")):
        content = expect_object("the content of an answer", item)
        if content.get("type") == "image":
            media_type = expect_string("a media type", content.get("mime_type"))
            pictures.append(picture_of_base64(content.get("data"), media_type))
        elif content.get("type") == "text":
            try:
                read = json.loads(expect_string("the text of an answer", content.get("text")))
            except (ValueError, RecursionError):
                raise ActionError("the text of an answer must be a JSON object") from None
            response = expect_object("the text of an answer", read)
    return response, one_picture(pictures)
