"""CSS's words for the names that X clients give their cursors."""

from __future__ import annotations

from deskhand import Point
from deskhand._core.geometry import Size, Viewport
from deskhand._core.observation import Screenshot
from deskhand._core.pointer_shapes import _SHAPES, pointer_shape
from deskhand.launchers.docker.spec import ContainerSpec

# https://www.w3.org/TR/css-ui-4/#cursor, but for `auto`, which is no shape.
_WORDS = """
    default none context-menu help pointer progress wait cell crosshair text vertical-text alias copy move no-drop not-allowed
    grab grabbing e-resize n-resize ne-resize nw-resize s-resize se-resize sw-resize w-resize ew-resize ns-resize nesw-resize
    nwse-resize col-resize row-resize all-scroll zoom-in zoom-out
"""
CSS = set(_WORDS.split())


def test_names_become_words_of_css() -> None:
    assert set(_SHAPES.values()) <= CSS
    told = {name: pointer_shape(name) for name in ("xterm", "hand2", "left_ptr", "watch", "pointing_hand", "size_hor")}
    assert told == {
        "xterm": "text",
        "hand2": "pointer",
        "left_ptr": "default",
        "watch": "wait",
        "pointing_hand": "pointer",
        "size_hor": "ew-resize",
    }


def test_words_of_css_and_unknown_names_stay() -> None:
    for name in (*CSS, "", "gumby", "Left_Ptr"):
        assert pointer_shape(name) == name


def test_a_picture_has_none_unless_it_is_told() -> None:
    size = Size(1, 1)
    assert Screenshot(bytes(3), "raw", Viewport(size, size), Point(0, 0), 0).pointer_shape == ""


def test_cursors_in_containers_are_still_unless_programs_animate() -> None:
    assert ContainerSpec().environment["XCURSOR_ANIM"] == "0"
    assert "XCURSOR_ANIM" not in ContainerSpec(animations=True).environment
