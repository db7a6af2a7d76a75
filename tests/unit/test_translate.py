"""From actions to events: exact tables, and what must hold for every action there is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand import actions as act
from deskhand._core.events import Answer, ButtonDown, ButtonUp, KeyDown, KeyUp, Pause, PointerMove, Step
from deskhand._core.fields import MAX_SECONDS
from deskhand._core.geometry import Point, Size
from deskhand._core.keys import keysym
from deskhand.actions import ACTIONS, Action
from deskhand.desktop.translate import CLICK_GAP, PressedKeys, held, release, translate
from deskhand.errors import ActionError, OutOfBounds, UnsupportedAction, Untypable

SIZE = Size(1280, 800)
POINTER = Point(100, 100)


def run(action: Action, size: Size = SIZE, pointer: Point = POINTER, *, dragging: bool = False) -> list[Step]:
    return list(translate(action, size=size, pointer=pointer, dragging=dragging))


def events(script: str) -> list[Step]:
    """``@5,6`` move, ``+1 -1`` button, ``+a -a`` key, ``~0.5`` pause, ``?`` answer, ``1`` and ``a`` a press and its release."""

    def press(word: str) -> ButtonDown | KeyDown:
        return ButtonDown(int(word)) if word.isdecimal() else KeyDown(keysym(word))

    out: list[Step] = []
    for word in script.split():
        match word[0]:
            case "@":
                x, y = word[1:].split(",")
                out.append(PointerMove(int(x), int(y)))
            case "~":
                out.append(Pause(float(word[1:])))
            case "?":
                out.append(Answer())
            case "+":
                out.append(press(word[1:]))
            case "-":
                out += release([press(word[1:])])
            case _:
                out += [press(word), *release([press(word)])]
    return out


TABLE: list[tuple[Action, str]] = [
    (act.LeftMouseDown((5, 6)), "@5,6 +1"),
    (act.LeftMouseDown(), "+1"),
    (act.LeftMouseUp((5, 6)), "@5,6 -1"),
    (act.LeftMouseUp(), "-1"),
    (act.LeftClick((5, 6)), "@5,6 +1 -1"),
    (act.LeftClick(), "+1 -1"),
    (act.LeftClick((0, 0)), "@0,0 1"),
    (act.LeftClick((1279, 799)), "@1279,799 1"),
    (act.DoubleClick((5, 6)), "@5,6 1 ~0.05 1"),
    (act.TripleClick(), "1 ~0.05 1 ~0.05 1"),
    (act.DoubleClick((5, 6), button="right"), "@5,6 3 ~0.05 3"),
    (act.TripleClick(button="back"), "8 ~0.05 8 ~0.05 8"),
    (act.MiddleClick((5, 6)), "@5,6 2"),
    (act.RightClick((5, 6)), "@5,6 3"),
    (act.BackClick((5, 6)), "@5,6 8"),
    (act.ForwardClick((5, 6)), "@5,6 9"),
    (act.LeftClick((5, 6), modifiers=["ctrl", "shift"]), "+ctrl +shift @5,6 1 -shift -ctrl"),
    (act.LeftClick(modifiers=["ctrl+shift"]), "+ctrl +shift 1 -shift -ctrl"),
    (act.Move((5, 6)), "@5,6 ?"),
    (act.Move((5, 6), modifiers=["alt"]), "+alt @5,6 ? -alt"),
    (act.MouseDown("right", (5, 6)), "@5,6 +3"),
    (act.MouseUp("forward"), "-9"),
    (act.Drag([(5, 6), (25, 6)]), "@5,6 +1 ? @21,6 ? @23,6 ? @24,6 ? @25,6 ? -1"),
    (act.Drag([(5, 6), (6, 6), (6, 6)]), "@5,6 +1 ? @6,6 ? @6,6 ? -1"),
    (act.Drag([(130, 100)]), "+1 ? @115,100 ~0.004 @116,100 ? @128,100 ? @129,100 ? @130,100 ? -1"),
    (act.Drag([(5, 6), (5, 9)], "right", modifiers=["shift"]), "+shift @5,6 +3 ? @5,7 ? @5,8 ? @5,9 ? -3 -shift"),
    (
        act.Drag([(5, 6), (5, 86), (55, 86), (60, 86)]),
        (
            "@5,6 +1 ? @5,22 ? @5,26 ~0.004 @5,46 ~0.004 @5,54 ? @5,66 ~0.004 @5,86 ? "
            "@22,86 ~0.004 @38,86 ~0.004 @55,86 ? @58,86 ? @59,86 ? @60,86 ? -1"
        ),
    ),
    (act.Scroll((5, 6)), "@5,6 5 ~0.01 5 ~0.01 5"),
    (act.Scroll(direction="up", magnitude=2), "4 ~0.01 4"),
    (act.Scroll(direction="left", magnitude=1), "6"),
    (act.Scroll(direction="right", magnitude=0.1), "7"),
    (act.Scroll(direction="right", magnitude=-1), "6"),
    (act.Scroll(magnitude=1), "5"),
    (act.Scroll(magnitude=-2), "4 ~0.01 4"),
    (act.Scroll(magnitude=0), ""),
    (act.Scroll(direction="up"), "4 ~0.01 4 ~0.01 4"),
    (act.Scroll(distance_xy=(0, 200)), "5 ~0.01 5"),
    (act.Scroll(distance_xy=(0, -1)), "4"),
    (act.Scroll(distance_xy=(-149, 0)), "6"),
    (act.Scroll(distance_xy=(100, -160)), "4 ~0.01 4 ~0.01 7"),
    (act.Scroll((5, 6), distance_xy=(0, 0)), "@5,6"),
    (act.Scroll(distance_xy=(0, 100), magnitude=9, direction="left"), "5"),
    (act.Scroll((5, 6), magnitude=1, modifiers=["ctrl"]), "+ctrl @5,6 5 -ctrl"),
    (act.KeyPress(["a"]), "a"),
    (act.KeyPress(["ctrl", "s"]), "+ctrl +s -s -ctrl"),
    (act.KeyPress(["ctrl", "shift", "T"]), "+ctrl +shift +t -t -shift -ctrl"),
    (act.KeyPress(["Tab"], repeat=3), "Tab Tab Tab"),
    (act.KeyPress(["ctrl+z"], repeat=2), "+ctrl z z -ctrl"),
    (act.KeyPress(["shift"], repeat=2), "shift shift"),
    (act.KeyPress(["a", "b"], repeat=2), "+a +b -b -a +a +b -b -a"),
    (act.KeyHold(["ctrl", "w"], 1.5), "+ctrl +w ~1.5 -w -ctrl"),
    (act.PressKeys(["ctrl", "shift"]), "+ctrl +shift"),
    (act.ReleaseKeys(["ctrl", "shift"]), "-shift -ctrl"),
    (act.Type("aB"), "a B"),
    (act.Type("é☕"), "é ☕"),
    (act.Type("a\nb\r\nc\rd\te\b"), "a Return b Return c Return d Tab e BackSpace"),
    (act.Type("\n\r\n"), "Return Return"),
    (act.Type(""), ""),
    (act.Wait(), "~1.0"),
    (act.Wait(0), "~0"),
    (act.Wait(2.5), "~2.5"),
    (act.TakeScreenshot(), ""),
    (act.CursorPosition(), ""),
    (act.Zoom((0, 0, 1280, 800)), ""),
]


@pytest.mark.parametrize(("action", "script"), TABLE, ids=[f"{action.type}-{script}" for action, script in TABLE])
def test_exact_events(action: Action, script: str) -> None:
    assert run(action) == events(script)


DRAGGING: list[tuple[Action, str]] = [
    (act.Move((120, 100)), "? @116,100 ? @118,100 ? @119,100 ? @120,100 ?"),
    (act.LeftMouseUp((120, 100)), "? @116,100 ? @118,100 ? @119,100 ? @120,100 ? -1"),
    (act.MouseUp("right", (100, 103)), "? @100,101 ? @100,102 ? @100,103 ? -3"),
    (act.LeftMouseUp(), "-1"),
    (act.MouseDown("right", (5, 6)), "@5,6 +3"),
    (act.LeftClick((5, 6)), "@5,6 1"),
]


@pytest.mark.parametrize(("action", "script"), DRAGGING, ids=[f"{action.type}-{script}" for action, script in DRAGGING])
def test_moves_with_a_pressed_button_drag(action: Action, script: str) -> None:
    assert run(action, dragging=True) == events(script)


def test_the_table_has_every_action() -> None:
    assert {action.type for action, _ in TABLE} == set(ACTIONS)


OUTSIDE = [(1280, 0), (0, 800), (-1, 0), (0, -1), (2**31 - 1, 5)]


@pytest.mark.parametrize("xy", OUTSIDE)
def test_points_outside_raise(xy: tuple[int, int]) -> None:
    attempts = [
        act.LeftClick(xy),
        act.DoubleClick(xy),
        act.LeftMouseDown(xy),
        act.LeftMouseUp(xy),
        act.MouseDown("left", xy),
        act.MouseUp("left", xy),
        act.Move(xy),
        act.Scroll(xy),
        act.Drag([(0, 0), xy]),
        act.Drag([xy, (0, 0)]),
        act.Drag([xy]),
    ]
    for action in attempts:
        with pytest.raises(OutOfBounds) as caught:
            run(action)
        assert caught.value.point == xy
        assert caught.value.size == SIZE


def test_a_zoom_outside_raises() -> None:
    with pytest.raises(OutOfBounds):
        run(act.Zoom((1, 0, 1280, 800)))


def test_too_much_scrolling_is_an_error_of_the_unit() -> None:
    assert len(run(act.Scroll(magnitude=200))) == 200 * 2 + 199
    for action in (act.Scroll(magnitude=201), act.Scroll(distance_xy=(10_100, 10_100)), act.Scroll(magnitude=1e300)):
        with pytest.raises(ActionError, match="more than 200"):
            run(action)


def test_characters_that_applications_compose_are_refused_with_another_way() -> None:
    with pytest.raises(Untypable, match="paste=True") as caught:
        run(act.Type("a\uff20b\ufefb\ufe50"))
    assert caught.value.characters == ((1, "\uff20"), (3, "\ufefb"), (4, "\ufe50"))
    run(act.Type("a\uff20b\ufefb\ufe50", paste=True))


def test_untypable_text_is_refused_as_a_whole() -> None:
    with pytest.raises(Untypable) as caught:
        run(act.Type("a\0b\x7f"))
    assert caught.value.characters == ((1, "\0"), (3, "\x7f"))


def test_an_action_of_another_class_is_refused() -> None:
    @dataclass(frozen=True, slots=True)
    class Dance(Action):
        type = "dance"

    with pytest.raises(UnsupportedAction, match="dance"):
        run(Dance())


def test_pace_of_double_clicks_is_one_that_toolkits_accept() -> None:
    assert 0 < CLICK_GAP < 0.2


# --- properties -------------------------------------------------------------------------------------------------

KEYS = st.sampled_from(["a", "B", "Return", "F5", "é", "ctrl", "shift", "alt", "Page_Up", "+", "KP_Enter"])
CHORDS = st.lists(KEYS, min_size=1, max_size=4, unique_by=str.casefold)
MODIFIERS = st.lists(st.sampled_from(["ctrl", "shift", "alt", "super"]), max_size=3, unique=True)
BUTTONS = st.sampled_from(act.BUTTONS)
XY = st.tuples(st.integers(0, SIZE.width - 1), st.integers(0, SIZE.height - 1))
SECONDS = st.floats(0, 3600)
WHEELS = st.none() | st.tuples(st.integers(-9000, 9000), st.integers(-9000, 9000))
TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn"]) | st.sampled_from("\n\r\t"))
AT = {"xy": st.none() | XY, "modifiers": MODIFIERS}


def balanced_actions() -> st.SearchStrategy[Action]:
    clicks = (act.LeftClick, act.DoubleClick, act.TripleClick, act.MiddleClick, act.RightClick)
    built: list[st.SearchStrategy[Any]] = [st.builds(kind, **AT) for kind in (*clicks, act.BackClick, act.ForwardClick)]
    return st.one_of(
        *built,
        st.builds(act.Drag, st.lists(XY, min_size=1, max_size=5), BUTTONS, modifiers=MODIFIERS),
        st.builds(act.Move, XY, modifiers=MODIFIERS),
        st.builds(
            act.Scroll,
            **AT,
            distance_xy=WHEELS,
            magnitude=st.none() | st.floats(-200, 200),
            direction=st.none() | st.sampled_from(act.DIRECTIONS),
        ),
        st.builds(act.KeyPress, CHORDS, repeat=st.integers(1, 100)),
        st.builds(act.KeyHold, CHORDS, SECONDS),
        st.builds(act.Type, TEXT, paste=st.booleans()),
        st.builds(act.Wait, st.none() | SECONDS),
        st.just(act.TakeScreenshot()),
        st.just(act.CursorPosition()),
        st.builds(act.Zoom, st.just((0, 0, 9, 9))),
    )


def open_actions() -> st.SearchStrategy[Action]:
    return st.one_of(
        st.builds(act.LeftMouseDown, **AT),
        st.builds(act.LeftMouseUp, **AT),
        st.builds(act.MouseDown, BUTTONS, **AT),
        st.builds(act.MouseUp, BUTTONS, **AT),
        st.builds(act.PressKeys, CHORDS),
        st.builds(act.ReleaseKeys, CHORDS),
    )


@given(balanced_actions())
def test_presses_and_releases_are_properly_nested(action: Action) -> None:
    stack: list[Step] = []
    for event in run(action):
        match event:
            case ButtonDown() | KeyDown():
                assert event not in stack
                stack.append(event)
            case ButtonUp(button=button):
                assert stack.pop() == ButtonDown(button)
            case KeyUp(keysym=key):
                assert stack.pop() == KeyDown(key)
            case _:
                pass
    assert stack == []


@given(st.lists(balanced_actions(), max_size=5))
def test_nothing_stays_held_after_any_list(actions: list[Action]) -> None:
    assert held(event for action in actions for event in run(action)) == []


@given(st.lists(balanced_actions() | open_actions(), max_size=6))
def test_release_frees_whatever_is_held(actions: list[Action]) -> None:
    keys = PressedKeys()
    for event in (event for action in actions for event in run(action)):
        keys.note(event)
    for event in keys.release_events():
        keys.note(event)
    assert keys.pressed == ()


@given(balanced_actions() | open_actions(), st.data())
def test_a_failure_anywhere_can_be_cleaned_up(action: Action, data: st.DataObject) -> None:
    sent = run(action)
    cut = data.draw(st.integers(0, len(sent)))
    keys = PressedKeys()
    keys.expect(sent)
    assert set(held(sent[:cut])) <= set(keys.pressed)


@given(balanced_actions() | open_actions())
def test_the_dictionary_form_comes_back(action: Action) -> None:
    assert Action.from_dict(action.to_dict()) == action


@given(balanced_actions() | open_actions(), XY)
def test_every_move_is_on_the_screen_and_every_pause_finite(action: Action, pointer: tuple[int, int]) -> None:
    for event in run(action, pointer=Point(*pointer)):
        match event:
            case PointerMove(x=x, y=y):
                assert 0 <= x < SIZE.width
                assert 0 <= y < SIZE.height
            case Pause(seconds=seconds):
                assert 0 <= seconds <= MAX_SECONDS
            case ButtonDown(button=button) | ButtonUp(button=button):
                assert 1 <= button <= 9
            case _:
                pass


@given(st.lists(XY, min_size=2, max_size=5))
def test_a_drag_visits_its_points_in_order_by_small_steps(path: list[tuple[int, int]]) -> None:
    sent = run(act.Drag(path))
    moves = iter([(event.x, event.y) for event in sent if isinstance(event, PointerMove)])
    assert all(point in moves for point in path), "each is found after the one before"
    steps = [(event.x, event.y) for event in sent if isinstance(event, PointerMove)]
    longest = max(20, max(math.dist(*pair) for pair in pairwise(path)) / 60)
    assert all(math.dist(*pair) <= longest + math.sqrt(2) for pair in pairwise(steps))


@given(TEXT)
def test_typing_is_one_tap_a_character(text: str) -> None:
    sent = run(act.Type(text))
    assert len(sent) == 2 * len(text.replace("\r\n", "\n"))
    for down, up in zip(sent[::2], sent[1::2], strict=True):
        assert isinstance(down, KeyDown)
        assert up == KeyUp(down.keysym)


# --- pressed keys -------------------------------------------------------------------------------------------------


def test_the_ledger_keeps_the_order_of_presses() -> None:
    keys = PressedKeys()
    for event in events("+ctrl +1 @5,6 +shift -1 +ctrl ~1 -9 -a"):
        keys.note(event)
    assert keys.pressed == (KeyDown(keysym("ctrl")), KeyDown(keysym("shift")))
    assert keys.release_events() == events("-shift -ctrl")
    assert keys.pressed
    keys.clear()
    assert not keys.pressed
    assert keys.release_events() == []


def test_held_and_release() -> None:
    assert held(events("+ctrl +1 -ctrl a")) == [ButtonDown(1)]
    assert release([KeyDown(1), ButtonDown(2)]) == [ButtonUp(2), KeyUp(1)]
