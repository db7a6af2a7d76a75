"""The demo of episodes, as its users run it, with one task: a process of its own that checks what it shows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

_DEMO = [sys.executable, str(Path(__file__).parents[2] / "demo" / "episodes.py")]


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*_DEMO, *words], capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.soak
def test_the_oracle_solves_it_nothing_does_not_and_the_report_is_photographed(tmp_path: Path) -> None:
    done = _run(str(tmp_path / "out"), "--task", "settings-files", "--seeds", "2", "--desktops", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the oracle solved all 2 episodes" in done.stdout
    assert "the agent that does nothing solved none of 1" in done.stdout
    assert "FAILED" not in done.stdout
    assert (tmp_path / "out/report.html").stat().st_size > 50_000
    with Image.open(tmp_path / "out/report.png") as photograph:
        assert photograph.size == (1280, 1600)


def test_a_task_that_cannot_be_done_is_told(tmp_path: Path) -> None:
    done = _run(str(tmp_path / "out"), "--task", "hopeless", "--seeds", "1")
    assert done.returncode == 1
    assert "hopeless" in done.stderr
