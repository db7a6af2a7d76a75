"""A connection of a page that shows several desktops as thumbnails, each at most once a second."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from deskhand.watch.viewer import Viewer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deskhand.watch.grants import Grant, Grants
    from deskhand.watch.viewer import Socket
    from deskhand.watch.watched import Watched

_THUMBNAIL = 360
_THUMBNAIL_PERIOD = 1.0
# The number in one turn, so that the first of many desktops are shown before the last ones are encoded.
_MOST_THUMBNAILS = 16


class GridViewer(Viewer):
    """Watches several desktops."""

    def __init__(self, socket: Socket, grant: Grant, grants: Grants, all_of_them: Sequence[Watched]) -> None:
        """Serve a socket that was admitted."""
        super().__init__(socket, grant, grants)
        self._all = all_of_them
        self._sent_desktops: list[dict[str, Any]] = []
        self._seen = [-1] * len(all_of_them)
        self._drawn = 0.0
        # Where the next turn continues, if the last one did not reach all desktops.
        self._next = 0
        self._more = False

    async def serve(self) -> None:
        """See `Viewer`."""
        for watched in self._all:
            watched.enter(self, self.wake, thumbnails=True)
        self._news.set()
        try:
            await super().serve()
        finally:
            for watched in self._all:
                watched.leave(self, thumbnails=True)

    async def _turn(
        self,
    ) -> tuple[dict[str, Any], Sequence[tuple[tuple[int, int, int, int], bytes]] | None, tuple[int, int]]:
        if not self._more:
            if (rest := self._drawn + _THUMBNAIL_PERIOD - time.monotonic()) > 0:
                await asyncio.sleep(rest)
            self._drawn = time.monotonic()
        turn: dict[str, Any] = {}
        summaries = [{**each.summary(), "hidden": each.hidden_from(self)} for each in self._all]
        if summaries != self._sent_desktops:
            self._sent_desktops = turn["desktops"] = summaries
        pieces = await asyncio.to_thread(self._thumbnails)
        return turn, pieces or None, (0, 0)

    def _thumbnails(self) -> list[tuple[tuple[int, int, int, int], bytes]]:
        made: list[tuple[tuple[int, int, int, int], bytes]] = []
        self._more = False
        for step in range(len(self._all)):
            index = (self._next + step) % len(self._all)
            watched = self._all[index]
            generation = watched.mirror.generation
            if watched.hidden_from(self):
                self._seen[index] = -1
            elif generation > self._seen[index]:
                if len(made) == _MOST_THUMBNAILS:
                    self._next, self._more = index, True
                    break
                self._seen[index] = generation
                made.append(((index, 0, *watched.mirror.size), watched.mirror.thumbnail(_THUMBNAIL)))
        return made
