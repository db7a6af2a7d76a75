"""Parsers of payloads: each takes a value and its name for error messages."""

from __future__ import annotations

import binascii
from collections.abc import Mapping, Sequence
from typing import Any

from deskhand._core.geometry import Point
from deskhand.errors import ActionError, UnsupportedAction, shown
from deskhand.providers.values import Picture

_PAIR = 2
_EXACT = 2**53
_LONGEST = 86_400_000


def expect_object(what: str, value: object) -> Mapping[str, Any]:
    """Check that a value is a mapping with strings as keys.

    Raises:
        ActionError: It is not one.
    """
    # By type first, here and below: parsed JSON has these types, and checks against an abstract class are slow.
    if type(value) is dict or isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                break
        else:
            return value
    hint = "give its model_dump()" if hasattr(value, "model_dump") else ""
    raise ActionError(f"{what} is an object, not {shown(value)}", hint)


def expect_list(what: str, value: object) -> Sequence[Any]:
    """Check that a value is a list.

    Raises:
        ActionError: It is not one.
    """
    if type(value) is list:
        return value
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Sequence):
        raise ActionError(f"{what} is a list, not {shown(value)}")
    return value


def expect_string(what: str, value: object) -> str:
    """Check that a value is a string.

    Raises:
        ActionError: It is not one.
    """
    if not isinstance(value, str):
        raise ActionError(f"{what} is a string, not {shown(value)}")
    return value


def expect_float(what: str, value: object) -> float:
    """Check that a value is a finite number.

    Raises:
        ActionError: It is not one.
    """
    try:
        if not isinstance(value, bool) and isinstance(value, int | float) and abs(float(value)) < float("inf"):
            return value
    except OverflowError:
        pass
    raise ActionError(f"{what} is a finite number, not {shown(value)}")


def expect_int(what: str, value: object) -> int:
    """Check that a value is an integer, or a float with an integer's value.

    Raises:
        ActionError: It is not one.
    """
    if type(value) is int and -_EXACT < value < _EXACT:
        return value
    number = expect_float(what, value)
    if number != int(number):
        raise ActionError(f"{what} is an integer, not {shown(value)}")
    return int(number)


def expect_point(what: str, value: object) -> Point:
    """Check that a value is a pair of integers, as a point.

    Raises:
        ActionError: It is not one.
    """
    numbers = [expect_int(what, number) for number in expect_list(what, value)]
    if len(numbers) != _PAIR:
        raise ActionError(f"{what} is a pair (x, y), not {shown(value)}")
    return Point(*numbers)


def expect_command(value: object) -> str:
    """Check that a value is a text that can be passed to a shell.

    Raises:
        ActionError: It is not one.
    """
    text = expect_string("a command", value)
    if "\0" in text or any(0xD800 <= ord(char) <= 0xDFFF for char in text):
        raise ActionError("a command must not contain NUL or a lone surrogate")
    return text


def variables_of(value: object) -> dict[str, str]:
    """The variables of a command's environment; None means no variables.

    Raises:
        ActionError: A name or a value is invalid.
    """
    found = dict(expect_object("env", {} if value is None else value))
    for name, text in found.items():
        if not name.isidentifier() or not name.isascii() or "\0" in expect_string("a variable's value", text):
            raise ActionError(f"{shown(name)} cannot be a variable of the environment, or its value is invalid")
    return found


def timeout_of(milliseconds: object) -> float | None:
    """A command's `timeout_ms` in seconds; None and zero mean no timeout, because nothing could run in zero.

    Raises:
        ActionError: It is not a time, or is longer than a day, which suggests a wrong unit.
    """
    number = 0 if milliseconds is None else expect_float("timeout_ms", milliseconds)
    if not 0 <= number <= _LONGEST:
        raise ActionError(f"timeout_ms is 0...{_LONGEST}, not {shown(milliseconds)}")
    return number / 1000 or None


def length_of(characters: object) -> int | None:
    """A command's `max_output_length`; None means no limit.

    Raises:
        ActionError: It is not a length.
    """
    length = None if characters is None else expect_int("max_output_length", characters)
    if length is not None and length < 0:
        raise ActionError(f"max_output_length is at least 0, not {shown(characters)}")
    return length


def the_rest(payload: Mapping[str, Any], *known: str) -> dict[str, Any]:
    """The fields of a payload that are not known."""
    return {key: value for key, value in payload.items() if key not in known}


def picture_of_base64(text: object, media_type: str = "image/png") -> Picture:
    """The picture in base64 text.

    Raises:
        ActionError: It is not base64.
    """
    try:
        return Picture(binascii.a2b_base64(expect_string("a picture", text), strict_mode=True), media_type)
    except (binascii.Error, ValueError):
        raise ActionError("a picture must be given in base64") from None


def picture_of_url(url: object) -> Picture:
    """The picture in a `data:` URL.

    Raises:
        ActionError: It is not a URL, or another one.
    """
    text = expect_string("a picture's URL", url)
    head, comma, body = text.partition(",")
    scheme, _, kind = head.partition(":")
    media_type, _, coding = kind.partition(";")
    if scheme != "data" or coding != "base64" or not comma or not media_type:
        raise ActionError(f"a picture is given as data:image/...;base64,... and not as {shown(head[:40])}")
    return picture_of_base64(body, media_type)


# The names of actions' fields, of any provider.
_FIELDS = frozenset(
    """
    x y xy coordinate coordinates point pos position path region url
    start_xy start_x start_y startX startY start_coordinate
    end_x end_y endX endY end_coordinate destination_x destination_y
    button clicks click_count clickCount num_clicks repeat presses keys key modifiers modifier
    text press_enter clear_before_typing duration seconds ms
    scroll_x scroll_y scroll_amount scroll_direction scroll_distance scroll_unit distance_xy dx dy deltaX deltaY
    direction magnitude magnitude_in_pixels magnitude_in_wheel_clicks
    """.split()  # noqa: SIM905 # a list of so many words
)


def refuse_more(where: str, action: str, rest: Mapping[str, Any]) -> None:
    """Ignore the unknown fields of an action, unless they say how the action is to be done.

    An ignored field must not make the action do less than the call says. Names that no provider has for a field of an action
    are ignored, and so are values that are null, false or empty.

    Args:
        where: The name of the payload's owner, for the error.
        action: The action's name in the payload.
        rest: The unknown fields.

    Raises:
        UnsupportedAction: The action has no such field.
    """
    lost = [name for name in rest if name in _FIELDS and (rest[name] or type(rest[name]) in (int, float))]
    if lost:
        raise UnsupportedAction(where, action, f"with {', '.join(sorted(lost))}: leave that out, or use another action")


# The same for a command: where it runs, as which user, with what, for how long.
_OF_COMMANDS = frozenset(
    """
    cwd workdir working_directory directory env environment user shell stdin timeout timeout_ms timeout_seconds commands args
    """.split()  # noqa: SIM905 # as above
)


def refuse_more_of_a_command(where: str, rest: Mapping[str, Any]) -> None:
    """Like `refuse_more`, for the unknown fields of a command."""
    lost = [name for name in rest if name in _OF_COMMANDS and rest[name]]
    if lost:
        raise UnsupportedAction(
            where, "a command", f"with {', '.join(sorted(lost))}: write it as a part of the command"
        )
