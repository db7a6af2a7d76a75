"""Refuses mounts that would give a container an engine's socket, which is as good as root on this machine.

This module owns that check. What must never appear here: an engine, a container.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import stat
import struct
from pathlib import Path
from typing import TYPE_CHECKING

from deskhand.errors import ActionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

# The sockets of engines, and of what they are built on.
_SOCKETS = (
    "/run/docker.sock",
    "/run/containerd/containerd.sock",
    "/run/containerd/containerd.sock.ttrpc",
    "/run/docker/containerd/containerd.sock",
    "/run/docker/containerd/containerd-debug.sock",
    "/run/podman/podman.sock",
    "/run/crio/crio.sock",
    "/run/buildkit/buildkitd.sock",
)
_OF_USERS = ("docker.sock", "podman/podman.sock", "containerd/containerd.sock", "buildkit/buildkitd.sock")
_OF_HOMES = (".docker/run/docker.sock", ".docker/desktop/docker.sock", ".colima/default/docker.sock", ".rd/docker.sock")
_NAMES = {"docker.sock", "podman.sock", "containerd.sock", "crio.sock", "buildkitd.sock"}
_LISTENS = 0x10000
_CREDENTIALS = struct.Struct("iii")
_INIT = 1


def engine_sockets(url: str = "") -> list[Path]:
    """The sockets of container engines that this machine may have.

    Args:
        url: The address of the engine that is used; `unix://` and a path is one of them.
    """
    users: list[Path] = []
    with contextlib.suppress(OSError):
        users += Path("/run/user").iterdir()
    if runtime := os.environ.get("XDG_RUNTIME_DIR"):
        users.append(Path(runtime))
    found = [Path(path) for path in _SOCKETS]
    found += [user / name for user in users for name in _OF_USERS]
    found += [Path.home() / name for name in _OF_HOMES]
    if url.startswith("unix://"):
        found.append(Path(url.removeprefix("unix://")))
    return found


def check_source(source: str | os.PathLike[str], sockets: Sequence[Path], *, remote: bool = False) -> None:
    """Refuse a path that is an engine's socket, or has one in it.

    The socket is recognised by its inode, not by its name: links, hard links and bind mounts are other names of the same.

    Args:
        source: The path that a container is to see.
        sockets: The engines' sockets; see `engine_sockets`.
        remote: Whether the path is on another machine, where only names can be compared.

    Raises:
        ActionError: It is one, or has one in it.
    """
    path = Path(os.path.normpath(source))
    if path.name in _NAMES:
        raise _refused(source)
    if remote:
        if any(Path(each).is_relative_to(path) for each in (*_SOCKETS, "/var/run/docker.sock")):
            raise _refused(source)
        return
    real = path.resolve()
    found = real.stat()
    known = [each for each in map(_real, sockets) if each is not None]
    if real.name in _NAMES or any(each.is_relative_to(real) for each, _ in known):
        raise _refused(source)
    # Mounts below a directory come along, so each of them is checked by itself.
    visible = [found, *_mounted_below(real)]
    for each, at in known:
        above = [at, *(_of(parent) for parent in each.parents)]
        if any(os.path.samestat(one, other) for one in visible for other in above if other is not None):
            raise _refused(source)
    if stat.S_ISDIR(found.st_mode):
        _refuse_hard_links(source, real, [at for _, at in known if at.st_nlink > 1])
    engines = {process for each, _ in known if (process := _listener(each)) is not None}
    ours = [real] if stat.S_ISSOCK(found.st_mode) else _listening_below(real)
    if any(_listener(each) in engines for each in ours):
        raise _refused(source)


def _refused(source: str | os.PathLike[str]) -> ActionError:
    return ActionError(
        f"the mount {os.fspath(source)!r} is the socket of a container engine, or has one in it: access to it makes you root "
        "on this machine; mount only the directories that the desktop needs"
    )


def _of(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def _real(path: Path) -> tuple[Path, os.stat_result] | None:
    """The real path of a socket, and its status; None if there is none."""
    try:
        real = path.resolve(strict=True)
        found = real.stat()
    except (OSError, RuntimeError):
        return None
    return (real, found) if stat.S_ISSOCK(found.st_mode) else None


def _mounted_below(directory: Path) -> Iterator[os.stat_result]:
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/mountinfo").read_bytes().splitlines():
            name = re.sub(rb"\\([0-7]{3})", lambda octal: bytes([int(octal[1], 8)]), line.split()[4])
            point = Path(os.fsdecode(name))
            if point != directory and point.is_relative_to(directory) and (found := _of(point)) is not None:
                yield found


def _refuse_hard_links(source: str | os.PathLike[str], directory: Path, sockets: Iterable[os.stat_result]) -> None:
    """Search the tree for hard links, but only if the socket has several names, because it means reading all of it."""
    wanted = {(found.st_dev, found.st_ino) for found in sockets}
    if not wanted:
        return
    for above, _, names in os.walk(directory):
        for name in names:
            with contextlib.suppress(OSError):
                found = Path(above, name).lstat()
                if (found.st_dev, found.st_ino) in wanted:
                    raise _refused(source)


def _listening_below(directory: Path) -> Iterator[Path]:
    """Sockets in a directory at which a process listens, as the kernel lists them."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/net/unix").read_text("utf-8", "surrogateescape").splitlines()[1:]:
            fields = line.split(maxsplit=7)
            if len(fields) == 8 and int(fields[3], 16) & _LISTENS and fields[7].startswith("/"):
                path = Path(fields[7])
                if path.is_relative_to(directory) or path.resolve().is_relative_to(directory):
                    yield path


def _listener(path: Path) -> int | None:
    """The process that listens at a socket; None if there is none, or if it is the first process, which listens for others."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as client:
        client.settimeout(1)
        client.connect(str(path))
        credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        process: int = _CREDENTIALS.unpack(credentials)[0]
        return process if process > _INIT else None
    return None
