"""A desktop in memory, for tests of what is built on deskhand. It has no X server, no process and no time of its own.

It records every event, and shows what is painted on it. A test gives a function that reacts to events:

    >>> from deskhand.backends.memory import MemoryBackend
    >>> backend = MemoryBackend((320, 200))
    >>> backend.on_event = lambda event: backend.paint((0, 0, 8, 8), (255, 0, 0))

What must never appear here: anything that a real backend could do and this one could only pretend (it has no windows).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from deskhand._core.events import Event, Pause, PointerMove, Step
from deskhand._core.geometry import Size
from deskhand._core.monitor import Monitor, monitors_of
from deskhand._core.settle import Activity, Lag
from deskhand._native import Interrupted, Screen
from deskhand.errors import DeskhandTimeout, UnsupportedAction

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deskhand._core.window import Window

_TEXT = "UTF8_STRING"


class MemoryBackend:
    """Records events and shows what is painted on it.

    Attributes:
        events: Every event sent, in order.
        on_event: Called with each event; may paint.
        on_wait: Called with the seconds of each wait; it should move the clock on and may paint.
    """

    name = "memory"
    has_windows = False
    tells_focus = True
    tells_pointer = True
    lag: Lag = Lag()
    can_paste = True

    def __init__(self, size: tuple[int, int] = (1280, 800), *, clock: Callable[[], float] = time.monotonic) -> None:
        """A black screen.

        Args:
            size: Width and height in pixels.
            clock: Where the times of changes come from, in seconds; give the desktop the same one.
        """
        self.screen: Screen = Screen(*size)
        self.events: list[Event] = []
        self.on_event: Callable[[Event], None] = lambda _event: None
        self.on_wait: Callable[[float], None] = time.sleep
        self.closed: bool = False
        self._clock = clock
        self._clipboard: dict[str, bytes] = {}
        self._before: dict[str, bytes] = {}
        self._interrupted = False

    @property
    def size(self) -> Size:
        """Size of the screen in pixels."""
        return Size(*self.screen.size)

    @property
    def status(self) -> Sequence[str]:
        """Always empty: there is one path only."""
        return ()

    def paint(self, rect: tuple[int, int, int, int], rgb: tuple[int, int, int]) -> None:
        """Fill a rectangle with one colour, 0...255 each."""
        red, green, blue = rgb
        self.screen.update(rect, bytes((blue, green, red, 0)) * (rect[2] * rect[3]), self._clock())

    def untypable(self, events: Sequence[Step]) -> set[int]:
        """Always empty: it accepts any keysym."""
        del events
        return set()

    def split(self, events: Sequence[Event]) -> Sequence[Sequence[Event]]:
        """One part."""
        return [events]

    def taken(self) -> None:
        """Do nothing: nothing depends on it."""

    def begin(self) -> None:
        """Do nothing: there is no other thread."""

    def end(self) -> None:
        """Do nothing: there is no other thread."""

    def allow(self, seconds: float | None) -> None:
        """Do nothing: it never waits for another side."""

    def send(self, events: Sequence[Event]) -> None:
        """Record the events and let `on_event` react to each."""
        for event in events:
            if isinstance(event, Pause):
                self.wait(event.seconds)
            if isinstance(event, PointerMove):
                self.screen.set_pointer(event.x, event.y)
            self.events.append(event)
            self.on_event(event)

    def release(self, events: Sequence[Event]) -> None:
        """Record the releases."""
        self.events.extend(events)

    def look(self, limit: float | None = None) -> None:
        """Do nothing: the screen is always current."""

    def round_trip(self) -> None:
        """Look: there is no other side."""
        self.look()

    def mark(self, limit: float | None = None) -> int | None:
        """None: the screen is always current."""

    def marked(self, mark: int) -> int | None:
        """None: there are no marks."""
        del mark
        return None

    def wait(self, timeout: float) -> bool:
        """Let `on_wait` pass the time."""
        if self._interrupted:
            raise Interrupted
        before = self.screen.generation
        self.on_wait(timeout)
        return self.screen.generation != before

    def input_window(self) -> int | None:
        """None: there is no window."""
        return None

    def probe(self, *, at_pointer: bool = False, window: int | None = None) -> int | None:
        """None: there is no window."""
        del at_pointer, window
        return None

    def answered(self, probe: int) -> bool:
        """True: there is no window."""
        del probe
        return False

    def take_stock(self) -> None:
        """Do nothing: there is no application."""

    def activity(self, *, changed: bool) -> Activity:
        """Rest: there is no application."""
        del changed
        return Activity.UNKNOWN

    def double_click_time(self) -> float | None:
        """None: no desktop sets it."""
        return None

    def has_window_manager(self) -> bool:
        """False: there is none."""
        return False

    def focused_classes(self) -> list[str]:
        """None: there is no window."""
        return []

    def windows(self) -> list[Window]:
        """None: there are no windows."""
        return []

    def covers(self) -> tuple[()]:
        """Always empty: there are no windows."""
        return ()

    def monitors(self) -> list[Monitor]:
        """One: the whole screen."""
        return monitors_of((), self.size)

    def activate(self, window: int) -> None:
        """Do nothing: there are no windows."""
        raise UnsupportedAction(self.name, f"activate {window}")

    def close_window(self, window: int) -> None:
        """Do nothing: there are no windows."""
        raise UnsupportedAction(self.name, f"close_window {window}")

    def drop_files(self, uris: bytes, xy: tuple[int, int], timeout: float) -> None:
        """Do nothing: there are no windows."""
        del uris, xy, timeout
        raise UnsupportedAction(self.name, "windows.drop")

    def resize(self, size: Size) -> None:
        """Become a black screen of this size."""
        self.screen.resize(*size, self._clock())

    def read_clipboard(self, timeout: float) -> str | None:
        """The text that was written."""
        text = self.read_clipboard_data(_TEXT, timeout)
        return None if text is None else text.decode()

    def write_clipboard(self, text: str, timeout: float) -> None:
        """Keep the text."""
        self.write_clipboard_data([(_TEXT, text.encode())], timeout)

    def clipboard_types(self, timeout: float) -> Sequence[str]:
        """The types of what was written."""
        del timeout
        return list(self._clipboard)

    def read_clipboard_data(self, type: str, timeout: float) -> bytes | None:
        """What was written of that type."""
        del timeout
        return self._clipboard.get(type)

    def write_clipboard_data(self, data: Sequence[tuple[str, bytes]], timeout: float) -> None:
        """Keep it."""
        del timeout
        self._clipboard = dict(data)

    def lend_clipboard(self, text: str, *, with_primary: bool, timeout: float) -> Sequence[str]:
        """Keep the text, and what was there before."""
        del with_primary
        self._before = self._clipboard
        self.write_clipboard(text, timeout)
        return ()

    def return_clipboard(self, timeout: float) -> None:
        """Put back what was there before."""
        del timeout
        self._clipboard = self._before

    def wait_pasted(self, timeout: float) -> None:
        """Raise: no application takes it."""
        raise DeskhandTimeout(f"no application took the clipboard's text in {timeout:g} s")

    def clipboard_answered(self, timeout: float) -> int:
        """0: no application requests the clipboard."""
        del timeout
        return 0

    def interrupt(self) -> None:
        """Make the next wait raise."""
        self._interrupted = True

    def clear_interrupt(self) -> None:
        """Take the interruption back."""
        self._interrupted = False

    def close(self) -> None:
        """Record that it was closed."""
        self.closed = True
