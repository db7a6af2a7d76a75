"""OpenAI's computer tool as it is on the wire: `computer_call` and `computer_call_output`. Pure.

Written for openai 3.54 (`types/responses/computer_action.py` and its neighbours): the tool `computer` sends `actions`, a batch
with one answer; `computer_use_preview` sends one `action`. Points and distances are pixels of the picture that the model was
sent; those of a scroll are positive down and right, with `PIXELS_PER_NOTCH` to a notch of the wheel.

This module owns the two payloads and their meaning. It has no SDK and no desktop; the shell's payloads are in `wire_shell`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deskhand import actions as act
from deskhand._core.arguments import expect
from deskhand._core.chords import parse_keys
from deskhand._core.geometry import Viewport
from deskhand._core.keys import is_modifier
from deskhand.desktop.translate import DEFAULT_NOTCHES, PIXELS_PER_NOTCH
from deskhand.errors import ActionError, UnsupportedAction, shown
from deskhand.providers.clicks import a_click, clicked
from deskhand.providers.openai.safety_checks import check_payload, decode_check
from deskhand.providers.payload import (
    expect_int,
    expect_list,
    expect_object,
    expect_string,
    picture_of_url,
    refuse_more,
    the_rest,
)
from deskhand.providers.values import BLANK, ProviderCall, Result, expect_call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from deskhand._core.geometry import Point
    from deskhand.providers.values import JSONObject, Step

COMPUTER = "computer"
"""The tool that sends `actions`."""

PREVIEW = "computer_use_preview"
"""The tool that sends one `action`."""

LEAST_PATH = 2
"""The least number of points of a drag: a beginning and an end."""

_WHERE = "OpenAI's computer tool"
_CALL = "The computer call"
# OpenAI's names of the buttons.
_BUTTONS = {"left": "left", "wheel": "middle", "right": "right", "back": "back", "forward": "forward"}
_NAMES = {button: name for name, button in _BUTTONS.items()}
_SIGNS = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}


# --- from OpenAI ---


def decode(payload: object, viewport: Viewport) -> ProviderCall:
    """Decode a `computer_call`.

    Args:
        payload: The item, as plain data.
        viewport: The viewport of the picture that the model was sent last.

    Raises:
        ActionError: It is malformed, asks for something that does not exist, points outside of the picture, or is incomplete:
            its actions may have been cut off.
    """
    item = expect_object("a computer_call", payload)
    if item.get("type") != "computer_call":
        raise ActionError(f"a computer_call is needed, not {shown(item.get('type'))}")
    call_id = expect_string("call_id", item.get("call_id"))
    status = item.get("status")
    if status is not None and status != "completed":
        raise ActionError(f"the call is not complete (status {shown(status)}); nothing of it was done: send it again")
    batch, single = item.get("actions"), item.get("action")
    name, known = COMPUTER, ["actions"]
    if batch is None or (batch == [] and single is not None):
        batch, name = [single], PREVIEW
    elif single is not None and batch != [single]:
        raise ActionError("a call has actions or an action, and this has both: send either again")
    if single is None or name == PREVIEW:
        known.append("action")
    steps = expect_list("actions", batch)
    checks = item.get("pending_safety_checks")
    pending = expect_list("pending_safety_checks", [] if checks is None else checks)
    extra = the_rest(item, "type", "call_id", "status", "pending_safety_checks", *known)
    for key, things, names in (("actions", steps, _FIELDS), ("pending_safety_checks", pending, _CHECK)):
        rests = [_rest(thing, names) for thing in things]
        if any(rests):
            extra[key] = rests
    return ProviderCall(
        steps=tuple(step for payload in steps for step in decode_action(payload, viewport)),
        viewport=viewport,
        id=call_id,
        name=name,
        safety=tuple(map(decode_check, pending)),
        extra=extra,
    )


def decode_action(payload: object, viewport: Viewport) -> tuple[act.Action, ...]:
    """Decode one of its actions: into one action of ours, or three if non-modifier keys are held during it.

    Args:
        payload: The action, as plain data.
        viewport: The viewport of the picture that the model was sent last.

    Raises:
        ActionError: As for `decode`.
    """
    item = expect_object("an action", payload)
    kind = item.get("type")
    read = _ACTIONS.get(kind) if isinstance(kind, str) else None
    if read is None or not isinstance(kind, str):
        raise UnsupportedAction(_WHERE, kind, f"there are {', '.join(_ACTIONS)}")
    if not item.keys() <= _FIELDS[kind]:
        refuse_more(_WHERE, kind, the_rest(item, *_FIELDS[kind]))
    if kind not in _HOLDING or item.get("keys") is None:
        return (read(item, viewport),)
    names = expect_list("keys", item["keys"])
    others = [name for name in names if not all(map(is_modifier, parse_keys([name])))]
    if not others:
        return (read(item, viewport),)
    action = read({**item, "keys": [name for name in names if name not in others]}, viewport)
    return act.PressKeys(others), action, act.ReleaseKeys(others)


def decode_result(payload: object, call: ProviderCall) -> Result:
    """Decode a `computer_call_output`.

    Args:
        payload: The item, as plain data.
        call: The call that it answers.

    Raises:
        ActionError: It is malformed, answers another call, or its picture is a file that only OpenAI has.
    """
    item = expect_object("a computer_call_output", payload)
    if item.get("type") != "computer_call_output" or item.get("call_id") != call.id:
        raise ActionError(f"the computer_call_output of {shown(call.id)} is needed, not {shown(item)}")
    output = expect_object("output", item.get("output"))
    acknowledged = item.get("acknowledged_safety_checks")
    picture = picture_of_url(output.get("image_url"))
    return Result(
        call=call,
        picture=None if picture == BLANK else picture,
        acknowledged=tuple(
            map(decode_check, expect_list("acknowledged_safety_checks", [] if acknowledged is None else acknowledged))
        ),
    )


# --- to OpenAI ---


def encode(result: Result, *, detail: str | None = "original") -> JSONObject:
    """Encode the `computer_call_output` of a call.

    It has no place for an error: `note` puts `result.error` and `result.text` into a message beside it.

    Args:
        result: The result of the call. The output needs a picture, so `BLANK` is sent if there is none.
        detail: How the model sees the picture. With anything but `original` the picture may be scaled down, and the model's
            points would be off. None leaves the choice to the API.

    Raises:
        ActionError: The call has no id.
    """
    expect("encode: result", result, Result)
    if result.call.id is None:
        raise ActionError("a computer_call_output needs the call's id")
    output = {"type": "computer_screenshot", "image_url": (result.picture or BLANK).url}
    if detail is not None:
        output["detail"] = detail
    payload: dict[str, Any] = {"type": "computer_call_output", "call_id": result.call.id, "output": output}
    if result.acknowledged:
        payload["acknowledged_safety_checks"] = [check_payload(check) for check in result.acknowledged]
    return payload


def note(result: Result) -> JSONObject | None:
    """The message after the output, if there is anything to add to the picture; else None."""
    expect("note: result", result, Result)
    said = [] if result.error is None else [f"{_CALL} {result.call.id} was not carried out as asked: {result.error}"]
    if result.text is not None:
        said.append(result.text)
    if result.cursor is not None:
        said.append(f"The pointer is at {tuple(result.cursor)}.")
    return message("\n".join(said)) if said else None


def tells_failure(item: Mapping[str, Any]) -> bool:
    """Whether a message that `note` has made is of a call that was not carried out as asked."""
    return bool(item["content"][0]["text"].startswith(_CALL))


def message(text: str) -> dict[str, Any]:
    """An input item with a text for the model, in the user's role: no other item can hold text."""
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def encode_call(call: ProviderCall) -> JSONObject:
    """Encode a call as a `computer_call`.

    Args:
        call: If its `name` is `PREVIEW`, the result has one `action`.

    Raises:
        UnsupportedAction: OpenAI's tool cannot express it.
        OutOfBounds: A point is not in the picture.
    """
    call = expect_call("encode_call", call).at_points(_WHERE)
    extra: dict[str, Any] = dict(call.extra)
    steps = _with(extra.pop("actions", ()), _actions(call.steps, call.viewport))
    checks = _with(extra.pop("pending_safety_checks", ()), map(check_payload, call.safety))
    payload: dict[str, Any] = {**extra, "type": "computer_call", "status": "completed", "pending_safety_checks": checks}
    if call.id is not None:
        payload["call_id"] = call.id
    if call.name != PREVIEW:
        return payload | {"actions": steps}
    if len(steps) != 1:
        raise UnsupportedAction(PREVIEW, f"{len(steps)} actions at once", "it asks for one at a time")
    return payload | {"action": steps[0]}


