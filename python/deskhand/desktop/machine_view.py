"""`desktop.machine` and `desktop.host`: commands and files where a desktop's programs run.

This module owns the checks of their arguments and the name of each in a policy and a log. The shell and the launcher own how a
command runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from deskhand._core.arguments import (
    expect_encodable,
    expect_flag,
    expect_integer,
    expect_path,
    expect_text,
    expect_word,
)
from deskhand.desktop.shells import open_shell
from deskhand.machine.program import Program
from deskhand.machine.program_arguments import program_directory, program_variables

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    from deskhand.desktop.view import View
    from deskhand.machine.interface import CommandResult, DesktopMachine, Listing, Usage, Where
    from deskhand.machine.shell import Shell

_T = TypeVar("_T")


class Commands:
    """Where commands run: `Machine` or `Host`."""

    _where: Where
    _name: str
    # The names of a command, and of a shell for commands, in a policy and a log.
    _command: str
    _opening: str

    def __init__(self, view: View) -> None:
        """Work on the desktop of `view`."""
        self._view = view

    def run(
        self,
        command: str,
        *,
        timeout: float = 60.0,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str | os.PathLike[str]] | None = None,
        limit: int = 1 << 20,
    ) -> CommandResult:
        """Run one command with bash, beside other calls on the desktop. `open_shell` is for several.

        Args:
            command: What to run, of any number of lines. Its standard input is empty.
            timeout: Seconds after which it is killed, with all that it started.
            cwd: Where it runs; the home directory when not given.
            env: Added to its environment.
            limit: Bytes that are kept of its output, and of its errors: the beginning and the end.

        Returns:
            How it ended. In a container its background jobs go on, unless the time was up; on this machine they are
            ended.

        Raises:
            ShellError: It could not be started.
            UnsupportedAction: The desktop was opened to look only.
        """
        from deskhand.machine.shell import check_command  # noqa: PLC0415 # as in `shells.open_shell`

        check_command(command)
        variables, place = program_variables(f"{self._name}.run", env), program_directory(f"{self._name}.run", cwd)
        core = self._view.core
        under_way: list[Shell] = []

        def run() -> CommandResult:
            with open_shell(
                core,
                self._where,
                f"{self._name}.run",
                cwd=place,
                env=variables,
                timeout=timeout,
                limit=limit,
                once=True,
            ) as shell:
                under_way.append(shell)
                return shell.run(command)

        def interrupt() -> None:
            for shell in under_way:
                shell.interrupt()

        operation = self._view.operation(self._command, command, cwd=place, env=tuple(variables.items()))
        return self._view.run_command(operation, run, interrupt)

    def open_shell(
        self,
        *,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str | os.PathLike[str]] | None = None,
        timeout: float = 120.0,
        limit: int = 1 << 20,
    ) -> Shell:
        """A shell that keeps its state from one command to the next. Closing it, or the desktop, ends all that it started.

        Args:
            cwd: Where it begins; the home directory when not given.
            env: Added to its environment. On this machine that has, besides, only what names the desktop, the locale, `PATH`,
                `HOME` and the like.
            timeout: Seconds that a command may take unless it has its own timeout.
            limit: Bytes that are kept of a command's output, and of its errors: the beginning and the end.

        Raises:
            ShellError: It could not be started.
            UnsupportedAction: The desktop was opened to look only.
        """
        what = f"{self._name}.open_shell"
        variables, directory = program_variables(what, env), program_directory(what, cwd)
        core = self._view.core

        def operate_in_it(
            command: str | None,
            own: Mapping[str, str],
            place: str | None,
            work: Callable[[], _T],
            end: Callable[[], None],
        ) -> _T:
            word = self._opening if command is None else self._command
            everything = tuple({**variables, **own}.items())
            operation = self._view.operation(word, command or "", cwd=place or directory, env=everything)
            return self._view.run_command(operation, work, end)

        def opened() -> Shell:
            return open_shell(
                core,
                self._where,
                what,
                cwd=directory,
                env=variables,
                timeout=timeout,
                limit=limit,
                operate=operate_in_it,
                judged=self._view.judged,
            )

        operation = self._view.operation(self._opening, cwd=directory, env=tuple(variables.items()))
        return self._view.run_command(operation, opened)


class Host(Commands):
    """This machine, with the rights of this process; get it as `desktop.host`. Commands here are not confined.

    Their environment has only what names the desktop, the locale, `PATH`, `HOME` and the like.

    Example:
        >>> desktop.host.run("ls ~").stdout
    """

    _where, _name, _command, _opening = "host", "host", "host_shell", "open_host_shell"

    @property
    def home(self) -> str | None:
        """The home directory of the desktop's programs, absolute; None if they cannot be started from here."""
        return self._view.core.environment.get("HOME")


