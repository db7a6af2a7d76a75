"""What `start` returns: the program's own window, or why there is none."""

from __future__ import annotations

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import deskhand
from deskhand import ActionError, DeskhandTimeout, LaunchFailed, ShellError
from faults.helpers import need, until, x_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def strangers(desktop: deskhand.Desktop) -> Iterator[Callable[[str], None]]:
    """Opens a window of somebody else's, and returns when it is listed."""
    opened: list[subprocess.Popen[bytes]] = []

    def stranger(title: str) -> None:
        opened.append(subprocess.Popen([need("xterm", "xterm"), "-T", title], env=x_environment(desktop)))
        with deskhand.connect(f"x11:{desktop.display}", view_only=True, xauthority=desktop.xauthority) as looking:
            until(lambda: any(window.title == title for window in looking.windows.list()), 30, "the stranger's window")

    yield stranger
    for process in opened:
        process.kill()
        process.wait()


def waiting(folder: Path, then: str) -> tuple[list[str], Path]:
    """A program that begins when its gate is opened for writing."""
    gate = folder / "gate"
    os.mkfifo(gate)
    return ["sh", "-c", f"read line <{gate}; {then}"], gate


@pytest.mark.parametrize("then", ["exec xterm -T mine", "xterm -T mine & exit 0", "setsid xterm -T mine & wait"])
def test_a_window_of_somebody_elses_is_not_its(
    desktop: deskhand.Desktop, strangers: Callable[[str], None], tmp_path: Path, then: str
) -> None:
    command, gate = waiting(tmp_path, then)
    with ThreadPoolExecutor(1) as pool:
        started = pool.submit(desktop.start, command)
        with gate.open("w") as opened:
            strangers("not mine")
            opened.write("\n")
        assert started.result().window.title == "mine"


def test_a_program_that_fails_beside_somebody_elses_window(
    desktop: deskhand.Desktop, strangers: Callable[[str], None], tmp_path: Path
) -> None:
    command, gate = waiting(tmp_path, "exit 7")
    with ThreadPoolExecutor(1) as pool:
        started = pool.submit(desktop.start, command)
        with gate.open("w") as opened:
            strangers("not mine")
            opened.write("\n")
        with pytest.raises(LaunchFailed, match="ended with status 7"):
            started.result()


def test_a_program_that_hands_over_to_one_that_runs(desktop: deskhand.Desktop, tmp_path: Path) -> None:
    """The second one asks the first for a window, and ends well."""
    need("mousepad", "mousepad")
    found = []
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
        found.append(desktop.start(["mousepad", "--opening-mode=window", tmp_path / name]))
    first, second = found
    assert first.window.title.startswith("one") or "one -" in first.window.title
    assert "two" in second.window.title
    assert second.window.id != first.window.id
    assert second.window.pid == first.window.pid


def test_a_command_without_a_window_is_told_soon(desktop: deskhand.Desktop) -> None:
    with pytest.raises(
        LaunchFailed,
        match=r"ended with status 0 and showed no window; desktop\.host\.run and desktop\.machine",
    ):
        desktop.start("ls /", timeout=300)


def test_a_minimized_window_is_told(desktop: deskhand.Desktop) -> None:
    window = desktop.start(["xterm", "-T", "small"]).window
    assert not window.minimized
    subprocess.run(
        [need("xdotool", "xdotool"), "windowminimize", str(window.id)], env=x_environment(desktop), check=True
    )
    until(lambda: [w.minimized for w in desktop.windows.list()] == [True], 30, "the window to be minimised")
    desktop.windows.activate(window)
    until(lambda: [w.minimized for w in desktop.windows.list()] == [False], 30, "the window to be back")


def test_a_window_is_waited_for(desktop: deskhand.Desktop, tmp_path: Path) -> None:
    command, gate = waiting(tmp_path, "exec xterm -T 'Save As: one'")
    desktop.start(["xterm", "-T", "below"])
    with ThreadPoolExecutor(1) as pool:
        waited = pool.submit(desktop.windows.wait_for, "save as", timeout=60)
        process = subprocess.Popen(command, env=x_environment(desktop))
        with gate.open("w") as opened:
            opened.write("\n")
        window = waited.result()
    assert (window.title, window.pid) == ("Save As: one", process.pid)
    desktop.start(["xterm", "-T", "Save As: two"])
    assert desktop.windows.wait_for(re.compile("^Save")).title == "Save As: two", "the topmost"
    with pytest.raises(DeskhandTimeout, match=r"for a window titled 'third': the windows are: .*'below', "):
        desktop.windows.wait_for("third", timeout=0)
    for wrong in ("", None, b"save"):
        with pytest.raises(ActionError, match="wait_for: title"):
            desktop.windows.wait_for(wrong)
    process.kill()
    process.wait()


