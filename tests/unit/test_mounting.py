"""An engine's socket is told by what it is: links, hard links, bind mounts and directories above it are other names of it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deskhand.errors import ActionError
from deskhand.launchers.docker.mounting import check_source, engine_sockets
from faults.helpers import need

if TYPE_CHECKING:
    from collections.abc import Iterator

# Somebody else listens, as an engine does; this process is none.
LISTEN = """
import socket, sys
held = []
for path in sys.argv[1:]:
    held.append(socket.socket(socket.AF_UNIX))
    held[-1].bind(path)
    held[-1].listen()
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def engine(short: Path) -> Iterator[Path]:
    """A directory with the sockets of an engine, which listens at one more that nobody knows."""
    (short / "run").mkdir()
    (short / "data").mkdir()
    paths = [short / "run" / "engine", short / "data" / "second"]
    with subprocess.Popen(
        [sys.executable, "-c", LISTEN, *map(str, paths)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield short
        process.kill()


def refused(source: Path, engine: Path) -> bool:
    try:
        check_source(source, engine_sockets(f"unix://{engine}/run/engine"))
    except ActionError:
        return True
    return False


def test_other_names_of_a_socket(engine: Path) -> None:
    link = engine / "harmless"
    link.symlink_to("run/engine")
    other = engine / "other"
    os.link(engine / "run" / "engine", other)
    nested = engine / "nested"
    (nested / "deep").mkdir(parents=True)
    assert not refused(nested, engine)
    os.link(engine / "run" / "engine", nested / "deep" / "x")
    for source in (link, other, nested, engine / "run", engine, engine / "run" / ".." / "run" / "engine", Path("/")):
        assert refused(source, engine), source


def test_another_socket_of_the_same_engine(engine: Path) -> None:
    assert refused(engine / "data" / "second", engine)
    assert refused(engine / "data", engine)


def test_what_is_none_may_be_mounted(engine: Path, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "link").symlink_to(engine / "run" / "engine")
    with socket.socket(socket.AF_UNIX) as mine:
        mine.bind(str(engine / "mine"))
        mine.listen()
        assert not refused(engine / "mine", engine)
    for source in (tmp_path, tmp_path / "files", Path("/usr/share"), Path("/etc/hostname"), Path.home()):
        assert not refused(source, engine), source
    # An engine that is not there has no socket.
    check_source(tmp_path, [tmp_path / "absent.sock"])


@pytest.mark.parametrize("name", ["docker.sock", "podman.sock", "containerd.sock"])
def test_well_known_names_are_refused_anywhere(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(ActionError, match="root on this machine"):
        check_source(tmp_path / name, [])


BOUND = """
import sys
from pathlib import Path
from deskhand.errors import ActionError
from deskhand.launchers.docker.mounting import check_source, engine_sockets
for source in sys.argv[2:]:
    try:
        check_source(source, engine_sockets(f"unix://{sys.argv[1]}"))
        print("accepted")
    except ActionError as error:
        print("refused")
"""


def test_bind_mounts_of_a_socket(engine: Path) -> None:
    """In a namespace of their own; some machines let nobody but root have one."""
    unshare = [need("unshare", "util-linux"), "--mount", *([] if os.getuid() == 0 else ["--map-root-user"])]
    for name in ("file", "directory/inner", "around"):
        (engine / "bound" / name).parent.mkdir(parents=True, exist_ok=True)
    (engine / "bound" / "file").touch()
    (engine / "bound" / "directory" / "inner").mkdir()
    (engine / "bound" / "around").mkdir()
    script = (
        'mount --bind "$1/run/engine" "$1/bound/file" && mount --bind "$1/run" "$1/bound/directory/inner" && '
        'mount --bind /usr "$1/bound/around" && '
        'exec "$2" -c "$3" "$1/run/engine" "$1/bound/file" "$1/bound/directory/inner" "$1/bound/directory" "$1/bound/around"'
    )
    ran = subprocess.run(
        [*unshare, "sh", "-c", script, "sh", str(engine), sys.executable, BOUND],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout.split() == ["refused", "refused", "refused", "accepted"], ran.stderr
