"""F10: a driver that vanishes while it holds keys on a display that is not its own."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

import deskhand
from deskhand import KeyPress
from deskhand.launchers.local.launch import leave_running
from faults.helpers import NOTHING, driver, guard_pid, killed_drivers, listen, marked, until, xclient
from faults.scale import KILLED_DRIVERS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RELEASED = 5.0
_HOLD = """
desktop = deskhand.connect(sys.argv[1] if len(sys.argv) > 1 else os.environ["TEST_URL"])
say(pid=os.getpid())
desktop.perform(PressKeys(["shift", "ctrl"]), LeftMouseDown((50, 50)), settle=False)
say(pressed=pressed(desktop))
wait_forever()
"""
_DRAG = """
desktop = deskhand.connect(os.environ["TEST_URL"])
say(pid=os.getpid())
while True:
    desktop.perform(Drag([(x % 300, x % 200) for x in range(0, 3000, 40)]), settle=False)
    desktop.perform(KeyHold(["shift", "a"], 0.4), settle=False)
    desktop.perform(Type("SHOUTING Ж漢字" * 20), settle=False)
"""


def test_killed_while_holding(
    launch: Callable[..., deskhand.Desktop], driver_environment: dict[str, str], runtime: Path, mark: str
) -> None:
    """SIGKILL of a connected driver with Shift, Ctrl and a button down: released, every time, and the display lives on."""
    desktop = launch(size=(320, 240))
    ours = set(marked(mark))
    url = f"x11:{desktop.display}"
    environment = {**driver_environment, "XAUTHORITY": str(desktop.xauthority), "TEST_URL": url}
    # Our own lease would refuse the driver: this desktop only keeps the display alive.
    desktop._core.backend.close()
    with xclient(desktop) as witness:
        ours = set(marked(mark))
        for _ in range(KILLED_DRIVERS):
            with driver(_HOLD, environment) as process:
                process.read()
                assert process.read()["pressed"] == [[37, 50], [1]]
                assert witness.ask("pressed") == {"keys": [37, 50], "buttons": [1]}
                process.kill()
                until(lambda: witness.ask("pressed") == NOTHING, RELEASED, "the release")
            until(lambda: set(marked(mark)) == ours, RELEASED, "the end of the guard")
            assert len(list(runtime.glob("d-*"))) == 1


def test_killed_at_any_moment(
    launch: Callable[..., deskhand.Desktop], driver_environment: dict[str, str], mark: str
) -> None:
    """SIGKILL in the middle of drags, held keys and typing: nothing stays pressed."""
    desktop = launch(size=(320, 240))
    environment = {
        **driver_environment,
        "XAUTHORITY": str(desktop.xauthority),
        "TEST_URL": f"x11:{desktop.display}",
    }
    listen(desktop)
    desktop._core.backend.close()
    with xclient(desktop) as witness:
        for _ in killed_drivers(_DRAG, environment, mark, RELEASED):
            assert witness.ask("pressed") == NOTHING


def test_killed_on_a_desktop_left_running(
    launch: Callable[..., deskhand.Desktop], driver_environment: dict[str, str], runtime: Path, mark: str
) -> None:
    """The same on a desktop found by its name, whose guard is not the driver's own."""
    desktop = launch(size=(320, 240), name="left")
    entry = leave_running(desktop)
    try:
        with xclient(desktop) as witness:
            ours = set(marked(mark))
            for _ in range(3):
                with driver(_HOLD, {**driver_environment, "TEST_URL": "left"}) as process:
                    process.read()
                    assert process.read()["pressed"] == [[37, 50], [1]]
                    process.kill()
                    until(lambda: witness.ask("pressed") == NOTHING, RELEASED, "the release")
                until(lambda: set(marked(mark)) == ours, RELEASED, "the end of the helper")
        # A program that ends is told to a driver that joined.
        with deskhand.connect("left") as joined:
            with pytest.raises(deskhand.LaunchFailed, match="status 1"):
                joined.start("false", timeout=20)
            assert joined.perform(KeyPress(["a"])).settled
    finally:
        os.kill(entry.pid, signal.SIGTERM)
        until(lambda: not marked(mark), RELEASED, "the end of the desktop")
    assert list(runtime.glob("d-*")) == []


def test_closed_while_holding(launch: Callable[..., deskhand.Desktop]) -> None:
    """A driver that closes, in order or because of an error, has released what it held."""
    desktop = launch(size=(320, 240))
    desktop._core.backend.close()
    url = f"x11:{desktop.display}"
    with xclient(desktop) as witness:
        with deskhand.connect(url, xauthority=desktop.xauthority) as connected:
            connected.perform(deskhand.PressKeys(["shift"]), deskhand.LeftMouseDown((5, 5)), settle=False)
            assert witness.ask("pressed") == {"keys": [50], "buttons": [1]}
        assert witness.ask("pressed") == NOTHING


def test_driver_that_forked(driver_environment: dict[str, str], mark: str) -> None:
    """A child that the driver forked holds the guard's pipe open: the desktop ends with the driver all the same."""
    code = """
desktop = deskhand.launch(size=(320, 240))
child = os.fork()
if child == 0:
    wait_forever()
say(child=child)
wait_forever()
"""
    with driver(code, driver_environment) as process:
        child = process.read()["child"]
        guard = guard_pid(mark)
        process.kill()
        try:
            until(lambda: set(marked(mark)) <= {child}, RELEASED, f"the end of {marked(mark)}, guard {guard}")
        finally:
            os.kill(child, signal.SIGKILL)
