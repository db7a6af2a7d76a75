"""The example of a desktop beside an agent's container: what it says holds, as it says it."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import deskhand
from containers.helpers import owned_listeners
from deskhand.launchers.docker.images import examine_container
from faults.helpers import ROOT, need
from faults.scale import EVIDENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from deskhand.launchers.docker.engine import Engine

EXAMPLE = ROOT / "examples" / "compose"


class Project:
    """`docker compose` in the example's directory, or the older `docker-compose`."""

    def __init__(self, image: str, *files: Path) -> None:
        plugin = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode == 0
        command = ["docker", "compose"] if plugin else [need("docker-compose", "docker-compose")]
        self.name = f"deskhandtest{secrets.token_hex(4)}"
        every = [option for file in (EXAMPLE / "compose.yaml", *files) for option in ("-f", str(file))]
        self._command = [*command, "-p", self.name, *every]
        self._environment = {**os.environ, "DESKTOP_IMAGE": image}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._command, *words],
            cwd=EXAMPLE,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )


def own_packages(folder: Path, image: str) -> Path:
    """Has the agent run in the desktop's image, which has a Python too, with the packages that this test uses."""
    places = [ROOT / "python", *(Path(place) for place in sys.path if place.endswith("site-packages"))]
    libraries = [str(place) for place in dict.fromkeys(places)]
    program = EXAMPLE / "agent" / "agent.py"
    agent = {
        "image": image,
        "entrypoint": ["python3", "/agent.py"],
        "environment": {"PYTHONPATH": ":".join(libraries)},
        "volumes": [f"{path}:{path}:ro" for path in libraries] + [f"{program}:/agent.py:ro"],
    }
    path = folder / "override.json"
    path.write_text(json.dumps({"services": {"agent": agent}}))
    return path


@pytest.fixture
def project(image: str, tmp_path: Path) -> Iterator[Project]:
    """The example, removed in the end."""
    if sys.version_info[:2] != (3, 11) and not EVIDENCE:
        pytest.fail(
            "the image has Python 3.11: run this with that, or with DESKHAND_EVIDENCE=1, which installs a wheel"
        )
    project = Project(image, *([] if EVIDENCE else [own_packages(tmp_path, image)]))
    yield project
    done = project.run("down", "--volumes", "--timeout", "5", *(["--rmi", "local"] if EVIDENCE else []))
    assert done.returncode == 0, done.stderr


def container(engine: Engine, project: Project, service: str) -> str:
    """The id of the container of a service."""
    labels = [f"com.docker.compose.project={project.name}", f"com.docker.compose.service={service}"]
    (found,) = engine.api.containers(all=True, filters={"label": labels})
    return str(found["Id"])


def hardening(engine: Engine, identifier: str) -> dict[str, object]:
    """What decides what a container may do."""
    found = engine.api.inspect_container(identifier)
    host = found["HostConfig"]
    names = (
        "CapAdd",
        "CapDrop",
        "Privileged",
        "ReadonlyRootfs",
        "PidsLimit",
        "Memory",
        "MemorySwap",
        "NanoCpus",
        "ShmSize",
    )
    more = (
        "IpcMode",
        "PidMode",
        "UTSMode",
        "UsernsMode",
        "NetworkMode",
        "LogConfig",
        "Devices",
        "PortBindings",
        "Ulimits",
    )
    told = {name: host[name] or None for name in (*names, *more)}
    told["SecurityOpt"] = [
        json.loads(option.partition("=")[2]) if option.startswith("seccomp=") else option
        for option in sorted(option.replace("seccomp:", "seccomp=", 1) for option in host["SecurityOpt"])
    ]
    units = {"m": 20, "g": 30}
    told["Tmpfs"] = {
        path: sorted(
            f"size={int(option[5:-1]) << units[option[-1]]}"
            if option[-1:] in units and option.startswith("size=")
            else option
            for option in options.split(",")
        )
        for path, options in host["Tmpfs"].items()
    }
    told["User"] = found["Config"]["User"]
    return told


def test_the_example_holds_what_it_says(
    project: Project, engine: Engine, contained: Callable[..., deskhand.Desktop]
) -> None:
    before = owned_listeners()
    if EVIDENCE:
        wheels = EXAMPLE / "agent"
        subprocess.run(
            [Path(sys.executable).with_name("maturin"), "build", "--release", "--out", wheels], cwd=ROOT, check=True
        )
    done = project.run("up", "-d", "--build" if EVIDENCE else "--no-build")
    assert done.returncode == 0, done.stderr
    agent, desk = (container(engine, project, service) for service in ("agent", "desktop"))
    code = engine.api.wait(agent, timeout=120)["StatusCode"]
    said = engine.api.logs(agent).decode()
    assert code == 0, said
    assert said == (
        "over X11: XTerm is there, what was typed is to be seen: True\n"
        "not as it should be: nothing\n"
        "over VNC: 1280x800, the same: True\n"
    )
    # As hard as one that is launched.
    launched = contained(vnc=True, user=(1000, 1000))
    assert launched.name is not None
    assert hardening(engine, desk) == hardening(engine, launched.name)
    assert owned_listeners() - before == set()
    with deskhand.connect(f"docker://{desk}") as desktop:
        if EVIDENCE:
            assert [finding for finding in examine_container(desktop) if not finding.ok] == []
        assert desktop.machine.run("stat -c '%a %u' /tmp/.X11-unix").stdout.split() == ["700", "1000"]
        assert desktop.status == ()
        # The agent reads its cookie where the desktop cannot put a link in its place.
        assert desktop.machine.run("echo $XAUTHORITY; touch /var/lib/deskhand/file || rm -f $XAUTHORITY").exit_code != 0
        assert desktop.machine.run("test -s $XAUTHORITY").exit_code == 0
