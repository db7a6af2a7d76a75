"""Many desktops, kept ready for whoever needs one: `Pool`, and `AsyncPool` for coroutines.

This module owns the threads of a pool, and what is done to a desktop between two users. What must never appear here: the rules
of who gets which desktop and when one is started (see `deskhand.pool.scheduler`), or how one is made (see `deskhand.launch`).

One thread per pool, the keeper, has its roster; everybody else only puts messages into its inbox. So a Ctrl-C or a cancellation
may come at any moment: it cannot leave the roster half changed, and what the interrupted caller was given is given back.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import os
import queue
import secrets
import sys
import threading
import time
import warnings
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

from deskhand._core.arguments import (
    expect,
    expect_callable,
    expect_integer,
    expect_seconds,
    expect_size,
    expect_text,
    expect_texts,
)
from deskhand._core.forks import Owner
from deskhand._native import Interrupted
from deskhand.aio.desktop import AsyncDesktop
from deskhand.desktop.desktop import Desktop, bare, core_of
from deskhand.errors import ActionError, BackendError, Closed, DeskhandError, LaunchFailed, PoolExhausted, shown
from deskhand.launchers import targets
from deskhand.launchers.display import LARGEST_SCREEN
from deskhand.launchers.docker.shared import MOST, Rooms
from deskhand.machine import runtime_directory
from deskhand.machine.processes import Guard
from deskhand.machine.program_arguments import program_words
from deskhand.pool.scheduler import Check, End, Order, Refuse, Reset, Roster, Serve, Start, State

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType


__all__ = ["AsyncPool", "Pool", "PoolStatus", "ResetBy"]

ResetBy: TypeAlias = "Literal['fresh', 'session'] | Callable[[Desktop], object]"
"""What is done to a desktop between two users; see `Pool`."""

_RESETS = ("fresh", "session")
_CHECK_PERIOD = 1.0
_CHECK_LIMIT = 2.0
_CLOSE_LIMIT = 60.0


@dataclass(frozen=True, slots=True)
class PoolStatus:
    """How many desktops of a pool are doing what.

    Attributes:
        size: How many there may be.
        ready: Waiting for a user.
        used: In use.
        starting: Being launched, or made as new.
        ending: Being closed.
        waiting: Callers that wait for one.
        failed: Launches and resets that have failed since the pool was made.
        lost: Idle desktops that were found dead, and replaced, since the pool was made.
        trouble: Why the latest launch or reset failed; empty where none has.
    """

    size: int
    ready: int = 0
    used: int = 0
    starting: int = 0
    ending: int = 0
    waiting: int = 0
    failed: int = 0
    lost: int = 0
    trouble: str = ""


@dataclass(eq=False, slots=True)
class _Ticket:
    """One caller who wants a desktop, or has one. `number` and `slot` are the keeper's."""

    tell: Callable[[Desktop | BaseException], None]
    number: int = 0
    slot: int | None = None


