"""A run is read as it was written, also one that goes on, was killed, or is broken somewhere."""

from __future__ import annotations

import io
import json
import os
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

from deskhand.episodes.ledger import open_ledger
from deskhand.episodes.ledger.ledger import Key
from deskhand.episodes.record.frame_store import FrameStore
from deskhand.episodes.record.reader import Recording, open_run
from deskhand.errors import EpisodeError
from episodes.recorded import INSTRUCTION, make_run, manifest, record_attempt, result_of

if TYPE_CHECKING:
    from pathlib import Path

ONE, TWO = Key("count", "", 0, 0), Key("count", "", 1, 0)


def test_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    results = make_run(tmp_path / "run", TWO, ONE)
    with open_run(tmp_path / "run") as run:
        assert run.manifest == manifest()
        assert run.planned == 2
        assert run.results() == results[::-1]
        assert [(each.key, each.attempt) for each in run.recordings()] == [(str(ONE), 1), (str(TWO), 1)]
        recording = run.recording(results[0])
        assert recording.key == str(TWO)
        assert recording.result == results[0]
        assert not recording.torn
        assert recording.begin["instruction"] == INSTRUCTION
        performs = [event for event in recording.events if event["kind"] == "perform"]
        before, after = (recording.frame(performs[0][which]) for which in ("before", "after"))
        assert before.shape == (200, 320, 3)
        assert not np.array_equal(before, after)
        assert np.array_equal(np.asarray(Image.open(io.BytesIO(recording.png(performs[0]["after"])))), after)
        assert run.recording(ONE).directory == run.recording(str(ONE)).directory
        # By its folder alone, too.
        alone = Recording.open(recording.directory)
        assert alone.events == recording.events
        assert np.array_equal(alone.frame(performs[0]["after"]), after)


def test_what_was_used_by_attempts_that_do_not_count_is_known(tmp_path: Path) -> None:
    run = tmp_path / "run"
    make_run(run, ONE, TWO, tokens={"input": 1000, "output": 200}, cost=2.5)
    with open_run(run) as opened:
        assert opened.spent_beside(opened.results()) == {"input": 0, "output": 0, "cost": 0.0}
    with FrameStore(run / "frames") as store:
        # The first of this number was killed: its events say what it had used by then.
        record_attempt(run, store, ONE, 2)
        (run / "ep" / str(ONE) / "attempt-2" / "result.json").unlink()
        record_attempt(run, store, ONE, 2, tokens={"input": 30, "output": 4}, cost=0.125)
    with open_run(run) as opened:
        assert opened.spent_beside(opened.results()) == {"input": 1100, "output": 220, "cost": 2.75}


def test_the_last_attempt_counts_and_the_earlier_ones_are_there(tmp_path: Path) -> None:
    run = tmp_path / "run"
    make_run(run, ONE)
    with FrameStore(run / "frames") as store:
        record_attempt(run, store, ONE, 2, valid=False, cause="desktop_lost", score=None)
        record_attempt(run, store, ONE, 2)
        last = record_attempt(run, store, ONE, 10)
    with open_run(run) as opened:
        found = [(each.attempt, each.superseded) for each in opened.recordings()]
        assert found == [(1, False), (2, True), (2, False), (10, False)]
        assert opened.results() == [last]
        assert opened.recording(ONE).attempt == 10
        assert opened.recording(ONE, attempt=1).result == result_of(ONE, 1) | (opened.recording(ONE, 1).result or {})
        superseded = next(each for each in opened.recordings() if each.superseded)
        assert superseded.result is not None
        assert superseded.result["cause"] == "desktop_lost"
        with pytest.raises(EpisodeError, match=r"no attempt 3 of count\.s0\.r0"):
            opened.recording(ONE, attempt=3)
        with pytest.raises(EpisodeError, match=r"its episodes are: count\.s0\.r0"):
            opened.recording("other.s0.r0")


def test_of_a_ledger_it_is_the_ledger_that_counts(tmp_path: Path) -> None:
    run = tmp_path / "run"
    make_run(run, ONE, TWO)
    ledger = open_ledger(run / "episodes.sqlite")
    ledger.begin(manifest())
    ledger.add([ONE, TWO, Key("count", "", 2, 0)])
    (lease,) = ledger.lease("w1", 60.0)
    ledger.finish(lease, result_of(lease.key, score=0.5))
    ledger.close()
    with open_run(run) as opened:
        assert opened.planned == 3
        assert [result["score"] for result in opened.results()] == [0.5]


