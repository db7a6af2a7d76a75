"""How large a picture is made."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand import ActionError, Fit, Size, Viewport
from deskhand._core.sizes import MODELS, picture_size

sides = st.integers(1, 8000)
sizes = st.builds(Size, sides, sides)
fits = st.one_of(
    st.sampled_from(list(MODELS.values())),
    st.builds(Fit, sides, sides, st.integers(1, 64), st.one_of(st.none(), st.integers(1, 10_000))),
)


@pytest.mark.parametrize(
    ("size", "shown", "expected"),
    [
        (None, (1920, 1080), (1920, 1080)),
        ((1366, 768), (1920, 1080), (1366, 768)),
        (0.5, (1920, 1080), (960, 540)),
        (2, (30, 20), (60, 40)),
        (0.001, (1920, 1080), (2, 1)),
        (Fit(1280, 1280), (1920, 1080), (1280, 720)),
        (Fit(1280, 500), (1920, 1080), (889, 500)),
        (Fit(4000, 4000), (1920, 1080), (1920, 1080)),
        # Of 1,568 patches of 28 pixels, 52 across and 30 down are 1,560; one column more would make 1,590.
        ("anthropic", (1920, 1080), (1456, 819)),
        ("anthropic", (1280, 800), (1280, 800)),
        ("anthropic", (4000, 100), (1568, 39)),
        ("anthropic-high", (1920, 1080), (1920, 1080)),
        ("anthropic-high", (3840, 2160), (2576, 1449)),
        ("openai", (3840, 2160), (3840, 2160)),
    ],
)
def test_sizes(size: Any, shown: tuple[int, int], expected: tuple[int, int]) -> None:
    assert picture_size(size, Size(*shown)) == Size(*expected)


@pytest.mark.parametrize(
    "size", ["gpt", 0, -1.0, float("nan"), float("inf"), True, (1, 2, 3), (1.5, 2), [1, 2, 3], object()]
)
def test_what_is_no_size_is_refused(size: Any) -> None:
    with pytest.raises(ActionError):
        picture_size(size, Size(100, 100))


@pytest.mark.parametrize("limits", [(0, 5), (5, 0), (5, 5, 0), (5, 5, 28, 0)])
def test_a_fit_holds_at_least_a_pixel(limits: tuple[int, ...]) -> None:
    with pytest.raises(ActionError):
        Fit(*limits)


@given(fits, sizes)
def test_a_fit_is_within_its_limits_and_the_largest(fit: Fit, shown: Size) -> None:
    size = fit.of(shown)
    assert size.width <= shown.width
    assert size.height <= shown.height
    assert fit.admits(size) or max(size) == 1
    # In proportion, to the nearest pixel.
    factor = max(size) / max(shown)
    assert abs(size.width - shown.width * factor) <= 1
    assert abs(size.height - shown.height * factor) <= 1
    longest = max(shown)
    if max(size) < longest:
        longer = (max(size) + 1) / longest
        assert not fit.admits(Size(max(1, round(shown.width * longer)), max(1, round(shown.height * longer))))


@given(fits, sizes, st.data())
def test_points_map_through_any_size(fit: Fit, shown: Size, data: st.DataObject) -> None:
    viewport = Viewport(shown, fit.of(shown))
    point = data.draw(st.tuples(st.integers(0, viewport.model.width - 1), st.integers(0, viewport.model.height - 1)))
    assert viewport.to_model(viewport.to_screen(point)) == point
