"""How much faster four nodes are than one, and what is left of a run when a node dies in the middle. Writes evidence/ray.md.

`PYTHONPATH=tests python -m episodes.ray_scaling` is the whole of it; `--episodes 40 --seconds 1 --out -` shows that it works.
The episodes wait, as for a model's answer, and compute next to nothing: all nodes are on one machine, whose processors do not
become more. Desktops are in memory. Episodes should be a multiple of all nodes' desktops, or the last round is not a full one.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
import uuid
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from deskhand.episodes.ledger import open_ledger
from deskhand.episodes.ledger.ledger import Key, State
from deskhand.episodes.play.supervision import Stop
from deskhand.episodes.run.host import describe
from deskhand.episodes.run.plan import News, Plan
from episodes.ray_plays import SECONDS, in_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deskhand.episodes.ledger.ledger import Row

ROOT = Path(__file__).resolve().parent.parent.parent
NODES = 4


def played(nodes: int, options: argparse.Namespace, *, kill_at: int | None = None) -> tuple[Sequence[Row], float]:
    """Play on so many nodes; the rows, and how many seconds after a node was killed its last process was gone."""
    # Its mode of authentication is looked at when it is imported.
    from deskhand.episodes.run.engines.ray import RayEngine  # noqa: PLC0415
    from episodes.ray_cluster import Nodes  # noqa: PLC0415

    gone = 0.0
    with (
        tempfile.TemporaryDirectory(prefix="deskhand-ray-") as directory,
        Nodes(**{SECONDS: str(options.seconds)}) as cluster,
    ):
        plan = Plan(
            directory, f"{directory}/episodes.sqlite", ("episodes.plays:Press",), "episodes.ray_plays:waits",
            desktops=options.desktops,
        )  # fmt: skip
        ledger = open_ledger(plan.ledger)
        ledger.begin({"version": 1})
        ledger.add(Key("press", "", seed, 0) for seed in range(options.episodes))
        members = [cluster.add(options.desktops) for _ in range(nodes)]
        cluster.connect()
        killed_at = 0.0

        def tell(_: News) -> None:
            nonlocal killed_at
            if kill_at is not None and not killed_at and ledger.counts()[State.DONE] >= kill_at:
                killed_at = time.monotonic()
                members[-1].kill()

        async def run() -> None:
            nonlocal gone
            playing = asyncio.create_task(RayEngine(in_memory).run(plan, stop=Stop(), tell=tell))
            while not playing.done():
                await asyncio.wait([playing], timeout=0.1)
                if killed_at and not gone and not members[-1].processes():
                    gone = time.monotonic() - killed_at
            playing.result()

        asyncio.run(run())
        rows = ledger.rows()
        ledger.close()
    return rows, gone


def span(rows: Sequence[Row]) -> float:
    """From the beginning of the first episode to the end of the last."""
    results = [row.result for row in rows if row.result is not None]
    return max(result["ended"] for result in results) - min(result["started"] for result in results)


def measured(options: argparse.Namespace, say: Callable[[str], None]) -> str:
    found = []
    spans = {}
    for nodes in (1, NODES):
        before = os.getloadavg()[0]
        rows, _ = played(nodes, options)
        spans[nodes] = span(rows)
        workers = Counter(row.worker for row in rows)
        found.append(
            f"| {nodes} | {sum(row.state == State.DONE for row in rows)} | {spans[nodes]:.1f} s | "
            f"{', '.join(map(str, sorted(workers.values())))} | {before:.1f}...{os.getloadavg()[0]:.1f} |"
        )
        say(found[-1])
    efficiency = spans[1] / (NODES * spans[NODES])
    rows, gone = played(NODES, options, kill_at=options.episodes // 3)
    done = sum(row.state == State.DONE and row.result is not None for row in rows)
    lost = sum(row.failures.get("desktop_lost", 0) for row in rows)
    again = sum(row.attempt - 1 for row in rows)
    about = describe()
    machine = f"{about['processor']}, {about['cores']} cores, {about['memory']}, {about['system']}"
    return f"""# Ray: four nodes on one machine

Written by `python -m episodes.ray_scaling --episodes {options.episodes} --seconds {options.seconds:g} \
--desktops {options.desktops}`.
Machine: {machine}.

Episodes of {options.seconds:g} s in which nothing is computed, {options.desktops} at once on each node, on desktops in memory.

| nodes | episodes | first begun to last ended | by worker | load average |
|---:|---:|---:|---:|---:|
{chr(10).join(found)}

Efficiency from 1 to {NODES} nodes: {efficiency:.1%}

One of {NODES} nodes killed after a third of them: {done} of {len(rows)} rows have their one result; {lost} attempts were lost
with it, and {again} made again; its last process was gone after {gone:.1f} s.
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--episodes", type=int, default=400)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--desktops", type=int, default=10)
    parser.add_argument("--out", default=str(ROOT / "evidence" / "ray.md"))
    options = parser.parse_args()
    os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=uuid.uuid4().hex)
    text = measured(options, lambda line: print(line, file=sys.stderr))
    if options.out == "-":
        print(text)
    else:
        Path(options.out).write_text(text)


if __name__ == "__main__":
    main()
