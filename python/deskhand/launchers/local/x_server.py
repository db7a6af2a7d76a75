"""The X server of a desktop on this machine: its number, its cookies and its options.

What must never appear here: an open port.
"""

from __future__ import annotations

import os
import secrets
import socket
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from deskhand.errors import LaunchFailed

if TYPE_CHECKING:
    from deskhand.machine.processes import Guard

_FAMILY_LOCAL = 256
_FAMILY_WILD = 65535
_COOKIE_BYTES = 16
# Above the numbers that people give to displays of their own.
_FIRST_NUMBER, _NUMBERS = 100, 9900
_SOCKET_DIRECTORY = Path("/tmp/.X11-unix")  # noqa: S108 # where X11 clients look, on every system


@dataclass(frozen=True, slots=True)
class XServer:
    """A running X server that the guard owns."""

    display: str
    pid: int
    xauthority: Path


def check_socket_directory() -> None:
    """Make the directory of X servers' sockets where it is missing.

    Raises:
        LaunchFailed: It cannot be made or written.
    """
    if _SOCKET_DIRECTORY.exists() and not os.access(_SOCKET_DIRECTORY, os.W_OK | os.X_OK):
        hint = f"{_SOCKET_DIRECTORY} is not writable for you: as root, chmod 1777 {_SOCKET_DIRECTORY}"
        raise LaunchFailed("the X server", 0.0, "", hint)
    if not _SOCKET_DIRECTORY.exists():
        try:
            _SOCKET_DIRECTORY.mkdir(mode=0o1777)
            _SOCKET_DIRECTORY.chmod(0o1777)
        except OSError as error:
            hint = f"{_SOCKET_DIRECTORY} is missing and cannot be made ({error.strerror}): as root, mkdir -m 1777 it"
            raise LaunchFailed("the X server", 0.0, "", hint) from error


def start_server(guard: Guard, xvfb: str, screen: str, dpi: int, timeout: float) -> XServer:
    """Start Xvfb with a screen such as `1280x800x24`, and wait until it is ready.

    Raises:
        LaunchFailed: It did not come up; carries its output.
    """
    xauthority = guard.directory / "xauthority"
    xauthority.touch(mode=0o600)
    begun = time.monotonic()
    while True:
        number = _free_number()
        write_cookies(xauthority, str(number))
        argv = [xvfb, f":{number}", "-screen", "0", screen, "-auth", str(xauthority), "-dpi", str(dpi)]
        # Without -noreset the server starts again, with a blank screen, whenever its last client leaves.
        argv += ["-nolisten", "tcp", "-nolisten", "local", "-noreset", "-s", "0", "-maxclients", "512"]
        pid, request = guard.spawn(argv, env=dict(os.environ), x_server=number)
        if guard.is_ready(request, pid, timeout):
            break
        log = guard.tail(xvfb, pid)
        # Another server took the number after the check.
        if guard.exit_status(pid) is None or "already active" not in log or time.monotonic() - begun >= timeout:
            raise LaunchFailed("the X server", time.monotonic() - begun, log)
    return XServer(f":{number}", pid, xauthority)


def _free_number() -> int:
    """A display number with neither lock nor socket.

    Xvfb's own search (`-displayfd`) takes no lock: a server that is just ending then removes the new one's socket.
    """
    while True:
        number = _FIRST_NUMBER + secrets.randbelow(_NUMBERS)
        if not Path(f"/tmp/.X{number}-lock").exists() and not (_SOCKET_DIRECTORY / f"X{number}").exists():  # noqa: S108
            return number


def _cookie_entry(family: int, address: bytes, number: bytes, cookie: bytes) -> bytes:
    fields = (address, number, b"MIT-MAGIC-COOKIE-1", cookie)
    return struct.pack(">H", family) + b"".join(struct.pack(">H", len(part)) + part for part in fields)


def write_cookies(xauthority: Path, number: str) -> None:
    """Write a new cookie for a display; the server takes it when it begins or is reset."""
    cookie = secrets.token_bytes(_COOKIE_BYTES)
    # For any host, whose name may change or differ in a container; and for this one, because not every client knows wildcards
    # (python-xlib does not, and with it PyAutoGUI and pynput).
    xauthority.write_bytes(
        _cookie_entry(_FAMILY_WILD, b"", b"", cookie)
        + _cookie_entry(_FAMILY_LOCAL, socket.gethostname().encode(), number.encode(), cookie)
    )
