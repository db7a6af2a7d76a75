"""The key table: every name a provider uses for a key, and the X keysym it means.

This module owns key names, the only table of them. Names come from OpenAI (``CTRL``, ``ARROWUP``), Anthropic and
xdotool (``Page_Up``, ``ctrl+s``), Google (``Control``, ``pageup``), pyautogui and OSWorld (``winleft``,
``prtsc``), W3C and Playwright (``KeyA``, ``MetaLeft``), vncdotool (``lctrl``, ``ctrl-s``) and X itself
(``EuroSign``). What must never appear here: a keycode or a layout (the backend's keyboard has those), and an
event.

A name is looked up in this order, and the first match is taken:

1. a single character is itself: ``a``, ``A``, ``é``, ``+``; newline, tab, backspace and escape are their keys;
2. an X keysym name, spelled exactly;
3. a name of our table, in any case, and with or without ``_``, ``-`` and blanks between its words;
4. ``U+20AC`` or ``U20AC``;
5. an X keysym name in any case and spacing. Names that differ only so (``Agrave``, ``agrave``) give the one with
   the fewest capitals.

Seven names are not what they mean in X: ``multiply`` is the keypad's key, as in pyautogui, and not the sign ×;
``uparrow``, ``downarrow``, ``leftarrow`` and ``rightarrow`` are the cursor keys and not the characters ↑↓←→;
``hyphen`` is minus and not the soft hyphen; ``caret`` is ``^``.
``meta``, ``cmd``, ``win`` and ``super`` are all ``Super_L``: providers mean the key with the logo. ``Meta_L`` has
that name only.
"""

from __future__ import annotations

import functools
import importlib
import re
from typing import TYPE_CHECKING, NamedTuple

from deskhand.errors import ActionError, nearest, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST_NAME = 60

_UNICODE_BASE = 0x01000000
_LAST_CODE_POINT = 0x10FFFF

# Ordered by preference: the first name of a keysym is the one that is shown.
# fmt: off
_GROUPS = (
    "latin1", "miscellany", "xkb", "xf86", "latin2", "latin3", "latin4", "greek", "cyrillic", "arabic", "hebrew",
    "thai", "korean", "katakana", "publishing", "technical", "special", "apl", "xk3270",
)
# fmt: on

SHIFTS = frozenset({0xFFE1, 0xFFE2})
# Held modifiers: Shift, Control, Meta, Alt, Super and Hyper on both sides, AltGr (two keysyms), Level5.
# Caps_Lock, Shift_Lock and Num_Lock toggle; they are keys like any other.
_MODIFIERS = SHIFTS | {0xFFE3, 0xFFE4, *range(0xFFE7, 0xFFEF), 0xFE03, 0xFF7E, 0xFE11}

_EURO_SIGN = 0x20AC
_CONTROL_CHARACTERS = {"\n": 0xFF0D, "\r": 0xFF0D, "\t": 0xFF09, "\b": 0xFF08, "\x1b": 0xFF1B}

