"""Successors of a desktop's object: the same desktop as new, in other hands, or left running."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deskhand.desktop.cleanup import CleanupStack
from deskhand.desktop.losses import check_alive, losses_told
from deskhand.errors import Closed, UnsupportedAction

if TYPE_CHECKING:
    from deskhand.desktop.connection import Core


def renew(core: Core) -> Core:
    """See `Desktop.reset`."""
    core.owner.refuse_if_parent("this desktop")
    if core.remake is None:
        raise UnsupportedAction(core.backend.name, "renew", "close it and launch another")
    with core.last_turn("renew"):
        if core.closed:
            raise Closed(core.end_told)
        core.closed = True
        core.pressed_keys.clear()
        try:
            with losses_told(core):
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
            raise Closed(core.end_told)
        with losses_told(core):
            core.release_strays()
            core.forget_stop()
            check_alive(core.backend)
            core.close_shells()
        core.successor = core.twin()
        core.closed = True
        core.ending = CleanupStack()
        return core.successor


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
        guard = core.own_guard()
        pid = guard.detach(socket)
        core.control.pause = None
        core.closed = True
        core.ending.forget()
        core.backend.close()
        guard.abandon()
    return pid
