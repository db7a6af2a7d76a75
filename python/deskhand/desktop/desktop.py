"""`Desktop`: what callers have of a desktop. Every operation goes through its gate to the core.

This module owns the public methods and what each of them is called in a policy and a log. It has no X request, no rule of
settling and no rule of what is allowed.
"""

from __future__ import annotations

import shlex
import time
from functools import partial
from typing import TYPE_CHECKING, Self, TypeVar

from deskhand._core.arguments import (
    expect,
    expect_callable,
    expect_flag,
    expect_integer,
    expect_like,
    expect_path,
    expect_region,
    expect_seconds,
    expect_size,
    expect_text,
    expect_word,
)
from deskhand._core.attempts import ATTEMPT, Attempt
from deskhand._core.formats import check_format
from deskhand._core.geometry import Point, Size
from deskhand._core.redaction import one_line
from deskhand._core.sizes import picture_size
from deskhand._core.window import Window
from deskhand.desktop.connection import Core
from deskhand.desktop.gate import operate
from deskhand.desktop.losses import losses_told
from deskhand.desktop.operations import Call, Operation, calling, current_call
from deskhand.desktop.performing import Performance, plain_actions, settings_of
from deskhand.desktop.programs import start_program
from deskhand.errors import ActionError, DeskhandTimeout, PolicyDenied, UnsupportedAction, shown
from deskhand.machine.program import Program
from deskhand.machine.program_arguments import check_timeout, program_directory, program_variables, program_words
from deskhand.machine.shell import check_command

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from deskhand._core.events import ButtonDown, KeyDown
    from deskhand._core.formats import Format
    from deskhand._core.health import Expected, Health
    from deskhand._core.observation import Observation, Screenshot
    from deskhand._core.settle import Settle
    from deskhand._core.sizes import PictureSize
    from deskhand.actions import Action, CarriesAction
    from deskhand.backends.protocols import Backend
    from deskhand.desktop.operations import Interceptor, SafetyCheck
    from deskhand.machine.interface import CommandResult, Inside, Listing, Usage, Where
    from deskhand.machine.processes import Programs
    from deskhand.machine.shell import Shell

__all__ = ["Desktop", "bare", "core_of"]

_T = TypeVar("_T")

_CLIPBOARD_LIMIT = 5.0
_STOP_LIMIT = 5.0
_LONGEST_TITLE = 300
# X11 and RFB have 16 bits for it.
_LONGEST_SIDE = 65_535
_LARGEST_ID = 2**32 - 1
# What a command, and a shell for commands, is called, by where it runs.
_COMMAND = {"desktop": "shell", "host": "host_shell"}
_OPENING = {"desktop": "open_shell", "host": "open_host_shell"}


