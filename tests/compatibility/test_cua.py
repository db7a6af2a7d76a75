"""Cua: the messages of its Agent SDK and what its computer actions do, as its documentation has them."""

from __future__ import annotations

import io
import json
from typing import Any, get_args

import pytest
from PIL import Image

from compatibility.declared import cua as declared
from compatibility.table import Raises, Row, World, declared_rows, each
from deskhand import ActionError
from deskhand.providers import cua
from deskhand.providers.cua import messages as m
from deskhand.providers.payload import picture_of_url
from deskhand.providers.values import Picture

URL = "data:image/png;base64,aGk="
SHOT = {"type": "computer_screenshot", "image_url": URL}

# One of each message and content, whole.
MESSAGES: dict[str, dict[str, Any]] = {
    "UserMessage": {"type": "message", "role": "user", "content": "Hi."},
    "UserMessage, the type left out": {"role": "user", "content": "Hi."},
    "UserMessage, of the system": {"type": "message", "role": "system", "content": "Be brief."},
    "UserMessage, of the developer": {"type": "message", "role": "developer", "content": "Be brief."},
    "InputContent, a text": {"role": "user", "content": [{"type": "input_text", "text": "Hi."}]},
    "InputContent, an image": {"role": "user", "content": [{"type": "input_image", "image_url": URL}]},
    "InputContent, both keys": {"role": "user", "content": [{"type": "input_text", "text": "Hi.", "image_url": None}]},
    "AssistantMessage": {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi."}]},
    "ReasoningMessage": {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
    "ComputerCallMessage": {
        "type": "computer_call",
        "call_id": "c1",
        "status": "completed",
        "action": {"type": "wait"},
    },
    "ComputerCallMessage, pending": {
        "type": "computer_call",
        "call_id": "c1",
        "status": "pending",
        "action": {"type": "wait"},
    },
    "ComputerCallMessage, failed": {
        "type": "computer_call",
        "call_id": "c1",
        "status": "failed",
        "action": {"type": "wait"},
    },
    "ComputerCallOutputMessage": {"type": "computer_call_output", "call_id": "c1", "output": SHOT},
    "ComputerResultContent, an input image": {
        "type": "computer_call_output",
        "call_id": "c1",
        "output": {**SHOT, "type": "input_image"},
    },
    "FunctionCallMessage": {
        "type": "function_call",
        "call_id": "f1",
        "status": "completed",
        "name": "add",
        "arguments": "{}",
    },
    "FunctionCallOutputMessage": {"type": "function_call_output", "call_id": "f1", "output": "3"},
}


def _without(message: dict[str, Any], field: str) -> dict[str, Any]:
    return {name: value for name, value in message.items() if name != field}


def _call(action: dict[str, Any], **more: Any) -> Any:
    return {"type": "computer_call", "call_id": "c1", "status": "completed", "action": action, **more}


HISTORY: Any = [
    m.user("Open the editor."),
    m.reasoning("A click will do."),
    m.computer_call("c1", {"type": "click", "button": "left", "x": 1, "y": 2}),
    m.computer_call_output("c1", Picture(b"one", "image/png")),
    m.function_call("f1", "add", {"a": 1}),
    m.function_call_output("f1", "3"),
    m.assistant("Done."),
]

ROWS = [
    *(
        Row(name, "is taken as it is", lambda whole=whole: m.check_message(whole) is whole)
        for name, whole in MESSAGES.items()
    ),
    *(
        Row(
            name,
            f"{field} is required",
            lambda whole=whole, field=field: m.check_message(_without(whole, field)),
            Raises(ActionError),
        )
        for name, whole in MESSAGES.items()
        for field in whole
        # Without a type a message is the user's or the assistant's, as the document has it.
        if "," not in name and field != "type" and name != "UserMessage"
    ),
    *(
        Row(
            name,
            "unknown fields are ignored",
            lambda whole=whole: m.check_message({**whole, "cost": 5}),
            {**whole, "cost": 5},
        )
        for name, whole in MESSAGES.items()
    ),
    Row(
        "FunctionCallMessage.arguments",
        "JSON of the arguments",
        lambda: json.loads(m.function_call("f", "add", {"a": 1})["arguments"]),
        {"a": 1},
    ),
    Row(
        "FunctionCallMessage.arguments",
        "and nothing else",
        lambda: m.check_message({**MESSAGES["FunctionCallMessage"], "arguments": "[1]"}),
        Raises(ActionError, "arguments"),
    ),
    Row(
        "ComputerCallMessage.status",
        "one of three",
        lambda: m.check_message({**MESSAGES["ComputerCallMessage"], "status": "done"}),
        Raises(ActionError, "status"),
    ),
    Row(
        "AgentResponse",
        "has output and usage",
        lambda: m.check_response({"output": HISTORY, "usage": {"total_tokens": 3}})["usage"],
        {"total_tokens": 3},
    ),
    Row("AgentResponse.output", "is required", lambda: m.check_response({"usage": {}}), Raises(ActionError, "output")),
    Row("AgentResponse.usage", "is required", lambda: m.check_response({"output": []}), Raises(ActionError, "usage")),
    Row(
        "Usage",
        "may have none of its fields",
        lambda: m.check_response({"output": [], "usage": {}}),
        {"output": [], "usage": {}},
    ),
    Row(
        "Usage",
        "may have more",
        lambda: m.check_response({"output": [], "usage": {"cached": 5}})["usage"],
        {"cached": 5},
    ),
    Row(
        "Usage.response_cost",
        "is US dollars, and adds up",
        lambda: m.total_usage([{"output": [], "usage": {"response_cost": 0.5}}] * 2),
        {"response_cost": 1.0},
    ),
    Row(
        "Usage.prompt_tokens",
        "is a number",
        lambda: m.check_response({"output": [], "usage": {"prompt_tokens": "5"}}),
        Raises(ActionError, "prompt_tokens"),
    ),
    Row("AgentMessage", "thoughts, actions, screenshots and text alternate", lambda: m.order_problems(HISTORY), []),
    Row("AgentMessage", "an output without a call is none of that", lambda: len(m.order_problems(HISTORY[3:4])), 1),
    Row(
        "AgentMessage",
        "large fields may be left out of what is stored",
        lambda: m.count_images(m.without_images(HISTORY)),
        0,
    ),
    Row("ComputerResultContent.image_url", "a data URL", lambda: [each.data for each in m.pictures(HISTORY)], [b"one"]),
]


@each([*declared_rows(declared), *ROWS])
def test_messages_are_as_documented(row: Row) -> None:
    row.check()


def test_every_message_is_in_the_table_above() -> None:
    assert {kind.__name__ for kind in get_args(m.AgentMessage)} <= MESSAGES.keys()


# --- what the actions do ---


def _click(button: int, x: int, y: int, times: int = 1) -> list[str]:
    return [f"+{button}@{x},{y}", f"-{button}@{x},{y}"] * times


# `@here` is where the pointer was.
DONE: list[tuple[str, dict[str, Any], list[str]]] = [
    ("ClickAction", {"type": "click", "button": "left", "x": 10, "y": 20}, _click(1, 10, 20)),
    ("ClickAction", {"type": "click", "button": "right", "x": 11, "y": 20}, _click(3, 11, 20)),
    ("ClickAction", {"type": "click", "button": "wheel", "x": 12, "y": 20}, _click(2, 12, 20)),
    ("ClickAction", {"type": "click", "button": "back", "x": 13, "y": 20}, _click(8, 13, 20)),
    ("ClickAction", {"type": "click", "button": "forward", "x": 14, "y": 20}, _click(9, 14, 20)),
    ("DoubleClickAction", {"type": "double_click", "x": 300, "y": 20}, _click(1, 300, 20, 2)),
    ("DoubleClickAction", {"type": "double_click", "button": "left", "x": 310, "y": 20}, _click(1, 310, 20, 2)),
    ("DoubleClickAction", {"type": "double_click", "button": "right", "x": 320, "y": 20}, _click(3, 320, 20, 2)),
    ("DoubleClickAction", {"type": "double_click", "button": "wheel", "x": 330, "y": 20}, _click(2, 330, 20, 2)),
    ("DoubleClickAction", {"type": "double_click", "button": "back", "x": 340, "y": 20}, _click(8, 340, 20, 2)),
    ("DoubleClickAction", {"type": "double_click", "button": "forward", "x": 350, "y": 20}, _click(9, 350, 20, 2)),
    ("DoubleClickAction", {"type": "double_click"}, ["+1@here", "-1@here"] * 2),
    ("DragAction", {"type": "drag", "path": [(30, 30), (60, 40)]}, ["+1@30,30", "-1@60,40"]),
    ("DragAction", {"type": "drag", "path": [[30, 30], [40, 90], [60, 40]]}, ["+1@30,30", "-1@60,40"]),
    ("DragAction", {"type": "drag", "button": "right", "path": [(30, 30), (60, 40)]}, ["+3@30,30", "-3@60,40"]),
    ("DragAction", {"type": "drag", "button": "wheel", "path": [(30, 30), (60, 40)]}, ["+2@30,30", "-2@60,40"]),
    ("DragAction", {"type": "drag", "button": "back", "path": [(30, 30), (60, 40)]}, ["+8@30,30", "-8@60,40"]),
    ("DragAction", {"type": "drag", "button": "forward", "path": [(30, 30), (60, 40)]}, ["+9@30,30", "-9@60,40"]),
    ("DragAction", {"type": "drag", "path": [(60, 40)]}, ["+1@here", "-1@60,40"]),
    ("KeyPressAction", {"type": "keypress", "keys": ["ctrl", "a"]}, ["+Control_L", "+a", "-a", "-Control_L"]),
    ("MoveAction", {"type": "move", "x": 70, "y": 80}, []),
    ("ScreenshotAction", {"type": "screenshot"}, []),
    ("ScrollAction", {"type": "scroll", "x": 50, "y": 50, "scroll_x": 0, "scroll_y": 200}, _click(5, 50, 50, 2)),
    ("ScrollAction", {"type": "scroll", "x": 50, "y": 50, "scroll_x": 0, "scroll_y": -100}, _click(4, 50, 50)),
    ("ScrollAction", {"type": "scroll", "x": 50, "y": 50, "scroll_x": 100, "scroll_y": 0}, _click(7, 50, 50)),
    ("ScrollAction", {"type": "scroll", "x": 50, "y": 50, "scroll_x": -100, "scroll_y": 0}, _click(6, 50, 50)),
    ("TypeAction", {"type": "type", "text": "hi"}, ["+h", "-h", "+i", "-i"]),
    ("WaitAction", {"type": "wait"}, []),
    ("LeftMouseDownAction", {"type": "left_mouse_down", "x": 5, "y": 6}, ["+1@5,6"]),
    ("LeftMouseUpAction", {"type": "left_mouse_up", "x": 7, "y": 6}, []),
]


@pytest.mark.parametrize(("name", "action", "seen"), DONE, ids=str)
def test_every_action_is_done_and_answered_with_a_screenshot(
    world: World, name: str, action: dict[str, Any], seen: list[str]
) -> None:
    assert name in declared.__dict__
    world.rest()
    output: Any = cua.run(world.desktop, _call(action))
    assert world.told() == seen
    m.check_message(output)
    assert (output["type"], output["call_id"]) == ("computer_call_output", "c1"), output
    assert output["output"]["image_url"].startswith("data:image/png;base64,")
    with Image.open(io.BytesIO(picture_of_url(output["output"]["image_url"]).data)) as image:
        assert image.size == world.desktop.size
    if "x" in action:
        assert world.desktop.pointer == (action["x"], action["y"])


def test_every_action_is_in_the_table() -> None:
    assert {kind.__name__ for kind in get_args(m.ComputerAction)} == {name for name, _, _ in DONE}


REFUSED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"type": "click", "x": 5000, "y": 1, "button": "left"}, {}),
    ({"type": "click", "button": "left"}, {}),
    ({"type": "move"}, {}),
    ({"type": "scroll", "scroll_x": 0, "scroll_y": 1}, {}),
    ({"type": "type"}, {}),
    ({"type": "keypress", "keys": []}, {}),
    ({"type": "click", "x": 1, "y": 1, "button": "thumb"}, {}),
    ({"type": "fly"}, {}),
    ({"type": "wait"}, {"status": "failed"}),
]


@pytest.mark.parametrize(("action", "more"), REFUSED, ids=str)
def test_what_is_wrong_is_told_and_not_done(world: World, action: dict[str, Any], more: dict[str, Any]) -> None:
    world.rest()
    output: Any = cua.run(world.desktop, _call(action, **more))
    assert (output["type"], output["call_id"]) == ("function_call_output", "c1")
    assert output["output"]
    assert world.told() == []


def test_unknown_fields_of_a_call_are_ignored(world: World) -> None:
    world.rest()
    output = cua.run(world.desktop, _call({"type": "move", "x": 7, "y": 8, "why": "later"}, cost=5))
    assert (output["type"], world.desktop.pointer) == ("computer_call_output", (7, 8))


def test_a_failed_call_pairs_with_the_output_that_says_so(world: World) -> None:
    call = _call({"type": "click", "x": 5000, "y": 1, "button": "left"})
    history = [m.user("Click."), call, cua.run(world.desktop, call)]
    assert m.unanswered(history) == []  # type: ignore[arg-type] # checked above
    assert m.order_problems(history) == []  # type: ignore[arg-type] # as above
