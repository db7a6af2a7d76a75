"""One command in a container, and a shell, which is such a command."""

from __future__ import annotations

import contextlib
import io
import re
import socket
import ssl
import struct
import threading
import time
from typing import TYPE_CHECKING, Any

from deskhand._core.readiness import ready
from deskhand.errors import ActionError, BackendError, DeskhandTimeout, ShellError, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from deskhand.launchers.docker.engine import Engine

_NO_START = "check that the container runs, has the program, and has room for processes (Limits.processes)"
# By the words of `start-program`.
_START_HINTS = {
    "not found": "check that the image has it, and that it is on PATH",
    "not executable": "it may not be executed: check its rights, and that it is a program",
}


# The streams of a frame.
OUT, ERR = 1, 2
# How the report of Docker, and of Podman, begins that a command could not be started.
_REFUSAL = re.compile(rb"OCI runtime exec failed|Error: .*\bOCI ")
_FRAME = struct.Struct(">BxxxL")
PIECE = 1 << 16
LOG_TAIL = 4000
SLICE = 0.1
# Seconds that the streams of an ended session may take to end too.
_LAST_WORDS = 0.5
_LONG = 3600.0
HELPER_LIMIT = 20.0


class Exec:
    """One command in a container, its streams attached.

    The SDK's own reader blocks for as long as nothing comes, and drops bytes that came with the head of the answer.
    """

    def __init__(
        self,
        engine: Engine,
        container: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stdin: bool = False,
    ) -> None:
        """Start it.

        Raises:
            ShellError: It could not be started.
            ActionError: A word, a variable or the directory is not UTF-8; the engine would replace it with something else.
        """
        _check_text(*argv, cwd or "", *(env or {}), *(env or {}).values())
        self._api = engine.api
        self._errors = engine.errors
        self._buffer = b""
        self._ended: bool = False
        self._program = argv[0]
        self._started = True
        try:
            created = self._api.exec_create(
                container, list(argv), stdin=stdin, environment=dict(env or {}) or None, workdir=cwd
            )
            self.id: str = created["Id"]
            stream = self._api.exec_start(self.id, socket=True)
        except (self._errors.APIError, self._errors.DockerException, OSError) as error:
            reason = str(getattr(error, "explanation", "") or error)
            raise ShellError(argv[0], reason, start_hint(reason)) from error
        self._stream = stream
        self._socket = getattr(stream, "_sock", stream)
        self._socket.setblocking(False)  # noqa: FBT003 # the socket's own method
        self._take_early(stream)

    def _take_early(self, stream: Any) -> None:
        response = getattr(stream, "_response", None)
        reader = getattr(getattr(getattr(response, "raw", None), "_fp", None), "fp", None)
        if isinstance(reader, io.BufferedReader):
            # Bytes that came with the head of the answer; the socket does not block, so these are all.
            with contextlib.suppress(ssl.SSLWantReadError):
                self._buffer = reader.read1(PIECE) or b""

    def frames(self, timeout: float) -> Iterator[tuple[int, bytes]]:
        """Read what comes within `timeout` seconds: stream and bytes. Ends early when something came, or at the end."""
        if (self.has_pending or ready([self._socket], timeout=timeout)) and not self._has_frame():
            try:
                data: bytes = self._socket.recv(PIECE)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return
            except OSError:
                data = b""
            self._ended = len(data) == 0
            self._buffer += data
        while self._has_frame():
            kind, length = _FRAME.unpack_from(self._buffer)
            yield kind, self._buffer[_FRAME.size : _FRAME.size + length]
            self._buffer = self._buffer[_FRAME.size + length :]

    def fileno(self) -> int:
        """The descriptor of its socket, to wait on together with others."""
        number: int = self._socket.fileno()
        return number

    @property
    def has_pending(self) -> bool:
        """Whether something has come already that is no longer in the socket."""
        return self._has_frame() or (isinstance(self._socket, ssl.SSLSocket) and self._socket.pending() > 0)

    def _has_frame(self) -> bool:
        if len(self._buffer) < _FRAME.size:
            return False
        length: int = _FRAME.unpack_from(self._buffer)[1]
        return len(self._buffer) >= _FRAME.size + length

    @property
    def ended(self) -> bool:
        """Whether its streams have ended."""
        return self._ended

    def send(self, data: bytes, timeout: float) -> int:
        """Write to its standard input; returns how many bytes it took within `timeout` seconds."""
        if not ready(writing=[self._socket], timeout=timeout):
            return 0
        try:
            taken: int = self._socket.send(data)
        except OSError:
            # It takes nothing now, or never again.
            return 0
        return taken

    def exit_code(self) -> int | None:
        """How it ended; None while it runs.

        Raises:
            BackendError: The engine does not answer.
        """
        try:
            found = self._api.exec_inspect(self.id)
        except (self._errors.DockerException, OSError) as error:
            raise BackendError(f"the Docker engine does not report on a command: {error}") from error
        self._started = found["Running"] or found["Pid"] != 0
        return None if found["Running"] else found["ExitCode"]

    def check_started(self, output: bytes) -> None:
        """Called once it has ended, to find out that it never started.

        Args:
            output: Its output.

        Raises:
            ShellError: It was never started.
        """
        # Such a command has an exit code too, and the reason as its output. For one that ended at once, the engine may have no
        # number yet.
        if not self._started and is_refusal(output):
            reason = output.decode("utf-8", "replace").strip()
            raise ShellError(self._program, reason, start_hint(reason))

    def await_exit(self, timeout: float) -> int:
        """Its exit code, once its streams have ended.

        Raises:
            DeskhandTimeout: It still runs.
        """
        deadline = time.monotonic() + timeout
        while (code := self.exit_code()) is None:
            if time.monotonic() >= deadline:
                raise DeskhandTimeout("a command in the container does not end")
            time.sleep(0.002)
        return code

    def hang_up(self) -> None:
        """End its streams for a reader in another thread."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close its streams; the command goes on."""
        response = getattr(self._stream, "_response", None)
        if response is not None:
            response.close()
        self._stream.close()
        self._socket.close()


