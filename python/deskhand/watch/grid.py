"""A connection of a page that shows several desktops as thumbnails, each at most once a second."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from deskhand.watch.viewer import Viewer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deskhand.watch.grants import Grant, Grants
    from deskhand.watch.roster import Place, Roster
    from deskhand.watch.viewer import Socket
    from deskhand.watch.watched import Watched

_THUMBNAIL_PERIOD = 1.0
# The number in one turn, so that the first of many desktops are shown before the last ones are encoded.
_MOST_THUMBNAILS = 16
# The generation of the picture that a desktop ended with: above those before it.
_LAST = 1 << 62


class GridViewer(Viewer):
    """Watches all desktops."""

    def __init__(self, socket: Socket, grant: Grant, grants: Grants, roster: Roster) -> None:
        """Serve a socket that was admitted."""
        super().__init__(socket, grant, grants)
        self._roster = roster
        self._places: Sequence[Place] = ()
        self._entered: dict[int, Watched] = {}
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
            for watched in self._entered.values():
                watched.leave(self, thumbnails=True)

    def _follow(self) -> None:
        """Enter the desktops that came, leave those that have ended."""
        self._places = self._roster.places
        here = {place.number: place.watched for place in self._places if place.last is None}
        for number in self._entered.keys() - here.keys():
            self._entered[number].leave(self, thumbnails=True)
            # What it ended with is still to be sent.
            self._seen.pop(number, None)
        for number in here.keys() - self._entered.keys():
            here[number].enter(self, self.wake, thumbnails=True)
        self._entered = here

    async def _turn(
        self,
    ) -> tuple[dict[str, Any], Sequence[tuple[tuple[int, int, int, int], bytes]] | None, tuple[int, int]]:
        if not self._more:
            if (rest := self._drawn + _THUMBNAIL_PERIOD - time.monotonic()) > 0:
                await asyncio.sleep(rest)
            self._drawn = time.monotonic()
        self._follow()
        turn: dict[str, Any] = {}
        summaries = [self._summary(place) for place in self._places]
        if summaries != self._sent_desktops:
            self._sent_desktops = turn["desktops"] = summaries
        pieces = await asyncio.to_thread(self._thumbnails)
        return turn, pieces or None, (0, 0)

    def _thumbnails(self) -> list[tuple[tuple[int, int, int, int], bytes]]:
        """New pictures; the x of each is the place of its desktop in the list that was sent last."""
        made: list[tuple[tuple[int, int, int, int], bytes]] = []
        self._more = False
        for step in range(len(self._places)):
            index = (self._next + step) % len(self._places)
            place = self._places[index]
            mirror = place.watched.mirror
            if place.last is None and place.watched.hidden_from(self):
                self._seen.pop(place.number, None)
                continue
            generation = mirror.generation if place.last is None else _LAST if place.picture else -1
            if generation > self._seen.get(place.number, -1):
                if len(made) == _MOST_THUMBNAILS:
                    self._next, self._more = index, True
                    break
                self._seen[place.number] = generation
                made.append(((index, 0, *mirror.size), place.picture or mirror.thumbnail()))
        return made

    def _summary(self, place: Place) -> dict[str, Any]:
        """A place as the page gets it; `ended` is None, or how its desktop ended."""
        if place.last is not None:
            return {**place.last, "id": place.number, "ended": place.outcome}
        watched = place.watched
        return {**watched.summary(), "id": place.number, "hidden": watched.hidden_from(self), "ended": None}
