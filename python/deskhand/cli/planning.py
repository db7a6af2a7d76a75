"""Says which tasks of OSWorld can run here: `deskhand run osworld:PATH --plan`, and the lines before such a run.

What must never appear here: the reasons (see `deskhand.episodes.tasks.osworld.plan`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import click

from deskhand._core.redaction import clean
from deskhand.cli.common import show_json, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deskhand.episodes.tasks.osworld.plan import Reason

_BROKEN = "broken"


def is_foreign(name: str) -> bool:
    """Whether a name means tasks of OSWorld."""
    from deskhand.episodes.tasks.osworld.collection import PREFIX  # noqa: PLC0415 # other commands need not wait for it

    return name.startswith(PREFIX)


def plan(names: Sequence[str], *, backend: str, as_json: bool) -> None:
    """Print for each task whether it can run here, and why not.

    Args:
        names: The tasks, each as `osworld:PATH`.
        backend: Where desktops would run.
        as_json: Print a list of objects with `id`, `domain`, `runs`, `reason` and `kind`.

    Raises:
        UsageError: A name means other tasks, or there is none.
    """
    if not names or not all(map(is_foreign, names)):
        raise click.UsageError("--plan is about tasks of OSWorld: deskhand run osworld:PATH --plan")
    found = _planned(names, backend)
    if as_json:
        show_json([_data(domain, id_, why) for (domain, id_), why in found.items()])
        return
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for (domain, _), why in found.items():
        counts[domain][why[0].kind if why else "runs"] += 1
    kinds = ("runs", *_kinds())
    rows = [
        (domain, str(count.total()), *(str(count[kind] or "") for kind in kinds)) for domain, count in counts.items()
    ]
    whole = sum(counts.values(), Counter[str]())
    table(
        ("domain", "tasks", *kinds), [*rows, ("all", str(whole.total()), *(str(whole[kind] or "") for kind in kinds))]
    )
    _hint(found)


def announce(names: Sequence[str], *, backend: str) -> None:
    """Say before a run how many tasks of OSWorld cannot run, and why; nothing where all can."""
    foreign = [name for name in names if is_foreign(name)]
    found = _planned(foreign, backend) if foreign else {}
    refused = {task: why for task, why in found.items() if why}
    if not refused:
        return
    counts = Counter(why[0].kind for why in refused.values())
    causes = ", ".join(f"{kind} {count}" for kind, count in counts.most_common())
    told = f"{len(refused)} of {len(found)} tasks of OSWorld cannot run here and will count as invalid ({causes})"
    click.echo(f"{told}: --plan says why", err=True)
    _hint(found)


def _kinds() -> tuple[str, ...]:
    from deskhand.episodes.tasks.osworld.plan import KINDS  # noqa: PLC0415 # as above

    return KINDS


def _planned(names: Sequence[str], backend: str) -> dict[tuple[str, str], Sequence[Reason]]:
    from deskhand.episodes.tasks.osworld.collection import find_entries  # noqa: PLC0415 # as above
    from deskhand.episodes.tasks.osworld.evaluators import load_table  # noqa: PLC0415
    from deskhand.episodes.tasks.osworld.here import facts_here  # noqa: PLC0415
    from deskhand.episodes.tasks.osworld.plan import Reason, reasons  # noqa: PLC0415

    facts, known = facts_here(backend), load_table()
    found: dict[tuple[str, str], Sequence[Reason]] = {}
    for name in names:
        for entry in find_entries(name):
            broken = [Reason(_BROKEN, entry.broken)]  # type: ignore[arg-type] # one of the kinds
            found[entry.domain, entry.id] = broken if entry.task is None else reasons(entry.task, facts, known)
    return found


def _data(domain: str, id_: str, why: Sequence[Reason]) -> dict[str, Any]:
    return {
        "id": id_,
        "domain": domain,
        "runs": not why,
        "reason": clean("; ".join(reason.text for reason in why)),
        "kind": why[0].kind if why else "",
    }


def _hint(found: dict[tuple[str, str], Sequence[Reason]]) -> None:
    counts: Counter[str] = Counter(reason.kind for why in found.values() for reason in why)
    ways = {
        "file": "lack a file: deskhand assets fetch osworld:PATH, where there is a network",
        "evaluator": "lack upstream's evaluators: deskhand assets evaluators osworld:PATH, where there is a network",
    }
    for kind, told in ways.items():
        if counts[kind]:
            click.echo(f"{counts[kind]} {told}", err=True)
