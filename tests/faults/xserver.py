"""An X server that says what a test wants it to say, and for all else what one with an empty screen says.

It speaks just enough of X11 for a driver to be content with it.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROOT = 0x200
# A client's; it has the keyboard focus.
WINDOW = 0x60_0001
NOT_VIEWABLE = 3
FIRST_KEYCODE, LAST_KEYCODE = 8, 255
COLUMNS = 2

# Major opcode, first event, first error.
EXTENSIONS = {
    "BIG-REQUESTS": (128, 0, 0),
    "DAMAGE": (129, 91, 152),
    "XFIXES": (130, 87, 140),
    "XTEST": (131, 0, 0),
    "RANDR": (132, 89, 147),
    "XKEYBOARD": (133, 85, 137),
    "MIT-SHM": (134, 65, 128),
    "X-Resource": (135, 0, 0),
    "RECORD": (136, 0, 155),
}
DAMAGE_NOTIFY = EXTENSIONS["DAMAGE"][1]
CURSOR = "XFIXES.GetCursorImageAndName"
CURSOR_NOTIFY = EXTENSIONS["XFIXES"][1] + 1
CONFIGURE_NOTIFY, PROPERTY_NOTIFY, SELECTION_NOTIFY, MAPPING_NOTIFY = 22, 28, 31, 34

_CORE = {
    14: "GetGeometry",
    15: "QueryTree",
    16: "InternAtom",
    17: "GetAtomName",
    18: "ChangeProperty",
    20: "GetProperty",
    23: "GetSelectionOwner",
    24: "ConvertSelection",
    26: "GrabPointer",
    31: "GrabKeyboard",
    38: "QueryPointer",
    40: "TranslateCoordinates",
    43: "GetInputFocus",
    44: "QueryKeymap",
    73: "GetImage",
    98: "QueryExtension",
    101: "GetKeyboardMapping",
}
_EXTENDED = {
    "BIG-REQUESTS": {0: "Enable"},
    "DAMAGE": {0: "QueryVersion"},
    "XFIXES": {0: "QueryVersion", 19: "FetchRegion", 25: "GetCursorImageAndName"},
    "XTEST": {},
    "RANDR": {6: "GetScreenSizeRange", 20: "GetCrtcInfo", 25: "GetScreenResourcesCurrent", 42: "GetMonitors"},
    "XKEYBOARD": {0: "UseExtension", 4: "GetState", 8: "GetMap"},
    "MIT-SHM": {0: "QueryVersion", 4: "GetImage", 6: "AttachFd", 7: "CreateSegment"},
    "X-Resource": {4: "QueryClientIds"},
    "RECORD": {1: "CreateContext", 5: "EnableContext"},
}
_NAMES = {(major, None): name for major, name in _CORE.items()} | {
    (EXTENSIONS[extension][0], minor): f"{extension}.{name}"
    for extension, names in _EXTENDED.items()
    for minor, name in names.items()
}


def u16(*numbers: int) -> bytes:
    """CARD16s."""
    return struct.pack(f"<{len(numbers)}H", *numbers)


def u32(*numbers: int) -> bytes:
    """CARD32s."""
    return struct.pack(f"<{len(numbers)}I", *numbers)


@dataclass
class Request:
    """One request of a client."""

    name: str
    sequence: int
    body: bytes
    size: tuple[int, int]
    descriptors: list[int] = field(default_factory=list)

    def reply(self, fixed: bytes = b"", more: bytes = b"", *, second: int = 0, length: int | None = None) -> bytes:
        """A reply: its second byte, what follows the length, and what follows the first 32 bytes.

        Args:
            fixed: At most 24 bytes.
            more: Filled up to a multiple of 4 bytes.
            second: The second byte.
            length: What the length field claims; by default what `more` has.
        """
        more += bytes(-len(more) % 4)
        length = len(more) // 4 if length is None else length
        return struct.pack("<BBHI", 1, second, self.sequence & 0xFFFF, length) + fixed.ljust(24, b"\0") + more

    def event(self, kind: int, body: bytes = b"", *, second: int = 0) -> bytes:
        """An event: its second byte, and what follows the sequence number."""
        return struct.pack("<BBH", kind, second, self.sequence & 0xFFFF) + body.ljust(28, b"\0")

    def damage(self) -> bytes:
        """Everything was damaged."""
        return self.event(DAMAGE_NOTIFY, u32(ROOT, 1, 0) + u16(0, 0, *self.size, 0, 0, *self.size))


def setup(
    size: tuple[int, int],
    *,
    ids: tuple[int, int] = (0x400000, 0x1FFFFF),
    keycodes: tuple[int, int] = (FIRST_KEYCODE, LAST_KEYCODE),
    screens: int = 1,
    depth: int = 24,
    bits: int = 32,
    formats: int = 1,
    byte_order: int = 0,
    visuals: int | None = None,
    masks: tuple[int, int, int] = (0xFF0000, 0xFF00, 0xFF),
    visual_id: int = 0x21,
    vendor: bytes = b"fake",
    status: int = 1,
) -> bytes:
    """The server's description of itself."""
    visual = struct.pack("<IBBHIII4x", visual_id, 4, 8, 256, *masks)
    depths = struct.pack("<BxH4x", depth, 1 if visuals is None else visuals) + visual
    screen = struct.pack("<5I6HIBBBB", ROOT, 0x20, 0xFFFFFF, 0, 0, *size, 300, 200, 1, 1, 0x21, 0, 0, depth, 1) + depths
    body = struct.pack(
        "<4I2H8B4x", 1, *ids, 256, len(vendor), 65535, screens, formats, byte_order, 0, 32, 32, *keycodes
    )
    body += vendor + bytes(-len(vendor) % 4)
    body += struct.pack("<BBB5x", depth, bits, 32) * min(formats, 1)
    body += screen * min(screens, 1)
    return struct.pack("<BxHHH", status, 11, 0, len(body) // 4) + body


class Server:
    """Serves every client that comes to a socket of its own, each in a thread."""

    def __init__(
        self,
        directory: Path,
        answers: dict[str, Callable[[Request], bytes]] | None = None,
        *,
        size: tuple[int, int] = (640, 480),
        description: bytes | None = None,
        without: tuple[str, ...] = (),
    ) -> None:
        """Begin to listen.

        Args:
            directory: Where the socket will be.
            answers: What to send for a request of that name, instead of what is sent otherwise.
            size: Of the screen.
            description: Sent to a new client, instead of `setup`.
            without: Extensions that it does not have.
        """
        self.answers = answers or {}
        self.size = size
        self.without = without
        self.description = setup(size) if description is None else description
        self.atoms: dict[bytes, int] = {}
        self.sequence = 0
        self.closed = threading.Event()
        self.clients: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)
        path = directory / "X0"
        self._listener.bind(str(path))
        self._listener.listen()
        self.url = f"x11:unix:{path}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close every connection."""
        self.closed.set()
        for end in [self._listener, *self.clients]:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client = self._listener.accept()[0]
                self.clients.append(client)
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        # A client that ends the connection is what most tests want.
        with contextlib.suppress(OSError, EOFError):
            reader = _Reader(client)
            name, data = struct.unpack("<6x2H2x", reader.take(12))
            reader.take(name + -name % 4 + data + -data % 4)
            client.sendall(self.description)
            sequence = 0
            while True:
                head = reader.take(4)
                self.sequence = sequence = sequence + 1
                length = int.from_bytes(head[2:], "little")
                if length == 0:
                    length = int.from_bytes(reader.take(4), "little") - 1
                body = head[1:2] + reader.take(length * 4 - 4)
                major = head[0]
                name = _NAMES.get((major, head[1] if major >= 128 else None), "")
                request = Request(name, sequence, body, self.size, reader.descriptors)
                answer = self.answers.get(name)
                said = self.usual(request) if answer is None else answer(request)
                if said:
                    client.sendall(said)

    def atom(self, name: bytes) -> int:
        """The atom of that name."""
        return self.atoms.setdefault(name, 100 + len(self.atoms))

    def usual(self, request: Request) -> bytes:  # noqa: C901, PLR0911, PLR0912 # one case for each request
        """What is sent for a request that a test has no answer for."""
        reply, (width, height) = request.reply, self.size
        match request.name:
            case "QueryExtension":
                length = int.from_bytes(request.body[1:3], "little")
                found = EXTENSIONS.get(name := request.body[5 : 5 + length].decode())
                return reply(bytes([1, *found]) if found and name not in self.without else bytes(4))
            case "InternAtom":
                length = int.from_bytes(request.body[1:3], "little")
                return reply(u32(self.atom(request.body[5 : 5 + length])))
            case "GetGeometry":
                return reply(u32(ROOT) + u16(0, 0, width, height), second=24)
            case "GetInputFocus":
                return reply(u32(WINDOW))
            case "GrabKeyboard" | "GrabPointer":
                return reply(second=NOT_VIEWABLE)
            case "QueryPointer":
                return reply(u32(ROOT, 0) + u16(10, 10, 10, 10), second=1)
            case "QueryKeymap":
                return reply(bytes(24), bytes(8))
            case "QueryTree":
                return reply(u32(ROOT, 0))
            case "GetKeyboardMapping":
                first, count = request.body[1:3]
                return reply(more=keymap(first, count), second=COLUMNS)
            case "GetImage":
                pixels = struct.unpack("<2H", request.body[9:13])
                return reply(u32(0x21), bytes(4 * pixels[0] * pixels[1]), second=24)
            case "BIG-REQUESTS.Enable":
                return reply(u32(1 << 22))
            case "XFIXES.QueryVersion":
                return reply(u32(5, 0))
            case "DAMAGE.QueryVersion":
                return reply(u32(1, 1))
            case "MIT-SHM.QueryVersion":
                return reply(u16(1, 2))
            case "MIT-SHM.CreateSegment":
                return request.event(0, second=1)
            case "MIT-SHM.GetImage":
                return reply(u32(0x21, 0), second=24)
            case "XFIXES.GetCursorImageAndName":
                return reply(u16(0, 0, 1, 1, 0, 0) + u32(1), u32(0xFFFFFFFF))
            case "XFIXES.FetchRegion":
                return reply(u16(0, 0, width, height), u16(0, 0, width, height))
            case "XKEYBOARD.UseExtension":
                return reply(u16(1, 0), second=1)
            case "XKEYBOARD.GetMap":
                return reply(bytes([0, 0, FIRST_KEYCODE, LAST_KEYCODE]), bytes(8))
            case "RANDR.GetScreenSizeRange":
                return reply(u16(1, 1, 8192, 8192))
            case "RANDR.GetScreenResourcesCurrent" | "RANDR.GetMonitors" | "GetAtomName":
                return reply()
            case "GetProperty" | "GetSelectionOwner" | "TranslateCoordinates" | "XKEYBOARD.GetState":
                return reply()
            case "X-Resource.QueryClientIds" | "RANDR.GetCrtcInfo":
                return reply()
            case _:
                return b""


def keymap(first: int, count: int, columns: int = COLUMNS) -> bytes:
    """`a` and `A` on the second keycode, Shift on the third, and nothing on the others."""
    rows = {9: (0x61, 0x41), 10: (0xFFE1, 0)}
    row = struct.Struct(f"<{columns}I")
    return b"".join(
        row.pack(*(rows.get(code, (0, 0)) + (0,) * columns)[:columns]) for code in range(first, first + count)
    )


class _Reader:
    """What a client sends, and the descriptors that come with it."""

    def __init__(self, client: socket.socket) -> None:
        self._client = client
        self._data = b""
        self.descriptors: list[int] = []

    def take(self, count: int) -> bytes:
        while len(self._data) < count:
            piece, descriptors, _, _ = socket.recv_fds(self._client, 65536, 4)
            self.descriptors += descriptors
            if not piece:
                raise EOFError
            self._data += piece
        taken, self._data = self._data[:count], self._data[count:]
        return taken


def close_all(descriptors: list[int]) -> None:
    """Close descriptors that a client sent."""
    for descriptor in descriptors:
        os.close(descriptor)
    descriptors.clear()
