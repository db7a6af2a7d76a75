"""What a line carries, and the parts of a picture that are not sharp yet."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from deskhand.watch.line import Line

RECTS = st.tuples(st.integers(0, 90), st.integers(0, 90), st.integers(1, 60), st.integers(1, 60))


def pixels(rect: tuple[int, int, int, int]) -> set[tuple[int, int]]:
    left, top, width, height = rect
    return {(x, y) for x in range(left, left + width) for y in range(top, top + height)}


def all_parts(line: Line) -> list[tuple[int, int, int, int]]:
    found = []
    while (part := line.next_part()) is not None:
        found.append(part)
    return found


def slow(rate: int = 100_000) -> Line:
    line = Line()
    line.learn(10, 0.0)
    line.learn(rate, 1.0)
    return line


def test_nothing_is_slow_that_is_not_known() -> None:
    assert not Line().is_slow_for(1 << 30)


def test_the_way_is_no_lack_of_room() -> None:
    """A line that takes 0.3 s for anything carries much all the same."""
    line = Line()
    line.learn(200, 0.3)
    line.learn(200_000, 0.32)
    assert not line.is_slow_for(1_000_000)
    # A few turns on a line that has become slow are enough.
    for _ in range(7):
        line.learn(200_000, 2.3)
    assert line.is_slow_for(200_000)


def test_small_turns_say_nothing_of_the_rate() -> None:
    line = Line()
    line.learn(10, 0.01)
    line.learn(1_000, 5.0)
    assert not line.is_slow_for(1 << 30)


def test_a_part_is_made_sharp_in_bands_that_the_line_carries_soon() -> None:
    line = slow(100_000)
    assert line.is_slow_for(100_000)
    line.blur((10, 20, 100, 300), 60_000)
    assert line.has_blurred
    parts = all_parts(line)
    assert not line.has_blurred
    assert len(parts) > 3
    assert [part[1] for part in parts] == [20 + sum(part[3] for part in parts[:number]) for number in range(len(parts))]
    assert sum(part[3] for part in parts) == 300
    assert {(part[0], part[2]) for part in parts} == {(10, 100)}


def test_what_has_just_changed_is_left_for_later() -> None:
    line = slow()
    line.blur((0, 0, 10, 10), 100)
    line.blur((50, 50, 10, 10), 100)
    assert line.next_part([(5, 5, 10, 10)]) == (50, 50, 10, 10)
    assert line.next_part([(5, 5, 10, 10)]) is None
    assert line.has_blurred
    assert line.next_part([(10, 0, 10, 10)]) == (0, 0, 10, 10)


def test_what_was_sent_sharp_is_not_sent_again() -> None:
    line = slow()
    line.blur((10, 10, 10, 10), 100)
    line.sharpen((10, 10, 10, 9))
    assert line.has_blurred
    line.sharpen((0, 0, 20, 20))
    assert not line.has_blurred
    line.blur((10, 10, 10, 10), 100)
    line.forget()
    assert not line.has_blurred


@given(st.lists(st.tuples(RECTS, st.integers(1, 100_000)), max_size=100))
def test_every_pixel_becomes_sharp(blurred: list[tuple[tuple[int, int, int, int], int]]) -> None:
    line = slow()
    for rect, cost in blurred:
        line.blur(rect, cost)
    wanted = set().union(*(pixels(rect) for rect, _ in blurred))
    parts = all_parts(line)
    assert wanted <= set().union(*(pixels(part) for part in parts))
    assert all(part[2] > 0 and part[3] > 0 for part in parts)
