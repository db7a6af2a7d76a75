"""Settling on real windows: what moves on its own, what is slow, what stands still."""

from __future__ import annotations

import contextlib
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import deskhand
from deskhand import KeyPress, Move, Point, Reason, Rect, Settle, Type
from deskhand._core.observation import remarks
from faults.helpers import until, window_expected
from soak import soaked
from zoo.stages import need_module

from .stage import ANSWER, SCENES

if TYPE_CHECKING:
    from numpy.typing import NDArray

STAGE = Path(__file__).with_name("stage.py")
# Nobody waits this long; it only ends a test that would hang.
PATIENCE = 20.0


ALL_SCENES = "+".join(SCENES)


def start_stage(desktop: deskhand.Desktop, *scenes: str) -> Point:
    """Starts the stage; the screen position of its window's corner."""
    with window_expected(desktop):
        program = desktop.start([sys.executable, str(STAGE), *scenes])
    assert program.window is not None
    return Point(program.window.rect.x, program.window.rect.y)


def on_screen(corner: Point, rect: tuple[int, int, int, int]) -> Rect:
    x, y, width, height = rect
    return Rect(corner.x + x, corner.y + y, width, height)


def assert_same_but_for_a_caret(seen: NDArray[np.uint8], later: NDArray[np.uint8]) -> None:
    different = np.argwhere((seen != later).any(axis=2))
    # A caret is two pixels wide.
    assert different.size == 0 or different[:, 1].max() - different[:, 1].min() < 3


def until_busy(desktop: deskhand.Desktop, count: int) -> deskhand.Observation:
    """Looks again and again until so many regions are known to move on their own."""
    deadline = time.monotonic() + PATIENCE
    while True:
        desktop._core.watch.pause(0.25)
        # Only what happens between calls counts as happening on its own.
        time.sleep(0.75)
        seen = desktop.perform()
        if len(seen.busy) >= count or time.monotonic() > deadline:
            return seen


def test_a_terminal_that_answers_at_once_is_waited_for_shorter(desktop: deskhand.Desktop) -> None:
    desktop.start(["xterm", "-e", "cat"])
    unchanged = Settle().quiet - 0.016
    for count in range(1000):
        seen = desktop.perform(KeyPress(["abcdefgh"[count % 8]]))
        assert seen.settled
        if seen.changed and seen.elapsed.settle < unchanged - 0.005:
            break
    assert count >= 24
    for letter in "the rest of it":
        seen = desktop.perform(Type(letter))
        time.sleep(0.1)
        assert np.array_equal(seen.array(), desktop.screenshot(format="raw").array())


@pytest.mark.parametrize("moving", soaked([*SCENES, ALL_SCENES], but=[ALL_SCENES]))
def test_what_moved_before_is_busy_and_holds_nothing_up(desktop: deskhand.Desktop, moving: str) -> None:
    scenes = moving.split("+")
    corner = start_stage(desktop, *scenes)
    until_busy(desktop, len(scenes))
    idle = desktop.perform(KeyPress(("F5",)))
    assert (idle.settled, idle.reason, idle.changed) == (True, Reason.UNCHANGED, False)
    for scene in scenes:
        rect = on_screen(corner, SCENES[scene][0])
        assert any(rect.within(busy) for busy in idle.busy), (scene, idle.busy)
    answered = desktop.perform(KeyPress(("a",)))
    assert (answered.settled, answered.reason) == (True, Reason.QUIET)
    assert on_screen(corner, ANSWER) in answered.rects


def test_an_answer_in_steps_is_waited_out(desktop: deskhand.Desktop) -> None:
    start_stage(desktop)
    seen = desktop.perform(KeyPress(("s",)))
    assert (seen.settled, seen.reason) == (True, Reason.QUIET)
    later = desktop.perform()
    assert later.generation == seen.generation


