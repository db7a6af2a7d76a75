"""The directory in which a user's desktops keep their sockets, locks and logs."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import os
from pathlib import Path
from typing import IO, TYPE_CHECKING

from deskhand.errors import BackendError, LaunchFailed
from deskhand.machine.guard.removal import remove_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

# The path of a socket has 108 bytes (sun_path of unix(7)), the last of which is 0.
_SOCKET_PATH = 107
GUARD_SOCKET = "guard.sock"
# Chromium makes these in a desktop's own directory for temporary files; if their paths are too long, it does not start.
BROWSER_SOCKET = "tmp/org.chromium.Chromium.xxxxxx/SingletonSocket"
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}


def runtime_directory() -> Path:
    """The directory for sockets, cookies and the list; private to this user, created if missing.

    Raises:
        BackendError: It cannot be made, or belongs to another user.
    """
    base = os.environ.get("XDG_RUNTIME_DIR")
    if base and os.access(base, os.W_OK):
        path = Path(base) / "deskhand"
    else:
        import tempfile  # noqa: PLC0415 # as below

        path = Path(tempfile.gettempdir()) / f"deskhand-{os.getuid()}"
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        info = path.lstat()
    except OSError as error:
        raise BackendError(
            f"cannot make the directory {path}: {error}; set XDG_RUNTIME_DIR to a writable one"
        ) from error
    if info.st_uid != os.getuid() or info.st_mode & 0o077:
        raise BackendError(f"{path} must belong to you with mode 0700; remove it or set XDG_RUNTIME_DIR")
    return path


@contextlib.contextmanager
def needs_room() -> Iterator[None]:
    """Turn a failure to write during a launch into `LaunchFailed`.

    Raises:
        LaunchFailed: The disk is full, or cannot be written to; names the directory.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        hint = f"{runtime_directory()}: {error.strerror}; make room there, or set XDG_RUNTIME_DIR to another directory"
        raise LaunchFailed("the directory of a desktop", 0.0, "", hint) from error


def spare_bytes(base: Path, below: str = GUARD_SOCKET) -> int:
    """How many bytes the longest socket path in a desktop's directory leaves of the limit; negative if it is too long.

    Args:
        base: The runtime directory.
        below: A socket in a desktop's directory.
    """
    return _SOCKET_PATH - len(os.fsencode(base / "d-xxxxxxxx" / below))


def private_directory(*, numbered: bool = False) -> Path:
    """A new directory for one desktop; removes those that a killed guard has left.

    Args:
        numbered: Its name is the lowest free number, not a random one: applications show the paths of their files, and the same
            steps must give the same picture. Nothing that outlives its guard may be known by such a name.

    Raises:
        BackendError: It cannot be made, or the paths of the sockets in it would be too long.
    """
    base = runtime_directory()
    spare = spare_bytes(base)
    if spare < 0:
        most = len(os.fsencode(base.parent)) + spare
        raise BackendError(
            f"{base} is too long: below it are sockets, and the path of a socket has at most {_SOCKET_PATH} bytes; "
            f"set XDG_RUNTIME_DIR to a directory whose path has at most {most}"
        )
    for path in base.glob("d-*/.guard"):
        _remove_left(path)
    if not numbered:
        import tempfile  # noqa: PLC0415 # it loads all ways of compression, and few calls need it

        return Path(tempfile.mkdtemp(prefix="d-", dir=base))
    for number in itertools.count(1):
        path = base / f"d-{number:02}"
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
            break
    return path


def remove_left(directory: Path) -> None:
    """Remove a private directory that a guard has left there when it ended; leave it alone while the guard runs."""
    if (directory / ".guard").exists():
        _remove_left(directory / ".guard")
    else:
        # Its guard did not get that far, and no other process takes a name that exists.
        remove_tree(str(directory))


def _remove_left(path: Path) -> None:
    with contextlib.suppress(OSError), path.open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # It was unlinked before it could be locked, and a new directory may have its name.
        if os.fstat(lock.fileno()).st_nlink:
            remove_tree(str(path.parent))


def hold(directory: Path) -> IO[bytes]:
    """Keep a private directory, until this is closed, from being taken for one that a killed process has left."""
    path = directory / ".guard"
    new = path.with_name(".guard-new")
    lock = new.open("w+b")
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    # Under its final name it is never unlocked.
    new.rename(path)
    return lock
