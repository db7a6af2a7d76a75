"""Shortens a conversation that has become too long: messages of any format that `histories` reads. Pure.

Cua's messages (`deskhand.providers.cua.messages`), those of chat completions, Anthropic's, Amazon's Converse and Google's
contents.

    >>> shorter = compact(history, CompactionStrategy.TRUNCATE, limit=100_000)
    >>> shorter.messages, shorter.tokens, shorter.fits

Under every strategy:

- A history that fits stays as it is, except that SLIDING_WINDOW always applies its window.
- **Old screenshots go first**, the oldest one first, as many as are needed. A tiny picture or a text takes the place of each,
  so that the message stays valid. The newest `keep_pictures` stay. Messages go only if that is not enough.
- **A call and its output stay or go together**, and with them the thoughts right before the call; so do all calls of a message.
- Always kept: messages of the system and the developer, the first message of the user (the task), calls without an
  output, and the newest message with everything that belongs to it.
- The order of messages is kept. The history that was given is not changed.

The strategies:

- **TRUNCATE**: the oldest messages go until the rest fits. If the messages that must stay are still too long, the longest
  texts of outputs and of messages are cut in their middle.
- **SLIDING_WINDOW**: of the messages that need not stay, the newest `window` stay, or fewer if they do not fit.
- **PRIORITY_BASED**: the messages with the lowest `priority` go until the rest fits, and among equals the oldest.
- **SUMMARIZE**: the oldest messages, until the rest fits into half of the limit, are given to `summarize`. A message of the
  user with the summary takes their place. The next summary includes the previous one.

Tokens are estimated (`estimate_tokens`) unless `count` is given. No model is asked here, and the meaning of actions is not
known.
"""

from __future__ import annotations

import bisect
import dataclasses
import inspect
from typing import TYPE_CHECKING, Any, Unpack, cast

from deskhand._core.arguments import expect_several
from deskhand.errors import ActionError, shown
from deskhand.execution.compaction_options import LEFT_OUT, SUMMARY, Compacted, Compaction, Summarize, is_summary
from deskhand.execution.histories import (
    Message,
    Path,
    count_pictures,
    has_calls,
    is_instruction,
    is_reasoning,
    is_task,
    pairs_of,
    plain_of,
    saying,
    texts_of,
    with_text,
    without_pictures,
)
from deskhand.execution.types import CompactionStrategy

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from deskhand.execution.compaction_options import CompactionOptions

# A text that is cut shorter is useless.
_SHORTEST = 200


def compact(
    messages: Sequence[Message],
    strategy: CompactionStrategy = CompactionStrategy.TRUNCATE,
    *,
    limit: int,
    **options: Unpack[CompactionOptions],
) -> Compacted:
    """Shorten a history.

    Args:
        messages: The history, which is not changed.
        strategy: What is removed if removing pictures is not enough.
        limit: The highest number of tokens.
        **options: The other attributes of `Compaction`.

    Raises:
        ActionError: An option is wrong, or `summarize` is a coroutine: use `compact_async`.
    """
    plan = Compaction(strategy=strategy, limit=limit, **options)
    steps = _steps(messages, plan)
    try:
        asked = next(steps)
        text = cast("Summarize", plan.summarize)(asked)
        if not isinstance(text, str):
            if inspect.iscoroutine(text):
                text.close()
            raise ActionError(
                f"summarize must return a string, not {shown(text)}; if it is a coroutine, use compact_async"
            )
        steps.send(text)
    except StopIteration as end:
        return cast("Compacted", end.value)
    raise AssertionError("a history is summarized once")


async def compact_async(
    messages: Sequence[Message],
    strategy: CompactionStrategy = CompactionStrategy.TRUNCATE,
    *,
    limit: int,
    **options: Unpack[CompactionOptions],
) -> Compacted:
    """Like `compact`, with a `summarize` that may be a coroutine."""
    return await compacted(messages, Compaction(strategy=strategy, limit=limit, **options))


async def compacted(messages: Sequence[Message], plan: Compaction) -> Compacted:
    """Like `compact_async`, with options that are already a `Compaction`."""
    steps = _steps(messages, plan)
    try:
        asked = next(steps)
        text = cast("Summarize", plan.summarize)(asked)
        steps.send(text if isinstance(text, str) else await text)
    except StopIteration as end:
        return cast("Compacted", end.value)
    raise AssertionError("a history is summarized once")


# --- the strategies ---


