"""When a container counts as out of processor time: on a file and a clock that the test writes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from deskhand.launchers.docker.throttle import Throttle

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Container:
    """One that is given a tenth of a processor, and the time by which it is asked."""

    def __init__(self, file: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
        self.file, self.form = file, form
        self.now, self.used = 1000.0, 5.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        self.write()
        self.throttle = Throttle(file, 0.1)

    def write(self) -> None:
        self.file.write_text(self.form.format(ns=round(self.used * 1e9), us=round(self.used * 1e6)))

    def passes(self, seconds: float, used: float) -> Container:
        """For so long it computes for so long."""
        self.now += seconds
        self.used += used
        self.write()
        return self

    def acts(self) -> None:
        """An action begins."""
        self.throttle.note()

    @property
    def is_out(self) -> bool:
        return self.throttle.is_out_of_time()


@pytest.fixture(params=["{ns}\n", "usage_usec {us}\nuser_usec 1\n"], ids=["cgroup", "cgroup2"])
def container(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Container]:
    made = Container(tmp_path / "usage", monkeypatch, request.param)
    yield made
    made.throttle.close()


def test_who_has_used_what_a_period_gives_is_out_of_time(container: Container) -> None:
    container.passes(3, 0.01).acts()
    assert not container.passes(0.02, 0.001).is_out
    # Most of its 10 ms in 50 ms, however little it did in the seconds before.
    assert container.passes(0.03, 0.007).is_out
    assert container.passes(0.03, 0).is_out
    assert container.passes(0.05, 0.01).is_out
    # A period of rest, and it has ended its work.
    assert not container.passes(0.11, 0.001).is_out


def test_who_rests_is_not(container: Container) -> None:
    container.passes(3, 0.001).acts()
    for _ in range(10):
        assert not container.passes(0.025, 0.0002).is_out


def test_who_always_computes_is_not_waited_for(container: Container) -> None:
    for _ in range(20):
        container.passes(0.025, 0.0025)
        container.is_out  # noqa: B018 # the wait of the action before
    container.acts()
    assert not container.passes(0.05, 0.005).is_out
    # What has been at rest for a while is told from that again.
    container.passes(1, 0).acts()
    assert container.passes(0.05, 0.008).is_out


def test_a_container_that_has_ended_is_not(container: Container) -> None:
    container.file.write_text("")
    assert not container.is_out
