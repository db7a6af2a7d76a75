"""Episodes are done again and compared: what is the same is said to be, and what differs is named, with where it is."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from conftest import need
from deskhand import LeftClick, OutOfBounds, Type
from deskhand._core.events import ButtonDown
from deskhand.episodes.ledger.ledger import Key
from deskhand.episodes.play.attempt import attempt
from deskhand.episodes.play.pools import DesktopPools
from deskhand.episodes.play.replay import compare, replay, tasks_of
from deskhand.episodes.record.frame_diff import difference, extent, is_caret
from deskhand.episodes.record.frame_store import FrameStore
from deskhand.episodes.record.reader import Recording, open_run
from deskhand.episodes.record.recorder import Recorder
from deskhand.episodes.tasks.catalogue import digest
from deskhand.errors import EpisodeError, TaskError
from episodes.editing import Again, Edit
from episodes.plays import QUICK, Places
from episodes.recorded import cli, manifest, result_of

if TYPE_CHECKING:
    from pathlib import Path

    from deskhand.backends.memory import MemoryBackend
    from deskhand.episodes.play.episode import Episode

KEY = Key("press", "", 0, 0)
PRESS = "episodes.editing:Again"
EDIT = "episodes.editing:Edit"


pytestmark = pytest.mark.usefixtures("quick")


def clicker(episode: Episode) -> str:
    """Clicks three times, each in another place, and is refused once."""
    for x in (10, 20, 30):
        episode.desktop.perform(LeftClick((x, 20)), settle=QUICK)
    episode.desktop.host.run("echo done; exit 4")
    with pytest.raises(OutOfBounds):
        episode.desktop.perform(LeftClick((x, 2000)), settle=QUICK)
    episode.desktop.screenshot()
    return "all clicked"


def paints(colour: tuple[int, int, int] = (200, 0, 0), *, where: int = 0) -> Any:
    """A desktop that paints where it was clicked."""

    def wrap(backend: MemoryBackend) -> None:
        keep = backend.on_event

        def on_event(event: object) -> None:
            keep(event)  # type: ignore[arg-type]
            if isinstance(event, ButtonDown):
                x, y = backend.screen.pointer
                backend.paint((x, y + where, 4, 4), colour)

        backend.on_event = on_event

    return wrap


def make(run: Path, agent: Any = clicker, wrap: Any = None, **more: Any) -> None:
    run.mkdir()
    data = manifest(tasks={"press": digest(Again())}, select=[PRESS], seeds=1, **more)
    (run / "manifest.json").write_text(json.dumps(data))
    with FrameStore(run / "frames") as frames:
        recorder = Recorder(run / "ep" / str(KEY) / "attempt-1", frames)
        attempt(Again(), KEY, Places(wrap or paints()), agent, recorder)


def again(run: Path, out: Path, wrap: Any = None, **options: Any) -> Any:
    with open_run(run) as opened:
        places = Places(wrap or paints())
        (found,) = replay(opened, out, lambda _: places, tasks_of(opened, named=[PRESS]), host=True, **options)
        return found


def test_what_is_the_same_is_said_to_be(tmp_path: Path) -> None:
    make(tmp_path / "run")
    found = again(tmp_path / "run", tmp_path / "out")
    assert (found.same, found.same_state, found.note) == (True, True, "")
    # Three clicks and a command; the refused one and the look are none, and each click has a frame, beside the first.
    assert (found.episode, found.attempt, found.steps, found.frames) == (str(KEY), 1, 4, 4)
    # It is a run of its own, which can be read, and compared with.
    with open_run(tmp_path / "out") as out:
        assert out.manifest["agent"].startswith("replay:")
        (recording,) = out.recordings()
        performs = [event for event in recording.events if event["kind"] == "perform"]
        assert [event["actions"][0]["xy"] for event in performs] == [[10, 20], [20, 20], [30, 20]]
        assert recording.result is not None
        assert recording.result["answer"] == "all clicked"
    with pytest.raises(EpisodeError, match="has a run already"):
        again(tmp_path / "run", tmp_path / "out")


def test_a_frame_that_differs_is_named_with_where(tmp_path: Path) -> None:
    make(tmp_path / "run")
    found = again(tmp_path / "run", tmp_path / "out", paints(where=6))
    assert found.same_state
    assert not found.same
    assert [(each.step, each.what) for each in found.differences] == [(1, "frame"), (2, "frame"), (3, "frame")]
    first = found.differences[0]
    assert (first.region, first.pixels) == ((10, 20, 4, 10), 32)
    # A region that is left out is no difference.
    masked = again(tmp_path / "run", tmp_path / "masked", paints(where=6), masks=[(0, 18, 64, 30)])
    assert masked.same
    partly = again(tmp_path / "run", tmp_path / "partly", paints(where=6), masks=[(0, 18, 64, 8)])
    assert partly.differences[0].region == (10, 26, 4, 4)


def test_regions_that_a_task_names_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "run")
    monkeypatch.setattr(Again, "masks", ((0, 18, 64, 30),))
    assert not again(tmp_path / "run", tmp_path / "out", paints(where=6)).differences


def test_an_end_that_differs_is_told_with_both(tmp_path: Path) -> None:
    make(tmp_path / "run", agent="oracle")

    def forgets(backend: MemoryBackend) -> None:
        backend.on_event = lambda _event: None

    found = again(tmp_path / "run", tmp_path / "out", forgets)
    assert found.state["score"] == (1.0, 0.0)
    assert found.state["success"] == (True, False)
    assert found.state["state"] == ({"clicks": 1}, {"clicks": 0})
    assert not found.same_state


DIALOG = (20, 10, 40, 30)


def late(waits: int) -> Any:
    """A desktop that opens a dialog so many waits after the first click; a click before that closes nothing."""

    def wrap(backend: MemoryBackend) -> None:
        waited = -1

        def on_event(event: object) -> None:
            nonlocal waited
            if isinstance(event, ButtonDown):
                if waited < 0:
                    waited = 0
                elif waited >= waits:
                    backend.paint(DIALOG, (0, 0, 9))

        def on_wait(seconds: float) -> None:
            nonlocal waited
            time.sleep(seconds)
            waited += waited >= 0
            if waited == waits:
                backend.paint(DIALOG, (250, 250, 250))

        backend.on_event, backend.on_wait = on_event, on_wait

    return wrap


def patient(episode: Episode) -> None:
    """Opens the dialog, waits for it, and closes it."""
    x, y, _, _ = DIALOG
    seen = episode.desktop.perform(LeftClick((5, 5)), settle=False)
    while not seen.array()[y, x].any():
        seen = episode.desktop.perform(settle=QUICK)
    episode.desktop.perform(LeftClick((45, 35)), settle=QUICK)


def test_a_program_that_takes_longer_is_waited_for(tmp_path: Path) -> None:
    run = tmp_path / "run"
    make(run, patient, wrap=late(2))
    found = again(run, tmp_path / "out", late(25))
    with open_run(tmp_path / "out") as out:
        last = next(out.recordings()).events[-4]
        assert (last["kind"], last["actions"][0]["xy"]) == ("perform", [45, 35])
        x, y, _, _ = DIALOG
        assert out.frames.array(last["before"])[y, x].tolist() == [250, 250, 250]
        assert out.frames.array(last["after"])[y, x].tolist() == [0, 0, 9]
    assert found.same_state


def test_carets_are_none_and_large_busy_regions_are() -> None:
    blank = np.zeros((100, 100, 3), np.uint8)
    caret, window = blank.copy(), blank.copy()
    caret[20:37, 30:32] = 255
    window[20:70, 30:80] = 255
    assert extent(difference(blank, blank)) is None
    region = extent(difference(blank, caret))
    assert region == (30, 20, 2, 17)
    assert is_caret(region)
    large = extent(difference(blank, window))
    assert large == (30, 20, 50, 50)
    assert not is_caret(large)
    assert extent(difference(blank, caret, busy=[(30, 20, 2, 17)])) is None
    assert extent(difference(blank, window, busy=[(0, 0, 100, 100)])) == large
    assert extent(difference(blank, window, masks=[(0, 0, 100, 100)])) is None


def secretive(episode: Episode) -> None:
    episode.desktop.perform(LeftClick((10, 10)), settle=QUICK)
    episode.desktop.perform(Type("hunter2", secret=True), settle=False)
    episode.desktop.perform(LeftClick((20, 10)), settle=QUICK)


def test_a_secret_cannot_be_typed_again(tmp_path: Path) -> None:
    make(tmp_path / "run", agent=secretive)
    found = again(tmp_path / "run", tmp_path / "out")
    assert not found.same
    assert "give the secret itself" in found.note
    assert found.differences[-1].what == "call"
    assert (found.differences[-1].recorded, found.differences[-1].replayed) == ("perform", None)


def test_a_changed_task_and_another_instance_are_noted(tmp_path: Path) -> None:
    make(tmp_path / "run", run_seed=5)
    path = tmp_path / "run" / "manifest.json"
    path.write_text(path.read_text().replace(digest(Again()), "0" * 64))
    found = again(tmp_path / "run", tmp_path / "out")
    assert found.note == "the task was changed since; it is another instance: its parameters differ"


def test_commands_and_errors_are_compared(tmp_path: Path) -> None:
    def recording(number: int, code: int, error: Any) -> Recording:
        with FrameStore(tmp_path / "frames") as frames:
            recorder = Recorder(tmp_path / f"run{number}" / str(KEY) / "attempt-1", frames)
            recorder.event("shell", command="ls", exit_code=code, stdout=f"{code}", stderr="")
            recorder.event("perform", actions=[], before=None, after=None, error=error, unknown=True)
            recorder.finish(result_of(KEY))
            recorder.close()
            return Recording.open(recorder.directory, frames)

    found = compare(recording(1, 0, None), recording(2, 7, {"type": "Reconnected", "message": "it broke"}))
    told = [(each.step, each.what, each.recorded, each.replayed) for each in found.differences]
    assert told == [
        (1, "exit_code", 0, 7),
        (1, "output", "0", "7"),
        (2, "error", None, "Reconnected"),
    ]


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    make(tmp_path / "run")
    with pytest.raises(EpisodeError, match=r"has no attempt of other\.s0\.r0"):
        again(tmp_path / "run", tmp_path / "out", episodes=["other.s0.r0"])
    with open_run(tmp_path / "run") as run, pytest.raises(TaskError, match="Gone"):
        tasks_of(run, named=["episodes.editing:Gone"])


# --- on real desktops ---


def make_edits(run: Path, seeds: int) -> None:
    """As `deskhand run` records it."""
    task = Edit()
    run.mkdir()
    data = manifest(tasks={task.name: digest(task)}, select=[EDIT], seeds=seeds, backend="local", image=None)
    (run / "manifest.json").write_text(json.dumps(data))
    with FrameStore(run / "frames") as frames, DesktopPools([task], backend="local", desktops=1) as pools:
        for seed in range(seeds):
            key = Key(task.name, "", seed, 0)
            recorder = Recorder(run / "ep" / str(key) / "attempt-1", frames)
            result = attempt(task, key, pools.places(task), "oracle", recorder)
            assert result["success"], result


@pytest.mark.soak
def test_an_editor_is_replayed_to_the_same_frames(tmp_path: Path) -> None:
    need("mousepad", "mousepad")
    make_edits(tmp_path / "run", 2)
    here = ("--backend", "local", "--host", "--task", EDIT)
    code, said = cli("replay", str(tmp_path / "run"), *here, "--desktops", "2", "--out", str(tmp_path / "out"))
    assert "2 of 2 episodes ended as they had; 8 of 8 frames are the same" in said, said
    assert code == 0
    # What was recorded otherwise is told, and is the exit code.
    path = tmp_path / "run" / "ep" / "edit-notes.s1.r0" / "attempt-1" / "events.jsonl"
    path.write_text(path.read_text().replace('"text":"', '"text":"x'))
    code, said = cli("replay", str(tmp_path / "run"), "edit-notes.s1.r0", *here, "--json")
    assert code == 1
    (found,) = json.loads(said)
    assert found["same_state"] is False
    assert "text" in found["state"]["state"][1]
    assert found["differences"]


def test_files_and_directories_have_their_own_options(tmp_path: Path) -> None:
    file = tmp_path / "session.rfb"
    file.write_bytes(b"")
    for arguments, reason in (
        (["replay", str(tmp_path), "--real-time"], "are for the recording of a VNC server"),
        (["replay", str(file), "--state-only"], "is a file"),
        (["replay", str(file), "text.s0.r0"], "is a file"),
        (["replay", str(tmp_path), "--mask", "1,2,3"], "not of the form X,Y,W,H"),
        (["replay", str(file), "--host"], "is a file"),
        (["replay", str(tmp_path), "--backend", "docker"], "is not a run"),
    ):
        code, said = cli(*arguments)
        assert code in {1, 2}
        assert reason in said
