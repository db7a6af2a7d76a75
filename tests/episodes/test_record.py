"""What happened is written down as it happens, whole, bounded, and without secrets."""

from __future__ import annotations

import asyncio
import errno
import itertools
import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from deskhand import (
    AsyncDesktop,
    Desktop,
    DesktopLost,
    KeyPress,
    LeftClick,
    OutOfBounds,
    PolicyDenied,
    RecordFull,
    Secret,
    Type,
    UnsupportedAction,
)
from deskhand.actions import Action
from deskhand.episodes.record.bounds import Bounds
from deskhand.episodes.record.frame_store import FrameStore
from deskhand.episodes.record.recorder import Recorder
from deskhand.errors import EpisodeError
from episodes.recorded import Painted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deskhand._core.events import Event
    from deskhand.desktop.operations import Operation


def events(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / "events.jsonl").read_text().splitlines()]


@pytest.fixture
def painted() -> Iterator[Painted]:
    made = Painted()
    with made.desktop:
        yield made


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FrameStore]:
    with FrameStore(tmp_path / "frames") as made:
        yield made


@pytest.fixture
def recorder(tmp_path: Path, store: FrameStore) -> Iterator[Recorder]:
    made = Recorder(tmp_path / "ep" / "attempt-1", store)
    yield made
    made.close()


def test_an_attempt_as_it_is_written_down(painted: Painted, recorder: Recorder, store: FrameStore) -> None:
    desktop = painted.desktop
    recorder.event("begin", task="count", instruction="Count to three.")
    acting = recorder.attach(desktop)
    first = recorder.frame(desktop, "first")
    seen = acting.perform(LeftClick((5, 6)), settle=False)
    painted.backend.paint((200, 100, 50, 50), (1, 2, 3))
    acting.perform(KeyPress(["ctrl", "s"]), settle=False)
    acting.screenshot()
    recorder.event("note", text="it counts")
    final = recorder.frame(desktop, "final")
    assert recorder.finish({"score": 1.0, "cause": None}) == {"score": 1.0, "cause": None}
    assert (recorder.totals.performs, recorder.totals.actions, recorder.totals.looks) == (2, 2, 1)
    told = events(recorder.directory)
    kinds = ["begin", "frame", "perform", "perform", "look", "note", "frame"]
    assert [event["kind"] for event in told] == kinds
    assert [event["seq"] for event in told] == list(range(7))
    assert all(0 <= a["t"] <= b["t"] and a["wall"] > 1.7e9 for a, b in itertools.pairwise(told))
    click, keys = told[2], told[3]
    assert click["id"] != keys["id"]
    assert Action.from_dict(click["actions"][0]) == LeftClick((5, 6))
    assert click["before"] == first == told[1]["id"]
    assert click["rects"] == [list(rect) for rect in seen.rects]
    assert click["elapsed"]["input"] == pytest.approx(seen.elapsed.input, abs=1e-5)
    assert (click["settled"], click["reason"]) == (seen.settled, str(seen.reason))
    assert (click["error"], click["unknown"]) == (None, False)
    # Every frame is what the screen showed, also what changed between two actions.
    after = seen.array().copy()
    assert np.array_equal(store.array(click["after"]), after)
    after[100:150, 200:250] = (1, 2, 3)
    assert np.array_equal(store.array(keys["before"]), after)
    assert keys["after"] == told[4]["frame"] == final
    assert np.array_equal(store.array(final), desktop.screenshot(cursor=False, format="raw").array())
    assert json.loads((recorder.directory / "result.json").read_text()) == {"score": 1.0, "cause": None}


def test_times_follow_one_another_when_the_clock_is_set_back(tmp_path: Path, store: FrameStore) -> None:
    walls = itertools.chain([1.8e9], itertools.repeat(1.8e9 - 3600))
    recorder = Recorder(tmp_path / "attempt-1", store, wall=lambda: next(walls))
    for number in range(3):
        recorder.event("note", text=str(number))
    recorder.close()
    told = events(recorder.directory)
    assert len(told) == 3
    assert all(event["wall"] - event["t"] == pytest.approx(1.8e9, abs=1e-3) for event in told)


def test_the_looks_of_a_recorder_are_heard_by_nobody(painted: Painted, recorder: Recorder) -> None:
    heard: list[str] = []

    class Heard:
        def before(self, operation: Operation) -> object:
            heard.append(operation.type)
            return None

        def after(self, operation: Operation, token: object, outcome: object) -> None:
            del operation, token, outcome

    acting = recorder.attach(painted.desktop, Heard())
    acting.perform(LeftClick((5, 6)), settle=False)
    recorder.frame(painted.desktop)
    assert heard == ["perform"]
    recorder.detach()
    acting.perform(LeftClick((5, 6)), settle=False)
    assert len(events(recorder.directory)) == 1


