"""When has the screen answered? A pure machine, and what it must know of a desktop beforehand.

This module owns the rules by which a screen counts as settled, and by which a region counts as busy on its own account (a
caret, a clock, a spinner, a video). It is fed times, changed rectangles and answered probes; it reads no clock, waits for
nothing and knows no backend. Times are seconds on one monotonic clock, whichever.

The rules:

- quiet for `Settle.quiet` after the last relevant change: settled, once the window has answered a probe (`_NET_WM_PING`)
  sent after that change. An application that is still computing does not answer, and is waited for;
- where one change was all there was, and the threads of the application are seen to rest, 15 ms less will do;
- an application that answered late has only just come round to its input, and is given another `quiet`;
- a toolkit may answer before it has worked off its input (GTK does), and a browser answers while its other processes compute:
  an application that is at work when the time is up, by itself or through what it started, is looked at again every half
  `quiet` until it is not;
- an animation that slows down moves no pixel for a while, but its clock ticks on: where the screen changed more than once, an
  application that ticks is looked at again too, until 0.25 s after the last change;
- a command in a terminal that sleeps for a time goes on by itself: it is looked at again until 0.3 s after the last change, and
  the verdict says when it still sleeps then;
- no relevant change within `Settle.reaction` after the input, and a probe sent towards the end of that time was answered:
  settled, nothing changed;
- where no probe can be sent, time alone decides;
- where what is seen lags behind (`Lag`), silence must last a frame interval longer and a reaction may come a round trip later;
  the probe is sent so much earlier that its answer is there when the time is up. One that was sent before the last change came
  proves silence too, where it is sure that its answer left that much later than the change did (`Lag.steady`): when a trip
  takes longer than the silence, probes are sent at intervals, so that one of them is the right one;
- a change inside a region that was already changing on its own before the input is not relevant: it is reported as busy;
- at `Settle.timeout` the wait ends, and the verdict says why.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from deskhand._core.geometry import Rect
from deskhand.errors import ActionError, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Activity", "Ambient", "Lag", "Machine", "Reason", "Settle", "Verdict"]

_LONGEST_TIMEOUT = 3600.0
# An application at rest answers a probe within a few milliseconds.
_LATE = 0.02
# Probes that are on the way at once at most: they tell the moment of silence to a sixteenth of a trip.
_ON_THE_WAY = 16
# GTK scrolls to the caret within 0.2 s: it was seen not to move a pixel for the last 0.1 s of it, and then once more.
_LONGEST_STANDSTILL = 0.25
# A loop of commands that sleep between two lines sleeps for less, unless somebody is to read along.
_LONGEST_NAP = 0.3
# Measured on 622 frames: with 15 or 20 ms less, no other frames were wrong than without; with 25 ms less, one more.
_SPARED = 0.015
_SHORTEST_SPARED_QUIET = 0.05


@dataclass(frozen=True, slots=True)
class Settle:
    """How to wait. All values are seconds.

    Attributes:
        quiet: Silence after the last relevant change that counts as settled; 15 ms less, unless it is below 0.05, after a
            lone change by an application that is seen to rest. The longest gap measured inside one answer (a browser's smooth
            scroll) is 25 ms.
        reaction: How long an action without any effect is waited for.
        timeout: When to give up and return what there is, `settled=False`; counted anew from the end of each action's input.
            An X server that answers nothing is given as long before the input, which then fails with `ServerSilent`, and
            is lost once it has been silent for 10 s.

    Raises:
        ActionError: A value is negative, not finite, or above one hour.
    """

    quiet: float = 0.05
    reaction: float = 0.1
    timeout: float = 3.0

    def __post_init__(self) -> None:
        for name in ("quiet", "reaction", "timeout"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= _LONGEST_TIMEOUT:
                raise ActionError(f"Settle.{name} must be 0...{_LONGEST_TIMEOUT:g} seconds, not {shown(value)}")


class Activity(StrEnum):
    """What an application does, beyond what it does on its own account."""

    UNKNOWN = "unknown"
    """It runs where its threads cannot be seen."""
    RESTING = "resting"
    """Nothing."""
    TICKING = "ticking"
    """It wakes as often as frames are shown: an animation goes on."""
    SLEEPING = "sleeping"
    """A command that its terminal waits for sleeps for a time, and goes on by itself."""
    COMPUTING = "computing"
    """It computes, waits for a processor, or has not come to what it was sent."""


class Lag(NamedTuple):
    """How far behind what is seen may be, in seconds; nothing where pixels are read when they are asked for.

    Attributes:
        frame: The interval at which the other side looks for changes and sends them.
        trip: The least time that an answer takes.
        nap: For how long the other side may not look at all, so that an answer does not prove that it has.
        steady: The part of `trip` that surely lies between sending a probe and having its answer, however uneven answers are.
    """

    frame: float = 0.0
    trip: float = 0.0
    nap: float = 0.0
    steady: float = 0.0


class Reason(StrEnum):
    """Why a wait ended."""

    QUIET = "quiet"
    """The screen changed and then stayed still."""
    UNCHANGED = "unchanged"
    """Nothing relevant changed."""
    STILL_CHANGING = "still_changing"
    """Timeout: something that began with the action keeps changing."""
    WINDOW_BUSY = "window_busy"
    """Timeout: the window has not answered its probe, so its application is still at work."""
    SERVER_SILENT = "server_silent"
    """Timeout: the server itself has not answered; see `Desktop.status`. What was sent may have arrived or not."""
    NOT_WAITED = "not_waited"
    """The caller asked not to wait."""


_NO_LAG = Lag()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The end of a wait.

    Attributes:
        settled: False only at the timeout, or when the caller asked not to wait.
        reason: Why the wait ended.
        first_change: Time of the first relevant change, None when there was none.
        last_change: Time of the last relevant change, None when there was none.
        busy: Regions that were changing on their own before, and changed again during the wait or are due to.
        may_change: Whether what was set going was found to go on by itself later.
    """

    settled: bool
    reason: Reason
    first_change: float | None
    last_change: float | None
    busy: tuple[Rect, ...]
    may_change: bool = False


