"""Successors of a desktop's object: the same desktop as new, in other hands, or left running."""

from __future__ import annotations

import copy
import threading
from typing import TYPE_CHECKING

from deskhand._core.attempts import InTurn
from deskhand.desktop.cleanup import CleanupStack
from deskhand.desktop.connection import CLOSED
from deskhand.desktop.control_state import ControlState
from deskhand.desktop.health import examine_once
from deskhand.desktop.losses import check_alive, losses_raised
from deskhand.desktop.translate import PressedKeys
from deskhand.desktop.watcher import Watch
from deskhand.errors import Closed, UnsupportedAction

if TYPE_CHECKING:
    from deskhand._core.health import Health
    from deskhand.desktop.connection import Core


def renew(core: Core) -> Core:
    """See `Desktop.reset`."""
    core.owner.refuse_if_parent("this desktop")
    if core.remake is None:
        raise UnsupportedAction(core.backend.name, "renew", "close it and launch another")
    with core.last_turn("renew"):
        if core.closed:
            raise Closed(core.end_message)
        core.closed = True
        core.pressed_keys.clear()
        try:
            with losses_raised(core):
                core.forget_stop()
                check_alive(core.backend)
                core.close_shells()
                core.backend.close()
                renewed = core.remake()
        except BaseException:
            core.ending.close()
            raise
        core.ending.forget()
        renewed.interceptors = (*renewed.interceptors, *core.interceptors)
        core.successor = renewed
        return renewed


def pass_on(core: Core) -> Core:
    """See `deskhand.desktop.access.pass_on`."""
    with core.last_turn("pass_on"):
        if core.closed:
            raise Closed(core.end_message)
        with losses_raised(core):
            core.release_strays()
            core.forget_stop()
            check_alive(core.backend)
            core.close_shells()
        core.successor = _twin(core)
        core.closed = True
        core.ending = CleanupStack()
        return core.successor


def _twin(core: Core) -> Core:
    """Another core of the same desktop, with pressed keys, a memory of what was seen and a lock of its own."""
    other = copy.copy(core)
    vars(other).update(
        lock=threading.RLock(),
        pressed_keys=PressedKeys(),
        watch=Watch(core.backend, core.clock),
        control=ControlState(),
        attempts={},
        end_message=CLOSED,
        stopped=None,
        halting=False,
        released=False,
        closing=False,
        in_turn=InTurn(),
        shells={},
        commands={},
    )
    return other


def latest(core: Core) -> Core:
    """The core that stands for the desktop now, after `pass_on` and `renew`."""
    while core.successor is not None:
        core = core.successor
    return core


def leave(core: Core, socket: str) -> int:
    """End the connection and leave what was launched running; see `deskhand.launchers.local.launch.leave_running`.

    Returns:
        The process id of the guard, which listens at `socket` from now on.
    """
    with core.turn():
        core.backend.round_trip()
        core.close_shells()
        guard = core.programs.own()
        pid = guard.detach(socket)
        core.control.pause = None
        core.closed = True
        core.ending.forget()
        core.backend.close()
        guard.abandon()
    return pid


def revoke(core: Core) -> None:
    """Refuse everything from now on, and end the call under way without waiting for it: the desktop is back in its pool."""
    if core.closed:
        return
    core.end_message = "this desktop was given back to its pool: acquire another"
    core.closing = True
    core.control.pause = None
    core.end_attempts()
    core.interrupt()


def last_look(core: Core, timeout: float) -> Health:
    """The health of a desktop that was revoked."""
    with core.last_turn("probe"):
        if core.closed:
            raise Closed(core.end_message)
        core.forget_stop()
        core.backend.begin()
        try:
            return examine_once(core, timeout)
        finally:
            core.backend.end()
