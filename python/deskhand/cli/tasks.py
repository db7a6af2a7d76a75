"""The commands about tasks: `tasks list`, `show` and `check`.

What must never appear here: how tasks are found (see `deskhand.episodes.tasks.catalogue`), what admits one
(`deskhand.episodes.play.admission`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from deskhand._core.redaction import clean
from deskhand.cli.common import examples, is_quiet, json_option, quiet_option, show_json, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deskhand.episodes.play.admission import Admission, Instance
    from deskhand.episodes.tasks.task import Task

_CHOICE = "TASK is a name, a pattern (`text-*`), `tag:text`, `level:2`, a folder with a task.toml, or `module:Class`."


@click.group(epilog=examples("deskhand tasks list", "deskhand tasks show text-write-note --seed 3"))
def tasks() -> None:
    """List, show and check the tasks for agents."""


def _data(task: Task) -> dict[str, Any]:
    from deskhand.episodes.tasks.catalogue import digest  # noqa: PLC0415 # other commands need not wait for what this loads

    return {
        "name": task.name,
        "level": task.level,
        "tags": list(task.tags),
        "programs": list(task.programs),
        "steps": task.limits.steps,
        "seconds": task.limits.seconds,
        "memory": task.resources.memory,
        "most_memory": task.resources.most_memory,
        "cpus": task.resources.cpus,
        "most_cpus": task.resources.most_cpus,
        "network": task.network if isinstance(task.network, str) else list(task.network),
        "image": task.image,
        "screen": list(task.screen),
        "masks": [list(mask) for mask in task.masks],
        "digest": digest(task),
    }


@tasks.command(name="list", epilog=examples("deskhand tasks list 'text-*' tag:files", "deskhand tasks list --json"))
@click.argument("names", metavar="[TASK...]", nargs=-1)
@json_option
def list_(*, names: tuple[str, ...], as_json: bool) -> None:
    """List all tasks, or those that are named."""
    from deskhand.episodes.tasks.catalogue import find_tasks  # noqa: PLC0415 # as in _data

    found = find_tasks(names)
    if as_json:
        show_json([_data(task) for task in found])
        return
    rows = [(task.name, str(task.level), " ".join(task.tags), " ".join(task.programs)) for task in found]
    table(("name", "level", "tags", "programs"), rows)


list_.help = f"{list_.help}\n\n{_CHOICE}"


@tasks.command(epilog=examples("deskhand tasks show files-rename --seed 7", "deskhand tasks show ./my-task"))
@click.argument("name", metavar="TASK")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Which instance.")
@click.option(
    "--run-seed", type=int, default=0, show_default=True, help="The run's own seed, as `deskhand run` takes it."
)
@json_option
def show(*, name: str, seed: int, run_seed: int, as_json: bool) -> None:
    """Show one task: an agent's instruction for a seed, its limits and resources."""
    from deskhand.episodes.tasks.catalogue import find_tasks, instance  # noqa: PLC0415 # as in _data

    task, *others = find_tasks([name])
    if others:
        raise click.UsageError(
            f"{name!r} means {len(others) + 1} tasks, {task.name} and others; see `deskhand tasks list {name}`"
        )
    number, parameters = instance(task, seed, run_seed=run_seed)
    data = _data(task) | {
        "seed": seed,
        "instance_seed": number,
        "instruction": task.instruction(parameters),
        "parameters": dict(parameters),
    }
    if as_json:
        show_json(data)
    else:
        click.echo(_description(task, data))


def _description(task: Task, data: dict[str, Any]) -> str:
    needs, most = task.resources.memory >> 20, task.resources.most_memory >> 20
    lines = [
        ("task", f"{task.name} (level {task.level}; {', '.join(task.tags) or 'no tags'})"),
        ("seed", f"{data['seed']} (instance {data['instance_seed']})"),
        ("prompt", data["instruction"]),
        ("limits", f"{task.limits.steps} steps, {task.limits.seconds:g} s"),
        ("given", f"{needs} MB of {most} MB, {task.resources.cpus:g} of {task.resources.most_cpus:g} processors"),
        ("network", "none" if task.network == "none" else ", ".join(task.network)),
        ("screen", "x".join(map(str, task.screen))),
        ("masks", "; ".join(",".join(map(str, mask)) for mask in task.masks) or "none"),
        ("image", task.image),
        ("programs", ", ".join(task.programs) or "none"),
        ("digest", data["digest"][:16]),
    ]
    return "\n".join(f"{name:<8} " + clean(text, keep="\n").replace("\n", "\n" + " " * 9) for name, text in lines)


