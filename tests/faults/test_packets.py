"""VNC between two network namespaces: what the kernel's TCP makes of lost packets. F8 and F9 of the list of faults."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from faults.helpers import need
from faults.over_packets import TEXT
from faults.scale import PATIENCE

SCENARIOS = Path(__file__).with_name("over_packets.py")
# What is promised.
DETECTED = 5.0
# TCP's own limit, and not that of a server that says nothing for 10 s.
UNHEARD = "the server's machine does not answer any more"


def played(scenario: str) -> dict[str, Any]:
    """What came of a scenario, in a process that may make network namespaces."""
    alone = [need("unshare", "util-linux"), "--net", *([] if os.getuid() == 0 else ["--user", "--map-root-user"])]
    ran = subprocess.run(
        [*alone, sys.executable, SCENARIOS, scenario],
        env={**os.environ, "PYTHONPATH": str(SCENARIOS.parents[1])},
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert ran.returncode == 0, ran.stderr
    return dict(json.loads(ran.stdout))


def test_f8_a_half_open_line_is_noticed_by_keep_alive() -> None:
    told = played("dropped while idle")
    assert told.pop("took") <= DETECTED * PATIENCE
    assert told.pop("packets")[1] > 0
    assert told == {
        "why": UNHEARD,
        "told": True,
        "newer": True,
        "held": [],
        "released": True,
        "settled": True,
        "same": True,
    }


def test_f10_what_a_server_may_still_hold_is_told() -> None:
    """F10: where the server cannot be told that the old connection is gone."""
    told = played("dropped for good")
    assert "until the server notices, a button may stay pressed and the pointer be ignored" in told["told"]
    assert not told["released"]


def test_f8_a_half_open_line_is_noticed_by_what_is_not_acknowledged() -> None:
    told = played("dropped while sending")
    assert told["took"] <= DETECTED * PATIENCE
    assert told["why"].startswith(UNHEARD)
    assert told["cause"] == "network"


@pytest.mark.soak
def test_f9_a_late_lossy_and_narrow_line() -> None:
    """200 ms give or take 100, 2 % of the packets lost, 1 Mbit/s, each way."""
    told = played("late, lossy and narrow")
    # Two frames, and what may be on the way of a third; the rest is what the driver needs at all.
    assert told.pop("memory") <= 3 * 640 * 480 * 4 + (32 << 20)
    packets, lost, _ = told.pop("packets")
    assert packets > 100
    assert lost > 0
    assert told == {"focus": True, "settled": True, "right": True, "typed": f"{TEXT}\n", "same at the end": True}
