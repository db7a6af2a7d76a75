"""What every stage of the zoo shares: its orders, what it does about input, and the log of when it changed.

A stage connects to the port given as its first argument, tells where it moves on its own, and is then armed with a recipe: at
which times after its next input it paints a cell, and what it does meanwhile. Times are seconds of CLOCK_MONOTONIC. It sends
its log only when it is asked, so that telling does not look like work. Standard library only: the system's Python runs it.

The loads, that is what goes on until a cell is painted:

- `timer`: nothing; the main loop waits for a timer;
- `spin`: the main loop computes and answers nothing;
- `chunks`: the main loop computes 5 ms at a time and answers events in between;
- `block`: the main loop sleeps in a call;
- `thread`: another thread computes;
- `child`: another process computes;
- `cursor`: the pointer says that the program is at work, and the main loop waits for a timer.
"""

from __future__ import annotations

import hashlib
import json
import selectors
import socket
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE = (500, 400)
# Place and period of what moves on its own, in window coordinates.
SCENES = {
    "caret": ((40, 40, 2, 16), 0.5),
    "clock": ((300, 20, 60, 16), 1.0),
    "spinner": ((40, 120, 32, 32), 0.04),
    "video": ((200, 100, 160, 120), 0.04),
}
_CHUNK = 0.005
_CELLS = 20


def cell(count: int) -> tuple[tuple[int, int, int, int], int]:
    """Where the answer's change number `count` is painted, and in which colour."""
    return (40 + 20 * (count % _CELLS), 300, 18, 40), 0x204060 + 0x1F3D59 * (count % 61) & 0xFFFFFF


def scene_colour(name: str, count: int) -> int:
    """The colour of a scene's change number `count`."""
    if name == "caret":
        return (0xFFFFFF, 0x202020)[count % 2]
    return 0x303030 + 0x0F1B2D * (count % 7)


