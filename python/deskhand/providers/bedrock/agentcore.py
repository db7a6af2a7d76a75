"""AgentCore's `InvokeBrowser`: decodes its actions, encodes its answers, and the inverses of both. Pure.

This module owns that interface, so that an agent that was made for Amazon's browser drives a desktop instead. It has no
boto3 and no desktop.

Coordinates are pixels of its screenshot. A scroll's `deltaY` is negative downwards and its `deltaX` positive to the right. The
service does not name their unit. Their range of 1000 suggests pixels, of which
`deskhand.desktop.translate.PIXELS_PER_NOTCH` make a wheel notch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deskhand import actions as act
from deskhand._core.arguments import expect
from deskhand._core.geometry import Viewport
from deskhand.desktop.translate import DEFAULT_NOTCHES, PIXELS_PER_NOTCH
from deskhand.errors import ActionError, UnsupportedAction, shown
from deskhand.providers.clicks import a_click
from deskhand.providers.payload import expect_int, expect_list, expect_object, expect_string, refuse_more, the_rest
from deskhand.providers.values import Picture, ProviderCall, Result, expect_call

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deskhand.providers.values import Payload, Step

WHERE = "InvokeBrowser"

MOST_CLICKS = 10
MOST_KEYS = 5
MOST_TEXT = 10_000
FARTHEST = 1000

# The fields of each action; those that end in ? may be missing.
_FIELDS = {
    "mouseClick": "x y button? clickCount?",
    "mouseMove": "x y",
    "mouseDrag": "startX startY endX endY button?",
    "mouseScroll": "x y deltaX? deltaY?",
    "keyType": "text",
    "keyPress": "key presses?",
    "keyShortcut": "keys",
    "screenshot": "format?",
}
KINDS = tuple(_FIELDS)
"""The names of its actions."""

_GESTURES = (1, 2, 3)
"""The numbers of clicks that are a single action of ours."""

_BUTTONS = ("LEFT", "RIGHT", "MIDDLE")


# --- calls ---


def kind_of(payload: object) -> str | None:
    """The name of a request's action, if it can be read."""
    try:
        action = _action_of(expect_object("a request", payload))
    except ActionError:
        return None
    return next((kind for kind in KINDS if kind in action), None)


def _action_of(request: Mapping[str, Any]) -> Mapping[str, Any]:
    return expect_object("an action", request["action"]) if "action" in request else request


def decode(payload: object, viewport: Viewport) -> ProviderCall:
    """Decode a request.

    Args:
        payload: The arguments of `invoke_browser`, or only its `action`.
        viewport: The viewport of the last screenshot.

    Raises:
        ActionError: It is malformed, or out of the interface's ranges.
    """
    request = expect_object("a request", payload)
    action = _action_of(request)
    if len(action) != 1 or next(iter(action)) not in _FIELDS:
        raise ActionError(f"an action is exactly one of {', '.join(KINDS)}, not {shown(sorted(action))}")
    ((kind, arguments),) = action.items()
    fields, unknown = _fields(kind, expect_object(f"the arguments of {kind}", arguments))
    extra, number = {}, None
    if "action" in request:
        extra = the_rest(request, "action", "sessionId")
        number = expect_string("a sessionId", request.get("sessionId"))
    if unknown:
        extra["arguments"] = unknown
    return ProviderCall(steps=_steps(kind, fields, viewport), viewport=viewport, id=number, name=kind, extra=extra)


