"""`DESKHAND_TRACE`: every desktop that a program opens is recorded without a change of it, and `deskhand watch` plays that."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import re
import stat
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from deskhand import AsyncDesktop, ClassPolicy, DesktopHeld, LeftClick, Move, PolicyDenied, Pool
from deskhand.backends.memory import MemoryBackend
from deskhand.desktop.desktop import Desktop
from deskhand.episodes.record import tracing
from deskhand.episodes.record.bounds import Bounds
from deskhand.episodes.record.reader import open_run
from deskhand.errors import EpisodeError
from deskhand.launchers import targets
from episodes.recorded import make_run
from episodes.test_recording import ONE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SCRIPT = """
import sys
import deskhand
from deskhand import Move, Secret, Type

with deskhand.launch(size=(320, 240), window_manager=None) as first:
    first.start("xterm")
    first.perform(Move((20, 30)), Type(Secret("hunter2")))
    with deskhand.connect("x11:" + first.display, xauthority=first.xauthority, view_only=True) as second:
        second.screenshot()
    with deskhand.launch(size=(200, 100), window_manager=None) as unused:
        pass
print("deskhand.episodes" in sys.modules)
"""


def events(trace: Path, episode: str) -> list[dict[str, Any]]:
    return [
        json.loads(line) for line in (trace / "ep" / episode / "attempt-1" / "events.jsonl").read_text().splitlines()
    ]


def run(arguments: list[str], folder: Path, **variables: str) -> str:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), **variables}
    if "PYTHONPATH" in os.environ:
        environment["PYTHONPATH"] = os.environ["PYTHONPATH"]
    ran = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_a_script_is_recorded_unchanged_and_watch_plays_it(tmp_path: Path) -> None:
    script = tmp_path / "fill form.py"
    script.write_text(SCRIPT)
    assert run([str(script)], tmp_path) == "False\n"
    assert [path.name for path in tmp_path.iterdir() if path.name[0] != "."] == [script.name]
    # Relative to where the program is started; the second time beside the first.
    for _ in range(2):
        assert run([str(script)], tmp_path, DESKHAND_TRACE="a/trace") == "True\n"
    trace = tmp_path / "a" / "trace"
    assert stat.S_IMODE(trace.stat().st_mode) == 0o700
    # The one that was not used has no folder.
    assert sorted(path.name for path in (trace / "ep").iterdir()) == [f"fill_form.s{number}.r0" for number in range(4)]
    begin, first, started, performed = events(trace, "fill_form.s0.r0")
    assert (first["kind"], first["cause"]) == ("frame", "first")
    assert started["argv"] == ["xterm"]
    assert (begin["program"], begin["screen"]) == ("fill form.py", [320, 240])
    assert [action["type"] for action in performed["actions"]] == ["move", "type"]
    assert [event["kind"] for event in events(trace, "fill_form.s1.r0")] == ["begin", "frame", "look"]
    assert "hunter2" not in "".join(path.read_text() for path in trace.rglob("*.jsonl"))
    with open_run(trace) as read:
        assert read.recording("fill_form.s0.r0").frame(performed["before"]).shape == (240, 320, 3)

    watch = ["-m", "deskhand", "watch", "a/trace"]
    assert run(watch, tmp_path) == "a/trace/fill_form.s3.r0.html\n"
    assert run([*watch, "fill_form.s0.r0"], tmp_path) == "a/trace/fill_form.s0.r0.html\n"
    with pytest.raises(AssertionError, match="is a recording: leave out --all and --control"):
        run([*watch, "--control"], tmp_path)
    page = (trace / "fill_form.s0.r0.html").read_text()
    (data,) = re.findall(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    (side,) = json.loads(data)["sides"]
    assert (side["agent"], side["outcome"]) == ("fill form.py", {"good": True, "text": "trace"})
    assert side["moments"][2]["lines"][0] == "move (20, 30)"


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(targets, "_HEARERS", [])
    monkeypatch.setattr(sys, "argv", ["../../trick.py"])
    tracing.trace_openings(tmp_path / "trace")
    return tmp_path / "trace"


def test_a_desktop_keeps_its_record_when_it_is_made_as_new_and_refusals_are_in_it(
    trace: Path, launch: Callable[..., Desktop]
) -> None:
    desktop = launch(size=(320, 240), name="the-one", policy=ClassPolicy(allow=["observe"]))
    with pytest.raises(PolicyDenied):
        desktop.perform(LeftClick((5, 5)))
    anew = desktop.reset()
    anew.screenshot()
    anew.close()
    assert [path.name for path in (trace / "ep").iterdir()] == ["trick.the-one.s0.r0"]
    begin, _, refused, looked = events(trace, "trick.the-one.s0.r0")
    assert (begin["task"], begin["variant"]) == ("trick", "the-one")
    assert refused["error"]["type"] == "PolicyDenied"
    assert looked["kind"] == "look"


def test_a_directory_that_cannot_be_used_is_named_before_anything_is_done(
    trace: Path, tmp_path: Path, launch: Callable[..., Desktop]
) -> None:
    trace.write_text("")
    with pytest.raises(EpisodeError, match=r"trace: it is a file: name another directory in DESKHAND_TRACE"):
        launch(size=(320, 240), name="refused")
    # The desktop that was there already is ended.
    assert "refused" not in [entry.name for entry in targets.registry.entries()]
    trace.unlink()
    make_run(trace, ONE)
    with pytest.raises(EpisodeError, match="is not the manifest of a trace"):
        launch(size=(320, 240))
    (trace / "manifest.json").write_text("[")
    with pytest.raises(EpisodeError, match="is not the manifest of a trace"):
        launch(size=(320, 240))
    assert not (tmp_path / "trace" / "ep" / "trick.s0.r0").exists()


def make() -> Desktop:
    return targets.opened(Desktop(MemoryBackend((64, 48))), None, None, None)


def test_a_trace_that_is_full_is_told_once_and_stops_nothing(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "_BOUNDS", Bounds(events=4))
    with make() as desktop:
        desktop.perform(Move((1, 1)), settle=False)
        desktop.perform(Move((2, 2)), settle=False)
        with pytest.warns(RuntimeWarning, match=r"at most 4 events.*from here on this desktop is not recorded"):
            desktop.perform(Move((3, 3)), settle=False)
        assert desktop.perform(Move((4, 4)), settle=False).cursor == (4, 4)
    kinds = [event["kind"] for event in events(trace, "trick.s0.r0")]
    assert kinds == ["begin", "frame", "perform", "perform", "refused"]
    monkeypatch.setattr(tracing, "_LARGEST", 10)
    with pytest.warns(RuntimeWarning, match="the most"), make() as desktop:
        desktop.perform(Move((1, 1)), settle=False)
    assert len(list((trace / "ep").iterdir())) == 1


def test_desktops_of_pools_and_of_coroutines_are_recorded_too(trace: Path) -> None:
    with Pool("local", size=1, window_manager=None) as pool, pool.acquire() as desktop:
        desktop.perform(Move((1, 1)))

    async def act() -> None:
        async with await AsyncDesktop.launch(window_manager=None) as desktop:
            await desktop.perform(Move((2, 2)))

    asyncio.run(act())
    for number, place in enumerate(((1, 1), (2, 2))):
        *_, performed = events(trace, f"trick.s{number}.r0")
        assert performed["actions"] == [{"type": "move", "xy": list(place)}]


def test_what_a_person_does_privately_leaves_no_picture(trace: Path) -> None:
    with make() as desktop:
        with desktop.control.take("Ada", private=True) as hold:
            hold.desktop.perform(Move((1, 1)), settle=False)
            assert list((trace / "ep").iterdir()) == []
            with pytest.raises(DesktopHeld):
                desktop.screenshot()
        desktop.screenshot()
    _, refused, released, looked = events(trace, "trick.s0.r0")
    assert (refused["error"]["type"], refused["frame"]) == ("DesktopHeld", None)
    assert released["change"] == "release"
    assert looked["frame"] is not None


def _in_child() -> None:
    with make() as desktop:
        desktop.perform(Move((1, 1)), settle=False)


def test_forked_processes_and_desktops_at_once_have_folders_of_their_own(trace: Path) -> None:
    with make() as desktop:
        desktop.perform(Move((1, 1)), settle=False)
        children = [multiprocessing.get_context("fork").Process(target=_in_child) for _ in range(4)]
        for child in children:
            child.start()
        for child in children:
            child.join(60)
        assert [child.exitcode for child in children] == [0] * 4
        desktop.perform(Move((2, 2)), settle=False)
    with open_run(trace) as read:
        found = {each.key: each for each in read.recordings()}
        assert set(found) == {f"trick.s{number}.r0" for number in range(5)}
        for recording in found.values():
            for event in recording.events:
                if event["kind"] == "perform":
                    assert recording.frame(event["after"]).shape == (48, 64, 3)
