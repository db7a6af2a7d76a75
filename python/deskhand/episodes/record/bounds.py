"""What a record holds, and how much."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["COUNTED", "Bounds", "Totals"]

COUNTED = frozenset({"perform", "screenshot", "start", "shell", "host_shell", "read_file", "write_file"})
"""Operations that are a step or a look of an agent's, and that are written down."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much of one attempt is written down; an agent that goes beyond it is stopped by `RecordFull`.

    Attributes:
        events: How many events.
        bytes: Of `events.jsonl`.
        pixels: Bytes that its frames may add to the store.
        text: Characters of one text (a note, a command's output, an error); of a longer one the beginning is kept.
        parts: Items that one event's lists and dictionaries may have.
    """

    events: int = 50_000
    bytes: int = 64 << 20
    pixels: int = 1 << 30
    text: int = 1 << 16
    parts: int = 10_000


@dataclass(slots=True)
class Totals:
    """What was heard so far.

    Attributes:
        performs: Calls that acted.
        actions: Actions of them.
        looks: Calls that only looked.
        commands: Commands and programs.
        input: Seconds in which input was sent; see `Observation.elapsed`.
        settle: Seconds until the screen had answered.
        observe: Seconds in which frames were made.
        overhead: Seconds that writing down has taken.
    """

    performs: int = 0
    actions: int = 0
    looks: int = 0
    commands: int = 0
    input: float = 0.0
    settle: float = 0.0
    observe: float = 0.0
    overhead: float = 0.0
