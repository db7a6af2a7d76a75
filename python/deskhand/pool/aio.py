"""The pool for coroutines."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from typing import TYPE_CHECKING, Self, Unpack

from deskhand.aio.desktop import AsyncDesktop
from deskhand.desktop.access import revoke
from deskhand.errors import ActionError
from deskhand.pool.pool import Pool, checked
from deskhand.pool.worker import PoolWorker, Ticket

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from deskhand.desktop.desktop import Desktop
    from deskhand.launchers.launch_options import LaunchOptions
    from deskhand.pool.status import PoolStatus, ResetBy


class AsyncLease:
    """The result of `AsyncPool.acquire`: as `Lease`, for an `async with` block, or from `await open()` to `close`."""

    _ticket: Ticket | None = None

    def __init__(self, worker: PoolWorker, timeout: float | None) -> None:
        self._worker = worker
        self._timeout = timeout
        self._desktop: AsyncDesktop | None = None

    async def __aenter__(self) -> AsyncDesktop:
        if self._ticket is not None:
            raise ActionError("what acquire() returned can be entered once: call it again for another desktop")
        loop = asyncio.get_running_loop()
        results: asyncio.Queue[Desktop | BaseException] = asyncio.Queue()

        def tell(what: Desktop | BaseException) -> None:
            # The loop may be closed by now, and its caller gone.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(results.put_nowait, what)

        self._ticket = Ticket(tell)
        try:
            self._desktop = AsyncDesktop(await self._obtain(self._ticket, results))
        except BaseException:
            self._leave()
            raise
        return self._desktop

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    async def open(self) -> AsyncDesktop:
        """As `Lease.open`."""
        return await self.__aenter__()

    def close(self) -> None:
        """As `Lease.close`."""
        self._leave()

    def __del__(self) -> None:
        if self._ticket is not None and not sys.is_finalizing():
            self._leave()

    def _leave(self) -> None:
        if self._desktop is not None:
            self._desktop.detach()
            revoke(self._desktop.desktop)
            self._desktop = None
        if self._ticket is not None:
            # In this order, an interruption in between makes it report twice, which is harmless.
            self._worker.leave(self._ticket)
            self._ticket = None

    async def _obtain(self, ticket: Ticket, results: asyncio.Queue[Desktop | BaseException]) -> Desktop:
        begun = time.monotonic()
        self._worker.ask(ticket)
        while True:
            left = None if self._timeout is None else max(0.0, begun + self._timeout - time.monotonic())
            try:
                async with asyncio.timeout(left):
                    what = await results.get()
            except TimeoutError:
                raise self._worker.exhausted(time.monotonic() - begun) from self._worker.failure
            if isinstance(what, BaseException):
                raise what
            if await asyncio.to_thread(self._worker.is_fit, what):
                return what
            self._worker.ask_again(ticket)


class AsyncPool:
    """`Pool` for coroutines: its desktops are `AsyncDesktop` objects.

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
        **options: Unpack[LaunchOptions],
    ) -> None:
        """As `Pool`. `pool` is a pool to share with threads."""
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

    def acquire(self, timeout: float | None = 30.0) -> AsyncLease:
        """As `Pool.acquire`, for the length of an `async with` block."""
        return AsyncLease(self.pool._worker, checked(timeout))  # noqa: SLF001 # one module

    async def close(self) -> None:
        """As `Pool.close`."""
        await asyncio.shield(asyncio.to_thread(self.pool.close))