def test_a_movement_that_the_action_began_ends_at_the_timeout(desktop: deskhand.Desktop) -> None:
    start_stage(desktop)
    seen = desktop.perform(KeyPress(("v",)), settle=deskhand.Settle(quiet=0.5, timeout=1.0))
    assert (seen.settled, seen.reason) == (False, Reason.STILL_CHANGING)
    again = until_busy(desktop, 1)
    assert again.settled
    assert again.busy


def test_what_appears_and_goes_again_has_changed_nothing(desktop: deskhand.Desktop) -> None:
    start_stage(desktop)
    for _ in range(5):
        seen = desktop.perform(KeyPress(("f",)))
        assert (seen.settled, seen.rects) == (True, ())
        # On a busy machine both may fall between two looks.
        assert seen.reason in {Reason.QUIET, Reason.UNCHANGED}
    assert desktop.perform(KeyPress(("a",))).changed


def test_a_busy_window_is_waited_for(desktop: deskhand.Desktop) -> None:
    program = desktop.start("mousepad")
    desktop.perform(Type("a"))
    os.kill(program.pid, signal.SIGSTOP)
    timer = threading.Timer(0.8, os.kill, (program.pid, signal.SIGCONT))
    timer.start()
    seen = desktop.perform(Type("b"))
    timer.join()
    assert (seen.settled, seen.changed, seen.reason) == (True, True, Reason.QUIET)
    assert seen.elapsed.reaction > 0.7


def test_a_window_that_stays_busy_is_named_at_the_timeout(desktop: deskhand.Desktop) -> None:
    program = desktop.start("mousepad")
    os.kill(program.pid, signal.SIGSTOP)
    try:
        seen = desktop.perform(Type("b"), settle=deskhand.Settle(timeout=0.5))
    finally:
        os.kill(program.pid, signal.SIGCONT)
    assert (seen.settled, seen.reason) == (False, Reason.WINDOW_BUSY)


SLEEPER = """
import os, pathlib, sys, time, tkinter
def sleep(event):
    pathlib.Path(sys.argv[1]).touch()
    time.sleep(1.0)
root = tkinter.Tk()
text = tkinter.Text(root, insertofftime=0)
text.pack()
text.focus_force()
root.bind("<F9>", sleep)
root.bind("<F10>", lambda event: os.system("sleep 1") and None)
root.mainloop()
"""


def test_a_key_that_nobody_has_read_is_not_answered(desktop: deskhand.Desktop, tmp_path: Path) -> None:
    """Of a window that answers no pings, the kernel tells what its program has read."""
    asleep = tmp_path / "asleep"
    with window_expected(desktop):
        desktop.start([sys.executable, "-c", SLEEPER, str(asleep)])
    assert desktop.perform(Type("a")).reason is Reason.QUIET
    desktop.perform(KeyPress(("F9",)), settle=False)
    until(asleep.exists, PATIENCE, "the program to sleep")
    seen = desktop.perform(KeyPress(("b",)), settle=deskhand.Settle(timeout=0.4))
    assert (seen.settled, seen.reason, seen.changed) == (False, Reason.WINDOW_BUSY, False)
    seen = desktop.perform(KeyPress(("c",)))
    assert (seen.settled, seen.changed, seen.reason) == (True, True, Reason.QUIET)
    assert desktop.perform(KeyPress(("F6",))).reason is Reason.UNCHANGED


def test_a_handler_that_sleeps_is_waited_for(desktop: deskhand.Desktop, tmp_path: Path) -> None:
    """What made it sleep was read, and so may have been what came right behind that."""
    with window_expected(desktop):
        desktop.start([sys.executable, "-c", SLEEPER, str(tmp_path / "asleep")])
    assert desktop.perform(Type("a")).reason is Reason.QUIET
    # By a timer, and by waiting for a child.
    for way in (KeyPress(("F9",)), KeyPress(("F10",))):
        seen = desktop.perform(way, settle=deskhand.Settle(timeout=0.4))
        assert (seen.settled, seen.reason) == (False, Reason.WINDOW_BUSY)
        # Until it is over: a sleep that goes on when an action begins counts as the program's own.
        assert desktop.perform(KeyPress(("F6",))).settled
        desktop.perform(way, settle=False)
        seen = desktop.perform(KeyPress(("b",)))
        assert (seen.settled, seen.changed, seen.reason) == (True, True, Reason.QUIET)


