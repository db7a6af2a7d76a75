"""Starting a program on a desktop, and knowing when its window is up.

This module owns which window counts as a program's. What must never appear here: how processes are kept (see
`deskhand.launch.processes`).
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deskhand.errors import LaunchFailed
from deskhand.settle import Settle

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from deskhand.backends.base import Backend, Window
    from deskhand.launch.processes import Programs
    from deskhand.watch import Watch

__all__ = ["Program", "start_program"]

_FOCUS_LIMIT = 1.0
# A window that has just come up draws itself in several steps.
_DRAWN = Settle(quiet=0.1, reaction=0.3)


@dataclass(frozen=True, slots=True)
class Program:
    """A program started on a desktop.

    Attributes:
        pid: Its process id.
        window: The window that came up; None on a desktop without a window manager.
        log: The file that its output goes to.
    """

    pid: int
    window: Window | None
    log: Path


def start_program(
    backend: Backend,
    watch: Watch,
    keeper: Programs,
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | os.PathLike[str] | None,
    timeout: float,
) -> Program:
    """Start it and return when its window is up and drawn; see `Desktop.start`.

    Without a window manager nobody tells about windows: then any change of the screen counts.
    """
    managed = backend.has_window_manager()
    before = {window.id for window in backend.windows()} if managed else set()
    generation = backend.screen.generation
    begun = watch.clock()
    pid, _ = keeper.spawn(argv, env=env, cwd=cwd)
    window: Window | None = None
    status: int | None = None

    def over() -> bool:
        nonlocal window, status
        status = keeper.exit_status(pid)
        if managed:
            # A program may hand over to an instance that runs already, and end well: then any new window is its.
            new = [w for w in backend.windows() if w.id not in before]
            window = next((w for w in new if status == 0 or w.pid is None or keeper.descends(w.pid, pid)), None)
            return window is not None or status not in {None, 0}
        return backend.screen.generation != generation or status not in {None, 0}

    with contextlib.suppress(TimeoutError):
        watch.until(over, timeout, "its window")
    if managed and window is None:
        ended = "" if status is None else f"it ended with status {status}"
        raise LaunchFailed(f"a window of {argv[0]}", watch.clock() - begun, keeper.tail(argv[0]), ended)
    if window is not None:
        window = _await_focus(backend, watch, window)
    watch.settle(_DRAWN, window=window.id if window is not None else None)
    return Program(pid, window, keeper.log_of(argv[0]))


def _await_focus(backend: Backend, watch: Watch, window: Window) -> Window:
    """A window is listed a little before it gets the keyboard; one that does not want it never does."""
    latest = window

    def focused() -> bool:
        nonlocal latest
        latest = next((w for w in backend.windows() if w.id == window.id), latest)
        return latest.active

    with contextlib.suppress(TimeoutError):
        watch.until(focused, _FOCUS_LIMIT, "the keyboard focus")
    return latest
