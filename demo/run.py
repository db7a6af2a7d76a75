"""The demo: four applications driven by deskhand on a desktop of their own, and everything checked from outside.

    .venv/bin/python demo/run.py [folder]

leaves the frames, `contact-sheet.png` and `index.html` in the folder (`demo-out`) and ends with 0 only if every check held.
It needs the Debian packages xvfb, openbox, mousepad, xterm, chromium, fonts-noto-core, fonts-noto-cjk and
fonts-noto-color-emoji.
"""

from __future__ import annotations

import argparse
import contextlib
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
from deskhand import Mount

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
    parser.add_argument("--docker", metavar="IMAGE", help="in a container of this image, which needs a bridge network")
    given = parser.parse_args(arguments)
    folder: Path = given.folder
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
            with contextlib.ExitStack() as stack:
                desktop = stack.enter_context(_launch(home, given.docker))
                console.print(f"desktop {desktop.name or desktop.display} is up after {time.monotonic() - begun:.2f} s")
                site = stack.enter_context(Site(home, _reachable(desktop) if given.docker else "127.0.0.1"))
                recorder = Recorder(desktop, folder, console)
                _play(recorder, site, home, contained=bool(given.docker))
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


def _launch(home: Path, image: str | None) -> deskhand.Desktop:
    if image is None:
        return deskhand.launch(size=_SIZE, env=_environment(home))
    if os.geteuid() == 0:
        # No program in a container is root.
        os.chown(home, 1000, 1000)
    mounts = [Mount(home, str(home), writable=True)]
    return deskhand.launch("docker", image=image, size=_SIZE, env=_environment(home), network="bridge", mounts=mounts)


def _reachable(desktop: deskhand.Desktop) -> str:
    """This machine's address as the container sees it: its default route, in hexadecimal and turned round."""
    routes = desktop.machine.run("cat /proc/net/route").stdout.splitlines()[1:]
    gateway = next(line.split()[2] for line in routes if line.split()[1] == "00000000")
    return ".".join(str(byte) for byte in reversed(bytes.fromhex(gateway)))


def _play(run: Recorder, site: Site, home: Path, *, contained: bool) -> None:
    note = write(run, home)
    read(run, note)
    browse(run, site, home, contained=contained)
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
