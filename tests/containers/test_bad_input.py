"""What a launch refuses, in words that lead on, and that nothing half-started stays."""

from __future__ import annotations

import io
import os
import secrets
import struct
import tarfile
from typing import TYPE_CHECKING

import pytest

import deskhand
from containers.helpers import containers, left, own_name
from deskhand.launchers.docker import host as launching
from deskhand.launchers.docker.confinement import _origin
from deskhand.launchers.docker.images import recorded_packages
from deskhand.launchers.docker.spec import Limits, Mount
from faults.helpers import in_namespace

if TYPE_CHECKING:
    from pathlib import Path

    from deskhand.launchers.docker.engine import Engine


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
        ({"mounts": [Mount("/run", "/engine")]}, "root on this machine"),
        ({"mounts": [Mount("/", "/engine")]}, "root on this machine"),
    ],
)
def test_what_is_wrong_is_refused_before_anything_is_made(
    engine: Engine, runtime: Path, options: dict[str, object], message: str
) -> None:
    with pytest.raises(deskhand.ActionError, match=message):
        deskhand.launch("docker", **options)  # type: ignore[arg-type] # options of several types
    assert left(engine, runtime) == []


def test_limits_are_positive() -> None:
    with pytest.raises(deskhand.ActionError, match="at least 1"):
        Limits(memory=0)


def test_a_missing_image_names_the_command_that_builds_it(engine: Engine, runtime: Path) -> None:
    with pytest.raises(deskhand.LaunchFailed) as told:
        deskhand.launch("docker", image="somebody/elses")
    assert str(told.value) == (
        "the image somebody/elses is not available: it does not exist: build it, or get it with `docker pull somebody/elses`"
    )
    with pytest.raises(deskhand.LaunchFailed, match=r"does not exist: .*builds deskhand/minimal and deskhand/desktop"):
        deskhand.launch("docker", image="deskhand/nothing")
    with pytest.raises(deskhand.LaunchFailed, match="does not exist: build it, or get it"):
        recorded_packages("somebody/elses")
    assert _origin("deskhand/desktop:latest") == "build it with `deskhand image build desktop`"
    with pytest.raises(deskhand.ActionError, match="'Some Body' is not a name of an image"):
        deskhand.launch("docker", image="Some Body")
    assert left(engine, runtime) == []


def test_a_name_that_is_taken_stays_with_its_owner(image: str, engine: Engine) -> None:
    with deskhand.launch("docker", image=image, name=own_name("taken")) as owner:
        with pytest.raises(deskhand.ActionError, match=own_name("taken")):
            deskhand.launch("docker", image=image, name=own_name("taken"))
        assert containers(engine).count(own_name("taken")) == 1
        assert owner.perform().settled
    assert own_name("taken") not in containers(engine)


def test_an_image_that_is_no_desktop_says_what_it_did(engine: Engine, runtime: Path) -> None:
    with pytest.raises(deskhand.LaunchFailed, match="ended with 0"):
        deskhand.launch("docker", image="debian:bookworm-slim")
    assert left(engine, runtime) == []


@pytest.mark.parametrize("remote", [False, True])
def test_one_that_ends_while_it_starts_says_what_it_did(
    image: str, engine: Engine, runtime: Path, tmp_path: Path, *, remote: bool
) -> None:
    """Its X server is killed when the driver is there already, and waits for a window manager."""
    programs = tmp_path / "programs"
    programs.mkdir(mode=0o755)
    (programs / "openbox").write_text("#!/bin/sh\nsleep 0.5\nexec pkill -KILL '^Xv'\n")
    (programs / "openbox").chmod(0o755)
    mounts, path = [Mount(programs, "/programs")], "/programs:/usr/local/bin:/usr/bin:/bin"
    with pytest.raises(deskhand.LaunchFailed, match="the X server ended with status 137"):
        deskhand.launch("docker", image=image, mounts=mounts, env={"PATH": path}, remote=remote)
    assert left(engine, runtime) == []


def test_an_image_for_another_processor_says_so(engine: Engine, runtime: Path) -> None:
    # Nothing but the head of a program for a machine that this one is not.
    other = 183 if os.uname().machine == "x86_64" else 62
    head = (
        b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 2, other, 1, 1 << 22, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    )
    head += struct.pack("<IIQQQQQQ", 1, 5, 0, 1 << 22, 1 << 22, 120, 120, 4096)
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as files:
        program = tarfile.TarInfo("desktop")
        program.size, program.mode = len(head), 0o755
        files.addfile(program, io.BytesIO(head))
    name = f"deskhand-test/{secrets.token_hex(6)}"
    engine.api.import_image_from_data(archive.getvalue(), repository=name, changes=['ENTRYPOINT ["/desktop"]'])
    try:
        with pytest.raises(deskhand.LaunchFailed, match=rf"another kind of processor .*{os.uname().machine}"):
            deskhand.launch("docker", image=name)
    finally:
        engine.api.remove_image(name)
    assert left(engine, runtime) == []


def test_a_container_without_room_says_what_to_raise(image: str, engine: Engine, runtime: Path) -> None:
    """F22: its X server cannot even write its keymap."""
    with pytest.raises(deskhand.LaunchFailed, match=r"Limits\(temporary="):
        deskhand.launch("docker", image=image, limits=Limits(temporary=4096))
    assert left(engine, runtime) == []


def test_a_full_disk_where_a_desktop_keeps_its_files(engine: Engine, runtime: Path) -> None:
    """F22, on this side."""
    fill = f"mount -t tmpfs -o mode=0700,size=64k tmpfs {runtime.parent}\nmkdir -m 0700 {runtime}\n"
    fill += f"dd if=/dev/zero of={runtime.parent}/filler bs=4k 2>/dev/null || true"
    code = """
try:
    deskhand.launch("docker")
except LaunchFailed as error:
    say(message=str(error), left=os.listdir(os.environ["XDG_RUNTIME_DIR"] + "/deskhand"))
"""
    said = in_namespace(fill, code, dict(os.environ))
    assert "No space left" in str(said["message"])
    assert said["left"] == []
    assert left(engine, runtime) == []


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
