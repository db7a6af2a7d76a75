"""Judges end states made by a script with OSWorld's own metrics, and prints which metric tells right from wrong.

    PYTHONPATH=tests python -m episodes.osworld_metrics [--checkout FOLDER] [PATTERN...]

The metrics are upstream's, unmodified, in the environment that `deskhand assets evaluators` makes
(`DESKHAND_OSWORLD_PYTHON`). With a checkout of OSWorld, the command also counts the metrics that at least two of its tasks
use, and compares each case with its task. A pattern selects cases: `compare_pdfs*`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deskhand
from deskhand.episodes.tasks.context import TaskContext
from deskhand.episodes.tasks.osworld.assets import Assets
from deskhand.episodes.tasks.osworld.evaluating import evaluate
from deskhand.episodes.tasks.osworld.evaluators import find_evaluators
from deskhand.episodes.tasks.osworld.taskfile import at_home, parse_task
from deskhand.errors import EpisodeError
from episodes.osworld_more_states import CASES
from episodes.osworld_states import Case, State, hub

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from deskhand import Desktop
    from deskhand.episodes.tasks.osworld.evaluators import Evaluators
    from deskhand.episodes.tasks.osworld.taskfile import TaskFile

HEAD = """# End states judged by OSWorld's metrics

`PYTHONPATH=tests python -m episodes.osworld_metrics --checkout OSWorld` wrote this. A script made the files of each state, and
OSWorld's own code, unmodified, judged them: the right state has to score 1, and the wrong one 0. Where a metric says how alike
two files are, the wrong one has to score at most what its case says. Metric, options and rule are those of the task; the files
are not. Getters that ask an application are replaced by what they would have got."""
MAKER = Path(__file__).parent / "osworld_files.py"
EXACT = 1e-6
"""How far from 1 the score of a right state may be: likeness is a number of floating point."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The scores of a case's states; a text is why there is none."""

    case: Case
    right: float | str
    wrong: float | str
    overlooked: float | str | None = None

    @property
    def held(self) -> bool:
        told = _is(self.right, 1.0) and isinstance(self.wrong, float) and self.wrong <= self.case.most
        return told and (self.case.overlooked is None or _is(self.overlooked, 1.0))


def _is(score: float | str | None, wanted: float) -> bool:
    return isinstance(score, float) and abs(score - wanted) <= EXACT


def task_of(case: Case, state: State) -> TaskFile:
    """The task file of a case; where no getter is named, it gives the state's value."""
    evaluator: dict[str, Any] = {"func": case.func, **case.evaluator}
    if case.func != "infeasible" and "result" not in evaluator:
        evaluator["result"] = {"type": "rule", "rules": state.value}
    domain, _, id_ = case.task.partition("/")
    data = {"id": id_, "instruction": "-", "config": [], "evaluator": evaluator, "related_apps": [], "source": ""}
    return parse_task(json.dumps(data).encode(), domain=domain, id=id_)


