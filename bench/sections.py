"""The sections of the benchmark, their order, and how a whole run goes.

This module owns the names of the sections. It measures nothing itself.
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

from bench import acts, looks, resources, steps, texts, vnc
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
        name: The name for `--only`, and the prefix of its rows if it has one group of them.
        measure: Yields the rows.
        quick: Whether it is part of a quick run.
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
    Section("step", steps.step),
    Section("idle", resources.idle),
)


def choose(pattern: str | None, *, quick: bool) -> list[Section]:
    """Select sections.

    Args:
        pattern: A part of their names, or one with `*`; None for all. A section that is named in full is always selected.
        quick: Only those of a quick run.

    Raises:
        ValueError: No section matches.
    """
    chosen = [s for s in SECTIONS if pattern is None or fnmatch.fnmatchcase(s.name, f"*{pattern}*")]
    if quick:
        chosen = [s for s in chosen if s.quick or s.name == pattern]
    if not chosen:
        names = ", ".join(s.name for s in SECTIONS)
        raise ValueError(f"no section matches {pattern!r}; there are: {names}")
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
        sections: The sections.
        quick: Fewer rounds of everything.
        rounds: The number of rounds, in place of each section's own.
        begin: Called with the name of each section when it begins.
        say: Called with a description of the present step.
        scratch: Where to create a temporary directory, which is removed at the end.
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
                # The other sections took half an hour, and are kept.
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
