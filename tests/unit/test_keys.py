"""The key table: every family of names, in any case, and chords."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand._core import keys as key_table
from deskhand._core.chords import chord_names, parse_keys
from deskhand._core.keys import char_keysym, is_modifier, keysym, keysym_char, keysym_name
from deskhand.errors import ActionError

# X keysym name: names of the same key, by who uses them.
NAMES = {
    # OpenAI's guide
    "Return": "ENTER RETURN Enter Return enter",
    "Escape": "ESC ESCAPE Escape esc",
    "BackSpace": "BACKSPACE BackSpace Backspace backspace",
    "Delete": "DELETE DEL Delete del",
    "Tab": "TAB Tab tab",
    "space": "SPACE Space space spacebar",
    "Home": "HOME Home home",
    "End": "END End end",
    "Page_Up": "PAGEUP Page_Up page_up Prior pageup pgup PageUp",
    "Page_Down": "PAGEDOWN Page_Down Next pagedown pgdn PageDown",
    "Up": "UP ARROWUP Up up ArrowUp ARROW_UP uparrow",
    "Down": "DOWN ARROWDOWN Down down ArrowDown downarrow",
    "Left": "LEFT ARROWLEFT Left left ArrowLeft leftarrow",
    "Right": "RIGHT ARROWRIGHT Right right ArrowRight rightarrow",
    "Control_L": "CTRL CONTROL Control_L Control control ctrl ctrlleft ControlLeft lctrl ControlOrMeta",
    "Shift_L": "SHIFT Shift_L Shift shift shiftleft ShiftLeft lshift",
    "Alt_L": "ALT OPTION Alt_L Alt alt altleft AltLeft option lalt optionleft",
    "Super_L": "META CMD COMMAND Super_L super Super win winleft MetaLeft OSLeft command cmd Meta windows lsuper",
    # pyautogui, OSWorld
    "Control_R": "ctrlright ControlRight rctrl control_r",
    "Shift_R": "shiftright ShiftRight",
    "Alt_R": "altright AltRight optionright",
    "Super_R": "winright MetaRight super_r",
    "Num_Lock": "numlock NumLock Num_Lock NUM_LOCK",
    "Caps_Lock": "capslock CapsLock CAPS",
    "Scroll_Lock": "scrolllock ScrollLock",
    "Print": "prtsc prtscr prntscrn printscreen print PrintScreen Print",
    "Insert": "insert INSERT ins Insert",
    "Menu": "apps ContextMenu menu Menu",
    "Pause": "pause Pause",
    "Help": "help Help",
    "KP_Add": "add kp_add KP_Add NumpadAdd",
    "KP_Subtract": "subtract NumpadSubtract",
    "KP_Multiply": "multiply NumpadMultiply KP_Multiply",
    "KP_Divide": "divide NumpadDivide",
    "KP_Decimal": "decimal NumpadDecimal",
    "KP_Enter": "KP_Enter NumpadEnter kpenter kp_enter",
    "KP_7": "num7 Numpad7 KP_7 kp7",
    "XF86AudioRaiseVolume": "volumeup AudioVolumeUp XF86AudioRaiseVolume",
    "XF86AudioPlay": "playpause MediaPlayPause XF86AudioPlay xf86audioplay XF86_AudioPlay",
    "XF86Back": "browserback BrowserBack XF86Back",
    # W3C, Playwright
    "a": "KeyA",
    "5": "Digit5",
    "minus": "Minus hyphen dash",
    "equal": "Equal equals",
    "comma": "Comma",
    "period": "Period dot",
    "slash": "Slash",
    "backslash": "Backslash",
    "semicolon": "Semicolon",
    "apostrophe": "Quote",
    "grave": "Backquote backtick",
    "bracketleft": "BracketLeft",
    "bracketright": "BracketRight",
    "ISO_Level3_Shift": "AltGraph altgr AltGr",
    # by their characters' names
    "plus": "plus PLUS",
    "asciitilde": "tilde",
    "asciicircum": "caret",
    "F5": "F5 f5",
    "F24": "F24 f24",
    "Greek_alpha": "Greek_alpha greek_ALPHA",
    "EuroSign": "EuroSign eurosign",
    "dead_acute": "dead_acute",
    "Meta_L": "Meta_L meta_l",
}
PAIRS = [(name, spelling) for name, spellings in NAMES.items() for spelling in spellings.split()]


@pytest.mark.parametrize(("name", "spelling"), PAIRS)
def test_names(name: str, spelling: str) -> None:
    assert keysym_name(keysym(spelling)) == name


@pytest.mark.parametrize(
    ("name", "spelling"), [p for p in PAIRS if p[0] not in {"Greek_alpha", "minus", "asciicircum"}]
)
def test_names_in_any_case(name: str, spelling: str) -> None:
    for variant in (spelling.upper(), spelling.lower(), spelling.capitalize(), spelling.swapcase()):
        assert keysym_name(keysym(variant)) == name, variant


PYAUTOGUI = """add alt altleft altright apps backspace browserback browserfavorites browserforward browserhome
browserrefresh browsersearch browserstop capslock clear convert ctrl ctrlleft ctrlright decimal del delete divide down
end enter esc escape execute f1 f10 f11 f12 f13 f24 hanguel hangul hanja help home insert junja kana kanji launchapp1
launchapp2 launchmail launchmediaselect left modechange multiply nexttrack nonconvert num0 num9 numlock pagedown pageup
pause pgdn pgup playpause prevtrack print printscreen prntscrn prtsc prtscr return right scrolllock select separator
shift shiftleft shiftright sleep space stop subtract tab up volumedown volumemute volumeup win winleft winright yen
command option optionleft optionright"""


@pytest.mark.parametrize("name", PYAUTOGUI.split())
def test_pyautogui_names_are_known(name: str) -> None:
    assert keysym(name) > 0


def test_x_names_mean_what_they_mean_in_x() -> None:
    differing = {name for name, value in key_table._tables().x_names.items() if keysym(name) != value}
    assert differing == key_table._REDEFINED


def test_names_that_differ_in_case_only() -> None:
    assert keysym("Agrave") == 0xC0
    assert keysym("agrave") == 0xE0
    assert keysym("AGRAVE") == 0xE0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("a", 0x61),
        ("A", 0x41),
        ("+", 0x2B),
        (" ", 0x20),
        ("é", 0xE9),
        ("€", 0x010020AC),
        ("Ж", 0x01000416),
        ("😀", 0x0101F600),
        ("\n", 0xFF0D),
        ("\r", 0xFF0D),
        ("\t", 0xFF09),
        ("\b", 0xFF08),
        ("\x1b", 0xFF1B),
        ("U+20AC", 0x010020AC),
        ("u20ac", 0x010020AC),
        ("U+0041", 0x41),
        ("U+1F600", 0x0101F600),
        ("super_l", 0xFFEB),
        ("ISO_Left_Tab", 0xFE20),
    ],
)
def test_characters_and_code_points(name: str, value: int) -> None:
    assert keysym(name) == value
    assert parse_keys([name]) == (value,)


@pytest.mark.parametrize(
    ("keys", "names"),
    [
        (["ctrl+s"], "Control_L s"),
        (["ctrl", "s"], "Control_L s"),
        (["CTRL", "S"], "Control_L s"),
        (["Control+A"], "Control_L a"),
        (["ctrl++"], "Control_L plus"),
        (["ctrl", "+"], "Control_L plus"),
        (["+"], "plus"),
        (["ctrl+shift++"], "Control_L Shift_L plus"),
        (["ctrl+shift+t"], "Control_L Shift_L t"),
        (["ctrl+shift+T"], "Control_L Shift_L t"),
        (["ctrl", "shift+T"], "Control_L Shift_L t"),
        (["shift+A"], "Shift_L A"),
        (["A"], "A"),
        (["alt+Tab"], "Alt_L Tab"),
        (["super"], "Super_L"),
        (["cmd+shift+4"], "Super_L Shift_L 4"),
        ([" ctrl + s "], "Control_L s"),
        (["ctrl+ "], "Control_L space"),
        (["ctrl+-"], "Control_L minus"),
        (["ctrl-s"], "Control_L s"),
        (["ctrl-alt-Delete"], "Control_L Alt_L Delete"),
        (["ctrl--"], "Control_L minus"),
        (["Page-Up"], "Page_Up"),
        (["-"], "minus"),
        (["_"], "underscore"),
        (["Page Up"], "Page_Up"),
        (["ctrl+KP_Add"], "Control_L KP_Add"),
        (["shift+ctrl+a"], "Shift_L Control_L a"),
        (["a", "b"], "a b"),
        (["ctrl+é"], "Control_L eacute"),
        (["ctrl+U+0041"], "Control_L a"),
        ("ctrl+s", "Control_L s"),
    ],
)
def test_chords(keys: Any, names: str) -> None:
    assert [keysym_name(key) for key in parse_keys(keys)] == names.split()


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ([], "no key was given"),
        (["Retrun"], "unknown key 'Retrun': did you mean Return"),
        (["ctrl", "pageupp"], "did you mean Page_Up"),
        (["ctrl+"], "ctrl++"),
        (["+s"], "plus sign"),
        (["++"], "plus sign"),
        ([""], "names no key"),
        (["ctrl-"], "unknown key"),
        (["s-ctrl"], "unknown key"),
        (["Down Down"], "unknown key"),
        (["\0"], "unknown key"),
        (["\ud800"], "unknown key"),
        (["U+D800"], "unknown key"),
        (["U+110000"], "unknown key"),
        (["ctrl", "Control_L"], "Control_L is twice"),
        (["a", "a"], "twice"),
        ([1], "a string"),
        ([None], "a string"),
        (["x" * 100_000], "unknown key 'xxx"),
    ],
)
def test_refused(keys: Any, message: str) -> None:
    with pytest.raises(ActionError, match=".*" + message.replace("+", r"\+")) as caught:
        parse_keys(keys)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("chord", "names"),
    [
        ("ctrl+s", ["ctrl", "s"]),
        ("ctrl++", ["ctrl", "+"]),
        ("++a", ["+", "a"]),
        ("ctrl+++a", ["ctrl", "+", "a"]),
        ("+", ["+"]),
        ("ctrl+U+20AC", ["ctrl", "U+20AC"]),
        ("ctrl + s", ["ctrl", "s"]),
        ("Page Up", ["Page Up"]),
        ("ctrl-s", ["ctrl-s"]),
    ],
)
def test_names_of_a_chord(chord: str, names: list[str]) -> None:
    assert list(chord_names(chord)) == names
    assert parse_keys(names) == parse_keys([chord])


@given(st.characters())
def test_characters_come_back(char: str) -> None:
    value = char_keysym(char)
    if value is None:
        assert ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 or not char.isprintable()
    else:
        assert keysym_char(value) == ("\n" if char == "\r" else char)
        assert keysym(char) == value


@given(st.integers(0, 0x2FFFFFFF))
def test_any_number_has_a_name_and_perhaps_a_character(value: int) -> None:
    assert keysym_name(value)
    char = keysym_char(value)
    assert char is None or len(char) == 1


@given(st.text(max_size=20))
def test_any_string_is_a_chord_or_refused(text: str) -> None:
    with contextlib.suppress(ActionError):
        assert parse_keys([text])


def test_names_for_logs() -> None:
    assert keysym_name(0x010020AC) == "U+20AC"
    assert keysym_name(0x12345) == "0x12345"
    assert keysym_name(0xFF55) == "Page_Up"
    assert keysym_char(0x20AC) == "€"
    assert keysym_char(0x0100000D) is None
    assert keysym_char(0x0100D800) is None
    assert keysym_char(keysym("F1")) is None


def test_modifiers() -> None:
    modifiers = "ctrl shift alt super hyper Meta_L altgr Mode_switch Control_R Shift_R Alt_R Super_R"
    assert all(is_modifier(keysym(name)) for name in modifiers.split())
    assert not any(is_modifier(keysym(name)) for name in ("a", "Tab", "Caps_Lock", "Num_Lock", "Return"))
