"""A real browser that looks at the page: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image
from playwright.sync_api import Error, sync_playwright

from deskhand.desktop.access import bare
from faults.helpers import need, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page

    from deskhand.desktop.desktop import Desktop

_PIXELS = """() => {
  const canvas = document.querySelector('#picture');
  const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  let text = '';
  for (let at = 0; at < data.length; at += 32768) text += String.fromCharCode.apply(null, data.subarray(at, at + 32768));
  return [canvas.width, canvas.height, btoa(text)];
}"""
_HASH = """async () => {
  const canvas = document.querySelector('#picture');
  const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', data));
  return `${canvas.width}x${canvas.height} ${[...hash].map(byte => byte.toString(16).padStart(2, '0')).join('')}`;
}"""
_LIMIT = 20.0
_INTERRUPTED = "net::ERR_NETWORK_CHANGED"
_MOST_LOADS = 20


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """A headless Chromium. It is no program of any desktop: it has no display."""
    environment: dict[str, str | float | bool] = {name: it for name, it in os.environ.items() if name != "DISPLAY"}
    arguments = ["--no-sandbox", "--disable-dev-shm-usage"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=need("chromium", "chromium"), args=arguments, env=environment
        )
        try:
            yield browser
        finally:
            browser.close()


# A note is there for five seconds, and on a busy machine that may be between two looks.
_KEEP_TOASTS = """
addEventListener("DOMContentLoaded", () => {
  window.toasts = [];
  const place = document.getElementById("toasts");
  const keep = (changes) => {
    for (const { addedNodes } of changes) for (const node of addedNodes) window.toasts.push(node.textContent);
  };
  if (place) new MutationObserver(keep).observe(place, { childList: true });
});
"""


class Viewer:
    """A page that somebody has open, with what went wrong in it."""

    def __init__(self, browser: Browser, link: str, **options: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1000, "height": 640}, **options})
        self.errors: list[str] = []
        self._interruptions = 0
        self.page: Page = self._new_page()
        self.open(link)

    def _new_page(self) -> Page:
        page = self.context.new_page()
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._console)
        page.on("dialog", self._dialog)
        page.add_init_script(_KEEP_TOASTS)
        return page

    def open_beside(self, link: str) -> Page:
        """Open a link in another page, which is looked at from then on; returns the one before."""
        former, self.page = self.page, self._new_page()
        self.open(link)
        return former

    def open(self, link: str) -> None:
        self._load(lambda: self.page.goto(link))

    def open_instead(self, link: str) -> None:
        """Open a link in the tab of a page of the same server, which then loads itself again."""

        def load() -> None:
            with self.page.expect_event("load"):
                self.page.goto(link)

        self._load(load)

    def reload(self) -> None:
        self._load(self.page.reload)

    def _load(self, load: Callable[[], object]) -> None:
        """Load the page, and again each time that a network interface comes or goes meanwhile.

        Those of containers of other tests do, and Chromium then gives up what it loads.
        """
        for _ in range(_MOST_LOADS):
            before = self._interruptions
            try:
                load()
            except Error as failed:
                if _INTERRUPTED not in failed.message:
                    raise
                self._interruptions += 1
            if self._interruptions == before:
                return
            load = self.page.reload
        pytest.fail(f"the network changed during each of {_MOST_LOADS} times that {self.page.url} was loaded")

    def _console(self, told: ConsoleMessage) -> None:
        if _INTERRUPTED in told.text:
            self._interruptions += 1
        elif told.type == "error":
            self.errors.append(told.text)

    def _dialog(self, dialog: Dialog) -> None:
        self.errors.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    def close(self) -> None:
        self.context.close()

    def wait(self, script: str, what: str = "") -> None:
        """Wait for a script to be true. Playwright's own waiting evaluates text in the page, which its policy forbids."""
        self._until(lambda: bool(self.page.evaluate(script)), what or script)

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        try:
            until(condition, _LIMIT, what)
        except pytest.fail.Exception as failed:
            shown = " | ".join(self.page.inner_text("body").split("\n"))
            pytest.fail(f"{failed.msg}: the page shows {shown!r} at {self.page.url}, and its errors are {self.errors}")

    def shown(self, selector: str) -> bool:
        return bool(self.page.evaluate(f"!!document.querySelector('{selector}')?.checkVisibility()"))

    def wait_shown(self, selector: str) -> None:
        self._until(lambda: self.shown(selector), f"{selector} to be shown")

    def wait_hidden(self, selector: str) -> None:
        self._until(lambda: not self.shown(selector), f"{selector} to be hidden")

    def text(self, selector: str) -> str:
        return str(self.page.evaluate(f"document.querySelector('{selector}')?.textContent ?? ''"))

    def wait_text(self, selector: str, text: str) -> None:
        self._until(lambda: text in self.text(selector), f"{text!r} in {selector}")

    @property
    def toasts(self) -> str:
        """What the page has told for some seconds since it was loaded, also what is gone."""
        return " | ".join(self.page.evaluate("window.toasts ?? []"))

    def wait_toast(self, text: str) -> None:
        self._until(lambda: text in self.toasts, f"{text!r} to be told")

    def wait_live(self, desktop: Desktop) -> None:
        """Wait for the picture."""
        self.wait(f"document.querySelector('#picture').width === {desktop.size.width}")
        self.wait_same(desktop)

    def picture(self) -> Image.Image:
        """What the canvas shows."""
        width, height, data = self.page.evaluate(_PIXELS)
        return Image.frombytes("RGBA", (width, height), base64.b64decode(data)).convert("RGB")

    def wait_same(self, desktop: Desktop) -> None:
        """Wait until each pixel of the canvas is the desktop's."""

        def same() -> bool:
            shot = bare(desktop).screenshot(format="raw")
            pixels = Image.frombytes("RGB", shot.size, shot.data).convert("RGBA").tobytes()
            wanted = f"{shot.size[0]}x{shot.size[1]} {hashlib.sha256(pixels).hexdigest()}"
            return bool(self.page.evaluate(_HASH) == wanted)

        self._until(same, "the page's pixels to be the desktop's")

    def take(self, *, private: bool = False) -> None:
        self.page.click("#take")
        if private:
            self.page.check("#take-private")
        self.page.click("#take-yes")
        self.wait_shown("#hands")

    def hand_back(self, note: str = "") -> None:
        self.page.click("#take")
        self.page.fill("#note", note)
        self.page.click("#release-dialog button.primary")
        self.wait_hidden("#hands")

    def at(self, x: int, y: int) -> tuple[float, float]:
        """Where a pixel of the desktop is on the page: its middle."""
        # What has just been shown moves the picture in the next frame.
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        box = self.page.evaluate(
            "(() => { const c = document.querySelector('#picture'), b = c.getBoundingClientRect();"
            " return [b.left, b.top, b.width / c.width, b.height / c.height]; })()"
        )
        return box[0] + (x + 0.5) * box[2], box[1] + (y + 0.5) * box[3]
