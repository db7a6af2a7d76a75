"""Podman in place of Docker: the tests of containers hold for it too, but for those that ask for what only Docker has."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import deskhand
from containers.podman import Podman, own_podman
from deskhand.launchers.docker.engine import connect_engine
from faults.helpers import need, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deskhand.launchers.docker.engine import Engine

# What each file's tests ask for that Podman has in another form, or this machine has for Docker only.
FILES = {
    "test_renew.py": "",
    "test_container.py": "",
    "test_shell.py": "",
    "test_logs.py": "",
    # A network of Podman's needs its own settings of the machine.
    "test_hardening.py": "not no_port_is_opened",
}
REMOVED_LIMIT = 60.0


@pytest.fixture(scope="module")
def podman(image: str) -> Iterator[Podman]:
    engine = connect_engine()
    with own_podman() as podman:
        podman.load(engine, image)
        yield podman
    engine.close()


@pytest.mark.soak
@pytest.mark.parametrize("file", FILES)
def test_what_holds_for_docker_holds_for_podman(podman: Podman, image: str, file: str) -> None:
    path = Path(__file__).with_name(file)
    wanted = ["-m", "not soak", *(["-k", FILES[file]] if FILES[file] else [])]
    # Another run's processes, and its reports, are not this one's.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *wanted, str(path)],
        env={**environment, "DOCKER_HOST": podman.host, "DESKHAND_TEST_IMAGE": image},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-6000:]
    assert " passed" in run.stdout
    assert podman.listed() == []


@pytest.mark.soak
def test_a_killed_driver_leaves_nothing(podman: Podman, image: str, driver_environment: dict[str, str]) -> None:
    code = f"import deskhand, signal\nkept = deskhand.launch('docker', image={image!r})\nprint(1, flush=True)\nsignal.pause()\n"
    environment = {**driver_environment, "DOCKER_HOST": podman.host}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == b"1\n"
        assert len(podman.listed()) == 1
        driver.send_signal(signal.SIGKILL)
    until(lambda: podman.listed() == [], REMOVED_LIMIT, "the container's removal")


@pytest.mark.soak
def test_one_that_cannot_limit_anything_is_refused(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without control groups of its own, as here: it would leave the limits out with a warning, and says that it has them."""
    del engine
    nobody = 65534
    run_as = [need("setpriv", "util-linux"), f"--reuid={nobody}", f"--regid={nobody}", "--clear-groups"]
    with own_podman(run_as, nobody) as podman:
        monkeypatch.setenv("DOCKER_HOST", podman.host)
        with pytest.raises(deskhand.LaunchFailed, match="cannot limit memory, processes, processors"):
            deskhand.launch("docker")
        assert podman.listed() == []
