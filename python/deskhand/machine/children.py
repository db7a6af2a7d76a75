"""Waiting for a child process, by any caller that Ctrl-C may interrupt.

`subprocess.Popen.wait` and `poll` take a lock outside of the `try` that releases it. An exception of a signal's handler
between the two leaves it taken, and the next `wait` without a time limit never returns (seen in Python 3.11).
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

_FIRST_DELAY, _LONGEST_DELAY = 0.0005, 0.05


def has_ended(process: subprocess.Popen[bytes], limit: float = 0.0) -> bool:
    """Whether a child has ended, after at most `limit` seconds; `process.returncode` is set then.

    An interrupted call can be repeated. A status that it had read already is lost: `returncode` is 0 then.
    """
    delay = _FIRST_DELAY
    while process.returncode is None:
        try:
            pid, status = os.waitpid(process.pid, os.WNOHANG)
        except ChildProcessError:
            process.returncode = 0
            break
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            break
        if limit <= 0:
            return False
        delay = min(2 * delay, limit, _LONGEST_DELAY)
        time.sleep(delay)
        limit -= delay
    return True


def end(process: subprocess.Popen[bytes], limit: float) -> None:
    """Wait for a child's end, and kill it after `limit` seconds."""
    if not has_ended(process, limit):
        process.kill()
        has_ended(process, float("inf"))
