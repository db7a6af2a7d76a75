"""Which window is a program's, on a server that gives the number of a closed window again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from deskhand._core.geometry import Rect
from deskhand._core.window import Window
from deskhand.backends.memory import MemoryBackend
from deskhand.desktop.programs import start_program
from deskhand.desktop.watcher import Watch
from deskhand.errors import LaunchFailed

if TYPE_CHECKING:
    from collections.abc import Sequence

_PROGRAM = 200


class _Windows(MemoryBackend):
    """A desktop in memory whose windows the test decides; its time passes only in waits."""

    has_windows = True

    def __init__(self) -> None:
        self.now = 0.0
        self.listed: list[Window] = []
        super().__init__((64, 48), clock=lambda: self.now)
        self.on_wait = self._pass_time

    def _pass_time(self, seconds: float) -> None:
        self.now += seconds

    def windows(self) -> list[Window]:
        return self.listed


class _Programs:
    """Starts a program that shows one window and runs on."""

    def __init__(self, backend: _Windows, shows: Window) -> None:
        self._backend = backend
        self._shows = shows

    def spawn(self, _argv: Sequence[str], **_options: Any) -> tuple[int, str]:
        self._backend.listed = [self._shows]
        return _PROGRAM, "log"

    def belongs(self, pid: int, root: int, _startup_id: str) -> bool:
        return pid == root

    def exit_status(self, _pid: int) -> int | None:
        return None

    def tail(self, _name: str, _pid: int) -> str:
        return ""

    def log_of(self, name: str, _pid: int) -> str:
        return name


def window(number: int, pid: int) -> Window:
    return Window(number, "a window", "Editor", pid, Rect(0, 0, 32, 24), active=True)


def start(earlier: Window, shows: Window) -> Window | None:
    backend = _Windows()
    backend.listed = [earlier]
    programs: Any = _Programs(backend, shows)
    watch = Watch(backend, lambda: backend.now)
    return start_program(
        backend, watch, programs, ["editor"], env={}, cwd=None, timeout=5, poll=lambda _pid: None
    ).window


def test_the_number_of_a_window_that_closed_is_given_to_the_programs() -> None:
    assert start(window(7, 100), window(7, _PROGRAM)) == window(7, _PROGRAM)


def test_a_window_that_was_there_is_not_the_programs() -> None:
    with pytest.raises(LaunchFailed, match="editor"):
        start(window(7, _PROGRAM), window(7, _PROGRAM))
