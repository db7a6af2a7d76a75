"""A VNC server that says what a test wants it to say: its handshake, a picture, and after that any bytes.

It speaks just enough of RFB for a client to be content with it: it answers requests for pixels with one colour, and fences.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

# To a client this is another machine (its own address on the way there is 127.0.0.1), so it asks for compressed pixels.
ELSEWHERE = "127.0.0.2"
BGRX = bytes([32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 16, 8, 0, 0, 0, 0])
NO_SECURITY = b"\x01\x01"
OFFERED, CHOSEN = b"RFB 003.008\n", b"RFB 003.008\n"
FENCE = b"\xf8\0\0\0\x80\0\0\0\0"
"""A fence that wants to be sent back: it also says that this server knows fences."""

SET_ENCODINGS, POINTER, CUT_TEXT = 2, 5, 6
MOUSE_BUTTONS = -316
_UPDATE_REQUEST, _FENCE, _SET_SIZE = 3, 248, 251
_LENGTHS = {0: 20, 2: 4, 3: 10, 4: 8, 5: 6, 6: 8, 150: 10, 248: 9, 251: 8}


class FakeServer(threading.Thread):
    """Answers one client as it is told, and ends."""

    def __init__(self, talk: Callable[[socket.socket], None], host: str = "127.0.0.1") -> None:
        super().__init__(daemon=True)
        self._talk = talk
        self._listener = socket.create_server((host, 0))
        self.url = f"vnc://{host}::{self._listener.getsockname()[1]}"
        self.start()

    def run(self) -> None:
        with self._listener, self._listener.accept()[0] as client:
            client.settimeout(20)
            # A client that goes away, or breaks the connection off, is what most tests want.
            with contextlib.suppress(OSError):
                self._talk(client)


def exactly(client: socket.socket, count: int) -> bytes:
    """So many bytes of what the client sends."""
    data = b""
    while len(data) < count:
        piece = client.recv(count - len(data))
        if not piece:
            raise ConnectionError("the client has gone")
        data += piece
    return data


def server_init(size: tuple[int, int], name: bytes = b"fake", pixels: bytes = BGRX) -> bytes:
    """The server's description of itself."""
    return struct.pack(">HH", *size) + pixels + struct.pack(">I", len(name)) + name


def let_in(client: socket.socket, init: bytes) -> None:
    """A handshake without authentication."""
    client.sendall(OFFERED)
    assert exactly(client, 12) == CHOSEN
    client.sendall(NO_SECURITY)
    assert exactly(client, 1) == b"\x01"
    client.sendall(bytes(4))
    exactly(client, 1)
    client.sendall(init)


def rectangle(rect: tuple[int, int, int, int], encoding: int, data: bytes = b"") -> bytes:
    """One rectangle of an update."""
    return struct.pack(">HHHHi", *rect, encoding) + data


def update(*rectangles: bytes, count: int | None = None) -> bytes:
    """An update; `count` says how many rectangles it claims to have."""
    return struct.pack(">BxH", 0, len(rectangles) if count is None else count) + b"".join(rectangles)


def picture(rect: tuple[int, int, int, int], shade: int = 64) -> bytes:
    """An update of one rectangle in one grey."""
    return update(rectangle(rect, 0, bytes([shade, shade, shade, 0]) * (rect[2] * rect[3])))


def messages(client: socket.socket) -> Iterator[tuple[int, bytes]]:
    """What the client sends after the handshake: the type of each message, and the rest of it."""
    while True:
        kind = exactly(client, 1)[0]
        body = exactly(client, _LENGTHS[kind] - 1)
        more = 0
        if kind == SET_ENCODINGS:
            more = 4 * int.from_bytes(body[1:3], "big")
        elif kind == POINTER and body[0] & 0x80:
            # The second byte of the extended mouse buttons.
            more = 1
        elif kind == CUT_TEXT:
            more = abs(int.from_bytes(body[3:7], "big", signed=True))
        elif kind == _FENCE:
            more = body[7]
        elif kind == _SET_SIZE:
            more = 16 * body[5]
        yield kind, body + exactly(client, more)


def fence_answered(kind: int, body: bytes) -> bytes:
    """What a message is answered with, if it is a fence that wants to be sent back."""
    wanted = kind == _FENCE and body[3] & 0x80
    return bytes([_FENCE, 0, 0, 0, body[3] & 0x7F]) + body[4:] if wanted else b""


def serve(
    client: socket.socket,
    size: tuple[int, int],
    *,
    init: bytes | None = None,
    then: Iterable[bytes] = (),
    heard: list[tuple[int, bytes]] | None = None,
) -> None:
    """Let the client in, send it a picture, then these bytes, and go on answering until it leaves.

    Args:
        client: Its connection.
        size: Width and height of the screen.
        init: The server's description of itself, if not that of `server_init`.
        then: What follows the first picture, at once.
        heard: Gets what the client sent.
    """
    let_in(client, init or server_init(size))
    pending: Iterable[bytes] | None = then
    for kind, body in messages(client):
        if heard is not None:
            heard.append((kind, body))
        if kind == _UPDATE_REQUEST and not body[0]:
            client.sendall(picture(struct.unpack(">4H", body[1:9])))
            if pending is not None:
                for piece in pending:
                    client.sendall(piece)
                pending = None
        elif answer := fence_answered(kind, body):
            client.sendall(answer)
