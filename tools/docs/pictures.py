"""Draw the pictures of the explanations from runs that are made here: `PYTHONPATH=. python -m tools.docs.pictures`.

Each picture is a run of real programs on a desktop of its own; its numbers are of that run.
"""

from __future__ import annotations

import io
import struct
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from Xlib import X, display

import deskhand
from deskhand import KeyPress, Type
from deskhand._core import settle_machine
from deskhand.desktop import watcher

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).resolve().parents[2] / "docs/pictures"
_BLUE, _ORANGE, _GREEN, _GREY = "#3b6fb6", "#d9822b", "#3a8f5c", "#9aa0a6"
_STRIP_ROWS = 32
# Keysyms of characters beyond Latin-1 (X11 protocol, appendix A).
_UNICODE = 0x01000000
_STYLE = {
    "svg.hashsalt": "deskhand",
    "font.size": 9,
    "font.family": ["DejaVu Sans", "Noto Sans CJK JP"],
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_TEXT = "naïve ☕ 你好 ☕"


@contextmanager
def recorded() -> Iterator[list[tuple[float, str]]]:
    """What the settle machine gets, with the time of each."""
    noted: list[tuple[float, str]] = []
    machine = settle_machine.Machine

    class Recorded(machine):  # type: ignore[misc,valid-type] # the class is a value here
        def __init__(self, settings: Any, *, now: float, **options: Any) -> None:
            noted.append((now, "begun"))
            super().__init__(settings, now=now, **options)

        def changed(self, at: float, rects: Any) -> bool:
            relevant: bool = super().changed(at, rects)
            noted.append((at, "changed" if relevant else "busy"))
            return relevant

        def probed(self, at: float) -> None:
            noted.append((at, "asked"))
            super().probed(at)

        def answered(self, at: float) -> None:
            noted.append((at, "answered"))
            super().answered(at)

        def looked(self, at: float, activity: Any) -> None:
            noted.append((at, f"looked: {activity}"))
            super().looked(at, activity)

        def result(self, now: float) -> Any:
            found = super().result(now)
            if found is not None:
                noted.append((now, "settled"))
            return found

    with mock.patch.object(watcher, "Machine", Recorded):
        yield noted


def settling() -> None:
    """A timeline of one action: a dialog is opened in an editor."""
    with deskhand.launch() as desktop:
        desktop.start("mousepad")
        desktop.perform(Type("hello"))
        with recorded() as noted:
            seen = desktop.perform(KeyPress("ctrl+shift+s"))
        assert seen.settled
    begun = next(at for at, what in noted if what == "begun")
    rows = {
        "pixels changed": ("changed", _BLUE),
        "asked: _NET_WM_PING": ("asked", _ORANGE),
        "answered": ("answered", _GREEN),
        "processes at work": ("looked: computing", _ORANGE),
        "processes at rest": ("looked: resting", _GREEN),
        "settled": ("settled", "black"),
    }
    figure, axes = plt.subplots(figsize=(8, 2.9))
    last = max(at for at, what in noted if what == "changed")
    for row, (kind, colour) in enumerate(rows.values()):
        times = [1000 * (at - begun) for at, what in noted if what == kind]
        axes.plot(times, [-row] * len(times), "|", color=colour, markersize=15, markeredgewidth=2)
    end = next(at for at, what in noted if what == "settled")
    axes.axvspan(1000 * (last - begun), 1000 * (end - begun), color=_GREY, alpha=0.25, lw=0)
    axes.text(500 * (last + end - 2 * begun), 0.62, f"{1000 * (end - last):.0f} ms of quiet", ha="center", fontsize=9)
    axes.set_yticks([-row for row in range(len(rows))], list(rows))
    axes.set_ylim(-len(rows) + 0.4, 1.1)
    axes.set_xlabel("milliseconds after Ctrl+Shift+S was sent to mousepad")
    _save(figure, "settling.svg")


def typing() -> None:
    """What a window hears of one text, in order: its keys, and the changes of the keyboard's map between them."""
    with deskhand.launch() as desktop:
        window = _Listener(str(desktop.display), str(desktop.xauthority))
        desktop.perform()
        desktop.perform(Type(_TEXT))
        heard = window.heard()
    figure, axes = plt.subplots(figsize=(8, 1.5))
    for place, (code, meaning) in enumerate(heard):
        axes.add_patch(plt.Rectangle((place, 0), 0.9, 1, color=_BLUE if code else _ORANGE, lw=0))
        axes.text(place + 0.45, 0.65, meaning, ha="center", va="center", color="white", fontsize=11 if code else 7.5)
        axes.text(place + 0.45, 0.25, code or "new", ha="center", va="center", color="white", fontsize=7.5)
    axes.text(0, -0.2, f"The text is “{_TEXT}”. Blue: a key and its keycode. Orange: the map has changed.", va="top")
    axes.set_xlim(0, len(heard))
    axes.set_ylim(-0.6, 1.1)
    axes.axis("off")
    _save(figure, "typing.svg")


class _Listener:
    """A window that has the keyboard, and writes down what it hears."""

    def __init__(self, name: str, authority: str) -> None:
        with mock.patch.dict("os.environ", {"XAUTHORITY": authority}):
            self._display = display.Display(name)
        root = self._display.screen().root
        self._window = root.create_window(
            100, 100, 300, 200, 0, self._display.screen().root_depth, event_mask=X.KeyPressMask
        )
        self._window.map()
        self._display.sync()  # the window manager gives it the keyboard

    def heard(self) -> list[tuple[int, str]]:
        """Each key by its code and its meaning; a change of the map is the code 0. Several changes in a row are one."""
        self._display.sync()
        found: list[tuple[int, str]] = []
        while self._display.pending_events():
            event = self._display.next_event()
            if event.type == X.MappingNotify:
                self._display.refresh_keyboard_mapping(event)
                if not found or found[-1][0]:
                    found.append((0, "map"))
            elif event.type == X.KeyPress:
                found.append((event.detail, self._meaning(event)))
        return found

    def _meaning(self, event: Any) -> str:
        level = (1 if event.state & X.ShiftMask else 0) + (4 if event.state & X.Mod5Mask else 0)
        keysym = self._display.keycode_to_keysym(event.detail, level)
        if keysym >= _UNICODE:
            return chr(keysym - _UNICODE)
        return {0x20: "␣", 0xFFE1: "⇧", 0xFE03: "⇮"}.get(keysym) or chr(keysym)


def strips() -> None:
    """The strips of a picture, and which of them were made again for one more line."""
    with deskhand.launch(size=(1024, 640)) as desktop:
        desktop.start("mousepad")
        before = desktop.perform(Type("The first line\nThe second line\n" * 4))
        after = desktop.perform(Type("and one more"))
    first, second = _chunks(before.png), _chunks(after.png)
    made = [number for number, (old, new) in enumerate(zip(first, second, strict=True)) if old != new]
    image = np.asarray(Image.open(io.BytesIO(after.png)).convert("RGB"))
    figure, (picture, sizes) = plt.subplots(
        1, 2, figsize=(8, 4.2), width_ratios=[3, 1], sharey=True, layout="constrained"
    )
    picture.imshow(image)
    for number in range(len(second)):
        top = number * _STRIP_ROWS
        picture.axhline(top, color=_GREY, lw=0.5)
        if number in made:
            picture.axhspan(top, top + _STRIP_ROWS, color=_ORANGE, alpha=0.3, lw=0)
    picture.set_xticks([])
    picture.set_yticks(range(0, image.shape[0], 128))
    picture.set_ylabel("row of the screen")
    picture.set_ylim(image.shape[0], 0)
    middles = [number * _STRIP_ROWS + _STRIP_ROWS / 2 for number in range(len(second))]
    colours = [_ORANGE if number in made else _BLUE for number in range(len(second))]
    sizes.barh(middles, [len(chunk) / 1024 for chunk in second], height=_STRIP_ROWS * 0.8, color=colours)
    sizes.set_xlabel("kB in the file")
    again = sum(len(second[number]) for number in made)
    figure.suptitle(
        f"{len(made)} of {len(second)} strips were made again: {again / 1024:.1f} of {len(after.png) / 1024:.1f} kB",
        fontsize=10,
    )
    figure.savefig(FOLDER / "strips.png", dpi=110)
    Image.open(FOLDER / "strips.png").convert("P", palette=Image.Palette.ADAPTIVE).save(
        FOLDER / "strips.png", optimize=True
    )


def _chunks(file: bytes) -> list[bytes]:
    """The data of the file's strips: an IDAT chunk each. The last chunk ends the stream."""
    found, place = [], 8
    while place < len(file):
        (length,) = struct.unpack_from(">I", file, place)
        if file[place + 4 : place + 8] == b"IDAT":
            found.append(file[place + 8 : place + 8 + length])
        place += length + 12
    return [chunk for chunk in found if len(chunk) > 16]


def _save(figure: Any, name: str) -> None:
    figure.tight_layout()
    figure.savefig(FOLDER / name, metadata={"Date": None})
    # matplotlib ends lines with blanks.
    text = (FOLDER / name).read_text()
    (FOLDER / name).write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n")


def main() -> None:
    mpl.use("svg")
    mpl.rcParams.update(
        {
            "svg.hashsalt": "deskhand",
            "font.size": 9,
            "font.family": ["DejaVu Sans", "Noto Sans CJK JP"],
            "axes.spines.top": False,
            "axes.spines.right": False,
        }
    )
    FOLDER.mkdir(exist_ok=True)
    settling()
    typing()
    strips()


if __name__ == "__main__":
    main()