class Desktop:
    """A desktop that acts and answers. Make one with `deskhand.launch` or `deskhand.connect`.

    Calls from several threads take turns. Leaving a `with` block closes it.

    Example:
        >>> with deskhand.launch() as desktop:
        ...     desktop.start("mousepad")
        ...     seen = desktop.perform(LeftClick((400, 300)), Type("naïve ☕ text"))
    """

    def __init__(
        self,
        backend: Backend,
        *,
        display: str | None = None,
        xauthority: Path | None = None,
        name: str | None = None,
        guard: Callable[[], Programs] | None = None,
        environment: Mapping[str, str] | None = None,
        owns_processes: bool = False,
        inside: Inside | None = None,
        view_only: bool = False,
        on_close: Sequence[Callable[[], None]] = (),
        renew: Callable[[], Desktop] | None = None,
        expected: Expected | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Drive `backend`; users call `launch` or `connect` instead.

        Args:
            backend: The connection.
            display: As `DISPLAY` would name it.
            xauthority: The cookie file that lets any X client join.
            name: The name it is registered under.
            guard: Gives the process that keeps this desktop's programs; called when first needed.
            environment: What programs started here get.
            owns_processes: Whether the display itself ends with this object.
            inside: The machine that belongs to this desktop, where one does: a container.
            view_only: Refuse input.
            on_close: Called in order, after the backend was closed where the display stays, else before that.
            renew: Makes the display as new and returns its next Desktop; see the method of that name.
            expected: What is there when it has started, as far as that is known.
            clock: Monotonic seconds; tests give their own.
        """
        self._core = Core(
            backend,
            display=display,
            xauthority=xauthority,
            name=name,
            guard=guard,
            environment=environment,
            owns_processes=owns_processes,
            inside=inside,
            view_only=view_only,
            on_close=on_close,
            renew=None if renew is None else lambda: core_of(renew()),
            expected=expected,
            clock=clock,
        )
        self._interceptors: tuple[Interceptor, ...] = ()

    def also(self, *interceptors: Interceptor) -> Self:
        """A view of the same desktop with more interceptors, after those that this one has. Those cannot be taken away.

        What is done through the view goes past all of them; what is done through this object does not go past the new ones.

        Args:
            interceptors: A `Guard`, a recorder, a counter: see `Interceptor`.
        """
        _check_interceptors("also", interceptors)
        return self._view(self._core, (*self._interceptors, *interceptors))

    @property
    def judged(self) -> bool:
        """Whether a `Guard` stands in the gate: a policy decides, and a call may wait for whoever is asked."""
        return any(getattr(interceptor, "judges", False) for interceptor in self._interceptors)

    @classmethod
    def _view(cls, core: Core, interceptors: tuple[Interceptor, ...]) -> Self:
        view = object.__new__(cls)
        view._core = core
        view._interceptors = interceptors
        return view

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return repr(self._core)

    @property
    def display(self) -> str | None:
        """How `DISPLAY` names it; None where nothing of this machine leads to it."""
        return self._core.display

    @property
    def xauthority(self) -> Path | None:
        """The cookie file that lets any X client join; None where none is needed, or known."""
        return self._core.xauthority

    @property
    def name(self) -> str | None:
        """The name it is registered under."""
        return self._core.name

    @property
    def size(self) -> Size:
        """Width and height of the screen in pixels."""
        return self._core.size

    @property
    def status(self) -> tuple[str, ...]:
        """What is not as it should be, a sentence each: slower paths in use, parts that had to be started again..."""
        self._core.owner.refuse_if_parent("this desktop")
        inside = self._core.inside
        return (*self._core.backend.status, *(inside.status if inside is not None else ()))

    @property
    def pointer(self) -> Point:
        """Where the pointer is, in screen pixels."""
        core = self._core
        with core.turn():
            core.look()
            return Point(*core.backend.screen.pointer)

    @property
    def home(self) -> str | None:
        """The home directory of its programs, absolute on their machine; None where nothing can be started."""
        inside = self._core.inside
        return self._core.environment.get("HOME") if inside is None else inside.home

    @property
    def closed(self) -> bool:
        """Whether nobody can do anything with this object any more."""
        return self._core.closed

    @property
    def has_machine(self) -> bool:
        """Whether it has a machine of its own, a container, which `shell` and the methods for files are about."""
        return self._core.inside is not None

    @property
    def clipboard(self) -> str | None:
        """The clipboard's text, None when it holds none; assign to write it. See `get_clipboard`."""
        return self.get_clipboard()

    @clipboard.setter
    def clipboard(self, text: str) -> None:
        self.set_clipboard(text)

    # --- acting and looking ---

    def perform(
        self,
        *actions: Action | CarriesAction,
        settle: Settle | bool = True,
        size: PictureSize | None = None,
        format: Format = "png",
        quality: int = 80,
    ) -> Observation:
        """Carry out actions in order and return what the screen answered.

        All actions are checked before anything is sent. Between two of them the screen is given the time to answer, so that a
        text goes to the dialog that the click before it opened. Presses and releases of keys and buttons follow one another at
        once; a `Move`, and each part of a drag, is followed when the application has taken it, whatever `settle` says.

        Args:
            actions: What to do, or tool calls that carry it (`deskhand.execution.tool_calls`); none at all only waits for the
                screen and looks.
            settle: How to wait for the screen between actions and at the end; False does not wait.
            size: How large the picture is: (width, height) in pixels, a factor, a `Fit`, or the name of a model with
                published limits; by default as large as the screen (or the zoomed region).
            format: What its bytes are: `png`, `indexed`, `jpeg`, `webp` or `raw`; see `deskhand._core.formats.Format`.
            quality: 1...100, of `jpeg` and `webp`.

        Returns:
            One observation, taken when the screen had settled, or at the timeout (`settled=False`).

        Raises:
            ActionError: An action is wrong (`OutOfBounds`, `Untypable`, `UnsupportedAction`...). Nothing was sent.
            InputBlocked: An action was sent and did not reach the window that it was for: no window has the keyboard focus, or
                another program has grabbed the keyboard or the pointer.
            OutOfBounds: Also when the screen became smaller during the call, so that a point is not on it any more: that
                action was not sent, and those before it (`error.done`) were.
            ServerSilent: An X server answered nothing for `Settle.timeout` before the input or during it. That action and those
                after it were not done, or in part.
            DesktopLost: The other side is gone. A VNC server that does not answer is given up after 10 s, which may be
                several calls: each returns at its timeout until then, `settled=False`.
            Reconnected: The connection broke and was made anew: the action under way may have been done or not.
            BackendError: The other side refused something. Whatever was pressed has been released.
            DeskhandTimeout: The application did not take a text that was to be pasted. The old clipboard is back; a note on the
                error names what of it is not.
        """
        settings = settings_of(settle)
        check_format(format, quality)
        picture_size(size, self.size)
        plain = plain_actions(actions)
        performance = Performance(self._core, plain, settings, size=size, format=format, quality=quality)
        return self._operate(lambda: self._operation("perform", actions=plain), performance.carry_out)

    def screenshot(
        self,
        size: PictureSize | None = None,
        region: tuple[int, int, int, int] | None = None,
        *,
        cursor: bool = True,
        format: Format = "png",
        quality: int = 80,
    ) -> Screenshot:
        """Look, without waiting for anything.

        Args:
            size: How large the picture is: (width, height) in pixels, a factor, a `Fit`, or the name of a model with
                published limits; by default as large as what it shows.
            region: The part of the screen to show: x, y, width, height.
            cursor: Whether the pointer's image is in the picture.
            format: What its bytes are: `png`, `indexed`, `jpeg`, `webp` or `raw`; see `deskhand._core.formats.Format`.
            quality: 1...100, of `jpeg` and `webp`.

        Raises:
            OutOfBounds: The region is not on the screen.
            ActionError: There is no such size, format or quality.
            ImagingError: The size is not possible.
            DesktopLost: The other side is gone.
        """
        check_format(format, quality)
        expect_flag("screenshot: cursor", cursor)
        region = None if region is None else expect_region("screenshot: region", region)
        if not self._interceptors:
            return self._picture(size, region, cursor, format, quality)
        return self._operate(
            lambda: self._operation("screenshot"), lambda: self._picture(size, region, cursor, format, quality)
        )

    def release_all(self) -> None:
        """Release every key and button that is held, and return when the other side has done so."""
        core = self._core
        with core.turn():
            core.release()
            core.backend.round_trip()

    @property
    def held(self) -> tuple[ButtonDown | KeyDown, ...]:
        """What this driver holds pressed, oldest first."""
        self._core.owner.refuse_if_parent("this desktop")
        return self._core.ledger.pressed

    # --- windows, programs, clipboard ---

    def windows(self) -> list[Window]:
        """The windows that the window manager lists, bottom to top.

        Where no window manager runs that follows EWMH, those that the server shows (menus and tooltips are none).

        Raises:
            UnsupportedAction: This backend cannot see windows.
        """
        self._needs_windows("windows")
        core = self._core

        def listed() -> list[Window]:
            with core.turn():
                return core.backend.windows()

        return self._operate(lambda: self._operation("windows"), listed)

    def activate(self, window: Window | int, *, timeout: float = 5.0) -> None:
        """Raise a window and give it the keyboard, and wait until it has it.

        Raises:
            ActionError: There is no such window.
            DeskhandTimeout: The window manager did not do it in `timeout` seconds.
        """
        number = _window_id("activate", window)
        expect_seconds("activate: timeout", timeout)
        self._needs_windows("activate")
        core = self._core

        def activate() -> None:
            with core.turn():
                self._check_window(number)
                core.backend.activate(number)
                if not core.watch.until(
                    lambda: any(w.active for w in core.backend.windows() if w.id == number), timeout
                ):
                    raise DeskhandTimeout(f"waited {timeout:g} s for window {number:#x} to become active")

        self._operate(lambda: self._operation("activate", _window_name(window)), activate)

    def close_window(self, window: Window | int, *, timeout: float = 5.0) -> bool:
        """Ask a window to close, as its close button would.

        Returns:
            True when it closed; False when it is still there after `timeout` seconds (it may be asking to save).

        Raises:
            ActionError: There is no such window.
        """
        number = _window_id("close_window", window)
        expect_seconds("close_window: timeout", timeout)
        self._needs_windows("close_window")
        core = self._core

        def close() -> bool:
            with core.turn():
                self._check_window(number)
                core.backend.close_window(number)
                return core.watch.until(lambda: all(w.id != number for w in core.backend.windows()), timeout)

        return self._operate(lambda: self._operation("close_window", _window_name(window)), close)

    def start(
        self,
        command: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        env: Mapping[str, str | os.PathLike[str]] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        timeout: float = 30.0,
    ) -> Program:
        """Start a program and return when its window is up and drawn.

        Args:
            command: A command line (split as a shell would, but no shell runs), its words, or a program's path.
            env: Added to the desktop's environment.
            cwd: Where it starts.
            timeout: Seconds to wait for its window.

        Raises:
            ShellError: It could not be started.
            LaunchFailed: It ended, or showed no window in time; carries the tail of its output.
            UnsupportedAction: This desktop is on another machine, or opened to look only.
        """
        # What was judged is what is started, whatever happens to the caller's list meanwhile.
        argv = program_words("start", command)
        line = command if isinstance(command, str) else shlex.join(argv)
        variables, place = program_variables("start", env), program_directory("start", cwd)
        check_timeout("start", timeout)
        core = self._core

        def start() -> Program:
            with core.turn():
                core.refuse_input("start")
                environment = {**core.environment, **variables}
                guard = core.own_guard()
                return start_program(core.backend, core.watch, guard, argv, env=environment, cwd=place, timeout=timeout)

        return self._operate(lambda: self._operation("start", line, cwd=place, env=tuple(variables.items())), start)

    def exit_status(self, program: Program) -> int | None:
        """How a program that `start` has started ended: its exit code, or minus the number of the signal that killed it.

        Returns:
            None while it runs, and where nobody knows.

        Raises:
            DesktopLost: The desktop is gone, and the program with it.
        """
        pid = expect("exit_status: program", program, Program).pid
        core = self._core
        with core.turn():
            core.backend.round_trip()
            return None if core.guard is None else core.guard.exit_status(pid)

    def shell(
        self,
        command: str,
        *,
        where: Where = "desktop",
        timeout: float = 60.0,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str | os.PathLike[str]] | None = None,
        limit: int = 1 << 20,
    ) -> CommandResult:
        """Run one command with bash, beside whatever else happens on the desktop. `open_shell` is for several.

        Args:
            command: What to run, of any number of lines. Its standard input is empty.
            where: See `open_shell`.
            timeout: Seconds after which it is killed, with all that it started.
            cwd: Where it runs; the home directory when not given.
            env: Added to its environment.
            limit: Bytes that are kept of its output, and of its errors: the beginning and the end.

        Returns:
            How it ended. What it leaves running in the background goes on in a container, unless the time was up, and is ended
            on this machine.

        Raises:
            ShellError: It could not be started.
            UnsupportedAction: This desktop has no machine of its own, and `where` does not say "host".
        """
        word = _word(_COMMAND, "shell", where)
        check_command(command)
        variables, place = program_variables("shell", env), program_directory("shell", cwd)
        core = self._core
        under_way: list[Shell] = []

        def run() -> CommandResult:
            with core.open_shell(
                where, "shell", cwd=place, env=variables, timeout=timeout, limit=limit, once=True
            ) as shell:
                under_way.append(shell)
                return shell.run(command)

        def interrupt() -> None:
            for shell in under_way:
                shell.interrupt()

        operation = self._operation(word, command, cwd=place, env=tuple(variables.items()))
        return self._run_command(operation, run, interrupt)

    def open_shell(
        self,
        *,
        where: Where = "desktop",
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str | os.PathLike[str]] | None = None,
        timeout: float = 120.0,
        limit: int = 1 << 20,
    ) -> Shell:
        """A shell that keeps its state from one command to the next. Closing it, or the desktop, ends all that it started.

        Args:
            where: "desktop" is the desktop's own machine, a container. "host" is this machine, with the rights of this process:
                nothing confines what a command does here.
            cwd: Where it begins; the home directory when not given.
            env: Added to its environment. On this machine that holds, besides, only what names the desktop, the locale, `PATH`,
                `HOME` and the like.
            timeout: Seconds that a command may take when it does not say otherwise.
            limit: Bytes that are kept of a command's output, and of its errors: the beginning and the end.

        Raises:
            ShellError: It could not be started.
            UnsupportedAction: This desktop has no machine of its own, and `where` does not say "host".
        """
        opening = _word(_OPENING, "open_shell", where)
        variables, directory = program_variables("open_shell", env), program_directory("open_shell", cwd)
        core = self._core

        def operate_in_it(
            command: str | None,
            own: Mapping[str, str],
            place: str | None,
            work: Callable[[], _T],
            end: Callable[[], None],
        ) -> _T:
            word = opening if command is None else _COMMAND[where]
            everything = tuple({**variables, **own}.items())
            operation = self._operation(word, command or "", cwd=place or directory, env=everything)
            return self._run_command(operation, work, end)

        def opened() -> Shell:
            return core.open_shell(
                where,
                "open_shell",
                cwd=directory,
                env=variables,
                timeout=timeout,
                limit=limit,
                operate=operate_in_it,
                judged=self.judged,
            )

        operation = self._operation(opening, cwd=directory, env=tuple(variables.items()))
        return self._run_command(operation, opened)

    def read_file(self, path: str, *, limit: int = 64 << 20) -> bytes:
        """A file of the desktop's container.

        Args:
            path: An absolute path.
            limit: Bytes; a larger file is refused.

        Raises:
            BackendError: It cannot be read, is a named pipe, or is too large.
            ActionError: The path is not absolute, or is no UTF-8.
            UnsupportedAction: This desktop has no container.
        """
        expect_text("read_file: path", path)
        expect_integer("read_file: limit", limit, 0)
        return self._on_machine(
            lambda: self._operation("read_file", path),
            lambda: self._core.machine("read_file").read_file(path, limit=limit),
        )

    def view_file(self, path: str, *, limit: int = 64 << 20) -> bytes | Listing:
        """A file of the desktop's container, or the names in a directory; nothing that a link leads to.

        To a policy it is a `read_file`.

        Args:
            path: An absolute path, as it is without links, `.`, `..` and a slash at the end.
            limit: Bytes; a larger file is refused.

        Raises:
            BackendError: It cannot be read, is too large, is neither a file nor a directory, or the path leads through a link.
            ActionError: The path is not absolute.
            UnsupportedAction: This desktop has no container.
        """
        expect_text("view_file: path", path)
        expect_integer("view_file: limit", limit, 0)
        return self._on_machine(
            lambda: self._operation("read_file", path),
            lambda: self._core.machine("view_file").view_file(path, limit=limit),
        )

    def write_file(self, path: str, data: bytes | str, *, new: bool = False) -> None:
        """Write a file in the desktop's container, whole or not at all; directories are made.

        Args:
            path: An absolute path.
            data: Its content; text becomes UTF-8.
            new: Only where there is nothing yet, and no link on the way.

        Raises:
            BackendError: It cannot be written, or what is there is no file.
            ActionError: The path is not absolute, or is no UTF-8.
            UnsupportedAction: This desktop has no container.
        """
        expect_text("write_file: path", path)
        expect_flag("write_file: new", new)
        if isinstance(data, bytes | bytearray | memoryview):
            content = bytes(data)
        else:
            content = _encoded("write_file: data, if it is no bytes,", data)
        self._on_machine(
            lambda: self._operation("write_file", path, size=len(content), data=content),
            lambda: self._core.machine("write_file").write_file(path, content, new=new),
        )

    def copy_in(self, source: str | os.PathLike[str], target: str) -> tuple[str, ...]:
        """Copy a file or a directory of this machine to the absolute path `target` in the container.

        A symbolic link in a directory is copied as a link, which leads to what is in the container.

        Returns:
            What is left out, as also a `LeftOutWarning` says: sockets, named pipes and devices in it.

        Raises:
            BackendError: It cannot be read or written.
            ActionError: There is no `source`, it is itself a socket, named pipe or device, or `target` is not absolute.
            UnsupportedAction: This desktop has no container.
        """
        here = expect_path("copy_in: source", source)
        expect_text("copy_in: target", target)
        return self._on_machine(
            lambda: self._operation("copy_in", f"{here} -> {target}"),
            lambda: self._core.machine("copy_in").copy_in(here, target),
        )

    def copy_out(self, source: str, target: str | os.PathLike[str], *, limit: int = 1 << 30) -> tuple[str, ...]:
        """Copy a file or a directory, by its absolute path in the container, to `target` on this machine.

        What is in the container is not trusted: links that may lead out of the tree, devices, named pipes, sockets and names
        with control characters are left out. The rest is copied whole or not at all. Files belong to the caller, who can read
        and write them; other rights are as in the container, less the umask.

        Args:
            source: An absolute path.
            target: Where it goes; its directory must be there, and a directory of that name must be empty.
            limit: Bytes that its files may have together, holes included; a larger tree, or one of more than 100,000 entries,
                is refused.

        Returns:
            What is not in the copy as it is in the container, with the reason of each: what was left out, or changed meanwhile.
            A `LeftOutWarning` says the same.

        Raises:
            BackendError: It cannot be read or written, is too large, or is itself what would be left out of a tree.
            ActionError: `source` is not absolute, or `target` has no directory.
            DeskhandTimeout: Nothing came for 20 s.
            UnsupportedAction: This desktop has no container.
        """
        expect_text("copy_out: source", source)
        here = expect_path("copy_out: target", target)
        expect_integer("copy_out: limit", limit, 1)
        return self._on_machine(
            lambda: self._operation("copy_out", f"{source} -> {here}"),
            lambda: self._core.machine("copy_out").copy_out(source, here, limit=limit),
        )

    def logs(self, program: str | Program | None = None) -> str:
        """What the container said of itself (which parts ended and were started again), or a program's last output.

        Args:
            program: What `start` returned, or a program's name: of several that were started under it, the one that wrote last.
                Also `x-server`, `window-manager`, `panel`, `bus` and `keep-logs`.

        Raises:
            BackendError: There is no log of it, or the engine does not tell.
            UnsupportedAction: This desktop has no container.
        """
        if program is not None and not isinstance(program, Program):
            expect_word("logs: program", expect_text("logs: program", program))
        name = "" if program is None else str(program.log) if isinstance(program, Program) else program
        return self._on_machine(lambda: self._operation("logs", name), lambda: self._core.machine("logs").logs(program))

    def usage(self) -> Usage:
        """What the container uses just now.

        Raises:
            BackendError: The engine does not tell.
            UnsupportedAction: This desktop has no container.
        """
        return self._on_machine(lambda: self._operation("usage"), lambda: self._core.machine("usage").usage())

    def get_clipboard(self) -> str | None:
        """The clipboard's text, None when it holds none.

        Raises:
            DeskhandTimeout: Its owner did not deliver in 5 s.
            BackendError: It is larger than 64 MiB.
        """
        core = self._core

        def read() -> str | None:
            with core.turn(_CLIPBOARD_LIMIT):
                # It has a connection of its own, which may live longer.
                core.backend.round_trip()
                return core.backend.read_clipboard(_CLIPBOARD_LIMIT)

        return self._operate(lambda: self._operation("get_clipboard"), read)

    def set_clipboard(self, text: str) -> None:
        """Put text on the clipboard; this desktop serves it for as long as it is open."""
        length = len(_encoded("set_clipboard: text", text))
        core = self._core

        def write() -> None:
            with core.turn(_CLIPBOARD_LIMIT):
                core.refuse_input("set_clipboard")
                core.backend.round_trip()
                core.backend.write_clipboard(text, _CLIPBOARD_LIMIT)

        self._operate(lambda: self._operation("set_clipboard", text, size=length), write)

    def resize(self, size: tuple[int, int]) -> None:
        """Change the size of the screen, where the server can.

        Raises:
            BackendError: It cannot, or not to this size.
            ActionError: A side is not 1 to 65,535 pixels long.
        """
        width, height = expect_size("resize: size", size, _LONGEST_SIDE)
        core = self._core

        def resize() -> None:
            with core.turn():
                core.refuse_input("resize")
                core.backend.resize(Size(width, height))

        self._operate(lambda: self._operation("resize", f"{width}x{height}"), resize)

    def probe(self, *, timeout: float = 1.0) -> Health:
        """Ask whether the desktop is started, live and ready; `health.ok`, or what is wrong.

        Over X11 that takes 0.4 ms, over VNC a round trip or two. To see that input arrives, the pointer is moved by a pixel and
        back (not while something is held). Over VNC no server tells where the pointer is: that it took a message and answered
        after it has to do, and nothing is sent before we have moved the pointer for the first time.

        Args:
            timeout: Seconds within which all must be answered. (A VNC server that hangs up is connected to again, which may
                take longer.)

        Raises:
            Closed: This object is closed.
        """
        check_timeout("probe", timeout)
        core = self._core

        def examine() -> Health:
            with core.turn():
                return core.examine(timeout)

        return self._operate(lambda: self._operation("probe"), examine)

    # --- for those who act for a model ---

    def operate(self, operation: Operation, work: Callable[[], _T]) -> _T:
        """Do something that is no method of the desktop's, such as `Operation("navigate", url)`, when it is allowed.

        What `work` does on this desktop is a part of it, which a `Guard` does not judge again.

        Args:
            operation: What it is. Its `call` and `desktop` are filled in.
            work: Does it.

        Raises:
            PolicyDenied: It is not allowed.
        """
        expect("operate: operation", operation, Operation)
        expect_callable("operate: work", work)
        self._core.refuse_if_closed()
        fields = {name: getattr(operation, name) for name in ("target", "size", "cwd", "env", "actions", "data")}
        return self._operate(lambda: self._operation(operation.type, **fields), work)

    def review(self, call: Call) -> tuple[SafetyCheck, ...]:
        """Ask about the call's safety checks that nobody was asked about yet.

        Only the `ask` of a `Guard` can say yes, for each check alone, whatever the policy allows; the policy may say no.

        Returns:
            Those that were answered with an explicit yes: all of them, and exactly what may be told to the provider as
            acknowledged.

        Raises:
            PolicyDenied: One of them was not, or nobody is there to be asked.
        """
        expect("review: call", call, Call)
        self._core.refuse_if_closed()
        with calling(call):
            self._operate(lambda: self._operation("safety_check"), lambda: None)
        if len(call.acknowledged) < len(call.safety_checks):
            raise PolicyDenied("safety_check", "the provider wants it confirmed, and there is no policy: pass ask=")
        return call.acknowledged

    # --- the end ---

    def interrupt(self) -> None:
        """From another thread: stop the call under way. It releases what it holds and raises."""
        self._core.interrupt()

    def _interrupt(self, caller: object) -> None:
        self._core.interrupt(caller)

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._core.stopped is not None

    def stop(self, reason: str = "it was stopped", *, timeout: float = _STOP_LIMIT) -> bool:
        """The kill switch: release everything held and take no input any more; from any thread, or from a signal handler.

        The call under way is broken off and raises `PolicyDenied`, as every later one does, through whichever view of the
        desktop. Questions that are open have no answer. The desktop can still be closed, and, where nobody stands in its gate,
        looked at. Within 100 ms all is released, unless the server itself hangs, or a single text of more than ten thousand
        characters is just being prepared. Commands under way are ended, with all that they have started, within 2 s.

        Args:
            reason: What later errors say.
            timeout: Seconds to wait until all has been released.

        Returns:
            True when all has been released. False when it has not in time, or when this thread is itself in a call of this
            desktop, as in a signal handler: then it is released as soon as the handler returns.
        """
        expect_text("stop: reason", reason)
        expect_seconds("stop: timeout", timeout)
        return self._core.stop(reason, timeout)

    def close(self) -> None:
        """Release everything, end the connection and what was launched. Harmless again, and where all of that is gone."""
        self._core.close()

    def renew(self) -> Desktop:
        """Make the desktop as it was when it was launched, and return a new object for it; this one is closed.

        What was started on it is ended, its home directory (where it has one of its own) is restored, the clipboard is empty,
        nothing is pressed, the pointer is in the middle, the window manager is a new one, and whoever was connected is not.
        The interceptors that the desktop was launched with stay; those of a view do not.

        Raises:
            UnsupportedAction: Its launcher knows no way.
            Closed: It is closed.
            DesktopLost: It is gone; everything has been ended, as by `close`.
            DeskhandError: Any other: a part did not come up again; everything has been ended, as by `close`.
        """
        core = self._core.renew()
        return self._view(core, core.interceptors).keep(*self._core.interceptors)

    def hand_over(self) -> Desktop:
        """Another object for this desktop as it is; with this one, and every view of it, nobody can do anything any more.

        The interceptors that the desktop was launched with stay; those of a view do not.

        Raises:
            Closed: It is closed.
            DesktopLost: It is gone.
        """
        core = self._core.hand_over()
        return self._view(core, core.interceptors)

    @property
    def successor(self) -> Desktop | None:
        """The object that `hand_over` or `renew` has made of this desktop."""
        core = self._core.successor
        return None if core is None else self._view(core, core.interceptors)

    def leave(self, socket: str) -> int:
        """End the connection and leave what was launched running; see `deskhand.launchers.local.launch.leave_running`.

        Returns:
            The process id of the guard, which listens at `socket` from now on.
        """
        if not expect_path("leave: socket", expect_text("leave: socket", socket)).startswith("/"):
            raise ActionError(f"leave: socket is an absolute path, not {shown(socket)}")
        return self._core.leave(socket)

    def keep(self, *interceptors: Interceptor) -> Self:
        """Put the owner's interceptors into the gate of this desktop, for its whole life. For those who launch it."""
        _check_interceptors("keep", interceptors)
        self._core.interceptors = self._interceptors = (*self._interceptors, *interceptors)
        return self

    # --- inside ---

    def _operation(
        self,
        type: str,
        target: str = "",
        *,
        size: int | None = None,
        cwd: str | None = None,
        env: tuple[tuple[str, str], ...] = (),
        actions: tuple[Action, ...] = (),
        data: bytes | None = None,
    ) -> Operation:
        return Operation(
            type,
            target,
            size,
            cwd,
            env,
            actions,
            data,
            call=current_call(),
            desktop=bare(self),
            attempt=ATTEMPT.get() or Attempt(),
        )

    def _operate(self, operation: Callable[[], Operation], work: Callable[[], _T]) -> _T:
        # First of all: with nobody in the gate, it costs nothing.
        if not self._interceptors:
            return work()
        return operate(self._core, self._interceptors, operation(), work)

    def _picture(
        self,
        size: PictureSize | None,
        region: tuple[int, int, int, int] | None,
        cursor: bool,  # noqa: FBT001 # private
        format: Format,
        quality: int,
    ) -> Screenshot:
        core = self._core
        with core.turn():
            core.look()
            return core.watch.picture(size, region, cursor=cursor, format=format, quality=quality)

    def _on_machine(self, operation: Callable[[], Operation], work: Callable[[], _T]) -> _T:
        if not self._interceptors:
            return self._told(work)
        return operate(self._core, self._interceptors, operation(), partial(self._told, work), beside=True)

    def _told(self, work: Callable[[], _T]) -> _T:
        with losses_told(self._core):
            return work()

    def _run_command(
        self, operation: Operation, work: Callable[[], _T], interrupt: Callable[[], None] = lambda: None
    ) -> _T:
        self._core.refuse_if_closed()
        # Also with nobody in the gate: `stop` ends a command by its attempt.
        told = partial(self._told, work)
        return operate(self._core, self._interceptors, operation, told, beside=True, interrupt=interrupt)

    def _needs_windows(self, what: str) -> None:
        backend = self._core.backend
        if not backend.has_windows:
            raise UnsupportedAction(backend.name, what, "only X11 tells about windows")

    def _check_window(self, number: int) -> None:
        windows = self._core.backend.windows()
        if all(window.id != number for window in windows):
            titles = ", ".join(f"{w.id:#x} {w.title!r}" for w in windows) or "none"
            raise ActionError(f"there is no window {number:#x}; the windows are: {titles}")


