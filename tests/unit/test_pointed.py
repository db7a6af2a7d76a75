"""Which element is below a pointer: windows that cover each other, menus, what is scrolled, and modal dialogs."""

from __future__ import annotations

from typing import Any

from deskhand._core.elements import Element, Elements
from deskhand._core.geometry import Point, Rect
from deskhand._core.window import Window
from deskhand.watch.pointed import element_at


def window(number: int, title: str, pid: int, rect: tuple[int, int, int, int], **more: Any) -> Window:
    return Window(number, title, "", pid, Rect(*rect), active=False, **more)


def tree(*rows: tuple[int, str, str, int, tuple[int, int, int, int]], **more: Any) -> Elements:
    """Elements of depth, AT-SPI's role, name, process and place, each after the one that it is in."""
    made: list[Element] = []
    over: list[Element] = []
    for number, (depth, role, name, pid, rect) in enumerate(rows):
        del over[depth:]
        box = Rect(*rect)
        point = None if box.empty else Point(box.x + box.width // 2, box.y + box.height // 2)
        given = {"states": more.get(name, frozenset()), "depth": depth, "parent": over[-1].ref if over else None}
        role_of = "generic" if role == "panel" else role
        element = Element(f"e{number}", role_of, name, box=box, point=point, pid=pid, native_role=role, **given)
        made.append(element)
        over.append(element)
    return Elements(tuple(made))


BACK = window(1, "Back", 1, (0, 0, 400, 300))
FRONT = window(2, "Front", 2, (100, 100, 200, 100))
TWO = (
    (0, "frame", "Back", 1, (0, 0, 400, 300)),
    (1, "push-button", "below", 1, (150, 120, 60, 30)),
    (0, "frame", "Front", 2, (100, 100, 200, 100)),
    (1, "panel", "", 2, (100, 100, 200, 100)),
    (2, "push-button", "above", 2, (110, 110, 30, 30)),
)


def name_at(elements: Elements, windows: list[Window], x: int, y: int) -> str:
    found = element_at(elements, windows, Point(x, y))
    return found if isinstance(found, str) else found.name


def test_the_window_on_top_counts() -> None:
    elements = tree(*TWO)
    assert name_at(elements, [BACK, FRONT], 120, 120) == "above"
    # What only holds others tells nothing.
    assert name_at(elements, [BACK, FRONT], 160, 130) == "Front"
    assert name_at(elements, [FRONT, BACK], 160, 130) == "below"
    hidden = window(2, "Front", 2, (100, 100, 200, 100), minimized=True)
    without = tree(*TWO[:2], *TWO[2:], Front=frozenset({"iconified"}))
    assert name_at(without, [BACK, hidden], 160, 130) == "below"
    assert name_at(elements, [BACK, FRONT], 399, 299) == "Back"
    assert name_at(elements, [BACK, FRONT], 400, 300) == "There is no element here."


def test_a_window_without_elements_hides_what_is_below_it() -> None:
    silent = window(3, "xterm\n<b>", 3, (0, 0, 200, 200))
    said = name_at(tree(*TWO), [BACK, FRONT, silent], 120, 120)
    assert said == "The window 'xterm<b>' has no elements: its program exposes no accessibility tree."


def test_a_menu_is_above_its_windows() -> None:
    menu = ((0, "window", "", 1, (140, 110, 80, 60)), (1, "menu-item", "Copy", 1, (140, 110, 80, 20)))
    elements = tree(*menu, *TWO)
    assert name_at(elements, [BACK, FRONT], 160, 120) == "Copy"


def test_what_is_scrolled_out_of_sight_is_not_there() -> None:
    rows = (
        (0, "frame", "Back", 1, (0, 0, 400, 300)),
        (1, "scroll-pane", "list", 1, (0, 0, 400, 100)),
        (2, "list-item", "half", 1, (0, 90, 400, 30)),
        (1, "push-button", "Save", 1, (0, 0, 0, 0)),
    )
    elements = tree(*rows)
    assert name_at(elements, [BACK], 10, 95) == "half"
    assert name_at(elements, [BACK], 10, 110) == "Back"


def test_what_is_behind_a_modal_dialog_of_its_window_is_not_there() -> None:
    rows = (
        (0, "frame", "Back", 1, (0, 0, 400, 300)),
        (1, "document-web", "page", 1, (0, 0, 400, 300)),
        (2, "link", "behind", 1, (110, 110, 20, 10)),
        (2, "dialog", "in front", 1, (100, 100, 200, 100)),
    )
    elements = tree(*rows, **{"in front": frozenset({"modal"})})
    assert name_at(elements, [BACK], 115, 115) == "in front"


def test_of_two_windows_of_one_title_the_place_counts() -> None:
    other = window(4, "Back", 1, (50, 50, 300, 200))
    rows = (*TWO[:2], (0, "frame", "Back", 1, (49, 28, 302, 223)), (1, "push-button", "second", 1, (60, 60, 200, 100)))
    assert name_at(tree(*rows), [BACK, other], 160, 130) == "second"
    assert name_at(tree(*rows), [other, BACK], 160, 130) == "below"


def test_a_display_without_a_window_manager_has_elements() -> None:
    assert name_at(tree(*TWO[:2]), [], 160, 130) == "below"
