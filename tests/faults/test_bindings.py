"""Characters that no key has are bound to spare keycodes; nothing is lost while somebody may still look them up (F14)."""

from __future__ import annotations

import os
import shlex
import signal
from typing import TYPE_CHECKING

import pytest

import deskhand
from deskhand import BackendError, KeyPress, Reason, Settle, Type
from faults.helpers import killed_drivers, need, starved, until, within
from faults.scale import EVIDENCE
from integration.apps import APPS, Bench, TkText, bound_keycodes, keymap, run
from integration.texts import PANGRAMS, check, random_letters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from integration.apps import App

# For how many milliseconds a starved application gets the processor, and for how many it does not.
SLICES = ((0.3, 15.0), (0.3, 20.0), (0.5, 15.0), (1.0, 50.0))
LINES = 500 if EVIDENCE else 6
# A spare keycode carries four keysyms, and a server of ours has more than a hundred.
ROOM = 400
KINDS: Mapping[str, Callable[[deskhand.Desktop, Path], App]] = {**APPS, "tk": TkText}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """One desktop for the file, with a text field of Tk's beside the usual applications."""
    home = tmp_path_factory.mktemp("home")
    folders = {f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("CONFIG", "CACHE", "DATA", "STATE")}
    with deskhand.launch(size=(1000, 700), env={"HOME": str(home), **folders}) as desktop:
        bench = Bench(desktop, home, KINDS)
        yield bench
        bench.close()


@pytest.mark.parametrize(
    "slices",
    [SLICES[0], *(pytest.param(slices, marks=pytest.mark.soak) for slices in SLICES[1:])],
    ids=lambda slices: f"{slices[0]}-{slices[1]}",
)
@pytest.mark.parametrize("name", ["xterm", "mousepad", "featherpad", "tk"] if EVIDENCE else ["xterm"])
def test_a_starved_application_loses_nothing(bench: Bench, name: str, slices: tuple[float, float]) -> None:
    """It looks its keys up long after they were sent. Every line has letters that were never typed before."""
    app = bench.app(name)
    letters = random_letters(3 * LINES, seed=int(10 * sum(slices)))
    if name == "tk":
        # It gives no proof that it has read its keys, so no keycode of its can carry another character.
        letters = (letters[:ROOM] * LINES)[: 3 * LINES]
    lines = [f"äß {letters[3 * line : 3 * line + 3]} 你\n" for line in range(LINES)]
    with starved(app.pid, *slices):
        for line in lines:
            app.desktop.perform(Type(line))
    assert app.text("".join(lines)).splitlines() == "".join(lines).splitlines()


@pytest.mark.parametrize(
    "name",
    [] if EVIDENCE else ["mousepad", *(pytest.param(name, marks=pytest.mark.soak) for name in ("featherpad", "tk"))],
)
def test_a_starved_toolkit_loses_nothing(bench: Bench, name: str) -> None:
    """A sample of what `DESKHAND_EVIDENCE=1` shows of each."""
    test_a_starved_application_loses_nothing(bench, name, SLICES[0])


def test_the_texts_of_many_scripts_are_bound_once(bench: Bench) -> None:
    """On a server of ours ordinary texts never take a keycode from a character: typed again, they change nothing."""
    app = bench.app("tk")
    check(app, PANGRAMS[1])
    layout = keymap(bench.desktop)
    for text in PANGRAMS:
        app.clear()
        check(app, text)
    bound = bound_keycodes(bench.desktop)
    for text in reversed(PANGRAMS):
        app.clear()
        check(app, text)
    assert bound_keycodes(bench.desktop) == bound
    assert keymap(bench.desktop) == layout


@pytest.mark.soak
def test_more_characters_than_can_be_bound(launch: Callable[..., deskhand.Desktop], home: Path) -> None:
    """A window that proves that it has read its keys gets any text; one that gives no proof gets all of it or an error.

    The latter keeps its keys as long as it lives: this desktop is for this test alone.
    """
    bench = Bench(launch(size=(1000, 700)), home, KINDS)
    for name in ("mousepad", "xterm", "featherpad"):
        check(bench.app(name), random_letters(1500, seed=4))
    app = bench.app("tk")
    with pytest.raises(BackendError, match="no key is free for more characters"):
        app.desktop.perform(Type(random_letters(1500, seed=5)))


def test_a_stopped_window_keeps_its_characters(launch: Callable[..., deskhand.Desktop], tmp_path: Path) -> None:
    """What it has not read is not taken away by what another window needs."""
    desktop = launch(size=(1000, 700))
    bench = Bench(desktop, tmp_path)
    stopped, other = bench.app("xterm"), bench.app("mousepad")
    stopped.focus()
    os.kill(stopped.pid, signal.SIGSTOP)
    desktop.perform(Type("你好äß"))
    other.focus()
    check(other, random_letters(1500, seed=6))
    os.kill(stopped.pid, signal.SIGCONT)
    assert stopped.text("你好äß") == "你好äß"


