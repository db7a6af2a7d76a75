"""Takes pictures of the live page, of playbacks and of a report, and looks for what does not fit or is hard to read.

`PYTHONPATH=.:tests python tools/watch_pictures.py OUT` writes them to OUT, and says what does not fit and which texts have too
little contrast. `--docs` writes those of the documentation too. Look at them all when a page has changed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image

import deskhand
from deskhand import ClassPolicy, DeskhandError, KeyPress, LeftClick, Questions, Type, watch
from deskhand.desktop.access import bare
from deskhand.episodes.report.page import write_report
from deskhand.episodes.report.player import write_playback
from watch.browser import Viewer, chromium
from watch.pictures import DROP, PASTE, file_of, picture, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Page

    from deskhand import Desktop
    from deskhand.episodes.play.episode import Episode
    from deskhand.watch import Server

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs/pictures"
DOCUMENTED = {
    "live-light": "watching.png",
    "phone-question-dark": "watching-phone.png",
    "comparison-light": "playback.png",
}
"""The pictures that the documentation shows."""

SIZES: dict[str, dict[str, Any]] = {
    "": {"viewport": {"width": 1280, "height": 720}},
    "phone-": {
        "viewport": {"width": 390, "height": 780}, "has_touch": True, "is_mobile": True, "device_scale_factor": 2,
    },
}  # fmt: skip
"""The windows, by what the names of their pictures begin with."""

TASK, EPISODE = "text-write-note", "text-write-note.s0.r0"
NOTE = "Dear Ada,\nthe order has come, and the bill is in the folder.\n"

# What sticks out of the window, or of the part of the page that it is in.
_WIDER = """(width) => {
  const found = new Set();
  const outer = document.documentElement.scrollWidth;
  if (outer > width) found.add(`the page by ${outer - width} pixels`);
  for (const element of document.querySelectorAll('body *')) {
    const part = element.parentElement.closest('li, a, article, details, section, header, aside, nav, dialog');
    if (!part || element.closest('svg, template, canvas') || !element.checkVisibility()) continue;
    let clipped = false;
    for (let at = element.parentElement; at && at !== part.parentElement; at = at.parentElement)
      clipped ||= getComputedStyle(at).overflowX !== 'visible';
    const far = element.getBoundingClientRect().right - part.getBoundingClientRect().right;
    if (!clipped && far > 1) found.add(`${element.tagName.toLowerCase()}.${element.className} by ${Math.round(far)} pixels`);
  }
  return [...found];
}"""
_DRAWN = """[...document.querySelectorAll('canvas.thumbnail')].every((each) =>
  each.getContext('2d').getImageData(0, 0, each.width, each.height).data.some((value, at) => at % 4 < 3 && value))"""
# The contrast of WCAG 2.2: of each shown text with the first ground behind it that is not transparent.
_FAINT = r"""() => {
  const parsed = (text) => (text.match(/[\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
  const over = ([r, g, b, a = 1], [x, y, z]) => [r * a + x * (1 - a), g * a + y * (1 - a), b * a + z * (1 - a)];
  const ground = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      const colour = parsed(getComputedStyle(at).backgroundColor);
      layers.push(colour);
      if ((colour[3] ?? 1) === 1) break;
    }
    const page = matchMedia('(prefers-color-scheme: dark)').matches ? [18, 18, 18] : [255, 255, 255];
    return layers.reduceRight((below, layer) => over(layer, below), page);
  };
  const found = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim(), element = walker.currentNode.parentElement;
    if (!text || element.closest('svg, script, template, [disabled]') || !element.checkVisibility()) continue;
    const below = ground(element), style = getComputedStyle(element);
    const [a, b] = [light(over(parsed(style.color), below)), light(below)];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) found.add(`${contrast.toFixed(2)} ${text.slice(0, 40)}`);
  }
  return [...found];
}"""


class Album:
    """Where the pictures go.

    Attributes:
        wrong: What was found wrong in them.
    """

    def __init__(self, folder: Path, browser: Browser) -> None:
        self.wrong: list[str] = []
        self._folder = folder
        self._browser = browser

    @contextlib.contextmanager
    def opened(self, link: str, scheme: str, size: str) -> Iterator[Viewer]:
        """A page in a window of this size, light or dark."""
        viewer = Viewer(self._browser, link, color_scheme=scheme, reduced_motion="reduce", **SIZES[size])
        try:
            yield viewer
        finally:
            viewer.close()
            self.wrong += viewer.errors

    def take(self, page: Page, name: str) -> None:
        """Take a picture of a page as it is."""
        width = (page.viewport_size or {"width": 0})["width"]
        self.wrong += [f"{name}: too wide: {each}" for each in page.evaluate(_WIDER, width)]
        self.wrong += [f"{name}: contrast {each}" for each in page.evaluate(_FAINT)]
        path = self._folder / f"{name}.png"
        data = page.screenshot()
        path.write_bytes(data)
        print(f"{path.name} ({len(data) / 1000:.0f} kB)")


def careless(episode: Episode) -> None:
    """An agent that types the note and does not save it, to be compared with one that does."""
    text = "".join(f"{line.strip()}\n" for line in episode.instruction.splitlines()[1:] if line)
    episode.note("The text is on the screen, so the task is done.")
    episode.desktop.perform(Type(text))


def live(album: Album, home: Path) -> None:
    """The page of one desktop: at work, a question, a request for help, and a person in control."""
    questions = Questions(timeout=600)
    policy = ClassPolicy(deny=["clipboard_read"])
    with (
        deskhand.launch(
            size=(1024, 700), env={"HOME": str(home)}, policy=policy, ask=questions, name="invoices"
        ) as desktop,
        watch.serve(desktop, questions=questions) as server,
    ):
        bare(desktop).start("mousepad")
        desktop.perform(Type(NOTE))
        for scheme in ("light", "dark"):
            for size in SIZES:
                one_desktop(album, desktop, server, scheme=scheme, size=size)


def asks(desktop: Desktop) -> threading.Thread:
    """The agent wants to run a command, which the policy asks about."""

    def run() -> None:
        with contextlib.suppress(DeskhandError):
            desktop.host.run(
                "curl -sS --data @bill.pdf https://shop.example/upload", env={"TOKEN_FILE": "/srv/shop.key"}
            )

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def point(viewer: Viewer, desktop: Desktop) -> None:
    """Rest the pointer on the menu that opens files."""
    place = bare(desktop).find("menuitem", "File", exact=True).element().point
    viewer.page.click("#elements")
    if place is not None:
        viewer.page.mouse.move(*viewer.at(*place))
    viewer.wait_shown("#pointed")


def at_work(viewer: Viewer, desktop: Desktop, take: Callable[[str], None]) -> None:
    """The agent acts, an element is pointed to, and a command is denied."""
    desktop.find("menuitem", "Edit").click()
    desktop.perform(KeyPress(["Escape"]))
    with contextlib.suppress(DeskhandError):
        desktop.perform(LeftClick((5000, 5000)))
    viewer.wait("document.querySelectorAll('#operations .failed').length > 0")
    viewer.page.locator("#operations li", has_text="left mouse click e").first.click()
    take("live")
    point(viewer, desktop)
    take("elements")
    viewer.page.click("#elements")
    thread = asks(desktop)
    viewer.wait_shown(".question")
    take("question")
    viewer.page.locator(".question button", has_text="Deny").click()
    thread.join()
    viewer.wait_hidden(".question")
    viewer.wait_shown("#operations .denied")
    take("denied")


def exchange(viewer: Viewer, take: Callable[[str], None]) -> None:
    """A file that the policy asks about, and a picture that goes to the desktop's clipboard and comes back."""
    viewer.page.evaluate(DROP, [[text_of(bytes(1 << 16)), "Quarterly figures of all branches, 2026 (final).ods"]])
    viewer.wait_shown(".question")
    take("sending")
    viewer.page.locator(".question button", has_text="Deny").click()
    viewer.wait_hidden("#transfer")
    viewer.page.evaluate(PASTE, [text_of(file_of(picture(420, 240))), "image.png", "image/png", ""])
    viewer.wait_hidden("#transfer")
    viewer.page.click("#copy")
    viewer.wait_shown("#picture-dialog")
    take("picture")
    viewer.page.click("#picture-dialog button[value=close]")


