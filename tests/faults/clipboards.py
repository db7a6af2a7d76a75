"""Pastes beside clipboard managers, whatever was copied before: is the text right, and is what was copied there again?

    PYTHONPATH=tests .venv/bin/python -m faults.clipboards

does each 20 times and writes evidence/clipboard.md. What a run does 3 times is in `test_paste.py`.
"""

from __future__ import annotations

import contextlib
import hashlib
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import deskhand
from deskhand import Type
from faults.helpers import ROOT, need, until, x_environment
from integration.apps import Bench

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from integration.apps import App

# The command of each, and the package that has it.
MANAGERS: Mapping[str, tuple[list[str], str] | None] = {
    "none": None,
    "autocutsel": (["autocutsel"], "autocutsel"),
    "parcellite": (["parcellite", "--no-icon"], "parcellite"),
    "clipman": (["xfce4-clipman"], "xfce4-clipman"),
    "copyq": (["copyq"], "copyq"),
}
COPIED = ("text", "image", "files")
FIELDS = ("mousepad", "chromium")
# A manager that looks at the clipboard now and then has done so after that.
LATER = 0.8
# What says something about the clipboard, and ids of what ends with its owner: Qt offers a picture as such too.
_NO_CONTENT = {"TARGETS", "TIMESTAMP", "MULTIPLE", "SAVE_TARGETS", "PIXMAP", "BITMAP"}

# Copies as a word processor, a painter and a file manager do, something else each time.
_COPIER = """
import sys
from PyQt5.QtCore import QByteArray, QMimeData, QSocketNotifier, QUrl
from PyQt5.QtGui import QColor, QImage, QPainter
from PyQt5.QtWidgets import QApplication
application = QApplication(["copier"])
def copy():
    line = sys.stdin.readline().split()
    if not line:
        application.quit()
        return
    what, number = line
    data = QMimeData()
    if what == "text":
        data.setText(f"copied {number} ß 漢字")
        data.setHtml(f"<b>copied</b> {number} ß 漢字")
    elif what == "image":
        image = QImage(300, 200, QImage.Format_RGB32)
        image.fill(QColor.fromHsv(int(number) * 17 % 360, 200, 200))
        painter = QPainter(image)
        painter.drawEllipse(10, 10, 280, 180)
        painter.end()
        data.setImageData(image)
    else:
        data.setUrls([QUrl(f"file:///tmp/{name} {number}.txt") for name in ("a", "b")])
        data.setData("x-special/gnome-copied-files", QByteArray(f"copy\\nfile:///tmp/a%20{number}.txt".encode()))
    application.clipboard().setMimeData(data)
    application.sync()
    print("copied", flush=True)
notifier = QSocketNotifier(0, QSocketNotifier.Read)
notifier.activated.connect(copy)
application.exec()
"""


class Copier:
    """A Qt program that copies what it is told to."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        command = [need("/usr/bin/python3", "python3-pyqt5"), "-c", _COPIER]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, env=dict(environment), stdin=pipe, stdout=pipe, text=True)

    def copy(self, what: str, number: int) -> None:
        """Copy this, and return when it can be had."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(what, number, file=self._process.stdin, flush=True)
        assert self._process.stdout.readline() == "copied\n"

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()


def held(desktop: deskhand.Desktop) -> dict[str, str]:
    """What is on the clipboard, as another program gets it: the digest of each kind."""

    def of(kind: str) -> bytes:
        command = [need("xclip", "xclip"), "-out", "-selection", "clipboard", "-target", kind]
        # A manager may have died while it had the clipboard.
        with contextlib.suppress(subprocess.TimeoutExpired):
            return subprocess.run(
                command, env=x_environment(desktop), capture_output=True, timeout=20, check=False
            ).stdout
        return b"no answer"

    kinds = [kind for kind in of("TARGETS").decode(errors="replace").split() if kind not in _NO_CONTENT]
    return {kind: hashlib.sha256(of(kind)).hexdigest()[:12] for kind in kinds}


