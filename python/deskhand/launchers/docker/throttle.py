"""Whether a container has used up the processor time that it is given, as its control group tells.

This module owns the rule. What must never appear here: a wait, a word to the engine.

Who is out of time stands still in the middle of work, for most of every tenth of a second: that a screen has not changed for
so long says nothing then.
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

# The kernel hands time out once in that many seconds (`cpu.cfs_period_us`, unless somebody has set another one).
_PERIOD = 0.1
# Of what it is given, as a part: more in the last period means that it may have been stopped in the middle of something...
_AT_WORK = 0.5
# ... and for so many seconds before the input, that it always is, and that waiting would not help.
_ALWAYS, _BEFORE = 0.8, 0.3
_LINE = 4096


class Throttle:
    """The processor time of one container."""

    def __init__(self, path: Path, cpus: float) -> None:
        """Read `path`, which tells the time used in all, of a container that is given `cpus` seconds of it a second.

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
        """That of the container with this id, whose first process has this number; None where this machine does not tell."""
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
        """How much of its time it has used in the last `seconds`, as far as is known; None when nothing is."""
        now, used = time.monotonic(), self._used()
        # The last sample that is older, and the first that is not: one may be from long ago, the other from just now.
        older = next(((at, then) for at, then in reversed(self._samples) if now - at >= seconds), None)
        younger = next(((now - seconds, then) for at, then in self._samples if now - at < seconds), None)
        self._samples.append((now, used))
        parts = [(used - then) / (self._cpus * (now - at)) for at, then in filter(None, (older, younger))]
        return max(parts, default=None)

    def note(self) -> None:
        """Remember what was before an action."""
        with contextlib.suppress(OSError):
            part = self._part(_BEFORE)
            self._always = part is not None and part >= _ALWAYS

    def is_out_of_time(self) -> bool:
        """Whether it may stand still for want of time only."""
        try:
            part = self._part(_PERIOD)
        except OSError:
            # It has ended.
            return False
        return not self._always and part is not None and part >= _AT_WORK

    def close(self) -> None:
        """Give the file back."""
        os.close(self._file)
