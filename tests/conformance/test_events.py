"""Every action gives exactly the events expected of it, as an independent X client receives them: over X11 and VNC alike."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import deskhand
from conformance.fake import FENCE, MOUSE_BUTTONS, POINTER, FakeServer, rectangle, serve, update
from conformance.servers import Place, serving
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
from deskhand._core.events import PointerMove
from deskhand.actions import ACTIONS
from deskhand.desktop.clicks import Clicks
from faults.helpers import until
from integration.observer import Observer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from deskhand import Action

STARTS = [(0, 0), (320, 240), (639, 479)]
AT = (100, 80)
# Modifiers in an event's state, by their bit.
MODIFIERS = {0: "Shift", 2: "Control", 3: "Alt", 6: "Super", 7: "AltGr"}


class Eventful(Observer):
    """An observer that passes over moves to where the pointer is.

    A VNC server is told the pointer's place with each button, and tells X of it or not. When X was told, nothing says: so the
    pointer is moved across the screen and back, which X is told of after all that came before.
    """

    at: list[int] | None = None

    def __init__(self, desktop: deskhand.Desktop, environment: Mapping[str, str]) -> None:
        super().__init__(environment)
        self._backend = desktop._core.backend

    def events(self) -> list[dict[str, Any]]:
        (x, y), (width, height) = self._backend.screen.pointer, self._backend.size
        seen: list[dict[str, Any]] = []
        for place in ((x + width // 2) % width, (y + height // 2) % height), (x, y):
            self._move(place, seen)
        kept = []
        for event in seen:
            if event["kind"] != "motion" or event["at"] != self.at:
                kept.append(event)
            self.at = event["at"]
        return kept

    def _move(self, place: tuple[int, int], seen: list[dict[str, Any]]) -> None:
        """Move the pointer, and read until that is the last event; it is not kept."""
        self._backend.send([PointerMove(*place)])
        before = len(seen)

        def came() -> bool:
            seen.extend(super(Eventful, self).events())
            return len(seen) > before and (seen[-1]["kind"], seen[-1]["at"]) == ("motion", list(place))

        until(came, 30, f"the pointer at {place}")
        seen.pop()


def without_idle_moves(events: Sequence[str], start: tuple[int, int]) -> list[str]:
    """What it makes of these."""
    kept, at = [], "move {},{}".format(*start)
    for event in events:
        if event != at:
            kept.append(event)
        at = event if event.startswith("move") else at
    return kept


# It hands a button's release on after that of the key behind it, now and then, once twice in a row.
X11VNC_TRIES = 10

# What is driven through its X socket: every event is the one that was sent.
OVER_X = {"x11", "docker"}


@pytest.fixture(
    scope="module",
    params=[
        "x11",
        "xvnc",
        "x11vnc",
        *(pytest.param(name, marks=pytest.mark.soak) for name in ("x0tigervnc", "docker", "docker-vnc")),
    ],
)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """A small desktop without a window manager, so that nobody else takes an event."""
    with serving(request.param) as place:
        yield place


@pytest.fixture(scope="module")
def desktop(place: Place) -> Iterator[deskhand.Desktop]:
    """The same, with a driver."""
    with place.connect() as desktop:
        yield desktop


@pytest.fixture(scope="module")
def observer(place: Place, desktop: deskhand.Desktop) -> Iterator[Observer]:
    """Its observer."""
    environment = place.environment
    assert environment is not None
    with Observer(environment) if place.name in OVER_X else Eventful(desktop, environment) as observer:
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
    (
        [LeftMouseDown(AT), LeftMouseUp((90, 80))],
        ["move 100,80", "+button1", "move 92,80", "move 91,80", "move 90,80", "-button1"],
    ),
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
    ([KeyHold(["shift", "Right"], 0.1)], ["+Shift_L", "Shift +Right", "Shift -Right", "Shift -Shift_L"]),
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
    # Nobody counts clicks here: those of the test before need no waiting for.
    desktop._core.clicks = Clicks()
    if isinstance(observer, Eventful):
        # Its events wait for the pointer there. With `perform`, the server would be waited for twice more in each test.
        desktop._core.backend.send([PointerMove(*start)])
    else:
        desktop.perform(Move(start), settle=False)
    observer.events()
    desktop.perform(*actions, settle=False)
    seen = observer.events()
    assert desktop.pressed == ()
    return [spelled(event) for event in seen]


def test_table_has_every_action() -> None:
    assert {type(action).type for actions, _ in TABLE for action in actions} | {Drag.type} == set(ACTIONS)


@pytest.mark.parametrize(
    "start", [pytest.param(start, marks=pytest.mark.soak if start != STARTS[1] else []) for start in STARTS]
)
@pytest.mark.parametrize(("actions", "expected"), TABLE, ids=[" ".join(map(repr, actions)) for actions, _ in TABLE])
def test_events(  # noqa: PLR0917 # fixtures
    place: Place,
    desktop: deskhand.Desktop,
    observer: Observer,
    start: tuple[int, int],
    actions: Sequence[Action],
    expected: list[str],
) -> None:
    if any("button6" in event or "button7" in event for event in expected) and not place.has("horizontal_wheel"):
        expected = [event for event in expected if "button6" not in event and "button7" not in event]
    if not place.has("side_buttons"):
        expected = [event.replace("button8", "XF86_Back").replace("button9", "XF86_Forward") for event in expected]
    seen = perform_from(desktop, observer, start, actions)
    if place.name not in OVER_X:
        expected = without_idle_moves(expected, start)
    for _ in range(X11VNC_TRIES - 1):
        if place.name == "x11vnc" and seen != expected:
            seen = perform_from(desktop, observer, start, actions)
    assert seen == expected
    if not any("move" in event for event in expected):
        assert desktop.pointer == start


PATHS = [
    [(10, 10), (600, 400)],
    [(600, 400), (10, 10), (10, 300), (11, 300), (10, 10)],
    [(50, 50), (50, 50)],
    [(300, 200)],
]


@pytest.mark.parametrize(
    ("start", "button", "path"),
    [*((STARTS[1], 1, path) for path in PATHS), *((start, 3, PATHS[-1]) for start in STARTS[::2])],
    ids=str,
)
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
    assert len(desktop.pressed) == 2
    desktop.perform(Move((200, 200)), KeyPress(["c"]), settle=False)
    *moves, press, release = [spelled(event) for event in observer.events()]
    assert moves[-1] == "move 200,200"
    assert all(move.startswith("move") for move in moves), "a drag of what is held"
    assert [press, release] == ["Control +c", "Control -c"]
    desktop.perform(MouseUp("left"), ReleaseKeys(["ctrl"]), settle=False)
    assert [spelled(event) for event in observer.events()] == ["Control -button1", "Control -Control_L"]
    assert desktop.pressed == ()


def test_release_all(desktop: deskhand.Desktop, observer: Observer) -> None:
    desktop.perform(PressKeys(["ctrl", "shift"]), MouseDown("right", AT), settle=False)
    observer.events()
    desktop.release()
    released = [spelled(event).split()[-1] for event in observer.events()]
    assert released == ["-button3", "-Shift_L", "-Control_L"]


@pytest.fixture
def pointer_map(place: Place) -> Iterator[Callable[[Mapping[int, int]], None]]:
    """Sets what applications see of some of the pointer's own buttons, as `xmodmap -e "pointer = ..."` does."""

    def change(buttons: Mapping[int, int]) -> None:
        code = (
            "import sys; from Xlib.display import Display; d = Display(); n = len(d.get_pointer_mapping()); "
            "new = dict(eval(sys.argv[1])); assert d.set_pointer_mapping([new.get(i, i) for i in range(1, n + 1)]) == 0"
        )
        subprocess.run([sys.executable, "-c", code, repr(dict(buttons))], env=place.environment, check=True)

    yield change
    change({})


