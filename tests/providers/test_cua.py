"""Cua's computer calls, and the computer that its agents take, on a real desktop."""

from __future__ import annotations

import asyncio
import inspect
import io
import sys
import types
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import deskhand
from deskhand import ActionError, DeskhandError, OutOfBounds, Size, UnsupportedAction, Viewport
from deskhand import actions as a
from deskhand.providers import cua
from deskhand.providers.cua import messages
from deskhand.providers.payload import picture_of_base64, picture_of_url
from deskhand.providers.session import ModelSession
from deskhand.providers.values import Finish, Picture, ProviderCall, Result
from faults.scale import MUTATED_PAYLOADS
from providers.strategies import HALVED, VIEWPORT, checks, damaged, ids, keys, pictures, points, texts

if TYPE_CHECKING:
    from integration.observer import Observer


def call_of(action: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "computer_call", "call_id": "c1", "status": "completed", "action": action, **more}


# What each action does, as the observer sees it: buttons and keys that go down, and where the pointer is.
SEEN: list[tuple[dict[str, Any], list[Any]]] = [
    ({"type": "click", "button": "left", "x": 10, "y": 20}, [(1, [10, 20])]),
    ({"type": "click", "button": "right", "x": 11, "y": 20}, [(3, [11, 20])]),
    ({"type": "click", "button": "wheel", "x": 12, "y": 20}, [(2, [12, 20])]),
    ({"type": "click", "button": "middle", "x": 13, "y": 20}, [(2, [13, 20])]),
    ({"type": "click", "button": "back", "x": 14, "y": 20}, [(8, [14, 20])]),
    ({"type": "click", "button": "forward", "x": 15, "y": 20}, [(9, [15, 20])]),
    ({"type": "click", "x": 16, "y": 20}, [(1, [16, 20])]),
    ({"type": "right_click", "x": 17, "y": 20}, [(3, [17, 20])]),
    ({"type": "double_click", "x": 300, "y": 20}, [(1, [300, 20])] * 2),
    # Where the pointer is, as the schema allows: the double click before left it there, and the drag begins there.
    ({"type": "double_click"}, [(1, [300, 20])] * 2),
    ({"type": "drag", "path": [{"x": 60, "y": 50}]}, [(1, [300, 20])]),
    ({"type": "double_click", "x": 600, "y": 20, "button": "right"}, [(3, [600, 20])] * 2),
    ({"type": "click", "x": 18, "y": 60, "keys": ["CTRL"]}, ["Control_L", (1, [18, 60])]),
    ({"type": "type", "text": "hi", "x": 900, "y": 20}, [(1, [900, 20]), "h", "i"]),
    ({"type": "drag", "path": [{"x": 30, "y": 30}, {"x": 60, "y": 40}]}, [(1, [30, 30])]),
    ({"type": "drag", "path": [[30, 31], [60, 41]], "button": "right"}, [(3, [30, 31])]),
    ({"type": "drag", "start_x": 30, "start_y": 32, "end_x": 60, "end_y": 42}, [(1, [30, 32])]),
    ({"type": "keypress", "keys": ["ctrl", "a"]}, ["Control_L", "a"]),
    ({"type": "keypress", "keys": "Page_Up"}, ["Page_Up"]),
    ({"type": "move", "x": 70, "y": 80}, []),
    ({"type": "screenshot"}, []),
    ({"type": "scroll", "x": 50, "y": 50, "scroll_x": 0, "scroll_y": 200}, [(5, [50, 50])] * 2),
    ({"type": "scroll", "x": 50, "y": 50, "scroll_x": -100, "scroll_y": 0}, [(6, [50, 50])]),
    ({"type": "type", "text": "hi"}, ["h", "i"]),
    ({"type": "wait"}, []),
    ({"type": "wait", "ms": 1}, []),
    ({"type": "left_mouse_down", "x": 5, "y": 6}, [(1, [5, 6])]),
    ({"type": "left_mouse_up", "x": 7, "y": 6}, []),
]


def downs(observer: Observer) -> list[Any]:
    return [
        (event["button"], event["at"]) if event["kind"] == "button" else event["name"]
        for event in observer.events()
        if event.get("down")
    ]