def test_coroutines_are_recorded(recorder: Recorder) -> None:
    async def act() -> None:
        made = Painted()
        async with AsyncDesktop(recorder.attach(made.desktop)) as desktop:
            await asyncio.gather(*(desktop.perform(LeftClick((number, 5)), settle=False) for number in range(8)))

    asyncio.run(act())
    told = events(recorder.directory)
    assert sorted(event["actions"][0]["xy"][0] for event in told) == list(range(8))
    assert len({event["id"] for event in told}) == 8


class Refuse:
    def before(self, operation: Operation) -> object:
        raise PolicyDenied(operation.type, f"enough of {len(operation.actions)}")

    def after(self, operation: Operation, token: object, outcome: object) -> None:
        raise AssertionError((operation, token, outcome))


def test_what_is_refused_and_what_fails_is_told(painted: Painted, recorder: Recorder) -> None:
    acting = recorder.attach(painted.desktop, Refuse())
    with pytest.raises(PolicyDenied):
        acting.perform(LeftClick((5, 6)))
    acting = recorder.attach(painted.desktop)
    with pytest.raises(OutOfBounds):
        acting.perform(LeftClick((5, 6000)))

    def lose(_event: Event) -> None:
        raise DesktopLost("x_server", "it went away")

    painted.backend.on_event = lose
    with pytest.raises(DesktopLost):
        acting.perform(LeftClick((5, 6)))
    refused, outside, lost = events(recorder.directory)
    assert refused["error"] == {"type": "PolicyDenied", "message": "the policy denies perform: enough of 1"}
    assert outside["error"]["type"] == "OutOfBounds"
    assert lost["error"]["type"] == "DesktopLost"
    # Only of the last one it is not known whether it was done.
    assert [event["unknown"] for event in (refused, outside, lost)] == [False, False, True]


# --- bounds ---


def many_clicks(desktop: Desktop) -> None:
    for number in range(100):
        desktop.perform(LeftClick((5 + 100 * (number % 2), 6)), settle=False)


def test_an_attempt_that_floods_is_stopped(painted: Painted, tmp_path: Path, store: FrameStore) -> None:
    bounds = {
        "events": Bounds(events=20),
        "bytes": Bounds(bytes=6000),
        "bytes of pixels": Bounds(pixels=3000),
    }
    for number, (what, bound) in enumerate(bounds.items(), 1):
        recorder = Recorder(tmp_path / f"attempt-{number}", store, bounds=bound)
        acting = recorder.attach(painted.desktop)
        with pytest.raises(RecordFull) as full:
            many_clicks(acting)
        assert full.value.what == what
        assert recorder.error is full.value
        # An agent that goes on all the same does nothing any more.
        done = painted.count
        with pytest.raises(RecordFull):
            acting.perform(LeftClick((5, 6)), settle=False)
        assert painted.count == done
        # And what comes of it is still told.
        recorder.frame(painted.desktop, "final")
        recorder.event("end", cause="agent_error", detail="x" * 5000)
        recorder.finish({"cause": "agent_error"})
        recorder.close()
        told = events(recorder.directory)
        assert told[-1]["kind"] == "end"
        assert len(told) <= 22


def test_texts_and_lists_are_cut_with_a_mark(recorder: Recorder) -> None:
    recorder.event("note", text="a" * 100_000)
    recorder.event("shell", stdout="b" * 100_000, many=list(range(100_000)), names={f"n{i}": i for i in range(20_000)})
    note, shell = events(recorder.directory)
    assert note["text"] == "a" * 65536 + "... and 34464 characters more"
    assert shell["stdout"].endswith("characters more")
    assert len(shell["many"]) < 10_000
    assert shell["many"][-1].endswith("more")
    assert (recorder.directory / "events.jsonl").stat().st_size < 300_000


def test_nonsense_is_shown_as_text(recorder: Recorder) -> None:
    nonsense = {
        "nan": math.nan,
        "huge": 10**5000,
        "set": {1},
        "bytes": b"x",
        "surrogate": "\ud800",
        "numpy": np.float64(0.5),
        "integer": np.int64(7),
        "path": Path("/x"),
        3: "a number",
        "true": True,
        "none": None,
    }
    recorder.event("note", text=nonsense)
    (told,) = events(recorder.directory)
    assert told["text"]["numpy"] == 0.5
    assert told["text"]["3"] == "a number"
    assert told["text"]["true"] is True
    assert told["text"]["set"] == "{1}"
    assert told["text"]["nan"] == "nan"
    itself: list[Any] = []
    itself += [itself, itself]
    recorder.event("note", text=itself)
    assert len(json.dumps(events(recorder.directory)[1])) < 200_000


