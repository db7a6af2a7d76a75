"""A plot of a report: the speed, and the size of the file, for each contender that makes files.

Both axes are logarithmic. All numbers come from the report.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from bench.figures import OURS, PHOTO, Report, Row

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["draw"]

_PANELS = (("look/1920x1080/page", "A terminal and a browser, 1920×1080"), (PHOTO, "A photo, 1920×1080"))
_LABEL_LEFT_FROM = 40
_MOVES, _MOVE = 40, 4
# Half the size of a point's mark; what a label keeps away from others; how far it is beside its point. In pixels.
_POINT, _GAP, _BESIDE = 6, (12, 3), 8
# A label that is moved further than this gets a line to its point.
_NEAR = 8
_OURS_COLOUR, _PEER_COLOUR = "#d1495b", "#30638e"


def draw(report: Report, path: Path) -> None:
    """Write the picture: SVG or PNG, by the file's name.

    Raises:
        ModuleNotFoundError: matplotlib is not installed.
        ValueError: The report has nothing to draw, or the name's ending is not that of a picture.
    """
    # The canvas for files needs no display, and uses none.
    import matplotlib as mpl  # noqa: PLC0415 # half a second, and an extra
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    panels = [(title, rows) for section, title in _PANELS if (rows := _points(report, section))]
    if not panels:
        raise ValueError("there is nothing to draw: no look at a page or a photo of 1920x1080 was measured")
    figure = Figure(figsize=(8 * len(panels), 7), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    labels = []
    for axes, (title, rows) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        labels.append(_panel(axes, title, rows))
    machine = report.machine
    figure.suptitle(
        "Looking at the screen: time until the PNG is in hand, and its size\n"
        "(the nearer to the left lower corner, the better)\n"
        f"{machine['processor']}, {machine['cores']} cores, {report.conditions['date']}",
        fontsize=11,
    )
    canvas.draw()
    for texts in labels:
        _spread(texts, canvas.get_renderer())
    # Without a date and random names, the same report gives the same file.
    with mpl.rc_context({"svg.hashsalt": OURS}):
        figure.savefig(path, dpi=110, metadata={"Date": None} if path.suffix == ".svg" else None)


def _points(report: Report, section: str) -> list[Row]:
    return [row for row in report.of(section) if row.median is not None and row.size is not None]


def _panel(axes: Any, title: str, rows: list[Row]) -> list[Any]:
    """Draw one scene; returns the labels."""
    from matplotlib.ticker import LogLocator, NullFormatter  # noqa: PLC0415 # as in draw

    axes.set_title(title, fontsize=10)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("median, ms")
    axes.set_ylabel("size, kB")
    for axis, steps in ((axes.xaxis, (1, 2, 5)), (axes.yaxis, (1, 1.5, 2, 3, 4, 5, 7))):
        axis.set_major_locator(LogLocator(subs=steps, numticks=50))
        axis.set_major_formatter(lambda value, _position: f"{value:,.10g}")
        axis.set_minor_formatter(NullFormatter())
    axes.tick_params(which="both", labelsize=8)
    axes.minorticks_off()
    axes.grid(visible=True, alpha=0.25)
    axes.margins(0.15, 0.15)
    labels = []
    # From the left to the right, so that the lines to labels that are moved up cross no label.
    for row in sorted(rows, key=lambda row: (row.median or 0, row.size or 0)):
        ours = row.who == OURS
        colour = _OURS_COLOUR if ours else _PEER_COLOUR
        point = (row.median, (row.size or 0) / 1000)
        axes.plot(*point, "o" if ours else "s", color=colour, markersize=9 if ours else 6)
        left = (row.median or 0) > _LABEL_LEFT_FROM
        labels.append(
            axes.annotate(
                f"{OURS}: {row.case}" if ours else row.who,
                point,
                xytext=(-_BESIDE if left else _BESIDE, 0),
                textcoords="offset points",
                ha="right" if left else "left",
                va="center",
                fontsize=7.5,
                color=colour,
                fontweight="bold" if ours else "normal",
                in_layout=False,
            )
        )
    return labels


def _spread(labels: list[Any], renderer: Any) -> None:
    """Move labels until none covers another, a point or a line, and draw a line from each that was moved to its point."""
    from matplotlib.path import Path as Line  # noqa: PLC0415 # as in draw
    from matplotlib.transforms import Bbox  # noqa: PLC0415 # likewise

    points = [label.axes.transData.transform(label.xy) for label in labels]
    marks = [Bbox.from_extents(x - _POINT, y - _POINT, x + _POINT, y + _POINT) for x, y in points]
    texts: list[Any] = []
    lines: list[Any] = []
    for label, point in zip(labels, points, strict=True):
        places = list(_places(label.xyann[0]))
        # Where there is no other room, a line may cross a label.
        for strict, (side, up) in itertools.product((True, False), places):
            label.set_ha("right" if side < 0 else "left")
            label.xyann = (side, up)
            box = label.get_window_extent(renderer)
            room = box.padded(*_GAP)
            line = Line([point, (box.x1 if side < 0 else box.x0, (box.y0 + box.y1) / 2)])
            # A corner outside of the axes makes the union larger than they are.
            inside = Bbox.union([box, label.axes.bbox]).bounds == label.axes.bbox.bounds
            alone = not any(box.overlaps(mark) for mark in marks) and not any(room.overlaps(text) for text in texts)
            crosses = any(line.intersects_bbox(text, filled=False) for text in texts) or any(
                other.intersects_bbox(room, filled=False) for other in lines
            )
            if inside and alone and not (strict and crosses):
                break
        texts.append(box)
        lines.append(line)
        if abs(label.xyann[1]) > _NEAR:
            thin = {"arrowstyle": "-", "color": label.get_color(), "lw": 0.6, "shrinkA": 0, "shrinkB": 4}
            label.axes.annotate("", label.xy, label.xyann, textcoords="offset points", arrowprops=thin, in_layout=False)


def _places(beside: float) -> Iterator[tuple[float, int]]:
    """Where a label may be, the nearest first: beside its point, above, below, on the other side, further above..."""
    for step in range(_MOVES):
        for side in (beside, -beside):
            yield from ((side, up * _MOVE) for up in ((step, -step) if step else (0,)))