@pytest.mark.parametrize("place", ["x11"], indirect=True)
def test_buttons_are_those_that_applications_see(
    desktop: deskhand.Desktop, observer: Observer, pointer_map: Callable[[Mapping[int, int]], None]
) -> None:
    """For the left-handed too, also when it changes under the driver."""
    for buttons in ({1: 3, 3: 1}, {}, {1: 2, 2: 3, 3: 1}):
        pointer_map(buttons)
        for click, number in ((LeftClick(AT), 1), (MiddleClick(AT), 2), (RightClick(AT), 3)):
            desktop.perform(Move((9, 9)), settle=False)
            observer.events()
            desktop.perform(click, settle=False)
            assert [spelled(event) for event in observer.events()] == ["move 100,80", *tap(f"button{number}")]


@pytest.mark.parametrize("place", ["x11"], indirect=True)
def test_a_button_that_the_pointer_has_not_is_refused(
    desktop: deskhand.Desktop, observer: Observer, pointer_map: Callable[[Mapping[int, int]], None]
) -> None:
    pointer_map({3: 0})
    observer.events()
    with pytest.raises(deskhand.UnsupportedAction, match=r"press button 3.*pointer map has no such button"):
        desktop.perform(KeyPress(["a"]), RightClick(AT), settle=False)
    assert not any(event["kind"] == "button" for event in observer.events())
    assert desktop.pressed == ()
    pointer_map({})
    desktop.perform(RightClick(AT), settle=False)
    assert [spelled(event) for event in observer.events()][-2:] == tap("button3")


