"""The zoo's score: how many frames were final, and how long was waited after the last change."""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .measure import Result

__all__ = ["HEADER", "Section", "report", "row", "table"]

HEADER = [
    "what",
    "frames with a sign",
    "final",
    "without a sign",
    "final",
    "overshoot, median ms",
    "p95 ms",
    "by the log, median ms",
    "the call, median ms",
    "not settled",
]


def share(results: Sequence[Result]) -> str:
    """Final ones among them, in percent."""
    return f"{100 * sum(result.final for result in results) / len(results):.1f} %" if results else ""


def _milliseconds(values: Sequence[float], of: float) -> str:
    if not values:
        return ""
    return f"{1000 * sorted(values)[min(len(values) - 1, int(len(values) * of))]:.0f}"


def row(name: str, results: Sequence[Result]) -> list[str]:
    """One row of the table."""
    signed = [result for result in results if result.sign]
    unsigned = [result for result in results if not result.sign]
    # After a frame that was not final the last change is still to come.
    final = [result for result in results if result.final]
    over = [result.overshoot for result in final if result.overshoot is not None]
    logged = [result.overshoot_log for result in final if result.overshoot_log is not None]
    return [
        name,
        str(len(signed)),
        share(signed),
        str(len(unsigned)),
        share(unsigned),
        _milliseconds(over, 0.5),
        _milliseconds(over, 0.95),
        f"{1000 * statistics.median(logged):.0f}" if logged else "",
        _milliseconds([result.wall for result in results], 0.5),
        str(sum(not result.settled for result in results)),
    ]


def table(results: Iterable[Result]) -> str:
    """The whole table, in Markdown."""
    groups: dict[str, list[Result]] = defaultdict(list)
    everything = list(results)
    for result in everything:
        groups[result.group].append(result)
    rows = [HEADER, ["---", *["---:"] * (len(HEADER) - 1)]]
    rows += [row(name, group) for name, group in groups.items()]
    rows.append(row("**all**", everything))
    return "\n".join("| " + " | ".join(cells) + " |" for cells in rows)


PARTS = ("input", "reaction", "settle", "capture", "encode")


@dataclass(frozen=True)
class Section:
    """Frames that were taken under the same circumstances.

    Attributes:
        name: The circumstances, as a heading.
        how: More about them, a sentence or two.
        results: The frames.
    """

    name: str
    how: str
    results: Sequence[Result]


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [head, ["---:"] * len(head), *rows]
    return ["| " + " | ".join(cells) + " |" for cells in lines]


def _split(results: Sequence[Result]) -> list[str]:
    """Where the milliseconds went."""
    medians = [statistics.median(1000 * result.elapsed[part] for result in results) for part in PARTS]
    rest = sorted(1000 * (result.wall - sum(result.elapsed.values())) for result in results)
    return [f"{value:.2f}" for value in (*medians, statistics.median(rest), rest[-1])]


def _not_final(results: Iterable[Result]) -> list[str]:
    return [
        f"- {result.name}: {result.reason}"
        + (f", {1000 * result.missed:.0f} ms too soon" if result.missed is not None else "")
        + ("" if result.sign else " (no sign)")
        for result in results
        if not result.final
    ]


def _errors(results: Iterable[Result]) -> list[str]:
    return [f"- {result.name}: {result.error}" for result in results if result.error]


def report(sections: Sequence[Section], about: Mapping[str, str], failures: Sequence[str] = ()) -> str:
    """The tables with their machine and revision, where the milliseconds went, and everything that went wrong.

    Args:
        sections: The frames, by circumstances.
        about: What else is to be known, each a line.
        failures: Parts of the run that had to be repeated.
    """
    lines = [
        "# The settle zoo",
        "",
        "Written by `PYTHONPATH=tests python -m zoo --parts DIRECTORY`.",
        *(f"{name[0].upper()}{name[1:]}: {value}." for name, value in about.items()),
        "",
        "A frame is final when it shows what the screen shows a second or more later, but for what moves on its own.",
        "A sign is work of any process behind the window, an unanswered ping, changes less than 50 ms apart, a request over",
        "the network that is younger than a second, or as young a pointer that says wait; without one (a timer) nobody can",
        "know what is still to come. Overshoot is the time from the last change of the screen to the return, and by the log",
        'from the moment at which the program made it. In rows that end with "not seen" one sign is taken away.',
    ]
    for section in sections:
        lines += ["", f"## {section.name}", "", section.how, "", table(section.results)]
        lines += [
            "",
            "Where the time went, medians in ms; the rest is what is left of the time that the caller waited:",
            "",
        ]
        lines += _markdown([*PARTS, "rest", "rest, most"], [_split(section.results)])
    for section in sections:
        lines += [
            "",
            f"## Frames that were not final: {section.name.lower()}",
            "",
            *(_not_final(section.results) or ["None."]),
        ]
    lines += ["", "## What went wrong otherwise", ""]
    wrong = [f"- {line} (the part was run again)" for line in failures]
    wrong += [line for section in sections for line in _errors(section.results)]
    return "\n".join([*lines, *(wrong or ["Nothing."]), ""])
