"""Drags, hovers and clicks do in real applications what a hand does: quiet, and kept from the processor."""

from __future__ import annotations

import contextlib
import random
from typing import TYPE_CHECKING

import pytest

import deskhand
from deskhand import DoubleClick, Drag, LeftClick, LeftMouseDown, LeftMouseUp, Move
from faults.helpers import starved
from faults.scale import EVIDENCE
from integration.apps import until
from integration.pointed import POINTED, Page
from soak import soaked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from integration.pointed import Pointed

TIMES = 20 if EVIDENCE else 2
TIMES_STARVED = 20 if EVIDENCE else 1
# For how many milliseconds a starved application gets the processor, and for how many it does not.
SLICES = 0.3, 15.0
WITH_DROP = [name for name in POINTED if name != "tk"]
WITH_MENU = ["tk", "chromium"]


def cases(names: Iterable[str], *, short: Iterable[str] = ()) -> pytest.MarkDecorator:
    """Each application as it is, and starved; of those one in the short form, for what is starved takes seconds a gesture.

    With `short`, only these are in the short series.
    """
    names = list(names)
    short = list(short) or names
    starved = [(name, SLICES) for name in names[: None if EVIDENCE else 1]]
    both = [*((name, None) for name in names), *starved]
    ids = [name if slices is None else f"{name}-starved" for name, slices in both]
    return pytest.mark.parametrize(("name", "slices"), soaked(both, but=[(name, None) for name in short]), ids=ids)


@pytest.fixture(scope="module")
def desktop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[deskhand.Desktop]:
    """One desktop for the whole file."""
    with deskhand.launch(size=(1600, 1200), env={"HOME": str(tmp_path_factory.mktemp("home"))}) as desktop:
        yield desktop


@pytest.fixture(scope="module")
def app(desktop: deskhand.Desktop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Pointed]]:
    """The application of that name, above all others."""
    running: dict[str, Pointed] = {}

    def get(name: str) -> Pointed:
        if name not in running:
            running[name] = POINTED[name](desktop, tmp_path_factory.mktemp(name))
        desktop.windows.activate(running[name].window)
        desktop.perform(Move(running[name].at((190, 290))))
        running[name].news()
        return running[name]

    yield get
    for pointed in running.values():
        pointed.close()


def kept(app: Pointed, slices: tuple[float, float] | None) -> contextlib.AbstractContextManager[None]:
    """The application gets the processor in slices, or as any other does."""
    return contextlib.nullcontext() if slices is None else starved(app.pid, *slices)


def at_once(desktop: deskhand.Desktop, start: tuple[int, int], end: tuple[int, int]) -> bool:
    return desktop.perform(Drag([start, end])).unanswered


def in_one_call(desktop: deskhand.Desktop, start: tuple[int, int], end: tuple[int, int]) -> bool:
    return desktop.perform(LeftMouseDown(start), Move(end), LeftMouseUp()).unanswered


def in_three_calls(desktop: deskhand.Desktop, start: tuple[int, int], end: tuple[int, int]) -> bool:
    pressed = desktop.perform(LeftMouseDown(start))
    moved = desktop.perform(Move(end))
    dropped = desktop.perform(LeftMouseUp(end))
    return not pressed.settled or moved.unanswered or not moved.settled or dropped.unanswered


WAYS = pytest.mark.parametrize("way", soaked([at_once, in_one_call, in_three_calls], but=[at_once, in_three_calls]))


@WAYS
@cases(WITH_DROP)
def test_what_is_dragged_is_dropped(
    app: Callable[[str], Pointed],
    name: str,
    way: Callable[[deskhand.Desktop, tuple[int, int], tuple[int, int]], bool],
    slices: tuple[float, float] | None,
) -> None:
    pointed = app(name)
    assert pointed.source is not None
    assert pointed.target is not None
    for _ in range(TIMES if slices is None else TIMES_STARVED):
        with kept(pointed, slices):
            unanswered = way(pointed.desktop, pointed.at(pointed.source), pointed.at(pointed.target))
        assert unanswered or ["drop", "hello"] in pointed.news("drop")


@WAYS
def test_what_is_dragged_to_a_small_target_is_dropped(
    app: Callable[[str], Pointed],
    way: Callable[[deskhand.Desktop, tuple[int, int], tuple[int, int]], bool],
) -> None:
    """Chromium asks an element at the second motion over it, and has its answer at the third."""
    pointed = app("chromium")
    assert isinstance(pointed, Page)
    assert pointed.source is not None
    unanswered = way(pointed.desktop, pointed.at(pointed.source), pointed.at(pointed.speck))
    assert unanswered or ["drop", "hello"] in pointed.news("drop")


