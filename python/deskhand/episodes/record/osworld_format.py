"""OSWorld's format of an episode: the lines of `traj.jsonl`, in its action space `pyautogui`.

As in OSWorld's writers (`lib_run_single.py`), each line has `step_num`, `action_timestamp`, `action`, `response`, `reward`,
`done`, `info` and `screenshot_file`. Its readers find `result.txt` in
RESULTS/action space/observation type/model/domain/example.

This module owns the format. It has no files.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from deskhand._core.geometry import Size, Viewport
from deskhand.actions import Action
from deskhand.errors import ActionError
from deskhand.providers.osworld.pyautogui import encode_source

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from deskhand.episodes.record.transcript_turns import Turn

_SPACE, _OBSERVATION = "pyautogui", "screenshot"
_UNSAFE = re.compile(r"[^\w.+-]+")


def folder(result: Mapping[str, Any], episode: str) -> tuple[str, ...]:
    """The folder of an episode for OSWorld's readers, below their results: the agent is the model, the first tag the domain."""
    tags = result.get("tags") or ["deskhand"]
    parts = (_SPACE, _OBSERVATION, str(result.get("agent") or "agent"), str(tags[0]), episode)
    return tuple(_UNSAFE.sub("_", part).strip(".") or "_" for part in parts)


def lines(
    turns: Sequence[Turn], screen: tuple[int, int], *, ended_itself: bool, stamp: Callable[[float], str]
) -> list[tuple[dict[str, Any], str | None]]:
    """The lines of `traj.jsonl`, each with the frame for its `screenshot_file`.

    Args:
        turns: The turns of the attempt. Looks are not steps in OSWorld; their texts go to the next step.
        screen: The size of the screen.
        ended_itself: Whether the agent ended by itself; otherwise a limit or a failure has ended it.
        stamp: Formats seconds since 1970 as OSWorld does.
    """
    viewport = Viewport(Size(*screen), Size(*screen))
    found: list[tuple[dict[str, Any], str | None]] = []
    said: list[str] = []
    wall = 0.0
    frame: str | None = None

    def add(action: object, info: dict[str, Any], *, done: bool = False) -> None:
        number = len(found) + 1
        when = stamp(wall)
        line = {
            "step_num": number,
            "action_timestamp": when,
            "action": action,
            "response": "\n\n".join(said),
            # Scores are given at the end, in result.txt.
            "reward": 0,
            "done": done,
            "info": info,
            "screenshot_file": None if frame is None else f"step_{number}_{when}.png",
        }
        found.append((line, frame))
        said.clear()

    for turn in turns:
        said += turn.notes
        event = turn.event
        wall, frame = turn.wall, turn.frame
        if event is None or turn.kind == "look":
            continue
        if turn.kind == "answer":
            said.append(str(event.get("text", "")))
            continue
        info = {"error": turn.failure} if turn.failure else {}
        add(_action(event, viewport), info)
    if ended_itself:
        add("DONE", {"done": True}, done=True)
    return found


def _action(event: Mapping[str, Any], viewport: Viewport) -> object:
    """The action as source if PyAutoGUI can do it; otherwise as it was recorded, which readers do not mistake for source."""
    if event["kind"] == "shell":
        return {"type": "shell", "command": event.get("command")}
    if event["kind"] == "start":
        return {"type": "start", "argv": event.get("argv")}
    if event["kind"] in {"read_file", "write_file"}:
        given = {name: event[name] for name in ("path", "text", "base64") if event.get(name) is not None}
        return {"type": event["kind"], **given}
    recorded = event.get("actions") or []
    if not recorded:
        return "WAIT"
    try:
        return encode_source([Action.from_dict(action) for action in recorded], viewport)
    except ActionError:
        return recorded[0] if len(recorded) == 1 else {"type": "several", "actions": recorded}