class _History:
    """A history while it is shortened: its units, which of them must stay, and which are gone."""

    def __init__(self, messages: Sequence[Message], plan: Compaction) -> None:
        self.plan = plan
        messages = expect_several("compact: messages", messages)
        before = [plan.count(message) for message in messages]
        self.messages, self.pictures_removed = _without_old_pictures(messages, sum(before), plan)
        removed = self.pictures_removed
        self.costs = [plan.count(message) for message in self.messages] if removed else before
        self.units = _units(self.messages)
        self.kept = [True] * len(self.units)
        self.tokens = sum(self.costs)

    def cost(self, unit: int) -> int:
        return sum(self.costs[index] for index in self.units[unit])

    def free(self) -> list[int]:
        """The units that may be removed, the oldest first."""
        staying = _staying(self.messages)
        return [number for number, unit in enumerate(self.units) if not staying.intersection(unit)]

    def drop(self, unit: int) -> None:
        self.kept[unit] = False
        self.tokens -= self.cost(unit)

    @property
    def fits(self) -> bool:
        return self.tokens <= self.plan.limit

    def gone(self) -> list[int]:
        return sorted(index for unit, kept in zip(self.units, self.kept, strict=True) if not kept for index in unit)

    def result(self) -> Compacted:
        gone = set(self.gone())
        rest = [message for index, message in enumerate(self.messages) if index not in gone]
        return Compacted(rest, self.tokens, self.fits, self.pictures_removed, len(gone))


def _steps(messages: Sequence[Message], plan: Compaction) -> Generator[list[Any], str, Compacted]:
    """Shorten a history; yields the messages to summarize, and is sent the summary."""
    history = _History(messages, plan)
    free = history.free()
    if plan.strategy is CompactionStrategy.SLIDING_WINDOW:
        _slide(history, free)
    if history.fits:
        return history.result()
    if plan.strategy is CompactionStrategy.SUMMARIZE:
        return (yield from _summarize(history, free))
    if plan.strategy is CompactionStrategy.PRIORITY_BASED:
        weight = {unit: max(plan.priority(history.messages[index]) for index in history.units[unit]) for unit in free}
        free.sort(key=lambda unit: weight[unit])
    for unit in free:
        if history.fits:
            break
        if history.kept[unit]:
            history.drop(unit)
    shorter = history.result()
    return shorter if shorter.fits or plan.strategy is not CompactionStrategy.TRUNCATE else _cut(shorter, plan)


def _slide(history: _History, free: Sequence[int]) -> None:
    left = history.plan.window
    for unit in reversed(free):
        left -= len(history.units[unit])
        if left < 0:
            history.drop(unit)


def _summarize(history: _History, free: Sequence[int]) -> Generator[list[Any], str, Compacted]:
    plan = history.plan
    for unit in free:
        if history.tokens * 2 <= plan.limit:
            break
        history.drop(unit)
    gone = history.gone()
    if all(is_summary(plain_of(history.messages[index])) for index in gone):
        # Summarizing only a summary would gain nothing and cost a request.
        tokens = sum(history.costs)
        return Compacted(history.messages, tokens, tokens <= plan.limit, history.pictures_removed)
    bare = without_pictures([history.messages[index] for index in gone], keep=0, placeholder=LEFT_OUT)
    text = yield bare
    before = sum(_stands_for(plain_of(history.messages[index])) for index in gone)
    removed = set(gone)
    place = _place_of_summary(history.messages, removed)
    messages = [message for index, message in enumerate(history.messages[:place]) if index not in removed]
    summary = saying(SUMMARY + text, history.messages, summarized=before)
    room = plan.limit - history.tokens
    if plan.count(summary) > room:
        summary = _shortened(summary, room, plan)
    rest = [message for index, message in enumerate(history.messages) if index >= place and index not in removed]
    whole = [*messages, summary, *rest]
    tokens = history.tokens + plan.count(summary)
    return Compacted(whole, tokens, tokens <= plan.limit, history.pictures_removed, len(gone), before)


def _stands_for(plain: Mapping[str, Any]) -> int:
    number = plain.get("summarized", 1)
    return number if isinstance(number, int) else 1


def _place_of_summary(messages: Sequence[Message], removed: set[int]) -> int:
    """The index before which a summary goes: the first removed message, or earlier so as not to part a call and its output."""
    pairs = pairs_of(messages)
    place = min(removed)
    spans = [*pairs.answers, *((call, len(messages)) for call in pairs.open)]
    while within := [call for call, output in spans if call < place <= output]:
        place = min(within)
    return place


