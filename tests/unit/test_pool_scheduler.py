"""The rules of a pool, by any order of events, on a clock that the test moves."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from deskhand.pool.scheduler import (
    FAILURES_TO_REFUSE,
    LONGEST_PAUSE,
    Check,
    End,
    PoolAction,
    PoolScheduler,
    Refuse,
    Reset,
    Serve,
    SlotState,
    Start,
)

PERIOD = 1.0


class Life(RuleBasedStateMachine):
    """Callers, desktops and failures in any order; the actions are carried out at any later time."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 100.0
        self.size, self.warm, self.parallel = 3, 1, 2
        self.scheduler = PoolScheduler(self.size, self.warm, parallel=self.parallel, period=PERIOD)
        self.last_ticket = 0
        # What a reader of the rules would keep: who waits in which order, who has which desktop, what is under way.
        self.waiting: list[int] = []
        self.users: dict[int, int] = {}
        self.under_way: dict[int, type[PoolAction]] = {}
        self.idle: set[int] = set()
        self.failed_in_a_row = 0
        self.failed_at = 0.0
        self.closed = False
        self.plan()

    def plan(self) -> None:
        for action in self.scheduler.plan(self.now):
            match action:
                case Serve(ticket, slot):
                    assert ticket == self.waiting.pop(0), "not first come, first served"
                    self.idle.remove(slot)
                    self.users[ticket] = slot
                case Refuse(ticket):
                    assert ticket == self.waiting.pop(0)
                    assert self.failed_in_a_row >= FAILURES_TO_REFUSE
                    assert not self.idle | set(self.users.values()) | set(self.under_way)
                case Start(slot):
                    assert slot not in self.under_way
                    assert not self.failed_in_a_row or self.now > self.failed_at, "again at once"
                    self.under_way[slot] = Start
                case _:
                    self.idle.discard(action.slot)
                    assert action.slot not in self.under_way
                    assert action.slot not in self.users.values(), f"{action} of one that is used"
                    self.under_way[action.slot] = type(action)
        starting = [slot for slot, what in self.under_way.items() if what is Start]
        assert len(starting) <= self.parallel
        assert self.scheduler.plan(self.now) == [], "an action was given twice"

    @precondition(lambda self: not self.closed)
    @rule()
    def ask(self) -> None:
        self.last_ticket += 1
        self.waiting.append(self.last_ticket)
        self.scheduler.ask(self.last_ticket)
        self.plan()

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def lose_patience(self, data: st.DataObject) -> None:
        ticket = data.draw(st.sampled_from(self.waiting))
        self.waiting.remove(ticket)
        assert self.scheduler.withdraw(ticket)
        assert not self.scheduler.withdraw(ticket)
        self.plan()

    @precondition(lambda self: self.users)
    @rule(data=st.data(), reset=st.booleans())
    def give_back(self, data: st.DataObject, *, reset: bool) -> None:
        ticket = data.draw(st.sampled_from(sorted(self.users)))
        slot = self.users.pop(ticket)
        self.scheduler.give_back(slot, reset=reset)
        self.scheduler.give_back(slot, reset=reset)
        self.plan()

    @precondition(lambda self: self.users and not self.closed)
    @rule(data=st.data())
    def prove_dead_when_handed_over(self, data: st.DataObject) -> None:
        ticket = data.draw(st.sampled_from(sorted(self.users)))
        slot = self.users.pop(ticket)
        self.waiting.insert(0, ticket)
        self.scheduler.end(slot)
        self.scheduler.ask(ticket, again=True)
        self.plan()

    @precondition(lambda self: self.under_way)
    @rule(data=st.data(), well=st.booleans())
    def finish(self, data: st.DataObject, *, well: bool) -> None:
        slot = data.draw(st.sampled_from(sorted(self.under_way)))
        what = self.under_way.pop(slot)
        if what is End:
            self.scheduler.ended(slot)
        elif what is Check:
            self.scheduler.checked(slot, self.now, alive=well)
        elif well:
            self.failed_in_a_row = 0
            self.scheduler.started(slot, self.now)
        elif what is Start:
            self.failed_in_a_row += 1
            self.failed_at = self.now
            self.scheduler.failed(slot, self.now)
        else:
            assert what is Reset
            self.scheduler.end(slot)
        if well and what is not End and not self.closed:
            self.idle.add(slot)
        self.plan()

    @rule(seconds=st.sampled_from([0.01, 0.3, PERIOD, LONGEST_PAUSE]))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.plan()

    @precondition(lambda self: not self.closed)
    @rule()
    def close(self) -> None:
        self.closed = True
        self.users.clear()
        assert self.scheduler.close() == self.waiting
        self.waiting.clear()
        self.plan()

    @invariant()
    def never_more_than_the_size(self) -> None:
        living = len(self.idle) + len(self.users) + len(self.under_way)
        assert living == len(self.scheduler.states) <= self.size

    @invariant()
    def nobody_waits_beside_a_ready_one(self) -> None:
        assert not (self.waiting and self.idle)

    @invariant()
    def something_is_tried_for_whoever_waits(self) -> None:
        if self.waiting:
            pause = self.scheduler.pause(self.now)
            assert self.under_way or len(self.users) == self.size or (pause is not None and pause <= LONGEST_PAUSE)

    @invariant()
    def spare_ones_are_kept(self) -> None:
        if not self.closed and not self.failed_in_a_row and len(self.scheduler.states) < self.size:
            to_come = len(self.idle) + sum(what is not End for what in self.under_way.values())
            assert to_come >= min(self.warm, self.size - len(self.users)) or Start in self.under_way.values()

    @invariant()
    def idle_ones_are_checked_in_time(self) -> None:
        assert self.scheduler.count(SlotState.READY) == len(self.idle)
        pause = self.scheduler.pause(self.now)
        if self.idle:
            assert pause is not None
            assert 0 < pause <= PERIOD

    def teardown(self) -> None:
        """Closed, it is over as soon as what is under way has ended."""
        if not self.closed:
            self.close()
        while self.under_way:
            slot, what = self.under_way.popitem()
            if what is End:
                self.scheduler.ended(slot)
            elif what is Check:
                self.scheduler.checked(slot, self.now, alive=True)
            else:
                self.scheduler.started(slot, self.now)
            self.plan()
        assert self.scheduler.over


