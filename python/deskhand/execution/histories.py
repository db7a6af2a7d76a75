"""Reads messages of a history, in each format that models are asked with: calls, outputs, pictures, texts. Pure.

The formats are Cua's messages and the items of OpenAI's Responses (`type`, `call_id`), chat completions (`tool_calls`, the
role `tool`), Anthropic's (`tool_use`, `tool_result`), Bedrock's Converse (`toolUse`, `toolResult`) and Google's contents
(`parts`), as dictionaries or as an SDK's objects. Unknown parts of a message are kept. What is removed from a history is
decided elsewhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from deskhand.providers.cua.messages import AgentMessage
from deskhand.providers.payload import expect_object

Message: TypeAlias = AgentMessage | Mapping[str, object]
"""A message in any of the formats."""

_Key: TypeAlias = tuple[str, object]
Path: TypeAlias = tuple[str | int, ...]
"""A place in a message: names and numbers, from the outside in."""

LEFT_OUT_TEXT = "[a picture was left out here]"
"""The text in a picture's place, in formats without room for a note beside a picture."""

# The fields that hold the contents of a message, or of another content.
_WITHIN = ("content", "output", "parts", "toolResult", "function_response", "functionResponse")


def plain_of(message: object) -> Mapping[str, Any]:
    """A message as a dictionary; an SDK's object is dumped.

    Raises:
        ActionError: The message is neither.
    """
    dump = getattr(message, "model_dump", None)
    return expect_object("a message", dump(exclude_none=True) if callable(dump) else message)


# --- calls and outputs ---


@dataclass(frozen=True, slots=True)
class Pairs:
    """Which messages of a history belong together, by their numbers.

    Attributes:
        answers: Pairs of a message with a call and a message with its output.
        open: The messages with a call that has no output yet; failed calls need none.
    """

    answers: list[tuple[int, int]]
    open: set[int]


def pairs_of(messages: Sequence[Message]) -> Pairs:
    """The calls of a history, and their outputs."""
    answers: list[tuple[int, int]] = []
    # Google's calls may have no id: the outputs of a function then follow the order of its calls.
    waiting: dict[_Key, list[tuple[int, bool]]] = defaultdict(list)
    for index, message in enumerate(messages):
        plain = plain_of(message)
        for keys in _outputs(plain):
            key = next((key for key in keys if _is_id(key[1]) and waiting[key]), None)
            if key is not None:
                answers.append((waiting[key].pop(0)[0], index))
        needed = plain.get("status") != "failed"
        for key in filter(lambda key: _is_id(key[1]), _calls(plain)):
            waiting[key].append((index, needed))
    return Pairs(answers, {index for left in waiting.values() for index, needed in left if needed})


def _is_id(value: object) -> bool:
    # An id may be any value, even an unhashable one.
    return isinstance(value, str | int)


def has_calls(plain: Mapping[str, Any]) -> bool:
    """Whether a message has a call or an output."""
    return any(True for _ in _calls(plain)) or any(True for _ in _outputs(plain))


def _calls(plain: Mapping[str, Any]) -> Iterator[_Key]:
    kind = plain.get("type")
    if isinstance(kind, str) and kind.endswith("_call") and plain.get("call_id") is not None:
        yield kind, plain["call_id"]
    for call in _mappings(plain.get("tool_calls")):
        yield "tool", call.get("id")
    if isinstance(plain.get("function_call"), Mapping) and plain.get("role") == "assistant":
        yield "function", plain["function_call"].get("name")
    for block in _blocks(plain):
        if block.get("type") == "tool_use":
            yield "tool_use", block.get("id")
        elif isinstance(block.get("toolUse"), Mapping):
            yield "toolUse", block["toolUse"].get("toolUseId")
        elif (google := _either(block, "functionCall", "function_call")) is not None:
            yield "google", google.get("id") or google.get("name")


def _outputs(plain: Mapping[str, Any]) -> Iterator[tuple[_Key, ...]]:
    """For each output, the keys of calls that it may answer, the likeliest first."""
    kind = plain.get("type")
    if isinstance(kind, str) and kind.endswith("_call_output"):
        call_id = plain.get("call_id", plain.get("id"))
        answered = kind.removesuffix("_output")
        # Cua puts the error of a computer's call into a function's output.
        failed = (("computer_call", call_id),) if answered == "function_call" else ()
        yield (answered, call_id), *failed
    if plain.get("role") == "tool":
        yield (("tool", plain.get("tool_call_id")),)
    if plain.get("role") == "function":
        yield (("function", plain.get("name")),)
    for block in _blocks(plain):
        if block.get("type") == "tool_result":
            yield (("tool_use", block.get("tool_use_id")),)
        elif isinstance(block.get("toolResult"), Mapping):
            yield (("toolUse", block["toolResult"].get("toolUseId")),)
        elif (response := _either(block, "functionResponse", "function_response")) is not None:
            yield ("google", response.get("id")), ("google", response.get("name"))


def _mappings(items: object) -> list[Mapping[str, Any]]:
    return [item for item in items if isinstance(item, Mapping)] if isinstance(items, list | tuple) else []


def _blocks(plain: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*_mappings(plain.get("content")), *_mappings(plain.get("parts"))]


def _either(block: Mapping[str, Any], *names: str) -> Mapping[str, Any] | None:
    return next((block[name] for name in names if isinstance(block.get(name), Mapping)), None)


# --- roles ---


