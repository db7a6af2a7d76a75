"""What some episodes say about an agent, and how certain that is.

This module owns the arithmetic of scores: intervals, tests, chances of success in k tries. It has no files and no page, and
rounds nothing.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

from deskhand._core.arguments import expect_integer, expect_mapping, expect_number, expect_several
from deskhand.errors import ActionError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NORMAL = NormalDist()
# Smaller variances are only rounding errors of zero.
_NO_VARIANCE = 1e-18
# Enough for all bits of a float.
_HALVINGS = 60
# Of a score, finer than any task's; and how many different sums of scores are counted.
_STEPS = 10**9
_MOST_SUMS = 1 << 15
_MOST_COUNTED = 100_000


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and the interval around it.

    Attributes:
        value: The estimate.
        low: The lower end.
        high: The upper end.
    """

    value: float
    low: float
    high: float


def _z(confidence: float) -> float:
    return _NORMAL.inv_cdf(0.5 + _part(confidence) / 2)


def _part(confidence: float) -> float:
    if not 0 < expect_number("confidence", confidence, 0, 1) < 1:
        raise ActionError(f"confidence must be more than 0 and less than 1, not {confidence}")
    return confidence


def _t(confidence: float, freedom: int) -> float:
    """How many standard errors an interval extends to each side, if these were estimated with `freedom` degrees of freedom.

    Source: Student's distribution as a finite sum, Abramowitz and Stegun, "Handbook of Mathematical Functions", 26.7.3 and
    26.7.4; inverted by halving.
    """
    low, high = 0.0, math.pi / 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < confidence else (low, middle)
    return math.sqrt(freedom) * math.tan((low + high) / 2)


def _within(angle: float, freedom: int) -> float:
    """The chance of Student's t between -sqrt(freedom) tan(angle) and that."""
    cosine = math.cos(angle)
    first = freedom % 2
    term = cosine if first else 1.0
    terms = [0.0] if freedom == 1 else [term]
    for step in range(2 + first, freedom, 2):
        term *= cosine * cosine * (step - 1) / step
        terms.append(term)
    found = math.sin(angle) * math.fsum(terms)
    return (angle + found) * 2 / math.pi if first else found


def wilson(successes: float, count: int, *, confidence: float = 0.95) -> Interval:
    """A proportion with Wilson's score interval, which also holds near 0 and 1 and for few episodes.

    Args:
        successes: The number of successes; scores between 0 and 1 may be added up.
        count: The number of episodes, at least 1.
        confidence: The confidence of the interval, 0...1.

    Source: Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927).

    Raises:
        ActionError: `count` is 0.
    """
    expect_integer("wilson: count", count, 1)
    expect_number("wilson: successes", successes, 0, count)
    z = _z(confidence)
    share = successes / count
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    # At 0 and 1 the interval ends there exactly, which rounding would hide.
    low = 0.0 if successes == 0 else middle - half
    high = 1.0 if successes == count else middle + half
    return Interval(share, max(0.0, low), min(1.0, high))


def clustered(scores: Mapping[str, Sequence[float]], *, confidence: float = 0.95) -> Interval:
    """The mean of all scores, with an interval that takes into account that episodes of one task are alike.

    If all tasks have the same mean (all scores are 1, or each task succeeds every second time), their variance says nothing.
    Then the interval is Wilson's, for as many episodes as there are tasks.

    Args:
        scores: The scores of each task's episodes.
        confidence: The confidence of the interval, 0...1.

    Source: cluster-robust variance of a mean, with the correction G/(G-1) for G clusters; Miller, "Adding error bars to evals",
    arXiv 2411.00640, section 2.2. Student's t with G-1 degrees of freedom, without which the intervals of few tasks are too
    narrow; Cameron and Miller, "A practitioner's guide to cluster-robust inference", JHR 50 (2015), section VI.

    Raises:
        ActionError: There are no scores.
    """
    scores = {
        task: expect_several("a task's scores", several) for task, several in expect_mapping("scores", scores).items()
    }
    every = [expect_number("a score", score, 0, 1) for several in scores.values() for score in several]
    if not every:
        raise ActionError("there are no scores")
    mean = math.fsum(every) / len(every)
    clusters = [several for several in scores.values() if several]
    if len(clusters) < 2:
        return Interval(mean, 0.0, 1.0)
    variance = _variance(clusters, mean)
    if variance < _NO_VARIANCE:
        found = wilson(min(1.0, mean) * len(clusters), len(clusters), confidence=confidence)
        return Interval(mean, found.low, found.high)
    half = _t(confidence, len(clusters) - 1) * math.sqrt(variance)
    return Interval(mean, max(0.0, mean - half), min(1.0, mean + half))


def _variance(clusters: Sequence[Sequence[float]], mean: float) -> float:
    """The variance of the mean of all, if those of one cluster may be alike."""
    count = sum(map(len, clusters))
    sums = (math.fsum(score - mean for score in several) for several in clusters)
    return math.fsum(total * total for total in sums) / count**2 * len(clusters) / (len(clusters) - 1)


def pass_any(successes: int, count: int, k: int) -> float:
    """The chance that at least one of `k` tries succeeds (pass@k), without bias, from `count` tries of one task.

    Source: Chen et al., "Evaluating large language models trained on code", arXiv 2107.03374, equation 1.

    Raises:
        ActionError: There are fewer than `k` tries.
    """
    _check(successes, count, k)
    return 1.0 - math.comb(count - successes, k) / math.comb(count, k)


