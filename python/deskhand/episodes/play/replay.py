"""Repeats episodes: makes the recorded calls on fresh desktops, with the same task and seed, and compares the outcomes.

This module owns the comparison. How a call is repeated is in `deskhand.episodes.play.replay_agent`, and how an episode is
played in `deskhand.episodes.play.attempt`.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from deskhand._native import __version__
from deskhand.episodes.play.attempt import attempt
from deskhand.episodes.play.replay_agent import repeating
from deskhand.episodes.play.supervision import Stop
from deskhand.episodes.record.frame_diff import difference, extent, is_caret
from deskhand.episodes.record.frame_store import FrameStore
from deskhand.episodes.record.reader import ATTEMPTS, FRAMES, MANIFEST, Recording, key_of
from deskhand.episodes.record.recorder import Recorder
from deskhand.episodes.tasks.catalogue import built_in, digest, find_tasks, ships
from deskhand.errors import EpisodeError, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from deskhand.episodes.play.attempt import Places
    from deskhand.episodes.record.frame_diff import Region
    from deskhand.episodes.record.reader import Run
    from deskhand.episodes.tasks.task import Task

_COMPARED = ("valid", "success", "score", "state", "answer")
_CALLS = ("perform", "look", "shell", "start", "write_file")


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference between the recording and the replay.

    Attributes:
        step: The number of the call, from 1; 0 for the state before the first.
        what: What was compared: `frame`, `exit_code`, `output`, `error`, `call`.
        recorded: The value in the recording.
        replayed: The value in the replay. For a frame both are ids.
        pixels: For frames: how many pixels differ.
        region: For frames: the smallest rectangle (x, y, width, height) with all of them.
    """

    step: int
    what: str
    recorded: Any
    replayed: Any
    pixels: int = 0
    region: Region | None = None


@dataclass(frozen=True, slots=True)
class Replayed:
    """One repeated episode.

    Attributes:
        episode: Its name.
        attempt: The number of the recorded attempt.
        steps: How many calls were repeated.
        frames: How many frames were compared.
        state: Differences of the final state, by name: the recorded and the new value.
        differences: Differences of the calls.
        note: Further information, such as that the task has changed, or that the replay did not reach the end.
    """

    episode: str
    attempt: int
    steps: int
    frames: int
    state: Mapping[str, tuple[Any, Any]]
    differences: Sequence[Difference]
    note: str = ""

    @property
    def same_state(self) -> bool:
        """Whether the final states are equal."""
        return not self.state

    @property
    def same(self) -> bool:
        """Whether everything is equal: the final state, and every frame on the way."""
        return not self.state and not self.differences


def compare(recorded: Recording, replayed: Recording, *, masks: Iterable[Region] = (), note: str = "") -> Replayed:
    """Compare two attempts, call by call.

    Regions that changed by themselves during a call of either attempt (a clock, a spinner) are ignored, and so are a text's
    caret and the pointer, which frames do not contain.

    Args:
        recorded: The first one.
        replayed: The second.
        masks: Regions to ignore.
        note: A note for the result.

    Raises:
        EpisodeError: A recording or a frame cannot be read.
    """
    before, after = _repeatable_calls(recorded), _repeatable_calls(replayed)
    differences: list[Difference] = []
    compared = 0
    for step, (first, second) in enumerate(zip_longest(before, after)):
        if first is None or second is None or first["kind"] != second["kind"]:
            differences.append(Difference(step, "call", _kind(first), _kind(second)))
            break
        differences += _called(step, first, second)
        pair = _frame_of(first), _frame_of(second)
        compared += pair != (None, None)
        if pair[0] != pair[1]:
            busy = [*first.get("busy", ()), *second.get("busy", ())]
            differences += _seen(step, (recorded, replayed), pair, busy, list(masks))
    ends = recorded.result or {}, replayed.result or {}
    state = {name: (ends[0].get(name), ends[1].get(name)) for name in _COMPARED}
    return Replayed(
        recorded.key,
        recorded.attempt,
        max(0, len(before) - 1),
        compared,
        {name: pair for name, pair in state.items() if pair[0] != pair[1]},
        differences,
        note,
    )


def replay(
    run: Run,
    out: Path,
    places: Callable[[Task], Places],
    tasks: Sequence[Task],
    *,
    episodes: Sequence[str] = (),
    desktops: int = 1,
    masks: Sequence[Region] = (),
    host: bool = False,
    done: Callable[[Replayed], None] = lambda _: None,
) -> list[Replayed]:
    """Repeat recorded episodes, and compare.

    Args:
        run: The run; for each of its episodes the attempt that counts is repeated.
        out: The directory in which the replays are recorded, as a run of their own.
        places: Returns the source of a task's desktops.
        tasks: The tasks of the run; see `tasks_of`.
        episodes: Only these, by name.
        desktops: How many desktops at once.
        masks: Regions to ignore, in addition to those of the tasks.
        host: Whether recorded calls may be made on desktops of this machine; see
            `deskhand.episodes.play.replay_agent.repeating`.
        done: Called with each as soon as it is compared.

    Returns:
        The results, in the order of the episodes.

    Raises:
        EpisodeError: There is no such episode or task, or the desktops are on this machine and `host` is False.
        OSError: The replays cannot be recorded.
    """
    chosen = [run.recording(name) for name in episodes] if episodes else [run.recording(each) for each in run.results()]
    if not chosen:
        raise EpisodeError(f"{run.directory} has no episode to replay")
    named = {task.name: task for task in tasks}
    stop = Stop()
    _begin(run, out)
    with FrameStore(out / FRAMES) as frames, ThreadPoolExecutor(desktops, "deskhand-replay") as threads:

        def play(recording: Recording) -> Replayed:
            key = key_of(recording.result or recording.begin)
            if key.task not in named:
                raise EpisodeError(f"the task {key.task} of {recording.key} does not exist any more")
            task = named[key.task]
            folder = out / ATTEMPTS / str(key) / "attempt-1"
            recorder = Recorder(folder, frames)
            seed = int(run.manifest.get("run_seed", 0))
            agent = repeating(recording, host=host)
            result = attempt(task, key, places(task), agent, recorder, run_seed=seed, worker="replay", stop=stop)
            again = Recording.open(folder, frames)
            return compare(recording, again, masks=[*task.masks, *masks], note=_noted(run, task, recording, result))

        playing = [threads.submit(play, recording) for recording in chosen]
        try:
            for ended in as_completed(playing):
                done(ended.result())
        except BaseException:
            stop("the replay was stopped")
            for waiting in playing:
                waiting.cancel()
            raise
    return [each.result() for each in playing]


