"""Says which tasks of other benchmarks can run here: `deskhand run osworld:PATH --plan`, and the lines before such a run.

What must never appear here: a benchmark, and its reasons (see `deskhand.episodes.tasks.foreign`).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import click

from deskhand._core.redaction import clean, one_line
from deskhand.cli.common import show_json, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deskhand.episodes.report.table import Table
    from deskhand.episodes.tasks.foreign import ForeignCatalogue, Planned

_MOST_NOTES = 8
_LONGEST = 1000
# The first eight characters of a UUID, which is how papers and logs name such tasks.
_UUID = re.compile(r"([0-9a-f]{8})-[0-9a-f-]{27,}")


def catalogue_of(name: str) -> ForeignCatalogue | None:
    """The catalogue of another benchmark that a name means; None if it means other tasks."""
    from deskhand.episodes.tasks import catalogue  # noqa: PLC0415 # other commands need not wait for it

    return catalogue.catalogue_of(name)


def usual_backend(names: Sequence[str]) -> str | None:
    """Where tasks run if the user does not say, where all are of benchmarks that have such a place."""
    usual = {each.backend if (each := catalogue_of(name)) is not None else "" for name in names}
    return usual.pop() or None if len(usual) == 1 else None


def plan(
    names: Sequence[str], *, backend: str, image: str | None = None, form: str | None = None, as_json: bool
) -> None:
    """Print for each task whether it can run here, and why not.

    Args:
        names: The tasks, each as `osworld:PATH` or `harbor:PATH`.
        backend: Where desktops would run.
        image: The image that would stand for the tasks' own; None for these.
        form: `markdown` for tables with a row for each task too; None for a table of numbers by domain.
        as_json: Print a list of objects with `id`, `domain`, `runs`, `reason`, `kind` and `notes`.

    Raises:
        UsageError: A name means other tasks, or there is none; or a run of them refuses that place or image too.
    """
    if not names or not all(map(catalogue_of, names)):
        raise click.UsageError("--plan is about tasks of other benchmarks: deskhand run osworld:PATH --plan")
    _check_place(names, backend, image)
    found = _planned(names, backend)
    if as_json:
        show_json([_data(task) for _, task in found])
    elif form is not None:
        from deskhand.episodes.report.table import write_markdown  # noqa: PLC0415 # only here, and it imports much

        click.echo(write_markdown(_tables(found), _about(found, backend)), nl=False)
    else:
        table(*_numbers(found))
        _hint(found)
    for known in dict.fromkeys(each.image for each, _ in found if each.image):
        if image not in {None, known}:
            note = f"what {image} holds is not known here: the plan takes a container to be one of {known}"
            click.echo(clean(note), err=True)


def announce(names: Sequence[str], *, backend: str) -> None:
    """Say before a run how many tasks of other benchmarks cannot run, and why; nothing where all can."""
    found = _planned([name for name in names if catalogue_of(name) is not None], backend)
    for title in dict.fromkeys(each.title for each, _ in found):
        tasks = [task for each, task in found if each.title == title]
        counts = Counter(task.reasons[0].kind for task in tasks if task.reasons)
        if counts:
            causes = ", ".join(f"{kind} {count}" for kind, count in counts.most_common())
            summary = f"{counts.total()} of {len(tasks)} tasks of {title} cannot run here and will count as invalid"
            click.echo(f"{summary} ({causes}): see --plan for the reasons", err=True)
    _hint(found)


def _check_place(names: Sequence[str], backend: str, image: str | None) -> None:
    """Refuse what a run refuses when it prepares its desktops."""
    from deskhand.episodes.play.pools import BACKENDS  # noqa: PLC0415 # other commands need not wait for it

    if backend not in BACKENDS:
        raise click.UsageError(f"there is no backend {backend!r}; there are: {', '.join(BACKENDS)}")
    if image is None:
        return
    if backend != "docker":
        raise click.UsageError(f"desktops of {backend!r} have no image: add --backend docker, or leave --image out")
    if built := [name for name in names if (each := catalogue_of(name)) is not None and not each.image]:
        raise click.UsageError(f"the tasks of {built[0]} build images for their desktops: leave --image out")


def _planned(names: Sequence[str], backend: str) -> list[tuple[ForeignCatalogue, Planned]]:
    found: dict[tuple[str, str, str], tuple[ForeignCatalogue, Planned]] = {}
    for name in names:
        if (catalogue := catalogue_of(name)) is not None:
            for task in catalogue.plan(name, backend):
                found[catalogue.prefix, task.domain, task.id] = catalogue, task
    return list(found.values())


def _data(task: Planned) -> dict[str, Any]:
    return {
        "id": clean(task.id),
        "domain": clean(task.domain),
        "runs": not task.reasons,
        "reason": clean("; ".join(reason.text for reason in task.reasons)),
        "kind": task.reasons[0].kind if task.reasons else "",
        "notes": [clean(note) for note in task.notes],
    }


def _verdict(task: Planned) -> str:
    return task.reasons[0].kind if task.reasons else "runs"


def _numbers(found: Sequence[tuple[ForeignCatalogue, Planned]]) -> tuple[Sequence[str], list[Sequence[str]]]:
    """How many tasks of each domain have which verdict: the names of the columns, and the rows."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for _, task in found:
        counts[task.domain][_verdict(task)] += 1
    kinds = dict.fromkeys(("runs", *(kind for each, _ in found for kind in each.kinds)))
    whole = sum(counts.values(), Counter[str]())
    rows = [(clean(domain) or "-", count) for domain, count in counts.items()]
    return ("domain", "tasks", *kinds), [
        (name, str(count.total()), *(str(count[kind] or "") for kind in kinds))
        for name, count in (*rows, ("all", whole))
    ]


