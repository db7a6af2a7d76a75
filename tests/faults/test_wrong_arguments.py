"""Every public call with every wrong kind of argument: an error of our tree at once, and the desktop works on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import deskhand
from deskhand import Desktop, Pool, Shell
from faults.helpers import listen
from faults.surface import calls_of, function
from faults.wrong import Bench, examine

if TYPE_CHECKING:
    from collections.abc import Callable

_PUBLIC = [getattr(deskhand, name) for name in deskhand.__all__]
FUNCTIONS = [function(value) for value in _PUBLIC if callable(value) and not isinstance(value, type)]


@pytest.fixture
def bench(launch: Callable[..., Desktop]) -> Bench:
    def make() -> Desktop:
        desktop = launch(size=(320, 240))
        listen(desktop)
        return desktop

    return Bench(make)


def test_a_desktop(bench: Bench) -> None:
    assert not (wrong := examine(bench, calls_of(Desktop), lambda: bench.desktop)), "\n".join(wrong)


def test_a_shell(bench: Bench) -> None:
    assert not (wrong := examine(bench, calls_of(Shell), lambda: bench.shell)), "\n".join(wrong)


def test_the_functions(bench: Bench) -> None:
    assert not (wrong := examine(bench, FUNCTIONS)), "\n".join(wrong)


def test_a_pool(bench: Bench) -> None:
    with Pool(lambda: deskhand.launch(size=(320, 240)), size=1, warm=0) as pool:
        calls = [function(Pool), *calls_of(Pool)]
        assert not (wrong := examine(bench, calls, lambda: pool)), "\n".join(wrong)
