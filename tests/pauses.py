"""How often a test asks whether what it waits for has come."""

from __future__ import annotations

import time


class Pauses:
    """Pauses that grow with the time waited: who asks every few milliseconds keeps a processor from what is waited for."""

    def __init__(self) -> None:
        """Begin to wait."""
        self._began = time.monotonic()

    @property
    def waited(self) -> float:
        """The seconds so far."""
        return time.monotonic() - self._began

    def sleep(self) -> None:
        """A tenth of the time so far, 5 to 50 ms."""
        time.sleep(min(max(0.005, self.waited / 10), 0.05))
