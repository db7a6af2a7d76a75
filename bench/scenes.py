"""Scenes to look at. Each is a pair of pictures of one size, made the same way each time, and the places that change.

- `page`: a terminal full of coloured text beside Chromium with gradients and a long table: real programs, taken off the screen.
  Its second picture is the first in opposite colours.
- `terminal`: a terminal over the whole screen; its second picture is the same text, scrolled by a line.
- `photo`: light, surfaces, edges and grain, drawn with a fixed seed.

Nothing is measured here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

import deskhand
from bench.stage import environment_of
from deskhand import KeyPress, Settle

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["PAGE", "Missing", "Scene", "chromium", "film", "home_environment", "make", "need", "photo"]

_Rect = tuple[int, int, int, int]
# Each is as high as Chromium's window at 1920x1080, so that a gradient is always visible.
_PARTS, _ROWS = 40, 20
_PART = '<div style="height:220px;background:linear-gradient(45deg,{colours})"></div><table>{rows}</table>'
_TABLES = "".join(
    _PART.format(
        colours="#06c,#fc0" if part % 2 == 0 else "#fc0,#06c",
        rows="".join(
            f"<tr><td>{n}</td><td>row {n} of a long table</td><td>{n * n}</td></tr>"
            for n in range(_ROWS * part, _ROWS * part + _ROWS)
        ),
    )
    for part in range(_PARTS)
)
PAGE = f"""<!doctype html><meta charset="utf-8"><title>bench</title><body style="margin:0;font:16px sans-serif">
{_TABLES}</body>"""
"""The page that Chromium shows."""

_QUIET = Settle(quiet=0.7, reaction=0.7, timeout=20)
# The font of an xterm without configuration.
_CELL = (6, 13)
_LINES = 400


class Missing(Exception):
    """A program for a measurement is not installed; the message says how to install it."""


def need(program: str, package: str) -> None:
    """Raise `Missing` unless a program is installed."""
    if shutil.which(program) is None:
        raise Missing(f"{program}: apt-get install {package}")


@dataclass(frozen=True, slots=True)
class Scene:
    """Two pictures, and where they differ.

    Attributes:
        name: `page`, `terminal` or `photo`.
        first: Shape (height, width, 3), RGB.
        second: Likewise; for a page and a photo every pixel differs from `first`.
        line: A line of text: x, y, width, height; None without text.
        quarter: A quarter of the screen.
    """

    name: str
    first: NDArray[np.uint8]
    second: NDArray[np.uint8]
    line: _Rect | None
    quarter: _Rect

    @property
    def pictures(self) -> dict[str, NDArray[np.uint8]]:
        """Both pictures by name, for the stage."""
        return {"first": self.first, "second": self.second}

    def pixels_changed(self, part: _Rect | None = None) -> float:
        """The share of all pixels that differ when a part, by default the whole, changes from one picture to the other."""
        different = (self.first != self.second).any(axis=2)
        x, y, width, height = part or (0, 0, different.shape[1], different.shape[0])
        return float(different[y : y + height, x : x + width].sum() / different.size)


def home_environment(home: Path) -> dict[str, str]:
    """A home directory of their own for programs, so that no first-run window and no setting of the user is in the picture."""
    home.mkdir(exist_ok=True)
    return {"HOME": str(home), **{f"XDG_{n}_HOME": str(home / n.lower()) for n in ("CONFIG", "CACHE", "DATA", "STATE")}}


def chromium(page: Path, profile: Path, place: _Rect) -> list[str]:
    """The command that shows a page in a window at a given place."""
    need("chromium", "chromium")
    x, y, width, height = place
    flags = ["--no-first-run", "--no-default-browser-check", "--disable-sync", "--password-store=basic"]
    # Chromium's own sandbox refuses root, as in a container.
    flags += ["--no-sandbox"] if os.getuid() == 0 else []
    where = [f"--window-position={x},{y}", f"--window-size={width},{height}"]
    return ["chromium", *flags, f"--user-data-dir={profile}", *where, f"file://{page}"]


def make(name: str, size: tuple[int, int], scratch: Path) -> Scene:
    """Make a scene.

    Raises:
        Missing: A program in the picture is not installed.
    """
    width, height = size
    quarter = (width // 2, height // 2, width - width // 2, height - height // 2)
    if name == "photo":
        first, second = photo(size, 1), photo(size, 2)
        # Some pixels have the same colour in both by chance: they are made slightly darker or lighter.
        second[(first == second).all(axis=2)] ^= 1
        return Scene(name, first, second, None, quarter)
    need("xterm", "xterm")
    with deskhand.launch(size=size, env=home_environment(scratch / f"home-{name}-{width}")) as desktop:
        if name == "page":
            first, line = _page(desktop, scratch)
            # The same in inverted colours, as with a dark theme, so that every pixel changes.
            return Scene(name, first, 255 - first, line, quarter)
        first, second, line = _terminal(desktop, scratch)
    return Scene(name, first, second, line, quarter)


def _coloured(path: Path, start: int, count: int) -> None:
    path.write_text(
        "".join(f"\033[{31 + n % 6}m line {n} of coloured text\033[0m\n" for n in range(start, start + count))
    )


def _xterm(desktop: deskhand.Desktop, texts: Sequence[Path], geometry: str) -> deskhand.Window:
    """A terminal that shows one text after the other, the next one after each Return."""
    script = "; ".join(f"cat {path}; read -r _" for path in texts)
    started = desktop.start(["xterm", "-geometry", geometry, "-fn", "fixed", "-e", "sh", "-c", script])
    if started.window is None:
        raise Missing("a window manager: apt-get install openbox")
    return started.window


def _picture(desktop: deskhand.Desktop) -> NDArray[np.uint8]:
    desktop.perform(settle=_QUIET)
    return desktop.screenshot(cursor=False).array()


def _line(window: deskhand.Window, row: int) -> _Rect:
    x, y, width, _ = window.rect
    return (x + 2, y + 2 + _CELL[1] * row, width - 4, _CELL[1])


def _page(desktop: deskhand.Desktop, scratch: Path) -> tuple[NDArray[np.uint8], _Rect]:
    width, height = desktop.size
    text = scratch / "coloured.txt"
    _coloured(text, 1, _LINES)
    page = scratch / "page.html"
    page.write_text(PAGE)
    columns, rows = 100 * width // 1920, 60 * height // 1080
    # Before the terminal, so that the terminal's window is the last new one, which is looked up below.
    place = (800 * width // 1920, 40 * height // 1080, 1000 * width // 1920, 900 * height // 1080)
    desktop.start(chromium(page, scratch / f"chromium-{width}", place), timeout=60)
    terminal = _xterm(desktop, [text], f"{columns}x{rows}+0+0")
    need("xsetroot", "x11-xserver-utils")
    subprocess.run(["xsetroot", "-solid", "#2b3a4a"], env=environment_of(desktop), check=True)
    return _picture(desktop), _line(terminal, rows // 2)


def _terminal(desktop: deskhand.Desktop, scratch: Path) -> tuple[NDArray[np.uint8], NDArray[np.uint8], _Rect]:
    width, height = desktop.size
    texts = [scratch / "whole.txt", scratch / "next.txt"]
    _coloured(texts[0], 1, _LINES)
    # Return itself already scrolls by a line.
    texts[1].write_text("")
    terminal = _xterm(desktop, texts, f"{width // _CELL[0]}x{height // _CELL[1]}+0+0")
    first = _picture(desktop)
    desktop.perform(KeyPress(("Return",)))
    return first, _picture(desktop), _line(terminal, height // _CELL[1] // 2)


def photo(size: tuple[int, int], seed: int, *, grain: float = 2.2) -> NDArray[np.uint8]:
    """A picture with the statistics of a photograph: smooth light, detail at every scale, edges, and the grain of a sensor.

    Args:
        size: Width and height in pixels.
        seed: The same seed gives the same picture.
        grain: Standard deviation of the sensor's noise, of 255.

    Returns:
        Shape (height, width, 3), RGB.
    """
    width, height = size
    random = np.random.default_rng(seed)
    picture = np.full((height, width, 3), 118.0)
    cells, strength = 3, 52.0
    # The strength of detail is halved with its size: the 1/f spectrum of natural pictures.
    while cells < max(size):
        coarse = random.normal(0.0, strength, (cells * height // width + 3, cells + 3, 3))
        # Surfaces are mostly grey: colour varies less than light.
        coarse = 0.75 * coarse.mean(axis=2, keepdims=True) * np.sqrt(3) + 0.25 * coarse
        picture += _stretched(coarse, (width, height))
        cells *= 2
        strength *= 0.55
    rows, columns = np.mgrid[0:height, 0:width]
    for _ in range(12):
        x, y = random.uniform(0, width), random.uniform(0, height)
        radius = random.uniform(0.03, 0.18) * width
        inside = (columns - x) ** 2 + ((rows - y) * random.uniform(0.7, 1.4)) ** 2 < radius**2
        picture[inside] += random.normal(0.0, 30.0, 3)
    picture += random.normal(0.0, grain, picture.shape)
    found: NDArray[np.uint8] = np.clip(picture, 0, 255).astype(np.uint8)
    return found


def _stretched(coarse: NDArray[np.float64], size: tuple[int, int]) -> NDArray[np.float64]:
    """Enlarge bilinearly; the coarse grid's cells are square in any part of the picture."""
    width, height = size
    scale = width / (coarse.shape[1] - 3)
    x, y = np.arange(width) / scale, np.arange(height) / scale
    left, top = x.astype(int), y.astype(int)
    across, down = (x - left)[None, :, None], (y - top)[:, None, None]
    rows = coarse[top] * (1 - down) + coarse[top + 1] * down
    return np.asarray(rows[:, left] * (1 - across) + rows[:, left + 1] * across)


def film(size: tuple[int, int], frames: int) -> Mapping[str, NDArray[np.uint8]]:
    """A camera that pans over a photograph: each picture differs everywhere from the one before. There is no grain.

    Args:
        size: The size of each picture, in pixels.
        frames: The number of pictures.
    """
    width, height = size
    wide = photo((width + 6 * frames, height), 3, grain=0.0)
    return {f"frame {n}": np.ascontiguousarray(wide[:, 6 * n : 6 * n + width]) for n in range(frames)}
