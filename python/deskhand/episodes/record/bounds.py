"""What a record contains, and its limits."""

from __future__ import annotations

from dataclasses import dataclass

COUNTED = frozenset({"perform", "screenshot", "elements", "start", "shell", "host_shell", "read_file", "write_file"})
"""Operations that count as a step or a look of an agent, and are recorded."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of one attempt's record; an agent that exceeds them is stopped by `RecordFull`.

    Attributes:
        events: The largest number of events.
        bytes: The largest size of `events.jsonl`.
        pixels: The bytes that its frames may add to the store.
        text: Characters of one text (a note, a command's output, an error); a longer one is cut at its end.
        parts: The number of items in one event's lists and dictionaries.
    """

    events: int = 50_000
    bytes: int = 64 << 20
    pixels: int = 1 << 30
    text: int = 1 << 16
    parts: int = 10_000


@dataclass(slots=True)
class Totals:
    """The totals so far.

    Attributes:
        performs: Calls that acted.
        actions: Actions in them.
        looks: Calls that only looked.
        commands: Commands and programs.
        input: Seconds in which input was sent; see `Observation.elapsed`.
        settle: Seconds until the screen had answered.
        observe: Seconds for making frames.
        overhead: Seconds for recording.
    """

    performs: int = 0
    actions: int = 0
    looks: int = 0
    commands: int = 0
    input: float = 0.0
    settle: float = 0.0
    observe: float = 0.0
    overhead: float = 0.0
