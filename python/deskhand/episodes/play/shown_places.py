"""Desktops that viewers see while an episode has them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TypeAlias

from deskhand.desktop.desktop import Desktop

if TYPE_CHECKING:
    from deskhand.episodes.play.attempt import Places

Showing: TypeAlias = Callable[[str, Desktop], AbstractContextManager[None]]
"""Shows a desktop by a name for the length of a `with` block, as `deskhand.watch.Server.showing` does."""


class ShownPlaces:
    """A source of desktops, whose desktops are shown for as long as they are in use. It is a `Places`."""

    def __init__(self, places: Places, name: str, showing: Showing) -> None:
        """Show each desktop of `places` by this name."""
        self._places = places
        self._name = name
        self._showing = showing

    def acquire(self, timeout: float | None = None) -> _ShownDesktop:
        """See `Places`."""
        return _ShownDesktop(self._places.acquire(timeout), self._name, self._showing)


class _ShownDesktop:
    def __init__(self, waiting: AbstractContextManager[Desktop], name: str, showing: Showing) -> None:
        self._waiting = waiting
        self._name = name
        self._showing = showing
        self._held = contextlib.ExitStack()

    def __enter__(self) -> Desktop:
        with contextlib.ExitStack() as held:
            desktop = held.enter_context(self._waiting)
            held.enter_context(self._showing(self._name, desktop))
            self._held = held.pop_all()
        return desktop

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def cancel(self) -> None:
        """End the wait for it."""
        getattr(self._waiting, "cancel", lambda: None)()
