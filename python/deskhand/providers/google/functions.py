"""The functions of Google's computer use: decodes each into steps. Pure.

This module owns the names, their arguments and the defaults of missing ones. Which function steps become is in `encoding`, and
the form of a call or an answer in `wire`; there is no SDK and no desktop.

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
from deskhand.errors import ActionError, UnsupportedAction, shown
from deskhand.providers.payload import expect_float, expect_list, expect_string, refuse_more, the_rest
from deskhand.providers.values import Browse, Step

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

CLEAR = (KeyPress(["ctrl", "a"]), KeyPress(["BackSpace"]))
ENTER = KeyPress(["Return"])
DIRECTIONS = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}
CENTRE = (GRID.width // 2, GRID.height // 2)


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
        return on_grid(self._viewport).to_screen(CENTRE)

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
        across, down = DIRECTIONS[self.direction()]
        return self._distances.distance_to_screen((across * length, down * length))

    def direction(self) -> str:
        found = self.string("direction").lower()
        if found not in DIRECTIONS:
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
    clear = CLEAR if given.flag("clear_before_typing", default=legacy) else ()
    text = Type(given.string("text"))
    enter = (ENTER,) if given.flag("press_enter", default=legacy) else ()
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


POINTED: Mapping[str, type[Action]] = {
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
BROWSED: Mapping[str, str] = {
    "go_back": "back",
    "go_forward": "forward",
    "open_web_browser": "open",
    "search": "search",
}
_READERS: Mapping[str, Callable[[_Arguments], tuple[Step, ...]]] = {
    **{name: _pointed(action) for name, action in POINTED.items()},
    **{name: _browsed(what) for name, what in BROWSED.items()},
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
