"""Makes a video of an attempt from its frames, with ffmpeg.

This module owns how long each frame is shown. It only shows recorded pixels.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from deskhand.errors import BackendError, EpisodeError
from deskhand.machine.video import encode_video, find_encoder, fitted, video_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from deskhand.episodes.record.reader import Recording

_RATE = 10
_LONGEST, _LAST = 2.0, 1.0


def shots(recording: Recording, *, longest: float = _LONGEST) -> list[tuple[str, float]]:
    """The frames of an attempt in order, each with the seconds for which it was on the screen.

    Args:
        recording: The attempt.
        longest: The longest time for a frame, in seconds: models think for long while nothing changes.
    """
    seen: list[tuple[str, float]] = []
    for event in recording.events:
        t = float(event.get("t", 0.0))
        kind = event["kind"]
        if kind == "perform":
            # The frame before the call was on the screen when the call began.
            moments = [(event.get("before"), t - float(event.get("seconds", 0.0))), (event.get("after"), t)]
        elif kind in {"frame", "look"}:
            moments = [(event.get("id" if kind == "frame" else "frame"), t)]
        else:
            continue
        seen += [(frame, at) for frame, at in moments if frame is not None and (not seen or frame != seen[-1][0])]
    ends = [at for _, at in seen[1:]] + ([seen[-1][1] + _LAST] if seen else [])
    return [(frame, min(longest, max(1 / _RATE, end - at))) for (frame, at), end in zip(seen, ends, strict=True)]


def write_video(recording: Recording, target: Path, *, longest: float = _LONGEST) -> Path:
    """Write an attempt as MP4 (H.264), ten frames a second. The file appears completely or not at all.

    Args:
        recording: The attempt.
        target: The file.
        longest: The longest time for one frame, in seconds.

    Raises:
        EpisodeError: The file exists already, no frame was kept, or ffmpeg is missing or failed.
    """
    if target.exists():
        raise EpisodeError(f"{target} is there already: export to another folder, or remove it")
    try:
        find_encoder()
        shown = shots(recording, longest=longest)
        if not shown:
            raise EpisodeError(f"{recording.directory} has no frame with pixels")
        height, width, _ = recording.frame(shown[0][0]).shape
        size = video_size(width, height)
        frames = (each for frame, seconds in shown for each in _repeated(recording.frame(frame), size, seconds))
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".video-") as temporary:
            path = Path(temporary) / "video.mp4"
            encode_video(path, size, frames, rate=_RATE)
            path.rename(target)
    except BackendError as error:
        raise EpisodeError(str(error)) from error
    return target


def _repeated(rgb: NDArray[np.uint8], size: tuple[int, int], seconds: float) -> Iterator[bytes]:
    data = fitted(rgb, size)
    for _ in range(max(1, round(seconds * _RATE))):
        yield data
