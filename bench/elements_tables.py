"""The tables of `python -m bench.elements`: how long it takes to read the accessibility tree, for us and for each peer.

This module owns the names of the readings and of the peers. It measures nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bench.elements_applications import APPLICATIONS
from bench.figures import OURS, Report, Row, ratio
from bench.tables import amount, table, times

__all__ = ["COST_CASES", "MARKERS", "PEERS", "Case", "Peer", "block"]

MARKERS = ("<!-- elements -->", "<!-- /elements -->")
COST_CASES = {True: "with elements", False: "without"}


class Case(StrEnum):
    """When a reading begins."""

    FIRST_EVER = "the first that anybody reads"
    FIRST = "first"
    UNCHANGED = "unchanged"
    CHANGED = "after a click"
    CHANGED_EARLY = "after a click in the first seconds"


@dataclass(frozen=True, slots=True)
class Peer:
    """One that reads trees too, in an environment of its own below the directory of peers.

    Attributes:
        name: As `elements_worker` and the directory know it.
        title: As the table says it.
        needs: What it is given, below its directory.
        own: Whether its interpreter is that of its directory; ours otherwise.
        note: What its reading is, and is not.
    """

    name: str
    title: str
    needs: str
    own: bool
    note: str


PEERS = (
    Peer("osworld", "OSWorld's server (pyatspi)", "main.py", own=True, note="without `libreoffice --version` and HTTP"),
    Peer("cua", "Cua (cua-driver)", "bin/cua-driver", own=False, note="list_windows and get_window_state over MCP"),
    Peer("xa11y", "xa11y", "bin/python", own=True, note="App.tree() of all: roles, names and values, no boxes"),
)


def block(report: Report) -> str:
    """What people read of it."""
    machine, conditions = report.machine, report.conditions
    before, after = conditions["load"]
    note = f" {conditions['note']}" if conditions.get("note") else ""
    how = (
        f"Written by `python -m bench.elements` on {conditions['date']}: {machine['processor']}, {machine['cores']} cores,"
        f" {machine['system']}. Medians of {conditions['rounds']} rounds, in which deskhand and the peers took turns; in"
        f" brackets the fastest. The load of the machine was {before:g} at the beginning and {after:g} at the end, of which"
        f" this run makes about 1: what is above that are other processes, which slow everybody down.{note}"
    )
    contains = (
        "**What the clock contains.** Each application is alone on a desktop of 1920×1080, and everybody reads all that its"
        " bus tells. Ours: one call of `desktop.elements()`, from the call to the elements in hand. The first ever: before"
        " anybody else has read the application, once its window had settled. First: in a new session, with its connection;"
        " the application has been read before, by others too. Unchanged: the call after that. After a"
        " click: the call after `perform(LeftClick(...))` has returned with the settled frame; what the application tells"
        " during the click is heard by then. In the first seconds of a session (3 s, Firefox 10 s) that is slower: an"
        " application that has just begun may not send events yet, so all of it is asked again. Peers: a process that has"
        " imported its library; first, its first reading; after the click, another reading by the same process of the menu or"
        " the box that the click has opened or ticked."
        " × is how many times faster than the fastest peer ours is."
    )
    notes = "\n".join(f"- {peer.title}: {peer.note}." for peer in PEERS)
    notes += (
        "\n- The accessibility handler of cua-computer-server returns the same made-up window on every Linux desktop and"
        " asks nobody; so Cua's driver is measured, which reads."
    )
    return "\n\n".join(
        part for part in (how, _goals(report), _trees(report), contains, notes, _bus(report), _cost(report)) if part
    )


def _sections(report: Report) -> list[str]:
    return list(dict.fromkeys(row.section for row in report.rows if row.section.startswith("elements/")))


def _cell(row: Row | None) -> str:
    if row is None:
        return ""
    return amount(row.median) + (f" ({amount(row.counts['fastest'])})" if "fastest" in row.counts else "")


def _trees(report: Report) -> str:
    titles = {f"elements/{each.name}": each.title for each in APPLICATIONS}
    peers = [peer for peer in PEERS if any(row.who == peer.title for row in report.rows)]
    lines = []
    for section in _sections(report):
        found = {(row.who, row.case): row for row in report.of(section)}
        first, changed = found.get((OURS, Case.FIRST)), found.get((OURS, Case.CHANGED))
        nodes = "" if first is None else f"{first.counts.get('nodes', 0):,.0f}"
        if first is not None and first.median is None:
            lines.append([titles[section], first.missing, *[""] * (len(Case) + 1 + len(peers))])
            continue
        cells = [_cell(found.get((OURS, case))) for case in Case]
        ever = found.get((OURS, Case.FIRST_EVER))
        if ever is not None and first is not None and ever.counts.get("nodes") != first.counts.get("nodes"):
            cells[0] += f" ({ever.counts.get('nodes', 0):,.0f} elements)"
        others = []
        for peer in peers:
            both = [found.get((peer.title, case)) for case in (Case.FIRST, Case.CHANGED)]
            said = list(dict.fromkeys(row.missing if row.median is None else amount(row.median) for row in both if row))
            nodes_of = [f"{row.counts['nodes']:,.0f} nodes" for row in both[:1] if row is not None and row.median]
            others.append(" / ".join(said) + (f" ({nodes_of[0]})" if nodes_of else ""))
        timed_peers = [found.get((peer.title, Case.CHANGED)) for peer in peers]
        best = min((row for row in timed_peers if row is not None and row.median), key=_median, default=None)
        lines.append([titles[section], nodes, *cells, *others, times(ratio(best, changed))])
    header = [
        "application",
        "elements",
        "the first ever",
        "first",
        "unchanged",
        "after a click",
        "in the first seconds",
    ]
    names = [f"{peer.title}: first / after a click" for peer in peers]
    return table([*header, *names, "×"], "lr" + "r" * (len(Case) + len(peers) + 1), lines) if lines else ""


def _goals(report: Report) -> str:
    """What was promised, beside what was measured."""
    lines: list[list[str]] = []

    def judge(what: str, must: str, value: float | None, unit: str, *, met: bool) -> None:
        if value is not None:
            shown = f"{value:.1f} %" if unit == "%" else times(value) if unit == "×" else amount(value)
            lines.append([what, must, shown, "✓" if met else "✗ **missed**"])

    def under(section: str, case: str, limit: float) -> None:
        row = report.find(section, case)
        if row is not None and row.median is not None:
            name = section.partition("/")[2]
            judge(f"{name}, {case}", f"≤ {limit:g} ms", row.median, "ms", met=row.median <= limit)

    under("elements/mousepad", Case.FIRST, 50)
    under("elements/chromium", Case.FIRST, 400)
    for case, limit in ((Case.UNCHANGED, 1), (Case.CHANGED, 15)):
        for section in _sections(report):
            under(section, case, limit)
    for section in _sections(report):
        found = [row for row in report.of(section) if row.case == Case.CHANGED and row.who != OURS and row.median]
        best = ratio(min(found, key=_median, default=None), report.find(section, Case.CHANGED))
        judge(f"{section.partition('/')[2]}, beside the best peer", "≥ 20×", best, "×", met=(best or 0) >= 20)
    slow, fast = (report.find("elements-cost", f"key press in mousepad, {name}") for name in COST_CASES.values())
    if slow is not None and fast is not None:
        more = (_median(slow) / _median(fast) - 1) * 100
        judge("`perform` that reads no elements, slower by", "≤ 2 %", more, "%", met=more <= 2)
    return table(["what", "must", "measured", ""], "lrrl", lines) if lines else ""


def _median(row: Row) -> float:
    return row.median or 0.0


def _bus(report: Report) -> str:
    """What ours says on the bus for one reading."""
    lines = []
    for section in _sections(report):
        for case in (Case.FIRST, Case.CHANGED):
            row = report.find(section, case)
            if row is not None and "calls" in row.counts:
                named = {name.removesuffix("_calls"): n for name, n in row.counts.items() if name.endswith("_calls")}
                most = sorted(named.items(), key=lambda pair: -pair[1])[:5]
                said = ", ".join(f"{name} {count:,.0f}" for name, count in most)
                heard = amount(row.counts["bytes_heard"], "bytes")
                lines.append([section.partition("/")[2], case, f"{row.counts['calls']:,.0f}", heard, said])
    heading = "**What ours asks of the bus for one reading**, counted once and not timed"
    return f"{heading}\n\n" + table(["", "reading", "calls", "heard", "of which"], "llrrl", lines) if lines else ""


def _cost(report: Report) -> str:
    lines = []
    for row in report.of("elements-cost"):
        parts = "; ".join(f"{name} {amount(size, 'MB')}" for name, size in row.counts.items() if name != "fastest")
        lines.append([row.case, _cell(row) if row.unit == "ms" else amount(row.median, row.unit), str(row.n), parts])
    heading = "**What `elements=True` costs who reads none**"
    return f"{heading}\n\n" + table(["what", "median", "n", ""], "lrrl", lines) if lines else ""
