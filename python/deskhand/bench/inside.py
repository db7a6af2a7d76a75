"""What is measured and has no public way in `Desktop`. Nothing else here reaches into one.

What must never appear here: anything that a public method gives.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from deskhand.desktop import Desktop

__all__ = ["counters", "generation", "round_trip", "unwatched"]


def counters(desktop: Desktop) -> Mapping[str, float]:
    """What looking has cost so far, in numbers that are the same on every machine."""
    return desktop._backend.screen.stats  # noqa: SLF001


def generation(desktop: Desktop) -> int:
    """Of the screen as the driver has it; it grows with each change that was captured."""
    return desktop._backend.screen.generation  # noqa: SLF001


@contextlib.contextmanager
def unwatched(desktop: Desktop) -> Iterator[None]:
    """Nothing is captured inside but by a look: the thread that watches the screen between two calls is held off."""
    desktop._backend.begin()  # noqa: SLF001
    try:
        yield
    finally:
        desktop._backend.end()  # noqa: SLF001


def round_trip(desktop: Desktop) -> None:
    """Ask the X server something that costs it nothing, and wait for the answer."""
    desktop._backend.round_trip()  # noqa: SLF001
