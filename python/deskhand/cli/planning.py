"""Says which tasks of other benchmarks can run here: `deskhand run osworld:PATH --plan`, and the lines before such a run.

What must never appear here: a benchmark, and its reasons (see `deskhand.episodes.tasks.foreign`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import click

from deskhand._core.redaction import clean
from deskhand.cli.common import show_json, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deskhand.episodes.tasks.foreign import ForeignCatalogue, Planned

_MOST_NOTES = 8


def catalogue_of(name: str) -> ForeignCatalogue | None:
    """The catalogue of another benchmark that a name means; None if it means other tasks."""
    from deskhand.episodes.tasks import catalogue  # noqa: PLC0415 # other commands need not wait for it

    return catalogue.catalogue_of(name)


def usual_backend(names: Sequence[str]) -> str | None:
    """Where tasks run if the user does not say, where all are of benchmarks that have such a place."""
    usual = {each.backend if (each := catalogue_of(name)) is not None else "" for name in names}
    return usual.pop() or None if len(usual) == 1 else None


def plan(names: Sequence[str], *, backend: str, as_json: bool) -> None:
    """Print for each task whether it can run here, and why not.

    Args:
        names: The tasks, each as `osworld:PATH` or `harbor:PATH`.
        backend: Where desktops would run.
        as_json: Print a list of objects with `id`, `domain`, `runs`, `reason`, `kind` and `notes`.

    Raises:
        UsageError: A name means other tasks, or there is none.
    """
    if not names or not all(map(catalogue_of, names)):
        raise click.UsageError("--plan is about tasks of other benchmarks: deskhand run osworld:PATH --plan")
    found = _planned(names, backend)
    if as_json:
        show_json([_data(task) for _, task in found])
        return
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for _, task in found:
        counts[task.domain][task.reasons[0].kind if task.reasons else "runs"] += 1
    kinds = dict.fromkeys(("runs", *(kind for each, _ in found for kind in each.kinds)))
    rows = [
        (clean(domain) or "-", str(count.total()), *(str(count[kind] or "") for kind in kinds))
        for domain, count in counts.items()
    ]
    whole = sum(counts.values(), Counter[str]())
    table(
        ("domain", "tasks", *kinds), [*rows, ("all", str(whole.total()), *(str(whole[kind] or "") for kind in kinds))]
    )
    _hint(found)


def announce(names: Sequence[str], *, backend: str) -> None:
    """Say before a run how many tasks of other benchmarks cannot run, and why; nothing where all can."""
    found = _planned([name for name in names if catalogue_of(name) is not None], backend)
    for title in dict.fromkeys(each.title for each, _ in found):
        tasks = [task for each, task in found if each.title == title]
        counts = Counter(task.reasons[0].kind for task in tasks if task.reasons)
        if counts:
            causes = ", ".join(f"{kind} {count}" for kind, count in counts.most_common())
            told = f"{counts.total()} of {len(tasks)} tasks of {title} cannot run here and will count as invalid"
            click.echo(f"{told} ({causes}): --plan says why", err=True)
    _hint(found)


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


def _hint(found: Sequence[tuple[ForeignCatalogue, Planned]]) -> None:
    counts = Counter((each.title, reason.kind) for each, task in found for reason in task.reasons)
    hints = {(each.title, kind): told for each, _ in found for kind, told in each.hints.items()}
    for kind, told in hints.items():
        if counts[kind]:
            click.echo(f"{counts[kind]} {told}", err=True)
    notes = Counter(note for _, task in found for note in task.notes if not task.reasons)
    for note, count in notes.most_common(_MOST_NOTES):
        click.echo(clean(f"{count} task{'s' * (count > 1)}: {note}"), err=True)
