"""The same desktop whatever is behind it: pictures, settling, text, clipboard, size, and what is held."""

from __future__ import annotations

import dataclasses
import io
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

import deskhand
from conformance.servers import LACKS, SIZE, Place, need, serving
from deskhand import KeyPress, LeftClick, MouseDown, Move, PressKeys, Reason, Rect, Settle, Type
from deskhand.backends.vnc import login as vnc_login
from deskhand.backends.vnc.backend import VncBackend
from deskhand.backends.vnc.keyboard import BUDGET
from faults.helpers import until
from faults.scale import EVIDENCE, PATIENCE
from integration.observer import Observer
from integration.stage import ANSWER, SCENES
from integration.test_settle import until_busy
from soak import soaked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STAGE = Path(__file__).parents[1] / "integration" / "stage.py"
# An engine reached through ssh takes 13 s, and `tests/containers/test_remote.py` drives one in every run.
PLACES = [name for name in LACKS if EVIDENCE or name != "docker-remote"]
HAVE_WINDOWS = [name for name in PLACES if name != "memory"]
# Where X tells everything: a Wayland compositor keeps input from windows that are not its own.
HAVE_X = [name for name in HAVE_WINDOWS if name != "wayvnc"]


def short(places: list[str]) -> list[object]:
    """What works on Xvnc and in a container works with these two in the long series."""
    return soaked(places, but={*places} - {"x0tigervnc", "docker-vnc"})


@pytest.fixture(scope="module", params=short(PLACES))
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """Each desktop of the table."""
    with serving(request.param) as place:
        yield place


@pytest.fixture
def desktop(place: Place) -> Iterator[deskhand.Desktop]:
    """A driver of it."""
    with place.connect() as desktop:
        yield desktop


@pytest.fixture
def stage(place: Place, request: pytest.FixtureRequest) -> Iterator[None]:
    """The stage of the settle tests, with the keyboard."""
    scenes = getattr(request, "param", ())
    assert place.environment is not None
    with subprocess.Popen([sys.executable, str(STAGE), *scenes], env=place.environment) as process:
        try:
            until(lambda: _focus(place, "stage"), 20, "the stage's window")
            yield
        finally:
            process.kill()


def _focus(place: Place, name: str) -> bool:
    # A compositor gives it by itself.
    focus = ["windowfocus"] if place.name in HAVE_X else []
    found = subprocess.run(
        [need("xdotool", "xdotool"), "search", "--onlyvisible", "--name", f"^{name}$", *focus],
        env=place.environment,
        capture_output=True,
        check=False,
    )
    return found.returncode == 0


def on_screen(place: Place, rect: tuple[int, int, int, int]) -> Rect:
    x, y, width, height = rect
    return Rect(place.corner[0] + x, place.corner[1] + y, width, height)


def real_pixels(place: Place) -> np.ndarray:
    """What the screen shows by another way."""
    need("import", "imagemagick")
    shot = subprocess.run(place.picture, env=place.environment, capture_output=True, check=True)
    return np.asarray(Image.open(io.BytesIO(shot.stdout)).convert("RGB"))


def differing(place: Place, desktop: deskhand.Desktop) -> str:
    """Where our picture is not what the screen shows by another way; empty where it is."""
    seen = np.asarray(Image.open(io.BytesIO(desktop.screenshot(cursor=False).data)).convert("RGB"))
    rows, columns = np.nonzero((seen != real_pixels(place)).any(axis=2))
    if not len(rows):
        return ""
    return f"{len(rows)} pixels from {columns.min()}, {rows.min()} to {columns.max()}, {rows.max()}"


