"""A paste is one when the application with the keyboard took the text: whatever clipboard manager takes it as well."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

import deskhand
from deskhand import Type
from faults import clipboards
from faults.clipboards import COPIED, MANAGERS, Copier, manager, paste
from faults.helpers import need, until, x_environment, xclient
from faults.scale import EVIDENCE
from integration.apps import Bench
from soak import soaked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

TIMES = 20 if EVIDENCE else 3
FIELDS = ("mousepad", "featherpad", "chromium")


@pytest.fixture(
    params=list(MANAGERS) if EVIDENCE else soaked(["none", "autocutsel", "parcellite"], but=["none", "parcellite"])
)
def bench(request: pytest.FixtureRequest, launch: Callable[..., deskhand.Desktop], tmp_path: Path) -> Iterator[Bench]:
    """A desktop with a clipboard manager that has taken note of what was copied last."""
    desktop = launch(size=(1000, 700))
    with manager(desktop, request.param, tmp_path), contextlib.closing(Bench(desktop, tmp_path)) as bench:
        yield bench


@pytest.mark.parametrize("name", soaked(FIELDS, but=("mousepad", "chromium")))
def test_the_text_arrives_and_the_old_one_comes_back(bench: Bench, name: str) -> None:
    app = bench.app(name)
    expected = ""
    for number in range(TIMES):
        text = f"new {number} äöü 你好\n"
        bench.desktop.clipboard.write("old")
        try:
            assert bench.desktop.perform(Type(text, paste=True)).pasted
        except TimeoutError:
            # A manager that takes the clipboard over hands the text out itself, and nobody can say to whom.
            assert bench.desktop.clipboard.read() == "old"
            app.clear()
            expected = ""
            continue
        expected += text
        assert app.text(expected) == expected
        assert bench.desktop.clipboard.read() == "old"


def test_what_was_copied_is_there_again(bench: Bench) -> None:
    """Marked text, a picture and files. The table of `faults.clipboards` waits for what managers do later, too."""
    with contextlib.closing(Copier(x_environment(bench.desktop))) as copier:
        for field in clipboards.FIELDS if EVIDENCE else ("mousepad",):
            for what in COPIED:
                found = paste(bench.app(field), copier, what, times=20 if EVIDENCE else 2, later=0.0)
                assert not any(outcome.startswith("WRONG") for outcome in found), (what, found)


def test_who_takes_the_text_without_the_keyboard_proves_nothing(
    launch: Callable[..., deskhand.Desktop], tmp_path: Path
) -> None:
    """The focused application is stopped, and another one takes the text: no paste, and that is told."""
    desktop = launch(size=(1000, 700))
    bench = Bench(desktop, tmp_path)
    app = bench.app("mousepad")
    desktop.clipboard.write("old")
    os.kill(app.pid, signal.SIGSTOP)
    try:
        command = [need("xclip", "xclip"), "-selection", "clipboard", "-out", "-loops", "1"]
        loop = f"while :; do {' '.join(command)} >/dev/null 2>&1; done"
        with subprocess.Popen(["sh", "-c", loop], env=x_environment(desktop), start_new_session=True) as taker:
            with pytest.raises(TimeoutError, match="only others did"):
                desktop.perform(Type("new", paste=True))
            os.killpg(taker.pid, signal.SIGKILL)
        assert desktop.clipboard.read() == "old"
    finally:
        os.kill(app.pid, signal.SIGCONT)


def test_every_kind_that_is_offered_is_handed_out(launch: Callable[..., deskhand.Desktop]) -> None:
    """ICCCM's own: TIMESTAMP and MULTIPLE."""
    desktop = launch(size=(400, 300))
    desktop.clipboard.write("äöü")
    with xclient(desktop) as client:
        told = client.ask("convert_multiple", "UTF8_STRING", "TIMESTAMP", "image/png")
        assert told["UTF8_STRING"] == list("äöü".encode())
        assert told["image/png"] is None
        (time,) = told["TIMESTAMP"]
        assert time > 0
        desktop.clipboard.write("later")
        (later,) = client.ask("convert_multiple", "TIMESTAMP")["TIMESTAMP"]
        assert later >= time


def test_who_asks_and_goes_ends_nothing(launch: Callable[..., deskhand.Desktop]) -> None:
    """A request for several kinds from a window that is no more, and a property of ours that somebody else changes."""
    desktop = launch(size=(400, 300))
    desktop.clipboard.write("mine")
    with xclient(desktop) as client:
        client.ask("convert_and_go", 50)
        desktop.clipboard.write("later")
        assert desktop.clipboard.read() == "later"
        owner = client.ask("clipboard_owner")
        client.ask("own_clipboard")
        client.ask("touch", owner, "_DESKHAND_CLIPBOARD")
        desktop._core.backend.clipboard_answered(30)
        assert client.ask("clipboard_owner") != owner


def test_a_new_text_right_after_somebody_elses_is_served(launch: Callable[..., deskhand.Desktop]) -> None:
    """The loss of an ownership that was over already takes no text away."""
    desktop = launch(size=(400, 300))
    with xclient(desktop) as client:
        for number in range(50):
            desktop.clipboard.write(f"one {number}")
            client.ask("own_clipboard")
            desktop.clipboard.write(f"two {number}")
            assert desktop.clipboard.read() == f"two {number}"
    until(lambda: desktop.clipboard.read() == "two 49", 5, "the last text")
