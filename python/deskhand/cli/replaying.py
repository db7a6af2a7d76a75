"""Repeats the episodes of a recorded run, and has the command `export`.

What must never appear here: what counts as the same, another project's form (see `deskhand.episodes`).
"""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from deskhand._core.redaction import clean
from deskhand.cli.common import examples, is_quiet, json_option, quiet_option, show_json
from deskhand.errors import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deskhand.episodes.play.replay import Difference, Replayed
    from deskhand.episodes.record.export import Form
    from deskhand.episodes.record.frame_diff import Region

_FORMS = ("osworld", "atif", "video", "html")
_SHOWN = 10


def replay_run(
    directory: str,
    episodes: Sequence[str],
    desktops: int,
    out: str | None,
    masks: Sequence[Region],
    *,
    tasks: Sequence[str],
    backend: str | None,
    image: str | None,
    host: bool,
    state_only: bool,
    as_json: bool,
) -> int:
    """Do the episodes of a run again, report what differs, and return the exit code."""
    if backend is None or (backend == "local" and not host):
        raise click.UsageError(
            "the commands, programs and keys that the run recorded are made again: give --backend docker for desktops in "
            "containers, or, if you trust the run, --backend local --host for this machine, with your rights"
        )
    # These load a good part of the package, which other commands need not wait for.
    from deskhand.episodes.play.pools import DesktopPools  # noqa: PLC0415
    from deskhand.episodes.play.replay import replay, tasks_of  # noqa: PLC0415
    from deskhand.episodes.record.reader import open_run  # noqa: PLC0415

    quiet = as_json or is_quiet()

    def tell(replayed: Replayed) -> None:
        if not quiet:
            _tell(replayed, state_only=state_only)

    with contextlib.ExitStack() as held:
        run = held.enter_context(open_run(directory))
        target = Path(out if out is not None else held.enter_context(tempfile.TemporaryDirectory(prefix="deskhand-")))
        played = tasks_of(run, episodes, named=tasks)
        recorded = run.manifest.get("image")
        if recorded is not None and image is None and backend != "local":
            _say_beside(f"it was recorded with the image {shown(recorded)}, which --image would use again")
        pools = held.enter_context(DesktopPools(played, backend=backend, desktops=desktops, image=image))
        found = replay(
            run,
            target,
            pools.places,
            played,
            episodes=episodes,
            desktops=desktops,
            masks=masks,
            host=host,
            done=tell,
        )
    differing = [each for each in found if not (each.same_state if state_only else each.same)]
    if as_json:
        show_json([asdict(each) | {"same_state": each.same_state, "same": each.same} for each in found])
    else:
        frames = sum(each.frames for each in found)
        differ = sum(difference.what == "frame" for each in found for difference in each.differences)
        ended = sum(each.same_state for each in found)
        click.echo(
            f"{ended} of {len(found)} episodes ended as they had; {frames - differ} of {frames} frames are the same"
        )
    return 1 if differing else 0


def _tell(replayed: Replayed, *, state_only: bool) -> None:
    same = replayed.same_state if state_only else replayed.same
    note = f" ({replayed.note})" if replayed.note else ""
    _say(f"{replayed.episode}: {'the same' if same else 'differs'}, {replayed.steps} calls{note}")
    for name, (before, now) in replayed.state.items():
        _say(f"  {name}: {before!r}, and now {now!r}")
    if not state_only:
        for difference in replayed.differences[:_SHOWN]:
            _say(f"  {_description(difference)}")
        if len(replayed.differences) > _SHOWN:
            _say(f"  and {len(replayed.differences) - _SHOWN} more")


def _description(difference: Difference) -> str:
    where = f"call {difference.step}" if difference.step else "at first"
    if difference.what == "frame" and difference.region is not None:
        x, y, width, height = difference.region
        return f"{where}: {difference.pixels} pixels differ, within {width}x{height} at {x},{y}"
    if difference.what == "frame":
        return f"{where}: the frame differs, and its pixels or its size cannot be compared"
    return f"{where}: {difference.what} was {difference.recorded!r}, and is {difference.replayed!r}"


def _say(line: str) -> None:
    click.echo(clean(line))


def _say_beside(line: str) -> None:
    click.echo(clean(line), err=True)


@click.command(
    epilog=examples(
        "deskhand export runs/gpt --format osworld --to results     # traj.jsonl, screenshots, result.txt",
        "deskhand export runs/gpt --format atif --to trajectories   # one trajectory.json an episode",
        "deskhand export runs/gpt text-rename.s0.r0 --format video --to videos",
        "deskhand export runs/gpt text-rename.s0.r0 --format html --to pages     # one file that you can send",
        "deskhand export runs/new --format html --beside runs/old --to pages     # the same episodes side by side",
    )
)
@click.argument("directory", metavar="DIR", type=click.Path(exists=True, file_okay=False))
@click.argument("episodes", metavar="[EPISODE...]", nargs=-1)
@click.option("--format", "form", required=True, type=click.Choice(_FORMS), help="As what; video needs ffmpeg.")
@click.option("--to", "target", required=True, metavar="DIR", type=click.Path(file_okay=False), help="Where to.")
@click.option(
    "--beside",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False),
    help="html: another run, whose episodes of the same names are shown beside these.",
)
@quiet_option
@json_option
def export(
    *, directory: str, episodes: tuple[str, ...], form: str, target: str, beside: str | None, as_json: bool
) -> None:
    """Write the episodes of a run in the form of other programs.

    osworld: folders as OSWorld's own tools find them. atif: documents of the Agent Trajectory Interchange Format 1.8.
    video: an MP4 each. html: a page each that plays it, offline. Of each episode, the attempt that counts is written; existing
    files are not overwritten.
    """
    if beside is not None and form != "html":
        raise click.UsageError("--beside is for --format html")
    from rich.console import Console  # noqa: PLC0415 # see replay_run
    from rich.progress import Progress  # noqa: PLC0415 # likewise

    from deskhand.episodes.record.export import export as write  # noqa: PLC0415 # likewise
    from deskhand.episodes.record.reader import open_run  # noqa: PLC0415 # likewise
    from deskhand.episodes.report.player import export_playbacks  # noqa: PLC0415 # likewise

    with Progress(console=Console(stderr=True), transient=True, disable=is_quiet()) as bar:
        task = bar.add_task("Writing episodes", total=None)

        def tell(done: int, every: int) -> None:
            bar.update(task, completed=done, total=every)

        if form == "html":
            written = export_playbacks(directory, target, episodes=episodes, beside=beside, progress=tell)
        else:
            with open_run(directory) as run:
                written = write(run, cast("Form", form), target, episodes=episodes, progress=tell)
    if as_json:
        show_json([str(path) for path in written])
    else:
        click.echo(f"{len(written)} episodes written to {target}")


COMMANDS = (export,)
"""The commands of this module."""
