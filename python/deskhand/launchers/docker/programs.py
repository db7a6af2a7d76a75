"""The programs of a desktop in a container."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from deskhand.errors import BackendError, DeskhandTimeout, LaunchFailed, ShellError
from deskhand.launchers.docker.container_commands import LIBRARY
from deskhand.launchers.docker.exec import Exec, first_line, is_refusal, start_hint
from deskhand.machine import runtime_directory
from deskhand.machine.processes import Guard
from deskhand.machine.program import Program

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from deskhand.launchers.docker.container import Container

_EXIT_POLL = 0.05


class ContainerPrograms:
    """Starts programs in a container and knows how they ended, as `Guard` does on this machine."""

    def __init__(self, container: Container, guard: Guard | None) -> None:
        """Use `guard`, which owns the container, or None if another driver does."""
        self._container = container
        self._guard = guard
        self._own_guard: Guard | None = None
        self._running: dict[int, str] = {}
        self._exits: dict[int, int] = {}
        self._asked = 0.0

    def spawn(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str | os.PathLike[str] | None = None,
    ) -> tuple[int, int]:
        """Start a program; see `Guard.spawn`. Its process id is the container's own."""
        where = self._container.where(None if cwd is None else str(cwd))
        log = self._container.log_prefix(argv[0])
        environment = {**self._container.slot.environment, **env}
        command = Exec(
            self._container.engine,
            self._container.id,
            [f"{LIBRARY}/start-program", log, *argv],
            env=environment,
            cwd=where,
        )
        line = first_line(command)
        if not line.isdigit():
            if not line or is_refusal(line):
                self._container.raise_if_dying()
            reason = line.decode("utf-8", "replace")
            raise ShellError(argv[0], reason or "it did not report its start", start_hint(reason))
        pid = int(line)
        self._running[pid] = command.id
        return pid, 0

    def log_of(self, program: str, pid: int) -> Path:
        """The file in the container with the beginning and the end of what that program writes."""
        return Path(f"{self._container.log_prefix(program)}-{pid}.log")

    def tail(self, program: str, pid: int) -> str:
        """The last lines of it; empty if it cannot be read."""
        try:
            return self._container.logs(Program(pid, None, self.log_of(program, pid)))
        except (BackendError, ShellError, DeskhandTimeout):
            return ""

    def exit_status(self, pid: int) -> int | None:
        """How a program ended (128 and more: a signal), None while it runs."""
        if pid in self._exits or pid not in self._running:
            return self._exits.get(pid)
        if time.monotonic() - self._asked < _EXIT_POLL:
            return None
        self._asked = time.monotonic()
        try:
            found = self._container.engine.api.exec_inspect(self._running[pid])
        except (self._container.engine.errors.DockerException, OSError) as error:
            raise BackendError(f"the Docker engine does not report on a program: {error}") from error
        if not found["Running"]:
            self._exits[pid] = found["ExitCode"]
        return self._exits.get(pid)

    def belongs(self, pid: int, program: int, startup_id: str) -> bool:
        """See `Guard.belongs`."""
        script = (
            'tr "\\0" "\\n" </proc/$1/environ | grep -qxF "DESKTOP_STARTUP_ID=$3" && exit 0; p=$1; while [ "$p" -gt 1 ]; do '
            '[ "$p" = "$2" ] && exit 0; read -r s </proc/$p/stat || exit 1; s=${s##*) }; set -- "$1" "$2" $s; '
            '[ "$6" = "$2" ] && exit 0; p=$4; done; exit 1'
        )
        return self._container.run(["sh", "-c", script, "sh", str(pid), str(program), startup_id])[0] == 0

    @property
    def gone(self) -> bool:
        """See `Guard.gone`. Programs end with their container only."""
        return self._own_guard is not None and self._own_guard.gone

    def at_end(self, argv: Sequence[str], env: Mapping[str, str], *, limit: float = 10.0) -> None:
        """Run this, on this machine, for `limit` seconds at most, if the driver vanishes without closing."""
        if self._guard is None and self._own_guard is None:
            self._own_guard = Guard.start(runtime_directory.private_directory())
        guard = self._guard or self._own_guard
        assert guard is not None  # noqa: S101 # one of them was there, or has just been made
        guard.at_end(argv, env, limit=limit)

    def detach(self, path: str) -> int:
        """Leave the container running; see `Guard.detach`."""
        if self._guard is None:
            raise LaunchFailed("a guard", 0.0, "", "this desktop was not launched here")
        return self._guard.detach(path)

    def abandon(self) -> None:
        """Close it after `detach`."""
        if self._guard is not None:
            self._guard.abandon()

    def close(self) -> None:
        """Programs end with their container, not with this connection."""
        if self._own_guard is not None:
            self._own_guard.close()
