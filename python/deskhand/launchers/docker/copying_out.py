"""Trees of files out of a container, as tar streams, which are hostile.

A copy leaves out and names what is no file, directory or link: devices, named pipes, sockets, links that may
lead out of it, names with control characters. A stream that tar would not write is refused, and so is a tree that is too large.

This module owns what is read from such a stream, where it may be written, and what is left out of the copy. What must never
appear here: a container.

`tarfile` reads the headers. It writes no file here: its filter judges a link by where the tree is unpacked, not by its
final place; it accepts one name twice, follows links that it made itself, and bounds neither sizes nor the number of entries.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tarfile
import tempfile
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from deskhand.errors import ActionError, BackendError, DeskhandTimeout, shown
from deskhand.launchers.left_out import LeftOut

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_ENTRIES = 100_000
"""How many files, directories and links one copy may have."""

_DEEPEST = 100
_MOST_NAMES = 32 << 20
# The largest long name, or header extension of POSIX tar.
_LONGEST_HEADER = 1 << 16
# Bytes of a stream besides the files: a header and padding for each, long names, blocks at the end.
_PER_ENTRY, _AT_END = 4096, 1 << 20
_PIECE = 1 << 18
_COPIED = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE)
_BESIDE = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
_LEFT_OUT = {tarfile.CHRTYPE: "a device", tarfile.BLKTYPE: "a device", tarfile.FIFOTYPE: "a named pipe"}
_OTHERS = {tarfile.GNUTYPE_SPARSE: "a file with holes"}
_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC


class Readable(Protocol):
    """Where a stream is read from."""

    def read(self, size: int, /) -> bytes:
        """Up to `size` bytes; none at the end."""
        ...


class _Damaged(Exception):
    """The stream has something that tar would not write, or more than is allowed."""


class _LeftOut(Exception):
    """Why a part is not in the copy."""


class _Header(tarfile.TarInfo):
    """A header whose sizes are believed only as far as they are harmless."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        found = super().frombuf(buf, encoding, errors)
        if found.type in _BESIDE:
            if not 0 <= found.size <= _LONGEST_HEADER:
                raise _Damaged(f"a header says that a name has {found.size} bytes")
        elif found.type not in _COPIED and found.type not in _LEFT_OUT:
            raise _Damaged(f"{shown(found.name)} is {_OTHERS.get(found.type, 'of an unknown kind')}")
        return found


class _Bounded:
    """A stream that ends with an error if it goes on after its last file."""

    def __init__(self, stream: Readable, most: int) -> None:
        self._stream = stream
        self._left = most

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise _Damaged("its stream goes on beyond all files")
        return data


