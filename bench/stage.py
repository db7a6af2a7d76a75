"""A window over the whole screen that shows pictures at once: they wait in the X server, and one request shows one.

`python -m bench.stage` is the window, and is controlled through pipes (see `child`); `Stage` is the controlling side. A call
returns when the server has drawn, so a measurement after it finds the change on the screen. The content of the pictures is
elsewhere.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bench.child import Child, Replies

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from deskhand.desktop.desktop import Desktop

__all__ = ["Stage", "environment_of"]

_Rect = tuple[int, int, int, int]


def environment_of(desktop: Desktop) -> dict[str, str]:
    """The environment in which an X client connects to a desktop."""
    where = {"DISPLAY": str(desktop.display), "XAUTHORITY": str(desktop.xauthority)}
    # Like in any X session; PyAutoGUI reads it.
    return {**os.environ, **where, "XDG_SESSION_TYPE": "x11"}


class Stage:
    """A stage on a desktop."""

    def __init__(self, desktop: Desktop, scratch: Path) -> None:
        """Cover the whole screen, black at first.

        Args:
            desktop: The desktop.
            scratch: A directory for passing pictures.
        """
        self._scratch = scratch
        name = str(desktop.display).strip(":")
        self._child = Child("bench.stage", env=environment_of(desktop), log=scratch / f"stage-{name}.log")
        self._prefix = f"stage-{name}"
        self._child.ask(op="ready")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The process id of the window's program."""
        return self._child.pid

    def load(self, pictures: Mapping[str, NDArray[np.uint8]]) -> None:
        """Send pictures to the server: arrays of shape (height, width, 3), RGB."""
        for name, picture in pictures.items():
            path = self._scratch / f"{self._prefix}.npy"
            np.save(path, picture)
            self._child.ask(op="load", name=name, path=str(path))
            path.unlink()

    def show(self, name: str, rect: _Rect | None = None) -> None:
        """Show a picture, or the part of it in `rect`, at its own place; returns when it is on the screen."""
        self._child.ask(op="show", name=name, rect=rect)

    def play(self, names: Sequence[str], at: tuple[int, int], rate: float) -> None:
        """Show the pictures one after the other, `rate` of them a second, until `stop`.

        Args:
            names: Pictures of one size, shown in a loop.
            at: The place of their left upper corner.
            rate: Pictures a second.
        """
        self._child.ask(op="play", names=list(names), at=at, rate=rate)

    def stop(self) -> None:
        """Stop playing."""
        self._child.ask(op="stop")

    def close(self) -> None:
        """End it."""
        self._child.close()


class _Window:
    """The window."""

    def __init__(self) -> None:
        from Xlib import X, display  # noqa: PLC0415 # only the window's process needs them

        self._x = X
        self._display = display.Display()
        screen = self._display.screen()
        self._size = (screen.width_in_pixels, screen.height_in_pixels)
        self._depth = screen.root_depth
        self._window = screen.root.create_window(
            0, 0, *self._size, 0, self._depth, background_pixel=0, override_redirect=True
        )
        self._window.map()
        self._gc = self._window.create_gc(graphics_exposures=False)
        self._pictures: dict[str, tuple[Any, int, int]] = {}
        self._film: list[str] = []
        self._at = (0, 0)
        self._period = 0.0
        self._due = float("inf")
        self._frame = 0
        self._display.sync()

    def handle(self, message: dict[str, Any]) -> None:
        op = message["op"]
        if op == "load":
            self._load(message["name"], Path(message["path"]))
        elif op == "show":
            picture, width, height = self._pictures[message["name"]]
            x, y, w, h = message["rect"] or (0, 0, width, height)
            self._window.copy_area(self._gc, picture, x, y, w, h, x, y)
        elif op == "play":
            self._film, self._at, self._period = message["names"], tuple(message["at"]), 1 / message["rate"]
            self._due = time.monotonic()
        elif op == "stop":
            self._due = float("inf")
        self._display.sync()

    def _load(self, name: str, path: Path) -> None:
        rgb = np.load(path)
        height, width = rgb.shape[:2]
        rows = np.zeros((height, width, 4), np.uint8)
        rows[..., :3] = rgb[..., ::-1]
        picture = self._window.create_pixmap(width, height, self._depth)
        # The largest request of the core protocol has 65,535 units of four bytes.
        step = max(1, 65_000 // width)
        for top in range(0, height, step):
            part = rows[top : top + step]
            picture.put_image(self._gc, 0, top, width, len(part), self._x.ZPixmap, self._depth, 0, part.tobytes())
        self._pictures[name] = (picture, width, height)

    def wait(self) -> float | None:
        """Show the next picture of the film when it is due; returns how long it is until the one after."""
        if self._due == float("inf"):
            return None
        now = time.monotonic()
        if now >= self._due:
            picture, width, height = self._pictures[self._film[self._frame % len(self._film)]]
            self._window.copy_area(self._gc, picture, 0, 0, width, height, *self._at)
            self._display.flush()
            self._frame += 1
            # Skip pictures that are late.
            self._due = max(self._due + self._period, now)
        return max(0.0, self._due - now)


def main() -> None:
    """Be the window."""
    window = _Window()
    replies = Replies(window.handle)
    while replies.once(window.wait()):
        pass


if __name__ == "__main__":
    main()