# X keysym name: every other name of that key, squeezed (lower case, no separators).
_ALIASES: dict[str, str] = {
    "Control_L": "control ctrl ctl controlleft ctrlleft lctrl lcontrol controlormeta",
    "Control_R": "controlright ctrlright rctrl rcontrol",
    "Shift_L": "shift shiftleft lshift",
    "Shift_R": "shiftright rshift",
    "Alt_L": "alt altleft lalt option opt optionleft loption",
    "Alt_R": "altright ralt optionright roption",
    "ISO_Level3_Shift": "altgr altgraph",
    "Super_L": "super superleft lsuper meta metaleft lmeta cmd command cmdleft commandleft lcmd lcommand "
    "win winleft lwin windows windowsleft windowskey logo os osleft",
    "Super_R": "superright rsuper metaright rmeta cmdright commandright rcmd rcommand winright rwin windowsright "
    "osright",
    "Hyper_L": "hyper",
    "Return": "enter newline",
    "Escape": "esc",
    "BackSpace": "bksp bkspc bsp",
    "Delete": "del forwarddelete deleteforward",
    "Insert": "ins",
    "Tab": "tabulator",
    "space": "spacebar spc",
    "Up": "arrowup uparrow",
    "Down": "arrowdown downarrow",
    "Left": "arrowleft leftarrow",
    "Right": "arrowright rightarrow",
    "Page_Up": "pgup",
    "Page_Down": "pgdn pgdown pagedn",
    "Caps_Lock": "caps",
    "Num_Lock": "numlk",
    "Scroll_Lock": "scrlk scrolllk",
    "Print": "printscreen printscrn prtsc prtscn prtscr prntscrn prntscr snapshot",
    "Menu": "apps app application contextmenu",
    "Multi_key": "compose",
    "Mode_switch": "modechange",
    # Characters by their names; those that X itself names (comma, period, slash ...) need no line.
    "plus": "plussign",
    "minus": "hyphen dash hyphenminus",
    "period": "dot fullstop",
    "slash": "fslash forwardslash",
    "backslash": "bslash intlbackslash",
    "equal": "equals",
    "apostrophe": "quote singlequote",
    "quotedbl": "doublequote",
    "grave": "backtick backquote",
    "asciitilde": "tilde",
    "asciicircum": "caret",
    "asterisk": "star",
    "bar": "pipe verticalbar",
    "exclam": "exclamation exclamationmark bang",
    "question": "questionmark",
    "numbersign": "hash pound",
    "bracketleft": "leftbracket openbracket",
    "bracketright": "rightbracket closebracket",
    "parenleft": "leftparen openparen",
    "parenright": "rightparen closeparen",
    "braceleft": "leftbrace openbrace",
    "braceright": "rightbrace closebrace",
    "yen": "intlyen",
    "KP_Enter": "numpadenter numenter",
    "KP_Add": "add numpadadd numpadplus kpplus",
    "KP_Subtract": "subtract numpadsubtract numpadminus kpminus",
    "KP_Multiply": "multiply numpadmultiply kpasterisk",
    "KP_Divide": "divide numpaddivide kpslash",
    "KP_Decimal": "decimal numpaddecimal kpperiod kpdot",
    "KP_Separator": "separator numpadcomma kpcomma",
    "KP_Equal": "numpadequal kpequals",
    "Henkan_Mode": "convert",
    "Muhenkan": "nonconvert",
    "Hiragana_Katakana": "kana kanamode",
    "Kanji": "kanjimode",
    "Hangul": "hanguel hangulmode lang1",
    "Hangul_Hanja": "hanja hanjamode lang2",
    "Hangul_Jeonja": "junja junjamode",
    "XF86AudioRaiseVolume": "volumeup audiovolumeup volup",
    "XF86AudioLowerVolume": "volumedown audiovolumedown voldown",
    "XF86AudioMute": "volumemute audiovolumemute mute",
    "XF86AudioMicMute": "microphonemutetoggle micmute",
    "XF86AudioPlay": "playpause mediaplaypause mediaplay",
    "XF86AudioPause": "mediapause",
    "XF86AudioStop": "stop mediastop",
    "XF86AudioNext": "nexttrack mediatracknext medianexttrack",
    "XF86AudioPrev": "prevtrack mediatrackprevious mediaprevtrack previoustrack",
    "XF86AudioMedia": "launchmediaselect launchmediaplayer mediaselect",
    "XF86Back": "browserback",
    "XF86Forward": "browserforward",
    "XF86Refresh": "browserrefresh refresh",
    "XF86HomePage": "browserhome",
    "XF86Search": "browsersearch",
    "XF86Favorites": "browserfavorites",
    "XF86Stop": "browserstop",
    "XF86Mail": "launchmail",
    "XF86MyComputer": "launchapp1 launchapplication1",
    "XF86Calculator": "launchapp2 launchapplication2 calculator",
    "XF86Copy": "copy",
    "XF86Cut": "cut",
    "XF86Paste": "paste",
    "XF86Open": "open",
    "XF86Save": "save",
    "XF86Sleep": "sleep",
    "XF86WakeUp": "wakeup",
    "XF86PowerOff": "power",
    "XF86Eject": "eject",
    "XF86MonBrightnessUp": "brightnessup",
    "XF86MonBrightnessDown": "brightnessdown",
}

