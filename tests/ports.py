"""TCP ports for tests. No number is chosen at one moment and used at a later one, when another process may have taken it.

A program that can choose its port is told to (`--port 0`), and one that can take over a socket gets one that listens. These are
for the rest.
"""

from __future__ import annotations

import contextlib
import errno
import socket
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ATTEMPTS = 20
T = TypeVar("T")


@contextlib.contextmanager
def refusing() -> Iterator[int]:
    """A port of 127.0.0.1 at which connections are refused: it is taken, and nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield int(taken.getsockname()[1])


def begin_at_a_port(begin: Callable[[int], T]) -> T:
    """What `begin` gives for a port of 127.0.0.1 that was free; it is called again with another one if that has been taken.

    Args:
        begin: Begins to listen there, and raises `OSError` with `EADDRINUSE` if it cannot.
    """
    for _ in range(_ATTEMPTS - 1):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = int(server.getsockname()[1])
        try:
            return begin(port)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
    return begin(port)
