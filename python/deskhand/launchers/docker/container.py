"""One running container as the machine of a desktop: its files, logs, usage and accessibility bus.

Whether it runs is in `container_life`, and how a command runs in it in `container_commands`. What must never appear here: how
a container is started (see `deskhand.launchers.docker.launch`), an X request.
"""

from __future__ import annotations

import functools
import posixpath
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deskhand.errors import (
    ActionError,
    BackendError,
    DeskhandTimeout,
    LaunchFailed,
    ShellError,
    UnsupportedAction,
    shown,
)
from deskhand.launchers.docker.container_commands import LIBRARY, ROOM_FOR_SCRIPTS, ContainerCommands
from deskhand.launchers.docker.copying_in import spooled
from deskhand.launchers.docker.copying_out import staged
from deskhand.launchers.docker.exec import HELPER_LIMIT, LOG_TAIL, OUT, SLICE, Exec
from deskhand.launchers.docker.viewing import LONGEST_LISTING, VIEW, viewed
from deskhand.launchers.docker.warnings import container_warnings
from deskhand.launchers.toolkits import SWITCHED_OFF
from deskhand.machine.interface import Usage
from deskhand.machine.processes import log_name
from deskhand.machine.program import Program

if TYPE_CHECKING:
    import os

    from deskhand.machine.interface import Listing

LABEL_ELEMENTS = "org.deskhand.elements"
# A reader that has enough closes its standard input. The command ends then; the engine would let it wait for ever.
# Files that the kernel makes as they are read (/proc, /sys) have size 0, and tar believes that.
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
# Opening a pipe that no process writes to, it would wait for ever.
_READ = """if [ -p "$2" ]; then
  stat -Lc '%N is a %F' -- "$2" >&2
  exit 1
fi
exec head -c "$1" -- "$2"
"""
_LOG_LINES = 500
_STATS_LIMIT = 5.0