def test_a_window_that_reads_nothing_holds_no_call_up(launch: Callable[..., deskhand.Desktop], tmp_path: Path) -> None:
    """It is to read a new keymap first, and to have read what it was typed with before that is taken away."""
    desktop = launch(size=(1000, 700))
    app = Bench(desktop, tmp_path).app("mousepad")
    settle = Settle(timeout=2)
    os.kill(app.pid, signal.SIGSTOP)
    try:
        for layout in ("us", "de"):
            run(desktop, "setxkbmap", "-layout", layout)
            with within(2.5, "a call of two seconds"):
                seen = desktop.perform(KeyPress(["a"]), settle=settle)
            assert (seen.settled, seen.reason) == (False, Reason.WINDOW_BUSY)
        with within(2.5, "a call of two seconds"), pytest.raises(BackendError, match="stopped reading"):
            desktop.perform(Type("\N{SNOWMAN}"), settle=settle)
    finally:
        os.kill(app.pid, signal.SIGCONT)
        run(desktop, "setxkbmap", "-layout", "us")
    assert app.text("aa") == "aa"


_TYPE = """
import random
desktop = deskhand.connect(os.environ["TEST_URL"])
say(pid=os.getpid())
while True:
    start = random.randrange(0x4E00, 0x9000)
    desktop.perform(Type("".join(chr(start + index) for index in range(30))), settle=False)
"""


def test_keycodes_of_killed_drivers_come_back(
    launch: Callable[..., deskhand.Desktop], driver_environment: dict[str, str], mark: str, tmp_path: Path
) -> None:
    """SIGKILL in the middle of Chinese, again and again: the next driver types any text, and gives the keymap back."""
    desktop = launch(size=(1000, 700))
    bench = Bench(desktop, tmp_path)
    bench.app("mousepad")
    before = keymap(desktop)
    url = f"x11:{desktop.display}"
    environment = {**driver_environment, "XAUTHORITY": str(desktop.xauthority), "TEST_URL": url}
    # Our own lease would refuse the driver: this desktop only keeps the display alive.
    desktop._core.backend.close()
    for _ in killed_drivers(_TYPE, environment, mark, 5.0):
        pass
    with deskhand.connect(url, xauthority=desktop.xauthority) as next_driver:
        app = APPS["mousepad"](next_driver, tmp_path)
        app.focus()
        app.clear()
        check(app, random_letters(500, seed=12))
    assert bound_keycodes(desktop) == set()
    assert keymap(desktop) == before


@pytest.mark.parametrize("name", ["xterm", "mousepad"])
def test_a_foreign_keymap_is_given_back(launch: Callable[..., deskhand.Desktop], tmp_path: Path, name: str) -> None:
    """A display that was there before gets its keymap back when the connection is closed."""
    desktop = launch(size=(1000, 700))
    desktop._core.backend.close()
    before = keymap(desktop)
    with deskhand.connect(f"x11:{desktop.display}", xauthority=desktop.xauthority) as connected:
        app = APPS[name](connected, tmp_path)
        check(app, "äöü 你好 ж")
        assert bound_keycodes(desktop)
    assert bound_keycodes(desktop) == set()
    assert keymap(desktop) == before


_KEYS = """
import sys, tkinter
root = tkinter.Tk()
root.bind("<Key>", lambda event: print(event.keysym, event.state, flush=True))
root.focus_force()
root.mainloop()
"""
SHIFT, CONTROL, ALT = 1, 4, 8


@pytest.mark.parametrize("before", ["ж", random_letters(150, seed=1) + "ж"], ids=["first level", "another level"])
def test_a_chord_with_a_character_that_no_key_has(
    launch: Callable[..., deskhand.Desktop], tmp_path: Path, before: str
) -> None:
    """It is the same character whatever is held, and nothing else is held."""
    desktop = launch(size=(320, 240))
    log = tmp_path / "keys"
    program = [need("/usr/bin/python3", "python3-tk"), "-c", _KEYS]
    desktop.start(["sh", "-c", f"exec {shlex.join(program)} > {log}"])
    desktop.perform(Type(before + random_letters(200, seed=2)))
    desktop.perform(Type("."))
    until(lambda: "period 0" in log.read_text(), 30, "what was typed before")
    typed = len(log.read_text())
    for modifier in ("ctrl", "shift", "alt"):
        desktop.perform(KeyPress([modifier, "ж"]))
    desktop.perform(KeyPress(["ctrl", "shift", "ж"]), Type("."))
    until(lambda: "period 0" in log.read_text()[typed:], 30, "the chords")
    seen = [line.split() for line in log.read_text()[typed:].splitlines()]
    chords = [int(state) for keysym, state in seen if keysym == "U0436"]
    assert chords == [CONTROL, SHIFT, ALT, CONTROL | SHIFT]
