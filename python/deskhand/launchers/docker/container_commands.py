"""Commands and shells that run in a container, through `docker exec`."""

from __future__ import annotations

import contextlib
import functools
import io
import secrets
import time
from typing import IO, TYPE_CHECKING

from deskhand.errors import BackendError, DeskhandTimeout, ShellError
from deskhand.launchers.docker.container_life import DEATH_LIMIT, ContainerLife
from deskhand.launchers.docker.exec import ERR, HELPER_LIMIT, PIECE, SLICE, ContainerSession, Exec, first_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from deskhand.machine.interface import Session

LIBRARY = "/usr/local/lib/deskhand"
# Exit codes from here on are those of commands that could not start, and of those that a signal ended.
_NOT_STARTED = 126
_END_LIMIT = 5.0
ROOM_FOR_SCRIPTS = 1 << 20


class ContainerCommands(ContainerLife):
    """A container in which commands are run."""

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes | IO[bytes] = b"",
        take: Callable[[bytes], object] | None = None,
        timeout: float = HELPER_LIMIT,
    ) -> tuple[int, bytes, bytes]:
        """Run a small command to its end.

        Args:
            argv: The command.
            stdin: What it reads; it must find the end of that by itself.
            take: Called with each piece of output, which is then not returned.
            timeout: Seconds without any output after which it is given up.

        Returns:
            Exit code, output, errors.
        """
        command = Exec(self.engine, self.id, argv, env=self.slot.environment, stdin=bool(stdin))
        out, errors, first = bytearray(), bytearray(), b""
        try:
            source = io.BytesIO(stdin) if isinstance(stdin, bytes) else stdin
            last = time.monotonic()
            piece = source.read(PIECE)
            while not command.ended:
                if piece:
                    if taken := command.send(piece, SLICE):
                        piece, last = piece[taken:] or source.read(PIECE), time.monotonic()
                        continue
                    # A command that has ended, for lack of room for example, reads no more.
                    if command.exit_code() is not None:
                        piece = b""
                for kind, data in command.frames(SLICE):
                    last = time.monotonic()
                    if kind == ERR:
                        errors += data[: max(0, ROOM_FOR_SCRIPTS - len(errors))]
                    elif take is not None:
                        first = first or data
                        take(data)
                    elif len(out) + len(data) > ROOM_FOR_SCRIPTS:
                        raise BackendError(f"{argv[0]} in {self.name} writes more than {ROOM_FOR_SCRIPTS} bytes")
                    else:
                        out += data
                if time.monotonic() - last > timeout:
                    raise DeskhandTimeout(f"{argv[0]} in {self.name} gave no answer for {timeout:g} s")
            code = command.await_exit(timeout)
            # First of all: that the container was dying is also why a command could not start.
            if code >= _NOT_STARTED:
                self.raise_if_dying()
            command.check_started(bytes(out or first))
            return code, bytes(out), bytes(errors)
        finally:
            command.close()

    def session(self, *, cwd: str | None, env: Mapping[str, str] | None, once: bool) -> Session:
        """See `DesktopMachine.session`."""
        token = secrets.token_hex(8)
        argv = [f"{LIBRARY}/run-session", token, *(["once"] if once else [])]
        environment = {**self.slot.environment, **(env or {})}
        running = Exec(self.engine, self.id, argv, env=environment, cwd=self.where(cwd), stdin=True)
        return ContainerSession(running, functools.partial(self._end_command, token), self.raise_if_dying)

    def where(self, cwd: str | None) -> str | None:
        """Where a program starts: the image says so, unless the desktop is one of several."""
        return self.slot.home if cwd is None and self.slot.shared else cwd

    def _end_command(self, token: str) -> None:
        """End everything that a session started, even when there is no room for one process more."""
        argv = [f"{LIBRARY}/end-command", token]
        # Without waiting for its end, which the engine reports 2 s late if an earlier command has left something running.
        with contextlib.suppress(ShellError):
            if first_line(Exec(self.engine, self.id, argv, env=self.slot.environment), _END_LIMIT) == b"ended":
                return
        # tini forwards it to the supervisor, which needs no process to end the groups of all commands.
        try:
            self.engine.api.kill(self.id, "SIGUSR2")
        except (self.engine.errors.DockerException, OSError) as error:
            if self.loss() is not None:
                # It has ended with its container.
                return
            raise BackendError(f"cannot end a command in {self.name}: {error}") from error
        with contextlib.suppress(ShellError) if self.loss(DEATH_LIMIT) else contextlib.nullcontext():
            first_line(Exec(self.engine, self.id, argv, env=self.slot.environment))
