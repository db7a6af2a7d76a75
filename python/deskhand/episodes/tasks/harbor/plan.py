"""Whether each task of Harbor can run here, and why not. Pure.

This module owns the reasons and their words, and what a task gets of the network and of the caller's environment. What must
never appear here: how a task's files are read (see `folder`), and what the user allows (see `consent`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from deskhand.episodes.tasks.foreign import Reason
from deskhand.episodes.tasks.harbor.taskfile import template_of
from deskhand.errors import ActionError
from deskhand.launchers.docker.allow_list import parse_hosts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from deskhand.episodes.tasks.harbor.consent import Consent
    from deskhand.episodes.tasks.harbor.taskfile import Network, TaskFile

KINDS = ("broken", "rights", "differs", "network", "variable")
"""The kinds of reasons, from those that no one can change here to those that an option changes."""

_SHOWN = 3
# A command begins here, after assignments.
_START = (
    r"(?:^|[;&|(`!]|\b(?:if|then|do|else|elif|while|exec|time)[ \t])[ \t]*"
    r"(?:[A-Za-z_]\w{0,50}=\S{0,100}[ \t]+){0,5}"
)
_ADMINISTRATION = re.compile(_START + r"(sudo|su|apt-get|apt|apk|dnf|yum)[ \t]", re.MULTILINE)
_FETCHING = re.compile(
    _START
    + r"((?:curl|wget)\b(?=[^\n;|&]{0,500}?https?://(?!localhost|127\.|\[::1\]))"
    + r"|(?:pip3?|python3? -m pip|uv pip|cargo|go|gem|conda|npm)[ \t]+(?:-\S{1,50}[ \t]+){0,5}(?:install|ci)\b"
    + r"|uvx\b|npx\b|uv[ \t]+(?:tool|run|sync|add)\b|git[ \t]+clone\b)",
    re.MULTILINE,
)
_COMMENT = re.compile(r"^[ \t]*#[^\n]*", re.MULTILINE)


def reasons(file: TaskFile, script: str, consent: Consent, *, containers: bool = True) -> list[Reason]:
    """Why a task cannot run here, in the order of `KINDS`; empty if it can.

    Args:
        file: The task.
        script: Its `tests/test.sh`.
        consent: What the user allows.
        containers: Whether desktops are containers.
    """
    found = [
        Reason("rights", f"it wants the user {user}, and everything here runs as the desktop's user")
        for user in dict.fromkeys(file.users)
    ]
    script = _COMMENT.sub("", script)
    if words := _found(_ADMINISTRATION, script):
        found.append(Reason("rights", f"its tests call {_some(words)}, which needs the administrator's rights"))
    if not containers:
        found.append(Reason("differs", "it runs in an image of its own: use --backend docker"))
    found += [Reason("differs", f"{part} is not carried out here") for part in file.beyond]
    hosts, refused = network_of(file, consent)
    if refused:
        found.append(Reason("network", refused))
    elif hosts == "none" and (words := _found(_FETCHING, script)):
        found.append(Reason("network", f"its tests call {_some(words)}, and it has no network: --network HOST"))
    found += [Reason("variable", text) for text in _variables({**file.env, **file.test_env}, consent)]
    return found


def notes(file: TaskFile, consent: Consent) -> list[str]:
    """What differs from Harbor for a task that runs, and what of it is not understood."""
    hosts, refused = network_of(file, consent)
    given = "none" if hosts == "none" else f"only {_some(hosts)}"
    found = []
    if not file.network.mode:
        found.append(f"it says nothing about the network, which Harbor then opens; it gets {given}")
    elif file.network.mode == "public" and not refused:
        found.append(f"it asks for the public network; it gets {given}")
    if file.unknown:
        found.append(f"task.toml has fields that are not known: {_some(file.unknown)}")
    return found


def network_of(file: TaskFile, consent: Consent) -> tuple[Literal["none"] | tuple[str, ...], str]:
    """What a task may reach, and why it cannot have what it asks for; empty if it can."""
    asked = file.network
    if any(phase.mode and phase != asked for phase in file.phases):
        return "none", "it has another network for its agent or its tests, and a desktop has one network"
    if asked.mode == "no-network":
        return "none", ""
    if asked.mode == "allowlist":
        return _listed(asked, consent)
    if asked.mode == "public" and not consent.hosts:
        return "none", "it asks for the public network, and a desktop reaches hosts that you name: --network HOST"
    return consent.hosts or "none", ""


def resolve_env(env: Mapping[str, str], consent: Consent) -> dict[str, str]:
    """The values of an `env`: variables of the caller only where the user allows them, or else their defaults."""
    found = {}
    for name, value in env.items():
        template = template_of(value)
        if template is None:
            found[name] = value
        else:
            own = consent.variables.get(template[0])
            found[name] = own if own is not None else template[1] or ""
    return found


def lacking_variables(env: Mapping[str, str], consent: Consent) -> str:
    """Why an `env` cannot be resolved; empty if it can."""
    return "; ".join(_variables(env, consent))


def _variables(env: Mapping[str, str], consent: Consent) -> Iterator[str]:
    wanted = dict.fromkeys(template for value in env.values() if (template := template_of(value)) is not None)
    for name, default in wanted:
        if default is not None:
            continue
        if name not in consent.variables:
            yield f"it reads your variable {name[:100]}: --env {name[:100]} lets it"
        elif consent.variables[name] is None:
            yield f"it reads your variable {name[:100]}, which is not set"


def _listed(asked: Network, consent: Consent) -> tuple[Literal["none"] | tuple[str, ...], str]:
    try:
        parse_hosts(asked.hosts)
    except ActionError as error:
        return "none", f"its allowed_hosts: {error}"
    refused = [host for host in asked.hosts if not _covered(host, consent.hosts)]
    if refused:
        return "none", f"it wants to reach {_some(refused)}: {' '.join(f'--network {host}' for host in refused[:20])}"
    return asked.hosts, ""


def _covered(host: str, allowed: Sequence[str]) -> bool:
    host = host.lower()
    return any(
        host == each.lower() or (each.startswith("*.") and host.removeprefix("*.").endswith(each[1:].lower()))
        for each in allowed
    )


def _found(pattern: re.Pattern[str], script: str) -> list[str]:
    return list(dict.fromkeys(" ".join(match[1].split())[:60] for match in pattern.finditer(script)))


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
