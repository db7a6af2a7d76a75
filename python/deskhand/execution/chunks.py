"""Reads streamed chunks, in OpenAI's format or in Google's. Pure.

The formats are those of `ChatCompletionChunk` and of `GenerateContentResponse`. A chunk is recognized by its form (`choices` or
`candidates`), and may be an SDK's object or a dictionary of its JSON: Google's names are also read as its REST interface
writes them (`functionCall`). Whole answers (`ChatCompletion`) are read as one chunk.
Of several choices or candidates the first is read. This module owns the reading of both formats and of thinking tags. It
imports no SDK, and keeps nothing from one chunk to the next except text.

Thinking tags are `think`, `thinking`, `thought`, `reason` and `reasoning`, in any case. The text between one of them and its
own closing tag is thinking. Tags inside of it, and closing tags without an opening one, are ordinary text.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_TAGS = ("think", "thinking", "thought", "reason", "reasoning")
_OPENING = re.compile(rf"<({'|'.join(_TAGS)})>", re.IGNORECASE)
_LONGEST = max(map(len, _TAGS)) + len("</>")
# Finish reasons that mean that a candidate goes on, or that say nothing.
_NAMES = ("choices", "candidates", "usage", "usageMetadata", "usage_metadata")
_NOT_THE_END = ("FINISH_REASON_UNSPECIFIED", "CONTINUATION")


@dataclass(frozen=True, slots=True)
class Partial:
    """A part of an argument, as Google streams them.

    Attributes:
        path: The place of the part, such as `$.a.b[0]`.
        value: The value, or the next piece of a string that goes on.
        continues: Whether the string goes on.
    """

    path: str
    value: str | float | bool | None
    continues: bool = False


@dataclass(frozen=True, slots=True)
class CallDelta:
    """The part of a call that a chunk carries.

    Attributes:
        index: The call's number in the response; None if the format does not count calls.
        id: The call's id, if the chunk has it.
        name: The function, or the next part of its name.
        arguments: The next part of its arguments, as JSON.
        partials: The same as Google streams it.
        whole: Whether the call is complete with this part.
    """

    index: int | None = None
    id: str | None = None
    name: str = ""
    arguments: str = ""
    partials: tuple[Partial, ...] = ()
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Delta:
    """The content of a chunk.

    Attributes:
        text: The model's text, None if the chunk has none.
        thought: The model's thinking, if the format marks it; None if the chunk has none.
        calls: Parts of calls.
        finish: Why the response ends here, in the format's own word; None if it goes on.
    """

    text: str | None = None
    thought: str | None = None
    calls: tuple[CallDelta, ...] = ()
    finish: str | None = None


def read(chunk: object) -> Delta:
    """Read a chunk. One without a choice or a candidate (of usage, say), or of an unknown form, gives an empty `Delta`."""
    choices, candidates = _of(chunk, "choices"), _of(chunk, "candidates")
    if choices:
        return _read_choice(choices[0])
    if candidates:
        return _read_candidate(candidates[0])
    return Delta()


def is_of_a_format(chunk: object) -> bool:
    """Whether a chunk is in either format, even if it only reports usage."""
    return any(name in chunk if isinstance(chunk, Mapping) else hasattr(chunk, name) for name in _NAMES)


def gemini_text(chunk: object) -> str | None:
    """The text of a chunk in Google's format, without thoughts; None if it has none or is in another format."""
    candidates = _of(chunk, "candidates")
    return _read_candidate(candidates[0]).text if candidates else None


def _of(value: object, name: str) -> Any:
    """A field of an SDK's object, or of a dictionary, which may use the names of Google's JSON."""
    if not isinstance(value, Mapping):
        return getattr(value, name, None)
    found = value.get(name)
    return value.get(_camel(name)) if found is None and "_" in name else found


@functools.cache
def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def _read_choice(choice: object) -> Delta:
    said = _of(choice, "delta") or _of(choice, "message")
    texts = [text for name in ("content", "refusal") if isinstance(text := _of(said, name), str)]
    # Not part of OpenAI's format, but many servers that follow it use one of these names.
    thoughts = [text for name in ("reasoning_content", "reasoning") if isinstance(text := _of(said, name), str)]
    calls = [_read_tool_call(call) for call in _of(said, "tool_calls") or ()]
    if legacy := _of(said, "function_call"):
        calls.append(CallDelta(0, None, _of(legacy, "name") or "", _of(legacy, "arguments") or ""))
    finish = _of(choice, "finish_reason")
    return Delta(
        "".join(texts) if texts else None,
        thoughts[0] if thoughts else None,
        tuple(calls),
        str(finish) if finish else None,
    )


