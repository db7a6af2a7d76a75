"""The elements of one `perform`: those that it acts on, and those that its observation has."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from deskhand._core.elements import Elements
from deskhand._core.geometry import Point, Rect
from deskhand._core.redaction import one_line
from deskhand._core.settle import Reason
from deskhand.actions import at_points, elements_of
from deskhand.desktop.translate import translate
from deskhand.errors import ActionError, BackendError, Closed, DesktopLost, Reconnected

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deskhand._core.events import Step
    from deskhand._core.settle import Settle, SettleResult
    from deskhand.actions import Action
    from deskhand.desktop.connection import Core

# Seconds for an element to become reachable, where the caller does not wait for the screen.
_REACHED = 3.0
# Seconds that applications have to tell their elements.
_READING = 2.0
_SHORTEST_READING = 0.1
# Of a screen that goes on changing.
_READINGS = 3
_LONGEST_REASON = 200
# How often two elements are looked for until neither has moved.
_REACHED_AT_ONCE = 4
# Seconds after which a place is too old to send a press there, and how often it is asked for until it is not.
_LATEST = 0.03
_AIMS = 10


def open_elements(core: Core) -> None:
    """Let a desktop pass whose elements can be read.

    Raises:
        UnsupportedAction: It has none.
        BackendError: The accessibility bus refuses.
    """
    with core.turn():
        core.elements.open(_READING)


def aim(
    core: Core, given: Action, settings: Settle | None, limit: float | None, *, dragging: bool
) -> tuple[Action, Sequence[Step]]:
    """An action where its elements and the pointer are now, and its events, to be sent at once.

    Args:
        core: The desktop's.
        given: The action, as its caller made it.
        settings: How to wait; None for not at all.
        limit: Seconds for the other side to report the pointer's place.
        dragging: Whether a button is held.

    Raises:
        ActionError: Its elements cannot be reached, or their places change faster than this process can use them.
    """
    refs = elements_of(given)
    for _ in range(_AIMS):
        action = at_points(given, _reach(core, refs, settings)) if refs else given
        located = core.clock()
        if not refs:
            core.backend.look(limit)
        events = translate(action, size=core.size, pointer=Point(*core.backend.screen.pointer), dragging=dragging)
        # Meanwhile elements may move.
        rest(core, action, events)
        if not refs or core.clock() - located <= _LATEST:
            return action, events
    place = f"the place of {' and '.join(refs)}"
    raise ActionError(
        f"{place} was out of date whenever it was to be used: this machine is too busy", "try again later"
    )


def rest(core: Core, action: Action, events: Sequence[Step]) -> None:
    """Wait until a click does not count as another one of the click before it."""
    backend = core.backend
    pointer, interval = backend.screen.pointer, backend.double_click_time
    if seconds := core.clicks.rest(action, events, pointer, core.clock(), interval):
        core.watch.pause(seconds)


def _reach(core: Core, refs: Sequence[str], settings: Settle | None) -> list[Point]:
    """Where elements are, all at once: to reach one may have moved another."""
    patience = None if settings is None else settings.timeout
    limit = _REACHED if patience is None else patience
    points: list[Point] = []
    for _ in range(_REACHED_AT_ONCE):
        before, points = points, [core.elements.reach(ref, limit, patience) for ref in refs]
        if len(refs) < 2 or points == before:
            return points
    raise ActionError(f"the elements {' and '.join(refs)} are not on the screen at the same time")


def read_elements(core: Core, result: SettleResult) -> tuple[Elements, SettleResult]:
    """The elements of the screen that the picture will show, and the verdict: it may have gone on changing meanwhile."""
    reader, screen = core.elements, core.backend.screen
    deadline = core.clock() + _READING
    try:
        for _ in range(_READINGS):
            elements = reader.read(max(_SHORTEST_READING, deadline - core.clock()))
            core.backend.look()
            changes = [Rect(*rect) for rect in screen.changes(reader.generation)]
            if all(any(rect.within(region) for region in result.busy) for rect in changes):
                return elements, result
    except (Closed, DesktopLost, Reconnected):
        raise
    except BackendError as error:
        # What was sent was sent, and its picture is there.
        return Elements(left_out=(f"nothing was read: {one_line(str(error), _LONGEST_REASON)}",)), result
    return elements, replace(result, settled=False, reason=Reason.STILL_CHANGING) if result.settled else result
