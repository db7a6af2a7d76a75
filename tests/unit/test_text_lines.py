"""Which parts of a screen are read again, which line is the one of before, and where a gap sets two texts apart."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageDraw, ImageFont

from deskhand._core.geometry import Rect
from deskhand._core.ink import pieces, trim
from deskhand._core.text_lines import (
    Found,
    Line,
    bands,
    clean_line,
    follow,
    grow,
    in_order,
    replaced,
    silent_areas,
    subtract,
)
from deskhand._core.window import Window

SCREEN = Rect(0, 0, 1000, 700)
RECTS = st.builds(Rect, st.integers(0, 900), st.integers(0, 600), st.integers(1, 100), st.integers(1, 100))


def _line(text: str, x: int, y: int, width: int = 60, height: int = 14) -> Line:
    return Line(text, Rect(x, y, width, height), 0.9)


def _window(pid: int, *rect: int, minimized: bool = False) -> Window:
    return Window(pid, "", "", pid, Rect(*rect), active=False, minimized=minimized)


@given(st.lists(RECTS, max_size=6), st.lists(RECTS, max_size=6))
def test_whole_lines_are_read_again(changed: list[Rect], boxes: list[Rect]) -> None:
    regions = grow(changed, [Line("a", box, 1.0) for box in boxes], SCREEN)
    assert all(any(rect.within(region) for region in regions) for rect in changed)
    for region in regions:
        assert region.within(SCREEN)
        assert all(box.within(region) or box.intersect(region).empty for box in boxes)
        assert all(other is region or other.intersect(region).empty for other in regions)


def test_what_is_far_is_not_read_again() -> None:
    near, far = _line("near", 100, 100), _line("far", 100, 300)
    (region,) = grow([Rect(165, 102, 8, 12)], [near, far], SCREEN)
    assert near.box.within(region)
    assert far.box.intersect(region).empty


@given(st.builds(Rect, st.just(5), st.integers(0, 300), st.just(400), st.integers(1, 400)), st.integers(1, 200_000))
def test_bands_count_each_row_once(region: Rect, most: int) -> None:
    parts = bands(region, most, SCREEN)
    rows = [row for _, counts in parts for row in range(counts.y, counts.bottom)]
    assert rows == list(range(max(0, region.y - 12), min(700, region.bottom + 12)))
    assert all(counts.within(read) and read.within(SCREEN) for read, counts in parts)


def test_neighbours_stay_as_they_are() -> None:
    above, below = Found(1, _line("above", 20, 80)), Found(2, _line("below", 20, 100))
    region = below.line.box
    area = region.inflate(12)
    lines = [_line("abovc", 20, 80), _line("new", 20, 100), _line("farther", 20, 116)]
    stays, gone, here = replaced([above, below], lines, region, area)
    assert (stays, gone) == ([above], [below])
    assert [line.text for line in here] == ["new"]


def test_what_goes_on_in_a_change_is_no_second_line() -> None:
    there = Found(1, _line("word", 20, 100))
    # Found again by a part of it, beside what has changed.
    stays, gone, here = replaced([there], [_line("ord", 40, 100, 60)], Rect(90, 95, 20, 20), SCREEN)
    assert (stays, gone, here) == ([there], [], [])


def test_a_text_that_stays_keeps_its_number() -> None:
    before, last = follow([], [_line("Save", 10, 10), _line("Open", 10, 40)], 0)
    assert [found.number for found in before] == [1, 2]
    # Its box may differ by what was read around it.
    again, last = follow(before, [_line("Save", 11, 9), _line("Quit", 10, 40)], last)
    assert [(found.number, found.line.text) for found in again] == [(1, "Save"), (3, "Quit")]
    assert again[0] is before[0]
    moved, last = follow(again, [_line("Save", 10, 30)], last)
    assert [found.number for found in moved] == [4]


def test_a_number_is_given_once() -> None:
    twice, last = follow([Found(7, _line("OK", 10, 10))], [_line("OK", 10, 10), _line("OK", 12, 10)], 7)
    assert sorted(found.number for found in twice) == [7, 8]
    assert last == 8


def test_rows_are_read_from_left_to_right() -> None:
    lines = [_line("d", 300, 52), _line("b", 200, 12), _line("c", 10, 50), _line("a", 10, 10)]
    ordered = in_order(Found(n, line) for n, line in enumerate(lines))
    assert "".join(found.line.text for found in ordered) == "abcd"


@given(st.lists(RECTS, max_size=5))
def test_what_is_left_of_a_rectangle(holes: list[Rect]) -> None:
    areas = [SCREEN]
    for hole in holes:
        areas = subtract(areas, hole)
    covered = np.zeros((SCREEN.height, SCREEN.width), int)
    for area in areas:
        covered[area.y : area.bottom, area.x : area.right] += 1
    expected = np.ones_like(covered)
    for hole in holes:
        expected[hole.y : hole.bottom, hole.x : hole.right] = 0
    assert (covered == expected).all()


def test_windows_that_tell_are_left_out() -> None:
    windows = [
        _window(1, 100, 100, 400, 300),
        _window(2, 300, 200, 400, 300),
        _window(3, 350, 250, 50, 50),
        _window(4, 0, 0, 1000, 700, minimized=True),
    ]
    areas = silent_areas(SCREEN, windows, {2, 4}, [Rect(110, 110, 20, 20)])

    def is_read(x: int, y: int) -> bool:
        return any(area.contains((x, y)) for area in areas)

    assert is_read(150, 150)
    assert not is_read(450, 350)
    # Its frame is its own.
    assert not is_read(450, 190)
    # What is above one that tells.
    assert is_read(360, 260)
    # A menu, and what nobody has a window at.
    assert not is_read(115, 115)
    assert is_read(900, 650)


def test_texts_are_cleaned_and_cut() -> None:
    assert clean_line("a\x1b[31m\u202eb\n c\t\td") == "a[31mb c d"
    assert len(clean_line("x" * 10_000)) == 500
    assert clean_line("\u200b\x00") == ""


def _drawn(text: str, size: int = 14, *, at: int = 10, dark: bool = False) -> Image.Image:
    paper, ink = ("#202020", "white") if dark else ("white", "black")
    image = Image.new("RGB", (600, 40), paper)
    ImageDraw.Draw(image).text((at, 10), text, fill=ink, font=ImageFont.load_default(size))
    return image


@pytest.mark.parametrize("dark", [False, True])
def test_a_wide_gap_sets_texts_apart(dark: bool) -> None:  # noqa: FBT001
    image = _drawn("File", dark=dark)
    ImageDraw.Draw(image).text(
        (60, 10), "Edit text", fill="white" if dark else "black", font=ImageFont.load_default(14)
    )
    found = pieces(np.asarray(image), Rect(0, 0, 600, 40))
    assert len(found) == 2
    assert found[0].right < 60 <= found[1].x


def test_the_edge_of_a_frame_is_no_ink() -> None:
    image = _drawn("Some words")
    plain = pieces(np.asarray(image), Rect(0, 2, 600, 36))
    ImageDraw.Draw(image).line((0, 34, 599, 34), fill="black")
    assert pieces(np.asarray(image), Rect(0, 2, 600, 36)) == plain
    assert len(plain) == 1


def test_a_title_above_is_not_the_background() -> None:
    """As a menu bar of Swing is found: with the edge of its window and a part of the title bar."""
    image = _drawn("File")
    pen = ImageDraw.Draw(image)
    pen.text((70, 10), "Edit", fill="black", font=ImageFont.load_default(14))
    pen.rectangle((0, 0, 599, 3), fill="#7090c0")
    pen.line((0, 0, 0, 39), fill="black")
    first, second = pieces(np.asarray(image), Rect(0, 0, 120, 32))
    assert (first.x >= 10, first.y > 8, second.x >= 70) == (True, True, True)


def test_where_there_is_nothing() -> None:
    blank = np.full((40, 60, 3), 77, np.uint8)
    assert pieces(blank, Rect(0, 0, 60, 40)) == []
    assert pieces(blank, Rect(60, 0, 5, 5)) == []
    assert trim(blank).empty
    blank[5, 7] = 0
    assert trim(blank) == Rect(7, 5, 1, 1)
