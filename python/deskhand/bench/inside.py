"""The few things that are measured and that `Desktop` has no public way to, yet. Nothing else here reaches into one.

What must never appear here: anything that a public method gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from deskhand.desktop import Desktop

__all__ = ["counters", "pixels"]

# What `Screen.stats` counts while it is a plain tuple.
_STATS = ("strips_deflated", "bytes_deflated")


def pixels(desktop: Desktop) -> NDArray[np.uint8]:
    """Look, and get pixels without a PNG: shape (height, width, 3), RGB."""
    public: Any = getattr(desktop, "array", None)
    if public is not None:
        found: NDArray[np.uint8] = public()
        return found
    with desktop._turn():  # noqa: SLF001
        desktop._backend.look()  # noqa: SLF001
        width, height, rgb = desktop._backend.screen.rgb()  # noqa: SLF001
    return np.frombuffer(rgb, np.uint8).reshape(height, width, 3)


def counters(desktop: Desktop) -> Mapping[str, float]:
    """What looking has cost so far, in numbers that are the same on every machine."""
    stats: Any = desktop._backend.screen.stats  # noqa: SLF001
    if isinstance(stats, dict):
        return stats
    names = getattr(stats, "_fields", _STATS)
    return dict(zip(names, stats, strict=False))
