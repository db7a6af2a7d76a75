"""Starting a program on a desktop, and knowing when its window is up.

This module owns which window counts as that of a program. What must never appear here: how processes are kept (see
`deskhand.machine.processes`).
"""

from __future__ import annotations

import os
import signal
from functools import partial
from typing import TYPE_CHECKING

from deskhand._core.settle import Settle
from deskhand.errors import LaunchFailed
from deskhand.machine.program import Program

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from deskhand._core.window import Window
    from deskhand.backends.protocols import Backend
    from deskhand.desktop.watcher import Watch
    from deskhand.machine.processes import Programs

STARTUP_ID = "DESKTOP_STARTUP_ID"

_FOCUS_LIMIT = 1.0
# For so many seconds after a program ended well, another one may show its window.
_HANDED_OVER = 5.0
# A window that has just come up draws itself in several steps.
_DRAWN = Settle(quiet=0.1, reaction=0.3)


def start_program(
    backend: Backend,
    watch: Watch,
    keeper: Programs,
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | os.PathLike[str] | None,
    timeout: float,
    poll: Callable[[int], int | None],
) -> Program:
    """Start it and return when its window is up and drawn; see `Desktop.start`.

    Over VNC windows are unknown: there, any change of the screen counts.
    """
    earlier = backend.windows() if backend.has_windows else []
    generation = backend.screen.generation
    # The X server reuses the number of a window that has gone.
    before = {(window.id, window.pid) for window in earlier}
    hosts = {window.pid for window in earlier}
    begun = watch.clock()
    # Startup notification: toolkits set the id on the first window, even if a program hands over to a running one.
    startup_id = f"deskhand-{os.urandom(8).hex()}"
    pid, _ = keeper.spawn(argv, env={**env, STARTUP_ID: startup_id}, cwd=cwd)
    window: Window | None = None
    status: int | None = None
    ended_at: float | None = None
    strangers: set[int] = set()

    def is_its(window: Window) -> bool:
        # Nothing is known of a client on another machine, for example.
        if window.startup_id == startup_id or window.pid is None:
            return True
        if window.pid not in strangers and keeper.belongs(window.pid, pid, startup_id):
            return True
        strangers.add(window.pid)
        # A program that ended well may have asked a running one for a window.
        return status == 0 and window.pid in hosts and not window.startup_id

    def over() -> bool:
        nonlocal window, status, ended_at
        status = keeper.exit_status(pid)
        if status is not None and ended_at is None:
            ended_at = watch.clock()
        if not backend.has_windows:
            return backend.screen.generation != generation or status not in {None, 0}
        window = next((w for w in backend.windows() if (w.id, w.pid) not in before and is_its(w)), None)
        if window is not None or status is None:
            return window is not None
        return status != 0 or ended_at is None or watch.clock() - ended_at >= _HANDED_OVER

    watch.until(over, timeout)
    if backend.has_windows and window is None:
        ended = "" if status is None else _how(status)
        if status == 0:
            ended += " and showed no window; desktop.host.run and desktop.machine.run run commands"
        raise LaunchFailed(f"a window of {argv[0]}", watch.clock() - begun, keeper.tail(argv[0], pid), ended)
    if window is not None and backend.has_window_manager():
        window = _await_focus(backend, watch, window)
    watch.settle(_DRAWN, window=None if window is None else window.id)
    return Program(pid, window, keeper.log_of(argv[0], pid), partial(poll, pid))


def _how(status: int) -> str:
    """How a program ended; in a container, as in a shell, 128 plus a signal's number stands for that signal."""
    number = -status if status < 0 else status - 128
    name = signal.Signals(number).name if number in set(signal.Signals) else ""
    if status < 0:
        return f"it was ended by {name or f'signal {number}'}"
    return f"it ended with status {status}" + (f" (as {name} ends a program)" if name else "")


def _await_focus(backend: Backend, watch: Watch, window: Window) -> Window:
    """A window is listed a little before it gets the keyboard; one that does not want it never does."""
    latest = window

    def focused() -> bool:
        nonlocal latest
        latest = next((w for w in backend.windows() if w.id == window.id), latest)
        return latest.active

    watch.until(focused, _FOCUS_LIMIT)
    return latest
