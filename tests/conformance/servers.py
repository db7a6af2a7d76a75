"""The desktops that the conformance tests run on: how each is started, and what it cannot do.

Each gives a `Place`: a URL to connect to, and, where an X server is behind it, what lets an X client look at it from the other
side.
`LACKS` is the one table of what a server cannot do; the documents print it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import deskhand
from containers.helpers import minimal_image
from containers.remote import ssh_server
from deskhand.backends.memory import MemoryBackend
from deskhand.desktop.desktop import Desktop
from deskhand.launchers.docker.connect import connect_docker
from deskhand.launchers.docker.launch import launch_docker
from deskhand.launchers.local.launch import leave_running

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator, Sequence

SIZE = (640, 480)
# The flag of /proc/net/unix.
_LISTENING = "00010000"
# How often a server that has crashed is started again.
_TRIES = 5
_CRASHED = {-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS}

# What the tests ask for, as the documents call it.
FEATURES = {
    "side_buttons": "buttons 8 and 9",
    "horizontal_wheel": "scrolling sideways",
    "any_key": "12 different characters that are on no key (ä, ж, 你), in a connection",
    "any_text": "more of them, by pasting",
    "caps_lock": "typing with CapsLock on",
    "clipboard_in": "setting the clipboard",
    "clipboard": "the clipboard in any script",
    "clipboard_out": "the clipboard when another program sets it",
    "resize": "changing the size of the screen",
    "cursor": "the cursor's image",
    "windows": "windows: list, activate, close",
    "start": "starting programs",
    "told_pointer": "reports where another client or a person put the pointer",
    "dead_client": "releases the keys and buttons of a disconnected client",
}

_KEYS_INSTEAD = "the keys Back and Forward are pressed instead"
_ONLY_X11 = "only X11 reports windows"
_ELSEWHERE = "a VNC server starts no programs"
_VNC = {"windows": _ONLY_X11, "start": _ELSEWHERE}

LACKS: dict[str, dict[str, str]] = {
    "memory": {
        "windows": "there are none",
        "start": "there is no machine behind it",
        "cursor": "there is none",
        "told_pointer": "there is no other client",
    },
    "x11": {},
    "docker": {},
    "docker-vnc": {"side_buttons": f"TigerVNC before 1.15: {_KEYS_INSTEAD}", **_VNC},
    # Its engine is reached through ssh. Programs are started in the container.
    "docker-remote": {"side_buttons": f"TigerVNC before 1.15: {_KEYS_INSTEAD}", "windows": _ONLY_X11},
    "xvnc": {"side_buttons": f"TigerVNC before 1.15: {_KEYS_INSTEAD}", **_VNC},
    "x11vnc": {
        "side_buttons": _KEYS_INSTEAD,
        "horizontal_wheel": "x11vnc 0.9.16 drops it without an error",
        "any_text": "`Untypable`",
        "caps_lock": "x11vnc 0.9.16 does not report it, and types letters in the other case",
        "clipboard_in": "Latin-1 only, `BackendError` beyond; x11vnc 0.9.16 accepts it and sets no selection",
        "clipboard": "none",
        "clipboard_out": "x11vnc 0.9.16 reports no changes",
        "resize": "`BackendError`",
        "dead_client": "released by us after the reconnection",
        **_VNC,
    },
    "wayvnc": {
        "side_buttons": _KEYS_INSTEAD,
        "horizontal_wheel": "wayvnc 0.5 drops it without an error",
        "any_key": "`Untypable`",
        "any_text": "`Untypable`",
        "clipboard_in": "Latin-1 only, `BackendError` beyond",
        "clipboard": "none",
        "clipboard_out": "Latin-1 only",
        "resize": "`BackendError`",
        "told_pointer": "wayvnc 0.5 only shows it in the picture",
        **_VNC,
    },
    "x0tigervnc": {
        "side_buttons": f"TigerVNC before 1.15: {_KEYS_INSTEAD}",
        "any_key": "TigerVNC 1.12 drops them; `Observation.unanswered`",
        "any_text": "the paste ends in `DeskhandTimeout`",
        "clipboard_in": "TigerVNC 1.12 has none here, and reports no error",
        "clipboard": "none",
        "clipboard_out": "none",
        "resize": "`BackendError`",
        **_VNC,
    },
}


@dataclass
class Place:
    """One desktop to test.

    Attributes:
        name: As in `LACKS`.
        connect: Opens one more connection to it.
        environment: For X clients; None where there is no X server.
        corner: Where the first window comes up.
        picture: A command that writes a picture of the screen, taken without us, to its standard output.
        processes: What may be killed or stopped: the VNC server first.
    """

    name: str
    connect: Callable[..., Desktop]
    environment: dict[str, str] | None
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    url: str = ""
    corner: tuple[int, int] = (100, 100)
    picture: tuple[str, ...] = ("import", "-window", "root", "ppm:-")

    def has(self, feature: str) -> bool:
        """Whether the table says that it can."""
        assert feature in FEATURES
        return feature not in LACKS[self.name]


def need(program: str, package: str) -> str:
    """The path of a program; tests never skip for a missing one."""
    path = shutil.which(program)
    if path is None:
        pytest.fail(f"{program} is not installed: apt-get install {package}")
    return path


def _wait_for(ready: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> bool:
    deadline = time.monotonic() + 20
    while not ready():
        if process.poll() is not None:
            return False
        if time.monotonic() >= deadline:
            process.kill()
            process.wait()
            pytest.fail(log.read_text())
        time.sleep(0.01)
    return True


def _answers(path: Path) -> bool:
    """Whether a file is there, and somebody listens if it is a socket.

    Not by connecting: wayvnc 0.5 dies of who hangs up at once.
    """
    if not path.is_socket():
        return path.exists()
    # A thread may have a network of its own (tools/lossy_line.py).
    lines = [line.split() for line in Path("/proc/thread-self/net/unix").read_text().splitlines()]
    return any(fields[-1] == str(path) and fields[3] == _LISTENING for fields in lines)


def _holds(lock: Path, process: subprocess.Popen[bytes]) -> bool:
    """Whether a display's lock is this server's."""
    return lock.exists() and lock.read_text().split() == [str(process.pid)]


@contextlib.contextmanager
def running(argv: Sequence[str], environment: dict[str, str] | None, socket: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A server that listens at a Unix socket."""
    log = socket.with_suffix(".log")
    with log.open("ab") as out:
        process = subprocess.Popen(argv, env=environment, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
    try:
        assert _wait_for(lambda: _answers(socket), process, log), log.read_text()
        yield process
    finally:
        # Politely, for a compositor then takes its X server's files away; a stopped or dead one is past that.
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
        process.kill()
        process.wait()
        socket.unlink(missing_ok=True)


@contextlib.contextmanager
def _display(
    folder: Path, argv: Callable[[int], Sequence[str]], *files: Path, given: socket.socket | None = None
) -> Iterator[tuple[dict[str, str], subprocess.Popen[bytes]]]:
    """An X server on a free display; `files` are there when it is ready, and `given` is its standard input."""
    log = folder / "server.log"
    for number in range(100, 200):
        made = (Path(f"/tmp/.X11-unix/X{number}"), *files)
        lock = Path(f"/tmp/.X{number}-lock")
        if lock.exists():
            continue
        with log.open("ab") as out:
            process = subprocess.Popen(argv(number), stdin=given, stdout=out, stderr=out)
        # Another server may have taken the number just before: what answers there is not ours then.
        if not _wait_for(lambda: _holds(lock, process) and all(map(_answers, made)), process, log):  # noqa: B023 # called at once
            continue
        try:
            yield {**os.environ, "DISPLAY": f":{number}"}, process
        finally:
            process.kill()
            process.wait()
            # The lock last: until then nobody else begins there.
            for path in (*made, lock):
                path.unlink(missing_ok=True)
        return
    pytest.fail(log.read_text())


@contextlib.contextmanager
def xvnc(
    folder: Path, *options: str, size: tuple[int, int] = SIZE, listener: socket.socket | None = None
) -> Iterator[Place]:
    """TigerVNC's own X server.

    Args:
        folder: An empty one.
        options: More of its own; with `-rfbport` it listens there, in a network namespace of its own where the port is free.
        size: Of the screen.
        listener: A TCP socket that listens, for it to take over; without it, it listens at a Unix socket.
    """
    program = need("Xvnc", "tigervnc-standalone-server")
    path = folder / "xvnc.sock"
    given = ["-geometry", "{}x{}".format(*size), "-ac", "-noreset", *options]
    local = listener is None and "-rfbport" not in options
    if local:
        given += ["-rfbport", "-1", "-rfbunixpath", str(path)]
    elif listener is not None:
        given += ["-inetd"]
    if "-SecurityTypes" not in options:
        given += ["-SecurityTypes", "None"]
    files = [path] if local else []
    with _display(folder, lambda number: [program, f":{number}", *given], *files, given=listener) as (
        environment,
        process,
    ):
        url = f"vnc+unix://{path}" if listener is None else "vnc://{}::{}".format(*listener.getsockname())
        yield Place("xvnc", lambda **how: deskhand.connect(url, **how), environment, [process], url)


@contextlib.contextmanager
def xvfb(folder: Path) -> Iterator[tuple[dict[str, str], subprocess.Popen[bytes]]]:
    """An X server without a screen of glass."""
    program = need("Xvfb", "xvfb")
    screen = "{}x{}x24".format(*SIZE)
    options = ["-screen", "0", screen, "-nolisten", "tcp", "-noreset", "-ac"]
    with _display(folder, lambda number: [program, f":{number}", *options]) as running_server:
        yield running_server


@contextlib.contextmanager
def x11(folder: Path) -> Iterator[Place]:
    """Xvfb, without a VNC server."""
    with xvfb(folder) as (environment, process):
        url = f"x11:{environment['DISPLAY']}"
        yield Place("x11", lambda **how: deskhand.connect(url, **how), environment, [process], url)


def _x11vnc(display: str, socket: Path) -> list[str]:
    return [
        *(need("x11vnc", "x11vnc"), "-display", display, "-forever", "-shared", "-nopw", "-quiet", "-noxdamage"),
        *("-rfbport", "0", "-unixsock", str(socket)),
    ]


def _x0tigervnc(display: str, socket: Path) -> list[str]:
    return [
        *(need("X0tigervnc", "tigervnc-scraping-server"), "-display", display, "-SecurityTypes", "None"),
        *("-rfbport", "-1", "-rfbunixpath", str(socket)),
    ]


@contextlib.contextmanager
def _scraping(name: str, argv: Callable[[str, Path], list[str]], folder: Path) -> Iterator[Place]:
    """A VNC server that shows a running X display."""
    socket = folder / f"{name}.sock"
    with xvfb(folder) as (environment, _):
        url = f"vnc+unix://{socket}"
        with running(argv(environment["DISPLAY"], socket), environment, socket) as process:
            yield Place(name, lambda **how: deskhand.connect(url, **how), environment, [process], url)


@contextlib.contextmanager
def wayvnc(folder: Path, settings: str = "") -> Iterator[Place]:
    """A Wayland compositor without a screen of glass, its X server for X clients, and wayvnc.

    Args:
        folder: An empty one.
        settings: wayvnc's configuration.
    """
    # As root sway refuses to run.
    nobody = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] if os.geteuid() == 0 else []
    home, socket, told, config = folder / "home", folder / "way.sock", folder / "display", folder / "sway"
    need("Xwayland", "xwayland")
    # X clients of other users may join.
    config.write_text(
        "output HEADLESS-1 resolution {}x{} position 0 0\ndefault_border none\n".format(*SIZE)
        + f"exec sh -c 'xhost +local: && echo $DISPLAY >{told}.new && mv {told}.new {told}'\n"
    )
    home.mkdir(mode=0o700)
    (folder / "wayvnc").write_text(settings)
    serve = ["-C", str(folder / "wayvnc"), "-u", str(socket)]
    for path in (home, folder):
        if nobody:
            shutil.chown(path, "nobody")
    environment = {name: value for name, value in os.environ.items() if name not in {"DISPLAY", "XAUTHORITY"}}
    environment |= {"HOME": str(home), "XDG_RUNTIME_DIR": str(home), "WAYLAND_DISPLAY": "wayland-1"}
    environment |= {"WLR_BACKENDS": "headless", "WLR_LIBINPUT_NO_DEVICES": "1", "WLR_RENDERER": "pixman"}
    url = f"vnc+unix://{socket}"
    processes: list[subprocess.Popen[bytes]] = []
    with contextlib.ExitStack() as stack:
        stack.enter_context(running([*nobody, need("sway", "sway"), "-c", str(config)], environment, told))

        def start() -> None:
            command = [*nobody, need("wayvnc", "wayvnc"), *serve]
            processes[:] = [stack.enter_context(running(command, environment, socket))]

        def connect(**how: Any) -> Desktop:
            for _ in range(_TRIES):
                try:
                    return deskhand.connect(url, **how)
                except deskhand.ConnectFailed as error:
                    # wayvnc 0.5 crashes now and then when a client and a window go together, which the next one finds. Who asks
                    # whether it listens is a client too.
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        processes[0].wait(5)
                    if processes[0].returncode not in _CRASHED:
                        said = socket.with_suffix(".log").read_text(errors="replace")[-2000:]
                        error.add_note(f"wayvnc's exit code is {processes[0].returncode}, and it said: {said}")
                        raise
                socket.unlink(missing_ok=True)
                start()
            return deskhand.connect(url, **how)

        start()
        environment["DISPLAY"] = told.read_text().strip()
        picture = (*nobody, need("grim", "grim"), "-t", "ppm", "-")
        yield Place("wayvnc", connect, environment, processes, url, (0, 0), picture)


