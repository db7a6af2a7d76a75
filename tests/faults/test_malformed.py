"""What a hostile or broken VNC server may send: published flaws of other clients, and each limit of our own, through `connect`.

Each ends in `ProtocolViolation` within a second, or does nothing, with at most three framebuffers and 64 MiB more than before.
"""

from __future__ import annotations

import contextlib
import gc
import random
import select
import socket
import struct
import threading
import time
import zlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import deskhand
from conformance.fake import (
    CUT_TEXT,
    ELSEWHERE,
    FENCE,
    NO_SECURITY,
    OFFERED,
    SET_ENCODINGS,
    FakeServer,
    exactly,
    fence_answered,
    let_in,
    messages,
    picture,
    rectangle,
    serve,
    server_init,
    update,
)
from deskhand import KeyPress, Type
from deskhand.backends.vnc import login
from faults.helpers import Bounds, memory, until
from faults.scale import MUTATED_SESSIONS, PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

# The extended clipboard's flags.
EXTENDED_CLIPBOARD = 0xC0A1E5CE.to_bytes(4, "big")
NOTIFY_TEXT = (1 << 27 | 1).to_bytes(4, "big")

W, H = SIZE = (640, 480)
WHOLE = (0, 0, W, H)
LIMIT = 1.0
ROOM = 3 * W * H * 4 + (64 << 20)
FIXTURES = Path(__file__).parents[2] / "rust/rfb/tests/fixtures"

RAW, COPY, RRE, CORRE, HEXTILE, ZLIB, TIGHT, ULTRA, ZRLE = 0, 1, 2, 4, 5, 6, 7, 9, 16
LAST, SIZE_CHANGE, LAYOUT, CURSOR, CURSOR_ALPHA, X_CURSOR, NAME = -224, -223, -308, -239, -314, -240, -307
# Pseudo-encodings that are never offered.
QEMU_KEY, VMWARE_CURSOR, VMWARE_MODE = -258, 0x574D5664, 0x574D5669
BELL = b"\x02"


def u16(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}H", *numbers)


def u32(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}I", *numbers)


def one(rect: tuple[int, int, int, int], encoding: int, data: bytes = b"") -> bytes:
    return update(rectangle(rect, encoding, data))


def flushed(data: bytes) -> bytes:
    deflater = zlib.compressobj(9)
    return deflater.compress(data) + deflater.flush(zlib.Z_SYNC_FLUSH)


