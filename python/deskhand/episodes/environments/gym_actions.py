"""The actions of `deskhand/Desktop-v0` as a `gymnasium` space, and the conversion of its samples.

There is no desktop and no episode here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces

from deskhand.actions import (
    Action,
    DoubleClick,
    Drag,
    KeyPress,
    LeftClick,
    MiddleClick,
    Move,
    RightClick,
    Scroll,
    TripleClick,
    Type,
    Wait,
)
from deskhand.errors import ActionError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ACTS = (
    "wait",
    "move",
    "left_click",
    "double_click",
    "triple_click",
    "right_click",
    "middle_click",
    "drag",
    "scroll",
    "key",
    "type",
    "done",
)
"""The kinds of actions; `done` ends the episode, and the task is evaluated then."""

MODIFIERS = ("ctrl", "shift", "alt", "super")

KEYS = (
    *("Return", "Tab", "Escape", "BackSpace", "Delete", "Insert", "Home", "End", "Page_Up", "Page_Down"),
    *("Left", "Right", "Up", "Down", "space", "Menu", "Print", "Pause"),
    *(f"F{number}" for number in range(1, 13)),
    *"abcdefghijklmnopqrstuvwxyz0123456789",
    *("minus", "equal", "comma", "period", "slash", "semicolon", "apostrophe", "bracketleft", "bracketright"),
    *("backslash", "grave"),
)
"""The keys that `key` may press, by their X11 names."""

_WAIT = 0.1
_MOST_TEXT = 256
_MOST_NOTCHES = 20
_CHARACTERS = "".join(map(chr, range(32, 127))) + "\n\t"
_CLICKS: Mapping[str, type[LeftClick | DoubleClick | TripleClick | RightClick | MiddleClick]] = {
    "left_click": LeftClick,
    "double_click": DoubleClick,
    "triple_click": TripleClick,
    "right_click": RightClick,
    "middle_click": MiddleClick,
}


def action_space(size: tuple[int, int]) -> spaces.Dict:
    """The space of actions for pictures of that width and height in pixels."""
    notches = np.full(2, 2 * _MOST_NOTCHES + 1)
    return spaces.Dict(
        {
            "act": spaces.Discrete(len(ACTS)),
            "xy": spaces.MultiDiscrete(np.array(size)),
            "to": spaces.MultiDiscrete(np.array(size)),
            "notches": spaces.MultiDiscrete(notches, start=np.full(2, -_MOST_NOTCHES)),
            "modifiers": spaces.MultiBinary(len(MODIFIERS)),
            "key": spaces.Discrete(len(KEYS)),
            "text": spaces.Text(_MOST_TEXT, min_length=0, charset=_CHARACTERS),
        }
    )


def action_of(said: Mapping[str, Any], point: Callable[[Any], tuple[int, int]]) -> tuple[Action, ...] | None:
    """Convert a sample of the action space into an action; None for `done`.

    Args:
        said: The sample. Values that its kind does not need are ignored.
        point: Converts a point of the picture to the screen.

    Raises:
        ActionError: The sample cannot be read.
        OutOfBounds: A point is outside of the picture.
    """
    try:
        act = ACTS[int(said["act"])]
        return None if act == "done" else _actions(act, said, point)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise ActionError(f"not an action of this space: {type(error).__name__}: {error}") from error


def _actions(act: str, said: Mapping[str, Any], point: Callable[[Any], tuple[int, int]]) -> tuple[Action, ...]:
    held = tuple(name for name, down in zip(MODIFIERS, said["modifiers"], strict=True) if down)
    actions: tuple[Action, ...]
    match act:
        case _ if act in _CLICKS:
            actions = (_CLICKS[act](point(said["xy"]), modifiers=held),)
        case "move":
            actions = (Move(point(said["xy"])),)
        case "drag":
            actions = (Drag([point(said["xy"]), point(said["to"])], modifiers=held),)
        case "scroll":
            actions = _scrolls(point(said["xy"]), [int(each) for each in said["notches"]], held)
        case "key":
            actions = (KeyPress([*held, KEYS[int(said["key"])]]),)
        case "type" if said["text"]:
            actions = (Type(str(said["text"])),)
        case _:
            actions = (Wait(_WAIT),)
    return actions


def _scrolls(where: tuple[int, int], notches: Sequence[int], held: tuple[str, ...]) -> tuple[Action, ...]:
    ways = zip(notches, (("right", "left"), ("down", "up")), strict=True)
    return tuple(
        Scroll(where, magnitude=abs(much), direction=ahead if much > 0 else back, modifiers=held)
        for much, (ahead, back) in ways
        if much
    )
