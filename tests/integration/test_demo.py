"""The demo, as its users run it: a process of its own that must succeed, show what it did, and leave nothing running."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from PIL import Image

from conftest import need

if TYPE_CHECKING:
    from subprocess import CompletedProcess

_ROOT = Path(__file__).parents[2]
_COMMAND = [sys.executable, str(_ROOT / "demo" / "run.py")]
_NEEDED = {"mousepad": "mousepad", "xterm": "xterm", "chromium": "chromium", "openbox": "openbox", "Xvfb": "xvfb"}
_LIMIT = 90


@pytest.fixture(scope="module", autouse=True)
def _programs() -> None:
    for program, package in _NEEDED.items():
        need(program, package)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[CompletedProcess[str], Path]:
    """One run for all tests of what it leaves behind."""
    folder = tmp_path_factory.mktemp("demo") / "out"
    return subprocess.run([*_COMMAND, str(folder)], check=False, capture_output=True, text=True, timeout=_LIMIT), folder


def test_every_check_held(run: tuple[CompletedProcess[str], Path]) -> None:
    process, _ = run
    assert process.returncode == 0, process.stdout + process.stderr
    assert "FAILED" not in process.stdout
    assert process.stderr == ""


def test_frames_are_whole_and_on_the_page(run: tuple[CompletedProcess[str], Path]) -> None:
    _, folder = run
    frames = sorted(folder.glob("[0-9][0-9]-*.png"))
    assert len(frames) >= 15
    page = (folder / "index.html").read_text(encoding="utf-8")
    for number, frame in enumerate(frames, 1):
        assert frame.name.startswith(f"{number:02}-")
        with Image.open(frame) as image:
            image.load()
            assert image.size == (1280, 800)
        assert f'href="{frame.name}"' in page
    with Image.open(folder / "contact-sheet.png") as sheet:
        sheet.load()
        assert sheet.width > 1280


def test_page_needs_nothing_from_elsewhere(run: tuple[CompletedProcess[str], Path]) -> None:
    _, folder = run
    page = (folder / "index.html").read_text(encoding="utf-8")
    sources = re.findall(r'(?:src|href|srcset|action)="([^"]{0,80})', page) + re.findall(r"url\(([^)]{0,80})", page)
    own = re.compile(r"data:|#step-\d+$|\d\d-[\w-]+\.png$")
    assert [source for source in sources if not own.match(source)] == []
    assert "<script" not in page


def test_interrupt_closes_everything(tmp_path: Path) -> None:
    first = ""
    with subprocess.Popen([*_COMMAND, str(tmp_path / "out")], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if first:
                # Its first step is done, and most are left: a busy machine may read this late.
                process.send_signal(signal.SIGINT)
                break
            first = line
        rest = process.stdout.read()
        assert process.wait(_LIMIT) == 130
    assert "everything is closed" in rest
    display = re.search(r"desktop (:\d+) is up", first)
    assert display is not None
    assert _clients(display[1]) == []


def _clients(display: str) -> list[str]:
    """Command lines of the processes that have this display in their environment, or are its server."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environment = (process / "environ").read_bytes().split(b"\0")
            command = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if f"DISPLAY={display}".encode() in environment or ("Xvfb" in command[0] and display in command):
            found.append(" ".join(command))
    return found