def repeated(data: bytes, times: int) -> bytes:
    """Data again and again, compressed twice only: each process of a run makes it when it collects the tests."""
    deflater = zlib.compressobj(9)
    first, other = (deflater.compress(data) + deflater.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return first + other * (times - 1)


def counted(data: bytes) -> bytes:
    return u32(len(data)) + data


def compact(data: bytes) -> bytes:
    """Tight's way to write a length before its data."""
    size = len(data)
    head = [size & 127 | (128 if size > 127 else 0)]
    if size > 127:
        head.append(size >> 7 & 127 | (128 if size > 16383 else 0))
    if size > 16383:
        head.append(size >> 14)
    return bytes(head) + data


def cut_text(length: int, data: bytes = b"") -> bytes:
    return b"\x03\0\0\0" + u32(length & 0xFFFFFFFF) + data


def pieces(data: bytes, times: int) -> Iterator[bytes]:
    """A flood that is not in memory as a whole: what is measured is ours."""
    for _ in range(times):
        yield data


def look_for(seconds: float, url: str) -> None:
    """Connect, and look again and again: a screen must be there, or the error that ends it."""
    until = time.monotonic() + seconds
    with deskhand.connect(url) as desktop:
        while time.monotonic() < until:
            assert desktop.screenshot().size in {SIZE, (800, 600)}


BOMB = repeated(bytes(1 << 20), 64)
TOO_LONG = W * H * 4 * 17 // 16 + (64 << 10) + 1

# What was published about other clients, by what it sends after the first picture.
FLAWS: dict[str, Iterable[bytes]] = {
    "LibVNC-247-CVE-2018-20019-cut-text-of-2^32-1": [cut_text(0xFFFFFFFF, b"x" * 4096)],
    "LibVNC-250-CVE-2018-20020-CoRRE-0x20000001-subrectangles": [one(WHOLE, CORRE, u32(0x20000001) + bytes(64))],
    "CVE-2018-20021-rows-longer-than-the-buffer": [one((0, 0, 65535, 1), RAW)],
    "CVE-2018-20024-Ultra-without-memory": [one((0, 0, 65535, 65535), ULTRA, u32(0x7FFFFFFF))],
    "CVE-2018-20748-cut-text-of-2^31": [cut_text(0x80000000)],
    "CVE-2019-15690-cursor-65535x65535": [one((0, 0, 65535, 65535), CURSOR, bytes(4096))],
    "CVE-2019-15691-ZRLE-ends-within-a-tile": [one(WHOLE, ZRLE, counted(flushed(b"\x01\x02\x03\x04\x82")))],
    "CVE-2019-15692-CopyRect-source-outside": [one((0, 0, 64, 64), COPY, u16(W - 1, H - 1))],
    "CVE-2019-15693-Tight-gradient-wider-than-2048": [one((0, 0, 4096, 8), TIGHT, b"\x40\x02" + compact(BOMB[:200]))],
    "CVE-2019-15693-Tight-gradient-with-too-much": [one(WHOLE, TIGHT, b"\x40\x02" + compact(BOMB))],
    "CVE-2019-15694-ZRLE-length-with-the-sign-bit": [one(WHOLE, ZRLE, u32(0x80000001) + bytes(64))],
    "CVE-2019-15695-XCursor-65535x65535": [one((0, 0, 65535, 65535), X_CURSOR, bytes(64))],
    "CVE-2017-5581-RRE-subrectangle-outside": [one(WHOLE, RRE, u32(1) + bytes(8) + u16(W - 1, 0, 200, 200))],
    "TigerVNC-378-Hextile-subrectangle-outside-its-tile": [one((0, 0, 4, 4), HEXTILE, b"\x0a\0\0\0\0\x01\xff\xff")],
    "TigerVNC-2132-Tight-2048x65535": [one((0, 0, 2048, 65535), TIGHT, b"\x00" + compact(BOMB))],
    "TigerVNC-2132-Tight-2048x65535-after-a-resize": [
        one((0, 0, 2048, 65535), SIZE_CHANGE) + one((0, 0, 2048, 65535), TIGHT, b"\x00")
    ],
    "TigerVNC-1067-height-23040": [one((0, 0, W, 23040), SIZE_CHANGE)],
    "GStreamer-2026-area-instead-of-sides": [one((0, 0, W + 80, 1), RAW, bytes((W + 80) * 4))],
    "gtk-vnc-CVE-2017-5884-Hextile-rectangle-outside": [one((W - 8, 0, 16, 16), HEXTILE, b"\x01" + bytes(2048))],
    "gtk-vnc-CVE-2017-5885-colours-beyond-the-map": [b"\x01\0" + u16(65535, 65535) + bytes(4096)],
    "LibVNC-137-CVE-2016-9941-subrectangle-outside": [one((W - 1, H - 1, 2, 2), RAW, bytes(16))],
    "LibVNC-CVE-2016-9942-Ultra-inflates-beyond-its-rectangle": [one((0, 0, 8, 8), ULTRA, counted(bytes(64)))],
    "LibVNC-CVE-2014-6051-size-that-overflows": [one((0, 0, 65535, 65535), SIZE_CHANGE)],
    "LibVNC-CVE-2020-14405-TextChat-of-2^31-1": [b"\x0b\0\0\0" + u32(0x7FFFFFFF)],
    "RealVNC-CVE-2008-4770-encoding-out-of-range": [one((0, 0, 1, 1), -1)],
    "RealVNC-CVE-2008-4770-encoding-never-offered": [one((0, 0, 8, 8), VMWARE_MODE, bytes(64))],
    "asyncvnc-1.3-Zlib-bomb": [one(WHOLE, ZLIB, counted(BOMB))],
    "vncdotool-1.4-ZRLE-bomb": [one(WHOLE, ZRLE, counted(BOMB))],
    "vncdotool-1.4-ZRLE-run-without-end": [
        one((0, 0, 64, 64), ZRLE, counted(flushed(b"\x80\1\2\3" + b"\xff" * 60_000)))
    ],
}

# One for each limit that has no flaw of its own above.
BEYOND: dict[str, Iterable[bytes]] = {
    "rectangle-right": [one((1, 0, W, 1), RAW)],
    "rectangle-below": [one((0, 1, 1, H), RAW)],
    "copies-without-end": pieces(one(WHOLE, COPY, u16(0, 0))[4:] * 100, 100),
    "LastRect-never-comes": pieces(rectangle((0, 0, 64, 480), RAW, bytes(64 * 480 * 4)) * 4, 100),
    "Zlib-length": [one(WHOLE, ZLIB, u32(TOO_LONG))],
    "ZRLE-length": [one(WHOLE, ZRLE, u32(TOO_LONG))],
    "Tight-length": [one((0, 0, 8, 8), TIGHT, b"\0\xff\xff\xff")],
    "Zlib-too-little": [one(WHOLE, ZLIB, counted(flushed(bytes(99))))],
    "Zlib-no-zlib": [one(WHOLE, ZLIB, counted(b"\xff" * 99))],
    "Tight-JPEG-not-asked-for": [one((0, 0, 8, 8), TIGHT, b"\x90" + compact(bytes(99)))],
    "Tight-filter": [one((0, 0, 8, 8), TIGHT, b"\x40\x03")],
    "Tight-palette-index": [one((0, 0, 8, 8), TIGHT, b"\x40\x01\x02" + bytes(9) + compact(flushed(b"\x09" * 64)))],
    "Tight-unknown-compression": [one((0, 0, 8, 8), TIGHT, b"\xf0" + bytes(64))],
    "ZRLE-palette-index": [one((0, 0, 4, 4), ZRLE, counted(flushed(b"\x82" + bytes(6) + b"\x02")))],
    "ZRLE-unknown-tile": [one((0, 0, 4, 4), ZRLE, counted(flushed(b"\x11" + bytes(64))))],
    "cursor-of-17-MiB": [one((0, 0, 2111, 2111), CURSOR)],
    "cursor-with-Tight-in-it": [one((0, 0, 4, 4), CURSOR_ALPHA, u32(7) + bytes(64))],
    "cut-text-of-18-MiB": [cut_text(18 << 20), *pieces(b"x" * (1 << 20), 18)],
    "fence-of-65-bytes": [b"\xf8\0\0\0\0\0\0\0\x41" + bytes(65)],
    "size-0x0": [one((0, 0, 0, 0), SIZE_CHANGE)],
    "size-640x0": [one((0, 0, W, 0), LAYOUT, bytes(4))],
    "size-17000": [one((0, 0, 17000, 10), SIZE_CHANGE)],
    "size-of-more-than-64-Mpx": [one((0, 0, 16384, 4097), LAYOUT, b"\0\0\0\0")],
    "sizes-20-times-a-second": pieces(one((0, 0, 800, 600), SIZE_CHANGE) + one(WHOLE, SIZE_CHANGE), 10),
    "message-of-no-type": [b"\xfa" + bytes(64)],
}


# What each of them is refused for: anything that comes after it makes no sense either.
WHY = {
    "LibVNC-247-CVE-2018-20019-cut-text-of-2^32-1": "bytes of a clipboard: 4294967295",
    "LibVNC-250-CVE-2018-20020-CoRRE-0x20000001-subrectangles": "expected one that was offered",
    "CVE-2018-20021-rows-longer-than-the-buffer": "the rectangle 65535x1+0+0 is not inside 640x480",
    "CVE-2018-20024-Ultra-without-memory": "expected one that was offered",
    "CVE-2018-20748-cut-text-of-2^31": "bytes of a clipboard: 2147483648",
    "CVE-2019-15690-cursor-65535x65535": "bytes of a cursor: 17716207620",
    "CVE-2019-15691-ZRLE-ends-within-a-tile": "ZRLE data: gives fewer bytes than its rectangle has",
    "CVE-2019-15692-CopyRect-source-outside": "the source of a copy 64x64+639+479 is not inside 640x480",
    "CVE-2019-15693-Tight-gradient-wider-than-2048": "the rectangle 4096x8+0+0 is not inside 640x480",
    "CVE-2019-15693-Tight-gradient-with-too-much": "Tight data: gives more bytes than its rectangle has",
    "CVE-2019-15694-ZRLE-length-with-the-sign-bit": "bytes of a ZRLE rectangle: 2147483649",
    "CVE-2019-15695-XCursor-65535x65535": "bytes of a rectangle that was not asked for: 1073725446",
    "CVE-2017-5581-RRE-subrectangle-outside": "expected one that was offered",
    "TigerVNC-378-Hextile-subrectangle-outside-its-tile": "a rectangle within a hextile 16x16+15+15 is not inside 4x4",
    "TigerVNC-2132-Tight-2048x65535": "the rectangle 2048x65535+0+0 is not inside 640x480",
    "TigerVNC-2132-Tight-2048x65535-after-a-resize": "the framebuffer's longer side: 65535",
    "TigerVNC-1067-height-23040": "the framebuffer's longer side: 23040",
    "GStreamer-2026-area-instead-of-sides": "the rectangle 720x1+0+0 is not inside 640x480",
    "gtk-vnc-CVE-2017-5884-Hextile-rectangle-outside": "the rectangle 16x16+632+0 is not inside 640x480",
    "gtk-vnc-CVE-2017-5885-colours-beyond-the-map": "the last entry of the colour map: 131070",
    "LibVNC-137-CVE-2016-9941-subrectangle-outside": "the rectangle 2x2+639+479 is not inside 640x480",
    "LibVNC-CVE-2016-9942-Ultra-inflates-beyond-its-rectangle": "expected one that was offered",
    "LibVNC-CVE-2014-6051-size-that-overflows": "the framebuffer's longer side: 65535",
    "LibVNC-CVE-2020-14405-TextChat-of-2^31-1": "the type of a message is 11",
    "RealVNC-CVE-2008-4770-encoding-out-of-range": "expected one that was offered",
    "RealVNC-CVE-2008-4770-encoding-never-offered": "expected one that was offered",
    "asyncvnc-1.3-Zlib-bomb": "zlib data: gives more bytes than its rectangle has",
    "vncdotool-1.4-ZRLE-bomb": "ZRLE data: gives more bytes than its rectangle has",
    "vncdotool-1.4-ZRLE-run-without-end": "the length of a run is",
    "rectangle-right": "the rectangle 640x1+1+0 is not inside 640x480",
    "rectangle-below": "the rectangle 1x480+0+1 is not inside 640x480",
    "copies-without-end": "pixels painted by one update",
    "LastRect-never-comes": "pixels painted by one update",
    "Zlib-length": "bytes of a zlib rectangle: 1371137",
    "ZRLE-length": "bytes of a ZRLE rectangle: 1371137",
    "Tight-length": "bytes of a Tight rectangle: 4194303",
    "Zlib-too-little": "zlib data: gives fewer bytes than its rectangle has",
    "Zlib-no-zlib": "zlib data: data error",
    "Tight-JPEG-not-asked-for": "the compression of a Tight rectangle is 9",
    "Tight-filter": "the filter of a Tight rectangle is 3",
    "Tight-palette-index": "an index into a palette is 9",
    "Tight-unknown-compression": "the compression of a Tight rectangle is 15",
    "ZRLE-palette-index": "an index into a palette is 2",
    "ZRLE-unknown-tile": "the subencoding of a ZRLE tile is 17",
    "cursor-of-17-MiB": "bytes of a cursor: 18382588",
    "cursor-with-Tight-in-it": "the encoding of a cursor with transparency is 7",
    "cut-text-of-18-MiB": "bytes of a clipboard: 18874368",
    "fence-of-65-bytes": "bytes of a fence's payload: 65",
    "size-0x0": "the framebuffer's shorter side is 0",
    "size-640x0": "the framebuffer's shorter side is 0",
    "size-17000": "the framebuffer's longer side: 17000",
    "size-of-more-than-64-Mpx": "pixels of the framebuffer: 67125248",
    "sizes-20-times-a-second": "changes of the framebuffer's size within a second: 11",
    "message-of-no-type": "the type of a message is 250",
}


def attacked(bytes_sent: Iterable[bytes]) -> FakeServer:
    return FakeServer(lambda client: serve(client, SIZE, then=bytes_sent), host=ELSEWHERE)


@pytest.mark.parametrize("name", [*FLAWS, *BEYOND])
def test_what_no_server_may_send(name: str) -> None:
    head = [update(count=65535)] if name in {"copies-without-end", "LastRect-never-comes"} else []
    server = attacked([*head, *(FLAWS | BEYOND)[name]])
    with Bounds(ROOM), pytest.raises(deskhand.ProtocolViolation) as broken:
        look_for(2 * LIMIT, server.url)
    assert WHY[name] in str(broken.value)
    server.join(5)
    assert not server.is_alive()


def test_a_server_that_nobody_reads_any_more_learns_of_the_end() -> None:
    """After a mistake a server goes on sending until nothing more goes; it must not wait there once the desktop is closed."""
    connected, full = threading.Event(), threading.Event()

    def talk(client: socket.socket) -> None:
        serve(client, SIZE, then=flooding(client, connected, full))

    server = FakeServer(talk, host=ELSEWHERE)
    desktop = deskhand.connect(server.url)
    connected.set()
    with pytest.raises(deskhand.ProtocolViolation):
        until(lambda: desktop.screenshot() is None, PATIENCE, "the mistake")
    assert full.wait(PATIENCE)
    desktop.close()
    server.join(5)
    assert not server.is_alive()


def flooding(client: socket.socket, connected: threading.Event, full: threading.Event) -> Iterator[bytes]:
    """What no message begins with, once somebody looks, and as much more as goes."""
    assert connected.wait(4 * PATIENCE)
    yield b"\xfa"
    client.settimeout(0)
    while select.select([], [client], [], 0.5)[1]:
        with contextlib.suppress(BlockingIOError):
            client.send(bytes(4096))
    client.settimeout(4 * PATIENCE)
    full.set()
    yield bytes(1 << 24)


# What is odd, and must do no harm. What is behind it is read as if it had not been there.
HARMLESS: dict[str, Iterable[bytes]] = {
    "CVE-2018-20021-rectangles-without-pixels": [
        one((0, 0, 0, H), RAW),
        one((0, 0, W, 0), RAW),
        one((W, H, 0, 0), RAW),
        one((0, 0, 0, 0), COPY, u16(0, 0)),
        one((0, 0, 0, 0), HEXTILE),
    ],
    "update-of-nothing": pieces(update(), 100),
    "65535-rectangles-without-pixels": [update(*[rectangle((0, 0, 0, 0), RAW)] * 65535)],
    "LastRect-ends-an-update": [update(rectangle((0, 0, 0, 0), LAST), count=65535)],
    "cursor-without-pixels": [one((0, 0, 0, 0), CURSOR), one((0, 0, 0, 0), CURSOR_ALPHA, bytes(4))],
    "cursor-of-513x2": [one((0, 0, 513, 2), CURSOR, bytes(513 * 2 * 4 + 65 * 2))],
    "cursor-of-16-MiB": [one((0, 0, 2000, 2000), CURSOR), *pieces(bytes(1 << 20), 15), bytes(16_500_000 - (15 << 20))],
    "pseudo-encodings-never-offered": [
        update(
            rectangle((0, 0, 0, 0), QEMU_KEY),
            rectangle((0, 0, 65535, 1), X_CURSOR, bytes(6 + 2 * 8192)),
            rectangle((0, 0, 0, 0), NAME, counted(b"a name")),
            rectangle((2, 2, 8, 8), VMWARE_CURSOR, b"\1\0" + bytes(256)),
        )
    ],
    "cut-text-of-8-MiB": [cut_text(8 << 20), *pieces(b"x" * (1 << 20), 8)],
    "cut-text-with-control-characters": [cut_text(8, b"\x1b[31m\0\xff\n")],
    "a-million-bells": pieces(BELL * 10_000, 100),
    "10-sizes-in-a-second": pieces(one((0, 0, 800, 600), SIZE_CHANGE), 10),
    "colours-nobody-asked-for": [b"\x01\0" + u16(0, 256) + bytes(6 * 256)],
    "the-end-of-updates-that-never-came": [b"\x96", b"\x96"],
    "answers-to-fences-never-sent": [b"\xf8\0\0\0\0\0\0\0\x04" + u32(1)],
}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_is_odd_and_does_no_harm(name: str) -> None:
    server = attacked(HARMLESS[name])
    with Bounds(ROOM), deskhand.connect(server.url) as desktop:
        # The server answers this after all that it has sent.
        assert len(desktop.screenshot().data) > 0
        assert desktop.screenshot().size == ((800, 600) if "sizes" in name else SIZE)
    server.join(5)
    assert not server.is_alive()


def test_what_was_skipped_is_told() -> None:
    server = attacked([*HARMLESS["pseudo-encodings-never-offered"]] * 2)
    with deskhand.connect(server.url) as desktop:
        desktop.screenshot()
        (told,) = [note for note in desktop.status if "not asked for" in note]
        assert told.endswith("which are skipped: -258 (2), -240 (2), -307 (2), 1464686180 (2)")


def test_a_clipboard_that_was_too_long_is_told() -> None:
    server = attacked(HARMLESS["cut-text-of-8-MiB"])
    with deskhand.connect(server.url) as desktop:
        desktop.screenshot()
        with pytest.raises(deskhand.BackendError, match="longer than 1 MiB"):
            desktop.clipboard.read()


def test_an_extended_clipboard_without_flags() -> None:
    def talk(client: socket.socket) -> None:
        let_in(client, server_init(SIZE))
        client.sendall(FENCE + picture(WHOLE))
        for kind, body in messages(client):
            if kind == SET_ENCODINGS and EXTENDED_CLIPBOARD in body:
                client.sendall(cut_text(-3, b"abc"))
            elif answer := fence_answered(kind, body):
                client.sendall(answer)

    server = FakeServer(talk, host=ELSEWHERE)
    with Bounds(ROOM), pytest.raises(deskhand.ProtocolViolation, match="bytes of a clipboard message is 3"):
        look_for(2 * LIMIT, server.url)
    server.join(5)


def refuses(before: bytes, reply: int, after: bytes) -> Callable[[socket.socket], None]:
    def talk(client: socket.socket) -> None:
        client.sendall(OFFERED)
        exactly(client, 12)
        client.sendall(before)
        exactly(client, reply)
        client.sendall(after)
        client.recv(1)

    return talk


def describes(init: bytes) -> Callable[[socket.socket], None]:
    def talk(client: socket.socket) -> None:
        let_in(client, init)
        client.recv(1)

    return talk


HANDSHAKES: dict[str, tuple[Callable[[socket.socket], None], type[deskhand.DeskhandError]]] = {
    "LibVNC-247-reason-of-2^32-1": (refuses(b"\0" + u32(0xFFFFFFFF), 0, b"x" * 64), deskhand.ProtocolViolation),
    "LibVNC-247-result-with-a-reason-of-2^32-1": (
        refuses(NO_SECURITY, 1, u32(1, 0xFFFFFFFF) + b"x" * 64),
        deskhand.ProtocolViolation,
    ),
    "WinVNC-CVE-2001-0167-long-reason": (
        refuses(b"\0" + counted(b"x" * (1 << 20)), 0, b""),
        deskhand.AuthFailed,
    ),
    "255-securities": (refuses(b"\xff" + bytes(range(31, 256)) * 2, 0, b""), deskhand.AuthFailed),
    "no-such-result": (refuses(NO_SECURITY, 1, u32(77)), deskhand.ProtocolViolation),
    "size-65535x65535": (describes(server_init((65535, 65535))), deskhand.ProtocolViolation),
    "size-0x0": (describes(server_init((0, 0))), deskhand.ProtocolViolation),
    "TigerVNC-2132-size-2048x65535": (describes(server_init((2048, 65535))), deskhand.ProtocolViolation),
    "size-of-more-than-64-Mpx": (describes(server_init((16384, 4097))), deskhand.ProtocolViolation),
    "LibVNC-273-name-of-2^32-1": (
        describes(server_init(SIZE)[:-8] + u32(0xFFFFFFFF) + b"x" * 4096),
        deskhand.ProtocolViolation,
    ),
    "no-VNC-server": (lambda client: client.sendall(b"HTTP/1.1 400 Bad Request\r\n"), deskhand.ProtocolViolation),
    "ends-in-the-middle": (describes(server_init(SIZE)[:10]), deskhand.ConnectFailed),
}


@pytest.mark.parametrize("name", HANDSHAKES)
def test_handshakes(name: str) -> None:
    talk, error = HANDSHAKES[name]
    server = FakeServer(talk, host=ELSEWHERE)
    with Bounds(ROOM), pytest.raises(error) as caught:
        deskhand.connect(server.url, timeout=2.0)
    assert len(str(caught.value)) < 2000
    server.join(5)


@pytest.mark.parametrize(
    "pixels", [bytes([7, 0, 1, 1, *b"\xff" * 6, 255, 255, 255, 0, 0, 0]), bytes([8, 8, 0, 0, *bytes(12)]), bytes(16)]
)
def test_the_form_of_pixels_is_ours(pixels: bytes) -> None:
    """CVE-2019-15695: a server's own form of pixels, of 255 bits or none, reaches no decoder: we ask for another at once."""
    cursor = one((3, 3, 64, 64), CURSOR, bytes(64 * 64 * 4 + 64 * 8))

    init = server_init(SIZE, pixels=pixels)
    server = FakeServer(lambda client: serve(client, SIZE, init=init, then=[cursor]), host=ELSEWHERE)
    with Bounds(ROOM), deskhand.connect(server.url) as desktop:
        assert desktop.screenshot().size == SIZE


def test_what_we_send_has_no_memory_in_it() -> None:
    """CVE-2018-20022: the padding of keys and texts that another client sent was whatever its stack had held."""
    heard: list[tuple[int, bytes]] = []
    server = FakeServer(lambda client: serve(client, SIZE, heard=heard))
    with deskhand.connect(server.url) as desktop:
        desktop.perform(Type("text"), KeyPress(["ctrl", "a"]), settle=False)
        desktop.clipboard.write("copied")
        desktop.screenshot()
    server.join(5)
    padding = {0: slice(0, 3), 2: slice(0, 1), 4: slice(1, 3), 6: slice(0, 3)}
    assert set(padding) <= {kind for kind, _ in heard}
    assert all(not any(body[padding[kind]]) for kind, body in heard if kind in padding)


def test_who_drips_is_given_up() -> None:
    """A handshake that comes byte by byte is bounded by the caller's limit, not by the number of bytes."""
    done = threading.Event()

    def talk(client: socket.socket) -> None:
        for byte in OFFERED * 100:
            client.sendall(bytes([byte]))
            done.wait(0.1)

    server = FakeServer(talk, host=ELSEWHERE)
    with Bounds(ROOM), pytest.raises(deskhand.ConnectFailed, match="no answer within"):
        deskhand.connect(server.url, timeout=0.5)
    done.set()
    server.join(20)


def test_who_stops_in_the_middle_is_given_up() -> None:
    """A message that does not go on: five seconds of grace, then `ProtocolViolation`."""
    server = attacked([one(WHOLE, RAW, bytes(100))])
    begun = time.monotonic()
    with pytest.raises(deskhand.ProtocolViolation, match="expected 1 KiB for each second"):
        look_for(60, server.url)
    assert time.monotonic() - begun >= 5
    server.join(5)


@pytest.mark.parametrize("asked", ["fences", "updates", "clipboard"])
def test_answers_that_nobody_reads_are_not_piled_up(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that asks and asks, and never reads what we answer."""
    # A machine that has not read for four seconds is lost, which a busy one's flood may take.
    patient = tuple(option for option in login._KEEP_ALIVE if option[1] != socket.TCP_USER_TIMEOUT)
    monkeypatch.setattr(login, "_KEEP_ALIVE", patient)
    done = threading.Event()
    flood = {
        "fences": (b"\xf8\0\0\0\x80\0\0\0\x40" + bytes(64)) * 10_000,
        "updates": update() * 100_000,
        "clipboard": (cut_text(-4, u32(1 << 25 | 1)) + cut_text(-4, u32(1 << 26))) * 10_000,
    }[asked]

    def talk(client: socket.socket) -> None:
        let_in(client, server_init(SIZE))
        client.sendall(FENCE + picture(WHOLE) + cut_text(-4, u32(1 << 24 | 1 << 28)))
        # It reads until the client has told of text on its clipboard.
        for kind, body in messages(client):
            if answer := fence_answered(kind, body):
                client.sendall(answer)
            if kind == CUT_TEXT and body[7:11] == NOTIFY_TEXT:
                break
        while not done.is_set():
            client.sendall(flood)

    server = FakeServer(talk, host=ELSEWHERE)
    with Bounds(ROOM):
        desktop = deskhand.connect(server.url)
        try:
            desktop.clipboard.write(random.Random(1).randbytes(500_000).hex())
            with pytest.raises(deskhand.ProtocolViolation, match="answers"):
                # One that comes before the flood has a frame.
                until(lambda: not desktop.screenshot(), 20, "the end")
        finally:
            desktop.close()
    done.set()
    server.join(20)


def sessions() -> list[tuple[tuple[int, int], bytes]]:
    """What real servers sent, in the form of pixels that we ask for: the size, and the bytes after the handshake."""
    found = []
    for name in ("xvnc-copyrect-hextile", "xvnc-zrle", "xvnc-tight", "x11vnc-zlib", "x11vnc-zrle"):
        line, _, stream = (FIXTURES / f"{name}.rfb").read_bytes().partition(b"\n")
        _, width, height, *_ = line.split(b" ")
        found.append(((int(width), int(height)), stream))
    return found


def mutated(stream: bytes, other: bytes, chance: random.Random) -> bytes:
    """A few mistakes, of the kinds that break parsers: near the beginning more often, where the headers are."""
    data = bytearray(stream)
    for _ in range(chance.choice((1, 1, 2, 5, 20))):
        at = (
            min(int(chance.expovariate(1 / 2000)), len(data) - 1)
            if chance.random() < 0.7
            else chance.randrange(len(data))
        )
        match chance.randrange(6):
            case 0:
                data[at] = chance.randrange(256)
            case 1:
                data[at] ^= 1 << chance.randrange(8)
            case 2:
                data[at : at + 4] = chance.choice(
                    (b"\0\0\0\0", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\0\0\0")
                )
            case 3:
                del data[at : at + chance.randrange(1, 50)]
            case 4:
                data[at:at] = data[at : at + chance.randrange(1, 50)]
            case _:
                begin = chance.randrange(len(other))
                data[at:at] = other[begin : begin + chance.randrange(1, 400)]
    return bytes(data)


def test_mutated_sessions_raise_only_typed_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recorded sessions with mistakes in them: whatever comes of it is one of our errors, or a picture."""
    # The fake does not come back.
    monkeypatch.setattr("deskhand.backends.vnc.backend._RECONNECT_LIMIT", 0.05)
    recorded = sessions()
    outcomes: Counter[str] = Counter()
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    before = memory("VmRSS")
    largest = max(width * height for (width, height), _ in recorded) * 4
    for number in range(MUTATED_SESSIONS):
        chance = random.Random(number)
        size, stream = chance.choice(recorded)
        sent = mutated(stream, chance.choice(recorded)[1], chance)

        def talk(client: socket.socket, size: tuple[int, int] = size, sent: bytes = sent) -> None:
            let_in(client, server_init(size))
            # What is still waiting for the end of something gets one that is no message.
            client.sendall(sent + b"\xfa" * 65536)
            # A close with bytes unread would reset the connection, and what was sent would not all arrive.
            client.shutdown(socket.SHUT_WR)
            while client.recv(65536):
                pass

        server = FakeServer(talk, host=ELSEWHERE)
        try:
            with deskhand.connect(server.url, timeout=5) as desktop:
                desktop.screenshot()
            outcomes["picture"] += 1
        except deskhand.BackendError as error:
            outcomes[type(error).__name__] += 1
        server.join(5)
        assert not server.is_alive(), number
    assert memory("VmHWM") - before <= 3 * largest + (64 << 20)
    # It is mistakes in the protocol that are looked for, not broken connections.
    assert outcomes["ProtocolViolation"] > MUTATED_SESSIONS / 2, outcomes