def test_many_windows_are_told_of(desktop: deskhand.Desktop) -> None:
    """More than are asked about at once."""
    code = """
import Xlib.display, Xlib.X
display = Xlib.display.Display()
screen = display.screen()
windows = [screen.root.create_window(i, i, 9, 9, 0, screen.root_depth) for i in range(100)]
for number, window in enumerate(windows):
    window.set_wm_name(f"window {number}")
    window.map()
display.sync()
input()
"""
    with subprocess.Popen(
        [need("python3", "python3"), "-c", code],
        stdin=subprocess.PIPE,
        env={**x_environment(desktop), "PYTHONPATH": os.pathsep.join(__import__("sys").path)},
    ) as client:
        until(lambda: len(desktop.windows.list()) == 100, 60, "a hundred windows")
        windows = desktop.windows.list()
        assert {window.title for window in windows} == {f"window {number}" for number in range(100)}
        assert {window.pid for window in windows} == {client.pid}
        client.communicate(b"\n")


WRONG = {
    "a number among the words": ((["xterm", 5],), {}),
    "bytes": ((b"xterm",), {}),
    "None": ((None,), {}),
    "no word": (([],), {}),
    "an empty word": ((["", "x"],), {}),
    "an open quotation": (("xterm 'a",), {}),
    "a zero byte": ((["xterm", "a\0b"],), {}),
    "a surrogate": ((["xterm", "\ud800"],), {}),
    "a mapping": (({"xterm": 1},), {}),
    "a number in env": (("xterm",), {"env": {"A": 1}}),
    "a name with =": (("xterm",), {"env": {"A=B": "1"}}),
    "a name that is none": (("xterm",), {"env": {1: "1"}}),
    "a list for env": (("xterm",), {"env": ["A=1"]}),
    "a number for cwd": (("xterm",), {"cwd": 5}),
    "an empty cwd": (("xterm",), {"cwd": ""}),
    "a text for timeout": (("xterm",), {"timeout": "5"}),
    "no time": (("xterm",), {"timeout": 0}),
    "NaN": (("xterm",), {"timeout": float("nan")}),
}


def test_wrong_arguments_are_told_and_change_nothing(desktop: deskhand.Desktop) -> None:
    for what, (arguments, options) in WRONG.items():
        with pytest.raises(ActionError, match=r"^start: |^deskhand: start: |start:"):
            desktop.start(*arguments, **options)  # type: ignore[arg-type] # wrong on purpose
        assert desktop.windows.list() == [], what
    for options in ({"env": {"A": 1}}, {"cwd": 5}, {"env": 5}):
        with pytest.raises(ActionError, match=r"host\.run"):
            desktop.host.run("true", **options)  # type: ignore[arg-type] # wrong on purpose
        with pytest.raises(ActionError, match="open_shell"):
            desktop.host.open_shell(**options)  # type: ignore[arg-type] # wrong on purpose
    with pytest.raises(ActionError, match="launch: env"):
        deskhand.launch(env={"A": 1})  # type: ignore[dict-item] # wrong on purpose
    assert desktop.start("xterm").window.class_name == "XTerm"


def test_paths_are_taken(desktop: deskhand.Desktop, tmp_path: Path) -> None:
    program = desktop.start([Path(need("xterm", "xterm")), "-T", "path"], cwd=tmp_path, env={"HERE": tmp_path})
    assert program.window.title == "path"
    assert Path(f"/proc/{program.pid}/cwd").readlink() == tmp_path
    assert f"HERE={tmp_path}".encode() in Path(f"/proc/{program.pid}/environ").read_bytes().split(b"\0")
    assert desktop.host.run("pwd", cwd=tmp_path).stdout == f"{tmp_path}\n"


def test_a_directory_that_is_not_there_is_what_is_blamed(desktop: deskhand.Desktop) -> None:
    with pytest.raises(ShellError, match=r"/nonexistent.*check the directory that it starts in"):
        desktop.start("xterm", cwd="/nonexistent")
    with pytest.raises(ShellError, match="check that it is installed"):
        desktop.start("/nonexistent/xterm")


@pytest.mark.parametrize(
    "message", [b"{", b"5\n", b"[]\n", b'{"op": "spawn"}\n', b'{"op": "spawn", "id": 1, "argv": [5]}\n']
)
def test_the_guard_survives_any_message(desktop: deskhand.Desktop, message: bytes) -> None:
    guard = desktop._core.programs.own()
    guard._to.write(message if message.endswith(b"\n") else message + b"\n")  # type: ignore[attr-defined] # the pipe of a local guard
    guard._to.flush()  # type: ignore[attr-defined] # the pipe of a local guard
    assert desktop.start("xterm").window.class_name == "XTerm"
