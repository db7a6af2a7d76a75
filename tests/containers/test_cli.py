"""The command line with containers: `up --docker`, `ls`, `start`, `down`, `image`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from containers.helpers import containers, own_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deskhand.launchers.docker.engine import Engine

DESKHAND = Path(sys.executable).with_name("deskhand")


def run(environment: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([DESKHAND, *words], env=environment, capture_output=True, text=True, check=False)


def test_a_container_comes_up_stays_and_goes(engine: Engine, driver_environment: Mapping[str, str]) -> None:
    up = run(driver_environment, "up", "--docker", "--name", own_name("boxed"), "--size", "640x480", "--json")
    assert up.returncode == 0, up.stderr
    told = json.loads(up.stdout)
    assert engine.api.inspect_container(told["container"])["Name"] == "/" + own_name("boxed")
    try:
        (listed,) = json.loads(run(driver_environment, "ls", "--json").stdout)
        assert (listed["name"], listed["size"], listed["answers"]) == (own_name("boxed"), [640, 480], True)
        started = json.loads(run(driver_environment, "start", "--json", "xterm").stdout)
        assert started["window"]["class"] == "XTerm"
        # The program runs in the container, and still does when the command has ended.
        inside = engine.api.top(told["container"])["Processes"]
        assert any("xterm" in line[-1] for line in inside)
        assert run(driver_environment, "type", "true\n").returncode == 0
        taken = run(driver_environment, "up", "--docker", "--name", own_name("boxed"))
        assert taken.returncode == 1
        assert "already" in taken.stderr
    finally:
        down = run(driver_environment, "down", own_name("boxed"))
    assert down.returncode == 0, down.stderr
    assert own_name("boxed") not in containers(engine)
    assert not Path(told["directory"]).exists()
    assert not Path(f"/tmp/.X11-unix/X{told['display'].removeprefix(':')}").is_symlink()


@pytest.mark.soak
def test_an_image_is_built_once_and_checked(image: str, driver_environment: Mapping[str, str]) -> None:
    built = run(driver_environment, "image", "build")
    assert built.returncode == 0, built.stderr
    assert "Step 2/" in built.stderr
    assert image in built.stdout
    checked = run(driver_environment, "image", "check", "--json")
    assert checked.returncode == 0, checked.stdout
    assert all(finding["ok"] for finding in json.loads(checked.stdout))
    # The base has programs with setuid, and is no desktop.
    refused = run(driver_environment, "image", "check", "debian:bookworm-slim")
    assert refused.returncode == 1
    assert "ended with 0" in refused.stderr


def test_options_of_containers_need_one(driver_environment: Mapping[str, str]) -> None:
    refused = run(driver_environment, "up", "--network", "none")
    assert refused.returncode == 2
    assert "--docker" in refused.stderr
