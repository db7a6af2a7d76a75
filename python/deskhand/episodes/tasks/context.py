"""The desktop and its machine, as setup, evaluation and the oracle see them: from outside, whatever the desktop runs in.

This module owns one way to files, processes and programs for a desktop here and one in a container. What must never appear
here: a task, an agent, a grade.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deskhand.desktop.desktop import bare, commands_of
from deskhand.errors import BackendError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deskhand.desktop.desktop import Desktop
    from deskhand.machine.interface import CommandResult

__all__ = ["TaskContext"]

_LIMIT = 60.0
_MOST_LISTED = 16 << 20
_NOT_THERE = 100


@dataclass(frozen=True, slots=True)
class TaskContext:
    """Where an episode plays.

    Attributes:
        desktop: The desktop. What the oracle does on it counts as an agent's would; what is asked through this object does not.
        parameters: Of this instance; see `Task.parameters`.
        home: The home directory of the desktop's user, absolute, where the programs of the desktop see it.
        answer: What the agent answered in words, for the evaluation; None before, or when it said nothing.
    """

    desktop: Desktop
    parameters: Mapping[str, Any]
    home: str
    answer: str | None = None

    def path(self, name: str) -> str:
        """The absolute path of `name` below the home directory; an absolute `name` is left as it is."""
        return os.path.join(self.home, name)  # noqa: PTH118 # a path of another machine

    def run(self, command: str, *, timeout: float = 60.0) -> CommandResult:
        """Run a command line with bash on the desktop's machine, in the home directory; see `Commands.run`."""
        return self._run(command, timeout, 1 << 20)

    def read(self, name: str) -> bytes | None:
        """A file's content; None when there is none.

        Raises:
            BackendError: It cannot be read.
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
        """A file's content as UTF-8; None when there is none or it is no UTF-8."""
        data = self.read(name)
        try:
            return None if data is None else data.decode()
        except UnicodeDecodeError:
            return None

    def write(self, name: str, data: bytes | str) -> str:
        """Write a file, making its directories. Returns its absolute path."""
        path = self.path(name)
        if self.desktop.has_machine:
            bare(self.desktop).machine.write_file(path, data)
        else:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    def write_all(self, files: Mapping[str, bytes | str]) -> None:
        """Write files as `write` does: many below the home directory of a container take no longer than one."""
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
                    # Here it would be a path of this machine.
                    self.write(name, data)
                    continue
                path = home / below
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data.encode() if isinstance(data, str) else data)
            bare(self.desktop).machine.copy_in(home, self.home)

    def files(self, name: str = ".") -> dict[str, str]:
        """All that is below a directory: relative path → `file`, `directory`, `link` or `other`; empty if there is none.

        Raises:
            BackendError: They cannot be listed: it takes too long, or there are too many.
        """
        kinds = {"f": "file", "d": "directory", "l": "link"}
        path = self.path(name)
        # What find may not enter is missing, and the rest is there.
        look = f"cd {shlex.quote(path)} 2>/dev/null || exit {_NOT_THERE}; find . -mindepth 1 -printf '%y %P\\0'; exit 0"
        found = self._listed(f"the files below {path}", look)
        if found.exit_code == _NOT_THERE:
            return {}
        items = (item.split(" ", 1) for item in found.stdout.split("\0") if item)
        return {path: kinds.get(kind, "other") for kind, path in sorted(items, key=lambda item: item[1])}

    def processes(self) -> list[str]:
        """The command lines of the desktop's programs: of the container, or here of those that have its home directory.

        Raises:
            BackendError: They cannot be listed.
        """
        if not self.desktop.has_machine:
            return _processes_of(self.home)
        return self._listed("the processes", "ps -ww -u $(id -u) -o args=").stdout.splitlines()

    def _listed(self, what: str, command: str) -> CommandResult:
        """A list that is whole: of a part of it nothing can be told."""
        found = self._run(command, _LIMIT, _MOST_LISTED)
        if found.exit_code not in {0, _NOT_THERE} or found.truncated:
            why = "there are too many" if found.truncated else found.stderr.strip() or found.outcome
            raise BackendError(f"{what} cannot be listed: {why}")
        return found

    def _run(self, command: str, timeout: float, limit: int) -> CommandResult:
        # The oracle looks from outside too, and that is no step of its.
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
            # It has just ended, or is another user's.
            continue
    return sorted(lines)
