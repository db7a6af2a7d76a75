"""Carries out the steps of a set-up or a post-configuration of OSWorld on a desktop.

This module owns what each kind of step does here. It waits for windows and for a screen that is still, and never for a time.
What must never appear here: an evaluation, and whether a task can run.
"""

from __future__ import annotations

import re
import shlex
import sqlite3
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from deskhand import actions as a
from deskhand._core.geometry import Viewport
from deskhand._core.settle import Settle
from deskhand.desktop.access import bare, commands_of
from deskhand.episodes.tasks.osworld.browser_tabs import close_tabs
from deskhand.episodes.tasks.osworld.home import BIN, BROWSER_PROFILE
from deskhand.episodes.tasks.osworld.needs import HISTORY, opener_of
from deskhand.episodes.tasks.osworld.taskfile import at_home
from deskhand.episodes.tasks.suite._acting import find_window, wait_until
from deskhand.errors import ActionError, EpisodeError, LaunchFailed
from deskhand.providers import osworld

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from deskhand._core.window import Window
    from deskhand.episodes.tasks.context import TaskContext
    from deskhand.episodes.tasks.osworld.assets import Assets
    from deskhand.episodes.tasks.osworld.taskfile import SetupStep
    from deskhand.machine.interface import CommandResult

PASSWORD = "password"  # noqa: S105 # upstream's, for a user that has no rights here
"""What upstream puts into commands as the user's password."""

_STILL = Settle(quiet=0.3, reaction=0.5, timeout=20.0)
_COMMAND_LIMIT = 120.0
_START_LIMIT = 60.0
_WINDOW_LIMIT, _LATE_WINDOW_LIMIT = 15.0, 2.0
_UNTIL_LIMIT = 60.0
_LARGEST_OUTPUT = 1 << 20
# Programs that show a window when they are launched.
_GRAPHICAL = frozenset(
    """
    chromium code eog evince firefox gedit gimp gnome-calculator gnome-control-center gnome-terminal google-chrome libreoffice
    localc loimpress lowriter mousepad nautilus pcmanfm soffice thunderbird totem vlc xterm
    """.split()  # noqa: SIM905 # a list of so many words
)
_TERMINALS = ("gnome-terminal", "xterm -T Terminal -fa Monospace -fs 11")
_BRIDGE = "socat"
_MODES = {
    **dict.fromkeys(("csv", "ods", "ots", "xls", "xlsm", "xlsx"), "--calc"),
    **dict.fromkeys(("odp", "otp", "pot", "potx", "pps", "ppsx", "ppt", "pptx"), "--impress"),
}
_KILL = re.compile(r"(?:pkill|killall)(?:\s+-\S+)*\s+([\w.-]+)")


