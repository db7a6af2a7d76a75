"""The plots of a report, as SVG for the page.

This module owns how a number is drawn. All numbers come from the summary.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from deskhand.episodes.report.summary import PHASES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deskhand.episodes.report.summary import Summary

COLOURS = {
    "reset": "#8d99ae",
    "setup": "#5c7aa8",
    "think": "#e9b44c",
    "input": "#d1495b",
    "settle": "#66a182",
    "observe": "#2e7d8c",
    "evaluate": "#9b72aa",
    "overhead": "#444b54",
}
_GOOD, _BAD, _INVALID = "#66a182", "#d1495b", "#8d99ae"


def chances(summary: Summary) -> str:
    """pass@k and pass^k over k."""
    figure, axes = _axes(5.2, 3.2)
    for values, label, colour, mark in (
        (summary.any_of, "pass@k: one of k succeeds", _GOOD, "o"),
        (summary.all_of, "pass^k: all of k succeed", _BAD, "s"),
    ):
        axes.plot(list(values), [100 * value for value in values.values()], marker=mark, color=colour, label=label)
    axes.set(xlabel="k", ylabel="%", ylim=(-4, 104), xticks=list(summary.any_of) or [1])
    axes.legend(frameon=False, fontsize=8)
    return _svg(figure)


def phases_of_tasks(results: Sequence[tuple[str, Mapping[str, float]]]) -> str:
    """The time of each task by phase: a bar a task, the mean of its episodes, longest first.

    Args:
        results: The task of each episode, and its seconds by phase.
    """
    tasks: dict[str, list[Mapping[str, float]]] = {}
    for task, phases in results:
        tasks.setdefault(task, []).append(phases)
    means = {
        task: {p: sum(each[p] for each in several) / len(several) for p in PHASES} for task, several in tasks.items()
    }
    order = sorted(means, key=lambda task: sum(means[task].values()))
    figure, axes = _axes(9.5, 0.9 + 0.2 * len(order))
    left = [0.0] * len(order)
    for phase in PHASES:
        widths = [means[task][phase] for task in order]
        axes.barh(order, widths, left=left, color=COLOURS[phase], label=phase, height=0.72)
        left = [begin + width for begin, width in zip(left, widths, strict=True)]
    axes.set(xlabel="seconds")
    axes.margins(y=0.01)
    axes.tick_params(axis="y", labelsize=7)
    axes.legend(frameon=False, fontsize=8, ncols=len(PHASES), loc="lower left", bbox_to_anchor=(0, 1))
    return _svg(figure)


def scatter(results: Sequence[Mapping[str, Any]]) -> str:
    """Steps and seconds of every episode."""
    figure, axes = _axes(5.2, 3.2)
    for label, colour, chosen in (
        ("success", _GOOD, [r for r in results if r["valid"] and r["success"]]),
        ("failure", _BAD, [r for r in results if r["valid"] and not r["success"]]),
        ("invalid", _INVALID, [r for r in results if not r["valid"]]),
    ):
        if chosen:
            seconds = [r["times"]["total"] for r in chosen]
            axes.scatter(
                [r["steps"] for r in chosen], seconds, s=14, color=colour, label=label, alpha=0.75, linewidths=0
            )
    axes.set(xlabel="steps", ylabel="seconds")
    axes.legend(frameon=False, fontsize=8)
    return _svg(figure)


def _axes(width: float, height: float) -> tuple[Any, Any]:
    # The canvas for files needs no display, and uses none.
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 # half a second, and an extra
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(width, height), layout="constrained", facecolor="none")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.set_facecolor("none")
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _svg(figure: Any) -> str:
    import matplotlib as mpl  # noqa: PLC0415 # as above

    target = io.StringIO()
    # Text stays text in the page's own font. Without dates and random names, the same run gives the same page.
    with mpl.rc_context({"svg.hashsalt": "deskhand", "svg.fonttype": "none"}):
        figure.savefig(target, format="svg", metadata={"Date": None})
    text = target.getvalue()
    return text[text.index("<svg") :]
