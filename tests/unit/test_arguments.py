"""What callers make for a call refuses every wrong kind of argument too, where it says that it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import deskhand
from faults.surface import WRONG, PublicCall, fits, function
from faults.wrong import answer, must_be_refused

if TYPE_CHECKING:
    from pathlib import Path


def _says_so(kind: type) -> bool:
    told = f"{kind.__doc__}{kind.__init__.__doc__}"
    return "ActionError" in told and not issubclass(kind, BaseException)


_PUBLIC = [getattr(deskhand, name) for name in deskhand.__all__]
# Those of pools are tried beside a desktop.
MADE = [
    function(kind)
    for kind in _PUBLIC
    if isinstance(kind, type) and _says_so(kind) and not kind.__name__.endswith("Pool")
]
RIGHT = {
    "height": 100,
    "model": (3, 3),
    "path": "audit.jsonl",
    "screen": (9, 9),
    "source": "/etc/hostname",
    "target": "/data",
    "value": "secret",
    "width": 100,
}


@pytest.mark.parametrize("call", MADE, ids=lambda call: call.name)
def test_it_refuses_what_is_wrong(call: PublicCall, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    usual = {each.name: RIGHT[each.name] for each in call.required}
    wrong = []
    for parameter in call.parameters:
        for value in WRONG:
            if value is not parameter.default:
                must = must_be_refused(parameter, value)
                if said := answer(call, None, usual, parameter, value, must=must):
                    wrong.append(f"{call.name}({parameter.name}={value!r:.30}) {said}")
    assert not wrong, "\n".join(wrong)


def test_the_classes_are_found() -> None:
    assert {"AuditLog", "ClassPolicy", "Fit", "Guard", "Limits", "Mount", "RateLimits", "Secret", "Settle"} <= {
        call.name for call in MADE
    }


def test_what_fits() -> None:
    """The test's own judge: True is no number, a text no list of texts."""
    assert not fits(*(True, int))
    assert not fits("abc", list[str])
    assert fits([1, 2], tuple[int, int])
    assert fits(None, int | None)
