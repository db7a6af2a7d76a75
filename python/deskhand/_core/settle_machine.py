"""Decides when a screen counts as settled. The input of this machine is time, damage and answered pings."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING

from deskhand._core.habits import LEARNT
from deskhand._core.settle import Activity, Lag, Reason, Settle, SettleResult, inside_any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from deskhand._core.geometry import Rect

# An application at rest answers a probe within a few milliseconds.
_LATE = 0.02
# The most probes on the way at once: they locate the moment of silence to a sixteenth of a trip.
_ON_THE_WAY = 16
# GTK scrolls to the caret within 0.2 s: it was seen not to move a pixel for the last 0.1 s of it, and then once more.
_LONGEST_STANDSTILL = 0.25
# A command that sleeps between two lines sleeps for less, unless a person is meant to read along.
_LONGEST_NAP = 0.3
# An application that says by the pointer that it is at work is waited for no longer.
_LONGEST_SAYING = 1.0
# Measured on 622 frames: with 15 or 20 ms less, no other frames were wrong than without; with 25 ms less, one more. The looks
# before a verdict take about 1 ms of the silence themselves.
_SPARED = 0.016
_SHORTEST_SPARED_QUIET = 0.05
_RESTING = frozenset({Activity.RESTING, Activity.TIMED})
# Over so short a time a single wake looks like a tick; an animation would not have been learnt to change once.
_RESTING_AS_LEARNT = _RESTING | {Activity.TICKING}
_NO_LAG = Lag()


class Machine:
    """One wait, from the end of the input to the verdict.

    Attributes:
        start: When it began.

    The caller repeats: report what happened (`changed`, `answered`), look what the application does when `wants_look` is true
    (and report it with `looked`), ask `result`; if there is none, send a probe when `wants_probe` is true (and
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
            lag: How far what is seen may lag behind.
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
        self._goes_on = False
        # When the application was last found to wait for an answer, until it was found to have it.
        self._awaited: float | None = None
        # When a probe was last sent, when the unanswered ones were sent, and when the latest answered one was.
        self._probed: float | None = None
        self._unanswered: deque[float] = deque()
        self._proof: float | None = None
        # The time from which on the other side has surely read the input.
        self._read: float | None = None
        may_spare = settings.quiet >= _SHORTEST_SPARED_QUIET and lag == _NO_LAG
        # How much shorter the silence after a lone change may be, and where that is not enough.
        self._spares = [_SPARED] if may_spare else []
        self._gap = 0.0

    def changed(self, at: float, rects: Iterable[Rect]) -> bool:
        """Report pixels that changed at `at`.

        Returns:
            True when any of it was relevant.
        """
        relevant = any(not inside_any(rect, self._ambient) for rect in rects)
        if relevant:
            self._first = at if self._first is None else self._first
            self._gap = self._gap if self._last is None else max(self._gap, at - self._last)
            self._last = at
            self._moves += 1
        return relevant

    @property
    def has_changed(self) -> bool:
        """Whether anything relevant has changed so far."""
        return self._last is not None

    def hasten(self) -> None:
        """Report that one change is all that has come so far in such cases; see `deskhand._core.habits`."""
        if self._spares:
            self._spares.insert(0, LEARNT)

    @property
    def was_lone(self) -> bool | None:
        """Whether the answer was one change alone; False where another came later than is learnt, None where sooner."""
        lone = self._moves == 1
        return lone if lone or self._gap > self._settings.quiet - LEARNT else None

    def probed(self, at: float) -> None:
        """Report that a probe was sent at `at`."""
        self._probed = at
        self._unanswered.append(at)

    def answered(self, at: float) -> None:
        """Report that the oldest probe without an answer was found answered at `at`; extra calls are harmless."""
        if not self._unanswered:
            return
        sent = self._unanswered.popleft()
        if at - sent > _LATE + 2 * self._ahead:
            # It was at work, and has only just reached its events: it has yet to draw what they cause.
            self._not_before = max(self._not_before, at + self._settings.quiet)
            self._spares = []
        self._proof = sent
        self._read = at if self._read is None else self._read

    def looked(self, at: float, activity: Activity, *, says_wait: bool = False) -> None:
        """Report what the application was found to do at `at`, and whether the pointer has come to say that it is at work."""
        if says_wait and at < self.start + _LONGEST_SAYING:
            activity = Activity.AWAITING
        if (
            self._spared()
            and activity not in (_RESTING_AS_LEARNT if self._spared() == LEARNT else _RESTING)
            and at < self._due_after(self._settings.quiet)
        ):
            # Not known to rest: it is looked at again when more of the silence has passed.
            self._spares = self._spares[1:]
            return
        # A browser's clock runs on for three frames after any change.
        animated = self._moves > 1 and self._last is not None and at < self._last + _LONGEST_STANDSTILL
        # What ticks hides what else it waits for.
        ticks_on = activity is Activity.TICKING and self._goes_on
        self._goes_on = says_wait or ticks_on or activity in {Activity.SLEEPING, Activity.TIMED}
        # What an answer is for has yet to be drawn, or asked for.
        waits = says_wait or activity is Activity.AWAITING
        not_drawn = self._awaited is not None and (self._last is None or self._last < self._awaited)
        answered = not_drawn and not waits
        self._awaited = at if waits else None
        naps = activity is Activity.SLEEPING and at < (self.start if self._last is None else self._last) + _LONGEST_NAP
        ticks = activity is Activity.TICKING and animated
        if activity in {Activity.COMPUTING, Activity.AWAITING} or ticks or naps or answered:
            # The backend looks back over about a `quiet`: half of one is soon enough to ask again.
            self._not_before = max(self._not_before, at + self._settings.quiet / 2)
        else:
            self._resting = at

    def wants_look(self, now: float) -> bool:
        """True when silence has lasted long enough, and it is not known yet what the application does."""
        return now >= self._due() > self._resting

    def unprobeable(self) -> None:
        """Report that the window under the input no longer answers probes (it may have closed)."""
        self._can_probe = False

    def _due(self) -> float:
        """When silence, if it lasts, is long enough; or is, if a look finds the application resting."""
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
        """How much shorter the silence may be."""
        return self._spares[0] if self._spares and self._moves == 1 else 0.0

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

    @property
    def ends(self) -> float:
        """When it ends with a time-out."""
        return self.start + self._settings.timeout

    def _proved(self) -> bool:
        """Whether the application has handled everything up to the last change."""
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
        """The earliest sending time of a probe whose answer, alone, proves that nothing (more) comes."""
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
        # An application gets one probe at a time; a server answers in order, and one under way may be too early.
        under_way = self._probed >= self._late_enough() if self._fenced else bool(self._unanswered)
        return not under_way and not self._proved() and now >= self._probe_due()

    def wait(self, now: float) -> float:
        """For how many seconds only a report can change the verdict."""
        due = self._due()
        until = next((at for at in (self._probe_due(), due) if now < at), self.ends)
        return max(0.0, min(until, self.ends) - now)

    def result(self, now: float) -> SettleResult | None:
        """The verdict, if there is one."""
        due = self._due()
        if self._resting < due:
            # The wait is shortened only after a look.
            due = self._due_after(self._settings.quiet)
        if now >= due and self._proved():
            return self._end(Reason.UNCHANGED if self._last is None else Reason.QUIET)
        if now >= self.ends:
            changing = self._last is not None and now < self._last + self._settings.quiet
            if changing:
                return self._end(Reason.STILL_CHANGING)
            silent = bool(self._unanswered) and now - self._unanswered[0] > _LATE + 2 * self._ahead
            return self._end(Reason.SERVER_SILENT if self._lag.frame > 0 and silent else Reason.WINDOW_BUSY)
        return None

    def silent(self) -> SettleResult:
        """The verdict where even the other side itself does not answer."""
        return self._end(Reason.SERVER_SILENT)

    def _end(self, reason: Reason) -> SettleResult:
        settled = reason in {Reason.QUIET, Reason.UNCHANGED}
        return SettleResult(settled, reason, self._first, self._last, self._ambient, may_change=self._goes_on)
