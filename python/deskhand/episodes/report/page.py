"""The page of a report: one HTML file that works offline.

This module reads a run, shrinks its pictures, and fills the template. Scores are computed in `summary`, and events are
described in `timeline`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from urllib.parse import quote

from deskhand._core.arguments import expect_flag, expect_path
from deskhand._native import __version__
from deskhand.episodes.record.reader import key_of, open_run
from deskhand.episodes.report import plots
from deskhand.episodes.report.parts import moments_of, picture, place_for, write_whole
from deskhand.episodes.report.player import write_attempt
from deskhand.episodes.report.summary import PHASES, Summary, compare, split, summarize
from deskhand.errors import EpisodeError, MissingExtra, files_named

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from deskhand.episodes.record.reader import Recording, Run
    from deskhand.episodes.report.statistics import Interval
    from deskhand.episodes.report.timeline import Moment

Frames: TypeAlias = Literal["all", "failed", "none"]
"""The episodes that are shown with pictures."""

_TEMPLATES = Path(__file__).parent
_WIDTH = 800
_QUALITY = 60


@dataclass(frozen=True, slots=True)
class _OtherRun:
    """The run to compare with."""

    name: str
    results: Sequence[Mapping[str, Any]]
    beside: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class _Shown:
    """One episode on the page."""

    name: str
    result: Mapping[str, Any]
    phases: Mapping[str, float]
    moments: Sequence[Moment]
    screen: tuple[int, int]
    other: Mapping[str, Any] | None
    trouble: str
    played: Sequence[_Playback]


@dataclass(frozen=True, slots=True)
class _Playback:
    """The page that plays one attempt of an episode."""

    label: str
    link: str
    counts: bool


def write_report(
    directory: str | os.PathLike[str],
    target: str | os.PathLike[str] | None = None,
    *,
    other: str | os.PathLike[str] | None = None,
    frames: Frames = "all",
    playback: bool = False,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Path:
    """Write the page of a run.

    Args:
        directory: The directory of the run.
        target: The path of the page; by default `report.html` in the run's directory.
        other: The directory of another run for comparison: the page says by how much this run is better.
        frames: The episodes that are shown with pictures: `all`, the `failed` (and invalid) ones, or `none`.
        playback: Also write a page that plays each attempt, and link to it. They are in a folder beside the page:
            `report-playback` for `report.html`.
        progress: Called with the number of episodes read so far, and the total.

    Returns:
        The page's path. The page appears completely or not at all.

    Raises:
        EpisodeError: There is no run, the page's folder does not exist, or that for playbacks is a link.
        FileError: The page cannot be written.
        MissingExtra: Jinja or matplotlib is not installed.
    """
    environment = _environment()
    directory = expect_path("write_report: directory", directory)
    expect_flag("write_report: playback", playback)
    path = Path(directory) / "report.html" if target is None else Path(expect_path("write_report: target", target))
    place_for(path)
    before = None
    if other is not None:
        with open_run(other) as earlier_run:
            earlier_results = earlier_run.results()
            beside = earlier_run.spent_beside(earlier_results)
            before = _OtherRun(earlier_run.directory.resolve().name, earlier_results, beside)
    folder = path.with_name(f"{path.stem}-playback") if playback else None
    with open_run(directory) as run:
        text = _filled(environment, run, before, frames=frames, playbacks=folder, progress=progress)
    with files_named("cannot write the page", path):
        write_whole(path, text)
    return path


def _filled(
    environment: Any,
    run: Run,
    before: _OtherRun | None,
    *,
    frames: Frames,
    playbacks: Path | None,
    progress: Callable[[int, int], None],
) -> str:
    results = run.results()
    difference, both = compare(before.results, results) if before is not None else (None, [])
    earlier = {id(after): first for first, after in both}
    pictures: dict[str, str] = {}
    shown = []
    for number, result in enumerate(results):
        progress(number, len(results))
        played = [] if playbacks is None else _played(run, result, playbacks)
        other = earlier.get(id(result))
        shown.append(_episode(run, result, other, pictures=pictures, frames=frames, played=played))
    progress(len(results), len(results))
    summary = summarize(results, planned=run.planned, beside=run.spent_beside(results))
    text: str = environment.get_template("page.html.jinja").render(
        version=__version__,
        name=run.directory.resolve().name,
        agent=run.manifest.get("agent", ""),
        about=_about(run.manifest),
        summary=summary,
        other=None if before is None else summarize(before.results, beside=before.beside),
        other_name=None if before is None else before.name,
        difference=difference,
        paired=sum(bool(first["valid"] and after["valid"]) for first, after in both),
        facts=_facts,
        episodes=shown,
        phases=PHASES,
        colours=plots.COLOURS,
        plots=_plots(summary, results),
        pictures=pictures,
    )
    return text


def _environment() -> Any:
    try:
        import jinja2  # noqa: PLC0415 # an extra
        import matplotlib as mpl  # noqa: PLC0415 # an extra
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "jinja2", "episodes") from error
    del mpl
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(percent=_percent, interval=_interval, seconds=_seconds, counted=_counted)
    return environment


def _played(run: Run, result: Mapping[str, Any], folder: Path) -> list[_Playback]:
    """Write the playbacks of all attempts of an episode."""
    played = []
    for recording in run.recordings(str(key_of(result))):
        path = write_attempt(run, recording, folder)
        label = f"attempt {recording.attempt}{', stopped' if recording.superseded else ''}"
        counts = not recording.superseded and recording.attempt == result["attempt"]
        played.append(_Playback(label, quote(path.relative_to(folder.parent).as_posix()), counts))
    return played


def _episode(
    run: Run,
    result: Mapping[str, Any],
    other: Mapping[str, Any] | None,
    *,
    pictures: dict[str, str],
    frames: Frames,
    played: Sequence[_Playback],
) -> _Shown:
    try:
        recording: Recording | None = run.recording(result)
    except EpisodeError:
        # No attempt of this episode has a recording.
        recording = None
    happened, trouble = moments_of(recording)
    if recording is not None and (frames == "all" or (frames == "failed" and not result["success"])):
        for frame in _frames_of(happened):
            if frame not in pictures:
                try:
                    pictures[frame] = picture(recording, frame, width=_WIDTH, quality=_QUALITY)
                except (EpisodeError, OSError) as error:
                    # The page shows everything that can be read.
                    trouble = trouble or str(error)
    screen = recording.begin.get("screen") if recording is not None and happened else None
    width, height = screen or (1280, 800)
    return _Shown(str(key_of(result)), result, split(result), happened, (width, height), other, trouble, played)


def _about(manifest: Mapping[str, Any]) -> list[str]:
    host = manifest.get("host") or {}
    facts = [
        host.get("cpu"),
        f"{host['cpus']} processors" if "cpus" in host else None,
        f"{manifest['backend']} desktops" if "backend" in manifest else None,
        f"deskhand {manifest['deskhand']}" if "deskhand" in manifest else None,
    ]
    return [str(fact) for fact in facts if fact]


def _frames_of(happened: Sequence[Moment]) -> Iterator[str]:
    for moment in happened:
        yield from (frame for frame in (moment.frame, moment.before) if frame is not None)


def _plots(summary: Summary, results: Sequence[Mapping[str, Any]]) -> Mapping[str, str]:
    if not results:
        return {}
    return {
        "phases": plots.phases_of_tasks([(str(each["task"]), split(each)) for each in results]),
        "scatter": plots.scatter(results),
        **({"chances": plots.chances(summary)} if len(summary.any_of) > 1 else {}),
    }


def _facts(moment: Moment) -> list[str]:
    """The text below a moment's picture."""
    areas = len(moment.rects)
    changed = [f"{areas} area{'' if areas == 1 else 's'} changed"] if areas else []
    return [*moment.facts, *changed, *(f"{part} {_seconds(value)}" for part, value in moment.times)]


def _counted(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _percent(value: float, digits: int = 1) -> str:
    return f"{100 * value:.{digits}f} %"


def _interval(value: Interval) -> str:
    return f"{_percent(value.value)} ({100 * value.low:.1f} to {100 * value.high:.1f})"


def _seconds(value: float) -> str:
    if value < 1:
        return f"{1000 * value:.0f} ms"
    return f"{value:.1f} s" if value < 120 else f"{value / 60:.1f} min" if value < 7200 else f"{value / 3600:.1f} h"