def tasks_of(run: Run, episodes: Sequence[str] = (), *, named: Sequence[str] = ()) -> list[Task]:
    """Find the tasks of a run's episodes: those that ship with deskhand, and those that the caller names.

    The run's own paths to its tasks are not followed, because a task is code.

    Args:
        run: The run.
        episodes: Only of these, by name.
        named: Tasks that do not ship with deskhand, in the form for `deskhand.episodes.tasks.catalogue.find_tasks`.

    Raises:
        EpisodeError: An episode has another task.
        TaskError: A name in `named` does not exist.
    """
    known = {**built_in(), **{task.name: task for task in find_tasks(named)}} if named else built_in()
    recordings = [run.recording(name) for name in episodes]
    results = [each.result or each.begin for each in recordings] if episodes else run.results()
    wanted = list(dict.fromkeys(key_of(result).task for result in results))
    if unknown := [name for name in wanted if name not in known]:
        listed = run.manifest.get("select")
        others = [each for each in listed if not ships(each)] if isinstance(listed, list) else []
        hint = f"; the run names {', '.join(map(shown, others[:3]))}" if others else ""
        raise EpisodeError(
            f"{run.directory} has episodes of {', '.join(unknown[:3])}, which do not ship with deskhand{hint}. "
            "A task is code, which would run here: if you trust it, name its folder or its class with --task"
        )
    return [known[name] for name in wanted]


def _begin(run: Run, out: Path) -> None:
    if (out / MANIFEST).exists():
        raise EpisodeError(f"{out} has a run already: give another folder for the replays")
    out.mkdir(parents=True, exist_ok=True)
    manifest = {**run.manifest, "deskhand": __version__, "agent": f"replay:{run.directory}", "ledger": None}
    (out / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", "utf-8")


def _noted(run: Run, task: Task, recording: Recording, result: Mapping[str, Any]) -> str:
    notes = []
    before = run.manifest.get("tasks", {}).get(task.name)
    if before is not None and before != digest(task):
        notes.append("the task was changed since")
    if recording.begin.get("parameters") != result.get("parameters"):
        notes.append("it is another instance: its parameters differ")
    if result.get("cause") is not None:
        notes.append(f"the replay ended with {result['cause']}: {result['detail']}")
    return "; ".join(notes)


def _repeatable_calls(recording: Recording) -> list[Mapping[str, Any]]:
    """The first frame, and the calls that can be repeated."""
    first = [event for event in recording.events if event["kind"] == "frame" and event.get("cause") == "first"]
    calls = [
        event
        for event in recording.events
        if event["kind"] in _CALLS
        and (not event.get("error") or event.get("unknown"))
        # A look changes nothing, and is not repeated.
        and event["kind"] != "look"
    ]
    return [first[0] if first else {"kind": "frame"}, *calls]


def _kind(event: Mapping[str, Any] | None) -> str | None:
    return None if event is None else str(event["kind"])


def _frame_of(event: Mapping[str, Any]) -> str | None:
    field = {"frame": "id", "perform": "after"}.get(event["kind"])
    if field is None:
        return None
    # If the pixels of a frame were not kept, its id is enough.
    name: str | None = event.get(field) or event.get("hidden", {}).get(field)
    return name


def _called(step: int, first: Mapping[str, Any], second: Mapping[str, Any]) -> list[Difference]:
    found = []
    if first["kind"] == "shell":
        for name in ("exit_code", "stdout", "stderr"):
            if first.get(name) != second.get(name):
                what = name if name == "exit_code" else "output"
                found.append(Difference(step, what, first.get(name), second.get(name)))
    was, now = ((event.get("error") or {}).get("type") for event in (first, second))
    if was != now:
        found.append(Difference(step, "error", was, now))
    return found


def _seen(
    step: int,
    recordings: tuple[Recording, Recording],
    names: tuple[str | None, str | None],
    busy: Sequence[Sequence[int]],
    masks: Sequence[Region],
) -> list[Difference]:
    pictures = [
        None if name is None or name not in recording.frames else recording.frame(name)
        for recording, name in zip(recordings, names, strict=True)
    ]
    one, other = pictures
    if one is None or other is None or one.shape != other.shape:
        return [Difference(step, "frame", *names)]
    differs = difference(one, other, busy, masks)
    region = extent(differs)
    if region is None or is_caret(region):
        return []
    return [Difference(step, "frame", *names, pixels=int(differs.sum()), region=region)]
