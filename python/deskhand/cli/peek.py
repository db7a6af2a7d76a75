"""Who drives a display, without disturbing whoever does: five requests of the core protocol, on a connection of their own.

`Desktop` would capture the screen first, and could learn that the display is driven only by trying to take it, at which moment
another driver would be turned away. What must never appear here: a request that changes anything.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deskhand.backends.x11 import cookie_for
from deskhand.errors import ConnectFailed
from deskhand.geometry import Size

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Peek", "peek"]

_SILENCE_LIMIT = 1.0
_GET_GEOMETRY, _INTERN_ATOM, _GET_PROPERTY, _GET_SELECTION_OWNER = 14, 16, 20, 23
_LEASE = b"_DESKHAND_DRIVER"
_SCREENS_AFTER = 32
_LONGEST = 1 << 20


@dataclass(frozen=True, slots=True)
class Peek:
    """What a display says of itself.

    Attributes:
        size: Its size in pixels.
        driver: Who drives it, in that driver's words; None when nobody does.
    """

    size: Size
    driver: str | None


def peek(display: str, xauthority: str | Path) -> Peek:
    """Look at a display of this machine.

    Raises:
        ConnectFailed: It is gone, refuses us, or says nothing for a second.
    """
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_SILENCE_LIMIT)
            connection.connect(f"/tmp/.X11-unix/X{display.removeprefix(':').partition('.')[0]}")  # noqa: S108
            name, data, _ = cookie_for(display, xauthority)
            return _ask(connection, name, data)
    except (OSError, struct.error, ValueError) as error:
        raise ConnectFailed(display, str(error)) from error


def _ask(connection: socket.socket, name: bytes, data: bytes) -> Peek:
    hello = struct.pack("<cxHHHHxx", b"l", 11, 0, len(name), len(data))
    connection.sendall(hello + _padded(name) + _padded(data))
    status, _, _, _, length = struct.unpack("<BBHHH", _read(connection, 8))
    setup = _read(connection, 4 * length)
    if status != 1:
        raise ValueError("it refused the connection")
    vendor, _, _, formats = struct.unpack_from("<HHBB", setup, 16)
    (root,) = struct.unpack_from("<I", setup, _SCREENS_AFTER + len(_padded(bytes(vendor))) + 8 * formats)

    geometry = _request(connection, _GET_GEOMETRY, 0, struct.pack("<I", root))
    if geometry is None:
        raise ValueError("it has no root window")
    size = Size(*struct.unpack_from("<HH", geometry, 16))
    # Only if it exists: where no driver has ever been, there is no such name, and we leave none behind.
    atom = _request(connection, _INTERN_ATOM, 1, struct.pack("<Hxx", len(_LEASE)) + _padded(_LEASE))
    lease = _number(atom)
    owner = _number(_request(connection, _GET_SELECTION_OWNER, 0, struct.pack("<I", lease))) if lease else 0
    if not owner:
        return Peek(size, None)
    value = _request(connection, _GET_PROPERTY, 0, struct.pack("<IIIII", owner, lease, 0, 0, 64))
    if value is None:
        # Its window has gone between the two questions.
        return Peek(size, None)
    (count,) = struct.unpack_from("<I", value, 16)
    return Peek(size, value[32 : 32 + count].decode("utf-8", "replace"))


def _request(connection: socket.socket, opcode: int, detail: int, body: bytes) -> bytes | None:
    """One request and its reply; None for an error."""
    connection.sendall(struct.pack("<BBH", opcode, detail, 1 + len(body) // 4) + body)
    while True:
        packet = _read(connection, 32)
        if packet[0] == 0:
            return None
        if packet[0] == 1:
            return packet + _read(connection, 4 * struct.unpack_from("<I", packet, 4)[0])
        # An event that every client gets, such as a changed keyboard.


def _number(reply: bytes | None) -> int:
    return int(struct.unpack_from("<I", reply, 8)[0]) if reply is not None else 0


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _read(connection: socket.socket, count: int) -> bytes:
    if count > _LONGEST:
        raise ValueError(f"it announced {count} bytes")
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            raise ValueError("it closed the connection")
        data += more
    return data
