"""The arithmetic of scores, against published values and against counting all cases."""

from __future__ import annotations

import itertools
import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand import ActionError
from deskhand.episodes.report.statistics import clustered, mcnemar, paired, pass_all, pass_any, permuted, wilson

# Student's t for 95 % and 7 degrees of freedom, as printed in tables.
T_OF_7 = 2.3646


@pytest.mark.parametrize(
    ("tasks", "confidence", "printed"),
    # NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2, for 1, 2, 3, 10, 29, 41 and 100 degrees of freedom.
    [
        (2, 0.95, 12.706),
        (3, 0.95, 4.303),
        (4, 0.90, 2.353),
        (11, 0.99, 3.169),
        (30, 0.95, 2.045),
        (42, 0.95, 2.020),
        (101, 0.90, 1.660),
    ],
)
def test_few_tasks_make_us_less_sure_as_the_tables_of_student_say(
    tasks: int, confidence: float, printed: float
) -> None:
    scores = [task / 1e6 for task in range(tasks)]
    found = clustered({str(score): [0.5 + score] for score in scores}, confidence=confidence)
    assert round((found.high - found.value) / math.sqrt(statistics.variance(scores) / tasks), 3) == printed


@pytest.mark.parametrize(
    ("successes", "count", "low", "high"),
    # Newcombe, Statistics in Medicine 17 (1998), table I, method 3.
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_gives_the_published_intervals(successes: int, count: int, low: float, high: float) -> None:
    found = wilson(successes, count)
    assert found.value == successes / count
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_its_estimate_and_mirrors(case: tuple[int, int]) -> None:
    successes, count = case
    found, mirrored = wilson(successes, count), wilson(count - successes, count)
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert math.isclose(found.low, 1 - mirrored.high, abs_tol=1e-12)


@given(st.lists(st.booleans(), min_size=1, max_size=7).flatmap(lambda t: st.tuples(st.just(t), st.integers(1, len(t)))))
def test_pass_at_k_and_pass_power_k_count_all_draws(case: tuple[list[bool], int]) -> None:
    tries, k = case
    draws = list(itertools.combinations(tries, k))
    assert math.isclose(pass_any(sum(tries), len(tries), k), sum(any(draw) for draw in draws) / len(draws))
    assert math.isclose(pass_all(sum(tries), len(tries), k), sum(all(draw) for draw in draws) / len(draws))


def test_too_few_tries_tell_nothing() -> None:
    for function in (pass_any, pass_all):
        with pytest.raises(ActionError, match="k is an integer from 1 to 2"):
            function(1, 2, 3)
    with pytest.raises(ActionError, match="count is an integer of at least 1"):
        wilson(0, 0)
    with pytest.raises(ActionError, match="no scores"):
        clustered({"a": []})
    with pytest.raises(ActionError, match="in common"):
        paired({"a": []})


def test_episodes_of_a_task_that_are_alike_make_us_less_sure() -> None:
    alike = clustered({str(task): [task % 2] * 4 for task in range(8)})
    mixed = clustered({str(task): [1, 0, 1, 0] for task in range(8)})
    assert alike.value == mixed.value == 0.5
    # Eight tasks that happen to be alike are no certainty about all others.
    assert (mixed.low, mixed.high) == (wilson(4, 8).low, wilson(4, 8).high)
    # By hand: the clusters' sums are +2 and -2; 8 * 4 / 32**2 * 8/7 = 1/28.
    assert math.isclose(alike.high - 0.5, T_OF_7 * math.sqrt(1 / 28), rel_tol=1e-4)
    assert math.isclose(0.5 - alike.low, T_OF_7 * math.sqrt(1 / 28), rel_tol=1e-4)


def test_one_task_alone_tells_nothing_of_others() -> None:
    assert (clustered({"a": [1, 1]}).low, clustered({"a": [1, 1]}).high) == (0.0, 1.0)


def test_a_perfect_score_is_not_a_certain_one() -> None:
    perfect = clustered({str(task): [1, 1] for task in range(42)})
    assert (perfect.value, perfect.high) == (1.0, 1.0)
    assert perfect.low == wilson(42, 42).low
    assert clustered({str(task): [0] for task in range(42)}).high == wilson(0, 42).high


def test_no_variance_but_that_of_rounding_is_none() -> None:
    thirds = clustered({str(task): [0.0, 0.0, 1.0] for task in range(7)})
    assert thirds.low < 0.2
    assert thirds.high > 0.6


def test_two_runs_are_compared_episode_by_episode() -> None:
    four = [(0.0, 1.0), (0.0, 0.0), (1.0, 1.0), (0.0, 1.0)]
    found = paired({str(number): [pair] for number, pair in enumerate(four * 2)})
    assert found.value == 0.5
    # By hand: four ones and four zeros have the variance 2/7.
    assert math.isclose(found.high - 0.5, T_OF_7 * math.sqrt(2 / 7 / 8), rel_tol=1e-4)
    assert math.isclose(0.5 - found.low, T_OF_7 * math.sqrt(2 / 7 / 8), rel_tol=1e-4)
    one = paired({"a": [(0.0, 1.0), (0.0, 0.0)]})
    assert (one.value, one.low, one.high) == (0.5, -1.0, 1.0)


def test_episodes_of_a_task_that_differ_alike_make_us_less_sure_of_a_comparison() -> None:
    alone = paired({str(number): [(0.0, number % 2)] for number in range(16)})
    alike = paired({str(task): [(0.0, task % 2)] * 4 for task in range(4)})
    assert alone.value == alike.value == 0.5
    assert alike.high - alike.low > 1.9 * (alone.high - alone.low)


def test_two_runs_that_agree_everywhere_are_not_the_same_for_sure() -> None:
    agreeing = paired({str(task): [(1.0, 1.0)] * 3 for task in range(42)})
    assert (agreeing.value, agreeing.low, agreeing.high) == (0.0, -wilson(0, 42).high, wilson(0, 42).high)


@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([0.0, 0.5, 1.0])), min_size=1, max_size=3),
        min_size=1,
        max_size=8,
    )
)
def test_all_exchanges_of_tasks_are_counted(tasks: list[list[tuple[float, float]]]) -> None:
    changes = [sum(b - a for a, b in task) for task in tasks]
    found = abs(sum(changes))
    cases = [
        abs(sum(sign * change for sign, change in zip(signs, changes, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(changes))
    ]
    test = permuted({str(number): task for number, task in enumerate(tasks)})
    assert test.exact
    assert math.isclose(test.p, sum(case >= found for case in cases) / len(cases))


def test_what_has_too_many_cases_is_drawn_by_a_seed() -> None:
    # Sums of different powers of two are all different.
    many = {str(task): [(0.0, 2.0**-task)] for task in range(30)}
    test = permuted(many)
    assert not test.exact
    assert test == permuted(many)
    # All of one sign: only that case and its opposite are as extreme, so that hardly any is drawn.
    assert 1 / 20_001 <= test.p < 0.001
    mixed = {str(task): [(0.5, 0.5 + (-1) ** task * 2.0**-task / 4)] for task in range(30)}
    assert 0.2 < permuted(mixed, draws=2000).p < 1
    assert permuted(mixed, draws=2000) != permuted(mixed, draws=2000, seed=1)


def test_a_hundred_tasks_of_zeros_and_ones_are_counted() -> None:
    test = permuted({str(task): [(0.0, float(task < 60)), (1.0, float(task < 50))] for task in range(369)})
    assert test.exact
    assert test.p < 1e-6


@pytest.mark.parametrize(
    ("gained", "lost", "p"),
    # Two-sided exact binomial tests with one half, as R's binom.test prints them.
    [
        (0, 0, 1.0),
        (1, 0, 1.0),
        (5, 0, 0.0625),
        (8, 2, 0.109375),
        (10, 1, 0.01171875),
        (7, 7, 1.0),
        (0, 12, 0.00048828125),
    ],
)
def test_mcnemars_test_is_the_binomial_one(gained: int, lost: int, p: float) -> None:
    assert mcnemar(gained, lost) == p
    assert mcnemar(lost, gained) == p


@given(st.integers(0, 8), st.integers(0, 8))
def test_with_one_episode_a_task_both_tests_are_the_same(gained: int, lost: int) -> None:
    pairs = {f"g{n}": [(0.0, 1.0)] for n in range(gained)} | {f"l{n}": [(1.0, 0.0)] for n in range(lost)}
    assert math.isclose(permuted({**pairs, "same": [(1.0, 1.0)]}).p, mcnemar(gained, lost))


def test_no_pairs_are_no_test() -> None:
    with pytest.raises(ActionError, match="in common"):
        permuted({"a": []})
    with pytest.raises(ActionError, match="a score"):
        permuted({"a": [(math.nan, 1.0)]})
