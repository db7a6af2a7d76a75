"""Tools of the Model Context Protocol, their calls and their results, as JSON. Pure.

Names of fields are those of the protocol (`inputSchema`, `isError`), which the SDK's types of both major versions read.
The schemas are in `deskhand.providers.action_tools`; there is no connection here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deskhand._core.arguments import expect
from deskhand._core.observation import remarks
from deskhand.actions import ACTIONS, Action, CursorPosition
from deskhand.errors import ActionError, UnsupportedAction, shown
from deskhand.providers.action_tools import decode_tool, describe, encode_plain, is_read_only, schema, whole_schema
from deskhand.providers.element_tools import (
    ELEMENTS,
    decode_elements,
    describe_elements,
    elements_schema,
    encode_elements,
)
from deskhand.providers.hand_over_tool import (
    DESCRIPTION,
    HAND_OVER,
    decode_hand_over,
    encode_hand_over,
    hand_over_schema,
)
from deskhand.providers.payload import (
    expect_list,
    expect_object,
    expect_point,
    expect_string,
    picture_of_base64,
    the_rest,
)
from deskhand.providers.values import (
    HandOver,
    ProviderCall,
    ReadElements,
    Result,
    StartProgram,
    Step,
    expect_call,
    one_picture,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deskhand._core.geometry import Point, Viewport
    from deskhand.providers.values import JSONObject, JSONValue

TOOL = "computer"
"""The name of the one tool for all actions."""
START = "start"
"""The name of the tool that starts a program."""

_OUTPUT = {
    "type": "object",
    "properties": {
        "size": {
            "type": "array",
            "items": {"type": "integer"},
            "description": "Width and height of the screenshot in pixels.",
        },
        "changed": {"type": "boolean", "description": "Whether the screen changed."},
        "settled": {"type": "boolean", "description": "Whether it had come to rest when the screenshot was taken."},
        "may_change": {"type": "boolean", "description": "Something goes on by itself: look again later."},
        "unanswered": {
            "type": "boolean",
            "description": "A part of it may have been missed: look whether it was done.",
        },
        "pointer_moved": {
            "type": "boolean",
            "description": "Another program or a person has moved the pointer since the last action.",
        },
        "pasted": {"type": "boolean", "description": "A text went through the clipboard."},
        "clipboard_lost": {"type": "array", "items": {"type": "string"}, "description": "What the clipboard has lost."},
        "notes": {
            "type": "array",
            "items": {"type": "string"},
            "description": "What a person did who had control of the desktop meanwhile, and says about it.",
        },
        "cursor": {"type": "array", "items": {"type": "integer"}, "description": "Where the pointer is, as [x, y]."},
    },
}


_START_TOOL: dict[str, Any] = {
    "name": START,
    "description": "Start a program on the desktop and wait for its window. The screenshot shows it.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "command": {
                "type": "string",
                "minLength": 1,
                "description": 'A command line, such as "mousepad notes.txt"; no shell reads it.',
            }
        },
        "required": ["command"],
        "additionalProperties": False,
    },
    "outputSchema": _OUTPUT,
    "annotations": {"readOnlyHint": False, "openWorldHint": True},
}


_HAND_OVER_TOOL: dict[str, Any] = {
    "name": HAND_OVER,
    "description": DESCRIPTION,
    "inputSchema": hand_over_schema(),
    "outputSchema": _OUTPUT,
    "annotations": {"readOnlyHint": False, "openWorldHint": True},
}


def tools(
    size: tuple[int, int], *, single: bool = False, programs: bool = False, hand_over: bool = False
) -> list[dict[str, Any]]:
    """The tools, as a server answers `tools/list`.

    Args:
        size: Width and height of the model's pictures, which its points are in.
        single: One tool, `computer`, for all actions, instead of one for each. The tool `elements` is beside it.
        programs: Also a tool, `start`, that starts a program.
        hand_over: Also a tool, `hand_over`, that asks a person for help.
    """
    elements = {
        "name": ELEMENTS,
        "description": describe_elements(by_reference=True),
        "inputSchema": elements_schema(),
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
    }
    beside = [elements, *([_START_TOOL] if programs else ()), *([_HAND_OVER_TOOL] if hand_over else ())]
    where = f"The screenshot is {size[0]}x{size[1]} pixels."
    if single:
        text = f"Use the mouse and keyboard of a Linux desktop, and see its screen. {where}"
        return [
            {"name": TOOL, "description": text, "inputSchema": whole_schema(), "outputSchema": _OUTPUT},
            *beside,
        ]
    each = [
        {
            "name": name,
            "description": f"{describe(action)} {where}",
            "inputSchema": schema(action),
            "outputSchema": _OUTPUT,
            "annotations": {"readOnlyHint": is_read_only(action), "openWorldHint": not is_read_only(action)},
        }
        for name, action in ACTIONS.items()
    ]
    return [*each, *beside]


def decode(payload: object, viewport: Viewport) -> ProviderCall:
    """Decode the parameters of a `tools/call`: of a tool for one action, of the one for all, or of one beside them.

    Raises:
        ActionError: There is no such tool, or an argument is missing or wrong.
        OutOfBounds: A point is outside of the picture.
    """
    params = expect_object("a call", payload)
    name = expect_string("a call's name", params.get("name"))
    given = params.get("arguments")
    arguments = dict(expect_object("a call's arguments", {} if given is None else given))
    action_name = arguments.pop("action", None) if name == TOOL else name
    step: Step
    if name == ELEMENTS:
        step = decode_elements(arguments)
    elif name == HAND_OVER:
        step = decode_hand_over(arguments)
    elif name == START:
        if unknown := sorted(arguments.keys() - {"command"}):
            raise ActionError(f"{START} has no {', '.join(map(shown, unknown))}: it takes command")
        step = StartProgram(expect_string("command", arguments.get("command")))
    else:
        step = decode_tool("MCP", action_name, arguments, viewport)
    return ProviderCall(steps=(step,), viewport=viewport, name=name, extra=the_rest(params, "name", "arguments"))


def encode_call(call: ProviderCall) -> JSONObject:
    """Encode a call as the parameters of a `tools/call`, the inverse of `decode`.

    Raises:
        UnsupportedAction: No single tool can do it.
    """
    extra: Mapping[str, Any] = expect_call("encode_call", call).extra
    if len(call.steps) == 1 and isinstance(call.steps[0], ReadElements):
        return {"name": ELEMENTS, "arguments": encode_elements(call.steps[0]), **extra}
    if len(call.steps) == 1 and isinstance(call.steps[0], HandOver):
        return {"name": HAND_OVER, "arguments": encode_hand_over(call.steps[0]), **extra}
    if len(call.steps) == 1 and isinstance(call.steps[0], StartProgram):
        return {"name": START, "arguments": {"command": call.steps[0].command}, **extra}
    if len(call.steps) != 1 or not isinstance(call.steps[0], Action):
        raise UnsupportedAction("MCP", "anything but one action in a call")
    name, arguments = encode_plain(call.steps[0], call.viewport)
    if call.name == TOOL:
        return {"name": TOOL, "arguments": {"action": name, **arguments}, **extra}
    return {"name": name, "arguments": arguments, **extra}


def encode(result: Result) -> JSONObject:
    """The result of a `tools/call`: the picture and the observed facts, or the error."""
    expect("encode: result", result, Result)
    if result.error is not None:
        return {"content": [{"type": "text", "text": result.error}], "isError": True}
    content: list[JSONValue] = []
    structured: dict[str, Any] = {"size": list(result.call.viewport.model)}
    if result.observation is not None:
        structured["changed"] = result.observation.changed
        structured["settled"] = result.observation.settled
        structured |= remarks(result.observation)
    if result.cursor is not None:
        structured["cursor"] = list(result.cursor)
        content.append({"type": "text", "text": _where(result.cursor)})
    if result.text is not None:
        content.append({"type": "text", "text": result.text})
    # A question for the pointer's position should not cost a picture.
    if result.picture is not None and not isinstance(result.call.steps[-1], CursorPosition):
        content.append({"type": "image", "data": result.picture.base64, "mimeType": result.picture.media_type})
    if isinstance(result.call.steps[-1], ReadElements):
        return {"content": content, "isError": False}
    return {"content": content, "structuredContent": structured, "isError": False}


def decode_result(payload: object, call: ProviderCall) -> Result:
    """Decode a result, the inverse of `encode`; the observed facts are not read.

    Raises:
        ActionError: It cannot be read.
    """
    result = expect_object("a result", payload)
    texts, pictures = [], []
    for item in expect_list("a result's content", result.get("content")):
        block = expect_object("a block of content", item)
        if block.get("type") == "text":
            texts.append(expect_string("text", block.get("text")))
        elif block.get("type") == "image":
            pictures.append(picture_of_base64(block.get("data"), expect_string("mimeType", block.get("mimeType"))))
    if result.get("isError"):
        return Result(call=call, error="\n".join(texts))
    structured = expect_object("structuredContent", result.get("structuredContent") or {})
    cursor = None if structured.get("cursor") is None else expect_point("cursor", structured["cursor"])
    if cursor is not None and texts and texts[0] == _where(cursor):
        del texts[0]
    return Result(call=call, picture=one_picture(pictures), cursor=cursor, text="\n".join(texts) or None)


def _where(cursor: Point) -> str:
    return f"X={cursor.x},Y={cursor.y}"
