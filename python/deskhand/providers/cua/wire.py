"""Cua's computer calls and their outputs, converted to and from a desktop's actions. Pure.

This module owns the meaning of the actions in a computer call. It has no desktop, and the rest of a conversation is in
`deskhand.providers.cua.messages`.

A scroll's numbers have no unit: loops for OpenAI's models pass pixels, the one for Anthropic's passes wheel notches, and the
message does not say which. So the caller of `decode` names the unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from deskhand import actions as a
from deskhand._core.arguments import expect
from deskhand._core.geometry import Point
from deskhand.desktop.operations import SafetyCheck
from deskhand.desktop.translate import PIXELS_PER_NOTCH
from deskhand.errors import ActionError, UnsupportedAction, shown
from deskhand.providers.clicks import a_click, clicked
from deskhand.providers.payload import (
    expect_int,
    expect_list,
    expect_object,
    expect_string,
    picture_of_url,
    refuse_more,
    the_rest,
)
from deskhand.providers.values import Finish, ProviderCall, Result, Step, expect_call, step_name

if TYPE_CHECKING:
    from deskhand._core.geometry import Viewport
    from deskhand.providers.values import JSONObject

ScrollUnit: TypeAlias = Literal["pixels", "notches"]

_WHERE = "Cua's computer"
_BUTTONS: Mapping[str, str] = {
    "left": "left", "right": "right", "middle": "middle", "wheel": "middle", "back": "back", "forward": "forward",
}  # fmt: skip
_NAMES: Mapping[str, str] = {button: name for name, button in _BUTTONS.items()}
# What a model reports at the end of its task, and its meaning.
_ENDINGS = {"success": "done", "completed": "done", "failure": "failed", "failed": "failed"}


def decode(payload: object, viewport: Viewport, *, scroll_unit: ScrollUnit = "pixels") -> ProviderCall:
    """Decode a `computer_call`.

    Args:
        payload: The message.
        viewport: The viewport of the picture that the model pointed into.
        scroll_unit: The unit of a scroll's numbers: pixels of that picture, or wheel notches; positive right and down.

    Raises:
        ActionError: It is not one, it has already failed, or its action cannot be read.
        OutOfBounds: A point is outside of the picture.
    """
    message = expect_object("a message", payload)
    if message.get("type") != "computer_call":
        raise ActionError(f"a computer_call is needed, not {shown(message.get('type'))}")
    if message.get("status", "completed") not in ("completed", "pending"):
        raise ActionError(f"a call whose status is {shown(message.get('status'))} is not carried out")
    action = expect_object("computer_call: action", message.get("action"))
    steps, unknown = decode_action(action, viewport, scroll_unit=scroll_unit)
    extra = the_rest(message, "type", "call_id", "status", "action", "pending_safety_checks")
    if unknown:
        extra["action"] = unknown
    return ProviderCall(
        steps=steps,
        viewport=viewport,
        id=expect_string("computer_call: call_id", message.get("call_id")),
        name=expect_string("computer_call: action: type", action.get("type")),
        safety=_checks(message.get("pending_safety_checks"), "pending_safety_checks"),
        extra=extra,
    )


def decode_action(
    action: Mapping[str, Any], viewport: Viewport, *, scroll_unit: ScrollUnit = "pixels"
) -> tuple[tuple[Step, ...], dict[str, Any]]:
    """Decode an action, and return its unknown fields.

    Raises:
        ActionError: It cannot be read.
        OutOfBounds: A point is outside of the picture.
    """
    kind = expect_string("an action's type", action.get("type"))
    read = _READERS.get(kind)
    if read is None:
        raise UnsupportedAction(_WHERE, kind, f"use one of {', '.join(sorted(_READERS))}")
    known, steps = read(action, viewport, scroll_unit)
    rest = the_rest(action, "type", *known)
    refuse_more(_WHERE, kind, rest)
    return steps, rest


def encode_call(call: ProviderCall, *, scroll_unit: ScrollUnit = "pixels") -> JSONObject:
    """Encode a call as a `computer_call`, the inverse of `decode`.

    Raises:
        UnsupportedAction: Cua's messages cannot express it.
    """
    call = expect_call("encode_call", call).at_points(_WHERE)
    if len(call.steps) != 1:
        raise UnsupportedAction(_WHERE, "a batch", f"one call has one action, not {len(call.steps)}")
    action = encode_action(call.steps[0], call.viewport, scroll_unit=scroll_unit)
    extra: Mapping[str, Any] = call.extra
    message = {"type": "computer_call", "call_id": call.id or "", "status": "completed", **extra}
    message["action"] = {**action, **extra.get("action", {})}
    if call.safety:
        message["pending_safety_checks"] = [_plain(check) for check in call.safety]
    return message


def encode_action(step: Step, viewport: Viewport, *, scroll_unit: ScrollUnit = "pixels") -> dict[str, Any]:
    """Encode a step as an action.

    Raises:
        UnsupportedAction: Cua's messages cannot express it.
    """
    if isinstance(step, Finish):
        return {"type": "terminate", "status": "success" if step.status == "done" else "failure"}
    if not isinstance(step, a.Action):
        raise UnsupportedAction(_WHERE, step_name(step))
    said = None
    if not (getattr(step, "modifiers", ()) or getattr(step, "repeat", 1) != 1 or getattr(step, "paste", False)):
        said = _say_without_point(step) or _say_with_point(step, viewport, scroll_unit)
    if said is None:
        raise UnsupportedAction(_WHERE, step.type)
    return said


def _say_without_point(step: a.Action) -> dict[str, Any] | None:
    match step:
        case a.KeyPress():
            return {"type": "keypress", "keys": list(step.keys)}
        case a.Type():
            return {"type": "type", "text": step.text}
        case a.TakeScreenshot():
            return {"type": "screenshot"}
        case a.Wait():
            return {"type": "wait"} if step.duration is None else {"type": "wait", "ms": round(step.duration * 1000)}
    return None


def _say_with_point(step: a.Action, viewport: Viewport, unit: ScrollUnit) -> dict[str, Any] | None:
    said: dict[str, Any] | None = None
    point = getattr(step, "xy", None)
    match step:
        case a.LeftMouseDown() | a.LeftMouseUp() | a.Move():
            said = {"type": step.type}
        case a.DoubleClick(button=button):
            said = {"type": "double_click", **_button_of(button)}
        case a.Scroll() if point:
            across, down = _scrolled(step, viewport, unit)
            said = {"type": "scroll", "scroll_x": across, "scroll_y": down}
        case a.Drag():
            said = {"type": "drag", **_button_of(step.button), "path": [_point_of(xy, viewport) for xy in step.path]}
        case _ if point and (click := clicked(step)) is not None and click[1] == 1:
            said = {"type": "click", "button": _NAMES[click[0]]}
    return said if said is None else {**said, **_point_of(point, viewport)}


def encode(result: Result) -> JSONObject:
    """The output of a call: the picture, or for a failed call a function's output with the reason, as in Cua's agent."""
    expect("encode: result", result, Result)
    if result.error is not None or result.picture is None:
        text = result.error or "There is no picture."
        return {"type": "function_call_output", "call_id": result.call.id or "", "output": text}
    message: dict[str, Any] = {
        "type": "computer_call_output",
        "call_id": result.call.id or "",
        "output": {"type": "input_image", "image_url": result.picture.url},
    }
    if result.acknowledged:
        message["acknowledged_safety_checks"] = [_plain(check) for check in result.acknowledged]
    return message


def decode_result(payload: object, call: ProviderCall) -> Result:
    """Decode the output of a call, the inverse of `encode`.

    Raises:
        ActionError: It cannot be read, or answers another call.
    """
    message = expect_object("a message", payload)
    if expect_string("call_id", message.get("call_id")) != (call.id or ""):
        raise ActionError(f"this is the output of call {shown(message['call_id'])}, and not of {shown(call.id)}")
    if message.get("type") == "function_call_output":
        return Result(call=call, error=expect_string("output", message.get("output")))
    if message.get("type") != "computer_call_output":
        raise ActionError(f"a computer_call_output is needed, not {shown(message.get('type'))}")
    output = expect_object("output", message.get("output"))
    acknowledged = _checks(message.get("acknowledged_safety_checks"), "acknowledged_safety_checks")
    return Result(call=call, picture=picture_of_url(output.get("image_url")), acknowledged=acknowledged)


# --- one action each: the names of the fields that were read, and what to do ---

_Read: TypeAlias = tuple[tuple[str, ...], tuple[Step, ...]]


def _click(action: Mapping[str, Any], viewport: Viewport, _: ScrollUnit) -> _Read:
    return ("button", "x", "y", "keys"), (_clicked(action, _button(action), 1, viewport),)


def _double_click(action: Mapping[str, Any], viewport: Viewport, _: ScrollUnit) -> _Read:
    return ("button", "x", "y", "keys"), (_clicked(action, _button(action), 2, viewport),)


def _right_click(action: Mapping[str, Any], viewport: Viewport, _: ScrollUnit) -> _Read:
    _must_be("right", action)
    return ("button", "x", "y", "keys"), (_clicked(action, "right", 1, viewport),)


def _clicked(action: Mapping[str, Any], button: str, count: int, viewport: Viewport) -> a.Action:
    # By the messages' schema, only a double click may leave out its point.
    at = _at(action, viewport) if count == 1 else _at_or_none(action, viewport)
    return a_click(button, count, at, modifiers=_held(action))


def _held(action: Mapping[str, Any]) -> tuple[str, ...]:
    # Cua passes on the actions of OpenAI's models unchanged: these keys are held meanwhile.
    return tuple(expect_list("keys", action["keys"])) if action.get("keys") is not None else ()


def _move(action: Mapping[str, Any], viewport: Viewport, _: ScrollUnit) -> _Read:
    return ("x", "y", "keys"), (a.Move(_at(action, viewport), modifiers=_held(action)),)


def _left_mouse_down(action: Mapping[str, Any], viewport: Viewport, _: ScrollUnit) -> _Read:
    _must_be("left", action)
    return ("button", "x", "y"), (a.LeftMouseDown(_at_or_none(action, viewport)),)


def _left_mouse_up(action: Mapping[str, Any], viewport: Viewport, _: ScrollUnit) -> _Read:
    _must_be("left", action)
    return ("button", "x", "y"), (a.LeftMouseUp(_at_or_none(action, viewport)),)


def _drag(action: Mapping[str, Any], viewport: Viewport, _: ScrollUnit) -> _Read:
    # One of Cua's loops passes the two ends in separate fields.
    ends = ("start_x", "start_y", "end_x", "end_y")
    if action.get("path") is None and any(action.get(name) is not None for name in ends):
        values = [expect_int(f"drag: {name}", action.get(name)) for name in ends]
        given: Any = [values[:2], values[2:]]
    else:
        given = expect_list("drag: path", action.get("path"))
    path = [_path_point(point, viewport) for point in given]
    # A single point is the end; the drag begins at the pointer.
    if not path:
        raise ActionError("drag: the path has no points")
    return ("button", "path", "keys", *ends), (a.Drag(path, _button(action), modifiers=_held(action)),)


def _keypress(action: Mapping[str, Any], _: Viewport, __: ScrollUnit) -> _Read:
    keys = action.get("keys")
    return ("keys",), (a.KeyPress([keys] if isinstance(keys, str) else expect_list("keypress: keys", keys)),)


def _type(action: Mapping[str, Any], viewport: Viewport, _: ScrollUnit) -> _Read:
    # The loop for Gemini adds the point to type at.
    at = _at_or_none(action, viewport)
    text = a.Type(expect_string("type: text", action.get("text")))
    return ("text", "x", "y"), ((text,) if at is None else (a.LeftClick(at), text))


def _scroll(action: Mapping[str, Any], viewport: Viewport, unit: ScrollUnit) -> _Read:
    known = ("x", "y", "scroll_x", "scroll_y", "keys")
    across, down = (expect_int(f"scroll: {name}", action.get(name, 0)) for name in known[2:4])
    distance = viewport.distance_to_screen((across, down))
    if unit == "notches":
        distance = Point(across * PIXELS_PER_NOTCH, down * PIXELS_PER_NOTCH)
    return known, (a.Scroll(_at(action, viewport), distance_xy=distance, modifiers=_held(action)),)


def _wait(action: Mapping[str, Any], _: Viewport, __: ScrollUnit) -> _Read:
    ms = action.get("ms")
    return ("ms",), (a.Wait(None if ms is None else expect_int("wait: ms", ms) / 1000),)


def _screenshot(_: Mapping[str, Any], __: Viewport, ___: ScrollUnit) -> _Read:
    # The text is a label, which is not drawn into the picture.
    return ("text",), (a.TakeScreenshot(),)


def _terminate(action: Mapping[str, Any], _: Viewport, __: ScrollUnit) -> _Read:
    status = action.get("status", "success")
    if not isinstance(status, str) or status not in _ENDINGS:
        raise ActionError(f"terminate: status is success or failure, not {shown(status)}")
    return ("status",), (Finish(_ENDINGS[status]),)


_READERS = {
    "click": _click,
    "double_click": _double_click,
    "right_click": _right_click,
    "move": _move,
    "left_mouse_down": _left_mouse_down,
    "left_mouse_up": _left_mouse_up,
    "drag": _drag,
    "keypress": _keypress,
    "type": _type,
    "scroll": _scroll,
    "wait": _wait,
    "screenshot": _screenshot,
    "terminate": _terminate,
}


def _at(action: Mapping[str, Any], viewport: Viewport) -> Point:
    return viewport.to_screen((expect_int("x", action.get("x")), expect_int("y", action.get("y"))))


def _at_or_none(action: Mapping[str, Any], viewport: Viewport) -> Point | None:
    return None if action.get("x") is None and action.get("y") is None else _at(action, viewport)


def _path_point(point: object, viewport: Viewport) -> Point:
    if isinstance(point, Mapping):
        return viewport.to_screen((expect_int("path: x", point.get("x")), expect_int("path: y", point.get("y"))))
    pair = expect_list("a point of a path", point)
    if len(pair) != 2:
        raise ActionError(f"a point of a path is x and y, not {shown(point)}")
    return viewport.to_screen((expect_int("path: x", pair[0]), expect_int("path: y", pair[1])))


def _button(action: Mapping[str, Any]) -> str:
    button = action.get("button") or "left"
    if not isinstance(button, str) or button not in _BUTTONS:
        raise ActionError(f"a button is one of {', '.join(_BUTTONS)}, not {shown(button)}")
    return _BUTTONS[button]


def _must_be(button: str, action: Mapping[str, Any]) -> None:
    if action.get("button") and _button(action) != button:
        raise UnsupportedAction(_WHERE, str(action["type"]), f"with another button than the {button} one")


def _button_of(button: str) -> dict[str, str]:
    return {} if button == "left" else {"button": _NAMES[button]}


def _point_of(point: tuple[int, int] | None, viewport: Viewport) -> dict[str, int]:
    if point is None:
        return {}
    x, y = viewport.to_model(point)
    return {"x": x, "y": y}


def _scrolled(step: a.Scroll, viewport: Viewport, unit: ScrollUnit) -> tuple[int, int]:
    """The distance of a scroll in the unit, positive right and down."""
    if step.distance_xy is not None:
        across, down = step.distance_xy
        if unit == "notches":
            return round(across / PIXELS_PER_NOTCH), round(down / PIXELS_PER_NOTCH)
        shown_size = viewport.shown
        width, height = viewport.model
        return round(across * width / shown_size.width), round(down * height / shown_size.height)
    notches = 3.0 if step.magnitude is None else step.magnitude
    amount = round(notches if unit == "notches" else notches * PIXELS_PER_NOTCH)
    if step.direction in ("left", "right"):
        return (amount if step.direction == "right" else -amount), 0
    return 0, (-amount if step.direction == "up" else amount)


def _checks(value: object, what: str) -> tuple[SafetyCheck, ...]:
    checks = []
    for item in expect_list(what, [] if value is None else value):
        plain = expect_object(f"{what}: a check", item)
        texts = [
            None if plain.get(name) is None else expect_string(f"{what}: {name}", plain[name])
            for name in ("code", "message")
        ]
        checks.append(SafetyCheck(expect_string(f"{what}: id", plain.get("id")), *texts))
    return tuple(checks)


def _plain(check: SafetyCheck) -> dict[str, Any]:
    return {"id": check.id, "code": check.code, "message": check.message}
