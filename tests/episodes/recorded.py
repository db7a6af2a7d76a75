"""A run's folder as it is written, by the recorder and in the form that runs have."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import click
from click.testing import CliRunner

from deskhand import DeskhandError, Desktop, KeyPress, LeftClick, PolicyDenied, Secret, Type
from deskhand._core.events import ButtonDown, KeyDown
from deskhand.backends.memory import MemoryBackend
from deskhand.cli.group import commands
from deskhand.episodes.record.frame_store import FrameStore
from deskhand.episodes.record.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from deskhand._core.events import Event
    from deskhand.desktop.operations import Operation
    from deskhand.episodes.ledger.ledger import Key

SIZE = (320, 200)
INSTRUCTION = "Click twice, then save."


class Painted:
    """A desktop in memory that paints something else at every click and key."""

    def __init__(self) -> None:
        self.backend = MemoryBackend(SIZE)
        self.backend.on_event = self._paint
        self.count = 0
        self.desktop = Desktop(self.backend)

    def _paint(self, event: Event) -> None:
        if isinstance(event, ButtonDown | KeyDown):
            self.count += 1
            self.backend.paint((self.count % 100, 3, 40, 30), (self.count % 256, 7, self.count // 256 % 256))


def manifest(**more: Any) -> dict[str, Any]:
    tasks = {"count": "abc"}
    return {
        "version": 1,
        "deskhand": "0.1.0",
        "run_seed": 0,
        "agent": "me",
        "tasks": tasks,
        "seeds": 2,
        "repeats": 1,
        "desktops": 1,
        "engine": "local",
    } | more


def result_of(key: Key, attempt: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "version": 1,
        **key._asdict(),
        "attempt": attempt,
        "agent": "me",
        "worker": "w1",
        "instance_seed": 7,
        "parameters": {"count": 3},
        "instruction": INSTRUCTION,
        "level": 1,
        "tags": ["text"],
        "valid": True,
        "success": True,
        "score": 1.0,
        "cause": None,
        "detail": "",
        "reason": "all there",
        "state": {"clicks": 2},
        "answer": "done",
        "steps": 3,
        "actions": 3,
        "looks": 1,
        "times": {"reset": 0.1, "setup": 0.2, "agent": 1.5, "evaluate": 0.1, "total": 2.0},
        "tokens": {"input": 100, "output": 20},
        "cost": 0.25,
        "started": time.time() - 2,
        "ended": time.time(),
        "retries": 0,
        "failures": {},
        **more,
    }


def record_attempt(
    run: Path, store: FrameStore, key: Key, attempt: int = 1, *, secret: bool = False, **more: Any
) -> Mapping[str, Any]:
    """An attempt that clicks, types, runs a command, is refused one, and looks."""
    recorder = Recorder(run / "ep" / str(key) / f"attempt-{attempt}", store)
    painted = Painted()
    desktop = painted.desktop
    with desktop:
        limits = {"steps": 30, "seconds": 300.0}
        begin = {**key._asdict(), "instruction": INSTRUCTION, "parameters": {"count": 3}}
        recorder.event("begin", **begin, screen=list(SIZE), limits=limits)
        recorder.event("reset", seconds=0.1)
        recorder.event("setup", seconds=0.2)
        first = recorder.frame(desktop, "first")
        acting = recorder.attach(desktop)
        recorder.event("note", text="I see a button.")
        recorder.event("spend", input=100, output=20, cost=0.25)
        acting.perform(LeftClick((5, 6)), settle=False)
        acting.perform(LeftClick((7, 8)), Type("naïve ☕"), settle=False)
        recorder.event("note", text="Now I save.")
        if secret:
            acting.perform(Type(Secret("Canary7Quxblorf")), settle=False)
        acting.perform(KeyPress(["ctrl", "s"]), settle=False)
        acting.host.run("echo saved; echo wrong >&2; exit 3")
        acting.screenshot()
        acting = recorder.attach(desktop, Refusing())
        try:
            acting.perform(LeftClick((1, 1)), settle=False)
        except PolicyDenied as error:
            recorder.event("refused", reason=str(error))
        recorder.detach()
        recorder.event("answer", text="done")
        final = recorder.frame(desktop, "final")
        recorder.event("evaluate", seconds=0.1)
        recorder.event("end", cause=None, detail="")
    result = recorder.finish(result_of(key, attempt, first_frame=first, final_frame=final, **more))
    recorder.close()
    return result


class Refusing:
    def before(self, operation: Operation) -> object:
        raise PolicyDenied(operation.type, "enough")

    def after(self, operation: Operation, token: object, outcome: object) -> None:
        raise AssertionError((operation, token, outcome))


def make_run(run: Path, *keys: Key, **more: Any) -> list[Mapping[str, Any]]:
    """A run with an attempt of each episode."""
    run.mkdir(parents=True, exist_ok=True)
    (run / "manifest.json").write_text(json.dumps(manifest()))
    with FrameStore(run / "frames") as store:
        return [record_attempt(run, store, key, **more) for key in keys]


def cli(*words: str) -> tuple[int, str]:
    """The exit code of a command, and what it printed or failed with."""
    result = CliRunner().invoke(commands, words, standalone_mode=False)
    if isinstance(result.exception, click.ClickException):
        return result.exception.exit_code, result.exception.format_message()
    if isinstance(result.exception, DeskhandError):
        return 1, str(result.exception)
    assert result.exception is None, result.exception
    return result.return_value or 0, result.stdout
