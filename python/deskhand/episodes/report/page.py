"""The page of a report: one HTML file that works offline.

This module reads a run, shrinks its pictures, and fills the template. Scores are computed in `summary`, and events are
described in `timeline`.
"""

from __future__ import annotations

import io
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from PIL import Image

from deskhand._core.arguments import expect_path
from deskhand._core.formats import data_url
from deskhand._native import __version__
from deskhand.episodes.record.reader import key_of, open_run
from deskhand.episodes.report import plots
from deskhand.episodes.report.summary import PHASES, Summary, compare, split, summarize
from deskhand.episodes.report.timeline import Moment, moments
from deskhand.errors import EpisodeError, MissingExtra, files_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from deskhand.episodes.record.reader import Recording, Run
    from deskhand.episodes.report.statistics import Interval

__all__ = ["Frames", "write_report"]

Frames: TypeAlias = Literal["all", "failed", "none"]
"""The episodes that are shown with pictures."""

_TEMPLATES = Path(__file__).parent
_WIDTH = 800
_QUALITY = 60


@dataclass(frozen=True, slots=True)
class _Before:
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


def write_report(
    directory: str | os.PathLike[str],
    target: str | os.PathLike[str] | None = None,
    *,
    other: str | os.PathLike[str] | None = None,
    frames: Frames = "all",
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Path:
    """Write the page of a run.

    Args:
        directory: The directory of the run.
        target: The path of the page; by default `report.html` in the run's directory.
        other: The directory of another run for comparison: the page says by how much this run is better.
        frames: The episodes that are shown with pictures: `all`, the `failed` (and invalid) ones, or `none`.
        progress: Called with the number of episodes read so far, and the total.

    Returns:
        The page's path. The page appears completely or not at all.

    Raises:
        EpisodeError: There is no run, or the page's folder does not exist.
        FileError: The page cannot be written.
        MissingExtra: Jinja or matplotlib is not installed.
    """
    environment = _environment()
    directory = expect_path("write_report: directory", directory)
    path = Path(directory) / "report.html" if target is None else Path(expect_path("write_report: target", target))
    # Checked before thousands of pictures are read.
    if not os.path.isdir(path.parent):  # noqa: PTH112 # False for a name that is too long, too
        raise EpisodeError(f"{path.parent} is not a directory: {path.name} cannot be written there")
    before = None
    if other is not None:
        with open_run(other) as earlier_run:
            earlier_results = earlier_run.results()
            beside = earlier_run.spent_beside(earlier_results)
            before = _Before(earlier_run.directory.resolve().name, earlier_results, beside)
    with open_run(directory) as run:
        text = _filled(environment, run, before, frames=frames, progress=progress)
    with files_named("cannot write the page", path):
        _write(path, text)
    return path


def _filled(
    environment: Any,
    run: Run,
    before: _Before | None,
    *,
    frames: Frames,
    progress: Callable[[int, int], None],
) -> str:
    results = run.results()
    difference, both = compare(before.results, results) if before is not None else (None, [])
    earlier = {id(after): first for first, after in both}
    pictures: dict[str, str] = {}
    shown = []
    for number, result in enumerate(results):
        progress(number, len(results))
        shown.append(_episode(run, result, earlier.get(id(result)), pictures, frames))
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
    environment.filters.update(percent=_percent, interval=_interval, seconds=_seconds)
    return environment


def _episode(
    run: Run, result: Mapping[str, Any], other: Mapping[str, Any] | None, pictures: dict[str, str], frames: Frames
) -> _Shown:
    try:
        recording: Recording | None = run.recording(result)
    except EpisodeError:
        # No attempt of this episode has a recording.
        recording = None
    happened, trouble = _moments(recording)
    if recording is not None and (frames == "all" or (frames == "failed" and not result["success"])):
        for frame in _frames_of(happened):
            if frame not in pictures:
                try:
                    pictures[frame] = _picture(recording, frame)
                except (EpisodeError, OSError) as error:
                    # The page shows everything that can be read.
                    trouble = trouble or str(error)
    screen = recording.begin.get("screen") if recording is not None and happened else None
    width, height = screen or (1280, 800)
    return _Shown(str(key_of(result)), result, split(result), happened, (width, height), other, trouble)


def _moments(recording: Recording | None) -> tuple[Sequence[Moment], str]:
    """The moments, and why they are incomplete, if they are."""
    if recording is None:
        return [], ""
    try:
        return moments(recording.events), "the record ends in the middle of an event" if recording.torn else ""
    except EpisodeError as error:
        return [], str(error)


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


def _picture(recording: Recording, frame: str) -> str:
    """A frame for the page: smaller, and lossy; the run's directory has every pixel."""
    image = Image.fromarray(recording.frame(frame))
    if image.width > _WIDTH:
        image = image.resize((_WIDTH, round(image.height * _WIDTH / image.width)), Image.Resampling.LANCZOS)
    target = io.BytesIO()
    image.save(target, "WEBP", quality=_QUALITY)
    return data_url(target.getvalue(), "image/webp")


def _plots(summary: Summary, results: Sequence[Mapping[str, Any]]) -> Mapping[str, str]:
    if not results:
        return {}
    return {
        "phases": plots.phases_of_tasks([(str(each["task"]), split(each)) for each in results]),
        "scatter": plots.scatter(results),
        **({"chances": plots.chances(summary)} if len(summary.any_of) > 1 else {}),
    }


def _write(path: Path, text: str) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _facts(moment: Moment) -> list[str]:
    """The text below a moment's picture."""
    areas = len(moment.rects)
    changed = [f"{areas} area{'' if areas == 1 else 's'} changed"] if areas else []
    return [*moment.facts, *changed, *(f"{part} {_seconds(value)}" for part, value in moment.times)]


def _percent(value: float, digits: int = 1) -> str:
    return f"{100 * value:.{digits}f} %"


def _interval(value: Interval) -> str:
    return f"{_percent(value.value)} ({100 * value.low:.1f} to {100 * value.high:.1f})"


def _seconds(value: float) -> str:
    if value < 1:
        return f"{1000 * value:.0f} ms"
    return f"{value:.1f} s" if value < 120 else f"{value / 60:.1f} min" if value < 7200 else f"{value / 3600:.1f} h"
