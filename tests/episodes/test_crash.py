"""F28: the driver is killed at any moment, again and again: nothing is lost, nothing counted twice, nothing stays behind."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deskhand.episodes.ledger import open_ledger
from deskhand.episodes.ledger.ledger import Key, State
from deskhand.episodes.record.reader import open_run
from episodes.scale import CRASH_EPISODES, CRASH_KILLS, CRASH_REAL, CRASH_SLOTS, TIMEOUT
from faults.helpers import MARK, marked, until

if TYPE_CHECKING:
    from deskhand.episodes.ledger.ledger import Ledger

TESTS = Path(__file__).parents[1]
_ORPHANS_GONE = 10.0


class Driver:
    """A process that plays the run; every process that it starts has its mark."""

    def __init__(self, directory: Path) -> None:
        self.mark = uuid.uuid4().hex
        self.process = subprocess.Popen(
            [sys.executable, "-m", "episodes.crash_driver", str(directory), str(CRASH_SLOTS)],
            env={**os.environ, "PYTHONPATH": str(TESTS), MARK: self.mark},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline().split()
        assert line[:2] == ["given", "back"], f"it ended with {self.process.wait(60)}"
        self.given_back = int(line[2])

    def kill(self) -> None:
        """As the kernel does when memory is short."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self._close()

    def wait(self) -> None:
        """Let it come to its end."""
        assert self.process.wait(TIMEOUT) == 0
        self._close()

    def _close(self) -> None:
        assert self.process.stdout is not None
        self.process.stdout.close()


def leased(ledger: Ledger) -> set[Key]:
    return {row.key for row in ledger.rows() if row.state is State.LEASED}


@pytest.mark.soak
@pytest.mark.timeout(TIMEOUT)
def test_a_driver_that_is_killed_again_and_again(tmp_path: Path) -> None:
    dice = random.Random(28)
    numbers = range(CRASH_EPISODES)
    keys = [Key("press" if number % CRASH_REAL else "number", "", number, 0) for number in numbers]
    ledger = open_ledger(tmp_path / "episodes.sqlite")
    ledger.begin({"version": 1})
    assert ledger.add(keys) == CRASH_EPISODES
    # Where the run is killed: after so many results, and a moment more.
    places = sorted(dice.sample(range(1, CRASH_EPISODES - CRASH_SLOTS), CRASH_KILLS))
    in_flight: list[set[Key]] = []
    ends: list[float] = []
    began = time.monotonic()
    driver = Driver(tmp_path)
    for place in places:
        until(lambda place=place: ledger.counts()[State.DONE] >= place, TIMEOUT, f"{place} results")  # type: ignore[misc]
        time.sleep(dice.uniform(0.0, 0.3))
        driver.kill()
        killed = time.monotonic()
        in_flight.append(leased(ledger))
        dead, driver = driver, Driver(tmp_path)
        assert driver.given_back == len(in_flight[-1])
        until(lambda mark=dead.mark: not marked(mark), _ORPHANS_GONE, "the processes of the one that was killed")  # type: ignore[misc]
        ends.append(time.monotonic() - killed)
    driver.wait()
    assert not marked(driver.mark)
    took = time.monotonic() - began

    rows = ledger.rows()
    assert {row.key for row in rows} == set(keys)
    assert all(row.state is State.DONE for row in rows)
    assert all(row.result is not None and row.result["valid"] and row.result["success"] for row in rows)
    # Once for each time that it was under way when the driver was killed, and never for another reason.
    again = {row.key: sum(row.key in some for some in in_flight) for row in rows}
    assert {row.key: row.attempt - 1 for row in rows} == again
    assert {row.key: row.failures.get("desktop_lost", 0) for row in rows} == again
    for row in rows:
        assert row.result is not None
        attempt = tmp_path / "ep" / str(row.key) / f"attempt-{row.attempt}"
        assert row.result["attempt"] == row.attempt
        assert json.loads((attempt / "result.json").read_text()) == row.result
    _assert_readable(tmp_path, len(keys))
    print(
        f"{len(keys)} episodes ({sum(key.task == 'number' for key in keys)} of them on real desktops), {len(in_flight)} kills, "
        f"{sum(map(len, in_flight))} attempts under way then and made again, the last process of a killed driver gone after "
        f"{max(ends):.1f} s, {took:.0f} s in all"
    )


def _assert_readable(directory: Path, episodes: int) -> None:
    """What the killed ones have left is read without an error, and counted once."""
    (directory / "manifest.json").write_text(json.dumps({"version": 1, "tasks": {}, "seeds": 1, "repeats": 1}))
    run = open_run(directory)
    assert len(list(run.results())) == episodes
