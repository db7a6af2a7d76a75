"""The same folders of tasks by Harbor's own runner and by `deskhand run`, with their oracles and with nothing done.

    PYTHONPATH=tests python -m episodes.harbor_parity DIR --harbor 'HARBOR'

writes the folders and both runs below DIR, which is new, and prints a table. HARBOR is the command of an installed `harbor`; it
needs Python 3.12, Docker with `docker compose`, and DIR at the same path as the engine sees it. The tasks are made from the
image `deskhand/minimal`.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from datetime import datetime
from pathlib import Path

from deskhand.episodes.record.reader import open_run
from episodes.harbor_folders import write_task

# Of each task the instruction, the condition that its tests check, and its solution; the last two are lines of bash in /app.
_TASKS = {
    "count": (
        "Write how many bytes start.txt has to done.txt.",
        '[ "$(cat done.txt)" = 6 ]',
        "stat -c %s start.txt >done.txt",
    ),
    "folder": (
        "Make a folder notes with an empty file today.txt.",
        "[ -f notes/today.txt ] && [ ! -s notes/today.txt ]",
        "mkdir notes; touch notes/today.txt",
    ),
    "mode": ("Let only the owner read start.txt.", '[ "$(stat -c %a start.txt)" = 600 ]', "chmod 600 start.txt"),
    "reverse": (
        "Write start.txt backwards to done.txt.",
        '[ "$(cat done.txt)" = olleh ]',
        "rev <start.txt >done.txt",
    ),
    "upper": (
        "Write start.txt in upper case to done.txt.",
        '[ "$(cat done.txt)" = HELLO ]',
        "tr a-z A-Z <start.txt >done.txt",
    ),
}
_TEST = "#!/bin/bash\ncd /app\nif {}; then echo 1; else echo 0; fi >/logs/verifier/reward.txt\n"
_TOML = 'version = "1.0"\n\n[agent]\ntimeout_sec = 60.0\n\n[verifier]\ntimeout_sec = 60.0\n'


def write_tasks(root: Path) -> Path:
    """Write the folders, and return the one that they are in."""
    for name, (instruction, condition, solution) in _TASKS.items():
        write_task(
            root / "tasks",
            name,
            toml=_TOML,
            instruction=f"{instruction}\n",
            test=_TEST.format(condition),
            solve=f"#!/bin/bash\ncd /app\n{solution}\n",
        )
    return root / "tasks"


def by_harbor(command: list[str], tasks: Path, agent: str) -> dict[str, tuple[float, float]]:
    """The reward and the seconds of each task by Harbor's runner."""
    jobs = tasks.parent / f"harbor-{agent}"
    subprocess.run(
        [*command, "run", "-q", "-y", "-p", str(tasks), "-a", agent, "-o", str(jobs), "-n", "1"],
        check=True,
        stdout=sys.stderr,
    )
    found = {}
    for path in jobs.glob("*/*/result.json"):
        trial = json.loads(path.read_text("utf-8"))
        begun, ended = (datetime.fromisoformat(trial[at]) for at in ("started_at", "finished_at"))
        found[trial["task_name"]] = (trial["verifier_result"]["rewards"]["reward"], (ended - begun).total_seconds())
    return found


def by_us(tasks: Path, agent: str) -> dict[str, tuple[float, float]]:
    """The score and the seconds of each task by `deskhand run`."""
    out = tasks.parent / f"deskhand-{agent}"
    command = [sys.executable, "-m", "deskhand", "run", f"harbor:{tasks}", "--agent", agent, "--out", str(out)]
    subprocess.run(command, check=False, stdout=sys.stderr)
    with open_run(out) as run:
        return {r["task"].removeprefix("harbor-"): (r["score"], r["times"]["total"]) for r in run.results()}


def main() -> None:
    """Run both, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--harbor", default="harbor", help="the command of Harbor's runner")
    options = parser.parse_args()
    root = options.directory.resolve()
    root.mkdir(parents=True)
    tasks = write_tasks(root)
    print("| task | agent | Harbor's reward | its seconds | our score | our seconds |\n|---|---|---:|---:|---:|---:|")
    for theirs, ours in (("oracle", "oracle"), ("nop", "nothing")):
        there, here = by_harbor(shlex.split(options.harbor), tasks, theirs), by_us(tasks, ours)
        for task in sorted(_TASKS):
            (reward, long), (score, short) = there[task], here[task]
            print(f"| {task} | {ours} | {reward:g} | {long:.1f} | {score:g} | {short:.1f} |")


if __name__ == "__main__":
    main()
