"""The status of a pool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from deskhand.desktop.desktop import Desktop

ResetBy: TypeAlias = "Literal['fresh', 'session'] | Callable[[Desktop], object]"
"""How a desktop is prepared between two users; see `Pool`."""


@dataclass(frozen=True, slots=True)
class PoolStatus:
    """How many desktops of a pool are in which state.

    Attributes:
        size: How many there may be.
        ready: Waiting for a user.
        used: In use.
        starting: Being launched, or made as new.
        ending: Being closed.
        waiting: Callers that wait for one.
        failed: Launches and resets that have failed since the pool was made.
        lost: Idle desktops that were found dead, and replaced, since the pool was made.
        trouble: Why the latest launch or reset failed; empty where none has.
    """

    size: int
    ready: int = 0
    used: int = 0
    starting: int = 0
    ending: int = 0
    waiting: int = 0
    failed: int = 0
    lost: int = 0
    trouble: str = ""
