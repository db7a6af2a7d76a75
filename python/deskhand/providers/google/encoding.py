"""Finds the function of Google's computer use for some steps, and its arguments. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deskhand._core.geometry import Viewport
from deskhand.actions import (
    DoubleClick,
    Drag,
    KeyPress,
    LeftClick,
    LeftMouseDown,
    LeftMouseUp,
    PressKeys,
    ReleaseKeys,
    Scroll,
    TakeScreenshot,
    TripleClick,
    Type,
    Wait,
)
from deskhand.desktop.translate import DEFAULT_NOTCHES, DEFAULT_WAIT
from deskhand.errors import UnsupportedAction
from deskhand.providers.google.functions import (
    BROWSED,
    CENTRE,
    CLEAR,
    DEFAULT_LEGACY_PIXELS,
    DIRECTIONS,
    ENTER,
    FUNCTIONS,
    GRID,
    POINTED,
    WHO,
)
from deskhand.providers.values import Browse, step_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deskhand.providers.values import Step

_OPPOSITE = {"up": "down", "down": "up", "left": "right", "right": "left"}


def args_of(name: str | None, steps: tuple[Step, ...], viewport: Viewport) -> tuple[str, dict[str, Any]]:
    """Encode steps as a function and its arguments.

    Args:
        name: The function to use; if there is none of this name, a suitable one of Gemini 3.5 is used.
        steps: The steps.
        viewport: The viewport of its points and distances.

    Raises:
        UnsupportedAction: No function does exactly this.
        OutOfBounds: A point is not on the screen.
    """
    known = name if name in FUNCTIONS else _name_of(steps)
    return known, _WRITERS[known](_Steps(known, steps, viewport))


class _Steps:
    """The steps of a call, with checks that a function can express them."""

    def __init__(self, name: str, steps: tuple[Step, ...], viewport: Viewport) -> None:
        self.name = name
        self.steps = steps
        self.viewport = viewport

    def fail(self, hint: str = "") -> UnsupportedAction:
        what = " and ".join(step_name(step) for step in self.steps) or "nothing"
        return UnsupportedAction(f"{WHO} ({self.name})", what, hint)

    def only(self, kind: type[Any]) -> Any:
        if len(self.steps) != 1 or type(self.steps[0]) is not kind:
            raise self.fail()
        return self.steps[0]

    def point(self, xy: tuple[int, int] | None, x: str = "x", y: str = "y") -> dict[str, Any]:
        if xy is None:
            raise self.fail("it needs a point")
        at = self.viewport.to_model(xy)
        return {x: at.x, y: at.y}

    def plain(self, action: Any) -> Any:
        if getattr(action, "modifiers", ()):
            raise self.fail("no key can be held meanwhile: use key_down and key_up")
        if isinstance(action, DoubleClick | TripleClick) and action.button != "left":
            raise self.fail("it clicks the left button")
        return action

    def keys(self, kind: type[Any]) -> tuple[str, ...]:
        action = self.only(kind)
        if getattr(action, "repeat", 1) != 1:
            raise self.fail("a key is pressed once a call")
        return tuple(action.keys)

    def key(self, kind: type[Any]) -> dict[str, Any]:
        keys = self.keys(kind)
        if len(keys) != 1:
            raise self.fail("it is one key a call")
        return {"key": keys[0]}


_NAMES: Mapping[type[Any], str] = {
    **{action: name for name, action in reversed(list(POINTED.items()))},
    Drag: "drag_and_drop",
    KeyPress: "hotkey",
    PressKeys: "key_down",
    ReleaseKeys: "key_up",
    Scroll: "scroll",
    TakeScreenshot: "take_screenshot",
    Type: "type",
    Wait: "wait",
}
_NAMES_OF_BROWSING = {"navigate": "navigate", **{what: name for name, what in BROWSED.items()}}


def _name_of(steps: tuple[Step, ...]) -> str:
    """The function that may express these steps; its writer checks whether it can."""
    if any(isinstance(step, Type) for step in steps):
        return "type"
    match steps:
        case (Browse() as step,):
            return _NAMES_OF_BROWSING[step.what]
        case (KeyPress() as press,) if len(press.keys) == 1:
            return "press_key"
        case (LeftMouseDown(), Wait(), LeftMouseUp()):
            return "long_press"
        case (step,) if type(step) in _NAMES:
            return _NAMES[type(step)]
    what = " and ".join(step_name(step) for step in steps) or "nothing"
    raise UnsupportedAction(WHO, what, "it has no function for this: use several calls")


def _write_pointed(steps: _Steps) -> dict[str, Any]:
    return steps.point(steps.plain(steps.only(POINTED[steps.name])).xy)


def _write_typed(steps: _Steps) -> dict[str, Any]:
    rest = list(steps.steps)
    args: dict[str, Any] = {}
    legacy = steps.name == "type_text_at"
    if rest and isinstance(rest[0], LeftClick):
        args = steps.point(steps.plain(rest.pop(0)).xy)
    elif legacy:
        raise steps.fail("it begins with a click")
    clear = tuple(rest[:2]) == CLEAR
    text = rest.pop(2 if clear else 0) if len(rest) > 2 * clear else None
    enter = rest[2 * clear :] == [ENTER]
    if not isinstance(text, Type) or text.paste or len(rest) != 2 * clear + enter:
        raise steps.fail("it clears a field, types a text and presses enter, each or none")
    args["text"] = text.text
    for key, value in (("clear_before_typing", clear), ("press_enter", enter)):
        if value or legacy:
            args[key] = value
    return args


def _write_dragged(steps: _Steps) -> dict[str, Any]:
    drag = steps.plain(steps.only(Drag))
    if len(drag.path) != 2 or drag.button != "left":
        raise steps.fail("it goes from one point to another, with the left button")
    return {**steps.point(drag.path[0], "start_x", "start_y"), **steps.point(drag.path[1], "end_x", "end_y")}


def _write_scrolled(steps: _Steps) -> dict[str, Any]:
    scroll = steps.plain(steps.only(Scroll))
    if scroll.distance_xy is None:
        if steps.name == "scroll_at":
            raise steps.fail("it has no wheel clicks")
        magnitude = DEFAULT_NOTCHES if scroll.magnitude is None else scroll.magnitude
        direction = scroll.direction or "down"
        if magnitude < 0:
            direction = _OPPOSITE[direction]
        clicks = _short(abs(magnitude))
        return {**steps.point(scroll.xy), "direction": direction, "magnitude_in_wheel_clicks": clicks}
    direction, length = _towards(steps, scroll.distance_xy)
    key = "magnitude" if steps.name == "scroll_at" else "magnitude_in_pixels"
    return {**steps.point(scroll.xy), "direction": direction, key: length}


def _towards(steps: _Steps, distance: tuple[int, int]) -> tuple[str, int]:
    """A distance on the screen as a direction and a length on the grid."""
    if all(distance):
        raise steps.fail("it scrolls in one direction a call")
    # The same arithmetic in reverse: from the screen to the grid.
    dx, dy = Viewport(GRID, steps.viewport.shown.size).distance_to_screen(distance)
    sign = (dx > 0) - (dx < 0), (dy > 0) - (dy < 0)
    direction = next((name for name, unit in DIRECTIONS.items() if unit == sign), "down")
    return direction, abs(dx or dy)


def _write_document(steps: _Steps) -> dict[str, Any]:
    scroll = steps.plain(steps.only(Scroll))
    if scroll.distance_xy is not None and scroll.xy == steps.viewport.to_screen(CENTRE):
        for direction, (across, down) in DIRECTIONS.items():
            length = (across * DEFAULT_LEGACY_PIXELS, down * DEFAULT_LEGACY_PIXELS)
            if scroll.distance_xy == steps.viewport.distance_to_screen(length):
                return {"direction": direction}
    raise steps.fail("it turns a page at the middle of the screen")


def _write_wait(steps: _Steps) -> dict[str, Any]:
    wait = steps.only(Wait)
    return {"seconds": _short(DEFAULT_WAIT if wait.duration is None else wait.duration)}


def _write_wait_5(steps: _Steps) -> dict[str, Any]:
    if steps.only(Wait).duration != 5:
        raise steps.fail("it waits for five seconds")
    return {}


def _write_long_press(steps: _Steps) -> dict[str, Any]:
    match steps.steps:
        case (LeftMouseDown() as down, Wait() as wait, LeftMouseUp() as up) if (
            down.xy == up.xy and wait.duration is not None
        ):
            steps.plain(up)
            return {**steps.point(steps.plain(down).xy), "seconds": _short(wait.duration)}
    raise steps.fail("it presses and releases at one point")


def _short(number: float) -> float:
    return int(number) if number == int(number) else number


def _write_browse(steps: _Steps) -> dict[str, Any]:
    browse = steps.only(Browse)
    if _NAMES_OF_BROWSING[browse.what] != steps.name:
        raise steps.fail()
    return {} if browse.url is None else {"url": browse.url}


def _write_shot(steps: _Steps) -> dict[str, Any]:
    steps.only(TakeScreenshot)
    return {}


_WRITERS: Mapping[str, Callable[[_Steps], dict[str, Any]]] = {
    **dict.fromkeys(POINTED, _write_pointed),
    **dict.fromkeys(_NAMES_OF_BROWSING.values(), _write_browse),
    "type": _write_typed,
    "type_text_at": _write_typed,
    "drag_and_drop": _write_dragged,
    "scroll": _write_scrolled,
    "scroll_at": _write_scrolled,
    "scroll_document": _write_document,
    "wait": _write_wait,
    "wait_5_seconds": _write_wait_5,
    "press_key": lambda steps: steps.key(KeyPress),
    "key_down": lambda steps: steps.key(PressKeys),
    "key_up": lambda steps: steps.key(ReleaseKeys),
    "hotkey": lambda steps: {"keys": list(steps.keys(KeyPress))},
    "key_combination": lambda steps: {"keys": "+".join(steps.keys(KeyPress))},
    "take_screenshot": _write_shot,
    "long_press": _write_long_press,
}