def make_files(python: str, folder: Path, files: Iterable[tuple[Path, Any]]) -> None:
    """Make files below a folder of their descriptions, in the environment of the evaluators."""
    listed = json.dumps([[str(Path(os.path.normpath(path)).relative_to(folder)), content] for path, content in files])
    done = subprocess.run(
        [python, "-I", str(MAKER)], cwd=folder, input=listed, capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode != 0:
        raise EpisodeError(f"the files of the states cannot be made: {done.stderr[-2000:]}")


def judge(case: Case, desktop: Desktop, evaluators: Evaluators, folder: Path) -> Judged:
    """Make the states of a case, each a home directory below `folder`, and have them judged."""
    states = {"right": case.right, "wrong": case.wrong, "overlooked": case.overlooked}
    there = {name: state for name, state in states.items() if state is not None}
    homes = {name: folder / name for name in there}
    files = [(folder / "gold" / name, content) for name, content in case.gold.items()]
    for name, state in there.items():
        homes[name].mkdir(parents=True)
        files += [(Path(path), content) for path, content in at_home(list(state.files.items()), str(homes[name]))]
    assets = Assets(folder / "assets")
    try:
        make_files(evaluators.python, folder, files)
        for name in case.gold:
            assets.put(hub(name), folder / "gold" / name)
    except EpisodeError as error:
        return Judged(case, str(error), str(error))
    scores: dict[str, float | str] = {}
    for name, state in there.items():
        context = TaskContext(desktop, {}, str(homes[name]))
        try:
            scores[name] = evaluate(task_of(case, state), context, assets, evaluators, gave_up=state.gave_up)
        except EpisodeError as error:
            scores[name] = str(error)
    return Judged(case, **scores)


def judge_all(cases: Sequence[Case], evaluators: Evaluators, *, at_once: int = 1) -> list[Judged]:
    """Judge cases on one desktop, `at_once` at a time."""
    with tempfile.TemporaryDirectory(prefix="deskhand-states-") as folder, deskhand.launch(size=(640, 480)) as desktop:

        def one(number: int) -> Judged:
            return judge(cases[number], desktop, evaluators, Path(folder, str(number)))

        with ThreadPoolExecutor(at_once) as workers:
            return list(workers.map(one, range(len(cases))))


# --- the table ---


def _shown(score: float | str | None) -> str:
    if score is None or isinstance(score, str):
        return "" if score is None else f"none: {score[:200]}".replace("|", "\\|").replace("\n", " ")
    return f"{score:.3g}"


def table(judged: Sequence[Judged], used: Counter[str] | None = None) -> str:
    """A row for each case, with the number of tasks that use the metric where it is known."""
    lines = ["| area | metric | tasks | as in | right | wrong | note |", "|---|---|---|---|---|---|---|"]
    for each in judged:
        case = each.case
        note = f"upstream gives another wrong state {_shown(each.overlooked)}" if case.overlooked is not None else ""
        note = note if each.held else f"**not as expected** {note}".strip()
        count = "" if used is None else str(used[case.func])
        lines.append(
            f"| {case.area} | {case.func} | {count} | {case.task} | {_shown(each.right)} | {_shown(each.wrong)} | {note} |"
        )
    return "\n".join(lines)


# --- a checkout's tasks ---


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _parts(evaluator: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """The metrics of a task, each with its options and what it is compared with."""
    names = _listed(evaluator["func"])
    many = isinstance(evaluator["func"], list)
    options, expected = (
        evaluator.get(name) or ([None] * len(names) if many else None) for name in ("options", "expected")
    )
    return [
        (name, *((each[number] if many else each) for each in (options, expected))) for number, name in enumerate(names)
    ]


def read_tasks(checkout: Path) -> dict[str, dict[str, Any]]:
    """The evaluators of a checkout by domain and id."""
    root = next(each for each in (checkout / "evaluation_examples", checkout) if (each / "examples").is_dir())
    paths = sorted((root / "examples").glob("*/*.json"))
    return {f"{path.parent.name}/{path.stem}": json.loads(path.read_text("utf-8")) for path in paths}


def count(tasks: dict[str, dict[str, Any]]) -> Counter[str]:
    """How many tasks use each metric."""
    return Counter(name for task in tasks.values() for name in set(_listed(task["evaluator"]["func"])))


def differs(case: Case, tasks: dict[str, dict[str, Any]]) -> str:
    """What a case has otherwise than its task; empty if nothing."""
    found = [task for name, task in tasks.items() if name.startswith(case.task)]
    if len(found) != 1:
        return f"{len(found)} tasks are called {case.task}"
    expected = case.evaluator.get("expected")
    for name, options, gold in _parts(found[0]["evaluator"]):
        rules = expected["rules"] if expected and expected["type"] == "rule" else None
        theirs = gold["rules"] if rules is not None and isinstance(gold, dict) and gold["type"] == "rule" else None
        mine = case.evaluator.get("options") or {}
        if (name, {key: value for key, value in (options or {}).items() if key != "_note"}, theirs) == (
            case.func,
            mine,
            rules,
        ):
            return ""
    return "no metric of the task has these options and this rule"


def is_download(task: dict[str, Any]) -> bool:
    return any(step["type"] == "download" for step in task.get("config", ()))


def _about(cases: Sequence[Case], tasks: dict[str, dict[str, Any]]) -> list[str]:
    used = count(tasks)
    often = {name for name, number in used.items() if number > 1}
    there = {case.func for case in cases}
    fetching = {
        case.task: case.area
        for case in cases
        for name, task in tasks.items()
        if name.startswith(case.task) and is_download(task)
    }
    areas = ", ".join(f"{area} {number}" for area, number in Counter(fetching.values()).most_common())
    lines = [
        f"{len(tasks)} tasks use {len(used)} metrics; {len(often)} of these are used by at least two tasks.",
        f"Of these {len(often)}, {len(often & there)} are judged here, and not: {', '.join(sorted(often - there)) or 'none'}.",
        f"{len(fetching)} of the {len({case.task for case in cases})} tasks named here download files: {areas}.",
    ]
    return lines + [f"{case.name}: {why}" for case in cases if (why := differs(case, tasks))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkout", type=Path, help="count the metrics of its tasks, and compare the cases with them")
    parser.add_argument("--at-once", type=int, default=2, help="how many cases are judged at once")
    parser.add_argument("pattern", nargs="*", help="which cases; all of them if none is given")
    given = parser.parse_args()
    evaluators = find_evaluators()
    if evaluators is None:
        raise SystemExit("there is no environment of OSWorld's evaluators: make it with `deskhand assets evaluators`")
    cases = [case for case in CASES if not given.pattern or any(fnmatch(case.name, each) for each in given.pattern)]
    tasks = read_tasks(given.checkout) if given.checkout else None
    judged = judge_all(cases, evaluators, at_once=given.at_once)
    print(
        f"{len(judged)} cases of {len({case.func for case in cases})} metrics, by desktop-env {evaluators.version}:\n"
    )
    print(table(judged, count(tasks) if tasks is not None else None))
    if tasks is not None:
        print("", *_about(cases, tasks), sep="\n")
    if wrong := [each.case.name for each in judged if not each.held]:
        sys.exit(f"judged otherwise than expected: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
