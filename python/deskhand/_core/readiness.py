"""Waiting until descriptors can be read or written, whatever their numbers: `select` has none above 1023.

What must never appear here: reading, writing, a thread.
"""

from __future__ import annotations

import select
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable


class _HasDescriptor(Protocol):
    def fileno(self) -> int: ...


Source: TypeAlias = "int | _HasDescriptor"


def ready(reading: Iterable[Source] = (), writing: Iterable[Source] = (), *, timeout: float | None = None) -> set[int]:
    """Wait until at least one of some descriptors is ready.

    Args:
        reading: Descriptors, or objects that have one, to be read.
        writing: Descriptors to be written; one may be in both.
        timeout: Seconds, where less than 0 counts as 0; None waits without a limit.

    Returns:
        The numbers of those that are ready, have an error or have ended; empty when the time is over.

    Raises:
        ValueError: One of them is closed.
    """
    events: dict[int, int] = {}
    for sources, event in ((reading, select.POLLIN), (writing, select.POLLOUT)):
        for source in sources:
            number = source if isinstance(source, int) else source.fileno()
            events[number] = events.get(number, 0) | event
    poll = select.poll()
    for number, wanted in events.items():
        poll.register(number, wanted)
    return {number for number, _ in poll.poll(None if timeout is None else max(0.0, timeout) * 1000)}