class Container(ContainerCommands):
    """A container that runs a desktop, as that desktop's machine: see `deskhand.machine.interface.DesktopMachine`."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """Its addresses in the engine's networks."""
        with self.engine.translated("asking for the addresses of a container"):
            networks = self.inspect()["NetworkSettings"]["Networks"] or {}
        found = (each.get(kind) for each in networks.values() for kind in ("IPAddress", "GlobalIPv6Address"))
        return tuple(address for address in found if address)

    @functools.cached_property
    def _configuration(self) -> dict[str, Any]:
        found: dict[str, Any] = self.inspect()["Config"]
        return found

    @property
    def labels(self) -> dict[str, str]:
        """The labels of its image, and its own."""
        return self._configuration["Labels"] or {}

    # --- files ---

    def read_file(self, path: str, *, limit: int) -> bytes:
        """See `Machine.read_file`."""
        data = bytearray()

        def take(piece: bytes) -> None:
            data.extend(piece)
            # Another program may stand in for `head` there.
            if len(data) > limit:
                raise BackendError(
                    f"{path!r} in {self.name} is larger than {limit} bytes: raise the limit, or use copy_out"
                )

        code, _, errors = self.run(["sh", "-c", _READ, "sh", str(limit + 1), _checked(path)], take=take)
        if code != 0:
            raise BackendError(f"cannot read {path!r} in {self.name}: {_words(errors, code)}")
        return bytes(data)

    def view_file(self, path: str, *, limit: int) -> bytes | Listing:
        """See `Machine.view_file`."""
        data = bytearray()

        def take(piece: bytes) -> None:
            data.extend(piece)
            if len(data) > max(limit, LONGEST_LISTING):
                raise BackendError(f"{path!r} in {self.name} is larger than {limit} bytes: raise the limit")

        argv = ["bash", "-c", VIEW, "bash", _checked(path), str(limit + 1), str(LONGEST_LISTING)]
        code, _, errors = self.run(argv, take=take)
        found = viewed(code, bytes(data), path, self.name)
        if found is None:
            raise BackendError(f"cannot read {path!r} in {self.name}: {_words(errors, code)}")
        if isinstance(found, bytes) and len(found) > limit:
            raise BackendError(f"{path!r} in {self.name} is larger than {limit} bytes: raise the limit")
        return found

    def write_file(self, path: str, data: bytes, *, new: bool = False) -> None:
        """See `Machine.write_file`."""
        argv = ["sh", "-c", _WRITE, "sh", _checked(path), str(len(data)), "new" if new else ""]
        code, _, errors = self.run(argv, stdin=data)
        if code != 0:
            raise BackendError(f"cannot write {path!r} in {self.name}: {_words(errors, code)}")

    def copy_in(self, source: str | os.PathLike[str], target: str) -> tuple[str, ...]:
        """See `Machine.copy_in`."""
        directory, name = posixpath.split(_checked(target).rstrip("/"))
        with spooled(Path(source), name) as (spool, left_out):
            script = 'mkdir -p -- "$1" && tar -x --no-same-owner --no-same-permissions -C "$1" -f -'
            code, _, errors = self.run(["sh", "-c", script, "sh", directory], stdin=spool)
        if code != 0:
            raise BackendError(f"cannot copy to {target!r} in {self.name}: {_words(errors, code)}")
        return left_out.tell(repr(str(source)))

    def copy_out(self, source: str, target: str | os.PathLike[str], *, limit: int) -> tuple[str, ...]:
        """See `Machine.copy_out`."""
        directory, name = posixpath.split(_checked(source).rstrip("/"))
        if name in {"", ".", ".."}:
            raise ActionError(f"copy_out: {source!r} does not end in a name: name the file or the directory")
        if limit < 1:
            raise ActionError(f"copy_out: the limit must be at least 1 byte, not {limit}")
        with staged(target, f"{source!r} from {self.name}") as staging:
            argv = ["bash", "-c", _SEND, "bash", directory, name, str(limit + 1)]
            command = Exec(self.engine, self.id, argv, env=self.slot.environment, stdin=True)
            try:
                output = _Output(command, staging.what)
                try:
                    staging.fill(output, name, limit=limit)
                except BackendError:
                    # It reports itself why it wrote nothing, or half of it.
                    if command.ended and command.exit_code():
                        raise output.failed() from None
                    raise
                # With 1 it has written all, and reports what changed meanwhile.
                code = command.await_exit(HELPER_LIMIT)
                if code > 1 or not (staging.left_out.note_said(output.errors) or code == 0):
                    raise output.failed()
            finally:
                command.close()
            staging.publish()
            return staging.left_out.tell(staging.what)

    # --- its logs ---

    @property
    def status(self) -> list[str]:
        """See `Desktop.status`."""
        found = container_warnings(self.slot.restarted, self.shared_memory, self.oom_killed())
        return [*found, self.doubt] if self.doubt else found

    @property
    def home(self) -> str:
        """See `Machine.home`."""
        return self.slot.home

    def logs(self, program: str | Program | None) -> str:
        """See `Machine.logs`."""
        if program is None and not self.slot.shared:
            try:
                # The engine keeps no more of it than it was set to (see `confined`).
                text: bytes = self.engine.api.logs(self.id, tail=_LOG_LINES)
            except (self.engine.errors.DockerException, OSError) as error:
                raise BackendError(f"the Docker engine does not report on {self.name}: {error}") from error
        else:
            code, text, errors = self.run([f"{LIBRARY}/show-log", self._log_prefix_of(program), str(LOG_TAIL)])
            if code != 0:
                hint = (
                    "of the desktop's parts they are x-server, window-manager, bus, accessibility, panel and keep-logs"
                )
                raise BackendError(f"no log of {shown(program)} in {self.name}: {_words(errors, code)}; {hint}")
        return text.decode("utf-8", "replace")

    def _log_prefix_of(self, program: str | Program | None) -> str:
        if isinstance(program, Program):
            return str(program.log).removesuffix(".log")
        return self.log_prefix(program or "desktop")

    def log_prefix(self, program: str) -> str:
        """The beginning of the names of that program's logs in the container; its process id comes next."""
        return f"{self.slot.runtime}/logs/{log_name(program)}"

    def last_words(self) -> str:
        """Its log, as far as it can be read."""
        try:
            return self.logs(None)
        except (BackendError, ShellError, DeskhandTimeout):
            return ""

    def usage(self) -> Usage:
        """See `Machine.usage`."""
        deadline = time.monotonic() + _STATS_LIMIT
        while True:
            try:
                stats = self.engine.api.stats(self.id, stream=False, one_shot=True)
            except (self.engine.errors.DockerException, OSError) as error:
                raise BackendError(f"the Docker engine does not report on {self.name}: {error}") from error
            memory, pids = stats["memory_stats"], stats["pids_stats"]
            # An engine that could not look in time sends an empty answer.
            if "usage" in memory:
                break
            if (lost := self.loss()) is not None:
                raise lost
            if time.monotonic() >= deadline:
                raise BackendError(f"the Docker engine does not report on {self.name}: check that it runs, or retry")
            time.sleep(SLICE)
        details = memory.get("stats", {})
        # The first is the name in version 1 of cgroups, the second in version 2.
        dropped = details.get("total_inactive_file", details.get("inactive_file", 0))
        # Podman counts them, and does not repeat their limit.
        most = pids.get("limit") or self.inspect()["HostConfig"]["PidsLimit"]
        return Usage(
            memory=max(0, memory["usage"] - dropped),
            memory_limit=memory["limit"],
            cpu_seconds=stats["cpu_stats"]["cpu_usage"]["total_usage"] / 1e9,
            processes=pids.get("current", 0),
            processes_limit=most if most and most < 1 << 32 else None,
            oom_kills=self._oom_kills(),
        )

    def enter_accessibility(self) -> int:
        """See `DesktopMachine.enter_accessibility`."""
        if (lacks := self._why_no_accessibility()) is not None:
            raise UnsupportedAction(f"the container {self.name}", "elements", lacks)
        return self.slot.enter_accessibility(self.id)

    def _why_no_accessibility(self) -> str | None:
        if self.slot.sockets is None:
            return "what its programs show is read through its directory of sockets, which is not on this machine"
        try:
            environment, labels = self._configuration["Env"] or [], self.labels
        except (self.engine.errors.DockerException, OSError) as error:
            raise BackendError(f"the Docker engine does not report on {self.name}: {error}") from error
        if not labels.get(LABEL_ELEMENTS):
            return "its image is from before this was possible: build it again, `deskhand image build`"
        if any(f"{name}={value}" in environment for name, value in SWITCHED_OFF.items()):
            return "it was started without (elements=False, or NO_AT_BRIDGE=1): launch it with elements=True"
        return None

    def _oom_kills(self) -> int | None:
        try:
            return int(self.run([f"{LIBRARY}/oom-kills"])[1])
        except (ShellError, DeskhandTimeout, ValueError):
            return None

    def check_running(self, waited: float) -> None:
        """Raise LaunchFailed if it has ended, after this many seconds."""
        with self.engine.translated(f"the desktop in {self.name}"):
            running, code, _ = self.state()
        if running:
            return
        log, hint = self.last_words(), f"it ended with {code}"
        if "exec format error" in log:
            here = self.engine.info["Architecture"]
            hint = f"it is for another kind of processor than this machine's ({here}): build it here, or pull that one"
        elif "not enough space" in log or "No space left" in log:
            hint += " for want of room: give it more, with Limits(temporary=..., home=...)"
        raise LaunchFailed(f"the desktop in {self.name}", waited, log, hint)


