"""Desktops by name: which ones run on this machine, for this user.

This module owns the directory in which they are listed: one JSON file each, written whole or not at all. What must never
appear here: a connection to any of them.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import json
import os
import re
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

from deskhand.errors import ActionError, BackendError, LaunchFailed, shown
from deskhand.launch.guard import remove_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "BROWSER_SOCKET",
    "GUARD_SOCKET",
    "Entry",
    "add",
    "entries",
    "find",
    "free_name",
    "hold",
    "needs_room",
    "private_directory",
    "remove",
    "remove_left",
    "runtime_directory",
    "spare_bytes",
    "update",
]

# The path of a socket has 108 bytes (sun_path of unix(7)), the last of which is 0.
_SOCKET_PATH = 107
GUARD_SOCKET = "guard.sock"
# What Chromium makes in a desktop's own directory for temporary files; without it, it does not start.
BROWSER_SOCKET = "tmp/org.chromium.Chromium.xxxxxx/SingletonSocket"
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True, slots=True)
class Entry:
    """One running desktop.

    Attributes:
        name: Its name.
        display: As `DISPLAY` would name it; empty where only VNC leads to it.
        xauthority: Path of its cookie file; empty likewise.
        directory: Its private directory, with the logs.
        pid: The process whose end is the desktop's end.
        socket: Where its guard listens; empty when it belongs to a running driver.
        created: Seconds since 1970.
        container: The id of its container; empty for one of this machine's own.
        engine: Variables of the environment that lead to its container's engine.
    """

    name: str
    display: str
    xauthority: str
    directory: str
    pid: int
    socket: str
    created: float
    container: str = ""
    engine: dict[str, str] = field(default_factory=dict)

    @property
    def alive(self) -> bool:
        """Whether its process is there."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        # A zombie has ended; only its parent has not looked yet.
        with contextlib.suppress(OSError):
            return Path(f"/proc/{self.pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
        return False


def runtime_directory() -> Path:
    """The directory for sockets, cookies and the list; private to this user, made when missing.

    Raises:
        BackendError: It cannot be made, or belongs to somebody else.
    """
    base = os.environ.get("XDG_RUNTIME_DIR")
    if base and os.access(base, os.W_OK):
        path = Path(base) / "deskhand"
    else:
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
    """Around a launch: where nothing can be written, that is why it fails.

    Raises:
        LaunchFailed: The disk is full, or cannot be written; names the directory.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        hint = f"{runtime_directory()}: {error.strerror}; make room there, or set XDG_RUNTIME_DIR to another directory"
        raise LaunchFailed("the directory of a desktop", 0.0, "", hint) from error


def spare_bytes(base: Path, below: str = GUARD_SOCKET) -> int:
    """By how many bytes the paths of sockets in the desktops' directories are within what a socket's path may have.

    Args:
        base: The runtime directory.
        below: A socket in a desktop's directory.
    """
    return _SOCKET_PATH - len(os.fsencode(base / "d-xxxxxxxx" / below))


def private_directory(*, numbered: bool = False) -> Path:
    """A new directory for one desktop; those that a killed guard has left are removed.

    Args:
        numbered: Its name is the lowest number that is free, not a random one: applications show the paths of their files, and
            the same steps shall come to the same picture. Nothing that outlives its guard may be known by such a name.

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
        return Path(tempfile.mkdtemp(prefix="d-", dir=base))
    for number in itertools.count(1):
        path = base / f"d-{number:02}"
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
            break
    return path


def remove_left(directory: Path) -> None:
    """Remove a private directory that its guard, which has ended, has left there; one whose guard lives is left alone."""
    if (directory / ".guard").exists():
        _remove_left(directory / ".guard")
    else:
        # Its guard did not come so far, and nobody else takes a name that is there.
        remove_tree(str(directory))


def _remove_left(path: Path) -> None:
    with contextlib.suppress(OSError), path.open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Unlinked before it could be locked, it was another directory's, and a new one may have that name.
        if os.fstat(lock.fileno()).st_nlink:
            remove_tree(str(path.parent))


def hold(directory: Path) -> IO[bytes]:
    """Keep a private directory from being taken for one that somebody who was killed has left, until this is closed."""
    path = directory / ".guard"
    new = path.with_name(".guard-new")
    lock = new.open("w+b")
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    # Under its name it is never seen unlocked.
    new.rename(path)
    return lock


def _file(name: str) -> Path:
    return runtime_directory() / f"{name}.json"


def check_name(name: str) -> str:
    """The name, if it may be one.

    Raises:
        ActionError: It has other characters than letters, digits, `_`, `.` and `-`, or more than 64.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ActionError(f"{shown(name)} cannot name a desktop: use up to 64 letters, digits, '_', '.' and '-'")
    return name


@contextlib.contextmanager
def _locked() -> Iterator[None]:
    with (runtime_directory() / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def entries() -> list[Entry]:
    """All desktops that run, oldest first; what is left of dead ones is removed."""
    with _locked():
        return _living()


def _living() -> list[Entry]:
    found = []
    for path in runtime_directory().glob("*.json"):
        entry = _read(path)
        if entry is None or not entry.alive:
            path.unlink(missing_ok=True)
        else:
            found.append(entry)
    return sorted(found, key=lambda entry: entry.created)


def _read(path: Path) -> Entry | None:
    try:
        return Entry(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None


def find(name: str) -> Entry | None:
    """The running desktop of that name."""
    return next((entry for entry in entries() if entry.name == name), None)


def free_name() -> str:
    """A name that nobody has: `desktop`, `desktop-2`, ..."""
    taken = {entry.name for entry in entries()}
    number = 1
    while (name := "desktop" if number == 1 else f"desktop-{number}") in taken:
        number += 1
    return name


def add(entry: Entry) -> None:
    """List a desktop.

    Raises:
        ActionError: The name is taken.
    """
    path = _file(check_name(entry.name))
    with _locked():
        if any(other.name == entry.name for other in _living()):
            raise ActionError(
                f"there is a desktop named {entry.name!r} already; choose another name, or `deskhand down` it"
            )
        _write(path, entry)


def update(entry: Entry) -> None:
    """List a desktop anew under the name it has; nobody can take the name in between."""
    with _locked():
        _write(_file(check_name(entry.name)), entry)


def _write(path: Path, entry: Entry) -> None:
    temporary = path.with_suffix(".tmp")
    try:
        temporary.write_text(json.dumps(asdict(entry)))
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def remove(entry: Entry) -> None:
    """Take a desktop off the list; one that has its name by now stays."""
    path = _file(entry.name)
    with _locked():
        listed = _read(path)
        if listed is not None and listed.directory == entry.directory:
            path.unlink()
