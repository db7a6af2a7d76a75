"""Input events as the numbers that the connections in Rust take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deskhand._core.events import ButtonDown, ButtonUp, Event, KeyDown, KeyUp, Pause, PointerMove

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# The kinds of `rust/python/src/x11.rs`.
_ENCODE: dict[type, Callable[[Event], tuple[int, int, int]]] = {
    PointerMove: lambda e: (0, e.x, e.y),  # type: ignore[union-attr] # the key of this table is the type of `e`
    ButtonDown: lambda e: (1, e.button, 1),  # type: ignore[union-attr]
    ButtonUp: lambda e: (1, e.button, 0),  # type: ignore[union-attr]
    KeyDown: lambda e: (2, e.keysym, 1),  # type: ignore[union-attr]
    KeyUp: lambda e: (2, e.keysym, 0),  # type: ignore[union-attr]
    Pause: lambda e: (3, round(e.seconds * 1000), 0),  # type: ignore[union-attr]
}


def encode(events: Sequence[Event]) -> list[tuple[int, int, int]]:
    """The events as numbers."""
    return [_ENCODE[type(event)](event) for event in events]
