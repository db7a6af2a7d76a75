"""What menus and the like cover: their place, while they are opaque and above all else."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from Xlib import X, display
from Xlib.ext import shape

import deskhand
from deskhand import Rect

from .stage import BACKGROUND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PLACE = (50, 60, 200, 100)


@pytest.fixture
def server(desktop: deskhand.Desktop, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client of the desktop's X server."""
    for name, value in desktop._core.environment.items():
        monkeypatch.setenv(name, value)
    client = display.Display(os.environ["DISPLAY"])
    yield client
    client.close()


def window(server: Any, place: tuple[int, int, int, int] = PLACE, *, free: bool = True, **how: Any) -> Any:
    """A window that is not mapped yet."""
    screen = server.screen()
    inputs = how.get("window_class") == X.InputOnly
    drawn = {} if inputs else {"background_pixel": BACKGROUND}
    depth = 0 if inputs else screen.root_depth
    made = screen.root.create_window(*place, 0, depth, override_redirect=free, **drawn, **how)
    server.sync()
    return made


def covers(desktop: deskhand.Desktop, server: Any) -> list[Rect]:
    server.sync()
    desktop._core.backend.look()
    return [area for area, _ in desktop._core.backend.covers()]


def test_a_menu_covers_its_place_while_it_is_there(desktop: deskhand.Desktop, server: Any) -> None:
    menu = window(server)
    assert covers(desktop, server) == []
    menu.map()
    assert covers(desktop, server) == [Rect(*PLACE)]
    menu.configure(x=70)
    assert covers(desktop, server) == [Rect(70, *PLACE[1:])]
    menu.unmap()
    assert covers(desktop, server) == []
    menu.map()
    menu.destroy()
    assert covers(desktop, server) == []


def test_its_border_is_a_part_of_it(desktop: deskhand.Desktop, server: Any) -> None:
    menu = server.screen().root.create_window(10, 10, 20, 20, 3, server.screen().root_depth, override_redirect=True)
    menu.map()
    assert covers(desktop, server) == [Rect(10, 10, 26, 26)]


def _shaped(server: Any) -> None:
    made = window(server)
    made.shape_rectangles(
        shape.SO.Set, shape.SK.Bounding, X.Unsorted, 0, 0, [{"x": 0, "y": 0, "width": 5, "height": 5}]
    )
    made.map()


def _frame(server: Any) -> None:
    frame, client = window(server), window(server, free=False)
    client.reparent(frame, 0, 0)
    frame.map()


def _lowered(server: Any) -> None:
    window(server).map()
    menu = window(server)
    menu.map()
    menu.configure(stack_mode=X.Below)


def _below_another(server: Any) -> None:
    other, menu = window(server), window(server)
    menu.map()
    other.configure(x=PLACE[0] + 10, stack_mode=X.Above)


@pytest.mark.parametrize(
    "make",
    [
        lambda server: window(server, window_class=X.InputOnly).map(),
        lambda server: window(server, free=False).map(),
        _shaped,
        _frame,
        _lowered,
        _below_another,
    ],
    ids=["nothing is drawn in it", "it is managed", "shaped", "a frame", "lowered", "below another"],
)
def test_what_may_not_cover_all_of_its_place_is_none(
    desktop: deskhand.Desktop, server: Any, make: Callable[[Any], None]
) -> None:
    make(server)
    assert covers(desktop, server) == []


def test_what_is_seen_through_covers_nothing(desktop: deskhand.Desktop, server: Any) -> None:
    """Where a compositor runs, pixels may have an alpha channel."""
    screen = server.screen()
    visual = next(visual for depth in screen.allowed_depths if depth.depth == 32 for visual in depth.visuals)
    colours = screen.root.create_colormap(visual.visual_id, X.AllocNone)
    how = {"colormap": colours, "border_pixel": 0, "background_pixel": 0, "override_redirect": True}
    for composited in (False, True):
        owner = screen.root.create_window(0, 0, 1, 1, 0, screen.root_depth)
        if composited:
            owner.set_selection_owner(server.intern_atom("_NET_WM_CM_S0"), X.CurrentTime)
        menu = screen.root.create_window(*PLACE, 0, 32, X.InputOutput, visual.visual_id, **how)
        menu.map()
        assert covers(desktop, server) == [] if composited else [Rect(*PLACE)]
        menu.destroy()


def test_what_changed_before_it_was_covered_is_asked(desktop: deskhand.Desktop, server: Any) -> None:
    reader = desktop._core.elements.tree
    screen = server.screen()
    pen = screen.root.create_gc(foreground=0xFF0000, subwindow_mode=X.IncludeInferiors)
    for drawn, told in ((False, True), (True, False)):
        desktop.elements()
        assert reader.generation == desktop._core.backend.screen.generation
        if drawn:
            screen.root.fill_rectangle(pen, 60, 70, 5, 5)
            covers(desktop, server)
        menu = window(server)
        menu.map()
        assert covers(desktop, server) == [Rect(*PLACE)]
        assert [area for area, _ in reader._covers()] == [PLACE] * told
        menu.destroy()
        server.sync()