def bare(desktop: Desktop) -> Desktop:
    """A view of the desktop with nobody in its gate: for deskhand's own looks, and for a task's setup and evaluation."""
    if not desktop._interceptors:  # noqa: SLF001 # of the same module, also below
        return desktop
    return desktop._view(desktop._core, ())  # noqa: SLF001


def core_of(desktop: Desktop) -> Core:
    """What all views of a desktop share: tells whether two are of one desktop."""
    return desktop._core  # noqa: SLF001 # of the same module


def _check_interceptors(what: str, interceptors: Sequence[object]) -> None:
    for interceptor in interceptors:
        expect_like(f"{what}: an interceptor", interceptor, "before", "after")


def _window_id(what: str, window: Window | int) -> int:
    return expect_integer(f"{what}: window", window.id if isinstance(window, Window) else window, 0, _LARGEST_ID)


def _encoded(what: str, text: object) -> bytes:
    try:
        return expect_text(what, text).encode()
    except UnicodeEncodeError as error:
        raise ActionError(f"{what} has a lone surrogate, which is no character, at {error.start}") from None


def _window_name(window: Window | int) -> str:
    return f"{window:#x}" if isinstance(window, int) else f"{window.id:#x} {one_line(window.title, _LONGEST_TITLE)}"


def _word(words: Mapping[str, str], what: str, where: object) -> str:
    """The operation's name for where a command runs."""
    if not isinstance(where, str) or where not in words:
        raise ActionError(f"{what}: where is 'desktop' or 'host', not {shown(where)}")
    return words[where]