@contextlib.contextmanager
def container(name: str) -> Iterator[Place]:
    """A container without a window manager, reached through its X socket, over VNC or through an engine that is far."""
    vnc = name != "docker"
    image = minimal_image()
    launched = launch_docker(
        image=image, size=SIZE, name=f"conformance-{secrets.token_hex(4)}", window_manager=None, vnc=vnc
    )
    entry = leave_running(launched)
    url = f"docker://{entry.name}"
    if name == "docker-vnc":
        url = f"vnc+unix://{Path(entry.xauthority).with_name('vnc')}"
    environment = {**os.environ, "DISPLAY": entry.display, "XAUTHORITY": entry.xauthority}
    try:
        yield Place(name, lambda **how: deskhand.connect(url, **how), environment, [], url)
    finally:
        subprocess.run(
            [Path(sys.executable).with_name("deskhand"), "down", entry.name], check=True, capture_output=True
        )


@contextlib.contextmanager
def far_container(folder: Path) -> Iterator[Place]:
    """The same through ssh; X clients that look at it from the other side are near."""
    with container("docker-remote") as near, ssh_server(folder / "ssh") as ssh:
        name = near.url.removeprefix("docker://")
        yield replace(near, connect=lambda **how: connect_docker(name, environment=ssh.environment(), **how))


@contextlib.contextmanager
def memory(folder: Path) -> Iterator[Place]:
    """The public fake."""
    del folder
    yield Place("memory", lambda **how: Desktop(MemoryBackend(SIZE), **how), None)


@contextlib.contextmanager
def serving(name: str) -> Iterator[Place]:
    """The desktop of that name, running."""
    with tempfile.TemporaryDirectory(prefix="deskhand-") as folder:
        path = Path(folder)
        match name:
            case "memory":
                place = memory(path)
            case "x11":
                place = x11(path)
            case "xvnc":
                place = xvnc(path)
            case "x11vnc":
                place = _scraping(name, _x11vnc, path)
            case "wayvnc":
                place = wayvnc(path)
            case "x0tigervnc":
                place = _scraping(name, _x0tigervnc, path)
            case "docker" | "docker-vnc":
                place = container(name)
            case "docker-remote":
                place = far_container(path)
            case _:
                pytest.fail(f"no server {name}")
        with place as found:
            yield found
