"""Clicks by reference, at random: the application says which element got each. 200 in each toolkit with DESKHAND_EVIDENCE=1."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

import deskhand
from deskhand import LeftClick
from elements.puppet import Puppet
from faults.scale import EVIDENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from deskhand import Desktop

_CLICKS = 200 if EVIDENCE else 20
_COLUMNS, _ROWS = 5, 8


@pytest.fixture(scope="module")
def desktop() -> Iterator[Desktop]:
    with deskhand.launch(size=(1000, 700)) as desktop:
        yield desktop


@pytest.mark.parametrize(
    "toolkit", ["GTK 3", "Qt 6", *(pytest.param(older, marks=pytest.mark.soak) for older in ("GTK 4", "Qt 5"))]
)
def test_the_one_that_is_named_gets_the_click(desktop: Desktop, tmp_path: Path, toolkit: str) -> None:
    puppet = Puppet(desktop, tmp_path / "socket", toolkit)
    count = _COLUMNS * _ROWS
    puppet.run(
        f"[button(f'B{{n}}', 10 + n % {_COLUMNS} * 110, 10 + n // {_COLUMNS} * 45) for n in range({count})] and None"
    )
    desktop.find("button", f"B{count - 1}", exact=True).element(timeout=20)
    refs = {element.name: element.ref for element in desktop.find("button").all()}
    assert sorted(refs) == sorted(f"B{number}" for number in range(count))
    chosen = random.Random(7).choices(sorted(refs), k=_CLICKS)
    for name in chosen:
        desktop.perform(LeftClick(element=refs[name]))
        assert puppet.tells(["clicked", name])
    assert puppet.told == [["clicked", name] for name in chosen]
    puppet.end()
    desktop.find("window", "Puppet").wait_for("hidden", timeout=20)
