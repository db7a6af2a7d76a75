"""The harness's side of the stages: starting one, arming it with a recipe, and asking what it did.

Every stage speaks JSON: it is given an order and answers with its log (see programs/actor.py); Chromium over HTTP, the others a
line each over a socket. Orders and answers pass only before an input and after its answer.
"""

from __future__ import annotations

import contextlib
import json
import queue
import shutil
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deskhand import Move, Rect
from faults.helpers import window_expected

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import deskhand

__all__ = ["PINGABLE", "STAGES", "Link", "Log", "Stage", "WebLink"]

PROGRAMS = Path(__file__).with_name("programs")
# Debian's own Python, which the packages of GTK and Qt are made for.
PYTHON = "/usr/bin/python3"
_PATIENCE = 60.0
# For so many seconds, with so much of a processor, a program has come to rest.
_STILL, _AT_REST = 0.25, 0.1
# Longer than any tick of the kernel's clock, and what the driver allows for it.
_TICKS = 0.03


def need(program: str, package: str) -> str:
    """The path of a program; a missing one is an error that says what to install."""
    path = shutil.which(program)
    if path is None:
        raise FileNotFoundError(f"{program} is not installed: apt-get install {package}")
    return path


def need_module(module: str, package: str) -> str:
    """Debian's Python, which must have this module."""
    if subprocess.run([need(PYTHON, "python3"), "-c", f"import {module}"], check=False, capture_output=True).returncode:
        raise FileNotFoundError(f"{PYTHON} lacks the module {module}: apt-get install {package}")
    return PYTHON


@dataclass(frozen=True)
class Log:
    """What a stage says it did about its latest input; times are `time.monotonic()`.

    Attributes:
        began: When it got the input.
        changes: When it handed each change to the X server.
        inputs: How many inputs it got.
        left: How many changes are still to come.
    """

    began: float
    changes: tuple[float, ...]
    inputs: int
    left: int


class Link:
    """A line each over a socket."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self._server.settimeout(_PATIENCE)
        self._connection: socket.socket | None = None

    @property
    def port(self) -> int:
        """Where the stage is to connect to."""
        port: int = self._server.getsockname()[1]
        return port

    def hello(self) -> dict[str, Any]:
        """Wait for the stage; what it says first."""
        self._connection, _ = self._server.accept()
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection.settimeout(_PATIENCE)
        self._lines = self._connection.makefile()
        return self._read()

    def _read(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._lines.readline())
        return answer

    def ask(self, **order: object) -> dict[str, Any]:
        """An order and its answer."""
        assert self._connection is not None
        self._connection.sendall(json.dumps(order).encode() + b"\n")
        return self._read()

    def close(self) -> None:
        """Hang up, which ends no stage: its desktop does."""
        if self._connection is not None:
            self._lines.close()
            self._connection.close()
        self._server.close()


class SilentServer:
    """What takes connections and never answers."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0), backlog=128)

    @property
    def port(self) -> int:
        """Where it listens."""
        port: int = self._server.getsockname()[1]
        return port

    def close(self) -> None:
        """End it; what waits for it is told so by the kernel."""
        self._server.close()


