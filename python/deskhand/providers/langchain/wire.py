"""LangChain's messages as plain data: tool calls, and the `ToolMessage`s that answer them. Pure.

Written for langchain-core 1.7, langchain-openai 1.7 and langchain-anthropic 1.7. Tool calls of our own actions are dictionaries
with `name`, `args` and `id`. Answers are the fields of a `ToolMessage`, with LangChain's standard content blocks, which each of
its chat models converts for its provider. The computer tools of OpenAI and Anthropic travel inside an `AIMessage`:
`computer_calls` finds them, and the providers' own packages read them.

This module owns the messages' fields. It has no SDK, no desktop and no field of OpenAI's or Anthropic's actions; the schemas
are in `deskhand.providers.action_tools`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deskhand._core.arguments import expect
from deskhand._core.geometry import Point
from deskhand._core.observation import remarks
from deskhand.actions import Action, CursorPosition
from deskhand.errors import ActionError, UnsupportedAction, shown
from deskhand.providers.action_tools import decode_tool, encode_plain
from deskhand.providers.element_tools import ELEMENTS, decode_elements, encode_elements
from deskhand.providers.hand_over_tool import HAND_OVER, decode_hand_over, encode_hand_over
from deskhand.providers.mcp.wire import TOOL
from deskhand.providers.mcp.wire import tools as all_tools
from deskhand.providers.openai.wire import tells_failure
from deskhand.providers.payload import expect_list, expect_object, expect_string, picture_of_base64, the_rest
from deskhand.providers.values import HandOver, ProviderCall, ReadElements, Result, Step, expect_call, one_picture

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deskhand._core.geometry import Viewport
    from deskhand.providers.values import JSONObject

OPENAI = "openai"
ANTHROPIC = "anthropic"

_WHERE = "LangChain"
_CURSOR = re.compile(r"X=(\d{1,9}),Y=(\d{1,9})")


def functions(size: tuple[int, int], *, single: bool = False, hand_over: bool = False) -> list[dict[str, Any]]:
    """Our actions and `elements` as functions, for `bind_tools` of every chat model.

    Args:
        size: Width and height of the model's pictures, which its points are in.
        single: One function, `computer`, for all actions, instead of one for each.
        hand_over: Also the function `hand_over`, that asks a person for help.
    """
    return [
        {
            "type": "function",
            "function": {
                "name": tool["name"],
                "description": tool["description"],
                "parameters": tool["inputSchema"],
            },
        }
        for tool in all_tools(size, single=single, hand_over=hand_over)
    ]


# --- our own actions ---


def decode(payload: object, viewport: Viewport) -> ProviderCall:
    """Decode a tool call: of a tool for one action, of the one for all, of `elements`, or of `hand_over`.

    Args:
        payload: The call, as it is in `AIMessage.tool_calls`.
        viewport: The viewport of the last picture that the model was given.

    Raises:
        ActionError: There is no such tool, or an argument is missing or wrong.
        OutOfBounds: A point is outside of the picture.
    """
    call = expect_object("a tool call", payload)
    name = expect_string("a tool call's name", call.get("name"))
    arguments = dict(expect_object("a tool call's args", call.get("args")))
    number = call.get("id")
    action_name = arguments.pop("action", None) if name == TOOL else name
    step: Step
    if name == ELEMENTS:
        step = decode_elements(arguments)
    elif name == HAND_OVER:
        step = decode_hand_over(arguments)
    else:
        step = decode_tool(_WHERE, action_name, arguments, viewport)
    return ProviderCall(
        steps=(step,),
        viewport=viewport,
        id=None if number is None else expect_string("a tool call's id", number),
        name=name,
        extra=the_rest(call, "type", "name", "args", "id"),
    )


def encode_call(call: ProviderCall) -> JSONObject:
    """Encode a call as a tool call, the inverse of `decode`.

    Raises:
        UnsupportedAction: No single tool can do it.
    """
    expect_call("encode_call", call)
    step = call.steps[0] if len(call.steps) == 1 else None
    if isinstance(step, ReadElements):
        name, arguments = ELEMENTS, encode_elements(step)
    elif isinstance(step, HandOver):
        name, arguments = HAND_OVER, encode_hand_over(step)
    elif isinstance(step, Action):
        name, arguments = encode_plain(step, call.viewport)
        if call.name == TOOL:
            name, arguments = TOOL, {"action": name, **arguments}
    else:
        raise UnsupportedAction(_WHERE, "anything but one action in a call")
    extra: Mapping[str, Any] = call.extra
    return {**extra, "type": "tool_call", "name": name, "args": arguments, "id": call.id}


def encode(result: Result) -> JSONObject:
    """The fields of the `ToolMessage` that answers a call: the picture and the texts, or the error.

    An error is only a text, because Anthropic accepts no picture with it.
    """
    expect("encode: result", result, Result)
    call = result.call
    content = []
    if result.error is not None:
        content.append(_text(result.error))
    else:
        if result.cursor is not None:
            content.append(_text(f"X={result.cursor.x},Y={result.cursor.y}"))
        if result.text is not None:
            content.append(_text(result.text))
        # A question for the pointer's position should not cost a picture.
        if result.picture is not None and not (call.steps and isinstance(call.steps[-1], CursorPosition)):
            content.append(_image(result.picture.base64, result.picture.media_type))
    return _tool_message(call.id, content, name=call.name, failed=result.error is not None)


def facts(result: Result) -> dict[str, Any]:
    """Facts about a result that a program may need and its model does not get, ready for JSON."""
    known: dict[str, Any] = {"size": list(result.call.viewport.model), "denied": result.denied}
    if result.observation is not None:
        known |= {"changed": result.observation.changed, "settled": result.observation.settled}
        known |= remarks(result.observation)
    return known


def decode_result(payload: object, call: ProviderCall) -> Result:
    """Decode a `ToolMessage`, the inverse of `encode`; it does not show that the call was denied.

    Args:
        payload: Its fields, from `ToolMessage.model_dump()`.
        call: The call that it answers.

    Raises:
        ActionError: It cannot be read, or answers another call.
    """
    message = expect_object("a ToolMessage", payload)
    # The SDK always has a string here.
    if (message.get("tool_call_id") or None) != call.id:
        raise ActionError(f"this answers {shown(message.get('tool_call_id'))}, not {shown(call.id)}")
    status = message.get("status", "success")
    if status not in ("success", "error"):
        raise ActionError(f"a ToolMessage's status is success or error, not {shown(status)}")
    texts, pictures = [], []
    content = message.get("content")
    for block in [_text(content)] if isinstance(content, str) else expect_list("a ToolMessage's content", content):
        item = expect_object("a block of content", block)
        if item.get("type") == "text":
            texts.append(expect_string("text", item.get("text")))
        elif item.get("type") == "image":
            pictures.append(picture_of_base64(item.get("base64"), expect_string("mime_type", item.get("mime_type"))))
        else:
            raise ActionError(f"a ToolMessage has texts and a picture, not {shown(item.get('type'))}")
    if status == "error":
        return Result(call=call, error="\n".join(texts))
    cursor = None
    if texts and call.steps and isinstance(call.steps[-1], CursorPosition) and (found := _CURSOR.fullmatch(texts[0])):
        cursor = Point(int(found[1]), int(found[2]))
        del texts[0]
    return Result(call=call, picture=one_picture(pictures), cursor=cursor, text="\n".join(texts) if texts else None)


# --- the providers' own computer tools ---


def computer_calls(message: object, provider: str | None = None) -> tuple[str, list[dict[str, Any]]]:
    """Find the calls of OpenAI's or Anthropic's computer tool in an `AIMessage`, as the providers wrote them.

    OpenAI's `computer_call`s are in the content: unchanged, as `non_standard` blocks (`output_version="v1"`), or among the
    `tool_outputs` of `additional_kwargs` (`"v0"`). Anthropic's are tool calls, of the tool `computer` or of a toolset that the
    content names. Those whose arguments are not JSON are included, so that they are answered too.

    Args:
        message: The message, or its fields.
        provider: The provider whose calls to look for. By default `openai` if the message has a `computer_call` or names OpenAI
            as its `model_provider`, else `anthropic`.

    Returns:
        The provider, and the calls.

    Raises:
        ActionError: There is no such provider, or it is not a message.
    """
    if provider not in (None, OPENAI, ANTHROPIC):
        raise ActionError(f"computer tools are {OPENAI}'s or {ANTHROPIC}'s, not {shown(provider)}")
    fields = _Fields(message)
    found = list(_computer_calls_of_openai(fields))
    if provider is None:
        of_openai = found or fields.mapping("response_metadata").get("model_provider") == OPENAI
        provider = OPENAI if of_openai else ANTHROPIC
    return provider, found if provider == OPENAI else list(_computer_calls_of_anthropic(fields))


def status_of(message: object) -> object:
    """The status of the response behind an `AIMessage` of OpenAI's: `completed`, or the reason for a cut."""
    return _Fields(message).mapping("response_metadata").get("status")


