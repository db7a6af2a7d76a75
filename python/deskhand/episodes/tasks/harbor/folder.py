"""Finds the folders of tasks of Harbor, and reads them, untrusted as they are.

This module owns what the name `harbor:PATH` means, which files a folder may have, and their digest. What must never appear
here: a field of `task.toml` (see `taskfile`), a container.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import stat
import tarfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal

from deskhand.episodes.tasks.harbor.taskfile import LARGEST, TaskFile, parse_task
from deskhand.episodes.tasks.reading import open_regular, read_bounded
from deskhand.errors import TaskError, shown

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

PREFIX = "harbor:"
"""What a name for tasks of Harbor begins with."""

ENVIRONMENT, TESTS, SOLUTION = "environment", "tests", "solution"
TEST_SCRIPT, SOLUTION_SCRIPT = "test.sh", "solve.sh"

DOCKERFILE = "Dockerfile"
COMPOSE = ("docker-compose.yaml", "docker-compose.yml", "compose.yaml", "compose.yml")

_TASK, _INSTRUCTION = "task.toml", "instruction.md"
_LARGEST_TEXT = 1 << 18
_MOST_FILES, _DEEPEST, _LARGEST_TREE = 20_000, 40, 1 << 30
_PIECE = 1 << 20
# 2000-01-01: an image is the same whenever the folder was checked out, and archives of ZIP can have it.
_WHEN = 946_684_800


@dataclass(frozen=True, slots=True)
class Item:
    """One file, directory or link of a folder.

    Attributes:
        path: Its path below the folder.
        kind: What it is.
        executable: Whether it may be run.
        size: Bytes of a file.
        target: Where a link leads.
    """

    path: str
    kind: Literal["file", "directory", "link"]
    executable: bool = False
    size: int = 0
    target: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """One folder.

    Attributes:
        folder: Its path.
        file: Its `task.toml`; None if the folder is broken.
        instruction: The agent's instruction.
        script: Its `tests/test.sh`.
        solved: Whether it has a solution.
        digests: A digest of each part, by name.
        broken: Why it is broken; empty if it is not.
    """

    folder: Path
    file: TaskFile | None
    instruction: str = ""
    script: str = ""
    solved: bool = False
    digests: tuple[tuple[str, bytes], ...] = ()
    broken: str = ""


def find_entries(name: str) -> list[Entry]:
    """Find and read the tasks that a name means, in the order of their folders.

    Args:
        name: `harbor:` and the path of a task's folder, or of a folder with such folders in it. A name or a pattern of one may
            follow that: `harbor:tasks/hello-*`.

    Raises:
        TaskError: There is no such folder, or nothing in it matches. A broken task raises nothing.
    """
    path = Path(name.removeprefix(PREFIX))
    if (path / _TASK).exists():
        return [_entry(path)]
    above, pattern = (path, "*") if path.is_dir() else (path.parent, path.name)
    if not above.is_dir():
        raise TaskError(name, f"there is no folder {path}")
    try:
        listed = sorted(above.iterdir())
    except OSError as error:
        raise TaskError(name, f"{above} cannot be read: {error.strerror or error}") from error
    found = [each for each in listed if fnmatch.fnmatchcase(each.name, pattern) and os.path.lexists(each / _TASK)]
    if not found:
        hint = f"a task of Harbor is a folder with {_TASK}, {_INSTRUCTION}, {ENVIRONMENT} and {TESTS}"
        raise TaskError(name, f"no folder {pattern} in {above} has a {_TASK}", hint)
    return [_entry(each) for each in found]


def list_tree(root: Path, name: str) -> list[Item]:
    """Everything in a folder, sorted; nothing is followed.

    Raises:
        TaskError: Something is neither file, directory nor link, a link leads out of the folder, or there is too much.
    """
    found: list[Item] = []
    size = 0
    for item in _below(root, name, "", 0):
        found.append(item)
        size += item.size
        if len(found) > _MOST_FILES or size > _LARGEST_TREE:
            raise TaskError(
                name, f"{root.name} has more than {_MOST_FILES} files, or than {_LARGEST_TREE >> 20} MiB in them"
            )
    return found


def digest_tree(root: Path, name: str) -> bytes:
    """A digest of everything in a folder, the same on every machine."""
    whole = hashlib.sha256()
    for item in list_tree(root, name):
        head = f"{item.path}\0{item.kind}\0{item.executable:d}\0{item.target}\0{item.size}\0"
        whole.update(head.encode("utf-8", "surrogateescape"))
        if item.kind == "file":
            for piece in _pieces(root, item, name):
                whole.update(piece)
    return whole.digest()


def pack_tree(root: Path, name: str, file: IO[bytes], keep: Collection[str] | None = None) -> None:
    """Write a folder as tar, with the same bytes on every machine.

    Args:
        root: The folder.
        name: The task's name, for errors.
        file: Gets the tar.
        keep: The paths that are written; None for all.

    Raises:
        TaskError: See `list_tree`.
    """
    with tarfile.open(fileobj=file, mode="w") as archive:
        for item in list_tree(root, name):
            if keep is not None and item.path not in keep:
                continue
            entry = tarfile.TarInfo(item.path)
            entry.mtime, entry.mode = _WHEN, 0o755 if item.kind == "directory" or item.executable else 0o644
            if item.kind == "file":
                entry.size = item.size
                with _named(name, root / item.path), open_regular(root / item.path) as data:
                    archive.addfile(entry, data)
                continue
            entry.type = tarfile.DIRTYPE if item.kind == "directory" else tarfile.SYMTYPE
            entry.linkname = item.target
            archive.addfile(entry)


# --- one folder ---


def _entry(folder: Path) -> Entry:
    name = folder.name or str(folder)
    try:
        return _read(folder, name)
    except TaskError as error:
        return Entry(
            folder,
            None,
            broken=error.message.removeprefix(f"task {name}: "),
            digests=(("broken", error.message.encode()),),
        )


def _read(folder: Path, name: str) -> Entry:
    if folder.is_symlink():
        raise TaskError(name, "its folder is a link")
    file = parse_task(_text(folder / _TASK, name, LARGEST), name)
    instruction = _decoded(_text(folder / _INSTRUCTION, name), _INSTRUCTION, name)
    if not instruction.strip():
        raise TaskError(name, f"{_INSTRUCTION} is empty")
    parts = [each for each in (ENVIRONMENT, TESTS, SOLUTION) if os.path.lexists(folder / each)]
    digests = {part: _digest_of(folder / part, name) for part in parts}
    script = _decoded(_text(folder / TESTS / TEST_SCRIPT, name), TEST_SCRIPT, name)
    compose = [f"{ENVIRONMENT}/{each}" for each in COMPOSE if os.path.lexists(folder / ENVIRONMENT / each)]
    if compose:
        file = replace(file, beyond=(*file.beyond, *compose))
    elif not file.image:
        _text(folder / ENVIRONMENT / DOCKERFILE, name)
    for part, text in ((_TASK, _text(folder / _TASK, name, LARGEST)), (_INSTRUCTION, instruction.encode())):
        digests[part] = hashlib.sha256(text).digest()
    solved = (folder / SOLUTION / SOLUTION_SCRIPT).is_file()
    return Entry(folder, file, instruction, script, solved, tuple(sorted(digests.items())))


def _digest_of(part: Path, name: str) -> bytes:
    if part.is_symlink() or not part.is_dir():
        raise TaskError(name, f"{part.name} is no folder")
    return digest_tree(part, name)


def _text(path: Path, name: str, limit: int = _LARGEST_TEXT) -> bytes:
    with _named(name, path):
        return read_bounded(path, limit)


def _decoded(data: bytes, what: str, name: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise TaskError(name, f"{what} is not UTF-8: {error}") from None


class _named:  # noqa: N801 # it is used like a function
    """Turns an error of a file into one of the task."""

    def __init__(self, name: str, path: Path) -> None:
        self._name, self._path = name, path

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, OSError):
            where = "/".join(self._path.parts[-2:])
            raise TaskError(self._name, f"{where} cannot be read: {error.strerror or error}") from None


def _below(root: Path, name: str, above: str, depth: int) -> Iterator[Item]:
    if depth > _DEEPEST:
        raise TaskError(name, f"{root.name} is deeper than {_DEEPEST} folders")
    with _named(name, root / above), os.scandir(root / above) as listed:
        children = sorted(listed, key=lambda each: each.name)
    for child in children:
        path = f"{above}/{child.name}" if above else child.name
        with _named(name, root / path):
            found = child.stat(follow_symlinks=False)
            if stat.S_ISLNK(found.st_mode):
                yield Item(path, "link", target=_inside(root, name, path, os.readlink(child.path)))  # noqa: PTH115 # its text
            elif stat.S_ISDIR(found.st_mode):
                yield Item(path, "directory")
                yield from _below(root, name, path, depth + 1)
            elif stat.S_ISREG(found.st_mode):
                yield Item(path, "file", bool(found.st_mode & stat.S_IXUSR), found.st_size)
            else:
                raise TaskError(name, f"{root.name}/{path} is neither a file, a folder nor a link")


def _inside(root: Path, name: str, path: str, target: str) -> str:
    # By its text: where the links on the way lead is judged when they are listed themselves.
    place = os.path.normpath(os.path.join(os.path.dirname(path), target))  # noqa: PTH118, PTH120 # texts, not files
    if target.startswith("/") or place == ".." or place.startswith("../"):
        raise TaskError(name, f"{root.name}/{path} is a link that leads out of its folder: {shown(target)}")
    return target


def _pieces(root: Path, item: Item, name: str) -> Iterator[bytes]:
    read = 0
    with _named(name, root / item.path), open_regular(root / item.path) as file:
        while piece := file.read(_PIECE):
            read += len(piece)
            if read > item.size:
                raise TaskError(name, f"{root.name}/{item.path} grows while it is read")
            yield piece


def slug(names: Sequence[str]) -> str:
    """The name of a task for deskhand, of the names that it has elsewhere."""
    text = "-".join(names)
    words = "".join(char if char.isascii() and char.isalnum() else " " for char in text).lower().split()
    # Letters that have no place in a name of ours would make two names one.
    odd = [] if text.isascii() and words else [hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:8]]
    return "-".join([*words, *odd])
