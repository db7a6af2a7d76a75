"""Parsers of payloads: each takes a value and what it is called, and says what is wrong with it."""

from __future__ import annotations

import binascii
from collections.abc import Mapping, Sequence
from typing import Any

from deskhand._core.geometry import Point
from deskhand.errors import ActionError, shown
from deskhand.providers.values import Picture

__all__ = [
    "expect_command",
    "expect_float",
    "expect_int",
    "expect_list",
    "expect_object",
    "expect_point",
    "expect_string",
    "length_of",
    "picture_of_base64",
    "picture_of_url",
    "the_rest",
    "timeout_of",
    "variables_of",
]


_PAIR = 2
_EXACT = 2**53
_LONGEST = 86_400_000


def expect_object(what: str, value: object) -> Mapping[str, Any]:
    """Let a mapping with names as its keys pass.

    Raises:
        ActionError: It is none.
    """
    # By type first, here and below: that is what parsed JSON is made of, and asking an abstract class takes long.
    if type(value) is dict or isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                break
        else:
            return value
    raise ActionError(f"{what} is an object, not {shown(value)}")


def expect_list(what: str, value: object) -> Sequence[Any]:
    """Let a list pass.

    Raises:
        ActionError: It is none.
    """
    if type(value) is list:
        return value
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Sequence):
        raise ActionError(f"{what} is a list, not {shown(value)}")
    return value


def expect_string(what: str, value: object) -> str:
    """Let a string pass.

    Raises:
        ActionError: It is none.
    """
    if not isinstance(value, str):
        raise ActionError(f"{what} is a string, not {shown(value)}")
    return value


def expect_float(what: str, value: object) -> float:
    """Let a finite number pass.

    Raises:
        ActionError: It is none.
    """
    try:
        if not isinstance(value, bool) and isinstance(value, int | float) and abs(float(value)) < float("inf"):
            return value
    except OverflowError:
        pass
    raise ActionError(f"{what} is a finite number, not {shown(value)}")


def expect_int(what: str, value: object) -> int:
    """Let an integer pass, or a float with an integer's value.

    Raises:
        ActionError: It is none.
    """
    if type(value) is int and -_EXACT < value < _EXACT:
        return value
    number = expect_float(what, value)
    if number != int(number):
        raise ActionError(f"{what} is an integer, not {shown(value)}")
    return int(number)


def expect_point(what: str, value: object) -> Point:
    """Let a pair of integers pass, as a point.

    Raises:
        ActionError: It is none.
    """
    numbers = [expect_int(what, number) for number in expect_list(what, value)]
    if len(numbers) != _PAIR:
        raise ActionError(f"{what} is a pair (x, y), not {shown(value)}")
    return Point(*numbers)


def expect_command(value: object) -> str:
    """Let a text pass that a shell can be given.

    Raises:
        ActionError: It is none.
    """
    text = expect_string("a command", value)
    if "\0" in text or any(0xD800 <= ord(char) <= 0xDFFF for char in text):
        raise ActionError("a command has no NUL and no lone surrogate")
    return text


def variables_of(value: object) -> dict[str, str]:
    """The variables of a command's environment; None is none of them.

    Raises:
        ActionError: A name or a value can be none.
    """
    found = dict(expect_object("env", {} if value is None else value))
    for name, text in found.items():
        if not name.isidentifier() or not name.isascii() or "\0" in expect_string("a variable's value", text):
            raise ActionError(f"{shown(name)} cannot be a variable of the environment, or its value is none")
    return found


def timeout_of(milliseconds: object) -> float | None:
    """A command's `timeout_ms` in seconds; None and zero, in which nothing could run, are none.

    Raises:
        ActionError: It is no time, or longer than a day: a mistake in the unit.
    """
    number = 0 if milliseconds is None else expect_float("timeout_ms", milliseconds)
    if not 0 <= number <= _LONGEST:
        raise ActionError(f"timeout_ms is 0...{_LONGEST}, not {shown(milliseconds)}")
    return number / 1000 or None


def length_of(characters: object) -> int | None:
    """A command's `max_output_length`; None is none.

    Raises:
        ActionError: It is no length.
    """
    length = None if characters is None else expect_int("max_output_length", characters)
    if length is not None and length < 0:
        raise ActionError(f"max_output_length is at least 0, not {shown(characters)}")
    return length


def the_rest(payload: Mapping[str, Any], *known: str) -> dict[str, Any]:
    """What a payload has besides what is known of it."""
    return {key: value for key, value in payload.items() if key not in known}


def picture_of_base64(text: object, media_type: str = "image/png") -> Picture:
    """The picture that base64 text holds.

    Raises:
        ActionError: It is no base64.
    """
    try:
        return Picture(binascii.a2b_base64(expect_string("a picture", text), strict_mode=True), media_type)
    except (binascii.Error, ValueError):
        raise ActionError("a picture is given in base64, which this is not") from None


def picture_of_url(url: object) -> Picture:
    """The picture that a `data:` URL holds.

    Raises:
        ActionError: It is another URL, or none.
    """
    text = expect_string("a picture's URL", url)
    head, comma, body = text.partition(",")
    scheme, _, kind = head.partition(":")
    media_type, _, coding = kind.partition(";")
    if scheme != "data" or coding != "base64" or not comma or not media_type:
        raise ActionError(f"a picture is given as data:image/...;base64,... and not as {shown(head[:40])}")
    return picture_of_base64(body, media_type)
