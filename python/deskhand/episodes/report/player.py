"""The playback of an episode: one HTML file that works offline, beside the same episode of another run if wanted.

This module reads the recordings and fills the template `player.html`. The page loads nothing and sends nothing: its policy
(CSP) allows its own script and style, by their hashes, and pictures that are in it. What a recording says goes into it as JSON
and becomes text there, and never HTML.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import html
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deskhand._core.arguments import expect_integer, expect_path, expect_text, expect_texts
from deskhand._core.redaction import one_line
from deskhand._native import __version__
from deskhand.episodes.record.export import counting
from deskhand.episodes.record.reader import open_run
from deskhand.episodes.report.parts import moments_of, picture, place_for, write_whole
from deskhand.episodes.report.playback import MOST_MOMENTS, Pictures, frames_of, side
from deskhand.errors import EpisodeError, files_named

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

    from deskhand.episodes.record.reader import Recording, Run

MOST_BYTES = 32 << 20
"""The default room for the pictures of a page, in bytes."""

_TEMPLATES = Path(__file__).parent
_WIDTH = 1280
_QUALITY = 75
_LONGEST_TITLE = 200
_LARGEST = 1 << 30


def write_playback(
    directory: str | os.PathLike[str],
    episode: str,
    target: str | os.PathLike[str],
    *,
    beside: str | os.PathLike[str] | None = None,
    most_bytes: int = MOST_BYTES,
) -> Path:
    """Write the playback of one episode.

    Args:
        directory: The directory of the run.
        episode: The name of the episode (`count.s0.r0`): the attempt that counts, or the last one.
        target: The path of the page.
        beside: The directory of another run, whose episode of the same name is shown beside it.
        most_bytes: Room for the pictures. Where that is too little, those that are kept are spread over the episode, and the
            page says how many are missing.

    Returns:
        The page's path. The page appears completely or not at all.

    Raises:
        EpisodeError: There is no such run or episode, or the page's folder does not exist.
        FileError: The page cannot be written.
    """
    path = place_for(Path(expect_path("write_playback: target", target)))
    expect_text("write_playback: episode", episode)
    room = expect_integer("write_playback: most_bytes", most_bytes, 0, _LARGEST)
    with contextlib.ExitStack() as held:
        runs = _opened(held, directory, beside)
        text = _page([(run, _chosen(run, episode)) for run in runs], room)
    with files_named("cannot write the page", path):
        write_whole(path, text)
    return path


def export_playbacks(
    directory: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    episodes: Sequence[str] = (),
    beside: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> list[Path]:
    """Write the playbacks of a run's episodes: TARGET/EPISODE.html.

    Args:
        directory: The directory of the run.
        target: The folder; it is created.
        episodes: Only these, by name; each must be in the other run too, if there is one.
        beside: The directory of another run, whose episodes of the same names are shown beside them.
        progress: Called with the number of pages that are written, and the total.

    Returns:
        The path of each page.

    Raises:
        EpisodeError: There is no such run or episode, or a page exists already.
        FileError: A page cannot be written.
    """
    root = Path(expect_path("export_playbacks: target", target))
    names = expect_texts("export_playbacks: episodes", episodes or ())
    written = []
    with contextlib.ExitStack() as held:
        runs = _opened(held, directory, beside)
        counted = [{recording.key: recording for recording in counting(run)} for run in runs]
        if not counted[0]:
            raise EpisodeError(f"{runs[0].directory} has no episode to export")
        with files_named("cannot make the folder", root):
            root.mkdir(parents=True, exist_ok=True)
        for number, name in enumerate(names or counted[0]):
            progress(number, len(names or counted[0]))
            path = root / f"{name}.html"
            sides = [
                (run, known.get(name) or _chosen(run, name))
                for run, known in zip(runs, counted, strict=True)
                if names or name in known
            ]
            if path.exists():
                raise EpisodeError(f"{path} is there already: export to another folder, or remove it")
            text = _page(sides, MOST_BYTES)
            with files_named("cannot write the page", path):
                write_whole(path, text)
            written.append(path)
        progress(len(written), len(written))
    return written


def write_attempt(run: Run, recording: Recording, folder: Path) -> Path:
    """Write the playback of one attempt beside a report: FOLDER/EPISODE/attempt-1.html. One that is there is replaced.

    Raises:
        EpisodeError: The folder is a link: an untrusted run must not choose where pages are written.
        FileError: It cannot be written.
    """
    place = folder / recording.key
    path = place / f"{recording.directory.name}.html"
    text = _page([(run, recording)], MOST_BYTES)
    with files_named("cannot write the page", path):
        for each in (folder, place):
            if each.is_symlink():
                raise EpisodeError(f"{each} is a link, and pages are not written through one: remove it")
            each.mkdir(exist_ok=True)
        write_whole(path, text)
    return path


def _opened(
    held: contextlib.ExitStack, directory: str | os.PathLike[str], beside: str | os.PathLike[str] | None
) -> list[Run]:
    return [held.enter_context(open_run(each)) for each in (directory, beside) if each is not None]


def _chosen(run: Run, episode: str) -> Recording:
    counted = {recording.key: recording for recording in counting(run)}
    return counted.get(episode) or run.recording(episode)


def _page(sides: Sequence[tuple[Run, Recording]], room: int) -> str:
    pictures = Pictures()
    # What the first leaves is for the second.
    shown = [
        _side(run, recording, pictures, room * number // len(sides)) for number, (run, recording) in enumerate(sides, 1)
    ]
    data = {
        "version": __version__,
        "sides": shown,
        "pictures": pictures.urls,
        "picturesLeftOut": pictures.left_out,
    }
    return _filled(data, f"{sides[0][1].key}: {', '.join(each['run'] for each in shown)}")


def _side(run: Run, recording: Recording, pictures: Pictures, room: int) -> dict[str, Any]:
    happened, trouble = moments_of(recording)
    numbers = pictures.add(
        frames_of(happened[:MOST_MOMENTS]),
        lambda frame: picture(recording, frame, width=_WIDTH, quality=_QUALITY),
        (EpisodeError, OSError),
        room=room,
    )
    return side(
        run=run.directory.resolve().name,
        episode=recording.key,
        begin=_known(lambda: recording.begin),
        result=_known(lambda: recording.result or {}),
        moments=happened,
        trouble=trouble or pictures.trouble,
        numbers=numbers,
    )


def _known(read: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
    try:
        return read()
    except EpisodeError:
        # The page shows everything that can be read.
        return {}


def _filled(data: Mapping[str, Any], title: str) -> str:
    template, style, *modules = (
        (_TEMPLATES / name).read_text("utf-8") for name in ("player.html", "player.css", "panes.js", "player.js")
    )
    # One module has all of them: the page loads nothing.
    script = re.sub("^export |^import .*\n", "", "".join(modules), flags=re.MULTILINE)
    # No character of it can end the element that it is in.
    plain = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        plain = plain.replace(character, f"\\u{ord(character):04x}")
    policy = "; ".join((
        "default-src 'none'",
        "img-src data:",
        f"style-src '{_hash(style)}'",
        f"script-src '{_hash(script)}'",
        "base-uri 'none'",
        "form-action 'none'",
    ))  # fmt: skip
    parts = {
        "POLICY": html.escape(policy, quote=False),
        "TITLE": html.escape(one_line(title, _LONGEST_TITLE)),
        "STYLE": style,
        "SCRIPT": script,
        "DATA": plain,
    }
    # All at once, so that nothing in one part is taken for the place of another.
    return "".join(parts.get(piece, piece) for piece in template.split("%%"))


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
