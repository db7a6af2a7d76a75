"""The whole zoo in parts that can be run one at a time, and the report that is made of all of them.

A part is one stage or application, alone or beside busy loops, in one round; each takes a few minutes. All parts of a folder
are of one revision: the results of two are never in one table. A part that failed leaves a note, which the report quotes, and
is run again.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from platform import freedesktop_os_release
from typing import TYPE_CHECKING, Any

import deskhand

from .applications import APPLICATIONS
from .measure import Result
from .score import Section, report
from .signs import SIGNS
from .stages import STAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = ["KINDS", "Folder", "MixedRevisionsError", "Part", "plan", "revision", "write_report"]

KINDS = (*(f"stage-{kind}" for kind in STAGES), *APPLICATIONS, *SIGNS)
_ROOT = Path(__file__).parents[2]
# What a result depends on.
_SOURCES = ("python", "rust", "tests/zoo", "Cargo.toml", "Cargo.lock", "pyproject.toml")


class MixedRevisionsError(Exception):
    """Results would not be of the revision that they are said to be of."""


@dataclass(frozen=True)
class Part:
    """What is run at a time.

    Attributes:
        kind: A stage or an application, as the command line names it.
        load: How many busy loops run beside it.
        round: From 1.
    """

    kind: str
    load: int
    round: int

    @property
    def name(self) -> str:
        """Short and unique; a file's name."""
        return f"{self.kind}-load{self.load}-round{self.round}"


def plan(loads: Sequence[int], rounds: int, kinds: Sequence[str] = KINDS) -> list[Part]:
    """All parts, in the order in which they are run."""
    return [Part(kind, load, number) for load in loads for number in range(1, rounds + 1) for kind in kinds]


def _git(*words: str) -> str:
    return subprocess.run(["git", "-C", _ROOT, *words], check=True, capture_output=True, text=True).stdout.strip()


def revision() -> str:
    """The revision that would be measured now.

    Raises:
        MixedRevisionsError: A file was changed since, or the extension is older than its sources.
    """
    changed = _git("status", "--porcelain", "--", *_SOURCES)
    if changed:
        raise MixedRevisionsError(f"these files are not as committed; commit them first:\n{changed}")
    extension = Path(deskhand._native.__file__)
    newer = [path for path in (_ROOT / "rust").rglob("*.rs") if path.stat().st_mtime > extension.stat().st_mtime]
    if newer:
        raise MixedRevisionsError(f"{extension.name} is older than {newer[0].relative_to(_ROOT)}: run `make setup`")
    return _git("rev-parse", "HEAD")


def _machine() -> str:
    model = next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name"))
    return f"{model.partition(':')[2].strip()}, {os.cpu_count()} cores, {freedesktop_os_release()['PRETTY_NAME']}"


class Folder:
    """Parts that were run, all of one revision."""

    def __init__(self, path: Path, revision: str) -> None:
        """Open or make it.

        Raises:
            MixedRevisionsError: It has parts of another revision.
        """
        self.path = path
        self.revision = revision
        path.mkdir(parents=True, exist_ok=True)
        for file in sorted(path.glob("*.json")):
            found = json.loads(file.read_text())["revision"]
            if found != revision:
                raise MixedRevisionsError(
                    f"{file} is of revision {found[:9]}, not {revision[:9]}: remove it or choose another folder"
                )

    def _file(self, part: Part) -> Path:
        return self.path / f"{part.name}.json"

    def missing(self, parts: Iterable[Part]) -> list[Part]:
        """Those of them that are still to be run."""
        return [part for part in parts if not self._file(part).exists()]

    def run(self, part: Part, measured: Callable[[], list[Result]]) -> None:
        """Run a part and keep its results, or a note of its failure, which is raised on."""
        load_before = os.getloadavg()[0]
        begun = time.monotonic()
        try:
            results = measured()
        except BaseException as error:
            failure = "".join(traceback.format_exception_only(error)).strip().replace(str(Path.home()), "~")
            note = {"revision": self.revision, "part": asdict(part), "failure": failure}
            number = len(list(self.path.glob(f"{part.name}.failed-*.json"))) + 1
            (self.path / f"{part.name}.failed-{number}.json").write_text(json.dumps(note, indent=1) + "\n")
            raise
        about = {
            "revision": self.revision,
            "part": asdict(part),
            "machine": _machine(),
            "load average before": load_before,
            "seconds": round(time.monotonic() - begun, 1),
        }
        text = json.dumps({**about, "results": [asdict(result) for result in results]}, indent=1)
        # A part is there as a whole or not at all.
        unfinished = self._file(part).with_suffix(".unfinished")
        unfinished.write_text(text + "\n")
        unfinished.rename(self._file(part))

    def contents(self, part: Part) -> dict[str, Any]:
        """What a part that was run left."""
        found: dict[str, Any] = json.loads(self._file(part).read_text())
        return found

    def failures(self) -> list[str]:
        """A line for each part that failed and was run again."""
        notes = [json.loads(file.read_text()) for file in sorted(self.path.glob("*.failed-*.json"))]
        return [f"{Part(**note['part']).name}: {note['failure'].splitlines()[0]}" for note in notes]


def write_report(folder: Folder, parts: Sequence[Part], out: Path) -> None:
    """Write `out`.md and `out`.json from these parts.

    Raises:
        FileNotFoundError: A part is missing.
        MixedRevisionsError: They were run on different machines.
    """
    contents = {part: folder.contents(part) for part in parts}
    machines = {found["machine"] for found in contents.values()}
    if len(machines) != 1:
        raise MixedRevisionsError(f"the parts were run on different machines: {', '.join(sorted(machines))}")
    sections = []
    for load in sorted({part.load for part in parts}):
        chosen = {part: found for part, found in contents.items() if part.load == load}
        before = [found["load average before"] for found in chosen.values()]
        minutes = sum(found["seconds"] for found in chosen.values()) / 60
        rounds = max(part.round for part in chosen)
        beside = f"Beside {load} busy loops" if load else "Without busy loops"
        how = (
            f"{len(chosen)} parts one after another, {rounds} of each kind, {minutes:.0f} minutes. "
            f"Load average of the machine when they began, without the busy loops: {min(before):.1f} to {max(before):.1f}."
        )
        results = [Result(**plain) for found in chosen.values() for plain in found["results"]]
        sections.append(Section(beside, how, results))
    about = {"machine": machines.pop(), "revision": folder.revision}
    failures = folder.failures()
    out.with_suffix(".md").write_text(report(sections, about, failures))
    plain = [{"name": section.name, "how": section.how, "results": section.results} for section in sections]
    lines = json.dumps({**about, "parts that failed": failures, "sections": plain}, indent=None, default=asdict)
    # One frame a line.
    out.with_suffix(".json").write_text(lines.replace('{"name": ', '\n{"name": ') + "\n")
