"""The kill switch of a desktop: how it is stopped from another thread or a signal handler, during any call.

This module takes no lock that the stopped call may hold without asking that call to end first.
"""

from __future__ import annotations

import _thread
import threading
import time
from typing import TYPE_CHECKING

from deskhand.errors import DeskhandError, DesktopLost

if TYPE_CHECKING:
    from deskhand.desktop.connection import Core

_HALT_SLICE = 0.01
_STOP_PERIOD = 0.002
_END_PERIOD = 0.05


def stop(core: Core, reason: str, timeout: float) -> bool:
    """See `Desktop.stop`."""
    core.owner.refuse_if_parent("this desktop")
    if core.stopped is None:
        core.stopped = reason
    # What waits now is ended, and what comes later is refused instead.
    core.control.pause = None
    core.end_attempts()
    if not core.halting:
        core.halting = True
        # Without a lock of Python's: a signal handler may run between any two lines of the thread that holds it.
        _thread.start_new_thread(_halt, (core,))
    if _in_call(core):
        return core.released
    deadline = time.monotonic() + timeout
    while not core.released and (left := deadline - time.monotonic()) > 0:
        time.sleep(min(left, _STOP_PERIOD))
    return core.released


def _in_call(core: Core) -> bool:
    """Whether this thread is in a call of this desktop, as in a signal handler: then it must not wait for that call."""
    owned = bool(core.lock._is_owned())  # type: ignore[attr-defined] # noqa: SLF001 # what `threading.Condition` asks
    return owned or threading.get_ident() in tuple(core.attempts.values())


def _halt(core: Core) -> None:
    try:
        _stop_acting(core)
    except DesktopLost:
        # Nothing is held any more.
        core.released = True
    except DeskhandError:
        # The next `stop` tries again.
        core.halting = False
    else:
        core.released = True
    while core.attempts:
        core.end_attempts()
        time.sleep(_END_PERIOD)


def _stop_acting(core: Core) -> None:
    # Repeated, because a call that was just beginning has taken the first request as meant for the one before.
    core.interrupt()
    while not core.lock.acquire(timeout=_HALT_SLICE):
        core.interrupt()
    try:
        if not core.closed:
            core.forget_stop()
            core.release()
            core.release_strays()
    finally:
        core.lock.release()
