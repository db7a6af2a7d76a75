"""What a hostile or broken X server may say: each ends in an error of ours or does nothing.

The process and its other desktops go on; one on a real server is there to show it.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import deskhand
from conformance.servers import xvnc
from deskhand import BackendError, DesktopLost, ProtocolViolation, Type, _native
from deskhand.desktop.access import core_of
from faults.helpers import Bounds
from faults.scale import PATIENCE
from faults.xserver import (
    CONFIGURE_NOTIFY,
    CURSOR,
    CURSOR_NOTIFY,
    FIRST_KEYCODE,
    LAST_KEYCODE,
    MAPPING_NOTIFY,
    PROPERTY_NOTIFY,
    ROOT,
    SELECTION_NOTIFY,
    Request,
    Server,
    close_all,
    keymap,
    setup,
    u16,
    u32,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from deskhand import Desktop

W, H = SIZE = (640, 480)
KEYCODES = LAST_KEYCODE - FIRST_KEYCODE + 1
FRAME = W * H * 4
# What a case may cost beyond three framebuffers: one reply of the longest that is accepted, as it came and as it was read.
ROOM = 3 * FRAME + (64 << 20)


@pytest.fixture(scope="module")
def neighbour() -> Iterator[Desktop]:
    """Another desktop of this process, on a real server."""
    with deskhand.launch(size=SIZE, window_manager=None) as desktop:
        yield desktop


def look(desktop: Desktop) -> None:
    """Look for a while."""
    deadline = time.monotonic() + 1
    while time.monotonic() < deadline:
        desktop.screenshot()


def listed(desktop: Desktop) -> None:
    """List the windows."""
    desktop.windows.list()


def typed(desktop: Desktop) -> None:
    """Type what is on the keymap."""
    desktop.perform(Type("aA"), settle=False)


def typed_exotic(desktop: Desktop) -> None:
    """Type what borrows keycodes."""
    desktop.perform(Type("жя"), settle=False)


def settled(desktop: Desktop) -> None:
    """Type, and wait for the application."""
    desktop.perform(Type("a"))


def resized(desktop: Desktop) -> None:
    """Change the size."""
    desktop.resize((800, 600))


def pasted(desktop: Desktop) -> None:
    """Read the clipboard."""
    assert desktop.clipboard.read() is not None


@dataclass
class Case:
    """Answers, what is done, and the error that must come; None where all must go well."""

    answers: dict[str, Callable[[Request], bytes]]
    act: Callable[[Desktop], None] = look
    error: type[deskhand.DeskhandError] | None = ProtocolViolation
    why: str = ""
    method: str | None = None
    room: int = ROOM


def once(name: str, answer: Callable[[Request], bytes]) -> dict[str, Callable[[Request], bytes]]:
    """One request is answered so."""
    return {name: answer}


def pointer(request: Request) -> bytes:
    """The usual answer to QueryPointer."""
    return request.reply(u32(ROOT, 0) + u16(10, 10, 10, 10), second=1)


def geometry(width: int, height: int) -> Callable[[Request], bytes]:
    """A screen of this size."""
    return lambda request: request.reply(u32(ROOT) + u16(0, 0, width, height), second=24)


def later(first: Callable[[Request], bytes], then: Callable[[Request], bytes]) -> Callable[[Request], bytes]:
    """The first of these requests is answered so, the others so."""
    asked: list[int] = []

    def answer(request: Request) -> bytes:
        asked.append(request.sequence)
        return first(request) if len(asked) == 1 else then(request)

    return answer


def grown(width: int, height: int) -> dict[str, Callable[[Request], bytes]]:
    """A screen that says after a while that it has this size."""
    return {
        "GetGeometry": later(geometry(W, H), geometry(width, height)),
        "QueryPointer": lambda r: (
            r.event(CONFIGURE_NOTIFY, u32(ROOT, ROOT, 0) + u16(0, 0, width, height, 0, 0)) + pointer(r)
        ),
    }


def flood(request: Request) -> bytes:
    """Events, and no answer."""
    return request.event(PROPERTY_NOTIFY, u32(ROOT, 9, 0)) * 600_000


def rectangles(count: int, rect: tuple[int, int, int, int]) -> dict[str, Callable[[Request], bytes]]:
    """Damage in so many places, each of them this one."""
    part = struct.pack("<hhHH", *rect)
    return {
        "QueryPointer": lambda r: r.damage() + pointer(r),
        "XFIXES.FetchRegion": lambda r: r.reply(part, part * count),
    }


def property_of(request: Request) -> int:
    """The property that is asked for."""
    return int.from_bytes(request.body[5:9], "little")


def endless(request: Request) -> bytes:
    """A property of which there is always more."""
    length = int.from_bytes(request.body[17:21], "little") * 4
    return request.reply(u32(31, 4, length), bytes(length), second=8)


def words(request: Request, count: int) -> bytes:
    """A property of so many words, however many were asked for."""
    return request.reply(u32(33, 0, count), u32(*range(1, count + 1)), second=32)


def selected(request: Request) -> bytes:
    """Whoever asks for the clipboard is told that it is there."""
    requestor, selection, target, place, moment = struct.unpack("<5I", request.body[1:21])
    return request.event(SELECTION_NOTIFY, u32(moment, requestor, selection, target, place))


def remapped(request: Request) -> bytes:
    """The keyboard is another one each time it is asked for."""
    first, count = request.body[1:3]
    columns = 2 + request.sequence % 2
    rows = bytearray(keymap(first, count, columns))
    rows[4 * columns * 50 : 4 * columns * 50 + 4] = u32(0x62 + request.sequence % 20)
    return request.reply(more=bytes(rows), second=columns)


def mapping_changed(request: Request) -> bytes:
    """Whoever asks for the focus is told that the keyboard is another one."""
    return request.event(MAPPING_NOTIFY, bytes([1, FIRST_KEYCODE, KEYCODES])) + request.reply(u32(1))


def focused(request: Request) -> bytes:
    """A window has the focus."""
    return request.reply(u32(0x600001))


LONGEST = (16 << 20) // 4

CASES: dict[str, Case] = {
    # Lengths.
    "a-reply-of-16-GiB": Case(once("QueryPointer", lambda r: r.reply(length=0xFFFFFFFF)), why="17179869212 bytes"),
    "a-reply-of-256-MiB": Case(once("QueryPointer", lambda r: r.reply(length=1 << 26)), why="268435488 bytes"),
    "a-reply-just-too-long": Case(once("QueryPointer", lambda r: r.reply(length=LONGEST + 1)), why="16777252 bytes"),
    "an-event-of-16-GiB": Case(
        once("QueryPointer", lambda _: b"\x23\0\0\0\xff\xff\xff\xff" + bytes(24)), why="an event of"
    ),
    "a-reply-that-nobody-asked-for": Case(
        once("QueryPointer", lambda r: pointer(r) + r.reply(more=bytes(1 << 20)) * 3), why="was not requested"
    ),
    "a-reply-to-what-is-not-replied-to": Case(
        once(CURSOR, lambda r: Request("", r.sequence - 1, b"", SIZE).reply(more=bytes(1 << 20)) * 3),
        why="was not requested",
    ),
    "a-reply-to-what-was-never-asked": Case(
        once("QueryPointer", lambda r: Request("", r.sequence + 9, b"", SIZE).reply(more=bytes(1 << 20))),
        why="was not requested",
    ),
    "errors-that-nobody-made": Case(
        once(
            "QueryPointer", lambda r: Request("", r.sequence - 1, b"", SIZE).event(0, second=3) * 100_000 + pointer(r)
        ),
        why="twice",
    ),
    "errors-to-what-will-be-asked": Case(
        once("QueryPointer", lambda _: b"".join(Request("", n, b"", SIZE).event(0) for n in range(140_000))),
        why="events at once",
    ),
    "events-without-an-answer": Case(once("QueryPointer", flood), why="events at once"),
    # The keyboard.
    "no-keysyms-per-keycode": Case(
        once("GetKeyboardMapping", lambda r: r.reply(more=keymap(8, 248), second=0)), why="496 keysyms, 0 for each"
    ),
    "no-keysyms": Case(once("GetKeyboardMapping", lambda r: r.reply(second=2)), why="0 keysyms, 2 for each"),
    "too-few-keysyms": Case(
        once("GetKeyboardMapping", lambda r: r.reply(more=keymap(8, 100), second=2)), why="200 keysyms, 2 for each"
    ),
    "too-many-keysyms": Case(
        once("GetKeyboardMapping", lambda r: r.reply(more=bytes(4 * 2 * 300), second=2)), why="600 keysyms, 2 for each"
    ),
    "a-keyboard-that-always-changes": Case(
        {"GetKeyboardMapping": remapped, "GetInputFocus": mapping_changed}, typed, BackendError, "layout was changed"
    ),
    "keysyms-beyond-the-reply": Case(
        once(
            "XKEYBOARD.GetMap",
            lambda r: r.reply(bytes([0, 0, 8, 255]) + u16(2) + bytes(3) + bytes([8, 255, 255, 248]), bytes(8)),
        ),
        typed_exotic,
    ),
    # The screen.
    "a-screen-of-0x0": Case(once("GetGeometry", geometry(0, 0)), why="its screen has 0x0 pixels"),
    "a-screen-without-width": Case(once("GetGeometry", geometry(0, 65535)), why="0x65535 pixels"),
    "a-screen-of-65535x65535": Case(once("GetGeometry", geometry(65535, 65535)), why="65535x65535 pixels"),
    "a-screen-that-becomes-65535x65535": Case(grown(65535, 65535), why="65535x65535 pixels"),
    "a-screen-that-becomes-640x0": Case(grown(640, 0), why="640x0 pixels"),
    "pixels-missing": Case(
        once("GetImage", lambda r: r.reply(u32(0x21), bytes(100), second=24)),
        why="it sent 100 bytes for",
        method="socket",
    ),
    "pixels-to-spare": Case(
        once("GetImage", lambda r: r.reply(u32(0x21), bytes(8 << 20), second=24)), error=None, method="socket"
    ),
    "damage-of-the-whole-screen-a-million-times": Case(rectangles(1_000_000, (0, 0, W, H)), error=None),
    "damage-of-the-whole-screen-24-times": Case(rectangles(24, (0, 0, W, H)), error=None),
    "damage-outside": Case(rectangles(3, (-32768, -32768, 65535, 65535)), error=None),
    "damage-without-pixels": Case(rectangles(50, (5, 5, 0, 0)), error=None),
    "damage-without-end": Case(
        {
            "QueryPointer": lambda r: r.damage() + pointer(r),
            "XFIXES.FetchRegion": lambda r: r.damage() + r.reply(u16(0, 0, 1, 1), u16(0, 0, 1, 1)),
        },
        error=None,
    ),
    "a-pointer-far-outside": Case(
        once("QueryPointer", lambda r: r.reply(u32(ROOT, 0) + struct.pack("<4h", -32768, 32767, 0, 0), second=1)),
        error=None,
    ),
    "a-cursor-of-65535x65535": Case(
        once(CURSOR, lambda r: r.reply(u16(0, 0, 65535, 65535, 65535, 65535), bytes(64))), error=None
    ),
    "a-cursor-without-its-pixels": Case(
        once(CURSOR, lambda r: r.reply(u16(0, 0, 512, 512, 0, 0), bytes(64))), why="cannot be read"
    ),
    "a-cursor-without-pixels": Case(once(CURSOR, lambda r: r.reply(u16(0, 0, 0, 512, 700, 700))), error=None),
    # Windows.
    "more-of-a-property-than-was-asked-for": Case(
        once("GetProperty", lambda r: words(r, 1 if r.body[1:5] == u32(ROOT) else 200_000)), listed, error=None
    ),
    "a-window-title-of-16-MB": Case(
        once(
            "GetProperty",
            lambda r: (
                words(r, 1) if property_of(r) < 120 else r.reply(u32(31, 0, 16_000_000), bytes(16_000_000), second=8)
            ),
        ),
        listed,
        error=None,
    ),
    "a-class-that-is-no-text": Case(once("GetProperty", lambda r: words(r, 8)), listed, error=None),
    "a-property-in-9-bits": Case(
        once("GetProperty", lambda r: r.reply(u32(33, 0, 1 << 31), bytes(64), second=9)), listed, why="cannot be read"
    ),
    "windows-that-are-their-own-parents": Case(
        {"GetInputFocus": focused, "QueryTree": lambda r: r.reply(u32(ROOT, 0x600001))}, settled, error=None
    ),
    "children-beyond-the-reply": Case(
        {"GetInputFocus": focused, "QueryTree": lambda r: r.reply(u32(ROOT, ROOT) + u16(65535))},
        settled,
        why="cannot be read",
    ),
    "four-thousand-million-client-ids": Case(
        {"GetInputFocus": focused, "X-Resource.QueryClientIds": lambda r: r.reply(u32(0xFFFFFFFF), bytes(64))},
        settled,
        why="client ids",
    ),
    "a-client-id-of-4-GiB": Case(
        {
            "GetInputFocus": focused,
            "X-Resource.QueryClientIds": lambda r: r.reply(u32(1), u32(0, 2, 0xFFFFFFFC) + bytes(64)),
        },
        settled,
        why="client id",
    ),
    # The clipboard.
    "a-clipboard-without-end": Case(
        {"ConvertSelection": selected, "GetProperty": endless},
        pasted,
        BackendError,
        "more than 64 MiB",
        # What is read, as it grows.
        room=ROOM + (3 * 64 << 20),
    ),
    "a-clipboard-that-only-says-that-there-is-more": Case(
        {"ConvertSelection": selected, "GetProperty": lambda r: r.reply(u32(31, 9, 0), second=8)},
        pasted,
        BackendError,
        "parts do not fit together",
    ),
    "a-clipboard-of-2-GiB": Case(
        {"ConvertSelection": selected, "GetProperty": lambda r: r.reply(u32(31, 1 << 31, 4), bytes(4), second=8)},
        pasted,
        BackendError,
        "more than 64 MiB",
    ),
    # RandR.
    "outputs-beyond-the-reply": Case(
        once("RANDR.GetScreenResourcesCurrent", lambda r: r.reply(u32(0, 0) + u16(65535, 65535, 65535))),
        resized,
        why="cannot be read",
    ),
    "sizes-from-65535-to-0": Case(
        once("RANDR.GetScreenSizeRange", lambda r: r.reply(u16(65535, 65535, 0, 0))),
        resized,
        BackendError,
        "may be 65535x",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_no_server_may_say(name: str, tmp_path: Path, neighbour: Desktop) -> None:
    case = CASES[name]

    def drive(server: Server) -> None:
        with deskhand.connect(server.url, method=case.method) as desktop:
            case.act(desktop)

    with Server(tmp_path, case.answers) as server, Bounds(case.room):
        if case.error is None:
            drive(server)
        else:
            with pytest.raises(case.error) as caught:
                drive(server)
            assert case.why in str(caught.value)
            assert len(str(caught.value)) < 500
    assert neighbour.screenshot().size == SIZE


SETUPS: dict[str, tuple[bytes, type[deskhand.DeskhandError], str]] = {
    "no-screens": (setup(SIZE, screens=0), deskhand.ConnectFailed, ""),
    "screens-that-are-not-there": (setup(SIZE, screens=255), deskhand.ConnectFailed, ""),
    "visuals-that-are-not-there": (setup(SIZE, visuals=65535), deskhand.ConnectFailed, ""),
    "formats-that-are-not-there": (setup(SIZE, formats=255), deskhand.ConnectFailed, ""),
    "no-formats": (setup(SIZE, formats=0), BackendError, "24 bit colour"),
    "16-bits": (setup(SIZE, depth=16, bits=16), BackendError, "24 bit colour"),
    "24-bits-in-24": (setup(SIZE, bits=24), BackendError, "24 bit colour"),
    "the-other-end-first": (setup(SIZE, byte_order=1), BackendError, "24 bit colour"),
    "red-first": (setup(SIZE, masks=(0xFF, 0xFF00, 0xFF0000)), BackendError, "blue first"),
    "no-visual-of-the-screen": (setup(SIZE, visual_id=0x22), BackendError, "24 bit colour"),
    "256-keycodes": (setup(SIZE, keycodes=(0, 255)), ProtocolViolation, "keycodes are 0 to 255"),
    "keycodes-backwards": (setup(SIZE, keycodes=(255, 8)), ProtocolViolation, "keycodes are 255 to 8"),
    "no-ids": (setup(SIZE, ids=(0x400000, 0)), deskhand.ConnectFailed, ""),
    "one-id": (setup(SIZE, ids=(0xFFFFFFFE, 1)), ProtocolViolation, "the ids 0xfffffffe"),
    "ids-with-gaps": (setup(SIZE, ids=(0, 0x15555555)), ProtocolViolation, "the mask 0x15555555"),
    "no-such-status": (setup(SIZE, status=9), deskhand.ConnectFailed, ""),
    "a-reason-of-262140-bytes": (b"\2\0\0\0\0\0\xff\xff" + b"x" * 4 * 65535, deskhand.AuthFailed, "xxx"),
    "ends-in-the-middle": (setup(SIZE)[:100], DesktopLost, ""),
    "no-X-server": (b"HTTP/1.1 400 Bad Request\r\n\r\n" + bytes(4 * 65535), deskhand.ConnectFailed, ""),
}


@pytest.mark.parametrize("name", SETUPS)
def test_descriptions_of_itself(name: str, tmp_path: Path, neighbour: Desktop) -> None:
    description, error, why = SETUPS[name]
    with Server(tmp_path, description=description) as server, Bounds(ROOM):
        if name == "ends-in-the-middle":
            threading.Timer(0.5, server.__exit__).start()
            error = deskhand.ConnectFailed
        with pytest.raises(error) as caught:
            deskhand.connect(server.url, timeout=1)
    assert why in str(caught.value)
    assert len(str(caught.value)) < 800
    assert neighbour.screenshot().size == SIZE


def test_a_screen_with_red_first_is_refused(tmp_path: Path) -> None:
    """Its red and blue would be swapped."""
    with xvnc(tmp_path, "-pixelformat", "bgr888") as place:
        assert place.environment is not None
        with pytest.raises(BackendError, match=r"blue first.*-pixelformat rgb888"):
            deskhand.connect(f"x11:{place.environment['DISPLAY']}")


def test_an_error_for_an_extension_is_told(tmp_path: Path, neighbour: Desktop) -> None:
    """X11 has no error for that request; x11rb alone would wait for a lock that this very thread holds."""
    answers = once("QueryExtension", lambda r: r.event(0, second=3))
    with Server(tmp_path, answers) as server, Bounds(ROOM), pytest.raises((deskhand.ConnectFailed, BackendError)):
        deskhand.connect(server.url, timeout=1)
    assert neighbour.screenshot().size == SIZE


def test_what_comes_with_the_cursor_is_not_waited_for(tmp_path: Path) -> None:
    """Damage that has been read together with the cursor's image: no further news would end a wait for it."""
    armed = threading.Event()
    answers = {
        CURSOR: lambda r: server.usual(r) + (r.damage() if armed.is_set() else b""),
        "GetImage": lambda r: r.reply(u32(0x21), (b"\1" if armed.is_set() else b"\0") * FRAME, second=24),
    }
    with Server(tmp_path, answers) as server, deskhand.connect(server.url, method="socket") as desktop:
        core = core_of(desktop)
        with core.turn():
            core.backend.look()
            armed.set()
            server.clients[0].sendall(Request("", server.sequence, b"", SIZE).event(CURSOR_NOTIFY))
            assert core.backend.wait(0.0)


