"""The requests of agents for a person's help, and the calls that wait until one has ended.

This module owns their limits, and how a person's name and text are shown. It does not know how a request ends.
"""

from __future__ import annotations

import itertools
import queue
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from deskhand._core.attempts import CALLER, NoAnswer
from deskhand._core.redaction import one_line
from deskhand.errors import ActionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from deskhand._core.attempts import Attempt

_LONGEST_NAME = 100
_LONGEST_TEXT = 2000
_MOST_REQUESTS = 16

_ENDED, _STOPPED = object(), object()


@dataclass(frozen=True, slots=True)
class HelpRequest:
    """A request of an agent for a person's help that has not ended yet; see `Desktop.hand_over`.

    Attributes:
        id: Its number, for `decline`; unique for the desktop.
        reason: What help is needed for: untrusted text, on one line, without control characters.
        since: When it was made, in seconds since 1970.
    """

    id: int
    reason: str
    since: float


@dataclass(eq=False, slots=True)
class _Waiting:
    request: int
    caller: object
    answers: queue.SimpleQueue[object] = field(default_factory=queue.SimpleQueue)


class HelpRequests:
    """The requests of one desktop that have not ended."""

    def __init__(self, wall: Callable[[], float]) -> None:
        """Begin without any. `wall` gives seconds since 1970."""
        self._wall = wall
        self._lock = threading.RLock()
        self._pending: dict[int, HelpRequest] = {}
        self._numbers = itertools.count(1)
        self._waiting: dict[_Waiting, None] = {}

    @property
    def pending(self) -> tuple[HelpRequest, ...]:
        """Those that have not ended, the oldest first."""
        with self._lock:
            return tuple(self._pending.values())

    def ask(self, reason: str) -> tuple[HelpRequest, bool]:
        """Add a request; the pending one if there is one with this reason. Returns whether it is new.

        Raises:
            ActionError: There are too many.
        """
        text = text_of(reason)
        with self._lock:
            for request in self._pending.values():
                if request.reason == text:
                    return request, False
            if len(self._pending) >= _MOST_REQUESTS:
                raise ActionError(
                    f"hand_over: {_MOST_REQUESTS} requests are pending, and no more are taken: wait until a person answers"
                )
            request = HelpRequest(next(self._numbers), text, self._wall())
            self._pending[request.id] = request
            return request, True

    def end(self, number: int) -> HelpRequest:
        """Take a request out.

        Raises:
            ActionError: There is none with this number.
        """
        with self._lock:
            request = self._pending.pop(number, None)
            if request is None:
                raise ActionError(f"control.decline: no request {number} is pending: see control.requests")
            self._wake()
            return request

    def end_all(self) -> None:
        """Take all of them out."""
        with self._lock:
            self._pending.clear()
            self._wake()

    def wait(self, request: HelpRequest, attempt: Attempt, timeout: float) -> bool:
        """Wait until a request has ended, or for so many seconds. Returns whether it has ended.

        Raises:
            NoAnswer: The call, `attempt`, is to end.
        """
        waiting = _Waiting(request.id, CALLER.get())
        with self._lock:
            if request.id not in self._pending:
                return True
            self._waiting[waiting] = None
        try:
            answer = attempt.wait(waiting.answers, timeout)
        except NoAnswer:
            # Also raised when the time is over.
            if attempt.ended:
                raise
            answer = None
        finally:
            with self._lock:
                self._waiting.pop(waiting, None)
        if answer is _STOPPED:
            raise NoAnswer("the call was ended")
        with self._lock:
            return request.id not in self._pending

    def end_waiting(self, caller: object = None) -> None:
        """End the calls that wait, those of `caller` only if it is given; without a lock, as a signal handler needs it."""
        for waiting in tuple(self._waiting):
            if caller is None or waiting.caller is caller:
                waiting.answers.put(_STOPPED)

    def _wake(self) -> None:
        for waiting in self._waiting:
            if waiting.request not in self._pending:
                waiting.answers.put(_ENDED)


def name_of(by: str) -> str:
    """A person's name as it is shown."""
    return one_line(" ".join(by.split()), _LONGEST_NAME)


def text_of(text: str) -> str:
    """A note or a reason as it is shown."""
    return one_line(" ".join(text.split()), _LONGEST_TEXT)
