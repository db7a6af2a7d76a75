"""Desktops in memory for tests of pools."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from deskhand import Desktop, DesktopLost
from deskhand.backends.memory import MemoryBackend

if TYPE_CHECKING:
    from collections.abc import Callable

LIMIT = 60.0


def until(condition: Callable[[], object], what: str) -> None:
    """Ask again and again until the answer is true."""
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline, f"waited {LIMIT:g} s for {what}"
        time.sleep(0.001)


class Maker:
    """Launches desktops in memory. A test may hold launches up, and make them fail."""

    def __init__(self) -> None:
        self.backends: list[MemoryBackend] = []
        self.options: list[dict[str, object]] = []
        self.errors: list[BaseException] = []
        self.gate = threading.Event()
        self.gate.set()
        self.most = 0

    def __call__(self, **options: object) -> Desktop:
        assert self.gate.wait(LIMIT)
        self.options.append(options)
        if self.errors:
            raise self.errors[0] if len(self.errors) == 1 else self.errors.pop(0)
        backend = MemoryBackend((64, 48))
        self.backends.append(backend)
        self.most = max(self.most, len(self.living))
        return Desktop(backend)

    @property
    def living(self) -> list[MemoryBackend]:
        return [backend for backend in self.backends if not backend.closed]


def kill(backend: MemoryBackend) -> None:
    """From now on it is as a desktop whose server has died."""

    def look() -> None:
        raise DesktopLost("x_server", "killed by the test")

    backend.look = look  # type: ignore[method-assign] # a look of the test's own
