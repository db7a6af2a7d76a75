"""VNC servers that go away, stop, or change under the driver's hands."""

from __future__ import annotations

import contextlib
import select
import signal
import socket
import struct
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import deskhand
from conformance.fake import FakeServer, let_in, picture, rectangle, server_init, update
from conformance.servers import Place, serving
from conformance.test_desktop import released
from deskhand import KeyPress, LeftClick, MouseDown, Move, PressKeys, Reason, Settle, Type, Wait
from deskhand._native import Interrupted
from faults.helpers import beside_control, hold, until, within
from faults.scale import AWAY, CUTS
from soak import soaked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TINY = (4, 4)


class Wire:
    """A Unix socket in front of a VNC server's, which a test can cut in the middle of whatever is on the way."""

    def __init__(self, folder: Path, url: str) -> None:
        self._server = url.removeprefix("vnc+unix://")
        self.url = f"vnc+unix://{folder}/wire"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{folder}/wire")
        self._listener.listen()
        self._lines: list[socket.socket] = []
        # Bytes that still get through; None for all of them.
        self.left: int | None = None
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._server)
                self._lines = [client, server]
                threading.Thread(target=self._carry, args=(client, server), daemon=True).start()

    def _carry(self, client: socket.socket, server: socket.socket) -> None:
        with client, server, contextlib.suppress(OSError):
            while True:
                for source in select.select([client, server], [], [])[0]:
                    data = source.recv(65536)
                    if not data:
                        return
                    if source is server and self.left is not None:
                        data = data[: self.left]
                        self.left -= len(data)
                    (client if source is server else server).sendall(data)
                    if self.left == 0:
                        # The next connection is whole again.
                        self.left = None
                        return

    def cut(self) -> None:
        """Both sides lose the other at once."""
        for line in self._lines:
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.close()
        self.cut()


def waits_for_ever(wait: Callable[[float], object]) -> None:
    """Until it raises."""
    while True:
        wait(5)


@pytest.fixture
def place() -> Iterator[Place]:
    """An Xvnc."""
    with serving("xvnc") as place:
        yield place


@pytest.fixture
def wire(place: Place, tmp_path: Path) -> Iterator[Wire]:
    """A wire to it."""
    wire = Wire(tmp_path, place.url)
    yield wire
    wire.close()


def paint(place: Place, colour: str) -> None:
    """The whole screen in one colour."""
    subprocess.run(["xsetroot", "-solid", colour], env=place.environment, check=True)


def shows(desktop: deskhand.Desktop, rgb: tuple[int, int, int]) -> bool:
    """Whether the picture's middle has this colour."""
    return desktop.screenshot(format="raw", region=(320, 240, 1, 1), cursor=False).data == bytes(rgb)


@pytest.mark.parametrize("away", AWAY)
def test_f2_a_killed_server_is_waited_for_and_found_again(away: float) -> None:
    """x11vnc beside a living X; in our image Xvnc is X itself, and its end is the desktop's."""
    with serving("x11vnc") as place, place.connect() as desktop:
        desktop.perform(Move((77, 88)), PressKeys(["shift"]), MouseDown("left"), settle=False)
        before = desktop.screenshot(format="raw", cursor=False).data
        server = place.processes[0]
        server.kill()
        server.wait()
        Path(place.url.removeprefix("vnc+unix://")).unlink()
        restarted: list[float] = []

        def restart() -> None:
            # What a supervisor would do.
            restarted.append(time.monotonic())
            place.processes.append(subprocess.Popen(server.args, env=place.environment))

        again = threading.Timer(away, restart)
        again.start()
        try:
            with beside_control() as machine:
                after = desktop.screenshot(format="raw", cursor=False).data
                took = time.monotonic() - restarted[0]
            hold(2.0, took, machine[0], "finding the server again")
            assert after == before
            assert desktop.pressed == ()
            until(lambda: released(place), 5, "the release of Shift and the button")
            assert desktop.perform(Move((9, 9))).settled
        finally:
            again.join()
            for process in place.processes[1:]:
                process.kill()
                process.wait()


def test_an_action_on_a_broken_connection_says_so_and_is_not_repeated(place: Place, wire: Wire) -> None:
    with deskhand.connect(wire.url) as desktop:
        epoch = desktop._core.backend.screen.epoch
        desktop.perform(PressKeys(["ctrl"]), settle=False)
        cutter = threading.Timer(0.2, wire.cut)
        cutter.start()
        with pytest.raises(deskhand.Reconnected) as broken:
            desktop.perform(Move((5, 5)), Wait(5), Type("not sent"))
        cutter.join()
        assert (broken.value.index, broken.value.done) == (1, 1)
        assert broken.value.epoch > epoch
        assert "vnc+unix" in broken.value.target
        assert desktop.pressed == ()
        assert released(place)
        # It goes on with a whole picture.
        paint(place, "#123456")
        until(lambda: shows(desktop, (0x12, 0x34, 0x56)), 5, "the picture")
        assert desktop.perform(Move((6, 6))).settled