def _checked(path: str) -> str:
    if not path.startswith("/") or "\0" in path:
        raise ActionError(f"{path!r} is not an absolute path")
    return path


def _words(errors: bytes, code: int | None = None) -> str:
    return errors.decode("utf-8", "replace").strip()[-500:] or (
        "no reason was given" if code is None else f"no reason was given (exit code {code})"
    )


class _Output:
    """A command's output, as a stream to read from."""

    def __init__(self, command: Exec, what: str) -> None:
        self._command = command
        self._what = what
        self._waiting = b""
        self.errors = b""

    def read(self, size: int, /) -> bytes:
        """Up to `size` bytes; none at the end."""
        deadline = time.monotonic() + HELPER_LIMIT
        while not self._waiting and not self._command.ended:
            for kind, data in self._command.frames(SLICE):
                deadline = time.monotonic() + HELPER_LIMIT
                if kind == OUT:
                    self._waiting += data
                else:
                    self.errors += data[: max(0, ROOM_FOR_SCRIPTS - len(self.errors))]
            if time.monotonic() > deadline:
                raise DeskhandTimeout(f"copying {self._what}: the container sent nothing for {HELPER_LIMIT:g} s")
        taken, self._waiting = self._waiting[:size], self._waiting[size:]
        return taken

    def failed(self) -> BackendError:
        """An error with the command's own words."""
        return BackendError(f"cannot copy {self._what}: {_words(self.errors)}")
