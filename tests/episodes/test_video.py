"""A video shows the frames that were recorded, each for as long as it was there."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import numpy as np
import pytest

from conftest import need
from deskhand.episodes.ledger.ledger import Key
from deskhand.episodes.record.export import export
from deskhand.episodes.record.frame_store import FrameStore
from deskhand.episodes.record.reader import Recording, open_run
from deskhand.episodes.record.recorder import Recorder
from deskhand.episodes.record.video import shots, write_video
from deskhand.errors import EpisodeError
from episodes.recorded import make_run

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

ONE = Key("count", "", 0, 0)
# A colour may be off by so much after it went through the encoder's own colours.
OFF = 12


def flat(colour: tuple[int, int, int], width: int = 65, height: int = 49) -> NDArray[np.uint8]:
    return np.full((height, width, 3), colour, np.uint8)


def attempt(tmp_path: Path, pictures: list[tuple[float, NDArray[np.uint8]]]) -> Recording:
    """One that showed each of the pictures from a time on."""
    now = 0.0
    with FrameStore(tmp_path / "frames") as store:
        recorder = Recorder(tmp_path / "ep" / str(ONE) / "attempt-1", store, clock=lambda: now)
        for at, picture in pictures:
            now = at
            recorder.event("frame", id=store.add(picture), cause="first")
        recorder.close()
    return Recording.open(recorder.directory)


def decoded(path: Path, width: int, height: int) -> NDArray[np.uint8]:
    """All its frames, by ffmpeg itself."""
    ffmpeg = need("ffmpeg", "ffmpeg")
    command = [ffmpeg, "-loglevel", "error", "-i", str(path), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    data = subprocess.run(command, check=True, capture_output=True, timeout=60).stdout
    return np.frombuffer(data, np.uint8).reshape(-1, height, width, 3)


def test_frames_are_shown_for_as_long_as_they_were_there(tmp_path: Path) -> None:
    need("ffmpeg", "ffmpeg")
    red, green, blue = (flat(colour) for colour in ((220, 30, 30), (30, 200, 40), (20, 40, 210)))
    # Red for half a second, green for ten (which is cut to two), red again, blue at the end.
    recording = attempt(tmp_path, [(0.0, red), (0.5, green), (10.5, red), (11.5, blue), (11.5, blue)])
    assert [seconds for _, seconds in shots(recording)] == [0.5, 2.0, 1.0, 1.0]
    path = write_video(recording, tmp_path / "video.mp4")
    # Sizes are even: the last row and column are there twice.
    frames = decoded(path, 66, 50).astype(int)
    assert len(frames) == 5 + 20 + 10 + 10
    for number, picture in ((2, red), (15, green), (30, red), (40, blue)):
        assert abs(frames[number].mean(axis=(0, 1)) - picture[0, 0]).max() < OFF
    assert not [each for each in tmp_path.iterdir() if each.name.startswith(".video")]


def test_a_recorded_attempt_becomes_a_video(tmp_path: Path) -> None:
    need("ffmpeg", "ffmpeg")
    make_run(tmp_path / "run", ONE)
    with open_run(tmp_path / "run") as run:
        (path,) = export(run, "video", tmp_path / "out")
        assert path == tmp_path / "out" / f"{ONE}.mp4"
        recording = run.recording(ONE)
        frames = decoded(path, 320, 200).astype(int)
        shown = shots(recording)
        assert len(frames) == sum(max(1, round(seconds * 10)) for _, seconds in shown)
        for number, (frame, _) in ((0, shown[0]), (-1, shown[-1])):
            assert abs(frames[number] - recording.frame(frame)).mean() < OFF / 2
        with pytest.raises(EpisodeError, match="is there already"):
            export(run, "video", tmp_path / "out")


def test_a_screen_that_was_resized_is_shown_as_far_as_it_fits(tmp_path: Path) -> None:
    need("ffmpeg", "ffmpeg")
    recording = attempt(tmp_path, [(0.0, flat((200, 0, 0))), (0.5, flat((0, 200, 0), 131, 23))])
    frames = decoded(write_video(recording, tmp_path / "video.mp4"), 66, 50).astype(int)
    assert abs(frames[-1].mean(axis=(0, 1)) - (0, 200, 0)).max() < OFF


def test_an_encoder_that_does_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "ffmpeg"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\ncat >/dev/null\nexec sleep 600\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setattr("deskhand.machine.video._ENDED", 0.1)
    with pytest.raises(EpisodeError, match=r"ffmpeg got all frames, but did not end within 0\.1 s"):
        write_video(attempt(tmp_path, [(0.0, flat((0, 0, 0)))]), tmp_path / "out.mp4")
    assert not (tmp_path / "out.mp4").exists()


def test_what_cannot_be_made_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = attempt(tmp_path, [(0.0, flat((200, 0, 0)))])
    with monkeypatch.context() as patched:
        patched.setenv("PATH", str(tmp_path))
        with pytest.raises(EpisodeError, match="apt-get install ffmpeg"):
            write_video(recording, tmp_path / "video.mp4")
        program = tmp_path / "ffmpeg"
        program.write_text("#!/bin/sh\necho 'no such encoder' >&2\nexit 8\n")
        program.chmod(0o755)
        with pytest.raises(EpisodeError, match=r"ffmpeg failed \(8\): no such encoder"):
            write_video(recording, tmp_path / "video.mp4")
    empty = attempt(tmp_path / "empty", [])
    need("ffmpeg", "ffmpeg")
    with pytest.raises(EpisodeError, match="no frame with pixels"):
        write_video(empty, tmp_path / "video.mp4")
    assert not (tmp_path / "video.mp4").exists()
