"""OSWorld's action space `pyautogui`: a model's Python source, parsed and never run. Pure.

The source is parsed, and each statement must be a call of one of the functions below with literal arguments. Anything else is
refused, with its line. This module owns PyAutoGUI's signatures. It never uses `eval`, `exec` or an import by name.

    import pyautogui, time
    pyautogui.click(10, 20, clicks=2)
    time.sleep(0.5); pyautogui.hotkey("ctrl", "s")
"""

from __future__ import annotations

import ast
import inspect
from typing import TYPE_CHECKING, Any

from deskhand import actions as a
from deskhand._core.fields import MAX_REPEAT
from deskhand.errors import ActionError, UnsupportedAction, shown
from deskhand.providers.osworld.computer_13 import clicks, turns
from deskhand.providers.payload import expect_float, expect_int, expect_list, expect_string
from deskhand.providers.values import Finish, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from deskhand._core.geometry import Point, Viewport

_NAME = "OSWorld's pyautogui"
_WORDS: dict[str, Step] = {"WAIT": a.Wait(), "DONE": Finish("done"), "FAIL": Finish("failed")}
_MODULES = {"pyautogui", "time"}
# Settings of how PyAutoGUI itself waits and stops, which do not apply here.
_SETTINGS = {"PAUSE", "FAILSAFE", "MINIMUM_DURATION", "MINIMUM_SLEEP"}
# Parameters of all its functions that control how slowly something is done, or what is logged.
_IGNORED = {"duration", "interval", "tween", "logScreenshot", "mouseDownUp", "_pause"}
_LONGEST = 100_000
_MOST_STEPS = 1000


def decode_source(source: str, viewport: Viewport, pointer: Point | None = None) -> tuple[Step, ...]:
    """Decode a model's source.

    Args:
        source: The source; or the word WAIT, DONE or FAIL.
        viewport: The viewport of the picture that the model pointed into.
        pointer: The pointer's position on the screen, for relative movements.

    Raises:
        ActionError: It is not Python, or contains anything but known calls; the error names the line.
        OutOfBounds: A point is outside of the picture.
    """
    word = source.strip()
    if word in _WORDS:
        return (_WORDS[word],)
    if len(source) > _LONGEST:
        raise ActionError(f"the source has {len(source)} characters; at most {_LONGEST} are read")
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ActionError(f"this is not Python: {str(error)[:200]}") from None
    hand = _PyAutoGui(viewport, pointer)
    steps: list[Step] = []
    for statement in tree.body:
        try:
            steps += _steps(statement, hand)
        except ActionError as error:
            error.message = f"line {statement.lineno}: {error.message}"
            raise
        if len(steps) > _MOST_STEPS:
            raise ActionError(f"line {statement.lineno}: more than {_MOST_STEPS} actions at once")
    return tuple(steps)


def _steps(statement: ast.stmt, hand: _PyAutoGui) -> Sequence[Step]:
    match statement:
        case ast.Import(names=names) if all(
            name.name in _MODULES and name.asname in (None, name.name) for name in names
        ):
            return ()
        case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="pyautogui"), attr=name)]) if name in _SETTINGS:
            return ()
        case ast.Expr(value=ast.Constant(value=str())):
            return ()
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=name)) as call):
            return _called(module, name, call, hand)
    raise ActionError(f"only calls of pyautogui and time.sleep are carried out, not {shown(ast.unparse(statement))}")


def _called(module: str, name: str, call: ast.Call, hand: _PyAutoGui) -> Sequence[Step]:
    function = getattr(hand, name, None) if module == "pyautogui" and name in _FUNCTIONS else None
    if module == "time" and name == "sleep":
        function = hand.sleep
    if function is None:
        raise UnsupportedAction(_NAME, f"{module}.{name}", f"use one of {', '.join(sorted(_FUNCTIONS))}, or time.sleep")
    try:
        arguments = [_value(argument) for argument in call.args]
        named = {str(keyword.arg): _value(keyword.value) for keyword in call.keywords}
        signature = _FUNCTIONS[name]
        named = {key: value for key, value in named.items() if key not in _IGNORED or key in signature.parameters}
        signature.bind(hand, *arguments, **named)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        raise ActionError(f"{module}.{name}: {str(error)[:200]}; arguments must be literals") from None
    found: Sequence[Step] = function(*arguments, **named)
    return found


