"""Tests a VNC server behind a line that loses packets, with an optional delay and rate: is everything right, and how fast?

Run as root, with `PYTHONPATH=tests`: the line is that of `conformance.packets`.

`tools/lossy_line.py --loss 0.02` is only the loss of fault F9; `--delay 0.2 --jitter 0.1 --rate 125000` adds the rest of it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import deskhand
from conformance.packets import FAR, PORT, NetworkNamespace, PacketLine, Quality
from conformance.servers import Place, need, xvnc
from conformance.test_desktop import real_pixels
from deskhand import KeyPress, Move, Settle, Type
from deskhand.episodes.run.host import describe

if TYPE_CHECKING:
    from collections.abc import Iterator

SETTLE = Settle(timeout=30)
CORNER = (600, 460)


@contextlib.contextmanager
def terminal(place: Place, file: Path) -> Iterator[None]:
    """An xterm with the keyboard focus; typed text goes to the file."""
    script = f"stty -icanon; cat >{file}"
    argv = [need("xterm", "xterm"), "-title", "line", "-geometry", "60x12+20+20", "-e", "sh", "-c", script]
    focus = [need("xdotool", "xdotool"), "search", "--onlyvisible", "--name", "^line$", "windowfocus"]
    with subprocess.Popen(argv, env=place.environment) as process:
        try:
            deadline = time.monotonic() + 60
            while (
                not file.exists()
                or subprocess.run(focus, env=place.environment, capture_output=True, check=False).returncode
            ):
                if time.monotonic() > deadline:
                    sys.exit("waited 60 s for the terminal")
                time.sleep(0.05)
            yield
        finally:
            process.kill()


class Run:
    """The actions of a run, and their results."""

    def __init__(self) -> None:
        self.took: dict[str, list[float]] = {"key": [], "text": []}
        self.reasons: Counter[str] = Counter()
        self.typed = ""
        self.frames = 0
        self.wrong: list[str] = []

    def act(self, desktop: deskhand.Desktop, place: Place, number: int, kind: str) -> None:
        """Do one action, and compare its frame with the screen over X11."""
        text = "abcdefghij"[number % 10] if kind == "key" else f"line {number}, quick brown fox\n"
        actions = [KeyPress([text])] if kind == "key" else [Type(text)]
        begun = time.monotonic()
        try:
            seen = desktop.perform(*actions, settle=SETTLE)
        except deskhand.DeskhandError as error:
            self.wrong.append(
                f"{kind} {number}: {type(error).__name__} after {time.monotonic() - begun:.1f} s: {error}"
            )
            return
        self.took[kind].append(time.monotonic() - begun)
        self.typed += text
        self.reasons[seen.reason.value] += 1
        if seen.settled:
            self.frames += 1
            other = np.asarray(seen.image().convert("RGB")) != real_pixels(place)
            if other.any():
                self.wrong.append(f"{kind} {number}: {other.any(axis=2).sum()} pixels of its frame are others")

    def all(self, url: str, place: Place, keys: int, texts: int) -> None:
        """Connect, and do all actions."""
        kinds = ["key"] * keys
        for number in range(texts):
            kinds.insert((number + 1) * len(kinds) // (texts + 1), "text")
        with deskhand.connect(url, timeout=30) as desktop:
            # TigerVNC paints the pointer into the screen for clients that have not moved it.
            desktop.perform(Move(CORNER), settle=SETTLE)
            for number, kind in enumerate(kinds):
                self.act(desktop, place, number, kind)


def spread(seconds: list[float]) -> str:
    """The minimum, the median, the 90th and 99th percentile, the maximum."""
    values = sorted(seconds)
    return " | ".join(f"{values[int(part * (len(values) - 1))]:.2f}" for part in (0, 0.5, 0.9, 0.99, 1))


def main() -> int:
    """Run it, and print the results; returns 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--loss", type=float, default=0.02, help="share of the packets that are lost, each way")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds, each way")
    parser.add_argument("--jitter", type=float, default=0.0, help="up to so many seconds less or more")
    parser.add_argument("--rate", type=float, default=0.0, help="bytes a second, each way; 0 for as many as come")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keys", type=int, default=200)
    parser.add_argument("--texts", type=int, default=20)
    options = parser.parse_args()
    # Exit cleanly on SIGTERM, so that `timeout` leaves nothing behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    run = Run()
    quality = Quality(options.loss, options.delay, options.jitter, options.rate, options.seed)
    here, there = NetworkNamespace(), NetworkNamespace()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="deskhand-")))
        place = there.run(stack.enter_context, xvnc(folder, "-rfbport", str(PORT)))
        line = stack.enter_context(PacketLine(here, there, quality))
        stack.enter_context(terminal(place, folder / "typed"))
        here.run(run.all, f"vnc://{FAR}::{PORT}", place, options.keys, options.texts)
        if (typed := (folder / "typed").read_text()) != run.typed:
            run.wrong.append(f"typed was {run.typed!r}, and what came is {typed!r}")
    packets, lost, full = line.counted
    machine = describe()
    sys.stdout.write(f"""\
{machine["processor"]}, {machine["cores"]} cores, {machine["system"]}; load {os.getloadavg()[0]:.1f}.
Loss {options.loss:g}, delay {options.delay:g} s give or take {options.jitter:g}, {options.rate:g} bytes/s, seed {options.seed}.
Of {packets} packets {lost} were lost, and {full} for want of room.
Of {run.frames} settled frames and a text of {len(run.typed)} characters, {len(run.wrong)} were wrong.
Reasons: {", ".join(f"{reason} {count}" for reason, count in run.reasons.items())}.

| seconds | actions | least | median | 90 % | 99 % | most |
|---|---:|---:|---:|---:|---:|---:|
""")
    for kind, took in run.took.items():
        if took:
            sys.stdout.write(f"| {kind} | {len(took)} | {spread(took)} |\n")
    for wrong in run.wrong:
        sys.stderr.write(f"{wrong}\n")
    return 1 if run.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
