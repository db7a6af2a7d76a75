"""What is measured, in which order, and how a whole run goes.

This module owns the names of the sections. What must never appear here: a measurement.
"""

from __future__ import annotations

import fnmatch
import functools
import tempfile
import textwrap
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from bench import acts, looks, resources, texts, vnc
from bench.child import ChildError
from bench.context import Context
from bench.figures import Report, Row
from bench.scenes import Missing
from bench.versions import versions
from deskhand.episodes.run.host import describe
from deskhand.errors import BackendError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["SECTIONS", "Section", "choose", "run"]


_REASON = 200


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the benchmark that can be run by itself.

    Attributes:
        name: As `--only` knows it, and the rows' own where it has one group of them.
        measure: Yields the rows.
        quick: Whether it is in a quick run.
    """

    name: str
    measure: Callable[[Context], Iterator[Row]]
    quick: bool = True


def _look(size: tuple[int, int], scene: str, *, quick: bool = False) -> Section:
    measure = functools.partial(looks.look, size=size, name=scene)
    return Section(f"look/{size[0]}x{size[1]}/{scene}", measure, quick=quick)


SECTIONS = (
    Section("launch", resources.launch),
    _look((1920, 1080), "page", quick=True),
    _look((1920, 1080), "terminal"),
    _look((1920, 1080), "photo"),
    _look((1024, 768), "page"),
    _look((1024, 768), "terminal"),
    _look((1024, 768), "photo"),
    _look((3840, 2160), "page"),
    _look((3840, 2160), "terminal"),
    _look((3840, 2160), "photo"),
    Section("act/xterm", acts.xterm),
    Section("act/mousepad", acts.mousepad, quick=False),
    Section("act/chromium", acts.chromium, quick=False),
    Section("type/xterm", texts.xterm),
    Section("type/mousepad", texts.mousepad, quick=False),
    Section("vnc/decode", vnc.decode),
    Section("vnc/screen", vnc.look),
    Section("vnc/key", vnc.act),
    Section("video", resources.video),
    Section("rate", resources.rate, quick=False),
    Section("idle", resources.idle),
)


def choose(pattern: str | None, *, quick: bool) -> list[Section]:
    """The sections that are meant.

    Args:
        pattern: A part of their names, or one with `*`; None for all. A section that is named in full is in, quick or not.
        quick: Only those of a quick run.

    Raises:
        ValueError: There is none.
    """
    chosen = [s for s in SECTIONS if pattern is None or fnmatch.fnmatchcase(s.name, f"*{pattern}*")]
    if quick:
        chosen = [s for s in chosen if s.quick or s.name == pattern]
    if not chosen:
        names = ", ".join(s.name for s in SECTIONS)
        raise ValueError(f"no section is called {pattern!r}; there are: {names}")
    return chosen


def run(
    sections: Sequence[Section],
    *,
    quick: bool = False,
    rounds: int | None = None,
    begin: Callable[[str], None] = lambda _name: None,
    say: Callable[[str], None] = lambda _text: None,
    scratch: Path | None = None,
) -> Report:
    """Measure.

    Args:
        sections: What.
        quick: Fewer rounds of everything.
        rounds: So many rounds instead of each section's own number.
        begin: Told the name of each section when it begins.
        say: Told what is going on.
        scratch: Where to put a directory that goes at the end.
    """
    begun, now = time.monotonic(), datetime.now(UTC)
    rows: list[Row] = []
    failed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="deskhand-bench-", dir=scratch, ignore_cleanup_errors=True) as directory:
        context = Context(Path(directory), quick=quick, rounds=rounds, say=say)
        for section in sections:
            begin(section.name)
            try:
                rows += section.measure(context)
            except Missing as missing:
                rows.append(Row(section.name, "all", missing=f"not installed: {missing}"))
            except (ChildError, BackendError, TimeoutError) as error:
                # Half an hour of other sections is not lost with it.
                failed.append(section.name)
                rows.append(Row(section.name, "all", missing=f"failed: {textwrap.shorten(str(error), _REASON)}"))
    conditions = {
        "date": now.strftime("%Y-%m-%d"),
        "seconds": round(time.monotonic() - begun),
        "quick": quick,
        "sections": [section.name for section in sections],
        "failed": failed,
        "whole": not quick and rounds is None and not failed and len(sections) == len(SECTIONS),
    }
    return Report(describe(), versions(), conditions, rows)
