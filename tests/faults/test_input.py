"""Input that is wrong, and applications that take all input for themselves."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import deskhand
from deskhand import (
    Drag,
    KeyHold,
    KeyPress,
    LeftClick,
    LeftMouseDown,
    Move,
    PressKeys,
    Reason,
    Scroll,
    Settle,
    Type,
    Wait,
    Zoom,
)
from faults.helpers import driver, need, pid_of, until, within, x_environment, xclient
from integration.apps import Mousepad

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NAN = math.nan
BAD: list[Callable[[], Any]] = [
    lambda: LeftClick((NAN, 1)),  # type: ignore[arg-type]
    lambda: LeftClick((math.inf, 1)),  # type: ignore[arg-type]
    lambda: LeftClick((-1, 5)),
    lambda: LeftClick((1000, 5)),
    lambda: LeftClick((5, 700)),
    lambda: LeftClick((10**400, 5)),
    lambda: LeftClick("12"),  # type: ignore[arg-type]
    lambda: LeftClick((1, 2, 3)),  # type: ignore[arg-type]
    lambda: KeyPress([]),
    lambda: KeyPress([""]),
    lambda: KeyPress(["no such key"]),
    lambda: KeyPress([None]),  # type: ignore[list-item]
    lambda: KeyHold(["a"], -1),
    lambda: KeyHold(["a"], NAN),
    lambda: KeyHold(["a"], math.inf),
    lambda: Wait(-1),
    lambda: Wait(NAN),
    lambda: Drag([]),
    lambda: Drag([(1, 1), (5000, 1)]),
    lambda: Type("\ud800"),
    lambda: Type("ok \udcff"),
    lambda: Type("\0"),
    lambda: Type(5),  # type: ignore[arg-type]
    lambda: Scroll((1, 1), distance_xy=(NAN, 0)),  # type: ignore[arg-type]
    lambda: Zoom((900, 600, 200, 200)),
    lambda: Zoom((0, 0, 0, 0)),
    lambda: Settle(quiet=-1),
    lambda: Settle(timeout=NAN),
    lambda: "click",
    lambda: None,
]


def test_bad_actions(desktop: deskhand.Desktop) -> None:
    """Each is refused with an ActionError; what stood before it in the same list is not sent either; nothing is held."""
    desktop.perform(Move((3, 3)))
    with xclient(desktop) as witness:
        witness.ask("grab", "both")
        # The witness's window is on the screen before anything is counted.
        desktop.perform()
        for number, make in enumerate(BAD):
            generation = desktop._core.backend.screen.generation
            with pytest.raises(deskhand.ActionError) as caught:
                desktop.perform(PressKeys(["shift"]), LeftMouseDown((50, 50)), make())
            assert str(caught.value), number
            assert len(str(caught.value)) < 500
            assert desktop.pressed == (), number
            assert desktop.pointer == (3, 3), number
            assert desktop._core.backend.screen.generation == generation, number
        assert witness.ask("pressed") == {"keys": [], "buttons": []}
        assert witness.ask("seen") == []
    for call in (
        lambda: desktop.resize((0, 10)),
        # 800 and 600 in 16 bits.
        lambda: desktop.resize((66_336, 66_136)),
        lambda: desktop.screenshot(region=(990, 0, 100, 100)),
        lambda: desktop.screenshot(region=(0, 0, -5, 5)),
        lambda: desktop.start(""),
        lambda: desktop.windows.activate(0xDEAD),
        lambda: desktop.perform(settle="yes"),  # type: ignore[arg-type]
    ):
        with pytest.raises(deskhand.ActionError):
            call()
    with pytest.raises(deskhand.ActionError):
        desktop.screenshot(size=(0, 0))
    with pytest.raises(deskhand.ShellError):
        desktop.start("/nonexistent/program")
    assert desktop.perform(KeyPress(["a"])).settled


@pytest.mark.parametrize("what", ["keyboard", "pointer", "both"])
def test_grabs(desktop: deskhand.Desktop, what: str) -> None:
    """F32: a client has grabbed the keyboard, the pointer or both: input reaches it, that is told, and no call hangs."""
    desktop.start("xterm")
    with xclient(desktop) as client:
        assert client.ask("grab", what)
        with (
            within(6.0, "an action that is blocked"),
            pytest.raises(deskhand.InputBlocked, match=str(client.process.pid)),
        ):
            desktop.perform(KeyPress(["a"]), Type("b"), LeftClick((600, 500)))
        got = until(lambda: client.ask("seen"), 5, "the grabbing client's events")
        assert ("KeyPress" in got) == (what != "pointer")
        assert ("ButtonPress" in got) == (what != "keyboard")
        assert client.ask("pressed") == {"keys": [], "buttons": []}


def test_open_menu(desktop: deskhand.Desktop) -> None:
    """F32: an override-redirect window (a menu) is open: clicks reach it."""
    desktop.start("xterm")
    with xclient(desktop) as client:
        client.ask("popup", 50, 50, 300, 200, 0x888888)
        seen = desktop.perform(LeftClick((100, 100)))
        assert seen.settled
        assert until(lambda: client.ask("seen"), 5, "the menu's events") == ["ButtonPress"]


def test_a_click_comes_before_the_keys_after_it(mark: str, desktop: deskhand.Desktop, home: Path) -> None:
    """A window manager holds clicks back until it has looked at them; here it takes its time."""
    app = Mousepad(desktop, home)
    app.focus()
    desktop.perform(Type("one\ntwo"), KeyPress(["ctrl+Home"]))
    x, y, width, height = app.window.rect
    manager = pid_of(mark, "openbox")
    os.kill(manager, signal.SIGSTOP)
    timer = threading.Timer(0.3, os.kill, (manager, signal.SIGCONT))
    timer.start()
    desktop.perform(LeftClick((x + width // 2, y + height * 3 // 4)), Type("!"))
    timer.join()
    assert app.text("one\ntwo!") == "one\ntwo!"


MAPS_AT_ONCE = """
from Xlib import X, display
server = display.Display()
root = server.screen().root
root.change_attributes(event_mask=X.PropertyChangeMask)
server.sync()
print(flush=True)
shown = server.intern_atom("_NET_SUPPORTING_WM_CHECK")
while server.next_event().atom != shown:
    pass
