"""Changes at random: the tree that was kept meanwhile is the one that a new session reads. 1,000 with DESKHAND_EVIDENCE=1."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

import deskhand
from conftest import need
from deskhand import KeyPress, Move, Settle
from deskhand.desktop.ocr import ScreenReader
from elements import puppet
from faults.scale import RANDOM_CHANGES
from integration.apps import until
from soak import soaked

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from deskhand import Desktop, Element

_WIDGETS = 12
_READ, _COMPARED = 6, 60
LIMIT = 10.0


@pytest.fixture(scope="module")
def desktop() -> Iterator[Desktop]:
    with deskhand.launch(size=(1000, 700)) as desktop:
        yield desktop


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("toolkit", soaked(["GTK 3", "Qt 6", "GTK 4", "Qt 5"], but=["GTK 3", "Qt 6"]))
def test_what_is_kept_is_what_is_read_anew(desktop: Desktop, tmp_path: Path, toolkit: str) -> None:
    choice = random.Random(20)
    with puppet.shown(desktop, tmp_path / "socket", toolkit=toolkit) as shown:
        for number in range(_WIDGETS):
            shown.run(f"button('B{number}', {20 + number % 3 * 180}, {20 + number // 3 * 90})")
        for step in range(1, RANDOM_CHANGES + 1):
            name = f"B{choice.randrange(_WIDGETS)}"
            shown.run(
                choice.choice(
                    [
                        f"rename('{name}', '{name} at {step}')",
                        f"enable('{name}', {bool(step % 2)})",
                        f"show('{name}', {bool(step % 3)})",
                        f"move('{name}', {choice.randrange(400)}, {choice.randrange(300)})",
                    ]
                )
            )
            if step % _READ == 0:
                desktop.elements()
            if step % _COMPARED == 0:
                desktop.perform()
                assert until(lambda: _is_as_read_anew(desktop), LIMIT), (step, desktop.elements().text())
        desktop.perform()
        assert until(lambda: _is_as_read_anew(desktop), LIMIT), desktop.elements().text()


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("toolkit", soaked(["GTK 3", "Qt 6"], but=["GTK 3"]))
def test_what_changes_below_a_menu_is_noticed(desktop: Desktop, tmp_path: Path, toolkit: str) -> None:
    """While it is open, and after. GTK 3 has the menu of a list in two places of its tree."""
    choice = random.Random(21)
    with puppet.shown(desktop, tmp_path / "socket", toolkit=toolkit) as shown:
        shown.run(f"combo('List', {[f'Option {number}' for number in range(12)]}, 20, 20)")
        for number in range(_WIDGETS):
            shown.run(f"button('B{number}', {20 + number % 3 * 120}, {70 + number // 3 * 40})")
        for step in range(1, RANDOM_CHANGES // 20 + 1):
            for opened in (True, False):
                desktop.elements()
                if opened:
                    desktop.find("combobox").click()
                else:
                    desktop.perform(KeyPress(("Escape",)))
                for _ in range(choice.randrange(3)):
                    name = f"B{choice.randrange(_WIDGETS)}"
                    shown.run(
                        choice.choice(
                            [
                                f"rename('{name}', '{name} at {step}')",
                                f"enable('{name}', {choice.random() < 0.5})",
                                f"show('{name}', {choice.random() < 0.7})",
                                f"move('{name}', {choice.randrange(300)}, {70 + choice.randrange(200)})",
                            ]
                        )
                    )
                    if choice.random() < 0.5:
                        desktop.elements()
                desktop.perform()
                assert until(lambda: _is_as_read_anew(desktop, ordered=False), LIMIT), (
                    step,
                    opened,
                    desktop.elements().text(),
                )


def test_what_is_behind_the_menus_of_an_editor(desktop: Desktop) -> None:
    """An open menu takes the keys from the text, and no event says so."""
    need("mousepad", "mousepad")
    desktop.start("mousepad")
    desktop.perform(settle=Settle(quiet=0.5, reaction=1.0, timeout=15))
    desktop.elements()
    for name in ("File", "Edit", "Search", "View", "Document", "Help"):
        before = len(desktop.elements())
        locator = desktop.find("menuitem", name, exact=True, nth=0)
        menu = locator.element().point
        assert menu is not None
        locator.click()
        # Over its items the pointer draws on the menu alone.
        for step in range(4):
            desktop.perform(Move((menu.x, menu.y + 25 * step)))
            assert until(lambda: _is_as_read_anew(desktop, ordered=False), LIMIT), (name, desktop.elements().text())
        assert len(desktop.elements()) > before
        desktop.perform(KeyPress(("Escape",)))
        assert until(lambda: _is_as_read_anew(desktop, ordered=False), LIMIT), (name, desktop.elements().text())


def _is_as_read_anew(desktop: Desktop, *, ordered: bool = True) -> bool:
    core = desktop._core
    kept = desktop.elements()
    keeps, core.elements = core.elements, ScreenReader(core.backend, core.watch, core.environment)
    try:
        anew = desktop.elements()
    finally:
        core.elements.close()
        core.elements = keeps
    had, has = ([_plain(element) for element in each] for each in (kept, anew))
    if not ordered:
        had, has = (sorted((rest[:-1] for rest in each), key=str) for each in (had, has))
    return had == has


def _plain(element: Element) -> tuple[object, ...]:
    return element.role, element.name, sorted(element.states), element.box, element.text, element.depth
