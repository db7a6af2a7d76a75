"""Machines of settling on a clock that the test moves, and where the screen changes."""

from __future__ import annotations

from deskhand._core.geometry import Rect
from deskhand._core.settle import Reason, Settle
from deskhand._core.settle_machine import Machine

WORD = Rect(100, 100, 60, 16)
CARET = Rect(300, 100, 1, 16)


def machine(*, can_probe: bool = False, ambient: tuple[Rect, ...] = (), settings: Settle | None = None) -> Machine:
    return Machine(settings or Settle(), now=0.0, ambient=ambient, can_probe=can_probe)


def reason(m: Machine, now: float) -> Reason | None:
    result = m.result(now)
    return result.reason if result else None
