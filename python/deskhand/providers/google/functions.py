"""The functions of Google's computer use: decodes each into steps, and finds the function for some steps. Pure.

This module owns the names, their arguments and the defaults of missing ones. The form of a call or an answer is in `wire`;
there is no SDK and no desktop.

Two sets of functions are accepted from every model: those of Gemini 3.5, and those of 2.5 and 3 (`click_at` and the like).
Real calls differ from Google's documentation: on desktops `scroll` comes with an undocumented `magnitude_in_wheel_clicks`,
and `key_combination` has a string, where ADK declares a list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deskhand._core.arguments import expect
from deskhand._core.geometry import Point, Size, Viewport
from deskhand.actions import (
    Action,
    DoubleClick,
    Drag,
    KeyPress,
    LeftClick,
    LeftMouseDown,
    LeftMouseUp,
    MiddleClick,
    Move,
    PressKeys,
    ReleaseKeys,
    RightClick,
    Scroll,
    TakeScreenshot,
    TripleClick,
    Type,
    Wait,
)
from deskhand.desktop.translate import DEFAULT_NOTCHES, DEFAULT_WAIT
from deskhand.errors import ActionError, UnsupportedAction, shown
from deskhand.providers.payload import expect_float, expect_list, expect_string, the_rest
from deskhand.providers.values import Browse, Step, refuse_more, step_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

GRID = Size(1000, 1000)
"""The grid for the model's points and scroll distances, whatever the size of its picture."""

WHO = "Google's computer use"

DEFAULT_PIXELS = 300
"""The default distance of `scroll`, on the grid."""

DEFAULT_LEGACY_PIXELS = 800
"""The default distance of `scroll_at` on the grid, and the distance of `scroll_document`, which has none: about the page that
Google's own agent turns."""

DEFAULT_SECONDS = 1
DEFAULT_PRESS_SECONDS = 2

