"""One desktop of a pool, while a caller has it."""

from __future__ import annotations

import queue
import sys
import time
from typing import TYPE_CHECKING

from deskhand.desktop.access import revoke
from deskhand.errors import ActionError, BackendError
from deskhand.pool.worker import PoolWorker, Ticket

if TYPE_CHECKING:
    from types import TracebackType

    from deskhand.desktop.desktop import Desktop


class Lease:
    """The result of `Pool.acquire`: a desktop for a `with` block, or from `open` to `close`."""

    # For an object whose construction is interrupted.
    _ticket: Ticket | None = None
    _desktop: Desktop | None = None

    def __init__(self, worker: PoolWorker, timeout: float | None) -> None:
        self._worker = worker
        self._timeout = timeout
        # Unlike a Future or a Condition, it may be interrupted at any moment.
        self._results: queue.SimpleQueue[Desktop | BaseException] = queue.SimpleQueue()

    def __enter__(self) -> Desktop:
        if self._ticket is not None:
            raise ActionError("what acquire() returned can be entered once: call it again for another desktop")
        self._ticket = Ticket(self._results.put)
        try:
            return self._obtain(self._ticket)
        except BaseException:
            self._leave()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def open(self) -> Desktop:
        """The desktop, for where a `with` block does not fit; `close` gives it back. Raises what entering the block raises."""
        return self.__enter__()

    def close(self) -> None:
        """Give the desktop back, which can no longer be used then. Harmless before `open` and when called again."""
        self._leave()

    def cancel(self) -> None:
        """From any thread: stop the wait, so that entering raises BackendError. A desktop that was obtained already stays."""
        self._results.put(BackendError("the wait for a desktop was cancelled"))

    def __del__(self) -> None:
        # A Ctrl-C may come when `__exit__` has hardly begun.
        if self._ticket is not None and not sys.is_finalizing():
            self._leave()

    def _leave(self) -> None:
        if self._desktop is not None:
            revoke(self._desktop)
            self._desktop = None
        if self._ticket is not None:
            # In this order, an interruption in between makes it report twice, which is harmless.
            self._worker.leave(self._ticket)
            self._ticket = None

    def _obtain(self, ticket: Ticket) -> Desktop:
        begun = time.monotonic()
        self._worker.ask(ticket)
        while True:
            left = None if self._timeout is None else max(0.0, begun + self._timeout - time.monotonic())
            try:
                result = self._results.get(timeout=left)
            except queue.Empty:
                raise self._worker.exhausted(time.monotonic() - begun) from self._worker.failure
            if isinstance(result, BaseException):
                raise result
            if self._worker.is_fit(result):
                self._desktop = result
                return result
            self._worker.ask_again(ticket)