def from_openai(items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The fields of the messages with the input items that answer computer calls (`deskhand.providers.openai.respond`).

    A `computer_call_output` travels as a `ToolMessage` with a single block that ChatOpenAI sends unchanged, with the picture's
    `detail` and the confirmed safety checks. A message becomes a `HumanMessage` after all of those, because a `ToolMessage`
    must follow its call.
    """
    outputs: list[dict[str, Any]] = []
    notes = []
    for item in items:
        if item["type"] == "computer_call_output":
            fields = _tool_message(item["call_id"], [{"type": "non_standard", "value": dict(item)}], failed=False)
            outputs.append({**fields, "additional_kwargs": {"type": "computer_call_output"}})
        else:
            if tells_failure(item):
                outputs[-1]["status"] = "error"
            notes.append({"type": "human", "content": "\n".join(block["text"] for block in item["content"])})
    return [*outputs, *notes]


def from_anthropic(
    results: Sequence[Mapping[str, Any]], calls: Sequence[Mapping[str, Any]] = ()
) -> list[dict[str, Any]]:
    """The fields of the `ToolMessage`s with `tool_result`s (`deskhand.providers.anthropic.respond`).

    Args:
        results: The answers to the calls.
        calls: The calls, for the tools' names.
    """
    names = {call["id"]: call["name"] for call in calls}
    return [
        _tool_message(
            result["tool_use_id"],
            [_standard(block) for block in result["content"]],
            name=names.get(result["tool_use_id"]),
            failed=result.get("is_error", False),
        )
        for result in results
    ]


class _Fields:
    """An `AIMessage`, or its fields, read as untrusted data."""

    def __init__(self, message: object) -> None:
        if not isinstance(message, Mapping) and not hasattr(message, "content"):
            raise ActionError(f"an AIMessage is needed, not {shown(message)}")
        self._message = message

    def get(self, name: str) -> object:
        return self._message.get(name) if isinstance(self._message, Mapping) else getattr(self._message, name, None)

    def items(self, name: str) -> list[Mapping[str, Any]]:
        value = self.get(name)
        return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list | tuple) else []

    def mapping(self, name: str) -> Mapping[str, Any]:
        value = self.get(name)
        return value if isinstance(value, Mapping) else {}


def _computer_calls_of_openai(fields: _Fields) -> Iterator[dict[str, Any]]:
    outputs = fields.mapping("additional_kwargs").get("tool_outputs")
    for block in [*fields.items("content"), *(outputs if isinstance(outputs, list) else ())]:
        value = block.get("value") if isinstance(block, Mapping) and block.get("type") == "non_standard" else block
        if isinstance(value, Mapping) and value.get("type") == "computer_call":
            # LangChain numbers the blocks while streaming; OpenAI does not have this field.
            yield the_rest(value, "index")


def _computer_calls_of_anthropic(fields: _Fields) -> Iterator[dict[str, Any]]:
    asked = [*fields.items("tool_calls"), *fields.items("invalid_tool_calls")]
    toolsets: dict[str, Any] = {}
    known = [call.get("id") for call in asked]
    for block in fields.items("content"):
        extras = block.get("extras")
        within = block.get("toolset_name") or (extras.get("toolset_name") if isinstance(extras, Mapping) else None)
        number = block.get("id")
        if block.get("type") not in ("tool_use", "tool_call") or not isinstance(number, str):
            continue
        toolsets[number] = within
        if number not in known:
            asked.append({**block, "args": block.get("input", block.get("args"))})
    for call in asked:
        number = call.get("id")
        family = toolsets.get(number) if isinstance(number, str) else None
        if (call.get("name") if family is None else family) == TOOL:
            use = {"type": "tool_use", "id": number, "name": call.get("name"), "input": call.get("args")}
            yield use if family is None else {**use, "toolset_name": family}


# --- blocks ---


def _tool_message(
    number: str | None, content: list[dict[str, Any]], *, name: str | None = None, failed: bool
) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "type": "tool",
        "content": content,
        "tool_call_id": number or "",
        "status": "error" if failed else "success",
    }
    return fields if name is None else {**fields, "name": name}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _image(data: str, media_type: str) -> dict[str, Any]:
    return {"type": "image", "base64": data, "mime_type": media_type}


def _standard(block: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a block of Anthropic's into LangChain's form."""
    if block["type"] == "image":
        return _image(block["source"]["data"], block["source"]["media_type"])
    return dict(block)