class Steps:
    """The steps of one task on one desktop."""

    def __init__(self, context: TaskContext, assets: Assets, folder: Path | None = None, *, late: bool = False) -> None:
        """Carry out steps on a desktop.

        Args:
            context: The desktop.
            assets: The cache with the files that are downloaded.
            folder: Where the output of commands is kept for the evaluation, if a step names a file for it.
            late: These are steps of a post-configuration: what they name may be gone, because an agent was here.
        """
        self._context = context
        self._desktop = bare(context.desktop)
        self._assets = assets
        self._folder = folder
        self._late = late

    def carry_out(self, steps: Sequence[SetupStep]) -> None:
        """Carry out steps in their order.

        Raises:
            EpisodeError: A step failed; the message names it.
        """
        for number, step in enumerate(steps, 1):
            do = _DO.get(step.kind)
            where = f"step {number} of {len(steps)}, {step.kind}"
            if do is None:
                raise EpisodeError(f"{where}: it is not carried out here", "see `deskhand run osworld:PATH --plan`")
            try:
                do(self, **_known(do, self._filled(step.parameters)))
            except (EpisodeError, LaunchFailed, ActionError, OSError) as error:
                raise EpisodeError(f"{where}: {error}") from error
        self._settle()

    # --- kinds ---

    def _download(self, files: Sequence[Mapping[str, str]]) -> None:
        for file in files:
            self._context.write(file["path"], self._assets.read(file["url"]))

    def _open(self, path: str) -> None:
        ending = path.rpartition(".")[2].lower()
        opener = opener_of(path)
        options = ["--nologo", "--norestore", *([_MODES[ending]] if ending in _MODES else [])]
        command = [opener, *(options if opener == "libreoffice" else []), path]
        self._start(command, title=path.rstrip("/").rpartition("/")[2])

    def _launch(self, command: str | Sequence[str], *, shell: object = False) -> None:
        words = (
            command if isinstance(command, list) else ["bash", "-c", str(command)] if shell else str(command).split()
        )
        line = str(command) if shell else shlex.join(words)
        names = {word.rpartition("/")[2] for word in line.replace(";", " ").split()}
        if words[0].rpartition("/")[2] == _BRIDGE:
            return
        if killed := _KILL.fullmatch(line.strip()):
            self._end_programs(killed[1])
        elif names & _GRAPHICAL:
            self._start(words)
        else:
            self._run(line)

    def _execute(
        self,
        command: str | Sequence[str],
        *,
        shell: object = False,
        stdout: str = "",
        stderr: str = "",
        until: Mapping[str, Any] | None = None,
    ) -> None:
        source = _python_of(command)
        if source is not None and "pyautogui" in source and self.act(source):
            return
        words = [command] if isinstance(command, str) else [str(word) for word in command]
        line = words[0] if len(words) == 1 else " ".join(words) if shell else shlex.join(words)
        if (killed := _KILL.fullmatch(line.strip())) or (
            len(words) == 3 and words[1] == "-c" and (killed := _KILL.fullmatch(words[2].strip()))
        ):
            self._end_programs(killed[1])
            return
        if (
            shlex.split(line)[:1]
            and shlex.split(line)[0].rpartition("/")[2] in _GRAPHICAL
            and "--convert-to" not in line
        ):
            self._start(["bash", "-c", line])
            return
        done = self._run(line)
        if until:
            wait_until(lambda: _fits(self._run(line), until), f"what {line[:80]!r} is run for", timeout=_UNTIL_LIMIT)
        for name, text in ((stdout, done.stdout), (stderr, done.stderr)):
            if name and self._folder is not None:
                (self._folder / name).write_text(text, encoding="utf-8")

    def _sleep(self) -> None:
        self._settle()

    def _activate_window(self, window_name: str, *, strict: object = False, by_class: object = False) -> None:
        window = self._window(window_name, strict=bool(strict), by_class=bool(by_class))
        if window is not None:
            self._desktop.windows.activate(window)
            self._settle()

    def _close_window(self, window_name: str, *, strict: object = False, by_class: object = False) -> None:
        window = self._window(window_name, strict=bool(strict), by_class=bool(by_class))
        if window is not None:
            self._desktop.windows.close(window)
            self._settle()

    def _open_tabs(self, urls_to_open: Sequence[str]) -> None:
        for url in urls_to_open:
            if urlsplit(url).scheme not in {"about", "chrome", "file", "http", "https"}:
                raise EpisodeError(f"{url[:200]!r} is no address that a browser opens")
            if find_window(self._desktop, class_name="chrom") is None:
                self._start(["google-chrome", url])
            else:
                self._run(shlex.join(["google-chrome", url]))
                self._settle()

    def _close_tabs(self, urls_to_close: Sequence[str]) -> None:
        close_tabs(self._context, self._context.path(BROWSER_PROFILE), urls_to_close)
        self._settle()

    def _browse_history(self, history: Sequence[Mapping[str, Any]]) -> None:
        data = _with_visits(self._assets.read(HISTORY), history, datetime.now(UTC))
        self._context.write(f"{BROWSER_PROFILE}/Default/History", data)

    # --- what they share ---

    def _filled(self, value: Any) -> Any:
        """Parameters with upstream's names in braces filled in, and this desktop's home directory."""
        width, height = self._desktop.size
        names = {
            "{CLIENT_PASSWORD}": PASSWORD,
            "{SCREEN_WIDTH_HALF}": str(width // 2),
            "{SCREEN_HEIGHT_HALF}": str(height // 2),
            "{SCREEN_WIDTH}": str(width),
            "{SCREEN_HEIGHT}": str(height),
        }
        return at_home(_replaced(value, names), self._context.home)

    def _settle(self) -> None:
        self._desktop.perform(settle=_STILL, format="raw")

    def _path(self) -> str:
        return f'PATH={shlex.quote(self._context.path(BIN))}:"$PATH"'

    def _run(self, line: str) -> CommandResult:
        return run_command(self._context, line)

    def _start(self, words: Sequence[str], *, title: str = "") -> None:
        """Start a program, and return when a window of it is up and the screen is still."""
        script = f'{self._path()} exec "$@"'
        try:
            self._context.desktop.start(
                ["bash", "-c", script, "start", *words], cwd=self._context.home, timeout=_START_LIMIT
            )
        except LaunchFailed:
            # It may have handed its work to a running instance, which shows it in a window that is there already.
            if find_window(self._desktop, title) is None or not title:
                raise
        if title:
            wait_until(
                lambda: find_window(self._desktop, title) is not None, f"a window with {title!r}", timeout=_START_LIMIT
            )
        self._settle()

    def _window(self, name: str, *, strict: bool, by_class: bool) -> Window | None:
        """The window that a name means; None if it does not come, which upstream lets pass too."""

        def found() -> Window | None:
            fitting = [w for w in self._desktop.windows.list() if _is_called(w, name, strict=strict, by_class=by_class)]
            return fitting[-1] if fitting else None

        limit = _LATE_WINDOW_LIMIT if self._late else _WINDOW_LIMIT
        try:
            wait_until(lambda: found() is not None, f"the window {name!r}", timeout=limit)
        except EpisodeError:
            return None
        return found()

    def _end_programs(self, name: str) -> None:
        """End this desktop's programs of a name, and no others of this machine."""
        pattern = name.replace("chrome", "chrom").removesuffix("-server")
        shown = [w.pid for w in self._desktop.windows.list() if pattern in w.class_name.lower() and w.pid is not None]
        if self._desktop.has_machine:
            self._run(f"pkill -f {shlex.quote(pattern)}")
        else:
            # A desktop's programs have its home directory in their environment, unless they write over that, as browsers do.
            look = (
                f"pgrep -f {shlex.quote(pattern)} | while read -r p; do tr '\\0' '\\n' </proc/$p/environ 2>/dev/null | "
            )
            look += f"grep -qxF HOME={shlex.quote(self._context.home)} && [ $p != $$ ] && kill $p; done"
            self._run(f"kill {' '.join(map(str, shown))} 2>/dev/null; {look}; true")
        wait_until(
            lambda: find_window(self._desktop, class_name=pattern) is None, f"the end of {name}", timeout=_START_LIMIT
        )

    def act(self, source: str) -> bool:
        """Do with the desktop's own input what a source for PyAutoGUI says; False if it says more than input."""
        size = self._desktop.size
        try:
            call = osworld.decode(source, Viewport(size, size), pointer=self._desktop.pointer)
        except ActionError:
            return False
        for step in call.steps:
            if isinstance(step, a.Wait):
                self._settle()
            elif isinstance(step, a.KeyPress) and [key.lower() for key in step.keys] in (
                ["ctrl", "alt", "t"],
                ["ctrl+alt+t"],
            ):
                self._open_terminal()
            elif isinstance(step, a.Action):
                self._desktop.perform(step, settle=_STILL, format="raw")
        return True

    def _open_terminal(self) -> None:
        """What the key combination does on upstream's desktop."""
        for terminal in _TERMINALS:
            words = shlex.split(terminal)
            if self._run(f"command -v {words[0]}").exit_code == 0:
                self._start(words)
                return
        raise EpisodeError("there is no terminal: install gnome-terminal or xterm")


def run_command(context: TaskContext, line: str, *, timeout: float = _COMMAND_LIMIT) -> CommandResult:
    """Run a command line as upstream's server does: with bash, at home, with the names of programs that tasks know."""
    path = f'export PATH={shlex.quote(context.path(BIN))}:"$PATH"\n'
    commands = commands_of(bare(context.desktop))
    return commands.run(
        path + line, cwd=context.home, env={"HOME": context.home}, timeout=timeout, limit=_LARGEST_OUTPUT
    )


_DO: Final[Mapping[str, Callable[..., None]]] = {
    "activate_window": Steps._activate_window,  # noqa: SLF001 # its own table
    "chrome_close_tabs": Steps._close_tabs,  # noqa: SLF001
    "chrome_open_tabs": Steps._open_tabs,  # noqa: SLF001
    "close_window": Steps._close_window,  # noqa: SLF001
    "command": Steps._execute,  # noqa: SLF001
    "download": Steps._download,  # noqa: SLF001
    "execute": Steps._execute,  # noqa: SLF001
    "launch": Steps._launch,  # noqa: SLF001
    "open": Steps._open,  # noqa: SLF001
    "sleep": Steps._sleep,  # noqa: SLF001
    "update_browse_history": Steps._browse_history,  # noqa: SLF001
}


def _known(do: Callable[..., None], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that a step uses; others, such as a time to sleep, are left out."""
    names = do.__code__.co_varnames[: do.__code__.co_argcount + do.__code__.co_kwonlyargcount]
    return {name: value for name, value in parameters.items() if name in names and name != "self"}


def _replaced(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        for name, text in names.items():
            value = value.replace(name, text)
        return value
    if isinstance(value, dict):
        return {name: _replaced(each, names) for name, each in value.items()}
    return [_replaced(each, names) for each in value] if isinstance(value, list) else value


def _python_of(command: object) -> str | None:
    """The source that a command gives to Python; None if it is another command."""
    if isinstance(command, list) and len(command) == 3 and command[1] == "-c":
        return str(command[2]) if str(command[0]).rpartition("/")[2] in {"python", "python3"} else None
    return None


def _fits(done: CommandResult, until: Mapping[str, Any]) -> bool:
    return (
        ("returncode" in until and done.exit_code == until["returncode"])
        or ("stdout" in until and str(until["stdout"]) in done.stdout)
        or ("stderr" in until and str(until["stderr"]) in done.stderr)
    )


def _is_called(window: Window, name: str, *, strict: bool, by_class: bool) -> bool:
    shown, wanted = (_plain(text) for text in (window.class_name if by_class else window.title, name))
    return shown == wanted if strict else wanted in shown


def _plain(text: str) -> str:
    """A title without what differs between versions: case, kinds of dashes, the name of the browser."""
    return re.sub("[\u2010-\u2015]", "-", text.lower()).replace("google chrome", "chromium").strip()


def _with_visits(empty: bytes, history: Sequence[Mapping[str, Any]], now: datetime) -> bytes:
    """An empty history of the browser with visits in it, as upstream writes them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "History")
        path.write_bytes(empty)
        database = sqlite3.connect(path)
        try:
            for visit in history:
                at = now - timedelta(seconds=visit["visit_time_from_now_in_seconds"])
                stamp = int((at - datetime(1601, 1, 1, tzinfo=UTC)).total_seconds() * 1_000_000)
                added = database.execute(
                    "INSERT INTO urls (url, title, visit_count, typed_count, last_visit_time, hidden)"
                    " VALUES (?, ?, 1, 0, ?, 0)",
                    (visit["url"], visit["title"], stamp),
                )
                database.execute(
                    "INSERT INTO visits (url, visit_time, from_visit, transition, segment_id, visit_duration)"
                    " VALUES (?, ?, 0, 805306368, 0, 0)",
                    (added.lastrowid, stamp),
                )
            database.commit()
        except sqlite3.Error as error:
            raise EpisodeError(f"the empty history of the browser cannot be filled: {error}") from error
        finally:
            database.close()
        return path.read_bytes()
