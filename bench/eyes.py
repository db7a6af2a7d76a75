"""How each peer looks at a screen: as its documentation says, keeping open everything that it allows."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from PIL import Image

from bench.idle import cpu_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["LOOKS", "Eye"]

_Size: TypeAlias = tuple[int, int]
_SCALED = (1366, 768)
_FIRST_PORT = 15900
_END_LIMIT = 3.0
_WARM_LOOKS = 8
_CALM_SLICE, _CALM_SLICES, _CALM_SHARE = 0.1, 30, 0.1


class Eye:
    """A way to look.

    Attributes:
        look: Returns a PNG file's bytes, or pixels.
        before: Called before each look, not timed.
        after: Called after each look, not timed.
        wake: Called some time before a look.
        warms: Whether a look makes the next one faster, because it runs in the same process.
    """

    def __init__(
        self,
        look: Callable[[], Any],
        before: Callable[[], object] = lambda: None,
        after: Callable[[], object] = lambda: None,
        wake: Callable[[], object] = lambda: None,
        *,
        warms: bool = True,
    ) -> None:
        self.look = look
        self.warms = warms
        self.before = before
        self.after = after
        self.wake = wake


@contextlib.contextmanager
def _by_program(*commands: list[str]) -> Iterator[Eye]:
    """A look by programs that write files; `PATH` stands for the last file."""
    with tempfile.TemporaryDirectory() as scratch:
        path, middle = Path(scratch) / "shot.png", Path(scratch) / "middle.png"
        argvs = [[word.replace("PATH", str(path)).replace("MIDDLE", str(middle)) for word in c] for c in commands]

        def look() -> bytes:
            for argv in argvs:
                subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, capture_output=True)
            return path.read_bytes()

        yield Eye(look, warms=False)


def scrot(_size: _Size) -> contextlib.AbstractContextManager[Eye]:
    return _by_program(["scrot", "-o", "PATH"])


def imagemagick(_size: _Size) -> contextlib.AbstractContextManager[Eye]:
    return _by_program(["import", "-window", "root", "PATH"])


def scrot_scaled(_size: _Size) -> contextlib.AbstractContextManager[Eye]:
    scaled = f"{_SCALED[0]}x{_SCALED[1]}!"
    return _by_program(["scrot", "-o", "MIDDLE"], ["convert", "MIDDLE", "-resize", scaled, "PATH"])


@contextlib.contextmanager
def modal(size: _Size) -> Iterator[Eye]:
    import _modal_computer_use_x11_shm as native  # noqa: PLC0415 # each process loads one peer

    session = native.X11SharedMemoryScreenshotSession(os.environ["DISPLAY"], *size)
    try:
        yield Eye(lambda: session.capture_png(0, 0, *size))
    finally:
        session.close()


def _png(picture: Image.Image, level: int) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", compress_level=level)
    return buffer.getvalue()


@contextlib.contextmanager
def _by_xlib(finish: Callable[[bytes], Any], size: _Size) -> Iterator[Eye]:
    from Xlib import X  # noqa: PLC0415
    from Xlib.display import Display  # noqa: PLC0415

    display = Display()
    root = display.screen().root
    yield Eye(lambda: finish(root.get_image(0, 0, *size, X.ZPixmap, 0xFFFFFFFF).data))
    display.close()


def _xlib_png(level: int, size: _Size) -> contextlib.AbstractContextManager[Eye]:
    return _by_xlib(lambda data: _png(Image.frombytes("RGB", size, data, "raw", "BGRX"), level), size)


def xlib_raw(size: _Size) -> contextlib.AbstractContextManager[Eye]:
    width, height = size
    # `reshape` copies nothing.
    return _by_xlib(lambda data: np.frombuffer(data, np.uint8).reshape(height, width, 4), size)


def xlib_6(size: _Size) -> contextlib.AbstractContextManager[Eye]:
    return _xlib_png(6, size)


def xlib_1(size: _Size) -> contextlib.AbstractContextManager[Eye]:
    return _xlib_png(1, size)


@contextlib.contextmanager
def _by_mss(finish: Callable[[Any], Any]) -> Iterator[Eye]:
    import mss  # noqa: PLC0415

    with mss.MSS() as grabber:
        yield Eye(lambda: finish(grabber.grab(grabber.monitors[0])))


def mss_raw(size: _Size) -> contextlib.AbstractContextManager[Eye]:
    width, height = size
    return _by_mss(lambda shot: np.frombuffer(shot.raw, np.uint8).reshape(height, width, 4))


def mss_array(size: _Size) -> contextlib.AbstractContextManager[Eye]:
    width, height = size
    return _by_mss(
        lambda shot: np.ascontiguousarray(np.frombuffer(shot.raw, np.uint8).reshape(height, width, 4)[..., 2::-1])
    )


def mss_png(_size: _Size) -> contextlib.AbstractContextManager[Eye]:
    from mss.tools import to_png  # noqa: PLC0415

    return _by_mss(lambda shot: to_png(shot.rgb, shot.size))


def _pillow(shot: Any) -> Image.Image:
    return Image.frombytes("RGB", shot.size, shot.bgra, "raw", "BGRX")


def mss_1(_size: _Size) -> contextlib.AbstractContextManager[Eye]:
    return _by_mss(lambda shot: _png(_pillow(shot), 1))


def mss_scaled(_size: _Size) -> contextlib.AbstractContextManager[Eye]:
    return _by_mss(lambda shot: _png(_pillow(shot).resize(_SCALED, Image.Resampling.LANCZOS), 1))


@contextlib.contextmanager
def pyautogui(_size: _Size) -> Iterator[Eye]:
    import pyautogui as gui  # noqa: PLC0415

    yield Eye(lambda: _png(gui.screenshot(), 6))


class _Server:
    """An x11vnc. It watches the screen while a client is connected, so it is stopped while others are measured."""

    def __init__(self, process: subprocess.Popen[str], port: int, password: str) -> None:
        self.port = port
        self.password = password
        self._process = process

    def wake(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def rest(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def calm(self) -> None:
        """Wait until it has caught up with the screen, so that the changes that it missed do not count in any measurement."""
        for _ in range(_CALM_SLICES):
            used = cpu_seconds(self._process.pid)
            time.sleep(_CALM_SLICE)
            if cpu_seconds(self._process.pid) - used < _CALM_SHARE * _CALM_SLICE:
                return


@contextlib.contextmanager
def _x11vnc() -> Iterator[_Server]:
    """A server with its defaults, running from the start."""
    password = secrets.token_hex(4)
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(password + "\n")
        file.flush()
        argv = ["x11vnc", "-localhost", "-no6", "-autoport", str(_FIRST_PORT + secrets.randbelow(10_000))]
        argv += ["-passwdfile", file.name, "-forever", "-shared", "-quiet"]
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=sys.stderr, text=True)
        try:
            assert process.stdout is not None  # noqa: S101 # requested above
            port = next((int(line[5:]) for line in process.stdout if line.startswith("PORT=")), None)
            if port is None:
                raise RuntimeError("x11vnc did not come up")
            yield _Server(process, port, password)
        finally:
            # If it were killed, some sixty segments of shared memory would be left.
            process.send_signal(signal.SIGCONT)
            process.terminate()
            try:
                process.wait(_END_LIMIT)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _warm_up(look: Callable[[], object]) -> None:
    """Warm up: in its first seconds with a client, x11vnc takes several times as long as later."""
    for _ in range(_WARM_LOOKS):
        look()


@contextlib.contextmanager
def _vncdotool(server: str, password: str | None = None) -> Iterator[Callable[[], bytes]]:
    from vncdotool import api  # noqa: PLC0415

    client = api.connect(server, password=password, timeout=30)

    def look() -> bytes:
        buffer = io.BytesIO()
        client.captureScreen(buffer, format="PNG")
        return buffer.getvalue()

    yield look
    client.disconnect()
    api.shutdown()


@contextlib.contextmanager
def vncdotool(_size: _Size) -> Iterator[Eye]:
    with _x11vnc() as server, _vncdotool(f"127.0.0.1::{server.port}", server.password) as look:
        _warm_up(look)
        yield Eye(look, before=server.calm, after=server.rest, wake=server.wake)
        server.wake()


@contextlib.contextmanager
def deskhand_xvnc(_size: _Size) -> Iterator[Eye]:
    import deskhand  # noqa: PLC0415

    with deskhand.connect(f"vnc+unix://{_xvnc()}") as desktop:
        yield Eye(lambda: desktop.screenshot().png)


@contextlib.contextmanager
def vncdotool_xvnc(_size: _Size) -> Iterator[Eye]:
    with _vncdotool(_xvnc()) as look:
        yield Eye(look)


def _xvnc() -> str:
    """The socket of the Xvnc that `vnc` has started, in the directory of this run."""
    return str(Path(os.environ["TMPDIR"]) / "xvnc.sock")


@contextlib.contextmanager
def _asyncvnc(**how: Any) -> Iterator[Callable[[], Any]]:
    import asyncvnc as vnc  # noqa: PLC0415

    async def opened(stack: contextlib.AsyncExitStack) -> Any:
        return await stack.enter_async_context(vnc.connect(**how))

    with asyncio.Runner() as runner:
        stack = contextlib.AsyncExitStack()
        client = runner.run(opened(stack))
        yield lambda: runner.run(client.screenshot())
        runner.run(stack.aclose())


@contextlib.contextmanager
def asyncvnc(_size: _Size) -> Iterator[Eye]:
    with _x11vnc() as server, _asyncvnc(host="127.0.0.1", port=server.port, password=server.password) as look:
        _warm_up(look)
        yield Eye(look, before=server.calm, after=server.rest, wake=server.wake)
        server.wake()


@contextlib.contextmanager
def asyncvnc_xvnc(_size: _Size) -> Iterator[Eye]:
    def opener(host: str, _port: int) -> Any:
        return asyncio.open_unix_connection(host)

    with _asyncvnc(host=_xvnc(), opener=opener) as look:
        yield Eye(look)


LOOKS = {
    look.__name__: look
    for look in (
        asyncvnc,
        asyncvnc_xvnc,
        deskhand_xvnc,
        imagemagick,
        modal,
        mss_1,
        mss_array,
        mss_png,
        mss_raw,
        mss_scaled,
        pyautogui,
        scrot,
        scrot_scaled,
        vncdotool,
        vncdotool_xvnc,
        xlib_1,
        xlib_6,
        xlib_raw,
    )
}
