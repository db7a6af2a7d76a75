"""A desktop for the tables, whose input is seen from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compatibility.table import World
from providers.screen import observed

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with observed() as (desktop, observer):
        yield World(desktop, observer)