# --- the actions, one by one ---


def _point(item: Mapping[str, Any], viewport: Viewport) -> Point:
    return viewport.to_screen((expect_int("x", item.get("x")), expect_int("y", item.get("y"))))


def _held(item: Mapping[str, Any]) -> Sequence[str]:
    keys = item.get("keys")
    return () if keys is None else expect_list("keys", keys)


def _click(item: Mapping[str, Any], viewport: Viewport) -> act.Action:
    return _clicked(item, viewport, item.get("button"), 1)


def _double_click(item: Mapping[str, Any], viewport: Viewport) -> act.Action:
    # OpenAI's types have no button here, but a button that is sent is meant.
    button = item.get("button")
    return _clicked(item, viewport, "left" if button is None else button, 2)


def _clicked(item: Mapping[str, Any], viewport: Viewport, name: object, count: int) -> act.Action:
    button = _BUTTONS.get(name) if isinstance(name, str) else None
    if button is None:
        raise ActionError(f"button is one of {', '.join(_BUTTONS)}, not {shown(name)}")
    return a_click(button, count, _point(item, viewport), modifiers=_held(item))


def _drag(item: Mapping[str, Any], viewport: Viewport) -> act.Action:
    path = expect_list("path", item.get("path"))
    if len(path) < LEAST_PATH:
        raise ActionError(f"the path of a drag has at least {LEAST_PATH} points, not {len(path)}")
    points = [_point(expect_object("a point of the path", point), viewport) for point in path]
    return act.Drag(points, modifiers=_held(item))


