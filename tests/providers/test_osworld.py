"""OSWorld's two action spaces on a real desktop; a model's Python is read and never run."""

from __future__ import annotations

import asyncio
import contextlib
import io
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import deskhand
from deskhand import ActionError, OutOfBounds, Point, Size, UnsupportedAction, Viewport
from deskhand import actions as a
from deskhand.providers import osworld
from deskhand.providers.session import ModelSession
from deskhand.providers.values import Finish, Picture, ProviderCall, Result
from faults.scale import MUTATED_PAYLOADS
from providers.strategies import HALVED, VIEWPORT, damaged, keys, modifiers, pictures, points, texts
from providers.test_cua import downs

if TYPE_CHECKING:
    from integration.observer import Observer


def act(kind: str, **parameters: Any) -> dict[str, Any]:
    return {"action_type": kind, "parameters": parameters}


# What each action does, as the observer sees it: buttons and keys that go down, and where the pointer is.
SEEN: list[tuple[Any, list[Any]]] = [
    (act("MOVE_TO", x=30, y=40), []),
    (act("CLICK"), [(1, [30, 40])]),
    (act("CLICK", button="right", x=31, y=40), [(3, [31, 40])]),
    (act("CLICK", button="middle", x=32.4, y=40.6), [(2, [32, 41])]),
    (act("CLICK", x=330, y=40, num_clicks=2), [(1, [330, 40])] * 2),
    (act("CLICK", x=630, y=40, num_clicks=3), [(1, [630, 40])] * 3),
    (act("MOUSE_DOWN"), [(1, [630, 40])]),
    (act("MOUSE_UP"), []),
    (act("MOUSE_DOWN", button="right"), [(3, [630, 40])]),
    (act("MOUSE_UP", button="right"), []),
    (act("RIGHT_CLICK", x=5, y=6), [(3, [5, 6])]),
    (act("DOUBLE_CLICK", x=205, y=6), [(1, [205, 6])] * 2),
    (act("DRAG_TO", x=215, y=16), [(1, [205, 6])]),
    (act("SCROLL", dx=0, dy=-2), [(5, [215, 16])] * 2),
    (act("SCROLL", dx=1, dy=1), [(4, [215, 16]), (7, [215, 16])]),
    (act("TYPING", text="hi"), ["h", "i"]),
    (act("PRESS", key="enter"), ["Return"]),
    (act("KEY_DOWN", key="shift"), ["Shift_L"]),
    (act("KEY_UP", key="shift"), []),
    (act("HOTKEY", keys=["ctrl", "c"]), ["Control_L", "c"]),
    ({"action_type": "CLICK", "x": 9, "y": 9}, [(1, [9, 9])]),
    (act("WAIT"), []),
    ("DONE", []),
    (act("FAIL"), []),
    ("pyautogui.moveTo(30, 50)", []),
    ("import pyautogui; import time\npyautogui.PAUSE = 2\npyautogui.click(31, 50); time.sleep(0.01)", [(1, [31, 50])]),
    ("pyautogui.click((32, 50), button='right', duration=1)", [(3, [32, 50])]),
    ("pyautogui.click(x=333, y=50, clicks=2, interval=0.1)", [(1, [333, 50])] * 2),
    ("pyautogui.tripleClick(633, 50)", [(1, [633, 50])] * 3),
    ("pyautogui.rightClick()", [(3, [633, 50])]),
    ("pyautogui.middleClick(633, 60)", [(2, [633, 60])]),
    ("pyautogui.doubleClick(33, 60, button='primary')", [(1, [33, 60])] * 2),
    ("pyautogui.moveRel(10, -10)\npyautogui.leftClick()", [(1, [43, 50])]),
    ("pyautogui.moveTo(100, 100)\npyautogui.dragTo(150, 100, duration=0.5, button='left')", [(1, [100, 100])]),
    ("pyautogui.dragRel(10, 0)", [(1, [150, 100])]),
    ("pyautogui.mouseDown(5, 5, 'right'); pyautogui.mouseUp(button='right')", [(3, [5, 5])]),
    ("pyautogui.scroll(-2)", [(5, [5, 5])] * 2),
    ("pyautogui.hscroll(1, 6, 6)", [(7, [6, 6])]),
    ("pyautogui.write('ab', interval=0.1)", ["a", "b"]),
    ("pyautogui.typewrite(['a', 'enter'])", ["a", "Return"]),
    ("pyautogui.press('a', presses=2)", ["a", "a"]),
    ("pyautogui.press(['left', 'right'])", ["Left", "Right"]),
    ("pyautogui.keyDown('ctrl')\npyautogui.keyUp('ctrl')", ["Control_L"]),
    ("pyautogui.hotkey('ctrl', 's')", ["Control_L", "s"]),
    ("pyautogui.hotkey(['ctrl', 's'])", ["Control_L", "s"]),
    ("'''What I do'''\n# and why\npyautogui.screenshot()", []),
    ("", []),
    ("WAIT", []),
]


