"""What a desktop with a machine of its own can do besides its screen: commands, files, logs, usage. Values and names only.

This module owns the shapes. What must never appear here: a way to reach the machine (see `deskhand.launch.container`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from deskhand.errors import DesktopLost

__all__ = ["CommandResult", "Inside", "Usage"]


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a shell command ended.

    Attributes:
        stdout: What it wrote, as UTF-8 with what is none replaced; cut at the limit.
        stderr: The same of standard error.
        exit_code: 0...255; 128 and a signal's number when that ended it; None at the timeout.
        timed_out: It was ended, with all that it had started, at the timeout.
        truncated: It wrote more than was kept.
    """

    stdout: str
    stderr: str
    exit_code: int | None
    timed_out: bool = False
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """What a desktop's machine uses just now, as its cgroup tells.

    Attributes:
        memory: Bytes, without what the kernel can drop at once.
        memory_limit: Bytes.
        cpu_seconds: Processor time since it was started.
        processes: Processes and threads.
        processes_limit: Their limit; None when there is none.
        oom_kills: How many processes were killed because memory ran out; None where that is not told.
    """

    memory: int
    memory_limit: int
    cpu_seconds: float
    processes: int
    processes_limit: int | None
    oom_kills: int | None


class Inside(Protocol):
    """A machine that belongs to one desktop."""

    def shell(
        self, command: str, *, timeout: float, cwd: str | None, env: Mapping[str, str] | None, limit: int
    ) -> CommandResult:
        """See `Desktop.shell`."""
        ...

    def read_file(self, path: str, *, limit: int) -> bytes:
        """See `Desktop.read_file`."""
        ...

    def write_file(self, path: str, data: bytes) -> None:
        """See `Desktop.write_file`."""
        ...

    def copy_in(self, source: str | os.PathLike[str], target: str) -> None:
        """See `Desktop.copy_in`."""
        ...

    def copy_out(self, source: str, target: str | os.PathLike[str]) -> None:
        """See `Desktop.copy_out`."""
        ...

    def logs(self, program: str | None) -> str:
        """See `Desktop.logs`."""
        ...

    def usage(self) -> Usage:
        """See `Desktop.usage`."""
        ...

    def cause(self, lost: DesktopLost) -> DesktopLost:
        """The same loss with its cause, as far as the machine can tell."""
        ...
