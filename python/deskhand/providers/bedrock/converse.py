"""Converse, the interface of all of Bedrock's models: decodes `toolUse`, encodes `toolResult`, and the inverses. Pure.

This module owns the blocks; the inputs in them are Anthropic's (`deskhand.providers.anthropic.inputs`). It has no boto3 and no
desktop.

A picture is given as bytes, not as base64: botocore encodes it, and would treat base64 text as the picture itself.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from deskhand._core.arguments import expect, expect_mapping, expect_several
from deskhand.errors import ActionError, shown
from deskhand.providers.anthropic.editing import EDITORS, declare_editor, edit_of
from deskhand.providers.anthropic.inputs import read, write
from deskhand.providers.anthropic.versions import VERSIONS, rules_of
from deskhand.providers.anthropic.wire import FAMILY, SHELL, commanded, lines_of, mime_of, outcome_of, said
from deskhand.providers.element_tools import ELEMENTS, describe_elements, elements_schema
from deskhand.providers.payload import expect_list, expect_object, expect_string, the_rest
from deskhand.providers.values import (
    EditAnswer,
    EditCall,
    Picture,
    ProviderCall,
    Result,
    ShellAnswer,
    ShellCall,
    expect_call,
    one_picture,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from deskhand._core.geometry import Size, Viewport
    from deskhand.actions import Action
    from deskhand.providers.anthropic.versions import Rules
    from deskhand.providers.values import JSONObject, JSONValue, Payload

VERSION = "computer_20250124"
"""The version of the tool that is declared by default."""

PLACEHOLDER = "not_for_use"
"""The name of a tool that does nothing: Converse rejects blocks of tools if `toolConfig` lists no tool."""


def single(version: str | None) -> Rules:
    """The rules of a single tool; the toolset is not offered here.

    Raises:
        ActionError: There is no such version.
    """
    rules = rules_of(version or VERSION)
    if rules.beta is None:
        raise ActionError(
            f"Bedrock has no {rules.type}; it has {', '.join(name for name in VERSIONS if name != rules.type)}"
        )
    return rules


def flat_actions(given: Mapping[str, object], viewport: Viewport, rules: Rules) -> tuple[tuple[Action, ...], Payload]:
    """The actions of a flat input, and its unknown fields.

    Raises:
        ActionError: It is malformed, or this version does not accept it.
    """
    return read(expect_string("an action", given.get("action")), the_rest(given, "action"), viewport, rules)


def declaration(
    size: Size,
    version: str | None = None,
    *,
    shell: bool = False,
    editor: str | None = None,
    elements: bool = False,
) -> JSONObject:
    """The arguments of `converse` besides the messages, for pictures of this size.

    Raises:
        ActionError: There is no such version, of the computer or of the text editor.
    """
    rules = single(version)
    tool: JSONObject = {
        "type": rules.type,
        "name": FAMILY,
        "display_width_px": size.width,
        "display_height_px": size.height,
    }
    if "zoom" in rules.actions:
        tool["enable_zoom"] = True
    tools: list[JSONValue] = [tool]
    if shell:
        tools.append({"type": "bash_20250124", "name": SHELL})
    if editor is not None:
        tools.append(declare_editor(version=editor))
    own: JSONObject = {
        "name": PLACEHOLDER,
        "description": "Does nothing.",
        "inputSchema": {"json": {"type": "object"}},
    }
    if elements:
        description = describe_elements(by_reference=False)
        own = {"name": ELEMENTS, "description": description, "inputSchema": {"json": elements_schema()}}
    return {
        "toolConfig": {"tools": [{"toolSpec": own}]},
        "additionalModelRequestFields": {"tools": tools, "anthropic_beta": [rules.beta]},
    }


# --- calls ---


def tool_of(payload: object) -> Mapping[str, object]:
    """The content of a `toolUse` block, with or without its name around it.

    Raises:
        ActionError: It is not one.
    """
    block = expect_object("a toolUse", payload)
    return expect_object("a toolUse", block["toolUse"]) if "toolUse" in block else block


def is_computer(block: Mapping[str, object]) -> bool:
    """Whether the content of a `toolUse` is a call of the computer."""
    return block.get("name") == FAMILY


def is_shell(block: Mapping[str, object]) -> bool:
    """Whether the content of a `toolUse` is a call of the shell."""
    return block.get("name") == SHELL


def is_elements(block: Mapping[str, object]) -> bool:
    """Whether the inside of a `toolUse` is a call of the tool `elements`."""
    return block.get("name") == ELEMENTS


def is_edit(block: Mapping[str, object]) -> bool:
    """Whether the content of a `toolUse` is a call of the text editor."""
    return block.get("name") in EDITORS.values()


def block_id(block: Mapping[str, object]) -> str:
    """The id of a `toolUse`, from its content.

    Raises:
        ActionError: It has none, so it cannot be answered.
    """
    found = block.get("toolUseId")
    if not isinstance(found, str) or not found:
        raise ActionError(f"a toolUse needs a toolUseId for its answer, not {shown(found)}")
    return found


def decode(payload: object, viewport: Viewport, *, version: str | None = None) -> ProviderCall:
    """Decode a `toolUse`.

    Args:
        payload: The block, with `toolUse` around it or without.
        viewport: The viewport of the last full screenshot that the model was given.
        version: The tool that was declared; `VERSION` by default.

    Raises:
        ActionError: It is malformed, or that version does not accept it.
    """
    rules, block = single(version), tool_of(payload)
    number = block_id(block)
    if not is_computer(block):
        raise ActionError(f"a call of the computer names {FAMILY}, not {shown(block.get('name'))}")
    steps, unknown = flat_actions(expect_object("a tool's input", block.get("input")), viewport, rules)
    extra = the_rest(block, "toolUseId", "name", "input")
    if unknown:
        extra["input"] = unknown
    return ProviderCall(steps=steps, viewport=viewport, id=number, name=rules.type, extra=extra)


def encode_call(call: ProviderCall) -> Payload:
    """Encode a call as a `toolUse`, of the version that is its name.

    Raises:
        UnsupportedAction: That version cannot express it.
    """
    call = expect_call("encode_call", call).at_points("Bedrock's Converse")
    action, fields = write(call.steps, call.viewport, single(call.name))
    extra: dict[str, Any] = dict(call.extra)
    given = {**extra.pop("input", {}), "action": action, **fields}
    number = {} if call.id is None else {"toolUseId": call.id}
    return {"toolUse": {**extra, **number, "name": FAMILY, "input": given}}


# --- results ---


def image_of(picture: Picture) -> Payload:
    """A picture in the form of Bedrock's interfaces."""
    return {"format": mime_of(picture.media_type).removeprefix("image/"), "source": {"bytes": picture.data}}


