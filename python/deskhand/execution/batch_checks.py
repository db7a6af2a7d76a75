"""Refuses a batch that cannot be carried out as it is: two calls with one id, impossible dependencies or conditions. Pure.

This module owns what makes a batch impossible. The progress of a possible one is in `schedule`.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from deskhand.errors import BadPlan, shown
from deskhand.execution.types import FunctionCallStrategy, RequestFunctionCall

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence


def fingerprint(call: RequestFunctionCall) -> str:
    """What two calls with one id must have in common to be the same call; short, however long the arguments are."""
    try:
        said = json.dumps([call.name, call.arguments], sort_keys=True, default=repr)
    except (TypeError, ValueError, RecursionError):
        # Not from a model: keys that are not text or cannot be sorted, or a dictionary that contains itself.
        said = repr([call.name, call.arguments])
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()


def distinct(calls: Sequence[RequestFunctionCall]) -> dict[str, RequestFunctionCall]:
    """The calls without duplicates, by id, in the order given.

    Raises:
        BadPlan: Two that are not the same have one id, or a timeout or a number of retries is impossible.
    """
    by_id: dict[str, RequestFunctionCall] = {}
    for call in calls:
        _check_call(call)
        if fingerprint(by_id.setdefault(call.id, call)) != fingerprint(call):
            raise BadPlan(f"two calls have the id {call.id!r} and are not the same", (call.id,), "give each its own")
    return by_id


def check_conditions(
    conditional: Collection[str], strategy: FunctionCallStrategy, by_id: Mapping[str, RequestFunctionCall]
) -> None:
    """Check the ids of the calls that have a condition of their own.

    Raises:
        BadPlan: The strategy has no conditions, or one of these calls is not in the batch.
    """
    if conditional and strategy is not FunctionCallStrategy.CONDITIONAL:
        raise BadPlan(f"conditions need the strategy CONDITIONAL, not {strategy.name}", tuple(conditional))
    unknown = [name for name in conditional if name not in by_id]
    if unknown:
        raise BadPlan(
            f"there are conditions for {', '.join(map(shown, unknown))}, which are not in this batch",
            tuple(map(str, unknown)),
            "name calls by their id",
        )


def check_dependencies(
    calls: Sequence[RequestFunctionCall], strategy: FunctionCallStrategy, known: Collection[str]
) -> None:
    """Check what calls depend on; `known` has the ids of earlier calls.

    Raises:
        BadPlan: One of them is unknown, they depend on one another in a circle, or the strategy's order does not allow them.
    """
    dependencies = {call.id: call.dependencies for call in calls}
    for call in calls:
        unknown = [needed for needed in call.dependencies if needed not in dependencies and needed not in known]
        if unknown:
            raise BadPlan(
                f"{call.id} ({call.name}) depends on {', '.join(unknown)}, which is neither in this batch nor known",
                (call.id, *unknown),
                "name calls by their id",
            )
    cycle = find_cycle(dependencies)
    if cycle:
        raise BadPlan(f"calls depend on one another in a circle: {' -> '.join(cycle)}", tuple(cycle[:-1]))
    if strategy is FunctionCallStrategy.CONDITIONAL:
        return
    parallel = strategy is FunctionCallStrategy.PARALLEL
    place = {call.id: number for number, call in enumerate(calls)}
    for call in calls:
        for needed in call.dependencies:
            if needed in place and (parallel or place[needed] > place[call.id]):
                why = "all begin at once" if parallel else "calls run in the order given"
                raise BadPlan(
                    f"{call.id} ({call.name}) depends on {needed}, and with {strategy.name} {why}",
                    (call.id, needed),
                    "use CONDITIONAL",
                )


def find_cycle(dependencies: Mapping[str, Collection[str]]) -> list[str]:
    """Ids of calls that depend on one another in a circle, with the first one again at the end; empty if there is none."""
    clear: set[str] = set()
    for start in dependencies:
        path: list[str] = []
        on_path: set[str] = set()
        # Depth first, without recursion: a batch may be one long chain.
        todo: list[tuple[str, bool]] = [(start, False)]
        while todo:
            name, leave = todo.pop()
            if leave:
                on_path.remove(name)
                clear.add(path.pop())
            elif name in on_path:
                return [*path[path.index(name) :], name]
            elif name not in clear:
                path.append(name)
                on_path.add(name)
                todo.append((name, True))
                todo += [(needed, False) for needed in reversed(list(dependencies.get(name, ())))]
    return []


def _check_call(call: RequestFunctionCall) -> None:
    if call.timeout is not None and not call.timeout > 0:
        raise BadPlan(
            f"{call.id} ({call.name}) has the timeout {shown(call.timeout)}", (call.id,), "give seconds, or None"
        )
    if call.max_retries < 0:
        raise BadPlan(f"{call.id} ({call.name}) has max_retries={call.max_retries}", (call.id,), "give 0 or more")
