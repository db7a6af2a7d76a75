"""Microsoft Agent Framework's `ComputerUseCallContent` as a call, and back. Pure.

This module owns the meaning of the fields. It has no result (see `results`), no provider's payload (see `fields`), no package
and no desktop.

* Points are pixels of the model's picture, from whatever provider the call came; `duration` is in milliseconds, for `wait` and
  for `keypress_hold`.
* `scroll_amount` is positive down (`scroll_direction` "vertical", or none) and right ("horizontal"). The design does not
  name its unit: it counts pixels of the model's picture, as OpenAI does, or with the additional property
  `scroll_unit: "notches"` notches of the wheel, as Anthropic does. None is three notches down, or to the right.
* One content has one action. A provider's call of several actions becomes several contents with one `call_id`, and one
  result: `decode` takes them as a list.
* Actions that the enum does not have use the names of the normalized actions (`left_mouse_down`, `keypress_hold`,
  `cursor_position`, see `deskhand.actions.ACTIONS`), and those of a browser use Google's (`navigate`, `go_back`).
* Additional properties with a meaning: `modifiers` (keys held meanwhile), `path` (of a drag with more than two points),
  `scroll_distance` ([x, y] of a scroll along both axes), `region` (of a zoom: [x0, y0, x1, y1], the last two exclusive),
  `repeat` (of a key), `paste` (of a text), `url` (of `navigate`), `pending_safety_checks` (as OpenAI's), `unreadable` (the
  reason why the call could not be read, so that it cannot be carried out). Others are kept.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from deskhand import actions as act
from deskhand._core.chords import chord_names
from deskhand._core.geometry import Point, Rect, Viewport
from deskhand.desktop.translate import DEFAULT_NOTCHES
from deskhand.errors import ActionError, UnsupportedAction, shown
from deskhand.providers.agent_framework.safety import CHECKS, REVIEW, checks_of
from deskhand.providers.agent_framework.types import ComputerUseCallContent
from deskhand.providers.clicks import a_click, clicked
from deskhand.providers.openai.safety_checks import check_payload
from deskhand.providers.payload import (
    expect_float,
    expect_int,
    expect_list,
    expect_object,
    expect_point,
    expect_string,
    the_rest,
)
from deskhand.providers.values import Browse, ProviderCall, Step, expect_call

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deskhand.desktop.operations import SafetyCheck

WHO = "Agent Framework's computer content"

UNREADABLE = "unreadable"
"""The additional property with the reason why a call could not be read."""

ScrollUnit: TypeAlias = Literal["pixels", "notches"]
CallContents: TypeAlias = (
    "ComputerUseCallContent | Mapping[str, object] | Sequence[ComputerUseCallContent | Mapping[str, object]]"
)
"""One content, in its plain form or not, or all contents of a call."""

_MILLISECONDS = 1000
_CLICKS = {"click": 1, "double_click": 2, "triple_click": 3}
_NAMES = {count: name for name, count in _CLICKS.items()}
_AXES = {"up": ("vertical", -1), "down": ("vertical", 1), "left": ("horizontal", -1), "right": ("horizontal", 1)}
_DIRECTIONS = {axis: direction for direction, axis in _AXES.items()}
_BROWSING = {
    "open": "open_web_browser",
    "navigate": "navigate",
    "back": "go_back",
    "forward": "go_forward",
    "search": "search",
}
_BROWSED = {name: what for what, name in _BROWSING.items()}

# The fields of each action, and after the bar its additional properties.
_FIELDS = {
    "click": "coordinate button|modifiers",
    "double_click": "coordinate button|modifiers",
    "triple_click": "coordinate button|modifiers",
    "move": "coordinate|modifiers",
    "drag": "coordinate end_coordinate button|path modifiers",
    "type": "text|paste",
    "key": "key|repeat",
    "screenshot": "|",
    "scroll": "coordinate scroll_amount scroll_direction|scroll_unit scroll_distance modifiers",
    "wait": "duration|",
    "zoom": "|region",
    "left_mouse_down": "coordinate|modifiers",
    "left_mouse_up": "coordinate|modifiers",
    "mouse_down": "coordinate button|modifiers",
    "mouse_up": "coordinate button|modifiers",
    "keypress_hold": "key duration|",
    "key_down": "key|",
    "key_up": "key|",
    "cursor_position": "|",
    **dict.fromkeys(_BROWSED, "|"),
    "navigate": "|url",
}
_KNOWN = {name: tuple(frozenset(part.split()) for part in fields.split("|")) for name, fields in _FIELDS.items()}
_ALL = frozenset[str]().union(*(fields for fields, _ in _KNOWN.values()))
_PROPERTIES = frozenset[str]().union(*(properties for _, properties in _KNOWN.values()))
_REFUSED = {name: sorted(_ALL - fields) for name, (fields, _) in _KNOWN.items()}
_DRAG = 2


# --- calls ---


def decode(payload: object, viewport: Viewport, *, scroll_unit: ScrollUnit = "pixels") -> ProviderCall:
    """Decode a content, or all contents of one call.

    Args:
        payload: A `ComputerUseCallContent`, its plain form, or a list of those.
        viewport: The viewport of the picture that the model points into.
        scroll_unit: The unit of a scroll's amount, if the content does not name one.

    Raises:
        ActionError: It is malformed, has an unknown action or a field that its action does not take, or points outside of
            the picture; or the contents are of different calls.
    """
    contents = [
        ComputerUseCallContent.of(item) for item in (payload if isinstance(payload, list | tuple) else [payload])
    ]
    if not contents:
        raise ActionError("a call has at least one content")
    call_id = expect_string("call_id", contents[0].call_id)
    steps: list[Step] = []
    safety: list[SafetyCheck] = []
    extra: dict[str, Any] = {}
    for content in contents:
        if content.call_id != call_id:
            raise ActionError(f"the contents are of one call, not of {shown(call_id)} and {shown(content.call_id)}")
        step, rest = _step(content, viewport, scroll_unit)
        steps.append(step)
        # Every content has the call's checks, for those that handle the contents one by one.
        safety += [check for check in checks_of(rest) if check not in safety]
        extra |= the_rest(rest, CHECKS, REVIEW)
    return ProviderCall(steps=tuple(steps), viewport=viewport, id=call_id, safety=tuple(safety), extra=extra)


def _name(content: ComputerUseCallContent) -> str:
    action: object = content.action
    name = action.value if isinstance(action, Enum) else action
    if not isinstance(name, str) or name not in _FIELDS:
        raise UnsupportedAction(WHO, name, f"there are {', '.join(_FIELDS)}")
    return name


def _step(content: ComputerUseCallContent, viewport: Viewport, unit: ScrollUnit) -> tuple[Step, dict[str, Any]]:
    """The action of one content, and its other additional properties."""
    more = expect_object("additional_properties", content.additional_properties)
    if (why := more.get(UNREADABLE)) is not None:
        raise ActionError(expect_string(UNREADABLE, why))
    name = _name(content)
    fields, properties = _KNOWN[name]
    refused = [field for field in _REFUSED[name] if getattr(content, field) is not None]
    refused += [key for key in _PROPERTIES - properties if more.get(key)]
    if refused:
        # An ignored field could make the action do less than the call says.
        raise ActionError(f"{name} takes no {', '.join(sorted(refused))}")
    given = {field: value for field in fields if (value := getattr(content, field)) is not None}
    given |= {key: more[key] for key in properties if more.get(key) is not None}
    return _read(name, given, viewport, unit), the_rest(more, *properties)


def _read(name: str, given: Mapping[str, Any], viewport: Viewport, unit: ScrollUnit) -> Step:  # noqa: PLR0911 # a table
    match name:
        case _ if name in _CLICKS:
            return _click(name, given, viewport)
        case "drag":
            return _drag(given, viewport)
        case "scroll":
            return _scroll(given, viewport, unit)
        case "type":
            return act.Type(expect_string("text", _must(name, given, "text")), paste=given.get("paste", False))
        case "key" | "keypress_hold" | "key_down" | "key_up":
            return _keys(name, given)
        case "wait":
            return act.Wait(_seconds(given["duration"]) if "duration" in given else None)
        case "zoom":
            return act.Zoom(_region(_must(name, given, "region"), viewport))
        case "move":
            _must(name, given, "coordinate")
        case _ if name in _BROWSED:
            url = given.get("url")
            return Browse(_BROWSED[name], None if url is None else expect_string("url", url))
    return _plain(name, given, viewport)


def _plain(name: str, given: Mapping[str, Any], viewport: Viewport) -> act.Action:
    """An action whose fields have the same names as those of the normalized one."""
    fields: dict[str, Any] = {"modifiers": given["modifiers"]} if "modifiers" in given else {}
    if "coordinate" in given:
        fields["xy"] = _point(given, "coordinate", viewport)
    if name in ("mouse_down", "mouse_up"):
        fields["button"] = _must(name, given, "button")
    return act.ACTIONS[name](**fields)


def _must(name: str, given: Mapping[str, Any], field: str) -> Any:
    if field not in given:
        raise ActionError(f"{name}: {field} missing")
    return given[field]


def _point(given: Mapping[str, Any], field: str, viewport: Viewport) -> Point | None:
    return viewport.to_screen(expect_point(field, given[field])) if field in given else None


def _keys(name: str, given: Mapping[str, Any]) -> act.Action:
    chord = chord_names(expect_string("key", _must(name, given, "key")))
    match name:
        case "key":
            return act.KeyPress(chord, repeat=given.get("repeat", 1))
        case "keypress_hold":
            return act.KeyHold(chord, _seconds(_must(name, given, "duration")))
    return act.PressKeys(chord) if name == "key_down" else act.ReleaseKeys(chord)


def _seconds(value: object) -> float:
    return expect_float("duration", value) / _MILLISECONDS


def _click(name: str, given: Mapping[str, Any], viewport: Viewport) -> act.Action:
    button = given.get("button", "left")
    if not isinstance(button, str) or button not in act.BUTTONS:
        raise ActionError(f"{name}: button is one of {', '.join(act.BUTTONS)}, not {shown(button)}")
    return a_click(button, _CLICKS[name], _point(given, "coordinate", viewport), modifiers=given.get("modifiers", ()))


def _drag(given: Mapping[str, Any], viewport: Viewport) -> act.Drag:
    if "path" in given:
        path = [
            viewport.to_screen(expect_point("a point of the path", point))
            for point in expect_list("path", given["path"])
        ]
        ends = path[0] if path else None, path[-1] if path else None
        for field, end in zip(("coordinate", "end_coordinate"), ends, strict=True):
            if field in given and _point(given, field, viewport) != end:
                raise ActionError(f"drag: the path does not have its {field} at that end")
    else:
        _must("drag", given, "end_coordinate")
        points = [_point(given, field, viewport) for field in ("coordinate", "end_coordinate")]
        path = [point for point in points if point is not None]
    return act.Drag(path, given.get("button", "left"), modifiers=given.get("modifiers", ()))


def _scroll(given: Mapping[str, Any], viewport: Viewport, unit: ScrollUnit) -> act.Scroll:
    axis = given.get("scroll_direction", "vertical")
    if axis not in ("vertical", "horizontal"):
        raise ActionError(f"scroll_direction is vertical or horizontal, not {shown(axis)}")
    unit = given.get("scroll_unit", unit)
    if unit not in ("pixels", "notches"):
        raise ActionError(f"scroll_unit is pixels or notches, not {shown(unit)}")
    where: dict[str, Any] = {"xy": _point(given, "coordinate", viewport), "modifiers": given.get("modifiers", ())}
    if "scroll_distance" in given:
        return act.Scroll(
            distance_xy=viewport.distance_to_screen(expect_point("scroll_distance", given["scroll_distance"])), **where
        )
    if "scroll_amount" not in given:
        return act.Scroll(direction=None if "scroll_direction" not in given else _DIRECTIONS[axis, 1], **where)
    amount = expect_int("scroll_amount", given["scroll_amount"])
    if unit == "notches":
        return act.Scroll(magnitude=abs(amount), direction=_DIRECTIONS[axis, -1 if amount < 0 else 1], **where)
    distance = (amount, 0) if axis == "horizontal" else (0, amount)
    return act.Scroll(distance_xy=viewport.distance_to_screen(distance), **where)


def _region(value: object, viewport: Viewport) -> Rect:
    edges = [expect_int("region", edge) for edge in expect_list("region", value)]
    if len(edges) != 4 or edges[2] <= edges[0] or edges[3] <= edges[1]:
        raise ActionError(f"a region is [x0, y0, x1, y1] with x1 above x0 and y1 above y0, not {shown(value)}")
    return viewport.rect_to_screen(Rect(edges[0], edges[1], edges[2] - edges[0], edges[3] - edges[1]))


def encode_call(call: ProviderCall) -> ComputerUseCallContent:
    """Encode a call of one action as a content.

    Raises:
        UnsupportedAction: A content cannot express it: several actions (use `encode_calls`), the end of a task, a secret text.
        OutOfBounds: A point is not in the picture.
    """
    call = expect_call("encode_call", call).at_points("the Agent Framework")
    if len(call.steps) != 1:
        raise UnsupportedAction(
            WHO, f"{len(call.steps)} actions at once", "it asks for one at a time: use encode_calls"
        )
    return encode_calls(call)[0]


def encode_calls(call: ProviderCall) -> list[ComputerUseCallContent]:
    """Encode a call as contents, one for each action, all with its id and its safety checks.

    Raises:
        UnsupportedAction: Contents cannot express it.
        OutOfBounds: A point is not in the picture.
        ActionError: The call has no id or no action.
    """
    call = expect_call("encode_calls", call).at_points("the Agent Framework")
    if call.id is None or not call.steps:
        raise ActionError(f"a content of {WHO} needs the call's id and an action")
    checks = {CHECKS: [check_payload(check) for check in call.safety]} if call.safety else {}
    contents = []
    for number, step in enumerate(call.steps):
        name, fields, properties = _written(step, call.viewport)
        more = {**({} if number else call.extra), **properties, **checks}
        contents.append(ComputerUseCallContent(call_id=call.id, action=name, **fields, additional_properties=more))
    return contents


def _written(step: Step, viewport: Viewport) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """The action's name, the content's fields and its additional properties."""
    if isinstance(step, Browse):
        return _BROWSING[step.what], {}, {} if step.url is None else {"url": step.url}
    if not isinstance(step, act.Action):
        raise UnsupportedAction(WHO, "the end of a task", "say it in a message")
    name, fields = _fields(step, viewport)
    if name not in _FIELDS:
        # An unknown action could not be decoded again.
        raise UnsupportedAction(WHO, name)
    properties = {key: value for key, value in fields.items() if key not in _ALL and value is not None}
    modifiers = getattr(step, "modifiers", ())
    if modifiers:
        properties["modifiers"] = list(modifiers)
    return name, {key: value for key, value in fields.items() if key in _ALL and value is not None}, properties


def _fields(step: act.Action, viewport: Viewport) -> tuple[str, dict[str, Any]]:  # noqa: PLR0911 # a table
    if (click := clicked(step)) is not None:
        button, count = click
        # For several clicks the left button is implied.
        return _NAMES[count], {**_at(step, viewport), "button": None if count > 1 and button == "left" else button}
    match step:
        case act.MouseDown(button=button) | act.MouseUp(button=button):
            return step.type, {**_at(step, viewport), "button": button}
        case act.Drag():
            return "drag", _dragged(step, viewport)
        case act.Scroll():
            return "scroll", {**_at(step, viewport), **_scrolled(step, viewport)}
        case act.Zoom(region=region):
            seen = viewport.rect_to_model(Rect(*region))
            return "zoom", {"region": [seen.x, seen.y, seen.right, seen.bottom]}
        case act.Wait(duration=duration):
            return "wait", {"duration": None if duration is None else round(duration * _MILLISECONDS)}
        case act.KeyPress() | act.KeyHold() | act.PressKeys() | act.ReleaseKeys() | act.Type():
            return _typed(step)
    return step.type, _at(step, viewport)


def _typed(step: act.KeyPress | act.KeyHold | act.PressKeys | act.ReleaseKeys | act.Type) -> tuple[str, dict[str, Any]]:
    if isinstance(step, act.Type):
        if not isinstance(step.text, str):
            raise UnsupportedAction(WHO, step.type, "a secret text is never sent")
        return "type", {"text": step.text, "paste": step.paste or None}
    key = {"key": "+".join(step.keys)}
    match step:
        case act.KeyPress(repeat=repeat):
            return "key", {**key, "repeat": None if repeat == 1 else repeat}
        case act.KeyHold(duration=duration):
            return step.type, {**key, "duration": round(duration * _MILLISECONDS)}
    return step.type, key


def _at(step: act.Action, viewport: Viewport) -> dict[str, Any]:
    xy = getattr(step, "xy", None)
    return {} if xy is None else {"coordinate": tuple(viewport.to_model(xy))}


def _dragged(step: act.Drag, viewport: Viewport) -> dict[str, Any]:
    points = [tuple(viewport.to_model(point)) for point in step.path]
    return {
        "coordinate": points[0] if len(points) > 1 else None,
        "end_coordinate": points[-1],
        "button": None if step.button == "left" else step.button,
        "path": [list(point) for point in points] if len(points) > _DRAG else None,
    }


def _scrolled(step: act.Scroll, viewport: Viewport) -> dict[str, Any]:
    axis, sign = _AXES[step.direction or "down"]
    if step.distance_xy is not None:
        # The same arithmetic in reverse: from the screen to the model's picture.
        dx, dy = Viewport(viewport.model, viewport.shown.size).distance_to_screen(step.distance_xy)
        if dx and dy:
            return {"scroll_amount": dy, "scroll_direction": "vertical", "scroll_distance": [dx, dy]}
        return {"scroll_amount": dx or dy, "scroll_direction": "horizontal" if dx else "vertical"}
    if step.magnitude is None and sign > 0:
        return {"scroll_direction": None if step.direction is None else axis}
    # Like `translate`, which rounds a small distance up to a notch.
    magnitude = DEFAULT_NOTCHES if step.magnitude is None else step.magnitude
    notches = (1 if magnitude > 0 else -1) * max(1, round(abs(magnitude))) if magnitude else 0
    return {"scroll_amount": sign * notches, "scroll_direction": axis, "scroll_unit": "notches"}
