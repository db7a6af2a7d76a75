"""The picture that viewers get: a copy of a desktop's screen with its cursor, kept by a thread of its own.

Viewers must not delay an agent. Of a display that this machine reaches, the copy comes over a connection of its own,
which only looks. Elsewhere it comes from the pixels that the desktop's connection keeps: they are locked while they are
copied, and the desktop is not. Comparing and encoding work on the copy. Without viewers there is neither a thread nor a
connection.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import numpy as np

from deskhand._core.formats import encode
from deskhand._core.geometry import Size
from deskhand._native import Interrupted, Screen
from deskhand.backends.x11.backend import X11Backend
from deskhand.desktop.access import core_of, latest
from deskhand.errors import DeskhandError

if TYPE_CHECKING:
    from collections.abc import Callable

    from deskhand._core.window import Window
    from deskhand.desktop.connection import Core
    from deskhand.desktop.desktop import Desktop

# Between two copies, at most 60 a second: what a page can show.
_FRAME = 1 / 60
# How often the place of the pointer is asked for, which X does not report: while something changes, and at rest.
_POINTER = 1 / 30
_RESTING_POINTER = 1 / 5
_RESTS_AFTER = 1.0
# The period of asking for changes on a connection that cannot be waited on, in seconds.
_POLL = 1 / 50
# Seconds between two copies for thumbnails.
_THUMBNAIL_PERIOD = 0.5
_THUMBNAIL = 360
_RETRY = 0.5
_JOIN = 10.0
# Updates that are kept for viewers who need the same.
_KEPT = 8
# From this part of the screen on, one piece is smaller than several.
_WHOLE = 0.7
_MOST_PIECES = 64
# Of JPEG, for a line that is slow: a part of the screen is made sharp afterwards.
_QUALITY = 40

_Rect = tuple[int, int, int, int]


class Update:
    """What changed in the picture since some generation.

    Attributes:
        generation: What the viewer has when it has drawn this.
        size: Width and height of the screen in pixels.
        pieces: Rectangles and their PNG files.
    """

    __slots__ = ("generation", "pieces", "size")

    def __init__(self, generation: int, size: tuple[int, int], pieces: tuple[tuple[_Rect, bytes], ...]) -> None:
        """See the attributes."""
        self.generation: int = generation
        self.size: tuple[int, int] = size
        self.pieces: tuple[tuple[_Rect, bytes], ...] = pieces


class Mirror:
    """The copy of one desktop's screen."""

    def __init__(self, desktop: Desktop, changed: Callable[[], None]) -> None:
        """Copy nothing yet.

        Args:
            desktop: The desktop; any of its views.
            changed: Called in the mirror's thread when the picture or `loss` has changed.
        """
        self.loss: str = ""
        """Why there is no picture now; empty while there is one."""
        self._desktop = desktop
        self._changed = changed
        self._screen = Screen(*core_of(latest(desktop)).backend.screen.size)
        self._stop: threading.Event | None = None
        self._thread: threading.Thread | None = None
        self._backend: X11Backend | None = None
        self._thumbnails = False
        # Whether the copy was made since the start: an earlier one may be old.
        self._current = False
        self._lock = threading.Lock()
        self._updates: OrderedDict[tuple[int, int], Update] = OrderedDict()

    def start(self, *, thumbnails: bool = False) -> None:
        """Keep the copy current; with `thumbnails`, only as often as those need. Calling it again changes that."""
        self._thumbnails = thumbnails
        if self._stop is None:
            self._current = False
            self._stop = threading.Event()
            self._thread = threading.Thread(target=self._run, args=(self._stop,), name="deskhand-watch", daemon=True)
            self._thread.start()

    def stop(self, *, wait: bool = False) -> None:
        """End the thread and its connection. `wait`: return when they have ended."""
        stop, self._stop = self._stop, None
        if stop is not None:
            stop.set()
            backend = self._backend
            if backend is not None:
                with contextlib.suppress(DeskhandError):
                    backend.interrupt()
        if wait and self._thread is not None:
            self._thread.join(_JOIN)

    @property
    def generation(self) -> int:
        """How often the picture has changed; -1 until it is copied for the first time after a start."""
        return self._screen.generation if self._current else -1

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        return self._screen.size

    @property
    def screen(self) -> Screen:
        """The copy."""
        return self._screen

    def windows(self) -> list[Window] | None:
        """The windows, the lowest first; none over VNC, and None while the display cannot be asked.

        It waits for a look of the mirror's thread: not for a loop's thread.

        Raises:
            DeskhandError: The connection has ended meanwhile.
        """
        backend = self._backend
        if backend is not None:
            return backend.windows()
        return None if core_of(latest(self._desktop)).backend.has_windows else []

    def update(self, since: int) -> Update | None:
        """What has changed since a generation (-1: all), made once for all viewers who have that one; None if nothing has.

        It takes milliseconds: not for a loop's thread.
        """
        with self._lock:
            generation = self._screen.generation
            if generation <= since:
                return None
            key = (since, generation)
            if (kept := self._updates.get(key)) is not None:
                self._updates.move_to_end(key)
                return kept
            size = self._screen.size
            rects = self._screen.changes(since) if since >= 0 else [(0, 0, *size)]
            area = sum(width * height for _, _, width, height in rects)
            if len(rects) > _MOST_PIECES or area > _WHOLE * size[0] * size[1]:
                rects = [(0, 0, *size)]
            made = Update(generation, size, tuple((rect, self._screen.png(None, rect, cursor=False)) for rect in rects))
            self._updates[key] = made
            while len(self._updates) > _KEPT:
                self._updates.popitem(last=False)
            return made

    def part(self, rect: tuple[int, int, int, int], *, sharp: bool) -> bytes:
        """A part of the picture as it is now: PNG, or JPEG if it need not be `sharp`.

        It takes milliseconds: not for a loop's thread.

        Raises:
            DeskhandError: The screen is smaller by now.
        """
        with self._lock:
            if sharp:
                return self._screen.png(None, rect, cursor=False)
            width, height, pixels = self._screen.rgb(None, rect, cursor=False)
        return encode(pixels, Size(width, height), "jpeg", _QUALITY)

    def thumbnail(self) -> bytes:
        """The whole picture as a thumbnail; see the function."""
        with self._lock:
            return thumbnail(self._screen)

    # --- the thread ---

    def _run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            core = core_of(latest(self._desktop))
            if core.closed:
                self._report("the desktop is closed")
                stop.wait(_RETRY)
                continue
            try:
                self._follow(core, stop)
            except Interrupted:
                continue
            except DeskhandError as error:
                self._report(str(error))
                stop.wait(_RETRY)

    def _follow(self, core: Core, stop: threading.Event) -> None:
        """Copy until a stop, or until another object stands for the desktop."""
        with contextlib.ExitStack() as held:
            backend = _second_connection(core)
            if backend is not None:
                held.callback(backend.close)
                # This thread waits for changes all the time, so the connection need not do that between calls.
                backend.begin()
            self._backend = backend
            held.callback(self._forget, backend)
            copier = _Copier(core.backend.screen if backend is None else backend.screen, self._screen)
            changed_at = 0.0
            while not stop.is_set() and not core.closed:
                began = time.monotonic()
                with self._lock:
                    changed = copier.copy()
                first, self._current = not self._current, True
                self._report("", changed=changed or first)
                if changed:
                    changed_at = began
                if self._thumbnails:
                    stop.wait(_THUMBNAIL_PERIOD)
                elif backend is None:
                    stop.wait(_POLL)
                elif changed:
                    stop.wait(max(0.0, _FRAME - (time.monotonic() - began)))
                if backend is not None:
                    rests = began - changed_at > _RESTS_AFTER
                    backend.wait(_THUMBNAIL_PERIOD if self._thumbnails else _RESTING_POINTER if rests else _POINTER)
                    backend.look()

    def _forget(self, backend: X11Backend | None) -> None:
        # A thread that was started since has a connection of its own.
        if self._backend is backend:
            self._backend = None

    def _report(self, loss: str, *, changed: bool = False) -> None:
        if changed or loss != self.loss:
            self.loss = loss
            self._changed()


