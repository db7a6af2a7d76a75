"""What the three probes say of real servers: as they are, stopped, killed, and without their window manager."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

import deskhand
from conformance.servers import serving
from deskhand import LeftMouseDown, Move
from faults.helpers import pid_of, server_pid, until, within, xclient
from faults.scale import EVIDENCE

if TYPE_CHECKING:
    from collections.abc import Callable


def test_a_display(launch: Callable[..., deskhand.Desktop], runtime: object, mark: str) -> None:
    del runtime
    desktop = launch(size=(320, 240))
    desktop.perform(Move((0, 10)), settle=False)
    assert desktop.health() == deskhand.Health()
    assert desktop.pointer == (0, 10)
    desktop.perform(LeftMouseDown((0, 10)), settle=False)
    assert desktop.health().ok
    assert desktop.pointer == (0, 10)
    desktop.release()
    server = server_pid(desktop.display or "")
    os.kill(server, signal.SIGSTOP)
    try:
        with within(1.5, "noticing"):
            health = desktop.health()
        assert health.live == health.ready == "no answer in 1 s"
    finally:
        os.kill(server, signal.SIGCONT)
    until(lambda: desktop.health().ok, 5, "the answer")
    # A local desktop's window manager is not started again.
    os.kill(pid_of(mark, "openbox"), signal.SIGKILL)
    until(lambda: desktop.health() == deskhand.Health(started="the window manager"), 5, "its absence to be told")
    os.kill(server, signal.SIGKILL)
    until(lambda: "x_server" in desktop.health().live, 5, "the loss")


def test_a_pointer_that_cannot_move(launch: Callable[..., deskhand.Desktop]) -> None:
    """Somebody keeps it in a window of one pixel: whatever input is sent does not get where it should."""
    desktop = launch(size=(320, 240))
    with xclient(desktop) as other:
        other.ask("confine", 50, 60)
        assert "the pointer was sent to" in desktop.health().ready


@pytest.mark.parametrize("name", ["xvnc", "x11vnc"] if EVIDENCE else ["xvnc"])
def test_a_vnc_server(name: str) -> None:
    """With fences and without."""
    with serving(name) as place, place.connect() as desktop:
        # x11vnc takes 1.3 s for its first two answers.
        assert desktop.health(timeout=30) == deskhand.Health()
        desktop.perform(Move((30, 40)), settle=False)
        assert desktop.health(timeout=30).ok
        assert desktop.pointer == (30, 40)
        place.processes[0].send_signal(signal.SIGSTOP)
        try:
            with within(1.5, "noticing"):
                assert desktop.health().live == "no answer in 1 s"
        finally:
            place.processes[0].send_signal(signal.SIGCONT)
        until(lambda: desktop.health().ok, 5, "the answer")
        # x11vnc takes its time to end in order.
        place.processes[0].kill()