@pytest.mark.parametrize("after", [1, 13, 100, 70_000])
def test_f8_a_connection_cut_within_a_rectangle(place: Place, wire: Wire, after: int) -> None:
    with deskhand.connect(wire.url) as desktop:
        desktop.screenshot()
        wire.left = after
        paint(place, "#abcdef")

        until(lambda: wire.left is None, 5, "the cut")
        until(lambda: shows(desktop, (0xAB, 0xCD, 0xEF)), 5, "the new picture")


def test_f8_a_reset_is_noticed_at_once() -> None:
    """Over TCP, by a server that resets in the middle of a rectangle; within 0.1 s of that, whatever the driver waits for."""
    reset = threading.Event()
    sent: list[float] = []

    def talk(client: socket.socket) -> None:
        let_in(client, server_init(TINY))
        client.sendall(picture((0, 0, *TINY)))
        reset.wait(60)
        # Half a rectangle, then a reset.
        client.sendall(update(rectangle((0, 0, *TINY), 0, bytes(30))))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sent.append(time.monotonic())
        client.close()

    desktop = deskhand.connect(FakeServer(talk).url)
    try:
        native = desktop._core.backend._vnc  # type: ignore[attr-defined] # below what every backend has
        resetter = threading.Timer(0.2, reset.set)
        resetter.start()
        with beside_control() as machine, pytest.raises(deskhand.DesktopLost, match="reset"):
            waits_for_ever(native.wait)
        hold(0.1, time.monotonic() - sent[0], machine[0], "noticing the reset")
        resetter.join()
    finally:
        desktop.close()


