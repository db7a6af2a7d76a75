"""Reads the element below a viewer's pointer: in a thread of its own, a few times a second, and only when asked.

This module owns that thread and how often applications are asked. Of an element viewers get its role, its name, its
reference and its place, and never what is written in it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from deskhand._core.geometry import Point
from deskhand._core.redaction import one_line
from deskhand._native import Interrupted
from deskhand.desktop.access import core_of, latest
from deskhand.desktop.onlooker import Onlooker
from deskhand.errors import DeskhandError, UnsupportedAction
from deskhand.watch.pointed import element_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deskhand._core.elements import Elements
    from deskhand._core.window import Window
    from deskhand.desktop.desktop import Desktop
    from deskhand.watch.mirror import Mirror

# Seconds between two readings, for all viewers together, and until a failure is tried again.
_PERIOD = 0.25
_RETRY = 3.0
# How often it is tried while the picture's connection is about to begin.
_TRIES = 8
_LONGEST_NAME = 200
_LONGEST_REASON = 300
_NO_BUS = "This desktop has no elements: there is no accessibility bus to ask, as over VNC."
_NOT_YET = "The elements are not known yet."


class Pointing:
    """The elements of one desktop, for those who point at its picture."""

    def __init__(self, desktop: Desktop, mirror: Mirror) -> None:
        """Read nothing yet. `mirror` is the desktop's picture."""
        self._desktop = desktop
        self._mirror = mirror
        self._lock = threading.Lock()
        self._thread: ThreadPoolExecutor | None = None
        # Of the reading thread alone.
        self._onlooker: Onlooker | None = None
        self._read: tuple[Elements, Sequence[Window]] | str = _NOT_YET
        self._again = 0.0

    async def at(self, x: int, y: int) -> dict[str, Any]:
        """What is at a pixel of the desktop: its `element`, or as `none` a sentence that says why there is none."""
        answer: dict[str, Any] = {}
        for _ in range(_TRIES):
            with self._lock:
                if self._thread is None:
                    self._thread = ThreadPoolExecutor(1, "deskhand-elements-watch")
                asked = self._thread.submit(self._find, x, y)
            answer = await asyncio.wrap_future(asked)
            if answer["none"] != _NOT_YET:
                break
            await asyncio.sleep(_PERIOD)
        return answer

    def rest(self) -> None:
        """End the thread after its present reading; the next request begins another one."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.shutdown(wait=False, cancel_futures=True)

    def forget(self) -> None:
        """Drop what was read, because control has changed: it may have been meant only for the former holder."""
        self._again = 0.0

    # --- in the thread ---

    def _find(self, x: int, y: int) -> dict[str, Any]:
        answer: dict[str, Any] = {"at": [x, y], "element": None, "none": ""}
        if time.monotonic() >= self._again:
            try:
                self._read = self._look()
                self._again = time.monotonic() + _PERIOD
            except Interrupted:
                # Of the picture's connection, which is about to end.
                self._read = _NOT_YET
            except UnsupportedAction:
                self._read, self._again = _NO_BUS, time.monotonic() + _RETRY
            except DeskhandError as error:
                self._read = f"The elements cannot be read now: {one_line(str(error), _LONGEST_REASON)}"
                self._again = time.monotonic() + _RETRY
        if isinstance(self._read, str):
            return {**answer, "none": self._read}
        found = element_at(*self._read, Point(x, y))
        if isinstance(found, str):
            return {**answer, "none": found}
        return {
            **answer,
            "element": {
                "ref": found.ref,
                "role": one_line(found.role, _LONGEST_NAME),
                "name": one_line(found.name, _LONGEST_NAME),
                "box": None if found.box is None else list(found.box),
            },
        }

    def _look(self) -> tuple[Elements, Sequence[Window]] | str:
        windows = self._mirror.windows()
        if windows is None:
            return _NOT_YET
        core = core_of(latest(self._desktop))
        if self._onlooker is None or self._onlooker.core is not core:
            self._onlooker = Onlooker(core)
        return self._onlooker.read(self._mirror.screen, windows), windows
