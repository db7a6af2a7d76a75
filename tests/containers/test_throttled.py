"""F23 of the list of faults: a container that gets a tenth of a processor.

Beside other tests it shows nothing: others keep a program from its tenth, and no control group reports that.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

import deskhand
from deskhand import Reason, Settle, Type
from deskhand.launchers.docker.spec import Limits
from faults.helpers import beside_control, until

if TYPE_CHECKING:
    from collections.abc import Callable

THE_TENTH = 0.1
THROTTLED = 60


def test_with_a_tenth_of_a_processor_no_frame_is_early(contained: Callable[..., deskhand.Desktop]) -> None:
    """F23: it stands still for most of every tenth of a second, and is not taken to have ended its work."""
    desktop = contained(limits=Limits(cpus=THE_TENTH), timeout=60)
    desktop.start("xterm", timeout=60)
    # The shell's prompt comes a while after its window.
    until(lambda: desktop.perform(settle=Settle(quiet=0.5)).settled, 30, "a still screen")
    early = counted = 0
    for _ in range(10 * THROTTLED):
        with beside_control() as machine:
            seen = desktop.perform(Type("clear; for i in $(seq 40); do expr $i; done\n"), settle=Settle(timeout=20))
        assert seen.settled
        # This is about time: whatever comes later has come by then.
        time.sleep(1.5)
        # Where others keep a program from a processor for that long, it gets less than its tenth, and nothing tells that.
        if machine[0].share >= 0.75 and machine[0].latest <= Settle().quiet / 3:
            counted += 1
            early += not (seen.array() == desktop.screenshot().array()).all()
        if counted == THROTTLED:
            break
    if counted < THROTTLED:
        pytest.fail(f"others kept the processors busy: {counted} of {THROTTLED} samples count; run it alone")
    assert early <= THROTTLED // 20

    def late() -> deskhand.Observation | None:
        # One that gets no processor in that time shows nothing, which is rest.
        seen = desktop.perform(Type("for i in $(seq 99); do expr $i; done\n"), settle=Settle(timeout=0.3))
        return None if seen.settled else seen

    # A time-out says what it was that did not come to rest.
    assert until(late, 30, "a time-out").reason in {Reason.WINDOW_BUSY, Reason.STILL_CHANGING}