class _Server(ThreadingHTTPServer):
    """One address of a web link, with its thread."""

    daemon_threads = True

    def __init__(self, orders: queue.Queue[dict[str, Any]], answers: queue.Queue[dict[str, Any]]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.orders, self.answers = orders, answers
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()


class _Handler(BaseHTTPRequestHandler):
    """Answers the page: its server is a `_Server`."""

    server: _Server
    # Connections stay open for the next request, as those of most servers do.
    protocol_version = "HTTP/1.1"

    def handle(self) -> None:
        # A page that goes away, or gives a request up, hangs up.
        with contextlib.suppress(ConnectionError):
            super().handle()

    def do_GET(self) -> None:
        if self.path == "/clock":
            self._answer(str(time.monotonic()).encode())
        elif self.path.startswith("/slow?"):
            time.sleep(float(self.path.partition("?")[2].partition(",")[0]) / 1000)
            self._answer(b"")
        elif self.path == "/stream":
            self._stream()
        elif self.path.startswith("/page?"):
            self._page([float(word) / 1000 for word in self.path.partition("?")[2].split(",")])
        else:
            self._answer((PROGRAMS / "stage.html").read_bytes())

    def do_POST(self) -> None:
        self.server.answers.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self._answer(json.dumps(self.server.orders.get()).encode())

    def _stream(self) -> None:
        """Server-sent events, one in two seconds, until the browser hangs up."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Connection", "close")
        self.end_headers()
        while True:
            self.wfile.write(b"data: still here\n\n")
            self.wfile.flush()
            time.sleep(2.0)

    def _page(self, times: Sequence[float]) -> None:
        """A page whose parts come at these seconds after it was asked for."""
        asked = time.monotonic()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Connection", "close")
        self.end_headers()
        colour = round(asked * 1000) % 0xFFFFFF
        self.wfile.write(b"<!doctype html><title>slow</title><body>")
        for n, at in enumerate(times):
            time.sleep(max(0.0, asked + at - time.monotonic()))
            part = f"<p style='background:#{(colour + n * 0x123456) % 0xFFFFFF:06x}'>part {n} of {asked}</p>"
            self.wfile.write(part.encode())
            self.wfile.flush()

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Access-Control-Allow-Origin", "*")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class WebLink:
    """A web server for stage.html, which takes its orders as answers to its posts; and for pages that come slowly."""

    def __init__(self) -> None:
        self._orders: queue.Queue[dict[str, Any]] = queue.Queue()
        self._answers: queue.Queue[dict[str, Any]] = queue.Queue()
        # What the page asks for is at another address than its orders: those are a long poll.
        self._servers = [_Server(self._orders, self._answers) for _ in range(2)]
        self._silent = SilentServer()

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._servers[0].server_port

    def hello(self) -> dict[str, Any]:
        """Wait for the stage; what it says first."""
        return self._answers.get(timeout=_PATIENCE)

    def ask(self, **order: object) -> dict[str, Any]:
        """An order and its answer."""
        web, silent = (f"http://127.0.0.1:{port}" for port in (self._servers[1].server_port, self._silent.port))
        self._orders.put({**order, "web": web, "silent": silent})
        return self._answers.get(timeout=_PATIENCE)

    def close(self) -> None:
        """End the server."""
        self._orders.put({})
        for server in self._servers:
            server.shutdown()
            server.server_close()
        self._silent.close()


CHROMIUM = [
    *("--no-sandbox", "--no-first-run", "--no-default-browser-check", "--password-store=basic"),
    *("--disable-sync", "--disable-component-update", "--disable-background-networking"),
]


def _python(python: Callable[[], str], script: str) -> Callable[[int, Path], list[str]]:
    return lambda port, _: [python(), str(PROGRAMS / script), str(port)]


def _xterm(port: int, _: Path) -> list[str]:
    inside = [sys.executable, str(PROGRAMS / "terminal_stage.py"), str(port)]
    look = ["-fn", "10x20", "-b", "0", "-geometry", "50x20", "+sb", "-title", "zoo"]
    return [need("xterm", "xterm"), *look, "-e", *inside]


def _chromium(port: int, home: Path) -> list[str]:
    window = [f"--user-data-dir={home / 'chromium-stage'}", "--window-size=520,440", f"--app=http://127.0.0.1:{port}/"]
    return [need("chromium", "chromium"), *CHROMIUM, *window]


_FIREFOX = """
user_pref("browser.aboutwelcome.enabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("toolkit.telemetry.reportingpolicy.firstRun", false);
user_pref("app.normandy.enabled", false);
user_pref("app.update.enabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
"""


def _firefox(port: int, home: Path) -> list[str]:
    profile = home / "firefox-stage"
    profile.mkdir()
    (profile / "user.js").write_text(_FIREFOX)
    window = ["--width", "520", "--height", "560", f"http://127.0.0.1:{port}/"]
    return [need("firefox-esr", "firefox-esr"), "--no-remote", "--profile", str(profile), *window]


def _swing(port: int, home: Path) -> list[str]:
    compiled = home / "SwingStage.class"
    if not compiled.exists():
        javac = need("javac", "default-jdk-headless")
        subprocess.run([javac, "-d", str(home), str(PROGRAMS / "SwingStage.java")], check=True)
    return [need("java", "default-jre"), "-XX:+UseSerialGC", "-cp", str(home), "SwingStage", str(port)]


# Stages whose windows answer `_NET_WM_PING` from the loop that draws.
PINGABLE = {"gtk", "qt"}
BROWSERS = {"chromium", "firefox"}
# The command line of each stage, given the port and a folder of its own; and the loads that it knows.
_COMMON = ("timer", "spin", "chunks", "thread")
STAGES: dict[str, tuple[Callable[[int, Path], list[str]], tuple[str, ...]]] = {
    "x": (_python(lambda: sys.executable, "x_stage.py"), (*_COMMON, "block", "child")),
    "xterm": (_xterm, (*_COMMON, "block", "child")),
    "gtk": (
        _python(lambda: need_module("gi.repository.Gtk", "python3-gi gir1.2-gtk-3.0"), "gtk_stage.py"),
        (*_COMMON, "block", "child"),
    ),
    "qt": (
        _python(lambda: need_module("PyQt5.QtWidgets", "python3-pyqt5"), "qt_stage.py"),
        (*_COMMON, "block", "child"),
    ),
    "chromium": (_chromium, (*_COMMON, "fetch")),
    "swing": (_swing, (*_COMMON, "block")),
}
# Stages that only serve to measure a sign (see signs.py).
MORE_STAGES: dict[str, tuple[Callable[[int, Path], list[str]], tuple[str, ...]]] = {
    "firefox": (_firefox, ("timer", "fetch")),
    "gtk4": (
        _python(lambda: need_module("gi.repository.Gtk", "python3-gi gir1.2-gtk-4.0"), "gtk4_stage.py"),
        ("timer", "cursor"),
    ),
    "tk": (_python(lambda: need_module("tkinter", "python3-tk"), "tk_stage.py"), ("timer", "cursor")),
}


def _awake(pid: int) -> dict[str, int]:
    """For how many nanoseconds each thread has run or waited for a processor."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            found[task.name] = sum(map(int, (task / "schedstat").read_text().split()[:2]))
    return found


def _rest(pid: int) -> None:
    """Wait until a program does nothing: on a busy machine it goes on starting long after its window is there."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        before, begun = _awake(pid), time.monotonic()
        time.sleep(_STILL)
        after, passed = _awake(pid), time.monotonic() - begun
        if before.keys() == after.keys() and sum(after.values()) - sum(before.values()) < _AT_REST * passed * 1e9:
            return
        if time.monotonic() >= deadline:
            raise TimeoutError(f"process {pid} does not come to rest within {_PATIENCE:g} s of its start")


class Stage:
    """One stage on a desktop."""

    def __init__(self, desktop: deskhand.Desktop, kind: str, home: Path) -> None:
        """Start it, and find out where it is on the screen."""
        self.desktop = desktop
        self.kind = kind
        command, self.loads = (STAGES | MORE_STAGES)[kind]
        self.link: Link | WebLink = WebLink() if kind in BROWSERS else Link()
        try:
            with window_expected(desktop):
                program = desktop.start(command(self.link.port, home), timeout=_PATIENCE)
        except BaseException:
            self.link.close()
            raise
        assert program.window is not None
        self.window = program.window
        self._scenes: dict[str, tuple[int, int, int, int]] = self.link.hello()["scenes"]
        self.beside: tuple[str, ...] = ()
        self.origin = (self.window.rect.x, self.window.rect.y)
        # Where nothing of the stage is; the web page learns its place from the pointer's way there.
        x, y = self.window.rect.x + 20, self.window.rect.y + 380
        desktop.perform(Move((x + 30, y - 10)), Move((x, y)))
        self.origin = tuple(self.link.ask().get("origin", self.origin))
        self.spot = (self.origin[0] + 20, self.origin[1] + 380)
        # What it does while nobody acts is learnt from one action to the next, and its start is not that.
        for _ in range(2):
            _rest(self.window.pid or program.pid)
            desktop.perform()

    def show(self, beside: tuple[str, ...]) -> None:
        """Let these scenes, and no others, move on their own."""
        self.beside = beside
        self.link.ask(beside=list(beside))

    @property
    def moving(self) -> list[Rect]:
        """What moves on its own, in screen pixels."""
        rects = [Rect(*self._scenes[name]).inflate(2) for name in self.beside if name in self._scenes]
        return [Rect(rect.x + self.origin[0], rect.y + self.origin[1], rect.width, rect.height) for rect in rects]

    def arm(self, times: Sequence[float], load: str) -> None:
        """What to do about the next input; see programs/actor.py."""
        self.link.ask(times=list(times), load=load)
        # The answer is no request of the action that comes: when it was sent is told in ticks of the kernel.
        self.desktop._core.watch.pause(_TICKS)

    def log(self) -> Log:
        """What it did about it."""
        told = self.link.ask()
        return Log(told["began"], tuple(told["changes"]), told["inputs"], told["left"])

    def focus(self) -> None:
        """Bring it to the front."""
        self.desktop.windows.activate(self.window)

    def close(self) -> None:
        """Hang up; the desktop ends the stage."""
        self.link.close()
