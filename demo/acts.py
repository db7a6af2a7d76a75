"""What the demo does: a note in an editor, its text in a terminal, a form in a browser, and a signature.

Every act ends with checks of what the applications left behind: files, not pictures.
"""

from __future__ import annotations

import json
import math
import os
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from deskhand import Drag, KeyPress, LeftClick, Type

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray
    from recorder import Recorder
    from webserver import Layout, Site

    from deskhand import Window

__all__ = ["browse", "read", "sign", "write"]

_NOTE = (
    "Deskhand wrote this: naïve café, Straße, Łódź, ¿qué?\n"
    "По-русски: съешь же ещё этих мягких булок\n"
    "日本語も 中文汉字 한국어\n"
    "Ελληνικά ∑ √2 ≠ 1.5 — ☕ 🦀\n"
)
_NAME = "Café 日本.txt"
_FORM = {
    "ship": "Þórr Ægir «№ 7»",
    "port": "reykjavik",
    "cargo": "coffee",
    "pilot": "yes",
    "remarks": "Arriving at 21:40.\nCrew of 日本 and Україна ⚓",
}
# In pixels. A browser that is busy takes several motions for one: its line then cuts a corner.
_NEAR = 6
_INK = (0x12, 0x30, 0x7A)


def write(run: Recorder, home: Path) -> Path:
    """Write a note in many scripts and save it through the file dialog."""
    note = home / _NAME
    run.start("start the editor", ["mousepad"], home)
    known = {window.id for window in run.desktop.windows.list()}
    run.act("type the note", Type(_NOTE))

    def dialog() -> Window | None:
        return next((window for window in run.desktop.windows.list() if window.id not in known), None)

    def saved() -> bool | None:
        return (note.exists() and dialog() is None) or None

    run.act("ask to save it", KeyPress(["ctrl+s"]))
    if dialog() is None:
        run.until("wait for the file dialog", dialog, "the file dialog")
    run.act("type its path", Type(str(note)))
    # GTK makes the button available by a timer, some 150 ms after the last key; a click on an element waits for that.
    save = run.desktop.find("button", "Save", exact=True).element()
    run.act("click on the element Save", LeftClick(element=save.ref))
    if not saved():
        run.until("wait for the file", saved, f"{note.name} and the end of the dialog")
    run.check("the saved file has the text that was typed", _NOTE, note.read_text(encoding="utf-8"))
    return note


def read(run: Recorder, note: Path) -> None:
    """Show the note in a terminal, which hands on what it printed."""
    printed, ended = note.with_name("printed.txt"), note.with_name("ended")
    font = ["-fa", "DejaVu Sans Mono", "-fd", "Noto Sans Mono CJK JP", "-fs", "12"]
    run.start(
        "start a terminal",
        ["xterm", *font, "-geometry", "74x10+480+520", "-e", "bash", "--norc", "--noprofile"],
        note.parent,
    )
    run.act("type a command", Type(f"cat '{note.name}' | tee {printed.name}; touch {ended.name}"))
    run.act("run it", KeyPress(["Return"]))
    if not ended.exists():
        run.until("wait for the command", lambda: ended.exists() or None, "the command to end")
    run.check("the terminal printed the file", note.read_bytes(), printed.read_bytes())


def browse(run: Recorder, site: Site, home: Path, *, contained: bool) -> None:
    """Fill in a form and submit it."""
    run.start("start the browser", _chromium(site.url, home, contained=contained), home)
    where = run.until("wait for the form", lambda: site.layout("Harbour registration"), "the page to tell its layout")
    run.act("fill in the name", LeftClick(_centre(where, "ship")), Type(_FORM["ship"]))
    run.act("open the list", LeftClick(_centre(where, "port")))
    run.act("choose the port", KeyPress(["Down"], repeat=2), KeyPress(["Return"]))
    run.act("choose coffee", LeftClick(_centre(where, "coffee")))
    run.act("want a pilot", LeftClick(_centre(where, "pilot")))
    run.act("write remarks", LeftClick(_centre(where, "remarks")), Type(_FORM["remarks"]))
    run.act("submit", LeftClick(_centre(where, "submit")))
    run.until("wait for the next page", lambda: site.layout("Signature"), "the page to tell its layout")
    got: dict[str, str] = json.loads(site.form.read_text(encoding="utf-8"))
    for name, value in _FORM.items():
        # A form sends line ends as CR LF, says the HTML standard.
        run.check(f"the form's {name} arrived", value, got.get(name, "nothing").replace("\r\n", "\n"))


