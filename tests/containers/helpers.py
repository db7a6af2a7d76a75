"""What the tests of containers share."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from deskhand.launch.leftovers import LABEL_DIRECTORY

if TYPE_CHECKING:
    from deskhand.launch.engine import Engine

LISTEN = "0A"


def containers(engine: Engine, directory: str | None = None) -> list[str]:
    """Names of the containers of deskhand's that are there, running or not; of one directory if it is given."""
    label = LABEL_DIRECTORY if directory is None else f"{LABEL_DIRECTORY}={directory}"
    found = engine.api.containers(all=True, filters={"label": label})
    return [entry["Names"][0].lstrip("/") for entry in found]


def networks(engine: Engine, directory: str | None = None) -> list[str]:
    """Names of the networks of deskhand's that are there; of one directory if it is given."""
    label = LABEL_DIRECTORY if directory is None else f"{LABEL_DIRECTORY}={directory}"
    return [entry["Name"] for entry in engine.api.networks(filters={"label": label})]


def guards(pid: int) -> list[int]:
    """The guard processes that a driver has started."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children if b"guard.py" in Path(f"/proc/{child}/cmdline").read_bytes()]


def owned_listeners() -> set[tuple[str, str]]:
    """TCP ports that this machine listens at, and its UDP sockets, which belong to Docker; other tests run here too."""
    found = set()
    for kind in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/net/{kind}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTEN or kind.startswith("udp"):
                found.add((kind, fields[1]))
    # Docker's proxy listens for a published port.
    proxies = subprocess.run(["pgrep", "-fa", "docker-proxy"], capture_output=True, text=True, check=False).stdout
    return {(kind, place) for kind, place in found if str(int(place.rpartition(":")[2], 16)) in proxies.split()}