def _tables(found: Sequence[tuple[ForeignCatalogue, Planned]]) -> list[Table]:
    from deskhand.episodes.report.table import Table  # noqa: PLC0415 # see plan

    made = [Table("By domain", *_numbers(found))]
    for each in {each.title: each for each, _ in found if each.elsewhere}.values():
        counts = Counter(_verdict(task) for planned, task in found if planned.title == each.title)
        rows = [
            (kind, str(counts[kind]), each.elsewhere.get(kind, "")) for kind in ("runs", *each.kinds) if counts[kind]
        ]
        made.append(Table("By verdict", ("verdict", "tasks", f"what {each.title}'s own machine does"), rows))
    shortened = Counter(_short(task.id) for _, task in found)
    listed = []
    for _, task in found:
        name = _short(task.id) if shortened[_short(task.id)] == 1 else task.id
        why = "; ".join([reason.text for reason in task.reasons] or task.notes)
        listed.append(
            (one_line(task.domain, _LONGEST) or "-", one_line(name, _LONGEST), _verdict(task), one_line(why, _LONGEST))
        )
    return [*made, Table("Tasks", ("domain", "task", "verdict", "reason"), listed)]


def _about(found: Sequence[tuple[ForeignCatalogue, Planned]], backend: str) -> list[str]:
    images = dict.fromkeys(each.image or "the task's own image" for each, _ in found)
    where = f"containers of {' or '.join(images)}" if backend == "docker" else backend
    return [
        f"Desktops: {where}.",
        "A task counts once, by the first of its reasons. Of a task that runs, the reason is what differs all the same.",
    ]


def _short(name: str) -> str:
    found = _UUID.fullmatch(name)
    return found[1] if found else name


def _hint(found: Sequence[tuple[ForeignCatalogue, Planned]]) -> None:
    counts = Counter((each.title, reason.kind) for each, task in found for reason in task.reasons)
    hints = {(each.title, kind): hint for each, _ in found for kind, hint in each.hints.items()}
    for kind, hint in hints.items():
        if counts[kind]:
            click.echo(f"{counts[kind]} {hint}", err=True)
    notes = Counter(note for _, task in found for note in task.notes if not task.reasons)
    for note, count in notes.most_common(_MOST_NOTES):
        click.echo(clean(f"{count} task{'s' * (count > 1)}: {note}"), err=True)