def picture_of(payload: object) -> Picture:
    """The inverse of `image_of`.

    Raises:
        ActionError: It is not a picture, or is in base64.
    """
    image = expect_object("a picture", payload)
    data = expect_object("a picture's source", image.get("source")).get("bytes")
    if not isinstance(data, bytes) or not data:
        raise ActionError(f"a picture's bytes are bytes, and not base64 text or nothing: {shown(type(data).__name__)}")
    return Picture(data, mime_of("image/" + expect_string("a picture's format", image.get("format"))))


def encode(result: Result) -> Payload:
    """The `toolResult` of a call: for an error only text, otherwise the texts and the picture."""
    expect("encode: result", result, Result)
    if result.error is not None:
        return _tool_result(result.call.id, [{"text": result.error}], "error")
    content: list[dict[str, Any]] = [{"text": text} for text in said(result)]
    if result.picture is not None:
        content.append({"image": image_of(result.picture)})
    return _tool_result(result.call.id, content, "success")


def encode_elements(result: Result) -> Payload:
    """The `toolResult` of a call of `elements`."""
    failed = result.error is not None
    text = result.error if result.error is not None else result.text or ""
    return _tool_result(result.call.id, [{"text": text}], "error" if failed else "success")


def _tool_result(number: str | None, content: list[dict[str, Any]], status: str) -> dict[str, Any]:
    return {"toolResult": {"toolUseId": number, "content": content, "status": status}}


