"""Rate limits: token buckets. The caller passes the time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from deskhand import actions as act
from deskhand._core.arguments import expect_amount, expect_integer
from deskhand.desktop.operations import Operation

if TYPE_CHECKING:
    from collections.abc import Iterable

    from deskhand.policy.rules import JudgedAction

_LOOKING = (act.TakeScreenshot, act.Zoom)


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimits:
    """How much is allowed; None means no limit.

    Each rate is a bucket that holds one second's worth and fills steadily. An action that costs more than a full bucket (a text
    of 1,000 characters) may begin when the bucket is full; the next one waits until the excess has been paid back.

    Attributes:
        actions: A second: every action and operation except looking.
        keys: Key presses a second; each character of a text is one.
        screenshots: Looks a second: `screenshot`, and a `perform` that does nothing else.
        max_actions: In total, over the life of the guard.

    Raises:
        ActionError: A limit is not above 0.
    """

    actions: float | None = 20.0
    keys: float | None = 200.0
    screenshots: float | None = 10.0
    max_actions: int | None = None

    def __post_init__(self) -> None:
        """Check that every limit is above 0."""
        for name in self.__slots__:
            if (value := getattr(self, name)) is not None:
                expect_amount(f"RateLimits: {name}, if it is not None,", value)
        if self.max_actions is not None:
            expect_integer("RateLimits: max_actions", self.max_actions, 1)


class Buckets:
    """How much of the limits is used up. Not thread-safe."""

    def __init__(self, limits: RateLimits, now: float) -> None:
        """Start with full buckets at the time `now`, in monotonic seconds."""
        rates = {"actions": limits.actions, "keys": limits.keys, "screenshots": limits.screenshots}
        self._rates = {name: rate for name, rate in rates.items() if rate is not None}
        # A bucket must hold at least one whole action.
        self._sizes = {name: max(1.0, rate) for name, rate in self._rates.items()}
        self._levels = dict(self._sizes)
        self._left = limits.max_actions
        self._at = now

    def take(self, actions: Iterable[JudgedAction], now: float) -> tuple[str, float | None] | None:
        """Take the cost of these actions, all of it or nothing.

        Returns:
            None if there was enough; else the limit that is exceeded, and in how many seconds there is enough (None: never).
        """
        actions = tuple(actions)
        costs = _costs(actions)
        passed = max(0.0, now - self._at)
        self._at = max(self._at, now)
        for name, rate in self._rates.items():
            self._levels[name] = min(self._sizes[name], self._levels[name] + passed * rate)
        if self._left is not None and costs["actions"] > self._left:
            return f"only {self._left} of this episode's actions are left", None
        worst: tuple[str, float] | None = None
        for name, rate in self._rates.items():
            needed = min(costs[name], self._sizes[name]) - self._levels[name]
            if costs[name] and needed > 1e-9 and (worst is None or needed / rate > worst[1]):
                worst = f"more than {rate:g} {name} a second", needed / rate
        if worst is None:
            for name in self._rates:
                self._levels[name] -= costs[name]
            if self._left is not None:
                self._left -= int(costs["actions"])
        return worst


def _costs(actions: tuple[JudgedAction, ...]) -> dict[str, float]:
    looks = all(_looks(action) for action in actions)
    return {
        "actions": sum(not _looks(action) for action in actions),
        "keys": sum(map(_keys, actions)),
        "screenshots": int(looks),
    }


def _looks(action: JudgedAction) -> bool:
    return isinstance(action, _LOOKING) or (isinstance(action, Operation) and action.type == "screenshot")


def _keys(action: JudgedAction) -> int:
    match action:
        case act.Type(text=text, paste=False):
            return len(text)
        case act.KeyPress(keys=keys, repeat=repeat):
            return len(keys) * repeat
        case act.KeyHold(keys=keys) | act.PressKeys(keys=keys) | act.ReleaseKeys(keys=keys):
            return len(keys)
        case _:
            return 0
