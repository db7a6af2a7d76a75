"""The desktops that a server shows. They may come and go while it serves."""

from __future__ import annotations

import dataclasses
import itertools
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deskhand._core.arguments import expect_text
from deskhand._core.redaction import one_line
from deskhand.errors import Closed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from deskhand.watch.watched import Watched

_LONGEST_OUTCOME = 60


@dataclass(slots=True)
class Place:
    """A place in the list of desktops. When its desktop has ended, it is kept until another desktop takes the place.

    Attributes:
        number: The number of the desktop, which no other ever has.
        watched: The desktop.
        last: Its last state, when it has ended.
        picture: A thumbnail of its last picture, PNG, when it has ended; empty if nobody watched then.
        outcome: How it ended, if that was told.
    """

    number: int
    watched: Watched
    last: dict[str, Any] | None = None
    picture: bytes = b""
    outcome: str = ""


class Shown:
    """A desktop that viewers see, or saw."""

    def __init__(self, told: Callable[[str], None]) -> None:
        """See `Application.showing`; `told` is called with how it ended."""
        self._told = told

    def tell(self, outcome: str) -> None:
        """Say how it ended. Viewers read it in place of “Ended”. Any thread may call it, before the end or later.

        Args:
            outcome: A word or two, as `success`.

        Raises:
            ActionError: It is no text.
        """
        self._told(one_line(expect_text("tell: outcome", outcome), _LONGEST_OUTCOME))


class Roster:
    """Desktops in their places. Any thread may use it.

    Attributes:
        alone: The number of the only desktop, where no other has ever been shown: its page needs no grid.
    """

    def __init__(self, is_watched: Callable[[], bool]) -> None:
        """Begin with none.

        Args:
            is_watched: Whether anybody watches just now.
        """
        self.alone: int | None = None
        self._is_watched = is_watched
        self._numbers = itertools.count()
        self._places: list[Place] = []
        self._listeners: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._closed = False

    @property
    def shown(self) -> Mapping[int, Watched]:
        """The desktops that have not ended, by their numbers: a copy."""
        with self._lock:
            return {place.number: place.watched for place in self._places if place.last is None}

    @property
    def places(self) -> Sequence[Place]:
        """All places as they are now: a copy."""
        with self._lock:
            return [dataclasses.replace(place) for place in self._places]

    def add(self, watched: Watched) -> Place:
        """Show a desktop: in the place of the oldest one that has ended, so that no other moves, or in a new one.

        Raises:
            Closed: The server was closed.
        """
        with self._lock:
            if self._closed:
                raise Closed("the server of the page is closed: it shows no more desktops")
            place = Place(next(self._numbers), watched)
            self.alone = place.number if place.number == 0 else None
            ended = [each for each in self._places if each.last is not None]
            if ended:
                self._places[self._places.index(min(ended, key=lambda each: each.number))] = place
            else:
                self._places.append(place)
        self._notify()
        return place

    def end(self, place: Place) -> None:
        """Show its desktop no more; one who has control hands it back."""
        last, picture = place.watched.last(pictured=self._is_watched())
        with self._lock:
            place.last, place.picture = last, picture
        self._notify()
        place.watched.end()

    def conclude(self, place: Place, outcome: str) -> None:
        """Note how its desktop ended, or ends."""
        place.outcome = outcome
        self._notify()

    def close(self) -> None:
        """End what belongs to viewers; one who has control hands it back. Harmless when called again."""
        with self._lock:
            self._closed = True
            places = list(self._places)
        for place in places:
            place.watched.close()

    def listen(self, changed: Callable[[], None]) -> None:
        """Have a function called, in any thread, when a place has changed; it must return at once."""
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