def test_windows_are_asked_about_together(tmp_path: Path) -> None:
    """Nothing is said of any before all have been asked about: a look that waits for one after the other never ends."""
    windows = range(0x60_0001, 0x60_0001 + 50)

    class Withholding(Server):
        held: bytes | None = None

        def usual(self, request: Request) -> bytes:
            said, about = super().usual(request), int.from_bytes(request.body[1:5], "little")
            if request.name == "GetProperty" and property_of(request) == self.atom(b"_NET_SUPPORTING_WM_CHECK"):
                said = request.reply(u32(33, 0, 1), u32(windows[0]), second=32)
            elif request.name == "GetProperty" and property_of(request) == self.atom(b"_NET_CLIENT_LIST_STACKING"):
                said = request.reply(u32(33, 0, len(windows)), u32(*windows), second=32)
            elif request.name == "GetGeometry" and about == windows[0]:
                self.held = b""
            if self.held is None:
                return said
            self.held += said
            if request.name != "GetGeometry" or about != windows[-1]:
                return b""
            said, self.held = self.held, None
            return said

    with Withholding(tmp_path) as server, deskhand.connect(server.url) as desktop:
        assert [window.id for window in desktop.windows.list()] == list(windows)


def test_the_size_is_told_while_a_server_is_waited_for(tmp_path: Path) -> None:
    """A picture of several answers, of which only the first comes."""
    armed, waited_for, go_on = threading.Event(), threading.Event(), threading.Event()
    asked: list[int] = []

    def image(request: Request) -> bytes:
        if armed.is_set():
            asked.append(request.sequence)
            if len(asked) > 1:
                waited_for.set()
                go_on.wait(30)
        return server.usual(request)

    answers = {"GetImage": image, "QueryPointer": lambda r: (r.damage() if armed.is_set() else b"") + pointer(r)}
    size = (1600, 1200)
    with (
        Server(tmp_path, answers, size=size) as server,
        deskhand.connect(server.url, method="socket") as desktop,
        ThreadPoolExecutor(2) as pool,
    ):
        armed.set()
        looking = pool.submit(desktop.screenshot)
        try:
            assert waited_for.wait(30)
            # The first answer is being read.
            for _ in range(50):
                assert pool.submit(lambda: desktop.size).result(5) == size
                time.sleep(0.01)
            assert not looking.done()
        finally:
            go_on.set()
        looking.result(30)