def test_a_desktop_says_what_it_is(place: Place, desktop: deskhand.Desktop) -> None:
    assert desktop.size == SIZE

    def unchanged() -> deskhand.Observation | None:
        seen = desktop.perform()
        assert seen.settled
        # What has just been started may still have drawn something.
        return seen if seen.reason is Reason.UNCHANGED else None

    seen = until(unchanged, 20, "a screen at rest")
    assert seen.size == SIZE
    assert Image.open(io.BytesIO(seen.png)).size == SIZE
    assert desktop.perform(Move((5, 6))).cursor == (5, 6)
    assert desktop.pointer == (5, 6)
    assert desktop.pressed == ()
    if not place.has("windows"):
        with pytest.raises(deskhand.UnsupportedAction):
            desktop.windows.list()
    if not place.has("start"):
        with pytest.raises(deskhand.UnsupportedAction):
            desktop.start("true")


def test_nothing_is_sent_of_what_is_wrong(desktop: deskhand.Desktop) -> None:
    with pytest.raises(deskhand.OutOfBounds):
        desktop.perform(Move((1, 1)), LeftClick((640, 480)))
    with pytest.raises(deskhand.Untypable):
        desktop.perform(Type("a\0"))


def test_it_is_well(desktop: deskhand.Desktop) -> None:
    # x11vnc takes 1.3 s for its first two answers.
    assert desktop.health(timeout=30) == deskhand.Health()
    desktop.perform(Move((7, 8)), settle=False)
    assert desktop.health(timeout=30) == deskhand.Health()
    assert desktop.pointer == (7, 8)


def test_looking_only_refuses_input(place: Place) -> None:
    with place.connect(view_only=True) as desktop:
        desktop.screenshot()
        with pytest.raises(deskhand.UnsupportedAction):
            desktop.perform(KeyPress(["a"]))


with_windows = pytest.mark.parametrize("place", short(HAVE_WINDOWS), indirect=True)
"""Only where windows can be."""
with_x = pytest.mark.parametrize("place", short(HAVE_X), indirect=True)
"""Only where X clients can look from the other side."""


@with_windows
@pytest.mark.usefixtures("stage")
def test_the_picture_is_what_x_shows(place: Place, desktop: deskhand.Desktop) -> None:
    # TigerVNC draws the cursor into its picture for a client that is not known to have put the pointer where it is.
    desktop.perform(Move((300, 300)), KeyPress(["a"]))
    if place.name == "wayvnc":
        # A window that X has mapped comes on the screen, and gets the keyboard, when the compositor finds the time.
        limit = time.monotonic() + 20 * PATIENCE
        while differing(place, desktop) and time.monotonic() < limit:
            desktop.perform()
    assert differing(place, desktop) == ""


