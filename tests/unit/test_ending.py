"""What is to be done at the end, and what becomes of it when it is interrupted."""

from __future__ import annotations

import pytest

from deskhand.desktop.cleanup import CleanupStack


def test_steps_are_taken_once_the_last_one_first() -> None:
    taken: list[int] = []
    ending = CleanupStack()
    for number in range(3):
        ending.add(lambda number=number: taken.append(number))
    ending.close()
    ending.close()
    assert taken == [2, 1, 0]


def test_an_interrupted_step_is_taken_again_and_a_failed_one_is_not() -> None:
    taken: list[str] = []

    def interrupted() -> None:
        taken.append("interrupted")
        if taken.count("interrupted") == 1:
            raise KeyboardInterrupt

    def failing() -> None:
        taken.append("failing")
        raise OSError("no")

    ending = CleanupStack()
    for step in (lambda: taken.append("first"), failing, interrupted):
        ending.add(step)
    # The error comes later, and does not hide that somebody wants it to stop.
    with pytest.raises(KeyboardInterrupt):
        ending.close()
    assert taken == ["interrupted", "failing", "first"]
    ending.close()
    assert taken == ["interrupted", "failing", "first", "interrupted"]


def test_an_error_is_told_when_all_else_is_done() -> None:
    taken: list[int] = []
    ending = CleanupStack()
    ending.add(lambda: taken.append(1))
    ending.add(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        ending.close()
    assert taken == [1]


def test_what_is_somebody_elses_is_not_done() -> None:
    taken: list[int] = []
    ending = CleanupStack()
    ending.add(lambda: taken.append(1))
    ending.forget()
    ending.close()
    assert not taken
