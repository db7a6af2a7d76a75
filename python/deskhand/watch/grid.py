"""A connection of a page that shows several desktops as thumbnails, each at most once a second."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from deskhand.watch.viewer import Viewer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deskhand.watch.grants import Grant, Grants
    from deskhand.watch.roster import Roster
    from deskhand.watch.viewer import Socket
    from deskhand.watch.watched import Watched

_THUMBNAIL = 360
_THUMBNAIL_PERIOD = 1.0
# The number in one turn, so that the first of many desktops are shown before the last ones are encoded.
_MOST_THUMBNAILS = 16


class GridViewer(Viewer):
    """Watches all desktops."""

    def __init__(self, socket: Socket, grant: Grant, grants: Grants, roster: Roster) -> None:
        """Serve a socket that was admitted."""
        super().__init__(socket, grant, grants)
        self._roster = roster
        self._shown: dict[int, Watched] = {}
        self._sent_desktops: list[dict[str, Any]] | None = None
        # The generations of the pictures that were sent last, by the numbers of the desktops.
        self._seen: dict[int, int] = {}
        self._drawn = 0.0
        # Where the next turn continues, if the last one did not reach all desktops.
        self._next = 0
        self._more = False

    async def serve(self) -> None:
        """See `Viewer`."""
        self._roster.listen(self.wake)
        self._news.set()
        try:
            await super().serve()
        finally:
            self._roster.ignore(self.wake)
            for watched in self._shown.values():
                watched.leave(self, thumbnails=True)

    def _follow(self) -> None:
        """Enter the desktops that came, leave those that are gone."""
        shown = self._roster.shown
        for number, watched in self._shown.items():
            if number not in shown:
                watched.leave(self, thumbnails=True)
                self._seen.pop(number, None)
        for number, watched in shown.items():
            if number not in self._shown:
                watched.enter(self, self.wake, thumbnails=True)
        self._shown = dict(shown)

    async def _turn(
        self,
    ) -> tuple[dict[str, Any], Sequence[tuple[tuple[int, int, int, int], bytes]] | None, tuple[int, int]]:
        if not self._more:
            if (rest := self._drawn + _THUMBNAIL_PERIOD - time.monotonic()) > 0:
                await asyncio.sleep(rest)
            self._drawn = time.monotonic()
        self._follow()
        turn: dict[str, Any] = {}
        summaries = [
            {"id": number, **each.summary(), "hidden": each.hidden_from(self)} for number, each in self._shown.items()
        ]
        if summaries != self._sent_desktops:
            self._sent_desktops = turn["desktops"] = summaries
        pieces = await asyncio.to_thread(self._thumbnails)
        return turn, pieces or None, (0, 0)

    def _thumbnails(self) -> list[tuple[tuple[int, int, int, int], bytes]]:
        """New pictures; the x of each is the place of its desktop in the list that was sent last."""
        made: list[tuple[tuple[int, int, int, int], bytes]] = []
        shown = list(self._shown.items())
        self._more = False
        for step in range(len(shown)):
            place = (self._next + step) % len(shown)
            number, watched = shown[place]
            generation = watched.mirror.generation
            if watched.hidden_from(self):
                self._seen.pop(number, None)
            elif generation > self._seen.get(number, -1):
                if len(made) == _MOST_THUMBNAILS:
                    self._next, self._more = place, True
                    break
                self._seen[number] = generation
                made.append(((place, 0, *watched.mirror.size), watched.mirror.thumbnail(_THUMBNAIL)))
        return made
