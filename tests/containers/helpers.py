"""What the tests of containers share."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deskhand.launchers.docker.images import build_image
from deskhand.launchers.docker.leftovers import LABEL_DIRECTORY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deskhand.launchers.docker.engine import Engine

# The states in /proc/net of a TCP socket that listens, and of a UDP socket that hears anybody, not one partner only.
LISTEN, OPEN = "0A", "07"


class Ours:
    """Where everything of this test session keeps its files: others may have containers of deskhand's too."""

    folders: tuple[Path, ...] = (Path("/"),)


def minimal_image() -> str:
    """The name of the `minimal` image, which whoever comes first builds; the other processes of a run wait for him.

    Who works on the image beside others who test with it builds it under another name, in `DESKHAND_TEST_IMAGE`.
    """
    if name := os.environ.get("DESKHAND_TEST_IMAGE"):
        return name
    with Path(tempfile.gettempdir(), f"deskhand-test-image-{os.getuid()}.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return build_image("minimal")


# A program of each toolkit: GTK and Qt. Made as docs/containers.md says.
_TOOLKITS = """
FROM {image}
USER 0:0
RUN apt-get update -q \\
 && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends featherpad mousepad \\
 && /usr/local/lib/deskhand/finish
USER 1000:1000
"""


def toolkits_image(engine: Engine, image: str) -> str:
    """The id of an image with programs of GTK and Qt, which is made of that one; later runs find it built."""
    recipe = io.BytesIO(_TOOLKITS.format(image=image).encode())
    with Path(tempfile.gettempdir(), f"deskhand-test-image-{os.getuid()}.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        said = list(engine.api.build(fileobj=recipe, tag="deskhand-test/toolkits", rm=True, forcerm=True, decode=True))
        assert not any("error" in line for line in said), said[-5:]
        found: str = engine.api.inspect_image("deskhand-test/toolkits")["Id"]
        return found


def own_name(word: str) -> str:
    """A container's name that no other run has: the engine has each name once, and a run that was killed leaves its own."""
    return f"{word}-{Ours.folders[0].name.removeprefix('deskhand-')}"


def containers(engine: Engine, directory: str | None = None) -> list[str]:
    """Names of the containers of this test session that are there, running or not; of one directory if it is given."""
    found = engine.api.containers(all=True, filters={"label": _label(directory)})
    return [entry["Names"][0].lstrip("/") for entry in found if _is_ours(entry)]


def networks(engine: Engine, directory: str | None = None) -> list[str]:
    """Names of the networks of this test session that are there; of one directory if it is given."""
    return [entry["Name"] for entry in engine.api.networks(filters={"label": _label(directory)}) if _is_ours(entry)]


def there(engine: Engine, directory: str | None = None) -> set[str]:
    """Names of both."""
    return {*containers(engine, directory), *networks(engine, directory)}


def _label(directory: str | None) -> str:
    return LABEL_DIRECTORY if directory is None else f"{LABEL_DIRECTORY}={directory}"


def _is_ours(entry: dict[str, Any]) -> bool:
    return any(Path(entry["Labels"][LABEL_DIRECTORY]).is_relative_to(folder) for folder in Ours.folders)


def left(engine: Engine, runtime: Path) -> list[str]:
    """What is there of the desktops of one runtime directory: containers, and directories, which their guards remove last."""
    found = engine.api.containers(all=True, filters={"label": LABEL_DIRECTORY})
    mine = [entry["Names"][0] for entry in found if entry["Labels"][LABEL_DIRECTORY].startswith(str(runtime))]
    return [*mine, *(path.name for path in runtime.glob("d-*"))]


def guards(pid: int) -> list[int]:
    """The guard processes that a driver has started."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children if b"guard.py" in Path(f"/proc/{child}/cmdline").read_bytes()]


def owned_listeners() -> set[tuple[str, str]]:
    """TCP and UDP ports that this machine listens at, of Docker's, of this process, and of what either started.

    Others run here too, and come and go. So do the sockets that Docker asks a name server through for others' containers.
    """
    found = set()
    for kind in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/net/{kind}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == (OPEN if kind.startswith("udp") else LISTEN):
                found.add((kind, fields[1], fields[9]))
    owners = {inode: pid for pid in _ours() for inode in _sockets(pid)}
    return {(kind, place) for kind, place, inode in found if inode in owners}


def _ours() -> set[int]:
    """This process, Docker's, and all below them."""
    below: dict[int, list[int]] = {}
    todo = [os.getpid()]
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            with contextlib.suppress(OSError):
                name, _, rest = (path / "stat").read_text().partition("(")[2].rpartition(")")
                below.setdefault(int(rest.split()[1]), []).append(int(path.name))
                if name.startswith(("docker", "containerd", "rootlesskit")):
                    todo.append(int(path.name))
    found: set[int] = set()
    while todo:
        pid = todo.pop()
        if pid not in found:
            found.add(pid)
            todo += below.get(pid, [])
    return found


def _sockets(pid: int) -> Iterator[str]:
    """The inodes of a process's sockets."""
    with contextlib.suppress(OSError):
        for path in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                target = os.readlink(path)  # noqa: PTH115 # it leads to no path
                if target.startswith("socket:["):
                    yield target[8:-1]
