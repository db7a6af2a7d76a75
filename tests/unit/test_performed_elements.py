"""Where an action by element is sent: where the element was told to be a moment ago, and not longer ago."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from deskhand._core.events import PointerMove
from deskhand._core.geometry import Point
from deskhand._core.settle import Settle
from deskhand.actions import LeftClick
from deskhand.backends.memory import MemoryBackend
from deskhand.desktop import performed_elements
from deskhand.desktop.desktop import Desktop
from deskhand.desktop.performed_elements import aim
from deskhand.errors import ActionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deskhand._core.events import Step


class Moving:
    """Elements that are 10 pixels further whenever they are asked for."""

    def __init__(self) -> None:
        self.asked = 0

    def reach(self, ref: str, _: float) -> Point:
        assert ref == "e1"
        self.asked += 1
        return Point(10 * self.asked, 20)


def aimed(monkeypatch: pytest.MonkeyPatch, lost: Sequence[float]) -> tuple[Moving, Sequence[Step]]:
    """Aims at an element while this process loses that much time after each answer."""
    now, gone = [100.0], iter(lost)
    monkeypatch.setattr(performed_elements, "rest", lambda *_: now.__setitem__(0, now[0] + next(gone, 0.0)))
    with Desktop(MemoryBackend((320, 200), clock=lambda: now[0]), clock=lambda: now[0]) as desktop:
        elements = Moving()
        monkeypatch.setattr(type(desktop._core.elements), "reach", lambda _, ref, limit, __: elements.reach(ref, limit))
        return elements, aim(desktop._core, LeftClick(element="e1"), Settle(), None, dragging=False)[1]


@pytest.mark.parametrize(("lost", "asked"), [([], 1), ([0.029], 1), ([0.031], 2), ([0.5, 9.0, 0.04, 0.02], 4)])
def test_a_place_that_has_become_old_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch, lost: Sequence[float], asked: int
) -> None:
    elements, events = aimed(monkeypatch, lost)
    assert (elements.asked, events[0]) == (asked, PointerMove(10 * asked, 20))


def test_a_place_that_is_always_old_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ActionError, match="the place of e1 was out of date whenever it was to be used"):
        aimed(monkeypatch, [0.04] * 99)