def takes_what_is_offered(desktop: deskhand.Desktop) -> bool:
    """True when somebody takes a new text, or the clipboard itself, without being asked to paste."""
    desktop.clipboard.write("old")
    try:
        desktop._core.backend.wait_pasted(1)
    except TimeoutError:
        return False
    return True


@contextlib.contextmanager
def manager(desktop: deskhand.Desktop, name: str, home: Path) -> Iterator[None]:
    """A clipboard manager that has taken note of what was copied last."""
    if (found := MANAGERS[name]) is None:
        yield
        return
    (program, *arguments), package = found
    environment = {**x_environment(desktop), "HOME": str(home), "XDG_CONFIG_HOME": str(home / "config")}
    with subprocess.Popen([need(program, package), *arguments], env=environment, stderr=subprocess.DEVNULL) as process:
        try:
            until(lambda: takes_what_is_offered(desktop), 30, f"{name} to take what is offered")
            yield
        finally:
            process.kill()


def paste(app: App, copier: Copier, what: str, times: int, later: float) -> Counter[str]:
    """Copy and paste so often. How often all was right, how often it was told what was not, and what was wrong."""
    desktop = app.desktop
    found: Counter[str] = Counter()
    expected = ""
    for number in range(times):
        copier.copy(what, number)
        time.sleep(later)
        before = held(desktop)
        text = f"new {number} äöü 你好\n"
        told = ""
        try:
            seen = desktop.perform(Type(text, paste=True))
            told = f"lost: {', '.join(seen.clipboard_lost)}" if seen.clipboard_lost else ""
            expected += text
            if (arrived := app.text(expected)) != expected:
                found[f"WRONG: {arrived[-40:]!r} arrived"] += 1
                app.clear()
                expected = ""
                continue
        except TimeoutError:
            told = "TimeoutError"
            app.clear()
            expected = ""
        after = held(desktop)
        time.sleep(later)
        latest = held(desktop) if later else after
        if before == after == latest:
            found[told or "right"] += 1
        elif told.startswith("lost"):
            found[told] += 1
        else:
            changed = {
                kind: (before.get(kind), after.get(kind), latest.get(kind)) for kind in {*before, *after, *latest}
            }
            differing = {kind for kind, values in changed.items() if len(set(values)) > 1}
            found[f"WRONG: {sorted(differing)} {'differ' if before != after else 'differ later'}"] += 1
    return found


def beside(name: str, times: int) -> list[str]:
    """The rows of one manager."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="deskhand-") as folder:
        home = Path(folder)
        with deskhand.launch(size=(1000, 700), env={"HOME": folder}) as desktop, manager(desktop, name, home):
            bench, copier = Bench(desktop, home), Copier(x_environment(desktop))
            try:
                for field in FIELDS:
                    for what in COPIED:
                        found = paste(bench.app(field), copier, what, times, LATER)
                        others = [f"{count} {outcome}" for outcome, count in found.most_common() if outcome != "right"]
                        rows.append(
                            f"| {name} | {what} | {field} | {found['right']} of {times} | {'; '.join(others)} |"
                        )
                        print(rows[-1], flush=True)
            finally:
                copier.close()
                bench.close()
    return rows


def main(times: int = 20) -> None:
    """Do all of it, and write the table."""
    # Most of the time is waited for managers.
    with ThreadPoolExecutor(3) as pool:
        rows = [row for rows in pool.map(lambda name: beside(name, times), MANAGERS) for row in rows]
    lines = [
        "# What was on the clipboard is there again after a paste",
        "",
        "Written by `PYTHONPATH=tests .venv/bin/python -m faults.clipboards`. A Qt program copies something else each time,",
        "then comes `Type(..., paste=True)`. Right: the text arrived once, and every kind of what was copied is on the",
        f"clipboard again, byte for byte, at once and {LATER:g} s later. Otherwise the call has told so. Pixmaps, which Qt",
        "offers beside a picture in bytes, are the numbers of what ends with its owner, and are not compared.",
        "",
        "| manager | copied | pasted into | right | told |",
        "|---|---|---|---|---|",
        *rows,
    ]
    (ROOT / "evidence" / "clipboard.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