def sign(run: Recorder, site: Site) -> None:
    """Sign on the second page by dragging the pointer."""
    where = site.layout("Signature")
    assert where is not None, "browse() has waited for it"
    strokes = _signature(where["canvas"])
    seen = None
    for number, stroke in enumerate(strokes, 1):
        seen = run.act(f"sign, stroke {number}", Drag(stroke))
    assert seen is not None
    # The pointer's own picture covers the very last points.
    pixels = seen.array()
    bare = [point for stroke in strokes for point in stroke[:-8] if not _is_ink(pixels, point)]
    run.check("the frame shows ink along the whole way", [], bare)
    run.act("hand it in", LeftClick(_centre(where, "done")))
    if not site.strokes.exists():
        run.until("wait for the signature", lambda: site.strokes.exists() or None, "the signature to be handed in")
    drawn: list[list[tuple[float, float]]] = json.loads(site.strokes.read_text(encoding="utf-8"))
    run.check("as many strokes arrived as were drawn", len(strokes), len(drawn))
    for number, (wanted, got) in enumerate(zip(strokes, drawn, strict=False), 1):
        ends = [tuple(map(round, got[index])) for index in (0, -1)]
        run.check(f"stroke {number} begins and ends at the drag's points", [wanted[0], wanted[-1]], ends)
        missed = [point for point in wanted if _distance(point, got) > _NEAR]
        run.check(f"stroke {number} passes by all of the drag's {len(wanted)} points", [], missed)


def _chromium(url: str, home: Path, *, contained: bool) -> list[str]:
    command = ["chromium", f"--user-data-dir={home / 'chromium'}", "--window-position=150,30", "--window-size=980,720"]
    # Nothing but the page: no first run, no question, no bubble, no key ring, nothing fetched behind our back.
    command += ["--no-first-run", "--no-default-browser-check", "--password-store=basic", "--disable-sync"]
    command += ["--disable-features=Translate,OptimizationHints,MediaRouter,AutofillServerCommunication"]
    command += ["--disable-background-networking", "--disable-component-update", "--disable-extensions"]
    command += ["--lang=en-US", "--test-type"]
    if contained:
        # Only secure pages get all points of a stroke, and pages of this machine itself count as secure.
        command.append(f"--unsafely-treat-insecure-origin-as-secure={url}")
    elif os.geteuid() == 0:
        # Its sandbox refuses to run as root; the only page that it sees is ours.
        command.append("--no-sandbox")
    return [*command, url]


def _centre(where: Layout, name: str) -> tuple[int, int]:
    x, y, width, height = where[name]
    return round(x + width / 2), round(y + height / 2)


def _signature(box: tuple[float, float, float, float]) -> list[list[tuple[int, int]]]:
    """Two strokes inside a box of the screen: a row of loops that get smaller, and a line below them."""
    left, top, width, height = box
    loops = []
    for index in range(121):
        along = index / 120
        angle = 2 * math.pi * 5.5 * along
        swing = 0.30 * height * (1 - 0.65 * along)
        x = left + width * (0.12 + 0.68 * along) - 0.055 * width * math.sin(angle) * (1 - 0.4 * along)
        loops.append((round(x), round(top + 0.45 * height - swing * math.cos(angle))))
    line = []
    for index in range(41):
        along = index / 40
        y = top + 0.86 * height - 0.05 * height * math.sin(2 * math.pi * along)
        line.append((round(left + width * (0.12 + 0.76 * along)), round(y)))
    return [loops, line]


def _distance(point: tuple[int, int], line: list[tuple[float, float]]) -> float:
    """How far a point is from a line through points."""
    nearest = math.inf
    for (x1, y1), (x2, y2) in pairwise(line):
        dx, dy = x2 - x1, y2 - y1
        along = ((point[0] - x1) * dx + (point[1] - y1) * dy) / (dx * dx + dy * dy or 1)
        along = min(1.0, max(0.0, along))
        nearest = min(nearest, math.hypot(point[0] - x1 - along * dx, point[1] - y1 - along * dy))
    return nearest


def _is_ink(pixels: NDArray[np.uint8], point: tuple[int, int]) -> bool:
    x, y = point
    reach = _NEAR - 1
    near = pixels[y - reach : y + reach + 1, x - reach : x + reach + 1].reshape(-1, 3).astype(int)
    return bool((np.abs(near - _INK).max(axis=1) <= 24).any())
