"""The commands of Cua's computer-server, carried out on a desktop.

This module owns what each command does and answers. How commands arrive is in `cua.py`.

Coordinates are screen pixels. A scroll's numbers are wheel notches, positive up and left, as in Cua's own server (pynput's
sign).
Files and commands are those of the desktop's own machine: a container, never this machine.
"""

from __future__ import annotations

import base64
import binascii
import inspect
import shlex
from typing import TYPE_CHECKING, Any

from deskhand import actions as a
from deskhand._native import __version__
from deskhand.errors import ActionError, UnsupportedAction, shown
from deskhand.providers.outcomes import notes_on
from deskhand.providers.payload import expect_float, expect_int, expect_list, expect_object
from deskhand.providers.values import Picture

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deskhand._core.window import Window
    from deskhand.actions import Action
    from deskhand.desktop.desktop import Desktop

PROTOCOL = 1

ALIASES: Mapping[str, str] = {
    "type": "type_text",
    "key": "press_key",
    "tap": "left_click",
    "click": "left_click",
    "shell": "run_command",
    "exec": "run_command",
    "read_file": "read_text",
    "write_file": "write_text",
    "ls": "list_dir",
    "mkdir": "create_dir",
    "rm": "delete_file",
    "rmdir": "delete_dir",
}
"""Other names of commands."""

_CLICKS: Mapping[str, type[Action]] = {"left": a.LeftClick, "right": a.RightClick, "middle": a.MiddleClick}
_COMMAND_SECONDS = 120.0
_MOST_DIGITS = 10


