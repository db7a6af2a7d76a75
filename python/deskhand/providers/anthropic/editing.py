"""Anthropic's text editor: its versions, inputs and answers, which Amazon Bedrock's interfaces carry too. Pure.

This module owns the names and fields. It has no desktop, and `deskhand.providers.editors` edits the files.

Up to 2025-01 the tool is called `str_replace_editor` and can `undo_edit`; from then on it is `str_replace_based_edit_tool`
and cannot. The text of an `insert` is `new_str` or, in the newest models, `insert_text`: every version accepts both. As for
the computer, a field is refused if only other commands take it, and unknown fields are returned.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from deskhand._core.arguments import expect
from deskhand.errors import ActionError, UnsupportedAction, shown
from deskhand.providers.anthropic.wire import block_id
from deskhand.providers.payload import expect_int, expect_list, expect_object, expect_string, the_rest
from deskhand.providers.values import EditAnswer, EditCall

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deskhand.providers.values import JSONObject

WITH_UNDO, WITHOUT_UNDO = "str_replace_editor", "str_replace_based_edit_tool"
EDITORS: Mapping[str, str] = MappingProxyType(
    {
        "text_editor_20241022": WITH_UNDO,
        "text_editor_20250124": WITH_UNDO,
        "text_editor_20250429": WITHOUT_UNDO,
        "text_editor_20250728": WITHOUT_UNDO,
    }
)
"""The versions, and the tool's name in each."""

LATEST_EDITOR = "text_editor_20250728"
"""The newest version, and the only one that declares `max_characters` to the model."""

# The fields of each command; those that end in ? may be missing.
_FIELDS = {
    "view": "view_range?",
    "create": "file_text",
    "str_replace": "old_str new_str?",
    "insert": "insert_line insert_text? new_str?",
    "undo_edit": "",
}
_ALL = frozenset(name.rstrip("?") for fields in _FIELDS.values() for name in fields.split())

_LINE = {"type": "integer", "minimum": 0}
SCHEMA: Mapping[str, Any] = MappingProxyType(
    {
        "type": "object",
        "properties": {
            "command": {"type": "string", "enum": list(_FIELDS), "description": "What to do."},
            "path": {"type": "string", "description": "The absolute path of the file, or of a directory to view."},
            "view_range": {
                "type": "array",
                "items": {"type": "integer"},
                "description": "view: the first and the last line of a file, counted from 1; the last is -1 for the end.",
            },
            "file_text": {"type": "string", "description": "create: all of the new file."},
            "old_str": {
                "type": "string",
                "description": "str_replace: the text to replace, exactly as it is in the file, once.",
            },
            "new_str": {"type": "string", "description": "str_replace: what replaces it; nothing if left out."},
            "insert_line": {**_LINE, "description": "insert: the line after which to insert, 0 for the beginning."},
            "insert_text": {"type": "string", "description": "insert: the lines to insert."},
        },
        "required": ["command", "path"],
        "additionalProperties": False,
    }
)
"""The inputs as a JSON schema, for models that do not know the tool; Anthropic's do."""


def name_of(version: str) -> str:
    """The tool's name in a version.

    Raises:
        ActionError: There is no such version.
    """
    if not isinstance(version, str) or version not in EDITORS:
        raise ActionError(f"the versions of the text editor are {', '.join(EDITORS)}, not {shown(version)}")
    return EDITORS[version]


def declare_editor(*, version: str = LATEST_EDITOR, max_characters: int | None = None) -> JSONObject:
    """The tool, as a request lists it.

    Args:
        version: The version.
        max_characters: How much of a file is shown at once; declared to the model if its version allows that.

    Raises:
        ActionError: There is no such version.
    """
    declared: dict[str, Any] = {"type": version, "name": name_of(version)}
    if max_characters is not None and version == LATEST_EDITOR:
        declared["max_characters"] = max_characters
    return declared


def is_edit(block: Mapping[str, Any]) -> bool:
    """Whether a block of a message is a call of the text editor, of any version."""
    return (
        block.get("type") == "tool_use" and block.get("toolset_name") is None and block.get("name") in EDITORS.values()
    )


def decode_editor(payload: object) -> EditCall:
    """Decode a `tool_use` of the text editor.

    Raises:
        ActionError: It is malformed.
        UnsupportedAction: The tool has no such command.
    """
    block = expect_object("a tool_use", payload)
    if not is_edit(block):
        raise ActionError(f"a call of the text editor is a tool_use of {WITHOUT_UNDO}, not {shown(block.get('name'))}")
    extra = the_rest(block, "type", "id", "name", "input")
    return edit_of(
        block.get("input"), id=block_id(block), name=expect_string("a tool's name", block["name"]), extra=extra
    )


def edit_of(input: object, *, name: str, id: str | None, extra: dict[str, Any]) -> EditCall:
    """Decode the editor's input.

    Args:
        input: The input; its unknown fields are kept in the call.
        name: The tool's name; `WITHOUT_UNDO` has no `undo_edit`.
        id: The call's id.
        extra: Unknown fields of the block around the input.

    Raises:
        ActionError: It is malformed.
        UnsupportedAction: The tool of that name has no such command.
    """
    given = {key: value for key, value in expect_object("the editor's input", input).items() if value is not None}
    command = expect_string("a command", given.get("command"))
    known = [each for each in _FIELDS if each != "undo_edit" or name != WITHOUT_UNDO]
    if command not in known:
        raise UnsupportedAction(name, command, f"use one of {', '.join(known)}")
    fields = _FIELDS[command].split()
    _check_fields(command, given, fields)
    if unknown := the_rest(given, "command", "path", *_ALL):
        extra = {**extra, "input": unknown}
    if command == "insert" and ("insert_text" in given) == ("new_str" in given):
        raise ActionError("insert: give insert_text, and no other text")
    texts = [name for name in ("file_text", "insert_text", "new_str") if name in given]
    return EditCall(
        command=command,
        path=expect_string("a path", given.get("path")),
        id=id,
        name=name,
        text=expect_string(texts[0], given[texts[0]]) if texts else "",
        old=expect_string("old_str", given["old_str"]) if "old_str" in given else None,
        line=expect_int("insert_line", given["insert_line"]) if "insert_line" in given else None,
        lines=_range(given["view_range"]) if "view_range" in given else None,
        extra=extra,
    )


def _check_fields(command: str, given: Mapping[str, Any], fields: list[str]) -> None:
    takes = {name.rstrip("?") for name in fields}
    missing = [name for name in ("path", *fields) if not name.endswith("?") and name not in given]
    if missing:
        raise ActionError(f"{command}: {', '.join(missing)} missing")
    others = sorted(given.keys() & (_ALL - takes))
    if others:
        raise ActionError(f"{command} takes no {', '.join(others)}")


def _range(value: object) -> tuple[int, int]:
    numbers = [expect_int("view_range", number) for number in expect_list("view_range", value)]
    if len(numbers) != 2:
        raise ActionError(f"view_range is [first, last], not {shown(value)}")
    return numbers[0], numbers[1]


def encode_editor(answer: EditAnswer) -> JSONObject:
    """The `tool_result` of a call of the text editor."""
    expect("encode_edit: answer", answer, EditAnswer)
    block: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": answer.id,
        "content": [{"type": "text", "text": answer.text}],
    }
    return {**block, "is_error": True} if answer.failed else block
