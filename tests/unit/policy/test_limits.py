"""How much is allowed: rates, actions in one call, and that limits come before questions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand import (
    ActionError,
    ClassPolicy,
    Desktop,
    Guard,
    KeyHold,
    KeyPress,
    Move,
    PolicyDenied,
    PressKeys,
    RateLimits,
    Secret,
    TakeScreenshot,
    Type,
)
from deskhand.policy.limits import Buckets
from unit.policy.judged import Clock

if TYPE_CHECKING:
    from deskhand.backends.memory import MemoryBackend
    from deskhand.policy.rules import JudgedAction


def test_of_two_threads_the_one_that_took_the_time_first_may_come_second() -> None:
    """What passed between the two is not given out twice."""
    buckets = Buckets(RateLimits(actions=10, keys=None, screenshots=None), 100.0)
    for _ in range(10):
        assert buckets.take([Move((1, 1))], 100.0) is None
    assert buckets.take([Move((1, 1))], 100.1) is None
    # 99.0 is nine tenths of a second before it, and no reason for nine more.
    assert buckets.take([Move((1, 1))], 99.0) is not None
    assert buckets.take([Move((1, 1))], 100.1) is not None
    assert buckets.take([Move((1, 1))], 100.2001) is None


def test_rates(desktop: Desktop) -> None:
    clock = Clock()
    judged = desktop.also(Guard(clock=clock, policy=ClassPolicy(allow=["observe", "input", "shell"])))
    for _ in range(20):
        judged.perform(Move((1, 1)))
    with pytest.raises(PolicyDenied, match=r"more than 20 actions a second; try again in 0\.05 s") as caught:
        judged.machine.run("ls")
    assert caught.value.retry_after == pytest.approx(0.05)
    # Looking has its own.
    for _ in range(10):
        judged.screenshot()
    with pytest.raises(PolicyDenied, match="more than 10 screenshots a second"):
        judged.perform(TakeScreenshot())
    clock.now += 0.051
    judged.perform(Move((1, 1)))
    clock.now += 10
    # A long text is begun when all is there, and paid for later.
    judged.perform(Type("x" * 500))
    with pytest.raises(PolicyDenied, match="more than 200 keys a second") as caught:
        judged.perform(KeyPress(["a"]))
    assert caught.value.retry_after == pytest.approx(301 / 200)
    clock.now += caught.value.retry_after or 0
    judged.perform(KeyPress(["a"]))


def test_most_actions(desktop: Desktop, backend: MemoryBackend) -> None:
    judged = desktop.also(Guard(limits=RateLimits(actions=None, keys=None, screenshots=None, max_actions=3)))
    judged.perform(Move((1, 1)), Move((2, 2)))
    for _ in range(100):
        judged.screenshot()
    with pytest.raises(PolicyDenied, match="only 1 of this episode") as caught:
        judged.perform(Move((1, 1)), Move((2, 2)))
    assert caught.value.retry_after is None
    judged.perform(Move((3, 3)))
    with pytest.raises(PolicyDenied, match="only 0 of this episode"):
        judged.perform(Move((1, 1)))
    assert len(backend.events) == 3


def test_limits_come_before_questions(desktop: Desktop) -> None:
    """A model that tries again and again must not flood a person."""
    asked: list[JudgedAction] = []
    judged = desktop.also(Guard(ask=lambda action, _: asked.append(action) is not None, clock=Clock()))
    for _ in range(100):
        with pytest.raises(PolicyDenied):
            judged.machine.run("ls")
    assert len(asked) == 20


@given(
    st.lists(st.tuples(st.floats(0, 3), st.integers(1, 60)), max_size=60),
    st.floats(0.5, 50),
)
def test_a_bucket_gives_no_more_than_its_rate(steps: list[tuple[float, int]], rate: float) -> None:
    """Over any time: one full bucket and what filled up since, and one request of overdraft."""
    buckets = Buckets(RateLimits(actions=None, keys=rate, screenshots=None), 0.0)
    now, taken, last = 0.0, 0, 0
    for wait, keys in steps:
        now += wait
        short = buckets.take([Type("x" * keys)], now)
        if short is None:
            taken += keys
            last = max(last, keys)
        else:
            assert short[1] is not None
            assert buckets.take([Type("x" * keys)], now + short[1] + 1e-6) is None
            now += short[1] + 1e-6
            taken += keys
            last = max(last, keys)
        assert taken <= max(1.0, rate) + now * rate + last + 1e-3


@pytest.mark.parametrize("name", ["actions", "keys", "screenshots", "max_actions"])
def test_no_limit_is_none_not_zero(name: str) -> None:
    for wrong in (0, -1, float("nan")):
        with pytest.raises(ActionError, match=name):
            RateLimits(**{name: wrong})  # type: ignore[arg-type] # a wrong value


def test_what_costs_keys() -> None:
    buckets = Buckets(RateLimits(actions=None, keys=10, screenshots=None), 0.0)
    assert buckets.take([KeyPress(["ctrl", "a"], repeat=3), KeyHold(["a"], 1), PressKeys(["a", "b"])], 0.0) is None
    assert buckets.take([Type("a" * 50, paste=True)], 0.0) is None
    assert buckets.take([Type(Secret("ab"))], 0.0) == ("more than 10 keys a second", pytest.approx(0.1))
