"""Access to internals that are measured and not public in `Desktop`."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from deskhand.desktop.access import core_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from deskhand.desktop.desktop import Desktop

__all__ = ["counters", "generation", "round_trip", "unwatched"]


def counters(desktop: Desktop) -> Mapping[str, float]:
    """The cost of all looks so far, in numbers that are the same on every machine."""
    return core_of(desktop).backend.screen.stats


def generation(desktop: Desktop) -> int:
    """The generation of the driver's screen; it grows with each captured change."""
    return core_of(desktop).backend.screen.generation


@contextlib.contextmanager
def unwatched(desktop: Desktop) -> Iterator[None]:
    """Prevent captures except by a look: the thread that watches the screen between two calls is paused."""
    core_of(desktop).backend.begin()
    try:
        yield
    finally:
        core_of(desktop).backend.end()


def round_trip(desktop: Desktop) -> None:
    """Make a cheap request to the X server, and wait for the answer."""
    core_of(desktop).backend.round_trip()
