"""The options of every launch of a pool, for type checkers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deskhand.launchers.docker.spec import ContainerOptions, UnlimitedOptions

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from deskhand.policy.audit import AuditLog
    from deskhand.policy.rules import Ask, Policy


class EnvironmentOptions(UnlimitedOptions, total=False):
    """What `deskhand.launch` takes, but what the pool of an environment decides, and `limits`, which are the task's there."""

    window_manager: str | None
    env: Mapping[str, str | os.PathLike[str]] | None
    dpi: int
    method: str | None
    home: bool | str | os.PathLike[str]
    elements: bool
    animations: bool
    timeout: float
    policy: Policy | None
    ask: Ask | None
    audit: AuditLog | None


class LaunchOptions(EnvironmentOptions, ContainerOptions, total=False):
    """What `deskhand.launch` takes, but what a pool decides: the backend, the size and the name."""