def pass_all(successes: int, count: int, k: int) -> float:
    """The chance that all of `k` tries succeed (pass^k), without bias, from `count` tries of one task.

    Source: Yao et al., "tau-bench", arXiv 2406.12045, section 3.

    Raises:
        ActionError: There are fewer than `k` tries.
    """
    _check(successes, count, k)
    return math.comb(successes, k) / math.comb(count, k)


def _check(successes: int, count: int, k: int) -> None:
    expect_integer("count", count, 1)
    expect_integer("successes", successes, 0, count)
    expect_integer("k", k, 1, count)


def paired(pairs: Mapping[str, Sequence[tuple[float, float]]], *, confidence: float = 0.95) -> Interval:
    """The mean difference in score between two runs of the same episodes, second minus first; see `clustered`.

    If all tasks differ by the same amount, the interval is as wide as Wilson's for as many tasks that all agree.

    Args:
        pairs: The scores of each task's episodes that both runs have.
        confidence: The confidence of the interval, 0...1.

    Raises:
        ActionError: There are no pairs.
    """
    clusters = [
        [second - first for first, second in expect_several("a task's pairs", several)]
        for several in expect_mapping("pairs", pairs).values()
        if several
    ]
    every = [difference for several in clusters for difference in several]
    if not every:
        raise ActionError("the two runs have no episode in common")
    mean = math.fsum(every) / len(every)
    if len(clusters) < 2:
        return Interval(mean, -1.0, 1.0)
    variance = _variance(clusters, mean)
    if variance < _NO_VARIANCE:
        half = wilson(0, len(clusters), confidence=confidence).high
    else:
        half = _t(confidence, len(clusters) - 1) * math.sqrt(variance)
    return Interval(mean, max(-1.0, mean - half), min(1.0, mean + half))


@dataclass(frozen=True, slots=True)
class Chance:
    """The p-value of a test: the chance of a difference at least as large, if the two runs are equally good.

    Attributes:
        p: The chance, two-sided.
        exact: Whether all cases were counted; otherwise some were drawn.
    """

    p: float
    exact: bool


def permuted(pairs: Mapping[str, Sequence[tuple[float, float]]], *, draws: int = 20_000, seed: int = 0) -> Chance:
    """Test whether two runs of the same episodes differ, by exchanging them task by task.

    Episodes of one task are alike, so that they are exchanged together. If the runs are equally good, each task's difference
    has either sign with the same chance. All cases are counted where their sums are few enough, as for scores of 0 and 1.

    Args:
        pairs: The scores of each task's episodes that both runs have.
        draws: How many cases are drawn if there are too many to count; the chance is then not below 1 of that.
        seed: The seed for drawing them.

    Source: Fisher's randomisation test for pairs, "The design of experiments" (1935), section 21; for drawn cases with the
    observed one among them, Phipson and Smyth, SAGMB 9 (2010), article 39.

    Raises:
        ActionError: There are no pairs.
    """
    expect_integer("permuted: draws", draws, 1)
    expect_integer("permuted: seed", seed, 0)
    # Whole numbers, so that equal sums are equal whatever their order.
    sums = [
        sum(round(_STEPS * (_score(second) - _score(first))) for first, second in expect_several("pairs", several))
        for several in expect_mapping("pairs", pairs).values()
        if several
    ]
    if not sums:
        raise ActionError("the two runs have no episode in common")
    found = abs(sum(sums))
    counts = {0: 1}
    for change in sums:
        after: dict[int, int] = {}
        for total, count in counts.items():
            for other in (total + change, total - change):
                after[other] = after.get(other, 0) + count
        if len(after) > _MOST_SUMS:
            return Chance(_drawn(sums, found, draws, seed), exact=False)
        counts = after
    extreme = sum(count for total, count in counts.items() if abs(total) >= found)
    return Chance(extreme / 2 ** len(sums), exact=True)


def _score(value: object) -> float:
    return expect_number("a score", value, 0, 1)


def _drawn(sums: Sequence[int], found: int, draws: int, seed: int) -> float:
    chance = random.Random(seed)  # noqa: S311 # to be repeated
    extreme = 0
    for _ in range(draws):
        signs = chance.getrandbits(len(sums))
        total = sum(change if signs >> place & 1 else -change for place, change in enumerate(sums))
        extreme += abs(total) >= found
    return (extreme + 1) / (draws + 1)


def mcnemar(gained: int, lost: int) -> float:
    """The exact test of McNemar for two runs of the same episodes: the chance of such numbers if the runs are equally good.

    It takes episodes as independent: use `permuted` where tasks have several.

    Args:
        gained: The episodes that only the second run did.
        lost: Those that only the first did.

    Source: McNemar, Psychometrika 12 (1947), with the binomial distribution.
    """
    expect_integer("mcnemar: gained", gained, 0, _MOST_COUNTED)
    expect_integer("mcnemar: lost", lost, 0, _MOST_COUNTED)
    count = gained + lost
    tail = term = 1
    for k in range(min(gained, lost)):
        term = term * (count - k) // (k + 1)
        tail += term
    chance: float = 2 * tail / 2**count
    # The middle case is in both tails.
    return min(1.0, chance)
