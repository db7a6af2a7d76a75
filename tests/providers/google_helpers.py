"""What Google's models send: a call of every function, in each of the shapes that a call comes in."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from deskhand import actions as a
from deskhand._core.geometry import Point, Size, Viewport
from deskhand.desktop.operations import SafetyCheck
from deskhand.providers.google import wire
from deskhand.providers.google.functions import GRID as GRID_SIZE
from deskhand.providers.values import Browse, ProviderCall, Result

from .strategies import checks, ids, pictures, texts

GRID = Viewport(Size(1000, 1000), GRID_SIZE)
"""A screen whose pixels are the cells of the grid: what is decoded of what was encoded is the same."""

CURRENT: dict[str, dict[str, Any]] = {
    "click": {"x": 100, "y": 200, "intent": "open the file"},
    "double_click": {"x": 101, "y": 200},
    "triple_click": {"x": 102, "y": 200},
    "middle_click": {"x": 103, "y": 200},
    "right_click": {"x": 104, "y": 200},
    "mouse_down": {"x": 105, "y": 200},
    "mouse_up": {"x": 505, "y": 600},
    "move": {"x": 999, "y": 999},
    "type": {"text": "naïve ☕", "press_enter": True},
    "drag_and_drop": {"start_x": 10, "start_y": 20, "end_x": 500, "end_y": 700},
    "wait": {"seconds": 1},
    "press_key": {"key": "enter"},
    "key_down": {"key": "shift"},
    "key_up": {"key": "shift"},
    "hotkey": {"keys": ["control", "a"]},
    "take_screenshot": {},
    "scroll": {"x": 500, "y": 500, "direction": "down", "magnitude_in_pixels": 300},
    "go_back": {},
    "go_forward": {},
    "navigate": {"url": "https://example.org/a?b=c"},
    "long_press": {"x": 300, "y": 300, "seconds": 2},
}
"""The functions of Gemini 3.5, and arguments of each."""

LEGACY: dict[str, dict[str, Any]] = {
    "open_web_browser": {},
    "wait_5_seconds": {},
    "go_back": {},
    "go_forward": {},
    "search": {},
    "navigate": {"url": "https://example.org"},
    "click_at": {"x": 1, "y": 2},
    "hover_at": {"x": 3, "y": 4},
    "type_text_at": {"x": 5, "y": 6, "text": "words", "press_enter": False, "clear_before_typing": True},
    "key_combination": {"keys": "Control+A"},
    "scroll_document": {"direction": "up"},
    "scroll_at": {"x": 7, "y": 8, "direction": "left", "magnitude": 400},
    "drag_and_drop": {"x": 9, "y": 10, "destination_x": 900, "destination_y": 910},
}
"""The functions of Gemini 2.5 and 3."""

SAFETY = {"decision": "require_confirmation", "explanation": "I see a CAPTCHA"}


def in_shape(shape: str, name: str, args: dict[str, Any], call_id: str | None = "call-1") -> dict[str, Any]:
    """A call as a `FunctionCall`, as a `Part` around it, as REST spells that, or as a step of the Interactions API."""
    named: dict[str, Any] = {"name": name} if call_id is None else {"name": name, "id": call_id}
    match shape:
        case "step":
            return {"type": "function_call", **named, "arguments": args}
        case "part":
            return {"function_call": {**named, "args": args}, "thought_signature": "c2lnbmVk"}
        case "rest":
            return {"functionCall": {**named, "args": args}, "thoughtSignature": "c2lnbmVk"}
    return {**named, "args": args}


SHAPES = ("call", "part", "rest", "step")
PAYLOADS = [
    in_shape(shape, name, {**args, "safety_decision": SAFETY} if name in {"click", "click_at", "type"} else args)
    for shape in SHAPES
    for functions in (CURRENT, LEGACY)
    for name, args in functions.items()
]

grid = st.integers(0, 999)
fine_grid = grid | st.floats(0, 999)
sizes = st.builds(Size, st.integers(1, 5000), st.integers(1, 4000))
viewports = st.builds(Viewport, sizes, sizes)
_keys = st.sampled_from(["a", "enter", "F5", "pageup", "é", "+"])
_directions = st.sampled_from(["up", "down", "left", "right", "Down"])
_ARGUMENTS: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("x", "y", "start_x", "start_y", "end_x", "end_y", "destination_x", "destination_y"), grid),
    "text": texts,
    "press_enter": st.booleans(),
    "clear_before_typing": st.booleans(),
    "seconds": st.integers(0, 3600) | st.floats(0, 3600),
    "key": _keys,
    "direction": _directions,
    "magnitude_in_pixels": grid,
    "magnitude": grid,
    "url": texts,
}


def _arguments(name: str, args: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    made = {key: _ARGUMENTS[key] for key in args if key in _ARGUMENTS}
    if name == "hotkey":
        made["keys"] = st.lists(st.sampled_from(["control", "shift", "alt", "a", "Tab"]), min_size=1, unique=True)
    elif name == "key_combination":
        made["keys"] = st.sampled_from(["Control+A", "enter", "ctrl++", "+", "Alt+Shift+Tab"])
    return st.fixed_dictionaries(made)


payloads = st.sampled_from([(name, args) for f in (CURRENT, LEGACY) for name, args in f.items()]).flatmap(
    lambda function: st.builds(
        in_shape, st.sampled_from(SHAPES), st.just(function[0]), _arguments(*function), st.none() | ids
    )
)
"""Calls of all functions, with all their arguments, in all shapes."""

_points = st.builds(Point, grid, grid)
_distances = st.integers(-999, 999).flatmap(lambda n: st.sampled_from([(n, 0), (0, n)]))
_CLEAR = (a.KeyPress(["ctrl", "a"]), a.KeyPress(["BackSpace"]))
_clear = st.sampled_from([(), _CLEAR])
_enter = st.sampled_from([(), (a.KeyPress(["Return"]),)])


def _typed(click: tuple[Any, ...], clear: tuple[Any, ...], text: str, enter: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*click, *clear, a.Type(text), *enter)


def _long_pressed(at: Point, seconds: float) -> tuple[Any, ...]:
    return a.LeftMouseDown(at), a.Wait(seconds), a.LeftMouseUp(at)


def _one(name: str, step: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[str, tuple[Any, ...]]]:
    return st.tuples(st.just(name), st.tuples(step))


_directions_of_the_wheel = st.sampled_from(["up", "down", "left", "right"])
_seconds = st.floats(0, 3600)
_POINTED = {
    "click": a.LeftClick, "double_click": a.DoubleClick, "triple_click": a.TripleClick, "middle_click": a.MiddleClick,
    "right_click": a.RightClick, "mouse_down": a.LeftMouseDown, "mouse_up": a.LeftMouseUp, "move": a.Move,
    "click_at": a.LeftClick, "hover_at": a.Move,
}  # fmt: skip
said = st.one_of(
    *[_one(name, st.builds(action, _points)) for name, action in _POINTED.items()],
    _one("drag_and_drop", st.builds(a.Drag, st.lists(_points, min_size=2, max_size=2))),
    _one("wait", st.builds(a.Wait, _seconds)),
    _one("wait_5_seconds", st.just(a.Wait(5))),
    _one("press_key", st.builds(lambda key: a.KeyPress([key]), _keys)),
    _one("key_down", st.builds(lambda key: a.PressKeys([key]), _keys)),
    _one("key_up", st.builds(lambda key: a.ReleaseKeys([key]), _keys)),
    _one("hotkey", st.builds(a.KeyPress, st.lists(_keys, min_size=1, max_size=3, unique=True))),
    _one("key_combination", st.builds(lambda key: a.KeyPress([key]), st.sampled_from(["Control+A", "enter", "ctrl++"]))),
    _one("take_screenshot", st.just(a.TakeScreenshot())),
    _one("scroll", st.builds(lambda at, by: a.Scroll(at, distance_xy=by), _points, _distances)),
    _one("scroll_at", st.builds(lambda at, by: a.Scroll(at, distance_xy=by), _points, _distances)),
    _one(
        "scroll",
        st.builds(
            lambda at, n, way: a.Scroll(at, magnitude=n, direction=way),
            _points,
            st.integers(0, 200) | st.floats(0, 200),
            _directions_of_the_wheel,
        ),
    ),
    _one("scroll_document", st.sampled_from([(0, 800), (0, -800), (800, 0), (-800, 0)]).map(
        lambda by: a.Scroll((500, 500), distance_xy=by))),
    _one("navigate", st.builds(lambda url: Browse("navigate", url), texts)),
    *[_one(name, st.just(Browse(what))) for name, what in
      (("go_back", "back"), ("go_forward", "forward"), ("open_web_browser", "open"), ("search", "search"))],
    st.tuples(st.just("type"), st.builds(_typed, st.just(()), _clear, texts, _enter)),
    st.tuples(
        st.sampled_from(["type", "type_text_at"]),
        st.builds(_typed, st.tuples(st.builds(a.LeftClick, _points)), _clear, texts, _enter),
    ),
    st.tuples(st.just("long_press"), st.builds(_long_pressed, _points, _seconds)),
)  # fmt: skip
"""Names of functions, and steps that they can say."""

_safety = st.tuples(checks).filter(
    lambda found: (found[0].code or "").lower() not in wire.ALLOWED | wire.BLOCKED | {""}
).map(lambda found: (SafetyCheck("safety_decision", found[0].code, found[0].message),))  # fmt: skip
_odd = st.dictionaries(st.sampled_from(["intent", "unknown", "Ω"]), st.integers() | texts, min_size=1, max_size=2)
_extra = st.fixed_dictionaries(
    {}, optional={"part": _odd, "args": _odd, "call": _odd | st.just({"type": "function_call"})}
)


@st.composite
def calls(draw: st.DrawFn) -> ProviderCall:
    """Calls that Google has words for, on a screen as fine as its grid."""
    name, steps = draw(said)
    return ProviderCall(
        steps=steps,
        viewport=GRID,
        id=draw(st.none() | ids),
        name=name,
        safety=draw(st.just(()) | _safety),
        extra=draw(_extra),
    )


@st.composite
def results(draw: st.DrawFn) -> Result:
    """What may come of such calls."""
    call = draw(calls())
    return Result(
        call=call,
        picture=draw(st.none() | pictures),
        error=draw(st.none() | texts),
        text=draw(st.none() | texts),
        denied=draw(st.booleans()),
        acknowledged=draw(st.sampled_from([(), call.safety])),
    )


# --- what an observer sees ---


def clicks(button: int, at: str, count: int = 1) -> list[str]:
    return [f"{sign}{button}@{at}" for _ in range(count) for sign in "+-"]


def keys(names: str) -> list[str]:
    return [f"{sign}{name}" for name in names.split() for sign in "+-"]


CLEARED = ["+Control_L", "+a", "-a", "-Control_L", *keys("BackSpace")]
DRAGGED = ["+1@10,20", "-1@500,700"]

PERFORMED: list[tuple[str, dict[str, Any], list[str]]] = [
    ("click", {"x": 100, "y": 200, "intent": "to see"}, clicks(1, "100,200")),
    ("double_click", {"x": 200, "y": 300}, clicks(1, "200,300", 2)),
    ("triple_click", {"x": 300, "y": 400}, clicks(1, "300,400", 3)),
    ("middle_click", {"x": 400, "y": 500}, clicks(2, "400,500")),
    ("right_click", {"x": 999, "y": 999}, clicks(3, "999,999")),
    ("mouse_down", {"x": 0, "y": 0}, ["+1@0,0"]),
    ("mouse_up", {"x": 505, "y": 600}, ["-1@505,600"]),
    ("move", {"x": 700, "y": 1}, []),
    ("type", {"text": "ab c"}, keys("a b space c")),
    ("type", {"text": "a", "press_enter": True}, keys("a Return")),
    ("drag_and_drop", {"start_x": 10, "start_y": 20, "end_x": 500, "end_y": 700}, DRAGGED),
    ("wait", {"seconds": 0}, []),
    ("press_key", {"key": "enter"}, keys("Return")),
    ("key_down", {"key": "shift"}, ["+Shift_L"]),
    ("key_up", {"key": "shift"}, ["-Shift_L"]),
    ("hotkey", {"keys": ["control", "a"]}, ["+Control_L", "+a", "-a", "-Control_L"]),
    ("take_screenshot", {}, []),
    ("scroll", {"x": 500, "y": 400, "direction": "down"}, clicks(5, "500,400", 3)),
    ("scroll", {"x": 5, "y": 4, "direction": "left", "magnitude_in_pixels": 200}, clicks(6, "5,4", 2)),
    ("scroll", {"x": 5, "y": 4, "direction": "up", "magnitude_in_wheel_clicks": 4}, clicks(4, "5,4", 4)),
    ("click_at", {"x": 10, "y": 2}, clicks(1, "10,2")),
    ("hover_at", {"x": 3, "y": 4}, []),
    (
        "type_text_at",
        {"x": 600, "y": 6, "text": "w", "press_enter": False, "clear_before_typing": True},
        [*clicks(1, "600,6"), *CLEARED, *keys("w")],
    ),
    ("type_text_at", {"x": 600, "y": 900, "text": "w"}, [*clicks(1, "600,900"), *CLEARED, *keys("w Return")]),
    ("key_combination", {"keys": "Control+A"}, ["+Control_L", "+a", "-a", "-Control_L"]),
    ("scroll_document", {"direction": "up"}, clicks(4, "500,500", 8)),
    ("scroll_at", {"x": 7, "y": 8, "direction": "right", "magnitude": 100}, clicks(7, "7,8")),
    ("drag_and_drop", {"x": 10, "y": 20, "destination_x": 500, "destination_y": 700}, DRAGGED),
]
"""What an observer sees of each function that a desktop without a browser can carry out."""

LONG_PRESS = ("long_press", {"x": 300, "y": 300, "seconds": 0}, clicks(1, "300,300"))
