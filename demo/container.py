"""What a container costs beside a desktop of this machine: how soon it is ready, ready again, and what a look takes.

    .venv/bin/python demo/container.py [image] [--out FILE]

prints a table of medians, in brackets the slowest; the two kinds of desktop take turns, so that other work on the machine meets
both. With `--out` the table is written there too.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table

import deskhand
from deskhand import Type
from deskhand.episodes.run.host import describe
from deskhand.launchers.docker.display_slot import DEFAULT_IMAGE
from deskhand.launchers.docker.engine import connect_engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from deskhand.launchers.docker.engine import Engine

__all__ = ["main"]

_LAUNCHES, _RESETS, _RESTARTS, _LOOKS = 10, 10, 20, 200
# Seconds that `docker restart` gives a container to end, which needs 0.1 of it.
_GRACE = 5
# What is promised: seconds until a container is usable, until its screen is seen to stand still, until it is made as new, and
# back after each restart; and of a look there, in times of one here.
_READY, _STILL, _RESET, _RESTARTED, _LOOK = 2.0, 5.0, 1.0, 5.0, 1.3

_Times = dict[str, list[float]]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What a container costs beside a desktop of this machine.")
    parser.add_argument("image", nargs="?", default=DEFAULT_IMAGE)
    parser.add_argument("--out", type=Path, help="a file for the table, too")
    given = parser.parse_args()
    machine, before = describe(), os.getloadavg()[0]
    ready, still, closed = _launches(given.image)
    again, still_again = _resets(given.image)
    with _both(given.image) as desktops:
        keys, raw = _looks(desktops)
        restarted = _restarts(desktops["container"])
    table = Table(title_justify="left")
    for name in ("medians in ms (the slowest)", "here", "container", "promised"):
        table.add_column(name, justify="left" if not table.columns else "right")

    def add(what: str, times: _Times, promise: str = "", *, kept: bool = True) -> None:
        mark = f" {'✓' if kept else '✗'}" if promise else ""
        table.add_row(what, *(_ms(times[kind]) if kind in times else "" for kind in desktops), promise + mark)

    add("launch to the first picture", ready, f"≤ {_READY:g} s", kept=_middle(ready) <= _READY)
    add("launch to a frame that has settled", still, f"each ≤ {_STILL:g} s", kept=max(still["container"]) <= _STILL)
    add("close", closed)
    add(f"a pool's reset to the next user's picture, {_RESETS} times", again, "≤ 1 s", kept=_middle(again) <= _RESET)
    add("a pool's reset to a frame that has settled", still_again, "≤ 1 s", kept=_middle(still_again) <= _RESET)
    add(
        f"docker restart to the next picture, {_RESTARTS} times",
        restarted,
        f"each ≤ {_RESTARTED:g} s",
        kept=max(restarted["container"]) <= _RESTARTED,
    )
    for what, times in (("a look after a key: capture and PNG", keys), ("a look at everything, raw", raw)):
        part = _middle(times) / _middle(times, "here")
        add(what, times, f"{part:.2f} times one here, ≤ {_LOOK:g}", kept=part <= _LOOK)
    about = (
        f"{machine['processor']}, {machine['cores']} cores, {machine['system']}; {given.image}; "
        f"load average {before:.1f} before, {os.getloadavg()[0]:.1f} after"
    )
    # Wide enough also where there is no terminal.
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(about, table, highlight=False)
    if given.out is not None:
        table.box = box.MARKDOWN
        text = io.StringIO()
        Console(file=text, width=160).print(table, highlight=False)
        lines = "\n".join(line.rstrip() for line in text.getvalue().splitlines() if line.strip())
        head = (
            f"# What a container costs beside a desktop of this machine\n\nWritten by `demo/container.py`. {about}.\n\n"
        )
        given.out.write_text(f"{head}{lines}\n", encoding="utf-8")
    return 0


def _kinds(image: str) -> dict[str, Callable[[], deskhand.Desktop]]:
    return {"here": deskhand.launch, "container": lambda: deskhand.launch("docker", image=image)}


@contextlib.contextmanager
def _both(image: str) -> Iterator[dict[str, deskhand.Desktop]]:
    with contextlib.ExitStack() as stack:
        yield {kind: stack.enter_context(make()) for kind, make in _kinds(image).items()}


def _launches(image: str) -> tuple[_Times, _Times, _Times]:
    kinds = _kinds(image)
    ready: _Times = {kind: [] for kind in kinds}
    still: _Times = {kind: [] for kind in kinds}
    closed: _Times = {kind: [] for kind in kinds}
    for _ in range(_LAUNCHES):
        for kind, make in kinds.items():
            begun = time.monotonic()
            desktop = make()
            desktop.screenshot()
            ready[kind].append(time.monotonic() - begun)
            desktop.perform()
            still[kind].append(time.monotonic() - begun)
            begun = time.monotonic()
            desktop.close()
            closed[kind].append(time.monotonic() - begun)
    return ready, still, closed


def _resets(image: str) -> tuple[_Times, _Times]:
    """From one user's end to the next one's first picture, and first settled one, of a pool that has no other desktop."""
    taken: _Times = {"here": [], "container": []}
    still: _Times = {"here": [], "container": []}
    with (
        deskhand.Pool(size=1, reset="session") as here,
        deskhand.Pool("docker", size=1, reset="session", image=image) as there,
    ):
        for _ in range(_RESETS):
            for kind, pool in (("here", here), ("container", there)):
                with pool.acquire(timeout=60) as desktop:
                    desktop.start("xterm")
                begun = time.monotonic()
                with pool.acquire(timeout=60) as desktop:
                    desktop.screenshot()
                    taken[kind].append(time.monotonic() - begun)
                    desktop.perform()
                    still[kind].append(time.monotonic() - begun)
    return taken, still


def _looks(desktops: dict[str, deskhand.Desktop]) -> tuple[_Times, _Times]:
    keys: _Times = {kind: [] for kind in desktops}
    raw: _Times = {kind: [] for kind in desktops}
    for desktop in desktops.values():
        desktop.start("xterm")
    for _ in range(_LOOKS):
        for kind, desktop in desktops.items():
            seen = desktop.perform(Type("a"))
            keys[kind].append(seen.elapsed.capture + seen.elapsed.encode)
            begun = time.monotonic()
            desktop.screenshot(format="raw")
            raw[kind].append(time.monotonic() - begun)
    return keys, raw


def _restarts(desktop: deskhand.Desktop) -> _Times:
    engine: Engine = connect_engine()
    taken = []
    for _ in range(_RESTARTS):
        begun = time.monotonic()
        engine.api.restart(desktop.name, timeout=_GRACE)
        with deskhand.connect(f"docker://{desktop.name}") as again:
            again.screenshot()
        taken.append(time.monotonic() - begun)
    engine.close()
    return {"container": taken}


def _middle(times: _Times, kind: str = "container") -> float:
    return statistics.median(times[kind])


def _ms(seconds: list[float]) -> str:
    def number(value: float) -> str:
        return f"{value * 1000:.2f}" if value < 0.01 else f"{value * 1000:.0f}"

    return f"{number(statistics.median(seconds))} ({number(max(seconds))})"


if __name__ == "__main__":
    sys.exit(main())