def _cut(shorter: Compacted, plan: Compaction) -> Compacted:
    """Shorten the longest texts until everything fits, or nothing can be shortened any more."""
    messages = list(shorter.messages)
    costs = [plan.count(message) for message in messages]
    order = sorted(range(len(messages)), key=lambda index: -costs[index])
    for index in order:
        over = sum(costs) - plan.limit
        if over <= 0:
            break
        messages[index] = _shortened(messages[index], costs[index] - over, plan)
        costs[index] = plan.count(messages[index])
    tokens = sum(costs)
    return dataclasses.replace(shorter, messages=messages, tokens=tokens, fits=tokens <= plan.limit)


def _shortened(message: Message, room: int, plan: Compaction) -> Message:
    """A message whose longest texts are cut so that it has at most `room` tokens, if possible."""
    plain = plain_of(message)
    if is_instruction(plain):
        return message
    for path, text in sorted(texts_of(plain), key=lambda found: -len(found[1])):
        if plan.count(message) <= room:
            break
        keep = _fitting(plain, path, text, room, plan)
        if keep < len(text):
            message = plain = with_text(plain, path, _middle_out(text, keep))
    return message


def _fitting(plain: Mapping[str, Any], path: Path, text: str, room: int, plan: Compaction) -> int:
    """How many characters of one of a message's texts may stay."""

    def fits(length: int) -> bool:
        return plan.count(with_text(plain, path, _middle_out(text, length))) <= room

    return _largest(fits, min(_SHORTEST, len(text)), len(text))


def _middle_out(text: str, keep: int) -> str:
    if len(text) <= keep:
        return text
    head = keep // 2
    return f"{text[:head]}\n[{len(text) - keep} characters are left out here]\n{text[len(text) - (keep - head) :]}"


def _largest(fits: Callable[[int], bool], least: int, most: int) -> int:
    """The largest number that fits, or the smallest if none does. Every number below one that fits must fit too."""
    found = bisect.bisect_left(range(least, most + 1), x=True, key=lambda number: not fits(number))
    return max(least, least + found - 1)


# --- units ---


def _without_old_pictures(messages: Sequence[Message], tokens: int, plan: Compaction) -> tuple[list[Any], int]:
    """The history with as many pictures as fit, and how many were removed."""
    there = count_pictures(messages)
    if tokens <= plan.limit or there <= plan.keep_pictures:
        return list(messages), 0

    def fits(keep: int) -> bool:
        return sum(map(plan.count, without_pictures(messages, keep=keep, placeholder=LEFT_OUT))) <= plan.limit

    keep = _largest(fits, plan.keep_pictures, there - 1)
    return without_pictures(messages, keep=keep, placeholder=LEFT_OUT), there - keep


def _units(messages: Sequence[Message]) -> list[list[int]]:
    """The groups of messages that stay or go together, as their numbers, in the order of their first message."""
    first = list(range(len(messages)))

    def together(index: int) -> int:
        while first[index] != index:
            index = first[index]
        return index

    for call, output in pairs_of(messages).answers:
        one, other = sorted((together(call), together(output)))
        first[other] = one
    for index, message in enumerate(messages[1:], 1):
        # Thoughts belong to the message that follows them, and so do several in a row.
        plain = plain_of(message)
        follows = is_reasoning(plain) or plain.get("role") == "assistant" or _begins(plain)
        if is_reasoning(plain_of(messages[index - 1])) and follows:
            one, other = sorted((together(index - 1), together(index)))
            first[other] = one
    units: dict[int, list[int]] = {}
    for index in range(len(messages)):
        units.setdefault(together(index), []).append(index)
    return list(units.values())


def _begins(plain: Mapping[str, Any]) -> bool:
    """Whether a message is a call, and not an output."""
    return has_calls(plain) and not str(plain.get("type")).endswith("_output")


def _staying(messages: Sequence[Message]) -> set[int]:
    """The messages that must stay. Their whole units stay with them."""
    plains = [plain_of(message) for message in messages]
    staying = {len(messages) - 1, *(index for index, plain in enumerate(plains) if is_instruction(plain))}
    task = next((index for index, plain in enumerate(plains) if is_task(plain) and not is_summary(plain)), None)
    return staying | pairs_of(messages).open | (set() if task is None else {task})