def one_desktop(album: Album, desktop: Desktop, server: Server, *, scheme: str, size: str) -> None:
    """All scenes of one desktop, in one window."""
    link = server.link("watch", "control", "approve", name="Ada")
    with album.opened(link, scheme, size) as viewer:

        def take(name: str) -> None:
            album.take(viewer.page, f"{size}{name}-{scheme}")

        viewer.wait_live(desktop)
        at_work(viewer, desktop, take)
        desktop.hand_over("Please sign in to the shop: I have no password for it.")
        viewer.wait_shown(".request")
        take("request")
        viewer.page.click("#take")
        viewer.wait_shown("#take-dialog")
        take("take-dialog")
        viewer.page.check("#take-private")
        viewer.page.click("#take-yes")
        viewer.wait_shown("#hands")
        take("control")
        exchange(viewer, take)
        with album.opened(server.link("watch", name="Grace"), scheme, size) as other:
            other.wait_shown("#curtain")
            album.take(other.page, f"{size}private-{scheme}")
        viewer.page.click("#take")
        viewer.wait_shown("#release-dialog")
        take("hand-back")
        viewer.page.fill("#note", "Signed in; go on with the form.")
        viewer.page.click("#release-dialog button.primary")
        viewer.wait_hidden("#hands")
        viewer.page.click("#pause")
        viewer.wait_shown("#step")
        viewer.page.click("#stop")
        viewer.wait_shown("#stop-dialog")
        take("stop")
        viewer.page.click("#stop-dialog button[value=cancel]")
        viewer.page.click("#pause")
        viewer.wait_hidden("#step")
    with album.opened(link, scheme, size) as late:
        late.wait_text("#gate-text", "was used already")
        album.take(late.page, f"{size}gate-{scheme}")
        late.errors.clear()


