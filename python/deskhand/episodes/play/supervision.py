"""A part of an episode in a thread of its own, which can be ended by degrees.

This module owns the threads in which tasks and agents run: code of others, which may never come back. What must never appear
here: what its end means (see `deskhand.episodes.play.attempt`), a desktop.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import inspect
import queue
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["Ended", "Stop", "SupervisedThread"]

_ASK_AGAIN = 0.1


class Ended(BaseException):
    """The part is over: raised in it, and at every call of its desktop from then on.

    It is no Exception, so that loops which go on after any error end too.
    """


class Stop:
    """A request to end, which any number of threads can wait for, and which may come from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told: list[Callable[[], None]] = []
        self.reason: str | None = None

    def __call__(self, reason: str) -> None:
        """Ask for it. Again is harmless."""
        with self._lock:
            if self.reason is not None:
                return
            self.reason = reason
            told, self._told = self._told, []
        for tell in told:
            tell()

    def subscribe(self, tell: Callable[[], None]) -> Callable[[], None]:
        """Call `tell` when it is asked for, now if it was already. Returns what takes that back."""
        with self._lock:
            if self.reason is None:
                self._told.append(tell)
                return lambda: self._forget(tell)
        tell()
        return lambda: None

    def _forget(self, tell: Callable[[], None]) -> None:
        with self._lock, contextlib.suppress(ValueError):
            self._told.remove(tell)


class SupervisedThread:
    """A function, or a coroutine function, that runs in a thread of its own from the moment this is made.

    Attributes:
        value: What it returned.
        error: What it raised; None when it returned, or has not ended.
    """

    def __init__(self, function: Callable[[], Any], name: str, stop: Stop | None = None) -> None:
        """Start it.

        Args:
            function: Called once; what it returns is awaited if it can be.
            name: Of its thread.
            stop: `wait` returns when this is asked for.
        """
        self.value: Any = None
        self.error: BaseException | None = None
        self._over = threading.Event()
        # Whoever has it knows whether the thread is still this one: the kernel gives its number to another when it has ended.
        self._ending = threading.Lock()
        self._told: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._unsubscribe = (stop or Stop()).subscribe(lambda: self._told.put(None))
        self._thread = threading.Thread(target=self._run, args=(function,), name=name, daemon=True)
        self._thread.start()

    @property
    def over(self) -> bool:
        """Whether it has returned or raised."""
        return self._over.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait until it is over, `stop` was asked for, `wake` was called or the time is up. Returns whether it is over."""
        if not self.over:
            with contextlib.suppress(queue.Empty):
                self._told.get(timeout=max(0.0, seconds))
        return self.over

    def wake(self) -> None:
        """From any thread: let `wait` return."""
        self._told.put(None)

    def end(self, grace: float, interrupt: Callable[[], None] = lambda: None) -> bool:
        """End it.

        First a coroutine is cancelled, and `interrupt` stops a call that is under way; then `Ended` is raised in its thread,
        wherever that is.

        Args:
            grace: Seconds to wait after each of the two.
            interrupt: Called again and again, since a call that was just beginning does not hear the first one.

        Returns:
            Whether it is over. What is not stays in a thread that ends with this process.
        """
        self._unsubscribe()
        self._cancel()
        if self._wait_over(grace, interrupt):
            return True
        return self._wait_over(grace, self._raise_inside)

    def _wait_over(self, grace: float, ask: Callable[[], None]) -> bool:
        for _ in range(max(1, round(grace / _ASK_AGAIN))):
            ask()
            if self._over.wait(_ASK_AGAIN):
                return True
        return False

    def _raise_inside(self) -> None:
        with self._ending:
            if self._thread.ident is None or self.over:
                return
            # Heard at the thread's next line of Python; what waits in C hears it when it comes back.
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread.ident), ctypes.py_object(Ended))
        # A loop waits in C, and this wakes it.
        self._cancel()

    def _cancel(self) -> None:
        loop, task = self._loop, self._task
        if loop is not None and task is not None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(task.cancel)

    def _run(self, function: Callable[[], Any]) -> None:
        with contextlib.suppress(Ended):
            try:
                value = function()
                if inspect.isawaitable(value):
                    value = asyncio.run(self._awaited(value))
                self.value = value
            except BaseException as error:  # noqa: BLE001 # whatever it is, who waits judges it
                self.error = error
        # It may be raised here too, when all is over but for this.
        ended = False
        while not ended:
            with contextlib.suppress(Ended):
                self._end()
                ended = True

    def _end(self) -> None:
        self._unsubscribe()
        with self._ending:
            self._over.set()
        self._told.put(None)

    async def _awaited(self, value: Awaitable[Any]) -> Any:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        try:
            return await value
        finally:
            self._task = None
