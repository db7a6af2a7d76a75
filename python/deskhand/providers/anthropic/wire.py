"""Anthropic's blocks: `tool_use` as a call, a result as `tool_result`, and both back. Pure.

This module owns the blocks around the inputs (`deskhand.providers.anthropic.inputs`). It has no SDK and no desktop.

A call's `name` is the version of its tool. A member of the toolset is recognized by its `toolset_name`; the block of a flat
input does not name the single tool that it is for.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from deskhand._core.arguments import expect, expect_text
from deskhand._core.geometry import Point
from deskhand._core.sizes import MODELS, Fit
from deskhand.actions import CursorPosition, TakeScreenshot, Zoom
from deskhand.errors import ActionError, shown
from deskhand.providers.anthropic.inputs import described, read, write
from deskhand.providers.anthropic.versions import LATEST, TOOLSET, rules_of
from deskhand.providers.outcomes import notes_on, tool_failed
from deskhand.providers.payload import (
    expect_list,
    expect_object,
    expect_string,
    picture_of_base64,
    refuse_more_of_a_command,
    the_rest,
)
from deskhand.providers.values import (
    Picture,
    ProviderCall,
    Result,
    ShellAnswer,
    ShellCall,
    expect_call,
    one_picture,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deskhand._core.geometry import Viewport
    from deskhand.providers.values import JSONObject

FAMILY = "computer"
"""The name of the single tools, and the `toolset_name` of the toolset's members."""

SHELL = "bash"
"""The name of the shell."""

NOT_EXECUTED = "Not executed: an earlier computer action in this turn failed."
"""The answer to every call that follows a failed one in the same turn, word for word."""

_NO_PICTURE = "There is no picture."

MEDIA_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")

_CURSOR = re.compile(r"X=(-?\d{1,9}),Y=(-?\d{1,9})")
_MODEL = re.compile(r"claude-[a-z]+-(\d+)(?:[-.](\d{1,2}))?(?![\d])")
# A request with more than 20 pictures may have none with a longer side, and conversations soon reach that number.
_HIGH = MODELS["anthropic-high"]
_MANY_PICTURES = Fit(min(2000, _HIGH.width), min(2000, _HIGH.height), _HIGH.patch, _HIGH.patches)


def tier(model: str) -> Fit:
    """The largest size of pictures that a model accepts without scaling them down.

    Args:
        model: Its name, such as `claude-opus-4-7`, also as a part of a cloud's longer name. Claude 4.7 and newer accept larger
            ones. Their limit of 2576 pixels a side is lowered to 2000, the limit for requests with more than 20 pictures.
    """
    found = _MODEL.search(expect_text("tier: model", model))
    version = (int(found[1]), int(found[2] or 0)) if found else (0, 0)
    return _MANY_PICTURES if version >= (4, 7) else MODELS["anthropic"]


def is_computer(block: Mapping[str, Any]) -> bool:
    """Whether a block of a message is a call of the computer: a member of the toolset, or one of the single tools."""
    toolset = block.get("toolset_name")
    return block.get("type") == "tool_use" and (toolset == FAMILY or (toolset is None and block.get("name") == FAMILY))


def is_shell(block: Mapping[str, Any]) -> bool:
    """Whether a block of a message is a call of the shell."""
    return block.get("type") == "tool_use" and block.get("toolset_name") is None and block.get("name") == SHELL


def block_id(block: Mapping[str, Any]) -> str:
    """The id of a `tool_use`.

    Raises:
        ActionError: It has none, so it cannot be answered.
    """
    found = block.get("id")
    if not isinstance(found, str) or not found:
        raise ActionError(f"a tool_use needs an id for its answer, not {shown(found)}")
    return found


# --- calls ---


def decode(payload: object, viewport: Viewport, *, version: str | None = None) -> ProviderCall:
    """Decode a `tool_use`.

    Args:
        payload: The block, as a dictionary.
        viewport: The viewport of the last full screenshot that the model was given.
        version: The tool that was declared. By default a member of the toolset is recognized, and a flat input counts as one
            for `computer_20251124`.

    Raises:
        ActionError: It is malformed, or that version does not accept it.
    """
    block = expect_object("a tool_use", payload)
    if block.get("type") != "tool_use":
        raise ActionError(f"a call is of type tool_use, not {shown(block.get('type'))}")
    number, name = block_id(block), expect_string("a tool's name", block.get("name"))
    given = expect_object("a tool's input", block.get("input"))
    toolset = block.get("toolset_name")
    if toolset not in (None, FAMILY):
        raise ActionError(f"this is the toolset {FAMILY}, not {shown(toolset)}")
    if toolset is None:
        rules = rules_of(version or LATEST)
        if name != FAMILY or rules.type == TOOLSET:
            raise ActionError(f"{shown(name)} is not a call of {rules.type}")
        name, given = expect_string("an action", given.get("action")), the_rest(given, "action")
    else:
        rules = rules_of(TOOLSET)
    steps, unknown = read(name, given, viewport, rules)
    extra = the_rest(block, "type", "id", "name", "input", "toolset_name")
    if unknown:
        extra["input"] = unknown
    return ProviderCall(steps=steps, viewport=viewport, id=number, name=rules.type, extra=extra)


