"""Podman's service of a test's own, with nothing of the machine's but an image."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from docker import APIClient

from containers.daemon import forgotten
from faults.helpers import need, until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deskhand.launchers.docker.engine import Engine

_START_LIMIT, _STOP_LIMIT, _LONG = 60.0, 60.0, 600
# Podman gives containers higher limits of descriptors and processes than root may set in a container or a small machine.
_RUNTIME = f"""#!{sys.executable} -I
import json, os, resource, sys
from pathlib import Path

def lower(path, process_of):
    settings = json.loads(Path(path).read_text())
    for limit in process_of(settings).get("rlimits", ()):
        most = resource.getrlimit(getattr(resource, limit["type"]))[1]
        if most != resource.RLIM_INFINITY:
            limit.update(hard=min(limit["hard"], most), soft=min(limit["soft"], most))
    Path(path).write_text(json.dumps(settings))

for option, value in zip(sys.argv, sys.argv[1:]):
    if option == "--bundle":
        lower(f"{{value}}/config.json", lambda settings: settings["process"])
    elif option == "--process":
        lower(value, lambda settings: settings)
os.execv("{{runc}}", ["runc", *sys.argv[1:]])
"""


class Podman:
    """A service that listens at a socket in a folder."""

    def __init__(self, folder: Path, run_as: Sequence[str] = ()) -> None:
        """Start it in a folder, by a command such as `setpriv` if one is given; it answers when this returns."""
        self.folder = folder
        runtime = folder / "runtime"
        runtime.write_text(_RUNTIME.replace("{runc}", need("runc", "docker.io")))
        runtime.chmod(0o755)
        settings = folder / "containers.conf"
        # After a command it keeps a process for so many seconds, which says how that ended.
        engine = 'runtime = "own"\nexit_command_delay = 5\n'
        settings.write_text(f'[engine]\n{engine}[engine.runtimes]\nown = ["{runtime}"]\n')
        self.environment = {
            **os.environ,
            "CONTAINERS_CONF": str(settings),
            "XDG_RUNTIME_DIR": str(folder),
            "HOME": str(folder),
        }
        # Without systemd, which keeps its control groups elsewhere.
        self.command = [
            *run_as,
            need("podman", "podman"),
            *(f"--root={folder}/data", f"--runroot={folder}/run", "--cgroup-manager=cgroupfs"),
        ]
        with (folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*self.command, "system", "service", "--time=0", self.host],
                env=self.environment,
                # It leaves a file there.
                cwd=folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        until(self._answers, _START_LIMIT, "Podman")

    @property
    def host(self) -> str:
        """For `DOCKER_HOST`."""
        return f"unix://{self.folder}/engine.sock"

    def _answers(self) -> bool:
        if self.process.poll() is not None:
            pytest.fail(f"podman ended with {self.process.returncode}: {(self.folder / 'log').read_text()[-2000:]}")
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as client:
            client.connect(self.host.removeprefix("unix://"))
            return True
        return False

    def load(self, engine: Engine, image: str) -> None:
        """Give it an image that another engine has."""
        with contextlib.closing(APIClient(self.host, version="auto", timeout=_LONG)) as api:
            api.load_image(engine.api.get_image(image))

    def listed(self) -> list[str]:
        """The containers that it has, running or not."""
        with contextlib.closing(APIClient(self.host, version="auto", timeout=_LONG)) as api:
            return [found["Names"][0] for found in api.containers(all=True)]

    def end(self) -> None:
        """End it, and whatever it still runs."""
        subprocess.run(
            [*self.command, "rm", "--all", "--force"], env=self.environment, capture_output=True, check=False
        )
        self.process.terminate()
        self.process.wait(_STOP_LIMIT)
        for pid in forgotten(self.folder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def own_podman(run_as: Sequence[str] = (), owner: int = 0) -> Iterator[Podman]:
    """One in a folder that belongs to that user; nothing of it is left."""
    if os.getuid() != 0:
        pytest.fail("run as root: only it can start Podman with every limit")
    # Not below pytest's directory: a socket's path has 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="deskhand-podman-"))
    os.chown(folder, owner, owner)
    try:
        podman = Podman(folder, run_as)
        try:
            yield podman
        finally:
            podman.end()
    finally:
        for line in Path("/proc/self/mountinfo").read_text().splitlines()[::-1]:
            mounted = line.split()[4]
            if mounted.startswith(f"{folder}/"):
                subprocess.run(["umount", "-l", mounted], check=False)
        shutil.rmtree(folder, ignore_errors=True)
