"""The versions of everything that takes part in a run."""

from __future__ import annotations

import hashlib
from pathlib import Path

import deskhand
from bench.peers import PEERS, package_version

__all__ = ["versions"]

_PACKAGES = ("xvfb", "openbox", "xterm", "mousepad", "chromium", "xdotool")


def versions() -> dict[str, str]:
    """The versions of deskhand, the peers and the programs; deskhand's includes a digest of its files."""
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
