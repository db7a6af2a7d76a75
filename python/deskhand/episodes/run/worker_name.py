"""The name under which a worker leases episodes, and whether its process still exists."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from deskhand.episodes.ledger.ledger import State

if TYPE_CHECKING:
    from deskhand.episodes.ledger.ledger import Ledger

_NAME = re.compile(r"(?P<host>.+)/(?P<boot>[^/]*)/(?P<space>[^/]*)/(?P<pid>\d+)/(?P<started>\d+)(/.*)?")


def worker_name(suffix: str = "") -> str:
    """A name for a worker of this process that shows whether it is still alive: machine, boot, process, its start.

    Args:
        suffix: Distinguishes workers of one process.
    """
    name = "/".join((*_machine(), str(os.getpid()), _start_of(os.getpid())))
    return f"{name}/{suffix}" if suffix else name


def abandon_dead(ledger: Ledger) -> int:
    """Give back what dead processes of this machine hold. Returns how many episodes that were."""
    holders = {row.worker for row in ledger.rows() if row.state is State.LEASED}
    return sum(ledger.abandon(worker) for worker in sorted(holders) if _is_dead(worker))


def _is_dead(worker: str) -> bool:
    """Whether it is known to be dead: nothing is known of processes on other machines and in other containers."""
    found = _NAME.fullmatch(worker)
    host, boot, space = _machine()
    if found is None or found["host"] != host:
        return False
    if found["boot"] != boot:
        return True
    return found["space"] == space and _start_of(int(found["pid"])) != found["started"]


def _machine() -> tuple[str, str, str]:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()[:8]
    return socket.gethostname().replace("/", "_"), boot, str(Path("/proc/self/ns/pid").stat().st_ino)


def _start_of(pid: int) -> str:
    """When a process was started, in the kernel's ticks; 0 if it does not exist or has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return "0"
    # A zombie has ended; its parent has only not waited for it.
    return "0" if fields[0] == b"Z" else fields[19].decode()
