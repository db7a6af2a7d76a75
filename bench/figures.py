"""Rows, the targets for them, and the document that stores them. Pure: nothing is measured here.

Units: milliseconds unless a row says otherwise; sizes of files in bytes; a kB has 1,000 of them.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = [
    "AHEAD",
    "OURS",
    "ROUND_TRIP",
    "Report",
    "Row",
    "Samples",
    "Target",
    "Verdict",
    "judge",
    "p95",
    "ratio",
    "rested",
]

OURS = "deskhand"
ROUND_TRIP = "a round trip to the X server, and nothing else"
AHEAD = ", captured before the clock started"
"""The end of a case's name if a part of the work was done before the clock started."""
_FORMAT = 2
"""The version of the JSON document, raised when its readers must change."""


def rested(case: str) -> str:
    """The name of a case with a second's rest before it."""
    return f"{case}, after a second's rest"


def p95(values: Sequence[float]) -> float:
    """The 95th percentile by nearest rank: a value that was really measured."""
    return sorted(values)[math.ceil(len(values) * 0.95) - 1]


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement of one contender.

    Attributes:
        section: The section: `look/1920x1080/page`.
        case: The case.
        who: The contender: `deskhand` or the name of a peer.
        unit: The unit of `median` and `p95`.
        n: The number of samples.
        median: None if it could not be measured; then `missing` has the reason.
        p95: Likewise.
        size: The median size of the picture in bytes, if there is one.
        counts: Numbers that do not depend on the machine, per look or in total, as `note` and the name say.
        note: For people.
        missing: Why there is no number, and how to get it.
    """

    section: str
    case: str
    who: str = OURS
    unit: str = "ms"
    n: int = 0
    median: float | None = None
    p95: float | None = None
    size: int | None = None
    counts: Mapping[str, float] = field(default_factory=dict)
    note: str = ""
    missing: str = ""


class Samples:
    """The samples of one row while it is measured."""

    def __init__(self, section: str, case: str, who: str = OURS, unit: str = "ms", note: str = "") -> None:
        """An empty row of that name."""
        self.note = note
        self.missing = ""
        self._names = (section, case, who, unit)
        self._values: list[float] = []
        self._sizes: list[int] = []
        self._counts: dict[str, list[float]] = {}

    def add(self, value: float, size: int | None = None, counts: Mapping[str, float] | None = None) -> None:
        """One measurement."""
        self._values.append(value)
        if size is not None:
            self._sizes.append(size)
        for name, count in (counts or {}).items():
            self._counts.setdefault(name, []).append(count)

    @property
    def sum(self) -> float:
        """All of them together."""
        return round(math.fsum(self._values), 4)

    @property
    def fastest(self) -> float:
        """The smallest sample; 0 without samples."""
        return round(min(self._values, default=0.0), 4)

    def row(self, **totals: float) -> Row:
        """Make the row. Counts that were added with each sample become medians; `totals` are used unchanged."""
        section, case, who, unit = self._names
        if not self._values:
            return Row(section, case, who, unit, note=self.note, missing=self.missing or "not measured")
        counts = {name: statistics.median(values) for name, values in self._counts.items()}
        return Row(
            section,
            case,
            who,
            unit,
            n=len(self._values),
            median=round(statistics.median(self._values), 4),
            p95=round(p95(self._values), 4),
            size=round(statistics.median(self._sizes)) if self._sizes else None,
            counts={**counts, **totals},
            # A contender that failed in the middle still has numbers.
            note="; ".join(part for part in (self.note, self.missing) if part),
        )


@dataclass(frozen=True, slots=True)
class Report:
    """One run.

    Attributes:
        machine: The properties of the machine, by name.
        versions: The versions of everything that took part, by name.
        conditions: The conditions of the run: when, how long, whether quick.
        rows: The rows, in order.
    """

    machine: Mapping[str, str]
    versions: Mapping[str, str]
    conditions: Mapping[str, Any]
    rows: Sequence[Row]

    def find(self, section: str, case: str, who: str = OURS) -> Row | None:
        """The row with that name, if it has a number."""
        for row in self.rows:
            if (row.section, row.case, row.who) == (section, case, who):
                return row if row.median is not None else None
        return None

    def of(self, section: str, *, who: str | None = None) -> list[Row]:
        """The rows of a section, of one contender or of all."""
        return [row for row in self.rows if row.section == section and who in {None, row.who}]

    def to_dict(self) -> dict[str, Any]:
        """Convert for JSON; the verdicts on the targets are included for readers, and computed again by `from_dict`."""
        return {
            "format": _FORMAT,
            "machine": dict(self.machine),
            "versions": dict(self.versions),
            "conditions": dict(self.conditions),
            "targets": [asdict(verdict) for verdict in judge(self)],
            "rows": [{**asdict(row), "counts": dict(row.counts)} for row in self.rows],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Report:
        """Convert back from the result of `to_dict`.

        Raises:
            ValueError: It has another format.
        """
        if data.get("format") != _FORMAT:
            raise ValueError(f"this is not a report of format {_FORMAT}: measure again with `python -m bench --json`")
        return cls(data["machine"], data["versions"], data["conditions"], [Row(**row) for row in data["rows"]])


def ratio(peer: Row | None, ours: Row | None) -> float | None:
    """How many times longer the peer's median is."""
    if peer is None or ours is None or peer.median is None or not ours.median:
        return None
    return peer.median / ours.median


