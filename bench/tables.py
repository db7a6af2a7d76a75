"""Converts a report into text for people. Pure: text in, text out.

A ratio is rounded down, so that "12×" is at least that. All numbers come from the report.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from bench.figures import AHEAD, OURS, PHOTO, ROUND_TRIP, Report, Row, judge, ratio, rested

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["MARKERS", "amount", "block", "into", "table", "times"]

MARKERS = ("<!-- bench -->", "<!-- /bench -->")
PAGE, CLOCK = "look/1920x1080/page", "clock/1920x1080/page"
NOTHING, LINE, EVERYTHING = "nothing changed", "one line changed", "everything changed"
_SLOW_SCENES = ("look/1024x768/page", "look/3840x2160/page", "look/1920x1080/terminal", PHOTO)


def times(value: float | None) -> str:
    """A ratio, rounded down to digits that are certain; empty without one."""
    if value is None:
        return ""
    if value < 10:
        return f"{math.floor(value * 10) / 10:.1f}×"
    digits = 10 ** max(0, len(str(int(value))) - 2)
    return f"{int(value) // digits * digits:,}×"


def amount(value: float | None, unit: str = "ms") -> str:
    """A number with a sensible number of digits."""
    if value is None:
        return ""
    if unit == "bytes":
        return f"{value / 1000:,.0f} kB"
    digits = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return f"{value:,.{digits}f} {unit}"


def table(header: Sequence[str], alignment: str, rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table.

    Args:
        header: The names of its columns.
        alignment: A letter for each column: l, r or c.
        rows: The cells of each row.
    """
    marks = {"l": "---", "r": "---:", "c": ":-:"}
    lines = [header, [marks[letter] for letter in alignment], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def block(report: Report, *, plot: str | None = None) -> str:
    """The text between the markers of docs/benchmarks.md.

    Args:
        report: A run.
        plot: The address of the plot, relative to that page.
    """
    machine, conditions = report.machine, report.conditions
    deskhand = report.versions.get("deskhand", "").partition(" ")[0]
    command = "`make bench`" if conditions.get("whole") else "a part of `python -m bench`"
    how = (
        f"Written by {command} on {conditions['date']}: {machine['processor']}, {machine['cores']} cores,"
        f" {machine['system']}, Python {machine['python']}, deskhand {deskhand}. Peers and deskhand took turns in one run."
        " Unless a row says otherwise, the screen is 1920×1080, with a terminal of coloured text beside Chromium with gradients"
        " and a long table, and numbers are medians. The clock starts when a change is on the screen and stops when a picture's"
        " PNG bytes are available. deskhand's thread that watches the screen between two calls is paused, so that its work is"
        " included in that time."
    )
    others = (
        "**Peers, looking at the same screen.** They always take the whole screen. The last columns say how many times faster"
        " deskhand is when nothing, a line or everything has changed:"
    )
    picture = (
        f"![Speed against size of the files, each peer and deskhand, of a page and of a photo]({plot})" if plot else ""
    )
    parts = [
        ("**Targets**", _targets(report)),
        (others, _peers(report)),
        ("", picture),
        (
            "**What the clock contains.** The same looks, after a rest, and with a part of the work done ahead",
            _clock(report),
        ),
        ("**A look in numbers that are the same on every machine**", _counts(report)),
        ("**Other sizes and scenes**", _scenes(report)),
        ("**Acting and typing**", _acts(report)),
        ("**VNC**", _vnc(report)),
        ("**Resources**", _resources(report)),
    ]
    return "\n\n".join([how, *(text for title, part in parts if part for text in (title, part) if text)])


def into(text: str, content: str, markers: tuple[str, str] = MARKERS) -> str:
    """A document with `content` between its markers.

    Raises:
        ValueError: It does not have both markers, once each and in order.
    """
    head, first, rest = text.partition(markers[0])
    _, second, tail = rest.partition(markers[1])
    if not (first and second) or markers[0] in rest or markers[1] in tail:
        raise ValueError(f"it needs the markers {markers[0]} and {markers[1]}, once each and in this order")
    return f"{head}{markers[0]}\n{content}\n{markers[1]}{tail}"


def _targets(report: Report) -> str:
    marks = {True: "✓", False: "✗ **missed**", None: "?"}
    rows = [[v.name, v.must, v.measured, marks[v.met]] for v in judge(report)]
    return table(["what", "must", "measured", ""], "lrrl", rows)


_SEEN = (
    (PAGE, "PNG bytes in hand"),
    ("scaled/1920x1080/page", "scaled to 1366×768"),
    ("array/1920x1080/page", "pixels only, no file"),
)


def _peers(report: Report) -> str:
    tables = []
    for section, title in _SEEN:
        found = report.of(section)
        ours = {row.case: row for row in found if row.who == OURS and row.median is not None}
        rows = [
            [f"**deskhand, {_named(r)}**", amount(r.median), amount(r.p95), _size(r), "", "", ""] for r in ours.values()
        ]
        rows += [_peer(row, ours) for row in found if row.who != OURS]
        if rows:
            tables.append(
                table([title, "median", "p95", "size", "× nothing", "× a line", "× everything"], "lrrrrrr", rows)
            )
    return "\n\n".join(tables)


def _peer(row: Row, ours: dict[str, Row]) -> list[str]:
    if row.median is None:
        return [row.who, row.missing, "", "", "", "", ""]
    ratios = [times(ratio(row, ours.get(case))) for case in (NOTHING, LINE, EVERYTHING)]
    note = f" ({row.note})" if row.note else ""
    return [row.who + note, amount(row.median), amount(row.p95), _size(row), *ratios]


def _clock(report: Report) -> str:
    """By case: at once, after a rest, and with the change captured before the clock started."""
    rows = []
    for case, section in ((ROUND_TRIP, CLOCK), (NOTHING, PAGE), (LINE, PAGE), (EVERYTHING, PAGE)):
        found = (report.find(section, case), report.find(CLOCK, rested(case)), report.find(CLOCK, case + AHEAD))
        if any(found[1:]):
            rows.append([case, *(amount(row.median) if row is not None else "" for row in found)])
    return table(["what", "at once", "after a second's rest", "at once, captured before"], "lrrr", rows) if rows else ""


def _named(row: Row) -> str:
    """The case, with the share of the screen that changed if it was only a part."""
    share = row.counts.get("pixels_changed", 0.0)
    return f"{row.case} ({100 * share:.3g} % of the pixels)" if 0 < share < 1 else row.case


def _size(row: Row) -> str:
    return amount(row.size, "bytes") if row.size is not None and not row.section.startswith("array") else ""


def _counts(report: Report) -> str:
    rows = [row for row in report.of(PAGE, who=OURS) if row.counts]
    names = list(dict.fromkeys(name for row in rows for name in row.counts if name != "pixels_changed"))
    cells = [[row.case, *(f"{row.counts[name]:,.0f}" if name in row.counts else "" for name in names)] for row in rows]
    return table(["look", *(name.replace("_", " ") for name in names)], "l" + "r" * len(names), cells) if names else ""


def _fastest(report: Report, section: str) -> Row | None:
    peers = [row for row in report.of(section) if row.who != OURS and row.median is not None]
    return min(peers, key=lambda row: row.median or 0, default=None)


def _scenes(report: Report) -> str:
    rows = []
    for section in _SLOW_SCENES:
        fastest = _fastest(report, section)
        _, size, scene = section.split("/")
        for row in report.of(section, who=OURS):
            if row.median is None or row.case.endswith("later"):
                continue
            peer = f"{fastest.who}: {amount(fastest.median)}, {_size(fastest)}" if fastest else ""
            name = f"{size.replace('x', '×')}, {scene}, {_named(row)}"
            rows.append([name, amount(row.median), amount(row.p95), _size(row), peer, times(ratio(fastest, row))])
    return table(["look", "median", "p95", "size", "the fastest peer there", "×"], "lrrrlr", rows) if rows else ""


def _acts(report: Report) -> str:
    rows = []
    for row in report.rows:
        if row.who != OURS or row.median is None or not row.section.startswith(("act/", "type/")):
            continue
        peers = [
            f"{peer.who}: {amount(peer.median)}{_exactness(peer)}, {times(ratio(peer, row))}"
            for peer in report.of(row.section)
            if peer.who != OURS and peer.case == row.case and peer.median is not None
        ]
        what = f"{row.case}, {row.section.partition('/')[2]}"
        rows.append([what, amount(row.median), amount(row.p95), _exactness(row).lstrip(", "), "; ".join(peers)])
    return table(["what", "median", "p95", "", "others"], "lrrll", rows) if rows else ""


def _vnc(report: Report) -> str:
    rows = []
    for row in report.rows:
        if row.section.startswith("vnc/"):
            name = f"{row.case}{'' if row.who == OURS else f', {row.who}'}"
            about = row.missing or "; ".join(part for part in (_exactness(row).lstrip(", "), row.note) if part)
            ours = report.find(row.section, row.case)
            rows.append(
                [name, amount(row.median), _size(row), "" if row.who == OURS else times(ratio(row, ours)), about]
            )
    return table(["what", "median", "bytes", "×", ""], "lrrrl", rows) if rows else ""


def _exactness(row: Row) -> str:
    if "wrong_frames" in row.counts:
        return f", {row.counts['wrong_frames']:.0f} of {row.counts['compared']:.0f} frames wrong"
    if "wrong_texts" in row.counts:
        return f", {row.counts['wrong_texts']:.0f} of {row.n} texts wrong"
    return ""


def _resources(report: Report) -> str:
    rows = []
    for section in ("launch", "idle", "video", "step", "rate"):
        for row in report.of(section):
            if row.median is not None:
                who = "" if row.who == OURS else f", {row.who}"
                rows.append([f"{row.case}{who}", amount(row.median, row.unit), row.note])
    return table(["what", "", ""], "lrl", rows) if rows else ""
