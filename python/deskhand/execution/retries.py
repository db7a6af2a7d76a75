"""Whether a call that failed is made again, and after how long. Pure.

Only what declares itself repeatable is: of anything else, nobody knows how much it had done. And only while there is hope: a
call that is wrong, or not allowed, or whose desktop is gone, would fail in the same way.

Before the n-th repetition it is waited for ``first * factor ** (n - 1)`` seconds, ``cap`` at most, less a random part of
``jitter`` of that, so that those who failed together do not come back together.
"""

from __future__ import annotations

from dataclasses import dataclass

from deskhand._core.arguments import LONGEST, expect_number, expect_seconds
from deskhand.errors import ActionError, DesktopLost, PolicyDenied

__all__ = ["Backoff", "is_hopeless"]


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long it is waited for before a repetition.

    Attributes:
        first: Seconds before the first.
        factor: By how much each wait is longer than the one before.
        cap: Seconds at most.
        jitter: Which part of a wait may be left out at random, 0.0...1.0.

    Raises:
        ActionError: A number is negative, or the factor less than 1, or the jitter more.
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
            repetition: 1 for the first.
            chance: A random number, 0.0...1.0; 0 leaves nothing out.
        """
        try:
            whole = min(self.cap, self.first * self.factor ** (repetition - 1))
        except OverflowError:
            whole = self.cap
        return whole * (1 - self.jitter * chance)


def is_hopeless(error: BaseException) -> bool:
    """Whether the same call would only fail in the same way."""
    return isinstance(error, ActionError | PolicyDenied | DesktopLost)