def _scroll(item: Mapping[str, Any], viewport: Viewport) -> act.Action:
    distance = expect_int("scroll_x", item.get("scroll_x")), expect_int("scroll_y", item.get("scroll_y"))
    return act.Scroll(_point(item, viewport), distance_xy=viewport.distance_to_screen(distance), modifiers=_held(item))


_ACTIONS: dict[str, Callable[[Mapping[str, Any], Viewport], act.Action]] = {
    "click": _click,
    "double_click": _double_click,
    "drag": _drag,
    "keypress": lambda item, _: act.KeyPress(expect_list("keys", item.get("keys"))),
    "move": lambda item, viewport: act.Move(_point(item, viewport), modifiers=_held(item)),
    "screenshot": lambda _, __: act.TakeScreenshot(),
    "scroll": _scroll,
    "type": lambda item, _: act.Type(expect_string("text", item.get("text"))),
    "wait": lambda _, __: act.Wait(),
}

_HOLDING = frozenset({"click", "double_click", "drag", "move", "scroll"})
_POINT = {"type", "x", "y", "keys"}
_FIELDS = {
    kind: frozenset(fields)
    for kind, fields in {
        "click": _POINT | {"button"},
        "double_click": _POINT | {"button"},
        "drag": {"type", "path", "keys"},
        "keypress": {"type", "keys"},
        "move": _POINT,
        "screenshot": {"type"},
        "scroll": _POINT | {"scroll_x", "scroll_y"},
        "type": {"type", "text"},
        "wait": {"type"},
    }.items()
}
_CHECK = frozenset({"id", "code", "message"})


def _actions(steps: Sequence[Step], viewport: Viewport) -> Iterator[dict[str, Any]]:
    at = 0
    while at < len(steps):
        match steps[at : at + 3]:
            case (act.PressKeys(keys=keys), step, act.ReleaseKeys(keys=released)) if keys == released:
                payload = _action(step, viewport)
                if payload["type"] in _HOLDING:
                    yield payload | {"keys": [*keys, *payload.get("keys", ())]}
                    at += 3
                    continue
        yield _action(steps[at], viewport)
        at += 1


