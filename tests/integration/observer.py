"""An independent observer: a program of its own, with python-xlib, that writes down every input event it receives.

It covers the screen with a window, takes the focus and prints one JSON object a line. Keysyms are what its own copy of the
keymap says. For each line read from standard input it prints all events that the server had made up to then, and `{"mark": n}`.
`Observer` is the side that tests hold; it talks to the program through pipes only.
"""

from __future__ import annotations

import json
import queue
import select
import subprocess
import sys
import threading
from typing import IO, TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

_SHIFT, _LEVEL3 = 1, 1 << 7


class Observer:
    """The observer as a test sees it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._line()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def _line(self) -> dict[str, Any]:
        line = self._lines.get(timeout=60)
        assert line, "the observer ended"
        plain: dict[str, Any] = json.loads(line)
        return plain

    def events(self) -> list[dict[str, Any]]:
        """What was received since the last call."""
        assert self._process.stdin is not None
        self._process.stdin.write("mark\n")
        self._process.stdin.flush()
        seen = []
        while "mark" not in (event := self._line()):
            seen.append(event)
        return seen

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._reader.join(10)
        self._process.stdout.close()


def _observe(source: IO[str], out: IO[str]) -> None:  # noqa: C901 # one program, top to bottom
    # Imported by the observing process only: python-xlib cannot hold two displays in one process.
    from Xlib import XK, X  # noqa: PLC0415
    from Xlib.display import Display  # noqa: PLC0415

    kinds = {
        X.KeyPress: "key",
        X.KeyRelease: "key",
        X.ButtonPress: "button",
        X.ButtonRelease: "button",
        X.MotionNotify: "motion",
    }

    def say(**what: object) -> None:
        out.write(json.dumps(what) + "\n")
        out.flush()

    display = Display()
    for group in ("latin1", "miscellany", "xkb", "xf86"):
        XK.load_keysym_group(group)
    names = {value: name[3:] for name, value in reversed(vars(XK).items()) if name.startswith("XK_")}
    screen = display.screen()
    mask = X.KeyPressMask | X.KeyReleaseMask | X.ButtonPressMask | X.ButtonReleaseMask | X.PointerMotionMask
    window = screen.root.create_window(
        0,
        0,
        screen.width_in_pixels,
        screen.height_in_pixels,
        0,
        screen.root_depth,
        event_mask=mask | X.StructureNotifyMask,
        background_pixel=screen.white_pixel,
        override_redirect=True,
    )
    window.map()
    while display.next_event().type != X.MapNotify:
        pass
    window.set_input_focus(X.RevertToParent, X.CurrentTime)
    display.sync()

    def handle() -> None:
        while display.pending_events():
            event = display.next_event()
            if event.type == X.MappingNotify:
                display.refresh_keyboard_mapping(event)
                continue
            kind = kinds.get(event.type)
            if kind is None:
                continue
            what: dict[str, object] = {"kind": kind, "at": [event.root_x, event.root_y], "state": event.state}
            if kind != "motion":
                what["down"] = event.type in {X.KeyPress, X.ButtonPress}
            if kind == "key":
                column = (1 if event.state & _SHIFT else 0) + (4 if event.state & _LEVEL3 else 0)
                # A key without a symbol on a level has that of the first (X11 protocol, chapter 5).
                keysym = display.keycode_to_keysym(event.detail, column) or display.keycode_to_keysym(event.detail, 0)
                what |= {"keysym": keysym, "name": names.get(keysym, f"{keysym:#x}")}
            elif kind == "button":
                what["button"] = event.detail
            say(**what)

    say(ready=True)
    marks = 0
    while True:
        readable, _, _ = select.select([source, display], [], [])
        if source in readable:
            if not source.readline():
                return
            display.sync()
            handle()
            say(mark=(marks := marks + 1))
        else:
            handle()


if __name__ == "__main__":
    _observe(sys.stdin, sys.stdout)
