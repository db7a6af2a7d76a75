"""The zoo's command: run cases, print the table, write the results."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import deskhand

from .applications import APPLICATIONS, run_application
from .cases import cases
from .measure import Result, run
from .score import table
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
        stage.link.close()
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


def main() -> None:
    parser = argparse.ArgumentParser(prog="zoo", description=__doc__)
    everything = [*(f"stage-{kind}" for kind in STAGES), *APPLICATIONS]
    parser.add_argument("--kinds", default=",".join(everything), help="stages and applications, separated by commas")
    parser.add_argument("--match", default="", help="only cases whose name contains this")
    parser.add_argument("--rounds", type=int, default=1, help="how often each case is run")
    parser.add_argument("--load", type=int, default=0, help="busy loops beside the zoo")
    parser.add_argument("--json", type=Path, help="where the results go; those of other kinds there are kept")
    options = parser.parse_args()
    results: list[Result] = []
    with busy_machine(options.load):
        for kind in options.kinds.split(","):
            if kind in APPLICATIONS:
                results += run_applications(kind, options.rounds, options.match)
                continue
            chosen = [case for case in cases(kind.removeprefix("stage-")) if options.match in case.name]
            if chosen:
                results += run_stage(kind.removeprefix("stage-"), chosen, options.rounds)
    print(table(results))
    if options.json:
        options.json.write_text(json.dumps([asdict(result) for result in results], indent=1) + "\n")


if __name__ == "__main__":
    main()
