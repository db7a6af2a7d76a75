"""Every action gives exactly the events expected of it, as an independent X client receives them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import deskhand
from deskhand import (
    BackClick,
    CursorPosition,
    DoubleClick,
    Drag,
    ForwardClick,
    KeyHold,
    KeyPress,
    LeftClick,
    LeftMouseDown,
    LeftMouseUp,
    MiddleClick,
    MouseDown,
    MouseUp,
    Move,
    PressKeys,
    ReleaseKeys,
    RightClick,
    Scroll,
    TakeScreenshot,
    TripleClick,
    Type,
    Wait,
    Zoom,
)
from deskhand.actions import ACTIONS
from integration.apps import environment_of
from integration.observer import Observer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deskhand import Action

SIZE = (640, 480)
STARTS = [(0, 0), (320, 240), (639, 479)]
AT = (100, 80)
# Modifiers in an event's state, by their bit.
MODIFIERS = {0: "Shift", 2: "Control", 3: "Alt", 6: "Super", 7: "AltGr"}


@pytest.fixture(scope="module")
def desktop() -> Iterator[deskhand.Desktop]:
    """A small desktop without a window manager, so that nobody else takes an event."""
    with deskhand.launch(size=SIZE, window_manager=None) as desktop:
        yield desktop


@pytest.fixture(scope="module")
def observer(desktop: deskhand.Desktop) -> Iterator[Observer]:
    """Its observer."""
    with Observer(environment_of(desktop)) as observer:
        yield observer


def spelled(event: dict[str, Any]) -> str:
    """An event as the tables below write it: `Shift +a`, `-button1`, `move 3,4`."""
    if event["kind"] == "motion":
        return "move {},{}".format(*event["at"])
    held = [name for bit, name in MODIFIERS.items() if event["state"] >> bit & 1]
    sign = "+" if event["down"] else "-"
    what = event["name"] if event["kind"] == "key" else f"button{event['button']}"
    return " ".join([*held, sign + what])


def tap(what: str, count: int = 1) -> list[str]:
    return [f"+{what}", f"-{what}"] * count


def shifted(upper: str, lower: str) -> list[str]:
    # Shift is released as soon as its key is down, so that the next key need not wait for it.
    return ["+Shift_L", f"Shift +{upper}", "Shift -Shift_L", f"-{lower}"]


def click(number: int, count: int = 1) -> list[str]:
    return ["move 100,80", *tap(f"button{number}", count)]


TABLE: list[tuple[Sequence[Action], list[str]]] = [
    # The seventeen.
    ([LeftMouseDown(AT), LeftMouseUp(AT)], ["move 100,80", "+button1", "move 100,80", "-button1"]),
    ([LeftMouseDown(AT), LeftMouseUp((9, 9))], ["move 100,80", "+button1", "move 9,9", "-button1"]),
    ([LeftClick(AT)], click(1)),
    ([LeftClick()], tap("button1")),
    ([DoubleClick(AT)], click(1, 2)),
    ([TripleClick(AT)], click(1, 3)),
    ([MiddleClick(AT)], click(2)),
    ([RightClick(AT)], click(3)),
    ([BackClick(AT)], click(8)),
    ([ForwardClick(AT)], click(9)),
    ([KeyPress(["a"])], tap("a")),
    ([KeyPress(["A"])], shifted("A", "a")),
    ([KeyPress(["ctrl", "s"])], ["+Control_L", "Control +s", "Control -s", "Control -Control_L"]),
    (
        [KeyPress(["ctrl+shift+Tab"])],
        [
            "+Control_L",
            "Control +Shift_L",
            "Shift Control +ISO_Left_Tab",
            "Shift Control -ISO_Left_Tab",
            "Shift Control -Shift_L",
            "Control -Control_L",
        ],
    ),
    ([KeyPress(["alt", "F4"])], ["+Alt_L", "Alt +F4", "Alt -F4", "Alt -Alt_L"]),
    ([KeyPress(["super"])], ["+Super_L", "Super -Super_L"]),
    ([KeyHold(["w"], 0.1)], tap("w")),
    ([KeyHold(["shift", "Right"], 0.4)], ["+Shift_L", "Shift +Right", "Shift -Right", "Shift -Shift_L"]),
    ([Move(AT)], ["move 100,80"]),
    ([TakeScreenshot()], []),
    ([Scroll(AT)], click(5, 3)),
    ([Scroll(AT, magnitude=2)], click(5, 2)),
    ([Scroll(AT, magnitude=-2)], click(4, 2)),
    ([Scroll(AT, direction="up")], click(4, 3)),
    ([Scroll(AT, direction="down", magnitude=1)], click(5)),
    ([Scroll(AT, direction="left", magnitude=2)], click(6, 2)),
    ([Scroll(AT, direction="right", magnitude=2)], click(7, 2)),
    ([Scroll(AT, distance_xy=(0, 300))], click(5, 3)),
    ([Scroll(AT, distance_xy=(0, -200))], click(4, 2)),
    ([Scroll(AT, distance_xy=(100, -100))], [*click(4), *tap("button7")]),
    ([Scroll(AT, distance_xy=(0, 100), direction="up", magnitude=9)], click(5)),
    ([Scroll(AT, magnitude=0)], click(5, 0)),
    (
        [Type("aB1!")],
        [*tap("a"), *shifted("B", "b"), *tap("1"), *shifted("exclam", "1")],
    ),
    ([Type("\n\t")], [*tap("Return"), *tap("Tab")]),
    ([Wait(0.01)], []),
    # What goes beyond them.
    (
        [LeftClick(AT, modifiers=["ctrl"])],
        ["+Control_L", "move 100,80", "Control +button1", "Control -button1", "Control -Control_L"],
    ),
    (
        [Scroll(AT, magnitude=1, modifiers=["shift"])],
        ["+Shift_L", "move 100,80", "Shift +button5", "Shift -button5", "Shift -Shift_L"],
    ),
    ([Move(AT, modifiers=["alt"])], ["+Alt_L", "move 100,80", "Alt -Alt_L"]),
    ([KeyPress(["Down"], repeat=3)], tap("Down", 3)),
    (
        [KeyPress(["ctrl", "z"], repeat=2)],
        ["+Control_L", "Control +z", "Control -z", "Control +z", "Control -z", "Control -Control_L"],
    ),
    *(
        ([MouseDown(name, AT), MouseUp(name)], click(number))
        for name, number in (("left", 1), ("middle", 2), ("right", 3), ("back", 8), ("forward", 9))
    ),
    (
        [PressKeys(["ctrl", "shift"]), LeftClick(AT), ReleaseKeys(["ctrl", "shift"])],
        [
            "+Control_L",
            "Control +Shift_L",
            "move 100,80",
            "Shift Control +button1",
            "Shift Control -button1",
            "Shift Control -Shift_L",
            "Control -Control_L",
        ],
    ),
    (
        [PressKeys(["shift"]), Type("ab"), ReleaseKeys(["shift"])],
        ["+Shift_L", "Shift +A", "Shift -A", "Shift +B", "Shift -B", "Shift -Shift_L"],
    ),
    ([Zoom((0, 0, 50, 50))], []),
    ([CursorPosition()], []),
    ([LeftClick((0, 0))], ["move 0,0", *tap("button1")]),
    ([LeftClick((639, 479))], ["move 639,479", *tap("button1")]),
]


def perform_from(
    desktop: deskhand.Desktop, observer: Observer, start: tuple[int, int], actions: Sequence[Action]
) -> list[str]:
    """What the observer receives of these actions, with the pointer at `start` before."""
    desktop.perform(Move(start), settle=False)
    observer.events()
    desktop.perform(*actions, settle=False)
    seen = observer.events()
    assert desktop.held == ()
    return [spelled(event) for event in seen]


def test_table_has_every_action() -> None:
    assert {type(action).type for actions, _ in TABLE for action in actions} | {Drag.type} == set(ACTIONS)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize(("actions", "expected"), TABLE, ids=[" ".join(map(repr, actions)) for actions, _ in TABLE])
def test_events(
    desktop: deskhand.Desktop,
    observer: Observer,
    start: tuple[int, int],
    actions: Sequence[Action],
    expected: list[str],
) -> None:
    assert perform_from(desktop, observer, start, actions) == expected
    if not any("move" in event for event in expected):
        assert desktop.pointer == start


PATHS = [
    [(10, 10), (600, 400)],
    [(600, 400), (10, 10), (10, 300), (11, 300), (10, 10)],
    [(50, 50), (50, 50)],
    [(300, 200)],
]


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("button", [1, 3])
@pytest.mark.parametrize("path", PATHS, ids=str)
def test_drag_visits_every_point(
    desktop: deskhand.Desktop, observer: Observer, start: tuple[int, int], button: int, path: list[tuple[int, int]]
) -> None:
    action = Drag(path, button={1: "left", 3: "right"}[button])
    seen = perform_from(desktop, observer, start, [action])
    press, release = seen.index(f"+button{button}"), seen.index(f"-button{button}")
    assert release == len(seen) - 1
    assert [event for event in seen if "button" in event] == [f"+button{button}", f"-button{button}"]
    first = path[0] if len(path) > 1 else start
    assert seen[:press] == ["move {},{}".format(*first)] * (len(path) > 1)
    moves = [tuple(map(int, event.removeprefix("move ").split(","))) for event in seen[press + 1 : release]]
    # In order, each point once more than it was passed.
    rest = iter([first, *moves])
    at = next(rest)
    for point in path:
        while at != point:
            at = next(rest)
    assert desktop.pointer == path[-1]
    for (x, y), (next_x, next_y) in zip([first, *moves], moves, strict=False):
        assert abs(next_x - x) <= 20
        assert abs(next_y - y) <= 20


def test_keys_stay_down_between_calls(desktop: deskhand.Desktop, observer: Observer) -> None:
    observer.events()
    desktop.perform(PressKeys(["ctrl"]), MouseDown("left", AT), settle=False)
    assert next(map(spelled, observer.events())) == "+Control_L"
    assert len(desktop.held) == 2
    desktop.perform(Move((200, 200)), KeyPress(["c"]), settle=False)
    assert [spelled(event) for event in observer.events()] == ["move 200,200", "Control +c", "Control -c"]
    desktop.perform(MouseUp("left"), ReleaseKeys(["ctrl"]), settle=False)
    assert [spelled(event) for event in observer.events()] == ["Control -button1", "Control -Control_L"]
    assert desktop.held == ()


def test_release_all(desktop: deskhand.Desktop, observer: Observer) -> None:
    desktop.perform(PressKeys(["ctrl", "shift"]), MouseDown("right", AT), settle=False)
    observer.events()
    desktop.release_all()
    released = [spelled(event).split()[-1] for event in observer.events()]
    assert released == ["-button3", "-Shift_L", "-Control_L"]


@pytest.mark.parametrize("name", ["Caps_Lock", "Num_Lock"])
def test_a_lock_toggles_both_ways(desktop: deskhand.Desktop, observer: Observer, name: str) -> None:
    states = []
    for _ in range(2):
        desktop.perform(KeyPress([name]), settle=False)
        desktop.perform(LeftClick(), settle=False)
        states.append(next(event["state"] & 0x12 for event in observer.events() if event["kind"] == "button") != 0)
    assert states == [True, False]


def test_borrowed_keys_arrive_as_their_characters(desktop: deskhand.Desktop, observer: Observer) -> None:
    observer.events()
    desktop.perform(Type("ж☕😀"), settle=False)
    pressed = [event["keysym"] for event in observer.events() if event["down"]]
    assert pressed == [0x0100_0000 | ord(char) for char in "ж☕😀"]