@dataclass(frozen=True, slots=True)
class Target:
    """The target for one number.

    Attributes:
        name: The name of the target.
        section: The section of the row.
        case: The case of our row.
        attribute: The number: `median`, `p95` or `size`.
        limit: The largest allowed value.
        unit: The unit of the limit.
    """

    name: str
    section: str
    case: str
    attribute: str
    limit: float
    unit: str = "ms"


@dataclass(frozen=True, slots=True)
class Lead:
    """How many times faster than the fastest peer of its section a row must be.

    Attributes:
        name: The name of the target.
        section: The section of the row.
        case: The case of our row.
        times: The least number of times.
    """

    name: str
    section: str
    case: str
    times: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """A target and the measured value. `met` is None without a measurement."""

    name: str
    must: str
    measured: str
    met: bool | None


_PAGE, _SCALED, _ARRAY = "look/1920x1080/page", "scaled/1920x1080/page", "array/1920x1080/page"
PHOTO = "look/1920x1080/photo"

TARGETS = (
    Target("look, nothing changed", _PAGE, "nothing changed", "median", 0.15),
    Target("look, one line changed", _PAGE, "one line changed", "median", 1.0),
    Target("look, one line changed, p95", _PAGE, "one line changed", "p95", 2.0),
    Target("look, everything changed", _PAGE, "everything changed", "median", 8.0),
    Target("look, everything changed, size", _PAGE, "everything changed", "size", 250_000, "bytes"),
    Target(
        "the same, looked at twice and tightened in the background, size",
        _PAGE,
        "everything changed, a second later",
        "size",
        180_000,
        "bytes",
    ),
    Target("scaled to 1366×768, one line changed", _SCALED, "one line changed", "median", 1.0),
    Target("raw array, nothing changed", _ARRAY, "nothing changed", "median", 0.1),
    Target("raw array, everything changed", _ARRAY, "everything changed", "median", 1.5),
    Target("3840×2160, one line changed", "look/3840x2160/page", "one line changed", "median", 2.0),
    Target("video in a quarter, 30 looks a second, CPU", "video", "CPU of the driver", "median", 15.0, "%"),
    Target(
        "a step with a changed page, CPU of driver and X server",
        "step",
        "everything changed, processor time",
        "median",
        12.0,
    ),
    Target(
        "a step with a changed line, CPU of driver and X server",
        "step",
        "one line changed, processor time",
        "median",
        2.0,
    ),
    Target("16 idle desktops together, CPU", "idle", "CPU of 16 idle desktops", "median", 0.5, "%"),
    Target("memory of each of 16 desktops beyond Xvfb", "idle", "memory of each of 16 desktops", "median", 40.0, "MB"),
    Target("key press in xterm → settled frame", "act/xterm", "key press", "median", 75.0),
    Target("key press in xterm → settled frame, after 30 others", "act/xterm", "key press, learnt", "median", 25.0),
    Target("VNC: key press in xterm → settled frame", "vnc/key", "key press, xterm over Xvnc", "median", 90.0),
    Target(
        "VNC: key press in xterm → settled frame, tuned server",
        "vnc/key",
        "key press, xterm over Xvnc at 250 frames a second",
        "median",
        75.0,
    ),
    Target("VNC: look, nothing changed", "vnc/screen", "nothing changed", "median", 0.15),
    Target("VNC: look, one line has arrived", "vnc/screen", "one line changed" + AHEAD, "median", 1.0),
    Target("VNC: a whole screen decoded, Raw", "vnc/decode", "whole screen, raw", "median", 4.0),
    Target("type 1,000 characters into xterm", "type/xterm", "1,000 ASCII characters, sent", "median", 25.0),
    Target("desktop ready", "launch", "desktop ready", "median", 500.0),
)