def _read_tool_call(call: object) -> CallDelta:
    function = _of(call, "function") or _of(call, "custom")
    arguments = _of(function, "arguments") or ""
    # Some servers send an object instead of a string.
    text = arguments if isinstance(arguments, str) else json.dumps(_plain(arguments))
    return CallDelta(_of(call, "index"), _of(call, "id") or None, _of(function, "name") or "", text)


def _read_candidate(candidate: object) -> Delta:
    parts: Iterable[object] = _of(_of(candidate, "content"), "parts") or ()
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[CallDelta] = []
    for part in parts:
        text = _of(part, "text")
        # The older SDK gives an empty string for no text.
        if isinstance(text, str) and text:
            (thoughts if _of(part, "thought") else texts).append(text)
        call = _of(part, "function_call")
        if call is not None:
            calls.append(_read_function_call(call))
    finish = _of(candidate, "finish_reason")
    name = str(getattr(finish, "name", finish)) if finish else None
    return Delta(
        "".join(texts) if texts else None,
        "".join(thoughts) if thoughts else None,
        tuple(calls),
        None if name in _NOT_THE_END else name,
    )


def _read_function_call(call: object) -> CallDelta:
    arguments = _of(call, "args")
    partials = tuple(_read_partial(partial) for partial in _of(call, "partial_args") or ())
    goes_on = bool(_of(call, "will_continue"))
    return CallDelta(
        id=_of(call, "id") or None,
        name=_of(call, "name") or "",
        arguments=json.dumps(_plain(arguments)) if arguments else "",
        partials=partials,
        whole=not goes_on,
    )


def _read_partial(partial: object) -> Partial:
    given = (_of(partial, name) for name in ("string_value", "number_value", "bool_value"))
    value = next((value for value in given if value is not None), None)
    return Partial(str(_of(partial, "json_path") or "$"), value, bool(_of(partial, "will_continue")))


def _plain(value: Any) -> Any:
    """Convert to plain lists and dictionaries: Google's older SDK has types of its own."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [_plain(item) for item in value]
    return value


class ThinkingTags:
    """Separates text from thinking, in a text that arrives in parts.

    A part may end in the middle of a tag: a possible beginning of a tag is held back until it is decided.
    """

    def __init__(self) -> None:
        """Begin a text."""
        self._kept = ""
        self._closing: str | None = None

    @property
    def inside(self) -> bool:
        """Whether the text so far ends inside a tag."""
        return self._closing is not None

    def feed(self, text: str) -> tuple[str, str]:
        """Take the next part.

        Returns:
            The part's text and its thinking, without the tags.
        """
        rest = self._kept + text
        out: tuple[list[str], list[str]] = ([], [])
        while (found := self._next_tag(rest)) is not None:
            before, name, rest = found
            out[self.inside].append(before)
            self._closing = None if self.inside else name
        keep = self._could_become_a_tag(rest)
        self._kept = rest[len(rest) - keep :]
        out[self.inside].append(rest[: len(rest) - keep])
        return "".join(out[0]), "".join(out[1])

    def end(self) -> tuple[str, str]:
        """The text that was held back, once nothing follows."""
        kept, self._kept = self._kept, ""
        return ("", kept) if self.inside else (kept, "")

    def _next_tag(self, text: str) -> tuple[str, str, str] | None:
        if self._closing is None:
            found = _OPENING.search(text)
            return None if found is None else (text[: found.start()], found[1].lower(), text[found.end() :])
        closing = f"</{self._closing}>"
        # Not by lower(): it changes the length of some letters.
        closed = re.search(re.escape(closing), text, re.IGNORECASE | re.ASCII)
        return None if closed is None else (text[: closed.start()], self._closing, text[closed.end() :])

    def _could_become_a_tag(self, text: str) -> int:
        """How many of the last characters could begin the expected tag."""
        start = text.rfind("<", max(0, len(text) - _LONGEST))
        if start < 0:
            return 0
        tags = (f"<{name}>" for name in _TAGS) if self._closing is None else (f"</{self._closing}>",)
        tail = text[start:]
        return len(tail) if any(tag.startswith(tail.lower()) for tag in tags) else 0


def split_thinking(text: str) -> tuple[str, str]:
    """Split a whole text into text and thinking, without the tags."""
    tags = ThinkingTags()
    said, thought = tags.feed(text)
    more_said, more_thought = tags.end()
    return said + more_said, thought + more_thought


def inside_thinking(text: str) -> bool:
    """Whether a text ends inside a thinking tag."""
    tags = ThinkingTags()
    tags.feed(text)
    return tags.inside