_CLEAR = (KeyPress(["ctrl", "a"]), KeyPress(["BackSpace"]))
_ENTER = KeyPress(["Return"])
_DIRECTIONS = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}
_OPPOSITE = {"up": "down", "down": "up", "left": "right", "right": "left"}
_CENTRE = (GRID.width // 2, GRID.height // 2)


def on_grid(viewport: Viewport) -> Viewport:
    """The viewport of a Google model for the same part of the same screen."""
    expect("on_grid: viewport", viewport, Viewport)
    return viewport if viewport.model == GRID else Viewport(viewport.screen, GRID, viewport.region)


def steps_of(
    name: str, args: Mapping[str, Any], viewport: Viewport, distances: Viewport | None = None
) -> tuple[tuple[Step, ...], dict[str, Any]]:
    """Decode a function call, and return its unknown arguments.

    Args:
        name: The function.
        args: Its arguments.
        viewport: The viewport of its points.
        distances: The viewport of its distances, if that differs.

    Raises:
        ActionError: The function does not exist, or its arguments make no sense.
    """
    reader = _READERS.get(name)
    if reader is None:
        if name in MOBILE_FUNCTIONS:
            raise UnsupportedAction("this desktop", name, "it is not a phone: open programs from the screen")
        raise ActionError(f"there is no function {shown(name)}: use one of {', '.join(sorted(FUNCTIONS))}")
    given = _Arguments(name, args, viewport, distances or viewport)
    steps, rest = reader(given), given.rest()
    refuse_more(WHO, name, the_rest(rest, *given.said_otherwise))
    return steps, rest


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


class _Arguments:
    """The arguments of one call; those that were not read are the rest."""

    def __init__(self, name: str, given: Mapping[str, Any], viewport: Viewport, distances: Viewport) -> None:
        self.name = name
        self._given = given
        self._viewport = viewport
        self._distances = distances
        self._used: set[str] = set()
        self.said_otherwise: tuple[str, ...] = ()

    def rest(self) -> dict[str, Any]:
        # A null value counts as missing, as in all of Google's JSON.
        return {key: value for key, value in self._given.items() if key not in self._used and value is not None}

    def has(self, *keys: str) -> bool:
        return any(self._given.get(key) is not None for key in keys)

    def value(self, key: str, default: Any = None) -> Any:
        self._used.add(key)
        found = self._given.get(key)
        if found is None:
            if default is None:
                raise ActionError(f"{self.name}: {key} is missing")
            return default
        return found

    def point(self, x: str = "x", y: str = "y") -> Point:
        at = (expect_float(x, self.value(x)), expect_float(y, self.value(y)))
        return self._viewport.to_screen(at)

    def centre(self) -> Point:
        # The centre of the grid, and so of the screen, whatever the points are in.
        return on_grid(self._viewport).to_screen(_CENTRE)

    def number(self, key: str, default: float | None = None) -> float:
        number = expect_float(key, self.value(key, default))
        if number < 0:
            raise ActionError(f"{self.name}: {key} is 0 or more, not {shown(number)}")
        return number

    def string(self, key: str) -> str:
        return expect_string(key, self.value(key))

    def flag(self, key: str, *, default: bool) -> bool:
        found = self.value(key, default)
        if not isinstance(found, bool):
            raise ActionError(f"{self.name}: {key} is true or false, not {shown(found)}")
        return found

    def keys(self) -> tuple[str, ...]:
        found = self.value("keys")
        names = (
            (found,)
            if isinstance(found, str)
            else tuple(expect_string("a key", key) for key in expect_list("keys", found))
        )
        return ("+".join(names),) if self.name == "key_combination" else names

    def distance(self, length: float) -> tuple[int, int]:
        across, down = _DIRECTIONS[self.direction()]
        return self._distances.distance_to_screen((across * length, down * length))

    def direction(self) -> str:
        found = self.string("direction").lower()
        if found not in _DIRECTIONS:
            raise ActionError(f"{self.name}: the direction is up, down, left or right, not {shown(found)}")
        return found


def _browsed(what: str) -> Callable[[_Arguments], tuple[Step, ...]]:
    return lambda _: (Browse(what),)


def _pointed(action: Callable[[Point], Action]) -> Callable[[_Arguments], tuple[Step, ...]]:
    return lambda given: (action(given.point()),)


def _typed(given: _Arguments) -> tuple[Step, ...]:
    legacy = given.name == "type_text_at"
    # By the documentation `type` has no point, but some models send one.
    click = (LeftClick(given.point()),) if legacy or given.has("x", "y") else ()
    clear = _CLEAR if given.flag("clear_before_typing", default=legacy) else ()
    text = Type(given.string("text"))
    enter = (_ENTER,) if given.flag("press_enter", default=legacy) else ()
    return (*click, *clear, text, *enter)


def _dragged(given: _Arguments) -> tuple[Step, ...]:
    if given.has("start_x", "start_y", "end_x", "end_y"):
        return (Drag([given.point("start_x", "start_y"), given.point("end_x", "end_y")]),)
    return (Drag([given.point(), given.point("destination_x", "destination_y")]),)


def _scrolled(given: _Arguments) -> tuple[Step, ...]:
    at = given.point()
    if given.has("magnitude_in_wheel_clicks"):
        clicks = given.number("magnitude_in_wheel_clicks")
        given.said_otherwise = ("magnitude_in_pixels", "magnitude")
        return (Scroll(at, magnitude=clicks, direction=given.direction()),)
    default = DEFAULT_LEGACY_PIXELS if given.name == "scroll_at" else DEFAULT_PIXELS
    length = given.number("magnitude_in_pixels", given.number("magnitude", default))
    return (Scroll(at, distance_xy=given.distance(length)),)


def _paged(given: _Arguments) -> tuple[Step, ...]:
    return (Scroll(given.centre(), distance_xy=given.distance(DEFAULT_LEGACY_PIXELS)),)


def _long_pressed(given: _Arguments) -> tuple[Step, ...]:
    at = given.point()
    return LeftMouseDown(at), Wait(given.number("seconds", DEFAULT_PRESS_SECONDS)), LeftMouseUp(at)


_POINTED: Mapping[str, type[Action]] = {
    "click": LeftClick,
    "double_click": DoubleClick,
    "triple_click": TripleClick,
    "middle_click": MiddleClick,
    "right_click": RightClick,
    "mouse_down": LeftMouseDown,
    "mouse_up": LeftMouseUp,
    "move": Move,
    "click_at": LeftClick,
    "hover_at": Move,
}
_BROWSED: Mapping[str, str] = {
    "go_back": "back",
    "go_forward": "forward",
    "open_web_browser": "open",
    "search": "search",
}
_READERS: Mapping[str, Callable[[_Arguments], tuple[Step, ...]]] = {
    **{name: _pointed(action) for name, action in _POINTED.items()},
    **{name: _browsed(what) for name, what in _BROWSED.items()},
    "navigate": lambda given: (Browse("navigate", given.string("url")),),
    "type": _typed,
    "type_text_at": _typed,
    "drag_and_drop": _dragged,
    "scroll": _scrolled,
    "scroll_at": _scrolled,
    "scroll_document": _paged,
    "wait": lambda given: (Wait(given.number("seconds", DEFAULT_SECONDS)),),
    "wait_5_seconds": lambda _: (Wait(5),),
    "press_key": lambda given: (KeyPress([given.string("key")]),),
    "key_down": lambda given: (PressKeys([given.string("key")]),),
    "key_up": lambda given: (ReleaseKeys([given.string("key")]),),
    "hotkey": lambda given: (KeyPress(given.keys()),),
    "key_combination": lambda given: (KeyPress(given.keys()),),
    "take_screenshot": lambda _: (TakeScreenshot(),),
    "long_press": _long_pressed,
}

MOBILE_FUNCTIONS = frozenset({"open_app", "list_apps"})
"""Functions of phones, which are refused."""

FUNCTIONS = frozenset(_READERS)
"""Every function that can be carried out. A loop with functions of its own recognizes ours by it."""


# --- steps into functions ---


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
    **{action: name for name, action in reversed(list(_POINTED.items()))},
    Drag: "drag_and_drop",
    KeyPress: "hotkey",
    PressKeys: "key_down",
    ReleaseKeys: "key_up",
    Scroll: "scroll",
    TakeScreenshot: "take_screenshot",
    Type: "type",
    Wait: "wait",
}
_NAMES_OF_BROWSING = {"navigate": "navigate", **{what: name for name, what in _BROWSED.items()}}


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
    return steps.point(steps.plain(steps.only(_POINTED[steps.name])).xy)


def _write_typed(steps: _Steps) -> dict[str, Any]:
    rest = list(steps.steps)
    args: dict[str, Any] = {}
    legacy = steps.name == "type_text_at"
    if rest and isinstance(rest[0], LeftClick):
        args = steps.point(steps.plain(rest.pop(0)).xy)
    elif legacy:
        raise steps.fail("it begins with a click")
    clear = tuple(rest[:2]) == _CLEAR
    text = rest.pop(2 if clear else 0) if len(rest) > 2 * clear else None
    enter = rest[2 * clear :] == [_ENTER]
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
    direction = next((name for name, unit in _DIRECTIONS.items() if unit == sign), "down")
    return direction, abs(dx or dy)


def _write_document(steps: _Steps) -> dict[str, Any]:
    scroll = steps.plain(steps.only(Scroll))
    if scroll.distance_xy is not None and scroll.xy == steps.viewport.to_screen(_CENTRE):
        for direction, (across, down) in _DIRECTIONS.items():
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
    **dict.fromkeys(_POINTED, _write_pointed),
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
