"""Desktops by name: which ones run on this machine, for this user.

This module owns the directory in which they are listed: one JSON file each, written whole or not at all. What must never
appear here: a connection to any of them.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from deskhand.errors import ActionError, shown
from deskhand.machine.runtime_directory import runtime_directory

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True, slots=True)
class Entry:
    """One running desktop.

    Attributes:
        name: Its name.
        display: Its name for `DISPLAY`; empty if it is reached over VNC only.
        xauthority: Path of its cookie file; empty likewise.
        directory: Its private directory, with the logs.
        pid: The process with which the desktop ends.
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
        """Whether its process exists."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        # A zombie has ended; its parent has not waited for it yet.
        with contextlib.suppress(OSError):
            return Path(f"/proc/{self.pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
        return False


def _file(name: str) -> Path:
    return runtime_directory() / f"{name}.json"


def check_name(name: str) -> str:
    """Check a name.

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
    """All desktops that run, oldest first; the entries of ended ones are removed."""
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
    """A name that is free: `desktop`, `desktop-2`, ..."""
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
    """Replace a desktop's entry under its name, which stays taken meanwhile."""
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
    """Take a desktop off the list; one that has taken its name since stays."""
    path = _file(entry.name)
    with _locked():
        listed = _read(path)
        if listed is not None and listed.directory == entry.directory:
            path.unlink()