class Commands:
    """The commands, each a method with the protocol's parameters; unknown parameters are ignored.

    Attributes:
        desktop: The desktop.
        programs: Whether programs may be started; on a local desktop they run on this machine.
    """

    def __init__(self, desktop: Desktop, *, programs: bool = False) -> None:
        """For a desktop."""
        self.desktop = desktop
        self.programs = programs

    @classmethod
    def listed(cls) -> dict[str, Callable[..., dict[str, Any]]]:
        """Every command by its name."""
        functions = {name: value for name, value in vars(cls).items() if inspect.isfunction(value)}
        return {name: value for name, value in functions.items() if name[0] != "_" and name != "answer"}

    @classmethod
    def catalogue(cls) -> dict[str, Any]:
        """The commands, as the protocol lists them."""
        listed: dict[str, Any] = {}
        for name, function in cls.listed().items():
            parameters = list(inspect.signature(function).parameters.values())[1:]
            listed[name] = {"params": [_described(parameter) for parameter in parameters]}
            aliases = [alias for alias, command in ALIASES.items() if command == name]
            listed[name] |= {"aliases": aliases} if aliases else {}
        return {"commands": listed, "aliases": dict(ALIASES)}

    def answer(self, command: object, params: object) -> dict[str, Any]:
        """Carry a command out.

        Args:
            command: Its name, or an alias.
            params: Its parameters, by name.

        Returns:
            The answer, without `success`.

        Raises:
            ActionError: There is no such command, or a parameter is missing or wrong.
            DeskhandError: It could not be carried out.
        """
        name = ALIASES.get(command, command) if isinstance(command, str) else ""
        function = self.listed().get(name)
        if function is None:
            raise ActionError(f"Unknown command: {shown(command)}")
        given = {} if params is None else expect_object("params", params)
        known = inspect.signature(function).parameters
        taken = {key: value for key, value in given.items() if key in known and key != "self"}
        try:
            inspect.signature(function).bind(self, **taken)
        except TypeError as error:
            raise ActionError(f"{name}: {error}") from None
        return function(self, **taken)

    # --- the server ---

    def version(self) -> dict[str, Any]:
        """The version of the protocol and of this package."""
        return {"protocol": PROTOCOL, "package": __version__}

    def get_desktop_environment(self) -> dict[str, Any]:
        """The desktop environment: none that the protocol knows."""
        return {"environment": "unknown"}

    def get_screen_size(self) -> dict[str, Any]:
        """Width and height of the screen."""
        width, height = self.desktop.size
        return {"size": {"width": width, "height": height}}

    def get_cursor_position(self) -> dict[str, Any]:
        """The position of the pointer."""
        x, y = self.desktop.pointer
        return {"position": {"x": x, "y": y}}

    def screenshot(self, format: str = "png", quality: int = 95) -> dict[str, Any]:
        """The screen, as `png` or `jpeg`."""
        kind = "jpeg" if str(format).lower() in ("jpg", "jpeg") else "png"
        seen = self.desktop.screenshot(
            format="jpeg" if kind == "jpeg" else "png", quality=expect_int("quality", quality)
        )
        return {"image_data": Picture.of(seen).base64, "format": kind}

    # --- the pointer ---

    def mouse_down(self, x: Any = None, y: Any = None, button: str = "left") -> dict[str, Any]:
        """Press a button and leave it pressed."""
        return self._act(a.MouseDown(button, _at(x, y)))

    def mouse_up(self, x: Any = None, y: Any = None, button: str = "left") -> dict[str, Any]:
        """Release a button."""
        return self._act(a.MouseUp(button, _at(x, y)))

    def left_click(self, x: Any = None, y: Any = None, button: str = "left") -> dict[str, Any]:
        """Click."""
        if not isinstance(button, str) or button not in _CLICKS:
            raise ActionError(f"a button is one of {', '.join(_CLICKS)}, not {shown(button)}")
        return self._act(_CLICKS[button](_at(x, y)))  # type: ignore[call-arg] # all clicks take a point

    def right_click(self, x: Any = None, y: Any = None) -> dict[str, Any]:
        """Click the right button."""
        return self._act(a.RightClick(_at(x, y)))

    def middle_click(self, x: Any = None, y: Any = None) -> dict[str, Any]:
        """Click the middle button."""
        return self._act(a.MiddleClick(_at(x, y)))

    def double_click(self, x: Any = None, y: Any = None, button: str = "left") -> dict[str, Any]:
        """Click a button twice."""
        return self._act(a.DoubleClick(_at(x, y), button=button))

    def move_cursor(self, x: Any, y: Any) -> dict[str, Any]:
        """Move the pointer."""
        return self._act(a.Move((expect_int("x", x), expect_int("y", y))))

    def drag_to(self, x: Any, y: Any, button: str = "left") -> dict[str, Any]:
        """Drag from the pointer's position."""
        return self._act(a.Drag([(expect_int("x", x), expect_int("y", y))], button))

    def drag(self, path: Any, button: str = "left") -> dict[str, Any]:
        """Drag along a path of `[x, y]` points."""
        return self._act(a.Drag(expect_list("path", path), button))

    def scroll(self, x: Any = 0, y: Any = 0) -> dict[str, Any]:
        """Turn the wheel by a number of notches up and to the right, as in pynput."""
        across, up = expect_int("x", x), expect_int("y", y)
        turns = [a.Scroll(direction="up", magnitude=up)] if up else []
        turns += [a.Scroll(direction="right", magnitude=across)] if across else []
        return self._act(*turns)

    def scroll_down(self, clicks: Any = 1) -> dict[str, Any]:
        """Turn the wheel down."""
        return self._act(a.Scroll(direction="down", magnitude=expect_int("clicks", clicks)))

    def scroll_up(self, clicks: Any = 1) -> dict[str, Any]:
        """Turn the wheel up."""
        return self._act(a.Scroll(direction="up", magnitude=expect_int("clicks", clicks)))

    def scroll_direction(self, direction: str, clicks: Any = 1) -> dict[str, Any]:
        """Turn the wheel up, down, left or right."""
        return self._act(a.Scroll(direction=str(direction).lower(), magnitude=expect_int("clicks", clicks)))

    # --- the keyboard and the clipboard ---

    def key_down(self, key: str) -> dict[str, Any]:
        """Press a key and leave it pressed."""
        return self._act(a.PressKeys([key]))

    def key_up(self, key: str) -> dict[str, Any]:
        """Release a key."""
        return self._act(a.ReleaseKeys([key]))

    def press_key(self, key: str) -> dict[str, Any]:
        """Press a key and release it."""
        return self._act(a.KeyPress([key]))

    def hotkey(self, keys: Any) -> dict[str, Any]:
        """Press a chord."""
        return self._act(a.KeyPress(expect_list("keys", keys)))

    def type_text(self, text: str) -> dict[str, Any]:
        """Type a text."""
        return self._act(a.Type(text))

    def copy_to_clipboard(self) -> dict[str, Any]:
        """The text of the clipboard."""
        return {"content": self.desktop.clipboard.read() or ""}

    def set_clipboard(self, text: str) -> dict[str, Any]:
        """Put a text into the clipboard."""
        self.desktop.clipboard.write(str(text))
        return {}

    # --- windows and programs ---

    def launch(self, app: str, args: Any = None) -> dict[str, Any]:
        """Start a program and wait for its window."""
        return {"pid": self._start(app, *expect_list("args", [] if args is None else args))}

    def open(self, target: str) -> dict[str, Any]:
        """Open a file or an address with the desktop's default program."""
        self._start("xdg-open", target)
        return {}

    def get_current_window_id(self) -> dict[str, Any]:
        """The active window."""
        active = [window.id for window in self.desktop.windows.list() if window.active]
        if not active:
            raise ActionError("no window is active")
        return {"window_id": active[0]}

    def get_application_windows(self, app: str) -> dict[str, Any]:
        """The windows whose class or title contains the name."""
        wanted = str(app).casefold()
        found = [w.id for w in self.desktop.windows.list() if wanted in f"{w.class_name}\n{w.title}".casefold()]
        return {"windows": found}

    def get_window_name(self, window_id: Any) -> dict[str, Any]:
        """A window's title."""
        return {"name": self._window(window_id).title}

    def get_window_size(self, window_id: Any) -> dict[str, Any]:
        """A window's width and height."""
        rect = self._window(window_id).rect
        return {"width": rect.width, "height": rect.height}

    def get_window_position(self, window_id: Any) -> dict[str, Any]:
        """A window's position."""
        rect = self._window(window_id).rect
        return {"x": rect.x, "y": rect.y}

    def activate_window(self, window_id: Any) -> dict[str, Any]:
        """Raise a window and give it the keyboard."""
        self.desktop.windows.activate(self._window(window_id))
        return {}

    def close_window(self, window_id: Any) -> dict[str, Any]:
        """Ask a window to close."""
        self.desktop.windows.close(self._window(window_id))
        return {}

    # --- the desktop's own machine ---

    def run_command(self, command: str, timeout: Any = None) -> dict[str, Any]:
        """Run a command with the desktop's shell, for at most `timeout` seconds (120 by default)."""
        seconds = _COMMAND_SECONDS if timeout is None else expect_float("timeout", timeout)
        ended = self.desktop.machine.run(str(command), timeout=seconds)
        code = -1 if ended.exit_code is None else ended.exit_code
        stderr = "\n".join(
            [*([ended.stderr] if ended.stderr else []), *notes_on(ended, ending=ended.exit_code is None)]
        )
        return {"stdout": ended.stdout, "stderr": stderr, "return_code": code}

    def file_exists(self, path: str) -> dict[str, Any]:
        """Whether the file exists."""
        return {"exists": self._asked("test", "-f", path)}

    def directory_exists(self, path: str) -> dict[str, Any]:
        """Whether the directory exists."""
        return {"exists": self._asked("test", "-d", path)}

    def list_dir(self, path: str) -> dict[str, Any]:
        """The names in a directory."""
        return {"files": [name for name in self._output_of("ls", "-1AN", "--", path).split("\n") if name]}

    def get_file_size(self, path: str) -> dict[str, Any]:
        """A file's size in bytes."""
        return {"size": int(self._output_of("stat", "-Lc", "%s", "--", path))}

    def create_dir(self, path: str) -> dict[str, Any]:
        """Make a directory and its parents."""
        self._output_of("mkdir", "-p", "--", path)
        return {}

    def delete_file(self, path: str) -> dict[str, Any]:
        """Remove a file."""
        self._output_of("rm", "--", path)
        return {}

    def delete_dir(self, path: str) -> dict[str, Any]:
        """Remove an empty directory."""
        self._output_of("rmdir", "--", path)
        return {}

    def read_text(self, path: str) -> dict[str, Any]:
        """A file's text."""
        return {"content": self.desktop.machine.read_file(str(path)).decode(errors="replace")}

    def write_text(self, path: str, content: str) -> dict[str, Any]:
        """Write a text to a file."""
        self.desktop.machine.write_file(str(path), str(content))
        return {}

    def read_bytes(self, path: str, offset: Any = 0, length: Any = None) -> dict[str, Any]:
        """A file's bytes, or a part of them, in base64."""
        start = expect_int("offset", offset)
        end = None if length is None else start + expect_int("length", length)
        return {"content_b64": base64.b64encode(self.desktop.machine.read_file(str(path))[start:end]).decode()}

    def write_bytes(self, path: str, content_b64: str, append: Any = False) -> dict[str, Any]:  # noqa: FBT002 # as in the protocol
        """Write bytes, given in base64, to a file, or append them to it."""
        try:
            data = base64.b64decode(str(content_b64), validate=True)
        except (binascii.Error, ValueError):
            raise ActionError("content_b64 is not base64") from None
        before = self.desktop.machine.read_file(str(path)) if append and self._asked("test", "-f", path) else b""
        self.desktop.machine.write_file(str(path), before + data)
        return {}

    def _act(self, *actions: Action) -> dict[str, Any]:
        self.desktop.perform(*actions)
        return {}

    def _start(self, *words: object) -> int:
        if not self.programs:
            raise UnsupportedAction(
                "this server", f"starting {shown(words[0])}", "its owner has not allowed it (--programs)"
            )
        return self.desktop.start([str(word) for word in words]).pid

    def _window(self, number: object) -> Window:
        # An id has 32 bits; Python refuses to convert thousands of digits.
        if isinstance(number, str) and number.isdecimal() and len(number) <= _MOST_DIGITS:
            number = int(number)
        wanted = expect_int("window_id", number)
        for window in self.desktop.windows.list():
            if window.id == wanted:
                return window
        raise ActionError(f"there is no window {wanted}")

    def _asked(self, *words: object) -> bool:
        return self.desktop.machine.run(shlex.join(map(str, words))).exit_code == 0

    def _output_of(self, *words: object) -> str:
        ended = self.desktop.machine.run(shlex.join(map(str, words)))
        if ended.exit_code != 0:
            raise UnsupportedAction(
                "the desktop's machine", str(words[0]), ended.stderr.strip() or "it did not end in time"
            )
        return ended.stdout


def _at(x: object, y: object) -> tuple[int, int] | None:
    return None if x is None and y is None else (expect_int("x", x), expect_int("y", y))


def _described(parameter: inspect.Parameter) -> dict[str, Any]:
    required = parameter.default is inspect.Parameter.empty
    return {"name": parameter.name, "required": required, "default": None if required else parameter.default}
