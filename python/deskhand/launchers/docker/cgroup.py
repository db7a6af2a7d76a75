"""The files of a container's control groups on this machine, in versions 1 and 2.

This module owns which file that is, and how a count in it is read. What must never appear here: an engine, a wait.
"""

from __future__ import annotations

import os
from pathlib import Path


def file_of(container: str, pid: int, controller: str, old: str, new: str) -> Path | None:
    """A file of a container's control group; None if there is none, or if it cannot be seen from here.

    Args:
        container: Its id, after which its group is named: if the driver is in a container too, that process is another.
        pid: The number of one of its processes.
        controller: The controller, by its name in version 1: `"memory"`.
        old: The file's name in version 1.
        new: The file's name in version 2.
    """
    try:
        groups: dict[str, str] = {}
        for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            groups |= dict.fromkeys(controllers.split(","), path)
        for line in Path("/proc/self/mountinfo").read_text().splitlines():
            fields, _, kind = line.partition(" - ")
            root, mounted = fields.split()[3:5]
            system, _, options = kind.split(" ", 2)
            if system == "cgroup" and controller in groups and controller in options.rpartition(" ")[2].split(","):
                found = Path(mounted, os.path.relpath(groups[controller], root), old)
            elif system == "cgroup2" and controller not in groups:
                found = Path(mounted, os.path.relpath(groups[""], root), new)
            else:
                continue
            if container in str(found) and found.exists():
                return found
    except (OSError, ValueError, KeyError):
        # The process has ended, or this machine has no such files.
        return None
    return None


def oom_kills(path: Path) -> int:
    """How many processes were killed for lack of memory, by `memory.oom_control` or `memory.events`; 0 if the file is gone."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)
