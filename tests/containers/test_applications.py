"""The `desktop` image: every application comes up, without a question; its browser: C7, C14, F16 and F20.

Part of the evidence: the image has 1.9 GB.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import deskhand
from containers.neighbours import PORT, neighbour
from deskhand import KeyPress, LeftClick, Type
from deskhand.launchers.docker.images import build_image, examine_container
from deskhand.launchers.docker.spec import Limits
from faults.helpers import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deskhand.launchers.docker.engine import Engine

PROGRAMS = {
    "mousepad": "mousepad",
    "featherpad": "featherpad",
    "pcmanfm": "pcmanfm",
    "galculator": "galculator",
    "libreoffice --writer": "libreoffice",
    "libreoffice --calc": "libreoffice",
}


@pytest.fixture(scope="module")
def full() -> Iterator[deskhand.Desktop]:
    with deskhand.launch("docker", image=build_image("desktop"), timeout=60) as desktop:
        yield desktop


@pytest.mark.parametrize("command", PROGRAMS)
def test_a_program_shows_its_window_and_no_question(full: deskhand.Desktop, command: str) -> None:
    before = {window.id for window in full.windows.list()}
    full.start(command, timeout=90)

    def opened() -> list[deskhand.Window]:
        return [window for window in full.windows.list() if window.id not in before]

    # LibreOffice has a window of no class before its own.
    until(lambda: any(PROGRAMS[command] in window.class_name.lower() for window in opened()), 60, "its window")
    full.perform()
    (window,) = opened()
    until(
        lambda: window.pid in {element.pid for element in full.elements()}, 30, "what it shows, of GTK 2 and 3 and Qt"
    )
    assert full.windows.close(window)


def test_the_browser_is_in_its_own_sandbox(full: deskhand.Desktop) -> None:
    program = full.start("chromium", timeout=90)
    assert program.window is not None
    full.perform(KeyPress(["ctrl+l"]), Type("chrome://sandbox\n"))
    x, y = (
        program.window.rect.x + program.window.rect.width // 2,
        program.window.rect.y + program.window.rect.height // 2,
    )
    until(lambda: any("Sandbox" in window.title for window in full.windows.list()), 30, "the page")
    full.perform(LeftClick((x, y)), KeyPress(["ctrl+a"]), KeyPress(["ctrl+c"]))
    page = full.clipboard.read() or ""
    rows = dict(line.split("\t", 1) for line in page.splitlines() if "\t" in line)
    assert rows["Layer 1 Sandbox"].strip() == "Namespace", page
    assert {rows[name].strip() for name in ("PID namespaces", "Network namespaces", "Seccomp-BPF sandbox")} == {
        "Yes"
    }, page
    assert "adequately sandboxed" in page
    # And so says the kernel: a renderer is in a process namespace below the container's, behind a filter of its own.
    script = (
        "for p in /proc/[0-9]*; do if [ $(cat $p/comm) = chromium ] && tr '\\0' ' ' <$p/cmdline | grep -q type=renderer; "
        "then grep -h NSpid $p/status; fi; done"
    )
    nested = full.machine.run(script).stdout.splitlines()
    assert nested
    assert all(len(line.split()) > 2 for line in nested), nested
    full.windows.close(program.window)


def test_there_is_room_for_a_browsers_pictures(full: deskhand.Desktop) -> None:
    size = int(full.machine.run("df -B1 --output=size /dev/shm | tail -n 1").stdout)
    assert size == 1 << 30


HEAVY = """<title>at work</title><body><script>
const kept = [];
function draw() {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1500;
  document.body.append(canvas);
  const pen = canvas.getContext("2d");
  for (let i = 0; i < 50; i++) pen.fillRect(Math.random() * 1500, Math.random() * 1500, 200, 200);
  kept.push(pen.getImageData(0, 0, 1500, 1500));
  if (kept.length < 4) setTimeout(draw, 20); else document.title = "all drawn";
}
onload = draw;
</script>"""
TABS = 30


def test_many_heavy_tabs_with_little_shared_memory(full: deskhand.Desktop) -> None:
    """F16: Debian's Chromium does without /dev/shm; what it is short of is told all the same, and a page that dies is seen."""
    del full  # The image is there.
    limits = Limits(shared_memory=64 << 20, memory=4 << 30, processes=2000)
    with deskhand.launch("docker", image=build_image("desktop"), limits=limits, timeout=60) as desktop:
        assert "64 MB" in str(desktop.status)
        desktop.machine.write_file("/home/user/heavy.html", HEAVY)
        desktop.start(["chromium", *(f"file:///home/user/heavy.html?{n}" for n in range(TABS))], timeout=90)
        # Each tab in turn: one that is not shown does not draw.
        for _ in range(TABS):
            until(lambda: "all drawn" in str([window.title for window in desktop.windows.list()]), 60, "a page")
            desktop.perform(KeyPress(["ctrl+Tab"]))
        renderers = "pgrep -fc 'type=[r]enderer'"
        assert int(desktop.machine.run(renderers).stdout) >= 5
        assert desktop.machine.usage().oom_kills == 0
        before = desktop.screenshot()
        desktop.machine.run("pkill -KILL -f 'type=[r]enderer'")
        until(lambda: (desktop.screenshot().array() != before.array()).mean() > 0.02, 20, "the crash to be seen")