# --- secrets ---


def test_a_secret_is_nowhere(painted: Painted, tmp_path: Path) -> None:
    words = ["Canary7Quxblorf", 'quote"back\\slash', "naïve☕geheim"]
    for number, word in enumerate(words, 1):
        with FrameStore(tmp_path / "run" / "frames") as store:
            recorder = Recorder(tmp_path / "run" / f"attempt-{number}", store, secrets=[Secret(f"given{word}")])
            acting = recorder.attach(painted.desktop)
            acting.perform(LeftClick((5, 6)), settle=False)
            acting.perform(Type(Secret(word)), settle=False)
            with pytest.raises(UnsupportedAction, match=r"docker|machine"):
                acting.machine.run(f"echo {word} | sudo -S true")
            recorder.event("note", text=f"I typed {word} and given{word}", **{word: {word: [word]}})
            recorder.finish({"state": {"file": f"password={word}"}, "detail": ValueError(word)})
            recorder.close()
    for path in (tmp_path / "run").rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            for word in words:
                for form in (word, json.dumps(word)[1:-1]):
                    assert form.encode() not in data, (path, word)
    note = events(tmp_path / "run" / "attempt-1")[-1]
    assert note["text"] == "I typed *** and ***"


def test_what_is_shown_after_a_secret_is_told_apart_and_not_kept(
    painted: Painted, tmp_path: Path, store: FrameStore
) -> None:
    recorder = Recorder(tmp_path / "attempt-1", store)
    acting = recorder.attach(painted.desktop)
    acting.perform(LeftClick((5, 6)), settle=False)
    acting.perform(Type(Secret("hunter2")), settle=False)
    acting.perform(LeftClick((5, 6)), settle=False)
    final = recorder.frame(painted.desktop, "final")
    recorder.close()
    before, secret, after, _ = events(recorder.directory)
    assert "withheld" not in before
    assert before["before"] in store
    assert before["after"] == secret["before"]
    assert secret["before"] in store
    assert secret["withheld"] is after["withheld"] is True
    assert secret["after"] not in store
    assert final not in store
    # It is the id that it would have.
    assert store.add(painted.desktop.screenshot(format="raw", cursor=False).array()) == final

    kept = Recorder(tmp_path / "attempt-2", store, pixels_after_secrets=True)
    acting = kept.attach(painted.desktop)
    acting.perform(Type(Secret("hunter2")), settle=False)
    kept.close()
    (typed,) = events(kept.directory)
    assert typed["after"] in store
    assert "hunter2" not in json.dumps(typed)


# --- disks and crashes ---


def test_an_attempt_of_the_same_name_is_kept(tmp_path: Path, store: FrameStore) -> None:
    for number in range(3):
        recorder = Recorder(tmp_path / "ep" / "attempt-1", store)
        recorder.event("note", text=f"{number}")
        recorder.close()
    found = {path.name: events(path)[0]["text"] for path in (tmp_path / "ep").iterdir()}
    assert found == {"attempt-1": "2", "attempt-1~1": "0", "attempt-1~2": "1"}


FILLER = """
import os, resource, signal, sys
from deskhand import Desktop, LeftClick
from deskhand.backends.memory import MemoryBackend
from deskhand.episodes.record.frame_store import FrameStore
from deskhand.episodes.record.recorder import Recorder
store = FrameStore(sys.argv[1] + "/frames")
full = Recorder(sys.argv[1] + "/attempt-1", store)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
full.event("note", text="x" * 5000)
resource.setrlimit(resource.RLIMIT_FSIZE, (6000, resource.RLIM_INFINITY))
desktop = Desktop(MemoryBackend((320, 200)))
acting = full.attach(desktop)
try:
    for _ in range(100):
        acting.perform(LeftClick((5, 6)), settle=False)
except OSError as error:
    print(error.errno, error.filename)
assert isinstance(full.error, OSError)
try:
    full.finish({"state": "y" * 7000})
except OSError as error:
    print(error.errno)
full.close()
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
with_room = Recorder(sys.argv[1] + "/attempt-2", store)
acting = with_room.attach(desktop)
acting.perform(LeftClick((5, 6)), settle=False)
with_room.finish({})
with_room.close()
desktop.close()
"""


