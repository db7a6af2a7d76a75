"""OSWorld's guest server: what each of its requests does on a desktop, and what it answers.

The names of requests, fields and answers are those of OSWorld (https://github.com/xlang-ai/OSWorld,
`desktop_env/server/main.py`). How requests arrive is in `guest_server.py`, and how commands and source are carried out in
`guest_commands.py`; the machine is in `guest_machine.py`.
"""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from deskhand.errors import ActionError, shown
from deskhand.providers.osworld.accessibility import accessibility_xml
from deskhand.providers.osworld.guest_commands import (
    COMMAND_SECONDS,
    FIND_PYTHON,
    command_of,
    execute,
    output_of,
    perform_source,
)
from deskhand.providers.osworld.guest_machine import GuestMachine
from deskhand.providers.osworld.pyautogui import without_pyautogui
from deskhand.providers.payload import expect_float, expect_object, expect_string

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deskhand._core.window import Window
    from deskhand.desktop.desktop import Desktop

_PYTHON_SECONDS, _SCRIPT_SECONDS, _LONGEST_SCRIPT = 30.0, 100.0, 1800.0
# A program such as socat has no window, and does not report that.
_LAUNCH_SECONDS = 3.0
_OPEN_SECONDS, _DOWNLOAD_SECONDS, _LONGEST_VERIFICATION = 120.0, 320.0, 600.0
_LARGEST_DOWNLOAD = 1 << 30
_LOOK = 0.1
_WALLPAPER = ("org.gnome.desktop.background", "picture-uri")


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: bytes of a media type, a text, or anything that becomes JSON.

    Attributes:
        content: The content.
        code: The status code.
        media_type: Of bytes.
        file: The name under which bytes are sent as an attachment.
    """

    content: object
    code: int = 200
    media_type: str = "application/octet-stream"
    file: str | None = None


class Guest:
    """The requests, each a method that gets the JSON object or the form of the request.

    Attributes:
        desktop: The desktop.
        machine: The machine of its programs.
    """

    def __init__(
        self,
        desktop: Desktop,
        *,
        programs: bool,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """For a desktop; `programs` says whether programs and commands may be run."""
        self.desktop: Desktop = desktop
        self.machine: GuestMachine = GuestMachine(desktop, programs=programs)
        self._clock = clock
        self._sleep = sleep

    # --- input and commands ---

    def execute(self, given: Mapping[str, Any]) -> Answer:
        """Run a command, or do what its PyAutoGUI source says."""
        words, line = command_of(given, self.machine)
        return Answer({"status": "success", **execute(self.machine, words, line)})

    def execute_with_verification(self, given: Mapping[str, Any]) -> Answer:
        """The same, and wait until a window exists or another command succeeds."""
        words, line = command_of(given, self.machine)
        verification = expect_object("verification", given.get("verification") or {})
        limit = min(_LONGEST_VERIFICATION, expect_float("max_wait_time", given.get("max_wait_time", 10)))
        interval = max(_LOOK, expect_float("check_interval", given.get("check_interval", 1)))
        done = execute(self.machine, words, line)
        if not verification:
            return Answer({"status": "success", **done})
        begun = self._clock()
        while (waited := self._clock() - begun) < limit:
            if self._verified(verification):
                return Answer({"status": "success", **done, "verification": "passed", "wait_time": waited})
            self._sleep(interval)
        failed = {"status": "verification_failed", **done, "verification": "failed", "wait_time": limit}
        return Answer(failed, 500)

    def run_python(self, given: Mapping[str, Any]) -> Answer:
        """Run source with Python, or do what it says if it is PyAutoGUI's."""
        code = given.get("code")
        if not code:
            return Answer({"status": "error", "message": "Code not supplied!", "error": "Code not supplied!"}, 400)
        source = expect_string("code", code)
        done = perform_source(self.machine, source)
        if done is None:
            # Read from a pipe: an argument has at most 128 KiB, and a file would have to be removed.
            line = f"{FIND_PYTHON} <(printf %s {shlex.quote(without_pyautogui(source))})"
            ended = self.machine.run(line, timeout=_PYTHON_SECONDS)
            if ended.exit_code is None:
                why = "Execution timeout: Code took too long to execute"
                late = {
                    "status": "error",
                    "message": why,
                    "error": "TimeoutExpired",
                    "need_more": False,
                    "output": None,
                }
                return Answer(late, 500)
            done = output_of(ended)
        output, error, status = done["output"], done["error"], done["returncode"]
        if status != 0 and not error:
            error = f"Process exited with code {status}"
        both = "\n".join(part for part in (output, error) if part)
        details = {"message": both, "need_more": False, "output": output, "error": error, "return_code": status}
        return Answer({"status": "error" if status else "success", **details})

    def run_bash_script(self, given: Mapping[str, Any]) -> Answer:
        """Run a script with bash; its errors are in its output."""
        script, place = given.get("script"), given.get("working_dir")
        if not script:
            return _script_failed("Script not supplied!", 400)
        seconds = expect_float("timeout", given.get("timeout") or _SCRIPT_SECONDS)
        cwd = None if not place else self.machine.path(expect_string("working_dir", place))
        if cwd is not None and self.machine.ask("test", "-d", cwd) is None:
            return _script_failed(f"Working directory does not exist: {cwd}", 400)
        line = f"bash <(printf %s {shlex.quote(expect_string('script', script))}) 2>&1"
        limit = min(_LONGEST_SCRIPT, max(1.0, seconds))
        ended = self.machine.run(line, timeout=limit, cwd=cwd)
        if ended.exit_code is None:
            return _script_failed(f"Script execution timed out after {limit:g} seconds", 500)
        status = "error" if ended.exit_code else "success"
        return Answer({"status": status, "output": ended.stdout, "error": "", "returncode": ended.exit_code})

    def launch(self, given: Mapping[str, Any]) -> Answer:
        """Start a program, and wait a little for its window."""
        words, _ = command_of(given, self.machine)
        if not words:
            raise ActionError("the command is empty")
        why = self.machine.start(words, timeout=_LAUNCH_SECONDS)
        said = given.get("command") if given.get("shell") else " ".join(words)
        return Answer(f"{said} launched successfully" + (f" ({why})" if why else ""))

    # --- what the screen shows ---

    def screenshot(self, _: Mapping[str, Any]) -> Answer:
        """The screen with the pointer, as PNG."""
        return Answer(self.desktop.screenshot().data, media_type="image/png")

    def accessibility(self, _: Mapping[str, Any]) -> Answer:
        """The accessibility tree, as XML."""
        return Answer({"AT": accessibility_xml(self.desktop.elements())})

    def terminal(self, _: Mapping[str, Any]) -> Answer:
        """The text of the terminal that has the focus, in the active window; null if there is none."""
        elements = self.desktop.elements()
        active = [each for each in elements if each.depth == 0 and "active" in each.states]
        inside = [each for window in active for each in elements.within(window.ref)]
        found = [each for each in inside if each.native_role == "terminal" and "focused" in each.states]
        text = (found[0].text or "").rstrip() if len(found) == 1 else None
        return Answer({"output": text, "status": "success"})

    def screen_size(self, _: Mapping[str, Any]) -> Answer:
        """Width and height of the screen."""
        width, height = self.desktop.size
        return Answer({"width": width, "height": height})

    def cursor_position(self, _: Mapping[str, Any]) -> Answer:
        """The position of the pointer."""
        return Answer([*self.desktop.pointer])

    def window_size(self, given: Mapping[str, Any]) -> Answer:
        """Width and height of the first window of a class."""
        wanted = given.get("app_class_name")
        if wanted is None:
            return Answer({"error": "app_class_name is required"}, 400)
        name = expect_string("app_class_name", wanted)
        for window in self.desktop.windows.list():
            if window.class_name.casefold() == name.casefold():
                return Answer({"width": window.rect.width, "height": window.rect.height})
        return Answer({"error": f"there is no window of the class {shown(name)}"}, 404)

    def activate_window(self, given: Mapping[str, Any]) -> Answer:
        """Raise a window and give it the keyboard."""
        window = self._window(given)
        if isinstance(window, Answer):
            return window
        self.desktop.windows.activate(window)
        return Answer("Window activated successfully")

    def close_window(self, given: Mapping[str, Any]) -> Answer:
        """Ask a window to close."""
        window = self._window(given)
        if isinstance(window, Answer):
            return window
        self.desktop.windows.close(window)
        return Answer("Window closed successfully.")

    # --- the machine ---

    def platform(self, _: Mapping[str, Any]) -> Answer:
        """Always `Linux`."""
        return Answer("Linux")

    def desktop_path(self, _: Mapping[str, Any]) -> Answer:
        """The path of the directory `Desktop`."""
        path = self.machine.path("~/Desktop")
        if self.machine.ask("test", "-d", path) is None:
            return Answer({"error": "Unsupported operating system or desktop path not found"}, 404)
        return Answer({"desktop_path": path})

    def list_directory(self, given: Mapping[str, Any]) -> Answer:
        """What is in a directory and below it."""
        if "path" not in given:
            return Answer({"error": "Missing 'path' parameter"}, 400)
        tree = self.machine.tree(expect_string("path", given["path"]))
        if tree is None:
            return Answer({"error": "The provided path is not a directory"}, 400)
        return Answer({"directory_tree": tree})

    def file(self, given: Mapping[str, Any]) -> Answer:
        """A file."""
        if "file_path" not in given:
            return Answer({"error": "file_path is required"}, 400)
        name = expect_string("file_path", given["file_path"])
        data = self.machine.read(name)
        if data is None:
            return Answer({"error": "File not found"}, 404)
        return Answer(data, file=PurePosixPath(name).name)

    def upload(self, path: str, data: bytes) -> Answer:
        """Write a file."""
        self.machine.write(path, data)
        return Answer(f"File Uploaded: {len(data)} bytes")

    def download_file(self, given: Mapping[str, Any]) -> Answer:
        """Have the desktop's machine download a file."""
        url, name = given.get("url"), given.get("path")
        if not url or not name:
            return Answer("Path or URL not supplied!", 400)
        path = self.machine.path(expect_string("path", name))
        words = [
            *("curl", "--fail", "--silent", "--show-error", "--location", "--proto", "=http,https", "--retry", "2"),
            *("--max-time", "300", "--max-filesize", str(_LARGEST_DOWNLOAD), "--create-dirs", "--output", path),
            *("--", expect_string("url", url)),
        ]
        ended = self.machine.run(shlex.join(words), timeout=_DOWNLOAD_SECONDS)
        if ended.exit_code != 0:
            why = ended.stderr.strip() or "it took too long"
            return Answer(f"Failed to download {url}. No retries left. Error: {why}", 500)
        return Answer("File downloaded successfully")

    def open_file(self, given: Mapping[str, Any]) -> Answer:
        """Open a file with its default program, or start a program, and wait for its window."""
        if not given.get("path"):
            return Answer("Path not supplied!", 400)
        name = expect_string("path", given["path"])
        path = self.machine.path(name)
        if self.machine.ask("test", "-e", path) is not None:
            words, titles = ["xdg-open", path], {PurePosixPath(path).name, PurePosixPath(path).stem}
        elif "/" not in name and self.machine.ask("bash", "-c", 'command -v -- "$1"', "bash", name) is not None:
            words, titles = [name], {name}
        else:
            return Answer(f"Application/file not found: {name}", 404)
        why = self.machine.start(words, timeout=_LAUNCH_SECONDS)
        until = self._clock() + _OPEN_SECONDS
        while self._clock() < until:
            found = [each for each in self.desktop.windows.list() if any(title in each.title for title in titles)]
            if found:
                self.desktop.windows.activate(found[0])
                return Answer("File opened and window activated successfully")
            self._sleep(_LOOK)
        note = f" ({why})" if why else ""
        return Answer(f"Failed to find window for {name} within {_OPEN_SECONDS:g} seconds.{note}", 500)

    def wallpaper(self, _: Mapping[str, Any]) -> Answer:
        """The picture that the settings of GNOME name as wallpaper."""
        setting = self.machine.ask("gsettings", "get", *_WALLPAPER)
        path = (setting or "").strip().strip("'").removeprefix("file://")
        data = self.machine.read(path) if path else None
        if data is None:
            return Answer({"error": "Wallpaper file not found"}, 404)
        return Answer(data, media_type="image/png")

    def change_wallpaper(self, given: Mapping[str, Any]) -> Answer:
        """Name a picture as wallpaper in the settings of GNOME."""
        if not given.get("path"):
            return Answer("Path not supplied!", 400)
        path = self.machine.path(expect_string("path", given["path"]))
        if self.machine.ask("test", "-e", path) is None:
            return Answer(f"File not found: {path}", 404)
        ended = self.machine.run(
            shlex.join(["gsettings", "set", *_WALLPAPER, f"file://{path}"]), timeout=COMMAND_SECONDS
        )
        if ended.exit_code != 0:
            return Answer(f"Failed to change wallpaper. Error: {ended.stderr.strip()}", 500)
        return Answer("Wallpaper changed successfully")

    # --- how ---

    def _verified(self, verification: Mapping[str, Any]) -> bool:
        window, command = verification.get("window_exists"), verification.get("command_success")
        if window is not None:
            title = expect_string("window_exists", window).casefold()
            if not any(title in each.title.casefold() for each in self.desktop.windows.list()):
                return False
        if command is not None:
            return self.machine.run(expect_string("command_success", command), timeout=5.0).exit_code == 0
        return True

    def _window(self, given: Mapping[str, Any]) -> Window | Answer:
        """The first window that is meant, as wmctrl finds it; or the answer that there is none."""
        if not given.get("window_name"):
            return Answer("window_name required", 400)
        name = expect_string("window_name", given["window_name"])
        strict, by_class = bool(given.get("strict")), bool(given.get("by_class"))
        for window in self.desktop.windows.list():
            # A class may be asked for together with the name of its instance: `google-chrome.Google-chrome`.
            said, wanted = (window.class_name, name) if by_class else (window.title, name)
            if strict:
                found = said == wanted or (by_class and wanted.endswith(f".{said}"))
            else:
                said, wanted = said.casefold(), wanted.casefold()
                found = wanted in said or (by_class and bool(said) and wanted.endswith(f".{said}"))
            if found:
                return window
        return Answer(f"Window {name} not found", 404)


def _script_failed(why: str, code: int) -> Answer:
    return Answer({"status": "error", "output": why, "error": "", "returncode": -1}, code)
