"""Calls under way, so that they can be ended: a question without an answer yet, a command that runs.

This module owns `Attempt`. It does not know what a call does.
"""

from __future__ import annotations

import contextvars
import queue
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

_STOPPED = object()


class NoAnswer(Exception):
    """There was no answer. The message says why, and has nothing that the code wrote."""


class Attempt:
    """One call under way, as the code that may end it sees it.

    Attributes:
        loop: Where coroutines run; None: in a loop of their own.
        ended: Whether it is to end as soon as it can.
        acting: Whether it has the desktop.
        command: Ends the command that it runs beside the desktop; None while it runs none.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Describe a call whose coroutines run in `loop`."""
        self.loop = loop
        self.ended: bool = False
        self.acting = False
        self.command: Callable[[], None] | None = None
        self._answers: queue.SimpleQueue[object] | None = None

    def end(self) -> None:
        """End it, from any thread or a signal handler. A question that it waits for gets no answer; its command is cancelled.

        Repeat this until the call has returned: a command that is about to begin forgets earlier requests.
        """
        self.ended = True
        answers, command = self._answers, self.command
        if answers is not None:
            answers.put(_STOPPED)
        if command is not None:
            command()

    def wait(self, answers: queue.SimpleQueue[object], timeout: float | None) -> object:
        """Wait for the next answer.

        Raises:
            NoAnswer: None came in `timeout` seconds, where there is such a limit, or the call is to end.
        """
        # In this order, `end` between the two lines is noticed too.
        self._answers = answers
        if self.ended:
            raise NoAnswer("the call was ended")
        try:
            found = answers.get(timeout=timeout)
        except queue.Empty:
            raise NoAnswer(f"there was no answer in {timeout:g} s") from None
        finally:
            self._answers = None
        if found is _STOPPED:
            raise NoAnswer("the call was ended")
        return found


class InTurn:
    """Knows whose call has its turn, so that a request to stop reaches that call and none that comes after it."""

    def __init__(self) -> None:
        """Begin without a caller."""
        # Reentrant: a signal handler may begin a call of its own between two lines.
        self._lock = threading.RLock()
        self._caller: object = None

    def begin(self, forget: Callable[[], None]) -> None:
        """Give the turn to the caller of this context, and `forget` what was asked of the call before."""
        with self._lock:
            self._caller = CALLER.get()
            forget()

    def stop(self, caller: object, ask: Callable[[], None]) -> None:
        """Call `ask` if `caller` has the turn; if `caller` is None, in any case and without a lock."""
        if caller is None:
            ask()
            return
        with self._lock:
            if self._caller is caller:
                ask()


CALLER: contextvars.ContextVar[object] = contextvars.ContextVar("deskhand_caller", default=None)
"""What waits for the calls made in this context, and may stop them. None: a stop ends whichever call is under way."""

ATTEMPT: contextvars.ContextVar[Attempt | None] = contextvars.ContextVar("deskhand_attempt", default=None)
"""The attempt that the next operation of this context belongs to, if it may have to be ended."""