class _Keeper:
    """The thread that has the roster, and the threads that carry out its orders."""

    def __init__(
        self,
        launch: Callable[[], Desktop],
        reset: ResetBy,
        roster: Roster,
        clock: Callable[[], float],
        most: int | None,
    ) -> None:
        self.owner: Owner = Owner()
        self.launch = launch
        self.reset = reset
        self.roster = roster
        self.clock = clock
        self.most_waiting = most
        self.status: PoolStatus = PoolStatus(roster.size)
        self.failure: BaseException | None = None
        self.over: threading.Event = threading.Event()
        self.guard: Guard | None = None
        self.inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._to_check: queue.SimpleQueue[tuple[int, Desktop] | None] = queue.SimpleQueue()
        self._closing = False
        self._tickets: dict[int, _Ticket] = {}
        self._last_ticket = 0
        self._desktops: dict[int, Desktop] = {}
        self._failed = self._lost = 0
        self._trouble = ""
        self._threads: list[threading.Thread] = []
        self.thread: threading.Thread = threading.Thread(target=self._run, name="deskhand-pool", daemon=True)
        self.thread.start()

    # --- in any thread ---

    def ask(self, ticket: _Ticket) -> None:
        """Want a desktop; `ticket.tell` will be called with it, or with an error."""
        self.owner.refuse_if_parent("this pool")
        self.inbox.put(partial(self._on_ask, ticket))
        if self.over.is_set():
            raise _closed()

    def ask_again(self, ticket: _Ticket) -> None:
        """What was given proved dead."""
        self.inbox.put(partial(self._on_dead, ticket))
        if self.over.is_set():
            raise _closed()

    def leave(self, ticket: _Ticket) -> None:
        """Do not want one any more, or have used it."""
        if self.owner.is_parent:
            return
        self.inbox.put(partial(self._on_leave, ticket))

    def is_fit(self, desktop: Desktop) -> bool:
        """Whether a desktop is started, live and ready; it may take two seconds to say so."""
        try:
            return bare(desktop).probe(timeout=_CHECK_LIMIT).ok
        except (Exception, Interrupted):  # noqa: BLE001 # whatever it is, nobody should be given such a desktop
            return False

    def exhausted(self, waited: float) -> PoolExhausted:
        """The error of somebody who waited so long; raise it from `failure`."""
        status = self.status
        if self.failure is not None:
            hint = f"the last launch failed: {self.failure}"
        else:
            hint = "give desktops back earlier, wait longer, or make the pool larger"
        return PoolExhausted(waited, status.size, status.used, max(0, status.waiting - 1), hint)

    # --- in the keeper's thread ---

    def _run(self) -> None:
        checker = threading.Thread(target=self._check_all, name="deskhand-pool-check", daemon=True)
        checker.start()
        try:
            while not self.roster.over:
                self._carry_out(self.roster.plan(self.clock()))
                with contextlib.suppress(queue.Empty):
                    self.inbox.get(timeout=self.roster.pause(self.clock()))()
        finally:
            self._carry_out(())
            self._to_check.put(None)
            for thread in (checker, *self._threads):
                thread.join()
            if self.guard is not None:
                self.guard.close()
            self._closing = True
            self.over.set()
            # Whoever asks from now on sees that himself.
            with contextlib.suppress(queue.Empty):
                while True:
                    self.inbox.get_nowait()()

    def _carry_out(self, orders: Sequence[Order]) -> None:
        count = self.roster.count
        self.status = PoolStatus(
            self.roster.size,
            ready=count(State.READY, State.CHECKING),
            used=count(State.USED),
            starting=count(State.STARTING, State.RESETTING),
            ending=count(State.ENDING),
            waiting=len(self.roster.queue),
            failed=self._failed,
            lost=self._lost,
            trouble=self._trouble,
        )
        for order in orders:
            match order:
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
            # The machine has no thread left. What has to be done is done here then.
            function(*arguments)
        else:
            self._threads.append(thread)

    def _on_ask(self, ticket: _Ticket) -> None:
        full = self.most_waiting is not None and len(self.roster.queue) >= self.most_waiting
        if self._closing:
            ticket.tell(_closed())
        elif full and not self.roster.count(State.READY):
            error = self.exhausted(0.0)
            error.__cause__ = self.failure
            ticket.tell(error)
        else:
            self._last_ticket += 1
            ticket.number = self._last_ticket
            self._tickets[ticket.number] = ticket
            self.roster.ask(ticket.number)

    def _on_dead(self, ticket: _Ticket) -> None:
        slot, ticket.slot = ticket.slot, None
        self._lost += 1
        if self._closing or slot is None:
            ticket.tell(_closed())
        else:
            self.roster.end(slot)
            self.roster.ask(ticket.number, again=True)

    def _on_leave(self, ticket: _Ticket) -> None:
        self._tickets.pop(ticket.number, None)
        slot, ticket.slot = ticket.slot, None
        if slot is not None:
            self.roster.give_back(slot, reset=self.reset != "fresh")
        else:
            self.roster.withdraw(ticket.number)

    def _on_started(self, slot: int, desktop: Desktop) -> None:
        self._desktops[slot] = desktop
        self.failure = None
        self.roster.started(slot, self.clock())

    def _on_failed(self, slot: int, error: BaseException) -> None:
        self._note(error)
        self.failure = error
        self.roster.failed(slot, self.clock())

    def _on_reset_failed(self, slot: int, desktop: Desktop, error: BaseException) -> None:
        self._note(error)
        self._desktops[slot] = desktop
        self.roster.end(slot)

    def _note(self, error: BaseException) -> None:
        self._failed += 1
        self._trouble = f"{type(error).__name__}: {error}"

    def _on_checked(self, slot: int, alive: bool) -> None:  # noqa: FBT001 # a message
        self._lost += not alive
        self.roster.checked(slot, self.clock(), alive=alive)

    def on_close(self) -> None:
        """End everything."""
        if not self._closing:
            self._closing = True
            for number in self.roster.close():
                self._tickets.pop(number).tell(_closed())

    # --- in threads of their own ---

    def _start_one(self, slot: int) -> None:
        try:
            desktop = expect("Pool: what launch returns", self.launch(), Desktop)
        except BaseException as error:  # noqa: BLE001 # it is told to whoever waits
            self.inbox.put(partial(self._on_failed, slot, error))
        else:
            self.inbox.put(partial(self._on_started, slot, desktop))

    def _reset_one(self, slot: int, desktop: Desktop) -> None:
        desktop = _latest(desktop)
        try:
            # One that hangs would be waited for.
            if core_of(desktop).last_look(_CHECK_LIMIT).live:
                raise BackendError("it does not answer")  # noqa: TRY301 # as any other failure
            if callable(self.reset):
                # First, so that the user before can do nothing meanwhile.
                desktop = desktop.hand_over()
                # Whoever owns the pool makes the desktop ready: no policy of its own judges that.
                self.reset(bare(desktop))
            else:
                desktop = desktop.renew()
        except BaseException as error:  # noqa: BLE001 # a fresh one takes its place
            self.inbox.put(partial(self._on_reset_failed, slot, desktop, error))
        else:
            self.inbox.put(partial(self._on_started, slot, desktop))

    def _end_one(self, slot: int, desktop: Desktop) -> None:
        try:
            desktop.close()
            # Only now is it known whether its user has handed it over: whichever object came of it ends the desktop.
            while desktop.successor is not None:
                desktop = desktop.successor
                desktop.close()
        except Exception as error:  # noqa: BLE001 # there is no caller to tell
            warnings.warn(f"a desktop of a pool did not end in order: {error}", ResourceWarning, stacklevel=1)
        finally:
            self.inbox.put(partial(self.roster.ended, slot))

    def _check_all(self) -> None:
        while (item := self._to_check.get()) is not None:
            slot, desktop = item
            self.inbox.put(partial(self._on_checked, slot, self.is_fit(desktop)))