LEADS = (
    Lead("look, everything changed, beside the fastest peer", _PAGE, "everything changed", 3.0),
    Lead("text scrolled by a line, beside the fastest peer", "look/1920x1080/terminal", "text scrolled by a line", 5.0),
    Lead("raw array, everything changed, beside the fastest peer", _ARRAY, "everything changed", 1.0),
)


def judge(report: Report) -> list[Verdict]:
    """Compare the targets with the measurements."""
    verdicts = [_judge(target, report) for target in TARGETS]
    photo = _judge_photo(report)
    leads = [_judge_lead(lead, report) for lead in LEADS]
    return [*verdicts[:6], photo, *leads, *verdicts[6:]]


def _judge_lead(lead: Lead, report: Report) -> Verdict:
    must = f"≥ {lead.times:g}×"
    ours = report.find(lead.section, lead.case)
    peers = [row for row in report.of(lead.section) if row.who != OURS and row.median is not None]
    fastest = min(peers, key=lambda row: row.median or 0.0, default=None)
    times = ratio(fastest, ours)
    if fastest is None or times is None:
        return Verdict(lead.name, must, "not measured", None)
    return Verdict(lead.name, must, f"{times:.2f}× ({fastest.who})", times >= lead.times)


def _judge(target: Target, report: Report) -> Verdict:
    row = report.find(target.section, target.case)
    must = f"≤ {target.limit:,.10g} {target.unit}"
    value = getattr(row, target.attribute) if row is not None else None
    if value is None:
        return Verdict(target.name, must, "not measured", None)
    digits = 0 if target.unit == "bytes" else 2
    return Verdict(target.name, must, f"{value:,.{digits}f} {target.unit}", value <= target.limit)


def _judge_photo(report: Report) -> Verdict:
    name, must = "photo over the whole screen", "no peer both faster and smaller"
    ours = report.find(PHOTO, "everything changed")
    peers = [row for row in report.of(PHOTO) if row.who != OURS and row.median is not None and row.size is not None]
    if ours is None or ours.median is None or ours.size is None or not peers:
        return Verdict(name, must, "not measured", None)
    better = [row.who for row in dominating(ours, peers)]
    return Verdict(name, must, f"{', '.join(better)} both" if better else "none is", not better)


def dominating(ours: Row, peers: Iterable[Row]) -> list[Row]:
    """The peers that are both faster and smaller."""
    return [
        row
        for row in peers
        if row.median is not None
        and row.size is not None
        and row.median < (ours.median or 0)
        and row.size < (ours.size or 0)
    ]
