"""The input of a person who has control of a desktop, sent in order by a thread of its own.

This module owns the queue between a page and the hold, and ends a hold after a time without input.
"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING, Any

from deskhand._core.redaction import one_line
from deskhand.actions import KeyPress
from deskhand.errors import ActionError, Closed, DeskhandError, DesktopHeld, UnsupportedAction
from deskhand.watch.keyboard import Keyboard, merged
from deskhand.watch.pictures import PNG, as_png, is_png, picture_type
from deskhand.watch.storing import folder_of, store
from deskhand.watch.transfers import MOST_FILES

if TYPE_CHECKING:
    from collections.abc import Callable

    from deskhand.desktop.control import Hold
    from deskhand.desktop.desktop import Desktop
    from deskhand.watch.transfers import Upload

IDLE_LIMIT = 600.0
"""Seconds without input after which a desktop is handed back."""

_MOST_WAITING = 500
_LONGEST_CLIPBOARD = 1 << 16
_JOIN = 10.0
_SLICE = 0.5
_MOMENT = 0.02
_LONGEST_ERROR = 500
_ENDED = "you do not have control of this desktop any more"


class PersonInput:
    """The input of one viewer who has control."""

    def __init__(
        self,
        viewer: object,
        hold: Hold[Desktop],
        failed: Callable[[str], None],
        ended: Callable[[], None],
        *,
        copied: Callable[[str, bytes], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
        idle: float = IDLE_LIMIT,
    ) -> None:
        """Begin; the thread ends with `end`, or with the hold.

        Args:
            viewer: Who has control.
            hold: The hold.
            failed: Called in the thread with what could not be done.
            ended: Called in the thread when the hold has ended by itself.
            copied: Called in the thread with the clipboard's text, or its picture as a PNG file.
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
        # The last thing that the page sent.
        self._upload: Upload | None = None
        self._uploads = 0
        self._thread = threading.Thread(target=self._run, name="deskhand-person-input", daemon=True)
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

    def receive(self, upload: Upload) -> None:
        """Let the page send something; `put_upload` follows when all of it is there.

        Raises:
            ActionError: The hold has ended, or there were too many.
            UnsupportedAction: No file can be written on this desktop.
        """
        if upload.kind == "file":
            folder_of(self._hold.desktop)
        with self._news:
            if self._over:
                raise ActionError(_ENDED)
            if self._uploads >= MOST_FILES:
                raise ActionError(f"{MOST_FILES} files were sent: hand the desktop back, and take control for more")
            self._uploads += 1
            self._upload = upload
            upload.accept()

    def touch(self) -> None:
        """Count an action of the person that takes long, such as a transfer, as input."""
        self._used = self._clock()

    def put_upload(self, upload: Upload) -> None:
        """Put what has come on the desktop; returns at once."""
        if upload.kind == "picture":
            self.put({"type": "picture", "upload": upload})
            return
        # A policy may take long to ask about a file, and input goes on meanwhile.
        threading.Thread(target=self._store, args=(upload,), name="deskhand-files", daemon=True).start()

    def end(self, note: str, *, whole: bool = False) -> None:
        """Hand the desktop back: what is pressed is released.

        Args:
            note: The person's words.
            whole: Do what waits first, for at most 10 s. Otherwise it is not done any more.
        """
        if whole:
            self._finish()
        self._stop()
        self._thread.join(_JOIN)
        with contextlib.suppress(DeskhandError):
            self._hold.release(note)

    def _finish(self) -> None:
        """Wait until everything that was put is done, or told."""
        done = threading.Event()
        with self._news:
            if not self._over:
                self._waiting.append({"type": "end", "done": done})
                self._news.notify()
        until = self._clock() + _JOIN
        while self.active and not done.wait(_MOMENT):
            if self._clock() > until:
                self._failed("what you did last was not done: the desktop did not take it before it was handed back")
                return

    def _stop(self) -> None:
        with self._news:
            self._over = True
            self._waiting.clear()
            self._news.notify()
        if self._upload is not None:
            self._upload.drop(_ENDED)

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
                self._stop()
                with contextlib.suppress(DeskhandError):
                    self._hold.release(f"there was no input for {self._idle:g} s")
            if idle or not self._hold.active:
                self._stop()
                self._ended()
                return
            for message in merged(messages):
                try:
                    self._do(message)
                except DeskhandError as error:
                    # A call that fails has released everything.
                    self._keyboard = Keyboard()
                    self._tell(error, message.get("upload"))

    def _do(self, message: dict[str, Any]) -> None:
        desktop = self._hold.desktop
        match message["type"]:
            case "end":
                message["done"].set()
            case "paste":
                desktop.clipboard.write(message["text"])
                if message["keys"]:
                    self._perform(*self._keyboard.release(), KeyPress(["ctrl", "v"]))
            case "picture":
                upload: Upload = message["upload"]
                data = upload.whole()
                if not is_png(data):
                    raise ActionError("the page sent no picture: it is no PNG file")
                desktop.clipboard.write_data({PNG: data})
                self._perform(*self._keyboard.release(), KeyPress(["ctrl", "v"]))
                upload.end(where="the clipboard")
            case "copy":
                text = desktop.clipboard.read() or ""
                picture = b"" if text else self._picture()
                if self._copied is not None:
                    self._copied(text[:_LONGEST_CLIPBOARD], picture)
            case _:
                self._perform(*self._keyboard.actions(message))

    def _picture(self) -> bytes:
        """The picture on the clipboard as a PNG file; empty if there is none."""
        clipboard = self._hold.desktop.clipboard
        try:
            type_ = picture_type(clipboard.types())
        except UnsupportedAction:
            return b""
        data = None if type_ is None else clipboard.read_data(type_)
        return b"" if type_ is None or data is None else as_png(data, type_)

    def _store(self, upload: Upload) -> None:
        try:
            upload.end(where=store(self._hold.desktop, upload.name, upload.whole()))
        except DeskhandError as error:
            self._tell(error, upload)
        finally:
            upload.end(error="it could not be written")

    def _tell(self, error: DeskhandError, upload: Upload | None) -> None:
        text = one_line(str(error), _LONGEST_ERROR)
        if upload is not None:
            upload.end(error=text)
        elif not self._came_late(error):
            self._failed(text)

    def _came_late(self, error: DeskhandError) -> bool:
        """Whether nothing was done because the hold had just ended: the page's state says that already."""
        if self._hold.active:
            return False
        return isinstance(error, Closed) or (isinstance(error, DesktopHeld) and not error.under_way)

    def _perform(self, *actions: Any) -> None:
        if actions:
            # The picture comes by another way; this one is never looked at.
            self._hold.desktop.perform(*actions, settle=False, size=(1, 1), format="raw")
