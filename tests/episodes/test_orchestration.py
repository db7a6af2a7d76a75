"""Many desktops in one process, what that costs, and that nothing grows with the number of episodes."""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deskhand import PressKeys
from deskhand._core.events import KeyDown, KeyUp
from deskhand.episodes.ledger import open_ledger
from deskhand.episodes.ledger.ledger import Key
from deskhand.episodes.play.attempt import attempt
from deskhand.episodes.run import worker as worker_module
from deskhand.episodes.run.plan import News, Plan
from deskhand.episodes.run.worker import Worker
from deskhand.episodes.tasks.task import TaskLimits
from episodes.plays import KEY, QUICK, DesktopPools, Kept, Places, Press, backend_of
from episodes.scale import DESKTOPS_AT_ONCE
from faults.scale import PATIENCE

if TYPE_CHECKING:
    from deskhand.episodes.play.episode import Episode

TOOLS = Path(__file__).parents[2] / "tools"
# Promised: at most 20 ms of a processor for each step, and 1 % of wall time.
_CPU_PER_STEP, _OF_WALL = 0.020, 0.01
_LONG = 60.0


def measured(*arguments: Any) -> dict[str, float]:
    spec = importlib.util.spec_from_file_location("orchestration", TOOLS / "orchestration.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: dict[str, float] = module.main(*arguments)
    return found


def test_many_desktops_in_one_process_cost_little(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("find_agent", "find_tasks"):
        monkeypatch.setattr(worker_module, name, getattr(worker_module, name))
    alone = PATIENCE == 1
    desktops = DESKTOPS_AT_ONCE if alone else DESKTOPS_AT_ONCE // 2
    # An episode itself costs as much as seven steps: with fewer of these the bound would be about that.
    found = measured(desktops, 20, 1.0 if alone else 0.1)
    assert found["episodes"] == desktops
    assert found["cpu_per_step"] <= _CPU_PER_STEP, found
    # How long somebody waits for a processor is his neighbours' affair.
    assert not alone or found["overhead_of_wall_median"] <= _OF_WALL, found


@pytest.mark.usefixtures("quick")
def test_nothing_grows_with_the_number_of_episodes(tmp_path: Path) -> None:
    early, late = 100, 400
    plan = Plan(str(tmp_path), str(tmp_path / "l.sqlite"), ("episodes.plays:Press",), "oracle", desktops=8)
    ledger = open_ledger(plan.ledger)
    ledger.begin({"version": 1})
    ledger.add(Key("press", "", seed, 0) for seed in range(late))
    blocks: dict[int, int] = {}
    done = 0

    def tell(news: News) -> None:
        nonlocal done
        done += news.kind == "done"
        if news.kind == "done" and done in {early, late}:
            gc.collect()
            blocks[done] = sys.getallocatedblocks()

    class Forgetful(Places):
        """It keeps none of those that it gave."""

        def __init__(self) -> None:
            super().__init__()
            self.given = _Nothing()

    class _Nothing(list[Any]):
        def append(self, _: Any) -> None:
            pass

    with Worker(plan, ledger=ledger, pools=DesktopPools(Forgetful()), tell=tell) as worker:
        asyncio.run(worker.run())
    # The frames' names are kept at hand, as far as there is room for them.
    assert blocks[late] - blocks[early] < 30 * (late - early), blocks


# --- F37: what an agent's code does in a call is nobody else's affair ---


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("how", ["raises", "blocks"])
def test_f37_what_an_agent_holds_is_released_whatever_it_does(how: str) -> None:
    free = threading.Event()

    def agent(episode: Episode) -> None:
        episode.desktop.perform(PressKeys(("shift",)), settle=QUICK)
        if how == "raises":
            raise RuntimeError("in the middle")
        free.wait(_LONG)

    places = Places()
    result = attempt(Press(), KEY, places, agent, Kept(), limits=TaskLimits(steps=5, seconds=0.3))
    free.set()
    events = backend_of(places.given[0]).events
    down = [event.keysym for event in events if isinstance(event, KeyDown)]
    up = [event.keysym for event in events if isinstance(event, KeyUp)]
    assert down == up
    assert len(down) == 1
    assert result["cause"] == ("agent_error" if how == "raises" else "agent_budget")


@pytest.mark.usefixtures("quick")
def test_f37_one_that_blocks_holds_up_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are played meanwhile, and the worker gives its signs of life."""
    plan = Plan(
        str(tmp_path), str(tmp_path / "l.sqlite"), ("episodes.plays:Press",), "x", desktops=2, lease=0.4, heartbeat=0.05
    )
    ledger = open_ledger(plan.ledger)
    ledger.begin({"version": 1})
    ledger.add(Key("press", "", seed, 0) for seed in range(6))
    others, first = threading.Event(), threading.Lock()

    def agent(_: Episode) -> str | None:
        if first.acquire(blocking=False):
            # Until five heart-beats of the loop, which is not held up.
            return "seen" if others.wait(_LONG) else "never"
        return None

    done: list[Any] = []
    mine = open_ledger(plan.ledger)
    renewed, renew = [], mine.renew

    def renews(lease: Any, seconds: float) -> bool:
        renewed.append(lease)
        if len(done) == 5 and len(renewed) > 5:
            others.set()
        return renew(lease, seconds)

    def tell(news: News) -> None:
        if news.kind == "done":
            done.append(news.result)

    monkeypatch.setattr(worker_module, "find_agent", lambda _, **_more: agent)
    monkeypatch.setattr(Press, "limits", TaskLimits(steps=5, seconds=_LONG))
    monkeypatch.setattr(mine, "renew", renews)
    with Worker(plan, ledger=mine, pools=DesktopPools(), tell=tell) as worker:
        asyncio.run(worker.run())
    assert [result["answer"] for result in done] == [None] * 5 + ["seen"]
    assert [row.attempt for row in ledger.rows()] == [1] * 6