FORGE = """
import time
from Xlib import X, display
from Xlib.protocol.event import ClientMessage
server = display.Display()
root, atom = server.screen().root, server.intern_atom
window = root.get_full_property(atom("_NET_ACTIVE_WINDOW"), X.AnyPropertyType).value[0]
mask = X.SubstructureNotifyMask | X.SubstructureRedirectMask
while True:
    for token in (0xDECFFFFF, 0xFFFFFFFF, 0x7FFFFFFF, 1, 0):
        answer = (32, [atom("_NET_WM_PING"), token, window, 0, 0])
        root.send_event(ClientMessage(window=root, client_type=atom("WM_PROTOCOLS"), data=answer), event_mask=mask)
    server.sync()
    print(flush=True)
    time.sleep(0.01)
"""


def test_what_others_answer_for_a_window_does_not_count(desktop: deskhand.Desktop) -> None:
    program = desktop.start("mousepad")
    argv = [sys.executable, "-c", FORGE]
    with subprocess.Popen(argv, env=dict(desktop._core.environment), stdout=subprocess.PIPE) as forger:
        assert forger.stdout is not None
        os.kill(program.pid, signal.SIGSTOP)
        try:
            assert forger.stdout.readline()
            seen = desktop.perform(Type("b"), settle=deskhand.Settle(timeout=0.5))
        finally:
            os.kill(program.pid, signal.SIGCONT)
            forger.kill()
    assert (seen.settled, seen.reason) == (False, Reason.WINDOW_BUSY)


def test_a_thousand_keys_are_drawn_when_it_returns(desktop: deskhand.Desktop) -> None:
    """GTK answers a ping long before it has worked off the keys before it."""
    desktop.start("mousepad")
    seen = desktop.perform(Type("lorem ipsum dolor " * 50 + "\n"))
    assert seen.settled
    desktop._core.watch.pause(1.0)
    assert_same_but_for_a_caret(seen.array(), desktop.screenshot().array())


def test_a_command_of_many_short_processes_is_waited_out(desktop: deskhand.Desktop, tmp_path: Path) -> None:
    done = tmp_path / "done"
    with window_expected(desktop):
        desktop.start(["xterm", "-e", "bash", "--norc"])
    for _ in range(8):
        desktop.perform(Type(f"for i in $(seq 60); do /bin/true; done; touch {done}"))
        seen = desktop.perform(KeyPress(["enter"]), settle=deskhand.Settle(timeout=PATIENCE))
        assert seen.reason is Reason.QUIET
        done.unlink()


def test_what_another_window_starts_all_the_time_holds_nothing_up(desktop: deskhand.Desktop, tmp_path: Path) -> None:
    loops = tmp_path / "loops"
    # The shell has begun some time before the action, and the kernel tells ticks.
    commands = [["-e", "sh", "-c", f"while :; do sleep 0.05; : > '{loops}'; done"], []]
    with contextlib.ExitStack() as programs:
        for command in commands:
            with window_expected(desktop):
                # Each is started here, so that neither belongs to the other.
                xterm = subprocess.Popen(["xterm", "+bc", *command], env=dict(desktop._core.environment))
                programs.enter_context(xterm)
                programs.callback(xterm.kill)
        until(loops.exists, PATIENCE, "the loop")
        for letter in "abc":
            seen = desktop.perform(KeyPress((letter,)), settle=deskhand.Settle(timeout=PATIENCE))
            assert (seen.settled, seen.reason) == (True, Reason.QUIET)


