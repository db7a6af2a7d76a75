"""One running container: its programs, commands, files, usage, and what it died of.

This module owns what is done through `docker exec`. What must never appear here: how a container is started (see
`deskhand.launchers.docker.launch`), an X request.
"""

from __future__ import annotations

import contextlib
import functools
import io
import posixpath
import secrets
import socket
import ssl
import struct
import threading
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from deskhand._core.readiness import ready
from deskhand.errors import ActionError, BackendError, DesktopLost, LaunchFailed, ShellError, shown
from deskhand.launchers.docker import cgroup
from deskhand.launchers.docker.copying import spooled, staged
from deskhand.launchers.docker.throttle import Throttle
from deskhand.launchers.docker.viewing import LONGEST_LISTING, VIEW, viewed
from deskhand.launchers.docker.warnings import notes
from deskhand.machine import runtime_directory
from deskhand.machine.interface import Usage
from deskhand.machine.processes import Guard, log_name
from deskhand.machine.program import Program

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from deskhand.launchers.docker.display_slot import Berth
    from deskhand.launchers.docker.engine import Engine
    from deskhand.machine.interface import Listing, Session

__all__ = ["Container", "ContainerPrograms"]

LIBRARY = "/usr/local/lib/deskhand"
# The supervisor's exit codes.
_X_ENDED, _PART_ENDED, _X_ABSENT, _X_KILLED = 71, 72, 73, 74
_KILLED = 137
# Of a command that did not end by itself.
_BY_SIGNAL = 128
_NO_START = "check that the container runs, has the program, and has room for processes (Limits.processes)"
# By what `start-program` says.
_START_HINTS = {
    "not found": "check that the image has it, and that it is on PATH",
    "not executable": "it may not be executed: check its rights, and that it is a program",
}
_REFUSED = b"OCI runtime exec failed"
# Who reads it may have had enough, and closes its standard input: it ends then, where the engine would let it wait for ever.
# What the kernel makes as it is read (/proc, /sys) says that it is empty, and tar believes that.
_SEND = """exec 3<&0
from=$1
if [[ -f $1/$2 && ! -L $1/$2 && ! -s $1/$2 ]]; then
  from=$(mktemp -d) && trap 'rm -rf -- "$from"' EXIT && head -c "$3" -- "$1/$2" >"$from/$2" </dev/null || exit
fi
tar -c -C "$from" -f - -- "./$2" </dev/null 3<&- & sender=$!
{ read -r -N 1 _; kill "$sender"; } <&3 >/dev/null 2>&1 & watcher=$!
wait "$sender"; code=$?
kill "$watcher" 2>/dev/null
exit "$code"
"""
# A file is there whole or not at all, and keeps its rights; a link leads to it. `head` knows where it ends: the engine cannot
# close one direction only.
# Its third argument: "new" for a file that must not be there, at a path without links.
_WRITE = """file=$(readlink -m -- "$1") || exit
if [ "$3" = new ]; then
  if [ "$file" != "$1" ]; then echo "it leads through a link to $file" >&2; exit 1; fi
  if [ -e "$file" ]; then echo 'File exists' >&2; exit 1; fi
fi
if [ -e "$file" ] && [ ! -f "$file" ]; then
  stat -c '%N is a %F' -- "$file" >&2
  exit 1
fi
mkdir -p -- "${file%/*}/" && part=$(mktemp -- "${file%/*}/.part-XXXXXXXXXX") || exit
trap 'rm -f -- "$part"' EXIT
head -c "$2" >"$part" || exit
if [ "$3" = new ]; then chmod =rw -- "$part" && ln -T -- "$part" "$file"; exit; fi
if [ -e "$file" ]; then chmod --reference="$file" -- "$part"; else chmod =rw -- "$part"; fi && mv -fT -- "$part" "$file"
"""
# Opening a pipe that nobody writes to, it would wait for ever.
_READ = """if [ -p "$2" ]; then
  stat -Lc '%N is a %F' -- "$2" >&2
  exit 1
fi
exec head -c "$1" -- "$2"
"""
_OUT, _ERR = 1, 2
_FRAME = struct.Struct(">BxxxL")
_PIECE = 1 << 16
_LOG_TAIL = 4000
_LOG_LINES = 500
_EXIT_POLL = 0.05
_SLICE = 0.1
# How long the streams of a session that was ended may take to end too.
_LAST_WORDS = 0.5
_LONG = 3600.0
# How long a container that lost its X server may take to end: the whole of a loss is told within a second.
_DEATH_LIMIT = 0.7
# The same where its memory was used up: nothing in it gets on then, what tells how it ended neither.
_STARVED_LIMIT = 5.0
_HELPER_LIMIT = 20.0
_STATS_LIMIT = 5.0
_END_LIMIT = 5.0
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
            ActionError: A word, a variable or the directory is no UTF-8; the engine would put something else in its place.
        """
        _check_text(*argv, cwd or "", *(env or {}), *(env or {}).values())
        self._api = container.engine.api
        self._errors = container.engine.errors
        self._buffer = b""
        self._ended: bool = False
        self._program = argv[0]
        self._started = True
        try:
            created = self._api.exec_create(
                container.id, list(argv), stdin=stdin, environment=dict(env or {}) or None, workdir=cwd
            )
            self.id: str = created["Id"]
            stream = self._api.exec_start(self.id, socket=True)
        except (self._errors.APIError, self._errors.DockerException, OSError) as error:
            reason = str(getattr(error, "explanation", "") or error)
            raise ShellError(argv[0], reason, _hint(reason)) from error
        self._stream = stream
        self._socket = getattr(stream, "_sock", stream)
        self._socket.setblocking(False)  # noqa: FBT003 # the socket's own method
        self._take_early(stream)

    def _take_early(self, stream: Any) -> None:
        response = getattr(stream, "_response", None)
        reader = getattr(getattr(getattr(response, "raw", None), "_fp", None), "fp", None)
        if isinstance(reader, io.BufferedReader):
            # What came together with the head of the answer; the socket does not block, so that is all.
            with contextlib.suppress(ssl.SSLWantReadError):
                self._buffer = reader.read1(_PIECE) or b""

    def frames(self, timeout: float) -> Iterator[tuple[int, bytes]]:
        """What has come within `timeout` seconds: stream and bytes. Ends early when something came, or at the end."""
        if (self.has_pending or ready([self._socket], timeout=timeout)) and not self._has_frame():
            try:
                data: bytes = self._socket.recv(_PIECE)
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
        """The socket's, to wait with others for what comes."""
        number: int = self._socket.fileno()
        return number

    @property
    def has_pending(self) -> bool:
        """Whether something has come already that the socket's readiness does not tell of."""
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
            # It takes nothing just now, or any more.
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
        self._started = found["Running"] or found["Pid"] != 0
        return None if found["Running"] else found["ExitCode"]

    def check_started(self, output: bytes) -> None:
        """Once it has ended.

        Args:
            output: What it wrote.

        Raises:
            ShellError: It was never started.
        """
        # It has an exit code then too, and the reason in place of its output. Of one that ended at once, the engine may have no
        # number yet.
        if not self._started and output.startswith(_REFUSED):
            reason = output.decode("utf-8", "replace").strip()
            raise ShellError(self._program, reason, _hint(reason))

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

    def hang_up(self) -> None:
        """End its streams for whoever reads them, in another thread."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Let go of its streams; the command goes on."""
        response = getattr(self._stream, "_response", None)
        if response is not None:
            response.close()
        self._stream.close()
        self._socket.close()


