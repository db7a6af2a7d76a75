"""The input of a person who has control, at the moment in which the hold ends."""

from __future__ import annotations

import itertools
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


@pytest.mark.parametrize("whole", [True, False])
def test_who_hands_back_has_what_was_done_before(
    local: Desktop, monkeypatch: pytest.MonkeyPatch, *, whole: bool
) -> None:
    """Over a slow connection much waits when a person hands back. Who loses control, or whose link ends, has no more of it."""
    under_way, go_on = threading.Event(), threading.Event()
    actions = Keyboard.actions

    def slow(self: Keyboard, message: dict[str, Any]) -> Sequence[Action]:
        under_way.set()
        assert go_on.wait(LIMIT)
        return actions(self, message)

    monkeypatch.setattr(Keyboard, "actions", slow)
    failed: list[str] = []
    inputs = PersonInput(object(), local.control.take("Ada"), failed.append, lambda: None)
    inputs.put({"type": "move", "x": 1, "y": 1})
    assert under_way.wait(LIMIT)
    inputs.put({"type": "move", "x": 7, "y": 7})
    ending = threading.Thread(target=inputs.end, args=("done",), kwargs={"whole": whole})
    if not whole:
        # What waits is given up before the first one is done.
        inputs._stop()
    ending.start()
    go_on.set()
    ending.join(LIMIT)
    assert failed == []
    assert local.control.holder is None
    assert local.pointer == ((7, 7) if whole else (1, 1))


def test_what_a_desktop_does_not_take_is_told(local: Desktop, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck, failed, seconds = threading.Event(), list[str](), itertools.count()

    def hangs(*_: object) -> Sequence[Action]:
        assert stuck.wait(LIMIT)
        return ()

    def tell(text: str) -> None:
        failed.append(text)
        stuck.set()

    monkeypatch.setattr(Keyboard, "actions", hangs)
    inputs = PersonInput(
        object(), local.control.take("Ada"), tell, lambda: None, clock=lambda: float(next(seconds)), idle=1e9
    )
    inputs.put({"type": "move", "x": 1, "y": 1})
    inputs.end("done", whole=True)
    assert failed == ["what you did last was not done: the desktop did not take it before it was handed back"]
    assert local.control.holder is None