def test_a_command_that_sleeps_between_its_lines_is_waited_out(desktop: deskhand.Desktop, tmp_path: Path) -> None:
    done = tmp_path / "done"
    with window_expected(desktop):
        desktop.start(["xterm", "-e", "bash", "--norc"])
    desktop.perform(Type("PS1='$ '"), KeyPress(["enter"]))
    script = f"{sys.executable} -c 'import time\nfor i in range(6): time.sleep(0.12); print(i, flush=True)'"
    for command in ("for i in $(seq 6); do sleep 0.12; echo $i; done", script):
        desktop.perform(Type(f"{command}; touch {done}"))
        seen = desktop.perform(KeyPress(["enter"]), settle=deskhand.Settle(timeout=PATIENCE))
        assert (seen.reason, seen.may_change) == (Reason.QUIET, False)
        done.unlink()
    desktop.perform(Type("sleep 600"))
    seen = desktop.perform(KeyPress(["enter"]))
    assert (seen.settled, seen.may_change) == (True, True)
    assert remarks(seen) == {"may_change": True}
    # It does so on its own account now.
    assert not desktop.perform(Type("x")).may_change
    # In the background nobody waits for it.
    assert not desktop.perform(KeyPress(["ctrl+c"])).may_change
    assert not desktop.perform(Type("sleep 600 &"), KeyPress(["enter"])).may_change


DIALOG = """
import sys, gi
gi.require_version("Gtk", "3.0")
from gi.repository import Gtk
window, box, label = Gtk.Window(), Gtk.Box(orientation=Gtk.Orientation.VERTICAL), Gtk.Label(label="0")
button, entry = Gtk.Button(label="_Add", use_underline=True), Gtk.Entry(activates_default=True)
def count(_):
    label.set_text(str(int(label.get_text()) + 1))
    open(sys.argv[1], "w").write(label.get_text())
button.connect("clicked", count)
for part in (label, entry, button):
    box.add(part)
button.set_can_default(True)
window.add(box)
window.set_default(button)
window.show_all()
Gtk.main()
"""


def test_a_button_that_a_key_presses_is_waited_for(desktop: deskhand.Desktop, tmp_path: Path) -> None:
    """GTK shows it pressed at once, and does what it is for 0.25 s later, by a timer."""
    desktop.start(["/usr/bin/python3", "-c", DIALOG, str(tmp_path / "count")])
    for count, keys in enumerate(["Return", "alt+a", "KP_Enter", "Tab space", "Return"], 1):
        seen = desktop.perform(*(KeyPress((key,)) for key in keys.split()))
        assert (seen.settled, seen.reason) == (True, Reason.QUIET)
        assert (tmp_path / "count").read_text() == str(count), keys


def test_a_button_is_waited_for_beside_other_timers(desktop: deskhand.Desktop, tmp_path: Path) -> None:
    """The kernel tells of the timer only that ends first: it is never the button's."""
    ticks = "from gi.repository import GLib\nGLib.timeout_add(10, lambda: True)\n"
    desktop.start(
        ["/usr/bin/python3", "-c", DIALOG.replace("Gtk.main()", f"{ticks}Gtk.main()"), str(tmp_path / "count")]
    )
    for count in range(1, 6):
        # So long that what the program does while nobody acts is known.
        time.sleep(0.3)
        assert desktop.perform(KeyPress(("Return",))).reason is Reason.QUIET
        assert (tmp_path / "count").read_text() == str(count)


TIMED = """
import gi
gi.require_version("Gtk", "3.0")
from gi.repository import GLib, Gtk
window, label = Gtk.Window(), Gtk.Label(label="0")
def later():
    label.set_text(label.get_text() + ".")
def answer(_, event):
    label.set_text(label.get_text() + "!")
    if event.string == "t":
        GLib.timeout_add(400, later)
window.connect("key-press-event", answer)
window.add(label)
window.show_all()
Gtk.main()
"""

