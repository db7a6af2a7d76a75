"""Checks whether the same seed gives the same result: python tools/same_seed.py DIR [--times 10] [--desktops 2] [TASK...].

The oracle plays one instance of each task several times, in the run DIR (an existing run is continued). Each time is compared
with the first: the result, and every frame on the way. The output is a page for evidence/.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from deskhand.episodes.play.replay import compare
from deskhand.episodes.record.reader import open_run
from deskhand.episodes.run.host import describe
from deskhand.episodes.tasks.catalogue import find_tasks

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from deskhand.episodes.record.reader import Run

TIMES = ("reset", "setup", "agent", "evaluate", "total", "overhead")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, metavar="DIR")
    parser.add_argument("tasks", nargs="*", metavar="TASK")
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--desktops", type=int, default=2)
    parser.add_argument("--backend", default="local")
    given = parser.parse_intermixed_args()
    command = [Path(sys.executable).with_name("deskhand"), "run", *given.tasks, "--agent", "oracle", "--out", given.run]
    options = {"repeats": given.times, "desktops": given.desktops, "backend": given.backend}
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    before = os.getloadavg()[0]
    ended = subprocess.run([*command, *words], stdout=sys.stderr, check=False)
    if ended.returncode not in {0, 1}:
        return ended.returncode
    with open_run(given.run) as run:
        print(page(run, f"--times {given.times} --desktops {given.desktops} --backend {given.backend}", before))
    return 0


def page(run: Run, options: str, load: float) -> str:
    by_task: dict[str, list[Mapping[str, Any]]] = {}
    for result in run.results():
        by_task.setdefault(str(result["task"]), []).append(result)
    masks = {task.name: task.masks for task in find_tasks(list(by_task))}
    causes: Counter[str] = Counter()
    ends = frames = equal = pairs = wholly = 0
    other: list[str] = []
    for name, results in sorted(by_task.items()):
        causes.update(str(result["cause"]) for result in results if not result["valid"])
        valid = [run.recording(result) for result in results if result["valid"]]
        for again in valid[1:]:
            found = compare(valid[0], again, masks=masks[name])
            pairs += 1
            ends += found.same_state
            frames += found.frames
            equal += found.frames - sum(difference.what == "frame" for difference in found.differences)
            wholly += found.same
            if not found.same_state:
                other.append(f"{again.key}: {found.state}")
    results = [result for many in by_task.values() for result in many]
    about = describe()
    rows = {
        "tasks, each with one seed": len(by_task),
        "episodes": len(results),
        "solved by the oracle": sum(bool(result["success"]) for result in results),
        "invalid": f"{sum(causes.values())} {dict(causes) if causes else ''}".strip(),
        "compared with the task's first": pairs,
        "ended alike: score, state, answer": ends,
        "frames compared": frames,
        "the same, but for what moves by itself": f"{equal} ({equal / max(1, frames):.1%})",
        "episodes of which all was the same": wholly,
        "attempts of no result, made again": sum(int(result.get("retries", 0)) for result in results),
        **{
            f"{name}, median and longest": f"{median(times):.2f} s, {max(times):.2f} s"
            for name in TIMES
            if (times := [float(result["times"][name]) for result in results])
        },
    }
    table = "\n".join(f"| {what} | {found} |" for what, found in rows.items())
    ended = "\n".join(f"- {line}" for line in other)
    return f"""# The same seed, again and again

Written by `tools/same_seed.py DIR {options}`.
Machine: {about["processor"]}, {about["cores"]} cores, {about["memory"]}, {about["system"]}; load average {load:.1f} before, \
{os.getloadavg()[0]:.1f} after.

| what | found |
|---|---:|
{table}
{f"{chr(10)}Ended otherwise:{chr(10)}{chr(10)}{ended}{chr(10)}" if other else ""}"""


if __name__ == "__main__":
    sys.exit(main())