# X names that do not mean what X means by them; step 2 of the lookup leaves them to step 3.
_REDEFINED = frozenset({"multiply", "hyphen", "caret", "uparrow", "downarrow", "leftarrow", "rightarrow"})

_UNICODE_NAME = re.compile(r"[uU]\+?([0-9a-fA-F]{4,6})")
_SEPARATORS = str.maketrans("", "", "_- \t")


def _squeeze(name: str) -> str:
    """The name without case and separators; separators at its ends stay, because they are keys."""
    name = name.strip().casefold()
    return name if name.strip("_-") != name else name.translate(_SEPARATORS)


def _x_names() -> dict[str, int]:
    """All keysym names of X, ``XF86AudioPlay`` as X spells it and not as python-xlib does."""
    table: dict[str, int] = {}
    for group in _GROUPS:
        for name, value in vars(importlib.import_module(f"Xlib.keysymdef.{group}")).items():
            if name.startswith("XK_"):
                table.setdefault(re.sub(r"^(XF86_)+(XF86)?", "XF86", name[3:]), value)
    # python-xlib 0.33 leaves out the currency group, and EuroSign is on real keyboards.
    table["EuroSign"] = _EURO_SIGN
    return table


def _without_case(names: Mapping[str, int]) -> dict[str, int]:
    def capitals(name: str) -> int:
        return sum(character.isupper() for character in name)

    table: dict[str, int] = {}
    for name in sorted(names, key=capitals):
        table.setdefault(_squeeze(name), names[name])
    return table


def _our_names(x_names: Mapping[str, int]) -> dict[str, int]:
    # PyAutoGUI installs python3-Xlib, an old fork that overwrites python-xlib and lacks some names.
    known = {name: aliases for name, aliases in _ALIASES.items() if name in x_names}
    table = {alias: x_names[name] for name, aliases in known.items() for alias in aliases.split()}
    for letter in "abcdefghijklmnopqrstuvwxyz":
        table[f"key{letter}"] = ord(letter)
    for digit in "0123456789":
        table[f"digit{digit}"] = ord(digit)
        table[f"num{digit}"] = table[f"numpad{digit}"] = x_names[f"KP_{digit}"]
    return table


def _first_names(names: Mapping[str, int]) -> dict[int, str]:
    table: dict[int, str] = {}
    for name in ("Page_Up", "Page_Down", "KP_Page_Up", "KP_Page_Down", *names):
        table.setdefault(names[name], name)
    return table


class _Tables(NamedTuple):
    """The names, made when a key is first looked up: that takes 6 ms, which a program that presses none need not wait."""

    x_names: Mapping[str, int]
    x_names_without_case: Mapping[str, int]
    our_names: Mapping[str, int]
    names_of: Mapping[int, str]


@functools.cache
def _tables() -> _Tables:
    x_names = _x_names()
    return _Tables(x_names, _without_case(x_names), _our_names(x_names), _first_names(x_names))


def char_keysym(char: str) -> int | None:
    """The keysym that types a character.

    Printable Latin-1 is its own code, everything above is 0x01000000 plus the code point. Newline and carriage
    return are Return, tab is Tab, backspace is BackSpace, U+001B is Escape.

    Args:
        char: One character.

    Returns:
        The keysym, or None for what cannot be typed: the other control characters, lone surrogates and
        noncharacters.
    """
    if char in _CONTROL_CHARACTERS:
        return _CONTROL_CHARACTERS[char]
    code = ord(char)
    if 0x20 <= code <= 0x7E or 0xA0 <= code <= 0xFF:
        return code
    if code <= 0xFF or 0xD800 <= code <= 0xDFFF or 0xFDD0 <= code <= 0xFDEF or code & 0xFFFE == 0xFFFE:
        return None
    return _UNICODE_BASE | code


