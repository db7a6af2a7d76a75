"""Many desktops, kept ready for callers: `Pool`, and `AsyncPool` for coroutines.

This module owns the threads of a pool, and what is done to a desktop between two users. What must never appear here: the rules
of which caller gets which desktop and when (see `deskhand.pool.scheduler`), or how one is made (see `deskhand.launch`).

One thread per pool, the worker, has its scheduler; callers only put messages into its inbox. So a Ctrl-C or a cancellation
may come at any moment: it cannot leave the scheduler half changed, and a desktop that the interrupted caller had is given back.
"""

from __future__ import annotations

import os
import secrets
import sys
import time
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any, Self, Unpack

from deskhand._core.arguments import (
    expect_callable,
    expect_integer,
    expect_seconds,
    expect_size,
    expect_text,
    expect_texts,
)
from deskhand.errors import ActionError, BackendError, nearest, shown
from deskhand.launchers import targets
from deskhand.launchers.display import LARGEST_SCREEN
from deskhand.launchers.docker.engine import check_sdk
from deskhand.launchers.docker.shared import MOST, SharedContainers
from deskhand.launchers.docker.spec import ContainerSpec
from deskhand.launchers.launch_options import LaunchOptions
from deskhand.machine import runtime_directory
from deskhand.machine.processes import Guard
from deskhand.machine.program_arguments import program_words
from deskhand.pool.lease import Lease
from deskhand.pool.scheduler import PoolScheduler
from deskhand.pool.worker import PoolWorker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from deskhand.desktop.desktop import Desktop
    from deskhand.pool.status import PoolStatus, ResetBy

_RESETS = ("fresh", "session")
_CHECK_PERIOD = 1.0
_CLOSE_LIMIT = 60.0


def checked(timeout: float | None) -> float | None:
    """Check the time limit of an `acquire`, in seconds, and return it."""
    return None if timeout is None else expect_seconds("acquire: timeout", timeout)


