"""Runs calls on one desktop one at a time: first come, first served, from any thread and any event loop.

What a call does in its turn is no concern of this module.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import weakref
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deskhand.desktop.access import core_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from deskhand.desktop.connection import Core
    from deskhand.desktop.desktop import Desktop


@dataclass(eq=False, slots=True)
class _Waiting:
    loop: asyncio.AbstractEventLoop
    turn_given: asyncio.Future[None]
    given: bool = False


class Turns:
    """A lock that coroutines of several event loops can wait for, in the order in which they came."""

    def __init__(self) -> None:
        """Free."""
        self._lock = threading.Lock()
        self._taken = False
        self._waiting: deque[_Waiting] = deque()

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn, and give it back at the end."""
        await self._take()
        try:
            yield
        finally:
            self._give_back()

    async def _take(self) -> None:
        with self._lock:
            if not self._taken:
                self._taken = True
                return
            loop = asyncio.get_running_loop()
            waiting = _Waiting(loop, loop.create_future())
            self._waiting.append(waiting)
        try:
            await waiting.turn_given
        except BaseException:
            with self._lock:
                given = waiting.given
                if not given:
                    self._waiting.remove(waiting)
            if given:
                self._give_back()
            raise

    def _give_back(self) -> None:
        with self._lock:
            while self._waiting:
                following = self._waiting.popleft()
                following.given = True
                # The loop of this waiter is closed, so the waiter is gone.
                with contextlib.suppress(RuntimeError):
                    following.loop.call_soon_threadsafe(_set_done, following.turn_given)
                    return
            self._taken = False


def _set_done(turn_given: asyncio.Future[None]) -> None:
    if not turn_given.done():
        turn_given.set_result(None)


_OF_DESKTOPS: weakref.WeakKeyDictionary[Core, Turns] = weakref.WeakKeyDictionary()
_OF_DESKTOPS_LOCK = threading.Lock()


def turns_of(desktop: Desktop) -> Turns:
    """The turns of a desktop, the same for all of its views."""
    with _OF_DESKTOPS_LOCK:
        return _OF_DESKTOPS.setdefault(core_of(desktop), Turns())
