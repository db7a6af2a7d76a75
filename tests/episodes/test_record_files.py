"""Files that an agent reads and writes: counted, written down with what was written, and written again by a replay."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from deskhand import Desktop, PolicyDenied, Secret
from deskhand._core.geometry import Size, Viewport
from deskhand.backends.memory import MemoryBackend
from deskhand.episodes.play.budget import StepBudget
from deskhand.episodes.play.replay_agent import repeating
from deskhand.episodes.record.atif import _calls
from deskhand.episodes.record.frame_store import FrameStore
from deskhand.episodes.record.osworld_format import _action
from deskhand.episodes.record.recorder import Recorder
from deskhand.episodes.record.transcript_turns import turns
from deskhand.episodes.tasks.task import TaskLimits
from deskhand.errors import EpisodeError
from deskhand.policy.guard import Guard
from deskhand.providers.editors import TextEditor, carry_out_edit
from deskhand.providers.values import EditCall

if TYPE_CHECKING:
    from pathlib import Path


class Machine:
    """A desktop's machine, as far as files go."""

    home = "/home/user"

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def view_file(self, path: str, **_: Any) -> bytes:
        return self.files[path]

    def write_file(self, path: str, data: bytes, **_: Any) -> None:
        self.files[path] = data


def a_desktop(machine: Machine) -> Desktop:
    return Desktop(MemoryBackend(), inside=machine)  # type: ignore[arg-type] # only files are asked for


def recorded(tmp_path: Path, *, secret: str = "") -> tuple[Machine, Path, StepBudget]:
    """An attempt in which a file is made, read and changed by an editor, and two others are written."""
    machine = Machine()
    directory = tmp_path / "attempt-1"
    with a_desktop(machine) as desktop, FrameStore(tmp_path / "frames") as store:
        recorder = Recorder(directory, store, secrets=[Secret(secret)] if secret else ())
        recorder.attach(desktop)
        budget = StepBudget(TaskLimits(), recorder)
        acting = desktop.also(budget)
        editor = TextEditor(acting)
        for call in (
            EditCall(command="create", path="/home/user/notes", text=f"one{secret}\n"),
            EditCall(command="str_replace", path="/home/user/notes", old="one", text="two"),
            EditCall(command="view", path="/home/user/notes"),
        ):
            assert not carry_out_edit(editor, call, provider="anthropic").failed
        acting.machine.write_file("/tmp/picture", b"\xff\x00")
        with pytest.raises(PolicyDenied):
            acting.also(Guard()).machine.write_file("/tmp/denied", "no")
        recorder.close()
    return machine, directory, budget


def events(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / "events.jsonl").read_text().splitlines()]


def test_files_are_written_down_with_what_was_written(tmp_path: Path) -> None:
    _, directory, budget = recorded(tmp_path)
    named = ("kind", "path", "size", "text", "base64")
    told = [{name: event[name] for name in named if name in event} for event in events(directory)]
    notes = "/home/user/notes"
    assert told == [
        {"kind": "write_file", "path": notes, "size": 4, "text": "one\n"},
        {"kind": "read_file", "path": notes, "size": 4},
        {"kind": "write_file", "path": notes, "size": 4, "text": "two\n"},
        {"kind": "read_file", "path": notes, "size": 4},
        {"kind": "write_file", "path": "/tmp/picture", "size": 2, "base64": "/wA="},
        {"kind": "write_file", "path": "/tmp/denied", "size": 2, "text": "no"},
    ]
    assert events(directory)[-1]["error"]["type"] == "PolicyDenied"
    assert (budget.steps, budget.looks) == (4, 2)
    assert [turn.kind for turn in turns(events(directory))] == [each["kind"] for each in told]


def test_other_projects_formats_have_them_too(tmp_path: Path) -> None:
    _, directory, _ = recorded(tmp_path)
    first = turns(events(directory))[:2]
    given = {"path": "/home/user/notes", "text": "one\n"}
    made = [_calls(turn)[0] for turn in first]
    assert [(call["function_name"], call["arguments"]) for call in made] == [
        ("write_file", given),
        ("read_file", {"path": given["path"]}),
    ]
    viewport = Viewport(Size(1280, 800), Size(1280, 800))
    assert [_action(turn.event or {}, viewport) for turn in first] == [
        {"type": "write_file", **given},
        {"type": "read_file", "path": given["path"]},
    ]


def replayed(directory: Path) -> Machine:
    machine = Machine()
    with a_desktop(machine) as desktop:
        recording = SimpleNamespace(directory=directory, events=events(directory), frames={})
        repeating(recording)(SimpleNamespace(desktop=desktop))  # type: ignore[arg-type] # all that is needed
    return machine


def test_a_replay_writes_the_same_files(tmp_path: Path) -> None:
    machine, directory, _ = recorded(tmp_path)
    assert replayed(directory).files == machine.files == {"/home/user/notes": b"two\n", "/tmp/picture": b"\xff\x00"}


def test_what_is_not_whole_in_the_record_is_not_written_again(tmp_path: Path) -> None:
    _, directory, _ = recorded(tmp_path, secret="hunter2")
    assert "hunter2" not in (directory / "events.jsonl").read_text()
    with pytest.raises(EpisodeError, match="'write_file' is damaged: it cannot be made again"):
        replayed(directory)
