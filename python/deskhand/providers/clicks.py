"""Clicks by the name of their button and their number, as most vocabularies have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deskhand.actions import BackClick, DoubleClick, ForwardClick, LeftClick, MiddleClick, RightClick, TripleClick

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deskhand.actions import Action

_CLICKS: Mapping[str, type[Action]] = {
    "left": LeftClick,
    "middle": MiddleClick,
    "right": RightClick,
    "back": BackClick,
    "forward": ForwardClick,
}
_BUTTON_OF: Mapping[type[object], str] = {made: button for button, made in _CLICKS.items()}
_SEVERAL: Mapping[int, type[DoubleClick | TripleClick]] = {2: DoubleClick, 3: TripleClick}


def a_click(button: str, count: int = 1, xy: tuple[int, int] | None = None, *, modifiers: Sequence[str] = ()) -> Action:
    """The action that clicks a button (one of `deskhand.actions.BUTTONS`) once, twice or three times."""
    fields: dict[str, Any] = {"xy": xy, "modifiers": modifiers}
    return _CLICKS[button](**fields) if count == 1 else _SEVERAL[count](button=button, **fields)


def clicked(step: object) -> tuple[str, int] | None:
    """The button of a click and the number of clicks, the inverse of `a_click`; None for anything else."""
    if isinstance(step, DoubleClick | TripleClick):
        return step.button, 2 if isinstance(step, DoubleClick) else 3
    button = _BUTTON_OF.get(type(step))
    return None if button is None else (button, 1)
