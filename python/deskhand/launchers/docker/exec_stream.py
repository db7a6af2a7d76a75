"""A connection into a container without a file of this machine or a port: a command there carries its streams to a socket here.

This module owns the carrying. What must never appear here: the meaning of the bytes, a desktop.
"""

from __future__ import annotations

import socket
import sys
import threading
from typing import TYPE_CHECKING

from deskhand._core.readiness import ready
from deskhand.errors import BackendError, DesktopLost, LaunchFailed, ShellError
from deskhand.launchers.docker.container_commands import LIBRARY
from deskhand.launchers.docker.exec import Exec

if TYPE_CHECKING:
    from deskhand.launchers.docker.container import Container

_PIECE = 1 << 16
_OUT = 1


def open_stream(container: Container, path: str) -> socket.socket:
    """A socket that is connected to a Unix socket in a container, for as long as both exist.

    Args:
        container: The container, whose image has `relay`.
        path: The path of the Unix socket.

    Raises:
        DesktopLost: The container does not run any more.
        ConnectionError: The engine cannot be reached, or cannot start the command.
    """
    try:
        container.engine.revive()
        command = Exec(container.engine, container.id, [f"{LIBRARY}/relay", path], stdin=True)
    except LaunchFailed as error:
        raise ConnectionError(str(error)) from error
    except ShellError as error:
        if _has_ended(container):
            raise DesktopLost("container", f"the container {container.name} does not run") from error
        raise ConnectionError(str(error)) from error
    ours, theirs = socket.socketpair()
    threading.Thread(target=_carry, args=(command, theirs), name="deskhand-stream", daemon=True).start()
    return ours


def _has_ended(container: Container) -> bool:
    try:
        return not container.inspect()["State"]["Running"]
    except container.engine.errors.NotFound:
        return True
    except (container.engine.errors.DockerException, OSError):
        return False


def _carry(command: Exec, inside: socket.socket) -> None:
    """Carry both ways until either side ends. One thread, since both ways share the state of TLS."""
    waiting = b""
    try:
        with inside:
            while not command.ended:
                # What is inside is read again only when all of it is on its way, so this never holds more than one piece.
                written = [command] if waiting else []
                read: list[Exec | socket.socket] = [command] if waiting else [command, inside]
                found = set() if command.has_pending else ready(read, written)
                if inside.fileno() in found:
                    waiting = inside.recv(_PIECE)
                    if not waiting:
                        return
                # The reader at the other end always reads: this waits no longer than it takes to read what came before.
                for kind, data in command.frames(0.0):
                    if kind == _OUT:
                        inside.sendall(data)
                if waiting:
                    waiting = waiting[command.send(waiting, 0.0) :]
    except (OSError, BackendError):
        # The reader finds its end of the pair closed, and handles that.
        return
    finally:
        if not sys.is_finalizing():
            command.close()