def decode_result(payload: object, call: ProviderCall) -> Result:
    """Decode the `toolResult` of a call; it does not show that the call was denied.

    Raises:
        ActionError: It is malformed, or answers another call.
    """
    block = expect_object("a toolResult", expect_object("a toolResult", payload).get("toolResult"))
    if block.get("toolUseId") != call.id:
        raise ActionError(f"this is the result of {shown(block.get('toolUseId'))}, not of {shown(call.id)}")
    texts: list[str] = []
    pictures: list[Picture] = []
    for each in expect_list("a result's content", block.get("content")):
        part = expect_object("a block of a result", each)
        if list(part) == ["text"]:
            texts.append(expect_string("a text", part["text"]))
        elif list(part) == ["image"]:
            pictures.append(picture_of(part["image"]))
        else:
            raise ActionError(f"a block of a result is one text or one image, not {shown(sorted(part))}")
    match block.get("status"):
        case "error":
            return Result(call=call, error="\n".join(texts))
        case "success" | None:
            return outcome_of(call, texts, one_picture(pictures))
        case other:
            raise ActionError(f"a status is success or error, not {shown(other)}")


# --- the shell ---


def decode_shell(payload: object) -> ShellCall:
    """Decode a `toolUse` of `bash_20250124`.

    Raises:
        ActionError: It is malformed or empty.
    """
    block = tool_of(payload)
    if not is_shell(block):
        raise ActionError(f"a call of the shell names {SHELL}, not {shown(block.get('name'))}")
    return commanded(block.get("input"), id=block_id(block), extra=the_rest(block, "toolUseId", "name", "input"))


def encode_shell(answer: ShellAnswer) -> Payload:
    """The `toolResult` of a call of the shell."""
    text, failed = lines_of(answer)
    return _tool_result(answer.call.id, [{"text": text}], "error" if failed else "success")


# --- the text editor ---


def decode_editor(payload: object) -> EditCall:
    """Decode a `toolUse` of the text editor.

    Raises:
        ActionError: It is malformed.
        UnsupportedAction: The tool has no such command.
    """
    block = tool_of(payload)
    if not is_edit(block):
        raise ActionError(f"a call of the text editor names it, not {shown(block.get('name'))}")
    extra = the_rest(block, "toolUseId", "name", "input")
    return edit_of(
        block.get("input"), id=block_id(block), name=expect_string("a tool's name", block["name"]), extra=extra
    )


def encode_editor(answer: EditAnswer) -> Payload:
    """The `toolResult` of a call of the text editor."""
    expect("encode_edit: answer", answer, EditAnswer)
    return _tool_result(answer.id, [{"text": answer.text}], "error" if answer.failed else "success")


# --- streams ---


def message_of(events: Iterable[Mapping[str, object]]) -> Payload:
    """Assemble the message from the events of `converse_stream`, for the conversation and for `run`.

    Reasoning is left out, because it may only be sent back unchanged.

    Raises:
        ActionError: The pieces make no message, for example because the answer was cut off in the middle of a call.
    """
    blocks: dict[object, dict[str, Any]] = {}
    inputs: dict[object, str] = {}
    role = "assistant"
    for event in expect_several("message_of: events", events):
        expect_mapping("each of events", event)
        if "messageStart" in event:
            role = event["messageStart"].get("role", role)
        elif "contentBlockStart" in event:
            start = event["contentBlockStart"]
            if "toolUse" in start.get("start", {}):
                blocks[start["contentBlockIndex"]] = {"toolUse": dict(start["start"]["toolUse"])}
                inputs[start["contentBlockIndex"]] = ""
        elif "contentBlockDelta" in event:
            index, delta = event["contentBlockDelta"]["contentBlockIndex"], event["contentBlockDelta"]["delta"]
            if "text" in delta:
                blocks.setdefault(index, {"text": ""})["text"] += delta["text"]
            elif "toolUse" in delta:
                if index not in inputs:
                    raise ActionError(f"a part of a toolUse came without its beginning, in block {shown(index)}")
                inputs[index] += delta["toolUse"]["input"]
    for index, text in inputs.items():
        try:
            blocks[index]["toolUse"]["input"] = json.loads(text or "{}")
        except ValueError:
            raise ActionError(f"the input of a toolUse is not JSON: {shown(text)}") from None
    return {"role": role, "content": [blocks[index] for index in sorted(blocks, key=str)]}
