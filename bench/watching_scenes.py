"""What watching costs where much changes: `python -m bench.watching_scenes [video] [line] [grid]`.

It needs Chromium and playwright.

- `video`: a film in a quarter of a screen of 1280x800, 25 pictures a second, with the page open in a headless browser: the
  pictures that the page draws, their bytes, and the processor time of this process (the server's) and of the browser's.
- `line`: the same film over a line of 500 kB/s (4 Mbit/s), with JPEG and without: the pictures that the page draws, and the
  time from the film's end until each pixel of the page is the desktop's.
- `grid`: 100 desktops as thumbnails: the time until all of them are there, until one that is opened is drawn, and until the
  grid is back; how long a change takes; the processor time at rest, and while ten of them change at a time.

Both are measured on the machine as it is: look at its load. Nothing is written anywhere.
"""

from __future__ import annotations

import hashlib
import os
import resource
import statistics
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import click
from playwright.sync_api import ProxySettings, sync_playwright

import deskhand
from bench import scenes
from bench.slow_line import SlowLine
from bench.stage import Stage
from deskhand import Move, watch
from deskhand.watch.line import Line

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Browser, Page

    from deskhand.watch import Server

_SIZE = (1280, 800)
_RATE, _FRAMES = 25, 24
_SECONDS = 10.0
_LINE = 500_000
_MANY = 100
_AT_A_TIME = 10
_CHANGES = 20
_LIMIT = 120.0
_TICKS = os.sysconf("SC_CLK_TCK")
# Counts what comes: each piece of an update is decoded once.
_COUNT = """() => {
  window.pieces = 0; window.bytes = 0; window.slowest = 0;
  const decode = createImageBitmap;
  window.createImageBitmap = (file, ...rest) => {
    window.pieces += 1;
    window.bytes += file.size;
    return decode(file, ...rest);
  };
  let before = performance.now();
  const frame = (now) => {
    window.slowest = Math.max(window.slowest, now - before);
    before = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}"""
# Of the pixels that the page shows, without their fourth byte.
_HASH = """async () => {
  const canvas = document.querySelector('#picture');
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  const rgb = new Uint8Array(data.length / 4 * 3);
  for (let from = 0, to = 0; from < data.length; from += 4, to += 3) rgb.set(data.subarray(from, from + 3), to);
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', rgb));
  return [...hash].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}"""
_RESET = "() => { window.pieces = 0; window.bytes = 0; window.slowest = 0; window.began = performance.now(); }"
_COUNTED = "[window.pieces, window.bytes, window.slowest, (performance.now() - window.began) / 1000]"
_THUMBNAILS = "[...document.querySelectorAll('#tiles canvas')].filter((canvas) => canvas.width === 360).length"


def _used() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _used_by_browser() -> float:
    """Of all processes of the browser, which are descendants of this one."""
    parents: dict[int, int] = {}
    used: dict[int, float] = {}
    chromium = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue
        fields = rest.split()
        pid = int(path.parent.name)
        parents[pid] = int(fields[1])
        used[pid] = (int(fields[11]) + int(fields[12])) / _TICKS
        if name.startswith("chrom"):
            chromium.add(pid)

    def is_ours(pid: int) -> bool:
        while pid > 1:
            if pid == os.getpid():
                return True
            pid = parents.get(pid, 0)
        return False

    return sum(used[pid] for pid in chromium if is_ours(pid))


def _percent(used: float, seconds: float) -> str:
    return f"{100 * used / seconds:.1f} % of a core"


def _wait(page: Page, script: str, what: str) -> float:
    """Wait for a script to be true; how long that took, in milliseconds."""
    began = time.perf_counter()
    while not page.evaluate(script):
        if time.perf_counter() - began > _LIMIT:
            raise RuntimeError(f"waited {_LIMIT:g} s for {what}")
        time.sleep(0.005)
    return (time.perf_counter() - began) * 1000


def _open(browser: Browser, server: Server, line: SlowLine | None = None) -> Page:
    # Browsers use no proxy for this machine unless they are told to.
    through = None if line is None else ProxySettings(server=line.url, bypass="<-loopback>")
    page = browser.new_context(viewport={"width": 1600, "height": 900}, proxy=through).new_page()
    page.goto(server.link("watch"))
    return page


def _say(name: str, value: str) -> None:
    click.echo(f"{name:52} {value}")


def video(browser: Browser) -> None:
    """Measure a film that somebody watches."""
    width, height = _SIZE[0] // 2, _SIZE[1] // 2
    frames = scenes.film((width, height), _FRAMES)
    with (
        tempfile.TemporaryDirectory() as scratch,
        deskhand.launch(size=_SIZE) as desktop,
        watch.serve(desktop) as server,
        Stage(desktop, Path(scratch)) as stage,
    ):
        stage.load(frames)
        page = _open(browser, server)
        _wait(page, f"document.querySelector('#picture').width === {_SIZE[0]}", "the picture")
        page.evaluate(_COUNT)
        stage.play(list(frames), (width, height), _RATE)
        time.sleep(2)
        page.evaluate(_RESET)
        own, others, began = _used(), _used_by_browser(), time.perf_counter()
        time.sleep(_SECONDS)
        seconds, own, others = time.perf_counter() - began, _used() - own, _used_by_browser() - others
        # Playwright has got each message of the socket too, and reads them all first.
        count, size, slowest, counted = page.evaluate(_COUNTED)
        _say("video: pictures that the page draws", f"{count / counted:.1f} a second (of {_RATE})")
        _say("video: bytes", f"{size / counted / 1e6:.1f} MB/s ({size / max(1, count) / 1000:.0f} kB each)")
        _say("video: processor time of the server", _percent(own, seconds))
        _say("video: processor time of the browser", _percent(others, seconds))
        _say("video: longest frame of the page", f"{slowest:.0f} ms")
        stage.stop()
        page.context.close()


