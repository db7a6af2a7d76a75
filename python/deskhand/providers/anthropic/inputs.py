"""The inputs of Anthropic's computer tool, and the actions that they mean. Pure.

This module owns the meaning of the inputs, which Amazon Bedrock's interfaces carry too. Which version accepts what is in
`versions`. There is no block of a message and no result.

Regions are `[x0, y0, x1, y1]`, x1 and y1 exclusive, in pixels of the full screenshot as all coordinates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deskhand import actions as act
from deskhand._core.chords import chord_names
from deskhand._core.fields import MAX_REPEAT
from deskhand._core.geometry import Rect
from deskhand.desktop.translate import DEFAULT_NOTCHES, DEFAULT_WAIT, PIXELS_PER_NOTCH
from deskhand.errors import ActionError, UnsupportedAction, shown
from deskhand.providers.anthropic.versions import KNOWN
from deskhand.providers.payload import expect_float, expect_int, expect_list, expect_string, refuse_more

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deskhand._core.geometry import Viewport
    from deskhand.providers.anthropic.versions import Rules
    from deskhand.providers.values import Step

_CLICKS: dict[str, type[act.LeftClick | act.RightClick | act.MiddleClick | act.DoubleClick | act.TripleClick]] = {
    "left_click": act.LeftClick,
    "right_click": act.RightClick,
    "middle_click": act.MiddleClick,
    "double_click": act.DoubleClick,
    "triple_click": act.TripleClick,
}

# The text for the model if there is no picture: the SDK's own words.
_DONE = {
    "key": "Pressed {text}.",
    "hold_key": "Held {text} for {duration}s.",
    "type": "Typed.",
    "mouse_move": "Moved the mouse.",
    "left_mouse_down": "Left mouse button pressed.",
    "left_mouse_up": "Left mouse button released.",
    "left_click": "Clicked.",
    "left_click_drag": "Dragged.",
    "right_click": "Right-clicked.",
    "middle_click": "Middle-clicked.",
    "double_click": "Double-clicked.",
    "triple_click": "Triple-clicked.",
    "scroll": "Scrolled {scroll_direction}.",
    "wait": "Waited {duration}s.",
}


def read(
    action: str, given: Mapping[str, Any], viewport: Viewport, rules: Rules
) -> tuple[tuple[act.Action, ...], dict[str, Any]]:
    """Decode an input: its actions, and its unknown fields.

    Args:
        action: The action's name.
        given: Its input, without that name.
        viewport: The viewport of the full screenshot that the model points into.
        rules: The rules of the tool's version.

    Raises:
        ActionError: It is malformed, or this version does not accept it.
        OutOfBounds: A point is outside of the screenshot.
    """
    must, may = rules.fields(action)
    given = {**given}
    if rules.keys_of_clicks and action in _CLICKS and given.get("key") is not None:
        if given.get("text") is not None:
            raise ActionError(f"{action}: the modifiers are given twice, in text and in key")
        given["text"] = given.pop("key")
    fields = {name: value for name in may if (value := given.pop(name, None)) is not None}
    if missing := must - fields.keys():
        raise ActionError(f"{action}: {', '.join(sorted(missing))} missing")
    if given and (refused := {name for name in KNOWN & given.keys() if given[name] is not None}):
        hint = "; go there first, with an action of its own" if refused & {"coordinate", "start_coordinate"} else ""
        raise ActionError(f"{action} takes no {', '.join(sorted(refused))} in {rules.type}{hint}")
    refuse_more(rules.type, action, given)
    return _actions(action, fields, viewport, rules), given


def _actions(action: str, fields: Mapping[str, Any], viewport: Viewport, rules: Rules) -> tuple[act.Action, ...]:
    if action == "key":
        return _key_presses(expect_string("text", fields["text"]), fields.get("repeat", 1), rules)
    return (_action(action, fields, viewport, rules),)


def _action(action: str, fields: Mapping[str, Any], viewport: Viewport, rules: Rules) -> act.Action:  # noqa: PLR0911 # a table
    if action in _CLICKS:
        return _CLICKS[action](_point(fields, "coordinate", viewport), modifiers=_modifiers(fields))
    match action:
        case "type":
            return act.Type(expect_string("text", fields["text"]))
        case "mouse_move":
            return act.Move(_pair(fields["coordinate"], "coordinate", viewport))
        case "left_click_drag":
            points = [_point(fields, name, viewport) for name in ("start_coordinate", "coordinate")]
            return act.Drag([point for point in points if point is not None], modifiers=_modifiers(fields))
        case "left_mouse_down":
            return act.LeftMouseDown()
        case "left_mouse_up":
            return act.LeftMouseUp()
        case "scroll":
            return _scroll(fields, viewport)
        case "hold_key":
            return act.KeyHold(chord_names(expect_string("text", fields["text"])), _seconds(fields["duration"], rules))
        case "wait":
            return act.Wait(_seconds(fields["duration"], rules))
        case "zoom":
            return act.Zoom(_region(fields["region"], viewport))
        case "cursor_position":
            return act.CursorPosition()
        case _:
            return act.TakeScreenshot()


def _key_presses(text: str, repeat: object, rules: Rules) -> tuple[act.Action, ...]:
    times = expect_int("repeat", repeat)
    try:
        return (act.KeyPress(chord_names(text), repeat=times),)
    except ActionError:
        chords = text.split()
        if not rules.several_chords or not 1 < len(chords) <= MAX_REPEAT:
            raise
    return tuple(act.KeyPress(chord_names(chord)) for chord in chords)


def pointed(value: object, what: str) -> tuple[int, int]:
    """A pair of integers, for a point.

    Raises:
        ActionError: It is not one.
    """
    items = expect_list(what, value)
    if len(items) != 2:
        raise ActionError(f"{what} is a pair [x, y], not {shown(value)}")
    return expect_int(what, items[0]), expect_int(what, items[1])


def _pair(value: object, what: str, viewport: Viewport) -> tuple[int, int]:
    return viewport.to_screen(pointed(value, what))


def _point(fields: Mapping[str, Any], name: str, viewport: Viewport) -> tuple[int, int] | None:
    return _pair(fields[name], name, viewport) if name in fields else None


def _modifiers(fields: Mapping[str, Any]) -> tuple[str, ...]:
    text = expect_string("text", fields.get("text", ""))
    return chord_names(text) if text else ()


def _scroll(fields: Mapping[str, Any], viewport: Viewport) -> act.Scroll:
    amount = expect_int("scroll_amount", fields["scroll_amount"])
    if amount < 0:
        raise ActionError(
            f"scroll: scroll_amount is a number of wheel clicks from 0, not {amount}: turn the direction round"
        )
    return act.Scroll(
        _point(fields, "coordinate", viewport),
        magnitude=amount,
        direction=expect_string("scroll_direction", fields["scroll_direction"]),
        modifiers=_modifiers(fields),
    )


def _seconds(value: object, rules: Rules) -> float:
    seconds = expect_int("duration", value) if rules.whole_seconds else expect_float("duration", value)
    if not 0 <= seconds <= rules.longest:
        raise ActionError(f"a duration is 0...{rules.longest} seconds, not {shown(value)}")
    return seconds


def _region(value: object, viewport: Viewport) -> Rect:
    edges = expect_list("region", value)
    if len(edges) != 4:
        raise ActionError(f"a region is [x0, y0, x1, y1], not {shown(value)}")
    x0, y0, x1, y1 = (expect_int("region", edge) for edge in edges)
    if x1 <= x0 or y1 <= y0:
        raise ActionError(f"a region [x0, y0, x1, y1] has x1 above x0 and y1 above y0, not {shown(value)}")
    return viewport.rect_to_screen(Rect(x0, y0, x1 - x0, y1 - y0))


# --- the other way round ---


def write(steps: Sequence[Step], viewport: Viewport, rules: Rules) -> tuple[str, dict[str, Any]]:
    """Encode actions as the name of an action and its input; the inverse of `read`.

    Raises:
        UnsupportedAction: This version cannot express it.
        OutOfBounds: A point is not in the picture.
    """
    if not steps:
        raise UnsupportedAction(rules.type, "no action at all")
    if len(steps) > 1:
        return _write_chords(steps, rules)
    step = steps[0]
    if not isinstance(step, act.Action):
        raise UnsupportedAction(rules.type, getattr(step, "what", "the end of a task"))
    name, fields = _written(step, viewport, rules)
    if name not in rules.actions:
        raise UnsupportedAction(rules.type, step.type)
    must, may = rules.fields(name)
    if must - fields.keys() or fields.keys() - may:
        missing, refused = sorted(must - fields.keys()), sorted(fields.keys() - may)
        hint = f"it needs {', '.join(missing)}" if missing else f"it takes no {', '.join(refused)}"
        raise UnsupportedAction(rules.type, step.type, hint)
    return name, fields


def _write_chords(steps: Sequence[Step], rules: Rules) -> tuple[str, dict[str, Any]]:
    chords = [step for step in steps if isinstance(step, act.KeyPress)]
    text = " ".join("+".join(step.keys) for step in chords)
    if rules.several_chords and _key_presses(text, 1, rules) == tuple(steps):
        return "key", {"text": text}
    raise UnsupportedAction(
        rules.type, steps[0].type if isinstance(steps[0], act.Action) else "a page", "one action a call"
    )


def _written(  # noqa: PLR0911 # a table
    action: act.Action, viewport: Viewport, rules: Rules
) -> tuple[str, dict[str, Any]]:
    for name, kind in _CLICKS.items():
        if isinstance(action, kind):
            # Some kinds have no button. The rules refuse a button other than the left one.
            button = getattr(action, "button", "left")
            fields = {} if button == "left" else {"button": button}
            return name, {**_at(action.xy, viewport), **_held(action.modifiers), **fields}
    match action:
        case act.LeftMouseDown() | act.MouseDown(button="left"):
            return "left_mouse_down", {**_at(action.xy, viewport), **_held(action.modifiers)}
        case act.LeftMouseUp() | act.MouseUp(button="left"):
            return "left_mouse_up", {**_at(action.xy, viewport), **_held(action.modifiers)}
        case act.Move():
            return "mouse_move", {**_at(action.xy, viewport), **_held(action.modifiers)}
        case act.Drag(path=path, button="left") if len(path) <= 2:
            names = ("start_coordinate", "coordinate")[-len(path) :]
            points = {name: list(viewport.to_model(point)) for name, point in zip(names, path, strict=True)}
            return "left_click_drag", {**points, **_held(action.modifiers)}
        case act.Scroll():
            return "scroll", {**_turns(action, rules), **_at(action.xy, viewport), **_held(action.modifiers)}
        case act.Zoom(region=region):
            seen = viewport.rect_to_model(Rect(*region))
            return "zoom", {"region": [seen.x, seen.y, seen.right, seen.bottom]}
        case act.TakeScreenshot():
            return "screenshot", {}
        case act.CursorPosition():
            return "cursor_position", {}
        case _:
            return _written_keys(action, rules)


def _written_keys(action: act.Action, rules: Rules) -> tuple[str, dict[str, Any]]:
    match action:
        case act.KeyPress(keys=keys, repeat=repeat):
            return "key", {"text": "+".join(keys), **({} if repeat == 1 else {"repeat": repeat})}
        case act.KeyHold(keys=keys, duration=duration):
            return "hold_key", {"text": "+".join(keys), "duration": _lasting(action, duration, rules)}
        case act.Wait(duration=duration):
            return "wait", {"duration": _lasting(action, DEFAULT_WAIT if duration is None else duration, rules)}
        case act.Type(text=text, paste=False):
            return "type", {"text": text}
        case _:
            raise UnsupportedAction(rules.type, action.type)


def _at(xy: tuple[int, int] | None, viewport: Viewport) -> dict[str, Any]:
    return {} if xy is None else {"coordinate": list(viewport.to_model(xy))}


def _held(modifiers: Sequence[str]) -> dict[str, Any]:
    return {"text": "+".join(modifiers)} if modifiers else {}


def _lasting(action: act.Action, seconds: float, rules: Rules) -> float:
    if seconds > rules.longest or (rules.whole_seconds and seconds != int(seconds)):
        whole = "whole " if rules.whole_seconds else ""
        raise UnsupportedAction(
            rules.type, action.type, f"a duration is {whole}seconds up to {rules.longest}, not {seconds:g}"
        )
    return int(seconds) if seconds == int(seconds) else seconds


def _turns(action: act.Scroll, rules: Rules) -> dict[str, Any]:
    direction, amount = action.direction or "down", action.magnitude
    if action.distance_xy is not None:
        dx, dy = action.distance_xy
        if dx and dy:
            raise UnsupportedAction(rules.type, action.type, "it scrolls along one axis at a time")
        direction = ("right" if dx > 0 else "left") if dx else ("down" if dy >= 0 else "up")
        amount = max(1, round(abs(dx or dy) / PIXELS_PER_NOTCH)) if dx or dy else 0
    elif amount is None:
        amount = DEFAULT_NOTCHES
    elif amount < 0:
        direction, amount = _OPPOSITE[direction], -amount
    if amount != int(amount):
        raise UnsupportedAction(rules.type, action.type, f"it scrolls whole wheel clicks, not {amount:g}")
    return {"scroll_direction": direction, "scroll_amount": int(amount)}


_OPPOSITE = {"up": "down", "down": "up", "left": "right", "right": "left"}


def described(steps: Sequence[Step], viewport: Viewport, rules: Rules) -> str:
    """The text for the model about a call that was carried out and has nothing to show."""
    try:
        name, fields = write(steps, viewport, rules)
        return _DONE[name].format_map(fields)
    except (ActionError, KeyError):
        return "Done."