TestLife = Life.TestCase


def _run(scheduler: PoolScheduler, now: float) -> list[PoolAction]:
    """Carry out everything but launches at once."""
    return [action for action in scheduler.plan(now) if isinstance(action, Start | Refuse | Serve)]


def test_those_who_wait_are_started_for_together_and_spare_ones_singly() -> None:
    scheduler = PoolScheduler(8, 3, parallel=4, period=PERIOD)
    assert _run(scheduler, 0.0) == [Start(1)]
    for ticket in range(1, 7):
        scheduler.ask(ticket)
    assert _run(scheduler, 0.0) == [Start(2), Start(3), Start(4)]
    scheduler.started(2, 0.1)
    assert _run(scheduler, 0.1) == [Serve(1, 2), Start(5)]


def test_launches_that_fail_are_tried_again_later_and_later_and_the_third_is_told() -> None:
    scheduler = PoolScheduler(1, 0, parallel=2, period=PERIOD)
    scheduler.ask(1)
    now = 0.0
    pauses = []
    for slot in (1, 2, 3):
        assert _run(scheduler, now) == [Start(slot)]
        scheduler.failed(slot, now)
        pause = scheduler.pause(now)
        assert pause is not None
        pauses.append(round(pause, 3))
        if slot < 3:
            assert _run(scheduler, now) == []
        now += pause
    assert pauses == [0.1, 0.2, 0.4]
    assert _run(scheduler, now - 0.01) == [Refuse(1)]
    scheduler.ask(2)
    assert _run(scheduler, now) == [Start(4)], (
        "who comes later is not told of others' failures without a try of his own"
    )
    scheduler.failed(4, now)
    assert _run(scheduler, now) == [Refuse(2)]


def test_a_failure_while_others_use_theirs_is_waited_out() -> None:
    scheduler = PoolScheduler(2, 0, parallel=2, period=PERIOD)
    scheduler.ask(1)
    assert _run(scheduler, 0.0) == [Start(1)]
    scheduler.started(1, 0.0)
    assert _run(scheduler, 0.0) == [Serve(1, 1)]
    scheduler.ask(2)
    now = 0.0
    for slot in range(2, 12):
        assert _run(scheduler, now) == [Start(slot)]
        scheduler.failed(slot, now)
        now += scheduler.pause(now) or 0.0
    assert now > 4 * LONGEST_PAUSE
    scheduler.give_back(1, reset=True)
    assert scheduler.plan(now - 0.01) == [Reset(1)]
    scheduler.started(1, now)
    assert scheduler.plan(now) == [Serve(2, 1)]


def test_who_was_given_a_dead_one_keeps_his_place() -> None:
    scheduler = PoolScheduler(1, 0, parallel=2, period=PERIOD)
    scheduler.ask(1)
    scheduler.ask(2)
    assert _run(scheduler, 0.0) == [Start(1)]
    scheduler.started(1, 0.0)
    assert _run(scheduler, 0.0) == [Serve(1, 1)]
    scheduler.end(1)
    scheduler.ask(1, again=True)
    assert scheduler.plan(0.0) == [End(1)]
    scheduler.ended(1)
    assert _run(scheduler, 0.0) == [Start(2)]
    scheduler.started(2, 0.0)
    assert _run(scheduler, 0.0) == [Serve(1, 2)]
