"""Checks of the fields of actions: each returns the value in its usual form, or raises ActionError."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any, SupportsIndex

from deskhand._core.chords import parse_keys
from deskhand._core.geometry import Rect
from deskhand._core.keys import is_modifier
from deskhand._core.redaction import Secret
from deskhand.errors import ActionError, Untypable, shown

MAX_SECONDS = 3600.0
"""The longest wait or hold; a longer one is a mistake in the unit."""
MAX_REPEAT = 100
"""The most repetitions of one key press, as in Anthropic's tool."""
_PAIR = 2
_RECT = 4
_LARGEST = 2**31 - 1
Check = Callable[[Any], Any]


def check_integer(value: object) -> int:
    number = value if type(value) is int else check_index(value)
    if not -_LARGEST <= number <= _LARGEST:
        raise ActionError(f"an integer of at most 32 bits is needed, not {shown(value)}")
    return number


def check_index(value: object) -> int:
    number = int(value) if isinstance(value, float) and value.is_integer() else value
    if isinstance(number, bool | type) or not isinstance(number, SupportsIndex):
        rounded = ": round it" if isinstance(value, float) and math.isfinite(value) else ""
        raise ActionError(f"an integer is needed, not {shown(value)}{rounded}")
    return operator.index(number)


def check_items(value: object, what: str) -> tuple[Any, ...]:
    if type(value) is tuple or type(value) is list:
        return tuple(value)
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Sequence):
        raise ActionError(f"{what} is needed, not {shown(value)}")
    return tuple(value)


def check_integers(value: object, count: int, what: str) -> tuple[int, ...]:
    items = check_items(value, what)
    if len(items) != count:
        raise ActionError(f"{what} is needed, not {shown(value)}")
    return tuple(map(check_integer, items))


def check_xy(value: object) -> tuple[int, ...]:
    if type(value) is int or type(value) is float:
        raise ActionError(
            f"a point such as (100, 200) is needed, not the number {shown(value)}: write both in one pair"
        )
    return check_integers(value, _PAIR, "a pair (x, y)")


def check_element(value: object) -> str:
    ref = getattr(value, "ref", value)
    if not isinstance(ref, str) or not (ref[:1] in {"e", "t"} and ref[1:].isascii() and ref[1:].isdecimal()):
        raise ActionError(f"an element is a reference such as 'e12', not {shown(value)}")
    return ref


def check_path(value: object) -> tuple[tuple[int, ...], ...]:
    items = check_items(value, "a list of points")
    if len(items) == _PAIR and all(type(item) is int for item in items):
        raise ActionError(f"a list of points is needed, not the point {items}: write [(10, 10), (90, 10)]")
    points = tuple(map(check_xy, items))
    if not points:
        raise ActionError("a path has at least one point")
    return points


def check_rect(value: object) -> Rect:
    rect = Rect(*check_integers(value, _RECT, "a rectangle (x, y, width, height)"))
    if rect.empty:
        raise ActionError(f"the rectangle {tuple(rect)} is empty: width and height must be at least 1")
    return rect


def check_names(value: object) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else check_items(value, "a list of key names")


def check_keys(value: object) -> tuple[str, ...]:
    names = check_names(value)
    parse_keys(names)
    return names


def check_modifiers(value: object) -> tuple[str, ...]:
    names = check_names(value)
    if names and not all(map(is_modifier, parse_keys(names))):
        wrong = next(name for name in names if not all(map(is_modifier, parse_keys([name]))))
        raise ActionError(f"{shown(wrong)} is not a modifier: use ctrl, shift, alt, super or altgr")
    return names


def check_number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ActionError(f"a number is needed, not {shown(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ActionError(f"a finite number is needed, not {shown(value)}")
    return number


def check_seconds(value: object) -> float:
    seconds = check_number(value)
    if not 0 <= seconds <= MAX_SECONDS:
        raise ActionError(f"a duration is 0...{MAX_SECONDS:g} seconds, not {seconds:g}")
    return seconds


def check_repeat(value: object) -> int:
    repeat = check_integer(value)
    if not 1 <= repeat <= MAX_REPEAT:
        raise ActionError(f"a key is repeated 1...{MAX_REPEAT} times, not {shown(repeat)}")
    return repeat


def check_one_of(choices: tuple[str, ...]) -> Check:
    def check(value: object) -> str:
        if not isinstance(value, str) or value not in choices:
            raise ActionError(f"one of {', '.join(choices)} is needed, not {shown(value)}")
        return value

    return check


def check_text(value: object) -> str | Secret:
    if isinstance(value, Secret):
        # What is wrong with it is reported when it is typed, by an error that shows none of it.
        return value
    if not isinstance(value, str):
        raise ActionError(f"a string is needed, not {shown(value)}")
    surrogates = [(position, char) for position, char in enumerate(value) if 0xD800 <= ord(char) <= 0xDFFF]
    if surrogates:
        raise Untypable(surrogates, hint="lone surrogates are no characters; the text was decoded wrongly")
    return value


def check_flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ActionError(f"true or false is needed, not {shown(value)}")
    return value


def explained(init: Callable[..., None]) -> Callable[..., None]:
    """The same, with a better error for `LeftClick(100, 200)`, which takes 0.2 µs more for each action."""

    @functools.wraps(init)
    def make(self: object, *args: object, **named: object) -> None:
        try:
            init(self, *args, **named)
        except TypeError as error:
            kind = type(self).__name__
            if any(type(number) in {int, float} for number in args[:2]) and len(args) > 1:
                raise TypeError(f"{kind} takes a point as one pair: write {kind}(({args[0]}, {args[1]}))") from None
            # Several actions have the same.
            raise TypeError(str(error).replace(init.__qualname__, f"{kind}.__init__")) from None

    return make
