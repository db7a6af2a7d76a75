"""What the pages of a report and of a playback are made of: an episode's moments, its pictures, and the file.

This module reads recordings and writes files. What a moment is, is in `timeline`.
"""

from __future__ import annotations

import io
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image

from deskhand._core.formats import data_url
from deskhand.episodes.report.timeline import Moment, moments
from deskhand.errors import EpisodeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deskhand.episodes.record.reader import Recording


def moments_of(recording: Recording | None) -> tuple[Sequence[Moment], str]:
    """The moments, and why they are incomplete, if they are."""
    if recording is None:
        return [], ""
    try:
        return moments(recording.events), "the record ends in the middle of an event" if recording.torn else ""
    except EpisodeError as error:
        return [], str(error)


def picture(recording: Recording, frame: str, *, width: int, quality: int) -> str:
    """A frame as a `data:` URL: no wider than `width`, and lossy; the run's directory has every pixel.

    Raises:
        EpisodeError: There is no such frame.
        OSError: It cannot be read.
    """
    image = Image.fromarray(recording.frame(frame))
    if image.width > width:
        image = image.resize((width, round(image.height * width / image.width)), Image.Resampling.LANCZOS)
    target = io.BytesIO()
    image.save(target, "WEBP", quality=quality)
    return data_url(target.getvalue(), "image/webp")


def place_for(path: Path) -> Path:
    """The path, if a page can be written there; asked before thousands of pictures are read.

    Raises:
        EpisodeError: Its folder does not exist.
    """
    if not os.path.isdir(path.parent):  # noqa: PTH112 # False for a name that is too long, too
        raise EpisodeError(f"{path.parent} is not a directory: {path.name} cannot be written there")
    return path


def write_whole(path: Path, text: str) -> None:
    """Write a page completely or not at all."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
