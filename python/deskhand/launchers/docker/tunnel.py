"""A way to an engine's socket on another machine: one `ssh`, and a Unix socket here that it forwards to there.

This module owns that process, and what its failures mean. What must never appear here: a request to the engine, a password, a
question to a person.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import threading
import time
from typing import IO, TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from deskhand._core.readiness import ready
from deskhand.errors import LaunchFailed
from deskhand.machine import children, runtime_directory
from deskhand.machine.processes import tail

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_DEFAULT_SOCKET = "/var/run/docker.sock"
_END_LIMIT = 2.0
_PIECE = 4096
# A session, not -N: with one, both ends of ssh send small packets at once; without, they wait for acknowledgements (one key
# settled after 109 ms instead of 60). It ends with its standard input, and so with this process.
_SESSION = (
    'test -S "$0" || { echo deskhand: absent; exit 1; }; '
    'test -w "$0" || { echo deskhand: forbidden; exit 1; }; '
    "echo deskhand: ready; exec cat"
)
# No questions to a person; a connection of its own, since a shared one would outlive this process; a lost machine
# is noticed within 8 s, before a desktop on it is given up.
_OPTIONS = {
    "BatchMode": "yes",
    "ControlMaster": "no",
    "ControlPath": "none",
    "PermitLocalCommand": "no",
    "RemoteCommand": "none",
    "ServerAliveInterval": "2",
    "ServerAliveCountMax": "3",
    "StreamLocalBindMask": "0177",
}


class Tunnel:
    """One connection of `ssh`.

    Attributes:
        socket: Path of the Unix socket that leads to the engine.
    """

    def __init__(self, url: str, environment: Mapping[str, str], timeout: float) -> None:
        """Connect.

        Args:
            url: `ssh://[user@]host[:port][/path/of/the/engine's/socket]`.
            environment: The environment of `ssh`, which finds its agent there.
            timeout: Seconds until the way must be open.

        Raises:
            LaunchFailed: It could not be made; the message says why, and what to do.
        """
        parts = urlsplit(url)
        self.url = url
        self._host = parts.hostname or ""
        self._who = [
            *(["-l", unquote(parts.username)] if parts.username else []),
            *(["-p", str(parts.port)] if parts.port else []),
        ]
        self._path = unquote(parts.path.rstrip("/")) or _DEFAULT_SOCKET
        self._environment = dict(environment)
        self._timeout = timeout
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._directory = runtime_directory.private_directory()
        self._lease: IO[bytes] | None = runtime_directory.hold(self._directory)
        # As short as possible: the path of a socket has at most 107 bytes.
        self.socket: Path = self._directory / "engine"
        try:
            self.revive()
        except BaseException:
            self.close()
            raise

    @property
    def log(self) -> str:
        """The output of `ssh`."""
        return tail(self._directory / "ssh.log")

    def revive(self) -> None:
        """Connect again if the connection has ended.

        Raises:
            LaunchFailed: It could not be made.
        """
        with self._lock:
            if self._process is None or children.has_ended(self._process):
                self._end()
                self._start()

    def _start(self) -> None:
        begun = time.monotonic()
        self.socket.unlink(missing_ok=True)
        options = {**_OPTIONS, "ConnectTimeout": str(max(1, round(self._timeout)))}
        argv = ["ssh", "-T", "-a", "-x", *(f"-o{name}={value}" for name, value in options.items()), *self._who]
        argv += [
            "-L",
            f"{self.socket}:{self._path}",
            "--",
            self._host,
            f"sh -c {shlex.quote(_SESSION)} {shlex.quote(self._path)}",
        ]
        try:
            with (self._directory / "ssh.log").open("wb") as log:
                # A session of its own: this process handles Ctrl-C at a terminal, and needs the tunnel to end things in order.
                process = subprocess.Popen(
                    argv,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env=self._environment,
                    start_new_session=True,
                )
        except FileNotFoundError as error:
            hint = "ssh is not installed: apt-get install openssh-client"
            raise LaunchFailed(f"the Docker engine {self.url}", 0.0, "", hint) from error
        self._process = process
        answer = self._first_word(process, begun + self._timeout)
        if answer != "ready":
            self._end()
            raise LaunchFailed(
                f"the Docker engine {self.url}", time.monotonic() - begun, self.log, self._meaning(answer)
            )

    def _first_word(self, process: subprocess.Popen[bytes], deadline: float) -> str:
        """The other side's answer about the socket; empty if there is none in time."""
        assert process.stdout is not None  # noqa: S101 # it was asked for
        said = b""
        while (left := deadline - time.monotonic()) > 0 and ready([process.stdout], timeout=left):
            piece = os.read(process.stdout.fileno(), _PIECE)
            said += piece
            # A shell over there may print a greeting.
            for line in said.split(b"\n")[:-1]:
                if line.startswith(b"deskhand: "):
                    return line.removeprefix(b"deskhand: ").decode("utf-8", "replace").strip()
            if not piece:
                # It reports the reason when it ends, which is now.
                children.has_ended(process, _END_LIMIT)
                break
        return ""

    def _meaning(self, answer: str) -> str:
        log = self.log
        by_hand = " ".join(["ssh", *self._who, self._host])
        if answer == "forbidden":
            return f"you may not use {self._path} there: run `sudo usermod -aG docker $USER` on that machine"
        if answer == "absent":
            other = "name it, as in ssh://host/run/user/1000/docker.sock"
            return f"there is no engine's socket {self._path} there: start the engine, or {other}"
        if "IDENTIFICATION HAS CHANGED" in log:
            return f"its host key is not the one that is known: find out why, then `ssh-keygen -R {self._host}`"
        if "Host key verification failed" in log:
            return f"its host key is not known here: run `{by_hand}` once, compare the fingerprint, and accept it"
        if "Permission denied" in log:
            return f"it accepts none of the keys here: ssh-copy-id or ssh-add one, until `{by_hand} true` asks nothing"
        return f"ssh does not get there: `{by_hand} true` must work, and ask nothing"

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        children.end(process, _END_LIMIT)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def close(self) -> None:
        """End it; calling it again is harmless."""
        with self._lock:
            self._end()
            if self._lease is not None:
                shutil.rmtree(self._directory, ignore_errors=True)
                self._lease.close()
                self._lease = None
