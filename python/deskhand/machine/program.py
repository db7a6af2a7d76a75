"""A program that was started on a desktop."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from deskhand._core.window import Window


def _not_known() -> int | None:
    return None


@dataclass(frozen=True, slots=True)
class Program:
    """A program started on a desktop.

    Attributes:
        pid: Its process id.
        window: The window that came up; None over VNC, where windows are unknown.
        log: The file with its output, on the machine where it runs: the first 32 KiB and at least the last 64 KiB, with a
            line between them that says how much is missing. After the end of it and of all it has started, it is kept until
            32 others have.
    """

    pid: int
    window: Window | None
    log: Path
    _poll: Callable[[], int | None] = field(default=_not_known, repr=False, compare=False)

    def poll(self) -> int | None:
        """How it ended: its exit code, or minus the number of the signal that killed it; None while it runs.

        None also where that is unknown, such as for a program that was started before the desktop was made as new.

        Raises:
            DesktopLost: The desktop is gone, and the program with it.
        """
        return self._poll()
