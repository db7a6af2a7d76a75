"""Checks the arguments of public calls, before anything is done with them.

The rule: an argument of a wrong type or value is an `ActionError`, in every call; a `TypeError` says only that Python
could not make the call at all (an argument is missing, or unknown). Each check takes what its message calls the argument,
and the value, which it returns. What must never appear here: what becomes of a value.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterable, Mapping
from enum import EnumMeta
from typing import Any, SupportsIndex, TypeVar

from deskhand._core.geometry import Rect, Size
from deskhand.errors import ActionError, shown

_T = TypeVar("_T")
# Of Linux, in bytes.
_LONGEST_PATH = 4096
_WRITTEN_SIZE = re.compile(r"([0-9]{1,5})[xX×, ]+([0-9]{1,5})")

LONGEST = 1e9
"""The longest timeout in seconds, 30 years: a lock cannot wait much longer."""


def expect(what: str, value: object, kind: type[_T]) -> _T:
    """Check that the value is an object of this class.

    Raises:
        ActionError: It is not.
    """
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        raise ActionError(f"{what} is {article} {kind.__name__}, not {shown(value)}")
    return value


def expect_like(what: str, value: Any, *methods: str) -> None:
    """Check that the value has these methods.

    Raises:
        ActionError: One is missing.
    """
    missing = [name for name in methods if not callable(getattr(value, name, None))]
    if missing or isinstance(value, type):
        raise ActionError(f"{what} has the methods {', '.join(methods)}, and {shown(value)} does not")


def expect_callable(what: str, value: object) -> None:
    """Check that the value can be called.

    Raises:
        ActionError: It cannot.
    """
    if not callable(value):
        raise ActionError(f"{what} is a function, not {shown(value)}")


def expect_flag(what: str, value: object) -> bool:
    """Check that the value is True or False.

    Raises:
        ActionError: It is neither.
    """
    if not isinstance(value, bool):
        raise ActionError(f"{what} is True or False, not {shown(value)}")
    return value


def expect_text(what: str, value: object) -> str:
    """Check that the value is a text, which may be empty.

    Raises:
        ActionError: It is not a text.
    """
    if not isinstance(value, str):
        raise ActionError(f"{what} is a text, not {shown(value)}")
    return value


def expect_encodable(what: str, value: object) -> bytes:
    """Check that the value is a text, and encode it in UTF-8.

    Raises:
        ActionError: It is not a text, or has a lone surrogate.
    """
    try:
        return expect_text(what, value).encode()
    except UnicodeEncodeError as error:
        raise ActionError(f"{what} has a lone surrogate, which is not a character, at {error.start}") from None


def expect_texts(what: str, values: object) -> tuple[str, ...]:
    """Check that the values are several texts; one text is refused.

    Raises:
        ActionError: They are not.
    """
    return tuple(expect_text(f"each of {what}", value) for value in expect_several(what, values))


def expect_several(what: str, values: object) -> tuple[Any, ...]:
    """Check that the values can be iterated over; an enumeration's class can, a text, bytes or a mapping is refused.

    Raises:
        ActionError: They cannot.
    """
    other_class = isinstance(values, type) and not isinstance(values, EnumMeta)
    if (
        other_class
        or isinstance(values, str | bytes | bytearray | memoryview | Mapping)
        or not isinstance(values, Iterable)
    ):
        raise ActionError(f"{what} is a list, not {shown(values)}")
    return tuple(values)


def expect_mapping(what: str, value: object) -> Mapping[Any, Any]:
    """Check that the value is a mapping, such as a dictionary.

    Raises:
        ActionError: It is not.
    """
    if not isinstance(value, Mapping):
        raise ActionError(f"{what} is a mapping, not {shown(value)}")
    return value


def expect_path(what: str, value: object) -> str:
    """Check that the value is a path, as text or not. It may not be empty, which would mean the current directory.

    Raises:
        ActionError: It is not a path, or is empty.
    """
    if not (text := expect_word(what, value)):
        raise ActionError(f"{what} is empty: name the file or directory")
    if len(text.encode("utf-8", "surrogateescape")) >= _LONGEST_PATH:
        raise ActionError(f"{what} is longer than a path can be: {shown(text)}")
    return text


def expect_word(what: str, value: object) -> str:
    """Check that the value can be an argument of a program: a path, or text without zero bytes and lone surrogates.

    Raises:
        ActionError: It cannot.
    """
    path = getattr(type(value), "__fspath__", None)
    text = value if path is None else path(value)
    if not isinstance(text, str):
        raise ActionError(f"{what} is {shown(value)}, which is neither text nor a path")
    if "\0" in text:
        raise ActionError(f"{what} has a zero byte, which no program can be given")
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ActionError(f"{what} has a lone surrogate, which no program can be given") from None
    return text


def expect_integer(what: str, value: object, least: int, most: int | None = None) -> int:
    """Check that the value is an integer within bounds. True is not an integer.

    Raises:
        ActionError: It is not.
    """
    number = _index(value)
    if number is None or number < least or (most is not None and number > most):
        bounds = f"of at least {least:,}" if most is None else f"from {least:,} to {most:,}"
        raise ActionError(f"{what} is an integer {bounds}, not {shown(value)}")
    return number


def expect_amount(what: str, value: object) -> float:
    """Check that the value is a finite number above 0.

    Raises:
        ActionError: It is not.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ActionError(f"{what} is a number greater than 0, not {shown(value)}")
    return value


def expect_number(what: str, value: object, least: float, most: float) -> float:
    """Check that the value is a number within bounds.

    Raises:
        ActionError: It is not.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise ActionError(f"{what} is a number from {least:g} to {most:g}, not {shown(value)}")
    return value


def expect_seconds(what: str, value: object) -> float:
    """Check that the value is a number of seconds, 0 or more.

    Raises:
        ActionError: It is not, or is more than 30 years.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LONGEST:
        raise ActionError(f"{what} is a number of seconds from 0 to {LONGEST:,.0f}, not {shown(value)}")
    return value


def expect_size(what: str, value: object, most: int) -> Size:
    """Check that the value is a width and a height in pixels.

    Raises:
        ActionError: It is not a pair of integers from 1 to `most`.
    """
    sides = _integers(value, 2)
    if isinstance(value, str) and (written := _WRITTEN_SIZE.fullmatch(value.strip())):
        raise ActionError(f"{what} is a pair of integers and not a text: write ({written[1]}, {written[2]})")
    if sides is None or not all(1 <= side <= most for side in sides):
        raise ActionError(f"{what} is (width, height), 1x1 to {most}x{most} pixels, not {shown(value)}")
    return Size(*sides)


def expect_region(what: str, value: object) -> Rect:
    """Check that the value is a rectangle; `geometry.check_region` checks that it is on the screen.

    Raises:
        ActionError: It is not four integers.
    """
    found = _integers(value, 4)
    if found is None:
        raise ActionError(f"{what} is (x, y, width, height) in pixels, not {shown(value)}")
    return Rect(*found)


def _index(value: object) -> int | None:
    if isinstance(value, bool | type) or not isinstance(value, SupportsIndex):
        return None
    return operator.index(value)


def _integers(value: object, count: int) -> list[int] | None:
    if not isinstance(value, tuple | list) or len(value) != count:
        return None
    found = [number for number in map(_index, value) if number is not None]
    return found if len(found) == count else None
