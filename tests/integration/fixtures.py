"""The applications that tests type into, for every test that asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import deskhand
from integration.apps import APPS, Bench, keymap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from integration.apps import App


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """One desktop and its applications for the whole file."""
    home = tmp_path_factory.mktemp("home")
    folders = {f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("CONFIG", "CACHE", "DATA", "STATE")}
    with deskhand.launch(size=(1000, 700), env={"HOME": str(home), **folders}) as desktop:
        bench = Bench(desktop, home)
        yield bench
        bench.close()


@pytest.fixture(params=list(APPS))
def app(request: pytest.FixtureRequest, bench: Bench) -> Iterator[App]:
    """Each application, focused and empty, on a us keyboard that must be as it was afterwards."""
    before = keymap(bench.desktop)
    yield bench.app(request.param)
    assert keymap(bench.desktop) == before
    assert bench.desktop.pressed == ()
