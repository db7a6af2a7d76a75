"""Which keys a VNC server is told."""

from __future__ import annotations

import pytest

from deskhand._core.events import ButtonDown, ButtonUp, Event, KeyDown, KeyUp, Pause, PointerMove
from deskhand._core.keys import char_keysym, keysym
from deskhand.backends.vnc.keyboard import BUDGET, CAPS_LOCK, NUM_LOCK, Keyboard, locks_needed

SHIFT, CTRL = keysym("Shift_L"), keysym("Control_L")


def tap(key: int) -> list[Event]:
    return [KeyDown(key), KeyUp(key)]


def typed(text: str) -> list[Event]:
    return [event for char in text for event in tap(char_keysym(char) or 0)]


def plan(keyboard: Keyboard, *events: Event, side_buttons: bool = True) -> list[Event]:
    return keyboard.plan(events, side_buttons=side_buttons)


@pytest.mark.parametrize("char", 'AZ~!@#$%^&*()_+{}|:"<>?')
def test_shift_is_pressed_where_the_american_keyboard_has_it(char: str) -> None:
    key = ord(char)
    assert plan(Keyboard(), *tap(key)) == [KeyDown(SHIFT), KeyDown(key), KeyUp(SHIFT), KeyUp(key)]


@pytest.mark.parametrize("char", "az`1234567890-=[]\\;',./ ")
def test_and_not_elsewhere(char: str) -> None:
    assert plan(Keyboard(), *tap(ord(char))) == tap(ord(char))


def test_a_held_shift_makes_of_a_key_what_it_would_make_of_it() -> None:
    keyboard = Keyboard()
    assert plan(keyboard, KeyDown(SHIFT)) == [KeyDown(SHIFT)]
    assert plan(keyboard, *tap(ord("a")), *tap(ord("1"))) == [*tap(ord("A")), *tap(ord("!"))]
    assert plan(keyboard, *tap(keysym("Tab"))) == tap(keysym("ISO_Left_Tab"))
    assert plan(keyboard, KeyDown(ord("b")), KeyUp(SHIFT), KeyUp(ord("b"))) == [
        KeyDown(ord("B")),
        KeyUp(SHIFT),
        KeyUp(ord("B")),
    ]
    assert plan(keyboard, *tap(ord("a"))) == tap(ord("a"))


def test_side_buttons_are_keys_where_the_server_has_none() -> None:
    events = [PointerMove(1, 2), ButtonDown(8), ButtonUp(8), ButtonDown(9), ButtonUp(9), ButtonDown(1), ButtonUp(1)]
    assert plan(Keyboard(), *events) == events
    back, forward = keysym("XF86Back"), keysym("XF86Forward")
    assert plan(Keyboard(), *events, side_buttons=False) == [
        PointerMove(1, 2),
        *tap(back),
        *tap(forward),
        ButtonDown(1),
        ButtonUp(1),
    ]


def test_a_rare_character_is_never_the_first_key() -> None:
    keyboard = Keyboard()
    assert plan(keyboard, *typed("é")) == [*tap(SHIFT), *typed("é")]
    assert plan(keyboard, *typed("ж")) == typed("ж")
    assert plan(Keyboard(), *typed("aé")) == typed("aé")


def test_the_budget_counts_different_characters_of_all_texts() -> None:
    keyboard = Keyboard()
    first = "éñüßøåæçþðжщ"
    assert len(first) == BUDGET
    assert keyboard.untypable(typed(first * 3 + "plain ASCII\n\t")) == set()
    keyboard.plan(typed(first), side_buttons=True)
    assert keyboard.untypable(typed(first)) == set()
    assert keyboard.untypable(typed(f"{first}я")) == {char_keysym("я")}
    assert keyboard.untypable([KeyDown(keysym("F5")), KeyDown(keysym("XF86Back"))]) == set()
    assert keyboard.untypable(typed("é"), budget=0) == set()
    assert Keyboard().untypable(typed("aé"), budget=0) == {char_keysym("é")}
    # The keycodes that a server has given away stay given away.
    keyboard.forget()
    assert keyboard.untypable(typed("я")) == {char_keysym("я")}


def test_each_new_character_is_a_part() -> None:
    keyboard = Keyboard()
    text = "abüéücüß"
    assert keyboard.split(typed("plain"), ahead=False) == [typed("plain")]
    parts = keyboard.split(typed(text), ahead=False)
    assert parts == [*map(typed, ["ab", "ü", "é", "ücü", "ß"])]
    for part in parts[:3]:
        plan(keyboard, *part)
    keyboard.taken()
    assert keyboard.split(typed(text), ahead=False) == [*map(typed, ["abüéücü", "ß"])]
    # What was sent and not taken is new again.
    plan(keyboard, *typed("ß"))
    assert keyboard.split(typed("plain"), ahead=False) == [typed("plain")]
    keyboard.taken()
    assert keyboard.split(typed("ßa"), ahead=False) == [*map(typed, "ßa")]
    keyboard.unlearn()
    assert keyboard.split(typed("üx"), ahead=False) == [*map(typed, "üx")]


def test_what_is_new_is_released_ahead() -> None:
    keyboard = Keyboard()
    assert keyboard.split(typed("plain"), ahead=True) == [typed("plain")]
    first, rest = keyboard.split(typed("aüéü"), ahead=True)
    releases = [KeyUp(char_keysym(char) or 0) for char in "üé"]
    assert [event for event in first if not isinstance(event, Pause)] == [*releases, *typed("a")]
    assert rest == typed("üéü")
    assert plan(keyboard, *releases) == releases
    keyboard.taken()
    assert keyboard.split(typed("éü"), ahead=True) == [typed("éü")]
    assert len(keyboard.split(typed("ß"), ahead=True)) == 1
    # Not what is held: that would let go of it.
    plan(keyboard, KeyDown(char_keysym("ß") or 0))
    assert keyboard.split(typed("ß"), ahead=True) == [typed("ß")]


@pytest.mark.parametrize(
    ("events", "needed"),
    [
        (typed("1 !\n"), {}),
        (typed("1a"), {CAPS_LOCK: False}),
        (typed("Z"), {CAPS_LOCK: False}),
        (typed("é"), {CAPS_LOCK: False}),
        (typed("ж"), {CAPS_LOCK: False}),
        (typed("日"), {}),
        (tap(keysym("Cyrillic_zhe")), {CAPS_LOCK: False}),
        (tap(keysym("Return")), {}),
        (tap(keysym("KP_5")), {NUM_LOCK: True}),
        (tap(keysym("KP_Decimal")), {NUM_LOCK: True}),
        (tap(keysym("KP_Home")), {NUM_LOCK: False}),
        (tap(keysym("KP_Add")), {}),
        ([*tap(CAPS_LOCK), *typed("a")], {}),
        ([*tap(NUM_LOCK), *typed("a"), *tap(keysym("KP_5"))], {CAPS_LOCK: False}),
        ([KeyUp(ord("a")), ButtonDown(1), ButtonUp(1)], {}),
    ],
)
def test_locks_that_keys_need(events: list[Event], needed: dict[int, bool]) -> None:
    assert locks_needed(events) == needed


def test_a_lock_in_the_way_is_switched_and_switched_back() -> None:
    planned = Keyboard().plan(typed("aB"), side_buttons=True, switch=[CAPS_LOCK])
    shifted = [KeyDown(SHIFT), KeyDown(ord("B")), KeyUp(SHIFT), KeyUp(ord("B"))]
    assert planned == [*tap(CAPS_LOCK), *tap(ord("a")), *shifted, *tap(CAPS_LOCK)]