def encode_call(call: ProviderCall) -> JSONObject:
    """Encode a call as a `tool_use`, of the version that is its name, or of the toolset.

    Raises:
        UnsupportedAction: That version cannot express it.
    """
    call = expect_call("encode_call", call).at_points("Anthropic's computer tool")
    rules = rules_of(call.name)
    name, fields = write(call.steps, call.viewport, rules)
    extra: dict[str, Any] = dict(call.extra)
    fields = {**extra.pop("input", {}), **fields}
    block: dict[str, Any] = {"type": "tool_use"}
    if call.id is not None:
        block["id"] = call.id
    if rules.type == TOOLSET:
        return {**extra, **block, "name": name, "toolset_name": FAMILY, "input": fields}
    return {**extra, **block, "name": FAMILY, "input": {"action": name, **fields}}


def asks_to_see(call: ProviderCall) -> bool:
    """Whether a call must be answered with a picture."""
    return bool(call.steps) and isinstance(call.steps[-1], TakeScreenshot | Zoom)


# --- results ---


def said(result: Result) -> list[str]:
    """The texts of a result: where the pointer is, or that all was done, and any further text."""
    call = result.call
    texts: list[str] = []
    if result.cursor is not None:
        texts.append(f"X={result.cursor.x},Y={result.cursor.y}")
    elif not asks_to_see(call):
        texts.append(described(call.steps, call.viewport, rules_of(call.name)))
    elif result.picture is None and not result.text:
        texts.append(_NO_PICTURE)
    return [*texts, result.text] if result.text else texts


def outcome_of(call: ProviderCall, texts: Sequence[str], picture: Picture | None) -> Result:
    """The result with these texts; the inverse of `said`."""
    rest = list(texts)
    cursor = None
    if rest and call.steps and isinstance(call.steps[-1], CursorPosition) and (found := _CURSOR.fullmatch(rest[0])):
        cursor = Point(int(found[1]), int(found[2]))
        del rest[0]
    elif rest and rest[0] in (described(call.steps, call.viewport, rules_of(call.name)), _NO_PICTURE):
        del rest[0]
    return Result(call=call, picture=picture, cursor=cursor, text="\n".join(rest) or None)


def mime_of(media_type: object) -> str:
    """Check the type of a picture.

    Raises:
        ActionError: Pictures of this type cannot be sent.
    """
    if media_type not in MEDIA_TYPES:
        raise ActionError(f"a picture is one of {', '.join(MEDIA_TYPES)}, not {shown(media_type)}")
    return str(media_type)


def encode(result: Result) -> JSONObject:
    """The `tool_result` of a call: for an error only text, otherwise the texts and the picture."""
    expect("encode: result", result, Result)
    if result.error is not None:
        return _tool_result(result.call, [{"type": "text", "text": result.error}], is_error=True)
    content: list[dict[str, Any]] = [{"type": "text", "text": text} for text in said(result)]
    if result.picture is not None:
        content.append(_image(result.picture))
    return _tool_result(result.call, content)


def encode_function(result: Result) -> dict[str, Any]:
    """The `tool_result` of a call of a function beside the computer: a text, and the picture if there is one and no error."""
    content: list[dict[str, Any]] = [{"type": "text", "text": result.error or result.text or ""}]
    answer = {"type": "tool_result", "tool_use_id": result.call.id, "content": content}
    if result.error is not None:
        return {**answer, "is_error": True}
    if result.picture is not None:
        content.append(_image(result.picture))
    return answer


def _image(picture: Picture) -> dict[str, Any]:
    source = {"type": "base64", "media_type": mime_of(picture.media_type), "data": picture.base64}
    return {"type": "image", "source": source}