class Machine:
    """One wait, from the end of the input to the verdict.

    Attributes:
        start: When it began.

    The caller repeats: report what happened (`changed`, `answered`), look what the application does when `wants_look` says so
    (and report it with `looked`), ask `verdict`; if there is none, send a probe when `wants_probe` says so (and
    report it with `probed`), and wait for at most `wait` seconds. The look comes before the probe: answering is work too.
    """

    def __init__(
        self, settings: Settle, *, now: float, ambient: Sequence[Rect] = (), can_probe: bool, lag: Lag = _NO_LAG
    ) -> None:
        """Begin at `now`, the time the input ended.

        Args:
            settings: The times to use.
            now: Now.
            ambient: Regions that were changing on their own before the input.
            can_probe: Whether the window under the input answers probes.
            lag: How far behind what is seen may be.
        """
        self._settings = settings
        self._lag = lag
        self.start = now
        self._ambient = tuple(ambient)
        self._can_probe = can_probe
        self._first: float | None = None
        self._last: float | None = None
        self._moves = 0
        self._not_before = -math.inf
        self._resting = -math.inf
        self._sleeps = False
        # When a probe was last sent, when those without an answer were, and when the latest with one was.
        self._probed: float | None = None
        self._unanswered: deque[float] = deque()
        self._proof: float | None = None
        # From when on the other side has surely read the input.
        self._read: float | None = None
        self._spares = settings.quiet >= _SHORTEST_SPARED_QUIET and lag == _NO_LAG

    def changed(self, at: float, rects: Iterable[Rect]) -> bool:
        """Report pixels that changed at `at`.

        Returns:
            True when any of it was relevant.
        """
        relevant = any(not _inside_any(rect, self._ambient) for rect in rects)
        if relevant:
            self._first = at if self._first is None else self._first
            self._last = at
            self._moves += 1
        return relevant

    def probed(self, at: float) -> None:
        """Report that a probe was sent at `at`."""
        self._probed = at
        self._unanswered.append(at)

    def answered(self, at: float) -> None:
        """Report that the oldest probe without an answer was found answered at `at`; once more than probes is harmless."""
        if not self._unanswered:
            return
        sent = self._unanswered.popleft()
        if at - sent > _LATE + 2 * self._ahead:
            # It was at work, and has only just come round to its events: what it makes of them is still to be drawn.
            self._not_before = max(self._not_before, at + self._settings.quiet)
            self._spares = False
        self._proof = sent
        self._read = at if self._read is None else self._read

    def looked(self, at: float, activity: Activity) -> None:
        """Report what the application was found to do at `at`."""
        if self._spared() and activity is not Activity.RESTING and at < self._due_after(self._settings.quiet):
            # Not known to rest: it is looked at again when the whole of the silence has passed.
            self._spares = False
            return
        # A browser's clock runs on for three frames after any change.
        animated = self._moves > 1 and self._last is not None and at < self._last + _LONGEST_STANDSTILL
        self._sleeps = activity is Activity.SLEEPING
        naps = self._sleeps and at < (self.start if self._last is None else self._last) + _LONGEST_NAP
        if activity is Activity.COMPUTING or (activity is Activity.TICKING and animated) or naps:
            # The backend looks back over about a `quiet`: half of one is soon enough to ask again.
            self._not_before = max(self._not_before, at + self._settings.quiet / 2)
        else:
            self._resting = at

    def wants_look(self, now: float) -> bool:
        """True when silence has lasted long enough, and it is not known yet what the application does."""
        return now >= self._due() > self._resting

    def unprobeable(self) -> None:
        """Report that the window under the input does not answer probes any more (it may have closed)."""
        self._can_probe = False

    def _due(self) -> float:
        """When silence, if it lasts, is long enough, or is if a look finds the application resting."""
        return self._due_after(self._settings.quiet - self._spared())

    def _due_after(self, quiet: float) -> float:
        if self._last is None:
            due = self.start + self._ahead
            if self._fenced and self._read is not None:
                # The line may have held the input up.
                due = max(due, self._read)
            due += self._settings.reaction
        else:
            due = self._last + quiet
        return max(due + self._lag.frame, self._not_before)

    def _spared(self) -> float:
        """By how much less silence will do."""
        return _SPARED if self._spares and self._moves == 1 else 0.0

    @property
    def _ahead(self) -> float:
        return max(self._lag.trip, self._lag.nap)

    @property
    def _fenced(self) -> bool:
        return self._lag.frame > 0 and self._lag.nap == 0

    @property
    def _shortest(self) -> float:
        """The least silence that can end the wait."""
        return min(self._settings.quiet, self._settings.reaction) + self._lag.frame

    @property
    def _many(self) -> bool:
        """Whether probes are sent at intervals, because one sent when a change has come is answered too late."""
        return self._fenced and self._lag.steady > self._shortest

    def _probe_due(self) -> float:
        if not self._many or self._probed is None:
            return self._due() - self._ahead
        interval = max(self._lag.frame, self._lag.trip / _ON_THE_WAY)
        return max(self._probed + interval, self.start + self._shortest)

    def _deadline(self) -> float:
        return self.start + self._settings.timeout

    def _proved(self) -> bool:
        """The application has handled everything up to the last change."""
        if not self._can_probe:
            return True
        if self._proof is None:
            return False
        if self._many and self._proof >= self._due() - self._lag.steady:
            return True
        if self._last is None and self._many and self._read is not None:
            return self._proof >= self._read
        return self._proof >= self._late_enough()

    def _late_enough(self) -> float:
        """When a probe was sent at the earliest whose answer, alone, proves that nothing (more) comes."""
        if self._last is not None:
            return self._last
        begun = self.start
        if self._fenced and self._read is not None:
            # The line may have held the input up (a packet was lost), and with it the probes behind: those were read together.
            begun = max(begun, self._read - self._ahead)
        # Qt answers what it has read before it handles the input that came first: a later probe finds it at work.
        return begun + self._settings.reaction / 2

    def wants_probe(self, now: float) -> bool:
        """True when a probe must be sent before the screen can count as settled."""
        if not self._can_probe:
            return False
        if self._probed is None:
            return True
        if self._many:
            # No more than can be on the way, for the line may have stopped.
            stopped = bool(self._unanswered) and now - self._unanswered[0] > 2 * self._lag.trip
            return not stopped and now >= self._probe_due()
        # An application is asked one thing at a time; a server's answers come in order, and one under way may be too early.
        under_way = self._probed >= self._late_enough() if self._fenced else bool(self._unanswered)
        return not under_way and not self._proved() and now >= self._probe_due()

    def wait(self, now: float) -> float:
        """For how long, in seconds, only a report can change the verdict."""
        due = self._due()
        until = next((at for at in (self._probe_due(), due) if now < at), self._deadline())
        return max(0.0, min(until, self._deadline()) - now)

    def verdict(self, now: float) -> Verdict | None:
        """The verdict, if there is one."""
        due = self._due()
        if self._resting < due:
            # What is spared is spared on a look's word only.
            due = self._due_after(self._settings.quiet)
        if now >= due and self._proved():
            return self._end(Reason.UNCHANGED if self._last is None else Reason.QUIET)
        if now >= self._deadline():
            changing = self._last is not None and now < self._last + self._settings.quiet
            if changing:
                return self._end(Reason.STILL_CHANGING)
            silent = bool(self._unanswered) and now - self._unanswered[0] > _LATE + 2 * self._ahead
            return self._end(Reason.SERVER_SILENT if self._lag.frame > 0 and silent else Reason.WINDOW_BUSY)
        return None

    def silent(self) -> Verdict:
        """The verdict where the other side does not even answer what it is asked."""
        return self._end(Reason.SERVER_SILENT)

    def _end(self, reason: Reason) -> Verdict:
        settled = reason in {Reason.QUIET, Reason.UNCHANGED}
        return Verdict(settled, reason, self._first, self._last, self._ambient, may_change=self._sleeps)


