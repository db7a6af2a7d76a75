"""Makes a video of an attempt from its frames, with ffmpeg.

This module owns how long each frame is shown. It only shows recorded pixels.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from deskhand.errors import EpisodeError
from deskhand.machine import children

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from deskhand.episodes.record.reader import Recording

__all__ = ["shots", "write_video"]

_RATE = 10
_LONGEST, _LAST = 2.0, 1.0
_ENDED = 60.0
_ENCODER = ("-c:v", "libx264", "-preset", "veryfast", "-crf", "18", "-pix_fmt", "yuv420p", "-movflags", "+faststart")


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
    program = shutil.which("ffmpeg")
    if program is None:
        raise EpisodeError("a video needs ffmpeg, which is not installed: apt-get install ffmpeg")
    shown = shots(recording, longest=longest)
    if not shown:
        raise EpisodeError(f"{recording.directory} has no frame with pixels")
    height, width, _ = recording.frame(shown[0][0]).shape
    # The encoder needs even sizes: the last row and column are repeated.
    size = (width + width % 2, height + height % 2)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".video-") as temporary:
        path = Path(temporary) / "video.mp4"
        source = ("-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{size[0]}x{size[1]}", "-r", str(_RATE), "-i", "-")
        command = [program, "-hide_banner", "-loglevel", "error", "-nostdin", *source, *_ENCODER, str(path)]
        _encode(
            command, (each for frame, seconds in shown for each in _repeated(recording.frame(frame), size, seconds))
        )
        path.rename(target)
    return target


def _repeated(rgb: NDArray[np.uint8], size: tuple[int, int], seconds: float) -> Iterator[bytes]:
    import numpy as np  # noqa: PLC0415 # see deskhand._core.observation

    height, width, _ = rgb.shape
    wide, high = size
    # A screen that was resized meanwhile is cropped or padded.
    fitted = np.pad(rgb[:high, :wide], ((0, max(0, high - height)), (0, max(0, wide - width)), (0, 0)), mode="edge")
    data = fitted.tobytes()
    for _ in range(max(1, round(seconds * _RATE))):
        yield data


def _encode(command: list[str], frames: Iterator[bytes]) -> None:
    # ffmpeg's messages go to a file, because a pipe that is not read would block it.
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=said)
        try:
            # ffmpeg ends when its input does, or earlier with an error.
            with contextlib.suppress(BrokenPipeError), process.stdin as into:  # type: ignore[union-attr] # it is a pipe
                for data in frames:
                    into.write(data)
            if not children.has_ended(process, _ENDED):
                raise EpisodeError(f"ffmpeg got all frames, but did not end within {_ENDED:g} s")
        finally:
            children.end(process, 0)
        code = process.returncode
        said.seek(0)
        if code != 0:
            last = said.read().decode("utf-8", "replace").strip().splitlines()[-1:] or ["no message"]
            raise EpisodeError(f"ffmpeg failed ({code}): {last[0]}")
