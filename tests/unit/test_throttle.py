"""When a container counts as out of processor time: with counts and a clock that the test sets, and on files that it writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from deskhand.launchers.docker.throttle import Counts, GroupFiles, Throttle

if TYPE_CHECKING:
    from pathlib import Path


class Container:
    """One that is given a tenth of a processor, 10 ms in every 100, and the time by which it is asked."""

    def __init__(self) -> None:
        self.now, self.used, self.stops = 1000.0, 5.0, 7
        self.is_there = True
        self.generation = 0
        self.throttle = Throttle(self, 0.1, lambda: self.now)

    def read(self) -> Counts:
        if not self.is_there:
            raise OSError
        return Counts(self.used, self.stops)

    def close(self) -> None:
        self.is_there = False

    def passes(self, seconds: float, used: float, stops: int = 0) -> Container:
        """For so long it computes for so long, and the kernel counts so many periods in which it was stopped."""
        self.now += seconds
        self.used += used
        self.stops += stops
        return self

    def acts(self) -> None:
        """An action begins."""
        self.throttle.note()

    @property
    def is_out(self) -> bool:
        return self.throttle.is_out_of_time(self.generation)


@pytest.fixture
def container() -> Container:
    return Container()


def test_who_has_used_what_a_period_gives_is_out_of_time(container: Container) -> None:
    container.passes(3, 0.01).acts()
    assert not container.passes(0.02, 0.001).is_out
    # Most of its 10 ms in 50 ms, however little it did in the seconds before.
    assert container.passes(0.03, 0.007).is_out
    assert container.passes(0.03, 0).is_out
    assert container.passes(0.05, 0.01).is_out
    # A period of rest, and it has ended its work.
    assert not container.passes(0.11, 0.001).is_out


def test_use_since_the_action_may_all_be_new(container: Container) -> None:
    container.passes(3, 0.001).acts()
    # The first look comes late: 6 ms may have been used in the last 10 of these 300.
    assert container.passes(0.3, 0.006).is_out
    assert container.passes(0.09, 0).is_out
    assert not container.passes(0.025, 0).is_out


def test_who_rests_is_not(container: Container) -> None:
    container.passes(3, 0.001).acts()
    for _ in range(10):
        assert not container.passes(0.025, 0.0002).is_out


def test_who_pays_back_what_it_used_too_much_is_out_of_time(container: Container) -> None:
    container.passes(3, 0.001).acts()
    assert container.passes(0.05, 0.03).is_out
    # It used three periods' time in one, and gets nothing until they have passed. The kernel counts each as it ends.
    for _ in range(2):
        assert container.passes(0.05, 0, stops=1).is_out
        assert container.passes(0.05, 0).is_out
    assert container.passes(0.05, 0, stops=1).is_out
    # That was the last: for more than a period, nothing has held it back.
    assert container.passes(0.1, 0).is_out
    assert not container.passes(0.03, 0).is_out


def test_a_stop_before_the_action_counts_from_then(container: Container) -> None:
    container.passes(3, 0.01, stops=1).acts()
    assert container.passes(0.05, 0).is_out
    assert not container.passes(0.08, 0).is_out


def test_who_is_stopped_by_what_it_does_is_at_work(container: Container) -> None:
    container.passes(3, 0.001).acts()
    assert not container.passes(0.03, 0).is_out
    for _ in range(40):
        assert container.passes(0.1, 0.01, stops=1).is_out


def test_who_is_always_stopped_is_waited_for_until_the_screen_is_still(container: Container) -> None:
    """A compilation in the background, say, which no action waits for."""
    container.acts()
    for _ in range(30):
        container.passes(0.1, 0.01, stops=1)
    container.acts()
    for _ in range(3):
        for _ in range(9):
            assert container.passes(0.1, 0.01, stops=1).is_out
        container.generation += 1
    assert container.passes(0.1, 0.01, stops=1).is_out
    for _ in range(9):
        assert container.passes(0.1, 0.01, stops=1).is_out
    assert not container.passes(0.11, 0.01, stops=1).is_out
    # It has ended, and what is stopped now is new.
    container.passes(1, 0).acts()
    for _ in range(40):
        assert container.passes(0.1, 0.01, stops=1).is_out


def test_who_always_computes_and_is_not_stopped_is_not_waited_for(container: Container) -> None:
    container.passes(1, 0.09).acts()
    for _ in range(20):
        assert not container.passes(0.025, 0.0023).is_out
    # A stop is one there too...
    assert container.passes(0.025, 0.0023, stops=1).is_out
    # ... and after one, and after a rest, the use of time tells something again.
    container.passes(0.1, 0.009).acts()
    assert container.passes(0.2, 0.018).is_out
    container.passes(1, 0).acts()
    assert container.passes(0.05, 0.008).is_out


def test_looks_without_end_keep_few_samples(container: Container) -> None:
    for _ in range(10_000):
        assert not container.passes(0.0001, 0.000001).is_out
    assert len(container.throttle._samples) < 70


def test_looks_close_together_see_the_same(container: Container) -> None:
    container.passes(3, 0.001).acts()
    for _ in range(40):
        assert not container.passes(0.001, 0).is_out
    assert container.passes(0.001, 0.006).is_out
    for _ in range(90):
        assert container.passes(0.001, 0).is_out
    assert not container.passes(0.015, 0).is_out


def test_several_looks_at_one_moment(container: Container) -> None:
    for _ in range(3):
        container.acts()
        assert not container.is_out
    assert not container.passes(0.1, 0).is_out


def test_a_container_that_has_ended_is_not(container: Container) -> None:
    container.passes(1, 0.1)
    container.throttle.close()
    container.acts()
    assert not container.is_out


STOPS = "nr_periods 31\nnr_throttled 12\n{}\n"


def test_the_files_of_both_versions(tmp_path: Path) -> None:
    usage, stat, both = tmp_path / "cpuacct.usage", tmp_path / "v1", tmp_path / "v2"
    usage.write_text("5250000000\n")
    stat.write_text(STOPS.format("throttled_time 7000"))
    both.write_text("usage_usec 5250000\nuser_usec 1\nsystem_usec 2\n" + STOPS.format("throttled_usec 7"))
    for files, stops in (((usage, stat), 12), ((usage,), 0), ((both,), 12)):
        group = GroupFiles(*files)
        assert group.read() == Counts(5.25, stops)
        group.close()


def test_files_of_a_group_that_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "cpu.stat"
    path.write_text("usage_usec 5250000\nuser_usec 1\n")
    group = GroupFiles(path)
    path.write_text("")
    with pytest.raises(OSError, match="gone"):
        group.read()
    group.close()
    with pytest.raises(OSError, match="gone"):
        GroupFiles(path)
    with pytest.raises(FileNotFoundError):
        GroupFiles(path, tmp_path / "none")
