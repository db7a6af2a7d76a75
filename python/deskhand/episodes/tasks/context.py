"""The desktop and its machine from outside, for setup, evaluation and the oracle, with every kind of desktop.

This module owns a common way to files, processes and programs for local desktops and containers. It has no task, no agent and
no grade.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deskhand.desktop.access import bare, commands_of
from deskhand.errors import BackendError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deskhand.desktop.desktop import Desktop
    from deskhand.machine.interface import CommandResult

_LIMIT = 60.0
_MOST_LISTED = 16 << 20
_NOT_THERE = 100


@dataclass(frozen=True, slots=True)
class TaskContext:
    """The surroundings of an episode.

    Attributes:
        desktop: The desktop. The oracle's actions on it count like an agent's; queries through this object do not.
        parameters: The parameters of this instance; see `Task.parameters`.
        home: The home directory of the desktop's user, absolute, as the desktop's programs see it.
        answer: The agent's answer as a text, for the evaluation; None before, or if it gave none.
    """

    desktop: Desktop
    parameters: Mapping[str, Any]
    home: str
    answer: str | None = None

    def path(self, name: str) -> str:
        """The absolute path of `name` below the home directory; an absolute `name` is returned unchanged."""
        return os.path.join(self.home, name)  # noqa: PTH118 # a path of another machine

    def run(self, command: str, *, timeout: float = 60.0) -> CommandResult:
        """Run a command line with bash on the desktop's machine, in the home directory; see `Commands.run`."""
        return self._run(command, timeout, 1 << 20)

    def read(self, name: str) -> bytes | None:
        """A file's content; None if it does not exist.

        Raises:
            BackendError: The file cannot be read.
        """
        path = self.path(name)
        if not self.desktop.has_machine:
            try:
                return Path(path).read_bytes()
            except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
                return None
        there = self.run(f"test -f {shlex.quote(path)}")
        if there.exit_code is None:
            raise BackendError(f"{path} cannot be looked for: {there.outcome}")
        if there.exit_code != 0:
            return None
        return bare(self.desktop).machine.read_file(path)

    def text(self, name: str) -> str | None:
        """A file's content as UTF-8; None if it does not exist or is not UTF-8."""
        data = self.read(name)
        try:
            return None if data is None else data.decode()
        except UnicodeDecodeError:
            return None

    def write(self, name: str, data: bytes | str) -> str:
        """Write a file, and create its directories. Returns its absolute path."""
        path = self.path(name)
        if self.desktop.has_machine:
            bare(self.desktop).machine.write_file(path, data)
        else:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    def write_all(self, files: Mapping[str, bytes | str]) -> None:
        """Write files like `write`: many files below a container's home directory take no longer than one."""
        if not self.desktop.has_machine:
            for name, data in files.items():
                self.write(name, data)
            return
        with tempfile.TemporaryDirectory() as directory:
            home = Path(directory, "home")
            home.mkdir()
            for name, data in files.items():
                below = Path(os.path.relpath(self.path(name), self.home))
                if ".." in below.parts:
                    # On a local desktop it would be a path of this machine.
                    self.write(name, data)
                    continue
                path = home / below
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data.encode() if isinstance(data, str) else data)
            bare(self.desktop).machine.copy_in(home, self.home)

    def files(self, name: str = ".") -> dict[str, str]:
        """Everything below a directory: relative path → `file`, `directory`, `link` or `other`; empty if it does not exist.

        Raises:
            BackendError: The files cannot be listed: it takes too long, or there are too many.
        """
        kinds = {"f": "file", "d": "directory", "l": "link"}
        path = self.path(name)
        # Directories that find may not enter are left out.
        look = f"cd {shlex.quote(path)} 2>/dev/null || exit {_NOT_THERE}; find . -mindepth 1 -printf '%y %P\\0'; exit 0"
        found = self._listed(f"the files below {path}", look)
        if found.exit_code == _NOT_THERE:
            return {}
        items = (item.split(" ", 1) for item in found.stdout.split("\0") if item)
        return {path: kinds.get(kind, "other") for kind, path in sorted(items, key=lambda item: item[1])}

    def processes(self) -> list[str]:
        """The command lines of the desktop's programs: those of the container, or local ones with its home directory.

        Raises:
            BackendError: The processes cannot be listed.
        """
        if not self.desktop.has_machine:
            return _processes_of(self.home)
        return self._listed("the processes", "ps -ww -u $(id -u) -o args=").stdout.splitlines()

    def _listed(self, what: str, command: str) -> CommandResult:
        """Run a command for a list. An incomplete list is an error, because it proves nothing."""
        found = self._run(command, _LIMIT, _MOST_LISTED)
        if found.exit_code not in {0, _NOT_THERE} or found.truncated:
            why = "there are too many" if found.truncated else found.stderr.strip() or found.outcome
            raise BackendError(f"{what} cannot be listed: {why}")
        return found

    def _run(self, command: str, timeout: float, limit: int) -> CommandResult:
        # The oracle also reads from outside, which is not a step.
        commands = commands_of(bare(self.desktop))
        return commands.run(command, cwd=self.home, env={"HOME": self.home}, timeout=timeout, limit=limit)


def _processes_of(home: str) -> list[str]:
    mark = os.fsencode(f"HOME={home}")
    lines = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes().split(b"\0"):
                words = (process / "cmdline").read_bytes().split(b"\0")
                lines.append(" ".join(os.fsdecode(word) for word in words).rstrip())
        except OSError:
            # The process has just ended, or belongs to another user.
            continue
    return sorted(lines)