def thumbnail(screen: Screen) -> bytes:
    """A small picture of the whole screen: PNG, its sides at most 360 pixels."""
    width, height = screen.size
    scale = min(1.0, _THUMBNAIL / max(width, height))
    return screen.png((max(1, round(width * scale)), max(1, round(height * scale))), None, cursor=False)


def _second_connection(core: Core) -> X11Backend | None:
    """A connection of its own to the same display, which only looks; None where this machine knows no way."""
    if core.display is None or core.backend.name != X11Backend.name:
        return None
    try:
        return X11Backend(core.display, xauthority=core.xauthority, view_only=True)
    except DeskhandError:
        return None


class _Copier:
    """Brings what is new on one screen to another, with the cursor."""

    def __init__(self, source: Screen, target: Screen) -> None:
        self._source = source
        self._target = target
        self._epoch = -1
        self._seen = 0
        self._cursor: _Rect | None = None

    def copy(self) -> bool:
        """Copy; whether a pixel differs from before."""
        source, target = self._source, self._target
        before = target.generation
        now = time.monotonic()
        epoch, size = source.epoch, source.size
        # Read before the changes, so that what changes meanwhile is copied again next time.
        seen = source.generation
        if epoch != self._epoch or size != target.size:
            if size != target.size:
                target.resize(*size, now)
            self._epoch, self._cursor = epoch, None
            rects = [(0, 0, *size)]
        else:
            rects = source.changes(self._seen)
        cursor = _place(source, size)
        rects += [rect for rect in {self._cursor, cursor} if rect is not None]
        for rect in rects:
            try:
                width, height, pixels = source.rgb(None, rect, cursor=True)
            except DeskhandError:
                # The screen has another size by now.
                self._epoch = -1
                return True
            target.update(rect, _bgrx(width, height, pixels), now)
        self._seen, self._cursor = seen, cursor
        return target.generation != before


def _place(screen: Screen, size: tuple[int, int]) -> _Rect | None:
    """Where the cursor is drawn; None where it is not."""
    shape = screen.cursor
    if shape is None:
        return None
    width, height, hot_x, hot_y = shape
    x, y = screen.pointer
    left, top = max(0, x - hot_x), max(0, y - hot_y)
    right, bottom = min(size[0], x - hot_x + width), min(size[1], y - hot_y + height)
    return (left, top, right - left, bottom - top) if left < right and top < bottom else None


def _bgrx(width: int, height: int, rgb: bytes) -> bytes:
    pixels: Any = np.frombuffer(rgb, np.uint8).reshape(height, width, 3)
    swapped: Any = np.empty((height, width, 4), np.uint8)
    swapped[..., :3] = pixels[..., ::-1]
    swapped[..., 3] = 0
    return bytes(swapped.data)