def first_line(command: Exec, limit: float = HELPER_LIMIT) -> bytes:
    """The first line of a command's output; empty if there is none for `limit` seconds. The command goes on."""
    output = b""
    deadline = time.monotonic() + limit
    try:
        while b"\n" not in output and len(output) < PIECE and not command.ended and time.monotonic() < deadline:
            output += b"".join(data for _, data in command.frames(SLICE))
    finally:
        command.close()
    return output.partition(b"\n")[0].strip()


class ContainerSession:
    """A shell in a container."""

    def __init__(self, running: Exec, end: Callable[[], None], raise_if_dying: Callable[[], None]) -> None:
        """Use `running`, which `end` ends with all that it has started."""
        self._exec = running
        self._end = end
        self._raise_if_dying = raise_if_dying
        self._over = threading.Event()
        # The beginning of its output, which may be the reason why it could not be started.
        self._said = b""

    def write(self, data: bytes, timeout: float) -> int:
        """See `Session.write`."""
        return self._exec.send(data[:PIECE], timeout)

    def read(self) -> list[tuple[int, bytes]]:
        """See `Session.read`."""
        while not self._exec.ended:
            if found := list(self._exec.frames(_LONG)):
                if len(self._said) < LOG_TAIL:
                    self._said += b"".join(data for _, data in found)[:LOG_TAIL]
                return found
        self._over.set()
        return []

    def exit_status(self) -> int | None:
        """See `Session.exit_status`."""
        code = self._exec.exit_code()
        if code is not None:
            self._exec.check_started(self._said)
            self._raise_if_dying()
        return code

    def end(self) -> None:
        """See `Session.end`."""
        try:
            self._end()
            # Its last output is still to be read.
            self._over.wait(_LAST_WORDS)
        finally:
            self._exec.hang_up()

    def leave(self) -> None:
        """See `Session.leave`."""
        self._exec.hang_up()

    def close(self) -> None:
        """See `Session.close`."""
        self._exec.close()


def is_refusal(output: bytes) -> bool:
    """Whether the output of a command is the engine's report that it could not be started."""
    return _REFUSAL.match(output) is not None


def start_hint(reason: str) -> str:
    """What to do if the engine could not start a command."""
    if "chdir" in reason or "Cwd" in reason:
        return "check the directory that it starts in"
    if "argument list too long" in reason:
        return "its arguments and its environment are too long: shorten them, or use a file"
    return _START_HINTS.get(reason, _NO_START)


def _check_text(*texts: str) -> None:
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError:
            hint = "in a container only shell and open_shell can name it, in their commands"
            raise ActionError(f"{shown(text)} is not UTF-8, which the Docker engine does not accept: {hint}") from None
