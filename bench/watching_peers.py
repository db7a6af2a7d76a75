"""The live page beside its peers: `python -m bench.watching_peers [--out FILE]`. Needs what `tools/peers` installs.

Four ways to watch a desktop in a browser, each alone with its page in the same headless Chromium, in turns: ours, noVNC on
x11vnc, noVNC on Xvnc, and selkies over WebSockets, all with their defaults. A window over the whole screen shows the same
pictures to each. What must never appear here: a number that was not measured in the run that it is reported with.
"""

from __future__ import annotations

import base64
import contextlib
import io
import itertools
import os
import secrets
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np
from PIL import Image
from playwright.sync_api import ProxySettings, sync_playwright

import deskhand
from bench import scenes
from bench.slow_line import SlowLine
from bench.stage import Stage, environment_of
from bench.tables import table
from bench.versions import versions
from bench.vnc import SIZE, xvnc
from deskhand import watch
from deskhand.cli.common import examples, file_to_write
from deskhand.cli.group import run_command
from deskhand.episodes.run.host import describe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray
    from playwright.sync_api import Browser, Page

_PEERS = Path(__file__).parents[1] / ".venv" / "peers"
_CHANGES = 40
_SECONDS = 20.0
_RATE, _FRAMES = 25, 24
_LETTERS, _PAGES = 10.0, 0.5
_LIMIT = 30.0
# When something is drawn on a canvas of the page, or when a picture of its video differs from the one before: selkies' video
# has pictures also where nothing changes. Looked at are the place of the small changes and 1,600 pixels of the film.
_NOTE = """() => {
  window.drawn = [];
  const look = new OffscreenCanvas(40, 80).getContext('2d', { willReadFrequently: true });
  look.imageSmoothingEnabled = false;
  const follow = (video) => {
    let before = null;
    const note = () => {
      look.drawImage(video, 200, 200, 40, 40, 0, 0, 40, 40);
      look.drawImage(video, 960, 540, 960, 540, 0, 40, 40, 40);
      const now = look.getImageData(0, 0, 40, 80).data;
      if (before === null || now.some((value, place) => Math.abs(value - before[place]) > 24)) {
        window.drawn.push(Date.now());
        before = now;
      }
      video.requestVideoFrameCallback(note);
    };
    video.requestVideoFrameCallback(note);
  };
  const followed = new WeakSet();
  setInterval(() => {
    for (const video of document.querySelectorAll('video')) {
      if (!followed.has(video)) follow(video);
      followed.add(video);
    }
  }, 50);
  for (const name of ['drawImage', 'putImageData']) {
    const draw = CanvasRenderingContext2D.prototype[name];
    CanvasRenderingContext2D.prototype[name] = function (...all) {
      if (this.canvas.isConnected) window.drawn.push(Date.now());
      return draw.apply(this, all);
    };
  }
}"""
# What the page shows of the desktop.
_PICTURE = """() => {
  const shown = [...document.querySelectorAll('canvas, video')]
    .find((each) => (each.videoWidth || each.width) === 1920 && each.checkVisibility());
  const copy = Object.assign(document.createElement('canvas'), { width: 1920, height: 1080 });
  copy.getContext('2d').drawImage(shown, 0, 0);
  return copy.toDataURL();
}"""


@dataclass(slots=True)
class _Watcher:
    """A page that shows a desktop, and what was measured with it."""

    title: str
    url: str
    stage: Stage
    desktop: deskhand.Desktop
    waited: list[float] = field(default_factory=list)
    carried: dict[str, list[float]] = field(default_factory=dict)
    shown: list[float] = field(default_factory=list)
    wrong: list[float] = field(default_factory=list)


