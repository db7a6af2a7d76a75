"""The input of a person who has control, at the moment in which the hold ends."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from deskhand import ActionError, Desktop
from deskhand.backends.memory import MemoryBackend
from deskhand.watch.keyboard import Keyboard
from deskhand.watch.person_input import PersonInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deskhand.actions import Action

LIMIT = 60.0


@pytest.fixture
def local() -> Iterator[Desktop]:
    with Desktop(MemoryBackend()) as desktop:
        yield desktop


def test_hands_are_busy_while_a_file_comes(local: Desktop) -> None:
    now = [0.0]
    inputs = PersonInput(
        object(), local.control.take("Ada"), lambda _: None, lambda: None, clock=lambda: now[0], idle=10
    )
    for _ in range(5):
        now[0] += 9
        inputs.touch()
    assert inputs.active
    inputs.end("")


@pytest.mark.parametrize("taken", [False, True])
def test_input_that_comes_as_the_hold_ends_is_no_error(
    local: Desktop, monkeypatch: pytest.MonkeyPatch, *, taken: bool
) -> None:
    hold = local.control.take("Ada")
    failed: list[str] = []
    ended = threading.Event()
    actions = Keyboard.actions

    def late(self: Keyboard, message: dict[str, Any]) -> Sequence[Action]:
        # After the thread has looked whether the hold goes on, and before its operation begins.
        if taken:
            local.control.take("Bo", force=True)
        else:
            hold.release("")
        return actions(self, message)

    monkeypatch.setattr(Keyboard, "actions", late)
    inputs = PersonInput(object(), hold, failed.append, ended.set)
    inputs.put({"type": "move", "x": 7, "y": 7})
    assert ended.wait(LIMIT), "the input has not ended"
    assert failed == []
    assert local.pointer == (0, 0)


def test_input_that_fails_otherwise_is_told(local: Desktop, monkeypatch: pytest.MonkeyPatch) -> None:
    failed: list[str] = []
    told = threading.Event()

    def fails(*_: object) -> Sequence[Action]:
        raise ActionError("this key is not known")

    def tell(text: str) -> None:
        failed.append(text)
        told.set()

    monkeypatch.setattr(Keyboard, "actions", fails)
    inputs = PersonInput(object(), local.control.take("Ada"), tell, lambda: None)
    inputs.put({"type": "move", "x": 7, "y": 7})
    assert told.wait(LIMIT), "nothing was told"
    assert failed == ["this key is not known"]
    inputs.end("")
