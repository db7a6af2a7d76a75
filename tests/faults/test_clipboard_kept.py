"""What was on the clipboard is there again after a paste, of every kind and from every owner, or the paste says what is not."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

import deskhand
from deskhand import Type
from faults.helpers import Bounds, need, until, within, x_environment, xclient
from faults.scale import EVIDENCE, PATIENCE
from faults.xclient import content
from integration.apps import Bench

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# A picture that needs pieces, files as a file manager copies them, and marked up text beside plain text.
COPIED = {
    "image/png": 3_000_000,
    "image/bmp": 200_001,
    "x-special/gnome-copied-files": 60,
    "text/uri-list": 50,
    "text/html": 1000,
    "UTF8_STRING": 700,
    "empty": 0,
}
MIB = 1 << 20


def kinds(desktop: deskhand.Desktop, selection: str = "clipboard") -> list[str]:
    """What a selection offers, as another program sees it, but for what says something about the selection."""
    listed = _xclip(desktop, "TARGETS", selection).decode().split()
    return [kind for kind in listed if kind not in {"TARGETS", "TIMESTAMP", "MULTIPLE"}]


def held(desktop: deskhand.Desktop) -> dict[str, int]:
    """The kinds on the clipboard with their sizes; the test fails if they are not what an `xclient` hands out."""
    found = {}
    for kind in kinds(desktop):
        data = _xclip(desktop, kind)
        assert data == content(kind, len(data)), kind
        found[kind] = len(data)
    return found


def _xclip(desktop: deskhand.Desktop, target: str, selection: str = "clipboard") -> bytes:
    return subprocess.run(
        [need("xclip", "xclip"), "-out", "-selection", selection, "-target", target],
        env=x_environment(desktop),
        capture_output=True,
        timeout=60 * PATIENCE,
        check=False,
    ).stdout


def lend_and_return(desktop: deskhand.Desktop, limit: float = 30) -> list[str]:
    """Do what a paste does to the clipboard; the kinds that it says are lost."""
    backend = desktop._core.backend
    lost = list(backend.lend_clipboard("pasted", with_primary=False, timeout=limit))
    assert desktop.clipboard.read() == "pasted"
    backend.return_clipboard(5)
    return lost


@pytest.fixture
def desktop(launch: Callable[..., deskhand.Desktop]) -> deskhand.Desktop:
    """A desktop without a window manager."""
    return launch(size=(400, 300), window_manager=None)


def test_every_kind_is_there_again(launch: Callable[..., deskhand.Desktop], tmp_path: Path) -> None:
    desktop = launch(size=(1000, 700))
    app = Bench(desktop, tmp_path).app("mousepad")
    with xclient(desktop) as client:
        owner = client.ask("offer", COPIED)
        seen = desktop.perform(Type("one ", paste=True))
        assert (seen.pasted, seen.clipboard_lost) == (True, ())
        assert client.ask("clipboard_owner") != owner
    # It is the driver's now, as in every paste but the first.
    assert held(desktop) == COPIED
    assert desktop.perform(Type("two", paste=True)).clipboard_lost == ()
    assert held(desktop) == COPIED
    assert desktop.clipboard.read() == content("UTF8_STRING", 700).decode()
    assert app.text("one two") == "one two"


def test_an_empty_clipboard_is_empty_again(desktop: deskhand.Desktop) -> None:
    assert lend_and_return(desktop) == []
    assert desktop.clipboard.read() is None
    assert kinds(desktop) == []


def test_a_paste_that_fails_gives_every_kind_back(launch: Callable[..., deskhand.Desktop]) -> None:
    """No window has the keyboard; what is not back is a note on the error."""
    desktop = launch(size=(400, 300))
    with xclient(desktop) as client:
        client.ask("offer", {**COPIED, "long": 10, "longer": 20}, "silent")
        with pytest.raises(deskhand.InputBlocked) as told:
            desktop.perform(Type("text", paste=True))
    (note,) = told.value.__notes__
    assert note == "not on the clipboard any more: long, longer"
    assert held(desktop) == COPIED


def test_xterm_pastes_the_primary_selection(launch: Callable[..., deskhand.Desktop], tmp_path: Path) -> None:
    """It gets the text, and both selections are what they were."""
    desktop = launch(size=(1000, 700))
    app = Bench(desktop, tmp_path).app("xterm")
    subprocess.run(
        [need("xclip", "xclip"), "-selection", "primary"],
        input=b"selected",
        env=x_environment(desktop),
        stdout=subprocess.DEVNULL,
        check=True,
    )
    until(lambda: _xclip(desktop, "UTF8_STRING", "primary") == b"selected", 10, "the selection")
    expected = ""
    for number in range(20 if EVIDENCE else 3):
        with xclient(desktop) as client:
            client.ask("offer", COPIED)
            text = f"{number} äöü 你好 "
            assert desktop.perform(Type(text, paste=True)).clipboard_lost == ()
            expected += text
            assert app.text(expected) == expected
            assert held(desktop) == COPIED
            assert _xclip(desktop, "UTF8_STRING", "primary") == b"selected"


@pytest.mark.parametrize(
    ("manner", "kept", "lost"),
    [
        # Of ten thousand kinds, 64 are kept and as many named. The last are no atoms.
        ("many", {"first": 10, "second": 20}, None),
        ("narrow", {}, ["TARGETS"]),
        ("silent", {"first": 10, "second": 20}, ["long"]),
        ("mixed", {"first": 10, "second": 20}, ["long"]),
        ("numbers", {}, ["first", "second", "long"]),
        ("endless", {"first": 10, "second": 20}, ["long"]),
        ("crumbs", {"first": 10, "second": 20}, ["long"]),
    ],
)
def test_owner_that_does_not_keep_to_the_rules(
    desktop: deskhand.Desktop, manner: str, kept: dict[str, int], lost: list[str] | None
) -> None:
    """What can be had is kept, what cannot is told, in bounded time and memory."""
    with xclient(desktop) as client:
        client.ask("offer", {"first": 10, "second": 20, "long": 300_000}, manner)
        with within(7, "what is kept"), Bounds(4 * 64 * MIB, 5):
            told = lend_and_return(desktop, 3)
        if lost is None:
            assert len(told) == 64
            assert held(desktop) == {**kept, "long": 300_000}
        else:
            assert (told, held(desktop)) == (lost, kept)
    assert lend_and_return(desktop) == []


def test_more_than_is_kept(desktop: deskhand.Desktop) -> None:
    """More than 64 MiB, in one kind or in all: the others are kept."""
    with xclient(desktop) as client:
        client.ask("offer", {"small": 10, "huge": 65 * MIB, "large": 40 * MIB})
        with Bounds(8 * 64 * MIB, 20):
            lost = lend_and_return(desktop)
        assert "huge" in lost
        found = held(desktop)
        assert sorted([*lost, *found]) == ["huge", "large", "small"]
        assert found["small"] == 10


def test_owner_that_says_nothing(desktop: deskhand.Desktop) -> None:
    """It costs what it may, and the paste goes on."""
    with xclient(desktop) as client:
        client.ask("own_clipboard")
        with within(4, "what is kept"):
            assert lend_and_return(desktop, 1) == ["TARGETS"]
    assert kinds(desktop) == []


def test_owner_that_dies_in_the_middle(desktop: deskhand.Desktop) -> None:
    """Nobody has what it had any more: nothing was lost by us."""
    with xclient(desktop) as client:
        client.ask("offer", {"long": 1_000_000}, "dies")
        with within(4, "what is kept"):
            assert lend_and_return(desktop) == []
        client.process.wait(30)
    assert kinds(desktop) == []


def test_owner_that_is_followed_by_another_in_the_middle(desktop: deskhand.Desktop) -> None:
    """What the former one goes on sending is not taken for the next one's."""
    with xclient(desktop) as former, xclient(desktop) as latter, ThreadPoolExecutor(1) as pool:
        former.ask("offer", {"image/png": 1_000_000, "text/html": 20}, "pauses")
        lending = pool.submit(lend_and_return, desktop)
        until(lambda: former.ask("delivered"), 10, "the first piece")
        latter.ask("offer", {"image/png": 500_000, "text/html": 30}, "pauses")
        until(lambda: latter.ask("delivered"), 10, "the first piece")
        former.ask("go_on")
        latter.ask("go_on")
        assert lending.result() == []
    assert held(desktop) == {"image/png": 500_000, "text/html": 30}


def test_text_of_an_owner_that_is_followed_by_another_in_the_middle(desktop: deskhand.Desktop) -> None:
    with xclient(desktop) as former, xclient(desktop) as latter, ThreadPoolExecutor(1) as pool:
        former.ask("offer", {"UTF8_STRING": 1_000_000}, "pauses")
        reading = pool.submit(desktop.clipboard.read)
        until(lambda: former.ask("delivered"), 10, "the first piece")
        latter.ask("offer", {"UTF8_STRING": 500_000})
        former.ask("go_on")
        assert reading.result() == content("UTF8_STRING", 500_000).decode()


def test_who_asks_again_in_the_middle_gets_all_of_it(desktop: deskhand.Desktop) -> None:
    """A piece that is deleted after a new request is not taken for the announcement of the next ones."""
    times = 200 if EVIDENCE else 20
    desktop.clipboard.write("x" * 700_000)
    with xclient(desktop) as client:
        assert client.ask("ask_again", times) == [[1, 700_000]] * times
