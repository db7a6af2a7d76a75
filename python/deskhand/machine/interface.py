"""The machine of a desktop, besides its screen: commands, files, logs, usage. Values and protocols only.

This module owns the shapes. What must never appear here: a way to reach the machine (see
`deskhand.launchers.docker.container`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from deskhand.errors import DesktopLost
    from deskhand.machine.program import Program

# Bytes of /dev/shm that browsers need: their pages crash when it is full.
SHARED_MEMORY_ENOUGH = 256 << 20

Outcome: TypeAlias = Literal["success", "error", "timeout", "cancelled"]
Where: TypeAlias = Literal["desktop", "host"]


class LeftOutWarning(UserWarning):
    """Part of a copied tree is missing or different in the copy; the message names it."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a shell command ended.

    Attributes:
        stdout: What it wrote, as UTF-8 with invalid bytes replaced. Of more than the limit the beginning and the end are kept,
            half of it each, with a line between them that says how much is missing.
        stderr: The same of standard error.
        exit_code: 0...255; 128 and a signal's number when that ended it; None when deskhand ended it.
        outcome: `success` (exit code 0), `error` (another), `timeout` or `cancelled` (ended, with all that it had started).
        duration: Seconds.
        truncated: It wrote more than was kept.
        restarted: What the session knew (directory, variables, jobs) is lost, and the next command gets a fresh shell: after a
            timeout or a cancellation, or because the shell itself has ended.
        background: What jobs of earlier commands wrote before this one began, output first; of each an eighth of the limit.
    """

    stdout: str
    stderr: str
    exit_code: int | None
    outcome: Outcome = "success"
    duration: float = 0.0
    truncated: bool = False
    restarted: bool = False
    background: str = ""

    @property
    def timed_out(self) -> bool:
        """Whether it was ended at the timeout."""
        return self.outcome == "timeout"


def outcome_of(exit_code: int | None, *, timed_out: bool = False) -> Outcome:
    """The outcome of a command, from its exit code and whether its time was up."""
    if timed_out:
        return "timeout"
    return "cancelled" if exit_code is None else "error" if exit_code else "success"


@dataclass(frozen=True, slots=True)
class Listing:
    """What is in a directory.

    Attributes:
        names: Paths below it, sorted, two levels deep, those of directories with a slash at the end. Without those whose name
            begins with a dot, and what is below them.
        more: Whether there are more than are listed.
    """

    names: tuple[str, ...]
    more: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """What a desktop's machine uses now, according to its cgroup.

    Attributes:
        memory: Bytes, without what the kernel can drop at once.
        memory_limit: Bytes.
        cpu_seconds: Processor time since it was started.
        processes: Processes and threads.
        processes_limit: Their limit; None when there is none.
        oom_kills: How many processes were killed because memory ran out; None where that is unknown.
    """

    memory: int
    memory_limit: int
    cpu_seconds: float
    processes: int
    processes_limit: int | None
    oom_kills: int | None


class Session(Protocol):
    """A running shell that speaks as `session` in the image does; `deskhand.machine.shell.Shell` turns its output into results.

    One thread reads from it; another may use the rest meanwhile.
    """

    def write(self, data: bytes, timeout: float) -> int:
        """Write to it; returns how many bytes it took within `timeout` seconds, 0 also when it has ended."""
        ...

    def read(self) -> list[tuple[int, bytes]]:
        """Read what has come: `transcript.OUTPUT` or `ERRORS`, and bytes. Waits until something does; empty at the end."""
        ...

    def exit_status(self) -> int | None:
        """How the shell ended, as an exit code; None while it runs.

        Raises:
            BackendError: That cannot be known any more.
        """
        ...

    def end(self) -> None:
        """End it with everything that was started in it, within 2 s; its streams end too. Calling it again is harmless."""
        ...

    def leave(self) -> None:
        """End it; in a container, leave what was started in it, which ends with the container. Elsewhere as `end`."""
        ...

    def close(self) -> None:
        """Close its streams, when it has ended and no thread reads them any more."""
        ...


class DesktopMachine(Protocol):
    """A machine that belongs to one desktop."""

    @property
    def status(self) -> Sequence[str]:
        """Its problems; see `Desktop.status`."""
        ...

    @property
    def home(self) -> str:
        """The absolute path of its user's home directory."""
        ...

    def session(self, *, cwd: str | None, env: Mapping[str, str] | None, once: bool) -> Session:
        """Start a shell in it; `once`, for one command only, see `Session.leave`.

        Raises:
            ShellError: It could not be started.
        """
        ...

    def read_file(self, path: str, *, limit: int) -> bytes:
        """See `Machine.read_file`."""
        ...

    def view_file(self, path: str, *, limit: int) -> bytes | Listing:
        """See `Machine.view_file`."""
        ...

    def write_file(self, path: str, data: bytes, *, new: bool = False) -> None:
        """See `Machine.write_file`."""
        ...

    def copy_in(self, source: str | os.PathLike[str], target: str) -> tuple[str, ...]:
        """See `Machine.copy_in`."""
        ...

    def copy_out(self, source: str, target: str | os.PathLike[str], *, limit: int) -> tuple[str, ...]:
        """See `Machine.copy_out`."""
        ...

    def logs(self, program: str | Program | None) -> str:
        """See `Machine.logs`."""
        ...

    def usage(self) -> Usage:
        """See `Machine.usage`."""
        ...

    def enter_accessibility(self) -> int:
        """A descriptor of a socket that is connected to its accessibility bus; the caller owns it.

        Raises:
            UnsupportedAction: It has none; says what to do.
            ConnectFailed: It is not up yet, or has gone, or another process has its place.
        """
        ...

    def cause(self, lost: DesktopLost) -> DesktopLost:
        """Add the cause to a loss, as far as the machine knows it."""
        ...

    def loss(self) -> DesktopLost | None:
        """Why the machine has ended; None while it runs."""
        ...
