"""Calls a policy, or a function that asks a person, and waits a bounded time for the answer.

This module owns the threads and loops in which such code runs. Anything but an answer in time raises `NoAnswer`. What an
answer means is decided elsewhere.
"""

from __future__ import annotations

import contextvars
import inspect
import logging
import queue
import threading
import traceback
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from deskhand._core.attempts import Attempt, NoAnswer

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable


_log = logging.getLogger(__name__)


class Asked:
    """One call of `answer`, as the function that is asked sees it.

    Attributes:
        about: What the question is about: the core of a desktop; None if unknown.
    """

    def __init__(self, about: object = None) -> None:
        """Describe a call that has just begun."""
        self.about: object = about
        self._lock = threading.Lock()
        self._over = False
        self._then: Callable[[], None] = lambda: None

    def when_over(self, then: Callable[[], None]) -> None:
        """Call `then` once no call waits for the answer any more, which may be at once."""
        with self._lock:
            self._then = then
            over = self._over
        if over:
            then()

    def end(self) -> None:
        """Note that no call waits any more."""
        with self._lock:
            self._over = True
            then = self._then
        then()


ASKED: ContextVar[Asked | None] = ContextVar("deskhand_asked", default=None)
"""The question that the code in this context is asked."""


class _Failed:
    def __init__(self, error: BaseException) -> None:
        self.kind = type(error).__name__


def answer(
    function: Callable[..., Any], *arguments: object, timeout: float, attempt: Attempt, about: object = None
) -> object:
    """Call a function, or a coroutine function, and return its answer.

    It runs in a thread of its own, with the caller's context variables; a coroutine runs in the attempt's loop. Code that
    does not return keeps its thread, and its later answer is ignored.

    Args:
        function: Called once.
        arguments: The function's arguments.
        timeout: Seconds.
        attempt: The attempt that waits for the answer.
        about: What the question is about; see `Asked`.

    Raises:
        NoAnswer: The function raised, did not answer in time, or the attempt was ended.
    """
    answers: queue.SimpleQueue[object] = queue.SimpleQueue()

    def run() -> None:
        try:
            said = function(*arguments)
            if inspect.isawaitable(said):
                said = _finished(said, timeout, attempt.loop)
        except BaseException as error:  # noqa: BLE001 # any exception means that there is no answer
            said = _Failed(error)
            # For who wrote the function. The text of the error is left out: it may contain a secret that was typed.
            places = "".join(f"\n  {at.filename}, line {at.lineno}" for at in traceback.extract_tb(error.__traceback__))
            _log.warning("a policy, or what it asks, raised %s: this operation is denied%s", said.kind, places)
        answers.put(said)

    context, asked = contextvars.copy_context(), Asked(about)
    context.run(ASKED.set, asked)
    threading.Thread(target=context.run, args=(run,), name="deskhand-question", daemon=True).start()
    try:
        said = attempt.wait(answers, timeout)
    finally:
        asked.end()
    if isinstance(said, _Failed):
        # Only the type is reported: the text of a foreign exception may contain anything.
        raise NoAnswer(f"it failed with {said.kind}")
    return said


def _finished(said: Awaitable[object], timeout: float, loop: asyncio.AbstractEventLoop | None) -> object:
    import asyncio  # noqa: PLC0415 # slow to import, and only coroutines need it

    async def bounded() -> object:
        return await asyncio.wait_for(said, timeout)

    if loop is None:
        return asyncio.run(bounded())
    return asyncio.run_coroutine_threadsafe(bounded(), loop).result(timeout)