# Seconds: a timer that ends so long after an action began is told; see docs/desktops.md.
TOLD = 0.59


def test_an_answer_behind_a_timer_is_told(desktop: deskhand.Desktop) -> None:
    """GIMP draws a preview 1 s after an undo: that is not waited for, but it waits for a timer then, and for none otherwise."""
    # Elsewhere the kernel does not tell how long a poll lasts.
    tells = platform.machine() == "x86_64"
    desktop.start(["/usr/bin/python3", "-c", TIMED])
    for key, timed in (("a", False), ("t", True)) * 3:
        begun = time.monotonic()
        seen = desktop.perform(KeyPress((key,)))
        came = desktop._core.watch.appears(2.0)
        took = time.monotonic() - begun
        assert (seen.settled, seen.reason) == (True, Reason.QUIET)
        # On a machine that is too busy the program has set its timer later, or the action ends after it.
        if not timed or took <= TOLD:
            assert (came, seen.may_change) == (timed, timed and tells), key


# `w` waits for a timer and then shows something, `b` is at work for ever, and `n` does nothing.
SAYING = """
import tkinter
root = tkinter.Tk()
root.geometry("300x200")
label = tkinter.Label(root)
label.pack()
def finish():
    label.configure(text=label["text"] + "!")
    root.configure(cursor="")
def wait():
    root.configure(cursor="watch")
    root.after(250, finish)
root.bind("w", lambda _: wait())
root.bind("b", lambda _: root.configure(cursor="watch"))
root.mainloop()
"""


def test_a_pointer_that_says_wait_is_waited_for(desktop: deskhand.Desktop) -> None:
    window = desktop.start([need_module("tkinter", "python3-tk"), "-c", SAYING]).window
    assert window is not None
    desktop.perform(Move((window.rect.x + 150, window.rect.y + 150)))
    for _ in range(3):
        seen = desktop.perform(KeyPress(("w",)))
        # On a busy machine the pointer may say so for longer than it is believed.
        assert seen.may_change or (seen.reason, seen.pointer_shape) == (Reason.QUIET, "default")
        assert until(lambda: desktop.perform().pointer_shape == "default", PATIENCE, "the answer")
    seen = desktop.perform(KeyPress(("b",)))
    assert (seen.reason, seen.may_change, seen.pointer_shape) == (Reason.UNCHANGED, True, "wait")
    # It says no more than before.
    seen = desktop.perform(KeyPress(("n",)))
    assert (seen.reason, seen.may_change, seen.pointer_shape) == (Reason.UNCHANGED, False, "wait")


def test_an_animation_that_slows_down_is_waited_out(desktop: deskhand.Desktop) -> None:
    """GTK scrolls a line that outgrows its window for 0.2 s, and moves it for the last time long after the time before."""
    window = desktop.start("mousepad").window
    assert window is not None
    # The scroll bar below is not looked at: it fades out by a timer.
    text = slice(window.rect.y, window.rect.y + window.rect.height // 2)
    desktop.perform(Type("abcdefghij" * 12))
    for letter in "klmnopqrst":
        seen = desktop.perform(KeyPress((letter,)))
        assert (seen.settled, seen.reason) == (True, Reason.QUIET)
        desktop._core.watch.pause(0.5)
        assert_same_but_for_a_caret(seen.array()[text], desktop.screenshot().array()[text])


def test_a_dialog_that_closes_on_its_key_is_not_waited_for(desktop: deskhand.Desktop) -> None:
    desktop.start("mousepad")
    opened = desktop.perform(Type("x"), KeyPress(("ctrl+q",)))
    assert opened.changed
    assert any(window.title != "" and "Save" in window.title for window in desktop.windows.list())
    closed = desktop.perform(KeyPress(("Escape",)))
    assert (closed.settled, closed.changed) == (True, True)
    assert not any("Save" in window.title for window in desktop.windows.list())
