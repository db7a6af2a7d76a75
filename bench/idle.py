"""The cost of idle desktops: memory and processor time of all their processes.

`python -m bench.idle COUNT WIDTH HEIGHT SECONDS` launches them in a process of its own, looks once at each, and prints
one JSON object: megabytes and percent of one core, with the X servers separately.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import deskhand
from deskhand import Wait

__all__ = ["below", "cpu_seconds", "main", "memory"]

_SERVER = "Xvfb"
_CALM = 2.0


def below(pid: int) -> dict[int, str]:
    """The descendants of a process: their names by id."""
    found: dict[int, str] = {}
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            found[child] = Path(f"/proc/{child}/comm").read_text().strip()
            found.update(below(child))
    return found


def memory(pid: int) -> tuple[float, float]:
    """The memory of one process in MB: its own part plus its share of shared pages (PSS), and the resident size (RSS)."""
    sizes = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name in {"Pss", "Rss"}:
            sizes[name] = int(rest.split()[0]) * 1024 / 1e6
    return sizes["Pss"], sizes["Rss"]


def cpu_seconds(pid: int) -> float:
    """The processor time of one process in seconds, of all its live threads, with nanosecond resolution."""
    used = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        used += int((task / "schedstat").read_text().split()[0])
    return used / 1e9


def main() -> None:
    """Measure and print."""
    count, width, height, seconds = map(int, sys.argv[1:])
    own = os.getpid()
    pss_before, rss_before = memory(own)
    with ExitStack() as stack:
        desktops = [stack.enter_context(deskhand.launch(size=(width, height))) for _ in range(count)]
        for desktop in desktops:
            desktop.screenshot()
        # Work after a look must not count as idleness.
        desktops[0].perform(Wait(_CALM), settle=False)
        processes = below(own)
        servers = [pid for pid, name in processes.items() if name == _SERVER]
        others = [own, *(pid for pid in processes if pid not in servers)]
        before = {pid: cpu_seconds(pid) for pid in [*servers, *others]}
        begun = time.monotonic()
        time.sleep(seconds)
        took = time.monotonic() - begun
        used = {pid: cpu_seconds(pid) - at for pid, at in before.items()}
        sizes = {pid: memory(pid) for pid in before}
        result = {
            "cpu_percent": sum(used[pid] for pid in others) / took * 100,
            "cpu_percent_driver": used[own] / took * 100,
            "cpu_percent_servers": sum(used[pid] for pid in servers) / took * 100,
            "pss_mb": (sum(sizes[pid][0] for pid in others) - pss_before) / count,
            "rss_mb": (sum(sizes[pid][1] for pid in others) - rss_before) / count,
            "pss_mb_driver": (sizes[own][0] - pss_before) / count,
            "pss_mb_server": sum(sizes[pid][0] for pid in servers) / count,
            "processes": len(others) - 1,
        }
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()