def _latest(desktop: Desktop) -> Desktop:
    """The object that drives it now: its user may have handed it over."""
    while desktop.successor is not None:
        desktop = desktop.successor
    return desktop


def _checked(timeout: float | None) -> float | None:
    return None if timeout is None else expect_seconds("acquire: timeout", timeout)


def _closed() -> Closed:
    return Closed("this pool is closed")


def _as_launch_failure(error: BaseException | None) -> BaseException:
    """What several callers are told of one failure, each with an object of his own."""
    if isinstance(error, DeskhandError):
        told: BaseException = copy.copy(error)
    else:
        told = LaunchFailed("a desktop of the pool", 0.0, "", f"{type(error).__name__}: {error}")
    told.__cause__ = error
    return told


class _Lease:
    """What `Pool.acquire` returns."""

    # For one whose making is interrupted.
    _ticket: _Ticket | None = None
    _desktop: Desktop | None = None

    def __init__(self, keeper: _Keeper, timeout: float | None) -> None:
        self._keeper = keeper
        self._timeout = timeout
        # Unlike a Future or a Condition it may be interrupted at any moment.
        self._told: queue.SimpleQueue[Desktop | BaseException] = queue.SimpleQueue()

    def __enter__(self) -> Desktop:
        if self._ticket is not None:
            raise ActionError("what acquire() returned can be entered once: call it again for another desktop")
        self._ticket = _Ticket(self._told.put)
        try:
            return self._obtain(self._ticket)
        except BaseException:
            self._leave()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def cancel(self) -> None:
        """From any thread: it is waited for no longer, and entering raises BackendError. Who has a desktop keeps it."""
        self._told.put(BackendError("the desktop is not wanted any more"))

    def __del__(self) -> None:
        # A Ctrl-C may come when `__exit__` has hardly begun.
        if self._ticket is not None and not sys.is_finalizing():
            self._leave()

    def _leave(self) -> None:
        if self._desktop is not None:
            core_of(_latest(self._desktop)).revoke()
            self._desktop = None
        if self._ticket is not None:
            # In this order: interrupted in between, it is told twice, which is harmless.
            self._keeper.leave(self._ticket)
            self._ticket = None

    def _obtain(self, ticket: _Ticket) -> Desktop:
        begun = time.monotonic()
        self._keeper.ask(ticket)
        while True:
            left = None if self._timeout is None else max(0.0, begun + self._timeout - time.monotonic())
            try:
                told = self._told.get(timeout=left)
            except queue.Empty:
                raise self._keeper.exhausted(time.monotonic() - begun) from self._keeper.failure
            if isinstance(told, BaseException):
                raise told
            if self._keeper.is_fit(told):
                self._desktop = told
                return told
            self._keeper.ask_again(ticket)