def test_a_full_disk_is_named_and_only_of_its_attempt(tmp_path: Path) -> None:
    with FrameStore(tmp_path / "frames") as store:
        # Its own files are beyond the limit already: here it is about the events.
        store.add(np.zeros((200, 320, 3), np.uint8))
    done = subprocess.run(
        [sys.executable, "-c", FILLER, str(tmp_path)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    (number, file), (again,) = (line.split() for line in done.stdout.splitlines())
    assert int(number) in {errno.EFBIG, errno.ENOSPC, errno.EIO}
    assert file.startswith(str(tmp_path))
    assert int(again) in {errno.EFBIG, errno.ENOSPC, errno.EIO}
    # All that is there is whole, and nothing looks like an end.
    assert events(tmp_path / "attempt-1")
    assert [path.name for path in (tmp_path / "attempt-1").iterdir()] == ["events.jsonl"]
    assert len(events(tmp_path / "attempt-2")) == 1
    assert (tmp_path / "attempt-2" / "result.json").exists()


KILLED = """
import sys
from deskhand import Desktop, LeftClick
from deskhand.backends.memory import MemoryBackend
from deskhand.episodes.record.frame_store import FrameStore
from deskhand.episodes.record.recorder import Recorder
store = FrameStore(sys.argv[1] + "/frames")
recorder = Recorder(sys.argv[1] + "/attempt-" + sys.argv[2], store)
backend = MemoryBackend((320, 200))
desktop = Desktop(backend)
acting = recorder.attach(desktop)
number = 0
while True:
    number += 1
    backend.paint((number % 250, number % 150, 50, 40), (number % 256, int(sys.argv[2]), 9))
    acting.perform(LeftClick((97 * number % 320, 6)), settle=False)
    print(number, flush=True)
"""


def test_who_is_killed_loses_at_most_the_event_that_he_was_writing(tmp_path: Path) -> None:
    for number in range(1, 6):
        command = [sys.executable, "-c", KILLED, str(tmp_path), str(number)]
        writer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        told = [int(writer.stdout.readline()) for _ in range(7 * number)][-1]
        writer.send_signal(signal.SIGKILL)
        told = int((writer.stdout.read().split() or [told])[-1])
        writer.stdout.close()
        writer.wait()
        whole = (tmp_path / f"attempt-{number}" / "events.jsonl").read_bytes().split(b"\n")[:-1]
        kept = [json.loads(line) for line in whole]
        assert [event["seq"] for event in kept] == list(range(len(kept)))
        assert told <= len(kept) <= told + 1
        with FrameStore(tmp_path / "frames") as store:
            for event in kept:
                assert event["after"] in store
                assert event["before"] in store


def test_events_are_on_the_disk_within_a_second(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[float] = []
    sync = os.fdatasync

    def counted(number: int) -> None:
        sync(number)
        synced.append(time.monotonic())

    monkeypatch.setattr(os, "fdatasync", counted)
    for round_ in range(1, 3):
        begun = time.monotonic()
        for _ in range(50):
            recorder.event("note", text="something")
        while len(synced) < round_:
            assert time.monotonic() - begun < 10
            time.sleep(0.01)
    # All fifty at once, and not each by itself.
    assert len(synced) == 2


def test_a_closed_recorder_says_so(recorder: Recorder) -> None:
    recorder.close()
    recorder.close()
    with pytest.raises(OSError, match="is closed"):
        recorder.event("note", text="late")


def test_a_disk_error_of_the_background_is_told_to_the_next(
    recorder: Recorder, painted: Painted, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_number: int) -> None:
        raise OSError(errno.EIO, "the disk is gone")

    acting = recorder.attach(painted.desktop)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fdatasync", fail)
        recorder.event("note", text="x")
        with pytest.raises(OSError, match="the disk is gone"):
            recorder.sync()
    with pytest.raises(OSError, match="the disk is gone"):
        acting.perform(LeftClick((5, 5)), settle=False)
    assert painted.count == 0


def test_frames_that_cannot_be_stored_stop_the_attempt(painted: Painted, tmp_path: Path) -> None:
    folder = tmp_path / "frames"
    folder.write_text("a file where the folder should be")
    recorder = Recorder(tmp_path / "attempt-1", FrameStore(folder))
    acting = recorder.attach(painted.desktop)
    with pytest.raises((OSError, EpisodeError)) as error:
        acting.perform(LeftClick((5, 5)), settle=False)
    assert recorder.error is error.value
    assert painted.count == 0
    recorder.close()
