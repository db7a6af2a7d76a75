"""The settings for shortening a history, and the result."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypedDict

from deskhand._core.arguments import expect_callable, expect_integer
from deskhand.errors import ActionError
from deskhand.execution.histories import (
    Message,
    has_calls,
    is_picture,
    plain_of,
    texts_of,
)
from deskhand.execution.types import CompactionStrategy

PICTURE_TOKENS = 1500
"""The estimate for a picture: about what the providers count for a screen of 1280x800."""
LEFT_OUT = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg=="
)
"""One grey pixel: providers reject an invalid picture."""
_LETTERS_A_TOKEN = 4
_OVERHEAD = 4
_LEFT_OUT_TOKENS = 20


@dataclass(frozen=True, slots=True)
class Compacted:
    """A shortened history.

    Attributes:
        messages: The messages that are left.
        tokens: How many tokens they have.
        fits: Whether they are within the limit: the messages that must stay may be too long.
        pictures_removed: How many screenshots were removed.
        messages_removed: How many messages were removed, including those that were summarized.
        summarized: How many messages the summary stands for.
    """

    messages: list[Message]
    tokens: int
    fits: bool
    pictures_removed: int = 0
    messages_removed: int = 0
    summarized: int = 0


def estimate_tokens(message: Message) -> int:
    """Estimate the tokens of a message: a quarter of its characters, and 1500 for each picture."""
    seen = 0

    def without_urls(value: Any) -> Any:
        nonlocal seen
        if is_picture(value) and "image_url" not in value:
            seen += PICTURE_TOKENS
            return None
        if isinstance(value, Mapping):
            url = value.get("image_url")
            if isinstance(url, str | Mapping):
                seen += _LEFT_OUT_TOKENS if "omitted_bytes" in value else PICTURE_TOKENS
            return {key: without_urls(item) for key, item in value.items() if key != "image_url"}
        if isinstance(value, list | tuple):
            return [without_urls(item) for item in value]
        return value

    text = json.dumps(without_urls(plain_of(message)), ensure_ascii=False, default=repr)
    return -(-len(text) // _LETTERS_A_TOKEN) + _OVERHEAD + seen


def default_priority(message: Message) -> float:
    """Messages of the user: 3; of the agent, and summaries: 2; calls and outputs: 1; thoughts and everything else: 0."""
    plain = plain_of(message)
    if has_calls(plain):
        return 1.0
    if plain.get("type", "message") != "message":
        return 0.0
    return 2.0 if plain.get("role") in ("assistant", "model") or is_summary(plain) else 3.0


class CompactionOptions(TypedDict, total=False):
    """The attributes of a `Compaction` other than its strategy and its limit."""

    window: int
    keep_pictures: int
    priority: Callable[[Message], float]
    summarize: Summarize | None
    count: Callable[[Message], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """How to shorten histories.

    Attributes:
        strategy: What is removed if removing pictures is not enough.
        limit: The highest number of tokens of a history.
        window: How many messages SLIDING_WINDOW keeps.
        keep_pictures: How many of the newest pictures stay.
        priority: How much a message matters (higher stays longer), for PRIORITY_BASED.
        summarize: Returns a summary of messages, for SUMMARIZE.
        count: Counts a message's tokens.

    Raises:
        ActionError: A number is too small, or `summarize` is missing.
    """

    strategy: CompactionStrategy = CompactionStrategy.TRUNCATE
    limit: int
    window: int = 20
    keep_pictures: int = 1
    priority: Callable[[Message], float] = default_priority
    summarize: Summarize | None = None
    count: Callable[[Message], int] = estimate_tokens

    def __post_init__(self) -> None:
        """Validate."""
        for name, least in (("limit", 1), ("window", 1), ("keep_pictures", 0)):
            expect_integer(f"Compaction: {name}", getattr(self, name), least)
        expect_callable("Compaction: priority", self.priority)
        expect_callable("Compaction: count", self.count)
        if self.strategy is CompactionStrategy.SUMMARIZE and self.summarize is None:
            raise ActionError("the strategy SUMMARIZE needs summarize=, a function that returns a summary")


Summarize: TypeAlias = Callable[[list[Message]], str | Awaitable[str]]
"""Returns a short text that stands for messages. Their pictures have been removed."""
SUMMARY = "What happened before, in short:\n"


def is_summary(plain: Mapping[str, Any]) -> bool:
    """Whether a message is a summary of removed messages."""
    texts = texts_of(plain)
    return "summarized" in plain or (len(texts) == 1 and texts[0][1].startswith(SUMMARY))
