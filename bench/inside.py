"""What is measured and has no public way in `Desktop`."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from deskhand.desktop.desktop import core_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from deskhand.desktop.desktop import Desktop

__all__ = ["counters", "generation", "round_trip", "unwatched"]


def counters(desktop: Desktop) -> Mapping[str, float]:
    """What looking has cost so far, in numbers that are the same on every machine."""
    return core_of(desktop).backend.screen.stats


def generation(desktop: Desktop) -> int:
    """Of the screen as the driver has it; it grows with each change that was captured."""
    return core_of(desktop).backend.screen.generation


@contextlib.contextmanager
def unwatched(desktop: Desktop) -> Iterator[None]:
    """Nothing is captured inside but by a look: the thread that watches the screen between two calls is held off."""
    core_of(desktop).backend.begin()
    try:
        yield
    finally:
        core_of(desktop).backend.end()


def round_trip(desktop: Desktop) -> None:
    """Ask the X server something that costs it nothing, and wait for the answer."""
    core_of(desktop).backend.round_trip()