def is_composed(char: str) -> bool:
    """Whether applications take this character's key as part of a compose sequence, and show something else.

    GTK 3 and Chromium keep keysyms in 16 bits when they compose, so that U+FE50...U+FE8C (keysyms 0x100FE50...) are dead keys
    to them and U+FF20 (fullwidth @) is the compose key. X's own Compose files, which xterm and Qt read, turn the ligatures of
    lam and alef into two letters. Tried with GTK 3.24, Chromium 156, Qt 5.15 and libX11 1.8.

    Args:
        char: One character.
    """
    return "\ufe50" <= char <= "\ufe8c" or char in "\uff20\ufef5\ufef7\ufef9\ufefb"


def keysym_char(keysym: int) -> str | None:
    """The character that a keysym types, the inverse of `char_keysym`.

    Returns:
        One character, a newline for Return; None for function keys and for the national keysyms from before
        Unicode (``Greek_alpha``), with which `char_keysym` types no character. ``EuroSign`` is known.
    """
    for char, value in _CONTROL_CHARACTERS.items():
        if value == keysym:
            return char
    if keysym == _EURO_SIGN:
        return "€"
    code = keysym - _UNICODE_BASE if keysym >= _UNICODE_BASE else keysym
    if code > (_LAST_CODE_POINT if keysym >= _UNICODE_BASE else 0xFF):
        return None
    char = chr(code) if code >= ord(" ") else "\0"
    return char if char_keysym(char) is not None else None


def keysym_name(keysym: int) -> str:
    """What to call a keysym in a log: its X name, else its character as ``U+20AC``, else its number in hex."""
    if (name := _tables().names_of.get(keysym)) is not None:
        return name
    char = keysym_char(keysym)
    return f"U+{ord(char):04X}" if char else f"{keysym:#x}"


def is_modifier(keysym: int) -> bool:
    """Whether a key changes others while it is held: Shift, Control, Alt, Meta, Super, Hyper, AltGr, Level5.

    The locks (CapsLock, NumLock) are not: they toggle.
    """
    return keysym in _MODIFIERS


def keysym(name: str) -> int:
    """The keysym a key name means; the module's docstring has the order of the lookup.

    Args:
        name: One key, not a chord.

    Raises:
        ActionError: No key has this name; the message has the nearest ones.
    """
    found = find(name)
    if found is None:
        raise ActionError(f"unknown key {shown(name)}{_nearest(name)}")
    return found


def find(name: str) -> int | None:
    if len(name) == 1:
        return char_keysym(name)
    tables = _tables()
    if name in tables.x_names and name not in _REDEFINED:
        return tables.x_names[name]
    squeezed = _squeeze(name)
    if squeezed in tables.our_names:
        return tables.our_names[squeezed]
    if match := _UNICODE_NAME.fullmatch(name):
        code = int(match[1], 16)
        return char_keysym(chr(code)) if code <= _LAST_CODE_POINT else None
    # This guards against " a": a single letter is looked up above, with its case, or not at all.
    return tables.x_names_without_case.get(squeezed) if len(squeezed) > 1 else None


def _nearest(name: str) -> str:
    close = nearest(
        _squeeze(name[:LONGEST_NAME]), dict.fromkeys((*_tables().our_names, *_tables().x_names_without_case))
    )
    if not close:
        return ": use names such as 'ctrl', 'Return', 'Page_Up', 'F5', or a single character"
    names = dict.fromkeys(keysym_name(value) for value in map(find, close) if value is not None)
    return f": did you mean {' or '.join(names)}?"
