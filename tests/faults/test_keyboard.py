"""Whatever is done to the keyboard, a text arrives exactly: layouts (F13), more characters than keys (F14), locks (F15)."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from deskhand import BackendError, KeyPress, Type, UnsupportedAction
from faults.helpers import need, until
from faults.scale import EVIDENCE
from integration.apps import APPS, locks, run
from integration.texts import MIXED, SEVERAL_PAGES, check, random_letters
from soak import soaked

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import deskhand
    from deskhand._core.events import Event
    from integration.apps import App, Bench

# The last one has dead keys where quotes and accents are.
LAYOUTS = ("de", "fr", "ru", "us(dvorak)", "us(intl)")


@pytest.fixture(params=soaked(LAYOUTS, but=("de", "us(intl)")))
def layout(request: pytest.FixtureRequest, bench: Bench) -> Iterator[str]:
    """Another layout, set by another client while the applications run."""
    name, _, variant = request.param.rstrip(")").partition("(")
    run(bench.desktop, "setxkbmap", "-layout", name, "-variant", variant)
    yield request.param
    run(bench.desktop, "setxkbmap", "-layout", "us", "-variant", "")


@pytest.mark.usefixtures("layout")
@pytest.mark.parametrize("name", APPS)
def test_layout_does_not_matter(bench: Bench, name: str) -> None:
    """F13: set before the text."""
    check(bench.app(name), MIXED)


# mousepad draws so many slowly; that it reads all of them under one layout is shown by `test_a_thousand_symbols`.
@pytest.mark.usefixtures("layout")
@pytest.mark.parametrize("name", ["xterm", "mousepad"] if EVIDENCE else ["xterm"])
def test_layout_does_not_matter_for_thousands_of_characters(bench: Bench, name: str) -> None:
    """F13: 2,000 characters of the whole basic plane."""
    check(bench.app(name), random_letters(2000, seed=13))


def test_second_group_does_not_matter(bench: Bench) -> None:
    run(bench.desktop, "setxkbmap", "-layout", "us,ru", "-variant", ",", "-option", "grp:shifts_toggle")
    try:
        bench.desktop.perform(KeyPress(["ISO_Next_Group"]))
        check(bench.app("mousepad"), MIXED)
    finally:
        run(bench.desktop, "setxkbmap", "-layout", "us", "-variant", "", "-option", "")


@pytest.mark.parametrize("filler", soaked(["", SEVERAL_PAGES], but=[""]), ids=["one page", "several pages"])
@pytest.mark.parametrize("name", APPS)
def test_layout_changed_while_typing(bench: Bench, name: str, filler: str) -> None:
    """F13: set in the middle of the text: it arrives exactly, or the caller is told."""
    text = "".join(f"{number} quick yellow zebras; {filler[number % 80 :][:1]}\n" for number in range(60))
    app = bench.app(name)
    change = threading.Thread(target=run, args=(bench.desktop, "setxkbmap", "-layout", "de"))
    change.start()
    try:
        app.desktop.perform(Type(text))
    except BackendError as error:
        # Many applications translate keys that wait in their queue with the new layout. That cannot be helped, but it is told.
        told = str(error)
    else:
        told = ""
        assert app.text(text) == text
    finally:
        change.join()
    assert not told or "layout was changed" in told
    # Whatever came of that text, the next one is typed with the layout as it is now.
    app = bench.app(name)
    run(bench.desktop, "setxkbmap", "-layout", "us")
    app.desktop.perform(Type("lazy; zebra\n"))
    assert app.text("lazy; zebra\n") == "lazy; zebra\n"


def test_layout_changed_before_a_window_without_pings_reads(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """F13: xterm answers no ping; it is stopped, so it reads its keys after the change."""
    app = bench.app("xterm")
    backend = app.desktop._core.backend
    send = backend.send

    def send_and_change(events: Sequence[Event]) -> None:
        send(events)
        run(bench.desktop, "setxkbmap", "-layout", "de")

    monkeypatch.setattr(backend, "send", send_and_change)
    os.kill(app.pid, signal.SIGSTOP)
    try:
        with pytest.raises(BackendError, match="layout was changed"):
            app.desktop.perform(Type("lazy zebra"))
    finally:
        os.kill(app.pid, signal.SIGCONT)
        run(bench.desktop, "setxkbmap", "-layout", "us")


@pytest.mark.parametrize("lock", soaked(["Caps", "Num", "Scroll"], but=["Caps"]))
def test_locks_do_not_matter_and_stay(app: App, lock: str) -> None:
    """F15."""
    before = locks(app.desktop)
    app.desktop.perform(KeyPress([f"{lock}_Lock"]))
    locked = locks(app.desktop)
    try:
        check(app, MIXED)
        assert locks(app.desktop) == locked
    finally:
        app.desktop.perform(KeyPress([f"{lock}_Lock"]))
    assert locks(app.desktop) == before
    if lock != "Scroll":
        assert locked[lock] == "on"


# XkbChangeEnabledControls on the core keyboard, 0x100: XkbStickyKeysMask is 1 << 3 (X Keyboard Extension, §4.1).
_STICKY_KEYS = """
import ctypes, sys
xlib = ctypes.CDLL("libX11.so.6")
xlib.XOpenDisplay.restype = ctypes.c_void_p
display = ctypes.c_void_p(xlib.XOpenDisplay(None))
assert xlib.XkbChangeEnabledControls(display, 0x100, 1 << 3, int(sys.argv[1]) << 3)
xlib.XCloseDisplay(display)
"""


def test_sticky_keys_do_not_matter(app: App) -> None:
    """F15."""
    run(app.desktop, sys.executable, "-c", _STICKY_KEYS, "1")
    try:
        check(app, MIXED)
        check_again = "SHOUTING, and Ünder it: ÀÉ"
        app.clear()
        check(app, check_again)
    finally:
        run(app.desktop, sys.executable, "-c", _STICKY_KEYS, "0")


_STATES = """
import sys, tkinter
root = tkinter.Tk()
out = open(sys.argv[1], "a", buffering=1)
root.bind("<Key>", lambda event: event.keysym == "a" and out.write(f"{event.state:#x}\\n"))
root.mainloop()
"""


def test_a_modifier_of_either_side_is_in_the_state(desktop: deskhand.Desktop, tmp_path: Path) -> None:
    """The usual layout has `Hyper_L` with Shift only, and no `Hyper_R` or `Meta_R`."""
    told = tmp_path / "states"
    told.touch()
    desktop.start([need("/usr/bin/python3", "python3-tk"), "-c", _STATES, str(told)])
    states = {"Control": "0x4", "Alt": "0x8", "Meta": "0x8", "Super": "0x40", "Hyper": "0x40"}
    for number, (name, state) in enumerate((f"{name}_{side}", states[name]) for name in states for side in "LR"):
        desktop.perform(KeyPress([name, "a"]))
        until(lambda count=number: len(told.read_text().split()) > count, 30, name)
        assert (name, told.read_text().split()[-1]) == (name, state)


_KEYS = """
import sys, tkinter
root = tkinter.Tk()
root.bind("<Key>", lambda event: print(event.keysym, hex(event.state & 0xff), file=open(sys.argv[1], "a")))
root.focus_force()
root.mainloop()
"""


def test_a_key_that_servers_keep_for_themselves_arrives_or_is_refused(
    desktop: deskhand.Desktop, tmp_path: Path
) -> None:
    """Control, Alt and a function key switch the text console, some of the keypad's end grabs: no application sees those."""
    told = tmp_path / "keys"
    told.touch()
    desktop.start([need("/usr/bin/python3", "python3-tk"), "-c", _KEYS, str(told)])
    names = ("F1", "F5", "F12", "KP_Add", "KP_Subtract", "KP_Multiply", "KP_Divide")
    for name in names:
        told.write_text("")
        desktop.perform(KeyPress(["ctrl", "alt", name]))
        until(lambda name=name: f"{name} 0xc" in told.read_text(), 30, name)
    # With the server's usual map, as of a server that others use.
    run(desktop, "setxkbmap", "-layout", "us", "-variant", "", "-option", "")
    for name in names:
        told.write_text("")
        with pytest.raises(UnsupportedAction, match=f"ctrl\\+alt\\+{name}.*itself"):
            desktop.perform(KeyPress(["ctrl", "alt", name]))
        assert told.read_text() == ""
    for keys in (["ctrl", "F5"], ["alt", "F5"], ["shift", "ctrl", "alt", "F5"], ["ctrl", "alt", "a"]):
        told.write_text("")
        desktop.perform(KeyPress(keys))
        until(lambda key=keys[-1]: f"{key} 0x" in told.read_text(), 30, str(keys))


@pytest.mark.parametrize(
    ("app", "count"),
    soaked(
        [(name, 1000 if EVIDENCE or name == "xterm" else 400) for name in APPS],
        but=[("xterm", 1000), ("mousepad", 400)],
    ),
    indirect=["app"],
)
def test_a_thousand_symbols(app: App, count: int) -> None:
    """F14; the toolkits draw them slowly and get a sample: more than there are keycodes all the same."""
    check(app, random_letters(count, seed=14))
