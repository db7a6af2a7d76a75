"""VNC: the time from a server's bytes to pixels, and to a file, in comparison with Python's two VNC drivers.

Decoding needs no server: one whole screen, as TigerVNC sent it in each encoding, is decoded repeatedly. Looking and acting are
measured with TigerVNC's own X server, through a Unix socket. How a peer looks is in `worker`.
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

import numpy as np

import deskhand
from bench import scenes
from bench.acts import wrong
from bench.child import Child, ChildError
from bench.context import Context, quiet
from bench.figures import AHEAD, OURS, Row, Samples
from bench.inside import unwatched
from bench.looks import EVERYTHING, LINE, NOTHING
from bench.peers import VNC_LOOKERS, VNCDOTOOL, Crew, Peer
from bench.stage import Stage
from deskhand import KeyPress, Move, Wait, _native
from deskhand._core.readiness import ready
from deskhand.backends.vnc.recording import record
from deskhand.backends.vnc.target import parse_target

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from bench.scenes import Scene

__all__ = ["DECODERS", "LIBVNCCLIENT", "TUNED", "XTERM", "XTERM_TUNED", "Server", "act", "decode", "look", "xvnc"]

_Rect = tuple[int, int, int, int]
SIZE = (1920, 1080)
DECODERS = "vncdotool's decoders"
LIBVNCCLIENT = "libvncclient"
# Built by tools/peers.
_LIBVNCCLIENT = Path(sys.prefix, "bin", "libvncclient_decode")
_PIXELS = ("raw", "hextile", "zrle", "tight")
_START_LIMIT = 20.0
# The longest time from a change until it has arrived: three of the server's frames, and the decoding.
_ARRIVAL = 0.15
_LATER = 1.0
# How often to check for a picture while recording; after that, only the pointer's place may still differ.
_LOOK_PERIOD = 0.25
_WHOLE = 0.99
_RECORDING_LIMIT = 60.0
# How many turns each contender has at a server of the screen.
_PASSES = 3
# The options with which our image starts it.
TUNED = ("-FrameRate", "250")
XTERM, XTERM_TUNED = "key press, xterm over Xvnc", "key press, xterm over Xvnc at 250 frames a second"


@dataclass(frozen=True, slots=True)
class Server:
    """A running Xvnc: its URL, and the desktop over X11."""

    url: str
    x11: deskhand.Desktop
    environment: dict[str, str]


@contextlib.contextmanager
def xvnc(scratch: Path, *options: str) -> Iterator[Server]:
    """TigerVNC's X server with its defaults, accessible only by a socket in our own directory and a cookie.

    Args:
        scratch: Where its socket, cookies and log are.
        options: Options that differ from its defaults.
    """
    scenes.need("Xvnc", "tigervnc-standalone-server")
    scenes.need("xauth", "xauth")
    socket, cookies = scratch / "xvnc.sock", scratch / "xvnc.auth"
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
    # The server reads the cookies when the first client connects, which is after they are written.
    cookies.touch(mode=0o600)
    with (scratch / "xvnc.log").open("wb") as log:
        process = subprocess.Popen(argv, pass_fds=[tell], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    os.close(tell)
    try:
        display = ":" + os.read(told, 16).decode().strip() if ready([told], timeout=_START_LIMIT) else ""
        if display in {"", ":"}:
            raise RuntimeError("Xvnc did not come up: " + (scratch / "xvnc.log").read_text()[-400:])
        cookie = os.urandom(16).hex()
        subprocess.run(["xauth", "-q", "-f", str(cookies), "add", display, ".", cookie], check=True)
        environment = {**os.environ, "DISPLAY": display, "XAUTHORITY": str(cookies)}
        with deskhand.connect(f"x11:{display}", xauthority=cookies) as x11:
            yield Server(f"vnc+unix://{socket}", x11, environment)
    finally:
        os.close(told)
        process.terminate()
        process.wait()
        socket.unlink(missing_ok=True)


def decode(context: Context) -> Iterator[Row]:
    """Decode a whole screen that changes everywhere, in each encoding, from bytes in memory to pixels."""
    first = context.scene("page", SIZE).first
    files: dict[str, Path] = {name: context.scratch / f"{name}.rfb" for name in _PIXELS}
    changes: dict[str, float] = {}
    pictures = {"first": first, "second": 255 - first}
    with xvnc(context.scratch) as server, Stage(server.x11, context.scratch) as stage:
        stage.load(pictures)
        for name, file in files.items():
            context.say(f"recording {name}")
            stage.show("first")
            time.sleep(_ARRIVAL)
            changes[name] = _record(server.url, file, name, stage, pictures)
    rounds = context.times(21, 5)
    missing = Peer(DECODERS, "", modules=(VNCDOTOOL,)).missing()
    for name, file in files.items():
        context.say(f"decoding {name}")
        data, since = file.read_bytes(), changes[name]
        ours = Samples("vnc/decode", f"whole screen, {name}")
        theirs = Samples("vnc/decode", f"whole screen, {name}", DECODERS)
        for _ in range(rounds):
            ours.add(*decoding(data, since))
        quiet()
        if missing or name == "tight":
            theirs.missing = missing or "it does not support Tight"
        else:
            theirs.missing = _let_decode(context, file, since, theirs, max(3, rounds // 4))
        yield ours.row()
        yield theirs.row()
        yield from _from_a_socket(context, name, data, since, rounds)


def _record(url: str, file: Path, name: str, stage: Stage, pictures: Mapping[str, NDArray[np.uint8]]) -> float:
    """Record the screen, and then the screen after everything has changed.

    Returns:
        The time in the recording, in seconds, at which it changes.
    """
    begun = since = looked = 0.0

    def begin() -> None:
        nonlocal begun
        begun = time.monotonic()

    def stopped() -> bool:
        nonlocal looked, since
        now = time.monotonic()
        if now - looked < _LOOK_PERIOD or not file.stat().st_size:
            return False
        if now - begun > _RECORDING_LIMIT:
            raise RuntimeError(f"Xvnc did not show a picture in {name} within {_RECORDING_LIMIT:g} s")
        shown = _shown(file)
        looked = time.monotonic()
        if since:
            return float((shown == pictures["second"]).all(axis=2).mean()) > _WHOLE
        if (shown == pictures["first"]).all(axis=2).mean() > _WHOLE:
            since = looked - begun
            stage.show("second")
        return False

    record(parse_target(url), file, pixels=[name], let_in=begin, stopped=stopped)
    return since


def _shown(file: Path) -> NDArray[np.uint8]:
    """The last picture of a recording."""
    parser, pieces = _native.VncParser.replay(file.read_bytes())
    for at, piece in pieces:
        parser.feed(piece, at)
    width, height, rgb = parser.screen.rgb(cursor=False)
    return np.frombuffer(rgb, np.uint8).reshape(height, width, 3)


def decoding(data: bytes, since: float) -> tuple[float, int]:
    """The time for decoding the second picture of a recording, in milliseconds, and its bytes. The first one warms up."""
    parser, pieces = _native.VncParser.replay(data)
    took, size = 0.0, 0
    for at, piece in pieces:
        begun = time.perf_counter()
        parser.feed(piece, at)
        if at >= since:
            took, size = took + time.perf_counter() - begun, size + len(piece)
    return took * 1000, size


def _halves(data: bytes, since: float) -> tuple[bytes, bytes]:
    """A recording in two parts, as a server would send it: handshake and first picture, and the second; each with a bell."""
    parser, pieces = _native.VncParser.replay(data)
    pixels = bytes([32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 16, 8, 0, 0, 0, 0])
    init = struct.pack(">HH", *parser.screen.size) + pixels + struct.pack(">I", 1) + b"x"
    first = b"".join(piece for at, piece in pieces if at < since)
    second = b"".join(piece for at, piece in pieces if at >= since)
    return b"RFB 003.008\n\x01\x01\0\0\0\0" + init + first + b"\x02", second + b"\x02"


def _decoding_from_a_socket(data: bytes, since: float) -> float:
    """The time until our connection reports the end of the second picture, in milliseconds."""
    parser, pieces = _native.VncParser.replay(data)
    first = b"".join(piece for at, piece in pieces if at < since)
    second = b"".join(piece for at, piece in pieces if at >= since)
    here, there = socket.socketpair()
    there.settimeout(_START_LIMIT)
    with there:
        vnc = _native.Vnc(here.detach(), parser.screen.size, b"", local=False)
        there.sendall(first)
        vnc.wait_first(_START_LIMIT)
        # A fence, which the client returns when everything before it is on its screen.
        sender = threading.Thread(target=there.sendall, args=(second + b"\xf8\0\0\0\x80\0\0\0\x08finished",))
        begun, answer = time.perf_counter(), b""
        sender.start()
        while b"\x08finished" not in answer:
            answer += there.recv(4096)
        took = time.perf_counter() - begun
        sender.join()
    vnc.close()
    return took * 1000


def _from_a_socket(context: Context, name: str, data: bytes, since: float, rounds: int) -> Iterator[Row]:
    """Compare with libvncclient, in turns: another thread sends both the same bytes through a socket."""
    case = f"whole screen, {name}, from a socket"
    ours, theirs = Samples("vnc/decode", case), Samples("vnc/decode", case, LIBVNCCLIENT)
    first, second = _halves(data, since)
    files = [context.scratch / "first", context.scratch / "second"]
    for file, stream in zip(files, (first, second), strict=True):
        file.write_bytes(stream)
    if not _LIBVNCCLIENT.exists():
        theirs.missing = "not built: tools/peers"
    for _ in range(rounds):
        ours.add(_decoding_from_a_socket(data, since), len(second))
        if not theirs.missing:
            decoded = subprocess.run([_LIBVNCCLIENT, *files, "1"], capture_output=True, check=False, timeout=60)
            if decoded.returncode:
                theirs.missing = f"failed: it ended with {decoded.returncode}"
            else:
                theirs.add(float(decoded.stdout))
    yield ours.row()
    yield theirs.row()


def _let_decode(context: Context, file: Path, since: float, samples: Samples, rounds: int) -> str:
    log = context.scratch / "decoder.log"
    with Child("bench.vnc_decoder", env=os.environ, log=log) as child:
        try:
            for _ in range(rounds):
                samples.add(child.ask(path=str(file), since=since)["ms"])
        except ChildError as error:
            return f"cannot: {error}"
    return ""


def look(context: Context) -> Iterator[Row]:
    """Measure from a change on the server's screen until a picture shows it, and looks at changes that had arrived before.

    Only one contender at a time is connected to the server, because for two it would encode each change twice.
    """
    scene = context.scene("page", SIZE)
    section = "vnc/screen"
    whole = (0, 0, *SIZE)
    parts = {LINE: scene.line or whole, EVERYTHING: whole}
    ours = {case: Samples(section, case) for case in (NOTHING, *(case + AHEAD for case in parts))}
    changes = {(who.name, case): Samples(section, case, who.name) for who in VNC_LOOKERS for case in parts}
    passes = min(_PASSES, context.times(12, 2))
    with (
        xvnc(context.scratch) as server,
        Stage(server.x11, context.scratch) as stage,
        # The X11 desktop would capture each change too, beside the contender.
        unwatched(server.x11),
    ):
        stage.load(scene.pictures)
        screen = _Screen(stage, scene, context.scratch)
        for number in range(passes):
            for who in VNC_LOOKERS:
                context.say(f"{section}: {who.name}, {number + 1} of {passes}")
                with Crew(server.x11, context.scratch, [who]) as crew:
                    for _ in range(max(1, context.times(12, 2) // passes)):
                        for case, rect in parts.items():
                            _look_for_change(crew, who.name, screen, rect, changes[who.name, case])
                        if who.name == OURS:
                            _look_again(crew, screen, parts, ours)
                reason = crew.missing.get(who.name, "")
                for case in parts:
                    changes[who.name, case].missing = reason
    yield from (samples.row() for samples in (*ours.values(), *changes.values()))


class _Screen:
    """The server's screen: one of two pictures in each part."""

    def __init__(self, stage: Stage, scene: Scene, scratch: Path) -> None:
        self._stage = stage
        self._files = {name: scratch / f"vnc-{name}.npy" for name in scene.pictures}
        for name, file in self._files.items():
            np.save(file, scene.pictures[name])
        self._shown: dict[_Rect, str] = {}

    def change(self, rect: _Rect) -> tuple[float, Path, Path]:
        """Change a part; returns the time at which it was on the screen, and the pictures after and before."""
        old = self._shown.get(rect, "first")
        new = "second" if old == "first" else "first"
        self._stage.show(new, rect)
        now = time.perf_counter()
        self._shown[rect] = new
        return now, self._files[new], self._files[old]

    def reset(self) -> None:
        """Show the first picture, completely."""
        self._stage.show("first")
        self._shown.clear()


