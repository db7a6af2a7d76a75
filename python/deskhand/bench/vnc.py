"""VNC: what it costs until what a server sent is pixels, and a file, beside the two VNC drivers of Python.

Decoding needs no server: one whole screen, as TigerVNC sent it in each encoding, is decoded again and again. Looking and acting
are done on TigerVNC's own X server, through a Unix socket. What must never appear here: how a peer looks (see `worker`).
"""

from __future__ import annotations

import contextlib
import os
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import deskhand
from deskhand import KeyPress, Move, Wait, _native
from deskhand.backends.vnc_recording import record
from deskhand.backends.vnc_target import parse_target
from deskhand.bench import scenes
from deskhand.bench.acts import wrong
from deskhand.bench.child import Child, ChildError
from deskhand.bench.context import Context, quiet
from deskhand.bench.figures import Row, Samples
from deskhand.bench.looks import EVERYTHING, LINE, NOTHING
from deskhand.bench.peers import VNC_PEERS, VNCDOTOOL, Crew, Peer
from deskhand.bench.stage import Stage
from deskhand.readiness import ready

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["DECODERS", "LIBVNCCLIENT", "TUNED", "XTERM", "XTERM_TUNED", "act", "decode", "look"]

SIZE = (1920, 1080)
DECODERS = "vncdotool's decoders"
LIBVNCCLIENT = "libvncclient"
# Built by tools/peers.
_LIBVNCCLIENT = Path(sys.prefix, "bin", "libvncclient_decode")
_PIXELS = ("raw", "hextile", "zrle", "tight")
_START_LIMIT = 20.0
# From a change until it is surely here: three of the server's frames, and what decoding takes.
_ARRIVAL = 0.15
_LATER = 1.0
# As the supervisor of our image starts it.
TUNED = ("-FrameRate", "250")
XTERM, XTERM_TUNED = "key press, xterm over Xvnc", "key press, xterm over Xvnc at 250 frames a second"
# Seconds into a recording after which everything changes.
SECOND = 0.5


@dataclass(frozen=True, slots=True)
class _Server:
    """A running Xvnc: its URL, and the desktop as X sees it."""

    url: str
    x11: deskhand.Desktop
    environment: dict[str, str]


