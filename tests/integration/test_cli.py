"""The command line, run as a user runs it: processes, real desktops, and what a shell sees of them."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from PIL import Image

from conftest import need
from deskhand.cli.group import commands as deskhand_commands
from faults.helpers import until
from soak import soaked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

LIMIT = 240.0

# Which keys and buttons the server reports as pressed, told by a client that is not ours.
PRESSED = """
import Xlib.display
display = Xlib.display.Display()
keys = [8 * i + bit for i, byte in enumerate(display.query_keymap()) for bit in range(8) if byte >> bit & 1]
print(len(keys), display.screen().root.query_pointer().mask & 0x1F00)
"""


def eventually(check: Callable[[], bool], what: str) -> None:
    """Poll, because what is waited for happens in processes that are not ours."""
    deadline = time.monotonic() + LIMIT / 2
    while not check():
        assert time.monotonic() < deadline, f"waited for {what}"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def tree(pid: int) -> list[int]:
    """A process and all below it."""
    children: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        children += map(int, task.read_text().split())
    return [pid, *(below for child in children for below in tree(child))]


def runs(pid: int, program: str) -> bool:
    """Whether a process, or one below it, is of that program."""
    found = []
    for each in tree(pid):
        with contextlib.suppress(OSError):
            found.append(Path(f"/proc/{each}/comm").read_text().strip())
    return program in found


class Shell:
    """`deskhand` with a runtime directory of its own, in a working directory of its own."""

    def __init__(self, directory: Path, runtime: Path, home: Mapping[str, str]) -> None:
        self.directory = directory
        self.runtime = runtime
        kept = {k: v for k, v in os.environ.items() if not k.startswith("DESKHAND_")}
        self.environment = {**kept, **home, "XDG_RUNTIME_DIR": str(self.runtime), "LANG": "C.UTF-8"}
        self.program = str(Path(sys.executable).with_name("deskhand"))

    def start(self, *arguments: str, **more: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [self.program, *arguments],
            env={**self.environment, **more},
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, *arguments: str, given: str = "", **more: str) -> subprocess.CompletedProcess[bytes]:
        # Both streams are read to their end: whatever stays behind must not hold them open.
        return subprocess.run(
            [self.program, *arguments],
            env={**self.environment, **more},
            cwd=self.directory,
            input=given.encode(),
            capture_output=True,
            timeout=LIMIT,
            check=False,
        )

    def __call__(self, *arguments: str, given: str = "", **more: str) -> str:
        result = self.run(*arguments, given=given, **more)
        assert result.returncode == 0, (arguments, result.stdout, result.stderr)
        assert result.stderr == b""
        return result.stdout.decode()

    def json(self, *arguments: str, given: str = "", **more: str) -> Any:
        return json.loads(self(arguments[0], "--json", *arguments[1:], given=given, **more))

    def listed(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.json("ls")
        return found

    def join(self, up: Mapping[str, Any]) -> dict[str, str]:
        return {**self.environment, "DISPLAY": up["display"], "XAUTHORITY": up["xauthority"]}

    def pressed(self, up: Mapping[str, Any]) -> str:
        return subprocess.run(
            [sys.executable, "-c", PRESSED],
            env=self.join(up),
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=True,
        ).stdout.strip()


@pytest.fixture
def shell(tmp_path: Path, short: Path, environment: dict[str, str]) -> Iterator[Shell]:
    shell = Shell(tmp_path, short, environment)
    yield shell
    down = shell.run("down", "--all")
    leftover = [path.name for path in (shell.runtime / "deskhand").glob("d-*")]
    assert (down.returncode, leftover) == (0, []), down.stderr


@pytest.fixture
def up(shell: Shell) -> dict[str, Any]:
    found: dict[str, Any] = shell.json("up", "--size", "800x600")
    return found


def traces(up: Mapping[str, Any]) -> list[str]:
    """The files of a desktop that are there."""
    number = up["display"].removeprefix(":")
    paths = (f"/tmp/.X{number}-lock", f"/tmp/.X11-unix/X{number}", up["directory"])
    return [path for path in paths if Path(path).exists()]


# --- whole desktops ---


def test_up_ls_down(shell: Shell) -> None:
    up = shell.json("up", "--name", "one", "--size", "640x480")
    assert (up["name"], up["size"], len(traces(up))) == ("one", [640, 480], 3)
    (entry,) = shell.listed()
    assert {key: entry[key] for key in ("name", "display", "size", "answers", "driver", "stays")} == {
        "name": "one",
        "display": up["display"],
        "size": [640, 480],
        "answers": True,
        "driver": None,
        "stays": True,
    }
    assert 0 <= entry["age_seconds"] < LIMIT
    processes = tree(up["pid"])
    assert len(processes) >= 3
    assert shell("down", "one") == "one is down\n"
    # At once, not eventually: `down` returns when it is really gone.
    assert traces(up) == []
    assert [pid for pid in processes if alive(pid)] == []
    assert shell.listed() == []


def test_text_of_ls(shell: Shell, up: dict[str, Any]) -> None:
    header, row = shell("ls").splitlines()
    assert header.split() == ["name", "display", "size", "age", "driven", "by"]
    assert re.fullmatch(rf"desktop +{up['display']} +800x600 +\d+ s +none *", row)


def test_a_shell_joins_with_what_up_prints(shell: Shell) -> None:
    need("xdotool", "xdotool")
    script = f'eval "$({shell.program} up --size 700x500)" && xdotool getdisplaygeometry'
    result = subprocess.run(
        ["sh", "-c", script], env=shell.environment, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert (result.stdout, result.stderr) == ("700 500\n", "")


def test_the_home_of_programs(shell: Shell, tmp_path: Path, home: Path) -> None:
    """What is started later sees the same home as what the desktop began with."""
    template = tmp_path / "template"
    template.mkdir()
    (template / "file").touch()
    for name, option in {"own": [], "copy": ["--home", str(template)], "mine": ["--home", "mine"]}.items():
        directory = shell.json("up", "--name", name, *option)["directory"]
        out = tmp_path / name
        shell(
            "start",
            "-d",
            name,
            "xterm",
            "-e",
            "sh",
            "-c",
            f"(echo ~; cd; ls) > {out}.new; mv {out}.new {out}; exec cat",
        )
        until(out.exists, LIMIT, "the terminal")
        at, *files = out.read_text().splitlines()
        assert at == str(home if name == "mine" else Path(directory, "home"))
        assert ("file" in files) == (name == "copy")
    assert b"is its own" in shell.run("up", "--docker", "--home", "mine").stderr


def test_two_desktops(shell: Shell) -> None:
    first, second = shell.json("up"), shell.json("up", "--size", "640x480")
    assert (first["name"], second["name"]) == ("desktop", "desktop-2")
    result = shell.run("screenshot")
    assert result.returncode == 1
    assert b"several desktops run: desktop, desktop-2; choose one with -d NAME" in result.stderr
    assert shell.json("screenshot", "-d", "desktop-2")["screen"] == [640, 480]
    assert shell.json("screenshot", DESKHAND_DESKTOP="desktop")["screen"] == [1280, 800]
    named = shell.json("screenshot", "-d", f"x11:{second['display']}", XAUTHORITY=second["xauthority"])
    assert named["screen"] == [640, 480]
    assert shell("down", "desktop-2") == "desktop-2 is down\n"
    assert [entry["name"] for entry in shell.listed()] == ["desktop"]
    assert shell("down") == "desktop is down\n"
    assert traces(first) + traces(second) == []


def test_two_at_the_same_moment(shell: Shell) -> None:
    running = [shell.start("up", "--json") for _ in range(2)]
    names = {json.loads(process.communicate(timeout=LIMIT)[0])["name"] for process in running}
    assert names == {"desktop", "desktop-2"}
    assert sorted(shell("down", "--all").splitlines()) == ["desktop is down", "desktop-2 is down"]


def test_a_name_that_is_taken(shell: Shell, up: dict[str, Any]) -> None:
    result = shell.run("up", "--name", up["name"])
    assert result.returncode == 1
    assert b"there is a desktop named 'desktop' already" in result.stderr
    assert len(shell.listed()) == 1


def test_a_dead_desktop_vanishes(shell: Shell, up: dict[str, Any]) -> None:
    processes = tree(up["pid"])
    os.kill(up["pid"], signal.SIGKILL)
    eventually(lambda: not any(map(alive, processes)), "the end of the desktop")
    assert shell.listed() == []
    assert shell.run("down", up["name"]).returncode == 1
    # The next launch sweeps up what a killed guard could not.
    again = shell.json("up")
    assert [path.name for path in (shell.runtime / "deskhand").glob("d-*")] == [Path(again["directory"]).name]


def test_down_never_ends_a_process_that_took_over_the_number(shell: Shell, up: dict[str, Any]) -> None:
    file = shell.runtime / "deskhand" / "old.json"
    with subprocess.Popen(["sleep", "60"]) as other:
        file.write_text(
            json.dumps(json.loads(file.with_name("desktop.json").read_text()) | {"name": "old", "pid": other.pid})
        )
        shell("down", "old")
        assert other.poll() is None
        other.kill()
    assert [entry["name"] for entry in shell.listed()] == [up["name"]]


def test_a_desktop_whose_server_died(shell: Shell, up: dict[str, Any]) -> None:
    (server,) = (pid for pid in tree(up["pid"]) if Path(f"/proc/{pid}/comm").read_text() == "Xvfb\n")
    os.kill(server, signal.SIGKILL)
    eventually(lambda: not alive(server), "the end of the server")
    (entry,) = shell.listed()
    assert (entry["answers"], entry["size"]) == (False, None)
    assert "does not answer" in shell("ls")
    result = shell.run("screenshot")
    assert result.returncode == 1
    assert b"cannot connect" in result.stderr
    shell("down")


# --- acting and looking ---


def test_a_program_gets_exactly_what_is_typed(shell: Shell, up: dict[str, Any]) -> None:
    need("xterm", "xterm")
    file = shell.directory / "typed"
    started = shell.json("start", "xterm", "-e", "sh", "-c", f"cat >{file}")
    assert started["window"]["class"] == "XTerm"
    assert started["pid"] in tree(up["pid"]), "it belongs to the desktop, and stays after the command"
    assert re.fullmatch(r"changed .* \d+ ms\n", shell("type", "naïve ☕ 漢字\n"))
    assert re.fullmatch(r"changed .* \d+ ms\n", shell("type", "-", given="-v\ttwo\n"))
    shell("type", "--", "--help\n")
    # A terminal's line discipline ends the input only at the start of a line.
    shell("key", "ctrl+d")
    eventually(lambda: not alive(started["pid"]), "the end of xterm")
    assert file.read_text() == "naïve ☕ 漢字\n-v\ttwo\n--help\n"


def test_pasting(shell: Shell, up: dict[str, Any]) -> None:
    file = shell.directory / "typed"
    shell("start", "xterm", "-xrm", "*selectToClipboard: true", "-e", "sh", "-c", f"cat >{file}")
    assert shell.json("type", "--paste", "-", given="one ☕")["pasted"]
    shell("key", "Return", "ctrl+d")
    eventually(lambda: not runs(up["pid"], "xterm") and file.exists(), "the end of xterm")
    assert file.read_text() == "one ☕\n"


def test_keys_one_after_another(shell: Shell, up: dict[str, Any]) -> None:
    file = shell.directory / "typed"
    shell("start", "xterm", "-e", "sh", "-c", f"cat >{file}; exec sleep 99")
    shell("key", "a", "shift+b", "plus", "--repeat", "2")
    shell("key", "Return", "ctrl+d")
    eventually(lambda: file.exists() and file.read_text() != "", "the line")
    assert file.read_text() == "aaBB++\n"
    assert runs(up["pid"], "xterm")


def test_screenshots(shell: Shell, up: dict[str, Any]) -> None:
    assert re.fullmatch(r"screenshot\.png: 800x600, \d+ bytes\n", shell("screenshot"))
    with Image.open(shell.directory / "screenshot.png") as image:
        image.load()
        assert (image.size, image.format) == ((800, 600), "PNG")
    data = shell.json("screenshot", "-o", "part.png", "--region", "10,20,200,100", "--size", "100x50", "--no-cursor")
    file = shell.directory / "part.png"
    assert (data["size"], data["region"], data["screen"]) == ([100, 50], [10, 20, 200, 100], [800, 600])
    assert (data["file"], data["bytes"]) == ("part.png", file.stat().st_size)
    with Image.open(file) as image:
        assert image.size == (100, 50)
    written = shell.run("screenshot", "-o", "-")
    with Image.open(io.BytesIO(written.stdout)) as image:
        assert image.size == (800, 600)
    for size, name, kind, pixels in (
        ("0.5", "half.jpg", "JPEG", (400, 300)),
        ("openai", "whole.webp", "WEBP", (800, 600)),
    ):
        assert shell.json("screenshot", "--size", size, "-o", name)["format"] == kind.lower()
        with Image.open(shell.directory / name) as image:
            assert (image.size, image.format) == (pixels, kind)
    shell("screenshot", "--format", "raw", "-o", "pixels.png")
    assert (shell.directory / "pixels.png").stat().st_size == 800 * 600 * 3
    assert written.stderr == b""
    assert up["name"] == "desktop"


def test_do(shell: Shell, up: dict[str, Any]) -> None:
    file = shell.directory / "typed"
    started = shell.json("start", "xterm", "-e", "sh", "-c", f"cat >{file}")
    x, y, width, height = started["window"]["rect"]
    actions = [
        {"type": "left_mouse_click", "xy": [x + width // 2, y + height // 2]},
        {"type": "type", "text": "☕\n"},
    ]
    seen = shell.json("do", json.dumps(actions), "-o", "after.png")
    assert (seen["settled"], seen["reason"], seen["changed"]) == (True, "quiet", True)
    assert seen["cursor"] == [x + width // 2, y + height // 2]
    assert seen["rects"]
    assert set(seen["elapsed_ms"]) == {"input", "reaction", "settle", "capture", "encode", "total"}
    with Image.open(shell.directory / "after.png") as image:
        assert list(image.size) == seen["size"] == [800, 600]
    text = shell("do", "-", given='{"type": "keypress", "keys": ["ctrl", "d"]}')
    assert [line.split()[0] for line in text.splitlines()] == ["settled", "changed", "busy", "elapsed", "cursor"]
    eventually(lambda: not alive(started["pid"]), "the end of xterm")
    assert file.read_text() == "☕\n"
    still = shell.json("do", "[]")
    assert (still["changed"], still["reason"]) == (False, "unchanged")
    assert shell.json("do", "[]", "--no-wait")["reason"] == "not_waited"
    assert up["name"] == "desktop"


def test_clicks(shell: Shell, up: dict[str, Any]) -> None:
    need("xev", "x11-utils")
    started = shell.json("start", "xev", "-geometry", "300x300+50+50", "-event", "button")
    x, y, *_ = started["window"]["rect"]
    log = Path(up["directory"]) / f"xev-{started['pid']}.log"
    for arguments in (
        ["--count", "2"],
        ["--button", "right", "--modifiers", "ctrl+shift"],
        ["--button", "back", "--count", "3"],
    ):
        shell("click", str(x + 20), str(y + 30), *arguments)
    pattern = re.compile(
        r"^(Button\w+) event.*?\((\d+),(\d+)\).*?state (0x\w+), button (\d+)", re.DOTALL | re.MULTILINE
    )

    def presses() -> list[tuple[str, ...]]:
        return [found.groups()[1:] for found in pattern.finditer(log.read_text()) if found[1] == "ButtonPress"]

    # xev writes to a pipe in blocks, and ends with the last one.
    shell("windows", "--close", str(shell.json("windows")[0]["id"]))
    eventually(lambda: len(presses()) == 6, "the clicks")
    left, right, back = ("20", "30", "0x10", "1"), ("20", "30", "0x15", "3"), ("20", "30", "0x10", "8")
    plain = [(x, y, hex(int(state, 16) & ~0x10 | 0x10), button) for x, y, state, button in presses()]
    assert plain == [left, left, right, back, back, back]


def test_windows(shell: Shell, up: dict[str, Any]) -> None:
    need("xdotool", "xdotool")
    first = shell.json("start", "xterm", "-title", "first")["window"]["id"]
    second = shell.json("start", "xterm", "-title", "second")["window"]["id"]
    listed = {window["id"]: window for window in shell.json("windows")}
    assert (listed[first]["title"], listed[second]["title"]) == ("first", "second")
    assert (listed[first]["active"], listed[second]["active"]) == (False, True)
    shell("windows", "--activate", hex(first))
    subprocess.run(
        ["xdotool", "set_window", "--name", "a\x1b[31m[bold]\x07\u202eb\n", str(second)], env=shell.join(up), check=True
    )
    eventually(lambda: shell.json("windows")[0]["title"].startswith("a\x1b"), "the new title")
    header, *rows = shell("windows").splitlines()
    assert header.split() == ["id", "state", "class", "title", "place"]
    assert [re.split(r"  +", row.strip())[:-1] for row in rows] == [
        [hex(second), "XTerm", "a[31m[bold]b"],
        [hex(first), "active", "XTerm", "first"],
    ]
    after = shell.json("windows", "--close", str(second))
    assert [window["id"] for window in after] == [first]
    result = shell.run("windows", "--close", str(second))
    assert (result.returncode, b"there is no window" in result.stderr) == (1, True)


# --- how commands end ---


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ended_while_it_waits(shell: Shell, up: dict[str, Any], number: int, code: int) -> None:
    held = [
        {"type": "key_down", "keys": ["shift"]},
        {"type": "left_mouse_down", "xy": [5, 5]},
        {"type": "wait", "duration": 600},
    ]
    process = shell.start("do", json.dumps(held))
    eventually(lambda: shell.pressed(up) == "1 256", "Shift and the button")
    process.send_signal(number)
    out, error = process.communicate(timeout=LIMIT)
    assert (process.returncode, out, error) == (code, b"", b"")
    assert shell.pressed(up) == "0 0"
    assert shell.listed()[0]["driver"] is None


def test_what_is_driven_can_be_looked_at_only(shell: Shell, up: dict[str, Any]) -> None:
    process = shell.start("do", '{"type": "wait", "duration": 600}')
    eventually(lambda: shell.listed()[0]["driver"] is not None, "the driver")
    assert f"process {process.pid} on " in shell.listed()[0]["driver"]
    shell("screenshot")
    shell("windows")
    result = shell.run("key", "a")
    assert (result.returncode, b"one driver at a time" in result.stderr) == (1, True)
    # Its driver hears of the end, and ends in order too.
    shell("down", up["name"])
    _, error = process.communicate(timeout=LIMIT)
    assert (process.returncode, b"desktop lost" in error, b"Traceback" in error) == (1, True, False)


_WRONG: list[tuple[list[str], int, str]] = [
    (["screenshot"], 1, "no desktop runs: start one with `deskhand up`"),
    (["down", "nobody"], 1, "no desktop named 'nobody' runs; running: none"),
    (["down"], 1, "no desktop runs"),
    (["down", "x11::99"], 1, "end it where it was started"),
    (["down", "a", "--all"], 2, "either names or --all"),
    (["key", "a", "-d", "nobody"], 1, "no desktop of that name runs"),
    (["key", "a", "-d", "x11::64999"], 1, "cannot connect to :64999"),
    (["key", "a", "-d", "../x"], 1, "cannot name a desktop"),
    (["key", "nokey"], 1, "nokey"),
    (["key"], 2, "Missing argument"),
    (["start", "-d", "x11::64999", "xterm"], 1, "was not started by `deskhand up`"),
    (["up", "--name", "a/b"], 1, "cannot name a desktop"),
    (["up", "--size", "800"], 2, "'800' is not of the form WxH"),
    (["up", "--size", "99999x9"], 1, "size is (width, height)"),
    (["do", "{"], 2, "this is not JSON"),
    (["do", "[" * 100_000], 2, "this is not JSON"),
    (["do", "3"], 1, "an action is a dictionary"),
    (["do", '[{"type": "wait"}, {"type": "move"}]'], 1, "move: xy missing [in actions[1] (move)"),
    (["click", "1"], 2, "Missing argument"),
    (["click", "1", "2", "--modifiers", "a"], 1, "is not a modifier"),
    (["type", "a", "-o", "no/such/file"], 2, "there is no directory 'no/such'"),
    (["type", "a", "-o", "."], 2, "is a directory"),
    (["type", "a", "-o", "-"], 2, "only `deskhand screenshot` writes there"),
    (["screenshot", "-o", "-", "--json"], 2, "both want standard output"),
    (["windows", "--close", "x"], 2, "is not a window's id"),
    (["shell"], 2, "Missing argument"),
    (["shell", "true", "--timeout", "0"], 2, "range"),
    (["nothing"], 2, "No such command"),
]


@pytest.mark.parametrize(("arguments", "code", "message"), soaked(_WRONG, but=_WRONG[::2]))
def test_errors_are_a_sentence(shell: Shell, arguments: list[str], code: int, message: str) -> None:
    result = shell.run(*arguments)
    error = result.stderr.decode()
    assert (result.returncode, result.stdout) == (code, b"")
    assert message in error
    assert "Traceback" not in error


def test_errors_that_a_desktop_tells(shell: Shell, up: dict[str, Any]) -> None:
    for arguments, message in (
        (["click", "800", "0"], "point (800, 0) is outside of 800x600"),
        (["screenshot", "--region", "0,0,900,10"], "outside of 800x600"),
        (["type", b"\xff".decode("utf-8", "surrogateescape")], "cannot type U+DCFF at 0"),
        (["start", "no-such-program"], "cannot start 'no-such-program'"),
        (["start", "sh", "-c", "printf 'a\\033[31mb\\n'; exit 3"], "a[31mb"),
    ):
        result = shell.run(*arguments)
        assert (result.returncode, result.stdout) == (1, b"")
        assert message in result.stderr.decode()
        assert b"Traceback" not in result.stderr
        assert b"\x1b" not in result.stderr
    result = subprocess.run(
        [shell.program, "type", "-"],
        env=shell.environment,
        input=b"a\xff",
        capture_output=True,
        timeout=LIMIT,
        check=False,
    )
    assert (result.returncode, b"is not UTF-8" in result.stderr) == (1, True)
    assert up["name"] == "desktop"


def test_a_command_in_a_shell(shell: Shell, up: dict[str, Any]) -> None:
    refused = shell.run("shell", "true")
    assert (refused.returncode, b"--host" in refused.stderr) == (1, True)
    result = shell.run("shell", "--host", "-", given='printf "out\\033[1m $DISPLAY"; echo err >&2; exit 3')
    assert (result.returncode, result.stdout, result.stderr) == (3, f"out\x1b[1m {up['display']}".encode(), b"err\n")
    hangs = "shell", "--json", "--host", "echo begun; sleep inf", "--timeout"
    told = next(told for limit in ("0.2", "20") if (told := json.loads(shell.run(*hangs, limit).stdout))["stdout"])
    assert (told["stdout"], told["outcome"], told["exit_code"]) == ("begun\n", "timeout", None)
    assert shell.run("shell", "--host", "--timeout", "0.2", "sleep inf").returncode == 124


def test_a_reader_that_leaves(shell: Shell, up: dict[str, Any]) -> None:
    with shell.start("screenshot", "-o", "-") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(LIMIT) == 1
    assert up["name"] == "desktop"


def test_every_command_helps(shell: Shell) -> None:
    listed = shell("--help").partition("Have a desktop:")[2].partition("Examples:")[0]
    commands = sorted(re.findall(r"^  (\w+)  +\S", listed, re.MULTILINE))
    assert commands == [
        "assets",
        "audit",
        "click",
        "completion",
        "do",
        "doctor",
        "down",
        "export",
        "image",
        "key",
        "ls",
        "mcp",
        "record",
        "replay",
        "report",
        "run",
        "screenshot",
        "serve",
        "shell",
        "start",
        "tasks",
        "type",
        "up",
        "verify",
        "watch",
        "windows",
    ]
    for command in commands:
        # In this process: starting it takes a third of a second, and all other tests here do.
        helped = CliRunner().invoke(deskhand_commands, [command, "--help"], prog_name="deskhand")
        assert helped.exit_code == 0
        assert f"\n  Examples:\n    deskhand {command}" in helped.output
    assert shell("--version").startswith("deskhand, version ")


def test_without_its_libraries_it_says_what_to_install() -> None:
    code = "import sys; sys.modules['click'] = None; import deskhand.cli; deskhand.cli.main(['ls'])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LIMIT, check=False)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "deskhand: the command line needs click and rich: pip install 'deskhand[cli]'\n"


def test_doctor(shell: Shell, up: dict[str, Any]) -> None:
    found = shell.json("doctor", "--fix-nothing")
    checks = {check["name"]: check for check in found["checks"]}
    assert found["ok"]
    assert checks["Xvfb"]["state"] == "ok"
    assert checks[f"display {up['display']}"]["state"] == "ok"
    assert checks["keyboard layout"]["detail"] == "us"
    assert re.search(r"^ok +Xvfb +/", shell("doctor", "-d", "desktop"), re.MULTILINE)
    result = shell.run("doctor", "-d", "x11::64999")
    assert result.returncode == 1
    assert re.search(r"^fail +display :64999 +cannot connect", result.stdout.decode(), re.MULTILINE)
    assert shell.run("doctor", PATH="/nonexistent").returncode == 1
