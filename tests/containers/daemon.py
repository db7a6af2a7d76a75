"""A Docker engine of a test's own, to be ended and started again: beside the machine's, with nothing of that but an image."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from docker import APIClient

from faults.helpers import need, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deskhand.launchers.docker.engine import Engine

_START_LIMIT = 60.0
_STOP_LIMIT = 60.0
_LONG = 600


@dataclass
class Daemon:
    """It listens at a socket in its folder."""

    folder: Path
    driver: str
    options: list[str] = field(default_factory=list)
    process: subprocess.Popen[bytes] | None = None
    # What keeps containers beside it, as a service of its own, which lives on.
    keeper: subprocess.Popen[bytes] | None = None

    @property
    def host(self) -> str:
        """For `DOCKER_HOST`."""
        return f"unix://{self.folder}/engine.sock"

    @property
    def _keeper(self) -> str:
        return f"{self.folder}/keeper.sock"

    def start(self, *options: str) -> None:
        """Start it, and return when it answers; with the options of the last time, unless there are others."""
        self.options = list(options) or self.options
        if self.keeper is None:
            settings = self._file("keeper.toml", 'version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n')
            places = {"address": self._keeper, "root": f"{self.folder}/keeper", "state": f"{self.folder}/kept"}
            self.keeper = self._run([need("containerd", "containerd"), *_flags({"config": settings, **places})])
            until(lambda: Path(self._keeper).exists(), _START_LIMIT, "containerd")
        flags = _flags(
            {
                "data-root": f"{self.folder}/data",
                "exec-root": f"{self.folder}/run",
                "pidfile": f"{self.folder}/pid",
                "host": self.host,
                "containerd": self._keeper,
                "storage-driver": self.driver,
                # Without the machine's own settings.
                "config-file": self._file("settings", "{}"),
                "iptables": "false",
            }
        )
        # In a network namespace of its own: it would else take the machine's bridge for its own, or away.
        apart = [need("unshare", "util-linux"), "--net", "--"]
        self.process = self._run([*apart, need("dockerd", "docker.io"), *flags, *self.options])
        until(self._answers, _START_LIMIT, "the engine")

    def _file(self, name: str, text: str) -> str:
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def _run(self, argv: list[str]) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(argv, stdout=log, stderr=log, start_new_session=True)

    def _answers(self) -> bool:
        assert self.process is not None
        if self.process.poll() is not None:
            pytest.fail(f"dockerd ended with {self.process.returncode}: {(self.folder / 'log').read_text()[-2000:]}")
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as client:
            client.settimeout(5)
            client.connect(self.host.removeprefix("unix://"))
            client.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
            return b" 200 " in client.recv(64)
        return False

    def stop(self, number: int = signal.SIGTERM) -> None:
        """End it, and wait for that."""
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(_STOP_LIMIT)
            self.process = None

    def load(self, engine: Engine, image: str) -> None:
        """Give it an image that another engine has."""
        with contextlib.closing(APIClient(self.host, version="auto", timeout=_LONG)) as api:
            api.load_image(engine.api.get_image(image))


def _flags(values: dict[str, str]) -> list[str]:
    return [f"--{name}={value}" for name, value in values.items()]


def forgotten(folder: Path) -> list[int]:
    """What an engine that was killed while it started a container knows nothing of any more: who keeps that, and it."""
    parents: dict[int, int] = {}
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            with contextlib.suppress(OSError):
                parents[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
                if f"{folder}/".encode() in (path / "cmdline").read_bytes():
                    found.append(int(path.name))
    return found + [pid for pid, parent in parents.items() if parent in found]


@contextlib.contextmanager
def own_daemon(engine: Engine) -> Iterator[Daemon]:
    """One that is not started yet; what it ran goes with it."""
    if os.getuid() != 0:
        pytest.fail("run as root: only it can start an engine")
    # Not below pytest's directory: a socket's path has 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="deskhand-engine-"))
    daemon = Daemon(folder, engine.info["Driver"])
    try:
        yield daemon
    finally:
        if daemon.process is not None and daemon.process.poll() is None:
            with contextlib.closing(APIClient(daemon.host, version="auto")) as api:
                for found in api.containers(all=True):
                    api.remove_container(found["Id"], force=True)
            daemon.stop()
        if daemon.keeper is not None:
            daemon.keeper.terminate()
            daemon.keeper.wait(_STOP_LIMIT)
        for pid in forgotten(folder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for line in Path("/proc/self/mountinfo").read_text().splitlines()[::-1]:
            mounted = line.split()[4]
            if mounted.startswith(f"{folder}/"):
                subprocess.run(["umount", "-l", mounted], check=False)
        shutil.rmtree(folder, ignore_errors=True)
