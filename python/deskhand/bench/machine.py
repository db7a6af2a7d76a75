"""What a run ran on: the machine, and the versions of everything that took part."""

from __future__ import annotations

import hashlib
import os
import platform
from pathlib import Path

import deskhand
from deskhand.bench.peers import PEERS, package_version

__all__ = ["describe", "versions"]

_PACKAGES = ("xvfb", "openbox", "xterm", "mousepad", "chromium", "xdotool")


def describe() -> dict[str, str]:
    """The machine, by what its numbers depend on."""
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


def versions() -> dict[str, str]:
    """Of deskhand, the peers and the programs; deskhand's has a digest of its files, which tells two builds apart."""
    found = {"deskhand": f"{deskhand.__version__} ({_digest()})"}
    for peer in PEERS:
        if not peer.missing():
            found.update(peer.versions())
    found.update((package, package_version(package)) for package in _PACKAGES)
    return dict(sorted(found.items()))


def _digest() -> str:
    root = Path(deskhand.__file__).parent
    files = sorted(path for path in root.rglob("*") if path.suffix in {".py", ".so"})
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
