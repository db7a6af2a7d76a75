"""The command: `python -m bench`, in the repository."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from bench.figures import OURS, Report, judge, ratio
from bench.output import write_page, write_report
from bench.plot import draw
from bench.sections import choose, run
from bench.tables import amount, block, times
from deskhand._core.redaction import clean
from deskhand.cli.common import examples, file_to_write
from deskhand.cli.group import run_command
from deskhand.errors import ActionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_STYLES = {True: "green", False: "red", None: "yellow"}
_WORDS = {True: "met", False: "missed", None: "not measured"}


@click.command(
    epilog=examples(
        "python -m bench --quick",
        "python -m bench --only 'look/1920*' --rounds 50",
        "python -m bench --only act --json act.json",
        "python -m bench --json bench.json --plot bench.svg --readme docs/benchmarks.md",
        "python -m bench --from bench.json --plot bench.png",
    ),
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option("--quick", is_flag=True, help="Less of everything: a minute instead of ten.")
@click.option(
    "--only", metavar="PATTERN", help="Only the sections whose names have this in them; * stands for anything."
)
@click.option("--rounds", type=click.IntRange(1), help="So many rounds instead of each section's own number.")
@click.option(
    "--json", "json_path", metavar="PATH", callback=file_to_write, help="Write the report; - is standard output."
)
@click.option("--plot", metavar="PATH", callback=file_to_write, help="Draw speed against size, as .svg or .png.")
@click.option("--readme", metavar="PATH", callback=file_to_write, help="Write the tables between this file's markers.")
@click.option(
    "--from", "source", type=click.Path(exists=True, dir_okay=False), help="Measure nothing: take that report."
)
def bench(
    *,
    quick: bool,
    only: str | None,
    rounds: int | None,
    json_path: str | None,
    plot: str | None,
    readme: str | None,
    source: str | None,
) -> None:
    """Measure deskhand beside its peers on this machine.

    Everything happens on desktops of its own, which are closed at the end. Missing peers and programs are named in the tables,
    with the command that installs them; tools/peers installs most of the peers.
    """
    report = _read(source) if source is not None else _measure(only, rounds, quick=quick)
    if json_path == "-":
        click.echo(json.dumps(report.to_dict()))
    else:
        _show(report)
        if json_path is not None:
            write_report(json_path, report, targets=True)
    if plot is not None:
        _draw(report, Path(plot))
    if readme is not None:
        address = os.path.relpath(plot, Path(readme).parent) if plot is not None else None
        write_page(readme, block(report, plot=address))


def _read(source: str) -> Report:
    try:
        return Report.from_dict(json.loads(Path(source).read_text()))
    except (ValueError, TypeError, KeyError) as error:
        raise ActionError(f"{source} is not a report: {error}") from error


def _measure(only: str | None, rounds: int | None, *, quick: bool) -> Report:
    try:
        sections = choose(only, quick=quick)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--only") from error
    with _progress(len(sections)) as (begin, say):
        return run(sections, quick=quick, rounds=rounds, begin=begin, say=say)


@contextlib.contextmanager
def _progress(count: int) -> Iterator[tuple[Callable[[str], None], Callable[[str], None]]]:
    """The functions to call when a section begins, and when there is progress to report.

    On a terminal they draw a bar with the present step; elsewhere they print the name of each section.
    """
    if not sys.stderr.isatty():
        yield lambda name: click.echo(name, err=True), lambda _text: None
        return
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    # The bar is drawn seldom, so that it does not disturb the measurements.
    with Progress(*columns, console=Console(stderr=True), transient=True, refresh_per_second=1) as bar:
        task = bar.add_task("", total=count, completed=-1)

        def begin(name: str) -> None:
            bar.update(task, advance=1, description=name)

        yield begin, lambda text: bar.update(task, description=text)


def _show(report: Report) -> None:
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 10_000)
    style = box.SIMPLE_HEAD if sys.stdout.isatty() else None
    found = Table(box=style, pad_edge=False)
    for name in ("section", "case", "who", "n", "median", "p95", "size", "×", "note"):
        found.add_column(name, justify="right" if name in {"n", "median", "p95", "size", "×"} else "left")
    for row in report.rows:
        same = report.find(row.section, row.case)
        cells = [row.section, row.case, row.who, str(row.n or ""), amount(row.median, row.unit)]
        cells += [amount(row.p95, row.unit) if row.n > 1 else "", amount(row.size, "bytes")]
        cells += [times(ratio(row, same)) if row.who != OURS and row.unit == "ms" else "", row.missing or row.note]
        found.add_row(*(Text(clean(cell), style="bold" if row.who == OURS else "") for cell in cells))
    console.print(found)
    targets = Table(box=style, pad_edge=False)
    for name in ("promised", "must", "measured", ""):
        targets.add_column(name)
    for verdict in judge(report):
        word = Text(_WORDS[verdict.met], style=_STYLES[verdict.met])
        targets.add_row(Text(verdict.name), Text(verdict.must), Text(verdict.measured), word)
    console.print(targets)


def _draw(report: Report, path: Path) -> None:
    try:
        draw(report, path)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        raise ActionError("the plot needs matplotlib: run tools/peers") from error
    except ValueError as error:
        raise ActionError(str(error)) from error


sys.exit(run_command(bench, "python -m bench"))
