"""Exports episodes for other programs: OSWorld's result folders, and ATIF documents.

This module owns which attempts are exported, and where to. The formats are in `osworld_format`, `atif` and
`deskhand.episodes.record.video`.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from deskhand._core.arguments import expect, expect_path, expect_texts
from deskhand._native import __version__
from deskhand.episodes.record import atif, osworld_format
from deskhand.episodes.record.reader import Run, key_of
from deskhand.episodes.record.transcript_turns import first_frame, turns
from deskhand.episodes.record.video import write_video
from deskhand.errors import EpisodeError, files_named

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from deskhand.episodes.record.reader import Recording

Form = Literal["osworld", "atif", "video"]

FORMATS: tuple[Form, ...] = ("osworld", "atif", "video")
"""The formats of exports."""


def export(
    run: Run,
    form: Form,
    target: str | os.PathLike[str],
    *,
    episodes: Sequence[str] = (),
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> list[Path]:
    """Export a run's episodes: for each the attempt that counts, or the last one.

    The export of an episode appears completely or not at all.

    Args:
        run: The run.
        form: `osworld`: folders for OSWorld's own readers (TARGET/pyautogui/screenshot/AGENT/TAG/EPISODE), where an invalid
            episode has no `result.txt`, like one that is not done yet; `atif`: TARGET/EPISODE/trajectory.json with its images;
            `video`: TARGET/EPISODE.mp4.
        target: The folder; it is created.
        episodes: Only these, by name (`count.s0.r0`).
        progress: Called with the number of exported episodes, and the total.

    Returns:
        The folder or file of each episode.

    Raises:
        EpisodeError: There is no such episode, its export exists already, or a program is missing.
        FileError: The target cannot be written.
    """
    if form not in FORMATS:
        raise EpisodeError(f"there is no format {form!r}; there are: {', '.join(FORMATS)}")
    expect("export: run", run, Run)
    root = Path(expect_path("export: target", target))
    episodes = expect_texts("export: episodes", episodes or ())
    chosen = [run.recording(name) for name in episodes] if episodes else counting(run)
    if not chosen:
        raise EpisodeError(f"{run.directory} has no episode to export")
    written = []
    with files_named("cannot make the folder", root):
        root.mkdir(parents=True, exist_ok=True)
    for number, recording in enumerate(chosen):
        progress(number, len(chosen))
        with files_named(f"cannot export {recording.key} to", root):
            if form == "video":
                written.append(write_video(recording, root / f"{recording.key}.mp4"))
            else:
                written.append(_folder(recording, root, _osworld if form == "osworld" else _atif))
    progress(len(chosen), len(chosen))
    return written


def counting(run: Run) -> list[Recording]:
    """Of each episode the attempt that counts, or the last one."""
    counts = {str(key_of(each)): each["attempt"] for each in run.results()}
    found: dict[str, Recording] = {}
    for recording in run.recordings():
        if not recording.superseded and counts.get(recording.key, recording.attempt) == recording.attempt:
            found[recording.key] = recording
    return list(found.values())


def _folder(recording: Recording, root: Path, write: Callable[[Recording, Path], tuple[str, ...]]) -> Path:
    with tempfile.TemporaryDirectory(dir=root, prefix=".export-") as temporary:
        here = Path(temporary) / "new"
        here.mkdir()
        path = root.joinpath(*write(recording, here))
        if path.exists():
            raise EpisodeError(f"{path} is there already: export to another folder, or remove it")
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(here, path)
    return path


def _osworld(recording: Recording, here: Path) -> tuple[str, ...]:
    result = recording.result or {}
    begin = recording.begin
    ended_itself = recording.result is not None and result.get("cause") is None
    screen = begin.get("screen") or (1280, 800)
    written = osworld_format.lines(
        turns(recording.events),
        tuple(screen),
        ended_itself=ended_itself,
        stamp=lambda wall: datetime.fromtimestamp(wall, UTC).strftime("%Y%m%d@%H%M%S%f"),
    )
    with (here / "traj.jsonl").open("w", encoding="utf-8") as file:
        for line, frame in written:
            if frame is not None:
                (here / line["screenshot_file"]).write_bytes(recording.png(frame))
            file.write(json.dumps(line) + "\n")
    if (first := first_frame(recording.events)) is not None:
        (here / "step_0.png").write_bytes(recording.png(first))
    if result.get("valid") and result.get("score") is not None:
        (here / "result.txt").write_text(f"{float(result['score'])}\n", "utf-8")
    return osworld_format.folder(result, recording.key)


def _atif(recording: Recording, here: Path) -> tuple[str, ...]:
    images: dict[str, str] = {}

    def image(frame: str) -> str:
        if frame not in images:
            images[frame] = f"images/frame-{len(images)}.png"
            (here / "images").mkdir(exist_ok=True)
            (here / images[frame]).write_bytes(recording.png(frame))
        return images[frame]

    document = atif.trajectory(
        turns(recording.events),
        name=f"{recording.key}.attempt-{recording.attempt}",
        instruction=str(recording.begin.get("instruction", "")),
        first=first_frame(recording.events),
        result=recording.result or {},
        version=__version__,
        image=image,
        stamp=lambda wall: datetime.fromtimestamp(wall, UTC).isoformat(),
    )
    (here / "trajectory.json").write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    return (recording.key,)
