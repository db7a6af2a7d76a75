"""The Viewport's arithmetic stays inside and comes back; rectangles behave like sets of pixels."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand._core.geometry import Point, Rect, Size, Viewport, check_point, check_region
from deskhand.errors import ActionError, OutOfBounds

DIM = st.integers(1, 5000)
SIZES = st.builds(Size, DIM, DIM)
SMALL = st.integers(-6, 12)
RECTS = st.builds(Rect, SMALL, SMALL, st.integers(0, 8), st.integers(0, 8))


@st.composite
def viewports(draw: st.DrawFn) -> Viewport:
    screen, model = draw(SIZES), draw(SIZES)
    if draw(st.booleans()):
        return Viewport(screen, model)
    x, y = draw(st.integers(0, screen.width - 1)), draw(st.integers(0, screen.height - 1))
    width, height = draw(st.integers(1, screen.width - x)), draw(st.integers(1, screen.height - y))
    return Viewport(screen, model, Rect(x, y, width, height))


def points(size: Size) -> st.SearchStrategy[tuple[float, float]]:
    def axis(dim: int) -> st.SearchStrategy[float]:
        return st.integers(0, dim - 1) | st.floats(0, dim - 1)

    return st.tuples(axis(size.width), axis(size.height))


def pixels(rect: Rect) -> set[tuple[int, int]]:
    return {(x, y) for x in range(rect.x, rect.right) for y in range(rect.y, rect.bottom)}


@given(st.data())
def test_model_to_screen_and_back(data: st.DataObject) -> None:
    view = data.draw(viewports())
    x, y = data.draw(st.tuples(st.integers(0, view.model.width - 1), st.integers(0, view.model.height - 1)))
    on_screen = view.to_screen((x, y))
    assert view.shown.contains(on_screen)
    back = view.to_model(on_screen)
    assert Rect(0, 0, *view.model).contains(back)
    for there, here, model, shown in zip(back, (x, y), view.model, view.shown.size, strict=True):
        # One pixel of the coarser space: none where the model saw no enlargement.
        assert abs(there - here) <= (0 if model <= shown else math.ceil(model / shown))


@given(st.data())
def test_screen_to_model_and_back(data: st.DataObject) -> None:
    view = data.draw(viewports())
    dx, dy = data.draw(st.tuples(st.integers(0, view.shown.width - 1), st.integers(0, view.shown.height - 1)))
    here = Point(view.shown.x + dx, view.shown.y + dy)
    back = view.to_screen(view.to_model(here))
    for there, at, model, shown in zip(back, here, view.model, view.shown.size, strict=True):
        assert abs(there - at) <= (0 if shown <= model else math.ceil(shown / model))


@given(st.data())
def test_any_valid_point_stays_inside(data: st.DataObject) -> None:
    view = data.draw(viewports())
    assert view.shown.contains(view.to_screen(data.draw(points(view.model))))


@given(st.data())
def test_regions_cover_their_points(data: st.DataObject) -> None:
    view = data.draw(viewports())
    x, y = data.draw(st.tuples(st.integers(0, view.model.width - 1), st.integers(0, view.model.height - 1)))
    rect = Rect(x, y, data.draw(st.integers(1, view.model.width - x)), data.draw(st.integers(1, view.model.height - y)))
    on_screen = view.rect_to_screen(rect)
    assert on_screen.within(view.shown)
    for corner in ((rect.x, rect.y), (rect.right - 1, rect.bottom - 1)):
        assert on_screen.contains(view.to_screen(corner))
    assert rect.within(view.rect_to_model(on_screen))


def test_identity_and_exact_corners() -> None:
    same = Viewport(Size(1920, 1080), Size(1920, 1080))
    assert same.to_screen((1919, 1079)) == (1919, 1079)
    half = Viewport(Size(1920, 1080), Size(960, 540))
    assert half.to_screen((0, 0)) == (1, 1)
    assert half.to_screen((959, 539)) == (1919, 1079)
    assert half.to_model((1919, 1079)) == (959, 539)
    grid = Viewport(Size(1440, 900), Size(1000, 1000))
    assert grid.to_screen((999, 999)) == (1439, 899)
    assert grid.to_screen((500, 500)) == (720, 450)


def test_region_maps_to_its_place_on_the_screen() -> None:
    view = Viewport(Size(1920, 1080), Size(400, 200), Rect(100, 50, 200, 100))
    assert view.to_screen((0, 0)) == (100, 50)
    assert view.to_screen((399, 199)) == (299, 149)
    assert view.to_model((100, 50)) == (1, 1)
    with pytest.raises(OutOfBounds):
        view.to_model((99, 50))
    with pytest.raises(OutOfBounds):
        view.to_model((300, 50))
    assert view.rect_to_model(Rect(0, 0, 101, 51)) == (0, 0, 2, 2)
    assert view.rect_to_model(Rect(0, 0, 10, 10)).empty


BEYOND = [(-1, 0), (0, -1), (100, 0), (0, 50), (99.5, 0), (-0.001, 0), (math.nan, 0), (0, math.inf), (-math.inf, 0)]


@pytest.mark.parametrize("point", BEYOND)
def test_outside_is_never_clamped(point: tuple[float, float]) -> None:
    with pytest.raises(OutOfBounds) as caught:
        Viewport(Size(1000, 500), Size(100, 50)).to_screen(point)
    assert caught.value.size == (100, 50)
    assert repr(caught.value.point) == repr(point)


def test_a_number_of_any_length_is_refused_in_few_words() -> None:
    with pytest.raises(OutOfBounds) as caught:
        Viewport(Size(9, 9), Size(9, 9)).to_screen((10**5000, 0))
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("point", [None, (1,), (1, 2, 3), ("1", 2), (True, 1), (1, None), (1j, 0), "12", {1, 2}])
def test_what_is_no_point(point: Any) -> None:
    view = Viewport(Size(10, 10), Size(10, 10))
    for attempt in (view.to_screen, view.to_model, view.distance_to_screen):
        with pytest.raises(ActionError) as caught:
            attempt(point)
        assert not isinstance(caught.value, OutOfBounds)


def test_distances_scale_and_never_vanish() -> None:
    view = Viewport(Size(2000, 1000), Size(1000, 1000), Rect(0, 0, 2000, 500))
    assert view.distance_to_screen((100, -300)) == (200, -150)
    assert view.distance_to_screen((0, -0.1)) == (0, -1)
    with pytest.raises(ActionError):
        view.distance_to_screen((math.nan, 0))
    for far in (1e308, -(10**400), math.inf):
        with pytest.raises(ActionError):
            view.distance_to_screen((0, far))


@pytest.mark.parametrize(
    ("screen", "model", "region", "error"),
    [
        ((0, 1), (1, 1), None, ActionError),
        ((1, 1), (1, -1), None, ActionError),
        ((9, 9), (1, 1), (0, 0, 0, 5), ActionError),
        ((9, 9), (1, 1), (5, 0, 5, 5), OutOfBounds),
        ((9, 9), (1, 1), (-1, 0, 5, 5), OutOfBounds),
    ],
)
def test_impossible_viewports(screen: Any, model: Any, region: Any, error: type[ActionError]) -> None:
    with pytest.raises(error):
        Viewport(screen, model, region)


def test_plain_tuples_become_sizes() -> None:
    assert Viewport((4, 3), (2, 1), (0, 0, 1, 1)) == Viewport(Size(4, 3), Size(2, 1), Rect(0, 0, 1, 1))  # type: ignore[arg-type]


def test_checks_return_what_they_let_pass() -> None:
    assert check_point((9, 9), (10, 10)) == (9, 9)
    assert check_region(Rect(5, 5, 5, 5), (10, 10)) == (5, 5, 5, 5)
    with pytest.raises(OutOfBounds) as caught:
        check_region(Rect(5, 5, 6, 5), (10, 10))
    assert caught.value.point == (10, 9)


@given(RECTS, RECTS)
def test_rectangles_are_sets_of_pixels(a: Rect, b: Rect) -> None:
    assert pixels(a.intersect(b)) == pixels(a) & pixels(b)
    assert pixels(a) | pixels(b) <= pixels(a.union(b))
    assert a.within(b) == (pixels(a) <= pixels(b))
    assert a.union(b) == b.union(a)
    assert a.empty == (not pixels(a))
    assert all(a.contains(point) for point in pixels(a))


@given(RECTS, st.integers(0, 4))
def test_inflate(a: Rect, by: int) -> None:
    grown = a.inflate(by)
    assert a.within(grown)
    assert grown.inflate(-by) == (a if not a.empty else (0, 0, 0, 0))
    assert a.empty or grown.size == (a.width + 2 * by, a.height + 2 * by)
    assert Rect(0, 0, 4, 9).inflate(-2) == (0, 0, 0, 0)
