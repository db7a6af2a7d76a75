"""Numbered marks: which elements get one, where the numbers are, and what the picture shows afterwards."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand import Element, Elements, Observation, Point, Rect, Screenshot, Size, Viewport
from deskhand._core.marks import labels, marks
from deskhand._core.observation import Elapsed

SIZE = Size(400, 300)
WHOLE = Viewport(SIZE, SIZE)
LABEL = (22, 12)


def element(number: int, at: Rect, role: str = "button", **more: Any) -> Element:
    point = Point(at.x + at.width // 2, at.y + at.height // 2)
    return Element(**{"ref": f"e{number}", "role": role, "name": f"n{number}", "box": at, "point": point, **more})


def screenshot(format: Any = "raw") -> Screenshot:
    plain = Screenshot(bytes([200]) * (SIZE.width * SIZE.height * 3), "raw", WHOLE, Point(0, 0), 1)
    return plain if format == "raw" else Screenshot(plain.png, format, WHOLE, Point(0, 0), 1)


def overlap(one: Rect, other: Rect) -> bool:
    return not one.intersect(other).empty


@pytest.mark.parametrize(
    ("more", "marked"),
    [
        ({}, True),
        ({"role": "link"}, True),
        ({"role": "textbox"}, True),
        ({"role": "heading"}, False),
        ({"role": "window"}, False),
        ({"role": "document", "states": frozenset({"editable"})}, True),
        ({"role": "listitem"}, False),
        ({"role": "listitem", "states": frozenset({"selectable"})}, True),
        ({"states": frozenset({"disabled"})}, False),
        ({"covered_by": "another window"}, False),
        ({"point": None}, False),
        ({"box": None}, False),
    ],
)
def test_what_something_can_be_done_with_is_marked(more: dict[str, Any], marked: bool) -> None:  # noqa: FBT001
    found = marks(Elements((element(7, Rect(10, 20, 30, 40), **more),)), WHOLE)
    assert [(mark.number, mark.ref) for mark in found] == ([(7, "e7")] if marked else [])


def test_a_mark_is_around_what_the_picture_shows() -> None:
    inner = element(3, Rect(100, 0, 50, 200), depth=1)
    elements = Elements((element(1, Rect(0, 50, 400, 100), "generic", native_role="scroll-pane"), inner))
    assert [mark.box for mark in marks(elements, WHOLE)] == [Rect(100, 50, 50, 100)], (
        "what is scrolled away is not shown"
    )
    assert [mark.box for mark in marks(elements, Viewport(SIZE, Size(200, 150)))] == [Rect(50, 25, 25, 50)]
    part = Viewport(SIZE, Size(100, 100), Rect(120, 60, 100, 100))
    assert [mark.box for mark in marks(elements, part)] == [Rect(0, 0, 30, 90)]
    assert marks(elements, Viewport(SIZE, Size(50, 50), Rect(300, 0, 50, 50))) == ()
    beside = Elements((elements[0], element(4, Rect(0, 0, 10, 10))))
    assert [mark.box for mark in marks(beside, WHOLE)] == [Rect(0, 0, 10, 10)], "it is not in what scrolls"


def test_no_number_covers_another_where_there_is_room() -> None:
    boxes = [Rect(10 + x * 48, 20 + y * 40, 30, 18) for x in range(8) for y in range(7)]
    boxes += [Rect(0, 0, 400, 300), boxes[0], Rect(11, 21, 10, 10)]
    placed = labels(boxes, [LABEL] * len(boxes), SIZE)
    assert not [
        (one, other) for place, one in enumerate(placed) for other in placed[place + 1 :] if overlap(one, other)
    ]
    near = [
        at.intersect(Rect(box.x - 30, box.y - 20, box.width + 60, box.height + 40))
        for at, box in zip(placed, boxes, strict=True)
    ]
    assert near == placed, "each is at its element"


@given(
    st.lists(st.tuples(st.integers(0, 399), st.integers(0, 299), st.integers(1, 400), st.integers(1, 300)), max_size=30)
)
def test_every_number_is_in_the_picture(given_boxes: list[tuple[int, int, int, int]]) -> None:
    boxes = [Rect(*each).intersect(Rect(0, 0, *SIZE)) for each in given_boxes]
    for at in labels(boxes, [LABEL] * len(boxes), SIZE):
        assert at.within(Rect(0, 0, *SIZE))
        assert at.size == LABEL


@pytest.mark.parametrize("format", ["raw", "png", "indexed"])
def test_the_picture_has_frames_and_numbers_and_is_otherwise_as_it_was(format: Any) -> None:
    before = screenshot(format)
    box = Rect(100, 100, 60, 40)
    after = before.with_marks(Elements((element(12, box),)))
    assert (after.format, after.media_type, after.size, after.viewport) == ("png", "image/png", before.size, WHOLE)
    pixels = after.array()
    changed = np.argwhere((pixels != before.array()).any(axis=2))
    (top, left), (bottom, right) = changed.min(axis=0), changed.max(axis=0)
    assert (left, bottom, right) == (100, 139, 159)
    assert 80 < top < 100, "the number is above"
    assert (pixels[139, 100:160] == pixels[139, 100]).all(), "a frame"
    number = pixels[top:100, 100:130]
    assert (number == 255).all(axis=2).sum() > 50, "white digits"
    inside = pixels[101:139, 101:159]
    assert (inside == 200).all(), "what is marked is still to be seen"
    assert before.data == screenshot(format).data


def test_numbers_that_differ_look_different() -> None:
    def drawn(number: int) -> bytes:
        return screenshot().with_marks(Elements((element(number, Rect(100, 100, 60, 40)),))).array()[60:100].tobytes()

    assert len({drawn(number) for number in (1, 7, 12, 21, 128, 4096)}) == 6


def test_an_observation_stays_one() -> None:
    seen = Observation(
        screenshot().data, "raw", WHOLE, Point(1, 2), 3, settled=True, reason="settled", rects=(Rect(1, 2, 3, 4),), busy=(),
        elapsed=Elapsed(0, 0, 0, 0, 0),
    )  # fmt: skip
    marked = seen.with_marks(Elements((element(1, Rect(5, 5, 5, 5)),)))
    assert (type(marked), marked.rects, marked.cursor) == (Observation, seen.rects, seen.cursor)
    assert marked.data != seen.data
    assert (seen.with_marks(Elements()).array() == seen.array()).all()


def test_many_are_marked() -> None:
    chance = random.Random(5)
    elements = Elements(
        tuple(
            element(
                number,
                Rect(chance.randrange(390), chance.randrange(290), chance.randrange(1, 80), chance.randrange(1, 40)),
            )
            for number in range(1, 400)
        )
    )
    assert screenshot().with_marks(elements).size == SIZE
