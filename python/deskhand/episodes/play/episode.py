"""The agent's side: one episode, and the type of an agent."""

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


class Episode:
    """An agent's view of an episode: the instruction, and a desktop.

    Attributes:
        instruction: The agent's task in words.
        desktop: The desktop. It belongs to the agent until its part is over; it need not be closed.
        seed: The seed of this instance, for agents that use randomness.
        limits: The limits at which its part ends.
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
        """Add a text to the record, such as the model's thoughts: at most 64 KiB at a time, 1 MiB in all."""
        self._budget.note(text)

    def spend(self, *, input: int = 0, output: int = 0, cost: float = 0.0) -> None:
        """Report the usage of a request to a model.

        Args:
            input: Tokens that the model read.
            output: Tokens that it wrote.
            cost: In the currency of the run.

        Raises:
            ActionError: One of them is negative, or not a number.
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
        """How many seconds are left."""
        return max(0.0, self._begun + self.limits.seconds - self._clock())


Agent: TypeAlias = Callable[[Episode], "str | Awaitable[str | None] | None"]
"""A function, or a coroutine function: works until it is done or gives up, and returns its answer as a text, if any."""
