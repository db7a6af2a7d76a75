"""One running container: its programs, commands, files, usage, and what it died of.

This module owns what is done through `docker exec`. What must never appear here: how a container is started (see
`deskhand.launch.docker`), an X request.
"""

from __future__ import annotations

import functools
import io
import posixpath
import secrets
import select
import struct
import tarfile
import tempfile
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from deskhand.errors import ActionError, BackendError, DesktopLost, LaunchFailed, ShellError
from deskhand.inside import CommandResult, Usage
from deskhand.launch import registry
from deskhand.launch.processes import Guard

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from deskhand.launch.engine import Engine

__all__ = ["Container", "ContainerPrograms"]

LIBRARY = "/usr/local/lib/deskhand"
LOGS = "/run/deskhand/logs"
# The supervisor's exit codes.
_X_ENDED, _PART_ENDED, _X_ABSENT, _X_KILLED = 71, 72, 73, 74
_KILLED = 137
_OUT, _ERR = 1, 2
_FRAME = struct.Struct(">BxxxL")
_PIECE = 1 << 16
_LOG_TAIL = 4000
_EXIT_POLL = 0.05
_SLICE = 0.1
# After a command's end, silence for so long says that all it wrote has come, where something else holds its streams open.
_LAST_WORDS = 0.5
# How long a container that lost its X server may take to end: the whole of a loss is told within a second.
_DEATH_LIMIT = 0.7
_HELPER_LIMIT = 20.0
_ROOM_FOR_SCRIPTS = 1 << 20


class Exec:
    """One command in a container, its streams attached.

    The SDK's own reader blocks for as long as nothing comes, and drops what came together with the answer's head.
    """

    def __init__(
        self,
        container: Container,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stdin: bool = False,
    ) -> None:
        """Start it.

        Raises:
            ShellError: It could not be started.
        """
        self._api = container.engine.api
        self._errors = container.engine.errors
        self._buffer = b""
        self._ended: bool = False
        try:
            created = self._api.exec_create(
                container.id, list(argv), stdin=stdin, environment=dict(env or {}) or None, workdir=cwd
            )
            self.id: str = created["Id"]
            stream = self._api.exec_start(self.id, socket=True)
        except (self._errors.APIError, self._errors.DockerException, OSError) as error:
            reason = str(getattr(error, "explanation", "") or error)
            raise ShellError(argv[0], reason, "check that the container runs and has room for processes") from error
        self._stream = stream
        self._socket = getattr(stream, "_sock", stream)
        self._socket.setblocking(False)  # noqa: FBT003 # the socket's own method
        self._take_early(stream)

    def _take_early(self, stream: Any) -> None:
        response = getattr(stream, "_response", None)
        reader = getattr(getattr(getattr(response, "raw", None), "_fp", None), "fp", None)
        if isinstance(reader, io.BufferedReader):
            # What came together with the head of the answer; the socket does not block, so that is all.
            self._buffer = reader.read1(_PIECE) or b""

    def frames(self, timeout: float) -> Iterator[tuple[int, bytes]]:
        """What has come within `timeout` seconds: stream and bytes. Ends early when something came, or at the end."""
        ready = True
        if not self._has_frame():
            ready = bool(select.select([self._socket], [], [], max(0.0, timeout))[0])
        if ready and not self._has_frame():
            try:
                data: bytes = self._socket.recv(_PIECE)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            self._ended = len(data) == 0
            self._buffer += data
        while self._has_frame():
            kind, length = _FRAME.unpack_from(self._buffer)
            yield kind, self._buffer[_FRAME.size : _FRAME.size + length]
            self._buffer = self._buffer[_FRAME.size + length :]

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
        if not select.select([], [self._socket], [], timeout)[1]:
            return 0
        try:
            taken: int = self._socket.send(data)
        except (BlockingIOError, BrokenPipeError):
            return 0
        return taken

    def exit_code(self) -> int | None:
        """How it ended; None while it runs.

        Raises:
            BackendError: The engine does not tell.
        """
        try:
            found = self._api.exec_inspect(self.id)
        except (self._errors.DockerException, OSError) as error:
            raise BackendError(f"the Docker engine tells nothing of a command: {error}") from error
        return None if found["Running"] else found["ExitCode"]

    def await_exit(self, timeout: float) -> int:
        """Its exit code, once its streams have ended.

        Raises:
            TimeoutError: It goes on.
        """
        deadline = time.monotonic() + timeout
        while (code := self.exit_code()) is None:
            if time.monotonic() >= deadline:
                raise TimeoutError("a command in the container does not end")
            time.sleep(0.002)
        return code

    def close(self) -> None:
        """Let go of its streams; the command goes on."""
        response = getattr(self._stream, "_response", None)
        if response is not None:
            response.close()
        self._stream.close()
        self._socket.close()


