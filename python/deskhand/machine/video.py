"""Writes frames as a video (MP4, H.264), with ffmpeg.

This module owns the encoder. It has no desktop and no recording.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from typing import TYPE_CHECKING

from deskhand.errors import BackendError
from deskhand.machine import children

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

_ENDED = 60.0
_ENCODER = ("-c:v", "libx264", "-preset", "veryfast", "-crf", "18", "-pix_fmt", "yuv420p", "-movflags", "+faststart")


def find_encoder() -> str:
    """The path of ffmpeg.

    Raises:
        BackendError: It is not installed.
    """
    program = shutil.which("ffmpeg")
    if program is None:
        raise BackendError("a video needs ffmpeg, which is not installed: apt-get install ffmpeg")
    return program


def video_size(width: int, height: int) -> tuple[int, int]:
    """The size of a video of such pictures: the encoder needs even sizes."""
    return width + width % 2, height + height % 2


def fitted(rgb: NDArray[np.uint8], size: tuple[int, int]) -> bytes:
    """A picture, of shape (height, width, 3), as a frame of this size: cropped, or its last row and column are repeated."""
    import numpy as np  # noqa: PLC0415 # see deskhand._core.observation

    height, width, _ = rgb.shape
    wide, high = size
    return np.pad(
        rgb[:high, :wide], ((0, max(0, high - height)), (0, max(0, wide - width)), (0, 0)), mode="edge"
    ).tobytes()


def encode_video(target: Path, size: tuple[int, int], frames: Iterator[bytes], *, rate: int) -> None:
    """Write a video, and return when it is complete.

    Args:
        target: The file.
        size: Width and height in pixels, both even.
        frames: The frames, as `fitted` makes them.
        rate: Frames a second.

    Raises:
        BackendError: ffmpeg is missing or failed.
    """
    source = ("-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{size[0]}x{size[1]}", "-r", str(rate), "-i", "-")
    command = [find_encoder(), "-hide_banner", "-loglevel", "error", "-nostdin", *source, *_ENCODER, str(target)]
    # ffmpeg's messages go to a file, because a pipe that is not read would block it.
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=said)
        try:
            # ffmpeg ends when its input does, or earlier with an error.
            with contextlib.suppress(BrokenPipeError), process.stdin as into:  # type: ignore[union-attr] # it is a pipe
                for data in frames:
                    into.write(data)
            if not children.has_ended(process, _ENDED):
                raise BackendError(f"ffmpeg got all frames, but did not end within {_ENDED:g} s")
        finally:
            children.end(process, 0)
        code = process.returncode
        said.seek(0)
        if code != 0:
            last = said.read().decode("utf-8", "replace").strip().splitlines()[-1:] or ["no message"]
            raise BackendError(f"ffmpeg failed ({code}): {last[0]}")