HUNGRY = """<title>hungry</title><script>
const kept = [];
function eat() {
  kept.push(new Uint8Array(64 << 20).fill(1));
  setTimeout(eat, 10);
}
onload = eat;
</script>"""


def test_a_page_that_uses_the_memory_up_is_told() -> None:
    """F20, with a browser: the page goes, nothing else does, and the desktop says why."""
    image, limits = build_image("desktop"), Limits(memory=900 << 20)
    with deskhand.launch("docker", image=image, limits=limits, timeout=60) as desktop:
        desktop.machine.write_file("/home/user/hungry.html", HUNGRY)
        program = desktop.start(["chromium", "file:///home/user/hungry.html"], timeout=90)
        until(lambda: "of its processes were killed" in str(desktop.status), 60, "the page's end to be told")
        assert program.window is not None
        assert program.window.id in {window.id for window in desktop.windows.list()}
        assert desktop.perform(KeyPress(["ctrl+t"])).changed


def test_the_browser_reaches_what_is_listed_and_nothing_else(engine: Engine, image: str) -> None:
    """C7, by a browser: it finds the proxy by itself, and nobody else hears of it."""
    with (
        neighbour(engine, image, "<title>this is listed</title>") as listed,
        neighbour(engine, image, "<title>this is not</title>") as other,
        deskhand.launch(
            "docker",
            image=build_image("desktop"),
            network=[f"listed.test:{PORT}={listed.address}", f"other.test:1={other.address}"],
            timeout=60,
        ) as desktop,
    ):

        def shown(title: str) -> bool:
            return any(title in window.title for window in desktop.windows.list())

        def visit(url: str, title: str) -> None:
            desktop.perform(KeyPress(["ctrl+l"]), Type(f"{url}\n"))
            until(lambda: shown(title), 60, f"{title!r} of {url}")

        program = desktop.start(["chromium", f"http://listed.test:{PORT}/"], timeout=90)
        until(lambda: shown("this is listed"), 60, "the listed page")
        assert listed.visits()
        for number, host in enumerate(("other.test", other.address, listed.address, "unlisted.test")):
            # The proxy's own page, which it gives instead.
            visit(f"http://{host}:{PORT}/{number}", "ERROR: The requested URL could not be retrieved")
            # Where only a tunnel would do, the browser has none to show, and names the host.
            visit(f"https://{host}:{PORT}/{number}", host)
            visit(f"http://listed.test:{PORT}/{number}", "this is listed")
        assert f"CONNECT other.test:{PORT} 403" in engine.api.logs(f"{desktop.name}-proxy").decode()
        assert other.visits() == []
        assert program.window is not None


def test_the_products_own_checks_hold(full: deskhand.Desktop) -> None:
    assert [finding for finding in examine_container(full) if not finding.ok] == []