def _look_for_change(crew: Crew, name: str, screen: _Screen, rect: _Rect, samples: Samples) -> None:
    """The time from a change until a contender's picture shows it."""
    if name not in crew.names:
        return
    screen.reset()
    time.sleep(_ARRIVAL)
    if crew.look(name) is None or name not in crew.names:
        return
    quiet()
    since, new, old = screen.change(rect)
    if (got := crew.until(name, since, new, old, rect)) is not None:
        samples.add(*got)


def _look_again(crew: Crew, screen: _Screen, parts: Mapping[str, _Rect], ours: Mapping[str, Samples]) -> None:
    """The time for our look at changes that have arrived and were decoded before."""
    for case, rect in ((NOTHING, None), *parts.items()):
        if rect is not None:
            screen.change(rect)
        time.sleep(_ARRIVAL)
        # An unchanged screen is looked at a second time, as over X11; a changed one for the first time.
        got = crew.look(OURS, warm=rect is None) if OURS in crew.names else None
        if got is not None:
            ours[case if rect is None else case + AHEAD].add(*got)


def act(context: Context) -> Iterator[Row]:
    """A key press in a terminal, until the frame is settled: with a server's defaults, and with the options of our image."""
    scenes.need("xterm", "xterm")
    yield _press_keys(context, XTERM)
    yield _press_keys(context, XTERM_TUNED, *TUNED)


def _press_keys(context: Context, case: str, *options: str) -> Row:
    # The driver adapts to a tuned server within its first eight reactions, which are measured too.
    rounds = context.times(30, 4)
    samples = Samples("vnc/key", case)
    times = []
    wrongs = unsettled = 0
    with xvnc(context.scratch, *options) as server, deskhand.connect(server.url) as desktop:
        terminal = subprocess.Popen(["xterm", "-geometry", "100x60+0+0", "-e", "cat"], env=server.environment)
        try:
            # Without a window manager the keyboard focus follows the pointer.
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
    samples.note = f"{statistics.median(times) * 1000:.0f} ms of that are the wait for quiet"
    return samples.row(wrong_frames=wrongs, compared=rounds, unsettled=unsettled)
