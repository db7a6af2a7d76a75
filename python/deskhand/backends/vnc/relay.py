"""Carries bytes between TLS and a socket that is read without Python."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from deskhand._core.readiness import ready

if TYPE_CHECKING:
    import socket

PIECE = 65536
"""Bytes that are received at once."""


def relay(outside: ssl.SSLSocket, inside: socket.socket) -> None:
    """Carry bytes in both directions until either side ends.

    One thread, since both directions share the state of TLS.
    """
    outside.settimeout(0)
    waiting = b""
    with outside, inside:
        while True:
            # What is inside is read again only when TLS has taken all of it, so this never holds more than one piece.
            wanted = [outside] if waiting else [outside, inside]
            found = ready(wanted, [outside] if waiting else [])
            try:
                if outside.fileno() in found and not _carry_in(outside, inside):
                    return
                if inside.fileno() in found:
                    waiting = inside.recv(PIECE)
                    if not waiting:
                        return
                if waiting:
                    waiting = waiting[outside.send(waiting) :]
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                continue
            except OSError:
                return


def _carry_in(outside: ssl.SSLSocket, inside: socket.socket) -> bool:
    """Forward all that TLS has; False at its end."""
    while True:
        try:
            data = outside.recv(PIECE)
        except ssl.SSLWantReadError:
            return True
        if not data:
            return False
        inside.sendall(data)
        if not outside.pending():
            return True
