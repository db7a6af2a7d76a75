"""Typing: how long a text takes, and whether it arrives exactly, in comparison with `xdotool type`.

A text is sent when the call returns, or the process ends. It has arrived when the application has it. Both are measured in the
same way for all.
"""

from __future__ import annotations

import subprocess
import time
from functools import partial
from typing import TYPE_CHECKING

import deskhand
from bench import scenes
from bench.context import Context, timed
from bench.figures import OURS, Row, Samples
from bench.peers import Peer
from bench.stage import environment_of
from deskhand import KeyPress, Settle, Type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["mousepad", "xterm"]

_XDOTOOL = "xdotool type"
_XDOTOOL_FAST = "xdotool type --delay 0"
_PEER = Peer(_XDOTOOL, "", programs=(("xdotool", "xdotool"),))
_TEXT = ("the quick brown fox jumps over the lazy dog 0123456789 " * 20)[:1000]
_SILENCE = 1.5
_POLL = 0.0005
_ARRIVED = "1,000 ASCII characters, arrived"
_SENT = "1,000 ASCII characters, sent"
_CJK = "200 distinct CJK characters, sent"


def _xdotool(desktop: deskhand.Desktop, text: str, *options: str) -> None:
    argv = ["xdotool", "type", *options, "--", text]
    subprocess.run(argv, env=environment_of(desktop), check=True, stdin=subprocess.DEVNULL)


def _ways(desktop: deskhand.Desktop) -> dict[str, Callable[[str], object]]:
    return {
        OURS: lambda text: desktop.perform(Type(text), settle=False),
        _XDOTOOL_FAST: lambda text: _xdotool(desktop, text, "--delay", "0"),
        _XDOTOOL: lambda text: _xdotool(desktop, text),
    }


def _arrival(path: Path, expected: str) -> float:
    """Wait until a file has the text, or nothing more arrives; returns the time of the last change."""
    size, last = -1, time.perf_counter()
    while time.perf_counter() - last < _SILENCE:
        now = path.stat().st_size
        if now != size:
            size, last = now, time.perf_counter()
        if size >= len(expected):
            break
        time.sleep(_POLL)
    return last


def xterm(context: Context) -> Iterator[Row]:
    """Type 1,000 characters into a terminal whose program writes them to a file."""
    scenes.need("xterm", "xterm")
    path = context.scratch / "typed"
    path.touch()
    rounds = context.times(12, 3)
    with deskhand.launch(size=(1920, 1080), env=scenes.home_environment(context.scratch / "home-type")) as desktop:
        # Without line editing each character arrives separately, and none is echoed.
        script = f"stty raw -echo; exec cat >>{path}"
        desktop.start(["xterm", "-geometry", "100x60", "-e", "sh", "-c", script])
        ways = _ways(desktop)
        # At its default speed, xdotool needs twelve seconds for a text.
        often = {OURS: rounds, _XDOTOOL_FAST: min(rounds, 5), _XDOTOOL: 1}
        if context.quick:
            del ways[_XDOTOOL]
        sent = {who: Samples("type/xterm", _SENT, who) for who in ways}
        arrived = {who: Samples("type/xterm", _ARRIVED, who) for who in ways}
        wrong = dict.fromkeys(ways, 0)
        for number in range(rounds):
            for who, way in ways.items():
                sent[who].missing = arrived[who].missing = "" if who == OURS else _PEER.missing()
                if number >= often[who] or sent[who].missing:
                    continue
                context.say(f"type/xterm: {who}, {number + 1} of {often[who]}")
                begun = time.perf_counter()
                path.write_bytes(b"")
                way(_TEXT)
                sent[who].add((time.perf_counter() - begun) * 1000)
                arrived[who].add((_arrival(path, _TEXT) - begun) * 1000)
                wrong[who] += path.read_bytes() != _TEXT.encode()
                desktop.perform(settle=Settle())
        for who in ways:
            yield sent[who].row()
            yield arrived[who].row(wrong_texts=wrong[who])


def mousepad(context: Context) -> Iterator[Row]:
    """Type 200 characters that are on no keyboard into a GTK editor; its clipboard shows what arrived."""
    scenes.need("mousepad", "mousepad")
    rounds = context.times(6, 2)
    with deskhand.launch(size=(1920, 1080), env=scenes.home_environment(context.scratch / "home-cjk")) as desktop:
        desktop.start("mousepad")
        ways = {who: way for who, way in _ways(desktop).items() if who != _XDOTOOL}
        samples = {who: Samples("type/mousepad", _CJK, who) for who in ways}
        wrong = dict.fromkeys(ways, 0)
        for number in range(rounds):
            for who, way in ways.items():
                samples[who].missing = "" if who == OURS else _PEER.missing()
                if samples[who].missing:
                    continue
                context.say(f"type/mousepad: {who}, {number + 1} of {rounds}")
                text = "".join(chr(0x4E00 + 200 * number + n) for n in range(200))
                samples[who].add(timed(partial(way, text)))
                desktop.perform(settle=Settle())
                desktop.perform(KeyPress(("ctrl", "a")), KeyPress(("ctrl", "c")))
                wrong[who] += desktop.clipboard.read() != text
                desktop.perform(KeyPress(("Delete",)))
        for who in ways:
            yield samples[who].row(wrong_texts=wrong[who])
