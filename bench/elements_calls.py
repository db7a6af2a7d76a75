"""What a reading of the elements says and hears on the bus: messages, by name. Never used while something is timed.

It stands between the session and the bus, and reads the headers of what goes by. What must never appear here: a clock.
"""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections import Counter
from typing import TYPE_CHECKING, Literal, TypeAlias

from deskhand.desktop import element_bus as ours

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Calls", "listening"]

_Order: TypeAlias = Literal["little", "big"]

# The field of a header that names the member: its number, the type of what follows, and that as a string.
_MEMBER = re.compile(rb"\x03\x01s\x00(.{4})", re.DOTALL)
_PIECE = 1 << 18
_KINDS = {1: "calls", 2: "answers", 3: "errors", 4: "events"}


class Calls:
    """Counts.

    Attributes:
        said: Calls that were sent, by member.
        heard: Messages that came, by kind.
        bytes_heard: Of all that came.
    """

    def __init__(self) -> None:
        self.said: Counter[str] = Counter()
        self.heard: Counter[str] = Counter()
        self.bytes_heard = 0
        self._pipes = [(b"", False), (b"", False)]

    def clear(self) -> None:
        """Begin anew."""
        self.said.clear()
        self.heard.clear()
        self.bytes_heard = 0

    def take(self, data: bytes, *, incoming: bool) -> None:
        """Bytes that went by."""
        rest, begun = self._pipes[incoming]
        rest += data
        if incoming:
            self.bytes_heard += len(data)
        if not begun:
            _, found, after = rest.partition(b"OK " if incoming else b"BEGIN\r\n")
            if found and incoming:
                _, found, after = after.partition(b"\r\n")
            rest, begun = (after, True) if found else (rest, False)
        while begun and len(rest) >= 16:
            order: _Order = "little" if rest[:1] == b"l" else "big"
            body = int.from_bytes(rest[4:8], order)
            header = 16 + (int.from_bytes(rest[12:16], order) + 7) // 8 * 8
            if len(rest) < header + body:
                break
            self._message(rest[:header], order, incoming=incoming)
            rest = rest[header + body :]
        self._pipes[incoming] = (rest, begun)

    def _message(self, header: bytes, order: _Order, *, incoming: bool) -> None:
        if incoming:
            self.heard[_KINDS.get(header[1], "others")] += 1
        elif header[1] == 1 and (found := _MEMBER.search(header)):
            length = int.from_bytes(found[1], order)
            self.said[header[found.end() : found.end() + length].decode("ascii", "replace")] += 1


def _pump(source: socket.socket, target: socket.socket, calls: Calls, *, incoming: bool) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(_PIECE):
            calls.take(data, incoming=incoming)
            target.sendall(data)
    for each in (source, target):
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def listening() -> Iterator[Calls]:
    """Count what sessions that begin within say and hear; the last one counts."""
    kept: list[socket.socket] = []
    opened, calls = ours._open, Calls()  # noqa: SLF001 # there is no other place between the two

    def tap(address: str, timeout: float) -> int:
        calls._pipes = [(b"", False), (b"", False)]  # noqa: SLF001 # its own
        bus = socket.socket(fileno=opened(address, timeout))
        bus.settimeout(None)
        mine, theirs = socket.socketpair()
        kept.extend((bus, mine))
        for source, target, incoming in ((mine, bus, False), (bus, mine, True)):
            arguments, named = (source, target, calls), {"incoming": incoming}
            threading.Thread(target=_pump, args=arguments, kwargs=named, daemon=True).start()
        theirs.settimeout(0)
        return theirs.detach()

    ours._open = tap  # noqa: SLF001
    try:
        yield calls
    finally:
        ours._open = opened  # noqa: SLF001
        for each in kept:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