class _AsyncLease:
    """What `AsyncPool.acquire` returns."""

    _ticket: _Ticket | None = None

    def __init__(self, keeper: _Keeper, timeout: float | None) -> None:
        self._keeper = keeper
        self._timeout = timeout
        self._desktop: AsyncDesktop | None = None

    async def __aenter__(self) -> AsyncDesktop:
        if self._ticket is not None:
            raise ActionError("what acquire() returned can be entered once: call it again for another desktop")
        loop = asyncio.get_running_loop()
        told: asyncio.Queue[Desktop | BaseException] = asyncio.Queue()

        def tell(what: Desktop | BaseException) -> None:
            # The loop may be closed by now, with nobody left who wants to know.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(told.put_nowait, what)

        self._ticket = _Ticket(tell)
        try:
            self._desktop = AsyncDesktop(await self._obtain(self._ticket, told))
        except BaseException:
            self._leave()
            raise
        return self._desktop

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def __del__(self) -> None:
        if self._ticket is not None and not sys.is_finalizing():
            self._leave()

    def _leave(self) -> None:
        if self._desktop is not None:
            self._desktop.detach()
            core_of(_latest(self._desktop.desktop)).revoke()
            self._desktop = None
        if self._ticket is not None:
            # In this order: interrupted in between, it is told twice, which is harmless.
            self._keeper.leave(self._ticket)
            self._ticket = None

    async def _obtain(self, ticket: _Ticket, told: asyncio.Queue[Desktop | BaseException]) -> Desktop:
        begun = time.monotonic()
        self._keeper.ask(ticket)
        while True:
            left = None if self._timeout is None else max(0.0, begun + self._timeout - time.monotonic())
            try:
                async with asyncio.timeout(left):
                    what = await told.get()
            except TimeoutError:
                raise self._keeper.exhausted(time.monotonic() - begun) from self._keeper.failure
            if isinstance(what, BaseException):
                raise what
            if await asyncio.to_thread(self._keeper.is_fit, what):
                return what
            self._keeper.ask_again(ticket)