@pytest.mark.usefixtures("stage")
# x0vncserver draws the cursor into the picture of a client that has not moved it, as vncdotool is here.
@pytest.mark.parametrize("place", ["xvnc", "x11vnc"], indirect=True)
def test_a_server_that_is_far_is_asked_for_less_and_gives_the_same(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is deflated, without loss, is what vncdotool's own decoders make of raw pixels."""

    def far(*how: Any) -> vnc_login.Entered:
        return dataclasses.replace(vnc_login.enter(*how), local=False)

    monkeypatch.setattr("deskhand.backends.vnc.backend.enter", far)
    with place.connect() as desktop:
        desktop.perform(Move((300, 300)), KeyPress(["a"]))
        assert differing(place, desktop) == ""
        seen = np.asarray(Image.open(io.BytesIO(desktop.screenshot(cursor=False).data)).convert("RGB"))
        with tempfile.TemporaryDirectory() as folder:
            argv = [
                sys.executable,
                "-m",
                "vncdotool.command",
                "-s",
                place.url.removeprefix("vnc+unix://"),
                "--nocursor",
            ]
            subprocess.run([*argv, "capture", f"{folder}/oracle.png"], check=True, capture_output=True, timeout=30)
            oracle = np.asarray(Image.open(f"{folder}/oracle.png").convert("RGB"))
        assert np.array_equal(seen, oracle)


@with_windows
@pytest.mark.usefixtures("stage")
def test_what_changed_is_told_and_waited_for(place: Place, desktop: deskhand.Desktop) -> None:
    # The stage's window may only just have come up.
    desktop.perform()
    seen = desktop.perform(KeyPress(["a"]))
    assert (seen.settled, seen.reason, seen.rects) == (True, Reason.QUIET, (on_screen(place, ANSWER),))
    # A server does not tell that the stage still computes; on a busy machine its steps may be further apart than usual.
    seen = desktop.perform(KeyPress(["s"]), settle=Settle(quiet=0.3))
    assert (seen.settled, seen.reason) == (True, Reason.QUIET)
    assert desktop.perform().generation == seen.generation
    seen = desktop.perform(KeyPress(["F5"]))
    assert (seen.settled, seen.reason, seen.changed) == (True, Reason.UNCHANGED, False)


@with_windows
@pytest.mark.usefixtures("stage")
@pytest.mark.parametrize("stage", [("caret", "spinner")], indirect=True)
def test_what_moves_on_its_own_holds_nothing_up(place: Place, desktop: deskhand.Desktop) -> None:
    busy = until_busy(desktop, 2).busy
    assert len(busy) == 2
    for scene in ("caret", "spinner"):
        assert any(on_screen(place, SCENES[scene][0]).within(region) for region in busy)
    seen = desktop.perform(KeyPress(["a"]))
    assert (seen.settled, seen.reason) == (True, Reason.QUIET)
    assert on_screen(place, ANSWER) in seen.rects


RARE = "éñüßøåæçþðжщюяλωπ"


@with_x
def test_rare_characters_arrive_or_that_is_told(place: Place, desktop: deskhand.Desktop) -> None:
    assert place.environment is not None
    text = RARE[:BUDGET]
    with Observer(place.environment) as observer:
        seen = desktop.perform(Type(text), settle=False)
        if not place.has("any_key"):
            assert seen.unanswered
            return
        typed = [
            chr(e["keysym"] & 0xFFFFFF) for e in observer.events() if e["down"] and not e["name"].startswith("Shift")
        ]
        assert "".join(typed) == text
        if place.name == "x11vnc":
            # One more, and no way to paste.
            with pytest.raises(deskhand.Untypable) as refused:
                desktop.perform(Type(f"a{RARE[BUDGET]}"), settle=False)
            assert [position for position, _ in refused.value.characters] == [1]
            assert observer.events() == []


@pytest.mark.parametrize("place", ["xvnc"], indirect=True)
def test_more_of_them_than_there_are_keys_are_pasted(place: Place, desktop: deskhand.Desktop, tmp_path: Path) -> None:
    text, file = "".join(map(chr, range(0x4E00, 0x4E28))), tmp_path / "typed"
    assert place.environment is not None
    argv = [need("xterm", "xterm"), "-u8", "-T", "paste", "-e", f"cat >{file}"]
    with subprocess.Popen(argv, env={**place.environment, "LC_ALL": "C.UTF-8"}) as terminal:
        try:
            until(lambda: _focus(place, "paste") and file.exists(), 20, "the terminal")
            desktop.clipboard.write("what was there before")
            seen = desktop.perform(Type(text), KeyPress(["Return"]))
            assert seen.pasted
            assert desktop.clipboard.read() == "what was there before"
            until(lambda: file.read_text() == f"{text}\n", 10, "the text")
        finally:
            terminal.kill()


@pytest.mark.parametrize("place", ["wayvnc"], indirect=True)
def test_rare_characters_are_refused_where_they_would_be_dropped(desktop: deskhand.Desktop) -> None:
    with pytest.raises(deskhand.Untypable):
        desktop.perform(Type("aé"), settle=False)


@pytest.fixture
def typed(place: Place) -> Iterator[Path]:
    """What has been typed into a terminal, line by line."""
    assert place.environment is not None
    # Not in the test's own directory: the terminal may be somebody else's.
    with tempfile.TemporaryDirectory(prefix="deskhand-") as folder:
        file = Path(folder) / "typed"
        argv = [need("xterm", "xterm"), "-u8", "-T", "typed", "-e", f"cat >{file}"]
        with subprocess.Popen(argv, env={**place.environment, "LC_ALL": "C.UTF-8"}) as terminal:
            try:
                until(lambda: _focus(place, "typed") and file.exists(), 20, "the terminal")
                yield file
            finally:
                terminal.kill()


def _knows_caps_lock(desktop: deskhand.Desktop, *, on: bool) -> bool:
    """Whether it knows how CapsLock is, or never will: over X11 that is asked for when it is needed."""
    told = desktop._core.backend._vnc.locks() if isinstance(desktop._core.backend, VncBackend) else None
    return told is None or told[0] is on


@pytest.fixture
def switch_caps_lock(place: Place) -> Iterator[Callable[[], None]]:
    """Somebody else who presses CapsLock: another VNC client, or an X client where there is only X."""
    if place.name in {"x11", "docker"}:
        press = [need("xdotool", "xdotool"), "key", "Caps_Lock"]
        yield lambda: subprocess.run(press, env=place.environment, check=True) and None
    else:
        with place.connect() as other:
            yield lambda: other.perform(KeyPress(["Caps_Lock"]), settle=False) and None


@with_windows
# The terminal comes first, so that it is the last to go: wayvnc 0.5 died where its window went together with the connections.
@pytest.mark.parametrize("who", ["we", "others"])
def test_capslock_on_what_is_typed_arrives(
    place: Place, typed: Path, desktop: deskhand.Desktop, switch_caps_lock: Callable[[], None], who: str
) -> None:
    text = "aBc Xy1! zZ"
    if who == "we":
        desktop.perform(KeyPress(["Caps_Lock"]), Type(f"{text}\n"))
    else:
        switch_caps_lock()
        until(lambda: _knows_caps_lock(desktop, on=True), 10, "CapsLock to be told")
        desktop.perform(Type(f"{text}\n"))
    try:
        expected = text if place.has("caps_lock") else text.swapcase()
        until(lambda: typed.read_text() == f"{expected}\n", 10, "the text")
        # Who cannot, says so; and the lock is left as it was.
        assert place.has("caps_lock") or any("CapsLock" in note for note in desktop.status)
        assert place.name not in HAVE_X or _locks(place) & 2
    finally:
        switch_caps_lock()
    until(lambda: place.name not in HAVE_X or not _locks(place) & 2, 10, "CapsLock to go off")
    until(lambda: _knows_caps_lock(desktop, on=False), 10, "that to be told")
    desktop.perform(Type(f"{text}\n"))
    until(lambda: typed.read_text() == f"{expected}\n{text}\n", 10, "the second line")


def _locks(place: Place) -> int:
    ask = "from Xlib.display import Display; print(Display().screen().root.query_pointer().mask)"
    answer = subprocess.run(
        [sys.executable, "-c", ask], env=place.environment, capture_output=True, text=True, check=True
    )
    return int(answer.stdout)


@with_x
def test_what_is_held_is_released_at_the_end(place: Place) -> None:
    assert place.environment is not None
    with Observer(place.environment) as observer:
        with place.connect() as desktop:
            # A driver of X11 begins with a key of its own.
            observer.events()
            desktop.perform(Move((9, 9)), PressKeys(["shift", "ctrl"]), MouseDown("left"), settle=False)
            assert len(desktop.pressed) == 3
        until(lambda: released(place), 5, "the release")
        events = [e for e in observer.events() if e["kind"] != "motion"]
        assert [e["down"] for e in events] == [True] * 3 + [False] * 3


def released(place: Place) -> bool:
    """Whether X holds no key and no button."""
    ask = (
        "from Xlib.display import Display; d = Display(); "
        "print(any(d.query_keymap()) or d.screen().root.query_pointer().mask & 0x1F00)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", ask], env=place.environment, capture_output=True, text=True, check=True
    )
    return answer.stdout.strip() in {"0", "False"}