@pytest.mark.parametrize(("action", "expected"), SEEN, ids=str)
def test_every_action_is_done_and_answered_with_the_screen(
    shared: deskhand.Desktop, observer: Observer, action: dict[str, Any], expected: list[Any]
) -> None:
    observer.events()
    output: Any = cua.run(shared, call_of(action))
    assert downs(observer) == expected
    assert messages.check_message(output)["type"] == "computer_call_output"  # type: ignore[typeddict-item] # checked here
    assert output["call_id"] == "c1"
    image = Image.open(io.BytesIO(picture_of_url(output["output"]["image_url"]).data))
    assert image.size == shared.size
    if "x" in action:
        assert shared.pointer == (action["x"], action["y"])


def test_a_smaller_picture_is_pointed_into(shared: deskhand.Desktop, observer: Observer) -> None:
    model_session = ModelSession(shared, size=(640, 400))
    observer.events()
    output = cua.run(model_session, call_of({"type": "click", "x": 100, "y": 50}))
    assert downs(observer) == [(1, [201, 101])], "the middle of the model's pixel"
    assert Image.open(io.BytesIO(picture_of_url(output["output"]["image_url"]).data)).size == (640, 400)
    cua.run(model_session, call_of({"type": "scroll", "x": 1, "y": 1, "scroll_x": 0, "scroll_y": -100}))
    assert [button for button, _ in downs(observer)] == [4, 4], "100 of its pixels are 200 of the screen's"
    assert cua.run(
        model_session, call_of({"type": "scroll", "x": 1, "y": 1, "scroll_x": 0, "scroll_y": 3}), scroll_unit="notches"
    )
    assert [button for button, _ in downs(observer)] == [5, 5, 5]


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (call_of({"type": "click", "x": 5000, "y": 1}), "outside"),
        (call_of({"type": "click", "x": 0.5, "y": 1}), "integer"),
        (call_of({"type": "triple_click", "x": 1, "y": 1}), "triple_click"),
        (call_of({"type": "keypress", "keys": ["nokey"]}), "unknown key"),
        (call_of({"type": "wait"}, status="failed"), "failed"),
        (call_of({"type": "double_click", "x": 1, "y": 1, "button": "both"}), "a button is one of"),
        (call_of({"type": "left_mouse_down", "x": 1, "y": 1, "button": "right"}), "another button"),
        (call_of({"type": "type", "text": "x", "press_enter": True}), "with press_enter"),
        ({**call_of({"type": "wait"}), "type": "function_call"}, "computer_call"),
        (
            call_of({"type": "click", "x": 1, "y": 1}, pending_safety_checks=[{"id": "s1", "message": "sure?"}]),
            "no policy",
        ),
    ],
)
def test_what_cannot_be_done_is_told_to_the_model_and_not_done(
    shared: deskhand.Desktop, observer: Observer, payload: dict[str, Any], reason: str
) -> None:
    observer.events()
    output = cua.run(shared, payload)
    assert (output["type"], output["call_id"]) == ("function_call_output", "c1")
    assert reason in output["output"]
    assert "acknowledged_safety_checks" not in output
    assert downs(observer) == []


def test_the_end_of_a_task_does_nothing(shared: deskhand.Desktop, observer: Observer) -> None:
    observer.events()
    assert cua.run(shared, call_of({"type": "terminate", "status": "failure"}))["type"] == "computer_call_output"
    assert observer.events() == []


# --- there and back ---

actions = st.one_of(
    st.builds(a.LeftClick, points),
    st.builds(a.RightClick, points),
    st.builds(a.MiddleClick, points),
    st.builds(a.BackClick, points),
    st.builds(a.ForwardClick, points),
    st.builds(a.DoubleClick, st.none() | points, button=st.sampled_from(a.BUTTONS)),
    st.builds(a.Move, points),
    st.builds(a.LeftMouseDown, st.none() | points),
    st.builds(a.LeftMouseUp, st.none() | points),
    st.builds(a.Drag, st.lists(points, min_size=1, max_size=4), st.sampled_from(["left", "middle", "right"])),
    st.builds(a.KeyPress, keys),
    st.builds(a.Type, texts),
    st.builds(a.TakeScreenshot),
    st.builds(a.Wait, st.none() | st.integers(0, 9000).map(lambda ms: ms / 1000)),
    st.builds(lambda xy, distance: a.Scroll(xy, distance_xy=distance), points, points),
    st.builds(Finish, st.sampled_from(["done", "failed"])),
)
EXTRAS = st.dictionaries(st.sampled_from(["cost", "seen", "tag"]), st.integers() | texts)


