"""The machine that a desktop's programs run on, as OSWorld's guest server uses it: its commands, programs and files.

This module owns the difference between a container and a local desktop, whose machine is this one. It has no route.
"""

from __future__ import annotations

import os
import secrets
import shlex
import stat
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from deskhand.desktop.access import commands_of
from deskhand.desktop.operations import Operation
from deskhand.errors import BackendError, LaunchFailed, PolicyDenied, UnsupportedAction, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deskhand.desktop.desktop import Desktop
    from deskhand.machine.interface import CommandResult

LARGEST_FILE = 256 << 20
"""Bytes; larger files are refused."""

NOT_ALLOWED = "the server's owner has not allowed programs and commands (--programs)"

_OUTPUT = 16 << 20
_MISSING = "No such file"
_TREE_SECONDS = 60.0
_MOST_ENTRIES = 100_000


class GuestMachine:
    """Commands, programs and files. On a local desktop they are those of this machine.

    For a policy, a file of a local desktop is of the class `host_files`, as `copy_in` and `copy_out` are.

    Attributes:
        desktop: The desktop.
        programs: Whether programs and commands may be run.
    """

    def __init__(self, desktop: Desktop, *, programs: bool) -> None:
        """For a desktop."""
        self.desktop = desktop
        self.programs = programs

    @property
    def home(self) -> str:
        """The home directory of the desktop's programs.

        Raises:
            UnsupportedAction: The desktop's programs are on a machine that cannot be reached from here.
        """
        home = commands_of(self.desktop).home
        if home is None:
            raise UnsupportedAction(
                "this desktop", "its machine", "programs and files there cannot be reached from here"
            )
        return home

    def path(self, name: str) -> str:
        """An absolute path. `~`, `$HOME` and `${HOME}` at its beginning are the home directory, where relative paths begin."""
        for word in ("~", "$HOME", "${HOME}"):
            if name == word or name.startswith(word + "/"):
                return self.home + name[len(word) :]
        return str(PurePosixPath(self.home, name))

    def run(self, command: str, *, timeout: float, cwd: str | None = None) -> CommandResult:
        """Run a command line with bash, in the home directory unless `cwd` is given.

        Raises:
            PolicyDenied: Commands are not allowed.
            DeskhandError: It could not be run.
        """
        self._check_allowed(command)
        return commands_of(self.desktop).run(command, timeout=timeout, cwd=cwd or self.home, limit=_OUTPUT)

    def ask(self, *words: str, timeout: float = _TREE_SECONDS) -> str | None:
        """The output of a command that ends well; None of another."""
        ended = self.run(shlex.join(words), timeout=timeout)
        return ended.stdout if ended.exit_code == 0 else None

    def start(self, words: Sequence[str], *, timeout: float) -> str:
        """Start a program, and wait up to `timeout` seconds for its window. One that shows none stays too.

        Returns:
            Why it has no window; empty if it has.

        Raises:
            PolicyDenied: Programs are not allowed.
            DeskhandError: It could not be started.
        """
        self._check_allowed(shlex.join(words))
        try:
            self.desktop.start(words, cwd=self.home, timeout=timeout)
        except LaunchFailed as error:
            return str(error)
        return ""

    def read(self, name: str) -> bytes | None:
        """A file's content; None if it does not exist.

        Raises:
            DeskhandError: It cannot be read, is too large, or is no file.
        """
        path = self.path(name)
        if not self.desktop.has_machine:
            return self.desktop.operate(Operation("copy_out", f"{path} -> a client"), lambda: _read(path))
        try:
            return self.desktop.machine.read_file(path, limit=LARGEST_FILE)
        except BackendError as error:
            if _MISSING in str(error):
                return None
            raise

    def write(self, name: str, data: bytes) -> None:
        """Write a file, whole or not at all; directories are created.

        Raises:
            DeskhandError: It cannot be written.
        """
        path = self.path(name)
        if self.desktop.has_machine:
            self.desktop.machine.write_file(path, data)
            return
        operation = Operation("copy_in", f"a client -> {path}", size=len(data), data=data)
        self.desktop.operate(operation, lambda: _write(Path(path), data))

    def tree(self, name: str) -> dict[str, object] | None:
        """What is in a directory and below it, in the form of OSWorld's server; None if it is no directory.

        Raises:
            BackendError: There is too much in it.
        """
        path = self.path(name)
        # Links are followed, as OSWorld does; find ends at a link to a directory that it is in.
        look = f"cd -- {shlex.quote(path)} || exit 100; find -L . -mindepth 1 -printf '%y %P\\0'; exit 0"
        ended = self.run(look, timeout=_TREE_SECONDS)
        if ended.exit_code == 100:
            return None
        items = [item.partition(" ")[::2] for item in ended.stdout.split("\0") if item]
        if ended.exit_code != 0 or ended.truncated or len(items) > _MOST_ENTRIES:
            raise BackendError(f"{path} has too much in it to be listed: name a directory below it")
        return _tree(path, items)

    def _check_allowed(self, command: str) -> None:
        if not self.programs:
            raise PolicyDenied("shell", f"{NOT_ALLOWED}: {shown(command)}")


def _tree(path: str, items: list[tuple[str, str]]) -> dict[str, object]:
    top: list[object] = []
    children: dict[str, list[object]] = {"": top}
    for kind, below in sorted(items, key=lambda item: item[1].split("/")):
        parent, _, name = below.rpartition("/")
        if kind == "d":
            inner = children[below] = []
            entry: dict[str, object] = {"type": "directory", "name": name, "children": inner}
        else:
            entry = {"type": "file", "name": name}
        # A directory that is removed meanwhile may not have been listed.
        children.get(parent, top).append(entry)
    return {"type": "directory", "name": PurePosixPath(path).name, "children": top}


def _read(path: str) -> bytes | None:
    try:
        # Opened like this, a named pipe without a writer does not block.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise BackendError(f"cannot read {shown(path)}: {_why(error)}") from error
    with open(descriptor, "rb") as file:  # noqa: PTH123 # a descriptor
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise BackendError(f"cannot read {path!r}: it is not a file")
        data = file.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        raise BackendError(f"{path!r} is larger than {LARGEST_FILE} bytes")
    return data


def _write(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".deskhand-{secrets.token_hex(8)}")
        try:
            with temporary.open("xb") as file:
                file.write(data)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except (OSError, ValueError) as error:
        raise BackendError(f"cannot write {shown(str(path))}: {_why(error)}") from error


def _why(error: OSError | ValueError) -> str:
    # An OSError's own text repeats the path, which may be long.
    return error.strerror or "" if isinstance(error, OSError) else str(error)