@pytest.fixture
def xclip(place: Place) -> str:
    del place
    return need("xclip", "xclip")


@with_x
@pytest.mark.parametrize("text", ["plain\ntext", "Grüße", "Привет ☕"])
def test_the_clipboard_is_served(place: Place, desktop: deskhand.Desktop, xclip: str, text: str) -> None:
    if place.name == "x11vnc" and any(ord(char) > 0xFF for char in text):
        with pytest.raises(deskhand.BackendError):
            desktop.clipboard.write(text)
        return
    desktop.clipboard.write(text)
    assert desktop.clipboard.read() == text
    if not place.has("clipboard_in"):
        return

    def pasted() -> str:
        got = subprocess.run(
            [xclip, "-o", "-selection", "clipboard"], env=place.environment, capture_output=True, check=False
        )
        return got.stdout.decode()

    until(lambda: pasted() == text, 5, "the clipboard")


@with_x
@pytest.mark.parametrize("text", ["plain", "Привет ☕"])
def test_the_clipboard_of_others_is_read(place: Place, desktop: deskhand.Desktop, xclip: str, text: str) -> None:
    if not place.has("clipboard_out"):
        return
    with subprocess.Popen(
        [xclip, "-i", "-selection", "clipboard", "-quiet"],
        env=place.environment,
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as owner:
        assert owner.stdin is not None
        owner.stdin.write(text.encode())
        owner.stdin.close()
        try:
            until(lambda: desktop.clipboard.read() == text, 5, "the clipboard")
        finally:
            owner.kill()


def test_the_size_changes_or_the_server_says_no(place: Place, desktop: deskhand.Desktop) -> None:
    if not place.has("resize"):
        with pytest.raises(deskhand.BackendError):
            desktop.resize((600, 400))
        assert desktop.size == SIZE
        return
    desktop.resize((600, 400))
    try:
        assert desktop.size == (600, 400)
        assert desktop.perform().size == (600, 400)
        with pytest.raises(deskhand.OutOfBounds):
            desktop.perform(Move((620, 10)))
    finally:
        desktop.resize(SIZE)
    assert desktop.size == SIZE


@pytest.fixture
def elsewhere(place: Place) -> Iterator[Callable[[tuple[int, int]], None]]:
    """Somebody else who moves the pointer: another VNC client, or an X client where there is only X."""
    if place.name in {"x11", "docker"}:
        move = [need("xdotool", "xdotool"), "mousemove"]
        yield lambda to: subprocess.run([*move, *map(str, to)], env=place.environment, check=True) and None
    else:
        with place.connect() as other:
            yield lambda to: other.perform(Move(to), settle=False) and None


@pytest.mark.parametrize("place", short(HAVE_WINDOWS), indirect=True)
def test_a_pointer_that_somebody_else_moved(
    place: Place, desktop: deskhand.Desktop, elsewhere: Callable[[tuple[int, int]], None]
) -> None:
    """What others do to the pointer is told in the observation, once; our own moves are no such thing."""
    if place.name in {"xvnc", "docker-vnc", "docker-remote"}:
        # Servers that draw the cursor into the picture are understood by its image, and this one begins without.
        subprocess.run(
            [need("xsetroot", "x11-xserver-utils"), "-cursor_name", "left_ptr"], env=place.environment, check=True
        )
    assert not desktop.perform(Move((60, 50)), settle=False).pointer_moved
    # TigerVNC sends its image to whose pointer it is.
    until(lambda: place.name == "wayvnc" or desktop._core.backend.screen.cursor, 20, "a cursor")

    def told() -> bool:
        # As a hand does: TigerVNC looks whose pointer it is only when it moves, more than a second after our last input.
        elsewhere((201, 160))
        elsewhere((200, 160))
        return desktop.pointer == (200, 160)

    elsewhere((200, 160))
    if place.has("told_pointer"):
        until(told, 20, "the pointer's place to be told")
        seen = desktop.perform(settle=False)
        assert (seen.pointer_moved, seen.cursor) == (True, (200, 160))
        assert not desktop.perform(settle=False).pointer_moved
    # A server that has not told of it is not guessed at.
    assert not desktop.perform(Move((61, 51)), settle=False).pointer_moved
    assert desktop.pointer == (61, 51)
