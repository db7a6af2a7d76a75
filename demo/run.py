"""The demo: four applications driven by deskhand on a desktop of their own, and everything checked from outside.

    .venv/bin/python demo/run.py [folder]

leaves the frames, `contact-sheet.png` and `index.html` in the folder (`demo-out`) and ends with 0 only if every check held.
It needs the Debian packages xvfb, openbox, mousepad, xterm, chromium, fonts-noto-core, fonts-noto-cjk and
fonts-noto-color-emoji.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from acts import browse, read, sign, write
from recorder import Recorder, TooLate
from report import Run, contact_sheet, page, show
from rich.console import Console
from webserver import Site

import deskhand

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]

_SIZE = (1280, 800)
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo.

    Returns:
        The process's exit code: 0 when every check held.
    """
    parser = argparse.ArgumentParser(description="Drive four applications and check what they made of it.")
    parser.add_argument(
        "folder", nargs="?", type=Path, default=Path("demo-out"), help="where the pictures and the page go"
    )
    folder: Path = parser.parse_args(arguments).folder
    # Wide enough for the table also where there is no terminal.
    console = Console(width=None if sys.stdout.isatty() else 140, highlight=False)
    _empty(folder)
    begun = time.monotonic()
    recorder: Recorder | None = None
    error = ""
    try:
        # Chromium's helpers may still write to its profile while it is removed.
        with tempfile.TemporaryDirectory(prefix="deskhand-demo-", ignore_cleanup_errors=True) as directory:
            home = Path(directory)
            with Site(home) as site, deskhand.launch(size=_SIZE, env=_environment(home)) as desktop:
                console.print(f"desktop {desktop.display} is up after {time.monotonic() - begun:.2f} s")
                recorder = Recorder(desktop, folder, console)
                _play(recorder, site, home)
    except KeyboardInterrupt:
        console.print("interrupted: everything is closed", style="yellow")
        return _INTERRUPTED
    except (deskhand.DeskhandError, TooLate, OSError) as failure:
        # A run that ended early is reported like any other: its frames show why.
        error = f"{type(failure).__name__}: {failure}"
    steps, checks = (recorder.steps, recorder.checks) if recorder else ([], [])
    run = Run(steps, checks, time.monotonic() - begun, _about(), error)
    if run.steps:
        contact_sheet(run).save(folder / "contact-sheet.png")
    (folder / "index.html").write_text(page(run), encoding="utf-8")
    show(run, console)
    console.print(f"see {folder / 'index.html'} and {folder / 'contact-sheet.png'}", markup=False)
    return 0 if run.ok else 1


def _play(run: Recorder, site: Site, home: Path) -> None:
    note = write(run, home)
    read(run, note)
    browse(run, site, home)
    sign(run, site)
    run.check_steps()


def _environment(home: Path) -> dict[str, str]:
    """A home of their own for the programs: no settings of the user's, no first-run or crash-recovery window."""
    folders = {f"XDG_{kind}_HOME": str(home / f".{kind.lower()}") for kind in ("CONFIG", "CACHE", "DATA", "STATE")}
    return {"HOME": str(home), "PWD": str(home), "PS1": "$ ", "LC_ALL": "C.UTF-8", **folders}


def _empty(folder: Path) -> None:
    """Make the folder, and remove from it what an earlier run left: its frames may have other names than ours."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in [*folder.glob("[0-9][0-9]-*.png"), folder / "contact-sheet.png", folder / "index.html"]:
        path.unlink(missing_ok=True)


def _about() -> list[str]:
    return [
        f"deskhand {deskhand.__version__}",
        f"{_SIZE[0]}x{_SIZE[1]}",
        f"{platform.system()} {platform.release()} {platform.machine()}, {os.cpu_count()} cores",
        f"Python {platform.python_version()}",
        time.strftime("%Y-%m-%d %H:%M:%S %Z"),
    ]


if __name__ == "__main__":
    sys.exit(main())
