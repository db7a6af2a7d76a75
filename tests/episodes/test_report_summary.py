"""What is counted as what, in a report's numbers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand.episodes.outcome import RULES, Cause
from deskhand.episodes.report.summary import PHASES, compare, split, summarize


def result(task: str = "a", seed: int = 0, score: float | None = 1.0, **changes: Any) -> dict[str, Any]:
    times = {"reset": 1.0, "setup": 2.0, "agent": 10.0, "input": 1.0, "settle": 2.0, "observe": 1.0, "evaluate": 0.5}
    return {
        "task": task,
        "variant": "",
        "seed": seed,
        "repeat": 0,
        "attempt": 1,
        "agent": "oracle",
        "level": 1,
        "tags": ["text"],
        "valid": score is not None,
        "success": score == 1.0,
        "score": score,
        "cause": None if score is not None else "desktop_lost",
        "steps": 4,
        "times": {**times, "overhead": 0.1, "total": 13.6},
        "tokens": {"input": 10, "output": 2},
        "cost": 0.25,
        "started": 1000.0 + seed,
        "ended": 1013.6 + seed,
        "failures": {},
        **changes,
    }


def test_an_invalid_episode_is_a_zero_in_the_strict_score_and_missing_in_the_other() -> None:
    found = summarize([result("a", 0, 1.0), result("a", 1, None), result("b", 0, 0.5), result("b", 1, 1.0)])
    assert found.strict.value == 2.5 / 4
    assert found.valid_only is not None
    assert found.valid_only.value == 2.5 / 3
    assert (found.done, found.valid, found.successes) == (4, 3, 2)
    assert found.invalid == {"desktop_lost": 1}
    assert found.invalid_rate is not None
    assert found.invalid_rate.value == 1 / 4


def test_what_the_agent_ran_into_counts_and_is_told() -> None:
    found = summarize([result("a", 0, 0.0, cause="agent_budget"), result("a", 1, 1.0)])
    assert found.noted == {"agent_budget": 1}
    assert found.invalid == {}
    assert found.strict.value == 0.5


def test_what_attempts_used_that_do_not_count_is_told_apart() -> None:
    results = [result("a", 0, 1.0), result("a", 1, 1.0)]
    found = summarize(results, beside={"input": 7, "output": 1, "cost": 0.5})
    assert (found.tokens, found.cost) == ({"input": 20, "output": 4}, 0.5)
    assert found.beside == {"input": 7, "output": 1, "cost": 0.5}
    assert summarize(results).beside == {"input": 0, "output": 0, "cost": 0.0}


def test_a_cancelled_episode_says_nothing() -> None:
    found = summarize([result("a", 0, 1.0), result("a", 1, None, cause="cancelled")], planned=2)
    assert (found.planned, found.done, found.strict.value) == (2, 1, 1.0)


def test_tries_are_the_valid_episodes_of_a_task() -> None:
    found = summarize(
        [result("a", n, float(n < 2)) for n in range(4)] + [result("b", 0), result("b", 1), result("b", 2, None)]
    )
    assert found.any_of[1] == pytest.approx((0.5 + 1) / 2)
    assert found.any_of[2] == pytest.approx((5 / 6 + 1) / 2)
    assert found.all_of[2] == pytest.approx((1 / 6 + 1) / 2)
    # Only one task has three.
    assert found.any_of[3] == pytest.approx(1.0)
    assert found.all_of[3] == 0.0
    assert set(found.any_of) == {1, 2, 3, 4}


def test_the_agents_own_time_is_what_is_left_of_its_part() -> None:
    assert split(result()) == {
        "reset": 1.0,
        "setup": 2.0,
        "think": 6.0,
        "input": 1.0,
        "settle": 2.0,
        "observe": 1.0,
        "evaluate": 0.5,
        "overhead": 0.1,
    }
    assert sum(split(result()).values()) == pytest.approx(13.6)


def test_fixed_sleeps_are_computed_from_the_steps_that_were_done() -> None:
    found = summarize([result("a", n) for n in range(3)])
    assert found.sleeps.seconds == 3 * (60 + 20) + 12 * 2
    assert found.sleeps.waited == 3 * (1 + 2 + 2)


def test_before_no_evaluation_nobody_sleeps() -> None:
    found = summarize([result(steps=0), result(seed=1, score=None, steps=0)])
    assert found.sleeps.seconds == 60 + 20 + 60


def test_sums() -> None:
    found = summarize([result("a", 0, failures={"desktop_lost": 2}), result("b", 5, failures={"setup_failed": 1})])
    assert found.retries == {"desktop_lost": 2, "setup_failed": 1}
    assert found.tokens == {"input": 20, "output": 4}
    assert (found.cost, found.steps, found.wall) == (0.5, 8, pytest.approx(18.6))
    assert [task.name for task in found.tasks] == ["a", "b"]


def test_two_runs_are_compared_where_both_are_valid() -> None:
    before = [result("a", 0, 0.0), result("a", 1, None), result("b", 0, 1.0)]
    after = [result("a", 0, 1.0), result("a", 1, 1.0), result("c", 0, 1.0)]
    difference, both = compare(before, after)
    assert difference is not None
    assert difference.value == 1.0
    assert [(a["score"], b["score"]) for a, b in both] == [(0.0, 1.0), (None, 1.0)]
    assert compare(before, [result("x")])[0] is None


def test_no_episode_is_a_run_too() -> None:
    found = summarize([], planned=3)
    assert (found.done, found.planned, found.valid_only, found.any_of) == (0, 3, None, {})


RESULTS = st.lists(
    st.builds(
        lambda task, seed, score, cause: result(task, seed, score if RULES[cause].graded else None, cause=cause.value),
        st.sampled_from("abc"),
        st.integers(0, 3),
        st.sampled_from([0.0, 0.25, 1.0]),
        st.sampled_from([cause for cause in Cause if cause is not Cause.CANCELLED]),
    ),
    max_size=20,
    unique_by=lambda each: (each["task"], each["seed"]),
)


@given(RESULTS)
def test_every_episode_is_counted_once(results: list[dict[str, Any]]) -> None:
    found = summarize(results)
    assert sum(found.invalid.values()) + found.valid == found.done == len(results)
    assert sum(task.tries for task in found.tasks) == len(results)
    assert found.strict.low <= found.strict.value <= found.strict.high
    assert found.valid_only is None or found.strict.value <= found.valid_only.value
    assert set(found.phases) == set(PHASES)
    for k in found.any_of:
        assert 0 <= found.all_of[k] <= found.any_of[k] <= 1