def _tool_result(call: ProviderCall, content: list[dict[str, Any]], *, is_error: bool = False) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": call.id}
    if rules_of(call.name).type == TOOLSET:
        block["toolset_name"] = FAMILY
    block["content"] = content
    if is_error:
        block["is_error"] = True
    return block


def decode_result(payload: object, call: ProviderCall) -> Result:
    """Decode the `tool_result` of a call; it does not show that the call was denied.

    Raises:
        ActionError: It is malformed, or answers another call.
    """
    block = expect_object("a tool_result", payload)
    if block.get("type") != "tool_result":
        raise ActionError(f"a result is of type tool_result, not {shown(block.get('type'))}")
    if block.get("tool_use_id") != call.id:
        raise ActionError(f"this is the result of {shown(block.get('tool_use_id'))}, not of {shown(call.id)}")
    family = FAMILY if rules_of(call.name).type == TOOLSET else None
    if block.get("toolset_name") != family:
        raise ActionError(
            f"the result's toolset_name is {shown(block.get('toolset_name'))}, its call's {shown(family)}"
        )
    failed = block.get("is_error", False)
    if not isinstance(failed, bool):
        raise ActionError(f"is_error is true or false, not {shown(failed)}")
    texts, picture = _content(block.get("content", []))
    if failed:
        return Result(call=call, error="\n".join(texts))
    return outcome_of(call, texts, picture)


def _content(content: object) -> tuple[list[str], Picture | None]:
    if isinstance(content, str):
        return [content], None
    texts: list[str] = []
    pictures: list[Picture] = []
    for each in expect_list("a result's content", content):
        block = expect_object("a block of a result", each)
        if block.get("type") == "text":
            texts.append(expect_string("a text", block.get("text")))
        elif block.get("type") == "image":
            source = expect_object("a picture's source", block.get("source"))
            if source.get("type") != "base64":
                raise ActionError(f"a picture is given in base64, not as {shown(source.get('type'))}")
            pictures.append(picture_of_base64(source.get("data"), mime_of(source.get("media_type"))))
        else:
            raise ActionError(f"a result has texts and a picture, not {shown(block.get('type'))}")
    return texts, one_picture(pictures)


# --- the shell ---


def decode_shell(payload: object) -> ShellCall:
    """Decode a `tool_use` of `bash_20250124`.

    Raises:
        ActionError: It is malformed or empty.
    """
    block = expect_object("a tool_use", payload)
    if not is_shell(block):
        raise ActionError(f"a call of the shell is a tool_use of {SHELL}, not {shown(block.get('name'))}")
    return commanded(block.get("input"), id=block_id(block), extra=the_rest(block, "type", "id", "name", "input"))


def commanded(input: object, *, id: str | None, extra: dict[str, Any]) -> ShellCall:
    """Decode the shell's input: a command, a new session, or both.

    Args:
        input: The input; its unknown fields are kept in the call.
        id: The call's id.
        extra: Unknown fields of the block around the input.

    Raises:
        ActionError: It is malformed or empty.
    """
    given = expect_object("the shell's input", input)
    if unknown := the_rest(given, "command", "restart"):
        refuse_more_of_a_command(SHELL, unknown)
        extra = {**extra, "input": unknown}
    command, restart = given.get("command"), given.get("restart")
    if restart is not None and not isinstance(restart, bool):
        raise ActionError(f"restart is true or false, not {shown(restart)}")
    if command is None and not restart:
        raise ActionError("a call of the shell needs a command or restart")
    commands = () if command is None else (expect_string("a command", command),)
    return ShellCall(commands=commands, id=id, restart=bool(restart), extra=extra)


def encode_shell(answer: ShellAnswer) -> JSONObject:
    """The `tool_result` of a call of the shell: the commands' output, and how they ended unless all succeeded."""
    text, failed = lines_of(answer)
    block: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": answer.call.id,
        "content": [{"type": "text", "text": text}],
    }
    return {**block, "is_error": True} if failed else block


def lines_of(answer: ShellAnswer) -> tuple[str, bool]:
    """The text of a shell's answer for the model, never empty, and whether it is an error of the tool (`outcomes`)."""
    expect("encode_shell: answer", answer, ShellAnswer)
    lines = ["tool has been restarted."] if answer.call.restart and answer.error is None else []
    for output in answer.outputs:
        lines += [text.rstrip("\n") for text in (output.stdout, output.stderr) if text.strip("\n")]
        lines += notes_on(output)
    if answer.error is not None:
        lines.append(answer.error)
    return "\n".join(lines) or "(no output)", tool_failed(answer)
