"""Acting: the time from the action to the settled frame, and whether that frame was final.

A frame is wrong if the screen differs a second later, except for a caret. For comparison, the usual way is measured too:
`xdotool`, a fixed sleep of two seconds, `scrot`.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import deskhand
from bench import scenes
from bench.context import Context, timed
from bench.figures import Row, Samples
from bench.peers import Peer
from bench.stage import environment_of
from deskhand import KeyPress, LeftClick, Scroll, Settle, Wait

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from deskhand import Action

__all__ = ["FIELD", "chromium", "mousepad", "wrong", "xterm"]

FIELD = "xdotool, sleep 2, scrot"
_FIELD_PEER = Peer(FIELD, "", programs=(("xdotool", "xdotool"), ("scrot", "scrot")))
_SIZE = (1920, 1080)
_LATER = 1.0
_SLEEP = 2.0
# After this many keys the line ends, so that it never reaches the edge of its window.
_LINE = 50
# After so many keys what a terminal does with one is learnt.
_LEARNT = 30
# The largest size of a caret.
_CARET = (3, 40)
_FORM = """<!doctype html><meta charset="utf-8"><title>bench</title><body style="margin:0;font:16px sans-serif">
<input autofocus style="position:fixed;top:0;left:0;width:600px;font:20px monospace">"""


def wrong(seen: deskhand.Screenshot, later: deskhand.Screenshot) -> bool:
    """Whether more than a caret differs."""
    different = np.argwhere((seen.array() != later.array()).any(axis=2))
    if different.size == 0:
        return False
    (top, left), (bottom, right) = different.min(axis=0), different.max(axis=0)
    return not (right - left < _CARET[0] and bottom - top < _CARET[1])


def _keys(number: int) -> tuple[str, Action]:
    name = "Return" if number and number % _LINE == 0 else chr(ord("a") + number % 26)
    return name, KeyPress((name,))


def _measure(
    context: Context,
    desktop: deskhand.Desktop,
    where: tuple[str, str],
    action: Callable[[int], tuple[Sequence[str], Action]],
    rounds: int,
) -> Iterator[Row]:
    """Measure one action repeatedly, and sometimes in the usual way for comparison.

    Args:
        context: The run.
        desktop: The desktop; the action's window has the focus.
        where: The names of the section and the row.
        action: Returns the n-th action, as words for xdotool and as ours.
        rounds: How many times.
    """
    section, case = where
    ours, field = Samples(section, case), Samples(section, case, FIELD)
    field.missing = _FIELD_PEER.missing()
    wrongs = unsettled = 0
    number = 0
    for number in range(rounds):
        context.say(f"{section}, {case}: {number + 1} of {rounds}")
        _, ours_now = action(2 * number)
        begun = time.perf_counter()
        seen = desktop.perform(ours_now)
        ours.add((time.perf_counter() - begun) * 1000, len(seen.png))
        wrongs += wrong(seen, desktop.perform(Wait(_LATER), settle=False))
        unsettled += not seen.settled
        if number < (1 if context.quick else 3) and not field.missing:
            field.add(_as_the_field(desktop, action(2 * number + 1)[0]))
            # Wait until its key is drawn, so that it does not count as an effect of ours.
            desktop.perform(settle=Settle())
    yield ours.row(wrong_frames=wrongs, compared=rounds, unsettled=unsettled)
    yield field.row()


def _as_the_field(desktop: deskhand.Desktop, words: Sequence[str]) -> float:
    environment = environment_of(desktop)
    with tempfile.TemporaryDirectory(prefix="deskhand-bench-") as scratch:
        path = Path(scratch) / "shot.png"

        def act() -> None:
            subprocess.run(["xdotool", *words], env=environment, check=True, stdin=subprocess.DEVNULL)
            time.sleep(_SLEEP)
            subprocess.run(["scrot", "-o", str(path)], env=environment, check=True, stdin=subprocess.DEVNULL)
            path.read_bytes()

        return timed(act)


def _key(number: int) -> tuple[Sequence[str], Action]:
    name, action = _keys(number)
    return ["key", name], action


def _environment(context: Context, name: str) -> dict[str, str]:
    return scenes.home_environment(context.scratch / f"home-act-{name}")


def xterm(context: Context) -> Iterator[Row]:
    """A key press in a terminal, and one without effect."""
    scenes.need("xterm", "xterm")
    rounds = context.times(12, 4)
    with deskhand.launch(size=_SIZE, env=_environment(context, "xterm")) as desktop:
        desktop.start(["xterm", "-geometry", "100x60", "-e", "cat"])
        yield from _measure(context, desktop, ("act/xterm", "key press"), _key, rounds)
        for number in range(_LEARNT):
            desktop.perform(_key(number)[1])
        yield from _measure(context, desktop, ("act/xterm", "key press, learnt"), _key, rounds)
        idle = Samples("act/xterm", "key without effect", note="Scroll Lock")
        for _ in range(rounds):
            idle.add(timed(lambda: desktop.perform(KeyPress(("Scroll_Lock",)))))
        yield idle.row()


def mousepad(context: Context) -> Iterator[Row]:
    """A key press in a GTK editor."""
    scenes.need("mousepad", "mousepad")
    with deskhand.launch(size=_SIZE, env=_environment(context, "mousepad")) as desktop:
        desktop.start("mousepad")
        yield from _measure(context, desktop, ("act/mousepad", "key press"), _key, context.times(12, 4))


def chromium(context: Context) -> Iterator[Row]:
    """A key press in a text field of a page, and a notch of the wheel, which Chromium scrolls smoothly."""
    page = context.scratch / "form.html"
    page.write_text(_FORM + scenes.PAGE.partition("<body")[2].partition(">")[2])
    x, y, width, height = place = (400, 40, 1000, 900)
    command = scenes.chromium(page, context.scratch / "chromium-act", place)
    with deskhand.launch(size=_SIZE, env=_environment(context, "chromium")) as desktop:
        window = desktop.start(command, timeout=60).window
        # The caret of its text field blinks all the time; the driver recognizes that after a few blinks.
        desktop.perform(settle=Settle(quiet=0.7, reaction=0.7, timeout=4))
        if window is not None:
            x, y, width, height = window.rect
        rounds = context.times(12, 4)
        yield from _measure(context, desktop, ("act/chromium", "key press in a text field"), _key, rounds)
        middle = (x + width // 2, y + height * 2 // 3)
        desktop.perform(LeftClick(middle))

        def notch(number: int) -> tuple[Sequence[str], Action]:
            down = number % 16 < 8
            return ["click", "5" if down else "4"], Scroll(middle, magnitude=1, direction="down" if down else "up")

        yield from _measure(context, desktop, ("act/chromium", "wheel notch (smooth scroll)"), notch, rounds)