class Pool:
    """Desktops kept ready for callers.

    Callers are served in the order in which they ask. Spare desktops are launched in the background, one at a time; idle ones
    are probed every second, and a dead one is replaced. A desktop that dies in use raises `DesktopLost` to its user, and is
    replaced when it is given back. Nothing stays behind when the driver is killed, as with `deskhand.launch`.

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
        **options: Unpack[LaunchOptions],
    ) -> None:
        """Return at once; desktops come up in the background.

        Args:
            launch: How a desktop is made: the first argument of `deskhand.launch`, or a function that returns a Desktop, called
                in several threads at once.
            size: How many desktops there may be at once, including those that are just coming up or ending; at least 1.
            warm: How many are kept ready beyond those in demand; 0...size.
            reset: What is done between two users. `"fresh"`: the desktop is closed, and another launched. `"session"`: it is
                made as new (see `Desktop.reset`), which takes half as long; a container is started again, and what it has on
                mounts stays. Or a function that gets the desktop and prepares it for the next user. After a reset
                that fails the desktop is replaced.
            screen: Width and height in pixels of every desktop: `launch` gets it as `size=`; by default it is left to that.
            displays: For `"docker"`: how many desktops share a container, 1...32. That saves memory and time, and gives up
                the separation between them: they run as one user in one place, and see each other's files and processes (see
                SECURITY.md). `limits` are the share of each.
            max_waiting: Turn callers away at once when this many wait already; None: any number may wait.
            reaper: For functions that start what does not end with this process: a command that ends it. It is run
                if this process vanishes without `close`, with the pool's label as `DESKHAND_POOL` in its environment;
                `launch` gets the same as `label=`, to mark what it starts.
            clock: Monotonic seconds; tests give their own.
            options: For every launch: what `deskhand.launch` takes. Give a function options of its own by `functools.partial`.

        Raises:
            ActionError: A number is impossible, there is no such option, or `options` has a name, which only one desktop could
                have.
            MissingExtra: `launch` is `"docker"`, and the Docker SDK is not installed.
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
        given: dict[str, Any] = {**options}
        if screen is not None:
            given["size"] = expect_size("Pool: screen", screen, LARGEST_SCREEN)
        self.label: str = f"pool-{secrets.token_hex(8)}"
        if reaper is not None:
            given["label"] = self.label
        function = self._function(launch, displays, given)
        guard = None
        if reaper is not None:
            guard = Guard.start(runtime_directory.private_directory())
            guard.at_end(reaper, {**os.environ, "DESKHAND_POOL": self.label})
        # Each start keeps a processor busy, and more of them at once would only slow all of them down.
        scheduler = PoolScheduler(size, warm, parallel=max(2, os.cpu_count() or 1), period=_CHECK_PERIOD)
        self._worker = PoolWorker(function, reset, scheduler, clock, max_waiting)
        self._worker.guard = guard

    @staticmethod
    def _function(
        launch: str | Callable[..., Desktop], displays: int, options: dict[str, Any]
    ) -> Callable[[], Desktop]:
        """The function that makes a desktop. What is wrong for every launch is told here, and not to each user."""
        if not callable(launch):
            for name in options.keys() - {*LaunchOptions.__annotations__, "size", "label"}:
                meant = nearest(name, LaunchOptions.__annotations__)
                hint = f"did you mean {meant[0]!r}?" if meant else "see deskhand.launch"
                raise ActionError(f"Pool: there is no option {shown(name)}: {hint}")
            if launch == "docker":
                check_sdk()
        if displays != 1:
            if launch != "docker" or "home" in options:
                raise ActionError(
                    f"displays={displays} is for containers, whose homes are their own: Pool('docker', ...)"
                )
            judges = {name: options.pop(name, None) for name in ("policy", "ask", "audit")}
            rooms = SharedContainers(displays, ContainerSpec(**options))
            return lambda: targets.opened(rooms.launch(), **judges)
        return partial(launch, **options) if callable(launch) else partial(targets.launch, launch, **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        worker: PoolWorker | None = getattr(self, "_worker", None)
        if worker is not None and not worker.owner.is_parent and not worker.over.is_set() and not sys.is_finalizing():
            warnings.warn(f"{self!r} was not closed", ResourceWarning, stacklevel=1, source=self)
            worker.inbox.put(worker.on_close)

    def __repr__(self) -> str:
        status = self.status
        return f"<Pool {status.used} of {status.size} in use, {status.ready} ready, {status.waiting} waiting>"

    @property
    def status(self) -> PoolStatus:
        """How many desktops are in which state, as of a moment ago."""
        return self._worker.status

    def acquire(self, timeout: float | None = 30.0) -> Lease:
        """A desktop for the length of a `with` block, after which that object can no longer be used.

        Where no block fits, `lease = pool.acquire()` has `lease.open()`, which returns the desktop, and `lease.close()`.

        Args:
            timeout: Seconds to wait for it; None: for ever.

        Raises:
            PoolExhausted: On entering: none was free in time, or too many callers wait already. It is a `DeskhandTimeout`.
            LaunchFailed: On entering: no desktop comes up, three times in a row, and there is none to wait for. (Other errors
                of launching that this package has are raised as they are.)
            Closed: On entering: the pool is closed.
            ActionError: The timeout is impossible.
        """
        return Lease(self._worker, checked(timeout))

    def close(self) -> None:
        """End all desktops, including those in use, and wait until they are gone. Calling it again is harmless.

        Raises:
            BackendError: They are not gone after a minute.
        """
        if self._worker.owner.is_parent:
            return
        self._worker.inbox.put(self._worker.on_close)
        self._worker.thread.join(_CLOSE_LIMIT)
        if self._worker.thread.is_alive():
            raise BackendError(f"close: after {_CLOSE_LIMIT:g} s there still is {self.status}")
