"""Sending the input of one `Desktop.perform`: in batches, with pauses, and with the waits that each part needs.

This module knows which input did not arrive. It has no order of actions (see `performing`) and no clipboard.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from deskhand._core.events import Answer, Event, KeyDown, KeyUp, Pause, PointerMove, Step
from deskhand._core.geometry import check_point
from deskhand._core.settle import Reason, Settle, SettleResult
from deskhand.actions import Type
from deskhand.desktop.translate import SecretEvents
from deskhand.errors import InputBlocked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deskhand._core.geometry import Rect, Size
    from deskhand.actions import Action
    from deskhand.backends.protocols import Missed
    from deskhand.desktop.connection import Core

# The wait after a hover or a part of a drag: toolkits forward motion once a frame, and draw within one or two.
_ANSWER = Settle(quiet=0.03, reaction=0.05, timeout=0.25)
# Seconds for a part of a text to appear.
_ECHO = 0.5
# Seconds of a call, in all, for applications that are still at work after that.
_PATIENCE = 3.0
# Longer pauses are waited for here, where they can be interrupted; shorter ones are paced by the backend.
_LONGEST_BACKEND_PAUSE = 0.05


class Sender:
    """Sends the events of one call's actions, and remembers how applications took them.

    Attributes:
        limit: For how many seconds a wait for the other side lasts; None without an end.
        index: Which action is under way; None before the first.
        planned_size: The size of the screen that the points were checked against.
        unanswered: An application did not answer a part of it in time.
        stirred: The screen has answered a part of the action under way.
        held_up: The window had read nothing for as long as that, before the keys of the action under way were sent.
    """

    __slots__ = (
        "_backend",
        "_clock",
        "_core",
        "_missed",
        "_patience",
        "_pressed",
        "_settings",
        "_watch",
        "held_up",
        "index",
        "limit",
        "planned_size",
        "stirred",
        "unanswered",
    )

    def __init__(self, core: Core, settings: Settle | None) -> None:
        """Send to `core`'s desktop; `settings` None does not wait."""
        self._core = core
        self._backend = core.backend
        self._watch = core.watch
        self._pressed = core.pressed_keys
        self._clock = core.clock
        self._settings = settings
        self._patience = _PATIENCE
        # What did not reach its window, and the action that sent it.
        self._missed: tuple[Missed, int] | None = None
        self.limit: float | None = None if settings is None else settings.timeout
        self.index: int | None = None
        self.planned_size: Size = core.size
        self.unanswered: bool = False
        self.stirred: bool = False
        self.held_up: bool = False

    def begin(self, index: int) -> None:
        """Note that what is sent next belongs to this action."""
        self.index, self.stirred, self.held_up = index, False, False

    def send(self, events: Sequence[Step]) -> None:
        """Send events; the long pauses are spent here, so that they can be interrupted, keeping the screen current."""
        if isinstance(events, SecretEvents):
            # It has no pauses, and stays one value that shows nothing.
            self._send_batch(events)
            return
        # The whole action is refused, or nothing of it.
        self._refuse_stale(events)
        batch: list[Event] = []
        for event in events:
            if isinstance(event, Answer):
                self._send_batch(batch)
                batch = []
                self._await_answer()
            elif isinstance(event, Pause) and event.seconds > _LONGEST_BACKEND_PAUSE:
                self._send_batch(batch)
                batch = []
                self._watch.pause(event.seconds)
            else:
                batch.append(event)
        self._send_batch(batch)

    def type(self, events: Sequence[Step]) -> None:
        """Send a text, waiting for each part to appear if the backend splits it; after one has not, no more waiting."""
        # A text has no `Answer`.
        *parts, rest = self._backend.split(cast("Sequence[Event]", events))
        secret = isinstance(events, SecretEvents)
        if parts and self._settings is None:
            # The call did not wait after an earlier click, and what that draws must not count as the text.
            self._watch.settle(_ANSWER, whole=False)
        for part in parts:
            # Earlier drawing is no answer to this.
            self._watch.appears(0)
            self.send(SecretEvents(part) if secret else part)
            if not self.unanswered:
                lag = self._backend.lag
                if self._watch.appears(_ECHO + lag.frame + 2 * max(lag.trip, lag.nap)):
                    self.stirred = True
                    if sum(isinstance(event, KeyDown) for event in part) > 1:
                        # The first of several may appear before the others.
                        self._watch.settle(_ANSWER, whole=False)
                    self._backend.taken()
                else:
                    self.unanswered = True
        self.send(SecretEvents(rest) if secret and parts else rest)
        self.refuse_unfocused()

    def note_answer(self, action: Action, events: Sequence[Step], result: SettleResult) -> None:
        """Note that a text appeared, or that it changed nothing where the keyboard focus is unknown."""
        if result.settled and result.first_change is not None:
            # An application updates its elements for keys before it draws the change.
            self._watch.keyed = -math.inf
        if isinstance(action, Type) and events and not self._backend.tells_focus:
            self.unanswered |= result.reason is Reason.UNCHANGED
            if result.first_change is not None and not self.unanswered:
                self._backend.taken()

    def _refuse_stale(self, events: Sequence[Step]) -> None:
        """Check points again if the screen was resized since they were; servers move outside points to the nearest edge."""
        if (size := self._core.size) != self.planned_size:
            for event in events:
                if isinstance(event, PointerMove):
                    check_point((event.x, event.y), size)

    def _await_answer(self) -> None:
        """Wait until the application under the pointer has taken what was sent, or the time for that is used up."""
        lag = self._backend.lag
        if lag.nap:
            # The server may not look at all for that long, even if the application has answered.
            self._watch.pause(lag.trip + 2 * _ANSWER.reaction)
            return
        settings = replace(_ANSWER, timeout=_ANSWER.timeout + lag.frame + 2 * lag.trip)
        while True:
            begun = self._clock()
            result = self._watch.settle(settings, at_pointer=True, whole=False)
            self.stirred |= result.first_change is not None
            if result.reason is not Reason.WINDOW_BUSY or result.first_change is not None:
                return
            self._patience -= self._clock() - begun
            if self._patience <= 0:
                self.unanswered = True
                return

    def _send_batch(self, batch: Sequence[Event]) -> None:
        if not batch:
            return
        self._watch.check_stop()
        self._refuse_stale(batch)
        self._pressed.expect(batch)
        if self._pressed.pressed:
            self._core.watch_over()
        self._backend.allow(self.limit)
        missed = self._backend.send(batch)
        self._watch.sent = self._clock()
        if isinstance(batch[-1], KeyUp):
            self._watch.keyed = self._watch.sent
        if missed is not None and missed.obstacle == "unread":
            self.held_up = True
        elif missed is not None:
            self._missed = missed, self.index or 0
        for event in batch:
            self._pressed.note(event)
            if isinstance(event, PointerMove):
                self._core.left_pointer = event.x, event.y

    def refuse_unfocused(self) -> None:
        """Raise if a text was typed without a focused window; the keys of a chord may be a window manager's."""
        if self._missed is not None and self._missed[0].obstacle == "unfocused":
            raise InputBlocked("keyboard", unfocused=True)

    def refuse_blocked(self, changes: Sequence[Rect]) -> None:
        """Raise if input went to another program, unless that changed anything in the windows of that program."""
        if self._missed is None or self._missed[0].obstacle == "unfocused":
            return
        missed, self.index = self._missed
        if all(rect.intersect(window).empty for rect in changes for window in missed.windows):
            raise InputBlocked(missed.obstacle, missed.holder)
