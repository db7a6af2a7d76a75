"""What a query matches, which text labels a field, and what is in the way of an element."""

from __future__ import annotations

import re
from typing import Any

import pytest

from deskhand import Element, Elements, Point, Rect
from deskhand._core.elements import Query, role_names
from deskhand._core.labels import nearest_label
from deskhand.desktop.elements import own_point


def element(ref: str, role: str, name: str = "", box: Rect | None = None, **more: Any) -> Element:
    box = box or Rect(0, 0, 10, 10)
    return Element(
        **{
            "ref": ref,
            "role": role,
            "name": name,
            "box": box,
            "point": Point(box.x, box.y),
            "native_role": role,
            **more,
        }
    )


@pytest.mark.parametrize(
    ("query", "role", "native", "name", "matches"),
    [
        (Query("button"), "button", "push-button", "", True),
        (Query("push-button"), "button", "push-button", "", True),
        (Query("text"), "text", "label", "", True),
        (Query("text"), "textbox", "text", "", False),
        (Query("menu"), "menuitem", "menu", "", False),
        (Query("label"), "text", "label", "", True),
        (Query(name="save as"), "button", "", " Save   As... ", True),
        (Query(name="Save As", exact=True), "button", "", " Save  As ", True),
        (Query(name="save as", exact=True), "button", "", "Save As", False),
        (Query(name="Save", exact=True), "button", "", "Save As", False),
        (Query(name=re.compile("^S")), "button", "", "Save", True),
    ],
)
def test_matching(query: Query, role: str, native: str, name: str, *, matches: bool) -> None:
    assert query.matches(element("e1", role, name, native_role=native)) is matches


FIELD = Rect(100, 100, 200, 30)


@pytest.mark.parametrize(
    ("texts", "others", "label"),
    [
        ({"left": Rect(20, 105, 60, 20)}, [], "left"),
        ({"above": Rect(100, 75, 60, 20)}, [], "above"),
        ({"above": Rect(100, 75, 60, 20), "left": Rect(20, 105, 60, 20)}, [], "left"),
        ({"far": Rect(0, 105, 20, 20), "near": Rect(60, 105, 30, 20)}, [], "near"),
        ({"right": Rect(310, 105, 60, 20)}, [], None),
        ({"below": Rect(100, 140, 60, 20)}, [], None),
        ({"other line": Rect(20, 60, 60, 20)}, [], None),
        ({"another's": Rect(0, 105, 30, 20)}, [Rect(40, 100, 50, 30)], None),
        ({"another's": Rect(100, 40, 60, 20)}, [Rect(100, 62, 200, 20)], None),
        ({"left": Rect(20, 105, 60, 20)}, [FIELD, Rect(95, 95, 210, 40), Rect(0, 200, 90, 30)], "left"),
    ],
)
def test_labels(texts: dict[str, Rect], others: list[Rect], label: str | None) -> None:
    assert nearest_label(FIELD, [(box, text) for text, box in texts.items()], others) == label


def test_a_name_counts_before_a_place() -> None:
    window = element("e0", "window", "Form", Rect(0, 0, 500, 500))
    text = element("e1", "text", "Name:", Rect(20, 100, 60, 20), depth=1, parent="e0")
    beside = element("e2", "textbox", "", Rect(100, 100, 200, 30), depth=1, parent="e0")
    named = element("e3", "textbox", "Name", Rect(100, 300, 200, 30), depth=1, parent="e0")
    assert Elements((window, text, beside)).find_all(Query(label="name")) == [beside]
    assert Elements((window, text, beside, named)).find_all(Query(label="name")) == [named]
    assert Elements((window, text, beside)).find_all(Query("button", label="name")) == []


def test_what_is_in_the_way() -> None:
    window = element("e0", "window", native_role="frame")
    button = element("e1", "button", depth=1, parent="e0")
    popover = element("e2", "generic", states=frozenset({"modal"}), depth=1, parent="e0")
    inner = element("e3", "button", depth=2, parent="e2")
    dialog = element("e4", "dialog", states=frozenset({"modal"}))
    close = element("e5", "button", depth=1, parent="e4")
    menu = element("e6", "window", native_role="window")
    item = element("e7", "menuitem", native_role="menu", depth=1, parent="e6")
    other = element("e8", "button", pid=7)
    plain = Elements((window, button, other))
    assert plain.behind(button) is None
    assert Elements((window, button, popover, inner)).behind(button) == popover
    assert Elements((window, button, popover, inner)).behind(inner) is None
    both = Elements((window, button, dialog, close, other))
    assert both.behind(button) == dialog
    assert both.behind(close) is None
    assert both.behind(other) is None
    opened = Elements((window, button, dialog, close, menu, item))
    assert opened.behind(item) is None
    # A list that a dialog has opened is in the way of the dialog too, but not of the field below which it opened.
    ask = element("e4", "dialog", native_role="dialog", states=frozenset({"modal"}))
    field = element("e9", "textbox", depth=1, parent="e4", states=frozenset({"focused", "editable"}))
    asked = Elements((window, button, ask, close, field, menu, item))
    assert asked.behind(close) == menu
    assert asked.in_the_way(close).endswith("which must be closed first (Escape closes it)")
    assert asked.behind(field) is None
    assert Elements((window, button, menu, item)).behind(button) == menu


def test_a_window_is_one_whatever_its_toolkit_calls_it() -> None:
    filler = 20
    assert role_names(filler, "") == ("window", "filler")
    assert role_names(filler, "window") == ("generic", "filler")


@pytest.mark.parametrize(
    ("box", "point", "child", "own"),
    [
        # The whole item, with two items below its line.
        (Rect(0, 100, 200, 90), Point(100, 145), Rect(20, 130, 180, 30), Point(100, 115)),
        # The window ends in the first of these.
        (Rect(0, 100, 200, 90), Point(100, 135), Rect(20, 130, 180, 30), Point(100, 115)),
        # Ten pixels of its line are scrolled out at the top, or all of it.
        (Rect(0, 100, 200, 90), Point(100, 150), Rect(20, 130, 180, 30), Point(100, 120)),
        (Rect(0, 100, 200, 90), Point(100, 170), Rect(20, 130, 180, 30), None),
        # Its box is its line, or the item below begins under its middle.
        (Rect(0, 100, 200, 30), Point(100, 115), Rect(20, 130, 180, 30), None),
        (Rect(0, 100, 200, 60), Point(100, 130), Rect(20, 140, 180, 20), None),
    ],
)
def test_an_item_is_clicked_on_its_own_line(box: Rect, point: Point, child: Rect, own: Point | None) -> None:
    parent = element("e1", "treeitem", "Parent", box, point=point, depth=1)
    group = element("e2", "group", box=child, depth=2, parent="e1")
    found = [
        parent,
        group,
        element("e3", "treeitem", "Child", child, depth=3, parent="e2"),
        element("e4", "treeitem", depth=1),
    ]
    assert own_point(Elements(found, (), 1), parent) == own
    assert own_point(Elements(found, (), 1), found[2]) is None
    assert own_point(Elements([parent, found[3]], (), 1), parent) is None
