"""Asking somebody's code for an answer, for a bounded time: a policy, or whoever asks a person.

This module owns the threads and loops in which such code runs. Whatever is no answer in time is `NoAnswer`. It does not know
what an answer means.
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
    """What a function, or a coroutine function, says.

    It runs in a thread of its own, with the caller's context variables; a coroutine runs in the attempt's loop. Code that
    does not come back keeps its thread, and is not heard any more.

    Args:
        function: Asked once.
        arguments: What it gets.
        timeout: Seconds.
        attempt: On whose behalf.

    Raises:
        NoAnswer: It raised something, or said nothing in time, or the attempt was ended.
    """
    answers: queue.SimpleQueue[object] = queue.SimpleQueue()

    def run() -> None:
        try:
            said = function(*arguments)
            if inspect.isawaitable(said):
                said = _finished(said, timeout, attempt.loop)
        except BaseException as error:  # noqa: BLE001 # whatever it is, it is no answer
            said = _Failed(error)
        answers.put(said)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(run,), name="deskhand-question", daemon=True)
    thread.start()
    said = attempt.wait(answers, timeout)
    if isinstance(said, _Failed):
        # Its text is not ours to repeat: it may have anything in it.
        raise NoAnswer(f"it failed with {said.kind}")
    return said


def _finished(said: Awaitable[object], timeout: float, loop: asyncio.AbstractEventLoop | None) -> object:
    import asyncio  # noqa: PLC0415 # few are asked for a coroutine's answer, and everybody imports this

    async def bounded() -> object:
        return await asyncio.wait_for(said, timeout)

    if loop is None:
        return asyncio.run(bounded())
    return asyncio.run_coroutine_threadsafe(bounded(), loop).result(timeout)
