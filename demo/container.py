"""What a container costs beside a desktop of this machine: how soon it is ready, and what a look takes.

    .venv/bin/python demo/container.py [image]

prints a table of medians; the two kinds of desktop take turns, so that other work on the machine meets both.
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

import deskhand
from deskhand import Type
from deskhand.launch.engine import connect_engine

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["main"]

_LAUNCHES, _RESTARTS, _LOOKS = 5, 5, 100


def main() -> int:
    """Measure and print."""
    image = sys.argv[1] if len(sys.argv) > 1 else "deskhand/minimal"
    table = Table(title=f"Medians in ms, {image} beside this machine's own", title_justify="left")
    for name in ("", "here", "container"):
        table.add_column(name, justify="left" if not name else "right")
    kinds: dict[str, Callable[[], deskhand.Desktop]] = {
        "here": deskhand.launch,
        "container": lambda: deskhand.launch("docker", image=image),
    }
    ready: dict[str, list[float]] = {kind: [] for kind in kinds}
    closed: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(_LAUNCHES):
        for kind, make in kinds.items():
            begun = time.monotonic()
            desktop = make()
            desktop.screenshot()
            ready[kind].append(time.monotonic() - begun)
            begun = time.monotonic()
            desktop.close()
            closed[kind].append(time.monotonic() - begun)
    table.add_row("launch to the first picture", *(_ms(ready[kind]) for kind in kinds))
    table.add_row("close", *(_ms(closed[kind]) for kind in kinds))
    with kinds["here"]() as here, kinds["container"]() as there:
        keys, raw = _looks({"here": here, "container": there})
        table.add_row("a look after a key: capture and PNG", *(_ms(keys[kind]) for kind in kinds))
        table.add_row("a look at everything, raw", *(_ms(raw[kind]) for kind in kinds))
        table.add_row("docker restart to the next picture", "", _ms(_restarts(there)))
    # Wide enough also where there is no terminal.
    Console(width=None if sys.stdout.isatty() else 100).print(table)
    return 0


def _looks(desktops: dict[str, deskhand.Desktop]) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    keys: dict[str, list[float]] = {kind: [] for kind in desktops}
    raw: dict[str, list[float]] = {kind: [] for kind in desktops}
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


def _restarts(desktop: deskhand.Desktop) -> list[float]:
    engine = connect_engine()
    taken = []
    for _ in range(_RESTARTS):
        engine.api.stop(desktop.name)
        begun = time.monotonic()
        engine.api.start(desktop.name)
        with deskhand.connect(f"docker://{desktop.name}") as again:
            again.screenshot()
        taken.append(time.monotonic() - begun)
    engine.close()
    return taken


def _ms(seconds: list[float]) -> str:
    value = statistics.median(seconds) * 1000
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


if __name__ == "__main__":
    sys.exit(main())
