"""Two runs of the same tasks and seeds, compared episode by episode. Pure.

This module owns which episodes are compared, under both scores. The tests themselves are in `statistics`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deskhand.episodes.outcome import Cause
from deskhand.episodes.report.statistics import Chance, Interval, mcnemar, paired, permuted
from deskhand.episodes.report.summary import episode_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Result = Mapping[str, Any]
    Pair = tuple[Result, Result]


@dataclass(frozen=True, slots=True)
class Difference:
    """By how much the second run scores higher.

    Attributes:
        pairs: How many episodes were compared.
        tasks: How many tasks these are of.
        score: The mean difference, with its interval; see `statistics.paired`.
        chance: The test of it, with tasks exchanged as a whole; see `statistics.permuted`.
        gained: Episodes in which only the second run succeeded.
        lost: Those in which only the first did.
        mcnemar: The test of these two numbers, which takes episodes as independent; see `statistics.mcnemar`.
    """

    pairs: int
    tasks: int
    score: Interval
    chance: Chance
    gained: int
    lost: int
    mcnemar: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs side by side.

    Attributes:
        strict: With an invalid episode counted as 0; None if the runs have no episode in common.
        valid_only: Of the episodes that are valid in both; None if there are none.
        only_first: How many episodes only the first run has, which are not compared.
        only_second: How many only the second has.
        other_instances: How many have the same name in both but other parameters, which are not compared either.
    """

    strict: Difference | None
    valid_only: Difference | None
    only_first: int
    only_second: int
    other_instances: int


def compare_runs(first: Sequence[Result], second: Sequence[Result]) -> Comparison:
    """Compare two runs over the episodes that both have.

    Args:
        first: The results of the first run. Cancelled episodes are left out.
        second: Those of the second.
    """
    one, other = (
        {episode_of(each): each for each in run if each["cause"] != Cause.CANCELLED} for run in (first, second)
    )
    named = [(one[key], other[key]) for key in one if key in other]
    both = [pair for pair in named if _is_one_instance(*pair)]
    return Comparison(
        strict=_difference(both),
        valid_only=_difference([(a, b) for a, b in both if a["valid"] and b["valid"]]),
        only_first=len(one) - len(named),
        only_second=len(other) - len(named),
        other_instances=len(named) - len(both),
    )


def _is_one_instance(first: Result, second: Result) -> bool:
    """Whether two episodes of one name are of one instance: with another seed of the run they are not."""
    return all(first.get(part) == second.get(part) for part in ("instance_seed", "parameters"))


def _difference(both: Sequence[Pair]) -> Difference | None:
    if not both:
        return None
    scores: dict[str, list[tuple[float, float]]] = {}
    for first, second in both:
        scores.setdefault(str(first["task"]), []).append((_score(first), _score(second)))
    succeeded = [tuple(bool(each["valid"] and each["success"]) for each in pair) for pair in both]
    gained, lost = succeeded.count((False, True)), succeeded.count((True, False))
    return Difference(
        len(both), len(scores), paired(scores), permuted(scores), gained, lost, mcnemar(gained, lost)
    )  # fmt: skip


def _score(result: Result) -> float:
    return float(result["score"]) if result["valid"] else 0.0
