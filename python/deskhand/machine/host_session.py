"""A shell session on this machine: bash below a guard process of its own, reached through pipes.

This module owns what a command here sees of our environment, and ends all that it starts. What must never appear here:
the meaning of what a session writes (see `deskhand.machine.transcript`), knowledge of desktops.
"""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from deskhand._core.readiness import ready
from deskhand.errors import BackendError, DeskhandError, ShellError
from deskhand.machine import runtime_directory
from deskhand.machine.processes import Guard

if TYPE_CHECKING:
    from collections.abc import Mapping

_SCRIPT = Path(__file__).parents[1] / "launchers/docker/image/files/usr/local/lib/deskhand/session"
_PIECE = 1 << 16
_END_LIMIT = 10.0
_MARK = "DESKHAND_COMMAND"
_ROUNDS = 200
# How many pieces are still read after the end: more than pipes can hold.
_LAST_WORDS = 32
# The variables that a command gets of the driver's environment. Any other may be a key to something.
_ALLOWED = {"HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER"}
# The variables that a command gets of the environment of programs on the desktop.
_OF_DESKTOP = _ALLOWED | {
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "GDK_BACKEND",
    "NO_AT_BRIDGE",
    "QT_QPA_PLATFORM",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
}
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def host_environment(
    desktop: Mapping[str, str], *, display: str | None, xauthority: Path | None, extra: Mapping[str, str] | None
) -> dict[str, str]:
    """The environment of commands on this machine.

    Args:
        desktop: The environment of programs on the desktop, as far as that is known.
        display: As `DISPLAY` would name it.
        xauthority: The cookie file.
        extra: Added last.
    """
    found = {"PATH": _PATH, "HOME": "/", "LANG": "C.UTF-8"}
    for source, names in ((os.environ, _ALLOWED), (desktop, _OF_DESKTOP)):
        found |= {name: value for name, value in source.items() if name in names or name.startswith("LC_")}
    # Programs should not page, colour or move a cursor here.
    found["TERM"] = "dumb"
    if display is not None:
        found["DISPLAY"] = display
    if xauthority is not None:
        found["XAUTHORITY"] = str(xauthority)
    return found | dict(extra or {})


class HostSession:
    """A shell on this machine.

    Its guard is its parent and the subreaper of all that it starts. So what leaves its group or its session is still below the
    guard; and the guard ends it too when the driver is killed.
    """

    def __init__(self, *, cwd: str | None, env: Mapping[str, str], once: bool = False) -> None:
        """Start it.

        Args:
            cwd: Where it begins; its home directory when not given.
            env: Its whole environment.
            once: It exits after one command.

        Raises:
            ShellError: It could not be started.
        """
        self._guard = Guard.start(runtime_directory.private_directory())
        self._mark = os.urandom(8).hex()
        self._open: dict[int, int] = {}
        self._requests = -1
        self._wake = os.eventfd(0)
        self._last_words = _LAST_WORDS
        try:
            self._pid = self._start(cwd or env.get("HOME", "/"), env, ["", "once"] if once else [])
        except BaseException:
            self._guard.close()
            self.close()
            raise

    def _start(self, cwd: str, env: Mapping[str, str], options: list[str]) -> int:
        names = [str(self._guard.directory / name) for name in ("in", "out", "err")]
        for name in names:
            os.mkfifo(name, 0o600)
        for kind, name in enumerate(names[1:], start=1):
            self._open[os.open(name, os.O_RDONLY | os.O_NONBLOCK)] = kind
        # Both ways: without a writer bash would read an end at once, and without a reader this would not open.
        both = os.open(names[0], os.O_RDWR | os.O_NONBLOCK)
        self._requests = both
        argv = ["bash", "--noprofile", "--norc", str(_SCRIPT), *options]
        pid = self._guard.spawn(argv, env={**env, _MARK: self._mark}, cwd=cwd, streams=names)[0]
        try:
            self._requests = os.open(names[0], os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            raise ShellError("bash", f"it ended at once: {error}", "run it by hand to see why") from error
        os.close(both)
        for name in names:
            # Other processes may not open them.
            os.unlink(name)  # noqa: PTH108 # strings, as the guard takes them
        return pid

    def write(self, data: bytes, timeout: float) -> int:
        """See `Session.write`."""
        if self._requests < 0 or not ready(writing=[self._requests], timeout=timeout):
            return 0
        try:
            return os.write(self._requests, data[:_PIECE])
        except (BlockingIOError, BrokenPipeError):
            return 0

    def read(self) -> list[tuple[int, bytes]]:
        """See `Session.read`."""
        while self._open:
            found_ready = ready([*self._open, self._wake])
            found = []
            for descriptor in found_ready & self._open.keys():
                with contextlib.suppress(BlockingIOError):
                    if data := os.read(descriptor, _PIECE):
                        found.append((self._open[descriptor], data))
                    else:
                        os.close(descriptor)
                        del self._open[descriptor]
            if self._wake in found_ready:
                # A process that the guard may not end may hold the streams open, and even write to them.
                self._last_words -= 1
                if not found or not self._last_words:
                    break
            if found:
                return found
        return []

    def exit_status(self) -> int | None:
        """See `Session.exit_status`."""
        status = self._guard.exit_status(self._pid)
        if status is None and self._guard.gone:
            raise BackendError("the guard process of this shell is gone: open another shell")
        return 128 - status if status is not None and status < 0 else status

    def end(self) -> None:
        """See `Session.end`."""
        orphaned = self._guard.gone
        with contextlib.suppress(DeskhandError):
            # At once, because closing the guard first asks politely.
            self._guard.is_ready(self._guard.renew(0.0), self._pid, _END_LIMIT)
        self._guard.close()
        if orphaned:
            _end_marked(self._mark)
        if self._wake >= 0:
            os.eventfd_write(self._wake, 1)

    def leave(self) -> None:
        """See `Session.leave`."""
        self.end()

    def close(self) -> None:
        """See `Session.close`."""
        for descriptor in (*self._open, self._requests, self._wake):
            if descriptor >= 0:
                with contextlib.suppress(OSError):
                    os.close(descriptor)
        self._open, self._requests, self._wake = {}, -1, -1


def _end_marked(mark: str) -> None:
    """Kill everything that has this in its environment, until nothing is left: the programs of a killed guard."""
    wanted = f"{_MARK}={mark}".encode()
    for _ in range(_ROUNDS):
        found = False
        for process in Path("/proc").iterdir():
            if process.name.isdigit():
                with contextlib.suppress(OSError):
                    if wanted in (process / "environ").read_bytes().split(b"\0"):
                        os.kill(int(process.name), signal.SIGKILL)
                        found = True
        if not found:
            return
