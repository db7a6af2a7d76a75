"""The settings that all measurements of one run share: the number of rounds, directories, and the report of progress.

This module owns waiting for quiet between two measurements. It measures nothing itself.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bench import scenes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["Context", "quiet", "timed"]

_QUIET_SLICE = 0.01
_QUIET_SHARE = 0.1
_QUIET_LIMIT = 5.0


@dataclass(slots=True)
class Context:
    """One run.

    Attributes:
        scratch: A temporary directory, removed at the end.
        quick: Fewer rounds, less of everything.
        rounds: The caller's number of rounds; None means each section's own.
        say: Called with a description of the present step.
    """

    scratch: Path
    quick: bool = False
    rounds: int | None = None
    say: Callable[[str], None] = lambda _text: None
    _scenes: dict[tuple[str, tuple[int, int]], scenes.Scene] = field(default_factory=dict)

    def times(self, whole: int, quick: int) -> int:
        """The number of repetitions of a measurement."""
        return self.rounds or (quick if self.quick else whole)

    def scene(self, name: str, size: tuple[int, int]) -> scenes.Scene:
        """A scene, which is made once a run.

        Raises:
            Missing: A program in it is not installed.
        """
        if (name, size) not in self._scenes:
            self.say(f"making the scene {name} at {size[0]}x{size[1]}")
            self._scenes[name, size] = scenes.make(name, size, self.scratch)
        return self._scenes[name, size]


def quiet() -> None:
    """Wait until this process has no background work, such as tightening pictures, which would slow down others."""
    deadline = time.monotonic() + _QUIET_LIMIT
    while time.monotonic() < deadline:
        used, begun = time.process_time(), time.monotonic()
        time.sleep(_QUIET_SLICE)
        if time.process_time() - used < _QUIET_SHARE * (time.monotonic() - begun):
            return


def timed(call: Callable[[], object]) -> float:
    """The time of a call in milliseconds."""
    begun = time.perf_counter()
    call()
    return (time.perf_counter() - begun) * 1000