@given(actions, ids, st.lists(checks, max_size=2), EXTRAS, EXTRAS)
def test_a_call_comes_back_as_it_was(
    step: a.Action | Finish, call_id: str, safety: list[Any], extra: dict[str, Any], inner: dict[str, Any]
) -> None:
    payload = cua.encode_call(ProviderCall(steps=(step,), viewport=VIEWPORT, id=call_id, safety=tuple(safety)))
    payload |= extra
    payload["action"] |= inner
    call = cua.decode(payload, VIEWPORT)
    assert (call.steps, call.id, call.safety) == ((step,), call_id, tuple(safety))
    assert cua.encode_call(call) == payload, "what nobody knows is there too"


@given(pictures, st.none() | texts.filter(bool), st.lists(checks, max_size=2))
def test_a_result_comes_back_as_it_was(picture: Picture, error: str | None, acknowledged: list[Any]) -> None:
    call = ProviderCall(steps=(a.TakeScreenshot(),), viewport=VIEWPORT, id="c1")
    result = (
        Result(call=call, error=error)
        if error
        else Result(call=call, picture=picture, acknowledged=tuple(acknowledged))
    )
    assert cua.decode_result(cua.encode(result), call) == result
    with pytest.raises(ActionError, match="output of call"):
        cua.decode_result({**cua.encode(result), "call_id": "another"}, call)


@given(st.integers(1, 3000), st.integers(1, 3000), st.floats(0.3, 1.0), st.data())
def test_a_point_lands_within_half_a_pixel_of_the_model(
    width: int, height: int, factor: float, data: st.DataObject
) -> None:
    viewport = Viewport(Size(width, height), Size(max(1, round(width * factor)), max(1, round(height * factor))))
    x, y = (data.draw(st.integers(0, side - 1)) for side in viewport.model)
    step = cua.decode(call_of({"type": "move", "x": x, "y": y}), viewport).steps[0]
    assert isinstance(step, a.Move)
    for place, at, screen, model in zip(step.xy, (x, y), viewport.screen, viewport.model, strict=True):
        assert abs((place + 0.5) * model / screen - (at + 0.5)) <= 0.5


@pytest.mark.parametrize(
    "step",
    [
        a.TripleClick((1, 1)),
        a.KeyHold(["w"], 1),
        a.LeftClick(),
        a.LeftClick((1, 1), modifiers=["ctrl"]),
        a.KeyPress(["a"], repeat=2),
        a.MouseDown("right"),
        a.Zoom((0, 0, 5, 5)),
        a.Scroll(direction="up"),
    ],
)
def test_what_the_messages_cannot_say_is_refused_by_name(step: a.Action) -> None:
    with pytest.raises(UnsupportedAction, match=step.type):
        cua.encode_call(ProviderCall(steps=(step,), viewport=VIEWPORT))


def test_a_scroll_by_notches_is_said_in_either_unit() -> None:
    said = {}
    for unit in ("pixels", "notches"):
        call = ProviderCall(steps=(a.Scroll((2, 2), direction="up", magnitude=2),), viewport=HALVED)
        said[unit] = cua.encode_call(call, scroll_unit=unit)["action"]["scroll_y"]  # type: ignore[call-arg] # one of two
    assert said == {"pixels": -200, "notches": -2}


def test_damaged_calls_are_read_or_refused() -> None:
    whole = [call_of(action, pending_safety_checks=[{"id": "s"}]) for action, _ in SEEN]
    for seed in range(MUTATED_PAYLOADS):
        payload = damaged(whole[seed % len(whole)], seed)
        try:
            call = cua.decode(payload, HALVED)
        except ActionError:
            continue
        assert all(isinstance(step, a.Action | Finish) for step in call.steps)


# --- the computer that Cua's agents take ---


