"""The process that keeps a desktop's programs: made when it is first needed, and again if it ended and the desktop did not."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from deskhand.desktop.cleanup import CleanupStack
from deskhand.desktop.element_bus import await_bus
from deskhand.errors import UnsupportedAction

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from deskhand.machine.processes import Programs


class ProgramGuard:
    """The guard of one desktop; see `Desktop.__init__` for the arguments.

    Attributes:
        current: The process; None before it is needed.
    """

    def __init__(
        self,
        make: Callable[[], Programs] | None,
        backend_name: str,
        *,
        display: str | None,
        xauthority: Path | None,
        environment: Mapping[str, str],
        registry: Sequence[str] | None,
        owns_processes: bool,
    ) -> None:
        """Start nothing yet."""
        self.current: Programs | None = None
        self._make_guard = make
        self._backend_name = backend_name
        self._display = display
        self._xauthority = xauthority
        self._environment = environment
        self._registry = registry
        self._owns_processes = self._watched_over = owns_processes
        self._ending = CleanupStack()

    @property
    def ended_with_all(self) -> bool:
        """Whether it has ended, and with it all processes of the desktop."""
        return self._owns_processes and self._make_guard is not None and self.own().gone

    def close(self) -> None:
        """End the programs."""
        self._ending.close()

    def own(self) -> Programs:
        """The process that keeps this desktop's programs.

        Raises:
            UnsupportedAction: None can be started from here.
        """
        if self.current is not None and self.current.gone and not self._owns_processes:
            # Its programs ended with it. The desktop belongs to another user, and stays.
            self.current.close()
            self.current, self._watched_over = None, False
        if self.current is None:
            if self._make_guard is None:
                raise UnsupportedAction(
                    self._backend_name, "start", "programs are started on the desktop's own machine"
                )
            self.current = self._make_guard()
            self._ending.add(self.current.close)
        return self.current

    def for_programs(self) -> Programs:
        """The same, to start a program: before the first, the registry and the bus that programs announce themselves on."""
        guard = self.own()
        if (registry := self._registry) is not None:
            self._registry = None
            guard.spawn(registry, env=self._environment)
            await_bus(self._environment)
        return guard

    def watch_over(self) -> None:
        """Before a press: make sure that it is released even if this process is killed."""
        if self._make_guard is None or self._display is None:
            return
        if self._watched_over and (self.current is None or not self.current.gone):
            return
        guard = self.own()
        self._watched_over = True
        environment = {**os.environ, "DISPLAY": self._display}
        if self._xauthority is not None:
            environment["XAUTHORITY"] = str(self._xauthority)
        guard.at_end([sys.executable, "-m", "deskhand.backends.x11.release_held"], environment)