def _inside_any(rect: Rect, regions: Iterable[Rect]) -> bool:
    return any(rect.within(region) for region in regions)


class Ambient:
    """What changes on its own: fed with the changes seen while no action was under way.

    A pixel is ambient when it changed at least three times, over at least 0.4 s, no more than 1.6 s apart, and recently enough
    that its next change is still due. So a caret (every 0.5-0.6 s), a clock (1 s), a spinner and a video are; the burst with
    which a window draws itself is not, and a program that stopped printing a second ago is not either.
    """

    _SEEN = 192
    _TIMES = 3
    _SPAN = 0.4
    _LONGEST_GAP = 1.6
    # The watcher looks ten times a second, and a busy machine delays it.
    _LATENESS = 0.15

    def __init__(self) -> None:
        """Know nothing yet."""
        self._seen: deque[tuple[float, Rect]] = deque(maxlen=self._SEEN)

    def feed(self, at: float, rects: Iterable[Rect]) -> None:
        """Take note of changes at `at` that no action caused."""
        self._seen.extend((at, rect) for rect in rects)

    def forget(self) -> None:
        """Start anew, as after a resize."""
        self._seen.clear()

    def regions(self, now: float) -> tuple[Rect, ...]:
        """The bounding boxes of what changes on its own at `now`, a little inflated, for a clock's digits differ in width."""
        recent = [(at, rect) for at, rect in self._seen if now - at <= self._LONGEST_GAP * (self._TIMES + 1)]
        if len(recent) < self._TIMES:
            return ()
        cells = [cell for cell in _cells([rect for _, rect in recent]) if self._is_live(cell, recent, now)]
        return tuple(_inflated(box) for box in _united(cells))

    def _is_live(self, cell: Rect, recent: Sequence[tuple[float, Rect]], now: float) -> bool:
        times = sorted({at for at, rect in recent if cell.within(rect)})
        if len(times) < self._TIMES or times[-1] - times[0] < self._SPAN:
            return False
        gap = max(later - earlier for earlier, later in pairwise(times))
        return gap <= self._LONGEST_GAP and now - times[-1] <= 1.5 * gap + self._LATENESS


