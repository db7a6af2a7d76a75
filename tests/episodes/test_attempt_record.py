"""An attempt whose record cannot be written is called by that cause."""

from __future__ import annotations

import contextlib
import errno
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from deskhand import (
    Secret,
    Type,
)
from deskhand.episodes.outcome import Cause
from deskhand.episodes.play.attempt import attempt
from deskhand.episodes.record.frame_store import FrameStore
from deskhand.episodes.record.recorder import Recorder
from episodes.plays import ANY_KEY, KEY, QUICK, Kept, Places, Press, backend_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from deskhand.episodes.play.episode import Episode


pytestmark = pytest.mark.usefixtures("quick")


@pytest.mark.parametrize("kind", ["begin", "perform", "frame", "evaluate", "result"])
def test_a_record_that_cannot_be_written_is_named(kind: str) -> None:
    record = Kept()

    def full(what: str) -> None:
        if what == kind:
            raise OSError(errno.ENOSPC, "No space left on device", "events.jsonl")

    record.failing = full
    result = attempt(Press(), KEY, Places(), "oracle", record)
    assert (result["cause"], result["valid"], result["score"]) == (Cause.RECORD_FAILED, False, None)
    assert "No space left on device" in result["detail"]
    assert "make room" in result["detail"]
    assert record.closed


def test_frames_that_are_damaged_are_a_record_that_cannot_be_written(tmp_path: Path) -> None:
    """Whenever it is: when the first frame is kept, when the agent acts, and when all of it is brought to the disk."""

    class Damaged(FrameStore):
        when = ""

        def break_if(self, now: str) -> None:
            if now == self.when:
                self.close()
                for path in self.directory.glob("*.sqlite*"):
                    path.write_bytes(b"no database " * 1000)

        def sync(self) -> None:
            self.break_if("sync")
            # Another attempt's, which opens the files again.
            self.add(np.ones((64, 64, 3), np.uint8))
            super().sync()

    for when in ("first", "act", "sync"):
        with Damaged(tmp_path / when / "frames") as frames:
            frames.when = when
            frames.add(np.zeros((64, 64, 3), np.uint8))
            recorder = Recorder(tmp_path / when / "attempt-1", frames)
            frames.break_if("first")

            def agent(episode: Episode, frames: Damaged = frames) -> str:
                backend_of(episode.desktop).paint((0, 0, 32, 32), (0, 0, 255))
                frames.break_if("act")
                with contextlib.suppress(Exception):
                    episode.desktop.perform(ANY_KEY, settle=QUICK)
                return "it does not mind"

            result = attempt(Press(), KEY, Places(), agent, recorder)
        assert (result["cause"], result["valid"], result["score"]) == (Cause.RECORD_FAILED, False, None), when
        assert "not a database" in result["detail"]
        # Nothing says that it ended well.
        written = tmp_path / when / "attempt-1" / "result.json"
        assert not written.exists() or json.loads(written.read_text())["cause"] == Cause.RECORD_FAILED, when


def test_what_cannot_be_written_has_no_secret_either(tmp_path: Path) -> None:
    """The result goes to the ledger, though the record has none."""
    secret = "correct horse"

    class Full(Recorder):
        def finish(self, _: Mapping[str, Any]) -> Mapping[str, Any]:
            raise OSError(errno.ENOSPC, "No space left on device", str(self.directory))

    def agent(episode: Episode) -> str:
        episode.desktop.perform(Type(Secret(secret)), settle=QUICK)
        return f"I typed {secret}"

    def fails(episode: Episode) -> None:
        raise RuntimeError(f"{agent(episode)}, and it was wrong")

    with FrameStore(tmp_path / "frames") as frames:
        for number, each in enumerate((agent, fails), start=1):
            result = attempt(Press(), KEY, Places(), each, Full(tmp_path / f"attempt-{number}", frames))
            assert result["cause"] == Cause.RECORD_FAILED
            assert secret not in json.dumps(result)
        assert "I typed ***, and it was wrong" in result["detail"]