@pytest.mark.parametrize(("action", "expected"), SEEN, ids=str)
def test_every_action_is_done_and_answered_with_the_screen(
    shared: deskhand.Desktop, observer: Observer, action: Any, expected: list[Any]
) -> None:
    observer.events()
    seen = osworld.run(shared, action, instruction="Do it")
    assert "error" not in seen, seen
    assert downs(observer) == expected
    assert seen["instruction"] == "Do it"
    assert set(seen) == {"screenshot", "accessibility_tree", "terminal", "instruction"}
    assert Image.open(io.BytesIO(seen["screenshot"])).size == shared.size


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (act("FLY"), "FLY"),
        ({"parameters": {}}, "action_type"),
        (5, "object"),
        (act("MOVE_TO", x=5), "y"),
        (act("MOVE_TO", x=5000, y=1), "outside"),
        (act("CLICK", button="fourth"), "button"),
        (act("CLICK", num_clicks=99), "clicks"),
        (act("PRESS", key="nokey"), "unknown key"),
        ("pyautogui.moveTo(5000, 1)", "line 1"),
        ("pyautogui.moveTo(1, 1)\npyautogui.fly()", "line 2"),
    ],
)
def test_what_cannot_be_done_is_told_and_not_done(
    shared: deskhand.Desktop, observer: Observer, action: Any, reason: str
) -> None:
    observer.events()
    seen = osworld.run(shared, action)
    assert reason in seen["error"]
    assert Image.open(io.BytesIO(seen["screenshot"])).size == shared.size
    assert observer.events() == []


@pytest.mark.parametrize(
    "source",
    [
        "import os",
        "import pyautogui as os; import os",
        "from os import system",
        "__import__('os').system('touch {}')",
        "open('{}', 'w')",
        "pyautogui.write(open('/etc/passwd').read())",
        "pyautogui.write(f'{{().__class__}}')",
        "pyautogui.write('a' * 10**9)",
        "pyautogui.click(*[1, 2])",
        "pyautogui.click(**{{'x': 1}})",
        "pyautogui.click(speed=1)",
        "pyautogui.click(_=1)",
        "pyautogui.click(x := 1, 2)",
        "pyautogui.__class__()",
        "pyautogui._at(1, 2)",
        "pyautogui.alert('x')",
        "pyautogui.pyautogui.click()",
        "time.time()",
        "os.system('touch {}')",
        "exec('x')",
        "eval('1')",
        "lambda: pyautogui.click()",
        "def f(): pyautogui.click()",
        "for i in range(9): pyautogui.click()",
        "with open('{}', 'w'): pass",
        "x = pyautogui.click()",
        "pyautogui.PAUSE.x = 1",
        "pyautogui.click = 5",
        "assert pyautogui.click()",
        "1 + 1",
        "pyautogui.click(",
        "\x00",
        "(" * 5000,
        "pyautogui.write('" + "a" * 200_000 + "')",
        "pyautogui.press('a', presses=5000)",
        "pyautogui.click();" * 2000,
        "pyautogui.moveTo(" + "9" * 5000 + ", 1)",
    ],
)
def test_no_other_python_is_carried_out(source: str, tmp_path: Any) -> None:
    trace = tmp_path / "trace"
    with pytest.raises(ActionError):
        osworld.decode(source.replace("{}", str(trace)).replace("{{", "{").replace("}}", "}"), VIEWPORT)
    assert not trace.exists()