def _first_line(command: Exec, limit: float = _HELPER_LIMIT) -> bytes:
    """What a command says first; empty if it says nothing for `limit` seconds. It goes on."""
    told = b""
    deadline = time.monotonic() + limit
    try:
        while b"\n" not in told and len(told) < _PIECE and not command.ended and time.monotonic() < deadline:
            told += b"".join(data for _, data in command.frames(_SLICE))
    finally:
        command.close()
    return told.partition(b"\n")[0].strip()


class ContainerSession:
    """A shell in a container."""

    def __init__(self, container: Container, running: Exec, end: Callable[[], None]) -> None:
        """Speak to `running`, which `end` ends with all that it has started."""
        self._container = container
        self._exec = running
        self._end = end
        self._over = threading.Event()
        # Of its output, should that be the reason why it could not be started.
        self._said = b""

    def write(self, data: bytes, timeout: float) -> int:
        """See `Session.write`."""
        return self._exec.send(data[:_PIECE], timeout)

    def read(self) -> list[tuple[int, bytes]]:
        """See `Session.read`."""
        while not self._exec.ended:
            if found := list(self._exec.frames(_LONG)):
                if len(self._said) < _LOG_TAIL:
                    self._said += b"".join(data for kind, data in found if kind == _OUT)[:_LOG_TAIL]
                return found
        self._over.set()
        return []

    def exit_status(self) -> int | None:
        """See `Session.exit_status`."""
        code = self._exec.exit_code()
        if code is not None:
            self._exec.check_started(self._said)
            self._container.raise_if_dying()
        return code

    def end(self) -> None:
        """See `Session.end`."""
        try:
            self._end()
            # What it wrote last is still to be read.
            self._over.wait(_LAST_WORDS)
        finally:
            self._exec.hang_up()

    def leave(self) -> None:
        """See `Session.leave`."""
        self._exec.hang_up()

    def close(self) -> None:
        """See `Session.close`."""
        self._exec.close()


