"""An agent that repeats another one's calls: `replay:PATH`.

This module owns the way from a recorded attempt to its calls. The outcome is compared in
`deskhand.episodes.play.replay`.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deskhand._core.settle import Settle
from deskhand.actions import Action
from deskhand.desktop.access import bare, commands_of
from deskhand.episodes.record.frame_diff import difference
from deskhand.episodes.record.reader import ATTEMPTS, MANIFEST, Recording, open_run
from deskhand.errors import EpisodeError, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deskhand.episodes.play.episode import Agent, Episode

# A program may be this much slower than when it was recorded.
_PATIENCE = 5.0
# The screen still counts as unchanged if only a caret or a late highlight differs.
_NEARLY = 300
_MORE = Settle(timeout=0.3)


def replay_agent(path: str, *, host: bool = False) -> Agent:
    """Make an agent that repeats the calls of a record.

    Args:
        path: The directory of an attempt, of an episode (its last attempt), or of a run (its episode of the same name).
        host: See `repeating`.

    Raises:
        EpisodeError: There is no such directory. A run that lacks the episode raises when it is played.
    """
    given = Path(path)
    if not given.is_dir():
        raise EpisodeError(f"there is no directory {path!r} to replay from")

    def replay(episode: Episode) -> str | None:
        recording = _recording(given.absolute(), str(episode._key))  # noqa: SLF001 # whose episode it is
        return repeating(recording, host=host)(episode)

    return replay


def repeating(recording: Recording, *, host: bool = False) -> Callable[[Episode], str | None]:
    """Make an agent that repeats the calls of one attempt, except those that were denied.

    A record is code: it contains commands, programs and keys of its author.

    Args:
        recording: The attempt.
        host: Whether it may run on a desktop of this machine, with the rights of this process. Otherwise it only runs on
            desktops in containers.

    Raises:
        EpisodeError: By the agent: the desktop is not in a container, or a call is damaged.
    """

    def replay(episode: Episode) -> str | None:
        if not host and not episode.desktop.has_machine:
            raise EpisodeError(
                f"the calls recorded in {recording.directory} would be made on this machine, with your rights: use desktops in "
                "containers (--backend docker), or, if you trust the record, allow it with --host (find_agent(..., host=True))"
            )
        answer = None
        ended, patience = 0.0, _PATIENCE
        home = next((event["home"] for event in recording.events if event.get("home")), None)
        for recorded in recording.events:
            if _was_refused(recorded):
                continue
            _check(recording, recorded, home)
            event = recorded if home is None else _moved(recorded, home, commands_of(episode.desktop).home or home)
            if event["kind"] == "perform" and event.get("before"):
                # Between the calls the agent thought or waited, while the screen changed further.
                gap = max(0.0, event["t"] - event["seconds"] - ended)
                if not _comes_back(episode, recording, event, 2 * gap + patience):
                    # The screen differs, and will hardly return to the recorded state.
                    patience = 0.0
            answer = _repeat(episode, event) or answer
            if event["kind"] == "perform":
                ended = event["t"]
        return answer

    return replay


def _check(recording: Recording, event: Mapping[str, Any], home: object) -> None:
    """Check that a call has everything that repeating it needs: the file is untrusted."""
    match event["kind"]:
        case "perform":
            actions, times = event.get("actions"), (event.get("t"), event.get("seconds"))
            whole = isinstance(actions, list) and all(isinstance(action, dict) for action in actions)
            whole = whole and all(isinstance(time, int | float) for time in times)
            whole = whole and isinstance(event.get("before"), str | None)
        case "start":
            argv = event.get("argv")
            whole = isinstance(argv, list) and bool(argv) and all(isinstance(word, str) for word in argv)
        case "shell":
            whole = isinstance(event.get("command"), str | None)
        case "write_file":
            whole = isinstance(event.get("path"), str) and len(_content(event) or b"") == event.get("size")
        case "answer":
            whole = isinstance(event.get("text"), str)
        case _:
            whole = True
    if not whole or not (home is None or (isinstance(home, str) and home.startswith("/") and home != "/")):
        what = event["kind"] if not whole else "home"
        raise EpisodeError(f"{recording.directory}: an event {shown(what)} is damaged: it cannot be made again")


def _moved(value: Any, home: str, here: str) -> Any:
    """A recorded value, with paths in the other desktop's home directory moved to this one's."""
    if isinstance(value, str):
        return value.replace(home, here)
    if isinstance(value, dict):
        return {name: _moved(each, home, here) for name, each in value.items()}
    return [_moved(each, home, here) for each in value] if isinstance(value, list) else value


def _comes_back(episode: Episode, recording: Recording, event: Mapping[str, Any], seconds: float) -> bool:
    """Wait until the screen is as it was when a recorded call began. Returns whether that happened."""
    if event["before"] not in recording.frames:
        return False
    wanted = recording.frame(event["before"])
    last = max(0.0, episode.seconds_left - seconds)
    # These looks do not count as the agent's.
    desktop = bare(episode.desktop)
    while True:
        seen = desktop.screenshot(format="raw", cursor=False).array()
        if seen.shape == wanted.shape and difference(wanted, seen, event.get("busy", ())).sum() <= _NEARLY:
            return True
        if episode.seconds_left <= last:
            return False
        desktop.perform(settle=_MORE, format="raw")


def _recording(given: Path, key: str) -> Recording:
    if (given / MANIFEST).exists():
        with open_run(given) as run:
            return run.recording(key)
    if given.parent.name == ATTEMPTS and (given.parents[1] / MANIFEST).exists():
        with open_run(given.parents[1]) as run:
            return run.recording(given.name)
    return Recording.open(given)


def _was_refused(event: Mapping[str, Any]) -> bool:
    """Whether nothing was done, which some errors prove. A call that may have been done is repeated."""
    return bool(event.get("error")) and not event.get("unknown")


def _repeat(episode: Episode, event: Mapping[str, Any]) -> str | None:
    """Repeat the call of an event. Returns the answer, if it has one."""
    match event["kind"]:
        case "perform":
            episode.desktop.perform(*(Action.from_dict(action) for action in event["actions"]))
        case "start":
            episode.desktop.start(event["argv"])
        case "shell" if event.get("command"):
            commands = commands_of(episode.desktop)
            home = commands.home
            env = {} if home is None else {"HOME": home}
            cwd = event.get("cwd") or home
            commands.run(event["command"], cwd=cwd, env={**env, **event.get("env", {})})
        case "write_file":
            episode.desktop.machine.write_file(event["path"], _content(event) or b"")
        case "answer":
            return str(event["text"])
    return None


def _content(event: Mapping[str, Any]) -> bytes | None:
    """The content that was written to a file; None if the event does not have it."""
    try:
        if isinstance(event.get("text"), str):
            return str(event["text"]).encode()
        return base64.b64decode(event["base64"], validate=True)
    except (KeyError, TypeError, ValueError):
        return None