@tasks.command(
    epilog=examples(
        "deskhand tasks check ./my-task",
        "deskhand tasks check tag:text --runs 5 --desktops 2",
        "deskhand tasks check --backend docker --json > admission.json",
    )
)
@click.argument("names", metavar="[TASK...]", nargs=-1)
@click.option("--runs", type=click.IntRange(1), default=20, show_default=True, help="Instances of each task.")
@click.option("--desktops", type=click.IntRange(1), default=1, show_default=True, help="Instances at once.")
@click.option("--backend", default="local", show_default=True, help="Where desktops run: local, or docker.")
@click.option("--image", help="The container image, instead of the tasks' own.")
@click.option("--run-seed", type=int, default=0, show_default=True, help="The seed of all instances.")
@click.option(
    "--pictures",
    type=click.Path(file_okay=False),
    default="check-pictures",
    show_default=True,
    help="Where a picture is written of each instance that begins with another picture the second time.",
)
@quiet_option
@json_option
def check(
    *,
    names: tuple[str, ...],
    runs: int,
    desktops: int,
    backend: str,
    image: str | None,
    run_seed: int,
    pictures: str,
    as_json: bool,
) -> int:
    """Try each task with its oracle and with an agent that does nothing, and say whether it is reliable.

    A task is admitted if its oracle solves every instance, doing nothing solves none, two evaluations agree, and the same seed
    begins with the same picture (what moves by itself and the pointer aside). The exit code is 1 if one is not admitted.
    """
    from deskhand.episodes.play.admission import AGENTS, admit  # noqa: PLC0415 # as in _data
    from deskhand.episodes.tasks.catalogue import find_tasks  # noqa: PLC0415 # as in _data

    found = find_tasks(names)
    count = len(found) * runs
    done = 0
    quiet = is_quiet()

    def tell(instance: Instance) -> None:
        nonlocal done
        done += 1
        if quiet:
            return
        seconds = ", ".join(f"{agent} {instance.results[agent]['times']['total']:.1f} s" for agent in AGENTS)
        what = clean("; ".join(instance.complaints) or "as it should be")
        click.echo(f"[{done}/{count}] {instance.task} seed {instance.seed}: {what} ({seconds})", err=True)

    admissions = admit(
        found,
        runs=runs,
        desktops=desktops,
        backend=backend,
        image=image,
        run_seed=run_seed,
        pictures=pictures,
        tell=tell,
    )
    if as_json:
        show_json([_verdict(admission) for admission in admissions])
    else:
        header = ("task", *AGENTS, "unsteady", "other frames", "admitted")
        table(header, [_row(admission, AGENTS) for admission in admissions])
    return 0 if all(admission.admitted for admission in admissions) else 1


def _verdict(admission: Admission) -> dict[str, Any]:
    return {
        "task": admission.task,
        "admitted": admission.admitted,
        "runs": admission.runs,
        "passed": dict(admission.passed),
        "unsteady": admission.unsteady,
        "frames": admission.frames,
        "complaints": {str(seed): list(words) for seed, words in admission.complaints.items()},
    }


def _row(admission: Admission, agents: Sequence[str]) -> tuple[str, ...]:
    passed = (f"{admission.passed[agent]}/{admission.runs}" for agent in agents)
    first = next(iter(admission.complaints.values()), ["nothing was tried"])[0]
    # Each instance's line has had the rest.
    verdict = "yes" if admission.admitted else f"no: {first.partition(';')[0]}"
    return (admission.task, *passed, str(admission.unsteady), str(admission.frames), verdict)


COMMANDS = (tasks,)