class Container:
    """A container that runs a desktop.

    Attributes:
        engine: Its engine.
        id: Its id.
        name: Its name; with the display's number after a colon where it has several desktops.
        berth: Where the desktop is in it.
        shared_memory: Bytes of `/dev/shm` for the desktop; None where that is not known.
        keeper: The command that keeps this desktop, where it is one of several; else the container itself does.
        doubt: Why it was not proved that its X server is in it; empty if it was.
    """

    def __init__(
        self, engine: Engine, identifier: str, name: str, berth: Berth, *, shared_memory: int | None = None
    ) -> None:
        """Speak to a container; nothing is done yet."""
        self.engine = engine
        self.id = identifier
        self.name: str = f"{name}:{berth.number}" if berth.shared else name
        self.berth = berth
        self.shared_memory = shared_memory
        self.keeper: str | None = None
        self.doubt = ""
        self._memory_events: Path | None = None

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
        command = Exec(self, argv, env=self.berth.environment, stdin=bool(stdin))
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
                    elif len(out) + len(data) > _ROOM_FOR_SCRIPTS:
                        raise BackendError(f"{argv[0]} in {self.name} writes more than {_ROOM_FOR_SCRIPTS} bytes")
                    else:
                        out += data
                if time.monotonic() - last > timeout:
                    raise TimeoutError(f"{argv[0]} in {self.name} gave no answer for {timeout:g} s")
            code = command.await_exit(timeout)
            command.check_started(bytes(out))
            if code >= _BY_SIGNAL:
                self.raise_if_dying()
            return code, bytes(out), bytes(errors)
        finally:
            command.close()

    def session(self, *, cwd: str | None, env: Mapping[str, str] | None, once: bool) -> Session:
        """See `Inside.session`."""
        token = secrets.token_hex(8)
        argv = [f"{LIBRARY}/run-session", token, *(["once"] if once else [])]
        environment = {**self.berth.environment, **(env or {})}
        running = Exec(self, argv, env=environment, cwd=self.where(cwd), stdin=True)
        return ContainerSession(self, running, functools.partial(self._end_command, token))

    def where(self, cwd: str | None) -> str | None:
        """Where a program starts: the image says so, unless the desktop is one of several."""
        return self.berth.home if cwd is None and self.berth.shared else cwd

    def _end_command(self, token: str) -> None:
        """End everything that a session started, also when there is no room for one process more."""
        argv = [f"{LIBRARY}/end-command", token]
        # Its end is not waited for: the engine tells that 2 s late where a command before it has left something running.
        with contextlib.suppress(ShellError):
            if _first_line(Exec(self, argv, env=self.berth.environment), _END_LIMIT) == b"ended":
                return
        # tini hands it on to the supervisor, which needs no process to end the groups of all commands.
        try:
            self.engine.api.kill(self.id, "SIGUSR2")
        except (self.engine.errors.DockerException, OSError) as error:
            if self.loss() is not None:
                # It has ended with its container.
                return
            raise BackendError(f"cannot end a command in {self.name}: {error}") from error
        with contextlib.suppress(ShellError) if self.loss(_DEATH_LIMIT) else contextlib.nullcontext():
            _first_line(Exec(self, argv, env=self.berth.environment))

    # --- files ---

    def read_file(self, path: str, *, limit: int) -> bytes:
        """See `Desktop.read_file`."""
        data = bytearray()

        def take(piece: bytes) -> None:
            data.extend(piece)
            # Whatever stands in for `head` there.
            if len(data) > limit:
                raise BackendError(
                    f"{path!r} in {self.name} is larger than {limit} bytes: raise the limit, or use copy_out"
                )

        code, _, errors = self.run(["sh", "-c", _READ, "sh", str(limit + 1), _checked(path)], take=take)
        if code != 0:
            raise BackendError(f"cannot read {path!r} in {self.name}: {_words(errors)}")
        return bytes(data)

    def view_file(self, path: str, *, limit: int) -> bytes | Listing:
        """See `Desktop.view_file`."""
        data = bytearray()

        def take(piece: bytes) -> None:
            data.extend(piece)
            if len(data) > max(limit, LONGEST_LISTING):
                raise BackendError(f"{path!r} in {self.name} is larger than {limit} bytes: raise the limit")

        argv = ["bash", "-c", VIEW, "bash", _checked(path), str(limit + 1), str(LONGEST_LISTING)]
        code, _, errors = self.run(argv, take=take)
        found = viewed(code, bytes(data), path, self.name)
        if found is None:
            raise BackendError(f"cannot read {path!r} in {self.name}: {_words(errors)}")
        if isinstance(found, bytes) and len(found) > limit:
            raise BackendError(f"{path!r} in {self.name} is larger than {limit} bytes: raise the limit")
        return found

    def write_file(self, path: str, data: bytes, *, new: bool = False) -> None:
        """See `Desktop.write_file`."""
        argv = ["sh", "-c", _WRITE, "sh", _checked(path), str(len(data)), "new" if new else ""]
        code, _, errors = self.run(argv, stdin=data)
        if code != 0:
            raise BackendError(f"cannot write {path!r} in {self.name}: {_words(errors)}")

    def copy_in(self, source: str | os.PathLike[str], target: str) -> tuple[str, ...]:
        """See `Desktop.copy_in`."""
        directory, name = posixpath.split(_checked(target).rstrip("/"))
        with spooled(Path(source), name) as (spool, left_out):
            script = 'mkdir -p -- "$1" && tar -x --no-same-owner --no-same-permissions -C "$1" -f -'
            code, _, errors = self.run(["sh", "-c", script, "sh", directory], stdin=spool)
        if code != 0:
            raise BackendError(f"cannot copy to {target!r} in {self.name}: {_words(errors)}")
        return left_out.tell(repr(str(source)))

    def copy_out(self, source: str, target: str | os.PathLike[str], *, limit: int) -> tuple[str, ...]:
        """See `Desktop.copy_out`."""
        directory, name = posixpath.split(_checked(source).rstrip("/"))
        if name in {"", ".", ".."}:
            raise ActionError(f"copy_out: {source!r} does not end in a name: name the file or the directory")
        if limit < 1:
            raise ActionError(f"copy_out: the limit must be at least 1 byte, not {limit}")
        with staged(target, f"{source!r} from {self.name}") as staging:
            argv = ["bash", "-c", _SEND, "bash", directory, name, str(limit + 1)]
            command = Exec(self, argv, env=self.berth.environment, stdin=True)
            try:
                output = _Output(command, staging.what)
                try:
                    staging.fill(output, name, limit=limit)
                except BackendError:
                    # It says itself why it wrote nothing, or half of it.
                    if command.ended and command.exit_code():
                        raise output.failed() from None
                    raise
                # With 1 it has written all, and says what changed meanwhile.
                code = command.await_exit(_HELPER_LIMIT)
                if code > 1 or not (staging.left_out.note_said(output.errors) or code == 0):
                    raise output.failed()
            finally:
                command.close()
            staging.publish()
            return staging.left_out.tell(staging.what)

    # --- what it says of itself ---

    @property
    def status(self) -> list[str]:
        """See `Desktop.status`."""
        found = notes(self.berth.restarted, self.shared_memory, self._killed())
        return [*found, self.doubt] if self.doubt else found

    @property
    def home(self) -> str:
        """See `Desktop.home`."""
        return self.berth.home

    def logs(self, program: str | Program | None) -> str:
        """See `Desktop.logs`."""
        if program is None and not self.berth.shared:
            try:
                # The engine keeps no more of it than it was told to (see `confined`).
                text: bytes = self.engine.api.logs(self.id, tail=_LOG_LINES)
            except (self.engine.errors.DockerException, OSError) as error:
                raise BackendError(f"the Docker engine tells nothing of {self.name}: {error}") from error
        else:
            code, text, errors = self.run([f"{LIBRARY}/show-log", self._log_prefix_of(program), str(_LOG_TAIL)])
            if code != 0:
                hint = "of the desktop's parts they are x-server, window-manager, bus, panel and keep-logs"
                raise BackendError(f"no log of {shown(program)} in {self.name}: {_words(errors)}; {hint}")
        return text.decode("utf-8", "replace")

    def _log_prefix_of(self, program: str | Program | None) -> str:
        if isinstance(program, Program):
            return str(program.log).removesuffix(".log")
        return self.log_prefix(program or "desktop")

    def log_prefix(self, program: str) -> str:
        """What the logs in the container of that program begin with; its process id comes next."""
        return f"{self.berth.runtime}/logs/{log_name(program)}"

    def last_words(self) -> str:
        """Its log, as far as it is to be had."""
        try:
            return self.logs(None)
        except (BackendError, ShellError, TimeoutError):
            return ""

    def usage(self) -> Usage:
        """See `Desktop.usage`."""
        deadline = time.monotonic() + _STATS_LIMIT
        while True:
            try:
                stats = self.engine.api.stats(self.id, stream=False, one_shot=True)
            except (self.engine.errors.DockerException, OSError) as error:
                raise BackendError(f"the Docker engine tells nothing of {self.name}: {error}") from error
            memory, pids = stats["memory_stats"], stats["pids_stats"]
            # An engine that could not look in time answers with nothing.
            if "usage" in memory:
                break
            if (lost := self.loss()) is not None:
                raise lost
            if time.monotonic() >= deadline:
                raise BackendError(f"the Docker engine tells nothing of {self.name}: check that it runs, or ask again")
            time.sleep(_SLICE)
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

    def _killed(self) -> int:
        """How many of its processes were killed for want of memory, as far as this machine's kernel tells."""
        return cgroup.oom_kills(self._memory_events) if self._memory_events is not None else 0

    def _oom_kills(self) -> int | None:
        try:
            return int(self.run([f"{LIBRARY}/oom-kills"])[1])
        except (ShellError, TimeoutError, ValueError):
            return None

    def watch_group(self) -> Throttle | None:
        """Look from now on at what this machine's kernel tells of it, for `status`.

        Returns:
            Who tells when its processor time is used up; None where it has all processors, or nobody tells.

        Raises:
            LaunchFailed: The engine does not answer.
        """
        with self.engine.translated(f"the desktop in {self.name}"):
            found = self.inspect()
        self._memory_events = cgroup.file_of(
            found["Id"], found["State"]["Pid"], "memory", "memory.oom_control", "memory.events"
        )
        # Several desktops stand still together when that of their container is used up.
        cpus = found["HostConfig"].get("NanoCpus", 0) / 1e9
        if not 0 < cpus < self.engine.info["NCPU"]:
            return None
        return Throttle.of(found["Id"], found["State"]["Pid"], cpus)

    def _state(self) -> tuple[bool, int, bool]:
        """Whether what keeps the desktop runs, how it ended, and whether that was for want of memory."""
        state = self.inspect()["State"]
        if self.keeper is None or not state["Running"]:
            running = state["Running"] or state["Restarting"] or state["Status"] == "created"
            return running, state["ExitCode"], state["OOMKilled"]
        found = self.engine.api.exec_inspect(self.keeper)
        return found["Running"], found["ExitCode"] or 0, False

    def check_running(self, waited: float) -> None:
        """Raise LaunchFailed when it has ended, after so many seconds."""
        with self.engine.translated(f"the desktop in {self.name}"):
            running, code, _ = self._state()
        if running:
            return
        log, hint = self.last_words(), f"it ended with {code}"
        if "exec format error" in log:
            here = self.engine.info["Architecture"]
            hint = f"it is for another kind of processor than this machine's ({here}): build it here, or pull that one"
        elif "not enough space" in log or "No space left" in log:
            hint += " for want of room: give it more, with Limits(temporary=..., home=...)"
        raise LaunchFailed(f"the desktop in {self.name}", waited, log, hint)

    def cause(self, lost: DesktopLost) -> DesktopLost:
        """The same loss, with what the engine knows of it."""
        try:
            found = self._loss(_STARVED_LIMIT if self._killed() else _DEATH_LIMIT)
        except (self.engine.errors.DockerException, OSError) as error:
            return DesktopLost(
                "daemon", f"the Docker engine does not answer: {error}", "start the engine, then launch again"
            )
        if found is None:
            # Who would tell how the X server ended has no memory to do it.
            if lost.cause == "x_server" and (killed := self._killed()):
                detail = (
                    f"its memory was used up, {killed} of its processes were killed for that, and X does not answer"
                )
                return DesktopLost("oom", f"container {self.name}: {detail}")
            return lost
        return found

    def loss(self, limit: float = 0.0) -> DesktopLost | None:
        """What became of it, if it does not run any more; None while it does, and where the engine does not answer.

        Args:
            limit: Seconds to wait for its end: its commands end a little before the engine says that it has.
        """
        try:
            return self._loss(limit)
        except (self.engine.errors.DockerException, OSError):
            return None

    def _loss(self, limit: float) -> DesktopLost | None:
        begun = time.monotonic()
        try:
            with self.engine.impatient():
                running, code, starved = self._state()
                while running and time.monotonic() - begun < limit:
                    time.sleep(0.01)
                    running, code, starved = self._state()
        except self.engine.errors.NotFound:
            return DesktopLost("container", f"the container {self.name} was removed")
        if running:
            return None
        what = {
            _X_ENDED: ("x_server", "the X server ended"),
            _PART_ENDED: ("supervisor", "a part of the desktop ended again and again"),
            _X_ABSENT: ("x_server", "the X server did not come up"),
            _X_KILLED: ("oom", "the X server was killed because the container's memory was used up"),
            _KILLED: ("oom", "the container was killed because its memory was used up")
            if starved
            else ("container", "it was killed"),
        }
        cause, detail = what.get(code, ("container", f"it ended with exit code {code}"))
        return DesktopLost(cause, f"container {self.name}: {detail}")

    def raise_if_dying(self) -> None:
        """For who saw something end that a dying container would have ended too.

        Raises:
            DesktopLost: It has ended.
        """
        if (lost := self.loss(_DEATH_LIMIT)) is not None:
            raise lost


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
        where = self._container.where(None if cwd is None else str(cwd))
        log = self._container.log_prefix(argv[0])
        environment = {**self._container.berth.environment, **env}
        command = Exec(self._container, [f"{LIBRARY}/start-program", log, *argv], env=environment, cwd=where)
        line = _first_line(command)
        if not line.isdigit():
            if not line or line.startswith(_REFUSED):
                self._container.raise_if_dying()
            reason = line.decode("utf-8", "replace")
            raise ShellError(argv[0], reason or "nothing was heard of it", _hint(reason))
        pid = int(line)
        self._running[pid] = command.id
        return pid, 0

    def log_of(self, program: str, pid: int) -> Path:
        """The file in the container with the beginning and the end of what that program writes."""
        return Path(f"{self._container.log_prefix(program)}-{pid}.log")

    def tail(self, program: str, pid: int) -> str:
        """The last lines of it; empty where it is not to be had."""
        try:
            return self._container.logs(Program(pid, None, self.log_of(program, pid)))
        except (BackendError, ShellError, TimeoutError):
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
            raise BackendError(f"the Docker engine tells nothing of a program: {error}") from error
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
        """Run this, on this machine, for `limit` seconds at most, should the driver vanish without closing."""
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
        """After `detach`."""
        if self._guard is not None:
            self._guard.abandon()

    def close(self) -> None:
        """Programs end with their container, not with this connection."""
        if self._own_guard is not None:
            self._own_guard.close()


