"""Turns an error into `DesktopLost`, with the cause, when its desktop or the machine below it has ended.

This module owns which errors may mean that, and what is checked. What must never appear here: a lock, a new attempt.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, NoReturn, Protocol

from deskhand.errors import (
    BackendError,
    Closed,
    DeskhandTimeout,
    DesktopLost,
    LaunchFailed,
    Reconnected,
    ServerSilent,
    ShellError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deskhand.backends.protocols import Backend
    from deskhand.machine.interface import DesktopMachine

MAY_MEAN_A_LOSS = (BackendError, LaunchFailed, ShellError, DeskhandTimeout)
# Seconds for which a desktop that is to be made as new, or handed over, is checked for a loss.
_ALIVE_LIMIT = 1.0


class Losable(Protocol):
    """What a loss is about: a desktop's core."""

    inside: DesktopMachine | None

    @property
    def orphaned(self) -> bool:
        """Whether its guard has ended."""
        ...


@contextlib.contextmanager
def losses_raised(core: Losable) -> Iterator[None]:
    """Around operations on a desktop or its machine.

    Raises:
        DesktopLost: Instead of an error that was caused by the end of either.
    """
    try:
        yield
    except MAY_MEAN_A_LOSS as error:
        raise_loss(core, error)


def raise_loss(core: Losable, error: Exception) -> NoReturn:
    """Raise the loss that this error means, or the error."""
    lost = None if isinstance(error, Closed | Reconnected | ServerSilent) else loss_behind(core, error)
    if lost is None or lost is error:
        raise error
    raise lost from error


def loss_behind(core: Losable, error: Exception) -> DesktopLost | None:
    """The loss that an error means, as far as that is known; None where nothing is lost."""
    found = error if isinstance(error, DesktopLost) else None
    if core.inside is not None:
        return core.inside.loss() if found is None else core.inside.cause(found)
    if core.orphaned:
        return DesktopLost("guard", "its guard process has ended, and with it all that was launched")
    return found


def check_alive(backend: Backend) -> None:
    """Raise if the desktop is lost; a silent one may not be. The caller has its lock."""
    backend.begin()
    backend.allow(_ALIVE_LIMIT)
    try:
        backend.round_trip()
    except (ServerSilent, Reconnected):
        pass
    finally:
        backend.end()