def _fields(kind: str, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    names = _FIELDS[kind].split()
    known = {name.rstrip("?") for name in names}
    fields = {name: value for name, value in arguments.items() if name in known and value is not None}
    if missing := [name for name in names if not name.endswith("?") and name not in fields]:
        raise ActionError(f"{kind}: {', '.join(missing)} missing")
    rest = {name: value for name, value in arguments.items() if name not in fields}
    refuse_more(WHERE, kind, rest)
    return fields, rest


def _steps(kind: str, fields: Mapping[str, Any], viewport: Viewport) -> tuple[act.Action, ...]:
    match kind:
        case "mouseClick":
            count = _within("clickCount", fields.get("clickCount", 1), 1, MOST_CLICKS)
            return _clicks(_button(fields), count, _point(fields, viewport))
        case "keyPress":
            return (
                act.KeyPress(
                    [expect_string("key", fields["key"])], repeat=expect_int("presses", fields.get("presses", 1))
                ),
            )
        case "keyShortcut":
            keys = expect_list("keys", fields["keys"])
            _within("the number of keys", len(keys), 1, MOST_KEYS)
            return (act.KeyPress([expect_string("a key", key) for key in keys]),)
        case "keyType":
            text = expect_string("text", fields["text"])
            _within("the length of text", len(text), 0, MOST_TEXT)
            return (act.Type(text),)
        case _:
            return (_pointed(kind, fields, viewport),)


def _pointed(kind: str, fields: Mapping[str, Any], viewport: Viewport) -> act.Action:
    match kind:
        case "mouseMove":
            return act.Move(_point(fields, viewport))
        case "mouseDrag":
            ends = [_point(fields, viewport, "startX", "startY"), _point(fields, viewport, "endX", "endY")]
            return act.Drag(ends, button=_button(fields).lower())
        case "mouseScroll":
            dx, dy = (_within(name, fields.get(name, 0), -FARTHEST, FARTHEST) for name in ("deltaX", "deltaY"))
            return act.Scroll(_point(fields, viewport), distance_xy=viewport.distance_to_screen((dx, -dy)))
        case _:
            if fields.get("format", "PNG") != "PNG":
                raise ActionError(f"a screenshot's format is PNG, not {shown(fields['format'])}")
            return act.TakeScreenshot()


def _point(fields: Mapping[str, Any], viewport: Viewport, x: str = "x", y: str = "y") -> tuple[int, int]:
    return viewport.to_screen((expect_int(x, fields[x]), expect_int(y, fields[y])))


def _within(what: str, value: object, least: int, most: int) -> int:
    number = expect_int(what, value)
    if not least <= number <= most:
        raise ActionError(f"{what} is {least}...{most}, not {shown(number)}")
    return number


def _button(fields: Mapping[str, Any]) -> str:
    button = expect_string("a button", fields.get("button", "LEFT"))
    if button not in _BUTTONS:
        raise ActionError(f"a button is {', '.join(_BUTTONS)}, not {shown(button)}")
    return button


def _clicks(button: str, count: int, xy: tuple[int, int]) -> tuple[act.Action, ...]:
    name = button.lower()
    if count in _GESTURES:
        return (a_click(name, count, xy),)
    # As one gesture, so that nothing waits between the clicks.
    again = (act.MouseDown(name), act.MouseUp(name)) * (count - 1)
    return (act.MouseDown(name, xy), act.MouseUp(name), *again)


# --- calls, encoded ---


def encode_call(call: ProviderCall) -> Payload:
    """Encode a call as a request; only its `action` if the call has no id.

    Raises:
        UnsupportedAction: The interface cannot express it.
    """
    call = expect_call("encode_call", call).at_points(WHERE)
    kind, fields = _written(call.steps, call.viewport)
    extra: dict[str, Any] = dict(call.extra)
    action: Payload = {kind: {**extra.pop("arguments", {}), **fields}}
    return action if call.id is None else {**extra, "sessionId": call.id, "action": action}


def _written(steps: Sequence[Step], viewport: Viewport) -> tuple[str, dict[str, Any]]:
    first = steps[0] if steps else None
    if not isinstance(first, act.Action):
        raise UnsupportedAction(WHERE, getattr(first, "what", "no action at all"))
    if getattr(first, "modifiers", ()):
        raise UnsupportedAction(WHERE, first.type, "it holds no modifiers")
    xy = getattr(first, "xy", None)
    if xy is not None and (clicks := _counted(steps, xy)) is not None:
        return "mouseClick", {**_at(xy, viewport), **clicks}
    if len(steps) > 1:
        raise UnsupportedAction(WHERE, first.type, "one action a request")
    match first:
        case act.Move(xy=(_, _) as point):
            return "mouseMove", _at(point, viewport)
        case act.Drag(path=[start, end], button="left" | "right" | "middle" as button):
            at, to = viewport.to_model(start), viewport.to_model(end)
            fields = {"startX": at.x, "startY": at.y, "endX": to.x, "endY": to.y}
            return "mouseDrag", {**fields, **({} if button == "left" else {"button": button.upper()})}
        case act.Scroll(xy=(_, _) as point):
            return "mouseScroll", {**_at(point, viewport), **_turned(first, viewport)}
        case act.TakeScreenshot():
            return "screenshot", {"format": "PNG"}
        case _:
            return _written_keys(first)


def _counted(steps: Sequence[Step], xy: tuple[int, int]) -> dict[str, Any] | None:
    for button in _BUTTONS:
        for count in {*_GESTURES, min(len(steps) // 2, MOST_CLICKS)} - {0}:
            if _clicks(button, count, xy) == tuple(steps):
                fields: dict[str, Any] = {} if button == "LEFT" else {"button": button}
                return fields if count == 1 else {**fields, "clickCount": count}
    return None


def _written_keys(action: act.Action) -> tuple[str, dict[str, Any]]:
    match action:
        case act.KeyPress(keys=[key], repeat=repeat):
            return "keyPress", {"key": key, **({} if repeat == 1 else {"presses": repeat})}
        case act.KeyPress(keys=keys, repeat=1) if len(keys) <= MOST_KEYS:
            return "keyShortcut", {"keys": list(keys)}
        case act.Type(text=text, paste=False) if len(text) <= MOST_TEXT:
            return "keyType", {"text": text}
        case _:
            raise UnsupportedAction(WHERE, action.type)


def _at(xy: tuple[int, int], viewport: Viewport) -> dict[str, Any]:
    point = viewport.to_model(xy)
    return {"x": point.x, "y": point.y}


def _turned(action: act.Scroll, viewport: Viewport) -> dict[str, Any]:
    if action.distance_xy is not None:
        distance = action.distance_xy
    else:
        notches = DEFAULT_NOTCHES if action.magnitude is None else action.magnitude
        pixels = round(notches * PIXELS_PER_NOTCH)
        distance = {"up": (0, -pixels), "left": (-pixels, 0), "right": (pixels, 0)}.get(
            action.direction or "down", (0, pixels)
        )
    dx, dy = Viewport(viewport.model, viewport.shown.size).distance_to_screen(distance)
    if max(abs(dx), abs(dy)) > FARTHEST:
        raise UnsupportedAction(WHERE, action.type, f"it scrolls {FARTHEST} pixels at most")
    return {"deltaX": dx, "deltaY": -dy}


# --- results ---


def encode(result: Result) -> Payload:
    """The answer to a request: success or the error; and the picture, only for a screenshot."""
    expect("encode: result", result, Result)
    kind = result.call.name if result.call.name in _FIELDS else "screenshot"
    outcome: dict[str, Any] = {"status": "SUCCESS"}
    if result.error is not None:
        outcome = {"status": "FAILED", "error": result.error}
    elif kind == "screenshot" and result.picture is not None:
        outcome["data"] = result.picture.data
    elif result.text is not None:
        # There is no other place for a text, such as the note that the screen has a new size.
        outcome["error"] = result.text
    session = {} if result.call.id is None else {"sessionId": result.call.id}
    return {"result": {kind: outcome}, **session}


def decode_result(payload: object, call: ProviderCall) -> Result:
    """Decode the answer to a call.

    Raises:
        ActionError: It is malformed, or answers another call.
    """
    answer = expect_object("an answer", payload)
    results = expect_object("a result", answer.get("result"))
    if answer.get("sessionId") != call.id or list(results) != [call.name]:
        raise ActionError(f"this is a result of {shown(sorted(results))} in another session, or of another call")
    outcome = expect_object("a result", results[call.name or ""])
    match outcome.get("status"):
        case "SUCCESS":
            data = outcome.get("data")
            if data is not None and not isinstance(data, bytes):
                raise ActionError(f"a picture's bytes are bytes, not {shown(type(data).__name__)}")
            said = outcome.get("error")
            text = None if said is None else expect_string("an error", said)
            return Result(call=call, picture=None if data is None else Picture(data), text=text)
        case "FAILED":
            return Result(call=call, error=expect_string("an error", outcome.get("error", "")))
        case other:
            raise ActionError(f"a status is SUCCESS or FAILED, not {shown(other)}")
