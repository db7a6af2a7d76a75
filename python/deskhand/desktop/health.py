"""Whether a desktop is *started*, *live* and *ready*: the three questions that launchers, pools and `Desktop.health` ask.

This module owns what each of them means, and how a backend answers it. What must never appear here: how a desktop is
made, how often it is probed, what is done about the answer. (In our image, where there is only a shell, `files/usr/local/lib/
deskhand/probe` does the first two for Docker.)

*Started*: what belongs to it is there: a window manager, the panel that its image names, a picture. *Live*: the other side
answers now. *Ready*: input arrives: the pointer is moved by one pixel and back, and the server reports it.
"""

from __future__ import annotations

import _thread
from typing import TYPE_CHECKING, Self

from deskhand._core.events import PointerMove
from deskhand._core.geometry import Point
from deskhand._core.health import Expected, Health
from deskhand._native import Interrupted
from deskhand.desktop.losses import loss_behind
from deskhand.errors import DesktopLost, Reconnected

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from deskhand._core.geometry import Size
    from deskhand._core.window import Window
    from deskhand.backends.protocols import Backend
    from deskhand.desktop.connection import Core

# On a smaller screen the pointer's image may be all there is.
_LEAST_JUDGED = 64


# --- rules ---


def is_blank(size: Size, rgb: bytes) -> bool:
    """Whether a picture, three bytes a pixel, has one colour only; False for a tiny screen, where that proves nothing."""
    return min(size) >= _LEAST_JUDGED and rgb == rgb[:3] * (len(rgb) // 3)


def neighbour(point: Point, size: Size) -> Point:
    """The pixel beside another one; the same where a screen has no other."""
    return Point(point.x - 1 if point.x > 0 else min(1, size.width - 1), point.y)


def missing(
    expected: Expected, *, manager: bool, blank: Callable[[], bool], windows: Callable[[], list[Window]]
) -> str:
    """The missing part of a desktop that answers; empty when it has started. Costly checks come last."""
    if expected.manager and not manager:
        return "the window manager"
    if expected.panel and all(window.class_name.lower() != expected.panel for window in windows()):
        return "the panel"
    if expected.picture and blank():
        return "the first picture"
    return ""


# --- asking ---


def unstarted(backend: Backend, expected: Expected) -> str:
    """The part that is missing, as far as its backend knows by now; empty when it has started."""

    def blank() -> bool:
        return is_blank(backend.size, backend.screen.rgb(None, None, True)[2])  # noqa: FBT003 # the native call's own

    return missing(expected, manager=backend.has_window_manager(), blank=blank, windows=backend.windows)


def examine(backend: Backend, expected: Expected, *, limit: float, refused: str, held: bool, placed: bool) -> Health:
    """Ask all three questions; if one gets no answer, the later ones are not asked.

    Args:
        backend: The connection.
        expected: What belongs to it.
        limit: Seconds for all answers.
        refused: Why no input may be sent; empty when it may.
        held: Something is pressed, so the pointer must not move.
        placed: This driver's input has put the pointer where it is assumed to be.

    Raises:
        DesktopLost: The other side is gone.
        Interrupted: Another thread has stopped the call.
        Reconnected: The connection broke and was made anew.
    """
    silent = f"no answer in {limit:g} s"
    started = "it does not answer"
    alarm = _Alarm(limit, backend)
    try:
        with alarm:
            backend.round_trip()
            started = unstarted(backend, expected)
            return Health(started=started, ready=refused or _echo(backend, held=held, placed=placed))
    except Interrupted:
        if not alarm.rang:
            raise
        return Health(started=started, live=silent, ready=silent)


def examine_desktop(core: Core, timeout: float) -> Health:
    """See `Desktop.health`; within a turn."""
    try:
        health = examine_once(core, timeout)
    except Reconnected:
        core.forget_input()
        health = examine_once(core, timeout)
    core.watch.check_stop()
    return health


def examine_once(core: Core, timeout: float) -> Health:
    """The same without another attempt after a reconnection."""
    try:
        return examine(
            core.backend,
            core.expected,
            limit=timeout,
            refused="it was opened to look only" if core.view_only else "",
            # The pointer stays where a person has it.
            held=bool(core.pressed_keys.pressed) or core.control.holding is not None,
            placed=core.left_pointer is not None,
        )
    except DesktopLost as lost:
        return Health(started="it is lost", live=str(loss_behind(core, lost)), ready="it is lost")


def _echo(backend: Backend, *, held: bool, placed: bool) -> str:
    """Move the pointer, see it move, and move it back. Returns what is wrong."""
    here = Point(*backend.screen.pointer)
    steps = [neighbour(here, backend.size), here]
    if not backend.tells_pointer:
        # That it took the message and answered afterwards is the only proof; and the pointer's place may be unknown.
        steps = [here] if placed else []
    elif held:
        steps = [here]
    for step in steps:
        backend.send([PointerMove(*step)])
        backend.round_trip()
        if (seen := backend.screen.pointer) != step:
            return f"the pointer was sent to {step.x}, {step.y} and is at {seen[0]}, {seen[1]}"
    return ""


class _Alarm:
    """Interrupts the wait in its block when the time is up.

    Made of bare locks and a bare thread: a Ctrl-C may come at any moment, and would break a `Timer` with its `Condition`.

    Attributes:
        rang: Not empty when it has.
    """

    # For an object whose construction is interrupted.
    _over: _thread.LockType | None = None

    def __init__(self, seconds: float, backend: Backend) -> None:
        self.rang: list[float] = []
        self._seconds = seconds
        self._backend = backend
        self._gone = _thread.allocate_lock()

    def __enter__(self) -> Self:
        over = _thread.allocate_lock()
        over.acquire()
        self._gone.acquire()
        self._over = over
        watched = (over, self._gone, self.rang, self._seconds, self._backend)
        _thread.start_new_thread(self._watch, watched)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._over is not None:
            self._over.release()
        # It may just be ringing, which is not meant for the next call.
        self._gone.acquire()
        if self.rang:
            self._backend.clear_interrupt()

    def __del__(self) -> None:
        # A Ctrl-C may come when the block's end has hardly begun.
        if self._over is not None and self._over.locked():
            self._over.release()

    @staticmethod
    def _watch(
        over: _thread.LockType, gone: _thread.LockType, rang: list[float], seconds: float, backend: Backend
    ) -> None:
        if not over.acquire(timeout=seconds):
            rang.append(seconds)
            backend.interrupt()
        gone.release()
