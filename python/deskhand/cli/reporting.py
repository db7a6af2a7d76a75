"""The command that makes a page of a run: `report`.

What must never appear here: a number of a run (see `deskhand.episodes.report`).
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click
from rich.console import Console
from rich.progress import Progress

from deskhand.cli.common import examples, is_quiet, json_option, quiet_option, show_json

if TYPE_CHECKING:
    from deskhand.episodes.report.page import Frames

_DIRECTORY = click.Path(exists=True, file_okay=False)


@click.command(
    epilog=examples(
        "deskhand report runs/gpt                      # writes runs/gpt/report.html",
        "deskhand report runs/new runs/old             # and says by how much the new one is better",
        "deskhand report runs/gpt --frames failed -o failures.html",
        "deskhand report runs/gpt --json | jq .strict",
    )
)
@click.argument("directory", metavar="DIR", type=_DIRECTORY)
@click.argument("other", metavar="[OTHER]", type=_DIRECTORY, required=False)
@click.option("-o", "--out", type=click.Path(dir_okay=False), help="Where the page goes; by default DIR/report.html.")
@click.option(
    "--frames",
    type=click.Choice(["all", "failed", "none"]),
    default="all",
    show_default=True,
    help="Which episodes are shown with their pictures.",
)
@quiet_option
@json_option
def report(*, directory: str, other: str | None, out: str | None, frames: str, as_json: bool) -> None:
    """Make one page of a run of episodes, which works offline: scores, causes, times, and every episode step by step.

    Of a run that is still going on it shows what is done. OTHER is a run to compare with. With --json the numbers are printed
    instead, and no page is made.
    """
    # Numpy takes longer to import than most other commands take.
    from deskhand.episodes.record.reader import open_run  # noqa: PLC0415
    from deskhand.episodes.report.page import write_report  # noqa: PLC0415
    from deskhand.episodes.report.summary import summarize  # noqa: PLC0415

    if as_json:
        run = open_run(directory)
        results = run.results()
        show_json(asdict(summarize(results, planned=run.planned, beside=run.spent_beside(results))))
        return
    with Progress(console=Console(stderr=True), transient=True, disable=is_quiet()) as bar:
        task = bar.add_task("Reading episodes", total=None)
        path = write_report(
            directory,
            out,
            other=other,
            frames=cast("Frames", frames),
            progress=lambda done, every: bar.update(task, completed=done, total=every),
        )
    click.echo(f"{path} ({Path(path).stat().st_size / 1e6:.1f} MB)")


COMMANDS = (report,)
"""The commands of this module."""