def on_grid(rect: tuple[int, int, int, int], grid: tuple[int, int]) -> tuple[int, int, int, int]:
    """The cells of a grid that a rectangle stands for, in pixels: at least one."""
    (x, y, width, height), (across, down) = rect, grid
    size = (max(1, width // across) * across, max(1, height // down) * down)
    return (x // across * across, y // down * down, *size)


def spin_until(at: float) -> None:
    """Use the processor until `at`, without the interpreter's lock for most of it."""
    while time.monotonic() < at:
        hashlib.pbkdf2_hmac("sha256", b"zoo", b"zoo", 500)


class Toolkit(Protocol):
    """What a stage's main loop offers."""

    def call(self, do: Callable[[], object]) -> None:
        """From any thread: do this in the main loop, after what is to be drawn was drawn."""

    def after(self, seconds: float, do: Callable[[], object]) -> None:
        """Do this in the main loop in a while."""

    def paint(self, rect: tuple[int, int, int, int], colour: int) -> None:
        """Have a rectangle drawn; `Actor.drawn` is called when it was."""

    def point(self, *, busy: bool) -> None:
        """What the pointer is to look like over the window; only for the load `cursor`."""


class Actor:
    """One stage's behaviour."""

    def __init__(self, toolkit: Toolkit, grid: tuple[int, int] = (1, 1)) -> None:
        """Begin.

        Args:
            toolkit: The main loop.
            grid: Width and height of what is painted at a time: a pixel, or a terminal's cell.
        """
        self._toolkit = toolkit
        self._recipe: dict[str, Any] = {"times": [], "load": "timer"}
        self._began = 0.0
        self._log: list[float] = []
        self._count = 0
        self._drawn = 0
        self._due = 0
        self._inputs = 0
        self._scenes: dict[str, int] = {}
        self._socket = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
        self._send(scenes={name: on_grid(rect, grid) for name, (rect, _) in SCENES.items()})
        threading.Thread(target=self._read, daemon=True).start()

    def _send(self, **what: object) -> None:
        self._socket.sendall(json.dumps(what).encode() + b"\n")

    def _read(self) -> None:
        with self._socket.makefile() as lines:
            for line in lines:
                order = json.loads(line)
                self._toolkit.call(lambda order=order: self._obey(order))

    def _obey(self, order: dict[str, Any]) -> None:
        if "beside" in order:
            self._scenes = dict.fromkeys(order["beside"], 0)
            for name in order["beside"]:
                self._toolkit.after(SCENES[name][1], lambda name=name: self._scene(name))
        if "times" in order:
            self._recipe = order
            self._log, self._due, self._inputs = [], len(order["times"]), 0
        self._send(began=self._began, changes=self._log, inputs=self._inputs, left=self._due - len(self._log))

    def _scene(self, name: str) -> None:
        if name in self._scenes:
            self._scenes[name] += 1
            self._toolkit.after(SCENES[name][1], lambda: self._scene(name))
            self._toolkit.paint(SCENES[name][0], scene_colour(name, self._scenes[name]))

    def input(self) -> None:
        """A key or button was pressed."""
        self._inputs += 1
        self._began = time.monotonic()
        times = [self._began + at for at in self._recipe["times"]]
        getattr(self, "_" + self._recipe["load"])(times)

    def drawn(self) -> None:
        """Everything painted so far has been handed to the X server."""
        # A busy toolkit draws two changes at once.
        self._log += [time.monotonic()] * (self._count - self._drawn)
        self._drawn = self._count

    def _paint(self) -> None:
        self._count += 1
        self._toolkit.paint(*cell(self._count))

    def _timer(self, times: list[float]) -> None:
        for at in times:
            left = at - time.monotonic()
            if left <= 0:
                self._paint()
            else:
                self._toolkit.after(left, self._paint)

    def _cursor(self, times: list[float]) -> None:
        def finish() -> None:
            self._paint()
            self._toolkit.point(busy=False)

        self._toolkit.point(busy=True)
        self._timer(times[:-1])
        self._toolkit.after(max(0.0, times[-1] - time.monotonic()), finish)

    def _in_the_loop(self, times: list[float], wait: Callable[[float], None]) -> None:
        wait(times[0])
        self._paint()
        if times[1:]:
            self._toolkit.call(lambda: self._in_the_loop(times[1:], wait))

    def _spin(self, times: list[float]) -> None:
        self._in_the_loop(times, spin_until)

    def _block(self, times: list[float]) -> None:
        self._in_the_loop(times, lambda at: time.sleep(max(0.0, at - time.monotonic())))

    def _chunks(self, times: list[float]) -> None:
        spin_until(min(times[0], time.monotonic() + _CHUNK))
        if time.monotonic() >= times[0]:
            self._paint()
            times = times[1:]
        if times:
            self._toolkit.call(lambda: self._chunks(times))

    def _elsewhere(self, times: list[float], wait: Callable[[float], None]) -> None:
        def work() -> None:
            for at in times:
                wait(at)
                self._toolkit.call(self._paint)

        threading.Thread(target=work, daemon=True).start()

    def _thread(self, times: list[float]) -> None:
        self._elsewhere(times, spin_until)

    def _child(self, times: list[float]) -> None:
        child = subprocess.Popen(
            [sys.executable, __file__, *map(str, times)], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
        )

        def wait(_: float) -> None:
            assert child.stdout is not None
            child.stdout.readline()

        self._elsewhere(times, wait)


class PollLoop:
    """A main loop for stages whose library has none; it watches one file and calls `ready` when there is something to read."""

    def __init__(self, file: Any) -> None:
        self._todo: list[tuple[float, Callable[[], object]]] = []
        self._asked, self._wake = socket.socketpair()
        self._files = selectors.DefaultSelector()
        self._files.register(file, selectors.EVENT_READ)
        self._files.register(self._asked, selectors.EVENT_READ)

    def call(self, do: Callable[[], object]) -> None:
        self.after(0.0, do)

    def after(self, seconds: float, do: Callable[[], object]) -> None:
        self._todo.append((time.monotonic() + seconds, do))
        self._wake.send(b"x")

    def turn(self, ready: Callable[[], object]) -> None:
        """One turn: wait, read, and do what is due."""
        wait = min([at for at, _ in self._todo], default=time.monotonic() + 1.0) - time.monotonic()
        for key, _ in self._files.select(max(0.0, wait)):
            if key.fileobj is self._asked:
                self._asked.recv(4096)
        ready()
        now = time.monotonic()
        for item in [item for item in self._todo if item[0] <= now]:
            self._todo.remove(item)
            item[1]()


if __name__ == "__main__":
    for _argument in sys.argv[1:]:
        spin_until(float(_argument))
        print(flush=True)
