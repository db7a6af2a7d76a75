"""What a launch refuses, in words that lead on, and that nothing half-started stays."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

import deskhand
from containers.helpers import containers
from deskhand.launch import docker as launching
from deskhand.launch.docker import Limits, Mount

if TYPE_CHECKING:
    from pathlib import Path

    from deskhand.launch.engine import Engine


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": (0, 10)}, "1x1 to"),
        ({"network": "host"}, "'none' or 'bridge'"),
        ({"user": (0, 0)}, "root"),
        ({"name": "no spaces"}, "cannot name"),
        ({"window_manager": "twm"}, "its own window manager"),
        ({"mounts": [Mount("/no/such/place", "/data")]}, "does not exist"),
        ({"mounts": [Mount("/etc/hostname", "relative")]}, "absolute"),
        ({"mounts": [Mount("/etc/hostname", "/tmp")]}, "not the desktop's own"),
        ({"mounts": [Mount("/var/run/docker.sock", "/engine")]}, "root on this machine"),
    ],
)
def test_what_is_wrong_is_refused_before_anything_is_made(
    engine: Engine, options: dict[str, object], message: str
) -> None:
    before = containers(engine)
    with pytest.raises(deskhand.ActionError, match=message):
        deskhand.launch("docker", **options)  # type: ignore[arg-type] # options of several types
    assert containers(engine) == before


def test_limits_are_positive() -> None:
    with pytest.raises(deskhand.ActionError, match="greater than 0"):
        Limits(memory=0)


def test_a_missing_image_names_the_command_that_builds_it(engine: Engine) -> None:
    before = containers(engine)
    with pytest.raises(deskhand.LaunchFailed, match="deskhand image build nothing"):
        deskhand.launch("docker", image="deskhand/nothing")
    with pytest.raises(deskhand.LaunchFailed, match="docker pull somebody/elses"):
        deskhand.launch("docker", image="somebody/elses")
    assert containers(engine) == before


def test_a_name_that_is_taken_stays_with_its_owner(image: str, engine: Engine) -> None:
    with deskhand.launch("docker", image=image, name="taken-by-a-test") as owner:
        with pytest.raises(deskhand.ActionError, match="taken-by-a-test"):
            deskhand.launch("docker", image=image, name="taken-by-a-test")
        assert containers(engine).count("taken-by-a-test") == 1
        assert owner.perform().settled
    assert "taken-by-a-test" not in containers(engine)


def test_an_image_that_is_no_desktop_says_what_it_did(engine: Engine) -> None:
    before = containers(engine)
    with pytest.raises(deskhand.LaunchFailed, match="ended with 0"):
        deskhand.launch("docker", image="debian:bookworm-slim")
    assert containers(engine) == before


def test_no_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(deskhand.LaunchFailed, match="DOCKER_HOST"):
        deskhand.launch("docker")


def test_no_right_to_use_the_engine(image: str) -> None:
    """As another user, who may not open its socket."""
    del image
    if os.getuid() != 0:
        pytest.fail("run as root: only it can be somebody else")
    pid = os.fork()
    if pid == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        os.environ["HOME"] = "/nonexistent"
        try:
            launching.connect_engine()
        except deskhand.LaunchFailed as error:
            os._exit(0 if "docker" in str(error) and "usermod" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_an_engine_that_cannot_hold_a_desktop_is_refused(engine: Engine) -> None:
    engine.info["PidsLimit"] = False
    with pytest.raises(deskhand.LaunchFailed, match="processes"):
        launching._check_engine(engine)