def test_a_relative_movement_needs_to_know_where_the_pointer_is() -> None:
    with pytest.raises(ActionError, match="absolute"):
        osworld.decode("pyautogui.move(1, 1)", HALVED)
    steps = osworld.decode("pyautogui.move(10, None)\npyautogui.move((0, 5))", HALVED, pointer=Point(20, 20)).steps
    assert steps == (a.Move((41, 21)), a.Move((41, 31)))
    with pytest.raises(OutOfBounds):
        osworld.decode("pyautogui.moveRel(-100, 0)", HALVED, pointer=Point(20, 20))


def test_a_smaller_picture_is_pointed_into(shared: deskhand.Desktop) -> None:
    model_session = ModelSession(shared, size=(640, 400))
    seen = osworld.run(model_session, "pyautogui.moveTo(100, 50)")
    assert shared.pointer == (201, 101)
    assert Image.open(io.BytesIO(seen["screenshot"])).size == (640, 400)
    osworld.run(model_session, "pyautogui.moveRel(1, 1)")
    assert shared.pointer == (203, 103)


def test_what_it_declares(shared: deskhand.Desktop) -> None:
    assert osworld.declare(shared, size=(640, 400)) == {"action_space": "computer_13", "screen_size": (640, 400)}
    assert osworld.declare(shared, space="pyautogui")["action_space"] == "pyautogui"
    with pytest.raises(ActionError, match="computer_13"):
        osworld.declare(shared, space="telepathy")


def test_run_async_is_the_same(shared: deskhand.Desktop) -> None:
    seen = asyncio.run(osworld.run_async(shared, act("MOVE_TO", x=33, y=44), instruction="x"))
    assert seen["instruction"] == "x"
    assert shared.pointer == (33, 44)


# --- there and back ---

buttons = st.sampled_from(["left", "right", "middle"])
notches = st.integers(-20, 20).filter(bool)
ways = st.sampled_from(["up", "right"])
one_key = keys.map(lambda names: names[:1])
said_by_computer_13 = st.one_of(
    st.builds(a.Move, points),
    st.builds(a.LeftClick, st.none() | points),
    st.builds(a.DoubleClick, st.none() | points, button=buttons),
    st.builds(a.TripleClick, st.none() | points, button=buttons),
    st.builds(a.RightClick, st.none() | points),
    st.builds(a.MiddleClick, st.none() | points),
    st.builds(a.MouseDown, buttons),
    st.builds(a.MouseUp, buttons),
    st.builds(lambda point: a.Drag([point]), points),
    st.builds(lambda count, way: a.Scroll(direction=way, magnitude=count), notches, ways),
    st.builds(a.Type, texts),
    st.builds(a.KeyPress, keys),
    st.builds(a.PressKeys, one_key),
    st.builds(a.ReleaseKeys, one_key),
    st.builds(a.Wait),
    st.builds(Finish, st.sampled_from(["done", "failed"])),
)
said_by_source = st.one_of(
    st.builds(a.Move, points),
    st.builds(a.LeftClick, st.none() | points),
    st.builds(a.DoubleClick, st.none() | points, button=buttons),
    st.builds(a.TripleClick, st.none() | points, button=buttons),
    st.builds(a.RightClick, st.none() | points),
    st.builds(a.MiddleClick, st.none() | points),
    st.builds(a.MouseDown, buttons, st.none() | points),
    st.builds(a.MouseUp, buttons, st.none() | points),
    st.builds(lambda point, button: a.Drag([point], button), points, buttons),
    st.builds(lambda at, count, way: a.Scroll(at, direction=way, magnitude=count), st.none() | points, notches, ways),
    st.builds(a.Type, texts),
    st.builds(a.KeyPress, one_key, repeat=st.integers(1, 100)),
    st.builds(a.KeyPress, keys),
    st.builds(a.PressKeys, one_key),
    st.builds(a.ReleaseKeys, one_key),
    st.builds(a.Wait, st.floats(0, 3600)),
    st.builds(a.TakeScreenshot),
)
EXTRA = st.dictionaries(st.sampled_from(["thought", "id"]), texts, max_size=1)