@runtime_checkable
class AsyncComputerHandler(Protocol):
    """The names of cua-agent 0.9.1's protocol; that package needs Python 3.12, where with_cua_agent.py runs with it."""

    async def get_environment(self) -> str: ...
    async def get_dimensions(self) -> tuple[int, int]: ...
    async def screenshot(self, text: str | None = None) -> str: ...
    async def click(self, x: int, y: int, button: str = "left") -> None: ...
    async def double_click(self, x: int, y: int) -> None: ...
    async def scroll(self, x: int, y: int, scroll_x: int, scroll_y: int) -> None: ...
    async def type(self, text: str) -> None: ...
    async def wait(self, ms: int = 1000) -> None: ...
    async def move(self, x: int, y: int) -> None: ...
    async def keypress(self, keys: list[str] | str) -> None: ...
    async def drag(self, path: list[dict[str, int]]) -> None: ...
    async def get_current_url(self) -> str: ...
    async def left_mouse_down(self, x: int | None = None, y: int | None = None) -> None: ...
    async def left_mouse_up(self, x: int | None = None, y: int | None = None) -> None: ...


def test_the_handler_has_all_of_the_protocol(shared: deskhand.Desktop) -> None:
    handler = cua.tool(shared)
    assert isinstance(handler, AsyncComputerHandler)
    for name in vars(AsyncComputerHandler):
        if not name.startswith("_"):
            assert inspect.iscoroutinefunction(getattr(handler, name)), name
    declared = cua.declare(shared)
    assert declared["type"] == "computer"
    assert isinstance(declared["computer"], AsyncComputerHandler)


@pytest.mark.parametrize(("action", "expected"), SEEN, ids=str)
def test_the_handler_does_what_cuas_agent_dispatches(
    shared: deskhand.Desktop, observer: Observer, action: dict[str, Any], expected: list[Any]
) -> None:
    handler = cua.tool(shared)
    rest = dict(action)
    method = getattr(handler, rest.pop("type"))
    inspect.signature(method).bind(**rest)
    observer.events()
    asyncio.run(method(**rest))
    assert downs(observer) == expected


def test_the_handler_tells_what_it_is(shared: deskhand.Desktop, observer: Observer) -> None:
    handler = cua.tool(shared, size=(320, 200), scroll_unit="notches")

    async def ask() -> tuple[Any, ...]:
        ended = await handler.terminate("failure")
        await handler.scroll(1, 1, scroll_x=0, scroll_y=-2)
        return await handler.get_environment(), await handler.get_dimensions(), await handler.get_current_url(), ended

    observer.events()
    assert asyncio.run(ask()) == ("linux", (320, 200), "", {"terminated": True, "status": "failure"})
    assert [button for button, _ in downs(observer)] == [4, 4]
    png = picture_of_base64(asyncio.run(handler.screenshot("a label"))).data
    assert Image.open(io.BytesIO(png)).size == (320, 200)


def test_the_handlers_errors_are_the_agents_where_there_is_one(
    shared: deskhand.Desktop, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler = cua.tool(shared)
    with pytest.raises(DeskhandError, match="outside"):
        asyncio.run(handler.click(9999, 1))
    theirs = types.ModuleType("cua_agent.types")
    theirs.ToolError = type("ToolError", (RuntimeError,), {})  # type: ignore[attr-defined] # a module made here
    monkeypatch.setitem(sys.modules, "cua_agent.types", theirs)
    with pytest.raises(theirs.ToolError, match="outside"):
        asyncio.run(handler.click(9999, 1))
    with pytest.raises(theirs.ToolError, match="unknown key"):
        asyncio.run(handler.keypress("nokey"))


def test_run_async_is_the_same(shared: deskhand.Desktop) -> None:
    output = asyncio.run(cua.run_async(shared, call_of({"type": "move", "x": 33, "y": 44})))
    assert output["type"] == "computer_call_output"
    assert shared.pointer == (33, 44)


def test_points_out_of_the_picture_are_never_moved_into_it() -> None:
    for x, y in ((-1, 0), (0, -1), (640, 0), (0, 400)):
        with pytest.raises(OutOfBounds):
            cua.decode(call_of({"type": "click", "x": x, "y": y}), HALVED)
