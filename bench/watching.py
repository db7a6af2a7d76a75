"""What watching costs: `python -m bench.watching`. Needs Chromium, xterm and playwright.

A real headless browser has the page open. It prints the time from a key to the changed canvas (sent by the program, and
typed on the page; xterm's own time is in it), the processor time of this process at rest, and how much longer the same loop of
an agent takes when it is watched, in turns.
"""

from __future__ import annotations

import resource
import statistics
import time
from typing import TYPE_CHECKING

import click
from playwright.sync_api import sync_playwright

import deskhand
from deskhand import Type, watch

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Browser, Page

    from deskhand.desktop.desktop import Desktop
    from deskhand.watch import Server

_KEYS = 40
_LOOP = 30
_TURNS = 7
_REST = 8.0
_VIEWERS = 10
# Notes when something is drawn on the canvas.
_NOTE = """() => {
  window.drawn = [];
  const draw = CanvasRenderingContext2D.prototype.drawImage;
  CanvasRenderingContext2D.prototype.drawImage = function (...all) {
    window.drawn.push(Date.now());
    return draw.apply(this, all);
  };
}"""
_PRESS = """async () => {
  window.drawn.length = 0;
  const began = Date.now();
  document.querySelector('#keys').dispatchEvent(new KeyboardEvent('keydown', { key: 'y', bubbles: true }));
  while (!window.drawn.length) await new Promise((go) => setTimeout(go, 1));
  return window.drawn[0] - began;
}"""


def _open(browser: Browser, server: Server) -> Page:
    page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
    page.goto(server.link("watch", "control"))
    while page.evaluate("document.querySelector('#picture').width") == 1:
        time.sleep(0.05)
    time.sleep(1)
    return page


def _from_program(desktop: Desktop, page: Page) -> float:
    page.evaluate("window.drawn.length = 0")
    began = time.time() * 1000
    desktop.perform(Type("x"), settle=False)
    while not (drawn := page.evaluate("window.drawn[0] ?? 0")):
        time.sleep(0.002)
    return float(drawn) - began


def _several(measure: Callable[[], float]) -> str:
    measured = []
    for _ in range(_KEYS):
        measured.append(measure())
        # The next one begins at rest.
        time.sleep(0.15)
    return f"{statistics.median(measured):.0f} ms (median of {_KEYS}; the longest {max(measured):.0f} ms)"


def _at_rest() -> str:
    def used() -> float:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return usage.ru_utime + usage.ru_stime

    # What opened a page is over.
    time.sleep(2)
    before, began = used(), time.monotonic()
    time.sleep(_REST)
    return f"{100 * (used() - before) / (time.monotonic() - began):.2f} % of a core"


def _loop(desktop: Desktop) -> float:
    began = time.perf_counter()
    for _ in range(_LOOP):
        desktop.perform(Type("z"))
    return (time.perf_counter() - began) / _LOOP * 1000


def main() -> None:
    """Measure and print."""
    with (
        deskhand.launch(size=(1280, 800)) as desktop,
        watch.serve(desktop) as server,
        sync_playwright() as playwright,
    ):
        desktop.start(["xterm", "-geometry", "100x40+20+20"])
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        rows = [("at rest, no viewer", _at_rest())]
        page = _open(browser, server)
        rows.append(("at rest, one viewer", _at_rest()))
        page.evaluate(_NOTE)
        rows.append(("a key of the program until the canvas", _several(lambda: _from_program(desktop, page))))
        page.click("#take")
        page.click("#take-yes")
        while not page.evaluate("document.querySelector('#hands').checkVisibility()"):
            time.sleep(0.05)
        rows.append(("a key on the page until the canvas", _several(lambda: float(page.evaluate(_PRESS)))))
        page.click("#take")
        page.click("#release-dialog button.primary")
        time.sleep(1)
        _loop(desktop)
        watched, alone = [], []
        for _ in range(_TURNS):
            watched.append(_loop(desktop))
            page.context.close()
            time.sleep(1)
            alone.append(_loop(desktop))
            page = _open(browser, server)
        both = statistics.median(watched), statistics.median(alone)
        told = f"{both[0]:.1f} ms; {both[1]:.1f} ms alone ({100 * (both[0] / both[1] - 1):+.1f} %)"
        rows.append(("a key of an agent, watched", told))
        while len(browser.contexts) < _VIEWERS:
            _open(browser, server)
        rows.append((f"at rest, {_VIEWERS} viewers", _at_rest()))
        browser.close()
    for name, value in rows:
        click.echo(f"{name:40} {value}")


if __name__ == "__main__":
    main()