def test_f8_a_server_that_does_not_come_back_is_lost(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deskhand.backends.vnc.backend._RECONNECT_LIMIT", 1.0)
    with place.connect() as desktop:
        place.processes[0].kill()
        place.processes[0].wait()
        with within(3.0, "giving up"), pytest.raises(deskhand.DesktopLost) as lost:
            desktop.perform(KeyPress(["a"]))
        assert lost.value.cause == "network"


def test_a_wait_for_a_lost_server_can_be_stopped(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deskhand.backends.vnc.backend._RECONNECT_LIMIT", 1e6)
    desktop = place.connect()
    place.processes[0].kill()
    place.processes[0].wait()
    closing = threading.Timer(0.5, desktop.close)
    closing.start()
    # Closed before that has begun, or while it waits.
    with within(5.0, "closing"), pytest.raises((deskhand.BackendError, Interrupted)) as stopped:
        desktop.screenshot()
    assert not isinstance(stopped.value, deskhand.DesktopLost)
    closing.join()


@pytest.mark.parametrize("name", soaked(["xvnc", "x11vnc"], but=["xvnc"]))
def test_f10_nothing_stays_held_after_a_cut(name: str, tmp_path: Path) -> None:
    with serving(name) as place:
        wire = Wire(tmp_path, place.url)
        try:
            with deskhand.connect(wire.url) as desktop:
                for _ in range(CUTS):
                    desktop.perform(Move((30, 30)), PressKeys(["shift"]), MouseDown("left"), settle=False)
                    assert len(desktop.pressed) == 2
                    wire.cut()
                    # A server without fences is not asked for every look, so that a cut may be noticed a moment later.
                    until(lambda: desktop.screenshot() and not desktop.pressed, 5, "the reconnection")
                    until(lambda: released(place), 5, "the release")
        finally:
            wire.close()


def test_f12_a_resize_in_the_middle_of_actions(place: Place) -> None:
    with place.connect() as desktop:

        def resize() -> None:
            with place.connect() as other:
                other.resize((500, 400))

        resizer = threading.Timer(0.3, resize)
        resizer.start()
        desktop.perform(Wait(1.0))
        resizer.join()
        until(lambda: desktop.perform(settle=False).size == (500, 400), 5, "the new size")
        with pytest.raises(deskhand.OutOfBounds):
            desktop.perform(LeftClick((600, 100)))
        assert desktop.perform(LeftClick((100, 100))).settled


def test_f24_a_server_that_stops_for_five_seconds_is_waited_for(place: Place) -> None:
    server = place.processes[0]
    with place.connect() as desktop:
        still = desktop.perform(KeyPress(["F5"]))
        assert (still.settled, still.reason) == (True, Reason.UNCHANGED)
        server.send_signal(signal.SIGSTOP)
        go_on = threading.Timer(5.0, lambda: server.send_signal(signal.SIGCONT))
        go_on.start()
        try:
            begun = time.monotonic()
            seen = desktop.perform(Move((50, 50)), settle=Settle(timeout=30))
            assert seen.settled
            assert time.monotonic() - begun >= 4.5
        finally:
            server.send_signal(signal.SIGCONT)
            go_on.cancel()


def test_f24_the_timeout_holds_while_the_server_is_stopped(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deskhand.backends.vnc.backend._RECONNECT_LIMIT", 0.5)
    server = place.processes[0]
    with place.connect() as desktop:
        desktop.perform(KeyPress(["F5"]))
        server.send_signal(signal.SIGSTOP)
        try:
            with within(5.0, "a perform of two seconds"):
                seen = desktop.perform(KeyPress(["F6"]), settle=Settle(timeout=2.0))
            assert (seen.settled, seen.reason, seen.rects) == (False, Reason.SERVER_SILENT, ())
            assert any("has not answered" in line for line in desktop.status)
            server.send_signal(signal.SIGCONT)
            # Nothing is lost: it goes on with the same connection.
            until(lambda: not any("has not answered" in line for line in desktop.status), 5, "the answer")
            assert desktop.perform(Move((9, 9)), settle=Settle(timeout=30)).settled
            server.send_signal(signal.SIGSTOP)
            begun = time.monotonic()
            # The silence is counted from its beginning, not anew with each call.

            def go_on() -> None:
                while time.monotonic() < begun + 15:
                    assert not desktop.perform(settle=Settle(timeout=2.0)).settled

            with within(15.0, "giving up"), pytest.raises(deskhand.DesktopLost, match="has not answered for 10 s"):
                go_on()
        finally:
            server.send_signal(signal.SIGCONT)


def test_f24_a_look_does_not_believe_a_server_that_stopped(place: Place) -> None:
    server = place.processes[0]
    with place.connect() as desktop, ThreadPoolExecutor() as pool:
        paint(place, "#102030")
        until(lambda: shows(desktop, (0x10, 0x20, 0x30)), 5, "the picture")
        waits = pool.submit(desktop.screenshot)

        def blocked() -> bool:
            nonlocal waits
            waits = pool.submit(desktop.screenshot)
            try:
                waits.result(0.3)
            except TimeoutError:
                return True
            return False

        server.send_signal(signal.SIGSTOP)
        try:
            # What it has answered before is believed for 0.1 s; looks that go on do not make that longer.
            until(blocked, 5, "a look that waits")
            until(lambda: any("has not answered" in line for line in desktop.status), 5, "the silence to be told")
            assert not waits.done()
        finally:
            server.send_signal(signal.SIGCONT)
        waits.result(20)


def test_f24_a_dead_server_is_told_from_a_still_screen(place: Place) -> None:
    server = place.processes[0]
    with place.connect() as desktop:
        backend = desktop._core.backend
        desktop.perform()
        probe = backend.probe()
        assert probe is not None
        until(lambda: backend.answered(probe), 5, "the answer")
        server.send_signal(signal.SIGSTOP)
        try:
            probe = backend.probe()
            until(lambda: any("has not answered" in line for line in desktop.status), 5, "the suspicion")
        finally:
            server.send_signal(signal.SIGCONT)
        until(lambda: not any("has not answered" in line for line in desktop.status), 5, "the answer")


def test_f24_a_server_that_stops_for_good_is_lost(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deskhand.backends.vnc.backend._RECONNECT_LIMIT", 1.0)
    server = place.processes[0]
    with place.connect() as desktop:
        server.send_signal(signal.SIGSTOP)
        try:
            with within(30.0, "giving up"), pytest.raises(deskhand.DesktopLost):
                desktop.perform(Move((50, 50)), settle=Settle(timeout=60))
        finally:
            server.send_signal(signal.SIGCONT)


def test_a_stream_that_breaks_the_protocol_ends_the_connection() -> None:
    def talk(client: socket.socket) -> None:
        let_in(client, server_init(TINY))
        client.sendall(picture((0, 0, *TINY)) + update(rectangle((3, 0, *TINY), 0, bytes(64))))
        while client.recv(1 << 20):
            pass

    # The second update may come while the first is still being waited for.
    with (
        pytest.raises(deskhand.ProtocolViolation, match="not inside 4x4"),
        deskhand.connect(FakeServer(talk).url) as desktop,
    ):
        waits_for_ever(lambda _: desktop.perform())
