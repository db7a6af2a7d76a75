"""Decides whether a failed call is made again, and after how long. Pure.

Only a call that is declared repeatable is made again, because another may have been done in part. A call that cannot succeed
is not: one that is wrong, or not allowed, or whose desktop is gone.

The wait before the n-th repetition is ``first * factor ** (n - 1)`` seconds, at most ``cap``, less a random part of ``jitter``
of that, so that calls that failed together are not repeated together.
"""

from __future__ import annotations

from dataclasses import dataclass

from deskhand._core.arguments import LONGEST, expect_number, expect_seconds
from deskhand.errors import ActionError, DesktopLost, PolicyDenied


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long to wait before a repetition.

    Attributes:
        first: Seconds before the first repetition.
        factor: By how much each wait is longer than the one before.
        cap: The longest wait, in seconds.
        jitter: The share of a wait that may be left out at random, 0.0...1.0.

    Raises:
        ActionError: A number is negative, the factor is less than 1, or the jitter is more than 1.
    """

    first: float = 0.5
    factor: float = 2.0
    cap: float = 30.0
    jitter: float = 0.5

    def __post_init__(self) -> None:
        """Validate."""
        expect_seconds("Backoff: first", self.first)
        expect_number("Backoff: factor", self.factor, 1, LONGEST)
        expect_seconds("Backoff: cap", self.cap)
        expect_number("Backoff: jitter", self.jitter, 0, 1)

    def delay(self, repetition: int, chance: float) -> float:
        """Seconds to wait.

        Args:
            repetition: The number of the repetition, from 1.
            chance: A random number, 0.0...1.0; 0 leaves nothing out.
        """
        try:
            whole = min(self.cap, self.first * self.factor ** (repetition - 1))
        except OverflowError:
            whole = self.cap
        return whole * (1 - self.jitter * chance)


def is_hopeless(error: BaseException) -> bool:
    """Whether another try would fail in the same way."""
    return isinstance(error, ActionError | PolicyDenied | DesktopLost)