@pytest.mark.parametrize("drips", ["events", pytest.param("a reply", marks=pytest.mark.soak)])
def test_who_never_ends_an_answer_is_given_up(drips: str, tmp_path: Path) -> None:
    """Ten seconds, however often something comes that is no answer."""
    stop = threading.Event()

    def drip(request: Request) -> bytes:
        whole = request.reply(more=bytes(1 << 10)) if drips == "a reply" else request.event(PROPERTY_NOTIFY) * 1000
        client = server.clients[0]
        for begin in range(0, len(whole), 32):
            client.sendall(whole[begin : begin + 32])
            if stop.wait(0.4):
                break
        raise EOFError

    with Server(tmp_path, {"QueryPointer": drip}) as server:
        begun = time.monotonic()
        with Bounds(ROOM), pytest.raises(DesktopLost, match="no answer for 10 s"):
            deskhand.connect(server.url)
        assert time.monotonic() - begun < 20 * PATIENCE
        stop.set()


def test_the_shared_memory_cannot_be_cut(tmp_path: Path, neighbour: Desktop) -> None:
    """A server that makes the memory shorter than it said would end this process with SIGBUS."""
    refused: list[str] = []

    def attach(request: Request) -> bytes:
        (descriptor,) = request.descriptors
        for length in (0, 1 << 30):
            try:
                os.truncate(descriptor, length)
            except PermissionError as error:
                refused.append(str(error.strerror))
        close_all(request.descriptors)
        return b""

    with (
        Server(tmp_path, {"MIT-SHM.AttachFd": attach}) as server,
        deskhand.connect(server.url, method="shared-fd") as desktop,
    ):
        look(desktop)
    assert refused == ["Operation not permitted"] * 2
    assert neighbour.screenshot().size == SIZE


