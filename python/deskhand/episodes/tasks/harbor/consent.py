"""What the user allows the tasks of Harbor besides their desktop: hosts of the network, and variables of the environment.

This module owns where that is kept: in the environment, so that the workers of a run have it too. What must never appear here:
what a task asks for (see `plan`).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NETWORK, VARIABLES = "DESKHAND_HARBOR_NETWORK", "DESKHAND_HARBOR_ENV"
"""The variables that keep it: names with commas between them."""


@dataclass(frozen=True, slots=True)
class Consent:
    """What the user allows.

    Attributes:
        hosts: The hosts that tasks may reach, as in `deskhand.launch(network=...)`.
        variables: The variables of this process that tasks may read, by name; None for one that is not set.
    """

    hosts: tuple[str, ...]
    variables: Mapping[str, str | None]


def allow(*, hosts: Sequence[str] = (), variables: Sequence[str] = ()) -> None:
    """Allow them in this process, and in those that it starts."""
    for name, allowed in ((NETWORK, hosts), (VARIABLES, variables)):
        if allowed:
            os.environ[name] = ",".join(allowed)


def allowed() -> Consent:
    """What is allowed in this process."""
    hosts, variables = (
        tuple(word for word in os.environ.get(name, "").split(",") if word) for name in (NETWORK, VARIABLES)
    )
    return Consent(hosts, {name: os.environ.get(name) for name in variables})
