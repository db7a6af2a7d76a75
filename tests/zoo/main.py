"""The zoo's command: run cases, print the table, write the results."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from platform import freedesktop_os_release
from typing import TYPE_CHECKING

import deskhand

from .applications import APPLICATIONS, run_application
from .cases import cases
from .measure import Result, run
from .score import report, table
from .stages import STAGES, Stage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .measure import Case

# An ambient region is known after three changes, and the clock makes one a second.
_LEARNT = 4.0
_SIZE = (1280, 800)


@contextmanager
def busy_machine(loops: int) -> Iterator[None]:
    """Processes that use the processors beside the zoo, as neighbours in a container do."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


@contextmanager
def own_desktop() -> Iterator[tuple[deskhand.Desktop, Path]]:
    """A desktop with a home directory of its own."""
    with tempfile.TemporaryDirectory(prefix="zoo-", ignore_cleanup_errors=True) as home:
        folders = {f"XDG_{name}_HOME": f"{home}/{name.lower()}" for name in ("CONFIG", "CACHE", "DATA", "STATE")}
        with deskhand.launch(size=_SIZE, env={"HOME": home, **folders}) as desktop:
            yield desktop, Path(home)


def run_stage(kind: str, chosen: Sequence[Case], rounds: int) -> list[Result]:
    """These cases of one stage, on a desktop of its own."""
    results = []
    with own_desktop() as (desktop, home):
        stage = Stage(desktop, kind, home)
        for case in chosen:
            if case.beside != stage.beside:
                stage.show(case.beside)
                time.sleep(_LEARNT)
            for _ in range(rounds):
                result = run(stage, case)
                results.append(result)
                note(result)
        stage.close()
    return results


def run_applications(name: str, rounds: int, match: str) -> list[Result]:
    """The scenes of one application, on a desktop of its own."""
    results = []
    with own_desktop() as (desktop, home):
        for result in run_application(desktop, name, home, rounds, match):
            results.append(result)
            note(result)
    return results


def note(result: Result) -> None:
    """A line for who watches."""
    over = f"{result.overshoot * 1000:7.1f}" if result.overshoot is not None else "      -"
    logged = f"{result.overshoot_log * 1000:7.1f}" if result.overshoot_log is not None else "      -"
    missed = f" missed by {result.missed * 1000:.0f}" if result.missed is not None else ""
    mark = "ok   " if result.final else ("WRONG" if result.sign else "wrong")
    print(f"{mark} {over} {logged}  {result.name}: {result.reason}{missed} {result.error}", flush=True)


def keep(results: list[Result], path: Path, options: argparse.Namespace) -> None:
    """Write these results, beside those of other kinds that are there already, and the report of all."""
    file = path.with_suffix(".json")
    ran = {result.kind for result in results}
    before = json.loads(file.read_text())["results"] if file.exists() else []
    everything = [*(old for old in (Result(**plain) for plain in before) if old.kind not in ran), *results]
    about = {"machine": machine(), "busy loops beside it": options.load}
    file.write_text(json.dumps({**about, "results": [asdict(result) for result in everything]}, indent=1) + "\n")
    path.with_suffix(".md").write_text(report(everything, about))


def machine() -> str:
    """What it ran on."""
    model = next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name"))
    return f"{model.partition(':')[2].strip()}, {os.cpu_count()} cores, {freedesktop_os_release()['PRETTY_NAME']}"


def main() -> None:
    everything = [*(f"stage-{kind}" for kind in STAGES), *APPLICATIONS]
    parser = argparse.ArgumentParser(prog="zoo", description=__doc__)
    parser.add_argument("--kinds", default=",".join(everything), help="stages and applications, separated by commas")
    parser.add_argument("--match", default="", help="only cases whose name contains this")
    parser.add_argument("--rounds", type=int, default=1, help="how often each case is run")
    parser.add_argument("--load", type=int, default=0, help="busy loops beside the zoo")
    parser.add_argument("--out", type=Path, help="write this .json and .md; results of other kinds in it are kept")
    options = parser.parse_args()
    results: list[Result] = []
    with busy_machine(options.load):
        for kind in options.kinds.split(","):
            if kind in APPLICATIONS:
                ran = run_applications(kind, options.rounds, options.match)
            else:
                stage = kind.removeprefix("stage-")
                ran = run_stage(stage, [case for case in cases(stage) if options.match in case.name], options.rounds)
            results += [replace(result, kind=kind) for result in ran]
    print(table(results))
    if options.out:
        keep(results, options.out, options)