def test_memory_that_the_server_cut(tmp_path: Path, neighbour: Desktop) -> None:
    """Memory of the server's own, which an older driver mapped: it is not asked for any more."""
    asked: list[str] = []

    def create(request: Request) -> bytes:
        asked.append(request.name)
        descriptor = os.memfd_create("short")
        socket.send_fds(server.clients[0], [request.reply(second=1)], [descriptor])
        os.close(descriptor)
        return b""

    with Server(tmp_path, {"MIT-SHM.CreateSegment": create}) as server, deskhand.connect(server.url) as desktop:
        look(desktop)
    assert not asked
    assert neighbour.screenshot().size == SIZE


def test_descriptors_that_nobody_asked_for_are_closed(tmp_path: Path) -> None:
    def generous(request: Request) -> bytes:
        with Path("/dev/null").open("rb") as file:
            socket.send_fds(server.clients[0], [pointer(request)], [file.fileno()] * 200)
        return b""

    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    with Server(tmp_path, {"QueryPointer": generous}) as server, deskhand.connect(server.url) as desktop:
        before = descriptors()
        for _ in range(20):
            desktop.screenshot()
        assert descriptors() <= before + 5


def test_a_bug_below_is_one_of_our_errors() -> None:
    """A panic in Rust ends neither the process nor is it an exception that nobody handles."""
    with pytest.raises(BackendError, match="a bug in deskhand ended this call: capacity overflow"):
        _native.Screen(0xFFFFFFFF, 0xFFFFFFFF)
