"""The same folders of tasks by Harbor's own runner, in its containers and in ours, and by `deskhand run`.

    PYTHONPATH=tests python -m episodes.harbor_parity DIR --harbor 'HARBOR'

writes the folders and the runs below DIR, which is new, and prints a table: with the tasks' oracles, with nothing done, and
with an agent of deskhand that types the solution in a terminal. HARBOR is the command of an installed `harbor`, in whose Python
deskhand is installed too; it needs Python 3.12. For its own containers it needs `docker compose`, and DIR at the same path as
the engine sees it: `--no-compose` leaves these out. The tasks are made from the image `deskhand/minimal`.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from deskhand import Type
from deskhand.episodes.record.reader import open_run
from episodes.harbor_folders import write_task

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deskhand.episodes.play.episode import Episode

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
_HERE, _AGENT = "deskhand.episodes.environments.harbor", "episodes.harbor_parity:type_solution"
_NONE = ["--ek", "network=none"]
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


def type_solution(episode: Episode) -> None:
    """An agent: it types the solution in a terminal."""
    solution = next(solution for instruction, _, solution in _TASKS.values() if instruction in episode.instruction)
    episode.desktop.start(["xterm", "-e", "bash", "--norc"])
    episode.desktop.perform(Type(f"cd /app; {solution}; exit\n"), until=lambda _: not episode.desktop.windows.list())


def by_harbor(command: list[str], tasks: Path, name: str, options: Sequence[str]) -> dict[str, tuple[float, float]]:
    """The reward and the seconds of each task by Harbor's runner."""
    jobs = tasks.parent / f"harbor-{name}"
    subprocess.run(
        [*command, "run", "-q", "-y", "-p", str(tasks), "-o", str(jobs), "-n", "1", *options],
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
    out = tasks.parent / f"deskhand-{agent.rpartition(':')[2]}"
    command = [sys.executable, "-m", "deskhand", "run", f"harbor:{tasks}", "--agent", agent, "--out", str(out)]
    subprocess.run(command, check=False, stdout=sys.stderr)
    with open_run(out) as run:
        return {r["task"].removeprefix("harbor-"): (r["score"], r["times"]["total"]) for r in run.results()}


def main() -> None:
    """Run both, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--harbor", default="harbor", help="the command of Harbor's runner")
    parser.add_argument("--no-compose", action="store_true", help="leave Harbor's own containers out")
    options = parser.parse_args()
    root = options.directory.resolve()
    root.mkdir(parents=True)
    tasks, harbor = write_tasks(root), shlex.split(options.harbor)
    columns = ["Harbor's reward", "its seconds", "in our container", "its seconds", "our score", "our seconds"]
    print("| task | agent |", " | ".join(columns), "|")
    print("|---|---|", "---:|" * len(columns), sep="")
    for agent, ours in (("oracle", "oracle"), ("nop", "nothing"), ("", "")):
        runs: list[dict[str, tuple[float, float]]] = [{}]
        if agent and not options.no_compose:
            runs = [by_harbor(harbor, tasks, agent, ["-a", agent])]
        given = ["-a", agent] if agent else ["-a", f"{_HERE}:DesktopAgent", "--ak", f"agent={_AGENT}"]
        runs.append(by_harbor(harbor, tasks, f"{agent}-desktop", ["-e", f"{_HERE}:DesktopEnvironment", *_NONE, *given]))
        runs.append(by_us(tasks, ours if agent else _AGENT))
        for task in sorted(_TASKS):
            cells = [f"{run[task][0]:g} | {run[task][1]:.1f}" if run else " | " for run in runs]
            print(f"| {task} | {ours if agent else 'types it'} |", " | ".join(cells), "|")


if __name__ == "__main__":
    main()
