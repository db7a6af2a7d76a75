"""The versions of Anthropic's computer tool: which actions and fields each accepts, and its limits. Pure.

Up to 2025 one tool takes a flat input with an `action` in it (`computer_20241022` and its two successors); the toolset of 2026
has a tool for each action. The names and meanings are the same. What differs:

* `computer_20241022` clicks where the pointer is, and drags from there: the model moves the pointer first.
* Modifiers of a click or scroll are in `text`. The first implementation of `computer_20250124` called them `key`, which that
  version still accepts.
* `key` takes one chord. The first two versions were made for xdotool, for which `"Down Down"` is two chords.
* A field is refused if only another action or another provider takes it: ignoring it could make the action do less than
  the call says. Unknown fields are ignored and returned.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from deskhand._core.arguments import expect_text
from deskhand.errors import ActionError, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

TOOLSET = "computer_toolset_20260801"
LATEST = "computer_20251124"
"""The newest of the single tools."""

_CLICKS = ("left_click", "right_click", "middle_click", "double_click", "triple_click")

# The fields of each action; those that end in ? may be missing.
_FIRST = {
    "key": "text",
    "type": "text",
    "mouse_move": "coordinate",
    "left_click": "",
    "left_click_drag": "coordinate",
    "right_click": "",
    "middle_click": "",
    "double_click": "",
    "screenshot": "",
    "cursor_position": "",
}
_SECOND = {
    **_FIRST,
    **dict.fromkeys(_CLICKS, "coordinate? text?"),
    "left_click_drag": "start_coordinate coordinate text?",
    "left_mouse_down": "",
    "left_mouse_up": "",
    "scroll": "scroll_direction scroll_amount coordinate? text?",
    "hold_key": "text duration",
    "wait": "duration",
}
_THIRD = {**_SECOND, "zoom": "region"}
_MEMBERS = {**_THIRD, "key": "text repeat?"}


@dataclass(frozen=True, slots=True)
class Rules:
    """The inputs that one version of the tool accepts.

    Attributes:
        type: The version's name in a declaration.
        beta: The value that a request's `betas` must contain; None if it needs none.
        actions: The fields of each action.
        longest: The longest time to hold a key or wait, in seconds.
        whole_seconds: Whether seconds are integers.
        several_chords: Whether a `key` may name several chords, separated by blanks.
        keys_of_clicks: Whether the modifiers of a click may be in `key`.
    """

    type: str
    beta: str | None
    actions: Mapping[str, str]
    longest: int = 100
    whole_seconds: bool = False
    several_chords: bool = False
    keys_of_clicks: bool = False

    def fields(self, action: str) -> tuple[frozenset[str], frozenset[str]]:
        """The required fields of an action, and all its fields.

        Raises:
            ActionError: This version has no such action.
        """
        if action not in self.actions:
            raise ActionError(f"{self.type} has no action {shown(action)}; it has {', '.join(self.actions)}")
        return _FIELDS[self.actions[action]]


def _parsed(fields: str) -> tuple[frozenset[str], frozenset[str]]:
    names = fields.split()
    return frozenset(name for name in names if not name.endswith("?")), frozenset(name.rstrip("?") for name in names)


_FIELDS = {fields: _parsed(fields) for fields in {*_FIRST.values(), *_MEMBERS.values()}}
KNOWN: frozenset[str] = frozenset[str]().union(*(may for _, may in _FIELDS.values()))
"""The fields that any action of any version takes."""

VERSIONS: Mapping[str, Rules] = MappingProxyType(
    {
        rules.type: rules
        for rules in (
            Rules("computer_20241022", "computer-use-2024-10-22", _FIRST, several_chords=True),
            Rules("computer_20250124", "computer-use-2025-01-24", _SECOND, several_chords=True, keys_of_clicks=True),
            Rules(LATEST, "computer-use-2025-11-24", _THIRD, keys_of_clicks=True),
            Rules(TOOLSET, None, _MEMBERS, longest=300, whole_seconds=True),
        )
    }
)
"""Every version by its name, the oldest first. (The seconds of the single tools are those of Anthropic's reference
implementation; they are not documented elsewhere.)"""


def rules_of(version: str | None) -> Rules:
    """The rules of a version; None means the toolset.

    Raises:
        ActionError: There is no such version.
    """
    version = TOOLSET if version is None else expect_text("version", version) or TOOLSET
    rules = VERSIONS.get(version)
    if rules is None:
        raise ActionError(f"there is no version {shown(version)} of the tool; there are {', '.join(VERSIONS)}")
    return rules
