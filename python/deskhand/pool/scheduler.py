"""Decides which caller gets which desktop of a pool, and when a desktop is started, checked or ended.

This module owns those rules. What must never appear here: a thread, a desktop, a clock. Callers report what happened, with the
time where it matters, and carry out the actions of `PoolScheduler.plan`.

Rule 1: callers are served in the order in which they ask. Rule 2: there are never more desktops than the size, in any state,
even ending ones. Rule 3: while a caller waits, the pool tries to serve it, and never repeats a failure in a tight loop.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias

FAILURES_TO_REFUSE = 3
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0


class SlotState(Enum):
    """The state of one desktop of a pool."""

    STARTING = auto()
    READY = auto()
    CHECKING = auto()
    USED = auto()
    RESETTING = auto()
    ENDING = auto()


_TO_COME = (SlotState.STARTING, SlotState.READY, SlotState.CHECKING, SlotState.RESETTING)


@dataclass(frozen=True, slots=True)
class Start:
    """Launch a desktop for this slot, then call `started` or `failed`."""

    slot: int


@dataclass(frozen=True, slots=True)
class Check:
    """Check whether it answers, then call `checked`."""

    slot: int


@dataclass(frozen=True, slots=True)
class Reset:
    """Make it as new, then call `started` or `end`."""

    slot: int


@dataclass(frozen=True, slots=True)
class End:
    """Close it, then call `ended`."""

    slot: int


@dataclass(frozen=True, slots=True)
class Serve:
    """Give the desktop to the caller with the ticket."""

    ticket: int
    slot: int


@dataclass(frozen=True, slots=True)
class Refuse:
    """Report to the caller with the ticket that no desktop comes up."""

    ticket: int


PoolAction: TypeAlias = Start | Check | Reset | End | Serve | Refuse


class PoolScheduler:
    """The state of one pool.

    Attributes:
        states: The state of the desktop of each slot.
        queue: The tickets that wait, first come first.
        failures: How many launches have failed since the last success.
    """

    def __init__(self, size: int, warm: int, *, parallel: int, period: float) -> None:
        """A pool without desktops.

        Args:
            size: How many desktops there may be.
            warm: How many are kept ready beyond those in demand.
            parallel: How many may be starting at once for callers that wait; for spare ones it is one.
            period: Seconds after which an idle desktop is checked.
        """
        self.size = size
        self.warm = warm
        self.states: dict[int, SlotState] = {}
        self.queue: deque[int] = deque()
        self.failures: int = 0
        self._parallel = parallel
        self._period = period
        # Ready ones, longest idle first, with the time of their last answer.
        self._idle: dict[int, float] = {}
        self._retry_at = 0.0
        self._slots = 0
        self._actions: list[PoolAction] = []
        self._closing = False

    def count(self, *states: SlotState) -> int:
        """How many desktops are in one of these states."""
        return sum(state in states for state in self.states.values())

    @property
    def over(self) -> bool:
        """Whether it was closed, and the last desktop has ended."""
        return self._closing and not self.states

    # --- requests of callers ---

    def ask(self, ticket: int, *, again: bool = False) -> None:
        """A caller wants a desktop; `again`, after one that proved dead at the handover, it keeps its place in the queue."""
        if again:
            self.queue.appendleft(ticket)
        else:
            self.queue.append(ticket)

    def withdraw(self, ticket: int) -> bool:
        """A caller stops waiting; False if it does not wait (any more)."""
        if ticket not in self.queue:
            return False
        self.queue.remove(ticket)
        return True

    def give_back(self, slot: int, *, reset: bool) -> None:
        """A desktop is not used any more; `reset` it for the next user, or end it."""
        if self.states.get(slot) is SlotState.USED:
            if reset and not self._closing:
                self.states[slot] = SlotState.RESETTING
                self._actions.append(Reset(slot))
            else:
                self.end(slot)

    def close(self) -> list[int]:
        """End everything; a desktop that is starting, checked or reset ends after that.

        Returns:
            The tickets that were waiting.
        """
        self._closing = True
        waiting = list(self.queue)
        self.queue.clear()
        for slot, state in self.states.items():
            if state in {SlotState.READY, SlotState.USED}:
                self.end(slot)
        return waiting

    # --- outcomes of actions ---

    def started(self, slot: int, now: float) -> None:
        """A launch or a reset has succeeded."""
        self.failures = 0
        self._retry_at = now
        self._become_ready(slot, now)

    def failed(self, slot: int, now: float) -> None:
        """A launch has failed, and nothing is left of it; after a reset that failed the desktop is ended (see `end`)."""
        self.failures += 1
        self._retry_at = now + min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(self.failures - 1, 10))
        del self.states[slot]

    def checked(self, slot: int, now: float, *, alive: bool) -> None:
        """A check is done."""
        if alive:
            self._become_ready(slot, now)
        else:
            self.end(slot)

    def ended(self, slot: int) -> None:
        """A desktop has ended."""
        del self.states[slot]

    def _become_ready(self, slot: int, now: float) -> None:
        if self._closing:
            self.end(slot)
        else:
            self.states[slot] = SlotState.READY
            self._idle[slot] = now

    def end(self, slot: int) -> None:
        """End a desktop that is dead or no longer needed."""
        self.states[slot] = SlotState.ENDING
        self._idle.pop(slot, None)
        self._actions.append(End(slot))

    # --- actions ---

    def plan(self, now: float) -> list[PoolAction]:
        """The actions for now; each is given once."""
        actions, self._actions = self._actions, []
        if self._closing:
            return actions
        while self.queue and self._idle:
            slot = next(iter(self._idle))
            del self._idle[slot]
            self.states[slot] = SlotState.USED
            actions.append(Serve(self.queue.popleft(), slot))
        while self._should_start(now):
            self._slots += 1
            self.states[self._slots] = SlotState.STARTING
            actions.append(Start(self._slots))
        if self.failures >= FAILURES_TO_REFUSE and not self.states:
            actions += [Refuse(ticket) for ticket in self.queue]
            self.queue.clear()
        for slot, seen in list(self._idle.items()):
            if now - seen >= self._period:
                del self._idle[slot]
                self.states[slot] = SlotState.CHECKING
                actions.append(Check(slot))
        return actions

    def _should_start(self, now: float) -> bool:
        to_come = self.count(*_TO_COME)
        if len(self.states) >= self.size or to_come >= len(self.queue) + self.warm:
            return False
        # Spare desktops must not take the processors from those in use, and after a failure one try at a time is enough.
        one_by_one = to_come >= len(self.queue) or self.failures
        starting = self.count(SlotState.STARTING)
        return starting < (1 if one_by_one else self._parallel) and (not self.failures or now >= self._retry_at)

    def pause(self, now: float) -> float | None:
        """Seconds after which `plan` may have actions even if nothing happens; None: never."""
        due = [seen + self._period for seen in self._idle.values()]
        # After that time, something else holds the start back, and its end will be reported.
        if self.failures and now < self._retry_at:
            due.append(self._retry_at)
        return max(0.0, min(due) - now) if due else None
