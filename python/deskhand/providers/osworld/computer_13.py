"""OSWorld's action space `computer_13`: one dictionary for each action. Pure.

This module owns its spelling. It has no desktop; Python source is read in `pyautogui.py` beside it.

    {"action_type": "CLICK", "parameters": {"button": "left", "x": 10, "y": 20, "num_clicks": 2}}
    {"action_type": "SCROLL", "dx": 0, "dy": -3}          # the parameters may stand beside the type
    "DONE"                                                # what has no parameters may be its name alone
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deskhand import actions as a
from deskhand.errors import ActionError, UnsupportedAction, shown
from deskhand.providers.clicks import a_click, clicked
from deskhand.providers.payload import (
    expect_float,
    expect_int,
    expect_list,
    expect_object,
    expect_string,
    refuse_more,
    the_rest,
)
from deskhand.providers.values import Finish, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deskhand._core.geometry import Point, Viewport

_NAME = "OSWorld's computer_13"
_BUTTONS = ("left", "right", "middle")
_MOST_CLICKS = 10
_MOST_AT_ONCE = 3


def decode_action(payload: object, viewport: Viewport) -> tuple[tuple[Step, ...], dict[str, Any]]:
    """Decode an action, and return its unknown fields.

    Args:
        payload: The action.
        viewport: The viewport of the picture that the model pointed into.

    Raises:
        ActionError: It cannot be read.
        OutOfBounds: A point is outside of the picture.
    """
    if isinstance(payload, str):
        payload = {"action_type": payload}
    action = expect_object("an action", payload)
    kind = expect_string("action_type", action.get("action_type"))
    read = _READERS.get(kind)
    if read is None:
        raise UnsupportedAction(_NAME, kind, f"use one of {', '.join(_READERS)}")
    given = action.get("parameters")
    parameters = the_rest(action, "action_type", "parameters") if given is None else expect_object("parameters", given)
    known, steps = read(parameters, viewport)
    rest = the_rest(parameters, *known)
    refuse_more(_NAME, kind, rest)
    return steps, rest


def encode_action(step: Step, viewport: Viewport) -> dict[str, Any]:
    """Encode a step as an action.

    Raises:
        UnsupportedAction: This action space cannot express it.
    """
    said: _Said | None = None
    plain = not (getattr(step, "modifiers", ()) or getattr(step, "repeat", 1) != 1 or getattr(step, "secret", False))
    if isinstance(step, Finish):
        said = ("DONE" if step.status == "done" else "FAIL", {})
    elif plain:
        said = _say_keys(step) or _say_pointer(step, viewport)
    if said is None:
        raise UnsupportedAction(_NAME, getattr(step, "type", "a browser's action"))
    return {"action_type": said[0], "parameters": said[1]} if said[1] else {"action_type": said[0]}


def clicks(button: str, count: int, at: Point | None) -> tuple[a.Action, ...]:
    """Some clicks of a button; two or three of them are a double or triple click.

    Raises:
        ActionError: There is no such button, or there are too many clicks.
    """
    if button not in _BUTTONS:
        raise ActionError(f"a button is one of {', '.join(_BUTTONS)}, not {shown(button)}")
    if not 1 <= count <= _MOST_CLICKS:
        raise ActionError(f"1 to {_MOST_CLICKS} clicks, not {count}")
    if count <= _MOST_AT_ONCE:
        return (a_click(button, count, at),)
    return tuple(a_click(button, 1, at) for _ in range(count))


def turns(across: int, up: int, at: Point | None) -> tuple[a.Action, ...]:
    """Notches of the wheel to the right and up: PyAutoGUI's signs."""
    found: list[a.Action] = [a.Scroll(at, direction="up", magnitude=up)] if up else []
    return (*found, *([a.Scroll(at, direction="right", magnitude=across)] if across else ()))


# --- one action each: the names of the parameters that were read, and what to do ---

_Read = tuple[tuple[str, ...], tuple[Step, ...]]


def _at(parameters: Mapping[str, Any], viewport: Viewport) -> Point | None:
    x, y = parameters.get("x"), parameters.get("y")
    if x is None and y is None:
        return None
    return viewport.to_screen((expect_float("x", x), expect_float("y", y)))


def _needed(parameters: Mapping[str, Any], viewport: Viewport) -> Point:
    return viewport.to_screen((expect_float("x", parameters.get("x")), expect_float("y", parameters.get("y"))))


def _button(parameters: Mapping[str, Any]) -> str:
    button = expect_string("button", parameters.get("button", "left"))
    if button not in _BUTTONS:
        raise ActionError(f"a button is one of {', '.join(_BUTTONS)}, not {shown(button)}")
    return button