@given(said_by_computer_13, EXTRA)
def test_an_action_comes_back_as_it_was(step: a.Action | Finish, extra: dict[str, Any]) -> None:
    call = ProviderCall(steps=(step,), viewport=VIEWPORT, name="computer_13", extra=extra)
    assert osworld.decode(osworld.encode_call(call), VIEWPORT) == call


@given(st.lists(said_by_source, max_size=4))
def test_source_comes_back_as_it_was(steps: list[a.Action]) -> None:
    call = ProviderCall(steps=tuple(steps), viewport=VIEWPORT, name="pyautogui")
    assert osworld.decode(osworld.encode_call(call), VIEWPORT) == call


@given(points, st.lists(points, min_size=2, max_size=4), modifiers, keys)
def test_source_says_what_needs_several_calls(point: Any, path: list[Any], held: list[str], chord: list[str]) -> None:
    def back(step: a.Action) -> tuple[Any, ...]:
        call = ProviderCall(steps=(step,), viewport=VIEWPORT, name="pyautogui")
        return osworld.decode(osworld.encode_call(call), VIEWPORT).steps

    steps = back(a.LeftClick(point, modifiers=held))
    assert steps[len(held)] == a.LeftClick(point)
    assert len(steps) == 2 * len(held) + 1
    dragged = back(a.Drag(path))
    assert [getattr(step, "xy", None) or step.path[-1] for step in dragged if not isinstance(step, a.MouseUp)] == path
    assert back(a.KeyHold(chord, 2))[len(chord)] == a.Wait(2)
    for finish in (Finish("done"), Finish("failed")):
        assert back(finish) == (finish,)  # type: ignore[arg-type] # a step too


@pytest.mark.parametrize("name", ["computer_13", "pyautogui"])
@pytest.mark.parametrize(
    "step",
    [
        a.BackClick((1, 1)),
        a.ForwardClick(),
        a.Zoom((0, 0, 5, 5)),
        a.CursorPosition(),
        a.Type("x", secret=True),
        a.Type("x", paste=True),
    ],
)
def test_what_a_space_cannot_say_is_refused_by_name(name: str, step: a.Action) -> None:
    with pytest.raises(UnsupportedAction, match=step.type):
        osworld.encode_call(ProviderCall(steps=(step,), viewport=VIEWPORT, name=name))


@given(st.none() | pictures, st.none() | texts)
def test_a_result_comes_back_as_it_was(picture: Picture | None, error: str | None) -> None:
    result = Result(call=ProviderCall(steps=(), viewport=VIEWPORT), picture=picture, error=error)
    assert osworld.decode_result(osworld.encode(result), result.call) == result


def test_damaged_actions_are_read_or_refused() -> None:
    whole = [action for action, _ in SEEN]
    for seed in range(MUTATED_PAYLOADS):
        with contextlib.suppress(ActionError):
            assert isinstance(osworld.decode(damaged(whole[seed % len(whole)], seed), HALVED), ProviderCall)
    for wrong in ({"screenshot": "x"}, {"error": 5}, 5):
        with pytest.raises(ActionError):
            osworld.decode_result(wrong, ProviderCall(steps=(), viewport=VIEWPORT))


@given(st.integers(1, 3000), st.integers(1, 3000), st.floats(0.2, 1.0), st.data())
def test_a_point_lands_within_half_a_pixel_of_the_model(
    width: int, height: int, factor: float, data: st.DataObject
) -> None:
    viewport = Viewport(Size(width, height), Size(max(1, round(width * factor)), max(1, round(height * factor))))
    x, y = (data.draw(st.integers(0, side - 1)) for side in viewport.model)
    for action in (act("MOVE_TO", x=x, y=y), f"pyautogui.moveTo({x}, {y})"):
        (step,) = osworld.decode(action, viewport).steps
        assert isinstance(step, a.Move)
        for place, at, screen, model in zip(step.xy, (x, y), viewport.screen, viewport.model, strict=True):
            assert abs((place + 0.5) * model / screen - (at + 0.5)) <= 0.5
