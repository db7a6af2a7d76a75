"""A part of an episode in a thread of its own, which can be ended by degrees.

This module owns the threads in which tasks and agents run: foreign code that may never return. The meaning of its end is in
`deskhand.episodes.play.attempt`; there is no desktop here.
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

_ASK_AGAIN = 0.1


class Ended(BaseException):
    """The part is over: raised in its thread, and at every call of its desktop from then on.

    It is not an Exception, so that loops that continue after any error end too.
    """


class Stop:
    """A request to end, which any number of threads can wait for, and which may come from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subscribers: list[Callable[[], None]] = []
        self.reason: str | None = None

    def __call__(self, reason: str) -> None:
        """Request the end. Further calls do nothing."""
        with self._lock:
            if self.reason is not None:
                return
            self.reason = reason
            subscribers, self._subscribers = self._subscribers, []
        for tell in subscribers:
            tell()

    def subscribe(self, tell: Callable[[], None]) -> Callable[[], None]:
        """Call `tell` on the request, or now if it was already made. Returns a function that cancels this."""
        with self._lock:
            if self.reason is None:
                self._subscribers.append(tell)
                return lambda: self._forget(tell)
        tell()
        return lambda: None

    def _forget(self, tell: Callable[[], None]) -> None:
        with self._lock, contextlib.suppress(ValueError):
            self._subscribers.remove(tell)


class SupervisedThread:
    """A function, or a coroutine function, that runs in a thread of its own from the moment this object is made.

    Attributes:
        value: What it returned.
        error: What it raised; None if it returned, or has not ended.
    """

    def __init__(self, function: Callable[[], Any], name: str, stop: Stop | None = None) -> None:
        """Start it.

        Args:
            function: Called once; an awaitable result is awaited.
            name: The name of its thread.
            stop: `wait` returns on this request.
        """
        self.value: Any = None
        self.error: BaseException | None = None
        self._over = threading.Event()
        # Held while the thread's number is used: when the thread has ended, the kernel may give the number to another one.
        self._ending = threading.Lock()
        self._wakes: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._unsubscribe = (stop or Stop()).subscribe(lambda: self._wakes.put(None))
        self._thread = threading.Thread(target=self._run, args=(function,), name=name, daemon=True)
        self._thread.start()

    @property
    def over(self) -> bool:
        """Whether it has returned or raised."""
        return self._over.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait until it is over, `stop` was requested, `wake` was called or the time is up. Returns whether it is over."""
        if not self.over:
            with contextlib.suppress(queue.Empty):
                self._wakes.get(timeout=max(0.0, seconds))
        return self.over

    def wake(self) -> None:
        """Let `wait` return; from any thread."""
        self._wakes.put(None)

    def end(self, grace: float, interrupt: Callable[[], None] = lambda: None) -> bool:
        """End it.

        First a coroutine is cancelled, and `interrupt` stops a running call; then `Ended` is raised in its thread, wherever
        that is.

        Args:
            grace: Seconds to wait after each of the two steps.
            interrupt: Called repeatedly, because a call that is just beginning ignores the first one.

        Returns:
            Whether it is over. A thread that is not over ends with this process.
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
            # Raised at the thread's next line of Python; code that waits in C raises it on its return.
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread.ident), ctypes.py_object(Ended))
        # An event loop waits in C, and this wakes it.
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
            except BaseException as error:  # noqa: BLE001 # the waiting code judges it
                self.error = error
        # `Ended` may also be raised here, when the function has just returned.
        ended = False
        while not ended:
            with contextlib.suppress(Ended):
                self._end()
                ended = True

    def _end(self) -> None:
        self._unsubscribe()
        with self._ending:
            self._over.set()
        self._wakes.put(None)

    async def _awaited(self, value: Awaitable[Any]) -> Any:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        try:
            return await value
        finally:
            self._task = None
