"""A sample of the settle zoo: whatever gives a sign of being at work is waited for.

Each case is about the kind of guarantee: the frame is the final one because the application computes, or does not answer, until
its last change, however slow the machine is. How soon it comes back is what the zoo itself measures (`make evidence`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from zoo.cases import steps
from zoo.measure import Case, run
from zoo.score import HEADER, table
from zoo.stages import STAGES, Stage

if TYPE_CHECKING:
    from pathlib import Path

    import deskhand

# At work for half a second; a window that answers no ping is not known to be at work when it only sleeps.
SAMPLE = [
    *(Case(kind, (0.5,), load) for kind in STAGES for load in ("spin", "thread")),
    *(Case(kind, (0.5,), load) for kind in ("gtk", "qt") for load in ("chunks", "block", "child")),
    *(Case(kind, (0.5,), "child") for kind in ("x", "xterm")),
]


@pytest.mark.soak
@pytest.mark.parametrize("kind", STAGES)
def test_what_is_at_work_is_waited_for(desktop: deskhand.Desktop, home: Path, kind: str) -> None:
    stage = Stage(desktop, kind, home)
    try:
        results = [run(stage, case) for case in SAMPLE if case.kind == kind]
    finally:
        stage.close()
    assert len(results) >= 2
    for result in results:
        assert (result.sign, result.final, result.error) == (True, True, ""), result
        assert result.settled, result
        parts = sum(result.elapsed.values())
        assert 0.5 <= parts <= result.wall, result


def test_a_moving_neighbour_hides_no_work(desktop: deskhand.Desktop, home: Path) -> None:
    stage = Stage(desktop, "gtk", home)
    try:
        stage.show(("spinner",))
        desktop._core.watch.pause(2.0)
        result = run(stage, Case("gtk", (0.5,), "thread", ("spinner",)))
    finally:
        stage.close()
    assert (result.final, result.error) == (True, ""), result


def test_which_cases_have_a_sign() -> None:
    assert Case("gtk", (0.03,), "timer").sign
    assert Case("x", steps(0.03), "timer").sign
    assert Case("x", steps(0.6), "timer").sign
    assert not Case("x", (0.0, 0.3, 0.6), "timer").sign
    assert Case("chromium", (0.2,), "fetch").sign
    assert not Case("chromium", (1.5,), "fetch").sign
    assert Case("gtk", (0.0, 0.4), "cursor").sign
    assert not Case("gtk", (2.0,), "cursor").sign
    assert not Case("xterm", (0.2,), "block").sign
    assert Case("qt", (0.2,), "block").sign


def test_an_empty_table_has_its_head() -> None:
    assert table([]).splitlines()[0] == "| " + " | ".join(HEADER) + " |"