@contextlib.contextmanager
def _xvnc(context: Context, *options: str) -> Iterator[_Server]:
    """TigerVNC's X server with its defaults, but that only we may enter: by a socket in our own directory, and a cookie.

    Args:
        context: What is measured with.
        options: Others than its defaults.
    """
    scenes.need("Xvnc", "tigervnc-standalone-server")
    scenes.need("xauth", "xauth")
    socket, cookies = context.scratch / "xvnc.sock", context.scratch / "xvnc.auth"
    told, tell = os.pipe()
    argv = [
        "Xvnc",
        "-displayfd",
        str(tell),
        "-geometry",
        "{}x{}".format(*SIZE),
        "-auth",
        str(cookies),
        "-nolisten",
        "tcp",
    ]
    argv += ["-rfbunixpath", str(socket), "-rfbport", "-1", "-SecurityTypes", "None", "-noreset", *options]
    # It reads the cookies when the first client comes, which is after they are written.
    cookies.touch(mode=0o600)
    with (context.scratch / "xvnc.log").open("wb") as log:
        process = subprocess.Popen(argv, pass_fds=[tell], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    os.close(tell)
    try:
        display = ":" + os.read(told, 16).decode().strip() if ready([told], timeout=_START_LIMIT) else ""
        if display in {"", ":"}:
            raise RuntimeError("Xvnc did not come up: " + (context.scratch / "xvnc.log").read_text()[-400:])
        cookie = os.urandom(16).hex()
        subprocess.run(["xauth", "-q", "-f", str(cookies), "add", display, ".", cookie], check=True)
        environment = {**os.environ, "DISPLAY": display, "XAUTHORITY": str(cookies)}
        with deskhand.connect(f"x11:{display}", xauthority=cookies) as x11:
            yield _Server(f"vnc+unix://{socket}", x11, environment)
    finally:
        os.close(told)
        process.terminate()
        process.wait()
        socket.unlink(missing_ok=True)


def decode(context: Context) -> Iterator[Row]:
    """A whole screen that changes everywhere, in each encoding, from bytes in memory to pixels."""
    first = context.scene("page", SIZE).first
    files: dict[str, Path] = {name: context.scratch / f"{name}.rfb" for name in _PIXELS}
    with _xvnc(context) as server, Stage(server.x11, context.scratch) as stage:
        stage.load({"first": first, "second": 255 - first})
        for name, file in files.items():
            context.say(f"recording {name}")
            stage.show("first")
            time.sleep(_ARRIVAL)
            _record(server.url, file, name, stage)
    rounds = context.times(21, 5)
    missing = Peer(DECODERS, "", modules=(VNCDOTOOL,)).missing()
    for name, file in files.items():
        context.say(f"decoding {name}")
        data = file.read_bytes()
        ours = Samples("vnc/decode", f"whole screen, {name}")
        theirs = Samples("vnc/decode", f"whole screen, {name}", DECODERS)
        for _ in range(rounds):
            ours.add(*decoding(data))
        quiet()
        if missing or name == "tight":
            theirs.missing = missing or "it knows no Tight"
        else:
            theirs.missing = _let_decode(context, file, theirs, max(3, rounds // 4))
        yield ours.row()
        yield theirs.row()
        yield from _from_a_socket(context, name, data, rounds)


def _record(url: str, file: Path, name: str, stage: Stage) -> None:
    """The screen as it is, and, from `SECOND` on, as it is when all of it has changed."""
    ends: list[float] = []

    def stopped() -> bool:
        if not ends:
            ends.append(time.monotonic() + SECOND)
        elif len(ends) == 1 and time.monotonic() >= ends[0]:
            stage.show("second")
            ends.append(time.monotonic() + SECOND)
        return len(ends) > 1 and time.monotonic() >= ends[1]

    record(parse_target(url), file, pixels=[name], stopped=stopped)


def decoding(data: bytes) -> tuple[float, int]:
    """What the second picture of a recording takes, in milliseconds, and its bytes. Memory has been touched by the first."""
    parser, pieces = _native.VncParser.replay(data)
    took, size = 0.0, 0
    for at, piece in pieces:
        begun = time.perf_counter()
        parser.feed(piece, at)
        if at >= SECOND:
            took, size = took + time.perf_counter() - begun, size + len(piece)
    return took * 1000, size


def _halves(data: bytes) -> tuple[bytes, bytes]:
    """A recording as a server would send it, handshake and all: up to the first picture, and the second; each with a bell."""
    parser, pieces = _native.VncParser.replay(data)
    pixels = bytes([32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 16, 8, 0, 0, 0, 0])
    init = struct.pack(">HH", *parser.screen.size) + pixels + struct.pack(">I", 1) + b"x"
    first = b"".join(piece for at, piece in pieces if at < SECOND)
    second = b"".join(piece for at, piece in pieces if at >= SECOND)
    return b"RFB 003.008\n\x01\x01\0\0\0\0" + init + first + b"\x02", second + b"\x02"


def _decoding_from_a_socket(data: bytes) -> float:
    """What the second picture takes a connection of ours until it says that it has come to its end, in milliseconds."""
    parser, pieces = _native.VncParser.replay(data)
    first = b"".join(piece for at, piece in pieces if at < SECOND)
    second = b"".join(piece for at, piece in pieces if at >= SECOND)
    here, there = socket.socketpair()
    there.settimeout(_START_LIMIT)
    with there:
        vnc = _native.Vnc(here.detach(), parser.screen.size, b"", local=False)
        there.sendall(first)
        vnc.wait_first(_START_LIMIT)
        # A fence, which it sends back when all before it is on its screen.
        sender = threading.Thread(target=there.sendall, args=(second + b"\xf8\0\0\0\x80\0\0\0\x08finished",))
        begun, answer = time.perf_counter(), b""
        sender.start()
        while b"\x08finished" not in answer:
            answer += there.recv(4096)
        took = time.perf_counter() - begun
        sender.join()
    vnc.close()
    return took * 1000


def _from_a_socket(context: Context, name: str, data: bytes, rounds: int) -> Iterator[Row]:
    """Beside libvncclient, in turns: both are sent the same bytes through a socket by another thread."""
    case = f"whole screen, {name}, from a socket"
    ours, theirs = Samples("vnc/decode", case), Samples("vnc/decode", case, LIBVNCCLIENT)
    first, second = _halves(data)
    files = [context.scratch / "first", context.scratch / "second"]
    for file, stream in zip(files, (first, second), strict=True):
        file.write_bytes(stream)
    if not _LIBVNCCLIENT.exists():
        theirs.missing = "not built: tools/peers"
    for _ in range(rounds):
        ours.add(_decoding_from_a_socket(data), len(second))
        if not theirs.missing:
            decoded = subprocess.run([_LIBVNCCLIENT, *files, "1"], capture_output=True, check=False, timeout=60)
            if decoded.returncode:
                theirs.missing = f"cannot: it ended with {decoded.returncode}"
            else:
                theirs.add(float(decoded.stdout))
    yield ours.row()
    yield theirs.row()


def _let_decode(context: Context, file: Path, samples: Samples, rounds: int) -> str:
    log = context.scratch / "decoder.log"
    with Child("deskhand.bench.vnc_decoder", env=os.environ, log=log) as child:
        try:
            for _ in range(rounds):
                samples.add(child.ask(path=str(file), since=SECOND)["ms"])
        except ChildError as error:
            return f"cannot: {error}"
    return ""


def look(context: Context) -> Iterator[Row]:
    """A PNG file in hand, of what has arrived already."""
    scene = context.scene("page", SIZE)
    cases = {NOTHING: None, LINE: scene.line, EVERYTHING: (0, 0, *SIZE)}
    ours = {case: Samples("vnc/screen", case) for case in cases}
    rounds = context.times(12, 3)
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(_xvnc(context))
        stage = stack.enter_context(Stage(server.x11, context.scratch))
        stage.load({"first": scene.first, "second": scene.second})
        stage.show("first")
        crew = stack.enter_context(Crew(server.x11, context.scratch, VNC_PEERS))
        desktop = stack.enter_context(deskhand.connect(server.url))
        theirs = {name: Samples("vnc/screen", EVERYTHING, name) for name in (peer.name for peer in VNC_PEERS)}
        for number in range(rounds):
            context.say(f"vnc/screen: {number + 1} of {rounds}")
            for case, rect in cases.items():
                if rect is not None:
                    stage.show(("second", "first")[number % 2], rect)
                time.sleep(_ARRIVAL)
                if rect is None:
                    # As over X11, this look follows one of its kind, and pays nothing for what was made smaller meanwhile.
                    desktop.screenshot()
                begun = time.perf_counter()
                png = desktop.screenshot().png
                ours[case].add((time.perf_counter() - begun) * 1000, len(png))
            quiet()
            for name in crew.names:
                if (got := crew.look(name)) is not None:
                    theirs[name].add(*got)
        for name, reason in crew.missing.items():
            theirs[name].missing = reason
    yield from (samples.row() for samples in (*ours.values(), *theirs.values()))


def act(context: Context) -> Iterator[Row]:
    """A key into a terminal, until the frame is settled: over a server with its defaults, and over one as we start them."""
    scenes.need("xterm", "xterm")
    yield _press_keys(context, XTERM)
    yield _press_keys(context, XTERM_TUNED, *TUNED)


def _press_keys(context: Context, case: str, *options: str) -> Row:
    # A tuned server is known by its first eight reactions, which are measured too.
    rounds = context.times(30, 4)
    samples = Samples("vnc/key", case)
    times = []
    wrongs = unsettled = 0
    with _xvnc(context, *options) as server, deskhand.connect(server.url) as desktop:
        terminal = subprocess.Popen(["xterm", "-geometry", "100x60+0+0", "-e", "cat"], env=server.environment)
        try:
            # Without a window manager the keyboard goes where the pointer is.
            desktop.perform(Move((200, 200)), Wait(_LATER))
            for number in range(rounds):
                context.say(f"{case}: {number + 1} of {rounds}")
                key = KeyPress((chr(ord("a") + number % 26),))
                begun = time.perf_counter()
                seen = desktop.perform(key)
                samples.add((time.perf_counter() - begun) * 1000, len(seen.png))
                times.append(seen.elapsed.settle)
                wrongs += not seen.changed or wrong(seen, desktop.perform(Wait(_LATER), settle=False))
                unsettled += not seen.settled
        finally:
            terminal.kill()
            terminal.wait()
    samples.note = f"of that {statistics.median(times) * 1000:.0f} ms were waited for quiet"
    return samples.row(wrong_frames=wrongs, compared=rounds, unsettled=unsettled)
