"""Whether a container has used up its processor time, according to its control group.

This module owns the rule. What must never appear here: a wait, a request to the engine.

A container without time stands still in the middle of work, for most of every tenth of a second. A screen without a change for
so long proves nothing then.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from typing import TYPE_CHECKING, Self

from deskhand.launchers.docker.cgroup import file_of

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Throttle"]

# The kernel gives out time once in this many seconds (`cpu.cfs_period_us`, unless its default was changed).
_PERIOD = 0.1
# A part of its time: with more in the last period, it may have been stopped in the middle of work...
_AT_WORK = 0.5
# ... and with more in these seconds before the input, that is its normal state, and waiting would not help.
_ALWAYS, _BEFORE = 0.8, 0.3
_LINE = 4096


class Throttle:
    """The processor time of one container."""

    def __init__(self, path: Path, cpus: float) -> None:
        """Read `path`, which has the time used in all by a container that gets `cpus` seconds of it a second.

        Raises:
            OSError: It cannot be read.
        """
        self._cpus = cpus
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._samples: deque[tuple[float, float]] = deque(maxlen=256)
        self._always = False
        self.note()

    @classmethod
    def of(cls, container: str, pid: int, cpus: float) -> Self | None:
        """The one of the container with this id and this first process; None if this machine does not have the file."""
        with contextlib.suppress(OSError, ValueError):
            path = file_of(container, pid, "cpuacct", "cpuacct.usage", "cpu.stat")
            if path is not None:
                return cls(path, cpus)
        return None

    def _used(self) -> float:
        text = os.pread(self._file, _LINE, 0).split()
        if not text:
            raise OSError("the control group is gone")
        # Version 2 of cgroups: `usage_usec 123...`, version 1: nanoseconds.
        return int(text[1]) / 1e6 if text[0] == b"usage_usec" else int(text[0]) / 1e9

    def _part(self, seconds: float) -> float | None:
        """The part of its time that it has used in the last `seconds`; None if unknown."""
        now, used = time.monotonic(), self._used()
        # The last sample that is older, and the first that is not: one may be very old, the other very new.
        older = next(((at, then) for at, then in reversed(self._samples) if now - at >= seconds), None)
        younger = next(((now - seconds, then) for at, then in self._samples if now - at < seconds), None)
        self._samples.append((now, used))
        parts = [(used - then) / (self._cpus * (now - at)) for at, then in filter(None, (older, younger))]
        return max(parts, default=None)

    def note(self) -> None:
        """Record the state before an action."""
        with contextlib.suppress(OSError):
            part = self._part(_BEFORE)
            self._always = part is not None and part >= _ALWAYS

    def is_out_of_time(self) -> bool:
        """Whether it may stand still only because it has no time left."""
        try:
            part = self._part(_PERIOD)
        except OSError:
            # The container has ended.
            return False
        return not self._always and part is not None and part >= _AT_WORK

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
