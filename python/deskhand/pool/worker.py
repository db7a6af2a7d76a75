"""The thread that carries out the scheduler's actions."""

from __future__ import annotations

import contextlib
import copy
import queue
import threading
import warnings
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from deskhand._core.arguments import (
    expect,
)
from deskhand._core.forks import Owner
from deskhand._native import Interrupted
from deskhand.desktop.access import bare, last_look, latest, pass_on
from deskhand.desktop.desktop import Desktop
from deskhand.errors import BackendError, Closed, DeskhandError, LaunchFailed, PoolExhausted
from deskhand.pool.scheduler import Check, End, PoolAction, PoolScheduler, Refuse, Reset, Serve, SlotState, Start
from deskhand.pool.status import PoolStatus, ResetBy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deskhand.machine.processes import Guard

_CHECK_LIMIT = 2.0


@dataclass(eq=False, slots=True)
class Ticket:
    """One caller that wants a desktop, or has one. `number` and `slot` belong to the worker."""

    tell: Callable[[Desktop | BaseException], None]
    number: int = 0
    slot: int | None = None


class PoolWorker:
    """The thread that has the scheduler, and the threads that carry out its actions."""

    def __init__(
        self,
        launch: Callable[[], Desktop],
        reset: ResetBy,
        scheduler: PoolScheduler,
        clock: Callable[[], float],
        most: int | None,
    ) -> None:
        self.owner: Owner = Owner()
        self.launch = launch
        self.reset = reset
        self.scheduler = scheduler
        self.clock = clock
        self.most_waiting = most
        self.status: PoolStatus = PoolStatus(scheduler.size)
        self.failure: BaseException | None = None
        self.over: threading.Event = threading.Event()
        self.guard: Guard | None = None
        self.inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._to_check: queue.SimpleQueue[tuple[int, Desktop] | None] = queue.SimpleQueue()
        self._closing = False
        self._tickets: dict[int, Ticket] = {}
        self._last_ticket = 0
        self._desktops: dict[int, Desktop] = {}
        self._failed = self._lost = 0
        self._trouble = ""
        self._threads: list[threading.Thread] = []
        self.thread: threading.Thread = threading.Thread(target=self._run, name="deskhand-pool", daemon=True)
        self.thread.start()

    # --- in any thread ---

    def ask(self, ticket: Ticket) -> None:
        """Request a desktop; `ticket.tell` will be called with it, or with an error."""
        self.owner.refuse_if_parent("this pool")
        self.inbox.put(partial(self._on_ask, ticket))
        if self.over.is_set():
            raise _closed()

    def ask_again(self, ticket: Ticket) -> None:
        """Report that a desktop that was handed over proved dead."""
        self.inbox.put(partial(self._on_dead, ticket))
        if self.over.is_set():
            raise _closed()

    def leave(self, ticket: Ticket) -> None:
        """Withdraw a request, or give a desktop back."""
        if self.owner.is_parent:
            return
        self.inbox.put(partial(self._on_leave, ticket))

    def is_fit(self, desktop: Desktop) -> bool:
        """Whether a desktop is started, live and ready; finding out may take two seconds."""
        try:
            return bare(desktop).health(timeout=_CHECK_LIMIT).ok
        except (Exception, Interrupted):  # noqa: BLE001 # any error makes it unfit
            return False

    def exhausted(self, waited: float) -> PoolExhausted:
        """The error for a caller that has waited this long; raise it from `failure`."""
        status = self.status
        if self.failure is not None:
            hint = f"the last launch failed: {self.failure}"
        else:
            hint = "give desktops back earlier, wait longer, or make the pool larger"
        return PoolExhausted(waited, status.size, status.used, max(0, status.waiting - 1), hint)

    # --- in the worker's thread ---

    def _run(self) -> None:
        checker = threading.Thread(target=self._check_all, name="deskhand-pool-check", daemon=True)
        checker.start()
        try:
            while not self.scheduler.over:
                self._carry_out(self.scheduler.plan(self.clock()))
                with contextlib.suppress(queue.Empty):
                    self.inbox.get(timeout=self.scheduler.pause(self.clock()))()
        finally:
            self._carry_out(())
            self._to_check.put(None)
            for thread in (checker, *self._threads):
                thread.join()
            if self.guard is not None:
                self.guard.close()
            self._closing = True
            self.over.set()
            # Later callers find `over` set.
            with contextlib.suppress(queue.Empty):
                while True:
                    self.inbox.get_nowait()()

    def _carry_out(self, actions: Sequence[PoolAction]) -> None:
        count = self.scheduler.count
        self.status = PoolStatus(
            self.scheduler.size,
            ready=count(SlotState.READY, SlotState.CHECKING),
            used=count(SlotState.USED),
            starting=count(SlotState.STARTING, SlotState.RESETTING),
            ending=count(SlotState.ENDING),
            waiting=len(self.scheduler.queue),
            failed=self._failed,
            lost=self._lost,
            trouble=self._trouble,
        )
        for action in actions:
            match action:
                case Serve(number, slot):
                    ticket = self._tickets[number]
                    ticket.slot = slot
                    ticket.tell(self._desktops[slot])
                case Refuse(number):
                    ticket = self._tickets.pop(number)
                    ticket.tell(_as_launch_failure(self.failure))
                case Check(slot):
                    self._to_check.put((slot, self._desktops[slot]))
                case Start(slot):
                    self._spawn(self._start_one, slot)
                case Reset(slot):
                    self._spawn(self._reset_one, slot, self._desktops[slot])
                case End(slot):
                    self._spawn(self._end_one, slot, self._desktops.pop(slot))

    def _spawn(self, function: Callable[..., None], *arguments: object) -> None:
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        thread = threading.Thread(target=function, args=arguments, name="deskhand-pool-work", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            # The machine allows no more threads, so the work is done in this one.
            function(*arguments)
        else:
            self._threads.append(thread)

    def _on_ask(self, ticket: Ticket) -> None:
        full = self.most_waiting is not None and len(self.scheduler.queue) >= self.most_waiting
        if self._closing:
            ticket.tell(_closed())
        elif full and not self.scheduler.count(SlotState.READY):
            error = self.exhausted(0.0)
            error.__cause__ = self.failure
            ticket.tell(error)
        else:
            self._last_ticket += 1
            ticket.number = self._last_ticket
            self._tickets[ticket.number] = ticket
            self.scheduler.ask(ticket.number)

    def _on_dead(self, ticket: Ticket) -> None:
        slot, ticket.slot = ticket.slot, None
        self._lost += 1
        if self._closing or slot is None:
            ticket.tell(_closed())
        else:
            self.scheduler.end(slot)
            self.scheduler.ask(ticket.number, again=True)

    def _on_leave(self, ticket: Ticket) -> None:
        self._tickets.pop(ticket.number, None)
        slot, ticket.slot = ticket.slot, None
        if slot is not None:
            self.scheduler.give_back(slot, reset=self.reset != "fresh")
        else:
            self.scheduler.withdraw(ticket.number)

    def _on_started(self, slot: int, desktop: Desktop) -> None:
        self._desktops[slot] = desktop
        self.failure = None
        self.scheduler.started(slot, self.clock())

    def _on_failed(self, slot: int, error: BaseException) -> None:
        self._note(error)
        self.failure = error
        self.scheduler.failed(slot, self.clock())

    def _on_reset_failed(self, slot: int, desktop: Desktop, error: BaseException) -> None:
        self._note(error)
        self._desktops[slot] = desktop
        self.scheduler.end(slot)

    def _note(self, error: BaseException) -> None:
        self._failed += 1
        self._trouble = f"{type(error).__name__}: {error}"

    def _on_checked(self, slot: int, alive: bool) -> None:  # noqa: FBT001 # a message
        self._lost += not alive
        self.scheduler.checked(slot, self.clock(), alive=alive)

    def on_close(self) -> None:
        """End everything."""
        if not self._closing:
            self._closing = True
            for number in self.scheduler.close():
                self._tickets.pop(number).tell(_closed())

    # --- in threads of their own ---

    def _start_one(self, slot: int) -> None:
        try:
            desktop = expect("Pool: what launch returns", self.launch(), Desktop)
        except BaseException as error:  # noqa: BLE001 # the waiting callers get it
            self.inbox.put(partial(self._on_failed, slot, error))
        else:
            self.inbox.put(partial(self._on_started, slot, desktop))

    def _reset_one(self, slot: int, desktop: Desktop) -> None:
        desktop = latest(desktop)
        try:
            # Resetting a desktop that hangs would wait for it.
            if last_look(desktop, _CHECK_LIMIT).live:
                raise BackendError("it does not answer")  # noqa: TRY301 # as any other failure
            if callable(self.reset):
                # First, so that the former user can do nothing meanwhile.
                desktop = pass_on(desktop)
                # The pool prepares the desktop, and no policy of the desktop decides about that.
                self.reset(bare(desktop))
            else:
                desktop = desktop.reset()
        except BaseException as error:  # noqa: BLE001 # a fresh one takes its place
            self.inbox.put(partial(self._on_reset_failed, slot, desktop, error))
        else:
            self.inbox.put(partial(self._on_started, slot, desktop))

    def _end_one(self, slot: int, desktop: Desktop) -> None:
        try:
            desktop.close()
            # Only now is it known whether its user has handed it over: the latest object ends the desktop.
            latest(desktop).close()
        except Exception as error:  # noqa: BLE001 # no caller waits for it
            warnings.warn(f"a desktop of a pool could not be closed: {error}", ResourceWarning, stacklevel=1)
        finally:
            self.inbox.put(partial(self.scheduler.ended, slot))

    def _check_all(self) -> None:
        while (item := self._to_check.get()) is not None:
            slot, desktop = item
            self.inbox.put(partial(self._on_checked, slot, self.is_fit(desktop)))


def _closed() -> Closed:
    return Closed("this pool is closed")


def _as_launch_failure(error: BaseException | None) -> BaseException:
    """The error for several callers about one failure; each gets an object of its own."""
    if isinstance(error, DeskhandError):
        failure: BaseException = copy.copy(error)
    else:
        failure = LaunchFailed("a desktop of the pool", 0.0, "", f"{type(error).__name__}: {error}")
    failure.__cause__ = error
    return failure