class Pool:
    """Desktops kept ready for whoever needs one.

    Whoever asks first is served first. Spare desktops are launched in the background, one at a time; idle ones are probed
    every second, and one that died is replaced. A desktop that dies in use raises `DesktopLost` to its user, and is replaced
    when he gives it back. Nothing stays behind when the driver is killed, as with `deskhand.launch`.

    Use it from any number of threads. Leaving a `with` block closes it.

    Example:
        >>> with deskhand.Pool(size=8, warm=2) as pool:
        ...     with pool.acquire(timeout=10) as desktop:
        ...         desktop.start("mousepad")
    """

    def __init__(
        self,
        launch: str | Callable[..., Desktop] = "local",
        *,
        size: int = 4,
        warm: int = 1,
        reset: ResetBy = "fresh",
        screen: tuple[int, int] | None = None,
        displays: int = 1,
        max_waiting: int | None = None,
        reaper: Sequence[str] | None = None,
        clock: Callable[[], float] = time.monotonic,
        **options: Any,
    ) -> None:
        """Return at once; desktops come up in the background.

        Args:
            launch: What makes a desktop: what `deskhand.launch` takes first, or a function that returns a Desktop. It is called
                in several threads at once.
            size: How many desktops there may be at once, those that are just coming up or ending included; at least 1.
            warm: How many are kept ready beyond those asked for; 0...size.
            reset: What is done between two users. `"fresh"`: the desktop is closed, and another launched. `"session"`: it is
                made as new (see `Desktop.renew`), which takes half as long; a container is started again, and what it has on
                mounts stays. Or a function that gets the desktop and makes of it what the next user is to find. After a reset
                that fails the desktop is replaced.
            screen: Width and height in pixels of every desktop: `launch` gets it as `size=`; by default it is left to that.
            displays: Of `"docker"`: how many desktops share a container, 1...32. That saves memory and time, and gives up
                what keeps them apart: they run as one user in one place, and see each other's files and processes (see
                SECURITY.md). `limits` are the share of each.
            max_waiting: Turn callers away at once when so many wait already; None: any number may wait.
            reaper: For functions that start what does not end with this process by itself: a command that ends it. It is run
                should this process vanish without `close`, with the pool's label as `DESKHAND_POOL` in its environment;
                `launch` gets the same as `label=`, to mark what it starts.
            clock: Monotonic seconds; tests give their own.
            options: For every launch.

        Raises:
            ActionError: A number is impossible, or `options` has a name, which only one desktop could have.
        """
        size = expect_integer("Pool: size", size, 1)
        warm = expect_integer("Pool: warm, which is at most size,", warm, 0, size)
        if max_waiting is not None:
            max_waiting = expect_integer("Pool: max_waiting, if it is not None,", max_waiting, 0)
        if not callable(reset) and reset not in _RESETS:
            raise ActionError(f"reset must be 'fresh', 'session' or a function, not {shown(reset)}")
        if not callable(launch):
            expect_text("Pool: launch, if it is no function,", launch)
        expect_integer("Pool: displays", displays, 1, MOST)
        expect_callable("Pool: clock", clock)
        reaper = None if reaper is None else program_words("Pool: reaper", expect_texts("Pool: reaper", reaper))
        if "name" in options:
            raise ActionError("the desktops of a pool cannot all have one name: leave `name` out")
        if screen is not None:
            options["size"] = expect_size("Pool: screen", screen, LARGEST_SCREEN)
        self.label: str = f"pool-{secrets.token_hex(8)}"
        if reaper is not None:
            options["label"] = self.label
        function = self._function(launch, displays, options)
        guard = None
        if reaper is not None:
            guard = Guard.start(runtime_directory.private_directory())
            guard.at_end(reaper, {**os.environ, "DESKHAND_POOL": self.label})
        # Each start keeps a processor busy; more of them at once would only make all of them slow.
        roster = Roster(size, warm, parallel=max(2, os.cpu_count() or 1), period=_CHECK_PERIOD)
        self._keeper = _Keeper(function, reset, roster, clock, max_waiting)
        self._keeper.guard = guard

    @staticmethod
    def _function(
        launch: str | Callable[..., Desktop], displays: int, options: dict[str, Any]
    ) -> Callable[[], Desktop]:
        """What makes a desktop."""
        if displays != 1:
            if launch != "docker" or "home" in options:
                raise ActionError(
                    f"displays={displays} is for containers, whose homes are their own: Pool('docker', ...)"
                )
            judges = {name: options.pop(name, None) for name in ("policy", "ask", "audit")}
            rooms = Rooms(displays, **options)
            return lambda: targets.guarded(rooms.launch(), **judges)
        return partial(launch, **options) if callable(launch) else partial(targets.launch, launch, **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        keeper: _Keeper | None = getattr(self, "_keeper", None)
        if keeper is not None and not keeper.owner.is_parent and not keeper.over.is_set() and not sys.is_finalizing():
            warnings.warn(f"{self!r} was not closed", ResourceWarning, stacklevel=1, source=self)
            keeper.inbox.put(keeper.on_close)

    def __repr__(self) -> str:
        status = self.status
        return f"<Pool {status.used} of {status.size} in use, {status.ready} ready, {status.waiting} waiting>"

    @property
    def status(self) -> PoolStatus:
        """How many desktops are doing what, as of a moment ago."""
        return self._keeper.status

    def acquire(self, timeout: float | None = 30.0) -> _Lease:
        """A desktop for the length of a `with` block, after which nobody can do anything with that object any more.

        Args:
            timeout: Seconds to wait for it; None: for ever.

        Raises:
            PoolExhausted: On entering: none was free in time, or too many callers wait already. Also a `TimeoutError`.
            LaunchFailed: On entering: no desktop comes up, three times in a row, and there is none to wait for. (Other errors
                of launching that this package has are raised as they are.)
            Closed: On entering: the pool is closed.
            ActionError: There is no such timeout.
        """
        return _Lease(self._keeper, _checked(timeout))

    def close(self) -> None:
        """End all desktops, those in use too, and wait until they are gone. Again is harmless.

        Raises:
            BackendError: They are not, after a minute.
        """
        if self._keeper.owner.is_parent:
            return
        self._keeper.inbox.put(self._keeper.on_close)
        self._keeper.thread.join(_CLOSE_LIMIT)
        if self._keeper.thread.is_alive():
            raise BackendError(f"close: after {_CLOSE_LIMIT:g} s there still is {self.status}")


class AsyncPool:
    """`Pool` for coroutines: what it gives are `AsyncDesktop` objects.

    Example:
        >>> async with deskhand.AsyncPool(size=8, warm=2) as pool:
        ...     async with pool.acquire(timeout=10) as desktop:
        ...         await desktop.start("mousepad")
    """

    def __init__(
        self,
        launch: str | Callable[..., Desktop] = "local",
        *,
        size: int = 4,
        warm: int = 1,
        reset: ResetBy = "fresh",
        screen: tuple[int, int] | None = None,
        displays: int = 1,
        max_waiting: int | None = None,
        reaper: Sequence[str] | None = None,
        clock: Callable[[], float] = time.monotonic,
        **options: Any,
    ) -> None:
        """As `Pool`. `pool` is one whose desktops and queue may be shared with threads."""
        self.pool: Pool = Pool(
            launch,
            size=size,
            warm=warm,
            reset=reset,
            screen=screen,
            displays=displays,
            max_waiting=max_waiting,
            reaper=reaper,
            clock=clock,
            **options,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def label(self) -> str:
        """As `Pool.label`."""
        return self.pool.label

    @property
    def status(self) -> PoolStatus:
        """As `Pool.status`."""
        return self.pool.status

    def acquire(self, timeout: float | None = 30.0) -> _AsyncLease:
        """As `Pool.acquire`, for the length of an `async with` block."""
        return _AsyncLease(self.pool._keeper, _checked(timeout))  # noqa: SLF001 # one module

    async def close(self) -> None:
        """As `Pool.close`."""
        await asyncio.shield(asyncio.to_thread(self.pool.close))
