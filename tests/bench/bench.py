"""Measures deskhand beside the peers that are installed, alternating in one run, and writes what it found.

`make bench` runs it. Results go to `evidence/bench.json`, and as a table into README.md between the markers `<!-- bench -->`.
Every row is measured on the same scene: 1920x1080, a terminal full of coloured text and a browser with a long page.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import platform
import shutil
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import mss
import numpy as np
from PIL import Image
from rich.console import Console
from rich.table import Table

import deskhand
from deskhand import KeyPress, LeftClick, Scroll, Settle, Type

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
MARKERS = ("<!-- bench -->", "<!-- /bench -->")
SIZE = (1920, 1080)
ROWS = "".join(f"<tr><td>{n}</td><td>row {n} of a long table</td><td>{n * n}</td></tr>" for n in range(2000))
PAGE = f"""<!doctype html><title>bench</title><body style="margin:0;font:16px sans-serif">
<div style="height:220px;background:linear-gradient(45deg,#06c,#fc0)"></div><table>{ROWS}</table></body>"""


@dataclass
class Row:
    """One measured thing; values are milliseconds."""

    name: str
    values: list[float] = field(default_factory=list)
    note: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def p95(self) -> float:
        return sorted(self.values)[max(0, int(len(self.values) * 0.95) - 1)]


def timed(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return (time.perf_counter() - begun) * 1000


def scene(home: Path) -> deskhand.Desktop:
    desktop = deskhand.launch(size=SIZE, env={"HOME": str(home)})
    fill = "for i in $(seq 1 400); do printf '\\033[%dm line %d of coloured text\\033[0m' $((31 + i % 7)) $i; done; "
    fill += "exec cat > typed"
    desktop.start(["xterm", "-geometry", "100x60+0+0", "-e", "bash", "-c", fill], cwd=home)
    page = home / "page.html"
    page.write_text(PAGE)
    flags = ["--no-first-run", "--no-default-browser-check", "--disable-sync", "--password-store=basic"]
    flags += ["--no-sandbox"] if os.getuid() == 0 else []
    desktop.start(
        [
            "chromium",
            *flags,
            f"--user-data-dir={home}/chromium",
            "--window-position=800,40",
            "--window-size=1000,900",
            f"file://{page}",
        ],
        timeout=60,
    )
    desktop.perform(settle=Settle(quiet=1.0, reaction=1.0, timeout=20))
    return desktop


def window_of(desktop: deskhand.Desktop, class_name: str) -> deskhand.Window:
    return next(w for w in desktop.windows() if class_name in w.class_name.lower())


def peers(desktop: deskhand.Desktop, scratch: Path) -> dict[str, Callable[[], int]]:
    """Ways in which others look at the same screen; each returns the size of its PNG."""
    environment = {**os.environ, "DISPLAY": str(desktop.display), "XAUTHORITY": str(desktop.xauthority)}
    file = scratch / "peer.png"
    found: dict[str, Callable[[], int]] = {}

    def run(*argv: str) -> int:
        subprocess.run(argv, env=environment, check=True, capture_output=True)
        return file.stat().st_size

    if shutil.which("scrot"):
        found["scrot (process, file)"] = lambda: run("scrot", "-o", str(file))
    if shutil.which("import"):
        found["ImageMagick import (process, file)"] = lambda: run("import", "-window", "root", str(file))
    os.environ.update({"DISPLAY": environment["DISPLAY"], "XAUTHORITY": environment["XAUTHORITY"]})
    grabber = mss.MSS()

    def grab() -> int:
        shot = grabber.grab(grabber.monitors[0])
        buffer = io.BytesIO()
        Image.frombytes("RGB", shot.size, shot.bgra, "raw", "BGRX").save(buffer, "PNG", compress_level=1)
        return buffer.tell()

    found["mss + Pillow PNG level 1"] = grab
    return found


def looks(desktop: deskhand.Desktop, rounds: int, scratch: Path) -> list[Row]:
    xterm = window_of(desktop, "xterm")
    desktop.activate(xterm)
    rows = [
        Row(n)
        for n in ("look, nothing changed", "look, one line changed", "look, everything changed", "array, whole screen")
    ]
    others = {name: (Row(name), call) for name, call in peers(desktop, scratch).items()}
    cover = Path(scratch / "cover.png")
    Image.effect_noise(SIZE, 20).convert("RGB").save(cover)
    for n in range(rounds):
        desktop.screenshot()
        rows[0].values.append(timed(desktop.screenshot))
        desktop.perform(KeyPress((chr(97 + n % 26),)), settle=False)
        desktop._watch.pause(0.02)
        rows[1].values.append(timed(desktop.screenshot))
        # A fresh frame for the encoder: the pixels are those of the scene, and nothing is cached.
        fresh = deskhand._native.Screen(*SIZE)
        fresh.update((0, 0, *SIZE), bgrx(desktop), 0.0)
        rows[2].values.append(timed(fresh.png))
        rows[2].note = f"{len(fresh.png())} bytes; encoding only"
        rows[3].values.append(timed(desktop._backend.screen.rgb))
        if n < 20:
            for row, call in others.values():
                row.values.append(timed(lambda call=call, row=row: setattr(row, "note", f"{call()} bytes")))
    return [*rows, *(row for row, _ in others.values())]


def bgrx(desktop: deskhand.Desktop) -> bytes:
    width, height, rgb = desktop._backend.screen.rgb(cursor=False)
    pixels = np.frombuffer(rgb, np.uint8).reshape(height, width, 3)
    return np.dstack([pixels[..., ::-1], np.zeros((height, width, 1), np.uint8)]).tobytes()


def wrong(seen: deskhand.Observation, later: deskhand.Screenshot) -> bool:
    """Whether more than a caret differs."""
    different = np.argwhere((seen.array() != later.array()).any(axis=2))
    if different.size == 0:
        return False
    (top, left), (bottom, right) = different.min(axis=0), different.max(axis=0)
    return not (right - left < 3 and bottom - top < 40)


def keys(desktop: deskhand.Desktop, name: str, rounds: int, wrong_rounds: int) -> list[Row]:
    row = Row(f"key press in {name} → settled frame")
    wrongs = 0
    for n in range(rounds):
        key = KeyPress((chr(97 + n % 26),)) if n % 60 else KeyPress(("Return",))
        begun = time.perf_counter()
        seen = desktop.perform(key)
        row.values.append((time.perf_counter() - begun) * 1000)
        if n < wrong_rounds:
            desktop._watch.pause(1.0)
            wrongs += wrong(seen, desktop.screenshot())
    row.note = f"{wrongs} wrong frames in {min(rounds, wrong_rounds)}"
    return [row]


def actions(desktop: deskhand.Desktop, rounds: int, wrong_rounds: int) -> list[Row]:
    rows: list[Row] = []
    xterm, chromium = window_of(desktop, "xterm"), window_of(desktop, "chromium")
    desktop.activate(xterm)
    rows += keys(desktop, "xterm", rounds, wrong_rounds)
    idle = Row("an action without effect (Scroll Lock in xterm)")
    for _ in range(20):
        idle.values.append(timed(lambda: desktop.perform(KeyPress(("Scroll_Lock",)))))
    typing = Row("type 1,000 ASCII characters into xterm (input only)")
    for _ in range(10):
        typing.values.append(
            desktop.perform(Type("the quick brown fox jumps over " * 32 + "12345678")).elapsed.input * 1000
        )
    rows += [idle, typing]
    scroll = Row("wheel notch in Chromium (smooth scroll) → settled frame")
    wrongs = 0
    centre = (chromium.rect.x + 500, chromium.rect.y + 500)
    desktop.perform(LeftClick(centre))
    for n in range(max(10, wrong_rounds // 5)):
        begun = time.perf_counter()
        seen = desktop.perform(Scroll(centre, magnitude=1, direction="down" if n % 8 < 4 else "up"))
        scroll.values.append((time.perf_counter() - begun) * 1000)
        desktop._watch.pause(1.0)
        wrongs += wrong(seen, desktop.screenshot())
    scroll.note = f"{wrongs} wrong frames in {len(scroll.values)}"
    rows.append(scroll)
    desktop.start("mousepad")
    rows += keys(desktop, "mousepad", rounds, wrong_rounds)
    cjk = Row("type 200 distinct CJK characters into mousepad (input only)")
    for n in range(5):
        cjk.values.append(
            desktop.perform(Type("".join(chr(0x4E00 + 200 * n + i) for i in range(200)) + "\n")).elapsed.input * 1000
        )
    rows.append(cjk)
    return rows


def launches(rounds: int) -> list[Row]:
    up, down = Row("local desktop ready"), Row("close a desktop")
    for _ in range(rounds):
        begun = time.perf_counter()
        desktop = deskhand.launch(size=SIZE)
        up.values.append((time.perf_counter() - begun) * 1000)
        down.values.append(timed(desktop.close))
    return [up, down]


def machine() -> str:
    model = next(
        (
            line.split(":")[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    return f"{model}, {os.cpu_count()} cores, {platform.freedesktop_os_release()['PRETTY_NAME']}"


def write(rows: list[Row], json_path: Path) -> None:
    json_path.parent.mkdir(exist_ok=True)
    report = {
        "machine": machine(),
        "size": SIZE,
        "rows": [
            {"name": r.name, "median_ms": r.median, "p95_ms": r.p95, "n": len(r.values), "note": r.note} for r in rows
        ],
    }
    json_path.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    readme = ROOT / "README.md"
    text = readme.read_text()
    if all(marker in text for marker in MARKERS):
        head, _, rest = text.partition(MARKERS[0])
        tail = rest.partition(MARKERS[1])[2]
        lines = [f"{r.name} | {r.median:.2f} | {r.p95:.2f} | {r.note}" for r in rows]
        block = "\n".join(f"| {line} |" for line in ["what | median ms | p95 ms | ", "---|---:|---:|---", *lines])
        note = f"Measured by `make bench` on {report['machine']}, {SIZE[0]}×{SIZE[1]}."
        readme.write_text(f"{head}{MARKERS[0]}\n{note}\n\n{block}\n{MARKERS[1]}{tail}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60, help="repetitions of each row (default 60)")
    parser.add_argument(
        "--wrong",
        type=int,
        default=20,
        help="frames compared with one a second later (default 20; 200 in `make evidence`)",
    )
    parser.add_argument("--json", type=Path, default=ROOT / "evidence" / "bench.json")
    options = parser.parse_args()
    console = Console()
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch, console.status("launching") as status:
        rows = launches(10)
        with scene(Path(scratch)) as desktop:
            status.update("looking")
            rows += looks(desktop, options.rounds, Path(scratch))
            status.update("acting")
            rows += actions(desktop, max(options.rounds, options.wrong), options.wrong)
    table = Table("what", "median ms", "p95 ms", "note", title=machine())
    for row in rows:
        table.add_row(row.name, f"{row.median:.2f}", f"{row.p95:.2f}", row.note)
    console.print(table)
    write(rows, options.json)


if __name__ == "__main__":
    main()
