"""Calls a policy, or a function that asks a person, and waits a bounded time for the answer.

This module owns the threads and loops in which such code runs. Anything but an answer in time raises `NoAnswer`. What an
answer means is decided elsewhere.
"""

from __future__ import annotations

import contextvars
import inspect
import queue
import threading
from typing import TYPE_CHECKING, Any

from deskhand._core.attempts import Attempt, NoAnswer

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable

__all__ = ["answer"]


class _Failed:
    def __init__(self, error: BaseException) -> None:
        self.kind = type(error).__name__


def answer(function: Callable[..., Any], *arguments: object, timeout: float, attempt: Attempt) -> object:
    """Call a function, or a coroutine function, and return its answer.

    It runs in a thread of its own, with the caller's context variables; a coroutine runs in the attempt's loop. Code that
    does not return keeps its thread, and its later answer is ignored.

    Args:
        function: Called once.
        arguments: The function's arguments.
        timeout: Seconds.
        attempt: The attempt that waits for the answer.

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
        answers.put(said)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(run,), name="deskhand-question", daemon=True)
    thread.start()
    said = attempt.wait(answers, timeout)
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
