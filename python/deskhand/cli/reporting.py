"""The commands `report`, for the results of a run, and `verify`, for a run that was made elsewhere.

What must never appear here: a number of a run (see `deskhand.episodes.report`).
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click
from rich.console import Console
from rich.progress import Progress

from deskhand._core.redaction import clean
from deskhand.cli.common import examples, is_quiet, json_option, quiet_option, show_json, table, write_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deskhand.episodes.report.page import Frames
    from deskhand.episodes.report.table import Form

_DIRECTORY = click.Path(exists=True, file_okay=False)


@click.command(
    epilog=examples(
        "deskhand report runs/gpt                      # writes runs/gpt/report.html",
        "deskhand report runs/new runs/old             # and says by how much the new one is better",
        "deskhand report runs/gpt --frames failed -o failures.html",
        "deskhand report runs/gpt --playback           # with a page that plays each attempt, and links to it",
        "deskhand report runs/gpt --json | jq .strict",
        "deskhand report runs/new runs/old runs/older --table markdown    # the tables of a paper",
    )
)
@click.argument("directory", metavar="DIR", type=_DIRECTORY)
@click.argument("others", metavar="[OTHER...]", type=_DIRECTORY, nargs=-1)
@click.option(
    "-o", "--out", type=click.Path(dir_okay=False), help="Where the page or the table goes; by default DIR/report.html."
)
@click.option(
    "--table",
    "form",
    type=click.Choice(["markdown", "csv", "latex"]),
    help="Print the tables of a paper instead of the page: scores, domains, and DIR compared with each OTHER.",
)
@click.option(
    "--frames",
    type=click.Choice(["all", "failed", "none"]),
    default="all",
    show_default=True,
    help="Which episodes are shown with their pictures.",
)
@click.option(
    "--playback",
    is_flag=True,
    help="Write a page that plays each attempt too, in a folder beside the page, and link to it.",
)
@quiet_option
@json_option
def report(
    *,
    directory: str,
    others: tuple[str, ...],
    out: str | None,
    form: str | None,
    frames: str,
    playback: bool,
    as_json: bool,
) -> None:
    """Make one page of a run of episodes, which works offline: scores, causes, times, and every episode step by step.

    Of a run that is still going on it shows what is done. OTHER is a run to compare with; with --table and --json there may be
    several. With --json the numbers are printed instead, and no page is made.
    """
    if form is not None and as_json:
        raise click.UsageError("--table and --json are two forms of the same numbers: give one of them")
    if form is not None or as_json:
        _show_numbers((directory, *others), form, out)
        return
    if len(others) > 1:
        raise click.UsageError("the page compares with one OTHER: give --table or --json for more")
    # Numpy takes longer to import than most other commands take.
    from deskhand.episodes.report.page import write_report  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True, disable=is_quiet()) as bar:
        task = bar.add_task("Reading episodes", total=None)
        path = write_report(
            directory,
            out,
            other=next(iter(others), None),
            frames=cast("Frames", frames),
            playback=playback,
            progress=lambda done, every: bar.update(task, completed=done, total=every),
        )
    click.echo(f"{path} ({Path(path).stat().st_size / 1e6:.1f} MB)")


def _show_numbers(directories: Sequence[str], form: str | None, out: str | None) -> None:
    from deskhand.episodes.record.reader import open_run  # noqa: PLC0415 # see report
    from deskhand.episodes.report.summary import summarize  # noqa: PLC0415 # likewise
    from deskhand.episodes.report.table import RunNumbers, table_data, write_table  # noqa: PLC0415 # likewise

    runs = []
    for directory in directories:
        with open_run(directory) as run:
            results = run.results()
            numbers = summarize(results, planned=run.planned, beside=run.spent_beside(results))
        runs.append(RunNumbers(clean(run.directory.resolve().name), run.manifest, results, numbers))
    if form is None:
        show_json(table_data(runs))
        return
    text = write_table(runs, cast("Form", form))
    if out is None:
        click.echo(text, nl=False)
    else:
        write_file(out, text.encode())
        click.echo(out)


@click.command(
    epilog=examples(
        "deskhand verify submission                       # a run of tasks that ship",
        "deskhand verify submission --task ./my-tasks     # and of tasks of yours, whose code runs here",
        "deskhand verify submission --json | jq '.tasks[] | select(.verdict != \"confirmed\")'",
    )
)
@click.argument("directory", metavar="DIR", type=_DIRECTORY)
@click.option(
    "--task", "tasks", multiple=True, help="Tasks that do not ship with deskhand; their code runs on this machine."
)
@json_option
def verify(*, directory: str, tasks: tuple[str, ...], as_json: bool) -> int:
    """Check a run that was made elsewhere: its plan, its records, and its scores from the recorded end states.

    For each task it says whether its scores are confirmed, differ, or cannot be checked, and why. Nothing of the run is
    executed. The exit code is 0 if everything is confirmed.
    """
    from deskhand.episodes.record.reader import open_run  # noqa: PLC0415 # see report
    from deskhand.episodes.report.verification import Verdict, verify_run  # noqa: PLC0415 # likewise
    from deskhand.episodes.tasks.catalogue import built_in, find_tasks  # noqa: PLC0415 # likewise

    known = dict(built_in())
    if tasks:
        known |= {task.name: task for task in find_tasks(tasks)}
    with open_run(directory) as run:
        found = verify_run(run, known, now=time.time())
    if as_json:
        show_json(asdict(found) | {"verdict": found.verdict})
    else:
        rows = [(each.task, each.verdict, str(each.episodes), "; ".join(each.reasons)) for each in found.tasks]
        table(("task", "verdict", "episodes", "why"), rows)
        for problem in found.problems:
            click.echo(clean(f"the run: {problem}"))
        counts = Counter(each.verdict for each in found.tasks)
        click.echo(", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict))
    return 0 if found.verdict is Verdict.CONFIRMED else 1


COMMANDS = (report, verify)
"""The commands of this module."""