root.create_window(10, 10, 100, 100, 0, X.CopyFromParent).map()
server.sync()
print(flush=True)
while True:
    server.next_event()
"""


def test_a_window_is_managed_that_came_while_the_window_manager_began(launch: Callable[..., deskhand.Desktop]) -> None:
    """Openbox sleeps on it until something else comes."""
    desktop = launch(window_manager=None)
    environment = x_environment(desktop)
    argv = [sys.executable, "-c", MAPS_AT_ONCE]
    with subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE) as client:
        assert client.stdout is not None
        client.stdout.readline()
        with subprocess.Popen([need("openbox", "openbox"), "--sm-disable"], env=environment) as manager:
            try:
                assert client.stdout.readline()
                until(desktop._core.backend.has_window_manager, 10, "the window manager")
                until(desktop.windows.list, 5, "its window")
            finally:
                manager.kill()
                client.kill()


def test_a_window_manager_that_hangs_is_named_busy(mark: str, desktop: deskhand.Desktop) -> None:
    window = desktop.start("xterm").window
    assert window is not None
    click = LeftClick((window.rect.x + 20, window.rect.y + 20))
    manager = pid_of(mark, "openbox")
    os.kill(manager, signal.SIGSTOP)
    try:
        seen = desktop.perform(click, settle=Settle(timeout=0.5))
    finally:
        os.kill(manager, signal.SIGCONT)
    assert (seen.settled, seen.reason) == (False, Reason.WINDOW_BUSY)
    assert desktop.perform(click).settled


def test_one_driver_at_a_time(desktop: deskhand.Desktop, driver_environment: dict[str, str]) -> None:
    """F35: a second driver is told who has the desktop; to look only is always possible."""
    url = f"x11:{desktop.display}"
    with pytest.raises(deskhand.ConnectFailed, match=rf"process {os.getpid()} on .*view_only=True"):
        deskhand.connect(url, xauthority=desktop.xauthority)
    with deskhand.connect(url, xauthority=desktop.xauthority, view_only=True) as looking:
        assert looking.screenshot().size == desktop.size
        for call in (
            lambda: looking.perform(KeyPress(["a"])),
            lambda: looking.clipboard.write("x"),
            lambda: looking.resize((500, 400)),
            lambda: looking.start("xterm"),
        ):
            with pytest.raises(deskhand.UnsupportedAction):
                call()
        assert looking.perform().settled
    # The lease goes with a close...
    desktop._core.backend.close()
    with deskhand.connect(url, xauthority=desktop.xauthority) as second:
        assert second.perform(KeyPress(["a"])).settled
    # ...and with a driver that was killed.
    environment = {**driver_environment, "XAUTHORITY": str(desktop.xauthority), "TEST_URL": url}
    code = "desktop = deskhand.connect(os.environ['TEST_URL'])\nsay(ok=True)\nwait_forever()\n"
    with driver(code, environment) as process:
        process.read()
        with pytest.raises(deskhand.ConnectFailed, match=f"process {process.process.pid} on"):
            deskhand.connect(url, xauthority=desktop.xauthority)
        process.kill()

        def free() -> deskhand.Desktop | None:
            try:
                return deskhand.connect(url, xauthority=desktop.xauthority)
            except deskhand.ConnectFailed:
                return None

        with until(free, 2, "the lease"):
            pass


def test_two_at_the_same_moment(launch: Callable[..., deskhand.Desktop]) -> None:
    """F35: of many that come at once, one gets it."""
    desktop = launch(size=(200, 100), window_manager=None)
    desktop._core.backend.close()
    url = f"x11:{desktop.display}"

    def attempt(_: int) -> deskhand.Desktop | deskhand.ConnectFailed:
        try:
            return deskhand.connect(url, xauthority=desktop.xauthority)
        except deskhand.ConnectFailed as error:
            return error

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(attempt, range(8)))
    winners = [result for result in results if isinstance(result, deskhand.Desktop)]
    for winner in winners:
        winner.close()
    assert len(winners) == 1
