"""VNC: the thin side of `_native.Vnc`, and the way back to a server that went away.

This module owns the order of things on one connection and between two. What must never appear here: a byte of the protocol, a
password, a wait without a limit.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import random
import threading
import time
from typing import TYPE_CHECKING, TypeVar

from deskhand._core.events import ButtonDown, ButtonUp, KeyDown, KeyUp
from deskhand._core.forks import share
from deskhand._core.geometry import Size
from deskhand._core.monitor import Monitor, monitors_of
from deskhand._core.settle import Activity, Lag
from deskhand._native import Interrupted, Screen, Vnc
from deskhand.backends.events import encode
from deskhand.backends.vnc.keyboard import BUDGET, CAPS_LOCK, NUM_LOCK, Keyboard, locks_needed
from deskhand.backends.vnc.login import enter
from deskhand.errors import BackendError, ConnectFailed, DeskhandTimeout, DesktopLost, Reconnected, UnsupportedAction

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deskhand._core.events import Event, Step
    from deskhand._core.window import Window
    from deskhand.backends.vnc.login import Ends
    from deskhand.backends.vnc.target import VncTarget

T = TypeVar("T")

# A server that comes back does so within the restart time of a supervisor.
_RECONNECT_LIMIT = 10.0
_ENTRY_LIMIT = 3.0
# A server that is back must be found within 2 s, its handshake included.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
_SILENT = 1.0
# How a loss is described when the other end may not know of it (by `_native.Vnc`).
_TEXTS_ONLY = "a server exchanges only texts: use clipboard.read and clipboard.write"
_UNANSWERED = ("not answer", "taken no input")
_SLICE = 0.25
# x11vnc sometimes frees the keycodes that it has found, when no key came for 5 s.
_FREED = 4.0


class VncBackend:
    """One VNC server."""

    name = "vnc"
    has_windows = False
    tells_focus = False
    tells_pointer = False

    def __init__(self, target: VncTarget, *, timeout: float) -> None:
        """Connect, and wait for the first picture.

        Args:
            target: The server, and the credentials.
            timeout: Seconds for all of it.

        Raises:
            ConnectFailed: No server is there, or it did not answer in time.
            AuthFailed: The server wants other credentials, or its certificate is not trusted.
            ProtocolViolation: It does not speak RFB as it should.
        """
        self._target = target
        self._keyboard = Keyboard()
        self._typed = -math.inf
        self._stop = threading.Event()
        self._closed = False
        # How a server was lost that did not come back in time: each later call tries once, and waits no more.
        self._given_up = ""
        self._before = ""
        self._ends: Ends | None = None
        self._vnc = self._connect(timeout, None)
        self.screen: Screen = self._vnc.screen
        share(self)

    def descriptors(self) -> list[int]:
        """Its socket."""
        return self._vnc.sockets()

    def __repr__(self) -> str:
        return f"<VncBackend {self._target}>"

    def _connect(self, timeout: float, screen: Screen | None, ends: Ends | None = None) -> Vnc:
        deadline = time.monotonic() + timeout
        # A reconnection cannot be stopped during its handshake.
        entered = enter(self._target, timeout if screen is None else min(timeout, _ENTRY_LIMIT), ends)
        vnc = Vnc(entered.fd, entered.size, entered.rest, local=entered.local, screen=screen)
        try:
            vnc.wait_first(max(0.0, deadline - time.monotonic()))
        except (DesktopLost, DeskhandTimeout) as error:
            vnc.close()
            hint = "check that the desktop behind it runs"
            raise ConnectFailed(str(self._target), f"it sent no picture: {error}", hint) from error
        except BaseException:
            vnc.close()
            raise
        self._ends = entered.ends
        return vnc

    def _do(self, work: Callable[[Vnc], T]) -> T:
        """Do it; where the connection breaks, make a new one and raise `Reconnected`."""
        try:
            return work(self._vnc)
        except DesktopLost as lost:
            if self._closed:
                raise
            detail = self._reconnect(lost)
            raise Reconnected(str(self._target), detail, self.screen.epoch) from lost

    def _reconnect(self, lost: DesktopLost) -> str:
        """Connect again, and release what was held. Returns the description of the loss."""
        deadline = time.monotonic() + (_ENTRY_LIMIT if self._given_up else _RECONNECT_LIMIT)
        keys, buttons = self._vnc.pressed()
        self._vnc.close()
        pause, reason = _FIRST_PAUSE, "no time was left to try"
        # A server that has not noticed the loss keeps the old connection, whose pressed button holds the pointer. From the same
        # port, TCP ends that connection (RFC 9293, 3.5.1). Every third attempt uses another: a firewall may forbid it.
        unanswered = any(words in lost.detail for words in _UNANSWERED)
        before = self._ends if unanswered else None
        ends = itertools.cycle((before, before, None))
        while (left := deadline - time.monotonic()) > 0:
            try:
                self._vnc = self._connect(left, self.screen, next(ends))
            except ConnectFailed as error:
                reason = error.reason
                if self._given_up:
                    deadline = 0.0
            else:
                self._given_up = ""
                break
            if self._stop.wait(min(pause * random.uniform(0.5, 1.0), left)):  # noqa: S311 # only spreads the attempts
                raise Interrupted("this call was stopped")
            pause = min(2 * pause, _LONGEST_PAUSE)
        else:
            detail = f"{lost.detail}; for {_RECONNECT_LIMIT:g} s it did not come back: {reason}"
            self._given_up = self._given_up or detail
            raise DesktopLost("network", self._given_up) from lost
        self._keyboard.forget()
        self._keyboard.unlearn()
        # Most servers release what a lost client held. x11vnc does not, and has forgotten the buttons: it releases only what it
        # believes to be pressed. X ignores a press of what is pressed.
        again: list[Event] = [*map(ButtonDown, buttons)] if self._is_x11vnc else []
        if unanswered:
            # The server may still have the old connection, and releases only keys that the new one has pressed.
            again += map(KeyDown, keys)
        self._vnc.release(encode([*again, *map(ButtonUp, buttons), *map(KeyUp, reversed(keys))]))
        if unanswered and buttons and self._ends != before:
            return f"{lost.detail}; until the server notices, a button may stay pressed and the pointer be ignored"
        return lost.detail

    @property
    def size(self) -> Size:
        """Size of the screen in pixels."""
        return Size(*self.screen.size)

    @property
    def lag(self) -> Lag:
        """How far what is seen may lag behind; see `Backend.lag`."""
        return Lag(*self._vnc.lag)

    @property
    def status(self) -> Sequence[str]:
        """What this server cannot do, and whether it has not answered."""
        features = self._vnc.features
        notes = []
        if (silent := self._vnc.silent) > _SILENT:
            notes.append(f"the server has not answered for {silent:.0f} s")
        if "fence" not in features:
            notes.append("the server knows no fences: a picture may be one of its frames old (about 40 ms)")
        if "mouse_buttons" not in features:
            notes.append("the server knows no buttons 8 and 9: the keys Back and Forward are pressed for them")
        if "locks" not in features:
            notes.append(
                "the server does not report whether CapsLock is on: where it is, letters may arrive in the other case"
            )
        if not self.can_paste:
            notes.append("the server's clipboard takes only Latin-1 text, and does not report when it is pasted")
        if skipped := self._vnc.skipped:
            kinds = ", ".join(f"{number} ({count})" for number, count in skipped)
            notes.append(f"the server sends pseudo-encodings that were not asked for, which are skipped: {kinds}")
        return notes

    def begin(self) -> None:
        """Do nothing: the reader never rests."""

    def end(self) -> None:
        """Do nothing: the reader never rests."""

    def allow(self, seconds: float | None) -> None:
        """Do nothing: each of its waits has a limit of its own."""

    def untypable(self, events: Sequence[Step]) -> set[int]:
        """See `Backend.untypable`."""
        # wayvnc, recognised by the features that it lacks, drops characters that are on no key.
        finds_keys = {"fence", "set_desktop_size"} & set(self._vnc.features)
        return self._keyboard.untypable(events, BUDGET if finds_keys else 0)

    @property
    def _is_x11vnc(self) -> bool:
        """Whether it is x11vnc, recognised by its features."""
        features = self._vnc.features
        return "fence" not in features and "set_desktop_size" in features

    def split(self, events: Sequence[Event]) -> Sequence[Sequence[Event]]:
        """See `Backend.split`."""
        ahead = self._is_x11vnc
        if ahead and time.monotonic() - self._typed > _FREED:
            self._keyboard.unlearn()
        return self._keyboard.split(events, ahead=ahead)

    def taken(self) -> None:
        """See `Backend.taken`."""
        self._keyboard.taken()

    @property
    def can_paste(self) -> bool:
        """Whether the server reports that a text was pasted."""
        return "clipboard" in self._vnc.features

    def send(self, events: Sequence[Event]) -> None:
        """Send events; see `Backend.send`."""
        needed = locks_needed(events)
        found = self._do(lambda vnc: vnc.locks()) if needed else None
        locks = dict(zip((CAPS_LOCK, NUM_LOCK), found, strict=True)) if found else {}
        switch = [lock for lock, on in needed.items() if locks.get(lock, on) != on]
        side_buttons = "mouse_buttons" in self._vnc.features
        planned = encode(self._keyboard.plan(events, side_buttons=side_buttons, switch=switch))
        self._typed = time.monotonic()
        try:
            self._do(lambda vnc: vnc.send(planned))
        except BaseException as error:
            # A call that is stopped in a pause has sent what comes before it. A new connection gets nothing of an old one.
            if switch and not isinstance(error, BackendError):
                with contextlib.suppress(BackendError):
                    self._vnc.send(encode([make(lock) for lock in switch for make in (KeyDown, KeyUp)]))
            raise

    def release(self, events: Sequence[Event]) -> None:
        """Release; see `Backend.release`."""
        planned = encode(self._keyboard.plan(events, side_buttons="mouse_buttons" in self._vnc.features))
        self._keyboard.forget()
        self._do(lambda vnc: vnc.release(planned))

    def pressed(self) -> tuple[list[int], list[int]]:
        """Keysyms and buttons that this connection holds."""
        keys, buttons = self._vnc.pressed()
        return keys, list(buttons)

    def look(self, limit: float | None = None) -> None:
        """Look; see `Backend.look`."""
        self._do(lambda vnc: vnc.look(limit))

    def round_trip(self) -> None:
        """Ask for a fence, or, where there are none, for a pixel (a non-incremental update of 1x1)."""
        asked = self.probe()
        while not self.answered(asked):
            self.wait(_SLICE)

    def mark(self, limit: float | None = None) -> int | None:
        """Send a mark: its answer comes between what was sent before and after; see `Backend.mark`."""
        return self._do(lambda vnc: vnc.mark(limit))

    def marked(self, mark: int) -> int | None:
        """Where the mark came; see `Backend.marked`."""
        return self._do(lambda vnc: vnc.marked(mark))

    def wait(self, timeout: float) -> bool:
        """Wait; see `Backend.wait`."""
        return self._do(lambda vnc: vnc.wait(timeout))

    def probe(self, *, at_pointer: bool = False, window: int | None = None) -> int:
        """Wait for an answer of the server itself, which comes after everything that it had to send before."""
        del at_pointer, window
        return self._do(lambda vnc: vnc.probe())

    def answered(self, probe: int) -> bool:
        """Whether that probe, or a later one, was answered."""
        return self._do(lambda vnc: vnc.answered(probe))

    def input_window(self) -> int | None:
        """None: a server does not report its windows."""
        return None

    def take_stock(self) -> None:
        """Do nothing: a server does not report what its applications compute."""

    def activity(self, *, changed: bool) -> Activity:
        """Unknown: a server does not report what its applications compute."""
        del changed
        return Activity.UNKNOWN

    def double_click_time(self) -> float | None:
        """None: a server does not report it."""
        return None

    def has_window_manager(self) -> bool:
        """False: a server does not report it."""
        return False

    def focused_classes(self) -> list[str]:
        """None: a server does not report them."""
        return []

    def windows(self) -> list[Window]:
        """None: a server does not report them."""
        raise UnsupportedAction(self.name, "windows")

    def covers(self) -> tuple[()]:
        """Always empty: a server does not report its windows."""
        return ()

    def monitors(self) -> list[Monitor]:
        """As the server reported them with the size, if it did."""
        return monitors_of(((str(number), place, False) for number, place in self._vnc.monitors), self.size)

    def activate(self, window: int) -> None:
        """Refuse: a server cannot."""
        raise UnsupportedAction(self.name, f"activate {window}")

    def close_window(self, window: int) -> None:
        """Refuse: a server cannot."""
        raise UnsupportedAction(self.name, f"close_window {window}")

    def drop_files(self, uris: bytes, xy: tuple[int, int], timeout: float) -> None:
        """Refuse: a server cannot."""
        del uris, xy, timeout
        raise UnsupportedAction(self.name, "windows.drop")

    def resize(self, size: Size) -> None:
        """Change the size; see `Backend.resize`."""
        self._do(lambda vnc: vnc.resize(*size))

    def read_clipboard(self, timeout: float) -> str | None:
        """The clipboard's text, as far as the server has sent it."""
        return self._do(lambda vnc: vnc.read_clipboard(timeout))

    def write_clipboard(self, text: str, timeout: float) -> None:
        """Put text on the clipboard; see `Backend.write_clipboard`."""
        del timeout
        self._do(lambda vnc: vnc.write_clipboard(text))

    def clipboard_types(self, timeout: float) -> Sequence[str]:
        """Refuse: only texts are exchanged."""
        del timeout
        raise UnsupportedAction(self.name, "clipboard.types", _TEXTS_ONLY)

    def read_clipboard_data(self, type: str, timeout: float) -> bytes | None:
        """Refuse: only texts are exchanged."""
        del type, timeout
        raise UnsupportedAction(self.name, "clipboard.read_data", _TEXTS_ONLY)

    def write_clipboard_data(self, data: Sequence[tuple[str, bytes]], timeout: float) -> None:
        """Refuse: only texts are exchanged."""
        del data, timeout
        raise UnsupportedAction(self.name, "clipboard.write_data", _TEXTS_ONLY)

    def lend_clipboard(self, text: str, *, with_primary: bool, timeout: float) -> Sequence[str]:
        """Put text on the clipboard for a paste; see `Backend.lend_clipboard`. A server reports text only."""
        del with_primary
        self._before = self.read_clipboard(timeout) or ""
        self.write_clipboard(text, timeout)
        return ()

    def return_clipboard(self, timeout: float) -> None:
        """Put back the text that was there; see `Backend.return_clipboard`."""
        self.write_clipboard(self._before, timeout)

    def wait_pasted(self, timeout: float) -> None:
        """Wait until the server has fetched the text; see `Backend.wait_pasted`."""
        self._do(lambda vnc: vnc.wait_pasted(timeout))

    def clipboard_answered(self, timeout: float) -> int:
        """0: a server does not report requests for the clipboard."""
        del timeout
        return 0

    def interrupt(self) -> None:
        """Stop; see `Backend.interrupt`."""
        self._stop.set()
        self._vnc.interrupt()

    def clear_interrupt(self) -> None:
        """Take the interruption back."""
        self._stop.clear()
        self._vnc.clear_interrupt()

    def close(self) -> None:
        """Release everything and end the connection; calling it again is harmless."""
        self._closed = True
        self._vnc.close()