def _hint(reason: str) -> str:
    """What to do where the engine could not start a command."""
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
            raise ActionError(f"{shown(text)} is no UTF-8, which the Docker engine cannot be given: {hint}") from None


def _checked(path: str) -> str:
    if not path.startswith("/") or "\0" in path:
        raise ActionError(f"{path!r} is no absolute path")
    return path


def _words(errors: bytes) -> str:
    return errors.decode("utf-8", "replace").strip()[-500:] or "no reason was given"


class _Output:
    """What a command writes, as a stream to read from."""

    def __init__(self, command: Exec, what: str) -> None:
        self._command = command
        self._what = what
        self._waiting = b""
        self.errors = b""

    def read(self, size: int, /) -> bytes:
        """Up to `size` bytes; none at the end."""
        deadline = time.monotonic() + _HELPER_LIMIT
        while not self._waiting and not self._command.ended:
            for kind, data in self._command.frames(_SLICE):
                deadline = time.monotonic() + _HELPER_LIMIT
                if kind == _OUT:
                    self._waiting += data
                else:
                    self.errors += data[: max(0, _ROOM_FOR_SCRIPTS - len(self.errors))]
            if time.monotonic() > deadline:
                raise TimeoutError(f"copying {self._what}: nothing came for {_HELPER_LIMIT:g} s")
        taken, self._waiting = self._waiting[:size], self._waiting[size:]
        return taken

    def failed(self) -> BackendError:
        """The command's own words."""
        return BackendError(f"cannot copy {self._what}: {_words(self.errors)}")
