"""Stores the files that a page sends in the `Downloads` directory of a desktop.

This module owns the choice of a free name, and the writing on this machine. In a container, the desktop's machine writes. Both
are operations of the hold, and a policy judges them like those of any caller.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from deskhand.desktop.access import commands_of, core_of
from deskhand.desktop.operations import Operation
from deskhand.errors import BackendError, UnsupportedAction, shown
from deskhand.machine.interface import Listing
from deskhand.watch.file_names import file_name, numbered

if TYPE_CHECKING:
    from deskhand.desktop.desktop import Desktop

_FOLDER = "Downloads"
_TAKEN = "File exists"
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def folder_of(desktop: Desktop) -> str:
    """The directory for files of a page.

    Raises:
        UnsupportedAction: The files of the desktop cannot be reached from here.
    """
    home = commands_of(desktop).home
    if home is None:
        name = core_of(desktop).backend.name
        raise UnsupportedAction(name, "taking files", "the files of its machine cannot be reached from here")
    return f"{home.rstrip('/')}/{_FOLDER}"


def store(desktop: Desktop, given: str, data: bytes) -> str:
    """Write a file under a name that is free, and return its path.

    Args:
        desktop: The desktop of a hold.
        given: The page's name of it.
        data: Its content.

    Raises:
        PolicyDenied: The policy does not allow it.
        Closed: The hold has ended.
        BackendError: It cannot be written.
    """
    folder = folder_of(desktop)
    taken = _names(desktop, folder)
    for name in numbered(file_name(given)):
        path = f"{folder}/{name}"
        if name in taken or (not desktop.has_machine and os.path.lexists(path)):
            continue
        if _is_written(desktop, path, data):
            return path
    raise BackendError(f"no name like {shown(given)} is free in {folder}: remove some of them")


def _names(desktop: Desktop, folder: str) -> frozenset[str]:
    """The names in a container's directory, which are only used to choose a free one."""
    inside = core_of(desktop).inside
    if inside is None:
        return frozenset()
    # It may not be there yet.
    with contextlib.suppress(BackendError):
        found = inside.view_file(folder, limit=0)
        if isinstance(found, Listing):
            return frozenset(name.rstrip("/") for name in found.names)
    return frozenset()


def _is_written(desktop: Desktop, path: str, data: bytes) -> bool:
    """Write a new file; False if there is one by now."""
    try:
        if desktop.has_machine:
            desktop.machine.write_file(path, data, new=True)
        else:
            operation = Operation("copy_in", f"the page -> {path}", size=len(data), data=data)
            desktop.operate(operation, lambda: _write(desktop, path, data))
    except FileExistsError:
        return False
    except BackendError as error:
        if _TAKEN in str(error):
            return False
        raise
    return True


def _write(desktop: Desktop, path: str, data: bytes) -> None:
    # A policy may have taken long to ask, and the hold may have ended meanwhile.
    core_of(desktop).control.refuse_if_held()
    try:
        Path(path).parent.mkdir(exist_ok=True)
        descriptor = os.open(path, _FLAGS, 0o666)
        try:
            with open(descriptor, "wb") as file:  # noqa: PTH123 # a descriptor
                file.write(data)
        except BaseException:
            Path(path).unlink(missing_ok=True)
            raise
    except FileExistsError:
        if not os.path.lexists(path):
            raise BackendError(
                f"cannot write {shown(path)}: {shown(str(Path(path).parent))} is not a directory"
            ) from None
        raise
    except OSError as error:
        raise BackendError(f"cannot write {shown(path)}: {error.strerror or error}") from error
