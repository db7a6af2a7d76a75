"""Desktops that viewers see while an episode has them."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from deskhand.desktop.desktop import Desktop
    from deskhand.episodes.play.attempt import Places
    from deskhand.watch.roster import Shown
    from deskhand.watch.serving import Server


class ShownPlaces:
    """A source of desktops, whose desktops are shown for as long as they are in use. It is a `Places`.

    Attributes:
        shown: The one that was obtained last; None before that.
    """

    def __init__(self, places: Places, name: str, page: Server) -> None:
        """Show each desktop of `places` by this name."""
        self._places = places
        self._name = name
        self._page = page
        self.shown: Shown | None = None

    def acquire(self, timeout: float | None = None) -> _ShownDesktop:
        """See `Places`."""
        return _ShownDesktop(self._places.acquire(timeout), self)

    def show(self, desktop: Desktop) -> AbstractContextManager[Shown]:
        """Show a desktop of these."""
        return self._page.showing(self._name, desktop)


class _ShownDesktop:
    def __init__(self, waiting: AbstractContextManager[Desktop], places: ShownPlaces) -> None:
        self._waiting = waiting
        self._places = places
        self._held = contextlib.ExitStack()

    def __enter__(self) -> Desktop:
        with contextlib.ExitStack() as held:
            desktop = held.enter_context(self._waiting)
            self._places.shown = held.enter_context(self._places.show(desktop))
            self._held = held.pop_all()
        return desktop

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def cancel(self) -> None:
        """End the wait for it."""
        getattr(self._waiting, "cancel", lambda: None)()
