"""The control by which tests tell a busy machine from a slow product: what it excuses, and what it does not."""

from __future__ import annotations

import multiprocessing
import os
import time
from typing import TYPE_CHECKING

import pytest

from faults.control import Control, Slowness
from faults.helpers import beside_control, hold, within

if TYPE_CHECKING:
    from collections.abc import Iterator

WINDOW = 0.5


def spin() -> None:
    while True:
        pass


@pytest.fixture
def crowd() -> Iterator[None]:
    """Four busy loops for each processor."""
    context = multiprocessing.get_context("spawn")
    loops = [context.Process(target=spin, daemon=True) for _ in range(4 * len(os.sched_getaffinity(0)))]
    for loop in loops:
        loop.start()
    yield
    for loop in loops:
        loop.kill()
        loop.join()


def seen(seconds: float) -> Slowness:
    with beside_control() as found:
        time.sleep(seconds)
    return found[0]


@pytest.mark.usefixtures("crowd")
def test_a_crowd_is_seen() -> None:
    """Who computes all the time has a ninth of a processor here; who sleeps in between has more of what he asks for."""
    deadline = time.monotonic() + 60
    while seen(WINDOW).share > 0.7:
        assert time.monotonic() < deadline, "eight busy loops, and the control noticed nothing"


def test_waiting_is_not_excused() -> None:
    """Not by a machine that is busy either: it stretches work, and no wait."""
    with pytest.raises(AssertionError, match=r"a nap took 5\.00 s, more than 0\.01 s"):
        hold(0.01, 5.0, Slowness(0.25, 0.1), "a nap")


def test_a_promise_that_is_kept_is_told_by_nothing() -> None:
    with within(30, "nothing"):
        pass


def test_what_is_allowed_grows_with_what_was_seen() -> None:
    hold(1.0, 1.0, Slowness(1.0, 0.0), "it")
    hold(1.0, 2.1, Slowness(0.5, 0.01), "it")
    with pytest.raises(
        AssertionError, match=r"it took 2\.30 s, more than 1 s \(meanwhile a process got 50% of a proc.* 0\.01 s"
    ):
        hold(1.0, 2.3, Slowness(0.5, 0.01), "it")


def test_an_error_in_the_block_is_the_error() -> None:
    with pytest.raises(KeyError), within(0.0, "failing"):
        raise KeyError
    # It goes on working for the next.
    assert 0 < seen(WINDOW).share <= 1


def test_several_at_once() -> None:
    with beside_control() as outer:
        time.sleep(0.1)
        with beside_control() as inner:
            time.sleep(0.1)
        time.sleep(0.1)
    assert 0 < outer[0].share <= 1
    assert 0 < inner[0].share <= 1
    assert inner[0].latest <= outer[0].latest


def test_it_ends_with_whoever_started_it() -> None:
    made = Control()
    made.begin()
    assert made._process.stdin is not None
    made._process.stdin.close()
    assert made._process.wait(60) == 0
    assert made._process.stdout is not None
    made._process.stdout.close()
