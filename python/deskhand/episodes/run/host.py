"""Describes the machine of a run or a measurement."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def describe() -> dict[str, str]:
    """The properties of the machine that its numbers depend on."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine()
    )
    kilobytes = int(Path("/proc/meminfo").read_text().split()[1])
    try:
        system = platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:
        system = platform.system()
    return {
        "processor": model,
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{kilobytes / 1e6:.0f} GB",
        "system": system,
        "kernel": platform.release(),
        "python": platform.python_version(),
    }
