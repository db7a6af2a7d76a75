"""The problems of a desktop in a container, in words, and without a request to an engine.

This module owns the words. What must never appear here: a wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deskhand._core.untrusted import read_regular
from deskhand.machine.interface import SHARED_MEMORY_ENOUGH

if TYPE_CHECKING:
    from pathlib import Path

# The parts that a supervisor starts again, by the names in its notes (`image/files/.../supervisor`).
_PARTS = {"window-manager": "the window manager", "panel": "the panel", "bus": "the session bus"}
_MOST = 4096


def container_warnings(restarted: Path | None, shared_memory: int | None, killed: int = 0) -> list[str]:
    """One sentence for each problem; see `Desktop.status`.

    Args:
        restarted: The file of this machine where a supervisor notes what it starts again, if there is one.
        shared_memory: Bytes of `/dev/shm` in it, if that is known.
        killed: How many processes of its container were killed because memory ran out.
    """
    again = read_regular(restarted, _MOST).split() if restarted is not None else []
    found = [
        f"{what} ended and was started again ({times} times): programs may have lost it"
        for name, what in _PARTS.items()
        if (times := again.count(name.encode()))
    ]
    if killed:
        found.append(
            f"the container's memory was used up, and {killed} of its processes were killed, a program or a page of a browser: "
            "Limits(memory=4 << 30), or docker run --memory=4g"
        )
    if shared_memory is not None and shared_memory < SHARED_MEMORY_ENOUGH:
        has, want = shared_memory >> 20, SHARED_MEMORY_ENOUGH >> 20
        found.append(
            f"the shared memory has {has} MB, browsers want {want}, and their pages crash without: "
            "Limits(shared_memory=1 << 30), or docker run --shm-size=1g"
        )
    return found