def _click(parameters: Mapping[str, Any], viewport: Viewport) -> _Read:
    count = expect_int("num_clicks", parameters.get("num_clicks", 1))
    return ("button", "x", "y", "num_clicks"), clicks(_button(parameters), count, _at(parameters, viewport))


def _scroll(parameters: Mapping[str, Any], _: Viewport) -> _Read:
    across, up = (expect_int(name, parameters.get(name, 0)) for name in ("dx", "dy"))
    return ("dx", "dy"), turns(across, up, None)


def _keys(parameters: Mapping[str, Any], _: Viewport) -> _Read:
    return ("keys",), (a.KeyPress(expect_list("keys", parameters.get("keys"))),)


def _key(made: Callable[[list[str]], a.Action]) -> Callable[[Mapping[str, Any], Viewport], _Read]:
    return lambda parameters, _: (("key",), (made([expect_string("key", parameters.get("key"))]),))


def _alone(step: Step) -> Callable[[Mapping[str, Any], Viewport], _Read]:
    return lambda _, __: ((), (step,))


_READERS: Mapping[str, Callable[[Mapping[str, Any], Viewport], _Read]] = {
    "MOVE_TO": lambda p, viewport: (("x", "y"), (a.Move(_needed(p, viewport)),)),
    "CLICK": _click,
    "MOUSE_DOWN": lambda p, _: (("button",), (a.MouseDown(_button(p)),)),
    "MOUSE_UP": lambda p, _: (("button",), (a.MouseUp(_button(p)),)),
    "RIGHT_CLICK": lambda p, viewport: (("x", "y"), (a.RightClick(_at(p, viewport)),)),
    "DOUBLE_CLICK": lambda p, viewport: (("button", "x", "y"), clicks(_button(p), 2, _at(p, viewport))),
    "DRAG_TO": lambda p, viewport: (("x", "y"), (a.Drag([_needed(p, viewport)]),)),
    "SCROLL": _scroll,
    "TYPING": lambda p, _: (("text",), (a.Type(expect_string("text", p.get("text"))),)),
    "PRESS": _key(a.KeyPress),
    "KEY_DOWN": _key(a.PressKeys),
    "KEY_UP": _key(a.ReleaseKeys),
    "HOTKEY": _keys,
    "WAIT": _alone(a.Wait()),
    "FAIL": _alone(Finish("failed")),
    "DONE": _alone(Finish("done")),
}

_Said = tuple[str, dict[str, Any]]


def _say_keys(step: Step) -> _Said | None:
    match step:
        case a.KeyPress():
            return ("PRESS", {"key": step.keys[0]}) if len(step.keys) == 1 else ("HOTKEY", {"keys": list(step.keys)})
        case a.PressKeys() | a.ReleaseKeys() if len(step.keys) == 1:
            return "KEY_DOWN" if isinstance(step, a.PressKeys) else "KEY_UP", {"key": step.keys[0]}
        case a.Type() if not step.paste:
            return "TYPING", {"text": step.text}
        case a.Wait() if step.duration is None:
            return "WAIT", {}
    return None


def _say_pointer(step: Step, viewport: Viewport) -> _Said | None:
    said: _Said | None = None
    point = getattr(step, "xy", None)
    match step:
        case a.Move():
            said = "MOVE_TO", {}
        case a.DoubleClick(button="left"):
            said = "DOUBLE_CLICK", {}
        case a.RightClick():
            said = "RIGHT_CLICK", {}
        case a.LeftMouseDown() | a.LeftMouseUp() if point is None:
            said = "MOUSE_DOWN" if isinstance(step, a.LeftMouseDown) else "MOUSE_UP", {"button": "left"}
        case a.MouseDown() | a.MouseUp() if point is None and step.button in _BUTTONS:
            said = "MOUSE_DOWN" if isinstance(step, a.MouseDown) else "MOUSE_UP", {"button": step.button}
        case a.Drag() if len(step.path) == 1 and step.button == "left":
            said, point = ("DRAG_TO", {}), step.path[0]
        case a.Scroll() if point is None and step.distance_xy is None:
            said = "SCROLL", _scrolled(step)
        case _ if (click := clicked(step)) is not None and click[0] in _BUTTONS:
            said = "CLICK", {"button": click[0], **({"num_clicks": click[1]} if click[1] > 1 else {})}
    if said is None or point is None:
        return said
    x, y = viewport.to_model(point)
    return said[0], {**said[1], "x": x, "y": y}


def _scrolled(step: a.Scroll) -> dict[str, int]:
    notches = round(3 if step.magnitude is None else step.magnitude)
    if step.direction in ("left", "right"):
        return {"dx": notches if step.direction == "right" else -notches, "dy": 0}
    return {"dx": 0, "dy": notches if step.direction == "up" else -notches}