class Machine(Commands):
    """The machine that a desktop has of its own, a container; get it as `desktop.machine`.

    Example:
        >>> desktop.machine.run("ls ~").stdout
        >>> desktop.machine.read_file("/etc/hostname")
    """

    _where, _name, _command, _opening = "desktop", "machine", "shell", "open_shell"

    def __init__(self, view: View, inside: DesktopMachine) -> None:
        """Work on the desktop of `view`."""
        super().__init__(view)
        self._inside = inside

    @property
    def home(self) -> str:
        """The home directory of the desktop's programs, absolute in the container."""
        return self._inside.home

    def read_file(self, path: str, *, limit: int = 64 << 20) -> bytes:
        """A file of the desktop's container.

        Args:
            path: An absolute path.
            limit: Bytes; a larger file is refused.

        Raises:
            BackendError: It cannot be read, is a named pipe, or is too large.
            ActionError: The path is not absolute, or is not UTF-8.
            UnsupportedAction: The desktop was opened to look only.
        """
        expect_text("machine.read_file: path", path)
        expect_integer("machine.read_file: limit", limit, 0)
        return self._view.on_machine(
            lambda: self._view.operation("read_file", path),
            lambda: self._view.core.machine("machine.read_file").read_file(path, limit=limit),
        )

    def view_file(self, path: str, *, limit: int = 64 << 20) -> bytes | Listing:
        """A file of the desktop's container, or the names in a directory; links are not followed.

        For a policy it is a `read_file`.

        Args:
            path: An absolute path, without links, `.`, `..` and a slash at the end.
            limit: Bytes; a larger file is refused.

        Raises:
            BackendError: It cannot be read, is too large, is neither a file nor a directory, or the path leads through a link.
            ActionError: The path is not absolute.
            UnsupportedAction: The desktop was opened to look only.
        """
        expect_text("machine.view_file: path", path)
        expect_integer("machine.view_file: limit", limit, 0)
        return self._view.on_machine(
            lambda: self._view.operation("read_file", path),
            lambda: self._view.core.machine("machine.view_file").view_file(path, limit=limit),
        )

    def write_file(self, path: str, data: bytes | str, *, new: bool = False) -> None:
        """Write a file in the desktop's container, whole or not at all; directories are created.

        Args:
            path: An absolute path.
            data: Its content; text becomes UTF-8.
            new: Only if there is nothing yet at `path`, and no link on the way.

        Raises:
            BackendError: It cannot be written, or something there is not a file.
            ActionError: The path is not absolute, or is not UTF-8.
            UnsupportedAction: The desktop was opened to look only.
        """
        expect_text("machine.write_file: path", path)
        expect_flag("machine.write_file: new", new)
        if isinstance(data, bytes | bytearray | memoryview):
            content = bytes(data)
        else:
            content = expect_encodable("machine.write_file: data, if it is no bytes,", data)
        self._view.on_machine(
            lambda: self._view.operation("write_file", path, size=len(content), data=content),
            lambda: self._view.core.machine("machine.write_file").write_file(path, content, new=new),
        )

    def copy_in(self, source: str | os.PathLike[str], target: str) -> tuple[str, ...]:
        """Copy a file or a directory of this machine to the absolute path `target` in the container.

        A symbolic link in a directory is copied as a link, which leads to what is in the container.

        Returns:
            What was left out, also in a `LeftOutWarning`: sockets, named pipes and devices.

        Raises:
            BackendError: It cannot be read or written.
            ActionError: `source` does not exist, is itself a socket, named pipe or device, or `target` is not absolute.
            UnsupportedAction: The desktop was opened to look only.
        """
        here = expect_path("machine.copy_in: source", source)
        expect_text("machine.copy_in: target", target)
        return self._view.on_machine(
            lambda: self._view.operation("copy_in", f"{here} -> {target}"),
            lambda: self._view.core.machine("machine.copy_in").copy_in(here, target),
        )

    def copy_out(self, source: str, target: str | os.PathLike[str], *, limit: int = 1 << 30) -> tuple[str, ...]:
        """Copy a file or a directory, by its absolute path in the container, to `target` on this machine.

        The container is not trusted: links that may lead out of the tree, devices, named pipes, sockets and names
        with control characters are left out. The rest is copied whole or not at all. Files belong to the caller, who can read
        and write them; other rights are as in the container, less the umask.

        Args:
            source: An absolute path.
            target: The destination. Its parent directory must exist, and a directory of that name must be empty.
            limit: Bytes that its files may have together, holes included; a larger tree, or one of more than 100,000 entries,
                is refused.

        Returns:
            What is missing or different in the copy, each with its reason: it was left out, or changed meanwhile.
            A `LeftOutWarning` says the same.

        Raises:
            BackendError: It cannot be read or written, is too large, or is itself of a kind that is left out of a tree.
            ActionError: `source` is not absolute, or `target` has no directory.
            DeskhandTimeout: Nothing came for 20 s.
            UnsupportedAction: The desktop was opened to look only.
        """
        expect_text("machine.copy_out: source", source)
        here = expect_path("machine.copy_out: target", target)
        expect_integer("machine.copy_out: limit", limit, 1)
        return self._view.on_machine(
            lambda: self._view.operation("copy_out", f"{source} -> {here}"),
            lambda: self._view.core.machine("machine.copy_out").copy_out(source, here, limit=limit),
        )

    def logs(self, program: str | Program | None = None) -> str:
        """The container's own log (which parts ended and were started again), or a program's last output.

        Args:
            program: What `start` returned, or a program's name: if several have it, the one that wrote last.
                Also `x-server`, `window-manager`, `panel`, `bus`, `accessibility` and `keep-logs`.

        Raises:
            BackendError: There is no log of it, or the engine does not answer.
            UnsupportedAction: The desktop was opened to look only.
        """
        if program is not None and not isinstance(program, Program):
            expect_word("machine.logs: program", expect_text("machine.logs: program", program))
        name = "" if program is None else str(program.log) if isinstance(program, Program) else program
        return self._view.on_machine(
            lambda: self._view.operation("logs", name), lambda: self._view.core.machine("machine.logs").logs(program)
        )

    def usage(self) -> Usage:
        """What the container uses now.

        Raises:
            BackendError: The engine does not answer.
            UnsupportedAction: The desktop was opened to look only.
        """
        return self._view.on_machine(
            lambda: self._view.operation("usage"), lambda: self._view.core.machine("machine.usage").usage()
        )
