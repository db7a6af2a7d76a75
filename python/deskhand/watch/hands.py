"""What a person does on a desktop that they have control of, in order, in a thread of its own.

This module owns the queue between a page and the hold, and the end of a hold whose person does nothing any more.
"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING, Any

from deskhand._core.redaction import one_line
from deskhand.actions import KeyPress
from deskhand.errors import ActionError, DeskhandError
from deskhand.watch.keyboard import Keyboard, merged

if TYPE_CHECKING:
    from collections.abc import Callable

    from deskhand.desktop.control import Hold
    from deskhand.desktop.desktop import Desktop

IDLE_LIMIT = 600.0
"""Seconds without input after which a desktop is handed back."""

_MOST_WAITING = 500
_LONGEST_CLIPBOARD = 1 << 16
_JOIN = 10.0
_SLICE = 0.5


class Hands:
    """The input of one viewer who has control."""

    def __init__(
        self,
        viewer: object,
        hold: Hold[Desktop],
        failed: Callable[[str], None],
        ended: Callable[[], None],
        *,
        copied: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
        idle: float = IDLE_LIMIT,
    ) -> None:
        """Begin; the thread ends with `end`, or with the hold.

        Args:
            viewer: Who has control.
            hold: The hold.
            failed: Called in the thread with what could not be done.
            ended: Called in the thread when the hold has ended by itself.
            copied: Called in the thread with the clipboard's text.
            clock: Monotonic seconds.
            idle: Seconds without input after which the desktop is handed back.
        """
        self.viewer: object = viewer
        self._hold = hold
        self._failed = failed
        self._ended = ended
        self._copied = copied
        self._clock = clock
        self._idle = idle
        self._keyboard = Keyboard()
        self._news = threading.Condition()
        self._waiting: list[dict[str, Any]] = []
        self._used = clock()
        self._over = False
        self._thread = threading.Thread(target=self._run, name="deskhand-hands", daemon=True)
        self._thread.start()

    @property
    def active(self) -> bool:
        """Whether the person still has control."""
        return not self._over and self._hold.active

    def put(self, message: dict[str, Any]) -> None:
        """Do this after everything before it; returns at once.

        Raises:
            ActionError: Too much waits already: the desktop does not answer.
        """
        with self._news:
            self._used = self._clock()
            if message["type"] == "move" and self._waiting and self._waiting[-1]["type"] == "move":
                self._waiting[-1] = message
            elif len(self._waiting) >= _MOST_WAITING:
                raise ActionError(f"{_MOST_WAITING} inputs wait already: the desktop does not take them")
            else:
                self._waiting.append(message)
            self._news.notify()

    def end(self, note: str) -> None:
        """Hand the desktop back: what is pressed is released. Input that waits is not sent any more."""
        with self._news:
            self._over = True
            self._waiting.clear()
            self._news.notify()
        self._thread.join(_JOIN)
        with contextlib.suppress(DeskhandError):
            self._hold.release(note)

    def _run(self) -> None:
        while True:
            with self._news:
                while not self._waiting and not self._over and self._hold.active:
                    if self._clock() - self._used > self._idle:
                        break
                    self._news.wait(_SLICE)
                messages, self._waiting = self._waiting, []
                idle = not messages and not self._over and self._hold.active
                if self._over:
                    return
            if idle:
                self._over = True
                with contextlib.suppress(DeskhandError):
                    self._hold.release(f"nothing was done for {self._idle:g} s")
            if idle or not self._hold.active:
                self._ended()
                return
            for message in merged(messages):
                try:
                    self._do(message)
                except DeskhandError as error:
                    # A call that fails has released everything.
                    self._keyboard = Keyboard()
                    self._failed(one_line(str(error), 500))

    def _do(self, message: dict[str, Any]) -> None:
        desktop = self._hold.desktop
        match message["type"]:
            case "paste":
                desktop.clipboard.write(message["text"])
                if message["keys"]:
                    self._perform(*self._keyboard.release(), KeyPress(["ctrl", "v"]))
            case "copy":
                text = desktop.clipboard.read()
                if self._copied is not None:
                    self._copied(text[:_LONGEST_CLIPBOARD] if text else "")
            case _:
                self._perform(*self._keyboard.actions(message))

    def _perform(self, *actions: Any) -> None:
        if actions:
            # The picture comes by another way; this one is never looked at.
            self._hold.desktop.perform(*actions, settle=False, size=(1, 1), format="raw")
