"""The zoo's score: how many frames were final, and how long was waited after the last change."""

from __future__ import annotations

import statistics
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .measure import Result

__all__ = ["row", "table"]

HEADER = [
    "what",
    "frames with a sign",
    "final",
    "without a sign",
    "final",
    "overshoot, median ms",
    "p95 ms",
    "by the log, median ms",
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
