"""How much slower than at rest the machine is while a test runs: a process beside the test that does a known amount of work.

A promise such as "within 1 s" is one of a machine that has a processor for whoever wants one. Where others keep the processors
busy, everything takes longer, this process as much as what is tested: it waits and computes in turns, as a driver does, and
compares how long that took with how long it takes at rest. What waits too long by itself is not excused, however busy the
machine is: waiting is not stretched.
"""

from __future__ import annotations

import atexit
import os
import select
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

__all__ = ["Control", "Slowness", "control"]

_WAIT, _WORK = 0.004, 0.002
_TURNS = 3
# From a caller through its threads, the X server and a client, and back.
_CHAIN = 20
_REPLY = struct.Struct("ddq")
_ANSWER_LIMIT = 120.0


class Slowness(NamedTuple):
    """What the control saw.

    Attributes:
        share: The part of a processor that it got while it wanted one: 1 at rest.
        latest: The longest that it was kept from one turn, in seconds.
    """

    share: float
    latest: float

    def allowed(self, limit: float) -> float:
        """What `limit` seconds of a machine at rest become: work is slower, and each turn of a chain may be the latest."""
        return limit / self.share + _CHAIN * self.latest


class Control:
    """The process; it works between `begin` and `end`, from any number of threads."""

    def __init__(self) -> None:
        # Not one of those whose end a test waits for.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("DESKHAND_")}
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__))],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            # In the session of the test: kernels with scheduling groups share the processors out among sessions.
            process_group=0,
        )
        self._lock = threading.Lock()
        self._users = 0

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()

    def begin(self) -> tuple[float, float, int]:
        """Let it work; what to give to `end`."""
        with self._lock:
            self._users += 1
            return self._ask(b"+")

    def end(self, since: tuple[float, float, int]) -> Slowness:
        """What it saw since."""
        with self._lock:
            self._users -= 1
            took, latest, turns = self._ask(b"?" if self._users else b"-")
        turns -= since[2]
        if turns < _TURNS:
            # It had no time to see anything, which is how long it was kept from it.
            return Slowness(1.0, latest)
        return Slowness(min(1.0, turns * _WORK / (took - since[0] - turns * _WAIT)), latest)

    def _ask(self, what: bytes) -> tuple[float, float, int]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(what)
        if not select.select([self._process.stdout], [], [], _ANSWER_LIMIT)[0]:
            raise TimeoutError(f"the control process has not answered for {_ANSWER_LIMIT:g} s")
        took, latest, turns = _REPLY.unpack(os.read(self._process.stdout.fileno(), _REPLY.size))
        return took, latest, turns


_control: Control | None = None


def control() -> Control:
    """This process's."""
    global _control  # noqa: PLW0603 # one for all tests of a process, started by the first that needs it
    if _control is None:
        _control = Control()
        atexit.register(_control.close)
    return _control


def main() -> None:
    """Be the control."""
    took = latest = 0.0
    turns = 0
    working = False
    while True:
        begun = time.monotonic()
        asked = select.select([0], [], [], _WAIT if working else None)[0]
        if asked:
            if working:
                latest = max(latest, time.monotonic() - begun - _WAIT)
            letters = os.read(0, 4096)
            if not letters:
                # Who asked has ended.
                return
            for letter in letters:
                if letter == ord("+") and not working:
                    # The longest of a window in which nobody else measures is that window's own.
                    working, latest = True, 0.0
                working = working and letter != ord("-")
                os.write(1, _REPLY.pack(took, latest, turns))
            continue
        used = time.process_time()
        while time.process_time() - used < _WORK:
            pass
        turn = time.monotonic() - begun
        took, turns = took + turn, turns + 1
        latest = max(latest, turn - _WAIT - _WORK)


if __name__ == "__main__":
    main()