def test_an_attempt_that_was_killed_is_read_as_far_as_it_got(tmp_path: Path) -> None:
    run = tmp_path / "run"
    make_run(run, ONE)
    path = run / "ep" / str(ONE) / "attempt-1" / "events.jsonl"
    (path.parent / "result.json").unlink()
    data = path.read_bytes()
    lines = data.splitlines(keepends=True)
    for end in range(len(data)):
        if end % 97 and end > 400:
            continue
        path.write_bytes(data[:end])
        recording = Recording.open(path.parent)
        # The last line may be whole but for its end.
        rest = data[:end].rpartition(b"\n")[2]
        whole = data[:end].count(b"\n") + (rest + b"\n" in lines)
        assert [event["seq"] for event in recording.events] == list(range(whole))
        assert recording.torn == (rest != b"" and rest + b"\n" not in lines)
        assert recording.result is None
    with open_run(run) as opened:
        assert opened.results() == []


def test_frames_that_are_not_kept_are_none_and_their_ids_hidden(tmp_path: Path) -> None:
    make_run(tmp_path / "run", ONE, secret=True)
    with open_run(tmp_path / "run") as run:
        (recording,) = run.recordings()
        typed = next(event for event in recording.events if event.get("withheld"))
        assert typed["before"] is not None
        assert typed["after"] is None
        assert typed["hidden"]["after"] not in run.frames
        final = next(event for event in recording.events if event.get("cause") == "final")
        assert final["id"] is None
        # What is no frame's id stays as it is.
        assert all(event["id"] for event in recording.events if event["kind"] == "perform")
        for event in recording.events:
            for field in ("before", "after", "frame"):
                if event.get(field) is not None:
                    assert recording.frame(event[field]).shape == (200, 320, 3)
    for path in (tmp_path / "run").rglob("*"):
        assert not path.is_file() or b"Canary7Quxblorf" not in path.read_bytes()


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(EpisodeError, match=r"no manifest\.json"):
        open_run(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(EpisodeError, match="is not JSON"):
        open_run(tmp_path)
    (tmp_path / "manifest.json").write_text(json.dumps(manifest(version=9)))
    with pytest.raises(EpisodeError, match="version 9"):
        open_run(tmp_path)
    (tmp_path / "manifest.json").write_text("[]")
    with pytest.raises(EpisodeError, match="not a JSON object"):
        open_run(tmp_path)
    with pytest.raises(EpisodeError, match="is not an attempt"):
        Recording.open(tmp_path)
    make_run(tmp_path / "run", ONE)
    events = tmp_path / "run" / "ep" / str(ONE) / "attempt-1" / "events.jsonl"
    events.write_text("3\n")
    with pytest.raises(EpisodeError, match="line 1 is not an event"):
        _ = Recording.open(events.parent).events
    (events.parent / "result.json").write_text("")
    with pytest.raises(EpisodeError, match="is not JSON"):
        _ = Recording.open(events.parent).result


def test_an_episode_is_found_without_going_through_all(tmp_path: Path) -> None:
    run = tmp_path / "run"
    make_run(run, ONE)

    def work() -> int:
        made = 0

        def count(_frame: object, event: str, _argument: object) -> None:
            nonlocal made
            made += event in ("call", "c_call")

        with open_run(run) as opened:
            sys.setprofile(count)
            try:
                opened.recording(ONE)
            finally:
                sys.setprofile(None)
        return made

    alone = work()
    for number in range(200):
        (run / "ep" / f"other.s{number}.r0").mkdir()
    assert work() < alone + 200
    with open_run(run) as opened:
        assert list(opened.recordings("../ep/count.s0.r0")) == []
        assert list(opened.recordings("")) == list(opened.recordings("..")) == []


def test_other_things_in_a_folder_are_passed_over(tmp_path: Path) -> None:
    run = tmp_path / "run"
    make_run(run, ONE)
    for name in ("attempt-2", "attempt-0", "attempt-x", "notes"):
        (run / "ep" / str(ONE) / name).mkdir()
    (run / "ep" / "file").write_text("")
    (run / "ep" / "empty.s0.r0").mkdir()
    with open_run(os.fspath(run)) as opened:
        assert [each.attempt for each in opened.recordings()] == [1]
        assert opened.recording(ONE).attempt == 1
