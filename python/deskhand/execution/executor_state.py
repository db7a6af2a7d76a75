"""What all batches of an executor share: its functions and limits, and the calls that it has made with their results."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from deskhand.errors import BadPlan
from deskhand.execution.batch_checks import fingerprint
from deskhand.execution.types import ExecutionResult, ExecutionStatus, RequestFunctionCall

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from deskhand.execution.functions import Function
    from deskhand.execution.retries import Backoff
    from deskhand.execution.schedule import Lane


@dataclass(slots=True)
class KeptCall:
    """A call that has begun, here or in another run of the executor."""

    fingerprint: str
    # None once the call has ended.
    under_way: asyncio.Event | None
    result: ExecutionResult | None = None


@dataclass(slots=True)
class ExecutorState:
    """The state that all batches of an executor share; see also `Executor.__init__`.

    Attributes:
        kept: The calls that have begun, by their ids.
        whole: Those whose results are still kept, the oldest first.
    """

    functions: Mapping[str, Function]
    backoff: Backoff
    parallel: int
    remembered: int
    sleep: Callable[[float], Awaitable[object]]
    random: Callable[[], float]
    kept: dict[str, KeptCall] = field(default_factory=dict)
    whole: deque[KeptCall] = field(default_factory=deque)

    def lane(self, call: RequestFunctionCall) -> Lane | None:
        """The lane in which a call waits for its turn; None if it needs no turn."""
        function = self.functions.get(call.name)
        return None if function is None else function.lane(call.arguments)

    def known(self, calls: Sequence[RequestFunctionCall]) -> dict[str, ExecutionStatus]:
        """The status of earlier calls that these depend on, by id.

        Raises:
            BadPlan: A new call has the id of a different one.
        """
        for call in calls:
            kept = self.kept.get(call.id)
            if kept is not None and kept.fingerprint != fingerprint(call):
                raise taken_id(call)
        found = {needed: self.kept.get(needed) for call in calls for needed in call.dependencies}
        return {
            name: kept.result.status for name, kept in found.items() if kept is not None and kept.result is not None
        }

    def keep(self, kept: KeptCall, result: ExecutionResult) -> None:
        """Remember the result of a call, and forget that of the oldest."""
        kept.result = result
        if result.result is None:
            return
        self.whole.append(kept)
        if len(self.whole) > self.remembered:
            oldest = self.whole.popleft()
            assert oldest.result is not None  # noqa: S101 # set above
            error = oldest.result.error or "it was made before, and its result is no longer kept"
            oldest.result = ExecutionResult(oldest.result.status, error=error)


def taken_id(call: RequestFunctionCall) -> BadPlan:
    """The error of a call with the id of another one."""
    return BadPlan(f"another call had the id {call.id!r} before", (call.id,), "give each call its own")
