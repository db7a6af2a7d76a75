"""Whether a container is held back for want of processor time, according to its control group.

This module owns the rule. What must never appear here: a wait, a request to the engine.

A container without time stands still in the middle of work, for most of every tenth of a second or for several of them. A
screen without a change for so long proves nothing then.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

from deskhand.launchers.docker.cgroup import file_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# The kernel gives out time once in this many seconds (`cpu.cfs_period_us`, unless its default was changed).
_PERIOD = 0.1
# A part of its time: with more in the last period, it may have been stopped in the middle of work. Processors that are idle
# again keep the rest for a while.
_AT_WORK = 0.5
# With as much in these seconds before the action and without a stop, that is its normal state, and no sign of a slowdown.
_BEFORE = 0.3
# The kernel counts a period in which it was stopped when that has ended, and its timer may be late.
_COUNTED = 1.25 * _PERIOD
# Stopped in so many of the periods of so many seconds before the action: something else keeps it at its limit. A screen that
# is still for so many seconds then counts as rest.
_MOST_PERIODS, _LONG, _STILL = 0.8, 2.0, 1.0
# Looks that follow each other sooner add no sample.
_NEAR = 0.005
_LINES = 4096


class Counts(NamedTuple):
    """What a control group has counted since it was made.

    Attributes:
        used: The processor time of its processes, in seconds.
        throttled: The periods in which it was stopped; 0 where that cannot be read.
    """

    used: float
    throttled: int


class Group(Protocol):
    """A control group that can be read."""

    def read(self) -> Counts:
        """What it has counted.

        Raises:
            OSError: It is gone.
        """
        ...

    def close(self) -> None:
        """Release what it holds."""
        ...


class GroupFiles:
    """A control group as its files show it: `cpu.stat`, and in version 1 `cpuacct.usage` beside it."""

    def __init__(self, usage: Path, stat: Path | None = None) -> None:
        """Open the file with the time used; in version 1 the stops are in another one, unless there is none.

        Raises:
            OSError: They cannot be read.
        """
        self._files = [os.open(usage, os.O_RDONLY | os.O_CLOEXEC)]
        try:
            if stat is not None:
                self._files.append(os.open(stat, os.O_RDONLY | os.O_CLOEXEC))
            self.read()
        except BaseException:
            self.close()
            raise

    def read(self) -> Counts:
        """See `Group.read`."""
        # Version 1 has the time alone, in nanoseconds. All else are lines of a name and a number.
        words = [word for file in self._files for word in os.pread(file, _LINES, 0).split()]
        used = int(words.pop(0)) / 1e9 if len(words) % 2 else None
        counts = dict(zip(words[::2], words[1::2], strict=True))
        if used is None:
            if b"usage_usec" not in counts:
                raise OSError("the control group is gone")
            used = int(counts[b"usage_usec"]) / 1e6
        return Counts(used, int(counts.get(b"nr_throttled", 0)))

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            os.close(file)


class Sample(NamedTuple):
    """The processor time that was used by then."""

    at: float
    used: float


class Throttle:
    """The processor time of one container."""

    def __init__(self, group: Group, cpus: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Read `group`, which gets `cpus` seconds of processor time a second; it is closed with this.

        Raises:
            OSError: It cannot be read.
        """
        self._group = group
        self._at_work = _AT_WORK * cpus
        self._clock = clock
        counts = group.read()
        self._noted = clock()
        # All that are younger than `_BEFORE`, and the one before them.
        self._samples = deque([Sample(self._noted, counts.used)])
        self._throttled = counts.throttled
        self._stopped = float("-inf")
        self._usual = False
        # When it was read at least so long ago, and how many stops there had been by then; and the one after that.
        self._since = self._later = self._noted, counts.throttled
        self._is_always_stopped = False
        self._generation, self._changed = -1, self._noted

    @classmethod
    def of(cls, container: str, pid: int, cpus: float) -> Self | None:
        """The one of the container with this id and this first process; None if this machine does not have the file."""
        with contextlib.suppress(OSError, ValueError):
            usage = file_of(container, pid, "cpuacct", "cpuacct.usage", "cpu.stat")
            if usage is not None:
                # In version 2 that is the same file.
                stat = file_of(container, pid, "cpu", "cpu.stat", "cpu.stat")
                return cls(GroupFiles(usage, None if stat == usage else stat), cpus)
        return None

    def _sample(self, *, is_action: bool = False) -> Sample:
        counts = self._group.read()
        now = Sample(self._clock(), counts.used)
        if counts.throttled != self._throttled:
            # It may have been at any time since the last sample.
            self._throttled, self._stopped = counts.throttled, now.at
        if now.at - self._later[0] >= _LONG:
            self._since, self._later = self._later, (now.at, counts.throttled)
        if is_action or now.at - self._samples[-1].at >= _NEAR:
            self._samples.append(now)
        while len(self._samples) > 1 and now.at - self._samples[1].at >= _BEFORE:
            self._samples.popleft()
        return now

    def note(self) -> None:
        """Record the state before an action."""
        with contextlib.suppress(OSError):
            now, before = self._sample(is_action=True), self._samples[0]
            self._noted = now.at
            passed = now.at - before.at
            used_much = now.used - before.used >= self._at_work * passed
            self._usual = passed >= _BEFORE and used_much and self._stopped <= before.at
            self._changed = now.at
            began, stops = self._since
            periods = (now.at - began) / _PERIOD
            self._is_always_stopped = now.at - began >= _LONG and self._throttled - stops >= _MOST_PERIODS * periods

    def is_out_of_time(self, generation: int) -> bool:
        """Whether it may stand still only because it has no time left, or did so within the last period.

        Args:
            generation: Of the screen; it rises with each change.
        """
        try:
            now = self._sample()
        except OSError:
            # The container has ended.
            return False
        if generation != self._generation:
            self._generation, self._changed = generation, now.at
        if self._is_always_stopped and now.at - self._changed >= _STILL:
            return False
        if now.at - self._stopped < _COUNTED:
            return True
        # A stop that still lasts may not be counted yet: it begins when the time of a period is used up.
        return not self._usual and now.used - self._used_by(now.at - _PERIOD) >= self._at_work * _PERIOD

    def _used_by(self, at: float) -> float:
        """The time that it had used by then, and no more than that."""
        after = next(sample for sample in self._samples if sample.at > at)
        before = next((sample for sample in reversed(self._samples) if sample.at <= at), after)
        if before is after or before.at >= self._noted:
            # All of what it has used since may be new.
            return before.used
        # Before the action, use is taken to be even.
        return before.used + (after.used - before.used) * (at - before.at) / (after.at - before.at)

    def close(self) -> None:
        """Close what is read."""
        self._group.close()
