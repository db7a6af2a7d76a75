"""Assembles a response that arrives in chunks: text, thinking and calls. Pure.

Each response has one `Accumulator`. Each chunk becomes a `StreamChunk` that includes what came before it. The fields of
providers are known to `chunks`, and calls are carried out elsewhere.

    >>> response = Accumulator("browser")
    >>> for chunk in client.chat.completions.create(..., stream=True):
    ...     show(response.feed(chunk))
    >>> response.end()
    >>> calls = response.calls()

A call is complete when its arguments are a whole JSON object (empty arguments count as `{}`) and the response has ended, or
when the format says that the call is finished. A call that is not complete at the end is in `calls()` too, as a failed
one, so that the model gets the error. If a provider stopped the response because of its content, none of its calls is complete.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from deskhand.execution.chunks import CallDelta, Partial, ThinkingTags, read, split_thinking
from deskhand.execution.requests import failed_request, request_of, whole_arguments
from deskhand.execution.stream_events import StreamChunk, ToolCallStreamChunk
from deskhand.execution.types import new_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from deskhand.execution.types import RequestFunctionCall

# The reasons for which a response ends by itself, or because it was too long: its complete calls are valid.
_MEANT = ("stop", "tool_calls", "function_call", "length", "STOP", "MAX_TOKENS")
_STEP = re.compile(r"""\.([^.\[\]]+)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]""")
# A model writes the path, so the index may be anything: no list is longer than this.
_LONGEST_LIST = 10_000


@dataclass(slots=True)
class _Growing:
    """A call as far as it has arrived."""

    seen: ToolCallStreamChunk
    built: dict[str, Any] | None = None
    going_on: set[str] = field(default_factory=set)
    closed: bool = False


class Accumulator:
    """The parts of a response that have arrived so far.

    Attributes:
        agent_id: The agent that answers.
        finish: Why the response ended, in the provider's own word; None before its end.
        ended: Whether `end` was called.
    """

    def __init__(self, agent_id: str = "", *, reinvoked: bool = False, new_id: Callable[[], str] = new_id) -> None:
        """Begin a response.

        Args:
            agent_id: The agent that answers.
            reinvoked: Whether it answers again after calls.
            new_id: Makes an id for a call to which the provider gives none.
        """
        self.agent_id = agent_id
        self.finish: str | None = None
        self.ended: bool = False
        self._reinvoked = reinvoked
        self._new_id = new_id
        self._tags = ThinkingTags()
        self._text = ""
        self._thought = ""
        self._calls: list[_Growing] = []
        self._completed: set[int] = set()

    @property
    def content(self) -> str:
        """All text so far, without thinking."""
        return split_thinking(self._text)[0]

    @property
    def reasoning_content(self) -> str:
        """All thinking so far."""
        return self._thought

    def feed(self, chunk: object) -> StreamChunk:
        """Add the next chunk.

        Returns:
            The chunk, with everything so far. `content` includes the thinking tags; a tag that is split between two chunks
            counts in the second.
        """
        delta = read(chunk)
        for call in delta.calls:
            self._take(call)
        if delta.finish is not None:
            self.finish = delta.finish
        thought = delta.thought or ""
        if delta.text is not None:
            self._text += delta.text
            thought += self._tags.feed(delta.text)[1]
        return self._chunk_of(chunk, delta.text, thought, over=delta.finish is not None)

    def end(self) -> StreamChunk:
        """End the response: returns the text that was held back, and the calls that are complete now."""
        self.ended = True
        return self._chunk_of(None, None, self._tags.end()[1], over=True)

    def calls(self) -> list[RequestFunctionCall]:
        """The calls of the response, in order. Incomplete calls have already failed."""
        return [self._request(growing) for growing in self._calls if growing.seen.function_name]

    def _chunk_of(self, chunk: object, text: str | None, thought: str, *, over: bool) -> StreamChunk:
        self._thought += thought
        complete, growing = [], []
        for number, call in enumerate(self._calls):
            whole = (call.closed or over) and self._problem(call) is None
            call.seen.is_complete = whole
            if not whole:
                growing.append(replace(call.seen))
            elif number not in self._completed:
                self._completed.add(number)
                complete.append(replace(call.seen))
        return StreamChunk(
            chunk=chunk,
            agent_id=self.agent_id,
            content=text,
            buffered_content=self._text,
            reasoning_content=thought or None,
            buffered_reasoning_content=self._thought,
            function_calls_detected=bool(self._calls) if self._calls or over else None,
            reinvoked=self._reinvoked,
            tool_calls=complete or None,
            streaming_tool_calls=growing or None,
        )

    def _take(self, delta: CallDelta) -> None:
        growing = self._meant(delta)
        if growing is None:
            return
        seen = growing.seen
        # Some servers repeat the name with every part of the arguments.
        if delta.name != seen.function_name:
            seen.function_name = (seen.function_name or "") + delta.name
        seen.arguments = (seen.arguments or "") + delta.arguments
        for partial in delta.partials:
            growing.built = growing.built or {}
            _put(growing.built, partial, growing.going_on)
        if growing.built is not None:
            seen.arguments = json.dumps(growing.built)
        growing.closed = growing.closed or delta.whole

    def _meant(self, delta: CallDelta) -> _Growing | None:
        """The call that a part belongs to: a new one, or one that has begun."""
        last = self._calls[-1] if self._calls else None
        if delta.index is None and delta.id is None:
            # A format without numbers: a name begins a call, and a part without a name continues the last one.
            open_one = last if last is not None and not last.closed else None
            if not delta.name:
                return open_one
        else:
            found = [call for call in self._calls if delta.index is None or call.seen.index == delta.index]
            if delta.id is not None:
                # Servers that give every call the index 0 still give each its own id.
                found = [call for call in found if call.seen.id == delta.id]
            if found:
                return found[-1]
        index = len(self._calls) if delta.index is None else delta.index
        self._calls.append(_Growing(ToolCallStreamChunk(delta.id or self._new_id(), index=index)))
        return self._calls[-1]

    def _problem(self, call: _Growing) -> str | None:
        """Why a call cannot be made in its present state, or None."""
        if self.finish is not None and self.finish not in _MEANT:
            return f"the response was stopped ({self.finish})"
        found = whole_arguments(call.seen.arguments or "{}")
        if not isinstance(found, str):
            return None
        return found if self.finish is None else f"{found} (the response ended with {self.finish})"

    def _request(self, growing: _Growing) -> RequestFunctionCall:
        problem = self._problem(growing)
        if problem is None:
            return request_of(growing.seen, self.agent_id)
        return failed_request(growing.seen.function_name or "", growing.seen.id, self.agent_id, problem)


def _put(arguments: dict[str, Any], partial: Partial, going_on: set[str]) -> None:
    """Put a part of an argument in its place; ignore it if the path cannot be read."""
    steps: list[str | int] = []
    position = 1 if partial.path.startswith("$") else 0
    while found := _STEP.match(partial.path, position):
        name, index, single, double = found.groups()
        quoted = single if single is not None else double
        steps.append(int(index) if index else name if quoted is None else re.sub(r"\\(.)", r"\1", quoted))
        position = found.end()
    if not steps or position != len(partial.path) or not isinstance(steps[0], str):
        return
    place: Any = arguments
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        if isinstance(step, int):
            if not isinstance(place, list) or step > _LONGEST_LIST:
                return
            place.extend([None] * (step + 1 - len(place)))
        elif not isinstance(place, dict):
            return
        old = place[step] if isinstance(step, int) else place.get(step)
        if following is None:
            goes_on = partial.path in going_on and isinstance(old, str) and isinstance(partial.value, str)
            place[step] = old + partial.value if goes_on else partial.value
        elif not isinstance(old, dict | list):
            place[step] = [] if isinstance(following, int) else {}
        place = place[step]
    (going_on.add if partial.continues else going_on.discard)(partial.path)
