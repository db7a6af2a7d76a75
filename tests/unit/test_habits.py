"""The silence that a window needs after a key, as learnt from its answers: on a clock that the test moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from deskhand import Desktop, KeyPress, LeftClick, Type
from deskhand._core.habits import Habit, Habits
from deskhand._core.settle import Activity
from deskhand.backends.events import KeyDown
from deskhand.backends.memory import MemoryBackend

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deskhand.backends.events import Event

LONG, SHORT = pytest.approx(0.034, abs=0.002), pytest.approx(0.019, abs=0.002)
ENOUGH = 24
A, B = Habit(1, "character"), Habit(2, "character")


class Editor(MemoryBackend):
    """A window that answers each key with changes after some times, and rests otherwise."""

    def __init__(self) -> None:
        self.now = 100.0
        super().__init__((200, 100), clock=lambda: self.now)
        self.window, self.doing = 7, Activity.RESTING
        self.answer: Sequence[float] = (0.002,)
        self.due: list[float] = []
        self.on_wait = self.pass_time

    def input_window(self) -> int | None:
        return self.window

    def activity(self, *, changed: bool) -> Activity:
        del changed
        return self.doing

    def send(self, events: Sequence[Event]) -> None:
        super().send(events)
        if any(isinstance(event, KeyDown) for event in events):
            self.due = [self.now + after for after in self.answer]

    def pass_time(self, seconds: float) -> None:
        end = self.now + seconds
        if self.due and self.due[0] <= end:
            end = self.due.pop(0)
            self.now = end
            shade = int(end * 1000) % 200 + 1
            self.paint((10, 10, 5, 5), (shade, shade, shade))
        self.now = end

    def rest(self, seconds: float) -> None:
        """Nobody calls for so long."""
        end = self.now + seconds
        while self.now < end:
            self.pass_time(end - self.now)


@pytest.fixture
def editor() -> Editor:
    return Editor()


@pytest.fixture
def desktop(editor: Editor) -> Iterator[Desktop]:
    with Desktop(editor, clock=lambda: editor.now) as desktop:
        yield desktop


def silence(desktop: Desktop, editor: Editor, action: KeyPress | Type | LeftClick | None = None) -> float:
    """How long the screen was silent at the verdict."""
    seen = desktop.perform(action or KeyPress(["a"]))
    editor.rest(0.3)
    return seen.elapsed.settle


def learn(desktop: Desktop, editor: Editor, *, count: int = ENOUGH + 1) -> None:
    for _ in range(count):
        silence(desktop, editor)


def test_a_window_that_always_answers_at_once_is_waited_for_shorter(desktop: Desktop, editor: Editor) -> None:
    for _ in range(ENOUGH + 1):
        assert silence(desktop, editor) == LONG
    found = [silence(desktop, editor) for _ in range(16)]
    assert sum(took == SHORT for took in found) == 14
    assert sum(took == LONG for took in found) == 2, "now and then it is looked at for longer"
    assert silence(desktop, editor, Type("b")) == SHORT, "another character"


def test_what_is_learnt_is_of_one_window_and_kind(desktop: Desktop, editor: Editor) -> None:
    learn(desktop, editor)
    assert silence(desktop, editor, KeyPress(["Return"])) == LONG
    assert silence(desktop, editor, Type("ab")) == LONG
    editor.window = 8
    assert silence(desktop, editor) == LONG
    editor.window = 7
    assert silence(desktop, editor) == SHORT


@pytest.mark.parametrize("doing", [Activity.COMPUTING, Activity.AWAITING, Activity.SLEEPING, Activity.UNKNOWN])
def test_an_application_at_work_is_waited_for_as_before(desktop: Desktop, editor: Editor, doing: Activity) -> None:
    learn(desktop, editor)
    looks = []

    def activity(*, changed: bool) -> Activity:
        del changed
        looks.append(editor.now)
        return doing if len(looks) == 1 else Activity.RESTING

    editor.activity = activity  # type: ignore[method-assign] # this answer for one wait only
    assert silence(desktop, editor) == LONG


def test_an_application_that_answers_in_parts_is_not_learnt(desktop: Desktop, editor: Editor) -> None:
    editor.answer = (0.002, 0.027)
    learn(desktop, editor)
    editor.answer = (0.002,)
    assert silence(desktop, editor) == LONG


def test_what_comes_late_unlearns_it(desktop: Desktop, editor: Editor) -> None:
    learn(desktop, editor)
    editor.answer = (0.002, 0.1)
    assert silence(desktop, editor) == SHORT
    editor.answer = (0.002,)
    for _ in range(4 * ENOUGH):
        assert silence(desktop, editor) == LONG
    learn(desktop, editor, count=3 * ENOUGH)
    assert SHORT in [silence(desktop, editor) for _ in range(2)]


def test_what_comes_between_actions_much_later_is_another_matter(desktop: Desktop, editor: Editor) -> None:
    learn(desktop, editor)
    desktop.perform(KeyPress(["a"]))
    editor.rest(0.5)
    editor.paint((100, 50, 5, 5), (9, 9, 9))
    editor.rest(0.3)
    assert silence(desktop, editor) == SHORT


def test_so_many_are_kept() -> None:
    habits = Habits()
    for _ in range(ENOUGH + 1):
        habits.ended(A, 0.0, alone=True)
    assert habits.is_learnt(A)
    for window in range(10, 1000):
        habits.ended(Habit(window, "character"), 0.0, alone=True)
    assert not habits.is_learnt(A)


def test_a_late_change_is_that_of_the_latest_answer() -> None:
    habits = Habits()
    for habit in (A, B):
        for _ in range(ENOUGH + 1):
            habits.ended(habit, 5.0, alone=True)
    assert not habits.may_unlearn(4.9)
    assert not habits.may_unlearn(5.3)
    assert habits.may_unlearn(5.1)
    habits.unlearn()
    habits.unlearn()
    assert (habits.is_learnt(A), habits.is_learnt(B)) == (True, False)
    assert not habits.may_unlearn(5.1)
