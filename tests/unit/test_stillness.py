"""When an element counts as still: by what its application answers, and by what the screen shows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from deskhand import Rect
from deskhand.desktop.stillness import Stillness


class Played:
    """A screen that last changed at a time, and a clock that a test sets."""

    def __init__(self, changed: float, sent: float = 0.0) -> None:
        """It is 100 s by the clock; the last input was sent at `sent`."""
        self.now = 100.0
        self.changed = changed
        self.stillness = Stillness(self.backend(), lambda: self.now, sent)

    def backend(self) -> Any:
        """What is seen of it."""
        history = lambda _: [(2, self.changed, [])]  # noqa: E731 # it is asked as a method
        return SimpleNamespace(screen=SimpleNamespace(generation=2, history=history))

    def told(self, x: int, *, after: float, in_: float = 0.001) -> bool:
        """Whether it is still when it is asked `after` so many seconds, answers `in_` so many, and is at `x` then."""
        self.now += after
        asked = self.now
        self.now += in_
        return not self.stillness.amiss(Rect(x, 0, 20, 20), asked, late=False)


def test_on_a_still_screen_it_is_still_at_once() -> None:
    assert Played(changed=99.9).told(10, after=0)
    assert not Played(changed=99.95).told(10, after=0)


def test_what_input_does_may_yet_be_painted() -> None:
    """Chromium paints a turn of the wheel one or two frames later, and tells the place of before until then."""
    assert Played(changed=90, sent=99.9).told(10, after=0)
    played = Played(changed=90, sent=99.99)
    assert [played.told(10, after=after) for after in (0, 0.04, 0.04)] == [False, False, True]


@pytest.mark.parametrize("late", [0.05, 1.5])
def test_a_still_screen_says_nothing_where_the_answer_took_long(late: float) -> None:
    """The application, or this process, was starved: it may be elsewhere by now, and will be painted there."""
    assert not Played(changed=90).told(10, after=0, in_=late)


def test_a_screen_that_changed_since_the_question_is_not_still() -> None:
    assert not Played(changed=100.0005).told(10, after=0)


def test_on_a_busy_screen_it_is_still_when_it_was_told_so_for_a_while() -> None:
    played = Played(changed=200)
    assert [played.told(10, after=0.04) for _ in range(4)] == [False, False, True, True]


def test_one_that_moved_rests_longer() -> None:
    played = Played(changed=200)
    assert not played.told(9, after=0)
    assert [played.told(10, after=0.04) for _ in range(8)] == [False] * 7 + [True]


def test_of_a_long_pause_between_two_answers_a_part_counts() -> None:
    """A starved application paints nothing and answers nothing, and goes on from where it was."""
    played = Played(changed=200)
    assert not played.told(9, after=0)
    assert [played.told(10, after=0.04, in_=0.7) for _ in range(4)] == [False, False, False, True]
