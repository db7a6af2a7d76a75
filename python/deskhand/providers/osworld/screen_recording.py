"""Records the screen of a desktop as a video, from OSWorld's `/start_recording` to its `/end_recording`.

This module owns the thread that looks. What a video file is, is in `deskhand.machine.video`.
"""

from __future__ import annotations

import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from deskhand.desktop.access import bare
from deskhand.errors import BackendError, DeskhandError
from deskhand.machine.video import encode_video, find_encoder, fitted, video_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from deskhand.desktop.desktop import Desktop

_RATE = 5
_LONGEST = 3600.0


class ScreenRecording:
    """A recording under way: five frames a second, for an hour at most. While the desktop acts, its last frame stays."""

    def __init__(self, desktop: Desktop, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin.

        Raises:
            BackendError: ffmpeg is not installed, or the screen cannot be read.
        """
        find_encoder()
        # The client was judged when it began to record.
        self._desktop = bare(desktop)
        self._clock = clock
        self._stop = threading.Event()
        self._failure: Exception | None = None
        self._size = video_size(*self._desktop.size)
        self._folder = tempfile.TemporaryDirectory(prefix="deskhand-recording-")
        self._file = Path(self._folder.name, "recording.mp4")
        self._thread = threading.Thread(target=self._record, name="deskhand-recording", daemon=True)
        self._thread.start()

    def end(self) -> bytes:
        """End the recording, and return its video.

        Raises:
            BackendError: It failed.
        """
        self._stop.set()
        self._thread.join()
        try:
            if self._failure is not None:
                raise BackendError(f"the screen was not recorded: {self._failure}") from self._failure
            return self._file.read_bytes()
        except OSError as error:
            raise BackendError(f"the recording is gone: {error}") from error
        finally:
            self._folder.cleanup()

    def _record(self) -> None:
        try:
            encode_video(self._file, self._size, self._frames(), rate=_RATE)
        except (DeskhandError, OSError) as error:
            self._failure = error

    def _frames(self) -> Iterator[bytes]:
        begun, written, over = self._clock(), 0, False
        while not over:
            # After the end it looks once more: what was done last is shown.
            over = self._stop.wait(1 / _RATE if written else 0.0) or self._clock() - begun > _LONGEST
            frame = fitted(self._desktop.screenshot(format="raw").array(), self._size)
            # A look that came late is shown for as long as it took, so that the video is as long as the recording.
            due = max(written + 1, int((self._clock() - begun) * _RATE) + 1)
            for _ in range(due - written):
                yield frame
            written = due
