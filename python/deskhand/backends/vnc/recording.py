"""What a VNC server sends, saved with its times, and played back into the parser without a server.

This module owns the two loops. The form of a recording is `rfb::Recording`'s. What must never appear here: input, and a byte of
the handshake: a recording begins after it, so there is no password in one.
"""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from deskhand._core.readiness import ready
from deskhand._native import Screen, VncParser
from deskhand.backends.vnc.login import enter
from deskhand.errors import ActionError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from deskhand.backends.vnc.target import VncTarget

PIXELS = {"raw": 0, "copyrect": 1, "hextile": 5, "zlib": 6, "tight": 7, "zrle": 16}
"""The numbers of the encodings that a server may be asked for."""

_PIECE = 256 << 10
# The longest time that ending a recording may take.
_SLICE = 0.1
_SEND_LIMIT = 10.0


@dataclass(frozen=True, slots=True)
class Decoded:
    """What a recording contained, and how long decoding took.

    Attributes:
        screen: The screen at the end.
        seconds: From the beginning to the last byte.
        received: Bytes.
        updates: Complete updates.
        rectangles: How many of each encoding they had.
        skipped: How many of them were skipped because they had not been asked for, by their encodings' numbers.
        decoding: Seconds in the parser and its decoders.
        closed: Whether the server ended it.
    """

    screen: Screen
    seconds: float
    received: int
    updates: int
    rectangles: dict[str, int]
    skipped: dict[int, int]
    decoding: float
    closed: bool = False


class _Meter:
    """A parser, and what it has been fed."""

    def __init__(self, parser: VncParser) -> None:
        self._parser = parser
        self._seconds = self._decoding = 0.0
        self._received = 0

    def feed(self, data: bytes, at: float) -> None:
        self._seconds, self._received = at, self._received + len(data)
        begun = time.perf_counter()
        self._parser.feed(data, at)
        self._decoding += time.perf_counter() - begun

    def decoded(self, *, closed: bool = False) -> Decoded:
        parser = self._parser
        counts = dict(parser.rectangles)
        return Decoded(
            parser.screen,
            self._seconds,
            self._received,
            parser.updates,
            counts,
            dict(parser.skipped),
            self._decoding,
            closed,
        )


def record(
    target: VncTarget,
    path: str | os.PathLike[str],
    *,
    seconds: float | None = None,
    timeout: float = 10.0,
    pixels: Sequence[str] | None = None,
    let_in: Callable[[], None] = lambda: None,
    stopped: Callable[[], bool] = lambda: False,
) -> Decoded:
    """Save what a server sends, from its first picture on. The server gets no input.

    Args:
        target: The server, and the credentials.
        path: The file, which is written once the handshake is done.
        seconds: How long; None for until it is stopped.
        timeout: Seconds for the handshake.
        pixels: Only these encodings of `PIXELS`, the best first, and no extension of the protocol; by default all that
            `connect` asks for.
        let_in: Called when the recording begins.
        stopped: Called a few times a second; true ends the recording.

    Raises:
        ConnectFailed: No server is there, or it did not answer in time.
        AuthFailed: The server wants other credentials, or its certificate is not trusted.
        ProtocolViolation: It does not speak RFB as it should; the file has what it sent.
    """
    entered = enter(target, timeout)
    numbers = None if pixels is None else [PIXELS[name] for name in pixels]
    with socket.socket(fileno=entered.fd) as connection, Path(path).open("wb") as file:
        connection.settimeout(_SEND_LIMIT)
        parser = VncParser(entered.size, numbers, local=entered.local)
        meter = _Meter(parser)
        file.write(parser.header)
        began = time.monotonic()

        def take(data: bytes) -> None:
            at = time.monotonic() - began
            file.write(parser.head(data, at) + data)
            # Whatever ends this process, the file has what came so far.
            file.flush()
            meter.feed(data, at)

        let_in()
        if entered.rest:
            take(entered.rest)
        while not stopped():
            left = _SLICE if seconds is None else min(_SLICE, began + seconds - time.monotonic())
            if left <= 0:
                break
            try:
                connection.sendall(parser.to_send())
                data = connection.recv(_PIECE) if ready([connection], timeout=left) else None
            except OSError:
                data = b""
            if data:
                take(data)
            elif data is not None:
                return meter.decoded(closed=True)
        return meter.decoded()


def replay(data: bytes, *, real_time: bool = False) -> Decoded:
    """Play a recording back into the parser.

    Args:
        data: The file.
        real_time: At the recorded speed; otherwise at once.

    Raises:
        ActionError: It is not a recording.
        ProtocolViolation: The server that was recorded broke the protocol.
    """
    try:
        parser, pieces = VncParser.replay(data)
    except ValueError as error:
        raise ActionError(str(error)) from error
    meter = _Meter(parser)
    begun = time.monotonic()
    for at, piece in pieces:
        if real_time:
            time.sleep(max(0.0, begun + at - time.monotonic()))
        meter.feed(piece, at)
    return meter.decoded()
