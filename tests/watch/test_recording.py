"""`watch.record` and `deskhand record`: the file shows what the screen showed, and nothing else is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

from deskhand import ClassPolicy, Move, PolicyDenied, watch
from deskhand.backends.memory import MemoryBackend
from deskhand.desktop.desktop import Desktop
from deskhand.errors import ActionError, BackendError, FileError
from faults.helpers import until
from watch.painter import Painter

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def frames(path: Path) -> list[np.ndarray]:
    found = []
    with Image.open(path) as film:
        for number in range(getattr(film, "n_frames", 1)):
            film.seek(number)
            found.append(np.asarray(film.convert("RGB")))
    return found


def remaining(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != "home")


def test_a_gif_ends_with_the_exact_pixels_of_the_screen(tmp_path: Path, launch: Callable[..., Desktop]) -> None:
    desktop = launch(size=(800, 600), window_manager=None)
    environment = {**os.environ, "DISPLAY": str(desktop.display), "XAUTHORITY": str(desktop.xauthority)}
    before = desktop.screenshot(format="raw").array()
    with Painter(environment) as painter, watch.record(desktop, tmp_path / "film.gif", rate=30) as film:
        until(lambda: film.frames, 10, "the first frame")
        for number in range(12):
            known = film.frames
            painter.paint(number)
            until(lambda known=known: film.frames > known, 10, f"the frame of {number}")
        last = desktop.screenshot(format="raw").array()
    shown = frames(tmp_path / "film.gif")
    assert np.array_equal(shown[0], before)
    assert np.array_equal(shown[-1], last)
    # Pillow joins frames whose pixels are equal; ours never are.
    assert len(shown) == film.frames >= 13
    assert remaining(tmp_path) == ["film.gif"]
    assert not [
        thread.name for thread in threading.enumerate() if thread.name in {"deskhand-recording", "deskhand-watch"}
    ]


def small() -> tuple[MemoryBackend, Desktop]:
    backend = MemoryBackend((64, 48))
    return backend, Desktop(backend)


def test_at_rest_there_is_one_frame_and_a_video_is_as_long_as_its_recording(tmp_path: Path) -> None:
    backend, desktop = small()
    now = [100.0]
    with desktop:
        with watch.record(desktop, tmp_path / "rest.gif") as film:
            pass
        assert len(frames(tmp_path / "rest.gif")) == film.frames == 1
        made = watch.recording.Recording(desktop, tmp_path / "film.mp4", 10, 3600.0, lambda: now[0])
        backend.paint((0, 0, 32, 48), (255, 0, 0))
        until(lambda: made.frames == 2, 10, "the second frame")
        now[0] += 5.0
        made.end()
        made.end()
    probed = subprocess.run(
        [
            "ffprobe",
            "-v",
            "error",
            "-show_entries",
            "format=duration:stream=width,height",
            "-of",
            "json",
            tmp_path / "film.mp4",
        ],
        capture_output=True,
        check=True,
    )
    told = json.loads(probed.stdout)
    assert (told["streams"][0]["width"], told["streams"][0]["height"]) == (64, 48)
    assert 5.0 <= float(told["format"]["duration"]) <= 5.2
    assert remaining(tmp_path) == ["film.mp4", "rest.gif"]


def test_a_screen_that_changes_its_size_is_cut_to_the_first_one(tmp_path: Path) -> None:
    backend, desktop = small()
    with desktop:
        with watch.record(desktop, tmp_path / "film.gif", rate=30):
            desktop.resize((80, 20))
            backend.paint((0, 0, 80, 20), (0, 0, 255))
        shown = frames(tmp_path / "film.gif")[-1]
    assert shown.shape == (48, 64, 3)
    assert (shown[:20] == (0, 0, 255)).all()


def test_the_file_is_there_after_an_exception_and_when_the_desktop_is_gone(tmp_path: Path) -> None:
    _, desktop = small()
    with desktop, pytest.raises(ZeroDivisionError), watch.record(desktop, tmp_path / "film.gif"):
        raise ZeroDivisionError
    _, desktop = small()
    film = watch.record(desktop, tmp_path / "gone.gif")
    desktop.close()
    assert film.end() == tmp_path / "gone.gif"
    assert remaining(tmp_path) == ["film.gif", "gone.gif"]


def test_what_a_person_does_privately_is_not_recorded(tmp_path: Path) -> None:
    backend, desktop = small()
    with desktop, watch.record(desktop, tmp_path / "film.gif", rate=30) as film:
        with desktop.control.take("Ada", private=True):
            backend.paint((0, 0, 64, 48), (255, 0, 0))
            backend.paint((0, 0, 64, 48), (0, 255, 0))
        until(lambda: film.frames == 2, 10, "the picture after the hold")
    assert [tuple(shown[0, 0]) for shown in frames(tmp_path / "film.gif")] == [(0, 0, 0), (0, 255, 0)]


def test_what_cannot_be_is_refused_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, desktop = small()
    with desktop:
        with pytest.raises(ActionError, match=r"ends in .gif or .mp4, not in '.avi'"):
            watch.record(desktop, tmp_path / "film.avi")
        with pytest.raises(FileError, match="cannot record to"):
            watch.record(desktop, tmp_path / "none" / "film.gif")
        with pytest.raises(ActionError, match="rate"):
            watch.record(desktop, tmp_path / "film.gif", rate=1000)
        (tmp_path / "film.gif").mkdir()
        with pytest.raises(FileError, match="cannot record to"):
            watch.record(desktop, tmp_path / "film.gif").end()
        (tmp_path / "film.gif").rmdir()
        monkeypatch.setenv("PATH", "/nowhere")
        with pytest.raises(BackendError, match="apt-get install ffmpeg"):
            watch.record(desktop, tmp_path / "film.mp4")
        judged = desktop.also(watch_guard())
        with pytest.raises(PolicyDenied):
            watch.record(judged, tmp_path / "film.gif")
    assert remaining(tmp_path) == []


def watch_guard() -> object:
    from deskhand import Guard  # noqa: PLC0415 # for one test

    return Guard(policy=ClassPolicy(allow=["input"]))


def test_the_command_records_until_ctrl_c(tmp_path: Path, launch: Callable[..., Desktop]) -> None:
    desktop = launch(size=(320, 240), window_manager=None)
    command = [sys.executable, "-m", "deskhand", "record", f"x11:{desktop.display}", "-o", "film.gif"]
    environment = {**os.environ, "XAUTHORITY": str(desktop.xauthority)}
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        assert process.stderr.readline().endswith("Ctrl-C ends it\n")
        desktop.perform(Move((50, 60)), settle=False)
        process.send_signal(signal.SIGINT)
        told, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0
    assert told.startswith("film.gif: ")
    assert frames(tmp_path / "film.gif")[-1].shape == (240, 320, 3)
    wrong = subprocess.run([*command, "--pixels", "raw"], capture_output=True, text=True, env=environment, check=False)
    assert (wrong.returncode, "--pixels is for --rfb" in wrong.stderr) == (2, True)