def _action(step: Step, viewport: Viewport) -> dict[str, Any]:
    payload: dict[str, Any]
    match step:
        case act.DoubleClick(button="left"):
            payload = {"type": "double_click"} | _at(step, viewport)
        case act.Action() if (click := clicked(step)) is not None and click[1] == 1:
            payload = {"type": "click", "button": _NAMES[click[0]]} | _at(step, viewport)
        case act.Move():
            payload = {"type": "move"} | _at(step, viewport)
        case act.Scroll():
            x, y = _distance(step, viewport)
            payload = {"type": "scroll", "scroll_x": x, "scroll_y": y} | _at(step, viewport)
        case act.Drag(path=path, button="left") if len(path) >= LEAST_PATH:
            payload = {"type": "drag", "path": [_xy(point, viewport) for point in path]} | _keys(step)
        case act.KeyPress(keys=keys, repeat=1):
            payload = {"type": "keypress", "keys": list(keys)}
        case act.Type(text=str() as text, paste=False):
            payload = {"type": "type", "text": text}
        case act.TakeScreenshot():
            payload = {"type": "screenshot"}
        case act.Wait(duration=None):
            payload = {"type": "wait"}
        case _:
            raise UnsupportedAction(_WHERE, getattr(step, "type", type(step).__name__), _hint(step))
    return payload


def _hint(step: Step) -> str:
    match step:
        case act.DoubleClick():
            return "its double click is of the left button"
        case act.Wait():
            return "its wait has no duration"
        case act.Drag():
            return "its drag is with the left button, from a first point to a last one"
        case act.KeyPress():
            return "its keypress has no repeat"
        case act.Type():
            return "its type has no paste, and no secret text"
    return f"there are {', '.join(_ACTIONS)}"


def _at(step: Step, viewport: Viewport) -> dict[str, Any]:
    xy = getattr(step, "xy", None)
    if xy is None:
        raise UnsupportedAction(_WHERE, getattr(step, "type", ""), "it needs a point, and not where the pointer is")
    return _xy(xy, viewport) | _keys(step)


def _xy(point: tuple[int, int], viewport: Viewport) -> dict[str, Any]:
    x, y = viewport.to_model(point)
    return {"x": x, "y": y}


def _keys(step: Step) -> dict[str, Any]:
    modifiers = getattr(step, "modifiers", ())
    return {"keys": list(modifiers)} if modifiers else {}


def _distance(step: act.Scroll, viewport: Viewport) -> Point:
    distance = step.distance_xy
    if distance is None:
        x, y = _SIGNS[step.direction or "down"]
        magnitude = DEFAULT_NOTCHES if step.magnitude is None else step.magnitude
        # Like `translate`, which rounds a small distance up to a notch.
        notches = (1 if magnitude > 0 else -1) * max(1, round(abs(magnitude))) if magnitude else 0
        distance = x * notches * PIXELS_PER_NOTCH, y * notches * PIXELS_PER_NOTCH
    # The same arithmetic in reverse: from the screen to the model's picture.
    return Viewport(viewport.model, viewport.shown.size).distance_to_screen(distance)


def _rest(thing: object, known: Mapping[str, frozenset[str]] | frozenset[str]) -> dict[str, Any]:
    """The unknown fields of an action or a check; wrong fields are reported where they are read."""
    if not isinstance(thing, dict):
        return {}
    if not isinstance(known, frozenset):
        kind = thing.get("type")
        known = known.get(kind, frozenset()) if isinstance(kind, str) else frozenset()
    return {} if thing.keys() <= known else the_rest(thing, *known)


def _with(rests: Sequence[Mapping[str, Any]], payloads: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Payloads with the unknown fields that came with them."""
    return [{**(rests[at] if at < len(rests) else {}), **payload} for at, payload in enumerate(payloads)]