@pytest.mark.parametrize("name", WITH_DROP)
def test_a_press_after_a_click_begins_a_drag(app: Callable[[str], Pointed], name: str) -> None:
    """Chromium drags nothing after a press that it counts as the second of a double click."""
    pointed = app(name)
    assert pointed.source is not None
    assert pointed.target is not None
    start, end = pointed.at(pointed.source), pointed.at(pointed.target)
    seen = pointed.desktop.perform(LeftClick(start), LeftMouseDown(start), Move(end), LeftMouseUp())
    assert seen.unanswered or ["drop", "hello"] in pointed.news("drop")


@cases(POINTED)
def test_every_point_of_a_drag_is_seen(
    app: Callable[[str], Pointed], name: str, slices: tuple[float, float] | None
) -> None:
    """Toolkits leave out motion that is followed by more before they come round to it."""
    pointed = app(name)
    chance = random.Random(11)
    width, height = pointed.canvas
    for _ in range(TIMES if slices is None else TIMES_STARVED):
        path = [pointed.at((chance.randrange(5, width - 20), chance.randrange(100, height - 20))) for _ in range(6)]
        with kept(pointed, slices):
            unanswered = pointed.desktop.perform(Drag(path)).unanswered
        seen = [(round(x), round(y)) for kind, x, y in pointed.news("release") if kind in {"press", "motion"}]
        found = iter(seen)
        assert unanswered or all(point in found for point in path), (path, seen)


@WAYS
@pytest.mark.parametrize("by", [(30, 20), pytest.param((150, 90), marks=pytest.mark.soak)])
@pytest.mark.parametrize("part", ["title", "corner"])
def test_a_window_is_moved_and_resized(
    app: Callable[[str], Pointed],
    part: str,
    by: tuple[int, int],
    way: Callable[[deskhand.Desktop, tuple[int, int], tuple[int, int]], bool],
) -> None:
    pointed = app("gtk")
    desktop = pointed.desktop

    def place() -> deskhand.Rect:
        return next(window.rect for window in desktop.windows.list() if window.id == pointed.window.id)

    def measures() -> tuple[int, int]:
        rect = place()
        return (rect.x, rect.y) if part == "title" else rect.size

    def become(wanted: tuple[int, int]) -> bool:
        return until(lambda: measures() == wanted, 5.0)

    for sign in (1, -1) * (TIMES // 2):
        rect, before = place(), measures()
        start = (rect.x + 150, rect.y - 8) if part == "title" else (rect.right, rect.bottom + 3)
        way(desktop, start, (start[0] + sign * by[0], start[1] + sign * by[1]))
        wanted = before[0] + sign * by[0], before[1] + sign * by[1]
        assert become(wanted), (before, wanted, measures())


@cases(WITH_MENU)
def test_a_menu_that_opens_under_the_pointer_is_clicked(
    app: Callable[[str], Pointed], name: str, slices: tuple[float, float] | None
) -> None:
    """Not what the menu covers."""
    pointed = app(name)
    assert pointed.menu is not None
    assert pointed.item is not None
    for _ in range(TIMES if slices is None else TIMES_STARVED):
        with kept(pointed, slices):
            pointed.desktop.perform(Move(pointed.at(pointed.menu)), Move(pointed.at(pointed.item)), LeftClick())
        assert pointed.news("item") == [["item"]]
        pointed.desktop.perform(Move(pointed.at((190, 290))))


@cases(POINTED, short=["gtk", "chromium"])
def test_a_click_is_one_and_a_double_click_two(
    app: Callable[[str], Pointed], name: str, slices: tuple[float, float] | None
) -> None:
    pointed = app(name)
    place = pointed.at((100, 200))
    for _ in range(TIMES if slices is None else TIMES_STARVED):
        with kept(pointed, slices):
            pointed.desktop.perform(LeftClick(place))
            pointed.desktop.perform(LeftClick((place[0] + 2, place[1])), LeftClick(place))
        clicks = [kind for kind, *_ in pointed.news("release")]
        while clicks.count("release") < 3:
            clicks += [kind for kind, *_ in pointed.news("release")]
        assert clicks.count("press") == 3
        assert "double" not in clicks
        with kept(pointed, slices):
            pointed.desktop.perform(DoubleClick(place))
        told = [kind for kind, *_ in pointed.news("double")]
        assert told.count("double") == 1
        assert "triple" not in told
