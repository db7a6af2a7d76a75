"""The events of an attempt as turns of an agent: its text, the usage, its call and the result.

This module owns which events belong together. It has no files and no other project's format.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_CALLS = ("perform", "shell", "start", "look", "read_file", "write_file")


@dataclass(frozen=True, slots=True)
class Turn:
    """One call of an agent, with its text before it; or its last text, without a call.

    Attributes:
        number: The number of the turn, from 1.
        wall: When it ended, in seconds since 1970.
        notes: The agent's texts since the turn before.
        spent: The usage since then, one entry a request: `input`, `output`, `cost`.
        event: The recorded call: a `perform`, `shell`, `start`, `look`, `read_file` or `write_file`; the `answer` at the end;
            None if the text was not followed by a call.
        frame: The screen after the call; None if it was not kept.
    """

    number: int
    wall: float
    notes: tuple[str, ...]
    spent: tuple[Mapping[str, Any], ...]
    event: Mapping[str, Any] | None
    frame: str | None

    @property
    def said(self) -> str:
        """All it said."""
        return "\n\n".join(self.notes)

    @property
    def kind(self) -> str:
        """The event's kind; empty without an event."""
        return "" if self.event is None else str(self.event["kind"])

    @property
    def failure(self) -> str:
        """Why the call failed; empty if it did not."""
        error = (self.event or {}).get("error")
        return f"{error.get('type')}: {error.get('message')}" if isinstance(error, dict) else ""


def turns(events: Iterable[Mapping[str, Any]]) -> list[Turn]:
    """The turns of an attempt, from its events."""
    found: list[Turn] = []
    notes: list[str] = []
    spent: list[Mapping[str, Any]] = []
    frame: str | None = None
    wall = 0.0

    def close(event: Mapping[str, Any] | None) -> None:
        found.append(Turn(len(found) + 1, wall, tuple(notes), tuple(spent), event, frame))
        notes.clear()
        spent.clear()

    for event in events:
        kind = event["kind"]
        wall = float(event.get("wall", wall))
        if kind == "note":
            notes.append(str(event.get("text", "")))
        elif kind == "spend":
            spent.append(event)
        elif kind == "frame" and event.get("id"):
            frame = event["id"]
        elif kind in _CALLS or kind == "answer":
            if kind in {"perform", "look"}:
                frame = event.get("after" if kind == "perform" else "frame")
            close(event)
    if notes or spent:
        close(None)
    return found


def first_frame(events: Iterable[Mapping[str, Any]]) -> str | None:
    """The screen when the agent began; None if it was not kept."""
    return next(
        (event.get("id") for event in events if event["kind"] == "frame" and event.get("cause") == "first"), None
    )
