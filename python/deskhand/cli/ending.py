"""Ends a desktop of another process, and checks that nothing of it is left."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import time
from pathlib import Path

from deskhand._core.readiness import ready
from deskhand.errors import BackendError
from deskhand.launchers import registry

# The guard gives programs 1 s and the X server 2 s before it kills them.
_END_LIMIT = 30.0
_CLEAN_LIMIT = 2.0
_POLL = 0.005
_PEER = struct.Struct("3i")


def end(entry: registry.Entry) -> None:
    """Send SIGTERM to the process with which the desktop ends, and wait until nothing is left.

    Raises:
        BackendError: It does not end, or left something behind.
    """
    if entry.container and not entry.socket:
        from deskhand.launchers.docker.engine import connect_engine  # noqa: PLC0415 # containers take half of a start
        from deskhand.launchers.docker.leftovers import remove_of  # noqa: PLC0415

        # Its driver runs on, and gets `DesktopLost`.
        engine = connect_engine(environment=entry.engine)
        try:
            remove_of(engine, entry.directory)
        finally:
            engine.close()
        registry.remove(entry)
        return
    server = _lock_holder(entry.display)
    try:
        # From here on the number cannot be reused for another process.
        process = os.pidfd_open(entry.pid)
    except ProcessLookupError:
        registry.remove(entry)
        return
    try:
        if not _is_it(entry):
            # The desktop died unnoticed, and another process has its number now.
            registry.remove(entry)
            return
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(process, signal.SIGTERM)
        if not ready([process], timeout=_END_LIMIT):
            raise BackendError(
                f"{entry.name} (process {entry.pid}) has not ended in {_END_LIMIT:g} s; see {entry.directory}"
            )
    finally:
        os.close(process)
    deadline = time.monotonic() + _CLEAN_LIMIT
    while left := _left_behind(entry, server):
        if time.monotonic() >= deadline:
            raise BackendError(f"{entry.name} has ended and left {', '.join(left)} behind; remove it by hand")
        # Another process's X server removes its files when it ends, without any signal.
        time.sleep(_POLL)
    registry.remove(entry)


def _is_it(entry: registry.Entry) -> bool:
    """Whether that process is still the one that was listed."""
    if not entry.socket:
        return _lock_holder(entry.display) == entry.pid
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(entry.socket)
            credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    except OSError:
        return False
    return bool(_PEER.unpack(credentials)[0] == entry.pid)


def _lock(display: str) -> Path:
    return Path(f"/tmp/.X{display.removeprefix(':')}-lock")  # noqa: S108 # where every X server has it


def _lock_holder(display: str) -> int | None:
    try:
        return int(_lock(display).read_text())
    except (OSError, ValueError):
        return None


def _left_behind(entry: registry.Entry, server: int | None) -> list[str]:
    """What is left of an ended desktop; without a display number that another server has now."""
    left = []
    lock = _lock(entry.display)
    connection = Path(f"/tmp/.X11-unix/X{entry.display.removeprefix(':')}")  # noqa: S108
    if lock.exists():
        if server is not None and _lock_holder(entry.display) == server:
            left.append(str(lock))
    elif connection.exists():
        left.append(str(connection))
    # The program that owns a desktop removes it.
    if entry.socket and Path(entry.directory).exists():
        left.append(entry.directory)
    return left
