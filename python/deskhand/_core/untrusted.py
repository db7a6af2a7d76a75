"""Opens files and sockets in directories that others can write to, above all those of a container.

A program in a container may put a symbolic link, a FIFO, a directory or a socket of its own where the driver expects something
else, and may swap it at any moment. A check by name before opening would prove nothing, so each file is opened first, without
following a link or waiting, and the opened file is checked.

This module owns these checks. What must never appear here: a write, or a connection that is handed on.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
from pathlib import Path
from typing import TYPE_CHECKING

from deskhand.errors import ConnectFailed

if TYPE_CHECKING:
    from typing import Self

_CREDENTIALS = struct.Struct("3i")
_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFREG: "a regular file",
}
_UNSEEN = "the process that serves this display cannot be seen from here: only the owner of its socket was checked"


def read_regular(path: str | os.PathLike[str], limit: int) -> bytes:
    """The beginning of a file; empty if it is absent, or anything but a regular file.

    Args:
        path: Its path, of which only the last part is untrusted.
        limit: The most bytes to read.
    """
    try:
        # Opened like this, a FIFO without a writer does not block.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(descriptor, limit) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(descriptor)


class PinnedSocket:
    """A socket in the file system that was checked to be the expected one.

    A descriptor holds it: `address` leads to this socket, even if something else is put in its place.
    """

    def __init__(self, path: str | os.PathLike[str], *, owner: int | None = None, container: str | None = None) -> None:
        """Open and check it.

        Args:
            path: Its path, of which only the last part is untrusted.
            owner: The number of the user who must own it; None for any user.
            container: The full id of the container in which the process that listens must be; None for any process.

        Raises:
            ConnectFailed: It is absent, not a socket, owned by another user, or no process listens.
        """
        self.path: Path = Path(path)
        self.doubt: str = ""
        """Why the process that listens could not be checked; empty if it was, or need not be."""
        try:
            self.descriptor: int = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise self._refused(error.strerror or str(error)) from error
        try:
            self._prove(owner, container)
        except OSError as error:
            self.close()
            raise self._refused(error.strerror or str(error)) from error
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it; calling this again is harmless."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    @property
    def address(self) -> str:
        """A path that leads to it, in this process and until `close`."""
        return f"/proc/self/fd/{self.descriptor}"

    def link(self, path: Path) -> None:
        """Give it another name, which only users who can write to that directory can redirect.

        Args:
            path: The name, in a directory of the same file system; what has it is replaced.

        Raises:
            OSError: It is in another file system, or belongs to another user (`/proc/sys/fs/protected_hardlinks`).
        """
        found = os.fstat(self.descriptor)
        if path.is_socket() and os.path.samestat(found, path.lstat()):
            return
        new = path.with_name(f".{path.name}")
        new.unlink(missing_ok=True)
        # Python obeys `follow_symlinks` only with a descriptor of a directory, which an absolute path does not use.
        os.link(self.address, new, src_dir_fd=self.descriptor, follow_symlinks=True)
        new.replace(path)

    def _refused(self, reason: str, hint: str = "") -> ConnectFailed:
        return ConnectFailed(str(self.path), reason, hint)

    def _prove(self, owner: int | None, container: str | None) -> None:
        found = os.fstat(self.descriptor)
        if not stat.S_ISSOCK(found.st_mode):
            kind = _KINDS.get(stat.S_IFMT(found.st_mode), "something else")
            raise self._refused(f"it is {kind}, not a socket", "give the path of the socket itself")
        if owner not in {None, found.st_uid}:
            hint = "engines that give a container other users (rootless Docker, userns-remap) are not supported"
            raise self._refused(f"the socket belongs to user {found.st_uid}, not {owner}", hint)
        if container is not None:
            self._prove_peer(found.st_uid, container)

    def _prove_peer(self, owner: int, container: str) -> None:
        """Check the process that listens. It does not change: a name is bound to one socket for as long as it exists."""
        with socket.socket(socket.AF_UNIX) as client:
            # Connecting to a socket whose queue is full would wait without end.
            client.settimeout(0)
            client.connect(self.address)
            credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        pid, user, _ = _CREDENTIALS.unpack(credentials)
        if pid == 0:
            # The process is in a PID namespace that is neither ours nor below it.
            if user != owner:
                raise self._refused(f"the listening process belongs to user {user}, the socket to user {owner}")
            self.doubt = _UNSEEN
            return
        try:
            groups = Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise self._refused(f"process {pid}, which listens there, cannot be examined: {error.strerror}") from error
        if container not in groups:
            raise self._refused(f"process {pid}, which listens there, is not in the container {container[:12]}")