def is_instruction(plain: Mapping[str, Any]) -> bool:
    """Whether a message comes from the system or the developer."""
    return plain.get("type", "message") == "message" and plain.get("role") in ("system", "developer")


def is_task(plain: Mapping[str, Any]) -> bool:
    """Whether a message comes from the user and is not the output of a call."""
    return plain.get("type", "message") == "message" and plain.get("role") == "user" and not has_calls(plain)


def is_reasoning(plain: Mapping[str, Any]) -> bool:
    """Whether a message is only thinking, which belongs to the message that follows."""
    return plain.get("type") == "reasoning"


def saying(text: str, messages: Sequence[Message], **note: object) -> Message:
    """Make a user's message in the format of a history.

    Args:
        text: The text of the message.
        messages: The history.
        note: Further fields, if the format has room for them.
    """
    plains = [plain_of(message) for message in messages]
    if any("parts" in plain for plain in plains):
        return {"role": "user", "parts": [{"text": text}]}
    if any("toolUse" in block or "toolResult" in block for plain in plains for block in _blocks(plain)):
        return {"role": "user", "content": [{"text": text}]}
    if all("type" not in plain for plain in plains) or any(
        has_calls(plain) and "type" not in plain for plain in plains
    ):
        return {"role": "user", "content": text}
    return {"type": "message", "role": "user", "content": text, **note}


# --- pictures ---


def is_picture(content: object) -> bool:
    """Whether a content is a picture with its data in the message."""
    if not isinstance(content, Mapping) or "omitted_bytes" in content:
        return False
    url = content.get("image_url")
    if isinstance(url, Mapping):
        url = url.get("url")
    if isinstance(url, str):
        return url.startswith("data:")
    return _data_of(content) is not None


def _data_of(content: Mapping[str, Any]) -> object:
    """The bytes, or the base64, of a picture of Anthropic's, Amazon's or Google's."""
    for place in (content.get("source") if content.get("type") == "image" else None, _source(content.get("image"))):
        if isinstance(place, Mapping) and (data := place.get("data", place.get("bytes"))) is not None:
            return data
    blob = _either(content, "inline_data", "inlineData")
    return None if blob is None else blob.get("data")


def _source(image: object) -> object:
    return image.get("source") if isinstance(image, Mapping) else None


def count_pictures(messages: Sequence[Message]) -> int:
    """How many pictures are in a history."""
    return sum(_count(plain_of(message)) for message in messages)


def _count(value: object) -> int:
    if is_picture(value):
        return 1
    if isinstance(value, Mapping):
        return sum(_count(value[name]) for name in _WITHIN if name in value)
    return sum(map(_count, value)) if isinstance(value, list | tuple) else 0


def without_pictures(messages: Sequence[Message], *, keep: int, placeholder: str) -> list[Message]:
    """A copy of a history without pictures, except for the newest.

    Args:
        messages: The history; it and its messages are not changed.
        keep: How many of the newest pictures stay.
        placeholder: A data URL that takes a picture's place in Cua's messages; in other formats a text does.
    """
    left = [keep]
    copies: list[Message] = []
    for message in reversed(messages):
        plain = plain_of(message)
        bare = _bare(plain, left, placeholder)
        copies.append(message if bare is plain else bare)
    return copies[::-1]


def _bare(value: Any, left: list[int], placeholder: str) -> Any:
    """A copy without its pictures, the last of them first; the same object if nothing changes."""
    if is_picture(value):
        if left[0] > 0:
            left[0] -= 1
            return value
        return _note_for(value, placeholder)
    if isinstance(value, Mapping):
        changed = {
            name: bare
            for name in reversed(_WITHIN)
            if name in value and (bare := _bare(value[name], left, placeholder)) is not value[name]
        }
        for name in {"function_response", "functionResponse"} & changed.keys():
            # A part of Google's function responses is a picture, never a text.
            parts = [part for part in _mappings(changed[name].get("parts")) if "text" not in part]
            changed[name] = {**changed[name], "parts": parts}
        return {**value, **changed} if changed else value
    if isinstance(value, list | tuple):
        items = [_bare(item, left, placeholder) for item in reversed(value)][::-1]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return value


def _note_for(content: Mapping[str, Any], placeholder: str) -> dict[str, Any]:
    if isinstance(content.get("image_url"), str):
        return {**content, "image_url": placeholder, "omitted_bytes": len(content["image_url"])}
    return {"type": "text", "text": LEFT_OUT_TEXT} if "type" in content else {"text": LEFT_OUT_TEXT}


# --- texts ---


def texts_of(plain: Mapping[str, Any]) -> list[tuple[Path, str]]:
    """The texts of a message that may be cut, each with its place: text and outputs, but not calls."""
    if is_reasoning(plain):
        return []
    return list(_texts(plain, ()))


def _texts(value: object, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, Mapping):
        for name in (*_WITHIN, "text", "response", "error", "result"):
            if name in value:
                yield from _texts(value[name], (*path, name))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _texts(item, (*path, index))
    elif isinstance(value, str):
        yield path, value


def with_text(value: Any, path: Path, text: str) -> Any:
    """A copy of a message with the text at one place replaced."""
    if not path:
        return text
    step, *rest = path
    if isinstance(step, int):
        return [with_text(item, tuple(rest), text) if at == step else item for at, item in enumerate(value)]
    return {**value, step: with_text(value[step], tuple(rest), text)}
