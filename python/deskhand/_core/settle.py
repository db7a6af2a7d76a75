"""Decides when the screen has answered: the rules, and what they need to know of a desktop beforehand.

This module owns the rules by which a screen counts as settled, and by which a region counts as busy on its own account (a
caret, a clock, a spinner, a video). Its input is times, changed rectangles and answered probes. It reads no clock, waits for
nothing and knows no backend. Times are seconds on one monotonic clock.

The rules:

- quiet for `Settle.quiet` after the last relevant change: settled, once the window has answered a probe (`_NET_WM_PING`)
  sent after that change. An application that is still computing does not answer,and the wait goes on;
- where there was one change only, and the threads of the application are seen to rest, 15 ms less is enough; and another 15
  where it is learnt that nothing follows such a change (see `deskhand._core.habits`);
- an application that answered late has only just come round to its input, and is given another `quiet`;
- a toolkit may answer before it has worked off its input (GTK does), and a browser answers while its other processes compute:
  an application that is at work when the time is up, itself or in what it started, is looked at again every half
  `quiet` until it is not;
- an animation that slows down moves no pixel for a while, but its clock ticks on: where the screen changed more than once, an
  application that ticks is looked at again too, until 0.25 s after the last change;
- a command in a terminal that sleeps for a time goes on by itself: it is looked at again until 0.3 s after the last change, and
  the verdict says when it still sleeps then;
- an application that has asked over the network since, and got no answer yet, is looked at again for a second; where that was
  in vain twice for one address, it is not waited for there until something comes from it; one that has got its answer, and has
  not drawn since, is looked at once more;
- an application whose pointer has come to say since that it is at work (a watch) is looked at again until a second after the
  input; where it says so then, the verdict says that more may come;
- after a key that may be a hot key, or that changed nothing, a program that has yet to read what the server sent it is waited
  for until a second after the key, whatever windows it has; where it has not read by then, the verdict says that more may come;
- an application that has set a timer since, which may be for a part of its answer, is not waited for, but the verdict says so;
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

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from deskhand.errors import ActionError, shown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from deskhand._core.geometry import Rect

_LONGEST_TIMEOUT = 3600.0


@dataclass(frozen=True, slots=True)
class Settle:
    """How to wait. All values are seconds.

    Attributes:
        quiet: Silence after the last relevant change that counts as settled; 15 ms less, unless it is below 0.05, after a
            lone change by an application that is seen to rest, and 30 ms less after a key that the window has answered so
            24 times, with nothing after it. The longest gap measured inside one answer (a browser's smooth
            scroll) is 25 ms.
        reaction: How long an action without any effect is waited for.
        timeout: When to give up and return what there is, `settled=False`; counted from the end of each action's input.
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
    """What an application does, beyond what it always does."""

    UNKNOWN = "unknown"
    """Its threads cannot be seen where it runs."""
    RESTING = "resting"
    """Nothing."""
    TICKING = "ticking"
    """It wakes up at the rate of frames: an animation goes on."""
    SLEEPING = "sleeping"
    """A command that its terminal waits for sleeps for a time, and goes on by itself."""
    TIMED = "timed"
    """Nothing, but it has set a timer since the action began, got no answer over the network in time, or some program has not
    read a key in time."""
    AWAITING = "awaiting"
    """It has asked over the network since the action began, and waits for the answer."""
    COMPUTING = "computing"
    """It computes, waits for a processor, or has not yet read what it was sent; or another program has not, of a key."""


class Lag(NamedTuple):
    """How far what is seen may lag behind, in seconds; nothing where pixels are read on request.

    Attributes:
        frame: The interval at which the other side looks for changes and sends them.
        trip: The least time that an answer takes.
        nap: For how long the other side may not look at all, so that an answer does not prove that it has looked.
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


@dataclass(frozen=True, slots=True)
class SettleResult:
    """The end of a wait.

    Attributes:
        settled: False only at the timeout, or when the caller asked not to wait.
        reason: Why the wait ended.
        first_change: Time of the first relevant change, None when there was none.
        last_change: Time of the last relevant change, None when there was none.
        busy: Regions that were changing on their own before, and changed again during the wait or are due to.
        may_change: Whether something was found that may go on by itself later (see `Observation.may_change`).
    """

    settled: bool
    reason: Reason
    first_change: float | None
    last_change: float | None
    busy: tuple[Rect, ...]
    may_change: bool = False


def inside_any(rect: Rect, regions: Iterable[Rect]) -> bool:
    return any(rect.within(region) for region in regions)
