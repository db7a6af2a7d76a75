"""The demo of episodes: on a pool of desktops, the oracle of every task that ships, and then an agent that does nothing.

    .venv/bin/python demo/episodes.py [folder]

leaves both runs, the report of the first and a photograph of it in the folder (`demo-episodes-out`). It ends with 0 only if the
oracle solved every instance, the agent that does nothing solved none, and no episode was invalid. It needs what `make setup`
installs.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING, Any

from PIL import Image
from rich.console import Console
from rich.table import Table

from deskhand.episodes.record.reader import open_run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["main"]

_INTERRUPTED = 130
_PHOTOGRAPH = (1280, 1600)
# A page that shows nothing is of one colour or two.
_LEAST_COLOURS = 50
_TIMES = ("reset", "setup", "agent", "evaluate", "total")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo.

    Returns:
        The process's exit code: 0 when every check held.
    """
    parser = argparse.ArgumentParser(
        description="Run every task with its oracle, and then with an agent that does nothing, and check the scores."
    )
    parser.add_argument("folder", nargs="?", type=Path, default=Path("demo-episodes-out"), help="where all of it goes")
    parser.add_argument(
        "--task", action="append", default=[], metavar="NAME", help="only these, as `deskhand run` names them"
    )
    parser.add_argument("--seeds", type=int, default=2, help="instances of each task for the oracle (2)")
    parser.add_argument("--desktops", type=int, default=max(1, os.cpu_count() or 1), help="at once (one a processor)")
    parser.add_argument("--docker", metavar="IMAGE", help="in containers of this image")
    given = parser.parse_args(arguments)
    folder: Path = given.folder
    # Wide enough for the table also where there is no terminal.
    console = Console(width=None if sys.stdout.isatty() else 140, highlight=False)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    options = [*given.task, "--desktops", str(given.desktops)]
    options += ["--backend", "docker", "--image", given.docker] if given.docker else []
    begun = time.monotonic()
    try:
        console.print(
            f"The oracle runs every task {given.seeds} times, on {given.desktops} desktops at once.", style="bold"
        )
        _deskhand("run", *options, "--agent", "oracle", "--seeds", str(given.seeds), "--out", str(folder / "oracle"))
        page = folder / "report.html"
        _deskhand("report", str(folder / "oracle"), "--out", str(page))
        colours = _photograph(page, folder / "report.png")
        console.print("The agent that does nothing runs every task once.", style="bold")
        _deskhand("run", *options, "--agent", "nothing", "--out", str(folder / "nothing"))
    except KeyboardInterrupt:
        console.print("interrupted: everything is closed", style="yellow")
        return _INTERRUPTED
    except subprocess.CalledProcessError as failure:
        console.print(f"{' '.join(failure.cmd)} ended with {failure.returncode}", style="bold red", markup=False)
        return 1
    oracle, nothing = (_results(folder / name) for name in ("oracle", "nothing"))
    console.print(_table(oracle, nothing))
    checks = {
        f"the oracle solved all {len(oracle)} episodes": bool(oracle) and all(result["success"] for result in oracle),
        f"the agent that does nothing solved none of {len(nothing)}": bool(nothing)
        and not any(result["success"] for result in nothing),
        "every episode was valid": all(result["valid"] for result in oracle + nothing),
        f"the report, opened in a browser, shows something ({colours} colours)": colours >= _LEAST_COLOURS,
    }
    for title, held in checks.items():
        console.print("[green]ok[/]     " if held else "[bold red]FAILED[/] ", end="")
        console.print(title, markup=False)
    for result in [result for result in oracle if not result["success"]] + [r for r in nothing if r["success"]]:
        why = result["detail"] or result["reason"]
        console.print(f"  {result['task']} seed {result['seed']}: {result['cause'] or 'graded'}: {why}", markup=False)
    console.print(f"{time.monotonic() - begun:.0f} s; see {page} and {folder / 'report.png'}", markup=False)
    return 0 if all(checks.values()) else 1


def _deskhand(*words: str) -> None:
    """A command of ours, as its users run it: its progress is on the terminal."""
    subprocess.run([sys.executable, "-m", "deskhand", *words], check=True)


def _photograph(page: Path, picture: Path) -> int:
    """Open a page in a browser without a screen, and photograph it. Returns how many colours are seen."""
    width, height = _PHOTOGRAPH
    with tempfile.TemporaryDirectory(prefix="deskhand-demo-", ignore_cleanup_errors=True) as profile:
        command = ["chromium", "--headless", f"--user-data-dir={profile}", "--hide-scrollbars", "--disable-gpu"]
        # Root's programs are not sandboxed by Chromium, and without saying so it does not start; the page is ours.
        command += ["--no-sandbox"] if os.geteuid() == 0 else []
        command += [f"--window-size={width},{height}", f"--screenshot={picture.resolve()}", page.resolve().as_uri()]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL, timeout=300)
    with Image.open(picture) as photograph:
        return len(photograph.convert("RGB").getcolors(width * height) or ())


def _results(directory: Path) -> list[Mapping[str, Any]]:
    with open_run(directory) as run:
        return run.results()


def _table(oracle: Sequence[Mapping[str, Any]], nothing: Sequence[Mapping[str, Any]]) -> Table:
    """The results of each task, and the times of its parts."""
    table = Table(title="Results; times are medians, in seconds", title_justify="left", header_style="bold")
    table.add_column("level", justify="right", style="dim")
    table.add_column("task")
    for name in ("oracle", "nothing", "steps", *_TIMES):
        table.add_column(name, justify="right")
    by_task, idle = defaultdict(list), defaultdict(list)
    for results, grouped in ((oracle, by_task), (nothing, idle)):
        for result in results:
            grouped[result["level"], result["task"]].append(result)
    for key in sorted(by_task):
        results = by_task[key]
        times = [f"{median(result['times'][name] for result in results):.1f}" for name in _TIMES]
        steps = f"{mean(result['steps'] for result in results):.1f}"
        table.add_row(str(key[0]), key[1], _rate(results), _rate(idle[key]), steps, *times)
    table.add_section()
    times = [f"{median(result['times'][name] for result in oracle):.1f}" for name in _TIMES] if oracle else []
    table.add_row("", f"{len(by_task)} tasks", _rate(oracle), _rate(nothing), "", *times)
    return table


def _rate(results: Sequence[Mapping[str, Any]]) -> str:
    done = sum(bool(result["success"]) for result in results)
    return f"{100 * done / len(results):.0f} %" if results else "-"


if __name__ == "__main__":
    sys.exit(main())
