"""Trees of files of the caller's, into a container, as tar streams.

This module owns how such a stream is packed, and what is left out of it. What must never appear here: a container.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tarfile
import tempfile
from typing import IO, TYPE_CHECKING

from deskhand.errors import ActionError, BackendError
from deskhand.launchers.left_out import LeftOut, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class _Spool:
    """A file to write to, whose errors are kept apart from those of reading."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, data: bytes) -> int:
        try:
            return self._file.write(data)
        except OSError as error:
            raise _no_room(error) from error

    def tell(self) -> int:
        return self._file.tell()


def _no_room(error: OSError) -> BackendError:
    where = tempfile.tempdir or "the directory for temporary files"
    return BackendError(f"copy_in: cannot write to {where}: {error}; make room, or set TMPDIR to another directory")


@contextlib.contextmanager
def spooled(source: Path, name: str) -> Iterator[tuple[IO[bytes], LeftOut]]:
    """A tree packed into a file, and the parts left out of it; see `pack`.

    Raises:
        BackendError: There is no room for it on the disk.
    """
    try:
        spool = tempfile.TemporaryFile()  # noqa: SIM115 # it is closed below
    except OSError as error:
        raise _no_room(error) from error
    with spool:
        left_out = pack(source, name, spool)
        try:
            spool.seek(0)
        except OSError as error:
            raise _no_room(error) from error
        yield spool, left_out


def pack(source: Path, name: str, file: IO[bytes]) -> LeftOut:
    """Write a file or a tree of the caller's as tar, under a name.

    Symbolic links in it stay what they are, and are not followed; `source` itself may be one.

    Returns:
        The parts left out: sockets, named pipes, devices, and what was removed meanwhile.

    Raises:
        ActionError: It does not exist, or is itself not a file, directory or link.
        BackendError: It cannot be read, or a file becomes shorter meanwhile.
    """
    left_out = LeftOut()
    try:
        with tarfile.open(fileobj=_Spool(file), mode="w") as archive:  # type: ignore[call-overload] # it needs no more of a file
            top = source.resolve(strict=True)
            if kind := kind_of(top.stat().st_mode):
                raise ActionError(f"copy_in: {str(source)!r} is {kind}, and no file or directory")
            _pack(archive, top, name, left_out)
    except FileNotFoundError as error:
        raise ActionError(f"copy_in: there is no {str(error.filename or source)!r}") from error
    except (OSError, RuntimeError) as error:
        raise BackendError(f"copy_in: cannot read {str(source)!r}: {error}") from error
    return left_out


def _pack(archive: tarfile.TarFile, source: Path, name: str, left_out: LeftOut) -> None:
    found = source.lstat()
    entry = tarfile.TarInfo(name)
    entry.mode, entry.mtime = stat.S_IMODE(found.st_mode), int(found.st_mtime)
    if stat.S_ISDIR(found.st_mode):
        entry.type = tarfile.DIRTYPE
        archive.addfile(entry)
        with os.scandir(source) as listed:
            for below in sorted(each.name for each in listed):
                try:
                    _pack(archive, source / below, f"{name}/{below}", left_out)
                except FileNotFoundError:
                    left_out.note(f"{name}/{below}", "it was removed meanwhile")
    elif stat.S_ISLNK(found.st_mode):
        entry.type, entry.linkname = tarfile.SYMTYPE, os.readlink(source)  # noqa: PTH115 # the text that is in it
        archive.addfile(entry)
    elif kind := kind_of(found.st_mode):
        left_out.note(name, kind)
    else:
        # Opened first, and then checked: it may be replaced in between.
        with open(os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as data:  # noqa: PTH123 # a descriptor
            now = os.fstat(data.fileno())
            if kind := kind_of(now.st_mode):
                left_out.note(name, kind)
                return
            entry.size = now.st_size
            archive.addfile(entry, data)