def line(browser: Browser) -> None:
    """Measure the same film on a slow line."""
    width, height = _SIZE[0] // 2, _SIZE[1] // 2
    frames = scenes.film((width, height), _FRAMES)
    for name in ("with JPEG", "PNG only"):
        with ExitStack() as stack:
            if name == "PNG only":
                stack.enter_context(mock.patch.object(Line, "is_slow_for", return_value=False))
            with (
                SlowLine(_LINE) as thin,
                tempfile.TemporaryDirectory() as scratch,
                deskhand.launch(size=_SIZE) as desktop,
                watch.serve(desktop) as server,
                Stage(desktop, Path(scratch)) as stage,
            ):
                stage.load(frames)
                page = _open(browser, server, thin)
                _wait(page, f"document.querySelector('#picture').width === {_SIZE[0]}", "the picture")
                page.evaluate(_COUNT)
                stage.play(list(frames), (width, height), _RATE)
                time.sleep(2)
                page.evaluate(_RESET)
                time.sleep(_SECONDS)
                count, size, _, counted = page.evaluate(_COUNTED)
                stage.stop()
                began = time.perf_counter()
                wanted = hashlib.sha256(desktop.screenshot(format="raw").data).hexdigest()
                while page.evaluate(_HASH) != wanted:
                    if time.perf_counter() - began > _LIMIT:
                        raise RuntimeError(f"waited {_LIMIT:g} s for the last picture")
                _say(f"line, {name}: pieces that the page draws", f"{count / counted:.1f} a second (of {_RATE})")
                _say(f"line, {name}: bytes", f"{size / counted / 1000:.0f} kB/s")
                _say(f"line, {name}: from the end until it is sharp", f"{1000 * (time.perf_counter() - began):.0f} ms")
                page.context.close()


def grid(browser: Browser, many: int) -> None:
    """Measure a grid of desktops."""
    with ExitStack() as stack:
        desktops = {
            f"desktop {number}": stack.enter_context(deskhand.launch(size=_SIZE, window_manager=None))
            for number in range(many)
        }
        own, began = _used(), time.perf_counter()
        time.sleep(_SECONDS)
        _say(f"grid: {many} desktops, nobody looks", _percent(_used() - own, time.perf_counter() - began))
        server = stack.enter_context(watch.serve(desktops))
        page = _open(browser, server)
        _say("grid: until all thumbnails are there", f"{_wait(page, f'{_THUMBNAILS} === {many}', 'thumbnails'):.0f} ms")
        page.evaluate(_COUNT)
        for name, moves in (("at rest", 0), (f"{_AT_A_TIME} change at a time", _AT_A_TIME)):
            time.sleep(2)
            page.evaluate(_RESET)
            own, others, began = _used(), _used_by_browser(), time.perf_counter()
            turns = 0
            while (left := began + _SECONDS - time.perf_counter()) > 0:
                for number, desktop in enumerate(list(desktops.values())[:moves]):
                    desktop.perform(Move((10 + 7 * turns, 10 + number)), settle=False)
                turns += 1
                time.sleep(min(left, 1.0))
            seconds, own, others = time.perf_counter() - began, _used() - own, _used_by_browser() - others
            count, size, slowest, counted = page.evaluate(_COUNTED)
            _say(f"grid: {name}, the server (the agents too)", _percent(own, seconds))
            _say(f"grid: {name}, the browser", _percent(others, seconds))
            _say(f"grid: {name}, thumbnails", f"{count / counted:.1f} a second, {size / counted / 1000:.0f} kB/s")
            _say(f"grid: {name}, longest frame of the page", f"{slowest:.0f} ms")
        last = list(desktops.values())[-1]
        waited = []
        for number in range(_CHANGES):
            page.evaluate("() => { window.pieces = 0; }")
            last.perform(Move((20 + 9 * number, 300)), settle=False)
            waited.append(_wait(page, "window.pieces > 0", "a thumbnail"))
        _say("grid: a change until its thumbnail", f"{statistics.median(waited):.0f} ms (median of {_CHANGES})")
        page.evaluate("document.querySelector('#tiles a').click()")
        script = f"document.querySelector('#picture').width === {_SIZE[0]}"
        _say("grid: open one", f"{_wait(page, script, 'the picture'):.0f} ms")
        page.evaluate("document.querySelector('#back').click()")
        script = "document.querySelector('#grid').checkVisibility() && window.pieces > 90"
        page.evaluate("() => { window.pieces = 0; }")
        _say("grid: and back", f"{_wait(page, script.replace('90', str(many * 9 // 10)), 'the grid'):.0f} ms")
        page.context.close()


@click.command()
@click.argument("parts", nargs=-1, type=click.Choice(["video", "line", "grid"]))
@click.option("--desktops", default=_MANY, show_default=True, help="How many the grid has.")
def main(parts: tuple[str, ...], desktops: int) -> None:
    """Measure and print."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        _say("load of the machine before", " ".join(f"{load:.1f}" for load in os.getloadavg()))
        measured: dict[str, Callable[[Browser], None]] = {
            "video": video,
            "line": line,
            "grid": partial(grid, many=desktops),
        }
        for part in parts or measured:
            measured[part](browser)
        browser.close()


if __name__ == "__main__":
    main()