def _value(node: ast.expr) -> object:
    """The value of a literal; None for a function of how quickly a movement begins and ends, such as `pyautogui.easeInQuad`."""
    match node:
        case ast.Attribute(value=ast.Name(id="pyautogui"), attr=name) if name.startswith("ease") or name == "linear":
            return None
    return ast.literal_eval(node)


class _PyAutoGui:
    """PyAutoGUI's functions, with their names and parameters; each returns its actions."""

    def __init__(self, viewport: Viewport, pointer: Point | None) -> None:
        self._viewport = viewport
        self._pointer = pointer

    def _at(self, x: object, y: object) -> Point | None:
        """A point on the screen, as two numbers or as a pair; PyAutoGUI moves there first."""
        if x is None and y is None:
            return None
        if y is None and not isinstance(x, int | float):
            x, y = _pair(x)
        self._pointer = self._viewport.to_screen((expect_float("x", x), expect_float("y", y)))
        return self._pointer

    def _beside(self, across: object, down: object) -> Point:
        if down is None and not isinstance(across, int | float):
            across, down = _pair(across)
        if self._pointer is None:
            raise ActionError("the position of the pointer is not known: use absolute coordinates")
        x, y = self._viewport.to_model(self._pointer)
        point = self._at(x + expect_float("xOffset", across or 0), y + expect_float("yOffset", down or 0))
        assert point is not None  # noqa: S101 # two numbers were given
        return point

    def moveTo(self, x: Any = None, y: Any = None, duration: Any = 0, tween: Any = None) -> Sequence[Step]:
        at = self._at(x, y)
        return () if at is None else (a.Move(at),)

    def moveRel(self, xOffset: Any = None, yOffset: Any = None, duration: Any = 0, tween: Any = None) -> Sequence[Step]:
        return (a.Move(self._beside(xOffset, yOffset)),)

    move = moveRel

    def click(
        self,
        x: Any = None,
        y: Any = None,
        clicks: Any = 1,
        interval: Any = 0,
        button: Any = "left",
        duration: Any = 0,
    ) -> Sequence[Step]:
        return _clicks(button, clicks, self._at(x, y))

    def leftClick(self, x: Any = None, y: Any = None) -> Sequence[Step]:
        return _clicks("left", 1, self._at(x, y))

    def rightClick(self, x: Any = None, y: Any = None) -> Sequence[Step]:
        return _clicks("right", 1, self._at(x, y))

    def middleClick(self, x: Any = None, y: Any = None) -> Sequence[Step]:
        return _clicks("middle", 1, self._at(x, y))

    def doubleClick(self, x: Any = None, y: Any = None, interval: Any = 0, button: Any = "left") -> Sequence[Step]:
        return _clicks(button, 2, self._at(x, y))

    def tripleClick(self, x: Any = None, y: Any = None, interval: Any = 0, button: Any = "left") -> Sequence[Step]:
        return _clicks(button, 3, self._at(x, y))

    def mouseDown(self, x: Any = None, y: Any = None, button: Any = "left") -> Sequence[Step]:
        return (a.MouseDown(_button(button), self._at(x, y)),)

    def mouseUp(self, x: Any = None, y: Any = None, button: Any = "left") -> Sequence[Step]:
        return (a.MouseUp(_button(button), self._at(x, y)),)

    def dragTo(
        self,
        x: Any = None,
        y: Any = None,
        duration: Any = 0,
        tween: Any = None,
        button: Any = "left",
    ) -> Sequence[Step]:
        at = self._at(x, y)
        return () if at is None else (a.Drag([at], _button(button)),)

    def dragRel(
        self,
        xOffset: Any = 0,
        yOffset: Any = 0,
        duration: Any = 0,
        tween: Any = None,
        button: Any = "left",
    ) -> Sequence[Step]:
        return (a.Drag([self._beside(xOffset, yOffset)], _button(button)),)

    drag = dragRel

    def scroll(self, clicks: Any, x: Any = None, y: Any = None) -> Sequence[Step]:
        return turns(0, expect_int("clicks", clicks), self._at(x, y))

    vscroll = scroll

    def hscroll(self, clicks: Any, x: Any = None, y: Any = None) -> Sequence[Step]:
        return turns(expect_int("clicks", clicks), 0, self._at(x, y))

    def write(self, message: Any, interval: Any = 0) -> Sequence[Step]:
        if isinstance(message, str):
            return (a.Type(message),)
        return tuple(a.KeyPress([expect_string("a key", key)]) for key in expect_list("message", message))

    typewrite = write

    def press(self, keys: Any, presses: Any = 1, interval: Any = 0) -> Sequence[Step]:
        names = [keys] if isinstance(keys, str) else expect_list("keys", keys)
        count = expect_int("presses", presses)
        if not 1 <= count <= MAX_REPEAT:
            raise ActionError(f"1 to {MAX_REPEAT} presses, not {count}")
        if len(names) == 1:
            return (a.KeyPress(names, repeat=count),)
        return tuple(a.KeyPress([expect_string("a key", key)]) for _ in range(count) for key in names)

    def keyDown(self, key: Any) -> Sequence[Step]:
        return (a.PressKeys([expect_string("key", key)]),)

    def keyUp(self, key: Any) -> Sequence[Step]:
        return (a.ReleaseKeys([expect_string("key", key)]),)

    def hotkey(self, *keys: Any, interval: Any = 0) -> Sequence[Step]:
        names = expect_list("keys", keys[0]) if len(keys) == 1 and not isinstance(keys[0], str) else keys
        return (a.KeyPress(names),)

    def sleep(self, seconds: Any) -> Sequence[Step]:
        return (a.Wait(expect_float("seconds", seconds)),)

    def screenshot(self) -> Sequence[Step]:
        return (a.TakeScreenshot(),)