class Container:
    """A container that runs a desktop.

    Attributes:
        engine: Its engine.
        id: Its id.
        name: Its name.
    """

    def __init__(self, engine: Engine, identifier: str, name: str) -> None:
        """Speak to a container; nothing is done yet."""
        self.engine = engine
        self.id = identifier
        self.name = name

    def __repr__(self) -> str:
        return f"<Container {self.name}>"

    def inspect(self) -> dict[str, Any]:
        """What the engine tells of it."""
        found: dict[str, Any] = self.engine.api.inspect_container(self.id)
        return found

    @functools.cached_property
    def labels(self) -> dict[str, str]:
        """Its image's labels, and its own."""
        return self.inspect()["Config"]["Labels"] or {}

    # --- commands ---

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes | IO[bytes] = b"",
        take: Callable[[bytes], object] | None = None,
        timeout: float = _HELPER_LIMIT,
    ) -> tuple[int, bytes, bytes]:
        """Run a small command to its end.

        Args:
            argv: The command.
            stdin: What it reads; it must know by itself where that ends.
            take: Gets its output piece by piece, which is then not returned.
            timeout: Seconds without any output after which it is given up.

        Returns:
            Exit code, output, errors.
        """
        command = Exec(self, argv, stdin=bool(stdin))
        out, errors = bytearray(), bytearray()
        try:
            source = io.BytesIO(stdin) if isinstance(stdin, bytes) else stdin
            last = time.monotonic()
            piece = source.read(_PIECE)
            while not command.ended:
                if piece:
                    if taken := command.send(piece, _SLICE):
                        piece, last = piece[taken:] or source.read(_PIECE), time.monotonic()
                        continue
                    # Who has ended, for want of room say, reads no more.
                    if command.exit_code() is not None:
                        piece = b""
                for kind, data in command.frames(_SLICE):
                    last = time.monotonic()
                    if kind == _ERR:
                        errors += data[: max(0, _ROOM_FOR_SCRIPTS - len(errors))]
                    elif take is not None:
                        take(data)
                    else:
                        out += data
                if time.monotonic() - last > timeout:
                    raise TimeoutError(f"{argv[0]} in {self.name} gave no answer for {timeout:g} s")
            return command.await_exit(timeout), bytes(out), bytes(errors)
        finally:
            command.close()

    def shell(
        self, command: str, *, timeout: float, cwd: str | None, env: Mapping[str, str] | None, limit: int
    ) -> CommandResult:
        """See `Desktop.shell`."""
        token = secrets.token_hex(8)
        running = Exec(self, [f"{LIBRARY}/run-command", token, command], env=env, cwd=cwd)
        kept = {_OUT: bytearray(), _ERR: bytearray()}
        truncated = False
        deadline = time.monotonic() + timeout
        code: int | None = None
        heard = 0.0
        over = False
        try:
            while not over:
                came = False
                for kind, data in running.frames(min(_SLICE, max(0.0, deadline - time.monotonic()))):
                    came = True
                    into = kept[kind]
                    truncated |= len(into) + len(data) > limit
                    into += data[: max(0, limit - len(into))]
                now = time.monotonic()
                if code is None and (running.ended or not came):
                    code, heard = running.exit_code(), now
                elif came:
                    heard = now
                # What it left in the background may hold the streams open: its own end counts, and what it wrote before, which
                # may have come between our looking for it and the question whether it has ended.
                told = code is not None and (running.ended or now - heard >= _LAST_WORDS)
                over = told or now >= deadline
        except BaseException:
            self._end_command(token)
            raise
        finally:
            running.close()
        if code is None:
            self._end_command(token)
        out, errors = (bytes(kept[kind]).decode("utf-8", "replace") for kind in (_OUT, _ERR))
        return CommandResult(out, errors, code, timed_out=code is None, truncated=truncated)

    def _end_command(self, token: str) -> None:
        """End everything that a command started, also when there is no room for one process more."""
        try:
            if self.run([f"{LIBRARY}/end-command", token])[0] == 0:
                return
        except (ShellError, TimeoutError):
            pass
        # tini hands it on to the supervisor, which needs no process to end the groups of all commands.
        self.engine.api.kill(self.id, "SIGUSR2")
        self.run([f"{LIBRARY}/end-command", token])

    # --- files ---

    def read_file(self, path: str, *, limit: int) -> bytes:
        """See `Desktop.read_file`."""
        data = bytearray()
        code, _, errors = self.run(["head", "-c", str(limit + 1), "--", _checked(path)], take=data.extend)
        if code != 0:
            raise BackendError(f"cannot read {path!r} in {self.name}: {_words(errors)}")
        if len(data) > limit:
            raise BackendError(
                f"{path!r} in {self.name} is larger than {limit} bytes: raise the limit, or use copy_out"
            )
        return bytes(data)

    def write_file(self, path: str, data: bytes) -> None:
        """See `Desktop.write_file`."""
        # Under its own name it is whole or not there. `head` knows where it ends: the engine cannot close one direction only.
        script = 'mkdir -p -- "$(dirname -- "$1")" && head -c "$2" >"$1.part" && mv -f -- "$1.part" "$1"'
        code, _, errors = self.run(["sh", "-c", script, "sh", _checked(path), str(len(data))], stdin=data)
        if code != 0:
            raise BackendError(f"cannot write {path!r} in {self.name}: {_words(errors)}")

    def copy_in(self, source: str | os.PathLike[str], target: str) -> None:
        """See `Desktop.copy_in`."""
        path = Path(source)
        if not path.exists():
            raise ActionError(f"copy_in: there is no {str(path)!r}")
        directory, name = posixpath.split(_checked(target).rstrip("/"))
        with tempfile.TemporaryFile() as spool:
            with tarfile.open(fileobj=spool, mode="w") as archive:
                archive.add(path, arcname=name, filter=_as_nobodys)
            spool.seek(0)
            script = 'mkdir -p -- "$1" && tar -x --no-same-owner --no-same-permissions -C "$1" -f -'
            code, _, errors = self.run(["sh", "-c", script, "sh", directory], stdin=spool)
        if code != 0:
            raise BackendError(f"cannot copy to {target!r} in {self.name}: {_words(errors)}")

    def copy_out(self, source: str, target: str | os.PathLike[str]) -> None:
        """See `Desktop.copy_out`."""
        directory, name = posixpath.split(_checked(source).rstrip("/"))
        path = Path(target)
        with (
            tempfile.TemporaryFile() as spool,
            tempfile.TemporaryDirectory(dir=path.parent, prefix=".deskhand-") as part,
        ):
            argv = ["tar", "-c", "-C", directory, "-f", "-", "--", f"./{name}"]
            code, _, errors = self.run(argv, take=spool.write)
            if code != 0:
                raise BackendError(f"cannot copy {source!r} from {self.name}: {_words(errors)}")
            spool.seek(0)
            with tarfile.open(fileobj=spool) as archive:
                # Whoever rules the desktop wrote this: no device, no link and no path may lead out of the directory.
                archive.extractall(part, filter="data")
            (Path(part) / name).replace(path)

    # --- what it says of itself ---

    def logs(self, program: str | None) -> str:
        """See `Desktop.logs`."""
        if program is None:
            text: bytes = self.engine.api.logs(self.id, tail=500)
        else:
            text = self.run(["tail", "-c", str(_LOG_TAIL), "--", f"{LOGS}/{posixpath.basename(program)}.log"])[1]
        return text.decode("utf-8", "replace")

    def usage(self) -> Usage:
        """See `Desktop.usage`."""
        try:
            stats = self.engine.api.stats(self.id, stream=False, one_shot=True)
        except (self.engine.errors.DockerException, OSError) as error:
            raise BackendError(f"the Docker engine tells nothing of {self.name}: {error}") from error
        memory, pids = stats["memory_stats"], stats["pids_stats"]
        details = memory.get("stats", {})
        # The first is what version 1 of cgroups calls it, the second version 2.
        dropped = details.get("total_inactive_file", details.get("inactive_file", 0))
        most = pids.get("limit")
        return Usage(
            memory=max(0, memory["usage"] - dropped),
            memory_limit=memory["limit"],
            cpu_seconds=stats["cpu_stats"]["cpu_usage"]["total_usage"] / 1e9,
            processes=pids.get("current", 0),
            processes_limit=most if most and most < 1 << 32 else None,
            oom_kills=self._oom_kills(),
        )

    def _oom_kills(self) -> int | None:
        try:
            return int(self.run([f"{LIBRARY}/oom-kills"])[1])
        except (ShellError, TimeoutError, ValueError):
            return None

    def cause(self, lost: DesktopLost) -> DesktopLost:
        """The same loss, with what the engine knows of it."""
        deadline = time.monotonic() + _DEATH_LIMIT
        try:
            state = self.inspect()["State"]
            while state["Running"] and time.monotonic() < deadline:
                time.sleep(0.01)
                state = self.inspect()["State"]
        except self.engine.errors.NotFound:
            return DesktopLost("container", f"the container {self.name} was removed")
        except (self.engine.errors.DockerException, OSError) as error:
            return DesktopLost(
                "daemon", f"the Docker engine does not answer: {error}", "start the engine, then launch again"
            )
        if state["Running"]:
            return lost
        code = state["ExitCode"]
        what = {
            _X_ENDED: ("x_server", "the X server ended"),
            _PART_ENDED: ("supervisor", "a part of the desktop ended again and again"),
            _X_ABSENT: ("x_server", "the X server did not come up"),
            _X_KILLED: ("oom", "the X server was killed because the container's memory was used up"),
            _KILLED: ("oom", "the container was killed because its memory was used up")
            if state["OOMKilled"]
            else ("container", "it was killed"),
        }
        cause, detail = what.get(code, ("container", f"it ended with exit code {code}"))
        return DesktopLost(cause, f"container {self.name}: {detail}")