def grid(album: Album, home: Path) -> None:
    """Several desktops."""
    names = (
        "invoices",
        "travel",
        "support",
        "a-name-that-is-too-long-for-the-tile-that-it-is-shown-in",
        "mail",
        "shop",
    )
    with contextlib.ExitStack() as held:
        desktops = {
            name: held.enter_context(deskhand.launch(size=(800, 500), env={"HOME": str(home)}, elements=False))
            for name in names
        }
        server = held.enter_context(watch.serve(desktops))
        for number, desktop in enumerate(desktops.values()):
            desktop.start(["xterm", "-geometry", f"60x12+{40 * number}+{30 * number}", "-e", "sleep", "6000"])
        desktops["travel"].control.pause("Ada")
        desktops["support"].hand_over("Please sign in.")
        held.enter_context(desktops["mail"].control.take("Grace"))
        desktops["shop"].stop("enough")
        for scheme in ("light", "dark"):
            for size in SIZES:
                with album.opened(server.link("watch", name="Ada"), scheme, size) as viewer:
                    viewer.wait(f"document.querySelectorAll('.tile').length === {len(names)}")
                    viewer.wait(_DRAWN)
                    album.take(viewer.page, f"{size}grid-{scheme}")


def playbacks(album: Album, folder: Path) -> None:
    """An episode that is played, beside another run's, and the report that links to it."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests"), os.environ["PYTHONPATH"]]),
    }
    for name, agent in (("right", "oracle"), ("careless", "tools.watch_pictures:careless")):
        argv = [sys.executable, "-m", "deskhand", "run", TASK, "--agent", agent, "--out", str(folder / name)]
        subprocess.run(argv, check=True, env=environment, stdout=subprocess.DEVNULL)
    alone = write_playback(folder / "right", EPISODE, folder / "alone.html")
    both = write_playback(folder / "right", EPISODE, folder / "both.html", beside=folder / "careless")
    report = write_report(folder / "right", other=folder / "careless", playback=True)
    for scheme in ("light", "dark"):
        for size in SIZES:
            for name, link in (
                ("playback", f"{alone.as_uri()}#6"),
                ("comparison", f"{both.as_uri()}#4"),
                ("report", report.as_uri()),
                ("report-episode", f"{report.as_uri()}#{EPISODE}"),
            ):
                with album.opened(link, scheme, size) as viewer:
                    viewer.wait("[...document.images].every((each) => each.complete)")
                    album.take(viewer.page, f"{size}{name}-{scheme}")


def for_docs(folder: Path) -> None:
    """Write the pictures of the documentation: those of a phone are as large as it shows them."""
    for name, target in DOCUMENTED.items():
        with Image.open(folder / f"{name}.png") as image:
            picture = image.convert("RGB")
        if name.startswith("phone-"):
            picture = picture.resize((picture.width // 2, picture.height // 2), Image.Resampling.LANCZOS)
        picture.save(FOLDER / target, optimize=True)
        print(f"{target} ({(FOLDER / target).stat().st_size / 1000:.0f} kB)")


SCENES: dict[str, Callable[[Album, Path], None]] = {"live": live, "grid": grid, "playbacks": playbacks}


def main() -> int:
    """Take them; returns 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scene", choices=list(SCENES), action="append", help="only these")
    parser.add_argument("--docs", action="store_true", help="write those of the documentation too")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    with chromium() as browser:
        album = Album(given.folder, browser)
        for name in given.scene or SCENES:
            with tempfile.TemporaryDirectory() as home:
                SCENES[name](album, Path(home))
    if given.docs:
        for_docs(given.folder)
    print("\n".join(album.wrong) or "everything fits, and every text has contrast")
    return bool(album.wrong)


if __name__ == "__main__":
    sys.exit(main())