def _cells(rects: Sequence[Rect]) -> list[Rect]:
    """The grid that the rectangles' edges make, without the cells that no rectangle covers."""
    cells = []
    for group in _overlapping(rects):
        xs = sorted({x for rect in group for x in (rect.x, rect.right)})
        ys = sorted({y for rect in group for y in (rect.y, rect.bottom)})
        for top, bottom in pairwise(ys):
            for left, right in pairwise(xs):
                cell = Rect(left, top, right - left, bottom - top)
                if _inside_any(cell, group):
                    cells.append(cell)
    return cells


_MOST_SHAPES = 12
_NARROW = 8


def _overlapping(rects: Sequence[Rect]) -> list[list[Rect]]:
    """Groups of distinct rectangles that overlap, directly or through others.

    Of a group of very many (a video, a game, a window that drew itself in pieces) the most frequent stay: the grid of all would
    be finer than anyone needs.
    """
    frequency = Counter(rects)
    groups: list[list[Rect]] = []
    for rect in frequency:
        touching = [group for group in groups if any(not rect.intersect(other).empty for other in group)]
        merged = [rect, *(other for group in touching for other in group)]
        groups = [group for group in groups if group not in touching]
        groups.append(merged)
    return [sorted(group, key=lambda rect: -frequency[rect])[:_MOST_SHAPES] for group in groups]


def _bounding(rects: Sequence[Rect]) -> Rect:
    box = rects[0]
    for rect in rects[1:]:
        box = box.union(rect)
    return box


def _united(cells: Sequence[Rect]) -> list[Rect]:
    """Bounding boxes of cells that touch."""
    boxes: list[Rect] = []
    for cell in cells:
        box = cell
        while touching := [other for other in boxes if not box.inflate(1).intersect(other).empty]:
            boxes = [other for other in boxes if other not in touching]
            box = _bounding([box, *touching])
        boxes.append(box)
    return boxes


def _inflated(box: Rect) -> Rect:
    # A caret must stay as narrow as it is: what is typed beside it is no caret.
    if min(box.width, box.height) < _NARROW:
        return box
    dx, dy = min(8, box.width // 4), min(8, box.height // 4)
    return Rect(max(0, box.x - dx), max(0, box.y - dy), box.width + 2 * dx, box.height + 2 * dy)
