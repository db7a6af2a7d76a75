"""The one thing that is measured and that `Desktop` has no public way to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deskhand.desktop import core_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deskhand.desktop import Desktop

__all__ = ["counters"]


def counters(desktop: Desktop) -> Mapping[str, float]:
    """What looking has cost so far, in numbers that are the same on every machine."""
    return core_of(desktop).backend.screen.stats
