"""What an agent is given: one episode, and the protocol of an agent."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

from deskhand.errors import ActionError, shown

if TYPE_CHECKING:
    from deskhand.desktop.desktop import Desktop
    from deskhand.episodes.ledger.ledger import Key
    from deskhand.episodes.play.budget import StepBudget
    from deskhand.episodes.tasks.task import TaskLimits

__all__ = ["Agent", "Episode"]


class Episode:
    """What an agent gets: what to do, and a desktop to do it on.

    Attributes:
        instruction: What is to be done.
        desktop: Where. It is the agent's until its part is over; it need not be closed.
        seed: Of this instance, for agents that throw dice.
        limits: When its part ends, whatever it does.
    """

    def __init__(
        self,
        instruction: str,
        desktop: Desktop,
        *,
        seed: int,
        limits: TaskLimits,
        key: Key,
        budget: StepBudget,
        oracle: Callable[[], str | None],
        clock: Callable[[], float],
    ) -> None:
        """Begin the agent's part; see `deskhand.episodes.play.attempt`."""
        self.instruction = instruction
        self.desktop = desktop
        self.seed = seed
        self.limits = limits
        self._key = key
        self._budget = budget
        self._oracle = oracle
        self._clock = clock
        self._begun = clock()

    def note(self, text: str) -> None:
        """Say something for the record, such as the model's thoughts: 64 KiB at a time, 1 MiB in all."""
        self._budget.note(text)

    def spend(self, *, input: int = 0, output: int = 0, cost: float = 0.0) -> None:
        """Tell what a request to a model used.

        Args:
            input: Tokens that the model read.
            output: Tokens that it wrote.
            cost: In whatever money the run is counted in.

        Raises:
            ActionError: One of them is negative, or no number.
        """
        for name, value in (("input", input), ("output", output), ("cost", cost)):
            whole = isinstance(value, int) and not isinstance(value, bool)
            if not (whole or (name == "cost" and isinstance(value, float) and math.isfinite(value))) or value < 0:
                raise ActionError(f"spend: {name} must be a number of 0 or more, not {shown(value)}")
        self._budget.spend(input, output, float(cost))

    @property
    def steps_left(self) -> int:
        """How many more calls may act."""
        return max(0, self.limits.steps - self._budget.steps)

    @property
    def seconds_left(self) -> float:
        """How much longer it may take."""
        return max(0.0, self._begun + self.limits.seconds - self._clock())


Agent: TypeAlias = Callable[[Episode], "str | Awaitable[str | None] | None"]
"""A function, or a coroutine function: works until it is done or gives up, and returns its answer in words, if it has one."""
