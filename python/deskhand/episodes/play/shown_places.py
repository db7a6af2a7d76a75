"""Desktops that viewers see while an episode has them."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from deskhand.desktop.desktop import Desktop
    from deskhand.episodes.play.attempt import Places
    from deskhand.watch.serving import Server


class ShownPlaces:
    """A source of desktops, whose desktops are shown for as long as they are in use. It is a `Places`."""

    def __init__(self, places: Places, name: str, page: Server) -> None:
        """Show each desktop of `places` by this name."""
        self._places = places
        self._name = name
        self._page = page

    def acquire(self, timeout: float | None = None) -> _ShownDesktop:
        """See `Places`."""
        return _ShownDesktop(self._places.acquire(timeout), self._name, self._page)


class _ShownDesktop:
    def __init__(self, waiting: AbstractContextManager[Desktop], name: str, page: Server) -> None:
        self._waiting = waiting
        self._name = name
        self._page = page
        self._held = contextlib.ExitStack()

    def __enter__(self) -> Desktop:
        with contextlib.ExitStack() as held:
            desktop = held.enter_context(self._waiting)
            held.enter_context(self._page.showing(self._name, desktop))
            self._held = held.pop_all()
        return desktop

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def cancel(self) -> None:
        """End the wait for it."""
        getattr(self._waiting, "cancel", lambda: None)()