@contextlib.contextmanager
def _served(program: Path, port: int, *argv: str | Path, env: Mapping[str, str] | None = None) -> Iterator[None]:
    """That program, from when it listens there."""
    if not program.exists():
        raise scenes.Missing(f"{program.name}: run tools/peers")
    process = subprocess.Popen([program, *argv], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        began = time.monotonic()
        while socket.socket().connect_ex(("127.0.0.1", port)):
            if time.monotonic() - began > _LIMIT:
                raise RuntimeError(f"{program.name} did not come up")
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@contextlib.contextmanager
def _websockify(*target: str) -> Iterator[str]:
    """What brings a VNC server to noVNC's page; the page's address."""
    pages = _PEERS / "novnc" / "usr" / "share" / "novnc"
    if not pages.is_dir():
        raise scenes.Missing("noVNC: run tools/peers")
    port = _free_port()
    with _served(_PEERS / "websockify" / "bin" / "websockify", port, "--web", pages, f"127.0.0.1:{port}", *target):
        yield f"http://127.0.0.1:{port}/vnc_lite.html?host=127.0.0.1&port={port}"


@contextlib.contextmanager
def _selkies(desktop: deskhand.Desktop) -> Iterator[str]:
    """The address of selkies' page of that desktop. Without sound, of which there is none."""
    port = _free_port()
    options = (
        "--addr=127.0.0.1",
        f"--port={port}",
        "--mode=websockets",
        "--audio-enabled=false",
        "--enable-basic-auth=false",
    )
    with _served(_PEERS / "selkies" / "bin" / "selkies", port, *options, env=environment_of(desktop)):
        yield f"http://127.0.0.1:{port}/"


@contextlib.contextmanager
def _x11vnc(desktop: deskhand.Desktop) -> Iterator[int]:
    """The port of an x11vnc on that desktop."""
    scenes.need("x11vnc", "x11vnc")
    argv = ["x11vnc", "-localhost", "-no6", "-autoport", str(20_000 + secrets.randbelow(10_000)), "-forever", "-quiet"]
    process = subprocess.Popen(
        argv, env=environment_of(desktop), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None  # noqa: S101 # asked for above
        yield next(int(line[5:]) for line in process.stdout if line.startswith("PORT="))
    finally:
        process.terminate()
        process.wait()


def _wait(page: Page, script: str, what: str) -> None:
    began = time.monotonic()
    while not page.evaluate(script):
        if time.monotonic() - began > _LIMIT:
            raise RuntimeError(f"waited {_LIMIT:g} s for {what}")
        time.sleep(0.002)


def _changes(watcher: _Watcher, page: Page) -> None:
    """From a change that is on the screen until it is drawn."""
    for number in range(_CHANGES):
        time.sleep(0.2)
        page.evaluate("window.drawn.length = 0")
        watcher.stage.show("page" if number % 2 else "inverted", (200, 200, 40, 40))
        began = time.time() * 1000
        _wait(page, "window.drawn.length > 0", "a change")
        watcher.waited.append(page.evaluate("window.drawn[0]") - began)


def _letters(watcher: _Watcher) -> None:
    """Places the size of a letter, one after the other."""
    for number in range(int(_SECONDS * _LETTERS)):
        begun = time.monotonic()
        where = (100 + 8 * (number % 100), 300 + 16 * (number // 100), 8, 16)
        watcher.stage.show("inverted", where)
        time.sleep(max(0.0, 1 / _LETTERS - (time.monotonic() - begun)))


def _pages(watcher: _Watcher) -> None:
    """The whole screen."""
    for number in range(int(_SECONDS * _PAGES)):
        watcher.stage.show("page" if number % 2 else "inverted")
        time.sleep(1 / _PAGES)


def _film(watcher: _Watcher) -> None:
    """A film in a quarter of it."""
    watcher.stage.play([f"frame {number}" for number in range(_FRAMES)], (SIZE[0] // 2, SIZE[1] // 2), _RATE)
    time.sleep(_SECONDS)
    watcher.stage.stop()


_WORK: Mapping[str, Callable[[_Watcher], None]] = {"letters": _letters, "pages": _pages, "film": _film}


def _measure(browser: Browser, watcher: _Watcher) -> None:
    watcher.stage.show("page")
    with SlowLine() as line:
        through = ProxySettings(server=line.url, bypass="<-loopback>")
        page = browser.new_context(viewport={"width": 1920, "height": 1080}, proxy=through).new_page()
        page.add_init_script(f"({_NOTE})()")
        page.goto(watcher.url)
        _wait(page, "window.drawn.length > 0", f"the picture of {watcher.title}")
        time.sleep(3)
        _changes(watcher, page)
        for name, work in _WORK.items():
            watcher.stage.show("page")
            time.sleep(2)
            page.evaluate("window.drawn.length = 0")
            before = line.carried
            work(watcher)
            if name == "film":
                # Several pieces of one picture are drawn at once.
                moments = page.evaluate("window.drawn")
                watcher.shown.append(1 + sum(b - a > 5 for a, b in itertools.pairwise(moments)))
            time.sleep(2)
            watcher.carried.setdefault(name, []).append(line.carried - before)
        watcher.wrong.append(_wrong(watcher.desktop, page))
        page.context.close()


def _wrong(desktop: deskhand.Desktop, page: Page) -> float:
    """The part of the film's pixels that the page shows otherwise than the desktop, at rest."""
    url = page.evaluate(_PICTURE)
    place = (SIZE[0] // 2, SIZE[1] // 2, SIZE[0] // 2, SIZE[1] // 2)
    left, top, width, height = place
    file = Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).convert("RGB")
    shown = np.asarray(file.crop((left, top, left + width, top + height)))
    return float((shown != desktop.screenshot(region=place, cursor=False).array()).any(axis=2).mean())


def _report(watchers: list[_Watcher], rounds: int, load: float) -> str:
    machine = describe()
    lines = []
    for each in watchers:
        waited = sorted(each.waited)
        kilobytes = {name: statistics.median(values) / 1000 for name, values in each.carried.items()}
        lines.append([
            each.title,
            f"{statistics.median(waited):.0f} ms ({waited[int(len(waited) * 0.95)]:.0f} ms)",
            *(f"{kilobytes[name]:,.0f} kB" for name in _WORK),
            f"{sum(kilobytes.values()):,.0f} kB",
            f"{statistics.median(each.shown) / _SECONDS:.1f}",
            f"{100 * statistics.median(each.wrong):.0f} %",
        ])  # fmt: skip
    installed = next((_PEERS / "selkies").glob("lib/*/site-packages/selkies-*.dist-info"))
    selkies = installed.stem.partition("-")[2]
    used = {name: version for name, version in versions().items() if name in {"deskhand", "chromium", "x11vnc"}}
    # Without the digest of its files, which is no revision.
    told = ", ".join(f"{name} {version.partition(' ')[0]}" for name, version in used.items())
    return (
        "# Watching, beside noVNC and selkies\n\n"
        f"`python -m bench.watching_peers`, {datetime.now(UTC):%Y-%m-%d}: {machine['processor']}, {machine['cores']} cores,"
        f" {machine['system']}, load {load:.1f} at the beginning. {told}, noVNC 1.3.0, selkies {selkies}. {SIZE[0]}×{SIZE[1]},"
        f" {rounds} rounds in turns.\n\n"
        + table(
            ["", "a change until it is drawn", *_WORK, "together", "pictures a second of the film", "wrong pixels"],
            "lrrrrrrr",
            lines,
        )
        + "\n\n**What it is.** A change: a square of 40 pixels, from when the X server has it until the page draws; the median"
        f" of {_CHANGES} a round, and in brackets what 95 % do not exceed. Then one minute of the same work, and the bytes that"
        f" went to the browser: {_SECONDS:g} s of letters, {_LETTERS:g} a second; as long whole pages, {_PAGES:g} a second; as"
        f" long a film in a quarter of the screen, {_RATE} pictures a second. Wrong pixels: those of the film's last picture"
        " that the page shows otherwise than the desktop 2 s later. noVNC asks for JPEG of quality 6 of 9. selkies sends H.264,"
        " which the page plays as a video: of that counts when the browser has presented a picture that differs at that place"
        " or in one of 1,600 pixels of the film.\n"
    )


@click.command(epilog=examples("python -m bench.watching_peers --out evidence/watching.md"))
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True, help="How often each is measured.")
@click.option("--out", metavar="FILE", callback=file_to_write, help="Write the page there, too.")
def main(*, rounds: int, out: str | None) -> None:
    """Measure the live page beside noVNC and selkies."""
    load = os.getloadavg()[0]
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="deskhand-bench-")))
        first = scenes.make("page", SIZE, scratch).first
        pictures: dict[str, NDArray[np.uint8]] = {"page": first, "inverted": 255 - first}
        pictures |= scenes.film((SIZE[0] // 2, SIZE[1] // 2), _FRAMES)
        # selkies changes settings of its desktop.
        desktop, third = (stack.enter_context(deskhand.launch(size=SIZE)) for _ in range(2))
        other = stack.enter_context(xvnc(scratch))
        stages = [stack.enter_context(Stage(each, scratch)) for each in (desktop, other.x11, third)]
        for each in stages:
            each.load(pictures)
        server = stack.enter_context(watch.serve(desktop))
        on_xvnc = stack.enter_context(_websockify("--unix-target", other.url.removeprefix("vnc+unix://")))
        watchers = [
            _Watcher("deskhand", "", stages[0], desktop),
            _Watcher("noVNC on x11vnc", "", stages[0], desktop),
            _Watcher("noVNC on Xvnc", on_xvnc, stages[1], other.x11),
            _Watcher("selkies", "", stages[2], third),
        ]
        browser = stack.enter_context(sync_playwright()).chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"]
        )
        for number in range(rounds):
            for watcher in watchers:
                click.echo(f"round {number + 1} of {rounds}: {watcher.title}", err=True)
                with contextlib.ExitStack() as around:
                    if watcher.title == "deskhand":
                        watcher.url = server.link("watch")
                    elif watcher.desktop is third:
                        watcher.url = around.enter_context(_selkies(third))
                    elif watcher.stage is stages[0]:
                        # It looks at the screen for as long as it runs.
                        port = around.enter_context(_x11vnc(desktop))
                        watcher.url = around.enter_context(_websockify(f"127.0.0.1:{port}"))
                    _measure(browser, watcher)
        browser.close()
        text = _report(watchers, rounds, load)
    click.echo(text)
    if out is not None:
        Path(out).write_text(text)


if __name__ == "__main__":
    sys.exit(run_command(main, "python -m bench.watching_peers"))