@pytest.mark.parametrize("name", ["Caps_Lock", "Num_Lock"])
def test_a_lock_toggles_both_ways(desktop: deskhand.Desktop, observer: Observer, name: str) -> None:
    states = []
    for _ in range(2):
        desktop.perform(KeyPress([name]), settle=False)
        desktop.perform(LeftClick(), settle=False)
        states.append(next(event["state"] & 0x12 for event in observer.events() if event["kind"] == "button") != 0)
    assert states == [True, False]


@pytest.mark.parametrize("lock", [False, True])
@pytest.mark.parametrize("place", ["xvnc", "x0tigervnc"], indirect=True)
def test_keys_of_the_keypad_find_the_lock_that_they_need(
    desktop: deskhand.Desktop, observer: Observer, *, lock: bool
) -> None:
    presses = [KeyPress(["Num_Lock"])] if lock else []
    desktop.perform(*presses, settle=False)
    observer.events()
    desktop.perform(KeyPress(["KP_5"]), KeyPress(["KP_Home"]), KeyPress(["KP_Add"]), LeftClick(), settle=False)
    seen = [(e.get("name"), bool(e["state"] & 0x10)) for e in observer.events() if e.get("down")]
    desktop.perform(*presses, settle=False)
    # The observer names a key without regard to the lock; the click finds the lock as it was.
    found = [event for event in seen if event[0] != "Num_Lock"]
    assert found == [("KP_Begin", True), ("KP_Home", False), ("KP_Add", lock), (None, lock)]


def test_borrowed_keys_arrive_as_their_characters(place: Place, desktop: deskhand.Desktop, observer: Observer) -> None:
    observer.events()
    seen = desktop.perform(Type("ж☕😀"), settle=False)
    if not place.has("any_key"):
        assert seen.unanswered
        return
    pressed = [event["keysym"] for event in observer.events() if event["down"]]
    assert pressed == [0x0100_0000 | ord(char) for char in "ж☕😀"]


def test_side_buttons_over_vnc_where_the_server_knows_them() -> None:
    """No server of the table does; this one says so, and hears the extended message: place, and bits 7 and 8 behind it."""
    heard: list[tuple[int, bytes]] = []
    known = update(rectangle((0, 0, 0, 0), MOUSE_BUTTONS))
    server = FakeServer(lambda client: serve(client, (640, 480), then=[known, FENCE], heard=heard))
    with deskhand.connect(server.url) as desktop:
        # Its extension is known before the screen is: a fence is behind it.
        desktop.screenshot()
        desktop.perform(BackClick(AT), ForwardClick(AT), LeftClick(AT), settle=False)
    server.join(5)
    at = bytes([0, 100, 0, 80])
    moved, released, left = (bytes([mask]) + at for mask in (0, 0, 1))
    back, forward = bytes([0x80]) + at + b"\x01", bytes([0x80]) + at + b"\x02"
    sent = [body for kind, body in heard if kind == POINTER]
    assert sent == [moved, back, released, moved, forward, released, moved, left, released]
