"""Tool calls as a runtime carries them; `Desktop.perform` takes them as they are."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest

import deskhand
from deskhand import ActionError, Desktop, LeftClick
from deskhand._core.events import ButtonDown
from deskhand.backends.memory import MemoryBackend
from deskhand.execution.tool_calls import (
    AIToolCall,
    CULeftMouseClick,
    CUScroll,
    CUWait,
    computer_use_action,
)
from providers.strategies import EXAMPLES

if TYPE_CHECKING:
    from deskhand.actions import Action


def test_equality_and_hashes() -> None:
    click = CULeftMouseClick("a", "b", "c", (1, 2))
    assert click == CULeftMouseClick("a", "b", "c", (1, 2))
    assert hash(click) == hash(CULeftMouseClick("a", "b", "c", (1, 2)))
    for other in (
        CULeftMouseClick("a", "b", "d", (1, 2)),
        CULeftMouseClick("a", "b", "c", (1, 3)),
        CUWait("a", "b", "c"),
    ):
        assert click != other
    assert pickle.loads(pickle.dumps(click)) == click


@pytest.mark.parametrize("action", EXAMPLES, ids=lambda action: action.type)
def test_every_action_can_be_carried_and_comes_back(action: Action) -> None:
    carried = computer_use_action(action, "desktop", object(), "call_2")
    assert carried.type == action.type
    assert carried.action == action
    hash(carried)


@pytest.mark.parametrize(
    "action", [LeftClick((1, 1), modifiers=["ctrl"]), deskhand.Zoom((0, 0, 5, 5)), deskhand.KeyPress(["a"], repeat=2)]
)
def test_what_the_family_cannot_say_is_refused(action: Action) -> None:
    with pytest.raises(ActionError, match="cannot express"):
        computer_use_action(action)


@pytest.mark.parametrize("arguments", ["[1]", '"x"', "null", "{", "", "[" * 100_000, ["xy"]])
def test_arguments_that_are_no_dictionary_are_no_action(arguments: Any) -> None:
    with pytest.raises(ActionError):
        _ = AIToolCall("left_mouse_click", arguments).action


def test_perform_takes_them_as_they_are() -> None:
    backend = MemoryBackend()
    with Desktop(backend) as desktop:
        desktop.perform(
            CULeftMouseClick("desktop", None, "call_4", (30, 40)),
            AIToolCall("right_click", {"xy": [5, 6]}),
            settle=False,
        )
        assert [event.button for event in backend.events if isinstance(event, ButtonDown)] == [1, 3]
        for wrong in (CULeftMouseClick(None, None, None, (5, 99_999)), AIToolCall("no_such_tool", "{}"), object()):
            with pytest.raises(ActionError) as caught:
                desktop.perform(CUWait(None, None, None, 0), wrong)  # type: ignore[arg-type] # as a caller may
            assert (caught.value.index, caught.value.done) == (1, 0)


@pytest.mark.parametrize(
    ("fields", "clicks"),
    [
        ({"distance_xy": (0, 200)}, [5, 5]),
        ({"distance_xy": (0, -200)}, [4, 4]),
        ({"magnitude": 2, "direction": "up"}, [4, 4]),
        ({"magnitude": -2}, [4, 4]),
        ({}, [5, 5, 5]),
        ({"distance_xy": (0, 100), "magnitude": 9, "direction": "left"}, [5]),
    ],
)
def test_a_scroll_has_one_meaning_for_each_way_to_say_it(fields: dict[str, Any], clicks: list[int]) -> None:
    backend = MemoryBackend()
    with Desktop(backend) as desktop:
        desktop.perform(CUScroll(None, None, None, **fields), settle=False)
    assert [event.button for event in backend.events if isinstance(event, ButtonDown)] == clicks
