"""Pictures of a real screen: what a look costs, in counts that depend on no machine, and what happens while nobody looks."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from deskhand import KeyPress, Type

if TYPE_CHECKING:
    import deskhand

STRIP = 32
STRIPS = -(-700 // STRIP)
PATIENCE = 60.0


@pytest.fixture
def page(desktop: deskhand.Desktop) -> deskhand.Desktop:
    """A desktop with a terminal full of text, and no blinking caret."""
    desktop.start(["xterm", "-geometry", "100x40+0+0", "-e", "sh", "-c", "seq -s ' ' 1 900; exec cat"])
    desktop.perform(KeyPress(("Return",)))
    return desktop


def spent(desktop: deskhand.Desktop, before: dict[str, int]) -> dict[str, int]:
    return {name: count - before[name] for name, count in desktop._core.backend.screen.stats.items()}


def test_a_look_at_an_unchanged_screen_fetches_and_deflates_nothing(page: deskhand.Desktop) -> None:
    first = page.screenshot()
    before = page._core.backend.screen.stats
    assert page.screenshot().png is first.png, "the very same object: nothing was copied"
    assert not any(spent(page, before).values())


def test_a_line_costs_its_strips(page: deskhand.Desktop) -> None:
    page.screenshot()
    before = page._core.backend.screen.stats
    seen = page.perform(Type("one line"))
    cost = spent(page, before)
    top, bottom = min(rect.y for rect in seen.rects), max(rect.bottom for rect in seen.rects)
    assert cost["strips_deflated"] == (bottom - 1) // STRIP - top // STRIP + 1 <= 2
    # Every damaged region is fetched once for each time that it was drawn; nothing else is.
    assert 0 < cost["bytes_compared"] < 40 * page.size.width * 4
    assert cost["patches"] >= 1


def test_strips_that_stay_get_smaller_while_nobody_calls(page: deskhand.Desktop) -> None:
    screen = page._core.backend.screen
    first = page.screenshot()
    # What was looked at once only may have changed before the next look.
    page.screenshot()
    deadline = time.monotonic() + PATIENCE
    while screen.stats["strips_tightened"] < STRIPS and time.monotonic() < deadline:
        time.sleep(0.05)
    tight = page.screenshot()
    assert tight.generation == first.generation
    assert len(tight.png) < len(first.png)
    assert np.array_equal(tight.array(), first.array())


def test_an_idle_desktop_uses_no_processor(page: deskhand.Desktop) -> None:
    page.screenshot()
    tasks = Path("/proc/self/task").iterdir()
    watchers = [task for task in tasks if (task / "comm").read_text().strip() == "deskhand-watch"]
    assert len(watchers) == 1

    def switches() -> int:
        status = (watchers[0] / "status").read_text()
        return sum(int(line.split()[1]) for line in status.splitlines() if "ctxt_switches" in line)

    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        before = switches()
        # This test is about the passing of time: a second in which the watcher must not wake once.
        time.sleep(1.0)
        if switches() == before:
            return
    pytest.fail("the watcher of an idle desktop goes on waking up")
