"""The zoo's command: run cases and print the table, or run the whole in parts and write the report."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import deskhand

from .applications import APPLICATIONS, run_application
from .cases import cases
from .measure import Result, run
from .parts import KINDS, Folder, MixedRevisionsError, plan, revision, write_report
from .score import table
from .signs import SIGNS, run_sign
from .stages import Stage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .measure import Case

# An ambient region is known after three changes, and the clock makes one a second.
_LEARNT = 4.0
_SIZE = (1280, 800)
# As sysexits.h has it: try again.
_PARTS_LEFT = 75
# Of each case of a sign, with it and without it.
_REPEATS = 10


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
def own_desktop(*, animations: bool = True) -> Iterator[tuple[deskhand.Desktop, Path]]:
    """A desktop with a home directory of its own."""
    with tempfile.TemporaryDirectory(prefix="zoo-", ignore_cleanup_errors=True) as home:
        folders = {f"XDG_{name}_HOME": f"{home}/{name.lower()}" for name in ("CONFIG", "CACHE", "DATA", "STATE")}
        # What animates is harder to judge.
        with deskhand.launch(size=_SIZE, env={"HOME": home, **folders}, animations=animations) as desktop:
            yield desktop, Path(home)


def run_stage(kind: str, chosen: Sequence[Case]) -> list[Result]:
    """These cases of one stage, on a desktop of its own."""
    results = []
    with own_desktop() as (desktop, home):
        stage = Stage(desktop, kind, home)
        for case in chosen:
            if case.beside != stage.beside:
                stage.show(case.beside)
                time.sleep(_LEARNT)
            result = run(stage, case)
            results.append(result)
            note(result)
        stage.close()
    return results


def run_applications(name: str, match: str) -> list[Result]:
    """The scenes of one application, on a desktop of its own."""
    results = []
    with own_desktop() as (desktop, home):
        for result in run_application(desktop, name, home, match):
            results.append(result)
            note(result)
    return results


def run_signs(kind: str, match: str, repeats: int) -> list[Result]:
    """The cases of one sign in one application, on a desktop of its own."""
    results = []
    # A cursor that moves has no name.
    with own_desktop(animations=False) as (desktop, home):
        for result in run_sign(desktop, kind, home, match, repeats):
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


def run_kind(kind: str, match: str, repeats: int) -> list[Result]:
    """One stage, application or sign, once; the cases of a sign as often as is said."""
    if kind in APPLICATIONS:
        ran = run_applications(kind, match)
    elif kind in SIGNS:
        ran = run_signs(kind, match, repeats)
    else:
        stage = kind.removeprefix("stage-")
        ran = run_stage(stage, [case for case in cases(stage) if match in case.name])
    return [replace(result, kind=kind) for result in ran]


def run_parts(path: Path, out: Path, kinds: Sequence[str], rounds: int, *, one: bool) -> int:
    """Run what is missing of the whole, or only the next part of it; at the end write the report.

    Returns:
        How many parts are still missing.
    """
    folder = Folder(path, revision())
    whole = plan((0, os.cpu_count() or 1), rounds, kinds)
    missing = folder.missing(whole)
    for part in missing[:1] if one else missing:
        print(f"== {part.name}, one of {len(folder.missing(whole))} to come", flush=True)
        with busy_machine(part.load):
            folder.run(part, lambda part=part: run_kind(part.kind, "", _REPEATS))
    left = len(folder.missing(whole))
    if left:
        print(f"{left} parts are still to be run")
    else:
        write_report(folder, whole, out)
        print(f"wrote {out.with_suffix('.md')} and {out.with_suffix('.json')}")
    return left


def main() -> None:
    parser = argparse.ArgumentParser(prog="zoo", description=__doc__)
    parser.add_argument("--kinds", default=",".join(KINDS), help="stages, applications and signs, separated by commas")
    parser.add_argument("--rounds", type=int, default=1, help="how often each case is run")
    tried = parser.add_argument_group("to try something: the table is printed and nothing is kept")
    tried.add_argument("--match", default="", help="only cases whose name contains this")
    tried.add_argument(
        "--repeats", type=int, default=_REPEATS, help="how often each case of a sign is run with it, and without"
    )
    tried.add_argument("--load", type=int, default=0, help="busy loops beside the zoo")
    kept = parser.add_argument_group(
        "the whole, alone and beside as many busy loops as there are processors",
        f"a part is one kind under one load in one round and takes some minutes; exit status {_PARTS_LEFT}: parts are left",
    )
    kept.add_argument("--parts", type=Path, help="a folder of parts of this revision; run those that it lacks")
    kept.add_argument("--next", action="store_true", help="run one of them and leave the rest to the next call")
    kept.add_argument(
        "--out", type=Path, default=Path("evidence/settle"), help="once all are there, write this .md and .json"
    )
    options = parser.parse_args()
    kinds = options.kinds.split(",")
    if unknown := set(kinds) - set(KINDS):
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    if options.parts:
        if options.match or options.load:
            parser.error("--parts runs everything; --match and --load are for trying")
        try:
            left = run_parts(options.parts, options.out, kinds, options.rounds, one=options.next)
        except MixedRevisionsError as error:
            parser.exit(1, f"{parser.prog}: {error}\n")
        parser.exit(_PARTS_LEFT if left else 0)
    with busy_machine(options.load):
        results = [
            result
            for _ in range(options.rounds)
            for kind in kinds
            for result in run_kind(kind, options.match, options.repeats)
        ]
    print(table(results))
