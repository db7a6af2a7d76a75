"""Double and triple clicks count as such in real applications."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

import deskhand
from conftest import need
from deskhand import DoubleClick, KeyPress, LeftClick, RightClick, TripleClick, Type
from integration.apps import APPS, Bench, Chromium, EchoingXTerm, environment_of, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from integration.apps import App

LINE = "alpha beta gamma"
CLICKS = {DoubleClick: "alpha", TripleClick: LINE}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """One desktop and its applications for the whole file."""
    home = tmp_path_factory.mktemp("home")
    folders = {f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("CONFIG", "CACHE", "DATA", "STATE")}
    with deskhand.launch(size=(1000, 700), env={"HOME": str(home), **folders}) as desktop:
        bench = Bench(desktop, home, {**APPS, "xterm": EchoingXTerm})
        yield bench
        bench.close()


def primary(desktop: deskhand.Desktop) -> str:
    """The selected text, as any client may read it."""
    command = [need("xclip", "xclip"), "-selection", "primary", "-out"]
    return subprocess.run(command, env=environment_of(desktop), check=False, capture_output=True, text=True).stdout


def first_line(app: App) -> tuple[int, int]:
    """Type a line, and give a point of its first word: where typing it changed the window's inside."""
    # The first change also marks the title or a tab as changed.
    app.desktop.perform(Type("x"), KeyPress(["BackSpace"]))
    seen = app.desktop.perform(Type(LINE))
    inside = next(window.rect for window in app.desktop.windows.list() if window.id == app.window.id)
    line = max((rect for rect in seen.rects if rect.within(inside)), key=lambda rect: rect.width)
    return line.x + 12, line.y + line.height // 2


@pytest.mark.parametrize("click", CLICKS)
@pytest.mark.parametrize("name", ["mousepad", "featherpad", "xterm"])
def test_clicks_select(bench: Bench, name: str, click: type[DoubleClick | TripleClick]) -> None:
    app = bench.app(name)
    if name == "xterm":
        bench.desktop.perform(KeyPress(["Return"]))
    at = first_line(app)
    # The click before must not count: with it a double click is a triple click, and a triple click one of four.
    bench.desktop.perform(LeftClick(at))
    bench.desktop.perform(click(at))
    assert until(lambda: primary(bench.desktop).strip("\n") == CLICKS[click]), primary(bench.desktop)
    if name == "xterm":
        return
    bench.desktop.perform(Type("X"))
    expected = LINE.replace(CLICKS[click], "X")
    assert app.text(expected) == expected


def test_separate_clicks_are_no_double_click(bench: Bench) -> None:
    app = bench.app("mousepad")
    at = first_line(app)
    bench.desktop.perform(LeftClick(at), deskhand.Wait(0.6), LeftClick(at), KeyPress(["Home"]), Type("X"))
    assert app.text("X" + LINE) == "X" + LINE


@pytest.mark.parametrize(
    ("click", "log"),
    [
        (LeftClick, [["click", 1, 0]]),
        (DoubleClick, [["click", 1, 0], ["click", 2, 0], ["dblclick", 2, 0]]),
        (TripleClick, [["click", 1, 0], ["click", 2, 0], ["dblclick", 2, 0], ["click", 3, 0]]),
        (RightClick, [["contextmenu", 0, 2], ["auxclick", 1, 2]]),
    ],
)
def test_browser_counts_clicks(bench: Bench, click: type[LeftClick], log: list[list[object]]) -> None:
    app = bench.app("chromium")
    assert isinstance(app, Chromium)
    x, y = app.ask()["origin"]
    at = (x + 30, y + 22)
    # A click counts on from the one before for half a second.
    bench.desktop.perform(deskhand.Wait(0.6))
    app.ask("set", LINE)
    bench.desktop.perform(click(at))
    if click is RightClick:
        bench.desktop.perform(KeyPress(["Escape"]))
    assert until(lambda: sorted(app.ask()["log"]) == sorted(log)), app.ask()["log"]
    if click in CLICKS:
        assert app.ask()["chosen"].strip() == CLICKS[click]