class ContainerPrograms:
    """Starts programs in a container and knows how they ended: what `Guard` is on this machine."""

    def __init__(self, container: Container, guard: Guard | None) -> None:
        """Use `guard`, which owns the container, or None when somebody else does."""
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
        where = None if cwd is None else str(cwd)
        command = Exec(
            self._container, [f"{LIBRARY}/start-program", str(self.log_of(argv[0])), *argv], env=env, cwd=where
        )
        told = b""
        deadline = time.monotonic() + _HELPER_LIMIT
        try:
            while b"\n" not in told and not command.ended and time.monotonic() < deadline:
                told += b"".join(data for _, data in command.frames(_SLICE))
        finally:
            command.close()
        line = told.partition(b"\n")[0].strip()
        if not line.isdigit():
            hint = "check that the image has it, and that it is on PATH"
            raise ShellError(argv[0], line.decode("utf-8", "replace") or "it did not start", hint)
        pid = int(line)
        self._running[pid] = command.id
        return pid, 0

    def log_of(self, program: str) -> Path:
        """The file in the container that the program's output is appended to."""
        return Path(f"{LOGS}/{posixpath.basename(program)}.log")

    def tail(self, program: str) -> str:
        """The last lines of it."""
        return self._container.logs(program)

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
            raise BackendError(f"the Docker engine tells nothing of a program: {error}") from error
        if not found["Running"]:
            self._exits[pid] = found["ExitCode"]
        return self._exits.get(pid)

    def descends(self, pid: int, ancestor: int) -> bool:
        """Whether a process is `ancestor`, or was started by it."""
        if pid == ancestor:
            return True
        script = (
            'p=$1; while [ "$p" -gt 1 ]; do [ "$p" = "$2" ] && exit 0; read -r s </proc/$p/stat || exit 1; '
            's=${s##*) }; set -- "$1" "$2" $s; p=$4; done; exit 1'
        )
        return self._container.run(["sh", "-c", script, "sh", str(pid), str(ancestor)])[0] == 0

    def at_end(self, argv: Sequence[str], env: Mapping[str, str], *, limit: float = 10.0) -> None:
        """Run this, on this machine, for `limit` seconds at most, should the driver vanish without closing."""
        if self._guard is None and self._own_guard is None:
            self._own_guard = Guard.start(registry.private_directory())
        guard = self._guard or self._own_guard
        assert guard is not None  # noqa: S101 # one of them was there, or has just been made
        guard.at_end(argv, env, limit=limit)

    def detach(self, path: str) -> int:
        """Leave the container running; see `Guard.detach`."""
        if self._guard is None:
            raise LaunchFailed("a guard", 0.0, "", "this desktop was not launched here")
        return self._guard.detach(path)

    def abandon(self) -> None:
        """After `detach`."""
        if self._guard is not None:
            self._guard.abandon()

    def close(self) -> None:
        """Programs end with their container, not with this connection."""
        if self._own_guard is not None:
            self._own_guard.close()


def _checked(path: str) -> str:
    if not path.startswith("/") or "\0" in path:
        raise ActionError(f"{path!r} is no absolute path")
    return path


def _words(errors: bytes) -> str:
    return errors.decode("utf-8", "replace").strip()[-500:] or "no reason was given"


def _as_nobodys(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member