class Staging:
    """A directory beside the target, which only its owner enters, where a tree is written until it is whole; see `staged`."""

    def __init__(self, what: str, target: Path, parent: int, directory: Path, root: int) -> None:
        """See `staged`."""
        self.what = what
        self.left_out: LeftOut = LeftOut()
        self._target = target
        self._parent = parent
        self._directory = directory
        self._root = root
        self._name = ""
        self._limit = 0
        self._size = 0
        self._entries = 0
        self._names = 0
        self._files: set[tuple[str, ...]] = set()
        self._links: dict[tuple[str, ...], str] = {}
        self._missing: set[str] = set()

    def fill(self, stream: Readable, name: str, *, limit: int, entries: int = MOST_ENTRIES) -> None:
        """Take a tree out of a tar stream, and read the stream to its end. `left_out` gets what was not taken.

        Args:
            stream: The output of tar.
            name: The tree's name in it; nothing else may be in it.
            limit: The most bytes of its files together.
            entries: How many entries it may have.

        Raises:
            BackendError: It is larger, or damaged: it has names outside of the tree, or one name twice; or
                it is itself of a kind that is left out. What was written so far is removed.
        """
        self._name, self._limit = name, limit
        bounded = _Bounded(stream, limit + entries * _PER_ENTRY + _AT_END)
        try:
            with tarfile.open(fileobj=bounded, mode="r|", bufsize=_PIECE, tarinfo=_Header) as archive:  # type: ignore[call-overload] # it needs no more than `read`
                while (member := archive.next()) is not None:
                    # Otherwise `tarfile` would keep all of them.
                    archive.members = []
                    self._count(entries)
                    try:
                        self._take(archive, member)
                    except _LeftOut as error:
                        self._leave_out(member, str(error))
            while bounded.read(_PIECE):
                pass
            self._make_links()
        except _Damaged as error:
            raise BackendError(f"cannot copy {self.what}: {error}") from None
        except (tarfile.TarError, ValueError, OverflowError, RecursionError, EOFError) as error:
            raise BackendError(f"cannot copy {self.what}: its tar stream is damaged: {error}") from error
        except FileExistsError as error:
            raise BackendError(f"cannot copy {self.what}: it has {shown(error.filename)} twice") from error
        except DeskhandTimeout:
            raise
        except OSError as error:
            reason = f"{shown(error.filename)}: {error.strerror}" if error.filename else str(error.strerror or error)
            raise BackendError(f"cannot write the copy of {self.what} beside {self._target}: {reason}") from error

    def publish(self) -> None:
        """Move the tree to its place, in one step.

        Raises:
            BackendError: There is none, or something else is in its place.
        """
        try:
            os.rename(self._name, self._target.name, src_dir_fd=self._root, dst_dir_fd=self._parent)
        except FileNotFoundError as error:
            raise BackendError(f"cannot copy {self.what}: the container sent no file") from error
        except OSError as error:
            raise BackendError(
                f"cannot write {str(self._target)!r}: {error.strerror}; remove it, or give another target"
            ) from error

    def _count(self, most: int) -> None:
        self._entries += 1
        if self._entries > most:
            raise _Damaged(f"it has more than {most} entries: copy parts of it")

    def _leave_out(self, member: tarfile.TarInfo, reason: str) -> None:
        name = member.name.removeprefix("./")
        if name == self._name:
            raise _Damaged(f"{shown(name)} is {reason}")
        self._missing.add(name)
        self.left_out.note(name, reason)

    def _take(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        parts = self._parts(member.name)
        if member.type in _LEFT_OUT:
            raise _LeftOut(_LEFT_OUT[member.type])
        if member.sparse is not None:
            raise _Damaged(f"{shown(member.name)} is {_OTHERS[tarfile.GNUTYPE_SPARSE]}")
        if member.isdir():
            with self._directory_of(parts) as above:
                os.mkdir(parts[-1], member.mode & 0o777 | stat.S_IRWXU, dir_fd=above)
        elif member.issym():
            self._link_to(member.linkname, parts)
        elif member.islnk():
            self._link(member, parts)
        elif member.isreg():
            self._write(archive, member, parts)
        else:
            raise _Damaged(f"{shown(member.name)} is {_OTHERS.get(member.type, 'of an unknown kind')}")

    def _parts(self, name: str) -> tuple[str, ...]:
        self._names += len(name)
        if self._names > _MOST_NAMES:
            raise _Damaged(f"its names have more than {_MOST_NAMES} characters together")
        parts = tuple(name.removeprefix("./").split("/"))
        if parts[0] != self._name or {"", ".", ".."} & set(parts):
            raise _Damaged(f"{shown(name)} is no path in it")
        if len(parts) > _DEEPEST:
            raise _Damaged(f"{shown(name)} is deeper than {_DEEPEST} directories")
        if _is_odd(name):
            raise _LeftOut("its name has control characters")
        return parts

    @contextlib.contextmanager
    def _directory_of(self, parts: tuple[str, ...]) -> Iterator[int]:
        """The directory that an entry goes to, without a link on the way."""
        current = os.dup(self._root)
        try:
            for part in parts[:-1]:
                try:
                    below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | _FLAGS, dir_fd=current)
                except (FileNotFoundError, NotADirectoryError):
                    raise _Damaged(f"{shown('/'.join(parts))} is in no directory of it") from None
                os.close(current)
                current = below
            yield current
        finally:
            os.close(current)

    def _write(self, archive: tarfile.TarFile, member: tarfile.TarInfo, parts: tuple[str, ...]) -> None:
        if member.size < 0:
            raise _Damaged(f"{shown(member.name)} has {member.size} bytes")
        self._size += member.size
        if self._size > self._limit:
            raise _Damaged(f"it has more than {self._limit} bytes: raise the limit, or copy parts of it")
        source = archive.extractfile(member)
        assert source is not None  # noqa: S101 # it is a regular file
        mode = member.mode & 0o777 | stat.S_IRUSR | stat.S_IWUSR
        with self._directory_of(parts) as above:
            number = os.open(parts[-1], os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, mode, dir_fd=above)
        with open(number, "wb") as file:  # noqa: PTH123 # a descriptor
            shutil.copyfileobj(source, file, _PIECE)
            if file.tell() != member.size:
                raise _Damaged(f"{shown(member.name)} ends after {file.tell()} of {member.size} bytes")
            with contextlib.suppress(OverflowError, ValueError, OSError):
                os.utime(number, (member.mtime, member.mtime))
        self._files.add(parts)

    def _link(self, member: tarfile.TarInfo, parts: tuple[str, ...]) -> None:
        """Make another name of a file that is there already."""
        if member.linkname.removeprefix("./") in self._missing:
            raise _LeftOut("another name of what is left out")
        before = self._parts(member.linkname)
        if (target := self._links.get(before)) is not None:
            # Symbolic links may have several names too.
            self._link_to(target, parts)
            return
        if before not in self._files:
            raise _Damaged(f"{shown(member.name)} is a hard link to no file of it ({shown(member.linkname)})")
        with self._directory_of(before) as first, self._directory_of(parts) as second:
            os.link(before[-1], parts[-1], src_dir_fd=first, dst_dir_fd=second, follow_symlinks=False)
        self._files.add(parts)

    def _link_to(self, target: str, parts: tuple[str, ...]) -> None:
        """Plan a symbolic link, which must not lead out of the tree, wherever the tree is and whatever other links are in it.

        It may first go up from its place, and then down: a later step up could start where another link led.
        """
        steps = [step for step in target.split("/") if step not in {"", "."}]
        ups = next((index for index, step in enumerate(steps) if step != ".."), len(steps))
        if not target or target.startswith("/") or ".." in steps[ups:] or ups > len(parts) - 2:
            raise _LeftOut(
                f"a symbolic link that may lead out of it, to {shown(target)}: copy what it leads to by its own path"
            )
        if _is_odd(target):
            raise _LeftOut("a symbolic link to a name with control characters")
        if parts in self._links:
            raise FileExistsError(0, "", "/".join(parts))
        # Links are made when everything else is there, so that nothing is written through them.
        self._links[parts] = target

    def _make_links(self) -> None:
        for parts, target in self._links.items():
            with self._directory_of(parts) as above:
                os.symlink(target, parts[-1], dir_fd=above)


