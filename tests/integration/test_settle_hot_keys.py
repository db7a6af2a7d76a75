"""Settling after a hot key: nobody tells which program gets it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import deskhand
from deskhand import BackClick, KeyPress, Move, Reason
from faults.helpers import starved, until, window_expected
from zoo.stages import need_module

if TYPE_CHECKING:
    from collections.abc import Iterator

# As window managers and their like do: nobody can see who has started what they start.
LAUNCHER = """
import os, signal, sys
from Xlib import X, XK, display
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
server = display.Display()
key, mode = server.keysym_to_keycode(XK.XK_Return), X.GrabModeAsync
server.screen().root.grab_key(key, X.Mod1Mask, False, mode, mode)
server.screen().root.grab_button(8, X.AnyModifier, False, X.ButtonPressMask, mode, mode, X.NONE, X.NONE)
server.sync()
print(flush=True)
while True:
    if server.next_event().type in (X.KeyPress, X.ButtonPress) and not os.fork():
        if not os.fork():
            os.execv(sys.argv[1], sys.argv[1:])
        os._exit(0)
"""
# It computes for a few tenths of a second before it shows a window.
DIALOG = """
import gi
gi.require_version("Gtk", "3.0")
from gi.repository import Gtk
Gtk.MessageDialog(text="Hello", buttons=Gtk.ButtonsType.OK).run()
"""
# It waits for something else before it shows a window.
WAITS = "from Xlib import display; display.Display().next_event()"
# Nobody waits this long; it only ends a test that would hang.
PATIENT = deskhand.Settle(timeout=20.0)


def await_windows(desktop: deskhand.Desktop, count: int) -> None:
    until(lambda: len(desktop.windows.list()) == count, 20.0, "the dialog")


@pytest.fixture
def program(request: pytest.FixtureRequest) -> list[str]:
    return getattr(request, "param", [need_module("gi", "python3-gi"), "-c", DIALOG])


@pytest.fixture
def launcher(request: pytest.FixtureRequest, desktop: deskhand.Desktop, program: list[str]) -> Iterator[int]:
    """The process that starts a program for Alt+Return, while an xterm has the focus that runs a command of the parameter."""
    with window_expected(desktop):
        desktop.start(["xterm", "+bc", *getattr(request, "param", ())])
    argv = [sys.executable, "-c", LAUNCHER, *program]
    with subprocess.Popen(argv, env=dict(desktop._core.environment), stdout=subprocess.PIPE) as launcher:
        assert launcher.stdout is not None
        try:
            assert launcher.stdout.readline()
            yield launcher.pid
        finally:
            launcher.kill()


@pytest.mark.parametrize("slices", [None, (0.3, 60.0)], ids=["quiet", "starved"])
def test_a_program_that_a_hot_key_starts_is_waited_for(
    desktop: deskhand.Desktop, launcher: int, slices: tuple[float, float] | None
) -> None:
    with contextlib.nullcontext() if slices is None else starved(launcher, *slices):
        for count in range(2, 5):
            seen = desktop.perform(KeyPress(("alt+Return",)), settle=PATIENT)
            # On a busy machine the launcher may not read the key within a second.
            assert seen.may_change or (seen.settled, seen.reason) == (True, Reason.QUIET)
            assert seen.may_change or len(desktop.windows.list()) == count
            await_windows(desktop, count)


@pytest.mark.parametrize(
    "launcher", [("-e", "sh", "-c", "while :; do printf .; sleep 0.2; done")], indirect=True, ids=["dots"]
)
def test_beside_output_a_hot_key_is_right_or_told(desktop: deskhand.Desktop, launcher: int) -> None:
    with starved(launcher, 0.3, 60.0):
        for count in range(2, 5):
            seen = desktop.perform(KeyPress(("alt+Return",)))
            assert seen.may_change or not seen.settled or len(desktop.windows.list()) == count
            await_windows(desktop, count)


@pytest.mark.parametrize("keys", [("alt+Return",), ("alt+Return", "shift")], ids=["alone", "before another key"])
def test_a_hot_key_that_nobody_has_read_is_told_and_holds_up_once(
    desktop: deskhand.Desktop, launcher: int, keys: tuple[str, ...]
) -> None:
    os.kill(launcher, signal.SIGSTOP)
    seen = desktop.perform(*(KeyPress((key,)) for key in keys))
    assert (seen.reason, seen.may_change) == (Reason.UNCHANGED, True)
    assert seen.elapsed.input + seen.elapsed.settle > 0.9
    again = desktop.perform(KeyPress(("shift",)))
    assert (again.reason, again.may_change) == (Reason.UNCHANGED, False)
    os.kill(launcher, signal.SIGCONT)
    await_windows(desktop, 2)


@pytest.mark.parametrize("program", [[sys.executable, "-c", WAITS]], ids=["waits"], indirect=True)
@pytest.mark.parametrize("action", [KeyPress(("alt+Return",)), BackClick((20, 20))], ids=["key", "button"])
@pytest.mark.usefixtures("launcher")
def test_a_program_that_was_started_and_shows_nothing_is_told(
    desktop: deskhand.Desktop, action: KeyPress | BackClick
) -> None:
    desktop.perform(Move((20, 20)))
    seen = desktop.perform(action, settle=PATIENT)
    assert (seen.reason, seen.may_change) == (Reason.UNCHANGED, True)
    # On a busy machine another program may be late at times.
    assert any(not desktop.perform(KeyPress(("shift",))).may_change for _ in range(10))


@pytest.mark.usefixtures("launcher")
def test_a_client_that_always_computes_holds_up_no_key(desktop: deskhand.Desktop) -> None:
    code = "from Xlib import display; server = display.Display(); print(flush=True)\nwhile True: pass"
    environment = dict(desktop._core.environment)
    with subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE) as client:
        assert client.stdout is not None
        assert client.stdout.readline()
        try:
            # The first hot key finds who is there. On a busy machine others may be late at times.
            for key in ("ctrl", "shift"):
                assert any(not desktop.perform(KeyPress((key,))).may_change for _ in range(10))
        finally:
            client.kill()
