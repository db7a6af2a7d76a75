"""The desktops that a server shows. They may come and go while it serves."""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING

from deskhand.errors import Closed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deskhand.watch.watched import Watched


class Roster:
    """Desktops by number. A number is never used again. Any thread may use it.

    Attributes:
        alone: The number of the only desktop, where no other has ever been shown: its page needs no grid.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self.alone: int | None = None
        self._numbers = itertools.count()
        self._shown: dict[int, Watched] = {}
        self._listeners: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._closed = False

    @property
    def shown(self) -> Mapping[int, Watched]:
        """Those that are shown now, in the order in which they came: a copy."""
        with self._lock:
            return dict(self._shown)

    def add(self, watched: Watched) -> int:
        """Show a desktop. Returns its number.

        Raises:
            Closed: The server was closed.
        """
        with self._lock:
            if self._closed:
                raise Closed("the server of the page is closed: it shows no more desktops")
            number = next(self._numbers)
            self._shown[number] = watched
            self.alone = number if number == 0 else None
        self._notify()
        return number

    def remove(self, number: int) -> None:
        """Show a desktop no more."""
        with self._lock:
            self._shown.pop(number, None)
        self._notify()

    def close(self) -> None:
        """End what belongs to viewers; one who has control hands it back. Harmless when called again."""
        with self._lock:
            self._closed = True
            shown = list(self._shown.values())
        for watched in shown:
            watched.close()

    def listen(self, changed: Callable[[], None]) -> None:
        """Have a function called, in any thread, when a desktop has come or gone; it must return at once."""
        with self._lock:
            self._listeners.append(changed)

    def ignore(self, changed: Callable[[], None]) -> None:
        """Call a function of `listen` no more."""
        with self._lock:
            self._listeners.remove(changed)

    def _notify(self) -> None:
        with self._lock:
            listeners = list(self._listeners)
        for changed in listeners:
            changed()
