"""Whether each task of OSWorld can run here, and why not. Pure.

This module owns the reasons and their words. What must never appear here: how what is here is found out (see `here`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from deskhand.episodes.tasks.foreign import Reason
from deskhand.episodes.tasks.osworld.needs import Table, needs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from deskhand.episodes.tasks.osworld.needs import Needs
    from deskhand.episodes.tasks.osworld.taskfile import TaskFile

KINDS = ("broken", "login", "network", "rights", "differs", "application", "file", "evaluator")
"""The kinds of reasons, from those that no one can change here to those that one command changes."""

UPSTREAM = {
    "runs": "the same, in a virtual machine with Ubuntu, GNOME and Chrome",
    "broken": "fails too: the file is no task",
    "login": "logs in with an account that the evaluator has created for Google Drive or the website",
    "network": "reaches the web, through a proxy where the task asks for one; what the pages say changes with time",
    "rights": "has a user with sudo, whose password the task's commands know",
    "differs": "has a sound card and a browser's port that is open to the evaluator; its repository has evaluators that its "
    "package lacks",
    "application": "has the application installed",
    "file": "downloads the file from the hub when a task needs it first",
    "evaluator": "has every package of every evaluator in the environment of the benchmark",
}
"""What upstream's machine does with a task, by the kind of what is in the way here."""

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Facts:
    """What is here.

    Attributes:
        has_program: Whether the desktops' machine has a program.
        has_asset: Whether the file of an address is in the cache.
        packages: The packages in the environment of the evaluators; None if there is no such environment.
        version: The version of upstream's package there.
        local: Whether desktops are local, and not in containers.
    """

    has_program: Callable[[str], bool]
    has_asset: Callable[[str], bool]
    packages: frozenset[str] | None
    version: str
    local: bool


def reasons(task: TaskFile, facts: Facts, table: Table) -> list[Reason]:
    """Why a task cannot run here, in the order of `KINDS`; empty if it can."""
    needs = needs_of(task, table)
    found = [Reason("login", f"it needs {each}") for each in needs.logins]
    if needs.hosts:
        found.append(Reason("network", f"it needs the network: {_some(needs.hosts)}"))
    if needs.root:
        found.append(Reason("rights", f"it needs the administrator's rights, which no desktop gives: {needs.root}"))
    found += _differences(needs, facts, table)
    missing = [program for program in needs.programs if not facts.has_program(program)]
    if missing:
        found.append(Reason("application", f"a program is missing: {_some(missing)}"))
    absent = [url for url in needs.urls if not facts.has_asset(url)]
    if absent:
        # `deskhand assets fetch` names them.
        found.append(Reason("file", f"files that it downloads are not in the cache: {len(absent)}"))
    if not task.infeasible:
        found += _evaluator(needs, facts, table)
    return found


def _differences(needs: Needs, facts: Facts, table: Table) -> list[Reason]:
    found = [Reason("differs", f"the step {kind} is not carried out here") for kind in needs.unknown_steps]
    if needs.unknown_evaluators:
        lacking = f"{_some(needs.unknown_evaluators)}: desktop-env {table.version} does not have it"
        found.append(Reason("differs", lacking))
    if "chromium_port" in needs.environment:
        found.append(
            Reason("differs", "its evaluator reads the browser's protocol from outside, which a desktop keeps closed")
        )
    if "pactl" in needs.programs:
        found.append(Reason("differs", "it evaluates the sound card's volume, and a desktop has no sound card"))
    if facts.local:
        found += [Reason("differs", f"{each}: use --backend docker") for each in only_in_containers(needs)]
    return found


def only_in_containers(needs: Needs) -> list[str]:
    """Why a task cannot run on a local desktop, whatever is installed; empty if it can."""
    reasons = {
        "its instruction names /home/user, which only containers have": needs.home,
        "VLC would answer its evaluator at a port of this machine, where only containers have their own": (
            "vlc_port" in needs.environment
        ),
    }
    return [reason for reason, applies in reasons.items() if applies]


def notes(task: TaskFile, table: Table) -> list[str]:
    """What differs for a task from upstream's machine although it runs."""
    if "get_vm_wallpaper" in needs_of(task, table).environment:
        return ["the wallpaper is GNOME's setting, which a desktop here has and does not show"]
    return []


def _evaluator(needs: Needs, facts: Facts, table: Table) -> list[Reason]:
    hint = "see `deskhand assets evaluators`"
    if facts.packages is None:
        return [Reason("evaluator", f"there is no environment with upstream's evaluators: {hint}")]
    if facts.version != table.version:
        has = f"has desktop-env {facts.version}" if facts.version else "has no desktop-env"
        return [Reason("evaluator", f"the evaluators' environment {has}, and not {table.version}: {hint}")]
    missing = [name for name in needs.packages if name not in facts.packages]
    return (
        [Reason("evaluator", f"its evaluator needs a package that is missing: {_some(missing)}; {hint}")]
        if missing
        else []
    )


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
