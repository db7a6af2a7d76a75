"""`record`: what a screen shows from now on, as GIF or MP4.

This module owns the thread that looks, and when a frame is made. The pixels come from the `Mirror` that viewers have too, so
that the desktop's calls are not held up.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from PIL import Image

from deskhand._core.arguments import expect, expect_integer, expect_path, expect_seconds
from deskhand.desktop.access import bare, latest
from deskhand.desktop.desktop import Desktop
from deskhand.errors import ActionError, DeskhandError, FileError, files_named
from deskhand.machine.video import encode_video, find_encoder, fitted, video_size
from deskhand.watch.gif import GifWriter
from deskhand.watch.mirror import Mirror

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from numpy.typing import NDArray

_FASTEST = 30
_MOST_BYTES = 256 << 20
# How often the encoder of a video gets the frame that is still shown.
_TICK = 0.5

_Box = tuple[int, int, int, int]


class Recording:
    """A recording under way; see `record`.

    Attributes:
        path: Where it will be.
        frames: How many pictures it has so far; equal ones count once.
    """

    def __init__(
        self, desktop: Desktop, path: Path, rate: int, longest: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """See `record`."""
        self.path: Path = path
        self.frames: int = 0
        self._desktop = bare(desktop)
        self._rate = rate
        self._longest = longest
        self._clock = clock
        self._begun = clock()
        # The screen as it is now, with the size that the recording keeps.
        self._picture: NDArray[np.uint8] = self._shot()
        self._changed = threading.Event()
        self._stop = threading.Event()
        self._failure: Exception | None = None
        with files_named("cannot record to", path):
            self._folder = tempfile.TemporaryDirectory(prefix=".deskhand-recording-", dir=path.parent)
        self._file = Path(self._folder.name, f"recording{path.suffix}")
        self._mirror = Mirror(self._desktop, self._changed.set)
        self._mirror.start()
        self._thread = threading.Thread(target=self._run, name="deskhand-recording", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.end()
        except DeskhandError:
            # The error of the block says more.
            if error is None:
                raise

    def __repr__(self) -> str:
        return f"<Recording {self.path}>"

    def end(self) -> Path:
        """End the recording, and return the path of its file; harmless when called again.

        Raises:
            BackendError: ffmpeg failed.
            FileError: The file cannot be written. There is no part of it then.
        """
        self._stop.set()
        self._changed.set()
        self._thread.join()
        self._mirror.stop(wait=True)
        try:
            if isinstance(self._failure, OSError) and not isinstance(self._failure, DeskhandError):
                raise FileError("cannot record to", str(self.path), self._failure) from self._failure
            if self._failure is not None:
                raise self._failure
            if self._file.exists():
                with files_named("cannot record to", self.path):
                    self._file.replace(self.path)
        finally:
            self._folder.cleanup()
        return self.path

    # --- the thread ---

    def _run(self) -> None:
        try:
            if self.path.suffix == ".gif":
                self._write_gif()
            else:
                encode_video(self._file, self._video_size, self._video_frames(), rate=self._rate)
        except (DeskhandError, OSError) as error:
            self._failure = error

    def _write_gif(self) -> None:
        height, width, _ = self._picture.shape
        with self._file.open("wb") as file:
            gif = GifWriter(file, (width, height))
            shown = self._begun
            for now, box in self._moments():
                if box is not None and file.tell() < _MOST_BYTES:
                    left, top, right, bottom = box
                    gif.add(self._picture[top:bottom, left:right], (left, top), now - shown)
                    self.frames += 1
                    shown = now
            gif.end(self._clock() - shown)

    @property
    def _video_size(self) -> tuple[int, int]:
        height, width, _ = self._picture.shape
        return video_size(width, height)

    def _video_frames(self) -> Iterator[bytes]:
        frame, written = fitted(self._picture, self._video_size), 0
        for now, box in self._moments():
            # The frame before is shown until now, so that the video is as long as the recording.
            due = int((now - self._begun) * self._rate)
            for _ in range(due - written):
                yield frame
            written = max(written, due)
            if box is not None:
                self.frames += 1
                frame = fitted(self._picture, self._video_size)
        yield frame

    def _moments(self) -> Iterator[tuple[float, _Box | None]]:
        """The times of the recording, each with the area of the picture that has changed; None if nothing has."""
        height, width, _ = self._picture.shape
        yield self._begun, (0, 0, width, height)
        seen = -1
        while not self._stop.is_set():
            began = self._clock()
            if began - self._begun > self._longest:
                return
            self._changed.wait(_TICK)
            self._changed.clear()
            box = None
            if not self._is_hidden:
                seen, box = self._copy(seen)
            yield self._clock(), box
            # A new change may come at once, and is seen when its time has come.
            self._stop.wait(max(0.0, 1 / self._rate - (self._clock() - began)))
        # The last change is shown, even if the mirror does not have it yet. A desktop that is gone shows nothing.
        with contextlib.suppress(DeskhandError):
            if not self._is_hidden:
                yield self._clock(), self._show(self._shot(), (0, 0))

    @property
    def _is_hidden(self) -> bool:
        """Whether a person has control privately."""
        holder = latest(self._desktop).control.holder
        return holder is not None and holder.private

    def _copy(self, seen: int) -> tuple[int, _Box | None]:
        update = self._mirror.update(seen)
        # Again, because the pixels may be from after the first time.
        if update is None or self._is_hidden:
            return seen, None
        boxes = [
            box
            for (x, y, _, _), png in update.pieces
            if (box := self._show(np.asarray(Image.open(io.BytesIO(png)).convert("RGB")), (x, y))) is not None
        ]
        if not boxes:
            return update.generation, None
        lefts, tops, rights, bottoms = zip(*boxes, strict=True)
        return update.generation, (min(lefts), min(tops), max(rights), max(bottoms))

    def _show(self, rgb: NDArray[np.uint8], at: tuple[int, int]) -> _Box | None:
        """Bring a part into the picture, as far as it is in it; returns the area that differs from before."""
        x, y = at
        place = self._picture[y : y + rgb.shape[0], x : x + rgb.shape[1]]
        part = rgb[: place.shape[0], : place.shape[1]]
        differs: Any = (place != part).any(axis=2)
        rows, columns = np.flatnonzero(differs.any(axis=1)), np.flatnonzero(differs.any(axis=0))
        if not len(rows):
            return None
        place[:] = part
        return (x + int(columns[0]), y + int(rows[0]), x + int(columns[-1]) + 1, y + int(rows[-1]) + 1)

    def _shot(self) -> NDArray[np.uint8]:
        shot: NDArray[np.uint8] = latest(self._desktop).screenshot(format="raw").array().copy()
        return shot


def record(desktop: Desktop, path: str | os.PathLike[str], *, rate: int = 10, longest: float = 3600.0) -> Recording:
    """Record what a screen shows from now on, until the `with` block ends.

    Only what changes makes frames. The file is there when the recording has ended, also if the block raised; one that was there
    before is replaced. The picture keeps the size that the screen has now. Typed secrets are recorded as they are shown. While
    a person has control privately, the last picture stays.

    Example:
        >>> with deskhand.launch() as desktop, watch.record(desktop, "demo.gif"):
        ...     desktop.start("mousepad")

    Args:
        desktop: The desktop. For a policy this is a look.
        path: Where to, by its ending: `.gif`, or `.mp4`, which needs ffmpeg.
        rate: The most frames a second, 1 to 30.
        longest: Seconds after which nothing more is recorded. A GIF gets no more frames after 256 MiB either.

    Raises:
        ActionError: An argument is impossible.
        BackendError: ffmpeg is not installed.
        FileError: The file's directory cannot be written.
        PolicyDenied: A policy forbids to look.
        DesktopLost: The desktop is gone.
    """
    expect("record: desktop", desktop, Desktop)
    target = Path(expect_path("record: path", path))
    rate = expect_integer("record: rate", rate, 1, _FASTEST)
    expect_seconds("record: longest", longest)
    if target.suffix not in {".gif", ".mp4"}:
        raise ActionError(f"record: path ends in .gif or .mp4, not in {target.suffix!r}")
    if target.suffix == ".mp4":
        find_encoder()
    desktop.screenshot(region=(0, 0, 1, 1), format="raw")
    return Recording(desktop, target, rate, float(longest))