@contextlib.contextmanager
def staged(target: str | os.PathLike[str], what: str) -> Iterator[Staging]:
    """A place for a tree beside its target; removed at the end unless it was published.

    Args:
        target: The destination, on this machine.
        what: The name of what is copied, for messages.

    Raises:
        ActionError: There is no directory for it.
        BackendError: Nothing can be written there.
    """
    path = Path(os.path.abspath(target))  # noqa: PTH100 # links in it are followed where they are
    if not path.name or "\0" in str(path):
        raise ActionError(f"copy_out: {str(path)!r} is not the path of a file")
    with contextlib.ExitStack() as held:
        try:
            parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            held.callback(os.close, parent)
            directory = Path(held.enter_context(tempfile.TemporaryDirectory(dir=path.parent, prefix=".deskhand-")))
            root = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | _FLAGS)
            held.callback(os.close, root)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise ActionError(f"copy_out: there is no directory {str(path.parent)!r}: make it first") from error
        except OSError as error:
            raise BackendError(f"cannot write to {str(path.parent)!r}: {error.strerror}") from error
        yield Staging(what, path, parent, directory, root)


def _is_odd(name: str) -> bool:
    # Control characters would act on the terminal that lists the copy. A byte that is not UTF-8 is a surrogate, and may stay.
    return any(unicodedata.category(character) == "Cc" for character in name)