_FUNCTIONS = {
    name: inspect.signature(function) for name, function in vars(_PyAutoGui).items() if not name.startswith("_")
}


def _pair(value: object) -> tuple[Any, Any]:
    pair = expect_list("a point", value)
    if len(pair) != 2:
        raise ActionError(f"a point is x and y, not {shown(value)}")
    return pair[0], pair[1]


def _button(value: object) -> str:
    return {"primary": "left", "secondary": "right"}.get(str(value), expect_string("button", value))


def _clicks(button: object, count: object, at: Point | None) -> Sequence[Step]:
    return clicks(_button(button), expect_int("clicks", count), at)


def without_pyautogui(source: str) -> str:
    """The same source without the import of PyAutoGUI and its settings, if it uses nothing else of it.

    OSWorld's client puts them before all source that it sends, also before what has nothing to do with input.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source
    kept = [statement for statement in tree.body if not _prepares(statement)]
    if len(kept) == len(tree.body) or any(
        isinstance(node, ast.Name) and node.id == "pyautogui" for each in kept for node in ast.walk(each)
    ):
        return source
    return ast.unparse(ast.Module(kept, []))


def _prepares(statement: ast.stmt) -> bool:
    match statement:
        case ast.Import(names=[ast.alias(name="pyautogui", asname=None)]):
            return True
        case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="pyautogui"), attr=name)]):
            return name in _SETTINGS
    return False


# --- source from steps ---


def encode_source(steps: Sequence[Step], viewport: Viewport) -> str:
    """Encode steps as source, or as the word that ends a task.

    Raises:
        UnsupportedAction: PyAutoGUI cannot do one of them.
    """
    if len(steps) == 1 and isinstance(steps[0], Finish):
        return "DONE" if steps[0].status == "done" else "FAIL"
    return "\n".join(line for step in steps for line in _lines(step, viewport))


def _lines(step: Step, viewport: Viewport) -> Iterator[str]:
    writer = _WRITERS.get(type(step))
    plain = not (getattr(step, "paste", False) or getattr(step, "secret", False))
    lines = writer(step, viewport) if writer and plain else None
    if lines is None:
        raise UnsupportedAction(_NAME, getattr(step, "type", type(step).__name__))
    held = getattr(step, "modifiers", ())
    yield from (f"pyautogui.keyDown({key!r})" for key in held)
    yield from lines
    yield from (f"pyautogui.keyUp({key!r})" for key in reversed(held))


def _call(name: str, *arguments: object, **named: object) -> str:
    words = [*map(repr, arguments), *(f"{key}={value!r}" for key, value in named.items())]
    return f"pyautogui.{name}({', '.join(words)})"


def _place(point: tuple[int, int] | None, viewport: Viewport) -> tuple[int, ...]:
    return () if point is None else tuple(viewport.to_model(point))


def _say(name: str) -> Callable[[Any, Viewport], list[str]]:
    return lambda step, viewport: [_call(name, *_place(step.xy, viewport))]


def _say_button(name: str) -> Callable[[Any, Viewport], list[str] | None]:
    def say(step: Any, viewport: Viewport) -> list[str] | None:
        button = getattr(step, "button", "left")
        if button not in ("left", "middle", "right"):
            return None
        return [_call(name, *_place(step.xy, viewport), **({} if button == "left" else {"button": button}))]

    return say


def _say_drag(step: Any, viewport: Viewport) -> list[str] | None:
    if step.button not in ("left", "middle", "right"):
        return None
    *before, last = (_place(point, viewport) for point in step.path)
    button = {} if step.button == "left" else {"button": step.button}
    if len(before) < 2:
        return [*(_call("moveTo", *point) for point in before), _call("dragTo", *last, **button)]
    first, *between = before
    moves = [_call("moveTo", *point) for point in (*between, last)]
    return [_call("mouseDown", *first, **button), *moves, _call("mouseUp", **button)]


def _say_scroll(step: Any, viewport: Viewport) -> list[str] | None:
    if step.distance_xy is not None:
        return None
    notches = round(3 if step.magnitude is None else step.magnitude)
    sideways = step.direction in ("left", "right")
    far = notches if step.direction in ("up", "right") else -notches
    return [_call("hscroll" if sideways else "scroll", far, *_place(step.xy, viewport))]


def _say_keys(step: Any, _: Viewport) -> list[str]:
    if len(step.keys) == 1:
        return [_call("press", step.keys[0], **({} if step.repeat == 1 else {"presses": step.repeat}))]
    return [_call("hotkey", *step.keys)] * step.repeat


def _say_hold(step: Any, _: Viewport) -> list[str]:
    down = [_call("keyDown", key) for key in step.keys]
    return [*down, f"time.sleep({step.duration!r})", *(_call("keyUp", key) for key in reversed(step.keys))]


_WRITERS: dict[type, Callable[[Any, Viewport], list[str] | None]] = {
    a.LeftClick: _say("click"),
    a.DoubleClick: _say_button("doubleClick"),
    a.TripleClick: _say_button("tripleClick"),
    a.RightClick: _say("rightClick"),
    a.MiddleClick: _say("middleClick"),
    a.Move: _say("moveTo"),
    a.LeftMouseDown: _say_button("mouseDown"),
    a.LeftMouseUp: _say_button("mouseUp"),
    a.MouseDown: _say_button("mouseDown"),
    a.MouseUp: _say_button("mouseUp"),
    a.Drag: _say_drag,
    a.Scroll: _say_scroll,
    a.KeyPress: _say_keys,
    a.KeyHold: _say_hold,
    a.PressKeys: lambda step, _: [_call("keyDown", key) for key in step.keys],
    a.ReleaseKeys: lambda step, _: [_call("keyUp", key) for key in reversed(step.keys)],
    a.Type: lambda step, _: [_call("write", step.text)],
    a.Wait: lambda step, _: [f"time.sleep({1.0 if step.duration is None else step.duration!r})"],
    a.TakeScreenshot: lambda _, __: [_call("screenshot")],
}
