"""Which monitors a screen is made of, by what the other side says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from deskhand import Desktop, Monitor, Rect
from deskhand._core.geometry import Size
from deskhand._core.monitor import monitors_of
from deskhand.backends.memory import MemoryBackend

SIZE = Size(1280, 800)
WHOLE = Rect(0, 0, 1280, 800)
_SIDE = st.integers(-(2**31), 2**32)


def test_places_are_cut_to_the_screen() -> None:
    reported = [
        ("left", (0, 0, 640, 800), True),
        ("beyond", (1000, -100, 640, 400), False),
        ("elsewhere", (1280, 0, 640, 800), False),
        ("nothing", (5, 5, 0, 9), False),
    ]
    assert monitors_of(reported, SIZE) == [
        Monitor("left", Rect(0, 0, 640, 800), primary=True),
        Monitor("beyond", Rect(1000, 0, 280, 300), primary=False),
    ]


def test_one_is_the_primary_one() -> None:
    assert monitors_of([("screen", (0, 0, 1280, 800), False)], SIZE) == [Monitor("screen", WHOLE, primary=True)]


def test_names_are_cleaned() -> None:
    (monitor,) = monitors_of([("a\x1b[31m\nb" + "c" * 1000, (0, 0, 9, 9), True)], SIZE)
    assert len(monitor.name) == 64
    assert monitor.name.isprintable()


def test_of_no_report_one_is_the_whole_screen() -> None:
    with Desktop(MemoryBackend(SIZE)) as desktop:
        assert desktop.monitors() == [Monitor("", WHOLE, primary=True)]


@given(st.lists(st.tuples(st.text(), st.tuples(_SIDE, _SIDE, _SIDE, _SIDE), st.booleans()), max_size=70))
def test_whatever_is_reported_they_are_parts_of_the_screen(
    reported: list[tuple[str, tuple[int, int, int, int], bool]],
) -> None:
    monitors = monitors_of(reported, SIZE)
    assert 1 <= len(monitors) <= 64
    assert all(monitor.rect.within(WHOLE) and not monitor.rect.empty for monitor in monitors)
