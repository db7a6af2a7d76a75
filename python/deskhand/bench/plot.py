"""One picture of a report: how fast, and how large the file, for everybody who makes one.

The nearer to the left lower corner, the better; both axes are logarithmic. What must never appear here: a number that is not in
the report.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deskhand.bench.figures import OURS, PHOTO, Report, Row

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["draw"]

_PANELS = (("look/1920x1080/page", "A terminal and a browser, 1920×1080"), (PHOTO, "A photo, 1920×1080"))
_OURS_COLOUR, _PEER_COLOUR = "#d1495b", "#30638e"


def draw(report: Report, path: Path) -> None:
    """Write the picture: SVG or PNG, by the file's name.

    Raises:
        ModuleNotFoundError: matplotlib is not installed.
        ValueError: The report has nothing to draw.
    """
    # The backend for files: no display is needed, and none that happens to be there is used.
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 # half a second, and an extra
    from matplotlib.figure import Figure  # noqa: PLC0415

    panels = [(title, rows) for section, title in _PANELS if (rows := _points(report, section))]
    if not panels:
        raise ValueError("there is nothing to draw: no look at a page or a photo of 1920x1080 was measured")
    figure = Figure(figsize=(7.5 * len(panels), 6), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (title, rows) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        _panel(axes, title, rows)
    machine = report.machine
    figure.suptitle(
        f"Looking at the screen: time until the PNG is in hand, and its size\n{machine['processor']}, {machine['cores']} cores,"
        f" {report.conditions['date']}",
        fontsize=11,
    )
    # Without the date of its making, the same report gives the same file.
    figure.savefig(path, dpi=110, metadata={"Date": None} if path.suffix == ".svg" else None)


def _points(report: Report, section: str) -> list[Row]:
    return [row for row in report.of(section) if row.median is not None and row.size is not None]


def _panel(axes: Any, title: str, rows: list[Row]) -> None:
    axes.set_title(title, fontsize=10)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("median, ms")
    axes.set_ylabel("size, kB")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _position: f"{value:g}")
        axis.set_minor_formatter(
            lambda value, _position: f"{value:g}" if str(f"{value:g}").lstrip("0.")[0] in "25" else ""
        )
    axes.tick_params(which="both", labelsize=8)
    axes.grid(visible=True, which="both", alpha=0.2)
    # Labels change sides from one height to the next, so that neighbours do not cover one another.
    for index, row in enumerate(sorted(rows, key=lambda row: (row.size or 0, row.median or 0))):
        ours = row.who == OURS
        colour = _OURS_COLOUR if ours else _PEER_COLOUR
        axes.plot(row.median, (row.size or 0) / 1000, "o" if ours else "s", color=colour, markersize=9 if ours else 6)
        right = row.median is not None and row.median < 60
        axes.annotate(
            f"{OURS}: {row.case}" if ours else row.who,
            (row.median, (row.size or 0) / 1000),
            xytext=(8 if right else -8, 5 if index % 2 else -9),
            textcoords="offset points",
            ha="left" if right else "right",
            fontsize=7.5,
            color=colour,
            fontweight="bold" if ours else "normal",
        )
    axes.margins(0.12, 0.15)
