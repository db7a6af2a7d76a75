"""When turning the wheel is given up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from deskhand._core.geometry import Point, Rect
from deskhand.desktop.scrolling import Scroll


@pytest.mark.parametrize(
    ("changed", "goes_on"), [((615, 180, 5, 42), False), ((220, 180, 400, 300), True)], ids=["a bar", "the list"]
)
def test_a_scroll_bar_that_fades_is_not_scrolling(changed: tuple[int, int, int, int], *, goes_on: bool) -> None:
    changes: list[tuple[int, int, int, int]] = []
    screen = SimpleNamespace(generation=1, changes=lambda _: changes)
    backend: Any = SimpleNamespace(screen=screen, send=lambda _: None)
    now = [0.0]
    element: Any = SimpleNamespace(box=Rect(220, 3000, 400, 20), ref="e9")
    over: Any = SimpleNamespace(
        box=Rect(220, 178, 400, 300), point=Point(420, 328), covered_by=None, line=lambda: "listbox [e4]"
    )
    scroll = Scroll(backend, lambda: now[0], lambda _: False)
    found: Any = None
    assert scroll.step(found, element, over, quiet=True)[0]
    now[0], screen.generation = 1.5, 2
    changes.append(changed)
    did, why = scroll.step(found, element, over, quiet=True)
    assert did is goes_on
    assert ("does not bring it" in why) is not goes_on
