"""The elements of a desktop for observers such as the live page: with the references of its calls, and beside them.

This module takes no turn at the desktop. It asks applications through the connection that the desktop's own readings have, so
an element has one reference for both. A call that reads elements meanwhile waits for the same answers.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from deskhand._core.elements import Elements
from deskhand._core.geometry import Rect
from deskhand._native import Interrupted
from deskhand.desktop.element_tree import ElementTree
from deskhand.desktop.elements import places, what_changed
from deskhand.errors import BackendError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deskhand._core.window import Window
    from deskhand._native import Elements as Session
    from deskhand._native import Screen
    from deskhand.desktop.connection import Core

# Seconds to connect. A call of the desktop that reads elements waits for it.
_OPENING = 1.0
# As long as `Desktop.elements` waits: an application that is given up sooner would be left out of the next call's reading too.
_READING = 2.0


class Onlooker:
    """Reads the elements of one desktop. One thread uses it, while others use the desktop."""

    def __init__(self, core: Core) -> None:
        """Read nothing yet, and connect to nothing."""
        self.core: Core = core
        self._session: Session | None = None
        self._tree = ElementTree()
        self._generation = -1
        self._windows: tuple[Window, ...] = ()
        self._known = Elements()

    def read(self, screen: Screen, windows: Sequence[Window]) -> Elements:
        """The elements as they are now; those of before where a call of the desktop was stopped meanwhile.

        Args:
            screen: A copy of the desktop's screen, changed at monotonic times.
            windows: Its windows, the lowest first.

        Raises:
            UnsupportedAction: This desktop has no accessibility bus.
            BackendError: The bus has gone, or refuses.
        """
        core = self.core
        core.refuse_if_closed()
        session = core.elements.tree.open(_OPENING, self._rest)
        if session is not self._session:
            self._session, self._generation, self._known = session, -1, Elements()
            self._tree.clear()
        generation, seen = what_changed(screen, self._generation, time.monotonic)
        moved = tuple(windows) != self._windows
        self._windows = tuple(windows)
        version = None if moved else self._known.version
        try:
            found = session.read(seen, (places(self._windows), ()), _READING, version, (False, None, False))
        except Interrupted:
            return self._known
        except BackendError:
            self._forget(session)
            raise
        self._generation = generation
        if found is not None:
            self._known = self._tree.make(*found, list(windows), Rect(0, 0, *screen.size))
        return self._known

    def _rest(self, seconds: float) -> None:
        self.core.refuse_if_closed()
        time.sleep(seconds)

    def _forget(self, session: Session) -> None:
        """Let the next reading connect anew, unless a call is under way, which notices the loss itself."""
        self._session = None
        if self.core.lock.acquire(blocking=False):
            try:
                self.core.elements.tree.forget(session)
            finally:
                self.core.lock.release()
