"""What translating costs, `python -m providers.cost` measures; that nothing slow has come in between is seen in any run."""

from __future__ import annotations

import gc
import sys
from typing import Any

import pytest

from providers.cost import PROVIDERS, Cost, measured, payloads, picture_screen, table, whole

# Of Python and of C, for one action.
CALLS = 250
# Of a batch, for each of its actions. Asking whether two numbers have a protocol is as many again.
CALLS_IN_A_BATCH = 90


def _calls(function: Any, *arguments: Any) -> int:
    """How many calls are made, which no machine and no load changes."""
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    function(*arguments)
    # Otherwise what other tests have left may be collected meanwhile, and its calls counted.
    gc.disable()
    sys.setprofile(note)
    try:
        function(*arguments)
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


@pytest.mark.parametrize("name", PROVIDERS)
def test_decoding_makes_few_calls(name: str) -> None:
    provider = PROVIDERS[name]
    viewport = picture_screen()
    said = dict(payloads(provider))
    assert len(said) >= 8, "of the seventeen"
    counts = {kind: _calls(provider.decode, payload, viewport) for kind, payload in said.items()}
    assert max(counts.values()) <= CALLS, counts
    if provider.batch:
        assert _calls(provider.decode, whole(provider), viewport) <= CALLS_IN_A_BATCH * len(provider.batch)


def test_the_costs_are_measured_of_everything() -> None:
    costs = {name: measured(provider, rounds=1) for name, provider in PROVIDERS.items()}
    assert all(min(cost.one, cost.most, cost.result) > 0 for cost in costs.values())
    assert table({"x": Cost(2e-6, 3.14e-6, "drag", None, 1e-4)}).splitlines()[2] == (
        "| x | 2.0 µs | 3.1 µs (drag) |  | 0.100 ms |"
    )
