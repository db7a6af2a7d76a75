"""The one thing that is measured and that `Desktop` has no public way to. Nothing else here reaches into one.

What must never appear here: anything that a public method gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deskhand.desktop import Desktop

__all__ = ["counters"]


def counters(desktop: Desktop) -> Mapping[str, float]:
    """What looking has cost so far, in numbers that are the same on every machine."""
    return desktop._backend.screen.stats  # noqa: SLF001
