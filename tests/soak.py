"""What `make test` shows with one value, and the long series (`make soak`) with all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import pytest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

T = TypeVar("T")


def soaked(values: Iterable[T], *, but: Collection[T]) -> list[object]:
    """The values of a parametrised test; all `but` these have the mark `soak`.

    A value may be a tuple, for a test of several arguments.
    """
    return [value if value in but else _marked(value) for value in values]


def _marked(value: object) -> object:
    values = value if isinstance(value, tuple) else (value,)
    return pytest.param(*values, marks=pytest.mark.soak)
