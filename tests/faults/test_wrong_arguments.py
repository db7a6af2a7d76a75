"""Every public call with every wrong kind of argument: an error of our tree at once, and the desktop works on."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

import deskhand
from deskhand import Action, Desktop, Pool, Shell
from faults.helpers import listen
from faults.surface import calls_of, function
from faults.wrong import Bench, answer, examine, must_be_refused, wrong_arguments

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_PUBLIC = [getattr(deskhand, name) for name in deskhand.__all__]
FUNCTIONS = [function(value) for value in _PUBLIC if callable(value) and not isinstance(value, type)]
# Right values for what must be given.
RIGHT: dict[str, object] = {
    "allow": True,
    "button": "left",
    "duration": 0.1,
    "id": "check",
    "keys": ["a"],
    "path": [(1, 1), (2, 2)],
    "region": (0, 0, 10, 10),
    "source": "/tmp",
    "target": "/mnt",
    "text": "text",
    "value": "text",
    "xy": (1, 1),
    **dict.fromkeys(("screen", "model"), deskhand.Size(100, 100)),
    **dict.fromkeys(("width", "height"), 100),
}
# What a program makes to hand it over; objects of the other classes are what calls return, or raise.
MADE = [
    *(kind for kind in _PUBLIC if isinstance(kind, type) and issubclass(kind, Action) and kind is not Action),
    deskhand.Answer,
    deskhand.AuditLog,
    deskhand.CallContext,
    deskhand.ClassPolicy,
    deskhand.Fit,
    deskhand.Guard,
    deskhand.Limits,
    deskhand.Mount,
    deskhand.Questions,
    deskhand.RateLimits,
    deskhand.SafetyCheck,
    deskhand.Secret,
    deskhand.Settle,
    deskhand.Viewport,
]


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


@pytest.mark.parametrize("kind", MADE, ids=lambda kind: kind.__name__)
def test_what_is_handed_over(kind: type, tmp_path: Path) -> None:
    call = function(kind)
    right = RIGHT | ({"path": tmp_path / "log"} if kind is deskhand.AuditLog else {})
    usual = {each.name: right[each.name] for each in call.required}
    if kind in {deskhand.Move, deskhand.Drag}:
        # Its place may be an element instead, so that the signature requires neither.
        usual |= {"path": right["path"]} if kind is deskhand.Drag else {"xy": right["xy"]}
    made = call.call(**usual)
    if isinstance(made, contextlib.AbstractContextManager):
        with made:
            pass
    wrong = [
        f"{parameter.name}={value!r:.30} {said}"
        for parameter, value in wrong_arguments(call)
        if must_be_refused(parameter, value) and (said := answer(call, None, usual, parameter, value, must=True))
    ]
    assert not wrong, "\n".join(wrong)
