"""F25: no wait looks at the wall clock, so a step of it changes nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conftest import need
from faults.helpers import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

# Dates that people are shown, and that nothing waits for or is compared with.
ALLOWED = {
    "bench/element_tokens.py": {"datetime"},
    "bench/elements.py": {"datetime"},
    "python/deskhand/desktop/control_state.py": {"time.time", "datetime"},
    "python/deskhand/policy/audit.py": {"time.time", "datetime"},
    "python/deskhand/policy/questions.py": {"time.time"},
    "bench/sections.py": {"datetime"},
    "bench/watching.py": {"time.time"},
    "bench/watching_peers.py": {"datetime", "time.time"},
    "python/deskhand/cli/lifecycle.py": {"time.time"},
    # No time of somebody else's run may be after now.
    "python/deskhand/cli/reporting.py": {"time.time"},
    "python/deskhand/episodes/play/attempt.py": {"time.time"},
    "python/deskhand/episodes/record/export.py": {"datetime"},
    "python/deskhand/episodes/tasks/osworld/steps.py": {"datetime"},
    "python/deskhand/watch/operation_list.py": {"time.time"},
    "python/deskhand/episodes/record/recorder.py": {"time.time"},
    "python/deskhand/episodes/run/run.py": {"time.time"},
    "python/deskhand/launchers/docker/launch.py": {"time.time"},
    "python/deskhand/launchers/local/launch.py": {"time.time"},
    # PostgreSQL has no other clock that all its clients share.
    "python/deskhand/episodes/ledger/postgres.py": {"EPOCH FROM"},
}
WALL = re.compile(
    r"\btime\.time\b|from time import|\b(?:time_ns|ctime|gmtime|localtime|gettimeofday)\b|datetime|SystemTime"
    r"|ClockId::Realtime|CLOCK_REALTIME|CURRENT_TIMESTAMP|unixepoch|julianday|EPOCH FROM|'now'"
)
SOURCES = [*ROOT.glob("python/deskhand/**/*.py"), *ROOT.glob("bench/*.py"), *ROOT.glob("rust/*/src/**/*.rs")]
HOUR = 3600


def wall_clocks(text: str) -> set[str]:
    """The words by which a source reads the wall clock."""
    return set(WALL.findall(text))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_monotonic_clocks(path: Path) -> None:
    """No source reads the wall clock, but for dates that people are shown."""
    assert wall_clocks(path.read_text()) == ALLOWED.get(str(path.relative_to(ROOT)), set())


@pytest.mark.parametrize(
    "text",
    [
        "now = time.time()",
        "def wait(clock: Callable[[], float] = time.time) -> None:",
        "begun = time.time_ns()",
        "from time import time",
        "datetime.now(UTC)",
        "let begun = SystemTime::now();",
        "INSERT INTO leases VALUES (unixepoch())",
        "free text DEFAULT CURRENT_TIMESTAMP",
        "UPDATE leases SET free = strftime('%s', 'now')",
    ],
)
def test_every_way_to_the_wall_clock_is_found(text: str) -> None:
    assert wall_clocks(text)


@pytest.mark.parametrize("text", ["time.monotonic()", "= time.monotonic", "Instant::now()", "ClockId::Monotonic"])
def test_a_monotonic_clock_is_not_taken_for_one(text: str) -> None:
    assert not wall_clocks(text)


JUMP = """
import os, sys, time

AHEAD = time.time() - time.monotonic()

def jump(seconds):
    with open(os.environ["STEPPED_CLOCK"], "r+b") as file:
        file.write(seconds.to_bytes(8, sys.byteorder, signed=True))
    # Without this the test would show nothing where the clock cannot be stepped.
    assert abs(time.time() - time.monotonic() - AHEAD - seconds) < 60, "the clock was not stepped"
"""


@pytest.fixture(scope="module")
def stepped(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Runs a script, with what it starts, by a wall clock that the script's `jump` steps. Returns what it printed."""
    compiler = need("cc", "gcc")
    folder = tmp_path_factory.mktemp("clock")
    library, step = folder / "stepped.so", folder / "step"
    source = Path(__file__).with_name("stepped_clock.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library, source], check=True)

    def run(script: str, *arguments: object) -> str:
        step.write_bytes(bytes(8))
        env = {**os.environ, "LD_PRELOAD": str(library), "STEPPED_CLOCK": str(step)}
        argv = [sys.executable, "-c", JUMP + script, *map(str, arguments)]
        ran = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=300, check=False)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    return run


LEASES = """
from deskhand.episodes.ledger.ledger import Key
from deskhand.episodes.ledger import open_ledger

where, hour = sys.argv[1], int(sys.argv[2])
mine, other = open_ledger(where), open_ledger(where)
mine.add(Key("calc-sum", "", seed, 0) for seed in range(3))
(held,), (forgotten,), (failed,) = mine.lease("w", 600), mine.lease("dead", 0.3), mine.lease("w", 600)
assert mine.retry(failed, "setup_failed", delay=0.3)
jump(hour)
waiting = {forgotten.key, failed.key}
heirs = {}
# One that was open already, and one that is opened now. What nobody holds comes free without the clock jumping back.
ledgers = [other, open_ledger(where)]
while waiting - set(heirs):
    for ledger in ledgers:
        heirs |= {lease.key: lease for lease in ledger.lease("heir", 600, most=3)}
    assert held.key not in heirs, "a lease was taken from a worker that lives"
    time.sleep(0.02)
assert mine.renew(held, 600)
# And what was renewed or leased since the jump is held when the clock is set right.
jump(0)
assert other.lease("thief", 600, most=3) == []
assert mine.finish(held, {}) and all(other.finish(lease, {}) for lease in heirs.values())
print("done")
"""


@pytest.mark.timeout(120)
@pytest.mark.parametrize("jump", [HOUR, -HOUR], ids=["forward", "back"])
def test_leases_outlast_a_jump_of_the_clock(tmp_path: Path, stepped: Callable[..., str], jump: int) -> None:
    """No lease is taken from a worker that lives, and none stays with one that is dead."""
    assert stepped(LEASES, tmp_path / "ledger.sqlite", jump) == "done\n"


PERFORM = """
import threading
import deskhand
from deskhand import KeyPress, Settle, Wait

hour = int(sys.argv[1])
with deskhand.launch(size=(600, 400)) as desktop:
    desktop.start(["xterm", "-e", "cat"])
    for offset in (hour, 0):
        # In the wait between an action and its frame.
        jumping = threading.Timer(0.1, jump, [offset])
        jumping.start()
        begun = time.monotonic()
        seen = desktop.perform(KeyPress(("a",)), Wait(0.2), KeyPress(("b",)), settle=Settle(timeout=60))
        took = time.monotonic() - begun
        jumping.join()
        assert seen.changed and seen.settled, seen.reason
        elapsed = seen.elapsed
        assert 0.2 <= elapsed.input and min(elapsed.reaction, elapsed.settle) >= 0 and elapsed.total <= took, elapsed
    assert desktop.health().ok
print("done")
"""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("jump", [HOUR, -HOUR], ids=["forward", "back"])
def test_an_action_outlasts_a_jump_of_the_clock(stepped: Callable[..., str], jump: int) -> None:
    """A wait by the wall clock would end at once, or never within its limit of 60 s."""
    assert stepped(PERFORM, jump) == "done\n"
